"""SD records that equal a record of GT, beside what other people's records and columns drawn apart show.

Of people with several records copies and hits are of units:

- unique_hits: SD records whose q exactly one unit has. The others': GT records whose q exactly one other unit
  has, too, as each is a new record to the other units.
- people_copied: f1 are GT records whose combination one unit has, and instead of 2 f2 stands the sum of
  2 d d' over the combinations of two units, which have d and d' records: so often would the others' records
  hit one of the f1, counted once for each record that is hit.

Where every unit has one record, these are the formulas of single records.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Protocol

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.measures.exact import Floats, IntArray, percent, sum_exactly
from disclosure_pipeline.measures.frequency import find_lone_records, first_of_run, run_lengths
from disclosure_pipeline.measures.people import PeopleCounts
from disclosure_pipeline.measures.resemblance import SharedCounts
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.measures.totals import Uniques
from disclosure_pipeline.measures.words import (
    BEYOND_FRESH_SAMPLE,
    BY_FRESH_SAMPLE,
    BY_SYNTHETIC,
    GOOD,
    SYNTHETIC,
    described,
    figure,
    neutral,
    points,
    standard_error_of,
)

_PAIR, _TRIPLE = 2, 3


@dataclass(frozen=True)
class HitCounts:
    """hits: SD records whose q exactly one GT record has.

    pairs, triples: q that exactly two, and exactly three, GT records have (f2, f3). Of units with several
    records (`units`) they are numbers of records, over two and three.
    """

    hits: int
    pairs: float
    triples: float


def hit_counts(d_q: IntArray, s_q: IntArray, keys: IntArray | int = 1) -> HitCounts:
    """Count from the counts of each q; an entry can stand for several `keys` with equal counts."""
    return HitCounts(
        int(((d_q == 1) * s_q * keys).sum()),
        int(((d_q == _PAIR) * keys).sum()),
        int(((d_q == _TRIPLE) * keys).sum()),
    )


@dataclass(frozen=True)
class UniqueHits:
    """unique_hits: percent of SD records. The others': percent of GT records; beyond: percentage points."""

    unique_hits: float = figure(
        "hits on one person",
        "This many synthetic records have a combination of keys that exactly one person has.",
        denominator=SYNTHETIC,
        source=GOOD,
        finding="{value} of the synthetic records point at exactly one person",
        subject="records pointing at one person",
    )
    unique_hits_others: float = neutral(
        "hits on one person, by other people",
        "This many records of a fresh sample of other people would have a combination of keys"
        " that exactly one person has.",
        denominator="records of a fresh sample",
        source=GOOD,
    )
    unique_hits_beyond: float = points(
        "hits on one person beyond other people",
        "So much more often does a synthetic record point at exactly one person than other "
        "people's records would.",
        finding="the share of records pointing at one person is {value} higher than with other people's "
        "records",
        subject="records pointing at one person",
    )
    unique_hits_beyond_se: float = described(standard_error_of("unique_hits_beyond"))


def unique_hits(counts: HitCounts, sizes: Sizes) -> UniqueHits:
    """Return how often an SD record has a q that exactly one GT record has, and how often a new record would.

    A record drawn from the population after N_d others has a q that exactly one of them has with chance
    p = 2 f2 / N_d, about. The variance of the difference is p (1 - p) / N_s, of SD, and
    (4 f2 + 6 f3) / N_d², of GT; its root is at least one record. Source: Good 1953, "The population
    frequencies of species and the estimation of population parameters".
    """
    hits, others = percent(counts.hits, sizes.N_s), percent(round(2 * counts.pairs), sizes.N_d)
    p = min(2 * counts.pairs / max(sizes.N_d, 1), 1.0)
    of_GT = (4 * counts.pairs + 6 * counts.triples) / max(sizes.N_d, 1) ** 2
    return UniqueHits(hits, others, hits - others, 100 * error_of_share(p, sizes.N_s, of_GT))


@dataclass(frozen=True)
class CopyCounts:
    """Integers that add up over whole records.

    copies: SD records that equal a GT record. repeated: GT records that equal another one. unique: SD records
    that equal a GT record which no other one equals. people: those GT records, and how many of them SD holds.
    """

    copies: int
    repeated: int
    unique: HitCounts
    people: PeopleCounts

    def as_found(self) -> FoundCopies:
        """Return the hits, and the people who are found."""
        return FoundCopies(self.unique, self.people)


@dataclass(frozen=True)
class FoundCopies:
    """Copies by some columns: SD records that hit one GT record, and GT records that are found."""

    hits: HitCounts
    people: PeopleCounts

    def hit_once(self) -> HitCounts:
        """Return the hits of which each GT record has one at most, however often SD repeats it."""
        return replace(self.hits, hits=min(self.hits.hits, self.people.found))


