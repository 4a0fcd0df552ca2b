"""People with their boxes in GT and in one synthesis: what every set of columns is counted from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from disclosure_pipeline.counting.memory.box_sets import BoxCounter, BoxSet
from disclosure_pipeline.counting.memory.boxes import (
    FAR,
    Block,
    BoxColumn,
    Boxes,
    Matches,
    count_candidates,
    find_matches,
    split_columns,
)
from disclosure_pipeline.measures.exact import Floats, IntArray, Mask
from disclosure_pipeline.measures.found import (
    TOLERANCES,
    BoxCounts,
    chance_of_columns,
    chance_of_values,
)
from disclosure_pipeline.measures.frequency import aranges
from disclosure_pipeline.measures.samples import Sizes, average_records_per_unit

GT, SD = 0, 1
WIDEST = FAR - 1

MANY_TIMES = 1.5
"""From this many times GT's records on, SD's own coverage is looked at."""

MOST_CANDIDATES = 100_000_000
"""The most pairs of a person and a record to compare; of more, fewer people are looked at."""

_FEWEST_PEOPLE = 200


@dataclass(frozen=True)
class BoxedTables:
    """The columns of GT and of SD (a file, or several stacked), and the unit of each GT record."""

    columns: Sequence[BoxColumn]
    unit: IntArray

    @property
    def sizes(self) -> Sizes:
        """The numbers of records."""
        return Sizes(*(len(codes) for codes in self.columns[0].codes))

    @cached_property
    def records_per_unit(self) -> float:
        """The mean number of GT records of a unit."""
        return average_records_per_unit(self.unit)

    @cached_property
    def records_by_unit(self) -> tuple[IntArray, IntArray]:
        """GT's records in the order of their units, and these units."""
        order = np.argsort(self.unit, kind="stable")
        return order, self.unit[order]

    @cached_property
    def whole(self) -> list[Block]:
        """The columns in one block, to look for people in all of them."""
        return split_columns(self.columns, 1)

    @cached_property
    def halves(self) -> list[Block]:
        """The columns in two blocks, to look for people in all but one."""
        return split_columns(self.columns, 2)

    @cached_property
    def is_diluted(self) -> bool:
        """True if SD is so large that its own coverage has to be looked at."""
        return self.sizes.N_s > MANY_TIMES * self.sizes.N_d

    def draw_people(self, most: int, rng: np.random.Generator, blocks: Sequence[Block]) -> IntArray:
        """Draw GT records; fewer if very many records are near each in a block, and have to be compared."""
        N_d = self.sizes.N_d
        people = np.sort(rng.permutation(N_d)[:most])
        some = Boxes.around(self.columns, people[:: max(len(people) // _FEWEST_PEOPLE, 1)])
        compared = sum(count_candidates(some, table, blocks) for table in (GT, SD)) / max(some.people, 1)
        affordable = max(int(MOST_CANDIDATES / max(compared, 1)), _FEWEST_PEOPLE)
        return people if len(people) <= affordable else np.sort(rng.permutation(people)[:affordable])


@dataclass(frozen=True)
class BoxedPeople:
    """Some GT records (`people`), their boxes, and the records of their own unit."""

    tables: BoxedTables
    people: IntArray

    @cached_property
    def boxes(self) -> Boxes:
        """The boxes around these people."""
        return Boxes.around(self.tables.columns, self.people)

    @cached_property
    def counters(self) -> tuple[BoxCounter, BoxCounter]:
        """Counters of the records of GT and of SD in the boxes on any set of columns."""
        return BoxCounter(self.boxes, GT), BoxCounter(self.boxes, SD)

    @cached_property
    def own(self) -> tuple[IntArray, IntArray]:
        """Pairs of a person, by position, and a record of the person's unit."""
        order, in_order = self.tables.records_by_unit
        units = self.tables.unit[self.people]
        first = np.searchsorted(in_order, units)
        records = np.searchsorted(in_order, units, side="right") - first
        return np.repeat(np.arange(len(self.people)), records), order[
            np.repeat(first, records) + aranges(records)
        ]

    @cached_property
    def are_own_near(self) -> Callable[[int, int], Mask]:
        """For a column and the place of a tolerance, which of the `own` records are near their person."""
        return cache(lambda k, place: self.boxes.are_near(k, GT, self.own, place))

    @cached_property
    def in_columns(self) -> IntArray:
        """The SD records near each person on one column (shape: tolerances, columns, people)."""
        columns = self.tables.columns
        codes = [column.codes[GT][self.people] for column in columns]
        return np.array(
            [
                [
                    column.count_near(column.counts[SD], own, tolerance)
                    for column, own in zip(columns, codes, strict=True)
                ]
                for tolerance in TOLERANCES
            ]
        )

    @cached_property
    def shares(self) -> Floats:
        """The mean share of GT records that are near people on one column (shape: tolerances, columns)."""
        columns = self.tables.columns
        near = [
            [
                column.count_near(column.counts[GT], column.codes[GT][self.people], tolerance).mean()
                for column in columns
            ]
            for tolerance in TOLERANCES
        ]
        return np.array(near) / self.tables.sizes.N_d

    @cached_property
    def near_by_number(self) -> dict[int, IntArray]:
        """The other people within the largest tolerance of each person, by the position of a number."""
        person, _ = self.own
        near: dict[int, IntArray] = {}
        for k, column in enumerate(self.tables.columns):
            if column.is_number:
                own = self.boxes.are_near(k, GT, self.own, WIDEST)
                everybody = column.count_near(
                    column.counts[GT], column.codes[GT][self.people], TOLERANCES[WIDEST]
                )
                near[k] = everybody - np.bincount(person[own], minlength=len(self.people))
        return near

    def find_number(self, columns: Sequence[int], place: int) -> int | None:
        """Return the most identifying number of several columns, by position; None for a single column."""
        numbers = [k for k in columns if self.tables.columns[k].is_number]
        if not numbers or len(columns) == 1:
            return None
        return min(numbers, key=lambda k: (self.shares[place, k], k))

    def find_matches(self, table: int, blocks: Sequence[Block]) -> Matches:
        """Return the matches of the people with the records of a table but those of their own unit."""
        matches, unit = find_matches(self.boxes, table, blocks), self.tables.unit
        if table == SD:
            return matches
        return matches.select(unit[self.people[matches.person]] != unit[matches.record])

    def find_by_columns(self, columns: Sequence[int], place: int, alone: Mask) -> Floats:
        """Return the chance that SD's permuted columns show each person who is alone."""
        chances = np.zeros(len(alone))
        near = self.in_columns[place][list(columns)][:, alone].astype(np.float64)
        chances[alone] = chance_of_columns(near, self.tables.sizes.N_s)
        return chances

    def find_by_values(self, number: int | None, matching: IntArray, place: int, alone: Mask) -> Floats:
        """Return the chance that SD with its numbers kept shows each person who is alone.

        `matching`: the other people near by the largest tolerance in that number, and in the others by that
        of `place`.
        """
        chances = np.zeros(len(alone))
        if number is not None:
            near, records = self.near_by_number[number], self.in_columns[place, number]
            chances[alone] = chance_of_values(near[alone], matching[alone], records[alone])
        return chances

    def count_others(self, sets: Sequence[BoxSet], first: int | None = None) -> list[IntArray]:
        """Count the other people in the boxes of the people, or of the `first` of them, on each set."""
        person, _ = self.own
        people = len(self.people) if first is None else min(first, len(self.people))
        others: list[IntArray] = []
        for one, near in zip(sets, self.counters[GT].count(sets, people), strict=True):
            own = np.logical_and.reduce([self.are_own_near(*pair) for pair in one])
            others.append(near - np.bincount(person[own], minlength=people)[:people])
        return others


class MatchCounter:
    """Counts people's boxes on all columns, and on all but one, from matches that miss at most one."""

    def __init__(self, matches: Matches, people: int) -> None:
        self.matches, self.people = matches, people

    def count(self, place: int, number: int | None = None) -> tuple[IntArray, IntArray]:
        """Return the records by all columns (shape: people), and by all but each (shape: columns, people).

        `number`: a column that may be farther away, within the largest tolerance.
        """
        person, nearness = self.matches.person, self.matches.nearness
        columns = nearness.shape[1]
        far = nearness > place
        if number is not None:
            far[:, number] = nearness[:, number] == FAR
        missed = far.sum(axis=1)
        whole = np.bincount(person[missed == 0], minlength=self.people)
        one = missed == 1
        which = far[one].argmax(axis=1)
        but = np.bincount(which * self.people + person[one], minlength=columns * self.people)
        return whole, but.reshape(columns, self.people) + whole


def count_nearly_whole(
    boxed: BoxedPeople, place: int, counters: Sequence[MatchCounter]
) -> dict[int | None, BoxCounts]:
    """Count the boxes on all columns, and on all but each, from the matches with GT and with SD."""
    of_GT, of_SD = counters
    K = len(boxed.tables.columns)
    others, shown = of_GT.count(place), of_SD.count(place)
    sets: list[int | None] = [None, *(range(K) if K > 1 else [])]
    by_number: dict[int, tuple[IntArray, IntArray]] = {}
    counts = {}
    for left_out in sets:
        columns = [k for k in range(K) if k != left_out]
        Y, X = ((whole if left_out is None else but[left_out]) for whole, but in (others, shown))
        number = boxed.find_number(columns, place)
        matching = Y
        if number is not None:
            if number not in by_number:
                by_number[number] = of_GT.count(place, number)
            whole, but = by_number[number]
            matching = whole if left_out is None else but[left_out]
        alone = Y == 0
        counts[left_out] = BoxCounts(
            Y,
            X > 0,
            boxed.find_by_columns(columns, place, alone),
            boxed.find_by_values(number, matching, place, alone),
        )
    return counts
