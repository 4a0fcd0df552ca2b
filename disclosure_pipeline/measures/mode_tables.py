"""The most frequent target level of each key combination, and guesses of it, from tables.

A table of counts has a row for each target level and a column for each key combination. Where it is small
enough, its rows are added up many times faster than sparse cells.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.measures.exact import Grouped, IntArray, Mask
from disclosure_pipeline.measures.guesses import GuessCounts


@dataclass(frozen=True)
class Modes:
    """The records of the most frequent levels of each q (shape: q); which ones (targets, q), and how many."""

    largest: IntArray
    are_largest: Mask
    levels: IntArray

    @classmethod
    def from_table(cls, r: IntArray) -> Modes:
        """Find the modes of a table (targets, q)."""
        largest = r.max(axis=0, initial=0)
        are_largest = r == largest
        return cls(largest, are_largest, _count_levels(are_largest))

    def records_of(self, d: IntArray) -> IntArray:
        """Return the records of a table (targets, q) that have such a level (shape: q)."""
        records: IntArray = np.multiply(d, self.are_largest).sum(axis=0, dtype=d.dtype)
        return records


def guess_counts_of_table(
    d: IntArray, r: IntArray, modes: Modes, right: IntArray, no_guess: Mask
) -> GuessCounts:
    """Count as `guesses.guess_counts`, from tables (targets, q).

    `modes` are those of `r`, and `right` the records of `d` with them.
    """
    if no_guess.any():
        may_be = _levels(no_guess)
        d, modes = d[may_be], Modes.from_table(r[may_be])
        right = modes.records_of(d)
    has_mode = modes.largest > 0
    return GuessCounts(
        _grouped(modes.levels[has_mode], right[has_mode]),
        _by_level(_sum_of_some(d, has_mode), no_guess),
    )


def guess_counts_of_table_without_self(r: IntArray, modes: Modes, no_guess: Mask) -> GuessCounts:
    """Count as `guesses.guess_counts_without_self`, from a table (targets, q) of all guessed records."""
    if no_guess.any():
        r = r[_levels(no_guess)]
        modes = Modes.from_table(r)
    others = r.sum(axis=0, dtype=r.dtype) - 1
    right = (modes.levels == 1) & (others > 0)
    behind = _count_levels(r == modes.largest - 1)
    return GuessCounts(
        _grouped(1 + behind[right].astype(np.int64), modes.largest[right]),
        _by_level(_sum_of_some(r, others > 0), no_guess),
    )


def _count_levels(levels: Mask) -> IntArray:
    """Return how many levels are marked in each q."""
    counts: IntArray = np.add.reduce(levels.view(np.uint8), axis=0, dtype=np.min_scalar_type(len(levels)))
    return counts


def _sum_of_some(r: IntArray, chosen: Mask) -> IntArray:
    """Return the records of each level in some q (shape: q)."""
    sums: IntArray = r.sum(axis=1, dtype=np.int64)
    left_out = np.flatnonzero(~chosen)
    if 2 * len(left_out) > len(chosen):
        return r[:, chosen].sum(axis=1, dtype=np.int64)
    return sums - r[:, left_out].sum(axis=1, dtype=np.int64) if len(left_out) else sums


def _levels(no_guess: Mask) -> slice | IntArray:
    """Return the levels that may be guessed, as a slice where they come first: that copies nothing."""
    may_be = np.flatnonzero(~no_guess)
    return slice(0, len(may_be)) if len(may_be) and may_be[-1] == len(may_be) - 1 else may_be


def _grouped(groups: IntArray, sums: IntArray) -> Grouped:
    """Group by number of levels, of which there are few."""
    by_number = np.bincount(groups, weights=sums).astype(np.int64)
    present = np.flatnonzero(by_number)
    return Grouped(present, by_number[present])


def _by_level(sums: IntArray, no_guess: Mask) -> Grouped:
    """Return the sums of the levels that may be guessed."""
    present = np.flatnonzero(sums)
    return Grouped(np.flatnonzero(~no_guess)[present], sums[present])
