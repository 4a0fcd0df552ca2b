"""SD records that equal a GT record, beside how often one GT record equals another.

This project's own. That most records are copies is no sign of anything where columns are few: in GT itself
most records are copies of another then. Over the columns of all but one, or of some, it sees near copies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from disclosure_pipeline.measures.exact import IntArray, percent
from disclosure_pipeline.measures.hits import HitCounts, hit_counts, unique_hits
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.measures.words import (
    BEYOND_FRESH_SAMPLE,
    BY_FRESH_SAMPLE,
    BY_SYNTHETIC,
    GOOD,
    POINTS,
    SYNTHETIC,
    Words,
)


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

    copies: Annotated[
        float,
        Words(
            "copies",
            "So many synthetic records equal a confidential record in every column.",
            denominator=SYNTHETIC,
            finding="{value} of the synthetic records equal a confidential record",
        ),
    ]
    copies_others: Annotated[
        float,
        Words(
            "copies among people",
            "So many confidential records equal another person's record in every column.",
            high_is="neither",
        ),
    ]
    copies_beyond: Annotated[
        float,
        Words(
            "copies beyond people",
            "So many more synthetic records equal a confidential record than people's records "
            "equal each other.",
            unit=POINTS,
            denominator="",
        ),
    ]
    unique_copies: Annotated[
        float,
        Words(
            "copies of one person",
            "So many synthetic records equal the record of exactly one person in every column.",
            denominator=SYNTHETIC,
            source=GOOD,
            finding="{value} of the synthetic records equal the record of exactly one person",
            beside=BY_SYNTHETIC,
        ),
    ]
    unique_copies_others: Annotated[
        float,
        Words(
            "copies of one person in a fresh sample",
            "So many records of a fresh sample of other people would equal the record of exactly one person.",
            denominator="records of a fresh sample",
            high_is="neither",
            source=GOOD,
            beside=BY_FRESH_SAMPLE,
        ),
    ]
    unique_copies_beyond: Annotated[
        float,
        Words(
            "copies of one person beyond a fresh sample",
            "So many more synthetic records equal the record of exactly one person than a fresh"
            " sample of other people would show.",
            unit=POINTS,
            denominator="",
            finding="{value} more of the synthetic records are copies of one person than a fresh sample"
            " would show",
            beside=BEYOND_FRESH_SAMPLE,
        ),
    ]


def copy_counts(d: IntArray, s: IntArray) -> CopyCounts:
    """From the number of GT and of SD records with each combination of values."""
    return CopyCounts(int((s * (d > 0)).sum()), int((d * (d > 1)).sum()), hit_counts(d, s))


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
