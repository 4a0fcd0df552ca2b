"""The measure `guessed`: guessing the most frequent target level (the mode).

This project's own. The intruder follows the better of two strategies: guess the mode of the person's q in SD
(if SD lacks the q, the mode of all of SD), or always guess the mode of all of SD. `guessed_others` is the
same with other people's records. If k levels are equally frequent, a right one counts 1/k, so that renaming
a level changes nothing. A missing target value is never guessed.

Guesses are counted from the cells that occur, or from a dense table of counts (targets, q), which is many
times faster if it is small.
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
    """GT records by the outcome of a guess from a table; integers that add up over keys.

    named: records whose level is a mode of their q in the table, by the number of these modes.
    matched: records whose q the table has, by their level t. For all others the mode of the whole table is
        guessed.
    """

    named: Grouped
    matched: Grouped


def guess_counts(f: FrequencyTable, d: IntArray, r: IntArray, no_guess: Mask) -> GuessCounts:
    """Count guesses about the GT records `d` of each cell from the records `r` of other people."""
    if not len(f.q):
        return GuessCounts(Grouped.empty(), Grouped.empty())
    r = r * ~no_guess[f.t]
    largest, records = f.largest_by_q(r), d * f.n
    named = (r == f.at_cells(largest)) & (r > 0)
    right = np.flatnonzero(named & (d > 0))
    matched = np.flatnonzero((d > 0) & f.at_cells(largest > 0))
    return GuessCounts(
        Grouped.sum_by_group(f.at_cells(f.sum_by_q(named), right), records[right]),
        Grouped.sum_by_group(f.t[matched], records[matched]),
    )


def guess_counts_without_self(
    f: FrequencyTable, inside: IntArray, r: IntArray, no_guess: Mask
) -> GuessCounts:
    """Count guesses about records of `r` (shape: cells) from all other records of `r`.

    `inside` are the records to be guessed: `r`, or 0 in excluded cells.

    A record's level is named only if it is the only mode of its q, since leaving the record out reduces its
    level by one. Every level with one record less than the mode then ties with it.
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
    records = inside * f.n
    return GuessCounts(
        Grouped.sum_by_group(1 + behind, records[right]),
        Grouped.sum_by_group(f.t[matched], records[matched]),
    )


def count_right_guesses(counts: GuessCounts, people_t: IntArray, r_t: IntArray, no_guess: Mask) -> int:
    """Return the expected number of right guesses by the better strategy, in units of 1 / `SCALE`.

    `people_t` are the GT records that are guessed, `r_t` all records to guess from, by level (shape:
    targets). If none of these has a level that may be guessed, no guess is right.
    """
    return max(
        _count_right(counts.named) + count_right_by_mode(_unmatched(counts, people_t), r_t, no_guess),
        count_right_by_mode(people_t, r_t, no_guess),
    )


def count_right_guesses_without_self(
    counts: GuessCounts, people_t: IntArray, r_t: IntArray, no_guess: Mask
) -> int:
    """Return the same if the people are among the records `r_t`: each is left out of their own guess."""
    by_mode = count_right_by_mode_without_self
    return max(
        _count_right(counts.named) + by_mode(_unmatched(counts, people_t), r_t, no_guess),
        by_mode(people_t, r_t, no_guess),
    )


def error_of_guesses(right: float, right_others: float, n: int, by_mode: float = 0.0) -> float:
    """Return the standard error of the difference of two shares of right guesses, as a share of 1.

    With shares g (from SD) and g' (from the others) of independent guesses, a record contributes the variance
    g (1 - g') + g' (1 - g). From n records, at most n groups of people can be guessed differently, so this is
    divided by n even if there are more GT records: the error is rather too large. `by_mode` is the difference
    for people whose q the others lack: the mode is guessed for all of them alike, which counts as one guess.

    Source: this project's own; McNemar 1947 for the variance of two shares of the same records.
    """
    variance = (right * (1 - right_others) + right_others * (1 - right)) / max(n, 1)
    return math.sqrt(variance + by_mode**2)


def count_right_by_mode(people_t: IntArray, r_t: IntArray, no_guess: Mask) -> int:
    """Return right guesses of the mode of `r_t`, in units of 1 / `SCALE`; no person is among `r_t`."""
    overall = np.where(no_guess, 0, r_t)
    modes = np.flatnonzero((overall == overall.max(initial=0)) & (overall > 0))
    return int(people_t[modes].sum()) * SCALE // len(modes) if len(modes) else 0


def count_right_by_mode_without_self(people_t: IntArray, r_t: IntArray, no_guess: Mask) -> int:
    """Return the same for people among `r_t`, each left out of their own guess.

    See `guess_counts_without_self`.
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
    """Guesses about some people at n records, from SD and from the other GT records.

    `d_t`, `s_t` and `people_t` are all GT records, all SD records, and the GT records that are guessed, by
    level (shape: targets).
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
        """Return right guesses from SD and from the others, in units of 1 / `SCALE`, and the standard error.

        The error is that of their difference: see `guessed_beyond_error`, also for the arguments.
        """
        right = (
            count_right_guesses_of_draw(by_SD, self.people_t, self._chances_of_synthetic)
            if isinstance(by_SD, DrawnGuessCounts)
            else count_right_guesses(by_SD, self.people_t, self.s_t, self.no_guess),
            count_right_guesses_of_draw(by_others, self.people_t, self._chances_of_others)
            if isinstance(by_others, DrawnGuessCounts)
            else count_right_guesses_without_self(by_others, self.people_t, self.d_t, self.no_guess),
        )
        people = int(self.people_t.sum())
        return *right, guessed_beyond_error(right, self._by_mode, people, with_others, whole, n)

    @cached_property
    def _chances_of_synthetic(self) -> IntArray:
        """The chance that a draw of SD names each level."""
        draw = draw_of_synthetic(self.sizes)
        assert draw is not None
        return overall_chances(self.s_t, self.no_guess, draw)

    @cached_property
    def _chances_of_others(self) -> IntArray:
        """The chance that a draw of the others names each level."""
        draw = draw_of_others(self.sizes)
        assert draw is not None
        return overall_chances(self.d_t, self.no_guess, draw)

    @cached_property
    def _by_mode(self) -> tuple[int, int]:
        """Right guesses by the most frequent level of SD, and of the others, in units of 1 / `SCALE`."""
        people_t, no_guess = self.people_t, self.no_guess
        return (
            count_right_by_mode_of_draw(people_t, self._chances_of_synthetic)
            if self.sizes.synthetic_is_drawn
            else count_right_by_mode(people_t, self.s_t, no_guess),
            count_right_by_mode_of_draw(people_t, self._chances_of_others)
            if self.sizes.others_are_drawn
            else count_right_by_mode_without_self(people_t, self.d_t, no_guess),
        )


def _unmatched(counts: GuessCounts, people_t: IntArray) -> IntArray:
    """Return the people by level whose q the table lacks."""
    unmatched = people_t.astype(np.int64)
    unmatched[counts.matched.groups] -= counts.matched.sums
    return unmatched


def _count_right(named: Grouped) -> int:
    return sum_quotients(named.sums, named.groups)
