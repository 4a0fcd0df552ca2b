"""Baselines: each figure of a fresh sample of other people of the same population instead of SD.

This project's own. Much of DiSCO is what anybody learns from *other* people's records. GT itself says how
much: for each person the other N_d - 1 records are such a sample, of people who are not that person. Both
sides are compared at n = min(N_s, N_d - 1) records, in closed form:

| figure | SD at n records, in GT records | the others at n, in GT records |
|---|---|---|
| iS | sum d_q (1 - Q0(s_q)) | sum d_q (1 - P0(d_q - 1)) |
| DiSCO | sum d_tq (Q0(s_q - s_tq) - Q0(s_q)) | sum d_tq (P0(d_q - d_tq) - P0(d_q - 1)) |
| DCAP | sum d_tq s_tq/s_q (1 - Q0(s_q)) | sum d_tq (d_tq - 1)/(d_q - 1) (1 - P0(d_q - 1)), d_q >= 2 |

P0(m) is the chance that none of m given other GT records is among n drawn, Q0(m) the same of SD records
(`samples.Sizes`). At n >= N_d - 1 P0 is 1 for m = 0, else 0; at n = N_s so is Q0. The guess of the most
frequent level (`guesses`) is the average over all draws where the sizes differ (`drawn_guesses`).

`…_beyond` is the figure at n less that of the others. The integers that all this takes are `BaselineCounts`,
beside d² by d_q and d·s by s_q, which are `Totals.CAPd` and `Totals.DCAP`, all
of which add up over keys: every engine may count them in its own way.

Exclusions set cells to zero once it is decided what discloses (`DisclosureTables`); so does this: the chances
are those of the untouched tables, and the records that are excluded are not counted on either side. DCAP is
of the tables that the exclusions leave, as CAPd and DCAP are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.measures.baseline_counts import BaselineCounts
from disclosure_pipeline.measures.drawn_guesses import (
    draw_of_others,
    draw_of_synthetic,
    guessed_by_overall_mode_of_draw,
    guessed_from_draw,
    overall_chances,
)
from disclosure_pipeline.measures.exact import ONE, Floats, Grouped, IntArray, Mask, percent
from disclosure_pipeline.measures.guesses import (
    error_of_guesses,
    guessed,
    guessed_by_overall_mode,
    guessed_by_overall_mode_without_self,
    guessed_without_self,
)
from disclosure_pipeline.measures.samples import ONE_CHANCE, Sizes
from disclosure_pipeline.measures.totals import Totals
from disclosure_pipeline.measures.words import (
    BEYOND_OTHERS,
    BY_OTHERS,
    BY_SYNTHETIC,
    Words,
    described,
    figure,
    neutral,
    points,
    standard_error_of,
)


def _of_as_many_records(title: str) -> Words:
    return Words(
        f"{title}, of as many records",
        "The same of as many synthetic records as there are other people's, where there are more.",
        beside=f"{BY_SYNTHETIC}, of as many records",
    )


@dataclass(frozen=True)
class Baselines:
    """Figures of one target in one synthesis: percent of all GT records; each `beyond` in percentage points.

    `guessed` is of all of SD, every `…_at_n` and `…_beyond` of n records. `…_beyond_se`: the standard error
    (`standard_error`, `error_of_guesses`), which is never below one record. A high value of a `beyond` is a
    high risk; a fresh sample of other people has 0 on average.
    """

    iS_at_n: float = described(_of_as_many_records("found"))
    iS_others: float = neutral(
        "found among other people",
        "This many people have a combination of keys that a fresh sample of other people would have.",
    )
    iS_beyond: float = points(
        "found beyond other people",
        "This many more people are found in the synthetic table than in a fresh sample of other people.",
    )
    iS_beyond_se: float = described(standard_error_of("iS_beyond"))
    DiSCO_at_n: float = described(_of_as_many_records("disclosed in the synthetic table and correct"))
    DiSCO_others: float = neutral(
        "DiSCO by other people's records",
        "This many people could be told their target from other people's confidential "
        "records, without their own.",
        beside=BY_OTHERS,
    )
    DiSCO_beyond: float = points(
        "DiSCO beyond other people's records",
        "This many more people can be told their target from the synthetic table than from "
        "other people's records.",
        finding="the share of people whose {column} is disclosed is {value} higher than from other "
        "people's records",
        beside=BEYOND_OTHERS,
        subject="people whose {column} is disclosed",
    )
    DiSCO_beyond_se: float = described(standard_error_of("DiSCO_beyond"))
    DCAP_at_n: float = described(_of_as_many_records("DCAP"))
    DCAP_others: float = neutral(
        "DCAP by other people's records",
        "How often a guess drawn from other people with the same keys would be right.",
    )
    DCAP_beyond: float = points(
        "DCAP beyond other people's records",
        "How much more often a guess drawn from the synthetic table is right than one from "
        "other people's records.",
    )
    DCAP_beyond_se: float = described(standard_error_of("DCAP_beyond"))
    guessed: float = figure(
        "guessed from the keys",
        "Of so many people the target is guessed rightly: as the most frequent one among "
        "synthetic records with their keys.",
        finding="the {column} of {value} of the people is guessed rightly",
    )
    guessed_at_n: float = described(_of_as_many_records("guessed from the keys"))
    guessed_others: float = neutral(
        "guessed from other people's records",
        "Of so many people the target is guessed rightly from other people's records, or by"
        " always guessing the most frequent value.",
    )
    guessed_beyond: float = points(
        "guessed beyond other people's records",
        "The targets of so many more people are guessed rightly from the synthetic table "
        "than from other people's records.",
        finding="correct guesses of {column} rise by {value}",
        subject="correct guesses of {column}",
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
    """Return the figures of what the exclusions leave."""

    def share(records: float) -> float:
        return 100 * records / sizes.N_d

    in_others = in_synthetic_of_others(counts.by_d_q, sizes)
    iS_others, iS = share(in_others), share(_in_synthetic_at_n(counts.by_s_q, sizes))
    DiSCO_others, DiSCO = share(_disclosed_by_others(counts, sizes)), share(_disclosed_at_n(counts, sizes))
    left_by_d_q = counts.by_d_q if counts.left_by_d_q is None else counts.left_by_d_q
    DCAP_others = share(_attributed_by_others(totals.CAPd, left_by_d_q, sizes))
    DCAP = share(_attributed_at_n(totals.DCAP, sizes))
    of_SD = guessed(counts.guessed, left_t, s_t, no_guess)
    at_n, others, error = guess_both(counts, sizes, d_t, s_t, left_t, no_guess, sizes.N_d, sizes.n)
    N = sizes.N_d * ONE
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
        guessed=percent(of_SD, N),
        guessed_at_n=percent(at_n, N),
        guessed_others=percent(others, N),
        guessed_beyond=percent(at_n - others, N),
        guessed_beyond_se=error,
    )


def standard_error(squares: int, N_d: int) -> float:
    """Return the standard error of a difference that is a sum over q, in percent of the GT records.

    `squares`: of what the records of each q add to it (`baseline_counts.Squares`). For a fresh sample that is
    0 on average in every q, of which SD and GT both draw the records: so the squares have the variance of
    both. One record at least, where nothing differs.
    """
    return 100 * max(math.sqrt(squares) / ONE_CHANCE, 1) / N_d


def guessed_beyond_error(
    right: tuple[int, int], by_mode: tuple[int, int], people: int, with_others: float, whole: int, n: int
) -> float:
    """Return the standard error of guessed_beyond, in percent of `whole` records: see `error_of_guesses`.

    `right`, `by_mode`: right guesses from SD and from the others, by the better way, and always by their most
    frequent level, in units of 1 / `ONE`. Of the `people` who are guessed, so many are `with_others` in their
    q; n of them are guessed independently.
    """
    shares = [percent(guesses, whole * ONE) / 100 for guesses in (*right, *by_mode)]
    alone = max(0.0, 1 - with_others / max(people, 1))
    return 100 * max(error_of_guesses(shares[0], shares[1], n, alone * (shares[2] - shares[3])), 1 / whole)


def guess_by_overall_mode(
    sizes: Sizes, d_t: IntArray, s_t: IntArray, left_t: IntArray, no_guess: Mask
) -> tuple[int, int]:
    """Return right guesses of the most frequent level of SD, and of the others, at n, in 1 / `ONE`."""
    of_SD, of_GT = draw_of_synthetic(sizes), draw_of_others(sizes)
    return (
        guessed_by_overall_mode_of_draw(left_t, overall_chances(s_t, no_guess, of_SD))
        if of_SD
        else guessed_by_overall_mode(left_t, s_t, no_guess),
        guessed_by_overall_mode_of_draw(left_t, overall_chances(d_t, no_guess, of_GT))
        if of_GT
        else guessed_by_overall_mode_without_self(left_t, d_t, no_guess),
    )


def _weighted(grouped: Grouped, chances: Floats) -> float:
    """Return the sums, each times a chance, added up exactly."""
    return math.fsum((grouped.sums * chances).tolist())


def _in_synthetic_at_n(by_s_q: Grouped, sizes: Sizes) -> float:
    return _weighted(by_s_q, 1 - sizes.q0(by_s_q.groups))


def in_synthetic_of_others(by_d_q: Grouped, sizes: Sizes) -> float:
    """Return iS_others, in GT records."""
    return _weighted(by_d_q, 1 - sizes.p0(by_d_q.groups - 1))


def _disclosed_at_n(counts: BaselineCounts, sizes: Sizes) -> float:
    by_rest, by_s_q = counts.by_other_levels_in_SD, counts.by_s_q
    return _weighted(by_rest, sizes.q0(by_rest.groups)) - _weighted(by_s_q, sizes.q0(by_s_q.groups))


def _disclosed_by_others(counts: BaselineCounts, sizes: Sizes) -> float:
    by_rest, by_d_q = counts.by_other_levels, counts.by_d_q
    return _weighted(by_rest, sizes.p0(by_rest.groups)) - _weighted(by_d_q, sizes.p0(by_d_q.groups - 1))


def _attributed_at_n(ds_by_s_q: Grouped, sizes: Sizes) -> float:
    chance_of_match = 1 - sizes.q0(ds_by_s_q.groups)
    return _weighted(ds_by_s_q, chance_of_match / np.maximum(ds_by_s_q.groups, 1))


def _attributed_by_others(dd_by_d_q: Grouped, by_d_q: Grouped, sizes: Sizes) -> float:
    """Return DCAP_others; `dd_by_d_q`, `by_d_q`: d² and d added up by d_q, of what the exclusions leave."""
    assert np.array_equal(dd_by_d_q.groups, by_d_q.groups)
    others = by_d_q.groups - 1
    pairs = Grouped(others, dd_by_d_q.sums - by_d_q.sums)
    return _weighted(pairs, (1 - sizes.p0(others)) / np.maximum(others, 1))


def guess_both(
    counts: BaselineCounts,
    sizes: Sizes,
    d_t: IntArray,
    s_t: IntArray,
    people_t: IntArray,
    no_guess: Mask,
    whole: int,
    n: int,
) -> tuple[int, int, float]:
    """Return right guesses from SD and from the other GT records, at n records, in units of 1 / `ONE`.

    And the standard error of their difference: see `guessed_beyond_error`. `people_t`: who is guessed.
    """
    by_SD = _guess_from_synthetic(counts, sizes, s_t, people_t, no_guess)
    by_others = _guess_from_others(counts, sizes, d_t, people_t, no_guess)
    by_mode = guess_by_overall_mode(sizes, d_t, s_t, people_t, no_guess)
    with_others = in_synthetic_of_others(counts.by_d_q, sizes)
    people = int(people_t.sum())
    return by_SD, by_others, guessed_beyond_error((by_SD, by_others), by_mode, people, with_others, whole, n)


def _guess_from_synthetic(
    counts: BaselineCounts, sizes: Sizes, s_t: IntArray, left_t: IntArray, no_guess: Mask
) -> int:
    draw = draw_of_synthetic(sizes)
    if not draw or not counts.drawn_from_SD:
        return guessed(counts.guessed, left_t, s_t, no_guess)
    return guessed_from_draw(counts.drawn_from_SD, left_t, overall_chances(s_t, no_guess, draw))


def _guess_from_others(
    counts: BaselineCounts, sizes: Sizes, d_t: IntArray, left_t: IntArray, no_guess: Mask
) -> int:
    draw = draw_of_others(sizes)
    if not draw or not counts.drawn_from_GT:
        return guessed_without_self(counts.guessed_others, left_t, d_t, no_guess)
    return guessed_from_draw(counts.drawn_from_GT, left_t, overall_chances(d_t, no_guess, draw))
