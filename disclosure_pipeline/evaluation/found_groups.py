"""Found in a group: people of one level, of one part of a number's range, or of two such groups at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.counting.memory.boxes import BoxColumn, split_columns
from disclosure_pipeline.evaluation.boxed_people import GT, SD, BoxedPeople, BoxedTables, MatchCounter
from disclosure_pipeline.measures.exact import Floats, IntArray, Mask
from disclosure_pipeline.measures.found import (
    TOLERANCES,
    BoxCounts,
    Found,
    chance_of_columns,
    find_beyond_fresh,
    found,
)
from disclosure_pipeline.measures.samples import Sizes

MOST_PEOPLE = 20_000
"""The most GT records that are looked at in groups."""

PLACES = (0, 1, 2)
"""The tolerances at which groups are looked at, as positions in `TOLERANCES`."""

_TENTHS = 10
_TAILS = (0.01, 0.02, 0.05, 0.1, 0.2)
_LOOKED_AT = 40  # groups whose expectation is taken exactly
_TERMS = 4  # numbers of others by which groups are ranked


@dataclass(frozen=True)
class Group:
    """People with codes from `low` to `high` in a column, by position; `of_number`: a part of its range."""

    column: int
    low: int
    high: int
    of_number: bool

    def mark(self, codes: IntArray) -> Mask:
        """Return which codes belong to the group."""
        inside: Mask = (codes >= self.low) & (codes <= self.high)
        return inside


@dataclass(frozen=True)
class GroupFound:
    """The figures of the most exposed group, which is the intersection of several, at a tolerance's place."""

    groups: tuple[Group, ...]
    place: int
    figures: Found


def list_groups(columns: Sequence[BoxColumn], fewest: int) -> list[Group]:
    """Return the groups of at least `fewest` people: levels, tenths, and tails of numbers."""
    groups = []
    for k, column in enumerate(columns):
        counts = column.counts[GT]
        if not column.is_number:
            levels = np.flatnonzero(counts >= fewest).tolist()
            groups += [Group(k, level, level, of_number=False) for level in levels if len(levels) > 1]
            continue
        up_to = np.cumsum(counts[:-1])  # without missing
        whole = int(up_to[-1])
        tenths = [i / _TENTHS for i in range(_TENTHS + 1)]
        parts = list(pairwise(tenths))
        parts += [(0.0, tail) for tail in _TAILS] + [(1 - tail, 1.0) for tail in _TAILS]
        ranges = set()
        for first, last in parts:
            low = int(np.searchsorted(up_to, first * whole, side="right"))
            high = int(np.searchsorted(up_to, last * whole))
            if low <= high and fewest <= counts[low : high + 1].sum() < len(column.codes[GT]):
                ranges.add((low, high))
        groups += [Group(k, low, high, of_number=True) for low, high in sorted(ranges)]
    return groups


def find_in_groups(tables: BoxedTables, people: IntArray, fewest: int) -> list[GroupFound | None]:
    """Return the figures of the groups that SD shows most of, beyond chance where there is one.

    First of the levels of categories, then of parts of numbers and of pairs of any groups; None if there are
    none with enough people. `people` are those to look at.
    """
    groups = list_groups(tables.columns, fewest)
    if not groups:
        return [None, None]
    boxed = BoxedPeople(tables, people)
    pairs = _Pairs.count(boxed, groups, fewest)
    whole = split_columns(tables.columns, 1)
    counters = [MatchCounter(boxed.find_matches(table, whole), len(people)) for table in (GT, SD)]
    return [_find_worst(boxed, pairs.select(of), counters) for of in (pairs.of_levels, ~pairs.of_levels)]


def _find_worst(boxed: BoxedPeople, pairs: _Pairs, counters: Sequence[MatchCounter]) -> GroupFound | None:
    counted = {place: tuple(counter.count(place)[0] for counter in counters) for place in PLACES}
    places: dict[tuple[Group, ...], list[int]] = {}
    for place, (Y, X) in counted.items():
        for first, second in pairs.choose(Y, X > 0):
            groups = tuple(pairs.groups[g] for g in dict.fromkeys([first, second]))
            places.setdefault(groups, []).append(place)
    found_groups = []
    for groups, of_group in places.items():
        members = _Members.find(boxed, groups)
        for place in of_group:
            figures = _measure(boxed, members, counters[GT], place, counted[place], len(pairs.first))
            found_groups.append(GroupFound(groups, place, figures))
    found_groups.sort(key=lambda one: one.place)
    return max(found_groups, key=lambda one: one.figures.rank(), default=None)


Marks = npt.NDArray[np.float32]
_MOST_MARKED = 20_000  # SD records of which the shares of groups are counted


def _mark(groups: Sequence[Group], codes: Sequence[IntArray]) -> Marks:
    """Return which records belong to which group (shape: records, groups)."""
    return np.stack([group.mark(codes[group.column]) for group in groups], axis=1).astype(np.float32)


