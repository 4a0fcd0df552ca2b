"""Columns of numbers or times that look renumbered: see `measures.renumbering`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from disclosure_pipeline.evaluation.resemblance import GROUPS
from disclosure_pipeline.measures.chance import Floats
from disclosure_pipeline.measures.renumbering import (
    RANK_GROUPS,
    JointTables,
    RankGroups,
    find_heaps,
    looks_renumbered,
)
from disclosure_pipeline.tables.grouping import grouping_of
from disclosure_pipeline.tables.kinds import ORDERED_KINDS, Kind
from disclosure_pipeline.tables.levels import CodedColumn

_MOST_LOOKED_UP = 50_000_000  # values of all pairs of columns
_FEWEST = 100  # records that say anything of twenty groups


def find_renumbered(columns: Sequence[CodedColumn]) -> dict[tuple[Any, int], float]:
    """Return `looks_renumbered` of each (column, synthesis) of the columns with an order, coded, not grouped.

    0 where too few records have a value that is no heap, and of a column that stands alone.
    """
    ordered = [column for column in columns if column.kind in ORDERED_KINDS]
    step = max(1, len(ordered) * len(columns) * len(columns[0].codes[0]) // _MOST_LOOKED_UP)
    levels = {id(column): _group_levels(column) for column in columns}
    return {
        (column.name, synthesis): _measure(
            column, [levels[id(other)] for other in columns if other is not column], synthesis, step
        )
        for column in ordered
        for synthesis in range(1, len(column.codes))
    }


def _group_levels(column: CodedColumn) -> CodedColumn:
    if column.kind is not Kind.NUMBER:
        return column
    return grouping_of(groups={column.name: GROUPS}).apply(column)


def _measure(column: CodedColumn, others: Sequence[CodedColumn], synthesis: int, step: int) -> float:
    heaps = find_heaps(column.counts[0], column.counts[synthesis])
    d, s = (np.where(heaps, 0, column.counts[table]) for table in (0, synthesis))
    if min(d.sum(), s.sum()) < _FEWEST or np.count_nonzero(d) < RANK_GROUPS:
        return 0.0
    by_GT, by_SD = map(RankGroups.from_counts, (d, s))

    def count(table: int, groups: RankGroups, other: CodedColumn) -> Floats:
        codes = column.codes[table][::step]
        counted = np.flatnonzero(~heaps[codes])
        pairs = groups.row[codes[counted]] * other.size + other.codes[table][::step][counted]
        rows = groups.shares.shape[1]
        return groups.add_up(np.bincount(pairs, minlength=rows * other.size).reshape(rows, other.size))

    return looks_renumbered(
        [
            JointTables(
                count(0, by_GT, other),
                count(synthesis, by_SD, other),
                count(synthesis, by_GT, other),
            )
            for other in others
            if other.size <= len(column.codes[0])
        ]
    )
