"""Certainty: DiS and DiSCO for an intruder who acts if a level has at least a share c of the records of q.

This project's own. One decoy among ten records hides a person from DiSCO, but not from DiSCO at certainty
0.9. Records without a target value are left out of the records to guess from. With c = a / b, ps >= c is
tested on integers: s_tq · b >= a · s_q. c = 1 gives DiS and DiSCO.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from disclosure_pipeline.measures.drawn_guesses import Binomials, highest_likely, lowest_likely
from disclosure_pipeline.measures.exact import SCALE, Floats, IntArray, Mask, percent, sum_by_position
from disclosure_pipeline.measures.frequency import FrequencyTable
from disclosure_pipeline.measures.words import figure


@dataclass(frozen=True)
class CertaintyCounts:
    """Numbers of GT records that add up over keys.

    claimed: records for whose q some level has at least the share c. right: records whose own level has it.
    If c is at most 1/2, several levels of a q can have it.
    """

    claimed: int
    right: int

    def times(self, units: int) -> CertaintyCounts:
        """Return the counts in units of 1 / `units`."""
        return CertaintyCounts(self.claimed * units, self.right * units)


@dataclass(frozen=True)
class Certainty:
    """DiS and DiSCO at a certainty, in percent of GT records; `precision` is DiSCO in percent of DiS."""

    DiS: float = figure(
        "claimed with that certainty",
        "People for whom one target value has at least that share among the synthetic records with their "
        "keys.",
    )
    DiSCO: float = figure(
        "claimed with that certainty and correct",
        "People whose own target value has at least that share among the synthetic records with their keys.",
    )
    precision: float = figure(
        "right among the claims",
        "Claims that are right.",
        denominator="confidential records about which something is claimed",
    )


def certainty(counts: CertaintyCounts, N_d: int) -> Certainty:
    """Compute the percentages."""
    return Certainty(
        DiS=percent(counts.claimed, N_d),
        DiSCO=percent(counts.right, N_d),
        precision=percent(counts.right, counts.claimed),
    )


def certainty_counts(f: FrequencyTable, d: IntArray, c: Fraction, no_guess: Mask) -> CertaintyCounts:
    """Count claims from SD about the GT records `d` of each cell."""
    if not len(f.q):
        return CertaintyCounts(0, 0)
    s = f.s * ~no_guess[f.t]
    enough = reaches_share(s, f.at_cells(f.sum_by_q(s)), c)
    return CertaintyCounts(f.total(d, f.at_cells(f.sum_by_q(enough) > 0)), f.total(d, enough))


def reaches_share(part: IntArray, whole: IntArray, c: Fraction) -> Mask:
    """Mark the parts that are not 0 and at least the share c of the whole."""
    return (part > 0) & (part * c.denominator >= whole * c.numerator)


_BITS = SCALE.bit_length() - 1
_AT_A_TIME = 1 << 19  # chances in one array


def _sum_products(people: IntArray, pair: IntArray, chances: Floats) -> int:
    """Return the sum of people times the chance of their pair, in units of 1 / `SCALE`."""
    pairs = zip(sum_by_position(pair, people, len(chances)).tolist(), chances.tolist(), strict=True)
    return sum(number * int(math.ldexp(chance, _BITS)) for number, chance in pairs)


def chances_to_be_claimed(own: IntArray, others: IntArray, c: Fraction, chance: float) -> Floats:
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