@dataclass(frozen=True)
class Copies:
    """Percent of SD records; the others' of GT records; each `beyond` the difference in percentage points."""

    copies: float = figure(
        "copies",
        "This many synthetic records equal a confidential record in every column.",
        denominator=SYNTHETIC,
        finding="{value} of the synthetic records equal a confidential record",
    )
    copies_others: float = neutral(
        "copies among people", "This many confidential records equal another person's record in every column."
    )
    copies_beyond: float = points(
        "copies beyond people",
        "This many more synthetic records equal a confidential record than people's records "
        "equal each other.",
    )
    copies_beyond_se: float = described(standard_error_of("copies_beyond"))
    unique_copies: float = figure(
        "copies of one person",
        "This many synthetic records equal the record of exactly one person in every column.",
        denominator=SYNTHETIC,
        source=GOOD,
        finding="{value} of the synthetic records equal the record of exactly one person",
        beside=BY_SYNTHETIC,
    )
    unique_copies_others: float = neutral(
        "copies of one person in a fresh sample",
        "This many records of a fresh sample of other people would equal exactly one person's record.",
        denominator="records of a fresh sample",
        source=GOOD,
        beside=BY_FRESH_SAMPLE,
    )
    unique_copies_beyond: float = points(
        "copies of one person beyond a fresh sample",
        "This many more synthetic records equal the record of exactly one person than a fresh"
        " sample of other people would show.",
        finding="the share of synthetic records that copy one person is {value} higher than in a fresh "
        "sample",
        beside=BEYOND_FRESH_SAMPLE,
        subject="synthetic records that copy one person",
    )
    unique_copies_beyond_se: float = described(standard_error_of("unique_copies_beyond"))


def copy_counts(d: IntArray, s: IntArray, single: tuple[int, int] = (0, 0)) -> CopyCounts:
    """Count from the number of GT and of SD records with each combination of values."""
    people = PeopleCounts.from_combinations(d, s, single)
    return CopyCounts(int((s * (d > 0)).sum()), int((d * (d > 1)).sum()), hit_counts(d, s), people)


def copies(counts: CopyCounts, sizes: Sizes, records_per_unit: float = 1) -> Copies:
    """Compute copies and unique copies beside what other people's records would show: see `unique_hits`.

    A new record equals one of GT's with GT's coverage, which 1 - f1/N_d estimates with the variance
    (f1 (1 - f1/N_d) + 2 f2) / N_d²; f1 GT records equal no other one. Where people have several records, they
    are drawn together: the variances are that many times as large.

    Source: Esty 1983, "A normal limit law for a nonparametric estimator of the coverage of a random sample".
    """
    copied, repeated = percent(counts.copies, sizes.N_s), percent(counts.repeated, sizes.N_d)
    unique = unique_hits(counts.unique, sizes)
    p, f1 = counts.repeated / max(sizes.N_d, 1), sizes.N_d - counts.repeated
    of_GT = (f1 * p + 2 * counts.unique.pairs) / max(sizes.N_d, 1) ** 2
    together = math.sqrt(records_per_unit)
    return Copies(
        copies=copied,
        copies_others=repeated,
        copies_beyond=copied - repeated,
        copies_beyond_se=100 * together * error_of_share(p, sizes.N_s, of_GT),
        unique_copies=unique.unique_hits,
        unique_copies_others=unique.unique_hits_others,
        unique_copies_beyond=unique.unique_hits_beyond,
        unique_copies_beyond_se=together * unique.unique_hits_beyond_se,
    )


def error_of_share(p: float, records: int, of_expected: float = 0.0) -> float:
    """Return the standard error of a share of `records` less an expected share p with a variance of its own.

    That of one record at least.
    """
    p = min(p, 1.0)
    return max(math.sqrt(p * (1 - p) / max(records, 1) + of_expected), 1 / max(records, 1))


EXPECTED_MISSES = 10.0
"""A fresh sample that would miss so many records, misses none with a chance of about exp(-10)."""


class WholeRecordCounts(Protocol):
    """Counts of the combinations of all columns."""

    @property
    def uniques(self) -> Uniques:
        """Return the counts of single records."""

    @property
    def shared(self) -> SharedCounts:
        """Return the counts of records in both tables."""

    @property
    def unique_hits(self) -> HitCounts:
        """Return the counts of SD records that equal a single GT record."""

    @property
    def people(self) -> PeopleCounts:
        """Return the counts of GT records that equal no other one."""


def has_equal_content(counts: WholeRecordCounts, sizes: Sizes) -> bool:
    """Return whether one table holds all records of the other, where a fresh sample would miss ten at least.

    `counts` are those of whole records. A new record of the population is unlike all GT records with chance
    f1 / N_d (Good-Turing: f1 GT records equal no other one), and equals a given one of these f1 with chance
    2 f2 / (f1 N_d), about.
    """
    unlike = sizes.N_s * counts.uniques.in_GT / sizes.N_d
    if counts.shared.SD_in_GT == sizes.N_s and unlike >= EXPECTED_MISSES:
        return True
    return counts.shared.GT_in_SD == sizes.N_d and _missed_by_a_sample(counts, sizes) >= EXPECTED_MISSES


