"""Whether SD is nearer to a GT record than the other GT records are.

This project's own. A fresh sample as large as the others is nearer to half of the records.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.measures.exact import IntArray, percent
from disclosure_pipeline.measures.intervals import wilson


@dataclass(frozen=True)
class Nearness:
    """nearer: percent of so many GT `records`, and its interval of 95 % for all of them."""

    nearer: float
    nearer_low: float
    nearer_high: float
    records: int


def nearness(to_SD: IntArray, to_others: IntArray) -> Nearness:
    """From the distances of GT records to the nearest SD record and to the nearest other GT record.

    Records that are as near to the one as to the other count half.
    """
    records = len(to_SD)
    twice = 2 * int(np.count_nonzero(to_SD < to_others)) + int(np.count_nonzero(to_SD == to_others))
    low, high = wilson(twice / 2, records)
    return Nearness(percent(twice, 2 * records), 100 * low, 100 * high, records)


def twice_mid_ranks(counts: IntArray) -> IntArray:
    """Twice the mid-rank of each value, from the number of records with each, in order: whole numbers."""
    up_to = np.cumsum(counts)
    return 2 * (up_to - counts) + counts + 1
