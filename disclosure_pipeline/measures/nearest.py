"""Nearest records: how often SD is nearer to a GT record than other people are.

This project's own. A fresh sample as large as the others is nearer to half of the records, and much nearer to
as many records as the others are, so its expected `much_nearer` is 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.measures.exact import (
    IntArray,
    percent,
)
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


def twice_mid_ranks(counts: IntArray) -> IntArray:
    """Return twice the mid-rank of each value (integers), from the number of records with each, in order."""
    up_to = np.cumsum(counts)
    return 2 * (up_to - counts) + counts + 1
