"""SD records that equal a GT record, compared with other people's records and independently drawn columns.

If people have several records, copies and hits refer to units (people) instead of records:

- unique_hits: SD records whose q exactly one unit has. For the others: GT records whose q exactly one other
  unit has, since each is a new record to the other units. With the keys drawn apart: each q that exactly one
  unit has counts once, however many records of the unit have it.
- people_copied: f1 is the number of GT records whose combination only one unit has. 2 f2 is replaced by the
  sum of 2 d d' over the combinations of two units with d and d' records: the number of hits on the f1 by
  others' records, counted once for each record that is hit.

If every unit has one record, these are the formulas for records.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.measures.entry import Default, Figure, Place, place_beyond
from disclosure_pipeline.measures.exact import Floats, IntArray, Mask, percent, sum_by_position, sum_exactly
from disclosure_pipeline.measures.frequency import find_lone_combinations, first_of_run, run_lengths
from disclosure_pipeline.measures.people import PeopleCopied, PeopleCounts
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.measures.words import (
    BEYOND_FRESH_SAMPLE,
    BY_FRESH_SAMPLE,
    BY_INDEPENDENT_COLUMNS,
    BY_SYNTHETIC,
    COUNT,
    GOOD,
    SYNTHETIC,
    Words,
    described,
    figure,
    neutral,
    points,
    standard_error_of,
    words_of_fields,
)

ALL_COLUMNS = "all columns"
"""The name of the set of all shared columns, beside sets of some of them."""

_PAIR, _TRIPLE = 2, 3


@dataclass(frozen=True)
class HitCounts:
    """hits: SD records whose q exactly one GT record has.

    pairs, triples: numbers of q that exactly two and exactly three GT records have (f2, f3); for units with
    several records, the numbers of their records divided by two and three.
    """

    hits: int
    pairs: float
    triples: float


@dataclass(frozen=True)
class UniqueHits:
    """unique_hits: percent of SD records. The others': percent of GT records.

    unique_hits_apart: percent of records whose keys are drawn independently. beyond: percentage points beyond
    the larger of the two.
    """

    unique_hits: float = figure(
        "hits on one person",
        "Synthetic records whose combination of keys exactly one person has.",
        denominator=SYNTHETIC,
        source=GOOD,
        finding="{value} of the synthetic records point at exactly one person by what an intruder knows",
        subject="records pointing at one person",
    )
    unique_hits_others: float = neutral(
        "hits on one person, by other people",
        "Records of a fresh sample of other people whose combination of keys exactly one person would have.",
        denominator="records of a fresh sample",
        source=GOOD,
        finding="of other people's records, or of keys drawn apart, {value} would",
    )
    unique_hits_apart: float = neutral(
        "hits on one person, by keys drawn apart",
        "Records whose combination of keys exactly one person would have if each key were drawn "
        "independently from the synthetic table; 0 for a single key.",
        denominator="records drawn key by key",
        beside=BY_INDEPENDENT_COLUMNS,
    )
    unique_hits_beyond: float = points(
        "hits on one person beyond other people",
        "How much more often a synthetic record points at exactly one person than other people's records, or "
        "keys drawn one by one from the synthetic table, would.",
        finding="{more} synthetic records in 100 point at exactly one person by what an intruder knows than "
        "other people's records, or keys drawn apart, would",
        subject="records pointing at one person",
    )
    unique_hits_beyond_se: float = described(standard_error_of("unique_hits_beyond"))


def unique_hits(counts: HitCounts, sizes: Sizes, apart: float) -> UniqueHits:
    """Compare how often SD records, and records that tell of nobody, have the q of exactly one GT record.

    A record drawn from the population after N_d others has a q that exactly one of them has with a chance of
    about p = 2 f2 / N_d (Good-Turing). The variance of the difference is p (1 - p) / N_s (SD) plus
    (4 f2 + 6 f3) / N_d² (GT).

    `apart` is the percent of hits by records whose columns are drawn independently, with the variance
    p (1 - p) / N_s: none of them stands for a person, however often they hit one because rare combinations
    are over-represented. SD is compared with the larger of both; the standard error is the larger one, at
    least one record.

    Source: Good 1953, "The population frequencies of species and the estimation of population parameters".
    """
    hits, others = percent(counts.hits, sizes.N_s), percent(round(2 * counts.pairs), sizes.N_d)
    p = min(2 * counts.pairs / max(sizes.N_d, 1), 1.0)
    variance_GT = (4 * counts.pairs + 6 * counts.triples) / max(sizes.N_d, 1) ** 2
    error = max(error_of_share(p, sizes.N_s, variance_GT), error_of_share(apart / 100, sizes.N_s))
    return UniqueHits(hits, others, apart, hits - max(others, apart), 100 * error)


@dataclass(frozen=True)
class CopyCounts:
    """Integers that add up over combinations of some columns.

    copies: SD records that equal a GT record. unique: SD records that equal exactly one GT record. people:
    those GT records, and how many of them SD holds.
    """

    copies: int
    unique: HitCounts
    people: PeopleCounts

    def hit_once(self) -> HitCounts:
        """Return the hits with each GT record counted at most once, however often SD repeats it."""
        return replace(self.unique, hits=min(self.unique.hits, self.people.found))


@dataclass(frozen=True)
class Copies:
    """Percent of SD records; the others' of GT records; each `beyond` the difference in percentage points."""

    copies: float = figure(
        "copies",
        "Synthetic records that equal a confidential record in every column.",
        denominator=SYNTHETIC,
        finding="{value} of the synthetic records equal a confidential record",
    )
    copies_others: float = neutral(
        "copies among people", "Confidential records that equal another person's record in every column."
    )
    copies_beyond: float = points(
        "copies beyond people",
        "How many more synthetic records equal a confidential record than people's records equal each other.",
    )
    copies_beyond_se: float = described(standard_error_of("copies_beyond"))
    unique_copies: float = figure(
        "copies of one person",
        "Synthetic records that equal the record of exactly one person in every column.",
        denominator=SYNTHETIC,
        source=GOOD,
        finding="{value} of the synthetic records are one real person's record, unchanged",
        beside=BY_SYNTHETIC,
        subject="synthetic records that are one real person's, unchanged",
    )
    unique_copies_others: float = neutral(
        "copies of one person in a fresh sample",
        "Records of a fresh sample of other people that would equal exactly one person's record.",
        denominator="records of a fresh sample",
        source=GOOD,
        finding="of as many records of other people {value} would be",
        beside=BY_FRESH_SAMPLE,
    )
    unique_copies_apart: float = neutral(
        "copies of one person if columns are drawn independently",
        "This many records would equal one person's record if every column were drawn independently.",
        denominator="records drawn column by column",
        beside=BY_INDEPENDENT_COLUMNS,
    )
    unique_copies_beyond: float = points(
        "copies of one person beyond a fresh sample",
        "How many more synthetic records equal the record of exactly one person than records of a fresh "
        "sample of other people would.",
        finding="{more} synthetic records in 100 are one real person's record, unchanged, than of as many "
        "records of other people would be",
        beside=BEYOND_FRESH_SAMPLE,
        subject="synthetic records that are one real person's, unchanged",
    )
    unique_copies_beyond_se: float = described(standard_error_of("unique_copies_beyond"))


