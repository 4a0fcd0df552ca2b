"""Attribute disclosure: what SD says about the target of a person whose keys are in it. [R 3.3, App. 1]."""

from __future__ import annotations

import math
from dataclasses import dataclass

from disclosure_pipeline.measures.exact import percent
from disclosure_pipeline.measures.totals import Totals
from disclosure_pipeline.measures.words import BY_ITSELF, BY_SYNTHETIC, RAAB, RECORDS, SYNTHETIC, figure


@dataclass(frozen=True)
class Attribute:
    """Percent of all GT records (Dsyn: of all SD records); max_denom and mean_denom are counts."""

    Dorig: float = figure(
        "disclosive in the confidential table",
        "This many people share their combination of keys only with people of the same "
        "target: the confidential table itself gives them away.",
        high_is="neither",
        source=RAAB,
        finding="{value} of the people would be told their {column} by the confidential table itself",
        beside=BY_ITSELF,
    )
    Dsyn: float = figure(
        "disclosive in the synthetic table",
        "This many synthetic records share their keys only with records of the same target.",
        denominator=SYNTHETIC,
        source=RAAB,
    )
    iS: float = figure(
        "found in the synthetic table",
        "This many people have a combination of keys that some synthetic record has.",
        high_is="neither",
        source=RAAB,
        finding="the keys of {value} of the people are in the synthetic table",
    )
    DiS: float = figure(
        "told something in the synthetic table",
        "Of so many people the synthetic table claims one target value with certainty, right or wrong.",
        source=RAAB,
        finding="of {value} of the people the synthetic table claims a {column} with certainty, "
        "right or wrong",
    )
    DiSCO: float = figure(
        "disclosed in the synthetic table and correct",
        "This many people can be told their target by somebody who knows their keys: all "
        "synthetic records like them say the same, and it is right.",
        source=RAAB,
        finding="{value} of the people can be told their {column}",
        beside=BY_SYNTHETIC,
        subject="people who can be told their {column}",
    )
    DiSDiO: float = figure(
        "disclosed in both tables",
        "This many people can be told their target from the synthetic table, and the "
        "confidential table would say it with the same certainty.",
        source=RAAB,
    )
    max_denom: int = figure(
        "largest group disclosed together",
        "The largest number of people with the same keys and target who are disclosed together.",
        RECORDS,
        high_is="neither",
        source=RAAB,
    )
    mean_denom: float = figure(
        "mean group disclosed together",
        "The mean number of people with the same keys and target who are disclosed together.",
        RECORDS,
        high_is="neither",
        source=RAAB,
    )


def attribute(totals: Totals, N_d: int, N_s: int) -> Attribute:
    """Return the percentages, and the largest and the mean number of records behind a DiSCO cell.

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
