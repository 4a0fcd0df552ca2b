"""SD records that hit a combination which exactly one GT record has, and how often a new record would.

Over the keys these are unique hits, over all columns unique copies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from disclosure_pipeline.measures.exact import IntArray, percent
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.measures.words import GOOD, POINTS, SYNTHETIC, Words

_PAIR, _TRIPLE = 2, 3


@dataclass(frozen=True)
class HitCounts:
    """hits: SD records whose q exactly one GT record has.

    pairs, triples: q that exactly two, and exactly three, GT records have (f2, f3).
    """

    hits: int
    pairs: int
    triples: int


def hit_counts(d_q: IntArray, s_q: IntArray, keys: IntArray | int = 1) -> HitCounts:
    """From the counts of each q; an entry can stand for several `keys` that have the same counts."""
    return HitCounts(
        int(((d_q == 1) * s_q * keys).sum()),
        int(((d_q == _PAIR) * keys).sum()),
        int(((d_q == _TRIPLE) * keys).sum()),
    )


@dataclass(frozen=True)
class UniqueHits:
    """unique_hits: percent of SD records. The others': percent of GT records; beyond: percentage points."""

    unique_hits: Annotated[
        float,
        Words(
            "hits on one person",
            "So many synthetic records have a combination of keys that exactly one person has.",
            denominator=SYNTHETIC,
            source=GOOD,
            finding="{value} of the synthetic records point at exactly one person",
        ),
    ]
    unique_hits_others: Annotated[
        float,
        Words(
            "hits on one person, by other people",
            "So many records of a fresh sample of other people would have a combination of keys"
            " that exactly one person has.",
            denominator="records of a fresh sample",
            high_is="neither",
            source=GOOD,
        ),
    ]
    unique_hits_beyond: Annotated[
        float,
        Words(
            "hits on one person beyond other people",
            "So much more often does a synthetic record point at exactly one person than other "
            "people's records would.",
            unit=POINTS,
            denominator="",
            finding="synthetic records point at exactly one person {value} more often than other "
            "people's records would",
        ),
    ]


def unique_hits(counts: HitCounts, sizes: Sizes) -> UniqueHits:
    """How often an SD record has a q that exactly one GT record has, and how often a new record would.

    A record drawn from the population after N_d others has a q that exactly one of them has with chance
    2 f2 / N_d, about. Source: Good 1953, "The population frequencies of species and the estimation of
    population parameters".
    """
    hits, others = percent(counts.hits, sizes.N_s), percent(2 * counts.pairs, sizes.N_d)
    return UniqueHits(hits, others, hits - others)
