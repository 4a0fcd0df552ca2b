"""Certainty: DiS and DiSCO for an intruder who acts if a level has at least a share c of the records of q.

This project's own. One decoy among ten records hides a person from DiSCO, but not from DiSCO at certainty
0.9. Records without a target value are left out of the records to guess from. With c = a / b, ps >= c is
tested on integers: s_tq · b >= a · s_q. c = 1 gives DiS and DiSCO.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np

from disclosure_pipeline.measures.drawn_guesses import Binomials, Draw, highest_likely, lowest_likely
from disclosure_pipeline.measures.entry import Figure, Place
from disclosure_pipeline.measures.exact import Floats, IntArray, Mask
from disclosure_pipeline.measures.frequency import Rows
from disclosure_pipeline.measures.words import Words

PRECISION = {
    "precision": Words(
        "right among the claims",
        "Claims that are right.",
        denominator="confidential records about which something is claimed",
    )
}


@lru_cache(maxsize=16)
def figures_at(c: Fraction) -> tuple[Figure, Figure]:
    """Return DiS and DiSCO at a certainty.

    If c is at most 1/2, several levels of a q can have that share.
    """

    def claims(r: Rows) -> Mask:
        f, s = r.f, with_value(r, r.f.s)
        return r.sum_by_q(reaches_share(s, f.at_cells(f.sum_by_q(s)), c)) > 0

    def right(r: Rows) -> Mask:
        s = with_value(r, r.f.s)
        return reaches_share(s[r.cell], r.sum_by_q(s), c)

    return (
        Figure(
            "DiS",
            Words(
                "claimed with that certainty",
                "People for whom one target value has at least that share among the synthetic records with "
                "their keys.",
            ),
            Place("certainty"),
            about="target",
            adds=claims,
        ),
        Figure(
            "DiSCO",
            Words(
                "claimed with that certainty and correct",
                "People whose own target value has at least that share among the synthetic records with "
                "their keys.",
            ),
            Place("certainty"),
            about="target",
            adds=right,
        ),
    )


def with_value(r: Rows, records: IntArray) -> IntArray:
    """Return the records of each cell that have a target value."""
    assert r.no_guess is not None
    return records * ~r.no_guess[r.f.t]


def reaches_share(part: IntArray, whole: IntArray, c: Fraction) -> Mask:
    """Mark the parts that are not 0 and at least the share c of the whole."""
    return (part > 0) & (part * c.denominator >= whole * c.numerator)


def chances_of_claims(own: IntArray, of_q: IntArray, c: Fraction, draw: Draw | None) -> Floats:
    """Return the chance that `own` records are at least the share c of those `of_q` in a draw; 0 without own.

    Each distinct pair is computed once.
    """
    if draw is None:
        return reaches_share(own, of_q, c).astype(np.float64)
    chances, present = np.zeros(len(own)), np.flatnonzero(own > 0)
    if len(present):
        pairs = np.stack((own[present], (of_q - own)[present]))
        distinct, pair = np.unique(pairs, axis=1, return_inverse=True)
        chances[present] = _chances_to_be_claimed(distinct[0], distinct[1], c, draw.chance)[pair.reshape(-1)]
    return chances


_AT_A_TIME = 1 << 19  # chances in one array


def _chances_to_be_claimed(own: IntArray, others: IntArray, c: Fraction, chance: float) -> Floats:
    """Return the chance that a level has at least the share c of a draw (shape: pairs).

    Each of its `own` records, and of the `others` of other levels, is drawn with `chance`.
    """
    binomials = Binomials.tabulate(np.unique(np.concatenate((own, others))), chance)
    start = np.maximum(lowest_likely(own, chance), 1)
    steps = np.maximum(highest_likely(own, chance) - start + 1, 1)
    # Widths are rounded up to powers of two, so that similar pairs are computed together.
    widths = 1 << np.ceil(np.log2(steps)).astype(np.int64)
    chances = np.empty(len(own))
    for width in np.unique(widths).tolist():
        of_width = np.flatnonzero(widths == width)
        step = max(1, _AT_A_TIME // width)
        for at in range(0, len(of_width), step):
            chunk = of_width[at : at + step]
            j = start[chunk][:, None] + np.arange(width)
            exactly, _ = binomials.chances(own[chunk], j)
            most = j * (c.denominator - c.numerator) // c.numerator
            _, fewer = binomials.chances(others[chunk], most + 1)
            chances[chunk] = np.add.reduce(exactly * fewer, axis=1)
    return chances


WORDS = {figure.name: figure.words for figure in figures_at(Fraction(1))} | PRECISION
"""The words of the columns of the frame `certainty`."""
