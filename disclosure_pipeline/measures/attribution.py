"""Correct attribution probability (CAP): how often a guess drawn from a record's key is right. [R App. 2]."""

from __future__ import annotations

from dataclasses import dataclass

from disclosure_pipeline.measures.attribute import DisclosureTables
from disclosure_pipeline.measures.exact import percent, percent_of_quotients, total
from disclosure_pipeline.measures.frequency import FrequencyTable


@dataclass(frozen=True)
class Attribution:
    """All in percent; TCAP is DiSCO / iS, as synthpop 1.9-2 prints it, NaN where iS is 0."""

    baseCAPd: float
    CAPd: float
    CAPs: float
    DCAP: float
    TCAP: float


def attribution(f: FrequencyTable, tables: DisclosureTables) -> Attribution:
    """The CAP figures of what the exclusions leave; pd and ps are taken anew from it.

    N_d, N_s and baseCAPd (the chance of a right guess without any key) stay those of all records.
    """
    d, s = tables.original.values(), tables.synthetic.values()
    d_q, s_q = f.per_key(d)[f.q], f.per_key(s)[f.q]
    d_t = f.per_target(f.d)
    return Attribution(
        baseCAPd=percent(total(d_t * d_t), f.N_d * f.N_d),
        CAPd=percent_of_quotients(d * d, d_q, f.N_d),
        CAPs=percent_of_quotients(s * s, s_q, f.N_s),
        DCAP=percent_of_quotients(s * d, s_q, f.N_d),
        TCAP=percent(tables.DiSCO.total(), tables.iS.total()),
    )
