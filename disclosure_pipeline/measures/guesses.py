"""Guessing the most frequent level: of a record's key combination, else of the whole table, or always of it.

This project's own measure `guessed`, and what the same guess takes from other people's records: both choose
the better of the two ways. There is no rule of order between equally frequent levels: of k of them each
counts 1/k, so that a renamed level changes nothing. Missing target values are no guess.

Guesses are counted from the cells that occur, or from a table of counts with a row for each target level and
a column for each key combination. Where that is small enough, adding up its rows is many times faster.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from disclosure_pipeline.measures.drawn_guesses import (
    DrawnGuessCounts,
    count_right_by_mode_of_draw,
    count_right_guesses_of_draw,
    draw_of_others,
    draw_of_synthetic,
    overall_chances,
)
from disclosure_pipeline.measures.exact import SCALE, Grouped, IntArray, Mask, percent, sum_quotients
from disclosure_pipeline.measures.frequency import FrequencyTable
from disclosure_pipeline.measures.samples import Sizes


@dataclass(frozen=True)
class GuessCounts:
    """GT records, by what a table to guess from says of their q; integers that add up over keys.

    named: those whose level is among the most frequent ones of their q there, by the number of these levels.
    matched: those in whose q there is a record to guess from, by their level t. All others are guessed the
        most frequent level of the whole table.
    """

    named: Grouped
    matched: Grouped


def guess_counts(f: FrequencyTable, d: IntArray, r: IntArray, no_guess: Mask) -> GuessCounts:
    """Count guesses from the records `r` of each cell (shape: cells), none of which is the person's own."""
    if not len(f.q):
        return GuessCounts(Grouped.empty(), Grouped.empty())
    r = r * ~no_guess[f.t]
    largest = f.largest_by_q(r)
    named = (r == f.at_cells(largest)) & (r > 0)
    right = np.flatnonzero(named & (d > 0))
    matched = np.flatnonzero((d > 0) & f.at_cells(largest > 0))
    return GuessCounts(
        Grouped.sum_by_group(f.at_cells(f.sum_by_q(named), right), d[right]),
        Grouped.sum_by_group(f.t[matched], d[matched]),
    )


def guess_counts_without_self(
    f: FrequencyTable, inside: IntArray, r: IntArray, no_guess: Mask
) -> GuessCounts:
    """Count guesses from the records `r` of each cell but the person's own, who is one of them.

    `inside` are those of the records `r` that are to be guessed (shape: cells; r, or 0 where excluded).

    A record is guessed only if its level is the one most frequent level of its q: without the record, a
    level as frequent as another is behind that one. Left out, it can be caught up with: each level of one
    record less is then as frequent.
    """
    if not len(f.q):
        return GuessCounts(Grouped.empty(), Grouped.empty())
    r = r * ~no_guess[f.t]
    largest = f.at_cells(f.largest_by_q(r))
    alone = f.at_cells(f.sum_by_q(r == largest) == 1)
    guessable = (inside > 0) & (r > 0) & f.at_cells(f.sum_by_q(r) > 1)
    right = np.flatnonzero(guessable & (r == largest) & alone)
    behind = f.at_cells(f.sum_by_q(r == largest - 1), right)
    matched = np.flatnonzero(guessable)
    return GuessCounts(
        Grouped.sum_by_group(1 + behind, inside[right]),
        Grouped.sum_by_group(f.t[matched], inside[matched]),
    )


def count_right_guesses(counts: GuessCounts, people_t: IntArray, r_t: IntArray, no_guess: Mask) -> int:
    """Return the expected number of right guesses by the better of both ways, in units of 1 / `SCALE`.

    `people_t` are the GT records that are guessed, by level (shape: targets), `r_t` all the records to guess
    from. Where none of them has a level that may be guessed, nobody is guessed.
    """
    return max(
        _count_right(counts.named) + count_right_by_mode(_unmatched(counts, people_t), r_t, no_guess),
        count_right_by_mode(people_t, r_t, no_guess),
    )


def count_right_guesses_without_self(
    counts: GuessCounts, people_t: IntArray, r_t: IntArray, no_guess: Mask
) -> int:
    """Return the same where the persons are among the records to guess from, and left out of them."""
    by_overall_mode = count_right_by_mode_without_self
    return max(
        _count_right(counts.named) + by_overall_mode(_unmatched(counts, people_t), r_t, no_guess),
        by_overall_mode(people_t, r_t, no_guess),
    )


def error_of_guesses(right: float, right_others: float, n: int, by_mode: float = 0.0) -> float:
    """Return the standard error of a difference of two shares of right guesses, as a share of 1.

    A record is guessed rightly from SD and wrongly from the others, or the other way round, with the variance
    g (1 - g') + g' (1 - g) of independent guesses. n records let at most n groups of people be guessed anew:
    so the variance is divided by n, be there more GT records or not, and the error is rather too large.
    `by_mode`: how much more people are guessed rightly by the most frequent level of all SD than of all
    others, of those of whom the others' keys tell nothing. They are guessed alike: that counts as one guess.

    Source: this project's own; McNemar 1947 for the variance of two shares of the same records.
    """
    variance = (right * (1 - right_others) + right_others * (1 - right)) / max(n, 1)
    return math.sqrt(variance + by_mode**2)


