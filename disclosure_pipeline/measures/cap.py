"""Correct attribution probability (CAP): how often a guess from the records with a person's keys is right.

Sources: [R] Raab, Nowok & Dibben 2024, App. 2. [B] Baillargeon & Charest 2020, "A closer look at the CAP
risk measure". [T] Taub, Elliot et al. 2018. [L] Little, Allmendinger & Elliot 2025. These sources use some
names for several measures; here every measure has its own name. `frequency` explains the notation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from disclosure_pipeline.measures.entry import Baseline, Figure, place_beyond
from disclosure_pipeline.measures.exact import (
    SCALE,
    Floats,
    Grouped,
    IntArray,
    divide,
    percent,
    sum_quotients,
    total,
)
from disclosure_pipeline.measures.frequency import Rows
from disclosure_pipeline.measures.totals import CellTotals, Totals
from disclosure_pipeline.measures.words import (
    BAILLARGEON,
    LITTLE,
    POINTS,
    RAAB,
    RECORDS,
    SYNTHETIC,
    TAUB,
    WEIGHTED,
    Words,
    figure,
    neutral,
    words_of_fields,
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


def cap_measures(
    counts: Mapping[str, int], totals: Totals, cells: CellTotals, d_t: IntArray, N_d: int, N_s: int
) -> CAP:
    """Compute the CAP figures of the records that the exclusions leave.

    `counts`: the records that count towards iS, DiS and DiSCO. `d_t`: GT records by target level.
    """
    iS, DiS, DiSCO = (counts[name] for name in ("iS", "DiS", "DiSCO"))
    base, base_of = total(d_t * d_t), N_d * N_d
    right = _sum(totals.DCAP)  # expected number of right guesses
    guessed = _sum(cells.guessed)
    return CAP(
        baseCAPd=percent(base, base_of),
        CAPd=percent(_sum(totals.CAPd), N_d * SCALE),
        CAPs=percent(_sum(totals.CAPs), N_s * SCALE),
        DCAP=percent(right, N_d * SCALE),
        CAP_matched=percent(right, iS * SCALE),
        TCAP=percent(DiSCO, iS),
        TCAP_disclosive=percent(DiSCO, DiS),
        TCAP_taub=percent(_sum(totals.TCAP_taub), totals.certain * SCALE),
        DCAP_scaled=_scaled(right, N_d * SCALE, base, base_of),
        TCAP_scaled=_scaled(DiSCO, iS, base, base_of),
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


def _attributed_at_n(r: Rows) -> Floats:
    """Return what each row adds to DCAP at n records of SD: its share, if any of its q is drawn."""
    return divide(r.left_s, r.left_s_q) * (1 - r.none_of_left_key_in_synthetic)


def _attributed_by_others(r: Rows) -> Floats:
    """Return what each row adds to DCAP at n records of the others, of whom the exclusions leave some."""
    others = r.left_d_q - r.left_own_q
    return divide(r.d - r.own_t, others) * (1 - r.none_of_left_key_in_others)


FIGURES = (
    Figure(
        "DCAP",
        words_of_fields(CAP)["DCAP"],
        place_beyond("cap", "DCAP", at_n="DCAP_at_n", own="CAPd"),
        "learned",
        about="target",
        statistics=("at_most", "beyond"),
        weighed=place_beyond("population_targets", "DCAP", WEIGHTED, own="CAPd_weighted"),
        family="attribution",
        public="share",
        adds=lambda r: divide(r.left_s, r.left_s_q),
        compared=Baseline(
            at_n=_attributed_at_n,
            others=_attributed_by_others,
            words=Words.neutral(
                "DCAP by other people's records",
                "How often a guess drawn from other people with the same keys would be right.",
                finding="from other people's records alone it would be for {value}",
            ),
            beyond=Words(
                "DCAP beyond other people's records",
                "How much more often a guess drawn from the synthetic table is right than one from other "
                "people's records.",
                POINTS,
                finding="a guess of {column} drawn from the table is right for {more} people in 100 than "
                "from other people's records",
            ),
        ),
    ),
)
