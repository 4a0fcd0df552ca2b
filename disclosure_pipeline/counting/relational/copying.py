"""Rows brought to PostgreSQL by COPY, which takes a fraction of the time of INSERT."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_BATCH_RECORDS = 1 << 16
_ESCAPED = (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r"))  # the backslash first
_NULL = "\\N"


def copy_rows(connection: Any, table_name: str, rows: Any) -> None:
    """Append the rows of an Arrow table to a table that has its columns, all of them or none.

    `connection` is one of psycopg. Raises what it raises, and pa.ArrowInvalid for times that have more than
    the six digits of a second that PostgreSQL keeps.
    """
    from psycopg import sql

    columns = sql.SQL(", ").join(map(sql.Identifier, rows.column_names))
    # What is sent is UTF-8, whatever encoding the connection has for all else.
    statement = sql.SQL("COPY {} ({}) FROM STDIN (ENCODING 'UTF8')").format(
        sql.Identifier(table_name), columns
    )
    can_be_text = all(_can_be_text(column.type) for column in rows.columns)
    with connection.transaction(), connection.cursor() as cursor, cursor.copy(statement) as copy:
        for batch in rows.to_batches(max_chunksize=_BATCH_RECORDS):
            if can_be_text:
                copy.write(copy_text(batch))
            else:
                for row in batch.to_pylist():
                    copy.write_row(tuple(row.values()))


def copy_text(batch: Any) -> memoryview:
    """A record batch in the text format of COPY: a line for each row, its values between tabs."""
    nothing, tab, newline = (pa.scalar(text, pa.large_string()) for text in ("", "\t", "\n"))
    texts = [_write_as_text(column) for column in batch.columns]
    texts[-1] = pc.binary_join_element_wise(texts[-1], newline, nothing)
    lines = pc.binary_join_element_wise(*texts, tab)
    size = pc.sum(pc.binary_length(lines)).as_py() or 0
    return memoryview(lines.buffers()[2] or b"")[:size]  # the lines lie there one after the other


def _can_be_text(arrow_type: Any) -> bool:
    """Whether Arrow writes values of a type as PostgreSQL reads them."""
    kinds = (
        *(pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal),
        *(pa.types.is_string, pa.types.is_large_string, pa.types.is_date, pa.types.is_timestamp),
    )
    return any(is_kind(arrow_type) for is_kind in kinds)


def _write_as_text(column: Any) -> Any:
    """The values of a column as COPY has them, NULL included."""
    if pa.types.is_timestamp(column.type):
        zone = None if column.type.tz is None else "UTC"
        column = column.cast(pa.timestamp("us", zone))
    text = column.cast(pa.large_string())
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        for character, escaped in _ESCAPED:
            text = pc.replace_substring(text, character, escaped)
    return text.fill_null(_NULL)