def copies(counts: CopyCounts, sizes: Sizes, apart: float, records_per_unit: float = 1) -> Copies:
    """Compare copies and unique copies with other people's records: see `unique_hits`, for `apart`, too.

    The chance that a new record equals one of GT's is GT's coverage, estimated as 1 - f1/N_d with the
    variance (f1 (1 - f1/N_d) + 2 f2) / N_d²; f1 GT records equal no other one. If people have several
    records, these are drawn together, and the variances are multiplied by `records_per_unit`.

    Source: Esty 1983, "A normal limit law for a nonparametric estimator of the coverage of a random sample".
    """
    f1 = counts.people.alone
    copied, repeated = percent(counts.copies, sizes.N_s), percent(sizes.N_d - f1, sizes.N_d)
    unique = unique_hits(counts.unique, sizes, apart)
    p = (sizes.N_d - f1) / max(sizes.N_d, 1)
    variance_GT = (f1 * p + 2 * counts.unique.pairs) / max(sizes.N_d, 1) ** 2
    together = math.sqrt(records_per_unit)
    return Copies(
        copies=copied,
        copies_others=repeated,
        copies_beyond=copied - repeated,
        copies_beyond_se=100 * together * error_of_share(p, sizes.N_s, variance_GT),
        unique_copies=unique.unique_hits,
        unique_copies_others=unique.unique_hits_others,
        unique_copies_apart=unique.unique_hits_apart,
        unique_copies_beyond=unique.unique_hits_beyond,
        unique_copies_beyond_se=together * unique.unique_hits_beyond_se,
    )


