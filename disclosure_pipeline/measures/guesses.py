"""Guessing the most frequent level: of a record's key combination, else of the whole table.

This project's own measure `guessed`, and what the same guess takes from other people's records. There is no
rule of order between equally frequent levels: of k of them each counts 1/k, so that a renamed level changes
nothing. Missing and undeclared target levels are no guess.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.measures.exact import ONE, IntArray, Mask, sum_of_quotients
from disclosure_pipeline.measures.frequency import FrequencyTable
from disclosure_pipeline.measures.grouped import Grouped


@dataclass(frozen=True)
class GuessCounts:
    """GT records, by what a table to guess from says of their q; integers that add up over keys.

    named: those whose level is among the most frequent ones of their q there, by the number of these levels.
    unmatched: those in whose q there is no record to guess from, by their level t; without those whose own
        level is no guess.
    """

    named: Grouped
    unmatched: Grouped


def guess_counts(f: FrequencyTable, d: IntArray, r: IntArray, no_guess: Mask) -> GuessCounts:
    """Guessing from the records `r` of each cell (shape: cells), none of which is the person's own.

    `d` are the GT records to be guessed in each cell, `no_guess` marks target levels (shape: targets).
    """
    if not len(f.q):
        return GuessCounts(Grouped.nothing(), Grouped.nothing())
    may_be = ~no_guess[f.t]
    r = r * may_be
    largest = np.maximum.reduceat(r, f.first)
    named = (r == np.repeat(largest, f.cells_of_q)) & (r > 0)
    levels = np.repeat(np.add.reduceat(named.astype(np.int64), f.first), f.cells_of_q)
    right = np.flatnonzero(named & (d > 0))
    unmatched = np.flatnonzero((d > 0) & may_be & np.repeat(largest == 0, f.cells_of_q))
    return GuessCounts(
        Grouped.of(levels[right], d[right]),
        Grouped.of(f.t[unmatched], d[unmatched]),
    )


def guess_counts_without_self(
    f: FrequencyTable, inside: IntArray, r: IntArray, no_guess: Mask
) -> GuessCounts:
    """Guessing from the records `r` of each cell but the person's own, who is one of them.

    `inside` are those of the records `r` that are to be guessed (shape: cells; r, or 0 where excluded).

    A record is guessed only if its level is the one most frequent level of its q: without the record, a
    level as frequent as another is behind that one. Left out, it can be caught up with: each level of one
    record less is then as frequent.
    """
    if not len(f.q):
        return GuessCounts(Grouped.nothing(), Grouped.nothing())
    r = r * ~no_guess[f.t]
    largest = np.repeat(np.maximum.reduceat(r, f.first), f.cells_of_q)
    behind = np.repeat(np.add.reduceat((r == largest - 1).astype(np.int64), f.first), f.cells_of_q)
    alone = np.repeat(np.add.reduceat((r == largest).astype(np.int64), f.first), f.cells_of_q) == 1
    others = np.repeat(np.add.reduceat(r, f.first), f.cells_of_q) - 1
    guessable = (inside > 0) & (r > 0)
    right = np.flatnonzero(guessable & (r == largest) & alone & (others > 0))
    unmatched = np.flatnonzero(guessable & (others == 0))
    return GuessCounts(
        Grouped.of(1 + behind[right], inside[right]),
        Grouped.of(f.t[unmatched], inside[unmatched]),
    )


def guessed(counts: GuessCounts, r_t: IntArray, no_guess: Mask) -> int:
    """Expected number of right guesses, in units of 1 / `ONE`.

    `r_t` are all the records to guess from by level (shape: targets). Where none of them has a level that
    may be guessed, nobody is guessed.
    """
    overall = np.where(no_guess, 0, r_t)
    modes = np.flatnonzero((overall == overall.max(initial=0)) & (overall > 0))
    by_mode = int(counts.unmatched.sums[np.isin(counts.unmatched.groups, modes)].sum())
    return _count_right(counts.named) + (by_mode * ONE // len(modes) if len(modes) else 0)


def guessed_without_self(counts: GuessCounts, r_t: IntArray, no_guess: Mask) -> int:
    """As `guessed`, where the persons are among the records to guess from, and left out of them."""
    chances = _overall_mode_without_self(r_t, no_guess)
    return _count_right(counts.named) + _named_overall(counts.unmatched, *chances)


def guessed_by_overall_mode(records: Grouped, r_t: IntArray, no_guess: Mask) -> int:
    """Right guesses of the most frequent level of all for `records` (by t), who are not among r_t."""
    return guessed(GuessCounts(Grouped.nothing(), records), r_t, no_guess)


def guessed_by_overall_mode_without_self(records: Grouped, r_t: IntArray, no_guess: Mask) -> int:
    """The same for `records` (by t) that are among r_t, each left out when it is guessed."""
    return _named_overall(records, *_overall_mode_without_self(r_t, no_guess))


def _count_right(named: Grouped) -> int:
    return sum_of_quotients(named.sums, named.groups)


def _overall_mode_without_self(r_t: IntArray, no_guess: Mask) -> tuple[int, int]:
    """The level that its own records are guessed by, and of how many equally frequent ones; -1 for none."""
    overall = np.where(no_guess, 0, r_t)
    largest = int(overall.max(initial=0))
    modes = np.flatnonzero(overall == largest)
    if largest <= 1 or len(modes) > 1:
        return -1, 1
    return int(modes[0]), 1 + int(((overall == largest - 1) & (overall > 0)).sum())


def _named_overall(records: Grouped, level: int, levels: int) -> int:
    return int(records.sums[records.groups == level].sum()) * ONE // levels
