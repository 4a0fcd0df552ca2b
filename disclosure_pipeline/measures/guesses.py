"""The measure `guessed`: guessing the most frequent target level (the mode).

This project's own. The intruder follows the better of two strategies: guess the mode of the person's q in SD
(if SD lacks the q, the mode of all of SD), or always guess the mode of all of SD. `guessed_others` is the
same with other people's records. If k levels are equally frequent, a right one counts 1/k, so that renaming
a level changes nothing. A missing target value is never guessed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.measures.drawn_guesses import (
    DrawnGuessCounts,
    GuessChances,
    count_right_by_key_of_draw,
    count_right_by_mode_of_draw,
)
from disclosure_pipeline.measures.exact import SCALE, Grouped, IntArray, Mask, sum_quotients
from disclosure_pipeline.measures.frequency import FrequencyTable
from disclosure_pipeline.measures.samples import CHANCE_SCALE, sum_of_squares


@dataclass(frozen=True)
class CellGuesses:
    """The guess about a person of each cell from other people's records with the cell's q (shapes: cells).

    ways: if the cell's level is a mode, the number of modes, of which each is guessed equally often; else 0.
    matched: whether there is a record to guess from.
    """

    ways: IntArray
    matched: Mask

    @classmethod
    def from_synthetic(cls, f: FrequencyTable, r: IntArray, no_guess: Mask) -> CellGuesses:
        """Guess from the records `r`, which are nobody's of those who are guessed."""
        if not len(f.q):
            return cls(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool))
        r = r * ~no_guess[f.t]
        largest = f.largest_by_q(r)
        named = (r == f.at_cells(largest)) & (r > 0)
        right, ways = np.flatnonzero(named), np.zeros(len(r), dtype=np.int64)
        ways[right] = f.at_cells(f.sum_by_q(named), right)
        return cls(ways, f.at_cells(largest > 0))

    @classmethod
    def without_self(cls, f: FrequencyTable, r: IntArray, no_guess: Mask) -> CellGuesses:
        """Guess about a record of `r` from all others.

        A record's level is named only if it is the only mode of its q, since leaving the record out reduces
        its level by one. Every level with one record less than the mode then ties with it.
        """
        if not len(f.q):
            return cls(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool))
        r = r * ~no_guess[f.t]
        largest = f.at_cells(f.largest_by_q(r))
        alone = f.at_cells(f.sum_by_q(r == largest) == 1)
        matched = (r > 0) & f.at_cells(f.sum_by_q(r) > 1)
        right, ways = np.flatnonzero(matched & (r == largest) & alone), np.zeros(len(r), dtype=np.int64)
        ways[right] = 1 + f.at_cells(f.sum_by_q(r == largest - 1), right)
        return cls(ways, matched)

    def count(self, f: FrequencyTable, d: IntArray) -> GuessCounts:
        """Count guesses about the GT records `d` of each cell."""
        right, matched = np.flatnonzero((self.ways > 0) & (d > 0)), np.flatnonzero(self.matched & (d > 0))
        records = d * f.n
        return GuessCounts(
            Grouped.sum_by_group(self.ways[right], records[right]),
            Grouped.sum_by_group(f.t[matched], records[matched]),
        )

    def chances(self) -> GuessChances:
        """Return the chances of a right guess."""
        ways, named = np.flatnonzero(self.ways), np.zeros(len(self.ways), dtype=np.int64)
        named[ways] = CHANCE_SCALE // self.ways[ways]
        return GuessChances(named, self.matched * CHANCE_SCALE)


@dataclass(frozen=True)
class GuessCounts:
    """GT records by the outcome of a guess from a table; integers that add up over keys.

    named: records whose level is a mode of their q in the table, by the number of these modes.
    matched: records whose q the table has, by their level t. For all others the mode of the whole table is
        guessed.
    """

    named: Grouped
    matched: Grouped


@dataclass(frozen=True)
class ModeOfAll:
    """The guess of a whole table: a person with one of the `levels` is guessed with chance 1 / `ways`."""

    levels: IntArray
    ways: int

    @classmethod
    def from_synthetic(cls, r_t: IntArray, no_guess: Mask) -> ModeOfAll:
        """Guess from the records `r_t` by level (shape: targets), which are nobody's who is guessed."""
        overall = np.where(no_guess, 0, r_t)
        modes = np.flatnonzero((overall == overall.max(initial=0)) & (overall > 0))
        return cls(modes, len(modes))

    @classmethod
    def without_self(cls, r_t: IntArray, no_guess: Mask) -> ModeOfAll:
        """Guess about a record of `r_t` from all others: see `CellGuesses.without_self`."""
        overall = np.where(no_guess, 0, r_t)
        largest = int(overall.max(initial=0))
        modes = np.flatnonzero(overall == largest)
        if largest <= 1 or len(modes) > 1:
            return cls(modes[:0], 0)
        return cls(modes, 1 + int(((overall == largest - 1) & (overall > 0)).sum()))

    def count_right(self, people_t: IntArray) -> int:
        """Return right guesses about people by level, in units of 1 / `SCALE`."""
        return int(people_t[self.levels].sum()) * SCALE // self.ways if self.ways else 0

    def chances(self, targets: int) -> IntArray:
        """Return the chance that each level is guessed, in units of 1 / `CHANCE_SCALE` (shape: targets)."""
        chances = np.zeros(targets, dtype=np.int64)
        chances[self.levels] = CHANCE_SCALE // max(self.ways, 1)
        return chances