def count_right_by_mode(people_t: IntArray, r_t: IntArray, no_guess: Mask) -> int:
    """Return right guesses of the most frequent level of all for people who are not among r_t."""
    overall = np.where(no_guess, 0, r_t)
    modes = np.flatnonzero((overall == overall.max(initial=0)) & (overall > 0))
    return int(people_t[modes].sum()) * SCALE // len(modes) if len(modes) else 0


def count_right_by_mode_without_self(people_t: IntArray, r_t: IntArray, no_guess: Mask) -> int:
    """Return the same for people that are among r_t, each left out when they are guessed.

    Only the one most frequent level can be named rightly: without the person a level as frequent as another
    is behind that one.
    """
    overall = np.where(no_guess, 0, r_t)
    largest = int(overall.max(initial=0))
    modes = np.flatnonzero(overall == largest)
    if largest <= 1 or len(modes) > 1:
        return 0
    levels = 1 + int(((overall == largest - 1) & (overall > 0)).sum())
    return int(people_t[modes[0]]) * SCALE // levels


def guessed_beyond_error(
    right: tuple[int, int], by_mode: tuple[int, int], people: int, with_others: float, whole: int, n: int
) -> float:
    """Return the standard error of guessed_beyond, in percent of `whole` records: see `error_of_guesses`.

    Args:
        right: Right guesses from SD and from the others by the better strategy, in units of 1 / `SCALE`.
        by_mode: The same for always guessing the most frequent level.
        people: GT records whose target is guessed.
        with_others: GT records among them whose q another GT record has.
        whole: Records that the percentage refers to.
        n: Number of independent guesses.
    """
    shares = [percent(guesses, whole * SCALE) / 100 for guesses in (*right, *by_mode)]
    alone = max(0.0, 1 - with_others / max(people, 1))
    return 100 * max(error_of_guesses(shares[0], shares[1], n, alone * (shares[2] - shares[3])), 1 / whole)


@dataclass(frozen=True)
class Guessing:
    """Guesses of some people, at n records, from SD and from the other GT records.

    By level: all GT and SD records, `d_t` and `s_t`, and who is guessed, `people_t` (shape: targets).
    """

    sizes: Sizes
    d_t: IntArray
    s_t: IntArray
    people_t: IntArray
    no_guess: Mask

    def compare_guesses(
        self,
        by_SD: GuessCounts | DrawnGuessCounts,
        by_others: GuessCounts | DrawnGuessCounts,
        with_others: float,
        whole: int,
        n: int,
    ) -> tuple[int, int, float]:
        """Return right guesses from SD and from the others, in units of 1 / `SCALE`.

        And the standard error of their difference: see `guessed_beyond_error`.
        """
        right = (
            count_right_guesses_of_draw(by_SD, self.people_t, self._of_synthetic)
            if isinstance(by_SD, DrawnGuessCounts)
            else count_right_guesses(by_SD, self.people_t, self.s_t, self.no_guess),
            count_right_guesses_of_draw(by_others, self.people_t, self._of_others)
            if isinstance(by_others, DrawnGuessCounts)
            else count_right_guesses_without_self(by_others, self.people_t, self.d_t, self.no_guess),
        )
        people = int(self.people_t.sum())
        return *right, guessed_beyond_error(right, self._by_mode, people, with_others, whole, n)

    @cached_property
    def _of_synthetic(self) -> IntArray:
        """The chance of each level to be named by a draw of SD, if there is one."""
        draw = draw_of_synthetic(self.sizes)
        assert draw is not None
        return overall_chances(self.s_t, self.no_guess, draw)

    @cached_property
    def _of_others(self) -> IntArray:
        """The same of the others."""
        draw = draw_of_others(self.sizes)
        assert draw is not None
        return overall_chances(self.d_t, self.no_guess, draw)

    @cached_property
    def _by_mode(self) -> tuple[int, int]:
        """Right guesses by the most frequent level of SD, and of the others, in units of 1 / `SCALE`."""
        people_t, no_guess = self.people_t, self.no_guess
        return (
            count_right_by_mode_of_draw(people_t, self._of_synthetic)
            if self.sizes.synthetic_is_drawn
            else count_right_by_mode(people_t, self.s_t, no_guess),
            count_right_by_mode_of_draw(people_t, self._of_others)
            if self.sizes.others_are_drawn
            else count_right_by_mode_without_self(people_t, self.d_t, no_guess),
        )


def _unmatched(counts: GuessCounts, people_t: IntArray) -> IntArray:
    """Return the people, by level, in whose q there is no record to guess from."""
    unmatched = people_t.astype(np.int64)
    unmatched[counts.matched.groups] -= counts.matched.sums
    return unmatched


def _count_right(named: Grouped) -> int:
    return sum_quotients(named.sums, named.groups)


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
    """Count as `guess_counts`, from tables (targets, q)."""
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
    """Count as `guess_counts_without_self`, from a table (targets, q) of all guessed records."""
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
    counts: IntArray = np.add.reduce(levels.view(np.uint8), axis=0, dtype=np.min_scalar_type(len(levels)))
    return counts


def _sum_of_some(r: IntArray, chosen: Mask) -> IntArray:
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
    present = np.flatnonzero(sums)
    return Grouped(np.flatnonzero(~no_guess)[present], sums[present])
