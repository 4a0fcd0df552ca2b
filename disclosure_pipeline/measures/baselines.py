"""Baselines: the figures that a fresh sample of other people from the same population would show.

This project's own. Much of DiSCO is what anybody learns from *other* people's records. GT itself says how
much: for each person, the other N_d - 1 records are a sample of the population without that person. Both
sides are compared at n = min(N_s, N_d - 1) records, in closed form:

| figure | SD at n records, in GT records | the others at n, in GT records |
|---|---|---|
| iS | sum d_q (1 - Q0(s_q)) | sum d_q (1 - P0(d_q - 1)) |
| DiSCO | sum d_tq (Q0(s_q - s_tq) - Q0(s_q)) | sum d_tq (P0(d_q - d_tq) - P0(d_q - 1)) |
| DCAP | sum d_tq s_tq/s_q (1 - Q0(s_q)) | sum d_tq (d_tq - 1)/(d_q - 1) (1 - P0(d_q - 1)), d_q >= 2 |

P0(m) is the chance that a draw of n other GT records contains none of m given ones; Q0(m) is the same for SD
records (`samples.Sizes`). If n >= N_d - 1, P0 is 1 for m = 0 and 0 otherwise; if n = N_s, so is Q0. Where the
sizes differ, the guess of the most frequent level (`guesses`) is averaged over all draws (`drawn_guesses`).

`…_beyond` is the figure at n minus that of the others. The inputs are the integers of `BaselineCounts`, with
d² by d_q and d·s by s_q (`Totals.CAPd`, `Totals.DCAP`). All of them add up over keys.

Exclusions set cells to zero after disclosure is decided (`DisclosureTables`). Likewise, the chances here are
those of the untouched tables, and excluded records are counted on neither side. Only DCAP is computed from
the tables that the exclusions leave, as CAPd is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from disclosure_pipeline.measures.drawn_guesses import (
    DrawnGuessCounts,
    GuessChances,
    draw_of_others,
    draw_of_synthetic,
    overall_chances,
)
from disclosure_pipeline.measures.entry import Default, Figure, place_beyond
from disclosure_pipeline.measures.exact import SCALE, Floats, Grouped, IntArray, Mask, percent
from disclosure_pipeline.measures.frequency import FrequencyTable
from disclosure_pipeline.measures.guesses import (
    CellGuesses,
    GuessCounts,
    ModeOfAll,
    Ways,
    count_right_guesses,
    error_of_guesses,
    square_guesses,
)
from disclosure_pipeline.measures.samples import CHANCE_SCALE, Sizes, sum_of_squares, to_integer_chances
from disclosure_pipeline.measures.totals import Totals
from disclosure_pipeline.measures.words import (
    BEYOND_OTHERS,
    BY_OTHERS,
    BY_SYNTHETIC,
    POINTS,
    WEIGHTED,
    WITH_LEVEL,
    Words,
    described,
    figure,
    neutral,
    points,
    standard_error_of,
    words_of_fields,
)


@dataclass(frozen=True)
class Squares:
    """Sums over q of the square of what its records add to a `…_beyond` figure: see `sum_of_squares`.

    guessed: the same for each mode, added up (`square_guesses`).
    """

    iS: int
    DiSCO: int
    DCAP: int
    guessed: int


@dataclass(frozen=True)
class BaselineCounts:
    """Counts of one target in one synthesis: integers that add up over keys.

    The first four are numbers of GT records that the exclusions leave, by a number before the exclusions:
    by_d_q, by_s_q: by d_q, and by s_q if SD has the q.
    by_other_levels: by d_q - d_tq, up to `Sizes.others_left`; with more, one of them is always drawn.
    by_other_levels_in_SD: by s_q - s_tq if SD has the q, up to `Sizes.synthetic_left`.

    left_by_d_q: the same records by the d_q that the exclusions leave; None if nothing is excluded.
    squares: for the standard errors.
    guessed: guesses from all of SD. guessed_others: guesses from GT, each record without itself.
    drawn_from_SD, drawn_from_GT: from a draw of SD, of the others; None if nothing is drawn (`Sizes`).
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
    both_t: IntArray,
    left: IntArray | None = None,
    left_s: IntArray | None = None,
) -> BaselineCounts:
    """Count from the cells of some or all q.

    `left`, `left_s`: the GT and SD records that the exclusions leave in each cell; None if nothing is
    excluded. `no_guess` marks the target levels that nobody guesses, `both_t` are all records of GT and SD
    by level (shapes: targets).
    """
    d = f.d if left is None else left
    records = d * f.n
    occupied = np.flatnonzero(d)
    in_SD = occupied[f.s_q[occupied] > 0]
    other_levels, other_levels_in_SD = f.d_q[occupied] - f.d[occupied], f.s_q[in_SD] - f.s[in_SD]
    kept, kept_in_SD = other_levels <= sizes.others_left, other_levels_in_SD <= sizes.synthetic_left
    of_SD, of_others = draw_of_synthetic(sizes), draw_of_others(sizes)
    guessed = CellGuesses.from_synthetic(f, f.s, no_guess)
    guessed_others = CellGuesses.without_self(f, f.d, no_guess)
    from_SD = GuessChances.of_draw(f, d, f.s, no_guess, of_SD) if of_SD else guessed.chances()
    by_others = (
        GuessChances.of_draw(f, d, f.d, no_guess, of_others) if of_others else guessed_others.chances()
    )
    modes = ModeOfAll.from_synthetic(both_t, no_guess).levels
    return BaselineCounts(
        by_d_q=Grouped.sum_by_group(f.d_q[occupied], records[occupied]),
        by_s_q=Grouped.sum_by_group(f.s_q[in_SD], records[in_SD]),
        by_other_levels=Grouped.sum_by_group(other_levels[kept], records[occupied[kept]]),
        by_other_levels_in_SD=Grouped.sum_by_group(
            other_levels_in_SD[kept_in_SD], records[in_SD[kept_in_SD]]
        ),
        left_by_d_q=None
        if left is None
        else Grouped.sum_by_group(f.at_cells(f.sum_by_q(d), occupied), records[occupied]),
        squares=replace(
            _square_differences(f, sizes, left, left_s, _disclosed_beyond_by_key(f, d, occupied, sizes)),
            guessed=square_guesses(f, d, from_SD, by_others, modes),
        ),
        guessed=guessed.count(f, d),
        guessed_others=guessed_others.count(f, d),
        drawn_from_SD=from_SD.count(f, d) if of_SD else None,
        drawn_from_GT=by_others.count(f, d) if of_others else None,
    )


