"""Identity disclosure, attribute disclosure, and correct attribution probability (CAP).

Sources: [R] Raab, Nowok & Dibben 2024: identity disclosure in 3.2, attribute disclosure in 3.3, definitions
in App. 1, CAP in App. 2. [B] Baillargeon & Charest 2020, "A closer look at the CAP risk measure". [T] Taub,
Elliot et al. 2018. [L] Little, Allmendinger & Elliot 2025. These sources use some names for several measures;
here every measure has its own name. `frequency` explains the notation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.measures.entry import Baseline, Figure, Place, place_beyond
from disclosure_pipeline.measures.exact import (
    Floats,
    IntArray,
    Mask,
    percent,
)
from disclosure_pipeline.measures.frequency import Keys, combine_keys
from disclosure_pipeline.measures.totals import Totals, Uniques, is_only_level
from disclosure_pipeline.measures.words import (
    BAILLARGEON,
    BEYOND_OTHERS,
    BY_ITSELF,
    BY_OTHERS,
    BY_SYNTHETIC,
    POINTS,
    RAAB,
    RECORDS,
    SHARE,
    SYNTHETIC,
    WEIGHTED,
    YESNO,
    Words,
    figure,
    neutral,
    words_of_fields,
)


@dataclass(frozen=True)
class Identity:
    """Percent of all GT records (UiS: of all SD records)."""

    UiO: float = neutral(
        "unique in the confidential table",
        "People who are the only ones with their combination of keys.",
        source=RAAB,
        finding="{value} of the people are the only ones with their keys",
    )
    UiS: float = figure(
        "unique in the synthetic table",
        "Synthetic records that are the only ones with their combination of keys.",
        denominator=SYNTHETIC,
        source=RAAB,
        finding="{value} of the synthetic records are the only ones with their keys",
    )
    UiOiS: float = figure(
        "unique in the confidential table and found in the synthetic one",
        "People who are the only ones with their combination of keys, which some synthetic record has, too.",
        source=RAAB,
        finding="{value} of the people are the only ones with their keys and are found in the "
        "synthetic table",
    )
    repU: float = figure(
        "replicated uniques",
        "People who are the only ones with their combination of keys, which exactly one synthetic record "
        "has, too: it looks like them.",
        source=RAAB,
        finding="{value} of the people are singled out in both tables by what an intruder knows of them",
        subject="people singled out in both tables",
    )


def identity(counts: Uniques, N_d: int, N_s: int) -> Identity:
    """Compute UiO, UiS, UiOiS and repU [R 3.2].

    Equations 2 and 3 of [R] have misprints; these are the definitions that its text states.
    """
    return Identity(
        UiO=percent(counts.in_GT, N_d),
        UiS=percent(counts.in_SD, N_s),
        UiOiS=percent(counts.in_GT_of_keys_in_SD, N_d),
        repU=percent(counts.in_both, N_d),
    )


def unique_records(keys: Keys, synthesis: int = 1) -> tuple[Mask, Mask]:
    """Return two masks over the records of a synthesis (1…m): replicated uniques, and uniques that GT has.

    In both, the record's q is unique in the synthesis. In the first it is also unique in GT; in the second it
    occurs in GT, unique or not.
    """
    d_q, s_q = keys.counts[0], keys.counts[synthesis]
    q = keys.q[synthesis]
    return ((s_q == 1) & (d_q == 1))[q], ((s_q == 1) & (d_q > 0))[q]


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


def attribute(totals: Totals) -> Attribute:
    """Compute the maximum and mean number of GT records in a DiSCO cell.

    If no cell counts towards DiSCO, max_denom is 0 and mean_denom is NaN.
    """
    cells = totals.DiSCO_cells
    return Attribute(max_denom=totals.largest, mean_denom=totals.records.DiSCO / cells if cells else math.nan)


@dataclass(frozen=True)
class Individual:
    """One entry per GT record: CAP is a chance from 0 to 1, the others are masks.

    The means of CAP and of the masks are DCAP, DiSCO, DiSDiO and repU as shares of 1.
    """

    CAP: Floats = figure(
        "chance of a right guess",
        "The chance that a guess drawn from the records with this person's keys is right.",
        SHARE,
        source=BAILLARGEON,
    )
    DiSCO: Mask = figure(
        "disclosed and correct",
        "Whether the synthetic table discloses this person's target.",
        YESNO,
        source=RAAB,
    )
    DiSDiO: Mask = figure(
        "disclosed in both tables",
        "Whether both tables disclose this person's target.",
        YESNO,
        source=RAAB,
    )
    repU: Mask = figure(
        "replicated unique",
        "Whether this person is the only one with these keys in both tables.",
        YESNO,
        source=RAAB,
    )


def combine_cells(keys: Keys, target: Sequence[IntArray], levels: int) -> Keys:
    """Number the cells (q, t) of GT and all syntheses: `q[i]` of the result holds the cell of each record."""
    return combine_keys([list(keys.q), list(target)], [keys.size, levels])


def share_of_key(cells: Keys, keys: Keys, counted_in: int, records_of: int) -> Floats:
    """Return, for each record of table `records_of`, the share of its cell among its q in table `counted_in`.

    That is pd of the GT records for (0, 0), individual CAP for (i, 0), and WEAP of the SD records for (i, i).
    0 if the q of the record is not in table `counted_in`. [B; T]
    """
    count = cells.counts[counted_in][cells.q[records_of]]
    key_count = keys.counts[counted_in][keys.q[records_of]]
    return np.divide(count, key_count, out=np.zeros(len(count)), where=key_count > 0)


def individual(cells: Keys, keys: Keys, synthesis: int) -> Individual:
    """Compute the figures of each GT record in one synthesis, before any exclusion."""
    cell, q = cells.q[0], keys.q[0]
    d, s = cells.counts[0][cell], cells.counts[synthesis][cell]
    d_q, s_q = keys.counts[0][q], keys.counts[synthesis][q]
    DiSCO = (s > 0) & (s == s_q)
    return Individual(
        CAP=share_of_key(cells, keys, synthesis, 0),
        DiSCO=DiSCO,
        DiSDiO=DiSCO & (d == d_q),
        repU=(d_q == 1) & (s_q == 1),
    )


_WORDS = words_of_fields(Identity)

FIGURES = (
    Figure(
        "repU",
        _WORDS["repU"],
        Place("identity", value="repU", own="UiO"),
        "found",
        statistics=("at_most", "at_most_share"),
        weighed=Place("population", value="repU_weighted", se="repU_weighted_se", own="UiO_weighted"),
        own="UiO",
        public="share",
    ),
    Figure(
        "UiOiS",
        _WORDS["UiOiS"],
        Place("identity", value="UiOiS"),
        "found",
        is_stacked=False,
        public="unit",
    ),
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
        own="Dorig",
        public="share",
        adds=lambda r: is_only_level(r.s, r.s_q),
        compared=Baseline(
            at_n=lambda r: r.none_of_synthetic(r.s_q - r.s) - r.none_of_own_key_in_synthetic,
            others=lambda r: (
                r.none_of_others(r.d_q - r.own_q - (r.d - r.own_t)) - r.none_of_own_key_in_others
            ),
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