@dataclass(frozen=True)
class _Pairs:
    """Pairs of groups with enough people in both; a group with itself stands for the group alone.

    in_GT: which of the people looked at belong to which group. people, t: of each pair, the people looked at,
    and how many times as many SD records there are, of as many.
    """

    groups: Sequence[Group]
    in_GT: Marks
    first: IntArray
    second: IntArray
    people: Floats
    t: Floats

    @classmethod
    def count(cls, boxed: BoxedPeople, groups: Sequence[Group], fewest: int) -> _Pairs:
        columns, sizes = boxed.tables.columns, boxed.tables.sizes
        step = -(-sizes.N_s // _MOST_MARKED)
        in_GT = _mark(groups, [column.codes[GT][boxed.people] for column in columns])
        in_SD = _mark(groups, [column.codes[SD][::step] for column in columns])
        people = in_GT.T @ in_GT
        column = np.array([group.column for group in groups])
        enough = people >= fewest * len(in_GT) / sizes.N_d
        first, second = np.nonzero(np.triu(enough & (column[:, None] != column)) | np.diag(enough.diagonal()))
        records = (in_SD.T @ in_SD)[first, second] * (sizes.N_s / len(in_SD))
        in_both = people[first, second].astype(np.float64)
        t = records * len(in_GT) / (sizes.N_d * np.maximum(in_both, 1))
        return cls(groups, in_GT, first, second, in_both, t)

    @property
    def of_levels(self) -> Mask:
        """Which pairs are a single level of a category."""
        is_level = np.array([not group.of_number for group in self.groups])
        levels: Mask = (self.first == self.second) & is_level[self.first]
        return levels

    def select(self, pairs: Mask) -> _Pairs:
        """Return some of the pairs."""
        return _Pairs(
            self.groups, self.in_GT, self.first[pairs], self.second[pairs], self.people[pairs], self.t[pairs]
        )

    def choose(self, others: IntArray, shown: Mask) -> Iterator[tuple[int, int]]:
        """Yield the pairs with the most people shown beyond about what a fresh table shows."""

        def count(people: Mask) -> Floats:
            some = self.in_GT[people]
            in_both: Floats = (some.T @ some)[self.first, self.second].astype(np.float64)
            return in_both

        hits, t = count((others == 0) & shown), np.minimum(self.t, 1)
        expected = np.zeros(len(hits))
        for k in range(1, _TERMS + 1):
            expected -= (-t) ** k * count(others == k)
        fewer = np.maximum(np.minimum(self.people, np.maximum(self.people * self.t, hits)), 1)
        beyond = (hits - np.maximum(expected, 0)) / fewer
        # Few people may be shown by chance: the number of standard errors decides as well.
        certain = (hits - np.maximum(expected, 0)) / np.sqrt(np.maximum(expected, 1))
        for order in (beyond, certain):
            for pair in np.argsort(-order, kind="stable")[: _LOOKED_AT // 2].tolist():
                if hits[pair]:
                    yield int(self.first[pair]), int(self.second[pair])


@dataclass(frozen=True)
class _Members:
    """The members of a group: which of the people looked at, how many of GT, and SD's by column and code."""

    inside: Mask
    N_d: int
    N_s: int
    in_SD: Sequence[IntArray]

    @classmethod
    def find(cls, boxed: BoxedPeople, groups: Sequence[Group]) -> _Members:
        columns = boxed.tables.columns

        def mark(table: int, records: IntArray | slice) -> Mask:
            marked: Mask = np.logical_and.reduce(
                [group.mark(columns[group.column].codes[table][records]) for group in groups]
            )
            return marked

        of_SD = np.flatnonzero(mark(SD, slice(None)))
        in_SD = [np.bincount(column.codes[SD][of_SD], minlength=column.size) for column in columns]
        N_d = int(np.count_nonzero(mark(GT, slice(None))))
        return cls(mark(GT, boxed.people), N_d, len(of_SD), in_SD)


def _measure(
    boxed: BoxedPeople,
    members: _Members,
    of_GT: MatchCounter,
    place: int,
    counted: tuple[IntArray, ...],
    comparisons: int,
) -> Found:
    """Return the figures within a group; SD's columns are permuted within it."""
    columns, inside, (Y, X) = boxed.tables.columns, members.inside, counted
    alone = inside & (Y == 0)
    # By a tolerance, records from outside show people of the group, too.
    sizes = Sizes(members.N_d, max(members.N_s, int(np.count_nonzero(alone & (X > 0)))))
    nothing = np.zeros(len(Y))
    counts = BoxCounts(Y, X > 0, nothing, nothing)
    if find_beyond_fresh(counts.select(inside), sizes) > 0:
        of_people = [column.codes[GT][boxed.people[alone]] for column in columns]
        near = [
            column.count_near(in_SD, codes, TOLERANCES[place])
            for column, in_SD, codes in zip(columns, members.in_SD, of_people, strict=True)
        ]
        by_columns = np.zeros(len(Y))
        by_columns[alone] = chance_of_columns(np.array(near, dtype=np.float64), sizes.N_s)
        number = boxed.find_number(range(len(columns)), place)
        matching = Y if number is None else of_GT.count(place, number)[0]
        by_values = boxed.find_by_values(number, matching, place, alone)
        counts = replace(counts, by_columns=by_columns, by_values=by_values)
    return found(
        counts.select(inside),
        sizes,
        comparisons=comparisons,
        records_per_unit=boxed.tables.records_per_unit,
    )
