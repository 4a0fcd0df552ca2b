"""The counts of one target in one synthesis that take single cells, not only sums over a key combination."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from disclosure_pipeline.measures.exact import IntArray, Mask
from disclosure_pipeline.measures.frequency import FrequencyTable
from disclosure_pipeline.measures.grouped import Grouped


@dataclass(frozen=True)
class LargeCells:
    """Some DiSCO cells: the level of each key (shape: keys, cells), the target level, and the GT records."""

    key_levels: IntArray
    t: IntArray
    d: IntArray

    @classmethod
    def nothing(cls, keys: int) -> LargeCells:
        """No cell at all."""
        return cls(np.empty((keys, 0), np.int64), np.empty(0, np.int64), np.empty(0, np.int64))

    @classmethod
    def joined(cls, parts: Sequence[LargeCells]) -> LargeCells:
        """The cells of several parts."""
        return cls(
            np.concatenate([part.key_levels for part in parts], axis=1),
            np.concatenate([part.t for part in parts]),
            np.concatenate([part.d for part in parts]),
        )


@dataclass(frozen=True)
class CellTotals:
    """Integers that add up over keys, unless it is said otherwise.

    guessed: GT records whose level is among the most frequent ones of their q in SD, by the number of these.
    DiSCO_t: DiSCO records by target level.
    d_by_s_q_t, dd_by_s_q_t: GT records whose q is in SD, and the sum of d², by s_q * targets + t.
    largest_d: the largest d.
    smallest_d, smallest_share: the smallest d, and the smallest d / d_q over the q in GT. All pairs of a q
        and a t that occur in GT or in this SD are considered; those that no GT record has make it 0.
    """

    guessed: Grouped
    DiSCO_t: Grouped
    d_by_s_q_t: Grouped
    dd_by_s_q_t: Grouped
    largest_d: int = field(metadata={"add": max})
    smallest_d: int = field(metadata={"add": min})
    smallest_share: Fraction = field(metadata={"add": min})


def cell_totals(f: FrequencyTable, d: IntArray, DiSCO: Mask, levels: int, guessed: Grouped) -> CellTotals:
    """From the cells of some or all q.

    `d` are the GT records that the exclusions leave in each cell, `DiSCO` marks the cells that then count
    towards it; what an intruder would guess, and the smallest d, are of the untouched tables. `levels` is
    the number of target levels that occur in GT or in this SD, `guessed` the first of these totals.
    """
    smallest_d, smallest_share = _smallest_cell(f, levels)
    largest_d = int(d.max())
    occupied, disclosed = np.flatnonzero((d > 0) & (f.s_q > 0)), np.flatnonzero(DiSCO)
    s_q_t = f.s_q[occupied] * f.targets + f.t[occupied]
    return CellTotals(
        guessed=guessed,
        DiSCO_t=Grouped.sum_by_group(f.t[disclosed], d[disclosed]),
        d_by_s_q_t=Grouped.sum_by_group(s_q_t, d[occupied]),
        dd_by_s_q_t=Grouped.sum_by_group(s_q_t, d[occupied] ** 2),
        largest_d=largest_d,
        smallest_d=smallest_d,
        smallest_share=smallest_share,
    )


def _smallest_cell(f: FrequencyTable, levels: int) -> tuple[int, Fraction]:
    """The smallest d and the smallest d / d_q: see `CellTotals`."""
    d_q = f.d_q[f.first]
    in_GT = d_q > 0
    if not in_GT.any():
        return 0, Fraction(1)
    if int(d_q[in_GT].min()) >= levels:  # else a level is missing somewhere, and there is no need to look
        occupied = f.sum_by_q(f.d > 0)
        if (occupied[in_GT] >= levels).all():
            cells = np.flatnonzero(f.d)
            smallest = cells[np.argmin(100 * f.d[cells] / f.d_q[cells])]
            smallest_share = Fraction(int(f.d[smallest]), int(f.d_q[smallest]))
            return int(f.d[cells].min()) if in_GT.all() else 0, smallest_share
    return 0, Fraction(0)