def disclosed_beyond(d_q: IntArray, d: IntArray, s_q: IntArray, s: IntArray, sizes: Sizes) -> IntArray:
    """Return what a GT record of each cell adds to DiSCO_beyond, in units of 1 / `CHANCE_SCALE`."""
    at_n = to_integer_chances(sizes.q0(s_q - s)) - to_integer_chances(sizes.q0(s_q))
    return at_n - to_integer_chances(sizes.p0(d_q - d)) + to_integer_chances(sizes.p0(d_q - 1))


def _disclosed_beyond_by_key(f: FrequencyTable, d: IntArray, occupied: IntArray, sizes: Sizes) -> IntArray:
    """Return what the records of each q add to DiSCO_beyond, in units of 1 / `CHANCE_SCALE`."""
    added = np.zeros(len(d), dtype=np.int64)
    if len(occupied):
        added[occupied] = d[occupied] * disclosed_beyond(
            f.d_q[occupied], f.d[occupied], f.s_q[occupied], f.s[occupied], sizes
        )
    return f.sum_by_q(added)


def _square_differences(
    f: FrequencyTable, sizes: Sizes, left: IntArray | None, left_s: IntArray | None, DiSCO: IntArray
) -> Squares:
    """Return the squares; `DiSCO` is what each q adds to DiSCO_beyond."""
    d_q, s_q = f.d_q[f.first], f.s_q[f.first]
    people, synthetic, dd, ds = d_q, s_q, f.dd, f.ds
    if left is not None:
        people, dd = f.sum_by_q(left), f.sum_by_q(left * left)
        ds = f.sum_by_q(left * (f.s if left_s is None else left_s))
    if left_s is not None:
        synthetic = f.sum_by_q(left_s)
    attributed = attributed_beyond(dd - people, people - 1, ds, synthetic, sizes)
    return Squares(
        iS=sum_of_squares(people * found_beyond(d_q - 1, s_q, sizes), f.alike),
        DiSCO=sum_of_squares(DiSCO, f.alike),
        DCAP=sum_of_squares(attributed, f.alike),
        guessed=0,
    )


