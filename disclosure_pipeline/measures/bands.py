"""Numeric targets disclosed approximately: DiSCO, DiS, certainty and guesses to within a band.

This project's own. A salary known to within 2 % is disclosed. The band of v holds every x with
|x - v| <= w |v| if w is a share (below 1), or |x - v| <= w if w is an amount; both ends are included. Numbers
are compared exactly as written: 1.2 lies within 0.1 of 1.1.

- A share refers to |v|: -98 lies within 2 % of -100, and only 0 lies within any share of 0.
- Missing and every special value is a level, whose band holds only itself and which no other band holds.
- The band is centred on the person's true value, so no record is lost at the edge of a group.

D and S are the GT and SD records of a person's q within the band of the person's value. W_v are the records
of q from v up to the largest number that fits into one band with v. P0 and Q0: see `contributions`.

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

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np

from disclosure_pipeline.measures.band_windows import (
    Windows,
    count_near,
    count_own_near,
    order_by_amount,
    sum_before,
)
from disclosure_pipeline.measures.certainty import PRECISION, chances_of_claims, reaches_share, with_value
from disclosure_pipeline.measures.densest_bands import AMOUNTS
from disclosure_pipeline.measures.drawn_guesses import draw_of_others, draw_of_synthetic
from disclosure_pipeline.measures.entry import Baseline, Default, Figure, Place, place_beyond
from disclosure_pipeline.measures.exact import Floats, IntArray, Mask
from disclosure_pipeline.measures.frequency import Rows, beside_other_units, is_only_level
from disclosure_pipeline.measures.guesses import beside_others, guess_from_synthetic
from disclosure_pipeline.measures.samples import CHANCE_SCALE, Sizes, to_integer_chances
from disclosure_pipeline.measures.words import BEYOND_OTHERS, BY_OTHERS, POINTS, WEIGHTED, Words


def _is_claimed(r: Rows) -> Mask:
    """Mark the rows whose q has SD records that all fit into one band."""

    def find() -> Mask:
        w = order_by_amount(r)
        w = w.select_keys(w.may_fit(w.f.s, 0))
        holds_all = (w.f.s_q == w.from_smallest(w.f.s)) & (w.f.s > 0)
        return _spread(r, w, w.f.sum_by_q(holds_all))[r.cell] > 0

    return r.remember(_is_claimed, find)


def _claims_at_n(r: Rows) -> Floats:
    """Return the chance that n SD records of each row's q fit into one band: one claim for all its people."""
    chances = np.zeros(len(r))
    for sizes, at in r.sizes:
        if not sizes.synthetic_left:
            chances[at] = _is_claimed(r)[at]
            continue
        w = order_by_amount(r)
        w = w.select_keys(w.may_fit(w.f.s, sizes.synthetic_left))
        outside = w.f.s_q - w.from_smallest(w.f.s)
        none_of_smaller, none_at_all = (
            to_integer_chances(sizes.q0(records)) for records in (outside, outside + w.f.s)
        )
        chances[at] = _spread(r, w, w.f.sum_by_q(none_of_smaller - none_at_all))[r.cell[at]] / CHANCE_SCALE
    return chances


def _spread(r: Rows, w: Windows, of_q: IntArray) -> IntArray:
    """Return what is known of the q of some windows for all cells, 0 for those of other q."""
    of_cells = np.zeros(len(r.f.q), dtype=np.int64)
    of_cells[w.order] = w.f.at_cells(of_q)
    return of_cells


def _claims_by_others(r: Rows) -> Floats:
    """Return the chance that n records of the others with each row's q fit into one band."""
    chances, of_cells = np.zeros(len(r)), np.zeros(len(r.f.q))
    own = r.own_records() if r.has_several else None
    for sizes, at in r.sizes:
        if own is None or sizes.own == 1:
            w = order_by_amount(r)
            w = w.select_keys(w.may_fit(w.f.d, sizes.others_left))
            people = np.flatnonzero(w.f.d)
            of_cells[w.order[people]] = _claims_beside(w, people, sizes)
            chances[at] = of_cells[r.cell[at]]
            continue
        assert r.band is not None
        beside, of_entries = Sizes(r.f.N_d - sizes.own + 1, r.f.N_s), np.zeros(len(own.cell))
        for entries, table, places in beside_other_units(r.f, own, np.unique(own.entry[at])):
            w = Windows.over(table, r.band)
            of_entries[entries] = _claims_beside(w, w.position[places], beside)
        chances[at] = of_entries[own.entry[at]]
    return chances


def _claims_beside(w: Windows, person: IntArray, sizes: Sizes) -> Floats:
    """Return the sum over v of the table above, for one person of each of some cells.

    The person is left out of d_q and of every W_v that holds them. The windows that do begin at neighbouring
    cells, so cumulative sums are enough.
    """
    f, k = w.f, person
    p0 = to_integer_chances(sizes.p0(np.arange(int(f.d_q.max(initial=0)) + 1)))
    outside = f.d_q - w.from_smallest(f.d)
    others = outside - (outside > 0)  # where the person is outside
    with_person = sum_before(p0[outside] - p0[outside + f.d])
    without_person = sum_before((p0[others] - p0[others + f.d]) * (outside > 0))
    begin = np.searchsorted(w.reach, k, side="right")
    first, end = f.at_cells(f.first, k), f.at_cells(np.append(f.first[1:], len(f.q)), k)
    own = p0[outside[k]] - p0[outside[k] + f.d[k] - 1]
    around = without_person[begin] - without_person[first] + without_person[end] - without_person[k + 1]
    by_others: IntArray = own + with_person[k] - with_person[begin] + around
    return by_others / CHANCE_SCALE


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


