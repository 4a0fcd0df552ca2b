"""What the baselines are made of: integers of one target that add up over keys, whoever counts them.

`baselines` has the formulas, and says why these.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.measures.draws import Hashes, draw
from disclosure_pipeline.measures.exact import IntArray, Mask
from disclosure_pipeline.measures.frequency import FrequencyTable, first_of_run
from disclosure_pipeline.measures.grouped import Grouped
from disclosure_pipeline.measures.guesses import GuessCounts, guess_counts, guess_counts_without_self
from disclosure_pipeline.measures.samples import ONE_CHANCE, Sizes, in_integers

FRACTION_BITS = 16
"""What the records of a q add to a figure is counted in units of 2**-16 records."""


@dataclass(frozen=True)
class Squares:
    """Sum of x² over q, of x = whole + part / 2**16: the sums of whole², whole·part and part²."""

    whole: int
    mixed: int
    part: int

    @classmethod
    def of(cls, x: IntArray, keys: IntArray | int = 1) -> Squares:
        """Of x in units of 2**-16; an entry can stand for several `keys`."""
        whole = x >> FRACTION_BITS
        part = x - (whole << FRACTION_BITS)
        return cls(
            int((whole * whole * keys).sum()),
            int((whole * part * keys).sum()),
            int((part * part * keys).sum()),
        )

    def root(self) -> float:
        """The root of the sum of squares."""
        scaled = (self.whole << 2 * FRACTION_BITS) + (self.mixed << FRACTION_BITS + 1) + self.part
        return math.sqrt(scaled) / 2**FRACTION_BITS


@dataclass(frozen=True)
class DrawnFromSD:
    """Guessing from a draw of n SD records, whose records by level are `SD_t`: there are more than in GT."""

    guessed: GuessCounts
    SD_t: Grouped


@dataclass(frozen=True)
class DrawnFromGT:
    """Guessing from a draw of n other GT records, by level `GT_t`: there are more than in SD.

    `outside` are the GT records that are not drawn; `inside` those that are, each guessed without itself.
    Both by level (`outside_t`, `inside_t`) as the exclusions leave them.
    """

    outside: GuessCounts
    inside: GuessCounts
    outside_t: Grouped
    inside_t: Grouped
    GT_t: Grouped


@dataclass(frozen=True)
class BaselineCounts:
    """Of one target in one synthesis: integers that add up over keys.

    Numbers of GT records that the exclusions leave, by what was counted before the exclusions:
    by_d_q, by_s_q: by the GT records of their q, and by its SD records (of those q that SD has).
    by_other_levels: by d_q - d_tq, up to `Sizes.others_left`: of more than that, one is always drawn.
    by_other_levels_in_SD: by s_q - s_tq of those q that SD has, up to `Sizes.synthetic_left`.
    left_by_d_q: by the GT records of their q that the exclusions leave; None where nothing is excluded.

    DiSCO_squares: of what the records of each q add to DiSCO_beyond, in records.
    guessed: from all of SD. guessed_others: from GT, each record without itself.
    drawn_from_SD, drawn_from_GT: None where nothing is drawn (`Sizes` says where).
    """

    by_d_q: Grouped
    by_s_q: Grouped
    by_other_levels: Grouped
    by_other_levels_in_SD: Grouped
    left_by_d_q: Grouped | None
    DiSCO_squares: Squares
    guessed: GuessCounts
    guessed_others: GuessCounts
    drawn_from_SD: DrawnFromSD | None
    drawn_from_GT: DrawnFromGT | None


def baseline_counts(
    f: FrequencyTable, no_guess: Mask, hashes: Hashes | None = None, left: IntArray | None = None
) -> BaselineCounts:
    """From the cells of some or all q.

    Args:
        f: The cells before any exclusion; N_d and N_s are those of all records.
        no_guess: Marks the target levels that nobody guesses: missing and undeclared ones (shape: targets).
        hashes: Of the key combinations (`draws.hash_keys`); None only where nothing is drawn.
        left: The GT records that the exclusions leave in each cell; None where nothing is excluded.
    """
    sizes = Sizes(f.N_d, f.N_s)
    d = f.d if left is None else left
    occupied = np.flatnonzero(d)
    in_SD = occupied[f.s_q[occupied] > 0]
    apart, apart_in_SD = f.d_q[occupied] - f.d[occupied], f.s_q[in_SD] - f.s[in_SD]
    near, near_in_SD = apart <= sizes.others_left, apart_in_SD <= sizes.synthetic_left
    return BaselineCounts(
        by_d_q=Grouped.of(f.d_q[occupied], d[occupied]),
        by_s_q=Grouped.of(f.s_q[in_SD], d[in_SD]),
        by_other_levels=Grouped.of(apart[near], d[occupied[near]]),
        by_other_levels_in_SD=Grouped.of(apart_in_SD[near_in_SD], d[in_SD[near_in_SD]]),
        left_by_d_q=None if left is None else Grouped.of(f.per_key(d)[f.q[occupied]], d[occupied]),
        DiSCO_squares=Squares.of(_added_by_keys(f, d, occupied, sizes)),
        guessed=guess_counts(f, d, f.s, no_guess),
        guessed_others=guess_counts_without_self(f, d, f.d, no_guess),
        drawn_from_SD=_from_synthetic(f, d, no_guess, hashes) if sizes.synthetic_is_drawn else None,
        drawn_from_GT=_from_ground_truth(f, d, no_guess, hashes) if sizes.others_are_drawn else None,
    )


def _added_by_keys(f: FrequencyTable, d: IntArray, occupied: IntArray, sizes: Sizes) -> IntArray:
    """What the records of each q add to DiSCO at n less DiSCO_others, in units of 2**-16 records."""
    if not len(occupied):
        return np.empty(0, dtype=np.int64)
    d_q, d_tq, s_q, s_tq = f.d_q[occupied], f.d[occupied], f.s_q[occupied], f.s[occupied]
    at_n = in_integers(sizes.q0(s_q - s_tq)) - in_integers(sizes.q0(s_q))
    by_others = in_integers(sizes.p0(d_q - d_tq)) - in_integers(sizes.p0(d_q - 1))
    by_q = np.add.reduceat(d[occupied] * (at_n - by_others), np.flatnonzero(first_of_run(f.q[occupied])))
    unit = ONE_CHANCE >> FRACTION_BITS
    return (by_q + unit // 2) // unit


def _from_synthetic(f: FrequencyTable, d: IntArray, no_guess: Mask, hashes: Hashes | None) -> DrawnFromSD:
    assert hashes is not None
    sizes = Sizes(f.N_d, f.N_s)
    r = draw(f, f.s, hashes, sizes.n, f.N_s)
    return DrawnFromSD(guess_counts(f, d, r, no_guess), Grouped.of(f.t, r))


def _from_ground_truth(f: FrequencyTable, d: IntArray, no_guess: Mask, hashes: Hashes | None) -> DrawnFromGT:
    assert hashes is not None
    sizes = Sizes(f.N_d, f.N_s)
    r = draw(f, f.d, hashes, sizes.n, f.N_d - 1)
    inside, outside = np.where(d > 0, r, 0), np.where(d > 0, d - r, 0)
    return DrawnFromGT(
        outside=guess_counts(f, outside, r, no_guess),
        inside=guess_counts_without_self(f, inside, r, no_guess),
        outside_t=Grouped.of(f.t, outside),
        inside_t=Grouped.of(f.t, inside),
        GT_t=Grouped.of(f.t, r),
    )
