"""The boxes of people: which records have the same categories, and numbers within a tolerance.

A number is near another one within e * max(|number|, s), at least a unit if all of GT's numbers are whole,
where s is a tenth of the width of GT's middle nine tenths. Dates have no zero: their size is that width, and
their unit GT's finest. Numbers with few values are categories.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from disclosure_pipeline.measures.exact import Floats, IntArray, Mask
from disclosure_pipeline.measures.found import TOLERANCES
from disclosure_pipeline.measures.frequency import aranges, join_codes, sort_together
from disclosure_pipeline.runtime.machine import map_in_threads, threads_for
from disclosure_pipeline.tables.levels import ORDERED_KINDS, CodedColumn, Kind

FEW_VALUES = 12
"""A number with at most this many values in GT is a category."""

FAR = len(TOLERANCES)
"""The nearness of two values that are farther apart than the largest tolerance."""

_MIDDLE = (0.05, 0.95)
_ROUNDING = 1e-12
_PAIRS_AT_A_TIME = 1 << 20
_UNITS = ("D", "h", "m", "s", "ms", "us", "ns")


@dataclass(frozen=True)
class BoxColumn:
    """A column of several tables, GT first, with the codes of all records.

    `values` are the numbers of its codes if it has numbers, without missing; `scale` and `unit` say how near
    two of them are.
    """

    name: Any
    codes: tuple[IntArray, ...]
    size: int
    values: Floats | None
    scale: float
    unit: float
    relative: bool

    @classmethod
    def from_coded(cls, column: CodedColumn) -> BoxColumn:
        """Return the column; it has codes for single records, and is not grouped."""
        codes, in_GT = column.codes, column.counts[0][:-1]
        category = cls(column.name, codes, column.size, None, 0.0, 0.0, True)
        if column.kind not in ORDERED_KINDS or np.count_nonzero(in_GT) <= FEW_VALUES:
            return category
        is_time = column.levels.dtype.kind in "mM"
        values = (column.levels.astype(np.int64) if is_time else column.levels).astype(np.float64)
        finite = np.isfinite(values) & (in_GT > 0)
        if not finite.any():
            return category
        unit = _find_unit(column.levels[finite])
        up_to = np.cumsum(in_GT[finite])
        low, high = (values[finite][np.searchsorted(up_to, share * up_to[-1])] for share in _MIDDLE)
        scale = (high - low) / 10
        relative = column.kind in {Kind.NUMBER, Kind.DURATION}
        return cls(column.name, codes, column.size, values, scale if relative else high - low, unit, relative)

    @property
    def is_number(self) -> bool:
        """True if different values can be near each other."""
        return self.values is not None

    @cached_property
    def counts(self) -> tuple[IntArray, ...]:
        """The records of each table with each code."""
        return tuple(np.bincount(codes, minlength=self.size) for codes in self.codes)

    @cached_property
    def share_near(self) -> float:
        """The share of pairs of GT records that are near each other by the largest tolerance."""
        occurring = np.flatnonzero(self.counts[0])
        records = self.counts[0][occurring]
        near = self.count_near(self.counts[0], occurring, TOLERANCES[-1])
        return float((records * near).sum() / max(int(records.sum()), 1) ** 2)

    def select(self, tables: Sequence[Sequence[int]], records: Sequence[Mask | IntArray | None]) -> BoxColumn:
        """Return the column of other tables, each of several tables stacked, and of some of its records."""
        stacked = [
            self.codes[several[0]] if len(several) == 1 else np.concatenate([self.codes[i] for i in several])
            for several in tables
        ]
        chosen = [
            codes if mask is None else codes[mask] for codes, mask in zip(stacked, records, strict=True)
        ]
        return replace(self, codes=tuple(chosen))

    def find_windows(self, codes: IntArray, tolerance: float) -> tuple[IntArray, IntArray]:
        """Return the lowest and the highest code near each of `codes`; missing is near missing alone."""
        if self.values is None or not tolerance:
            return codes, codes
        distinct, position = np.unique(codes, return_inverse=True)
        held = distinct < len(self.values)
        values = self.values[distinct[held]]
        size = np.maximum(np.abs(values), self.scale) if self.relative else np.full(len(values), self.scale)
        width = np.maximum(tolerance * size, self.unit) * (1 + _ROUNDING)
        low, high = distinct.astype(np.int64), distinct.astype(np.int64)
        with np.errstate(invalid="ignore"):  # infinite numbers are near themselves
            bottom, top = values - width, values + width
        finite = np.isfinite(values)
        near = np.flatnonzero(held)[finite]
        low[near] = np.searchsorted(self.values, bottom[finite])
        high[near] = np.searchsorted(self.values, top[finite], side="right") - 1
        return low[position], high[position]

    def count_near(self, records: IntArray, codes: IntArray, tolerance: float) -> IntArray:
        """Return how many of some records are near each of `codes`; `records` are their numbers by code."""
        return count_within(records, *self.find_windows(codes, tolerance))


def count_within(records: IntArray, low: IntArray, high: IntArray) -> IntArray:
    """Return how many records have a code from `low` to `high`; `records` are their numbers by code."""
    up_to = np.concatenate(([0], np.cumsum(records)))
    within: IntArray = up_to[high.astype(np.int64) + 1] - up_to[low]
    return within


def _find_unit(levels: Any) -> float:
    """Return the unit of GT's values: 1 for whole numbers, 0 for others; of dates the finest."""
    if levels.dtype.kind not in "mM":
        return float((levels.astype(np.float64) % 1 == 0).all())
    kind, own = levels.dtype.kind, np.datetime_data(levels.dtype)[0]
    step = levels.dtype.type(1, own) - levels.dtype.type(0, own)
    for unit in _UNITS[: _UNITS.index(own)] if own in _UNITS else ():
        if (levels.astype(f"{kind}8[{unit}]").astype(levels.dtype) == levels).all():
            one = np.array([1]).astype(f"m8[{unit}]")
            return float((one / step)[0])
    return 1.0