FIGURES = (
    Figure(
        "DiS_within",
        _words(
            _CLAIMED, "People for whom all synthetic records with their keys have nearly the same amount."
        ),
        place_beyond("bands", "DiS_within"),
        about="target",
        weighed=place_beyond("bands", "DiS_within", WEIGHTED),
        adds=_is_claimed,
        compared=Baseline(
            at_n=_claims_at_n,
            others=_claims_by_others,
            words=_others_of(_CLAIMED),
            beyond=_beyond_of(_CLAIMED),
        ),
    ),
    Figure(
        "DiSCO_within",
        _words(
            _DISCLOSED,
            "People whose amount is disclosed approximately: all synthetic records with their keys lie "
            "within the band around it.",
        ),
        place_beyond("bands", "DiSCO_within"),
        "learned",
        about="target",
        statistics=("at_most", "beyond"),
        weighed=place_beyond("bands", "DiSCO_within", WEIGHTED),
        public="share",
        adds=lambda r: is_only_level(count_near(r, r.f.s), r.s_q),
        compared=Baseline(
            at_n=lambda r: r.only_of_synthetic(count_near(r, r.f.s)),
            others=lambda r: r.only_of_others(count_near(r, r.f.d) - count_own_near(r)),
            words=_others_of(_DISCLOSED),
            beyond=_beyond_of(_DISCLOSED),
        ),
    ),
    Figure(
        "guessed_within",
        _words(
            _GUESSED,
            "People whose amount is guessed to within the band, as the one around which most synthetic "
            "records with their keys lie.",
        ),
        place_beyond("bands", "guessed_within", by_chance="guessed_within_by_chance"),
        "learned",
        about="target",
        statistics=("beyond",),
        weighed=place_beyond("bands", "guessed_within", WEIGHTED),
        default=Default(
            "beyond",
            6,
            "Percentage points of the GT records whose amount is guessed to within its band from their keys "
            "in SD, beyond those guessed from other people's records; of each target with a band",
        ),
        public="unit",
        adds=lambda r: guess_from_synthetic(r, AMOUNTS),
        compared=beside_others(AMOUNTS, _others_of(_GUESSED), _beyond_of(_GUESSED)),
    ),
)


@lru_cache(maxsize=16)
def figures_at(c: Fraction) -> tuple[Figure, Figure]:
    """Return DiS and DiSCO within the band for an intruder who acts at a certainty."""

    def claims(r: Rows) -> Mask:
        w = order_by_amount(r)
        s = with_value(r, r.f.s)[w.order]
        enough = reaches_share(w.from_smallest(s), w.f.at_cells(w.f.sum_by_q(s)), c)
        return _spread(r, w, w.f.sum_by_q(enough))[r.cell] > 0

    def right(r: Rows) -> Mask:
        s = with_value(r, r.f.s)
        return reaches_share(count_near(r, s), r.sum_by_q(s), c)

    def right_at_n(r: Rows) -> Floats:
        s = with_value(r, r.f.s)
        near, of_q = count_near(r, s), r.sum_by_q(s)
        return r.find_chances(
            lambda sizes, own, whole: chances_of_claims(own, whole, c, draw_of_synthetic(sizes)), near, of_q
        )

    def right_by_others(r: Rows) -> Floats:
        d, has_value = with_value(r, r.f.d), with_value(r, np.ones_like(r.f.d))[r.cell] > 0
        near = count_near(r, d) - count_own_near(r, has_value)
        of_q = r.sum_by_q(d) - r.count_own(r.q, has_value.astype(np.int64))
        return r.find_chances(
            lambda sizes, own, whole: chances_of_claims(own, whole, c, draw_of_others(sizes)), near, of_q
        )

    return (
        Figure(
            "DiS_within",
            Words(
                "claimed within the band with that certainty",
                "People for whom at least that share of the synthetic records with their keys have nearly "
                "the same amount.",
            ),
            Place("band_certainty"),
            about="target",
            adds=claims,
        ),
        Figure(
            "DiSCO_within",
            Words(
                "disclosed within the band with that certainty",
                "People for whom at least that share of the synthetic records with their keys lie within "
                "the band around their amount.",
            ),
            Place("band_certainty"),
            about="target",
            adds=right,
            compared=Baseline(
                at_n=right_at_n,
                others=right_by_others,
                words=_others_of(_DISCLOSED),
                beyond=_beyond_of(_DISCLOSED),
            ),
        ),
    )


def _words_of(figures: Sequence[Figure]) -> dict[str, Words]:
    """Return the words of figures and of what compares them; none are shown at n records."""
    words = dict[str, Words]()
    for figure in figures:
        compared = {name: of for name, of in figure.comparisons.items() if not name.endswith("_at_n")}
        words |= {figure.name: figure.words} | compared
    return words


WORDS = _words_of(FIGURES)
"""The words of the columns of the frame `bands`."""

_CERTAIN = _words_of(figures_at(Fraction(1)))
WORDS_AT_CERTAINTY = {name: _CERTAIN[name] for name in ("DiS_within", "DiSCO_within")} | PRECISION | _CERTAIN
"""The words of the columns of the frame `band_certainty`."""
