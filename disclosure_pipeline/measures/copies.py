"""SD records that equal a GT record, beside how often one GT record equals another.

This project's own. That most records are copies is no sign of anything where columns are few: in GT itself
most records are copies of another then. Over the columns of all but one, or of some, it sees near copies.
"""

from __future__ import annotations

from dataclasses import dataclass

from disclosure_pipeline.measures.exact import IntArray, percent
from disclosure_pipeline.measures.hits import HitCounts, hit_counts, unique_hits
from disclosure_pipeline.measures.samples import Sizes


@dataclass(frozen=True)
class CopyCounts:
    """Integers that add up over whole records.

    copies: SD records that equal a GT record. repeated: GT records that equal another one. unique: SD records
    that equal a GT record which no other one equals.
    """

    copies: int
    repeated: int
    unique: HitCounts


@dataclass(frozen=True)
class Copies:
    """Percent of SD records; the others' of GT records; each `beyond` the difference in percentage points."""

    copies: float
    copies_others: float
    copies_beyond: float
    unique_copies: float
    unique_copies_others: float
    unique_copies_beyond: float


def copy_counts(d: IntArray, s: IntArray) -> CopyCounts:
    """From the number of GT and of SD records with each combination of values."""
    return CopyCounts(int(s[d > 0].sum()), int(d[d > 1].sum()), hit_counts(d, s))


def copies(counts: CopyCounts, sizes: Sizes) -> Copies:
    """Copies and unique copies, and what other people's records would show: see `hits.unique_hits`."""
    copied, repeated = percent(counts.copies, sizes.N_s), percent(counts.repeated, sizes.N_d)
    unique = unique_hits(counts.unique, sizes)
    return Copies(
        copies=copied,
        copies_others=repeated,
        copies_beyond=copied - repeated,
        unique_copies=unique.unique_hits,
        unique_copies_others=unique.unique_hits_others,
        unique_copies_beyond=unique.unique_hits_beyond,
    )
