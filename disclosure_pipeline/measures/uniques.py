"""Replicated uniques: the synthetic records that point at one person. (synthpop `replicated.uniques`)."""

from __future__ import annotations

from disclosure_pipeline.measures.exact import Mask
from disclosure_pipeline.measures.frequency import Keys


def unique_records(keys: Keys, synthesis: int = 1) -> tuple[Mask, Mask]:
    """Two masks over the records of a synthesis (1…m) whose q is unique in it.

    First: its q is unique in GT too (a replicated unique). Second: its q occurs in GT, unique or not.
    """
    d_q, s_q = keys.counts[0], keys.counts[synthesis]
    q = keys.q[synthesis]
    return ((s_q == 1) & (d_q == 1))[q], ((s_q == 1) & (d_q > 0))[q]
