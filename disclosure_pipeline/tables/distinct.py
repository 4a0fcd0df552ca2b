"""Columns by their different values: all that alignment needs, however many records there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.tables.levels import CodedColumn, IntArray, Stored, code_column


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


def code_distinct(column: Any, tables: Sequence[Distinct], names: Sequence[str]) -> CodedColumn:
    """A column of GT (first) and of the syntheses, coded as `code_column` codes it, from its values alone.

    `codes[i]` are the codes of the values of table i instead of its records, and last that of missing;
    `counts` are the numbers of records. `names` are the tables' in messages.
    """
    coded = code_column(column, [table.values for table in tables], names)
    return replace(
        coded,
        tables=tuple(
            _weighted(codes, table.counts, coded.size)
            for codes, table in zip(coded.codes, tables, strict=True)
        ),
    )


def _weighted(codes: IntArray, counts: IntArray, size: int) -> Stored:
    of_values = np.append(codes, size - 1).astype(np.int64)
    of_codes = np.zeros(size, dtype=np.int64)
    np.add.at(of_codes, of_values, counts)
    return Stored(of_values, 0, np.arange(size), of_codes)
