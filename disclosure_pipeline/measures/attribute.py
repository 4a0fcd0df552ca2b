"""Attribute disclosure: what the synthetic table tells of a person found in it. [R 3.3, App. 1]."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from disclosure_pipeline.measures.exact import IntArray, Mask, percent, total
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
        return replace(self, where=self.where & ~excluded)

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


@dataclass(frozen=True)
class Attribute:
    """Percent of all GT records (Dsyn: of all SD records); max_denom and mean_denom are counts."""

    Dorig: float
    Dsyn: float
    iS: float
    DiS: float
    DiSCO: float
    DiSDiO: float
    max_denom: int
    mean_denom: float


def disclosure_tables(f: FrequencyTable) -> DisclosureTables:
    """Tell for every cell whether it is disclosive, before anything is excluded."""
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


def attribute(f: FrequencyTable, tables: DisclosureTables) -> Attribute:
    """The percentages, and the largest and the mean number of records behind a DiSCO cell.

    Where no cell counts towards DiSCO, max_denom is 0 and mean_denom NaN.
    """
    DiSCO = tables.DiSCO.total()
    denominators = tables.DiSCO.counts[tables.DiSCO.where]
    return Attribute(
        Dorig=percent(tables.Dorig.total(), f.N_d),
        Dsyn=percent(tables.Dsyn.total(), f.N_s),
        iS=percent(tables.iS.total(), f.N_d),
        DiS=percent(tables.DiS.total(), f.N_d),
        DiSCO=percent(DiSCO, f.N_d),
        DiSDiO=percent(tables.DiSDiO.total(), f.N_d),
        max_denom=int(denominators.max(initial=0)),
        mean_denom=DiSCO / len(denominators) if len(denominators) else math.nan,
    )
