"""Identity disclosure: who is the only one with their keys, and looks so in SD, too.

Source: Raab, Nowok & Dibben 2024, 3.2. Its equations 2 and 3 have misprints; these are the definitions that
its text states. `frequency` explains the notation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.measures.entry import Figure, Place
from disclosure_pipeline.measures.exact import Grouped, IntArray, Mask
from disclosure_pipeline.measures.frequency import Keys, Rows, tabulate_keys
from disclosure_pipeline.measures.samples import chance_of_none_drawn
from disclosure_pipeline.measures.words import RAAB, SYNTHETIC, Words


def is_unique(r: Rows) -> Mask:
    """Mark the records whose q one GT record has, of those that exclusions leave."""
    return r.left_d_q == 1


def looks_unique(r: Rows) -> Mask:
    """Mark the records whose q one SD record has, of those that exclusions leave."""
    return r.left_s_q == 1


def is_replicated(r: Rows) -> Mask:
    """Mark the records that are unique in both."""
    return is_unique(r) & looks_unique(r)


def mark_replicated(d_q: IntArray, s_q: IntArray) -> Mask:
    """Mark the key combinations that one GT record and one SD record have."""
    keys = tabulate_keys(d_q, s_q)
    return is_replicated(Rows(keys, keys.q))


def mark_unique_records(keys: Keys, synthesis: int = 1) -> tuple[Mask, Mask]:
    """Return two masks over the records of a synthesis (1…m): replicated uniques, and uniques that GT has.

    In both, the record's q is unique in the synthesis. In the first it is also unique in GT; in the second it
    occurs in GT, unique or not.
    """
    r = Rows(tabulate_keys(keys.counts[0], keys.counts[synthesis]), keys.q[synthesis])
    return is_replicated(r), looks_unique(r) & (r.d_q > 0)


@dataclass(frozen=True)
class MatchedKeys:
    """Counts of the q that both tables have; integers that add up over keys.

    hits: SD records, by d_q. alone: GT records with s_q = 1, by d_q.
    """

    hits: Grouped
    alone: Grouped


def matched_keys(d_q: IntArray, s_q: IntArray, keys: IntArray | int = 1) -> MatchedKeys:
    """Count from d_q and s_q of each q; an entry can stand for several `keys` with equal counts."""
    matched = np.flatnonzero((d_q > 0) & (s_q > 0))
    d, s = d_q[matched].astype(np.int64), s_q[matched].astype(np.int64)
    number = keys if isinstance(keys, int) else keys[matched]
    return MatchedKeys(Grouped.sum_by_group(d, s * number), Grouped.sum_by_group(d, d * (s == 1) * number))


def uniqueness_of_draw(counts: MatchedKeys, records: int, n: int, N_s: int) -> tuple[float, float]:
    """Return repU and unique_hits in percent, averaged over draws of n from `records` GT records."""

    def none_of_others(grouped: Grouped) -> np.ndarray:
        return chance_of_none_drawn(grouped.groups - 1, records - 1, n - 1)

    alone = float((counts.alone.sums * none_of_others(counts.alone)).sum())
    hits = float((counts.hits.sums * counts.hits.groups * none_of_others(counts.hits)).sum())
    return 100 * alone / records, 100 * hits * n / records / N_s


FIGURES = (
    Figure(
        "UiO",
        Words.neutral(
            "unique in the confidential table",
            "People who are the only ones with their combination of keys.",
            source=RAAB,
            finding="{value} of the people are the only ones with their keys",
        ),
        Place("identity", value="UiO"),
        adds=is_unique,
    ),
    Figure(
        "UiS",
        Words(
            "unique in the synthetic table",
            "Synthetic records that are the only ones with their combination of keys.",
            denominator=SYNTHETIC,
            source=RAAB,
            finding="{value} of the synthetic records are the only ones with their keys",
        ),
        Place("identity", value="UiS"),
        adds=looks_unique,
        basis=SYNTHETIC,
    ),
    Figure(
        "UiOiS",
        Words(
            "unique in the confidential table and found in the synthetic one",
            "People who are the only ones with their combination of keys, which some synthetic record has, "
            "too.",
            source=RAAB,
            finding="{value} of the people are the only ones with their keys and are found in the "
            "synthetic table",
        ),
        Place("identity", value="UiOiS"),
        "found",
        is_stacked=False,
        public="unit",
        adds=lambda r: is_unique(r) & (r.s_q > 0),
    ),
    Figure(
        "repU",
        Words(
            "replicated uniques",
            "People who are the only ones with their combination of keys, which exactly one synthetic record "
            "has, too: it looks like them.",
            source=RAAB,
            finding="{value} of the people are singled out in both tables by what an intruder knows of them",
            subject="people singled out in both tables",
        ),
        Place("identity", value="repU", own="UiO"),
        "found",
        statistics=("at_most", "at_most_share"),
        weighed=Place("population", value="repU_weighted", se="repU_weighted_se", own="UiO_weighted"),
        public="share",
        adds=is_replicated,
    ),
)
