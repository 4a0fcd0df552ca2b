"""People with several records: copies and hits are of units, and a household is found by any of its members.

- unique_hits: SD records whose q exactly one unit has. The others': GT records whose q exactly one other unit
  has, too, as each is a new record to the other units.
- people_copied: f1 are GT records whose combination one unit has, and instead of 2 f2 stands the sum of
  2 d d' over the combinations of two units, which have d and d' records: so often would the others' records
  hit one of the f1, counted once for each record that is hit.

Where every unit has one record, these are the formulas of `copies` and `people`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.measures.chance import Floats
from disclosure_pipeline.measures.copies import HitCounts
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.measures.frequency import first_of_run, run_lengths
from disclosure_pipeline.measures.people import PeopleCounts
from disclosure_pipeline.measures.words import FRANCONI, RECORDS, figure

_PAIR, _TRIPLE = 2, 3


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


@dataclass(frozen=True)
class HouseholdRisk:
    """The risk of single records, in percent of them, and of whole units, in percent of these."""

    units: int = figure(
        "units",
        "The confidential records are of this many units, such as households or patients.",
        RECORDS,
        high_is="neither",
    )
    individual_risk: float = figure(
        "individual risk",
        "This often a record whose keys are in the synthetic table is named rightly, by somebody who "
        "knows everybody's keys.",
        source=FRANCONI,
    )
    household_risk: float = figure(
        "household risk",
        "This many units have a record that is named rightly.",
        denominator="units",
        source=FRANCONI,
    )


def household_risk(q: IntArray, d_q: IntArray, s_q: IntArray, unit: IntArray) -> HouseholdRisk:
    """Return the risk of GT's records and of its units.

    The risk of a record is 1 / d_q where SD has its q, else 0: the chance that who finds it there, and knows
    the people with these keys, names the right one. A household is found if one of its records is:
    1 - prod(1 - r).

    >>> q, unit = np.array([0, 1, 1, 2]), np.array([0, 0, 1, 2])
    >>> household_risk(q, np.array([1, 2, 1]), np.array([0, 3, 0]), unit).individual_risk
    25.0

    Source: Franconi & Polettini 2004, "Individual risk estimation in mu-Argus: a review".
    """
    risk = ((s_q > 0) / np.maximum(d_q, 1))[q]
    order = np.lexsort((risk, unit))
    first = np.flatnonzero(first_of_run(unit[order]))
    unfound = np.multiply.reduceat(1 - risk[order], first)
    return HouseholdRisk(
        len(first),
        100 * math.fsum(risk.tolist()) / len(q),
        100 * math.fsum((1 - unfound).tolist()) / len(first),
    )


ENOUGH_RECORDS = 20_000
"""So many tell how often records would repeat by chance."""

MANY_REPEATS = 20.0
"""Percent of the records that repeat, over those by chance: then it is asked whose they are."""


def repeats_beyond_apart(repeated: int, shares: Sequence[Floats], records: int) -> float:
    """Return the percent of `records` that equal another one, beyond those where columns are drawn apart.

    `shares`: of each column the share of the records that have its level, for every record or for some.

    >>> round(repeats_beyond_apart(80, [np.full(100, 0.01)], 100), 1)
    17.0
    """
    chance = np.multiply.reduce(shares)
    apart = -np.expm1((records - 1) * np.log1p(-np.minimum(chance, 1 - 1e-12)))
    return 100 * (repeated / records - float(apart.mean()))
