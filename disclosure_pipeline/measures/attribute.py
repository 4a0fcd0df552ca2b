"""Identity and attribute disclosure: who is unique and found in SD, and what SD says about a target. [R].

Attribute disclosure is of a person whose keys are in SD [R 3.3], identity of who is unique [R 3.2]; [R] App.
1. Correct attribution probability (CAP) is how often a guess drawn from a record's key is right: of all
records, and record by record. Sources: [R] App. 2; [B] Baillargeon & Charest 2020, "A closer look at
the CAP risk measure"; [T] Taub, Elliot et al. 2018; [L] Little, Allmendinger & Elliot 2025. Several of them
use one name for several measures: here every measure has a name of its own.
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
        "This many confidential records are the only ones with their combination of keys.",
        source=RAAB,
        finding="{value} of the people are the only ones with their keys",
    )
    UiS: float = figure(
        "unique in the synthetic table",
        "This many synthetic records are the only ones with their combination of keys.",
        denominator=SYNTHETIC,
        source=RAAB,
        finding="{value} of the synthetic records are the only ones with their keys",
    )
    UiOiS: float = figure(
        "unique in the confidential table and found in the synthetic one",
        "This many people are the only ones with their combination of keys, and some "
        "synthetic record has it too.",
        source=RAAB,
        finding="{value} of the people are the only ones with their keys, and are found in the "
        "synthetic table",
    )
    repU: float = figure(
        "replicated uniques",
        "This many people are the only ones with their combination of keys, and exactly one "
        "synthetic record has it: it looks like them.",
        source=RAAB,
        finding="{value} of the people are singled out by their keys in both tables",
        subject="people singled out in both tables",
    )


def identity(counts: Uniques, N_d: int, N_s: int) -> Identity:
    """Compute UiO, UiS, UiOiS and repU.

    The printed equations 2 and 3 of [R] have slips; these are the definitions that its text states.
    """
    return Identity(
        UiO=percent(counts.in_GT, N_d),
        UiS=percent(counts.in_SD, N_s),
        UiOiS=percent(counts.in_GT_of_keys_in_SD, N_d),
        repU=percent(counts.in_both, N_d),
    )


def unique_records(keys: Keys, synthesis: int = 1) -> tuple[Mask, Mask]:
    """Return two masks over the records of a synthesis (1…m) whose q is unique in it.

    First: its q is unique in GT too (a replicated unique). Second: its q occurs in GT, unique or not.
    """
    d_q, s_q = keys.counts[0], keys.counts[synthesis]
    q = keys.q[synthesis]
    return ((s_q == 1) & (d_q == 1))[q], ((s_q == 1) & (d_q > 0))[q]


@dataclass(frozen=True)
class Attribute:
    """Percent of all GT records (Dsyn: of all SD records); max_denom and mean_denom are counts."""

    Dorig: float = neutral(
        "disclosive in the confidential table",
        "This many people share their combination of keys only with people of the same "
        "target: the confidential table itself gives them away.",
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
    iS: float = neutral(
        "found in the synthetic table",
        "This many people have a combination of keys that some synthetic record has.",
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


# Scaled figures are rounded at this binary digit, so that what is exactly 0 does not come out as -1e-46.
_SCALED_ONE = 2**128


@dataclass(frozen=True)
class CAP:
    """All in percent, but for one count. A high value is a high risk, but for the two minima.

    baseCAPd: chance of a right guess without any key: two GT records drawn at random share their level.
    CAPd, CAPs: mean chance of a right guess for a GT (SD) record, guessing from the GT (SD) records with
        its q; of all GT (SD) records.
    DCAP: mean chance of a right guess for a GT record, guessing from the SD records with its q; 0 where
        there is none. Of all GT records. [R; average CAP, version 1, of B]
    CAP_matched: the same over the GT records whose q is in SD, DCAP / iS. [average CAP, version 2, of B]
    TCAP: DiSCO / iS, as synthpop 1.9-2 prints it: of the GT records whose q is in SD.
    TCAP_disclosive: DiSCO / DiS: of the GT records whose q has one target level in SD. [L; synthpop 1.9-3]
    TCAP_taub: mean of pd over the SD records with ps = 1 (WEAP of 1) whose q is in GT. [T]
    DCAP_scaled, TCAP_scaled: (x - baseCAPd) / (1 - baseCAPd): 100 is certainty, 0 as good as no key;
        negative where guessing without the key is better. [R App. 2]
    n_predicted_correctly, pct_predicted_correctly: GT records whose level is the most frequent one of their
        q in SD; of k that are equally frequent each counts 1/k, what a guess among them gets on average. The
        number of records, which need not be whole, and percent of all GT records. [B, without a word on ties]
    min_DCAP, min_CAP_matched: the least that any synthetic table with these levels could reach in DCAP and
        in CAP_matched. [theorems 2 and 3 of B]

    A figure whose denominator is 0 is NaN: CAP_matched, TCAP, TCAP_scaled where iS is 0; TCAP_disclosive
    where DiS is 0; TCAP_taub where no SD record with ps = 1 has its q in GT; DCAP_scaled, TCAP_scaled where
    baseCAPd is 100.
    """

    baseCAPd: float = neutral(
        "chance of a right guess without keys",
        "How often a guess is right that is drawn from all confidential records.",
        source=RAAB,
    )
    CAPd: float = neutral(
        "chance of a right guess from the confidential table",
        "How often a guess is right that is drawn from the confidential records with the same keys.",
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
        "How often a guess is right that is drawn from the synthetic records with a "
        "person's keys; wrong where there are none.",
        source=RAAB,
    )
    CAP_matched: float = figure(
        "correct attribution probability of those found",
        "The same as DCAP, of the people whose keys are in the synthetic table.",
        denominator="confidential records whose keys are in the synthetic table",
        source=BAILLARGEON,
    )
    TCAP: float = figure(
        "targeted correct attribution probability",
        "Of the people whose keys are in the synthetic table, so many can be told their "
        "target with certainty.",
        denominator="confidential records whose keys are in the synthetic table",
        source=RAAB,
    )
    TCAP_disclosive: float = figure(
        "certain claims that are right",
        "Of the people about whom the synthetic table is certain, so many are told rightly.",
        denominator="confidential records of whom the synthetic table is certain",
        source=LITTLE,
    )
    TCAP_taub: float = figure(
        "targeted correct attribution probability after Taub",
        "How often the certain synthetic records are right about people with their keys.",
        denominator="certain synthetic records whose keys are in the confidential table",
        source=TAUB,
    )
    DCAP_scaled: float = figure(
        "DCAP, scaled",
        "How far DCAP goes from a guess without keys, 0, to certainty, 100.",
        denominator="way from baseCAPd to 100",
        source=RAAB,
    )
    TCAP_scaled: float = figure(
        "TCAP, scaled",
        "How far TCAP goes from a guess without keys, 0, to certainty, 100.",
        denominator="way from baseCAPd to 100",
        source=RAAB,
    )
    n_predicted_correctly: float = figure(
        "number predicted correctly",
        "This many people have the target that is most frequent among the synthetic records with their keys.",
        RECORDS,
        source=BAILLARGEON,
    )
    pct_predicted_correctly: float = figure(
        "share predicted correctly",
        "This many people have the target that is most frequent among the synthetic records with their keys.",
        source=BAILLARGEON,
    )
    min_DCAP: float = neutral(
        "least possible DCAP",
        "No synthetic table with these values could have a lower DCAP.",
        source=BAILLARGEON,
    )
    min_CAP_matched: float = neutral(
        "least possible CAP of those found",
        "No synthetic table with these values could have a lower CAP_matched.",
        denominator="confidential records whose keys are in the synthetic table",
        source=BAILLARGEON,
    )


def cap_measures(totals: Totals, cells: CellTotals, d_t: IntArray, N_d: int, N_s: int) -> CAP:
    """Return the CAP figures of what the exclusions leave."""
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
    """Return (x - b) / (1 - b) in percent, x = part / whole, b = base / base_of; NaN where undefined."""
    if not whole or base == base_of:
        return math.nan
    b = Fraction(base, base_of)
    return percent(round((Fraction(part, whole) - b) / (1 - b) * _SCALED_ONE), _SCALED_ONE)


@dataclass(frozen=True)
class Individual:
    """One synthesis, one entry per GT record. CAP is a chance from 0 to 1, the rest are masks.

    100 times the mean of CAP is DCAP; the shares of the three masks are DiSCO, DiSDiO and repU.
    """

    CAP: Floats = figure(
        "chance of a right guess",
        "The chance that a guess drawn from the records with this person's keys is right.",
        SHARE,
        source=BAILLARGEON,
    )
    DiSCO: Mask = figure(
        "disclosed and correct",
        "Whether this person can be told the target with certainty.",
        YESNO,
        source=RAAB,
    )
    DiSDiO: Mask = figure(
        "disclosed in both tables",
        "Whether this person can be told the target with certainty from either table.",
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
    """Return the cells (q, t), numbered over GT and all syntheses: `q[i]` holds the cell of each record."""
    return combine_keys([list(keys.q), list(target)], [keys.size, levels])


def share_of_key(cells: Keys, keys: Keys, counted_in: int, records_of: int) -> Floats:
    """Return the share of its own cell in its q in table `counted_in`, for each record of table `records_of`.

    pd for the GT records (0, 0), the individual CAP of the GT records (i, 0), WEAP of the SD records (i, i).
    0 where the q of the record is not in that table. [B; T]
    """
    count = cells.counts[counted_in][cells.q[records_of]]
    key_count = keys.counts[counted_in][keys.q[records_of]]
    return np.divide(count, key_count, out=np.zeros(len(count)), where=key_count > 0)


def individual(cells: Keys, keys: Keys, synthesis: int) -> Individual:
    """Return what each GT record is exposed to in one synthesis, on the untouched tables."""
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
