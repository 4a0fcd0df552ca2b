"""Numeric targets disclosed approximately: DiSCO, DiS, certainty and guesses to within a band.

This project's own. A salary known to within 2 % is disclosed. The band of v holds every x with
|x - v| <= w |v| if w is a share (below 1), or |x - v| <= w if w is an amount; both ends are included. Numbers
are compared exactly as written: 1.2 lies within 0.1 of 1.1.

- A share refers to |v|: -98 lies within 2 % of -100, and only 0 lies within any share of 0.
- Missing and every special value is a level, whose band holds only itself and which no other band holds.
- The band is centred on the person's true value, so no record is lost at the edge of a group.

D and S are the GT and SD records of a person's q within the band of the person's value. W_v are the records
of q from v up to the largest number that fits into one band with v. P0 and Q0: see `baselines`.

| figure | SD | at n records of SD | the others at n |
|---|---|---|---|
| DiSCO | S = s_q > 0 | Q0(s_q - S) - Q0(s_q) | P0(d_q - D) - P0(d_q - 1) |
| DiS | W_v = s_q > 0 for some v | sum over v: Q0(s_q - W_v) - Q0(s_q - W_v + s_qv) | the same of the others |
| certainty c | S >= c s_q > 0 | of a draw | D - 1 >= c (d_q - 1) > 0, of a draw |
| guessed | the densest window of q | of a draw | that of the others in q |

DiS: all SD records of q fit into the band of some number, whether a record has it or not. So DiSCO <= DiS <=
iS, and w = 0 gives the exact figures. In the sum, v is the smallest value drawn. Certainty leaves missing
values out of s_q and d_q.

Guesses also leave out special values, because they guess an amount: that around which most records lie
(`densest_bands`), as of levels the most frequent one is guessed. A window is all records from one amount up
to the largest number that fits into one band with it, W_v of the amounts; its centre is guessed, and is right
for the people in whose band it lies. The centre lies halfway between the smallest and the largest amount
of the window. For a share w it lies halfway between (1 - w) of the larger and (1 + w) of the smaller one, so
that the window is as wide as the band at its centre. Of k equally dense windows each counts 1/k. As in
`guesses`, the better of two strategies is used: guess the densest window of q (if q has no amount, that of
the whole table), or always that of the whole table. Where the sizes differ, each record is drawn with the
same chance: of up to 6 amounts of a q every draw is tried, of more, 16 that depend on the numbers of records
in order of amount alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from disclosure_pipeline.measures.band_counts import BandCounts, ClaimCounts
from disclosure_pipeline.measures.band_places import Band
from disclosure_pipeline.measures.densest_bands import guess_amount_of_all
from disclosure_pipeline.measures.drawn_guesses import (
    count_right_guesses_of_draw,
    draw_of_others,
    draw_of_synthetic,
)
from disclosure_pipeline.measures.entry import Default, Figure, place_beyond
from disclosure_pipeline.measures.exact import SCALE, IntArray, percent
from disclosure_pipeline.measures.guesses import Ways, error_of_guesses
from disclosure_pipeline.measures.samples import CHANCE_SCALE, Sizes, standard_error
from disclosure_pipeline.measures.words import (
    BEYOND_OTHERS,
    BY_OTHERS,
    POINTS,
    WEIGHTED,
    Words,
    described,
    figure,
    standard_error_of,
    words_of_fields,
)


def _words(title: str, sentence: str) -> Words:
    return Words(title, sentence, finding=f"the {{column}} of {{value}} of the people is {title}")


def _others_of(title: str) -> Words:
    return Words.neutral(
        f"{title}, by other people's records",
        "The same from other people's confidential records, without the person's own.",
        finding="from other people's records alone it would be for {value}",
        beside=BY_OTHERS,
    )


def _beyond_of(title: str) -> Words:
    return Words(
        f"{title}, beyond other people's records",
        "How many more people than from equally many records of other people.",
        POINTS,
        finding=f"the {{column}} of {{more}} people in 100 is {title} than from other people's records",
        beside=BEYOND_OTHERS,
        subject=f"people whose {{column}} is {title}",
    )


_DISCLOSED, _CLAIMED, _GUESSED = (
    "disclosed within the band",
    "claimed within the band",
    "guessed within the band",
)


@dataclass(frozen=True)
class Bands:
    """Figures of one target in one synthesis: percent of all GT records; `beyond` in percentage points.

    `DiSCO_within`, `DiS_within` and `guessed_within` use all of SD, the differences n records.
    """

    DiS_within: float = described(
        _words(_CLAIMED, "People for whom all synthetic records with their keys have nearly the same amount.")
    )
    DiS_within_others: float = described(_others_of(_CLAIMED))
    DiS_within_beyond: float = described(_beyond_of(_CLAIMED))
    DiS_within_beyond_se: float = described(standard_error_of("DiS_within_beyond"))
    DiSCO_within: float = described(
        _words(
            _DISCLOSED,
            "People whose amount is disclosed approximately: all synthetic records with their keys lie "
            "within the band around it.",
        )
    )
    DiSCO_within_others: float = described(_others_of(_DISCLOSED))
    DiSCO_within_beyond: float = described(_beyond_of(_DISCLOSED))
    DiSCO_within_beyond_se: float = described(standard_error_of("DiSCO_within_beyond"))
    guessed_within: float = described(
        _words(
            _GUESSED,
            "People whose amount is guessed to within the band, as the one around which most synthetic "
            "records with their keys lie.",
        )
    )
    guessed_within_others: float = described(_others_of(_GUESSED))
    guessed_within_beyond: float = described(_beyond_of(_GUESSED))
    guessed_within_beyond_se: float = described(standard_error_of("guessed_within_beyond"))


@dataclass(frozen=True)
class BandCertainty:
    """DiS and DiSCO within the band at a certainty, in percent of GT records; `precision` of the claims."""

    DiS_within: float = figure(
        "claimed within the band with that certainty",
        "People for whom at least that share of the synthetic records with their keys have nearly the same "
        "amount.",
    )
    DiSCO_within: float = figure(
        "disclosed within the band with that certainty",
        "People for whom at least that share of the synthetic records with their keys lie within the band "
        "around their amount.",
    )
    precision: float = figure(
        "right among the claims",
        "Claims that are right.",
        denominator="confidential records about which something is claimed",
    )
    DiSCO_within_others: float = described(_others_of(_DISCLOSED))
    DiSCO_within_beyond: float = described(_beyond_of(_DISCLOSED))
    DiSCO_within_beyond_se: float = described(standard_error_of("DiSCO_within_beyond"))


def bands(
    counts: BandCounts,
    band: Band,
    sizes: Sizes,
    d_t: IntArray,
    s_t: IntArray,
    left_t: IntArray,
) -> Bands:
    """Compute the figures of the records that the exclusions leave.

    `d_t`, `s_t`, `left_t`: all GT records, all SD records, and the GT records that the exclusions leave, by
    level.
    """
    N_d, by_place = sizes.N_d, left_t[band.order]
    synthetic_draw, others_draw = draw_of_synthetic(sizes), draw_of_others(sizes)
    overall = guess_amount_of_all(s_t[band.order], band, None, without_self=False)
    at_n = (
        guess_amount_of_all(s_t[band.order], band, synthetic_draw, without_self=False)
        if synthetic_draw
        else overall
    )
    others = guess_amount_of_all(d_t[band.order], band, others_draw, without_self=True)
    guessed = count_right_guesses_of_draw(counts.guessed.from_SD, by_place, overall)
    ways = (
        Ways.of_draw(counts.guessed.at_n, by_place, at_n),
        Ways.of_draw(counts.guessed.by_others, by_place, others),
    )
    right = ways[0].right, ways[1].right
    disclosed = _compare_with_others(counts.disclosed, N_d)
    claimed = ClaimCounts(0, 0, counts.claimed_at_n, counts.claimed_by_others, counts.claimed_squares)
    return Bands(
        percent(counts.disclosed.claimed, N_d),
        *_compare_with_others(claimed, N_d),
        percent(counts.disclosed.right, N_d),
        *disclosed,
        guessed_within=percent(guessed, N_d * SCALE),
        guessed_within_others=percent(right[1], N_d * SCALE),
        guessed_within_beyond=percent(right[0] - right[1], N_d * SCALE),
        guessed_within_beyond_se=error_of_guesses(*ways, counts.guessed.squares, by_place, N_d),
    )


def band_certainty(counts: ClaimCounts, N_d: int) -> BandCertainty:
    """Compute the percentages."""
    return BandCertainty(
        percent(counts.claimed, N_d),
        percent(counts.right, N_d),
        percent(counts.right, counts.claimed),
        *_compare_with_others(counts, N_d),
    )


def _compare_with_others(counts: ClaimCounts, N_d: int) -> tuple[float, float, float]:
    """Return the others' figure, the difference of SD's, and its standard error, in percent."""
    at_n, by_others, N = counts.right_at_n, counts.right_by_others, N_d * CHANCE_SCALE
    return percent(by_others, N), percent(at_n - by_others, N), standard_error(counts.squares, N_d)


_WORDS = words_of_fields(Bands)

FIGURES = (
    Figure(
        "DiSCO_within",
        _WORDS["DiSCO_within"],
        place_beyond("bands", "DiSCO_within"),
        "learned",
        about="target",
        statistics=("at_most", "beyond"),
        beyond=_WORDS["DiSCO_within_beyond"],
        weighed=place_beyond("bands", "DiSCO_within", WEIGHTED),
        public="share",
    ),
    Figure(
        "guessed_within",
        _WORDS["guessed_within"],
        place_beyond("bands", "guessed_within", by_chance="guessed_within_by_chance"),
        "learned",
        about="target",
        statistics=("beyond",),
        beyond=_WORDS["guessed_within_beyond"],
        weighed=place_beyond("bands", "guessed_within", WEIGHTED),
        default=Default(
            "beyond",
            6,
            "Percentage points of the GT records whose amount is guessed to within its band from their keys "
            "in SD, beyond those guessed from other people's records; of each target with a band",
        ),
        public="unit",
    ),
)
