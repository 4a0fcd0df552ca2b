"""Whether SD is nearer to a GT record than the other GT records are.

This project's own. A fresh sample as large as the others is nearer to half of the records, and much nearer to
as many as the others are: exchange both, and the figure changes its sign.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from disclosure_pipeline.measures.exact import IntArray, percent
from disclosure_pipeline.measures.intervals import wilson
from disclosure_pipeline.measures.words import POINTS, RECORDS, WILSON, Words


@dataclass(frozen=True)
class Nearness:
    """nearer: percent of so many GT `records`, and its interval of 95 % for all of them.

    much_nearer: percentage points.
    """

    nearer: Annotated[
        float,
        Words(
            "nearer to the synthetic table than to each other",
            "This many people are more like some synthetic record than like any other person; a "
            "fresh sample would be nearer for half of them.",
            denominator="confidential records looked at",
            finding="{value} of the people are more like a synthetic record than like any other person",
        ),
    ]
    nearer_low: Annotated[
        float,
        Words(
            "nearer, lower end",
            "The lower end of its interval.",
            denominator="confidential records looked at",
            high_is="neither",
            source=WILSON,
        ),
    ]
    nearer_high: Annotated[
        float,
        Words(
            "nearer, upper end",
            "The upper end of its interval.",
            denominator="confidential records looked at",
            high_is="neither",
            source=WILSON,
        ),
    ]
    much_nearer: Annotated[
        float,
        Words(
            "much nearer to the synthetic table than to each other",
            "A synthetic record is at half the distance of the nearest other person, or less, for this many "
            "more people than the other way round; a fresh sample shows 0.",
            POINTS,
            "",
            finding="the share of people to whom a synthetic record is much nearer than any other person is "
            "{value} higher than the other way round",
        ),
    ]
    much_nearer_either_way: Annotated[
        float,
        Words(
            "much nearer to the synthetic table, or to each other",
            "For this many people one of both is at half the distance of the other, or less.",
            denominator="confidential records looked at",
            high_is="neither",
        ),
    ]
    records: Annotated[
        int,
        Words(
            "records looked at",
            "This many confidential records were looked at.",
            unit=RECORDS,
            high_is="neither",
        ),
    ]


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


def twice_mid_ranks(counts: IntArray) -> IntArray:
    """Return twice the mid-rank of each value, from the ordered numbers of records: whole numbers."""
    up_to = np.cumsum(counts)
    return 2 * (up_to - counts) + counts + 1
