"""Figures of a holdout beside those of GT: of people whose records had no part in making SD.

What is told record by record (iS, DiSCO, DCAP, the guess) does not depend on how many records there are.
Whether a record is unique does: there both are brought to the smaller of both sizes, on average over all
draws of so many records.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.measures.exact import Grouped, IntArray, percent
from disclosure_pipeline.measures.intervals import newcombe
from disclosure_pipeline.measures.samples import none_drawn
from disclosure_pipeline.measures.words import POINTS, figure

_NEWCOMBE = "Newcombe 1998"

SHARED_CONFIDENCE = 0.999
"""Of the interval that tells whether a holdout shares records with GT: a false alarm would be a nuisance."""


@dataclass(frozen=True)
class MatchedKeys:
    """Uniqueness in a draw of the q that both tables have; integers that add up over keys.

    hits: SD records by d_q. alone: GT records whose q one SD record has, by d_q.
    """

    hits: Grouped
    alone: Grouped


def matched_keys(d_q: IntArray, s_q: IntArray, keys: IntArray | int = 1) -> MatchedKeys:
    """Count from the counts of each q; an entry can stand for several `keys` with equal counts."""
    matched = np.flatnonzero((d_q > 0) & (s_q > 0))
    d, s = d_q[matched].astype(np.int64), s_q[matched].astype(np.int64)
    number = keys if isinstance(keys, int) else keys[matched]
    return MatchedKeys(Grouped.sum_by_group(d, s * number), Grouped.sum_by_group(d, d * (s == 1) * number))


def unique_at(counts: MatchedKeys, records: int, n: int, N_s: int) -> tuple[float, float]:
    """Return repU and unique_hits, in percent, on average over draws of n of so many records.

    repU is of the n records, unique_hits of all N_s SD records.
    """

    def none_of_others(grouped: Grouped) -> np.ndarray:
        return none_drawn(grouped.groups - 1, records - 1, n - 1)

    alone = float((counts.alone.sums * none_of_others(counts.alone)).sum())
    hits = float((counts.hits.sums * counts.hits.groups * none_of_others(counts.hits)).sum())
    return 100 * alone / records, 100 * hits * n / records / N_s


@dataclass(frozen=True)
class BesideHoldout:
    """A figure of GT and of the holdout, in percent, and GT's less the holdout's in percentage points.

    With Newcombe's interval for two independent shares: records of one q are told the same, so it is too
    narrow where many records share one.
    """

    ground_truth: float = figure(
        "figure of the confidential records", "What the synthetic table tells of them."
    )
    holdout: float = figure(
        "figure of the holdout",
        "What the synthetic table tells of people who had no part in making it.",
        denominator="holdout records",
        high_is="neither",
    )
    difference: float = figure(
        "beyond the holdout",
        "So much more the synthetic table tells of the people whom it was made from than of others.",
        POINTS,
    )
    difference_low: float = figure(
        "beyond the holdout, low end",
        "The lower end of the interval of the difference.",
        POINTS,
        source=_NEWCOMBE,
    )
    difference_high: float = figure(
        "beyond the holdout, high end",
        "The upper end of the interval of the difference.",
        POINTS,
        source=_NEWCOMBE,
    )


def beside_holdout(of_GT: float, N_d: float, of_holdout: float, records: float) -> BesideHoldout:
    """Put two percentages, of N_d and of so many records (or units of them), side by side."""
    low, high = newcombe(of_GT / 100 * N_d, N_d, of_holdout / 100 * records, records)
    return BesideHoldout(of_GT, of_holdout, of_GT - of_holdout, 100 * low, 100 * high)


@dataclass(frozen=True)
class SharedRecords:
    """Percent of the holdout's records that equal a GT record, and one that no other GT record equals.

    The others: of the GT records, what records of other people show (`copies`, `hits`).
    """

    copies: float
    copies_others: float
    unique_copies: float
    unique_copies_others: float
    beyond: bool


def shared_records(
    copies: int, unique_copies: int, records: int, repeated: int, pairs: float, N_d: int
) -> SharedRecords:
    """Return whether a holdout has more of GT's records than a fresh sample would: `beyond`.

    `repeated` GT records equal another one, `pairs` are the whole records that exactly two GT records have.
    """
    all_of, unique_of = (copies, repeated), (unique_copies, round(2 * pairs))
    lows = [newcombe(part, records, other, N_d, SHARED_CONFIDENCE)[0] for part, other in (all_of, unique_of)]
    return SharedRecords(
        percent(copies, records),
        percent(repeated, N_d),
        percent(unique_copies, records),
        percent(round(2 * pairs), N_d),
        max(lows) > 0,
    )
