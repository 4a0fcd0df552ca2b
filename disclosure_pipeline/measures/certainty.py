"""An intruder who acts on less than certainty: DiS and DiSCO where one level has at least a share c.

This project's own: one decoy among ten records of a person hides them from DiSCO, and not from this. Missing
target values are no guess: they are left out of the records to guess from. Shares are compared as integers,
for c = a / b.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from disclosure_pipeline.measures.chance import Floats
from disclosure_pipeline.measures.drawn_guesses import Binomials, Draw, highest, lowest
from disclosure_pipeline.measures.exact import ONE, IntArray, Mask, percent, total
from disclosure_pipeline.measures.frequency import FrequencyTable, first_of_run
from disclosure_pipeline.measures.words import figure


@dataclass(frozen=True)
class CertaintyCounts:
    """GT records in whose q some level has at least the share, and those whose own level has it.

    Integers that add up over keys. With a share of at most 1/2 several levels of a q can have it.
    """

    claimed: int
    right: int

    def times(self, units: int) -> CertaintyCounts:
        """Return the same in units of 1 / `units`, in which averages over draws are counted."""
        return CertaintyCounts(self.claimed * units, self.right * units)


@dataclass(frozen=True)
class Certainty:
    """DiS and DiSCO at a certainty, in percent of GT records; `precision` is DiSCO in percent of DiS.

    `precision` is NaN where nothing is claimed of anybody.
    """

    DiS: float = figure(
        "claimed with that certainty",
        "Of so many people one target value has at least that share among the synthetic "
        "records with their keys.",
    )
    DiSCO: float = figure(
        "claimed with that certainty and correct",
        "This many people are claimed to have a target value with at least that certainty, and have it.",
    )
    precision: float = figure(
        "right among the claims",
        "This many of these claims are right.",
        denominator="confidential records of whom something is claimed",
    )


def certainty(counts: CertaintyCounts, N_d: int) -> Certainty:
    """Return the percentages."""
    return Certainty(
        DiS=percent(counts.claimed, N_d),
        DiSCO=percent(counts.right, N_d),
        precision=percent(counts.right, counts.claimed),
    )


def certainty_counts(f: FrequencyTable, d: IntArray, c: Fraction, no_guess: Mask) -> CertaintyCounts:
    """Return the GT records whose level is claimed from SD, and claimed rightly.

    `d` are the GT records of each cell (shape: cells); c is above 0 and at most 1.
    """
    if not len(f.q):
        return CertaintyCounts(0, 0)
    s = f.s * ~no_guess[f.t]
    enough = is_enough(s, f.at_cells(f.sum_by_q(s)), c)
    return CertaintyCounts(total(d, f.at_cells(f.sum_by_q(enough) > 0)), total(d, enough))


def certainty_counts_of_others(
    f: FrequencyTable, d: IntArray, c: Fraction, no_guess: Mask
) -> CertaintyCounts:
    """Return the same, where each person's level is claimed from the other GT records."""
    if not len(f.q):
        return CertaintyCounts(0, 0)
    may_be = ~no_guess[f.t]
    r = f.d * may_be
    own = r > 0  # the person's record is among those that are guessed from, and left out
    others = f.at_cells(f.sum_by_q(r)) - own
    right = is_enough(r - own, others, c)
    largest = f.at_cells(f.largest_by_q(r))
    first = np.zeros(len(r), dtype=bool)
    best = np.flatnonzero(r == largest)
    first[best[first_of_run(f.q[best])]] = True
    second = f.at_cells(f.largest_by_q(np.where(first, 0, r)))
    claimed = right | is_enough(np.where(first & own, second, largest), others, c)
    return CertaintyCounts(total(d, claimed), total(d, right))


def is_enough(part: IntArray, whole: IntArray, c: Fraction) -> Mask:
    """Return whether a part is not 0, and at least the share c of the whole."""
    return (part > 0) & (part * c.denominator >= whole * c.numerator)


_BITS = ONE.bit_length() - 1
_AT_A_TIME = 1 << 19  # numbers of drawn records, of some pairs of counts


def drawn_certainty_counts(
    f: FrequencyTable, r: IntArray, c: Fraction, no_guess: Mask, draw: Draw
) -> CertaintyCounts:
    """Return the GT records whose level is claimed, and claimed rightly, in units of 1 / `ONE`.

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
    chances = chances_to_be_claimed(pairs[0], pairs[1], c, draw.chance)
    return CertaintyCounts(*(_weighted(part, pair.reshape(-1), chances) for part in (claimed, right)))


def _weighted(people: IntArray, pair: IntArray, chances: Floats) -> int:
    """Return the people of all pairs, each times its chance, in units of 1 / `ONE`: the same in any order."""
    sums = np.zeros(len(chances), dtype=np.int64)
    np.add.at(sums, pair, people)
    of_pairs = zip(sums.tolist(), chances.tolist(), strict=True)
    return sum(number * int(math.ldexp(chance, _BITS)) for number, chance in of_pairs)


def chances_to_be_claimed(own: IntArray, others: IntArray, c: Fraction, chance: float) -> Floats:
    """Return the chances of `own` records with a level and `others` without, drawn alike (shape: pairs)."""
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
