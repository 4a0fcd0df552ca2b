"""Nearest records: how often SD is nearer to a GT record than other people are.

This project's own. A fresh sample as large as the others is nearer to half of the records, and much nearer to
as many records as the others are, so its expected `much_nearer` is 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.measures.exact import (
    IntArray,
    percent,
)
from disclosure_pipeline.measures.people import ONCE_IN
from disclosure_pipeline.measures.samples import wilson
from disclosure_pipeline.measures.words import RECORDS, WILSON, figure, interval_end, neutral, points

_LOOKED_AT = "confidential records looked at"


@dataclass(frozen=True)
class Nearness:
    """Percent of the GT `records` looked at, `nearer` with its 95 % interval; `much_nearer` in points."""

    nearer: float = figure(
        "nearer to the synthetic table than to each other",
        "People who are more similar to some synthetic record than to any other person; half of them for a "
        "fresh sample.",
        denominator=_LOOKED_AT,
        finding="{value} of the people are nearer to a synthetic record than to any other person",
        subject="people nearer to a synthetic record",
    )
    nearer_low: float = interval_end("nearer", "lower", denominator=_LOOKED_AT, source=WILSON)
    nearer_high: float = interval_end("nearer", "upper", denominator=_LOOKED_AT, source=WILSON)
    much_nearer: float = points(
        "much nearer to the synthetic table than to each other",
        "For how many more people a synthetic record is at most at half the distance of the nearest other "
        "person than the other way round; 0 for a fresh sample.",
        finding="the share of people much nearer to a synthetic record than to any other person is "
        "{value} higher than the other way round",
        subject="people much nearer to a synthetic record",
    )
    much_nearer_either_way: float = neutral(
        "much nearer to the synthetic table, or to each other",
        "People for whom one of both is at most at half the distance of the other.",
        denominator=_LOOKED_AT,
    )
    records: int = neutral("records looked at", "Confidential records that were looked at.", RECORDS)


def nearness(to_SD: IntArray, to_others: IntArray) -> Nearness:
    """Compute from the distances of GT records to the nearest SD record and to the nearest other GT record.

    Ties count half.
    """
    records = len(to_SD)
    twice = 2 * int(np.count_nonzero(to_SD < to_others)) + int(np.count_nonzero(to_SD == to_others))
    low, high = wilson(twice / 2, records)
    to_synthetic = (to_SD < to_others) & (to_SD <= to_others // 2)
    to_people = (to_others < to_SD) & (to_others <= to_SD // 2)
    much_nearer, much_farther = np.count_nonzero(to_synthetic), np.count_nonzero(to_people)
    return Nearness(
        percent(twice, 2 * records),
        100 * low,
        100 * high,
        percent(much_nearer - much_farther, records),
        percent(much_nearer + much_farther, records),
        records,
    )


CLOSER = (2, 4, 8, 16)
"""The factors, each of which is tried, by which a near copy is nearer than any other person."""


@dataclass(frozen=True)
class DistancesToParts:
    """Distances of records to the nearest record of SD and of two parts of GT, none of which holds them."""

    to_SD: IntArray
    to_part: IntArray
    to_other_part: IntArray

    def share_much_nearer(self, closer: int) -> float:
        """Return the share of the records to which SD is `closer` times nearer than a part is."""
        return _share_much_nearer_than_parts(self.to_SD, self.to_SD, self.to_part, self.to_other_part, closer)

    def share_of_parts(self, closer: int) -> float:
        """Return the share of the records to which one part is `closer` times nearer than the other."""
        return _share_much_nearer_than_parts(
            self.to_other_part, self.to_part, self.to_part, self.to_other_part, closer
        )


def _share_much_nearer_than_parts(
    near: IntArray, other_near: IntArray, far: IntArray, other_far: IntArray, closer: int
) -> float:
    hits = [(a < b) & (a <= b // closer) for a, b in ((near, far), (other_near, other_far))]
    return sum(int(np.count_nonzero(is_hit)) for is_hit in hits) / (2 * len(near))


def near_copies(
    people: DistancesToParts, synthetic: DistancesToParts, times: float, units: float, comparisons: int
) -> tuple[float, float]:
    """Return the percentage points of people with a near copy beyond a fresh table, and the limit by chance.

    `people` are the distances of GT records, of `units` independent people; `synthetic` those of SD records,
    to the other SD records. SD has `times` as many records as a part. `comparisons`: number of distances.

    A person has a near copy if an SD record is at most at half (a quarter, an eighth, a sixteenth) of the
    distance of the nearest person of a part. Let g be the share of people to whom one part is that much
    nearer than the other. A fresh SD then has at most 1 - (1 - g)^times, by Jensen's inequality; it is also
    as near to a new person as SD records are to one another. The smaller of both is expected. Of the four
    fractions, the one with the largest difference is returned, preferably one beyond chance.

    >>> far, near = np.full(100, 100), np.full(100, 1)
    >>> near_copies(DistancesToParts(near, far, far), DistancesToParts(far, far, far), 60, 100, 1)[0]
    100.0

    Source: this project's own; the interval is Wilson's.
    """
    confidence = 1 - 1 / (ONCE_IN * comparisons * len(CLOSER))
    by_factor = []
    for closer in CLOSER:
        share = people.share_much_nearer(closer)
        part_share, SD_share = people.share_of_parts(closer), synthetic.share_much_nearer(closer)
        expected = min(_at_least_once(part_share, times), SD_share)
        highest = min(
            _at_least_once(wilson(part_share * units, units, confidence)[1], times),
            wilson(SD_share * units, units, confidence)[1],
        )
        lowest = wilson(share * units, units, confidence)[0]
        beyond, by_chance = share - expected, (highest - expected) + (share - lowest)
        by_factor.append((beyond > by_chance, beyond, by_chance))
    _, beyond, by_chance = max(by_factor)
    return 100 * beyond, 100 * by_chance


def _at_least_once(share: float, times: float) -> float:
    return 1.0 if share >= 1 else 0.0 - math.expm1(times * math.log1p(-share))


def twice_mid_ranks(counts: IntArray) -> IntArray:
    """Return twice the mid-rank of each value (integers), from the number of records with each, in order."""
    up_to = np.cumsum(counts)
    return 2 * (up_to - counts) + counts + 1