def found_beyond(others: IntArray, s_q: IntArray, sizes: Sizes) -> IntArray:
    """Return what a GT record of each q adds to iS_beyond, in units of 1 / `CHANCE_SCALE`.

    `others`: d_q - 1, which may be -1.
    """
    return to_integer_chances(sizes.p0(np.maximum(others, 0))) - to_integer_chances(sizes.q0(s_q))


def attributed_beyond(
    from_others: IntArray, others: IntArray, from_SD: IntArray, s_q: IntArray, sizes: Sizes
) -> IntArray:
    """Return what the records of each q add to DCAP_beyond, in units of 1 / `CHANCE_SCALE`.

    `from_SD`: sum of d·s. `from_others`: sum of d (d - 1); `others`: d_q - 1, which may be -1.
    """

    def guess(pairs: IntArray, records: IntArray, none_drawn: Floats) -> IntArray:
        return to_integer_chances(pairs / np.maximum(records, 1) * (1 - none_drawn))

    others = np.maximum(others, 0)
    return guess(from_SD, s_q, sizes.q0(s_q)) - guess(from_others, others, sizes.p0(others))


def _of_as_many_records(title: str) -> Words:
    return Words(
        f"{title}, of as many records",
        "The same from as many synthetic records as there are records of other people, if there are more.",
        beside=f"{BY_SYNTHETIC}, of as many records",
    )


@dataclass(frozen=True)
class Baselines:
    """Figures of one target in one synthesis: percent of all GT records; `…_beyond` in percentage points.

    `guessed` uses all of SD, `…_at_n` and `…_beyond` use n records. `…_beyond_se` is the standard error
    (`standard_error`, `error_of_guesses`), at least one record. A fresh sample of other people has a
    `…_beyond` of 0 on average.
    """

    iS_at_n: float = described(_of_as_many_records("found"))
    iS_others: float = neutral(
        "found among other people",
        "People whose combination of keys a fresh sample of other people would have.",
    )
    iS_beyond: float = points(
        "found beyond other people",
        "How many more people are found in the synthetic table than in a fresh sample of other people.",
    )
    iS_beyond_se: float = described(standard_error_of("iS_beyond"))
    DiSCO_at_n: float = described(_of_as_many_records("disclosed in the synthetic table and correct"))
    DiSCO_others: float = neutral(
        "DiSCO by other people's records",
        "People whose target other people's confidential records, without their own, would disclose.",
        finding="other people's records alone would show it for {value}",
        beside=BY_OTHERS,
    )
    DiSCO_beyond: float = points(
        "DiSCO beyond other people's records",
        "How many more people have their target disclosed by the synthetic table than by other people's "
        "records.",
        finding="the table gives away the {column} of {more} people in 100 than other people's records would",
        beside=BEYOND_OTHERS,
        subject="people whose {column} is disclosed",
    )
    DiSCO_beyond_se: float = described(standard_error_of("DiSCO_beyond"))
    DCAP_at_n: float = described(_of_as_many_records("DCAP"))
    DCAP_others: float = neutral(
        "DCAP by other people's records",
        "How often a guess drawn from other people with the same keys would be right.",
        finding="from other people's records alone it would be for {value}",
    )
    DCAP_beyond: float = points(
        "DCAP beyond other people's records",
        "How much more often a guess drawn from the synthetic table is right than one from other people's "
        "records.",
        finding="a guess of {column} drawn from the table is right for {more} people in 100 than from other "
        "people's records",
    )
    DCAP_beyond_se: float = described(standard_error_of("DCAP_beyond"))
    guessed: float = figure(
        "guessed from the keys",
        "People whose target is guessed correctly, as the most frequent one among the synthetic records "
        "with their keys.",
        finding="for {value} of the people the best guess of their {column} from the table is right",
    )
    guessed_at_n: float = described(_of_as_many_records("guessed from the keys"))
    guessed_others: float = neutral(
        "guessed from other people's records",
        "People whose target is guessed correctly from other people's records, or by always guessing the "
        "most frequent value.",
        finding="from other people's records alone it would be for {value}",
    )
    guessed_beyond: float = points(
        "guessed beyond other people's records",
        "How many more people's target is guessed correctly from the synthetic table than from other "
        "people's records.",
        finding="the best guess of {column} from the table is right for {more} people in 100 than from other "
        "people's records",
        subject="people whose {column} is guessed",
    )
    guessed_beyond_se: float = described(standard_error_of("guessed_beyond"))


