"""The syntheses of a candidate stacked: all their records as one table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from disclosure_pipeline.tables.levels import CodedColumn, IntArray, StoredColumn

_MISSING = -1  # as a missing value is stored
_PAIR = 2  # tables: GT and one synthesis


def stack_syntheses(columns: Sequence[CodedColumn]) -> list[CodedColumn]:
    """The columns with two tables each: GT, and the records of all syntheses one below the other.

    Codes and levels stay as they are. Where there is one synthesis, the columns are returned themselves.
    """
    return [_stack(column) if len(column.tables) > _PAIR else column for column in columns]


def _stack(column: CodedColumn) -> CodedColumn:
    ground_truth, *syntheses = column.tables
    stored_code = np.arange(column.size, dtype=np.min_scalar_type(-column.size))
    stored_code[column.missing] = _MISSING
    stored: IntArray = np.concatenate([table.look_up(stored_code[table.position]) for table in syntheses])
    counts = np.sum(column.counts[1:], axis=0)
    position = np.arange(column.size)
    rounded = sum(table.rounded for table in syntheses)
    stacked = StoredColumn(stored, 0, position, counts, rounded)
    return CodedColumn(column.name, column.kind, (ground_truth, stacked), column.levels)
