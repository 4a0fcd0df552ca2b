"""Several tables that are published together: what they disclose as one release.

A mean over syntheses says nothing about publishing all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.measures.exact import IntArray, Mask
from disclosure_pipeline.measures.frequency import Keys


@dataclass(frozen=True)
class Disclosed:
    """For each GT record: in how many tables its q has one target level, and in how many that is its own."""

    tables: IntArray
    rightly: IntArray

    @property
    def any(self) -> Mask:
        """The GT records that DiSCO counts in at least one table."""
        return self.rightly > 0

    @property
    def agreed(self) -> Mask:
        """Those of whom at least two tables disclose a level, all of them their own."""
        return (self.rightly > 1) & (self.rightly == self.tables)


def disclosed(cells: Keys, keys: Keys, syntheses: Sequence[int]) -> Disclosed:
    """From the cell and the key combination of each record of all tables (GT is 0)."""
    records = len(keys.q[0])
    tables, rightly = np.zeros(records, dtype=np.int64), np.zeros(records, dtype=np.int64)
    for synthesis in syntheses:
        s_tq, s_q = cells.counts[synthesis], keys.counts[synthesis]
        one_level = np.zeros(keys.size, dtype=bool)
        of_cell = cells.level_of(0)
        one_level[of_cell[(s_tq > 0) & (s_tq == s_q[of_cell])]] = True
        tables += one_level[keys.q[0]]
        own = s_tq[cells.q[0]]
        rightly += (own > 0) & (own == s_q[keys.q[0]])
    return Disclosed(tables, rightly)


def replicated_uniques_together(keys: Keys, syntheses: Sequence[int]) -> Mask:
    """The GT records that are unique in GT, and whose key combination is unique in at least one table."""
    alone = keys.counts[0] == 1
    in_any = np.zeros(keys.size, dtype=bool)
    for synthesis in syntheses:
        in_any |= keys.counts[synthesis] == 1
    return (alone & in_any)[keys.q[0]]