def _missed_by_a_sample(counts: WholeRecordCounts, sizes: Sizes) -> float:
    """Return how many of the GT records that equal no other one a fresh sample of SD's size would miss."""
    alone = counts.uniques.in_GT
    if not alone:
        return 0.0
    chance = min(1.0, 2 * counts.unique_hits.pairs / (alone * sizes.N_d))
    return alone * math.exp(sizes.N_s * math.log1p(-chance)) if chance < 1 else 0.0


def chances_of_independent_columns(
    codes: Sequence[IntArray],
    levels: Sequence[int],
    sets: Sequence[Sequence[int]],
    alone: Sequence[IntArray] | None = None,
) -> list[npt.NDArray[np.float64]]:
    """Return the chances that a record with columns drawn apart from GT's hits a certain GT record.

    For each set of columns (by their places), of each GT record whose combination no other one has, in any
    order, or of the records of `alone` (positions for each set): Π p_j, p_j the share of the records with its
    level of column j. `codes`: of each column the level of every GT record (or of a sample), below its entry
    of `levels`.

    >>> codes = [np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1])]
    >>> [chances.tolist() for chances in chances_of_independent_columns(codes, [2, 2], [[0, 1], [1]])]
    [[0.375, 0.125], [0.25]]
    """
    shares = [
        (np.bincount(column, minlength=size) / len(column))[column]
        for column, size in zip(codes, levels, strict=True)
    ]
    found = alone or (
        find_lone_records([codes[k] for k in places], [levels[k] for k in places]) for places in sets
    )
    return [
        reduce(np.multiply, (shares[k][records] for k in places))
        for places, records in zip(sets, found, strict=True)
    ]


def hits_of_independent_columns(chances: npt.NDArray[np.float64]) -> float:
    """Return the percent of records with columns drawn apart that hit one of these GT records."""
    return 100 * sum_exactly(chances)


@dataclass(frozen=True)
class UnitCombinations:
    """For each combination the GT records, the units that have some, and the sum of their squares."""

    d: IntArray
    units: IntArray
    squares: IntArray

    @classmethod
    def from_records(cls, q: IntArray, unit: IntArray, keys: int) -> UnitCombinations:
        """Count the GT records with each of `keys` combinations."""
        order = np.lexsort((unit, q))
        q, unit = q[order], unit[order]
        first = np.flatnonzero(first_of_run(q) | first_of_run(unit))
        records, of_pair = run_lengths(first, len(q)), q[first]
        d, units, squares = (np.zeros(keys, dtype=np.int64) for _ in range(3))
        for sums, values in ((d, records), (units, 1), (squares, records * records)):
            np.add.at(sums, of_pair, values)
        return cls(d, units, squares)

    def count_hits(self, s: IntArray) -> HitCounts:
        """Count the SD records that hit a lone unit; pairs and triples are records over 2 and 3."""
        pairs, triples = (int(self.d[self.units == n].sum()) / n for n in (_PAIR, _TRIPLE))
        return HitCounts(int(s[self.units == 1].sum()), pairs, triples)

    def count_people(self, s: IntArray) -> PeopleCounts:
        """Count the GT records whose combination one unit has, and those of them that are in SD."""
        return self.count_people_in(s, np.zeros(len(s), dtype=np.int64), 1)[0]

    def count_people_in(self, s: IntArray, groups: IntArray, number: int) -> list[PeopleCounts]:
        """Count as `count_people` among the combinations of each of so many groups."""
        alone = self.units == 1
        counted = (
            (alone, self.d),
            (self.units == _PAIR, (self.d * self.d - self.squares) // 2),
            (alone & (s > 0), self.d),
            (s == 1, s),
        )
        sums = np.zeros((number, len(counted)), dtype=np.int64)
        for column, (chosen, records) in enumerate(counted):
            np.add.at(sums[:, column], groups[chosen], records[chosen])
        return [PeopleCounts(*of_group) for of_group in sums.tolist()]

    def count_repeated(self) -> int:
        """Count the GT records that equal a record of another unit."""
        return int(self.d[self.units > 1].sum())


def find_lone_units(q: IntArray, unit: IntArray) -> IntArray:
    """Return the positions of the records whose combination no other unit has.

    >>> find_lone_units(np.array([0, 0, 1, 1, 2]), np.array([5, 5, 5, 6, 6])).tolist()
    [0, 1, 4]
    """
    combinations = UnitCombinations.from_records(q, unit, int(q.max(initial=-1)) + 1)
    return np.flatnonzero(combinations.units[q] == 1)


ENOUGH_RECORDS = 20_000
"""The number of records that tells how often records would repeat by chance."""

MANY_REPEATS = 20.0
"""Percent of the records that repeat, over those by chance: then it is asked whose they are."""


def repeats_beyond_independence(repeated: int, shares: Sequence[Floats], records: int) -> float:
    """Return the percent of `records` that equal another one, beyond those where columns are drawn apart.

    `shares`: of each column the share of the records that have its level, for every record or for some.

    >>> round(repeats_beyond_independence(80, [np.full(100, 0.01)], 100), 1)
    17.0
    """
    chance = np.multiply.reduce(shares)
    apart = -np.expm1((records - 1) * np.log1p(-np.minimum(chance, 1 - 1e-12)))
    return 100 * (repeated / records - float(apart.mean()))
