"""Correct attribution probability (CAP): how often a guess drawn from a record's key is right.

Sources: [R] App. 2; [B] Baillargeon & Charest 2020, "A closer look at the CAP risk measure"; [T] Taub, Elliot
et al. 2018; [L] Little, Allmendinger & Elliot 2025. Several of them use one name for several measures: here
every measure has a name of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from disclosure_pipeline.measures.exact import ONE, Grouped, IntArray, percent, sum_of_quotients, total
from disclosure_pipeline.measures.totals import CellTotals, Totals
from disclosure_pipeline.measures.words import BAILLARGEON, LITTLE, RAAB, RECORDS, SYNTHETIC, TAUB, figure

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

    baseCAPd: float = figure(
        "chance of a right guess without keys",
        "How often a guess is right that is drawn from all confidential records.",
        high_is="neither",
        source=RAAB,
    )
    CAPd: float = figure(
        "chance of a right guess from the confidential table",
        "How often a guess is right that is drawn from the confidential records with the same keys.",
        high_is="neither",
        source=RAAB,
    )
    CAPs: float = figure(
        "how certain the synthetic table seems",
        "How often a guess drawn from synthetic records with the same keys is right about synthetic records.",
        denominator=SYNTHETIC,
        high_is="neither",
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
    min_DCAP: float = figure(
        "least possible DCAP",
        "No synthetic table with these values could have a lower DCAP.",
        high_is="neither",
        source=BAILLARGEON,
    )
    min_CAP_matched: float = figure(
        "least possible CAP of those found",
        "No synthetic table with these values could have a lower CAP_matched.",
        denominator="confidential records whose keys are in the synthetic table",
        high_is="neither",
        source=BAILLARGEON,
    )


def cap_measures(totals: Totals, cells: CellTotals, d_t: IntArray, N_d: int, N_s: int) -> CAP:
    """Return the CAP figures of what the exclusions leave.

    `d_t`, the number of GT records with each target level, `N_d` and `N_s` are those of all records.
    """
    base, base_of = total(d_t * d_t), N_d * N_d
    right = _sum(totals.DCAP)  # expected number of right guesses
    guessed = _sum(cells.guessed)
    records = totals.records
    return CAP(
        baseCAPd=percent(base, base_of),
        CAPd=percent(_sum(totals.CAPd), N_d * ONE),
        CAPs=percent(_sum(totals.CAPs), N_s * ONE),
        DCAP=percent(right, N_d * ONE),
        CAP_matched=percent(right, records.iS * ONE),
        TCAP=percent(records.DiSCO, records.iS),
        TCAP_disclosive=percent(records.DiSCO, records.DiS),
        TCAP_taub=percent(_sum(totals.TCAP_taub), totals.certain * ONE),
        DCAP_scaled=_scaled(right, N_d * ONE, base, base_of),
        TCAP_scaled=_scaled(records.DiSCO, records.iS, base, base_of),
        n_predicted_correctly=guessed / ONE,
        pct_predicted_correctly=percent(guessed, N_d * ONE),
        min_DCAP=percent(cells.smallest_d, N_d),
        min_CAP_matched=percent(cells.smallest_share.numerator, cells.smallest_share.denominator),
    )


def _sum(by_denominator: Grouped) -> int:
    return sum_of_quotients(by_denominator.sums, by_denominator.groups)


def _scaled(part: int, whole: int, base: int, base_of: int) -> float:
    """Return (x - b) / (1 - b) in percent, x = part / whole, b = base / base_of; NaN where undefined."""
    if not whole or base == base_of:
        return math.nan
    b = Fraction(base, base_of)
    return percent(round((Fraction(part, whole) - b) / (1 - b) * _SCALED_ONE), _SCALED_ONE)
