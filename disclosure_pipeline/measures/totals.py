"""What the figures of one target in one synthesis are made of: integers, each a sum over keys.

Without exclusions five sums per key are enough. With t running over the target levels:

    d_q = sum of d,  s_q = sum of s,  dd = sum of d²,  ss = sum of s²,  ds = sum of d·s

GT has one target level at q exactly when dd = d_q², SD when ss = s_q²; then ds / s_q is the number of GT
records that have the level of SD. Who counts (an engine) supplies these sums; the formulas are here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from disclosure_pipeline.measures.exact import IntArray, total
from disclosure_pipeline.measures.frequency import FrequencyTable
from disclosure_pipeline.measures.grouped import Grouped
from disclosure_pipeline.measures.tables import DisclosureTables


@dataclass(frozen=True)
class KeySums:
    """The five sums, an entry for each combination of them that occurs; `keys`: how many q have it."""

    d_q: IntArray
    s_q: IntArray
    dd: IntArray
    ss: IntArray
    ds: IntArray
    keys: IntArray | int = 1


@dataclass(frozen=True)
class Records:
    """The number of records in each of the tables of [R] App. 1: see `DisclosureTables`."""

    original: int
    synthetic: int
    Dorig: int
    Dsyn: int
    iS: int
    DiS: int
    DiSCO: int
    DiSDiO: int


@dataclass(frozen=True)
class Totals:
    """`records` of the disclosure tables, and what else the percentages are made of.

    DiSCO_cells: cells (q, t) that count towards DiSCO; largest: most GT records in one of them.
    certain: SD records with ps = 1 whose q is in GT.
    CAPd, CAPs, DCAP, TCAP_taub: sums of quotients, numerators added up by denominator: d² by d_q, s² by s_q,
        d·s by s_q, and d·s of the certain ones by d_q.
    """

    records: Records
    DiSCO_cells: int
    largest: int = field(metadata={"add": max})
    certain: int
    CAPd: Grouped
    CAPs: Grouped
    DCAP: Grouped
    TCAP_taub: Grouped


def totals_of_keys(k: KeySums) -> Totals:
    """From the five sums of each key; nothing is excluded."""
    in_SD = k.s_q > 0
    GT_has_one = (k.d_q > 0) & (k.dd == k.d_q * k.d_q)
    SD_has_one = in_SD & (k.ss == k.s_q * k.s_q)
    d, s = k.d_q * k.keys, k.s_q * k.keys
    disclosed = np.flatnonzero(SD_has_one & (k.ds > 0))
    keys = k.keys if isinstance(k.keys, int) else k.keys[disclosed]
    d_tq = k.ds[disclosed] // k.s_q[disclosed]
    return Totals(
        records=Records(
            original=total(d),
            synthetic=total(s),
            Dorig=total(d * GT_has_one),
            Dsyn=total(s * SD_has_one),
            iS=total(d * in_SD),
            DiS=total(d * SD_has_one),
            DiSCO=total(d_tq * keys),
            DiSDiO=total((d * GT_has_one)[disclosed]),
        ),
        DiSCO_cells=len(disclosed) if isinstance(keys, int) else total(keys),
        largest=int(d_tq.max(initial=0)),
        certain=total(s * (SD_has_one & (k.d_q > 0))),
        CAPd=Grouped.sum_by_group(k.d_q, k.dd * k.keys),
        CAPs=Grouped.sum_by_group(k.s_q, k.ss * k.keys),
        DCAP=Grouped.sum_by_group(k.s_q, k.ds * k.keys),
        TCAP_taub=Grouped.sum_by_group(k.d_q[disclosed], k.ds[disclosed] * keys),
    )


def totals_of_tables(f: FrequencyTable, tables: DisclosureTables) -> Totals:
    """From the cells that the exclusions leave; pd and ps are taken anew from them.

    Whether a q is in the other table and whether ps = 1 are of the untouched tables: an intruder sees them
    whatever is excluded.
    """
    d, s = tables.original.values(), tables.synthetic.values()
    d_q, s_q = f.per_key(d)[f.q], f.per_key(s)[f.q]
    denominators = tables.DiSCO.counts[tables.DiSCO.where]
    certain = tables.Dsyn.without(f.d_q == 0)
    return Totals(
        records=Records(**{name: getattr(tables, name).total() for name in Records.__dataclass_fields__}),
        DiSCO_cells=len(denominators),
        largest=int(denominators.max(initial=0)),
        certain=certain.total(),
        CAPd=Grouped.sum_by_group(d_q, d * d),
        CAPs=Grouped.sum_by_group(s_q, s * s),
        DCAP=Grouped.sum_by_group(s_q, s * d),
        TCAP_taub=Grouped.sum_by_group(d_q, certain.values() * d),
    )
