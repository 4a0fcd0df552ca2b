"""How much of one table's values occur in the other: tables that share little cannot be compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from disclosure_pipeline.measures.exact import IntArray, percent
from disclosure_pipeline.measures.frequency import Keys
from disclosure_pipeline.measures.words import Words


@dataclass(frozen=True)
class Overlap:
    """Percent of GT records whose value occurs in SD, and of SD records whose value occurs in GT."""

    GT_in_SD: Annotated[
        float,
        Words(
            "confidential values found in the synthetic table",
            "So many confidential records have a value that occurs in the synthetic table.",
            denominator="confidential records with a value",
            high_is="neither",
        ),
    ]
    SD_in_GT: Annotated[
        float,
        Words(
            "synthetic values found in the confidential table",
            "So many synthetic records have a value that occurs in the confidential table.",
            denominator="synthetic records with a value",
            high_is="neither",
        ),
    ]


def overlap(d: IntArray, s: IntArray) -> Overlap:
    """From the number of GT and of SD records with each value of a column, or of the whole key.

    NaN where a table has no record at all.
    """
    return Overlap(
        GT_in_SD=percent(d[s > 0].sum(), d.sum()),
        SD_in_GT=percent(s[d > 0].sum(), s.sum()),
    )


@dataclass(frozen=True)
class Shared:
    """The number of GT records whose value occurs in SD, and of SD records whose value occurs in GT."""

    GT_in_SD: int
    SD_in_GT: int


def shared(d: IntArray, s: IntArray) -> Shared:
    """From the number of GT and of SD records with each value of a column, or of the whole key."""
    return Shared(int((d * (s > 0)).sum()), int((s * (d > 0)).sum()))


def copies(rows: Keys) -> tuple[int, ...]:
    """The number of records of each synthesis that are in GT too; `rows` combines every column compared."""
    in_GT = rows.counts[0] > 0
    return tuple(int(in_GT[q].sum()) for q in rows.q[1:])
