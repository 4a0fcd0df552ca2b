"""Attribute disclosure: what SD tells with certainty of people whose keys are known.

Source: [R] Raab, Nowok & Dibben 2024, 3.3; definitions in App. 1. `frequency` explains the notation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.measures.entry import Baseline, Figure, Place, place_beyond
from disclosure_pipeline.measures.exact import Floats, IntArray, Mask
from disclosure_pipeline.measures.frequency import FrequencyTable, Rows, is_only_level
from disclosure_pipeline.measures.totals import Totals
from disclosure_pipeline.measures.words import (
    BEYOND_OTHERS,
    BY_ITSELF,
    BY_OTHERS,
    BY_SYNTHETIC,
    POINTS,
    RAAB,
    RECORDS,
    SYNTHETIC,
    WEIGHTED,
    Words,
    neutral,
)


@dataclass(frozen=True)
class Attribute:
    """Numbers of GT records that are disclosed together."""

    max_denom: int = neutral(
        "largest group disclosed together",
        "The largest number of people with the same keys and target who are disclosed together.",
        RECORDS,
        source=RAAB,
    )
    mean_denom: float = neutral(
        "mean group disclosed together",
        "The mean number of people with the same keys and target who are disclosed together.",
        RECORDS,
        source=RAAB,
    )


def attribute(totals: Totals, DiSCO: int) -> Attribute:
    """Compute the maximum and mean number of the `DiSCO` records in a DiSCO cell.

    If no cell counts towards DiSCO, max_denom is 0 and mean_denom is NaN.
    """
    cells = totals.DiSCO_cells
    return Attribute(max_denom=totals.largest, mean_denom=DiSCO / cells if cells else math.nan)


def is_disclosed(r: Rows) -> Mask:
    """Mark the rows whose q has SD records, all of them with the row's level."""
    marked: Mask = is_only_level(r.s, r.s_q)
    return marked


def chance_of_disclosure(r: Rows) -> Floats:
    """Return the chance that this is so of n SD records."""
    return r.only_of_synthetic(r.s)


def chance_of_disclosure_by_others(r: Rows) -> Floats:
    """Return the chance that this is so of n records of other people."""
    return r.only_of_others(r.d - r.own_t)


FIGURES = (
    Figure(
        "Dorig",
        Words.neutral(
            "disclosive in the confidential table",
            "People who share their combination of keys only with people of the same target: the "
            "confidential table itself discloses it.",
            source=RAAB,
            finding="the confidential table itself would disclose the {column} of {value} of the people",
            beside=BY_ITSELF,
        ),
        Place("attribute", value="Dorig"),
        about="target",
        adds=lambda r: is_only_level(r.d, r.d_q),
    ),
    Figure(
        "Dsyn",
        Words(
            "disclosive in the synthetic table",
            "Synthetic records that share their keys only with records of the same target.",
            denominator=SYNTHETIC,
            source=RAAB,
        ),
        Place("attribute", value="Dsyn"),
        about="target",
        adds=lambda r: is_only_level(r.s, r.s_q),
        basis=SYNTHETIC,
    ),
    Figure(
        "iS",
        Words.neutral(
            "found in the synthetic table",
            "People whose combination of keys some synthetic record has.",
            source=RAAB,
            finding="the keys of {value} of the people are in the synthetic table",
        ),
        Place("attribute", value="iS"),
        "learned",
        about="target",
        is_stacked=False,
        public="unit",
        adds=lambda r: r.s_q > 0,
        compared=Baseline(
            at_n=lambda r: 1 - r.none_of_own_key_in_synthetic,
            others=lambda r: 1 - r.none_of_own_key_in_others,
            words=Words.neutral(
                "found among other people",
                "People whose combination of keys a fresh sample of other people would have.",
            ),
            beyond=Words(
                "found beyond other people",
                "How many more people are found in the synthetic table than in a fresh sample of other "
                "people.",
                POINTS,
            ),
        ),
    ),
    Figure(
        "DiS",
        Words(
            "disclosed in the synthetic table, right or wrong",
            "People for whom all synthetic records with their keys have the same target value, right or "
            "wrong.",
            source=RAAB,
            finding="the synthetic table states one {column}, right or wrong, for {value} of the people",
        ),
        Place("attribute", value="DiS"),
        "learned",
        about="target",
        is_stacked=False,
        public="unit",
        adds=lambda r: r.has_one_level,
    ),
    Figure(
        "DiSCO",
        Words(
            "disclosed in the synthetic table and correct",
            "People whose target is disclosed to somebody who knows their keys: all synthetic records with "
            "these keys have the same target value, and it is theirs.",
            source=RAAB,
            finding="for {value} of the people the table correctly shows their {column}",
            beside=BY_SYNTHETIC,
            subject="people whose {column} is disclosed",
        ),
        place_beyond("attribute", "DiSCO", at_n="DiSCO_at_n", own="Dorig", permuted="DiSCO_chance"),
        "learned",
        about="target",
        statistics=("at_most", "at_most_share", "beyond"),
        beyond=Words(
            "DiSCO beyond other people's records and beyond chance",
            "People whose target is disclosed, in excess of what other people's records disclose and of "
            "chance: the smaller of the two differences.",
            POINTS,
            finding="the table gives away the {column} of {more} people in 100 than other people's records "
            "would",
            subject="people whose {column} is disclosed",
        ),
        also=("subgroups",),
        weighed=place_beyond(
            "population_targets", "DiSCO", WEIGHTED, own="Dorig_weighted", permuted="DiSCO_chance_weighted"
        ),
        public="share",
        adds=is_disclosed,
        compared=Baseline(
            at_n=chance_of_disclosure,
            others=chance_of_disclosure_by_others,
            words=Words.neutral(
                "DiSCO by other people's records",
                "People whose target other people's confidential records, without their own, would disclose.",
                finding="other people's records alone would show it for {value}",
                beside=BY_OTHERS,
            ),
            beyond=Words(
                "DiSCO beyond other people's records",
                "How many more people have their target disclosed by the synthetic table than by other "
                "people's records.",
                POINTS,
                finding="the table gives away the {column} of {more} people in 100 than other people's "
                "records would",
                beside=BEYOND_OTHERS,
                subject="people whose {column} is disclosed",
            ),
        ),
    ),
    Figure(
        "DiSDiO",
        Words(
            "disclosed in both tables",
            "People whose target is disclosed by the synthetic table and would be by the confidential table.",
            source=RAAB,
        ),
        Place("attribute", value="DiSDiO"),
        about="target",
        adds=lambda r: is_only_level(r.s, r.s_q) & is_only_level(r.d, r.d_q),
    ),
)

DEFINITIONS = ("Dorig", "Dsyn", "iS", "DiS", "DiSCO", "DiSDiO")
TABLES = ("original", "synthetic", *DEFINITIONS)
"""The tables of [R App. 1]: GT and SD, and these reduced to the cells of each definition."""


def tabulate_definitions(f: FrequencyTable) -> dict[str, IntArray]:
    """Return the records of each cell in each of `TABLES`, before any exclusion."""
    rows, by_name = Rows(f, np.arange(len(f.q))), {figure.name: figure for figure in FIGURES}
    tables = {"original": f.d, "synthetic": f.s}
    for name in DEFINITIONS:
        adds, basis = by_name[name].adds, by_name[name].basis
        assert adds is not None
        tables[name] = (f.s if basis == SYNTHETIC else f.d) * np.asarray(adds(rows), dtype=np.int64)
    return tables
