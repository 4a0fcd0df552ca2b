"""Correct attribution probability (CAP): how often a guess drawn from a record's key is right.

Sources: [R] App. 2; [B] Baillargeon & Charest 2020, "A closer look at the CAP risk measure"; [T] Taub, Elliot
et al. 2018; [L] Little, Allmendinger & Elliot 2025. Several of them use one name for several measures: here
every measure has a name of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from disclosure_pipeline.measures.attribute import DisclosureTables
from disclosure_pipeline.measures.exact import (
    ONE,
    IntArray,
    Mask,
    percent,
    percent_of_quotients,
    sum_of_quotients,
    total,
)
from disclosure_pipeline.measures.frequency import FrequencyTable

# Scaled figures are rounded at this binary digit, so that what is exactly 0 does not come out as -1e-46.
_SCALED_ONE = 2**128


@dataclass(frozen=True)
class Attribution:
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
    n_predicted_correctly, pct_predicted_correctly: GT records whose level is the one that a guess of the
        most frequent level of their q in SD names; of all GT records. [B]
    min_DCAP, min_CAP_matched: the least that any synthetic table with these levels could reach in DCAP and
        in CAP_matched. [theorems 2 and 3 of B]

    A figure whose denominator is 0 is NaN: CAP_matched, TCAP, TCAP_scaled where iS is 0; TCAP_disclosive
    where DiS is 0; TCAP_taub where no SD record with ps = 1 has its q in GT; DCAP_scaled, TCAP_scaled where
    baseCAPd is 100.
    """

    baseCAPd: float
    CAPd: float
    CAPs: float
    DCAP: float
    CAP_matched: float
    TCAP: float
    TCAP_disclosive: float
    TCAP_taub: float
    DCAP_scaled: float
    TCAP_scaled: float
    n_predicted_correctly: int
    pct_predicted_correctly: float
    min_DCAP: float
    min_CAP_matched: float


def attribution(f: FrequencyTable, tables: DisclosureTables) -> Attribution:
    """The CAP figures of what the exclusions leave; pd and ps are taken anew from it.

    Whether a q is in the other table, whether ps = 1, and the most frequent level of a q in SD are told on
    the untouched tables: an intruder sees them whatever is excluded. N_d, N_s, baseCAPd and the two minima
    stay those of all records.
    """
    d, s = tables.original.values(), tables.synthetic.values()
    d_q, s_q = f.per_key(d)[f.q], f.per_key(s)[f.q]
    d_t = f.per_target(f.d)
    base, base_of = total(d_t * d_t), f.N_d * f.N_d
    right = sum_of_quotients(s * d, s_q)  # expected number of right guesses
    iS, DiS, DiSCO = tables.iS.total(), tables.DiS.total(), tables.DiSCO.total()
    certain = tables.Dsyn.without(f.d_q == 0)
    guessed = total(d, guessed_by_mode(f))
    min_DCAP, min_CAP_matched = minimal_averages(f)
    return Attribution(
        baseCAPd=percent(base, base_of),
        CAPd=percent_of_quotients(d * d, d_q, f.N_d),
        CAPs=percent_of_quotients(s * s, s_q, f.N_s),
        DCAP=percent(right, f.N_d * ONE),
        CAP_matched=percent(right, iS * ONE),
        TCAP=percent(DiSCO, iS),
        TCAP_disclosive=percent(DiSCO, DiS),
        TCAP_taub=percent_of_quotients(certain.values() * d, d_q, certain.total()),
        DCAP_scaled=_scaled(right, f.N_d * ONE, base, base_of),
        TCAP_scaled=_scaled(DiSCO, iS, base, base_of),
        n_predicted_correctly=guessed,
        pct_predicted_correctly=percent(guessed, f.N_d),
        min_DCAP=min_DCAP,
        min_CAP_matched=min_CAP_matched,
    )


def guessed_by_mode(f: FrequencyTable) -> Mask:
    """The cell of each q in SD that an intruder names who guesses the most frequent level (shape: cells).

    Of levels that are equally frequent the first one in their order is named; missing is the last one.
    """
    start = np.flatnonzero(_first_of_each(f.q))
    most = np.maximum.reduceat(f.s, start)
    best = np.flatnonzero((f.s > 0) & (f.s == np.repeat(most, np.diff(start, append=len(f.q)))))
    named = np.zeros(len(f.q), dtype=bool)
    named[best[_first_of_each(f.q[best])]] = True
    return named


def _first_of_each(q: IntArray) -> Mask:
    """The first entry of each q; the cells are in order of q and t."""
    return np.concatenate(([True], q[1:] != q[:-1]))


def minimal_averages(f: FrequencyTable) -> tuple[float, float]:
    """The smallest DCAP and CAP_matched of any synthetic table, in percent. [B, theorems 2 and 3].

    They are reached by a table that puts all of its records into the one cell where d / N_d (or d / d_q,
    over the q in GT) is smallest. All pairs of a q and a t that occur in GT or in this SD are considered;
    those that no GT record has make the minimum 0.
    """
    t = np.zeros(f.targets, dtype=bool)
    t[f.t] = True
    levels = int(t.sum())
    occupied = f.d > 0
    cells_of_q = f.per_key(occupied.astype(np.int64))
    in_GT = f.per_key(f.d) > 0
    in_either = np.zeros(f.keys, dtype=bool)
    in_either[f.q] = True
    d, d_q = f.d[occupied], f.d_q[occupied]
    return (
        0.0 if (cells_of_q[in_either] < levels).any() else percent(int(d.min()), f.N_d),
        0.0 if (cells_of_q[in_GT] < levels).any() else float((100 * d / d_q).min()),
    )


def _scaled(part: int, whole: int, base: int, base_of: int) -> float:
    """(x - b) / (1 - b) in percent, for x = part / whole and b = base / base_of; NaN where undefined."""
    if not whole or base == base_of:
        return math.nan
    b = Fraction(base, base_of)
    return percent(round((Fraction(part, whole) - b) / (1 - b) * _SCALED_ONE), _SCALED_ONE)
