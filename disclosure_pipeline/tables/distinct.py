"""Columns by their different values: all that alignment needs, however many records there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.tables.alignment import check_values
from disclosure_pipeline.tables.coding import code_and_mark
from disclosure_pipeline.tables.frames import check_not_empty, stack_columns
from disclosure_pipeline.tables.grouping import Grouping
from disclosure_pipeline.tables.kinds import common_kind
from disclosure_pipeline.tables.levels import CodedColumn, IntArray, StoredColumn


@dataclass(frozen=True)
class Distinct:
    """The values of one column of one table, and the number of records with each.

    Two of the `values` may be equal, and one may be missing: they may stand for others, as where one is an
    alias. `counts` has an entry for each, and last the number of records that have none.
    """

    values: pd.Series[Any]
    counts: IntArray

    @property
    def records(self) -> int:
        """The number of records of the table."""
        return int(self.counts.sum())

    def take(self, numbers: IntArray) -> Any:
        """The values with these numbers as an array, missing for -1."""
        with_missing = pd.concat([self.values, pd.Series([None], dtype=self.values.dtype)], ignore_index=True)
        return with_missing.array.take(numbers)


def stack_distinct(tables: Sequence[Distinct]) -> Distinct:
    """The values of a column of several tables as one: those of the second follow those of the first."""
    counts = [table.counts[:-1] for table in tables]
    missing = sum(int(table.counts[-1]) for table in tables)
    values = stack_columns([table.values for table in tables])
    return Distinct(values, np.append(np.concatenate(counts), missing))


def code_distinct(column: Any, tables: Sequence[Distinct], names: Sequence[str]) -> CodedColumn:
    """A column of GT (first) and of the syntheses, coded as `code_column` codes it, from its values alone.

    `codes[i]` are the codes of the values of table i instead of its records, and last that of missing;
    `counts` are the numbers of records. `names` are the tables' in messages.
    """
    values = [table.values for table in tables]
    coded, differs = code_and_mark(column, common_kind(column, values, names), values)
    weighted = [
        _weight_by_counts(codes, table.counts, coded.size)
        for codes, table in zip(coded.codes, tables, strict=True)
    ]
    if differs is not None:
        rounded = [
            stored.look_up(by_position) for stored, by_position in zip(coded.tables, differs, strict=True)
        ]
        weighted = [
            replace(stored, rounded=int(table.counts[:-1][differing].sum()))
            for stored, table, differing in zip(weighted, tables, rounded, strict=True)
        ]
    return replace(coded, tables=tuple(weighted))


def code_distinct_columns(
    distinct: Mapping[Any, Sequence[Distinct]], grouping: Grouping, names: Sequence[str]
) -> list[CodedColumn]:
    """Columns coded over their values by `code_distinct`, not grouped yet. InputError as `check_tables`.

    `names` are the tables' in messages.
    """
    if not distinct:
        return []
    check_not_empty([table.records for table in next(iter(distinct.values()))], names)
    for name, tables in distinct.items():
        check_values(name, [table.values for table in tables], grouping, names)
    return [code_distinct(name, tables, names) for name, tables in distinct.items()]


def _weight_by_counts(codes: IntArray, counts: IntArray, size: int) -> StoredColumn:
    codes_and_missing = np.append(codes, size - 1).astype(np.int64)
    records = np.zeros(size, dtype=np.int64)
    np.add.at(records, codes_and_missing, counts)
    return StoredColumn(codes_and_missing, 0, np.arange(size), records)
