"""Found in a group: people of one level, of one part of a number's range, or of two such groups at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import prod

import numpy as np

from disclosure_pipeline.counting.memory.boxes import BoxColumn, count_within
from disclosure_pipeline.evaluation.boxed_people import GT, SD, BoxedPeople, BoxedTables, MatchCounter
from disclosure_pipeline.measures.exact import Floats, IntArray, Mask
from disclosure_pipeline.measures.found import (
    BoxCounts,
    Found,
    chance_of_columns,
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
    of_GT, of_SD = (MatchCounter(boxed.find_matches(table, tables.whole), len(people)) for table in (GT, SD))
    near = [_NearPeople.count(boxed, place, of_GT, of_SD) for place in PLACES]
    ranked = [pairs.rank(of_place) for of_place in near]
    return [_find_worst(boxed, pairs, near, ranked, some) for some in (pairs.are_levels, ~pairs.are_levels)]


@dataclass(frozen=True)
class _NearPeople:
    """The numbers of other people (`others`) and SD records near each person, at a tolerance's place.

    number: the most identifying number; matching: the other people who are near in all columns but it, and
    within the largest tolerance in it.
    """

    place: int
    others: IntArray
    in_SD: IntArray
    number: int | None
    matching: IntArray

    @classmethod
    def count(cls, boxed: BoxedPeople, place: int, of_GT: MatchCounter, of_SD: MatchCounter) -> _NearPeople:
        (others, _), (in_SD, _) = of_GT.count(place), of_SD.count(place)
        number = boxed.find_number(range(len(boxed.tables.columns)), place)
        matching = others if number is None else of_GT.count(place, number)[0]
        return cls(place, others, in_SD, number, matching)


_MOST_COUNTED = 20_000  # SD records of which the shares of groups are counted


@dataclass(frozen=True)
class _Parts:
    """The parts into which the borders of groups cut columns: a group is all parts from one to another.

    of_code: by column, the part of each code. columns: of each group; begins, ends: its first part, and the
    one after its last.
    """

    of_code: Mapping[int, IntArray]
    columns: IntArray
    begins: IntArray
    ends: IntArray

    @classmethod
    def cut(cls, groups: Sequence[Group], sizes: Sequence[int]) -> _Parts:
        of_code, begins, ends = {}, np.empty(len(groups), int), np.empty(len(groups), int)
        columns = np.array([group.column for group in groups])
        low, high = (np.array([getattr(group, end) for group in groups]) for end in ("low", "high"))
        for column in np.unique(columns).tolist():
            own = columns == column
            borders = np.union1d(low[own], high[own] + 1)
            of_code[column] = np.searchsorted(borders, np.arange(sizes[column]), side="right")
            begins[own] = np.searchsorted(borders, low[own]) + 1
            ends[own] = np.searchsorted(borders, high[own] + 1) + 1
        return cls(of_code, columns, begins, ends)

    def count(
        self, codes: Sequence[IntArray], first: IntArray, second: IntArray, kind: IntArray | int, kinds: int
    ) -> IntArray:
        """Count the records that are in both groups of each pair, by their `kind` (shape: kinds, pairs)."""
        in_both = np.empty((kinds, len(first)), dtype=np.int64)
        parts = {column: of_code[codes[column]] for column, of_code in self.of_code.items()}
        both = self.columns[first] * len(codes) + self.columns[second]
        order = np.argsort(both, kind="stable")
        starts = np.flatnonzero(np.diff(both[order], prepend=-1))
        for pairs in np.split(order, starts[1:]):
            one, other = first[pairs], second[pairs]
            a, b = int(self.columns[one[0]]), int(self.columns[other[0]])
            shape = kinds, int(self.of_code[a][-1]) + 1, int(self.of_code[b][-1]) + 1
            cells = (kind * shape[1] + parts[a]) * shape[2] + parts[b]
            counts = np.bincount(cells, minlength=prod(shape)).reshape(shape)
            up_to = np.zeros((kinds, shape[1] + 1, shape[2] + 1), dtype=np.int64)
            up_to[:, 1:, 1:] = counts.cumsum(axis=1).cumsum(axis=2)
            below, above = self.begins[one], self.ends[one]
            left, right = self.begins[other], self.ends[other]
            in_both[:, pairs] = up_to[:, above, right] - up_to[:, below, right]
            in_both[:, pairs] -= up_to[:, above, left] - up_to[:, below, left]
        return in_both


@dataclass(frozen=True)
class _Pairs:
    """Pairs of groups with enough people in both; a group with itself stands for the group alone.

    codes: of the people looked at, by column. people, t: of each pair, the people looked at, and how many
    times as many SD records there are, of as many.
    """

    groups: Sequence[Group]
    parts: _Parts
    codes: Sequence[IntArray]
    first: IntArray
    second: IntArray
    people: IntArray
    t: Floats

    @classmethod
    def count(cls, boxed: BoxedPeople, groups: Sequence[Group], fewest: int) -> _Pairs:
        columns, sizes = boxed.tables.columns, boxed.tables.sizes
        parts = _Parts.cut(groups, [column.size for column in columns])
        codes = [column.codes[GT][boxed.people] for column in columns]
        first, second = np.triu_indices(len(groups))
        differ = (parts.columns[first] != parts.columns[second]) | (first == second)
        first, second = first[differ], second[differ]
        [people] = parts.count(codes, first, second, 0, 1)
        enough = people >= fewest * len(boxed.people) / sizes.N_d
        first, second, people = first[enough], second[enough], people[enough]
        step = -(-sizes.N_s // _MOST_COUNTED)
        some = [column.codes[SD][::step] for column in columns]
        records = parts.count(some, first, second, 0, 1)[0] * (sizes.N_s / len(some[0]))
        t = records * len(boxed.people) / (sizes.N_d * np.maximum(people, 1))
        return cls(groups, parts, codes, first, second, people, t)

    @property
    def are_levels(self) -> Mask:
        """The mark of the pairs that are a single level of a category."""
        is_level = np.array([not group.of_number for group in self.groups])
        levels: Mask = (self.first == self.second) & is_level[self.first]
        return levels

    def rank(self, near: _NearPeople) -> Ranked:
        """Estimate how many more people of each pair are shown than a fresh table shows."""
        kind = np.where(near.others > 0, near.others, np.where(near.in_SD > 0, 0, _TERMS + 1))
        some = np.flatnonzero(kind <= _TERMS)
        codes = [of_column[some] for of_column in self.codes]
        hits, *with_others = self.parts.count(codes, self.first, self.second, kind[some], _TERMS + 1)
        t, expected = np.minimum(self.t, 1), np.zeros(len(hits))
        for k, number in enumerate(with_others, start=1):
            expected -= (-t) ** k * number
        fewer = np.maximum(np.minimum(self.people, np.maximum(self.people * self.t, hits)), 1)
        more = hits - np.maximum(expected, 0)
        # Few people may be shown by chance: the number of standard errors decides as well.
        return hits, (more / fewer, more / np.sqrt(np.maximum(expected, 1)))


Ranked = tuple[IntArray, tuple[Floats, Floats]]
"""The people shown of each pair, and by how much they exceed what is expected: as a share, and in errors."""


def _choose(ranked: Ranked, some: Mask) -> Iterator[int]:
    """Yield those of some pairs that exceed most what is expected."""
    hits, orders = ranked
    pairs = np.flatnonzero(some)
    for order in orders:
        for pair in pairs[np.argsort(-order[pairs], kind="stable")[: _LOOKED_AT // 2]].tolist():
            if hits[pair]:
                yield pair


def _find_worst(
    boxed: BoxedPeople, pairs: _Pairs, near: Sequence[_NearPeople], ranked: Sequence[Ranked], some: Mask
) -> GroupFound | None:
    """Return the figures of the most exposed of some pairs.

    What SD's own columns would show only lowers the figures: it is looked at in pairs that may be the worst.
    """
    at_places: dict[int, list[_NearPeople]] = {}
    for of_place, of_pairs in zip(near, ranked, strict=True):
        for pair in dict.fromkeys(_choose(of_pairs, some)):
            at_places.setdefault(pair, []).append(of_place)
    compare = partial(
        found,
        comparisons=int(np.count_nonzero(some)),
        records_per_unit=boxed.tables.records_per_unit,
    )
    candidates = []
    for pair, places in at_places.items():
        both = dict.fromkeys((int(pairs.first[pair]), int(pairs.second[pair])))
        members = _Members.find(boxed, [pairs.groups[group] for group in both])
        for of_place in places:
            candidates.append((compare(*members.count(of_place)), of_place, members))
    candidates.sort(key=lambda one: (one[0].rank(), -one[1].place), reverse=True)
    worst: GroupFound | None = None
    for highest, of_place, members in candidates:
        if worst and worst.figures.rank() >= highest.rank():
            break
        figures = compare(*members.count_with_model(of_place)) if highest.found > 0 else highest
        if worst is None or figures.rank() > worst.figures.rank():
            worst = GroupFound(tuple(members.groups), of_place.place, figures)
    return worst


@dataclass(frozen=True)
class _Members:
    """The people looked at who are in some groups at once, and the records of GT and of SD that are."""

    boxed: BoxedPeople
    groups: Sequence[Group]
    inside: Mask
    records: tuple[int, int]

    @classmethod
    def find(cls, boxed: BoxedPeople, groups: Sequence[Group]) -> _Members:
        in_GT, in_SD = (_mark(boxed.tables, groups, table) for table in (GT, SD))
        records = int(np.count_nonzero(in_GT)), int(np.count_nonzero(in_SD))
        return cls(boxed, groups, in_GT[boxed.people], records)

    def count(self, near: _NearPeople) -> tuple[BoxCounts, Sizes]:
        """Return the counts of the people, and the numbers of records, without what SD's columns show."""
        nothing = np.zeros(len(self.inside))
        counts = BoxCounts(near.others, near.in_SD > 0, nothing, nothing).select(self.inside)
        # By a tolerance, records from outside show people of the group, too.
        shown = int(np.count_nonzero((counts.others == 0) & counts.shown))
        N_d, N_s = self.records
        return counts, Sizes(N_d, max(N_s, shown))

    def count_with_model(self, near: _NearPeople) -> tuple[BoxCounts, Sizes]:
        """Return the counts; SD's columns are permuted within the groups."""
        counts, sizes = self.count(near)
        tables, alone = self.boxed.tables, self.inside & (near.others == 0)
        of_SD = np.flatnonzero(_mark(tables, self.groups, SD))
        in_columns = []
        for column, windows in zip(tables.columns, self.boxed.boxes.windows, strict=True):
            records = np.bincount(column.codes[SD][of_SD], minlength=column.size)
            low, high = windows[near.place]
            in_columns.append(count_within(records, low[alone], high[alone]))
        by_columns = np.zeros(len(alone))
        by_columns[alone] = chance_of_columns(np.array(in_columns, dtype=np.float64), sizes.N_s)
        by_values = self.boxed.find_by_values(near.number, near.matching, near.place, alone)
        inside = self.inside
        return replace(counts, by_columns=by_columns[inside], by_values=by_values[inside]), sizes


def _mark(tables: BoxedTables, groups: Sequence[Group], table: int) -> Mask:
    """Return which records of a table are in all groups."""
    marked: Mask = np.logical_and.reduce(
        [group.mark(tables.columns[group.column].codes[table]) for group in groups]
    )
    return marked
