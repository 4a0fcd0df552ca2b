"""How much of one table's values occur in the other: tables that share little cannot be compared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.measures.exact import IntArray, percent
from disclosure_pipeline.measures.frequency import Keys


@dataclass(frozen=True)
class Overlap:
    """Percent of GT records whose value occurs in SD, and of SD records whose value occurs in GT."""

    GT_in_SD: float
    SD_in_GT: float


def overlap(gt: IntArray, sd: IntArray, levels: int, missing: int | None = None) -> Overlap:
    """Of one column, or of the whole key, given as codes below `levels`.

    Records with the code `missing` take no part: two tables that share nothing but gaps share nothing.
    NaN where a table has no others.
    """
    d, s = np.bincount(gt, minlength=levels), np.bincount(sd, minlength=levels)
    if missing is not None:
        d[missing] = s[missing] = 0
    return Overlap(
        GT_in_SD=percent(d[s > 0].sum(), d.sum()),
        SD_in_GT=percent(s[d > 0].sum(), s.sum()),
    )


def copies(rows: Keys) -> tuple[int, ...]:
    """The number of records of each synthesis that are in GT too; `rows` combines every column compared."""
    in_GT = rows.counts[0] > 0
    return tuple(int(in_GT[q].sum()) for q in rows.q[1:])
