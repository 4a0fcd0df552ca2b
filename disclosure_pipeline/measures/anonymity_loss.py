"""The anonymity loss coefficient: what an attack gains over one that knows other people's records only.

Source: Francis & Wagner 2025, "Towards better attribute inference vulnerability measures" (arXiv:2507.01710).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from disclosure_pipeline.measures.certainty import CertaintyCounts
from disclosure_pipeline.measures.exact import percent
from disclosure_pipeline.measures.words import NONE, SHARE, figure

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
    PRC_others: float = figure(
        "privacy risk coefficient of other people's records",
        "Precision and recall of the intruder who reads other people's records, as one number.",
        NONE,
        high_is="neither",
        source="Anonymeter",
    )
    precision: float = figure(
        "right among the claims",
        "This many of the intruder's claims are right.",
        denominator="confidential records of whom something is claimed",
    )
    recall: float = figure("people claimed", "Of so many people something is claimed.")
    certainty: float = figure(
        "certainty of the intruder",
        "The share of agreeing records from which on the intruder claims something.",
        SHARE,
        high_is="neither",
    )
    precision_others: float = figure(
        "right among the claims from other people's records",
        "This many of the claims from other people's records are right.",
        denominator="confidential records of whom something is claimed",
        high_is="neither",
    )
    recall_others: float = figure(
        "people claimed from other people's records",
        "Of so many people something is claimed from other people's records.",
        high_is="neither",
    )
    certainty_others: float = figure(
        "certainty of the intruder with other people's records",
        "The share of agreeing records from which on that intruder claims something.",
        SHARE,
        high_is="neither",
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
