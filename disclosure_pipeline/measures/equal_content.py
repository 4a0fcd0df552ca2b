"""Whether a synthetic table has the content of the ground truth, whatever else it does with it.

This project's own. That every SD record equals a GT record, or every GT record an SD record, is no sign of
anything where columns are few: then a fresh sample does the same. So it counts only where a fresh sample
would almost surely not.
"""

from __future__ import annotations

import math
from typing import Protocol

from disclosure_pipeline.measures.hits import HitCounts
from disclosure_pipeline.measures.identity import Uniques
from disclosure_pipeline.measures.overlap import Shared
from disclosure_pipeline.measures.samples import Sizes

EXPECTED_MISSES = 10.0
"""A fresh sample that would miss so many records, misses none with a chance of about exp(-10)."""


class RecordCounts(Protocol):
    """Counts of the combinations of all columns."""

    @property
    def uniques(self) -> Uniques:
        """Of single records."""

    @property
    def shared(self) -> Shared:
        """Of records that are in both tables."""

    @property
    def unique_hits(self) -> HitCounts:
        """Of SD records that equal a single GT record."""


def has_equal_content(counts: RecordCounts, sizes: Sizes) -> bool:
    """Whether one table holds all records of the other, where a fresh sample would miss ten at least.

    `counts` are those of whole records. A new record of the population is unlike all GT records with chance
    f1 / N_d (Good-Turing: f1 GT records equal no other one), and equals a given one of these f1 with chance
    2 f2 / (f1 N_d), about.
    """
    unlike = sizes.N_s * counts.uniques.in_GT / sizes.N_d
    if counts.shared.SD_in_GT == sizes.N_s and unlike >= EXPECTED_MISSES:
        return True
    return counts.shared.GT_in_SD == sizes.N_d and _missed_by_a_sample(counts, sizes) >= EXPECTED_MISSES


def _missed_by_a_sample(counts: RecordCounts, sizes: Sizes) -> float:
    """How many of the GT records that equal no other one a fresh sample as large as SD would not have."""
    alone = counts.uniques.in_GT
    if not alone:
        return 0.0
    chance = min(1.0, 2 * counts.unique_hits.pairs / (alone * sizes.N_d))
    return alone * math.exp(sizes.N_s * math.log1p(-chance)) if chance < 1 else 0.0
