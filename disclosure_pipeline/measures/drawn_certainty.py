"""Claims of an intruder who has a draw of records only, on average over all draws.

As `certainty`, where each record is drawn by itself with the same chance (`drawn_guesses`). At a certainty c
above 1/2 no two levels of a key combination are claimed at once, so the chances of its levels add up. Of a
records with a level and b with others in its q, the level is claimed with the chance

    sum over j >= 1 of  P(Bin(a) = j) * P(Bin(b) <= j (1 - c) / c)

which depends on nothing but these two numbers.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from disclosure_pipeline.measures.binomials import Binomials, highest, lowest
from disclosure_pipeline.measures.certainty import CertaintyCounts
from disclosure_pipeline.measures.chance import Floats
from disclosure_pipeline.measures.drawn_guesses import Draw
from disclosure_pipeline.measures.exact import ONE, IntArray, Mask
from disclosure_pipeline.measures.frequency import FrequencyTable

_BITS = ONE.bit_length() - 1
_AT_A_TIME = 1 << 19  # numbers of drawn records, of some pairs of counts


def drawn_certainty_counts(
    f: FrequencyTable, r: IntArray, c: Fraction, no_guess: Mask, draw: Draw
) -> CertaintyCounts:
    """The GT records whose level is claimed, and claimed rightly, in units of 1 / `ONE`.

    Claimed from a draw of the records `r` of each cell (shape: cells); where the draw leaves persons out,
    `r` are GT's. `no_guess` marks target levels (shape: targets); c is above 1/2 and at most 1.
    """
    may_be = ~no_guess[f.t]
    r = r * may_be
    rest = f.per_key(r)[f.q] - r
    people = f.per_key(f.d)[f.q]
    # Of each person's q: a level, its records, those of other levels; who is claimed to have it, who has it.
    nobody = np.zeros_like(f.d)
    if draw.without_self:
        in_records = f.per_key(f.d * may_be)[f.q]
        cases = [
            (r - 1, rest, f.d, f.d),
            (r, rest - 1, in_records - f.d, nobody),
            (r, rest, people - in_records, nobody),
        ]
    else:
        cases = [(r, rest, people, f.d)]
    possible = [(r > 0) & (case[2] > 0) for case in cases]
    own, others, claimed, right = (
        np.concatenate([column[cells] for column, cells in zip(columns, possible, strict=True)])
        for columns in zip(*cases, strict=True)
    )
    pairs, pair = np.unique(np.stack((own, others)), axis=1, return_inverse=True)
    chances = _chances_to_be_claimed(pairs[0], pairs[1], c, draw.chance)
    return CertaintyCounts(*(_weighted(part, pair.reshape(-1), chances) for part in (claimed, right)))


def _weighted(people: IntArray, pair: IntArray, chances: Floats) -> int:
    """The people of all pairs, each times its chance, in units of 1 / `ONE`: the same in any order."""
    sums = np.zeros(len(chances), dtype=np.int64)
    np.add.at(sums, pair, people)
    of_pairs = zip(sums.tolist(), chances.tolist(), strict=True)
    return sum(number * int(math.ldexp(chance, _BITS)) for number, chance in of_pairs)


def _chances_to_be_claimed(own: IntArray, others: IntArray, c: Fraction, chance: float) -> Floats:
    """Of `own` records with a level and `others` without it, each drawn with the chance (shape: pairs)."""
    binomials = Binomials.tabulate(np.unique(np.concatenate((own, others))), chance)
    start = np.maximum(lowest(own, chance), 1)
    steps = np.maximum(highest(own, chance) - start + 1, 1)
    # Rounded up to powers of two, so that pairs of nearly the same width are worked on together.
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