def error_of_share(p: float, records: int, expected_variance: float = 0.0) -> float:
    """Return the standard error of a share of `records` minus its expected share p, at least one record.

    `expected_variance`: variance of p itself.
    """
    p = min(p, 1.0)
    return max(math.sqrt(p * (1 - p) / max(records, 1) + expected_variance), 1 / max(records, 1))


EXPECTED_MISSES = 10.0
"""A fresh sample that misses 10 records on average misses none with a chance of about exp(-10)."""


def has_equal_content(counts: CopyCounts, GT_in_SD: int, sizes: Sizes) -> bool:
    """Return whether one table holds all records of the other, where a fresh sample would miss ten or more.

    `counts` are of whole records; SD has `GT_in_SD` of GT's.
    By Good-Turing, a new record of the population differs from all GT records with chance f1 / N_d, and
    equals a given one of the f1 lone GT records with a chance of about 2 f2 / (f1 N_d). GT lacks at least
    about f1² / (2 f2) records of the population (Chao 1984): if these are few, it may by chance lack none.
    """
    alone = counts.people.alone
    lacking = alone**2 / (2 * max(counts.unique.pairs, 1))
    unlike = min(sizes.N_s * alone / sizes.N_d, lacking)
    if counts.copies == sizes.N_s and unlike >= EXPECTED_MISSES:
        return True
    return GT_in_SD == sizes.N_d and _missed_by_a_sample(counts, sizes) >= EXPECTED_MISSES


def _missed_by_a_sample(counts: CopyCounts, sizes: Sizes) -> float:
    """Return the expected number of lone GT records that a fresh sample of SD's size misses."""
    alone = counts.people.alone
    if not alone:
        return 0.0
    chance = min(1.0, 2 * counts.unique.pairs / (alone * sizes.N_d))
    return alone * math.exp(sizes.N_s * math.log1p(-chance)) if chance < 1 else 0.0


def chances_of_independent_columns(
    codes: Sequence[IntArray], levels: Sequence[int], sets: Sequence[Sequence[int]], unit: IntArray
) -> Iterator[tuple[npt.NDArray[np.float64], IntArray]]:
    """Yield the chances that a record whose columns are drawn independently from GT's hits one person.

    For each set of columns, in any order, a chance for each combination that no other unit has, and the GT
    records of that unit with it: Π p_j, where p_j is the share of records with its level of column j.

    Args:
        codes: For each column the levels of all GT records (or of a sample), below its entry of `levels`.
        levels: Number of levels of each column.
        sets: Sets of columns, by position.
        unit: Whose each record is.

    >>> codes = [np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1])]
    >>> found = chances_of_independent_columns(codes, [2, 2], [[0, 1], [1]], np.arange(4))
    >>> [chances.tolist() for chances, _ in found]
    [[0.375, 0.125], [0.25]]
    """
    shares = [
        (np.bincount(column, minlength=size) / len(column))[column]
        for column, size in zip(codes, levels, strict=True)
    ]
    for places in sets:
        of_set = [codes[k] for k in places], [levels[k] for k in places]
        combinations, records = find_lone_combinations(*of_set, unit)
        yield reduce(np.multiply, (shares[k][combinations] for k in places)), records


def hits_of_independent_columns(chances: npt.NDArray[np.float64]) -> float:
    """Return the percent of records with independently drawn columns that have one of these combinations."""
    return 100 * sum_exactly(chances)


