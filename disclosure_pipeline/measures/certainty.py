"""An intruder who acts on less than certainty: DiS and DiSCO where one level has at least a share c.

This project's own: one decoy among ten records of a person hides them from DiSCO, and not from this. Missing
target values are no guess: they are left out of the records to guess from. Shares are compared as integers,
for c = a / b.

The anonymity loss coefficient is what such an attack gains over one that knows other people's records only.
Source: Francis & Wagner 2025, "Towards better attribute inference vulnerability measures" (arXiv:2507.01710).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from disclosure_pipeline.measures.drawn_guesses import Binomials, Draw, highest_likely, lowest_likely
from disclosure_pipeline.measures.exact import SCALE, Floats, IntArray, Mask, percent, total
from disclosure_pipeline.measures.frequency import FrequencyTable, first_of_run
from disclosure_pipeline.measures.words import NONE, SHARE, figure, neutral


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
    """DiS and DiSCO at a certainty, in percent of GT records; `precision` is DiSCO in percent of DiS."""

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
    """Return the GT records whose level is claimed from SD, and claimed rightly."""
    if not len(f.q):
        return CertaintyCounts(0, 0)
    s = f.s * ~no_guess[f.t]
    enough = reaches_share(s, f.at_cells(f.sum_by_q(s)), c)
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
    right = reaches_share(r - own, others, c)
    largest = f.at_cells(f.largest_by_q(r))
    first = np.zeros(len(r), dtype=bool)
    best = np.flatnonzero(r == largest)
    first[best[first_of_run(f.q[best])]] = True
    second = f.at_cells(f.largest_by_q(np.where(first, 0, r)))
    claimed = right | reaches_share(np.where(first & own, second, largest), others, c)
    return CertaintyCounts(total(d, claimed), total(d, right))


def reaches_share(part: IntArray, whole: IntArray, c: Fraction) -> Mask:
    """Return whether a part is not 0, and at least the share c of the whole."""
    return (part > 0) & (part * c.denominator >= whole * c.numerator)


_BITS = SCALE.bit_length() - 1
_AT_A_TIME = 1 << 19  # numbers of drawn records, of some pairs of counts


def drawn_certainty_counts(
    f: FrequencyTable, r: IntArray, c: Fraction, no_guess: Mask, draw: Draw
) -> CertaintyCounts:
    """Return the GT records whose level is claimed, and claimed rightly, in units of 1 / `SCALE`.

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
    return CertaintyCounts(*(_sum_products(part, pair.reshape(-1), chances) for part in (claimed, right)))


def _sum_products(people: IntArray, pair: IntArray, chances: Floats) -> int:
    """Return the sum of people times chances, in units of 1 / `SCALE`; the order of records is irrelevant."""
    sums = np.zeros(len(chances), dtype=np.int64)
    np.add.at(sums, pair, people)
    of_pairs = zip(sums.tolist(), chances.tolist(), strict=True)
    return sum(number * int(math.ldexp(chance, _BITS)) for number, chance in of_pairs)


def chances_to_be_claimed(own: IntArray, others: IntArray, c: Fraction, chance: float) -> Floats:
    """Return the chances of `own` records with a level and `others` without, drawn alike (shape: pairs)."""
    binomials = Binomials.tabulate(np.unique(np.concatenate((own, others))), chance)
    start = np.maximum(lowest_likely(own, chance), 1)
    steps = np.maximum(highest_likely(own, chance) - start + 1, 1)
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


_LEAST_RECALL = 1e-4
_ALPHA = 3


@dataclass(frozen=True)
class AnonymityLoss:
    """ALC and the PRC are coefficients of at most 1; precision and recall are in percent.

    ALC: 1 where the attack tells all that other people's records do not, 0 or less where it tells no more.
    Precision (of the GT records of whom something is claimed), recall (of all GT records: those of whom
    something is claimed) and certainty are those of the attack with the largest PRC, and of the others' one.
    Where nothing is claimed, precision is NaN and PRC 0.
    """

    ALC: float = figure(
        "anonymity loss coefficient",
        "What the synthetic table adds to other people's records, of what could be added: 1"
        " is all, 0 nothing.",
        NONE,
        source="Anonymeter",
    )
    PRC: float = figure(
        "privacy risk coefficient",
        "Precision and recall of the intruder who reads the synthetic table, as one number.",
        NONE,
        source="Anonymeter",
    )
    PRC_others: float = neutral(
        "privacy risk coefficient of other people's records",
        "Precision and recall of the intruder who reads other people's records, as one number.",
        NONE,
        source="Anonymeter",
    )
    precision: float = figure(
        "right among the claims",
        "This many of the intruder's claims are right.",
        denominator="confidential records of whom something is claimed",
    )
    recall: float = figure("people claimed", "Of so many people something is claimed.")
    certainty: float = neutral(
        "certainty of the intruder",
        "The share of agreeing records from which on the intruder claims something.",
        SHARE,
    )
    precision_others: float = neutral(
        "right among the claims from other people's records",
        "This many of the claims from other people's records are right.",
        denominator="confidential records of whom something is claimed",
    )
    recall_others: float = neutral(
        "people claimed from other people's records",
        "Of so many people something is claimed from other people's records.",
    )
    certainty_others: float = neutral(
        "certainty of the intruder with other people's records",
        "The share of agreeing records from which on that intruder claims something.",
        SHARE,
    )


def precision_recall_coefficient(precision: float, recall: float) -> float:
    """Return PRC of two shares: precision, reduced where recall is low; recall alone where that is tiny."""
    if recall <= _LEAST_RECALL:
        return recall
    return (1 - _discount(math.log10(recall))) * precision


def _discount(log10_recall: float) -> float:
    """Return how much less precision counts where recall is low."""
    return (log10_recall / math.log10(_LEAST_RECALL)) ** _ALPHA


def _shortfall(counts: CertaintyCounts, records: int) -> float:
    """Return 1 - PRC from the integers: where nearly all is told rightly, PRC has few digits left for it."""
    if counts.claimed / records <= _LEAST_RECALL:
        return 1 - counts.claimed / records
    lost = _discount(math.log1p((counts.claimed - records) / records) / math.log(10))
    return (counts.claimed - counts.right + lost * counts.right) / counts.claimed


def anonymity_loss(
    attack: Mapping[Fraction, CertaintyCounts], others: Mapping[Fraction, CertaintyCounts], records: int
) -> AnonymityLoss:
    """Compute the coefficient from the counts at each certainty, of so many GT records, in equal units.

    What others tell for certain is no loss.
    """
    PRC, c = _best(attack, records)
    PRC_others, c_others = _best(others, records)
    of_attack, of_others = attack[c], others[c_others]
    left, left_of_others = _shortfall(of_attack, records), _shortfall(of_others, records)
    return AnonymityLoss(
        ALC=(left_of_others - left) / left_of_others if left_of_others > 0 else 0.0,
        PRC=PRC,
        PRC_others=PRC_others,
        precision=percent(of_attack.right, of_attack.claimed),
        recall=percent(of_attack.claimed, records),
        certainty=float(c),
        precision_others=percent(of_others.right, of_others.claimed),
        recall_others=percent(of_others.claimed, records),
        certainty_others=float(c_others),
    )


def _best(counts: Mapping[Fraction, CertaintyCounts], records: int) -> tuple[float, Fraction]:
    """Return the largest PRC and its certainty; of several the largest certainty."""
    return max(
        (
            precision_recall_coefficient(at.right / at.claimed, at.claimed / records) if at.claimed else 0.0,
            c,
        )
        for c, at in counts.items()
    )
