"""Attribute disclosure: what SD says about the target of a person whose keys are in it. [R 3.3, App. 1]."""

from __future__ import annotations

import math
from dataclasses import dataclass

from disclosure_pipeline.measures.exact import percent
from disclosure_pipeline.measures.totals import Totals


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


def attribute(totals: Totals, N_d: int, N_s: int) -> Attribute:
    """The percentages, and the largest and the mean number of records behind a DiSCO cell.

    Where no cell counts towards DiSCO, max_denom is 0 and mean_denom NaN.
    """
    records = totals.records
    return Attribute(
        Dorig=percent(records.Dorig, N_d),
        Dsyn=percent(records.Dsyn, N_s),
        iS=percent(records.iS, N_d),
        DiS=percent(records.DiS, N_d),
        DiSCO=percent(records.DiSCO, N_d),
        DiSDiO=percent(records.DiSDiO, N_d),
        max_denom=totals.largest,
        mean_denom=records.DiSCO / totals.DiSCO_cells if totals.DiSCO_cells else math.nan,
    )