@dataclass(frozen=True)
class Ways:
    """Right guesses about people from one table by the two strategies, in units of 1 / `SCALE`.

    matched: people for whose q there is a record to guess from. overall: the chance that the guess of the
    whole table is right. Both by the people's level, in units of 1 / `CHANCE_SCALE` (shapes: targets).
    """

    by_key: int
    always: int
    matched: IntArray
    overall: IntArray

    @classmethod
    def of_modes(cls, counts: GuessCounts, people_t: IntArray, mode: ModeOfAll) -> Ways:
        """Return those from all records of a table. `people_t`: whose target is guessed, by level."""
        matched = counts.matched.by_position(len(people_t))
        by_key = sum_quotients(counts.named.sums, counts.named.groups) + mode.count_right(people_t - matched)
        always = mode.count_right(people_t)
        return cls(by_key, always, matched * CHANCE_SCALE, mode.chances(len(people_t)))

    @classmethod
    def of_draw(cls, counts: DrawnGuessCounts, people_t: IntArray, overall: IntArray) -> Ways:
        """Return those from a draw; `overall`: the chance that it names each level."""
        by_key = count_right_by_key_of_draw(counts, people_t, overall)
        always = count_right_by_mode_of_draw(people_t, overall)
        return cls(by_key, always, counts.matched.by_position(len(people_t)), overall)

    @property
    def right(self) -> int:
        """Right guesses by the better strategy."""
        return max(self.by_key, self.always)


def error_of_guesses(from_SD: Ways, by_others: Ways, squares: float, people_t: IntArray, whole: int) -> float:
    """Return the standard error of the difference of right guesses, in percent of `whole` records.

    Jackknife over key combinations: leaving one out takes away what its people add (`squares`: see
    `square_guesses`), but no other guess. A side that always guesses the mode has no part in that. The guess
    of a whole table is one for all whom it is made about: what it adds to the difference is added once. At
    least one record.
    """
    by_key = [ways for ways in (from_SD, by_others) if ways.by_key >= ways.always]
    matched = sum((ways.matched for ways in by_key), start=np.zeros_like(people_t))
    guessed = 2 * CHANCE_SCALE * people_t - matched
    differences = from_SD.overall - by_others.overall
    unlike = np.flatnonzero(differences)
    at_once = sum(int(guessed[t]) * int(differences[t]) for t in unlike) / (2 * CHANCE_SCALE**2)
    of_keys = math.sqrt(squares * len(by_key) / 2) / CHANCE_SCALE
    return 100 * max(math.hypot(of_keys, at_once), 1) / whole


def square_guesses(
    f: FrequencyTable, d: IntArray, from_SD: GuessChances, by_others: GuessChances, modes: IntArray
) -> int:
    """Return the squares of what the people `d` of each q add to the difference of right guesses.

    If one side has no record of their q, the mode of all records is guessed: the sum over `modes`, in units
    of 1 / `CHANCE_SCALE`².
    """
    if not len(f.q):
        return 0
    of_q = f.sum_by_q(d * (from_SD.named - by_others.named))
    unmatched = d * (by_others.matched - from_SD.matched)
    cells = np.flatnonzero((unmatched != 0) & np.isin(f.t, modes))
    keys = f.n if isinstance(f.n, int) else f.n[cells]
    named = f.at_cells(of_q, cells)
    by_mode = sum_of_squares(named + unmatched[cells], keys) - sum_of_squares(named, keys)
    return max(len(modes), 1) * sum_of_squares(of_q, f.alike) + by_mode


def count_right_guesses(counts: GuessCounts, people_t: IntArray, r_t: IntArray, no_guess: Mask) -> int:
    """Return the expected number of right guesses by the better strategy, in units of 1 / `SCALE`.

    `people_t` are the GT records that are guessed, `r_t` all records to guess from, by level (shape:
    targets). If none of these has a level that may be guessed, no guess is right.
    """
    return Ways.of_modes(counts, people_t, ModeOfAll.from_synthetic(r_t, no_guess)).right
