"""Holdout figures and membership inference; a holdout has people whose records had no part in making SD.

iS, DiSCO, DCAP and the guess are computed record by record and do not depend on the number of records.
Uniqueness does: there, the larger of GT and holdout is reduced to the smaller, averaged over all draws.

A membership attacker claims of a record that it took part. Claims about GT records are true positives,
claims about holdout records false positives. Three attackers claim it of a record

- whose keys, or whose whole record, are in SD: the advantage is iS of GT minus that of the holdout (Yeom,
  Giacomelli, Fredrikson & Jha 2018);
- that is near an SD record: the threshold distance is the one at which 1 or 0.1 percent of the holdout are
  claimed, counting a share of those at exactly that distance (Carlini et al. 2022). Only a holdout with ten
  such records or more tells where that distance is. AUC is the chance that a member is nearer than a holdout
  record, ties half (standard error: DeLong, DeLong & Clarke-Pearson 1988).

(ε, δ)-differential privacy implies TPR <= e^ε FPR + δ for every attacker. So any ε below ln((TPR - δ) / FPR)
is ruled out, with the lower end of the interval of TPR and the upper end of that of FPR (Jagielski, Ullman &
Oprea 2020). The records of one SD stand in for many runs: variation between runs that affects all records
alike is not in the intervals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from disclosure_pipeline.measures.entry import Figure, Place, show_column
from disclosure_pipeline.measures.exact import IntArray, percent
from disclosure_pipeline.measures.people import ONCE_IN
from disclosure_pipeline.measures.samples import (
    CONFIDENCE,
    Interval,
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
    words_of_fields,
)

_NEWCOMBE = "Newcombe 1998"

SHARED_CONFIDENCE = 0.999
"""Confidence with which a holdout is said to share records with GT; high, to avoid false alarms."""


@dataclass(frozen=True)
class HoldoutComparison:
    """A figure of GT and of the holdout in percent, and their difference in percentage points.

    The interval is Newcombe's for two independent shares. Records with the same q have the same outcome, so
    it is too narrow if many records share a q.
    """

    ground_truth: float = figure(
        "figure of the confidential records", "What the synthetic table discloses about them."
    )
    holdout: float = neutral(
        "figure of the holdout",
        "What the synthetic table discloses about people who had no part in making it.",
        denominator="holdout records",
    )
    difference: float = points(
        "beyond the holdout",
        "How much more the synthetic table discloses about the people it was made from than about others.",
    )
    difference_low: float = points(
        "beyond the holdout, low end", "The lower end of the interval of the difference.", source=_NEWCOMBE
    )
    difference_high: float = points(
        "beyond the holdout, high end", "The upper end of the interval of the difference.", source=_NEWCOMBE
    )


def compare_with_holdout(
    ground_truth: float, N_d: float, holdout: float, records: float
) -> HoldoutComparison:
    """Compare a percentage of N_d GT records with one of `records` holdout records (or units)."""
    low, high = newcombe(ground_truth / 100 * N_d, N_d, holdout / 100 * records, records)
    return HoldoutComparison(ground_truth, holdout, ground_truth - holdout, 100 * low, 100 * high)


@dataclass(frozen=True)
class SharedRecords:
    """Percent of the holdout's records that equal a GT record, and that equal exactly one.

    copies_others, unique_copies_others: percent of the GT records, as in `copies.Copies`. beyond: whether the
    holdout exceeds these beyond chance.
    """

    copies: float
    copies_others: float
    unique_copies: float
    unique_copies_others: float
    beyond: bool


def shared_records(
    copies: int, unique_copies: int, records: int, repeated: int, pairs: float, N_d: int
) -> SharedRecords:
    """Compare the GT records in a holdout with those that a fresh sample would have.

    `copies`, `unique_copies`: holdout records that equal a GT record, and exactly one. `repeated`, `pairs`:
    GT records that equal another one, and pairs of them (f2).
    """
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
"""Joint confidence, over all attackers, that an ε is ruled out."""

RATES = {"TPR_at_1": 0.01, "TPR_at_0_1": 0.001}

_FEWEST_CLAIMED = 10
"""Holdout records that must be claimed at a rate: fewer do not tell the distance at which it is reached."""


_BY_KEYS, _BY_RECORDS = ("keys", "their keys"), ("whole records", "their whole record")


def _advantage(by: str, known: str) -> Words:
    return Words(
        f"membership advantage by {by}",
        f"How many more of the people who took part than of others have {known} in the synthetic table.",
        POINTS,
        source=YEOM,
        finding=f"{by} reveal who took part with an advantage of {{value}}",
    )


def _advantage_beyond_chance(by: str, known: str) -> Words:
    words = _advantage(by, known)
    return replace(
        words,
        title=f"{words.title}, beyond chance",
        sentence=f"{words.sentence} At most 0 where chance alone reaches it.",
    )


def _rate(percent: str) -> Words:
    return Words(
        f"members found at {percent} false alarms",
        f"People who took part and are recognised by their distance to the nearest synthetic record, at the "
        f"threshold where {percent} of the others are taken for members; missing where the holdout is too "
        "small to tell that threshold.",
        source=CARLINI,
        finding=f"{{value}} of the members are found at {percent} false alarms",
    )


@dataclass(frozen=True)
class Membership:
    """Membership inference on one synthesis. Intervals are of 95 % (for an advantage: of both its parts).

    advantage_…_chance: the advantage if it is beyond chance, otherwise at most 0. It is beyond chance if
    Newcombe's interval lies above 0, as it does once in `ONCE_IN` tables that reveal nothing. TPR_at_…: NaN
    where the holdout has fewer than ten records at that rate. Their intervals combine the error of the
    claimed members with that of the threshold, whose rate among all others has a beta distribution.
    """

    advantage_keys: float = described(_advantage(*_BY_KEYS))
    advantage_keys_chance: float = described(_advantage_beyond_chance(*_BY_KEYS))
    advantage_keys_low: float = interval_end("membership advantage by keys", "lower", POINTS, source=CLOPPER)
    advantage_keys_high: float = interval_end("membership advantage by keys", "upper", POINTS, source=CLOPPER)
    advantage_records: float = described(_advantage(*_BY_RECORDS))
    advantage_records_chance: float = described(_advantage_beyond_chance(*_BY_RECORDS))
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
        "How often a person who took part is nearer to a synthetic record than one who did not; 50 % if "
        "nothing is disclosed.",
        denominator="pairs of a member and another person",
        source="DeLong et al. 1988",
        finding="a member is nearer than another person in {value} of the pairs",
    )
    AUC_se: float = described(standard_error_of("AUC"))
    epsilon_ruled_out: float = figure(
        "ε that is ruled out",
        "With 99.9 % confidence, the synthesizer's ε is not smaller than this.",
        NONE,
        source=JAGIELSKI,
        finding="an ε below {value} is ruled out",
    )
    epsilon_claimed: float = neutral("ε that is claimed", "The ε that is claimed for the candidate.", NONE)
    epsilon_beyond_claim: float = figure(
        "ε beyond what is claimed",
        "How much larger the ε that is ruled out is than the claimed one; 0 without a claim.",
        NONE,
        source=JAGIELSKI,
        finding="the claimed ε is ruled out: it is at least {value} larger",
    )


@dataclass(frozen=True)
class MembershipClaims:
    """Numbers of members and of others, and how many of each are claimed to have taken part."""

    claimed_members: float
    members: float
    claimed_others: float
    others: float

    def scale(self, per_member: float, per_other: float) -> MembershipClaims:
        """Return the numbers in people, given the records per member and per other person."""
        return MembershipClaims(
            self.claimed_members / per_member,
            self.members / per_member,
            self.claimed_others / per_other,
            self.others / per_other,
        )

    def rates(self, confidence: float = CONFIDENCE) -> tuple[float, Interval, float, Interval]:
        """Return TPR, its interval, FPR, and its interval, as shares of 1."""
        return (
            self.claimed_members / self.members,
            clopper_pearson(self.claimed_members, self.members, confidence),
            self.claimed_others / self.others,
            clopper_pearson(self.claimed_others, self.others, confidence),
        )

    def find_advantage_beyond_chance(self) -> float:
        """Return TPR - FPR (a share of 1) if it is beyond chance, otherwise at most 0."""
        advantage = self.claimed_members / self.members - self.claimed_others / self.others
        counts = (self.claimed_members, self.members, self.claimed_others, self.others)
        low, _ = newcombe(*counts, confidence=1 - 2 / ONCE_IN)
        return advantage if low > 0 else min(advantage, 0.0)


def claim_by_distance(members: IntArray, others: IntArray, rate: float) -> MembershipClaims:
    """Claim membership of the nearest records, up to the distance at which `rate` of the others are claimed.

    Of records at exactly that distance, a share is counted.

    >>> claim_by_distance(np.array([0, 0, 5, 9]), np.array([1, 4, 5, 6]), 0.25)
    MembershipClaims(claimed_members=2.0, members=4, claimed_others=1.0, others=4)
    """
    claimed_others = rate * len(others)
    ordered = np.sort(others)
    limit = ordered[min(int(claimed_others), len(others) - 1)]
    nearer, tied = int((others < limit).sum()), int((others == limit).sum())
    share = (claimed_others - nearer) / tied
    claimed = float((members < limit).sum() + share * (members == limit).sum())
    return MembershipClaims(claimed, len(members), claimed_others, len(others))


def find_rate_of_members(
    members: IntArray, others: IntArray, rate: float, per_person: tuple[float, float] = (1, 1)
) -> tuple[float, float, float]:
    """Return TPR at a false positive rate and the ends of its interval, as shares of 1.

    NaN if the others are too few for the rate. The interval combines the error of TPR at a given threshold
    with that of the threshold, as Newcombe's interval combines two shares.
    """
    at_rate = claim_by_distance(members, others, rate)
    people = at_rate.scale(*per_person)
    if people.claimed_others < _FEWEST_CLAIMED * (1 - 1e-9):
        return math.nan, math.nan, math.nan
    TPR, (low, high), _, rates = people.rates()
    lower, upper = (claim_by_distance(members, others, end).claimed_members / len(members) for end in rates)
    return (
        TPR,
        max(0.0, TPR - math.hypot(TPR - low, TPR - lower)),
        min(1.0, TPR + math.hypot(high - TPR, upper - TPR)),
    )


def area_under_curve(members: IntArray, others: IntArray) -> tuple[float, float]:
    """Return the AUC of members being nearer (a share of 1) and its standard error; ties count half."""

    def share_below(values: IntArray, ordered: IntArray) -> np.ndarray:
        below, up_to = (np.searchsorted(ordered, values, side) for side in ("left", "right"))
        return (below + up_to) / (2 * len(ordered))

    member_shares = 1 - share_below(members, np.sort(others))
    other_shares = share_below(others, np.sort(members))
    AUC = float(member_shares.mean())
    spread = sum(
        float(shares.var(ddof=1)) / len(shares) if len(shares) > 1 else 0.25
        for shares in (member_shares, other_shares)
    )
    return AUC, max(math.sqrt(spread), 1 / (2 * max(len(members), len(others))))


def membership(
    keys: MembershipClaims,
    records: MembershipClaims,
    members: IntArray,
    others: IntArray,
    per_person: tuple[float, float] = (1, 1),
    claim: tuple[float, float] | None = None,
) -> Membership:
    """Compute the attackers' figures.

    Args:
        keys: Records whose keys are in SD.
        records: Records that are in SD as a whole.
        members: Distances of GT records to the nearest SD record.
        others: Distances of holdout records to the nearest SD record.
        per_person: Records per person in GT and in the holdout.
        claim: The claimed ε and δ.
    """
    by_distance = [claim_by_distance(members, others, rate) for rate in RATES.values()]
    attackers = [claims.scale(*per_person) for claims in (keys, records, *by_distance)]
    figures: dict[str, float] = {}
    for name, claims in zip(("advantage_keys", "advantage_records"), attackers, strict=False):
        TPR, TPR_interval, FPR, FPR_interval = claims.rates()
        figures[name] = 100 * (TPR - FPR)
        figures[f"{name}_chance"] = 100 * claims.find_advantage_beyond_chance()
        figures[f"{name}_low"] = 100 * (TPR_interval[0] - FPR_interval[1])
        figures[f"{name}_high"] = 100 * (TPR_interval[1] - FPR_interval[0])
    for name, rate in RATES.items():
        TPR, low, high = find_rate_of_members(members, others, rate, per_person)
        figures |= {name: 100 * TPR, f"{name}_low": 100 * low, f"{name}_high": 100 * high}
    AUC, error = area_under_curve(members, others)
    epsilon, delta = (math.nan, 0.0) if claim is None else claim
    ruled_out = max(find_ruled_out_epsilon(claims, delta, len(attackers)) for claims in attackers)
    return Membership(
        **figures,
        AUC=100 * AUC,
        AUC_se=100 * error * math.sqrt(max(per_person)),
        epsilon_ruled_out=ruled_out,
        epsilon_claimed=epsilon,
        epsilon_beyond_claim=0.0 if claim is None else max(0.0, ruled_out - epsilon),
    )


def find_ruled_out_epsilon(claims: MembershipClaims, delta: float, attackers: int = 1) -> float:
    """Return the largest ε that one attacker rules out, 0 if none.

    The error probability of `RULED_OUT` is divided by the number of attackers and the ends of the intervals.

    >>> round(find_ruled_out_epsilon(MembershipClaims(9000, 10_000, 100, 10_000), 0.0), 2)
    4.17
    """
    confidence = 1 - (1 - RULED_OUT) / attackers
    _, (TPR, _), _, (_, FPR) = claims.rates(confidence)
    return max(0.0, math.log((TPR - delta) / FPR)) if delta < TPR else 0.0


_WORDS = words_of_fields(Membership)

FIGURES = (
    Figure(
        "advantage_records",
        _WORDS["advantage_records"],
        Place("membership", value="advantage_records", beyond_chance="advantage_records_chance"),
        "copied",
        statistics=("at_most",),
        family="membership",
        public="unit",
    ),
    show_column("TPR_at_1", "membership", _WORDS, "copied", public="unit"),
    show_column("epsilon_ruled_out", "membership", _WORDS, "trusted"),
    Figure(
        "epsilon_beyond_claim",
        _WORDS["epsilon_beyond_claim"],
        Place("membership", value="epsilon_beyond_claim"),
        "trusted",
        family="membership",
        is_doubt=True,
    ),
)
