"""How much of one table's values occur in the other: tables that share little cannot be compared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.measures.exact import IntArray, percent


@dataclass(frozen=True)
class Overlap:
    """Percent of GT records whose value occurs in SD, and of SD records whose value occurs in GT."""

    GT_in_SD: float
    SD_in_GT: float


def overlap(gt: IntArray, sd: IntArray, levels: int) -> Overlap:
    """Of one column, or of the whole key, given as codes below `levels`."""
    d, s = np.bincount(gt, minlength=levels), np.bincount(sd, minlength=levels)
    return Overlap(
        GT_in_SD=percent(d[s > 0].sum(), len(gt)),
        SD_in_GT=percent(s[d > 0].sum(), len(sd)),
    )