@dataclass(frozen=True)
class Boxes:
    """The boxes of some people, records of one table.

    `windows[k][place]` are the lowest and highest codes of column k that are near each person's (shape of
    each: people), for the tolerance at this place of `TOLERANCES`.
    """

    columns: Sequence[BoxColumn]
    windows: Sequence[Sequence[tuple[IntArray, IntArray]]]
    records: IntArray
    table: int

    @classmethod
    def around(cls, columns: Sequence[BoxColumn], records: IntArray, table: int = 0) -> Boxes:
        """Return the boxes around these records of a table."""
        windows = []
        for column in columns:
            codes = column.codes[table][records]
            windows.append([column.find_windows(codes, tolerance) for tolerance in TOLERANCES])
        return cls(columns, windows, records, table)

    @property
    def people(self) -> int:
        """Their number."""
        return len(self.records)

    def are_near(self, k: int, table: int, pairs: _Pairs, place: int) -> Mask:
        """Return whether each pair of a person and a record of a table is near in column k."""
        (person, record), (low, high) = pairs, self.windows[k][place]
        codes = self.columns[k].codes[table][record]
        if not self.columns[k].is_number:
            same: Mask = codes == low[person]
            return same
        near: Mask = (codes >= low[person]) & (codes <= high[person])
        return near


_Pairs = tuple[IntArray, IntArray]


@dataclass(frozen=True)
class Matches:
    """Pairs of a person and a record that are near each other in all columns, or in all but one.

    `nearness`: for each pair and column the position among `TOLERANCES` of the smallest that holds, or `FAR`
    (shape: pairs, columns).
    """

    person: IntArray
    record: IntArray
    nearness: IntArray

    def select(self, pairs: Mask) -> Matches:
        """Return some of the matches."""
        return Matches(self.person[pairs], self.record[pairs], self.nearness[pairs])


@dataclass(frozen=True)
class Block:
    """Some of the columns, by position, by whose categories and first number records are sorted once."""

    columns: Sequence[BoxColumn]
    places: Sequence[int]
    _sorted: dict[int, tuple[IntArray, IntArray]] = field(default_factory=dict)

    @cached_property
    def number(self) -> int | None:
        """The first column with numbers."""
        return next((k for k in self.places if self.columns[k].is_number), None)

    @cached_property
    def codes(self) -> list[IntArray]:
        """The categories and the number of each table's records, as digits of one integer."""
        digits = [k for k in self.places if not self.columns[k].is_number]
        digits += [] if self.number is None else [self.number]
        return join_codes([self.columns[k].codes for k in digits], [self.columns[k].size for k in digits])[0]

    def sort(self, table: int) -> tuple[IntArray, IntArray]:
        """Return the codes of a table in ascending order, and their records."""
        if table not in self._sorted:
            codes = self.codes[table]
            self._sorted[table] = sort_together(codes, np.arange(len(codes)))
        return self._sorted[table]

    def find_codes(self, boxes: Boxes) -> tuple[IntArray, IntArray]:
        """Return the lowest and the highest code near each person."""
        lowest = highest = self.codes[boxes.table][boxes.records]
        if self.number is not None:
            smallest = lowest - self.columns[self.number].codes[boxes.table][boxes.records]
            low, high = boxes.windows[self.number][-1]
            lowest, highest = smallest + low, smallest + high
        return lowest, highest

    def find_range(self, boxes: Boxes, table: int) -> tuple[IntArray, IntArray]:
        """Return which records of a sorted table are near each person: from the first to before the last."""
        lowest, highest = self.find_codes(boxes)
        codes, _ = self.sort(table)
        return np.searchsorted(codes, lowest), np.searchsorted(codes, highest, side="right")

    def count_near(self, boxes: Boxes, table: int) -> IntArray:
        """Count the records of a table near each person in these columns, at most one of numbers."""
        lowest, highest = self.find_codes(boxes)
        codes = np.sort(self.codes[table])
        return np.searchsorted(codes, highest, side="right") - np.searchsorted(codes, lowest)


