"""Figures of a holdout beside those of GT, of people whose records had no part in making SD; and membership.

What is told record by record (iS, DiSCO, DCAP, the guess) does not depend on how many records there are.
Whether a record is unique does: there both are brought to the smaller of both sizes, on average over all
draws of so many records.

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

from disclosure_pipeline.measures.exact import Grouped, IntArray, percent
from disclosure_pipeline.measures.samples import (
    CONFIDENCE,
    Interval,
    chance_of_none_drawn,
    clopper_pearson,
    newcombe,
)
from disclosure_pipeline.measures.words import (
    NONE,
    POINTS,
    Words,
    described,
    figure,
    interval_end,
    neutral,
    points,
    standard_error_of,
)

_NEWCOMBE = "Newcombe 1998"

SHARED_CONFIDENCE = 0.999
"""The confidence that a holdout shares records with GT: a false alarm would be a nuisance."""


@dataclass(frozen=True)
class MatchedKeys:
    """Uniqueness in a draw of the q that both tables have; integers that add up over keys.

    hits: SD records by d_q. alone: GT records whose q one SD record has, by d_q.
    """

    hits: Grouped
    alone: Grouped


def matched_keys(d_q: IntArray, s_q: IntArray, keys: IntArray | int = 1) -> MatchedKeys:
    """Count from the counts of each q; an entry can stand for several `keys` with equal counts."""
    matched = np.flatnonzero((d_q > 0) & (s_q > 0))
    d, s = d_q[matched].astype(np.int64), s_q[matched].astype(np.int64)
    number = keys if isinstance(keys, int) else keys[matched]
    return MatchedKeys(Grouped.sum_by_group(d, s * number), Grouped.sum_by_group(d, d * (s == 1) * number))


def uniqueness_of_draw(counts: MatchedKeys, records: int, n: int, N_s: int) -> tuple[float, float]:
    """Return repU and unique_hits, in percent, on average over draws of n of so many records."""

    def none_of_others(grouped: Grouped) -> np.ndarray:
        return chance_of_none_drawn(grouped.groups - 1, records - 1, n - 1)

    alone = float((counts.alone.sums * none_of_others(counts.alone)).sum())
    hits = float((counts.hits.sums * counts.hits.groups * none_of_others(counts.hits)).sum())
    return 100 * alone / records, 100 * hits * n / records / N_s


@dataclass(frozen=True)
class HoldoutComparison:
    """A figure of GT and of the holdout, in percent, and GT's less the holdout's in percentage points.

    With Newcombe's interval for two independent shares: records of one q are told the same, so it is too
    narrow where many records share one.
    """

    ground_truth: float = figure(
        "figure of the confidential records", "What the synthetic table tells of them."
    )
    holdout: float = neutral(
        "figure of the holdout",
        "What the synthetic table tells of people who had no part in making it.",
        denominator="holdout records",
    )
    difference: float = points(
        "beyond the holdout",
        "So much more the synthetic table tells of the people whom it was made from than of others.",
    )
    difference_low: float = points(
        "beyond the holdout, low end", "The lower end of the interval of the difference.", source=_NEWCOMBE
    )
    difference_high: float = points(
        "beyond the holdout, high end", "The upper end of the interval of the difference.", source=_NEWCOMBE
    )


def compare_with_holdout(of_GT: float, N_d: float, of_holdout: float, records: float) -> HoldoutComparison:
    """Put two percentages, of N_d and of so many records (or units of them), side by side."""
    low, high = newcombe(of_GT / 100 * N_d, N_d, of_holdout / 100 * records, records)
    return HoldoutComparison(of_GT, of_holdout, of_GT - of_holdout, 100 * low, 100 * high)


@dataclass(frozen=True)
class SharedRecords:
    """Percent of the holdout's records that equal a GT record, and one that no other GT record equals.

    The others: of the GT records, what records of other people show (`measures.copies`).
    """

    copies: float
    copies_others: float
    unique_copies: float
    unique_copies_others: float
    beyond: bool


def shared_records(
    copies: int, unique_copies: int, records: int, repeated: int, pairs: float, N_d: int
) -> SharedRecords:
    """Return whether a holdout has more of GT's records than a fresh sample would: `beyond`."""
    all_of, unique_of = (copies, repeated), (unique_copies, round(2 * pairs))
    lows = [newcombe(part, records, other, N_d, SHARED_CONFIDENCE)[0] for part, other in (all_of, unique_of)]
    return SharedRecords(
        percent(copies, records),
        percent(repeated, N_d),
        percent(unique_copies, records),
        percent(round(2 * pairs), N_d),
        max(lows) > 0,
    )


YEOM, CARLINI, JAGIELSKI = "Yeom et al. 2018", "Carlini et al. 2022", "Jagielski, Ullman & Oprea 2020"
CLOPPER = "Clopper & Pearson 1934"

