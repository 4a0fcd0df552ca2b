"""Nearness: the share of GT records to which SD is nearer than the other GT records are.

This project's own. A fresh sample as large as the others is nearer to half of the records, and much nearer to
as many as the others are: exchange both, and the figure changes its sign.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.measures.exact import IntArray, percent
from disclosure_pipeline.measures.people import ONCE_IN
from disclosure_pipeline.measures.samples import wilson
from disclosure_pipeline.measures.words import RECORDS, WILSON, figure, interval_end, neutral, points


@dataclass(frozen=True)
class Nearness:
    """nearer: percent of so many GT `records`, and its interval of 95 % for all of them.

    much_nearer: percentage points.
    """

    nearer: float = figure(
        "nearer to the synthetic table than to each other",
        "This many people are more like some synthetic record than like any other person; a "
        "fresh sample would be nearer for half of them.",
        denominator="confidential records looked at",
        finding="{value} of the people are nearer to a synthetic record than to any other person",
        subject="people nearer to a synthetic record",
    )
    nearer_low: float = interval_end(
        "nearer",
        "lower",
        denominator="confidential records looked at",
        source=WILSON,
    )
    nearer_high: float = interval_end(
        "nearer",
        "upper",
        denominator="confidential records looked at",
        source=WILSON,
    )
    much_nearer: float = points(
        "much nearer to the synthetic table than to each other",
        "A synthetic record is at half the distance of the nearest other person, or less, for this many "
        "more people than the other way round; a fresh sample shows 0.",
        finding="the share of people much nearer to a synthetic record than to any other person is "
        "{value} higher than the other way round",
        subject="people much nearer to a synthetic record",
    )
    much_nearer_either_way: float = neutral(
        "much nearer to the synthetic table, or to each other",
        "For this many people one of both is at half the distance of the other, or less.",
        denominator="confidential records looked at",
    )
    records: int = neutral("records looked at", "This many confidential records were looked at.", RECORDS)


def nearness(to_SD: IntArray, to_others: IntArray) -> Nearness:
    """Compute from GT records' distances to the nearest SD record and to the nearest other GT record.

    Records that are as near to the one as to the other count half.
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
"""A record that is so many times nearer than any other person is looked for, whoever is the nearest."""


@dataclass(frozen=True)
class DistancesToParts:
    """The distances of records to the nearest ones of SD, and of two parts of the GT records (one a record).

    Records are in none of the three.
    """

    to_SD: IntArray
    to_part: IntArray
    to_other_part: IntArray

    def share_much_nearer(self, closer: int) -> float:
        """Return the share of the records to which SD is so many times nearer than a part is."""
        return _mean_of_both(self.to_SD, self.to_SD, self.to_part, self.to_other_part, closer)

    def share_of_parts(self, closer: int) -> float:
        """Return the share of the records to which one part is so many times nearer than the other."""
        return _mean_of_both(self.to_other_part, self.to_part, self.to_part, self.to_other_part, closer)


def _mean_of_both(
    near: IntArray, other_near: IntArray, far: IntArray, other_far: IntArray, closer: int
) -> float:
    hits = [(a < b) & (a <= b // closer) for a, b in ((near, far), (other_near, other_far))]
    return sum(int(np.count_nonzero(of_part)) for of_part in hits) / (2 * len(near))


def near_copies(
    people: DistancesToParts, synthetic: DistancesToParts, times: float, units: float, comparisons: int
) -> tuple[float, float]:
    """Return the points of people with a near copy in SD beyond a fresh table, and how far chance takes them.

    However many records SD has: of all of them the nearest counts. `people` are the distances of GT records,
    `synthetic` of SD records, whose distance to SD is that to the others. SD has `times` as many records as a
    part has. `units`: so many independent people are looked at, and as many decide what is near.

    A person has a near copy if an SD record is at a half (quarter, eighth, sixteenth) of the distance of the
    nearest person of a part, or less. If g is the share of those to whom one part is so much nearer than the
    other, SD is as many chances as it has times the records: of a fresh one it is 1 - (1 - g)^times at most,
    by Jensen's inequality. And were SD fresh, it would be as near to a new person as SD records are to one
    another. The smaller is expected. Of the four fractions the one that is furthest beyond chance is told.

    >>> far, near = np.full(100, 100), np.full(100, 1)
    >>> near_copies(DistancesToParts(near, far, far), DistancesToParts(far, far, far), 60, 100, 1)[0]
    100.0

    Source: this project's own; the interval is Wilson's.
    """
    confidence = 1 - 1 / (ONCE_IN * comparisons * len(CLOSER))
    found = []
    for closer in CLOSER:
        share = people.share_much_nearer(closer)
        of_part, of_SD = people.share_of_parts(closer), synthetic.share_much_nearer(closer)
        expected = min(_at_least_once(of_part, times), of_SD)
        highest = min(
            _at_least_once(wilson(of_part * units, units, confidence)[1], times),
            wilson(of_SD * units, units, confidence)[1],
        )
        lowest = wilson(share * units, units, confidence)[0]
        beyond, by_chance = share - expected, (highest - expected) + (share - lowest)
        found.append((beyond > by_chance, beyond, by_chance))
    _, beyond, by_chance = max(found)
    return 100 * beyond, 100 * by_chance


def _at_least_once(share: float, times: float) -> float:
    return 1.0 if share >= 1 else 0.0 - math.expm1(times * math.log1p(-share))


def twice_mid_ranks(counts: IntArray) -> IntArray:
    """Return twice the mid-rank of each value, from the ordered numbers of records: whole numbers."""
    up_to = np.cumsum(counts)
    return 2 * (up_to - counts) + counts + 1