def split_columns(columns: Sequence[BoxColumn], blocks: int) -> list[Block]:
    """Deal the columns to blocks, the most selective first, so that each block has few records near a person.

    Of a block's numbers only the first one narrows its records.
    """
    dealt: list[list[int]] = [[] for _ in range(blocks)]
    near = [1.0] * blocks  # the share of a block's pairs that are near, of independent columns
    has_number = [False] * blocks
    for k in sorted(range(len(columns)), key=lambda k: columns[k].share_near):
        narrows = [not (columns[k].is_number and has) for has in has_number]
        block = max(range(blocks), key=list(zip(narrows, near, strict=True)).__getitem__)
        if narrows[block]:
            near[block] *= columns[k].share_near
        has_number[block] = has_number[block] or columns[k].is_number
        dealt[block].append(k)
    return [Block(columns, places) for places in dealt if places]


def find_matches(boxes: Boxes, table: int, blocks: Sequence[Block]) -> Matches:
    """Find the records of a table that are near people in all columns, or, of two blocks, in all but one.

    Whoever is near in all columns but one is so in all columns of one of two blocks.
    """
    threads = threads_for(len(boxes.columns[0].codes[table]))
    at_a_time = _PAIRS_AT_A_TIME // max(threads, 1)  # as many in all, whatever the number of threads
    candidates = (
        (number, pairs)
        for number, block in enumerate(blocks)
        for pairs in _find_candidates(boxes, block, table, at_a_time)
    )
    compare = partial(_compare, boxes, table, blocks)
    parts = list(map_in_threads(candidates, compare, threads))
    if not parts:
        nobody = np.empty(0, dtype=np.int64)
        return Matches(nobody, nobody, np.empty((0, len(boxes.columns)), dtype=np.uint8))
    return Matches(
        np.concatenate([part.person for part in parts]),
        np.concatenate([part.record for part in parts]),
        np.concatenate([part.nearness for part in parts]),
    )


def count_in_boxes(boxes: Boxes, table: int, columns: Sequence[tuple[int, int]]) -> IntArray:
    """Count the records of a table near each person in some columns, each with the place of its tolerance."""
    windows = [[boxes.windows[k][place]] * len(TOLERANCES) for k, place in columns]
    on_these = Boxes([boxes.columns[k] for k, _ in columns], windows, boxes.records, boxes.table)
    blocks = split_columns(on_these.columns, 1)
    if sum(column.is_number for column in on_these.columns) > 1:
        person = find_matches(on_these, table, blocks).person
        counts: IntArray = np.bincount(person, minlength=boxes.people)
        return counts
    return blocks[0].count_near(on_these, table)


def count_candidates(boxes: Boxes, table: int, blocks: Sequence[Block]) -> int:
    """Return the number of pairs that `find_matches` compares."""
    ranges = [block.find_range(boxes, table) for block in blocks]
    return sum(int((high - low).sum()) for low, high in ranges)


def _find_candidates(boxes: Boxes, block: Block, table: int, at_a_time: int) -> Iterator[_Pairs]:
    """Yield pairs of a person and a record that agree in the block's categories and its first number."""
    low, high = block.find_range(boxes, table)
    _, order = block.sort(table)
    records = high - low
    ends = np.cumsum(records)
    first = 0
    while first < boxes.people:
        before = ends[first - 1] if first else 0
        last = max(int(np.searchsorted(ends, before + at_a_time, side="right")), first + 1)
        some = np.arange(first, min(last, boxes.people))
        person = np.repeat(some, records[some])
        yield person, order[np.repeat(low[some], records[some]) + aranges(records[some])]
        first = last


def _compare(boxes: Boxes, table: int, blocks: Sequence[Block], candidates: tuple[int, _Pairs]) -> Matches:
    """Compare the candidates of a block, by its number, column by column, the most selective first.

    Candidates that are near in all of an earlier block were found there.
    """
    number, (person, record) = candidates
    most_missed = len(blocks) - 1
    missed = np.zeros(len(person), dtype=np.int8)
    in_earlier = np.ones((number, len(person)), dtype=bool)
    for block in (*blocks[:number], *blocks[number + 1 :], blocks[number]):
        for k in block.places:
            is_far = ~boxes.are_near(k, table, (person, record), FAR - 1)
            missed += is_far * np.int8(most_missed + 1 if block is blocks[number] else 1)
            for earlier in range(number):
                if block is blocks[earlier]:
                    in_earlier[earlier] &= ~is_far
            kept = missed <= most_missed
            if not kept.all():
                person, record, missed = person[kept], record[kept], missed[kept]
                in_earlier = in_earlier[:, kept]
    is_new = ~in_earlier.any(axis=0)
    person, record = person[is_new], record[is_new]
    nearness = np.full((len(person), len(boxes.columns)), FAR, dtype=np.uint8)
    for k, column in enumerate(boxes.columns):
        for place in range(FAR - 1, -1, -1) if column.is_number else [0]:
            nearness[boxes.are_near(k, table, (person, record), place), k] = place
    return Matches(person, record, nearness)
