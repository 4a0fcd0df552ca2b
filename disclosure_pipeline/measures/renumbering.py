"""Numbers that are mirrored, negated, scaled or shifted in their ranks: equal to none of GT, yet as telling.

This project's own. What a number says of a person is seen beside the other columns. If these joint tables are
far from GT's as the numbers are, and near once one map moves all of them, the column looks renumbered.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.measures.chance import Floats
from disclosure_pipeline.measures.exact import IntArray, Mask
from disclosure_pipeline.measures.resemblance import distance, expected_distance

RANK_GROUPS = 20
"""Numbers are put into so many groups by their ranks; a map moves groups."""

_HEAP = 0.1
_SCALED, _MOVED = 0.1, 0.4


@dataclass(frozen=True)
class JointTables:
    """The records of GT and of SD in each group of a number and level of another column.

    `d`, `s`: groups by the ranks of each table by itself; `s_as_is`: by those of GT.
    """

    d: Floats
    s: Floats
    s_as_is: Floats


@dataclass(frozen=True)
class RankGroups:
    """Groups of equal size by ranks: a number whose ranks are in several groups is dealt out to them.

    `row` of each number: its group, or one of its own beyond them; `shares` of each row in the groups (shape:
    groups, rows).
    """

    row: IntArray
    shares: Floats

    @classmethod
    def from_counts(cls, counts: IntArray) -> RankGroups:
        """Group by the records with each of the ordered numbers.

        >>> groups = RankGroups.from_counts(np.array([1] * 18 + [2]))
        >>> groups.row[-3:].tolist(), groups.shares[-2:, -1].tolist()
        ([16, 17, 20], [0.5, 0.5])
        """
        ends = np.cumsum(counts) * RANK_GROUPS
        starts, total = ends - counts * RANK_GROUPS, max(int(ends[-1]) // RANK_GROUPS, 1)
        row = np.minimum(starts // total, RANK_GROUPS - 1)
        shared = np.flatnonzero((counts > 0) & (ends > (row + 1) * total))
        row[shared] = RANK_GROUPS + np.arange(len(shared))
        lower = np.arange(RANK_GROUPS)[:, np.newaxis] * total
        overlaps = np.minimum(ends[shared], lower + total) - np.maximum(starts[shared], lower)
        dealt = np.maximum(overlaps, 0) / (ends[shared] - starts[shared])
        return cls(row, np.hstack((np.eye(RANK_GROUPS), dealt)))

    def add_up(self, rows: IntArray) -> Floats:
        """Return the records in each group, from those in each row (shape: rows, levels)."""
        return np.asarray(self.shares @ rows)


def find_heaps(d: IntArray, s: IntArray) -> Mask:
    """Mark the numbers that a tenth of the records of a table have, and missing, which is last.

    No map moves them with the others: they are mostly codes.
    """
    heaps: Mask = (d >= _HEAP * d.sum()) | (s >= _HEAP * s.sum())
    heaps[-1] = True
    return heaps


def looks_renumbered(tables: Sequence[JointTables]) -> float:
    """Return how far the numbers are from GT's beside another column, if a map brings them near; 0 otherwise.

    Distances are TVD over what a fresh sample shows: the largest of all columns. What a map does is seen on
    average over the columns, each by how much it has to do with the number in GT. Ranks alone bring scaled
    numbers near, to a tenth at most, and also what a bad synthesizer makes of a distribution, but less. A
    turn, or a shift by any number of groups in a ring, has to bring them to two fifths of what ranks do.
    """
    maps = _list_maps()
    as_is, largest, mapped = 0.0, 0.0, np.zeros(len(maps))
    for joint in tables:
        d, N_d, N_s = joint.d.ravel(), float(joint.d.sum()), float(joint.s.sum())
        apart = np.outer(joint.d.sum(axis=1), joint.d.sum(axis=0)).ravel()
        dependence = distance(d, apart) - expected_distance(d / N_d, N_d, math.inf)
        if dependence <= 0:
            continue
        expected = expected_distance(d / N_d, N_d, N_s)
        beyond = distance(d, joint.s_as_is.ravel()) - expected
        as_is += dependence * beyond
        largest = max(largest, beyond)
        in_GT, in_SD = joint.d / N_d, joint.s / N_s
        of_maps = np.array([np.abs(in_GT - in_SD[order]).sum() / 2 for order in maps])
        mapped += dependence * (of_maps - expected)
    by_rank, best = (max(beyond, 0.0) for beyond in (mapped[0], mapped[1:].min()))
    return largest if by_rank < _SCALED * as_is or best < _MOVED * by_rank else 0.0


def _list_maps() -> list[IntArray]:
    groups = np.arange(RANK_GROUPS)
    return [(turned + shift) % RANK_GROUPS for turned in (groups, groups[::-1]) for shift in groups]
