"""Certainty: DiS and DiSCO for an intruder who acts if a level has at least a share c of the records of q.

This project's own. One decoy among ten records hides a person from DiSCO, but not from DiSCO at certainty
0.9. Records without a target value are left out of the records to guess from. With c = a / b, ps >= c is
tested on integers: s_tq · b >= a · s_q. c = 1 gives DiS and DiSCO.

The anonymity loss coefficient compares such an attack with one on other people's records. Source: Francis &
Wagner 2025, "Towards better attribute inference vulnerability measures" (arXiv:2507.01710).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from disclosure_pipeline.measures.drawn_guesses import Binomials, Draw, highest_likely, lowest_likely
from disclosure_pipeline.measures.exact import SCALE, Floats, IntArray, Mask, percent, sum_by_position, total
from disclosure_pipeline.measures.frequency import FrequencyTable, first_of_run
from disclosure_pipeline.measures.words import NONE, SHARE, figure, neutral


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
    return CertaintyCounts(total(d, f.at_cells(f.sum_by_q(enough) > 0)), total(d, enough))


def certainty_counts_of_others(
    f: FrequencyTable, d: IntArray, c: Fraction, no_guess: Mask
) -> CertaintyCounts:
    """Count claims about the same records from the other GT records."""
    if not len(f.q):
        return CertaintyCounts(0, 0)
    may_be = ~no_guess[f.t]
    r = f.d * may_be
    own = r > 0  # the person's own record is left out
    others = f.at_cells(f.sum_by_q(r)) - own
    right = reaches_share(r - own, others, c)
    largest = f.at_cells(f.largest_by_q(r))
    first = np.zeros(len(r), dtype=bool)
    best = np.flatnonzero(r == largest)
    first[best[first_of_run(f.q[best])]] = True
    second = f.at_cells(f.largest_by_q(np.where(first, 0, r)))
    claimed = right | reaches_share(np.where(first & own, second, largest), others, c)
    return CertaintyCounts(total(d, claimed), total(d, right))


def reaches_share(part: IntArray, whole: IntArray, c: Fraction) -> Mask:
    """Mark the parts that are not 0 and at least the share c of the whole."""
    return (part > 0) & (part * c.denominator >= whole * c.numerator)


_BITS = SCALE.bit_length() - 1
_AT_A_TIME = 1 << 19  # chances in one array


def drawn_certainty_counts(
    f: FrequencyTable, r: IntArray, c: Fraction, no_guess: Mask, draw: Draw
) -> CertaintyCounts:
    """Return the expected counts of claims from a draw of the records `r`, in units of 1 / `SCALE`.

    `r` are the records of each cell (shape: cells): GT's if the draw leaves each person out. `no_guess` marks
    target levels (shape: targets). c is above 1/2 and at most 1.
    """
    may_be = ~no_guess[f.t]
    r = r * may_be
    rest = f.per_key(r)[f.q] - r
    people = f.per_key(f.d)[f.q]
    # For a level of each q: its records, those of other levels, people it is claimed of, people who have it.
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
    return CertaintyCounts(*(_sum_products(part, pair.reshape(-1), chances) for part in (claimed, right)))


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


_LEAST_RECALL = 1e-4
_ALPHA = 3


@dataclass(frozen=True)
class AnonymityLoss:
    """ALC and PRC are coefficients of at most 1; precision and recall are in percent.

    ALC: 1 if the attack discloses all that other people's records do not, 0 or less if it discloses no more.
    precision, recall, certainty: those of the attack with the largest PRC. Precision is in percent of the GT
    records about which something is claimed; recall is these records in percent of all GT records. If nothing
    is claimed, precision is NaN and PRC 0.
    """

    ALC: float = figure(
        "anonymity loss coefficient",
        "What the synthetic table discloses beyond other people's records, as a share of what these leave "
        "undisclosed: 1 is all of it, 0 none.",
        NONE,
        source="Anonymeter",
    )
    PRC: float = figure(
        "privacy risk coefficient",
        "Precision and recall of an intruder with the synthetic table, as one number.",
        NONE,
        source="Anonymeter",
    )
    PRC_others: float = neutral(
        "privacy risk coefficient of other people's records",
        "Precision and recall of an intruder with other people's records, as one number.",
        NONE,
        source="Anonymeter",
    )
    precision: float = figure(
        "right among the claims",
        "The intruder's claims that are right.",
        denominator="confidential records about which something is claimed",
    )
    recall: float = figure("people claimed", "People about whom the intruder claims something.")
    certainty: float = neutral(
        "certainty of the intruder",
        "The share of agreeing records from which the intruder claims something.",
        SHARE,
    )
    precision_others: float = neutral(
        "right among the claims from other people's records",
        "Claims from other people's records that are right.",
        denominator="confidential records about which something is claimed",
    )
    recall_others: float = neutral(
        "people claimed from other people's records",
        "People about whom something is claimed from other people's records.",
    )
    certainty_others: float = neutral(
        "certainty of the intruder with other people's records",
        "The share of agreeing records from which that intruder claims something.",
        SHARE,
    )


def precision_recall_coefficient(precision: float, recall: float) -> float:
    """Return PRC of two shares: precision, reduced for low recall; recall itself if that is tiny."""
    if recall <= _LEAST_RECALL:
        return recall
    return (1 - _discount(math.log10(recall))) * precision


def _discount(log10_recall: float) -> float:
    """Return the share by which a low recall reduces precision."""
    return (log10_recall / math.log10(_LEAST_RECALL)) ** _ALPHA


def _shortfall(counts: CertaintyCounts, records: int) -> float:
    """Return 1 - PRC from the integers, because the subtraction loses digits if PRC is close to 1."""
    if counts.claimed / records <= _LEAST_RECALL:
        return 1 - counts.claimed / records
    lost = _discount(math.log1p((counts.claimed - records) / records) / math.log(10))
    return (counts.claimed - counts.right + lost * counts.right) / counts.claimed


def anonymity_loss(
    attack: Mapping[Fraction, CertaintyCounts], others: Mapping[Fraction, CertaintyCounts], records: int
) -> AnonymityLoss:
    """Compute from the counts at each certainty; they and `records` (GT's) are in the same unit.

    ALC is 0 if the others' PRC is 1.
    """
    PRC, c = _best(attack, records)
    PRC_others, c_others = _best(others, records)
    attack_counts, others_counts = attack[c], others[c_others]
    shortfall, others_shortfall = (_shortfall(counts, records) for counts in (attack_counts, others_counts))
    return AnonymityLoss(
        ALC=(others_shortfall - shortfall) / others_shortfall if others_shortfall > 0 else 0.0,
        PRC=PRC,
        PRC_others=PRC_others,
        precision=percent(attack_counts.right, attack_counts.claimed),
        recall=percent(attack_counts.claimed, records),
        certainty=float(c),
        precision_others=percent(others_counts.right, others_counts.claimed),
        recall_others=percent(others_counts.claimed, records),
        certainty_others=float(c_others),
    )


def _best(counts: Mapping[Fraction, CertaintyCounts], records: int) -> tuple[float, Fraction]:
    """Return the largest PRC and its certainty; of ties, the largest certainty."""
    return max(
        (
            precision_recall_coefficient(at.right / at.claimed, at.claimed / records) if at.claimed else 0.0,
            c,
        )
        for c, at in counts.items()
    )
