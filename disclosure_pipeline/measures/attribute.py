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
from fractions import Fraction

import numpy as np

from disclosure_pipeline.measures.exact import (
    SCALE,
    Floats,
    Grouped,
    IntArray,
    Mask,
    percent,
    sum_quotients,
    total,
)
from disclosure_pipeline.measures.frequency import Keys, combine_keys
from disclosure_pipeline.measures.totals import CellTotals, Totals, Uniques
from disclosure_pipeline.measures.words import (
    BAILLARGEON,
    BY_ITSELF,
    BY_SYNTHETIC,
    LITTLE,
    RAAB,
    RECORDS,
    SHARE,
    SYNTHETIC,
    TAUB,
    YESNO,
    figure,
    neutral,
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
    """Percent of all GT records (Dsyn: of all SD records); max_denom and mean_denom are counts."""

    Dorig: float = neutral(
        "disclosive in the confidential table",
        "People who share their combination of keys only with people of the same target: the confidential "
        "table itself discloses it.",
        source=RAAB,
        finding="the confidential table itself would disclose the {column} of {value} of the people",
        beside=BY_ITSELF,
    )
    Dsyn: float = figure(
        "disclosive in the synthetic table",
        "Synthetic records that share their keys only with records of the same target.",
        denominator=SYNTHETIC,
        source=RAAB,
    )
    iS: float = neutral(
        "found in the synthetic table",
        "People whose combination of keys some synthetic record has.",
        source=RAAB,
        finding="the keys of {value} of the people are in the synthetic table",
    )
    DiS: float = figure(
        "disclosed in the synthetic table, right or wrong",
        "People for whom all synthetic records with their keys have the same target value, right or wrong.",
        source=RAAB,
        finding="the synthetic table states one {column}, right or wrong, for {value} of the people",
    )
    DiSCO: float = figure(
        "disclosed in the synthetic table and correct",
        "People whose target is disclosed to somebody who knows their keys: all synthetic records with "
        "these keys have the same target value, and it is theirs.",
        source=RAAB,
        finding="for {value} of the people the table correctly shows their {column}",
        beside=BY_SYNTHETIC,
        subject="people whose {column} is disclosed",
    )
    DiSDiO: float = figure(
        "disclosed in both tables",
        "People whose target is disclosed by the synthetic table and would be by the confidential table.",
        source=RAAB,
    )
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


def attribute(totals: Totals, N_d: int, N_s: int) -> Attribute:
    """Compute the measures of [R 3.3], and the maximum and mean number of GT records in a DiSCO cell.

    If no cell counts towards DiSCO, max_denom is 0 and mean_denom is NaN.
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


# Scaled figures are rounded to 128 binary digits, so that an exact 0 does not come out as -1e-46.
_SCALED_ONE = 2**128


@dataclass(frozen=True)
class CAP:
    """In percent, except one count.

    baseCAPd: sum of (d_t / N_d)², the chance of a right guess without any key. [R App. 2]
    CAPd, CAPs: sum of pd·d / N_d, and of ps·s / N_s: the mean chance of a right guess about a GT (SD) record
        that is drawn from the GT (SD) records with its q. [R]
    DCAP: sum of ps·d / N_d: the mean chance of a right guess about a GT record that is drawn from the SD
        records with its q; 0 if there are none. [R; average CAP, version 1, of B]
    CAP_matched: the same sum / iS, over the GT records whose q is in SD. [average CAP, version 2, of B]
    TCAP: DiSCO / iS, as synthpop 1.9-2 prints it.
    TCAP_disclosive: DiSCO / DiS. [L; synthpop 1.9-3 with TCAPb]
    TCAP_taub: mean of pd over the SD records with ps = 1 (WEAP of 1) whose q is in GT. [T]
    DCAP_scaled, TCAP_scaled: (x - baseCAPd) / (1 - baseCAPd). 100 is certainty; 0 is as good as no key, and
        negative worse. [R App. 2]
    n_predicted_correctly, pct_predicted_correctly: GT records whose level is the most frequent of their q in
        SD; one of k equally frequent levels counts 1/k, so the number need not be whole. [B, silent on ties]
    min_DCAP, min_CAP_matched: the minimum of DCAP and CAP_matched over all synthetic tables with these
        levels. [theorems 2 and 3 of B]

    A figure whose denominator is 0 is NaN: CAP_matched, TCAP, TCAP_scaled if iS is 0; TCAP_disclosive if DiS
    is 0; TCAP_taub if no SD record with ps = 1 has its q in GT; DCAP_scaled, TCAP_scaled if baseCAPd is 100.
    """

    baseCAPd: float = neutral(
        "chance of a right guess without keys",
        "How often a guess drawn from all confidential records is right.",
        source=RAAB,
    )
    CAPd: float = neutral(
        "chance of a right guess from the confidential table",
        "How often a guess drawn from the confidential records with the same keys is right.",
        source=RAAB,
    )
    CAPs: float = neutral(
        "how certain the synthetic table seems",
        "How often a guess drawn from synthetic records with the same keys is right about synthetic records.",
        denominator=SYNTHETIC,
        source=RAAB,
    )
    DCAP: float = figure(
        "differential correct attribution probability",
        "How often a guess drawn from the synthetic records with a person's keys is right; wrong if there "
        "are none.",
        source=RAAB,
        finding="a guess of {column} drawn from the table is right for {value} of the people",
    )
    CAP_matched: float = figure(
        "correct attribution probability of those found",
        "The same as DCAP, among people whose keys are in the synthetic table.",
        denominator="confidential records whose keys are in the synthetic table",
        source=BAILLARGEON,
    )
    TCAP: float = figure(
        "targeted correct attribution probability",
        "People whose target is disclosed, among those whose keys are in the synthetic table.",
        denominator="confidential records whose keys are in the synthetic table",
        source=RAAB,
    )
    TCAP_disclosive: float = figure(
        "certain claims that are right",
        "People for whom the synthetic table states the right target, among those for whom it states one.",
        denominator="confidential records for which the synthetic table states one target",
        source=LITTLE,
    )
    TCAP_taub: float = figure(
        "targeted correct attribution probability after Taub",
        "How often synthetic records that share their keys only with the same target are right about people "
        "with these keys.",
        denominator="certain synthetic records whose keys are in the confidential table",
        source=TAUB,
    )
    DCAP_scaled: float = figure(
        "DCAP, scaled",
        "DCAP on a scale from a guess without keys (0) to certainty (100).",
        denominator="way from baseCAPd to 100",
        source=RAAB,
    )
    TCAP_scaled: float = figure(
        "TCAP, scaled",
        "TCAP on a scale from a guess without keys (0) to certainty (100).",
        denominator="way from baseCAPd to 100",
        source=RAAB,
    )
    n_predicted_correctly: float = figure(
        "number predicted correctly",
        "People whose target is the most frequent one among the synthetic records with their keys.",
        RECORDS,
        source=BAILLARGEON,
    )
    pct_predicted_correctly: float = figure(
        "share predicted correctly",
        "People whose target is the most frequent one among the synthetic records with their keys.",
        source=BAILLARGEON,
    )
    min_DCAP: float = neutral(
        "least possible DCAP",
        "No synthetic table with these values can have a lower DCAP.",
        source=BAILLARGEON,
    )
    min_CAP_matched: float = neutral(
        "least possible CAP of those found",
        "No synthetic table with these values can have a lower CAP_matched.",
        denominator="confidential records whose keys are in the synthetic table",
        source=BAILLARGEON,
    )


def cap_measures(totals: Totals, cells: CellTotals, d_t: IntArray, N_d: int, N_s: int) -> CAP:
    """Compute the CAP figures of the records that the exclusions leave; `d_t`: GT records by target level."""
    base, base_of = total(d_t * d_t), N_d * N_d
    right = _sum(totals.DCAP)  # expected number of right guesses
    guessed = _sum(cells.guessed)
    records = totals.records
    return CAP(
        baseCAPd=percent(base, base_of),
        CAPd=percent(_sum(totals.CAPd), N_d * SCALE),
        CAPs=percent(_sum(totals.CAPs), N_s * SCALE),
        DCAP=percent(right, N_d * SCALE),
        CAP_matched=percent(right, records.iS * SCALE),
        TCAP=percent(records.DiSCO, records.iS),
        TCAP_disclosive=percent(records.DiSCO, records.DiS),
        TCAP_taub=percent(_sum(totals.TCAP_taub), totals.certain * SCALE),
        DCAP_scaled=_scaled(right, N_d * SCALE, base, base_of),
        TCAP_scaled=_scaled(records.DiSCO, records.iS, base, base_of),
        n_predicted_correctly=guessed / SCALE,
        pct_predicted_correctly=percent(guessed, N_d * SCALE),
        min_DCAP=percent(cells.smallest_d, N_d),
        min_CAP_matched=percent(cells.smallest_share.numerator, cells.smallest_share.denominator),
    )


def _sum(by_denominator: Grouped) -> int:
    return sum_quotients(by_denominator.sums, by_denominator.groups)


def _scaled(part: int, whole: int, base: int, base_of: int) -> float:
    """Return (x - b) / (1 - b) in percent, with x = part / whole and b = base / base_of; NaN if undefined."""
    if not whole or base == base_of:
        return math.nan
    b = Fraction(base, base_of)
    return percent(round((Fraction(part, whole) - b) / (1 - b) * _SCALED_ONE), _SCALED_ONE)


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