def baselines(
    counts: BaselineCounts,
    totals: Totals,
    sizes: Sizes,
    d_t: IntArray,
    s_t: IntArray,
    left_t: IntArray,
    no_guess: Mask,
) -> Baselines:
    """Compute the figures of the records that the exclusions leave."""

    def share(records: float) -> float:
        return 100 * records / sizes.N_d

    in_others = _count_found_by_others(counts.by_d_q, sizes)
    iS_others, iS = share(in_others), share(_count_found_at_n(counts.by_s_q, sizes))
    DiSCO_others, DiSCO = (
        share(_count_disclosed_by_others(counts, sizes)),
        share(_count_disclosed_at_n(counts, sizes)),
    )
    left_by_d_q = counts.by_d_q if counts.left_by_d_q is None else counts.left_by_d_q
    DCAP_others = share(_count_attributed_by_others(totals.CAPd, left_by_d_q, sizes))
    DCAP = share(_count_attributed_at_n(totals.DCAP, sizes))
    right_from_SD = count_right_guesses(counts.guessed, left_t, s_t, no_guess)
    at_n, others, error = _compare_guesses(counts, sizes, d_t, s_t, left_t, no_guess)
    N = sizes.N_d * SCALE
    return Baselines(
        iS_at_n=iS,
        iS_others=iS_others,
        iS_beyond=iS - iS_others,
        iS_beyond_se=standard_error(counts.squares.iS, sizes.N_d),
        DiSCO_at_n=DiSCO,
        DiSCO_others=DiSCO_others,
        DiSCO_beyond=DiSCO - DiSCO_others,
        DiSCO_beyond_se=standard_error(counts.squares.DiSCO, sizes.N_d),
        DCAP_at_n=DCAP,
        DCAP_others=DCAP_others,
        DCAP_beyond=DCAP - DCAP_others,
        DCAP_beyond_se=standard_error(counts.squares.DCAP, sizes.N_d),
        guessed=percent(right_from_SD, N),
        guessed_at_n=percent(at_n, N),
        guessed_others=percent(others, N),
        guessed_beyond=percent(at_n - others, N),
        guessed_beyond_se=error,
    )


def standard_error(squares: int, N_d: int) -> float:
    """Return the standard error of a difference that is a sum over q, in percent of the GT records.

    100 · sqrt(sum of x_q²) / N_d, with x_q the records that q adds to the difference (`squares`: their sum,
    see `Squares`), and at least one record. For a fresh sample, x_q is 0 on average and both SD and GT are
    random, so the squares hold the variance of both.
    """
    return 100 * max(math.sqrt(squares) / CHANCE_SCALE, 1) / N_d


def _sum_products(grouped: Grouped, chances: Floats) -> float:
    return math.fsum((grouped.sums * chances).tolist())


def _count_found_at_n(by_s_q: Grouped, sizes: Sizes) -> float:
    return _sum_products(by_s_q, 1 - sizes.q0(by_s_q.groups))


def _count_found_by_others(by_d_q: Grouped, sizes: Sizes) -> float:
    """Return iS_others in GT records."""
    return _sum_products(by_d_q, 1 - sizes.p0(by_d_q.groups - 1))


def _count_disclosed_at_n(counts: BaselineCounts, sizes: Sizes) -> float:
    by_rest, by_s_q = counts.by_other_levels_in_SD, counts.by_s_q
    return _sum_products(by_rest, sizes.q0(by_rest.groups)) - _sum_products(by_s_q, sizes.q0(by_s_q.groups))