@dataclass(frozen=True)
class Combinations:
    """For each combination: GT records, units that have any, and the sum over units of records².

    An entry can stand for several `keys` with equal counts.
    """

    d: IntArray
    units: IntArray
    squares: IntArray
    keys: IntArray | int = 1

    @classmethod
    def of_records(cls, d: IntArray, keys: IntArray | int = 1) -> Combinations:
        """Return the combinations of records that are each another person's."""
        return cls(d, d, d, keys)

    @classmethod
    def of_units(cls, q: IntArray, unit: IntArray, size: int) -> Combinations:
        """Count from the combination (below `size`) and the unit of each GT record."""
        order = np.lexsort((unit, q))
        q, unit = q[order], unit[order]
        first = np.flatnonzero(first_of_run(q) | first_of_run(unit))
        records, q_of_pair = run_lengths(first, len(q)), q[first]
        return cls(*(sum_by_position(q_of_pair, values, size) for values in (records, 1, records * records)))

    def count_copies(self, s: IntArray, single: tuple[int, int] = (0, 0)) -> CopyCounts:
        """Count the copies of units; `s`: the SD records with each combination.

        `single`: numbers of further combinations that exactly one GT record, or one SD record, has and the
        other table lacks.
        """
        people = self.count_people(s)
        people = replace(people, alone=people.alone + single[0], alone_in_SD=people.alone_in_SD + single[1])
        return CopyCounts(self._count(s, self.d > 0), self.count_hits(s), people)

    def count_hits(self, s: IntArray) -> HitCounts:
        """Count the SD records that hit exactly one unit."""
        pairs, triples = (_divide(self._count(self.d, self.units == n), n) for n in (_PAIR, _TRIPLE))
        return HitCounts(self._count(s, self.units == 1), pairs, triples)

    def count_people(self, s: IntArray) -> PeopleCounts:
        """Count the GT records whose combination only one unit has, and those of them that are in SD."""
        alone = self.units == 1
        return PeopleCounts(
            self._count(self.d, alone),
            self._count((self.d * self.d - self.squares) // 2, self.units == _PAIR),
            self._count(self.d, alone & (s > 0)),
            self._count(s, s == 1),
        )

    def _count(self, records: IntArray, where: Mask) -> int:
        return int((records * where * self.keys).sum())


def _divide(records: int, units: int) -> float:
    """Return the records a unit; an integer wherever all have as many."""
    return records // units if records % units == 0 else records / units


ENOUGH_RECORDS = 20_000
"""Number of records from which the rate of repeats by chance is estimated."""

MANY_REPEATS = 20.0
"""Percent of records that repeat beyond chance from which on people may have several records."""


def repeats_beyond_independence(repeated: int, shares: Sequence[Floats], records: int) -> float:
    """Return the percent of `records` that equal another one, minus that of independently drawn columns.

    `shares`: for each column the share of records with the level of each record (of all or of a sample).

    >>> round(repeats_beyond_independence(80, [np.full(100, 0.01)], 100), 1)
    17.0
    """
    chance = np.multiply.reduce(shares)
    independent = -np.expm1((records - 1) * np.log1p(-np.minimum(chance, 1 - 1e-12)))
    return 100 * (repeated / records - float(independent.mean()))


_WORDS = words_of_fields(UniqueHits)

FIGURES = (
    Figure(
        "equal_content",
        Words(
            "equal content",
            "It is 1 if one table holds all records of the other, 0 otherwise.",
            COUNT,
            finding="tables that hold every record of the other, unchanged: {value}",
        ),
        Place("guards", value="equal_content"),
        "copied",
        largest=1,
        meaning="one table holds every record of the other, unchanged, as a copy of the ground truth would",
        default=Default("at_most", 0, ""),
        public="unit",
    ),
    Figure(
        "unique_hits",
        _WORDS["unique_hits"],
        place_beyond("identity", "unique_hits", others=("unique_hits_others", "unique_hits_apart")),
        "found",
        statistics=("beyond",),
        beyond=_WORDS["unique_hits_beyond"],
        public="share",
    ),
    Figure(
        "unique_hits_apart",
        _WORDS["unique_hits_apart"],
        Place("identity", value="unique_hits_apart", others="unique_hits_others"),
        "found",
        is_stacked=False,
        public="unit",
    ),
    Figure(
        "people_copied",
        words_of_fields(PeopleCopied)["people_copied"],
        place_beyond(
            "guards",
            "people_copied",
            others="people_copied_expected",
            by_chance="people_copied_by_chance",
            about=ALL_COLUMNS,
        ),
        "copied",
        about="columns",
        also=("partial_copies",),
        is_stacked=False,
        public="unit",
    ),
)