RULED_OUT = 0.999
"""Confidence that an ε is ruled out, over all attackers together."""

RATES = {"TPR_at_1": 0.01, "TPR_at_0_1": 0.001}


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
    advantage_keys_low: float = interval_end("membership advantage by keys", "lower", POINTS, source=CLOPPER)
    advantage_keys_high: float = interval_end("membership advantage by keys", "upper", POINTS, source=CLOPPER)
    advantage_records: float = described(_advantage("whole records", "their whole record"))
    advantage_records_low: float = interval_end(
        "membership advantage by records", "lower", POINTS, source=CLOPPER
    )
    advantage_records_high: float = interval_end(
        "membership advantage by records", "upper", POINTS, source=CLOPPER
    )
    TPR_at_1: float = described(_rate("1 %"))
    TPR_at_1_low: float = interval_end("members found at 1 %", "lower", source=CLOPPER)
    TPR_at_1_high: float = interval_end("members found at 1 %", "upper", source=CLOPPER)
    TPR_at_0_1: float = described(_rate("0.1 %"))
    TPR_at_0_1_low: float = interval_end("members found at 0.1 %", "lower", source=CLOPPER)
    TPR_at_0_1_high: float = interval_end("members found at 0.1 %", "upper", source=CLOPPER)
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
    epsilon_claimed: float = neutral("ε that is claimed", "The ε that comes with the candidate.", NONE)
    epsilon_beyond_claim: float = figure(
        "ε beyond what is claimed",
        "The ε that is ruled out is so much larger than the claimed one; 0 without a claim.",
        NONE,
        source=JAGIELSKI,
        finding="the claimed ε is ruled out: it is at least {value} larger",
    )


@dataclass(frozen=True)
class MembershipClaims:
    """People said to have taken part: of so many members, and of so many others."""

    members: float
    of_members: float
    others: float
    of_others: float

    def scale(self, per_member: float, per_other: float) -> MembershipClaims:
        """Return the same in people, who have so many records each."""
        return MembershipClaims(
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


def claim_by_distance(members: IntArray, others: IntArray, rate: float) -> MembershipClaims:
    """Return who is found where that share of the others is: the nearest, of ties a share.

    >>> claim_by_distance(np.array([0, 0, 5, 9]), np.array([1, 4, 5, 6]), 0.25)
    MembershipClaims(members=2.0, of_members=4, others=1.0, of_others=4)
    """
    wanted = rate * len(others)
    ordered = np.sort(others)
    limit = ordered[min(int(wanted), len(others) - 1)]
    nearer, tied = int((others < limit).sum()), int((others == limit).sum())
    share = (wanted - nearer) / tied
    found = float((members < limit).sum() + share * (members == limit).sum())
    return MembershipClaims(found, len(members), wanted, len(others))


def area_under_curve(members: IntArray, others: IntArray) -> tuple[float, float]:
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
    keys: MembershipClaims,
    records: MembershipClaims,
    members: IntArray,
    others: IntArray,
    per_person: tuple[float, float] = (1, 1),
    claim: tuple[float, float] | None = None,
) -> Membership:
    """Return what the attackers tell; `keys` and `records`: people found in SD by them.

    `members`, `others`: distances of GT and holdout records to the nearest SD record. `per_person`: how many
    records a person has in GT and in the holdout. `claim`: ε and δ.
    """
    of_distance = {name: claim_by_distance(members, others, rate) for name, rate in RATES.items()}
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
    AUC, error = area_under_curve(members, others)
    epsilon, delta = (math.nan, 0.0) if claim is None else claim
    ruled_out = max(find_ruled_out_epsilon(found, delta, len(attackers)) for found in attackers)
    return Membership(
        **figures,
        AUC=100 * AUC,
        AUC_se=100 * error * math.sqrt(max(per_person)),
        epsilon_ruled_out=ruled_out,
        epsilon_claimed=epsilon,
        epsilon_beyond_claim=0.0 if claim is None else max(0.0, ruled_out - epsilon),
    )


def find_ruled_out_epsilon(found: MembershipClaims, delta: float, attackers: int = 1) -> float:
    """Return the largest ε that cannot be true, 0 where none is ruled out.

    Each of the attackers, and each end of an interval, takes its share of what may go wrong.

    >>> round(find_ruled_out_epsilon(MembershipClaims(9000, 10_000, 100, 10_000), 0.0), 2)
    4.17
    """
    confidence = 1 - (1 - RULED_OUT) / attackers
    _, (TPR, _), _, (_, FPR) = found.rates(confidence)
    return max(0.0, math.log((TPR - delta) / FPR)) if delta < TPR else 0.0
