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

Exclusions set cells to zero after disclosure is decided (`attribute.TABLES`). Likewise, the chances here are
those of the untouched tables, and excluded records are counted on neither side. Only DCAP is computed from
the tables that the exclusions leave, as CAPd is.
"""

from __future__ import annotations

from dataclasses import dataclass

from disclosure_pipeline.measures.drawn_guesses import (
    DrawnGuessCounts,
    GuessChances,
    draw_of_others,
    draw_of_synthetic,
    overall_chances,
)
from disclosure_pipeline.measures.entry import Default, Figure, describe_at_n, place_beyond
from disclosure_pipeline.measures.exact import SCALE, IntArray, Mask, percent
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
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.measures.words import (
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
class BaselineCounts:
    """Counts of one target in one synthesis: integers that add up over keys.

    squares: for the standard error, for each mode, added up (`square_guesses`).
    guessed: guesses from all of SD. guessed_others: guesses from GT, each record without itself.
    drawn_from_SD, drawn_from_GT: from a draw of SD, of the others; None if nothing is drawn (`Sizes`).
    """

    squares: int
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
) -> BaselineCounts:
    """Count from the cells of some or all q.

    `left`: the GT records that the exclusions leave in each cell; None if nothing is excluded. `no_guess`
    marks the target levels that nobody guesses, `both_t` are all records of GT and SD by level (shapes:
    targets).
    """
    d = f.d if left is None else left
    of_SD, of_others = draw_of_synthetic(sizes), draw_of_others(sizes)
    guessed = CellGuesses.from_synthetic(f, f.s, no_guess)
    guessed_others = CellGuesses.without_self(f, f.d, no_guess)
    from_SD = GuessChances.of_draw(f, d, f.s, no_guess, of_SD) if of_SD else guessed.chances()
    by_others = (
        GuessChances.of_draw(f, d, f.d, no_guess, of_others) if of_others else guessed_others.chances()
    )
    modes = ModeOfAll.from_synthetic(both_t, no_guess).levels
    return BaselineCounts(
        squares=square_guesses(f, d, from_SD, by_others, modes),
        guessed=guessed.count(f, d),
        guessed_others=guessed_others.count(f, d),
        drawn_from_SD=from_SD.count(f, d) if of_SD else None,
        drawn_from_GT=by_others.count(f, d) if of_others else None,
    )


@dataclass(frozen=True)
class Baselines:
    """Figures of one target in one synthesis: percent of all GT records; `…_beyond` in percentage points.

    `guessed` uses all of SD, `…_at_n` and `…_beyond` use n records. `…_beyond_se` is the standard error
    (`standard_error`, `error_of_guesses`), at least one record. A fresh sample of other people has a
    `…_beyond` of 0 on average.
    """

    guessed: float = figure(
        "guessed from the keys",
        "People whose target is guessed correctly, as the most frequent one among the synthetic records "
        "with their keys.",
        finding="for {value} of the people the best guess of their {column} from the table is right",
    )
    guessed_at_n: float = described(describe_at_n("guessed from the keys"))
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
    counts: BaselineCounts, sizes: Sizes, d_t: IntArray, s_t: IntArray, left_t: IntArray, no_guess: Mask
) -> Baselines:
    """Compute the figures of the records that the exclusions leave."""
    right_from_SD = count_right_guesses(counts.guessed, left_t, s_t, no_guess)
    at_n, others, error = _compare_guesses(counts, sizes, d_t, s_t, left_t, no_guess)
    N = sizes.N_d * SCALE
    return Baselines(
        guessed=percent(right_from_SD, N),
        guessed_at_n=percent(at_n, N),
        guessed_others=percent(others, N),
        guessed_beyond=percent(at_n - others, N),
        guessed_beyond_se=error,
    )


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
    error = error_of_guesses(from_SD, by_others, counts.squares / modes, left_t, sizes.N_d)
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