def _count_disclosed_by_others(counts: BaselineCounts, sizes: Sizes) -> float:
    by_rest, by_d_q = counts.by_other_levels, counts.by_d_q
    return _sum_products(by_rest, sizes.p0(by_rest.groups)) - _sum_products(
        by_d_q, sizes.p0(by_d_q.groups - 1)
    )


def _count_attributed_at_n(ds_by_s_q: Grouped, sizes: Sizes) -> float:
    chance_of_match = 1 - sizes.q0(ds_by_s_q.groups)
    return _sum_products(ds_by_s_q, chance_of_match / np.maximum(ds_by_s_q.groups, 1))


def _count_attributed_by_others(dd_by_d_q: Grouped, by_d_q: Grouped, sizes: Sizes) -> float:
    """Return DCAP_others in GT records; `dd_by_d_q`, `by_d_q`: d² and d by d_q, after the exclusions."""
    assert np.array_equal(dd_by_d_q.groups, by_d_q.groups)
    others = by_d_q.groups - 1
    pairs = Grouped(others, dd_by_d_q.sums - by_d_q.sums)
    return _sum_products(pairs, (1 - sizes.p0(others)) / np.maximum(others, 1))


def _compare_guesses(
    counts: BaselineCounts, sizes: Sizes, d_t: IntArray, s_t: IntArray, left_t: IntArray, no_guess: Mask
) -> tuple[int, int, float]:
    """Return right guesses from n records of SD and of the others, and the error of their difference."""
    of_SD, of_others = draw_of_synthetic(sizes), draw_of_others(sizes)
    from_SD, by_others = (
        Ways.of_modes(counts.guessed, left_t, ModeOfAll.from_synthetic(s_t, no_guess))
        if counts.drawn_from_SD is None or of_SD is None
        else Ways.of_draw(counts.drawn_from_SD, left_t, overall_chances(s_t, no_guess, of_SD)),
        Ways.of_modes(counts.guessed_others, left_t, ModeOfAll.without_self(d_t, no_guess))
        if counts.drawn_from_GT is None or of_others is None
        else Ways.of_draw(counts.drawn_from_GT, left_t, overall_chances(d_t, no_guess, of_others)),
    )
    modes = max(ModeOfAll.from_synthetic(d_t + s_t, no_guess).ways, 1)
    error = error_of_guesses(from_SD, by_others, counts.squares.guessed / modes, left_t, sizes.N_d)
    return from_SD.right, by_others.right, error


_WORDS = words_of_fields(Baselines)

FIGURES = (
    Figure(
        "guessed",
        _WORDS["guessed"],
        place_beyond("guessed", "guessed", at_n="guessed_at_n", by_chance="guessed_by_chance"),
        "learned",
        about="target",
        statistics=("beyond",),
        beyond=_WORDS["guessed_beyond"],
        weighed=place_beyond("population_targets", "guessed", WEIGHTED),
        default=Default(
            "beyond",
            6,
            "Percentage points of the GT records whose target is guessed from their keys in SD, beyond "
            "those guessed from other people's records; of each target",
        ),
        public="unit",
    ),
    Figure(
        "told_by_guess",
        Words(
            "sensitive value guessed",
            "People with the sensitive value of whom it is guessed, as the most frequent one among the "
            "synthetic records with their keys.",
            denominator=WITH_LEVEL,
            finding="{value} of the people with {column} are guessed to have it",
        ),
        place_beyond("sensitive", "guessed", at_n="guessed_at_n", by_chance="guessed_by_chance"),
        "learned",
        about="level",
        statistics=("beyond",),
        beyond=Words(
            "sensitive value guessed beyond other people's records",
            "How many more of the people with the sensitive value are guessed to have it than from other "
            "people's records.",
            POINTS,
            finding="{more} in 100 of the people with {column} are guessed to have it than from other "
            "people's records",
            subject="people with {column} guessed to have it",
        ),
        weighed=place_beyond("sensitive", "guessed", WEIGHTED),
        follows="guessed",
    ),
)
