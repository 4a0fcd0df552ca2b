"""Warnings of columns that GT lacks, and of columns that identify a record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from disclosure_pipeline.counting.opening import OpenedTables
from disclosure_pipeline.tables.levels import CodedColumn
from disclosure_pipeline.tables.messages import listed, table_names


def identifier_warnings(opened: OpenedTables, columns: Sequence[CodedColumn]) -> list[str]:
    """Warnings of columns that GT lacks, and of those that identify every record.

    `columns` are those that are coded, not grouped.
    """
    columns_GT, *columns_SD = opened.columns
    names = table_names(len(opened.columns))
    identifiers = opened.identifiers(columns)
    warnings = []
    for synthesis, (columns_of_table, name) in enumerate(zip(columns_SD, names[1:], strict=True), start=1):
        warnings += _warn_of_more_columns(columns_GT, columns_of_table, name)
        warnings += [_warn_of_identifier(column, name) for table, column in identifiers if table == synthesis]
    return warnings


def _warn_of_more_columns(columns_GT: Sequence[Any], columns: Sequence[Any], table: str) -> list[str]:
    more = [column for column in columns if column not in columns_GT]
    return [f"GT lacks columns that {table} has, {listed(more)}: they are not measured."] if more else []


def _warn_of_identifier(column: Any, table: str) -> str:
    return (
        f"Column {column!r} has a value of its own for every GT record, and most of its values in {table} "
        "are of GT: is it an identifier? Then it must not be in a synthetic table."
    )
