"""What one of many key sets discloses beyond other people's records, at the cost of a few sums.

The formulas are those of `baselines`, `guesses` and `hits`; here they are taken from whole tables of counts
with a row for each target level and a column for each key combination, where these are small enough: rows of
a table are added up many times faster than sparse cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.measures.drawn_guesses import (
    Draw,
    DrawnGuessCounts,
    draw_of_others,
    draw_of_synthetic,
    drawn_guess_counts,
    guessed_by_overall_mode_of_draw,
    guessed_from_draw,
    overall_chances,
)
from disclosure_pipeline.measures.exact import ONE, IntArray, Mask, percent
from disclosure_pipeline.measures.frequency import FrequencyTable
from disclosure_pipeline.measures.grouped import Grouped
from disclosure_pipeline.measures.guesses import GuessCounts, guessed, guessed_from_all_others
from disclosure_pipeline.measures.samples import Sizes

Floats = npt.NDArray[np.float64]

_NO_CHANCE = 1e-30
_FEW = 3  # numbers of records of another level that are looked for one by one


@dataclass(frozen=True)
class Chances:
    """P0(m) and Q0(m) of `samples.Sizes` for m = 0, 1, …, up to where they are nothing."""

    p0: Floats
    q0: Floats

    @classmethod
    def of(cls, sizes: Sizes) -> Chances:
        """Of tables of these sizes."""
        p0 = sizes.p0(_numbers(sizes.others_left, sizes.N_d - 1, sizes.n))
        q0 = sizes.q0(_numbers(sizes.synthetic_left, sizes.N_s, sizes.n))
        return cls(p0[p0 > _NO_CHANCE], q0[q0 > _NO_CHANCE])


def _numbers(left: int, of: int, n: int) -> IntArray:
    """0, 1, … up to where the chance, at most (1 - n / of) to the power of the number, is nothing."""
    most = math.ceil(-math.log(_NO_CHANCE) * of / n) if n else left
    return np.arange(min(left, most) + 1)


@dataclass(frozen=True)
class KeySetTables:
    """The counts of one key set and target: `d` of GT, `s` of SD by cell; `d_q`, `s_q` by key combination.

    `d` and `s` are of shape (targets, q), or of the cells that occur; `d_of_q` and `s_of_q` are d_q and s_q
    in a shape that goes with them.
    """

    d: IntArray
    s: IntArray
    d_of_q: IntArray
    s_of_q: IntArray
    d_q: IntArray
    s_q: IntArray


@dataclass(frozen=True)
class Disclosed:
    """GT records: DiSCO; DiSCO at n; DiSCO_others. smallest_support: SD records, 0 where DiSCO is 0."""

    DiSCO: int
    at_n: float
    by_others: float
    smallest_support: int


def disclosed(tables: KeySetTables, chances: Chances) -> Disclosed:
    """See `baselines`. The support of a disclosed record is the number of SD records that agree on it."""
    other_levels = tables.s_of_q - tables.s
    certain = (other_levels == 0) & (tables.s > 0) & (tables.d > 0)
    DiSCO = int(tables.d[certain].sum())
    support = tables.s[certain]
    return Disclosed(
        DiSCO=DiSCO,
        at_n=float(DiSCO)
        if len(chances.q0) == 1
        else _weighted(tables.d, other_levels, chances.q0) - _weighted(tables.d_q, tables.s_q, chances.q0),
        by_others=_weighted(tables.d, tables.d_of_q - tables.d, chances.p0)
        - _weighted(tables.d_q, np.maximum(tables.d_q - 1, 0), chances.p0),
        smallest_support=int(support.min()) if len(support) else 0,
    )


def _weighted(records: IntArray, other_records: IntArray, chances: Floats) -> float:
    """The sum of the records, each times the chance of its number of `other_records`."""
    if len(chances) <= _FEW:
        sums = [float(np.multiply(records, other_records == m).sum()) for m in range(len(chances))]
        return float(np.dot(sums, chances))
    possible = other_records < len(chances)
    sums_by_number = np.bincount(other_records[possible], weights=records[possible], minlength=len(chances))
    return float(sums_by_number @ chances)


def guess_counts_of_table(d: IntArray, r: IntArray, no_guess: Mask) -> GuessCounts:
    """As `guesses.guess_counts`, of tables (targets, q)."""
    may_be = _levels(no_guess)
    d, r = d[may_be], r[may_be]
    largest = r.max(axis=0, initial=0)
    named = (r == largest) & (largest > 0)
    return GuessCounts(
        _grouped(named.sum(axis=0), np.multiply(d, named).sum(axis=0)),
        _by_level(d[:, largest > 0].sum(axis=1), no_guess),
    )


def guess_counts_of_table_without_self(r: IntArray, no_guess: Mask) -> GuessCounts:
    """As `guesses.guess_counts_without_self`, of a table (targets, q) whose records are all guessed."""
    r = r[_levels(no_guess)]
    largest, others = r.max(axis=0, initial=0), r.sum(axis=0) - 1
    alone = (r == largest).sum(axis=0) == 1
    behind = (r == largest - 1).sum(axis=0)
    right = alone & (others > 0)
    return GuessCounts(
        _grouped(1 + behind[right], largest[right]),
        _by_level(r[:, others > 0].sum(axis=1), no_guess),
    )


@dataclass(frozen=True)
class Guessing:
    """What guesses of one target from one SD need beside the counts of a key set.

    `d_t`, `s_t`: all GT and SD records by level; `no_guess` marks levels (shape of each: targets).
    """

    sizes: Sizes
    d_t: IntArray
    s_t: IntArray
    no_guess: Mask

    @cached_property
    def drawn_synthetic(self) -> Draw | None:
        """See `drawn_guesses`."""
        return draw_of_synthetic(self.sizes)

    @cached_property
    def draw_of_others(self) -> Draw | None:
        """See `drawn_guesses`."""
        return draw_of_others(self.sizes)

    def drawn_counts(self, f: FrequencyTable) -> tuple[DrawnGuessCounts | None, DrawnGuessCounts | None]:
        """From SD, and from the others, where these are drawn."""
        of_SD, of_others = self.drawn_synthetic, self.draw_of_others
        return (
            drawn_guess_counts(f, f.d, f.s, self.no_guess, of_SD) if of_SD else None,
            drawn_guess_counts(f, f.d, f.d, self.no_guess, of_others) if of_others else None,
        )

    def guessed_beyond(
        self, by_SD: GuessCounts | DrawnGuessCounts, by_others: GuessCounts | DrawnGuessCounts
    ) -> float:
        """Percentage points."""
        difference = self._guessed_by_table(by_SD) - self._guessed_by_others(by_others)
        return percent(difference, self.sizes.N_d * ONE)

    def _guessed_by_table(self, counts: GuessCounts | DrawnGuessCounts) -> int:
        if isinstance(counts, DrawnGuessCounts):
            return guessed_from_draw(counts, self.d_t, self._overall_of_synthetic)
        return guessed(counts, self.d_t, self.s_t, self.no_guess)

    def _guessed_by_others(self, counts: GuessCounts | DrawnGuessCounts) -> int:
        if isinstance(counts, DrawnGuessCounts):
            by_overall_mode = guessed_by_overall_mode_of_draw(self.d_t, self._overall_of_others)
            return max(guessed_from_draw(counts, self.d_t, self._overall_of_others), by_overall_mode)
        return guessed_from_all_others(counts, self.d_t, self.d_t, self.no_guess)

    @cached_property
    def _overall_of_synthetic(self) -> IntArray:
        assert self.drawn_synthetic is not None
        return overall_chances(self.s_t, self.no_guess, self.drawn_synthetic)

    @cached_property
    def _overall_of_others(self) -> IntArray:
        assert self.draw_of_others is not None
        return overall_chances(self.d_t, self.no_guess, self.draw_of_others)


def _levels(no_guess: Mask) -> slice | IntArray:
    """The levels that may be guessed, as a slice where they are the first ones: that copies nothing."""
    may_be = np.flatnonzero(~no_guess)
    return slice(0, len(may_be)) if len(may_be) and may_be[-1] == len(may_be) - 1 else may_be


def _grouped(groups: IntArray, sums: IntArray) -> Grouped:
    """By number of levels, of which there are few."""
    by_number = np.bincount(groups, weights=sums).astype(np.int64)
    present = np.flatnonzero(by_number)
    return Grouped(present, by_number[present])


def _by_level(sums: IntArray, no_guess: Mask) -> Grouped:
    """The sums of the levels that may be guessed."""
    present = np.flatnonzero(sums)
    return Grouped(np.flatnonzero(~no_guess)[present], sums[present])
