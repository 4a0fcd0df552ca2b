"""Counts for the baselines: integers of one target that add up over keys, whoever counts them.

`baselines` has the formulas, and says why these.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from disclosure_pipeline.measures.drawn_guesses import (
    DrawnGuessCounts,
    draw_of_others,
    draw_of_synthetic,
    drawn_guess_counts,
)
from disclosure_pipeline.measures.exact import Floats, Grouped, IntArray, Mask
from disclosure_pipeline.measures.frequency import FrequencyTable, first_of_run
from disclosure_pipeline.measures.guesses import GuessCounts, guess_counts, guess_counts_without_self
from disclosure_pipeline.measures.samples import ONE_CHANCE, Sizes, in_integers

_HALF = 15  # bits of the halves of a fraction in units of 1 / `ONE_CHANCE`


def sum_of_squares(x: IntArray, keys: IntArray | int = 1) -> int:
    """Return the sum of x², in units of 1 / `ONE_CHANCE`² as x is in 1 / `ONE_CHANCE`.

    An entry can stand for several `keys`. Up to 10^9 records the sums of the parts of x fit into 64 bits.
    """
    whole, fraction = x >> 2 * _HALF, x & (ONE_CHANCE - 1)
    parts = [whole, fraction >> _HALF, fraction & ((1 << _HALF) - 1)]
    return sum(
        (2 - (i == j)) * int((parts[i] * parts[j] * keys).sum()) << _HALF * (4 - i - j)
        for i, j in combinations_with_replacement(range(3), 2)
    )


@dataclass(frozen=True)
class Squares:
    """Squares of what the records of each q add to the `…_beyond` of a figure: see `sum_of_squares`."""

    iS: int
    DiSCO: int
    DCAP: int


@dataclass(frozen=True)
class BaselineCounts:
    """Counts of one target in one synthesis: integers that add up over keys.

    Numbers of GT records that the exclusions leave, by what was counted before the exclusions:
    by_d_q, by_s_q: by the GT records of their q, and by its SD records (of those q that SD has).
    by_other_levels: by d_q - d_tq, up to `Sizes.others_left`: of more than that, one is always drawn.
    by_other_levels_in_SD: by s_q - s_tq of those q that SD has, up to `Sizes.synthetic_left`.
    left_by_d_q: by the GT records of their q that the exclusions leave; None where nothing is excluded.

    squares: of the differences from others.
    guessed: from all of SD. guessed_others: from GT, each record without itself.
    drawn_from_SD, drawn_from_GT: from a draw of SD, of the others; None where nothing is drawn (`Sizes`).
    """

    by_d_q: Grouped
    by_s_q: Grouped
    by_other_levels: Grouped
    by_other_levels_in_SD: Grouped
    left_by_d_q: Grouped | None
    squares: Squares
    guessed: GuessCounts
    guessed_others: GuessCounts
    drawn_from_SD: DrawnGuessCounts | None
    drawn_from_GT: DrawnGuessCounts | None


def baseline_counts(
    f: FrequencyTable,
    sizes: Sizes,
    no_guess: Mask,
    left: IntArray | None = None,
    left_s: IntArray | None = None,
) -> BaselineCounts:
    """Count what the baselines need, from the cells of some or all q.

    `left`, `left_s`: the GT and SD records that the exclusions leave in each cell of `f`; None where nothing
    is excluded. `no_guess` marks the target levels that nobody guesses (shape: targets).
    """
    d = f.d if left is None else left
    of_SD, of_GT = draw_of_synthetic(sizes), draw_of_others(sizes)
    occupied = np.flatnonzero(d)
    in_SD = occupied[f.s_q[occupied] > 0]
    apart, apart_in_SD = f.d_q[occupied] - f.d[occupied], f.s_q[in_SD] - f.s[in_SD]
    near, near_in_SD = apart <= sizes.others_left, apart_in_SD <= sizes.synthetic_left
    return BaselineCounts(
        by_d_q=Grouped.sum_by_group(f.d_q[occupied], d[occupied]),
        by_s_q=Grouped.sum_by_group(f.s_q[in_SD], d[in_SD]),
        by_other_levels=Grouped.sum_by_group(apart[near], d[occupied[near]]),
        by_other_levels_in_SD=Grouped.sum_by_group(apart_in_SD[near_in_SD], d[in_SD[near_in_SD]]),
        left_by_d_q=None if left is None else Grouped.sum_by_group(f.per_key(d)[f.q[occupied]], d[occupied]),
        squares=_square_differences(f, sizes, left, left_s, _added_by_keys(f, d, occupied, sizes)),
        guessed=guess_counts(f, d, f.s, no_guess),
        guessed_others=guess_counts_without_self(f, d, f.d, no_guess),
        drawn_from_SD=drawn_guess_counts(f, d, f.s, no_guess, of_SD) if of_SD else None,
        drawn_from_GT=drawn_guess_counts(f, d, f.d, no_guess, of_GT) if of_GT else None,
    )


def lone_baseline_counts(GT: int, sizes: Sizes) -> BaselineCounts:
    """Count the same for `GT` q that one GT record has, and any number that none has; nothing is excluded."""
    nothing, nobody = Grouped.nothing(), GuessCounts(Grouped.nothing(), Grouped.nothing())
    return BaselineCounts(
        by_d_q=Grouped.sum_by_group(np.array([1]), np.array([GT])),
        by_s_q=nothing,
        by_other_levels=Grouped.sum_by_group(np.array([0]), np.array([GT])),
        by_other_levels_in_SD=nothing,
        left_by_d_q=None,
        squares=Squares(0, 0, 0),
        guessed=nobody,
        guessed_others=nobody,
        drawn_from_SD=DrawnGuessCounts.nothing() if sizes.synthetic_is_drawn else None,
        drawn_from_GT=DrawnGuessCounts.nothing() if sizes.others_are_drawn else None,
    )


def added_by_cells(d_q: IntArray, d: IntArray, s_q: IntArray, s: IntArray, sizes: Sizes) -> IntArray:
    """Return what a GT record of each cell adds to DiSCO at n less DiSCO_others, in 1 / `ONE_CHANCE`."""
    at_n = in_integers(sizes.q0(s_q - s)) - in_integers(sizes.q0(s_q))
    return at_n - in_integers(sizes.p0(d_q - d)) + in_integers(sizes.p0(d_q - 1))


def _added_by_keys(f: FrequencyTable, d: IntArray, occupied: IntArray, sizes: Sizes) -> IntArray:
    """Return what the records of each q add to DiSCO at n less DiSCO_others, in 1 / `ONE_CHANCE`."""
    if not len(occupied):
        return np.empty(0, dtype=np.int64)
    added = added_by_cells(f.d_q[occupied], f.d[occupied], f.s_q[occupied], f.s[occupied], sizes)
    new_q = np.flatnonzero(first_of_run(f.q[occupied]))
    by_q: IntArray = np.add.reduceat(d[occupied] * added, new_q)
    return by_q


def _square_differences(
    f: FrequencyTable, sizes: Sizes, left: IntArray | None, left_s: IntArray | None, DiSCO: IntArray
) -> Squares:
    """Return the squares; `DiSCO` is what each q adds to that."""
    d_q, s_q = f.d_q[f.first], f.s_q[f.first]
    people, synthetic, dd, ds = d_q, s_q, f.dd, f.ds
    if left is not None:
        people, dd = f.sum_by_q(left), f.sum_by_q(left * left)
        ds = f.sum_by_q(left * (f.s if left_s is None else left_s))
    if left_s is not None:
        synthetic = f.sum_by_q(left_s)
    return Squares(
        iS=sum_of_squares(people * found_beyond(d_q - 1, s_q, sizes)),
        DiSCO=sum_of_squares(DiSCO),
        DCAP=sum_of_squares(attributed_beyond(dd - people, people - 1, ds, synthetic, sizes)),
    )


def found_beyond(others: IntArray, s_q: IntArray, sizes: Sizes) -> IntArray:
    """Return the chance that a person's q is in SD less that it is in the others' draw.

    `others`: other GT records of the q (negative where nobody has it); in units of 1 / `ONE_CHANCE`.
    """
    return in_integers(sizes.p0(np.maximum(others, 0))) - in_integers(sizes.q0(s_q))


def attributed_beyond(
    from_others: IntArray, others: IntArray, from_SD: IntArray, s_q: IntArray, sizes: Sizes
) -> IntArray:
    """Return what the records of each q add to DCAP at n less DCAP_others, in 1 / `ONE_CHANCE`.

    `from_SD`: pairs of a GT and an SD record with one level, of `s_q` SD records; `from_others`: pairs of GT
    records, of so many `others` (negative where there is nobody).
    """

    def guess(pairs: IntArray, records: IntArray, none_drawn: Floats) -> IntArray:
        return in_integers(pairs / np.maximum(records, 1) * (1 - none_drawn))

    others = np.maximum(others, 0)
    return guess(from_SD, s_q, sizes.q0(s_q)) - guess(from_others, others, sizes.p0(others))
