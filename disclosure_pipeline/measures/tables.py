"""The tables of attribute disclosure: which cells are disclosive. [R 3.3, App. 1]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.measures.exact import IntArray, Mask, total
from disclosure_pipeline.measures.frequency import FrequencyTable


@dataclass(frozen=True)
class Cells:
    """Some cells of a frequency table: `counts` where `where` holds, nothing elsewhere."""

    counts: IntArray
    where: Mask

    def total(self) -> int:
        """Number of records in these cells."""
        return total(self.counts, self.where)

    def without(self, excluded: Mask) -> Cells:
        """The cells that are left when the excluded ones are set to zero."""
        return Cells(self.counts, self.where & ~excluded)

    def values(self) -> IntArray:
        """The counts, zero where `where` does not hold."""
        return np.where(self.where, self.counts, 0)


@dataclass(frozen=True)
class DisclosureTables:
    """The tables of [R] App. 1: each is GT or SD, reduced to the cells that its definition names."""

    original: Cells
    synthetic: Cells
    Dorig: Cells
    Dsyn: Cells
    iS: Cells
    DiS: Cells
    DiSCO: Cells
    DiSDiO: Cells


def disclosure_tables(f: FrequencyTable) -> DisclosureTables:
    """Decide for every cell whether it is disclosive, before anything is excluded."""
    in_GT, in_SD = f.d > 0, f.s > 0
    pd_is_1 = in_GT & (f.d == f.d_q)
    ps_is_1 = in_SD & (f.s == f.s_q)
    disclosive_q = np.zeros(f.keys, dtype=bool)
    disclosive_q[f.q[ps_is_1]] = True
    return DisclosureTables(
        original=Cells(f.d, in_GT),
        synthetic=Cells(f.s, in_SD),
        Dorig=Cells(f.d, pd_is_1),
        Dsyn=Cells(f.s, ps_is_1),
        iS=Cells(f.d, in_GT & (f.s_q > 0)),
        DiS=Cells(f.d, in_GT & disclosive_q[f.q]),
        DiSCO=Cells(f.d, in_GT & ps_is_1),
        DiSDiO=Cells(f.d, pd_is_1 & ps_is_1),
    )
