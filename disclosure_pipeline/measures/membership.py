"""Membership: how well an attacker tells who took part, from the records of GT and of a holdout.

An attacker says "took part" of a record by SD. Of GT's records that is right (the true positives), of a
holdout's, which had no part, wrong (the false positives). Three attackers:

- whoever's keys, or whole record, are in SD took part: the advantage is iS of GT less that of the holdout
  (Yeom, Giacomelli, Fredrikson & Jha 2018);
- whoever is nearest to an SD record took part: the threshold is where 1 or 0.1 percent of the holdout are
  taken for members; of those at one distance, a share is drawn (Carlini et al. 2022). AUC is the chance that
  a member is nearer than a holdout record, ties half (DeLong, DeLong & Clarke-Pearson 1988 for its error).

What is ε, δ-differentially private keeps TPR <= e^ε FPR + δ for each of them, so that ln((TPR - δ) / FPR) is
ruled out where TPR is the lower end of its interval, and FPR the upper (Jagielski, Ullman & Oprea 2020). The
records of one SD stand for as many runs here: what differs from run to run for all of them at once is not in
the intervals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.measures.intervals import CONFIDENCE, Interval, clopper_pearson
from disclosure_pipeline.measures.words import NONE, POINTS, Words, described, figure, standard_error_of

YEOM, CARLINI, JAGIELSKI = "Yeom et al. 2018", "Carlini et al. 2022", "Jagielski, Ullman & Oprea 2020"
CLOPPER = "Clopper & Pearson 1934"

RULED_OUT = 0.999
"""Confidence that an ε is ruled out, over all attackers together."""

RATES = {"TPR_at_1": 0.01, "TPR_at_0_1": 0.001}


def _end(title: str, which: str, unit: str = "%") -> Words:
    return Words(
        f"{title}, {which} end", f"The {which} end of its interval.", unit, high_is="neither", source=CLOPPER
    )


def _advantage(by: str, known: str) -> Words:
    return Words(
        f"membership advantage by {by}",
        f"This many more of the people who took part than of others have {known} in the synthetic table.",
        POINTS,
        source=YEOM,
        finding=f"who took part is told by {by} with an advantage of {{value}}",
    )


def _rate(percent: str) -> Words:
    return Words(
        f"members found at {percent} false alarms",
        f"This many of the people who took part are found by their distance to the nearest synthetic record, "
        f"where {percent} of the others are taken for members.",
        source=CARLINI,
        finding=f"{{value}} of the members are found at {percent} false alarms",
    )


@dataclass(frozen=True)
class Membership:
    """Membership in one synthesis, beside a holdout. Intervals of 95 % (an advantage: of both its parts)."""

    advantage_keys: float = described(_advantage("keys", "their keys"))
    advantage_keys_low: float = described(_end("membership advantage by keys", "lower", POINTS))
    advantage_keys_high: float = described(_end("membership advantage by keys", "upper", POINTS))
    advantage_records: float = described(_advantage("whole records", "their whole record"))
    advantage_records_low: float = described(_end("membership advantage by records", "lower", POINTS))
    advantage_records_high: float = described(_end("membership advantage by records", "upper", POINTS))
    TPR_at_1: float = described(_rate("1 %"))
    TPR_at_1_low: float = described(_end("members found at 1 %", "lower"))
    TPR_at_1_high: float = described(_end("members found at 1 %", "upper"))
    TPR_at_0_1: float = described(_rate("0.1 %"))
    TPR_at_0_1_low: float = described(_end("members found at 0.1 %", "lower"))
    TPR_at_0_1_high: float = described(_end("members found at 0.1 %", "upper"))
    AUC: float = figure(
        "members nearer than others",
        "This often a person who took part is nearer to a synthetic record than one who did not; 50 % if "
        "nothing is told.",
        denominator="pairs of a member and another person",
        source="DeLong et al. 1988",
        finding="a member is nearer than another person in {value} of the pairs",
    )
    AUC_se: float = described(standard_error_of("AUC"))
    epsilon_ruled_out: float = figure(
        "ε that is ruled out",
        "No smaller ε can be true of what made the synthetic table, with 99.9 % confidence.",
        NONE,
        source=JAGIELSKI,
        finding="an ε below {value} is ruled out",
    )
    epsilon_claimed: float = figure(
        "ε that is claimed", "The ε that comes with the candidate.", NONE, high_is="neither"
    )
    epsilon_beyond_claim: float = figure(
        "ε beyond what is claimed",
        "The ε that is ruled out is so much larger than the claimed one; 0 without a claim.",
        NONE,
        source=JAGIELSKI,
        finding="the claimed ε is ruled out: it is at least {value} larger",
    )


@dataclass(frozen=True)
class Found:
    """People said to have taken part: of so many members, and of so many others."""

    members: float
    of_members: float
    others: float
    of_others: float

    def scale(self, per_member: float, per_other: float) -> Found:
        """Return the same in people, who have so many records each."""
        return Found(
            self.members / per_member,
            self.of_members / per_member,
            self.others / per_other,
            self.of_others / per_other,
        )

    def rates(self, confidence: float = CONFIDENCE) -> tuple[float, Interval, float, Interval]:
        """Return TPR with its interval, then FPR; shares of 1."""
        return (
            self.members / self.of_members,
            clopper_pearson(self.members, self.of_members, confidence),
            self.others / self.of_others,
            clopper_pearson(self.others, self.of_others, confidence),
        )


def find_by_distance(members: IntArray, others: IntArray, rate: float) -> Found:
    """Return who is found where that share of the others is: the nearest, of ties a share.

    >>> find_by_distance(np.array([0, 0, 5, 9]), np.array([1, 4, 5, 6]), 0.25)
    Found(members=2.0, of_members=4, others=1.0, of_others=4)
    """
    wanted = rate * len(others)
    ordered = np.sort(others)
    limit = ordered[min(int(wanted), len(others) - 1)]
    nearer, tied = int((others < limit).sum()), int((others == limit).sum())
    share = (wanted - nearer) / tied
    found = float((members < limit).sum() + share * (members == limit).sum())
    return Found(found, len(members), wanted, len(others))


def nearer_of_pairs(members: IntArray, others: IntArray) -> tuple[float, float]:
    """Return AUC of smaller distances of members, a share of 1, and its standard error; ties count half."""
    m, n = len(members), len(others)

    def share_below(values: IntArray, ordered: IntArray) -> np.ndarray:
        below, up_to = (np.searchsorted(ordered, values, side) for side in ("left", "right"))
        return (below + up_to) / (2 * len(ordered))

    of_members = 1 - share_below(members, np.sort(others))
    of_others = share_below(others, np.sort(members))
    AUC = float(of_members.mean())
    spread = sum(
        float(part.var(ddof=1)) / len(part) if len(part) > 1 else 0.25 for part in (of_members, of_others)
    )
    return AUC, max(math.sqrt(spread), 1 / (2 * max(m, n)))


def membership(
    keys: Found,
    records: Found,
    members: IntArray,
    others: IntArray,
    per_person: tuple[float, float] = (1, 1),
    claim: tuple[float, float] | None = None,
) -> Membership:
    """Return what the attackers tell; `keys` and `records`: people found in SD by them.

    `members`, `others`: distances of GT and holdout records to the nearest SD record. `per_person`: how many
    records a person has in GT and in the holdout. `claim`: ε and δ.
    """
    of_distance = {name: find_by_distance(members, others, rate) for name, rate in RATES.items()}
    attackers = [found.scale(*per_person) for found in (keys, records, *of_distance.values())]
    figures: dict[str, float] = {}
    for name, found in zip(("advantage_keys", "advantage_records"), attackers, strict=False):
        TPR, of_members, FPR, of_others = found.rates()
        figures[name] = 100 * (TPR - FPR)
        figures[f"{name}_low"] = 100 * (of_members[0] - of_others[1])
        figures[f"{name}_high"] = 100 * (of_members[1] - of_others[0])
    for name, found in zip(RATES, attackers[2:], strict=True):
        TPR, (low, high), _, _ = found.rates()
        figures |= {name: 100 * TPR, f"{name}_low": 100 * low, f"{name}_high": 100 * high}
    AUC, error = nearer_of_pairs(members, others)
    epsilon, delta = (math.nan, 0.0) if claim is None else claim
    ruled_out = max(rule_out(found, delta, len(attackers)) for found in attackers)
    return Membership(
        **figures,
        AUC=100 * AUC,
        AUC_se=100 * error * math.sqrt(max(per_person)),
        epsilon_ruled_out=ruled_out,
        epsilon_claimed=epsilon,
        epsilon_beyond_claim=0.0 if claim is None else max(0.0, ruled_out - epsilon),
    )


def rule_out(found: Found, delta: float, attackers: int = 1) -> float:
    """Return the largest ε that cannot be true, 0 where none is ruled out.

    Each of the attackers, and each end of an interval, takes its share of what may go wrong.

    >>> round(rule_out(Found(9000, 10_000, 100, 10_000), 0.0), 2)
    4.17
    """
    confidence = 1 - (1 - RULED_OUT) / attackers
    _, (TPR, _), _, (_, FPR) = found.rates(confidence)
    return max(0.0, math.log((TPR - delta) / FPR)) if delta < TPR else 0.0
