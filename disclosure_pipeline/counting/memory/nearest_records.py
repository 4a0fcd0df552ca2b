"""The distances of some records to the nearest of many, in memory.

A distance is a sum over columns. By ranks: 0 or 1; for numbers and dates the difference of mid-ranks in the
pooled tables, divided by the number of records. By values: the same with the difference of the values,
divided by the range of their middle nine tenths, at most 1. By columns: how many disagree, numbers and dates
by more than a twentieth of that range. Missing disagrees with every value. Ranks are blind where numbers
heap, values where they are skewed. Numbers with one value in the middle nine tenths of GT count by ranks
alone: their noise is as wide as their range, and in many such columns would hide who is near in the others.
Distances are whole numbers, so that ties are exact.

In large tables a person is compared only with records that agree in at least one of a few blocks of columns,
as all records do that differ in fewer columns than there are blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from disclosure_pipeline.counting.memory.radix import Radix, build_radix, sum_readers
from disclosure_pipeline.measures.exact import Floats, IntArray, Mask
from disclosure_pipeline.measures.frequency import aranges, combine_keys
from disclosure_pipeline.measures.nearest import twice_mid_ranks
from disclosure_pipeline.runtime.progress import report_progress
from disclosure_pipeline.tables.levels import ORDERED_KINDS, CodedColumn, Reader

NOBODY = np.iinfo(np.int64).max
"""The distance if there is no record to compare with."""

_MOST_PAIRS = 800_000_000  # pairs of records, up to which all are compared
_MOST_CANDIDATES = 4_000  # of a person in a block and both tables, on average
_MOST_BLOCKS = 4
_PROBE = 100_000  # records of each table, to estimate the number of a block's candidates
_AT_A_TIME = 1 << 16  # pairs at a time: they fit the cache
_RECORDS_AT_A_TIME = 1 << 16  # they fit the cache
_LOWEST_DIGITS = 1 << 20  # the lowest digits, up to this number, distinguish most records
_LARGEST = 1 << 62


DISTANCES = ("ranks", "values", "columns")
"""The kinds of distances, in the order of the rows that `nearest_distances` returns."""

_RANGE = 1 << 16  # a distance of 1 by values
_LARGEST_VALUE = 1 << 29  # values are clipped here, so that no difference reaches 1 << 31
_MISSING_VALUE = -(1 << 30)  # more than a range away from all others
_MIDDLE = (0.05, 0.95)
_HALF_OF_FLOATS = np.finfo(np.float64).max / 2
_DISAGREEING = _RANGE // 20


@dataclass(frozen=True)
class ColumnDistances:
    """The places of a column's values by code; a distance is the difference of two places, at most a unit.

    `ranks` are twice the mid-ranks, with `unit` for a distance of 1; `values` have `_RANGE` for it. A column
    without an order has no places: different values are a unit apart.
    """

    column: CodedColumn
    ranks: IntArray
    values: IntArray
    unit: int

    @property
    def is_ordered(self) -> bool:
        """True if different values can be near each other."""
        return self.column.kind in ORDERED_KINDS

    def places_of(self, table: int, records: IntArray) -> _Places:
        """Return the places of some records of a table; their codes if the column has no order."""
        stored = self.column.tables[table]
        if not self.is_ordered:
            return _Places(stored.codes(records), np.empty(0, np.int32))
        return _Places(
            stored.look_up(self.ranks[stored.position], records),
            stored.look_up(self.values[stored.position], records),
        )


def measure_columns(columns: Sequence[CodedColumn], tables: Sequence[int]) -> list[ColumnDistances]:
    """Return the distances in each column among the records of these tables; GT is number 0."""
    pooled = [np.sum([column.counts[table] for table in tables], axis=0) for column in columns]
    unit = 2 * int(pooled[0].sum())
    # No difference of ranks exceeds three units: four bytes are enough for most tables.
    number = np.int32 if (len(columns) + 3) * unit < np.iinfo(np.int32).max else np.int64
    return [
        # Ranks are less than a unit apart; missing is more than a unit away from all of them.
        ColumnDistances(
            column,
            np.append(twice_mid_ranks(counts[:-1]), -2 * unit).astype(number),
            _place_values(column.levels, counts[:-1], column.counts[0][:-1]),
            unit,
        )
        if column.kind in ORDERED_KINDS
        else ColumnDistances(column, np.empty(0, number), np.empty(0, np.int32), unit)
        for column, counts in zip(columns, pooled, strict=True)
    ]


@dataclass(frozen=True)
class _Places:
    """The places of some records in a column by ranks and by values; without an order `ranks` are codes."""

    ranks: IntArray
    values: IntArray

    def take(self, records: IntArray) -> _Places:
        return _Places(self.ranks[records], self.values[records] if len(self.values) else self.values)

    def take_rows(self, records: slice) -> _Places:
        return _Places(self.ranks[records, None], self.values[records, None])


def _place_values(levels: Any, counts: IntArray, GT_counts: IntArray) -> IntArray:
    """Return the places of ordered levels, and last of a missing value, relative to the middle nine tenths.

    All finite levels have one place if the middle nine tenths of GT have one value; infinite ones are farther
    away than all of them.
    """
    numbers = (levels.astype(np.int64) if levels.dtype.kind in "mM" else levels).astype(np.float64)
    finite = np.isfinite(numbers)
    places = np.where(finite, 0.0, np.sign(numbers) * _LARGEST_VALUE)
    if GT_counts[finite].any():
        first, last = _middle(GT_counts[finite])
        if first != last:
            places[finite] = _place_between(numbers[finite], *_middle(counts[finite]))
    return np.append(np.rint(places), _MISSING_VALUE).astype(np.int32)


def _middle(counts: IntArray) -> tuple[int, int]:
    up_to = np.cumsum(counts)
    first, last = np.searchsorted(up_to, np.multiply(_MIDDLE, up_to[-1]))
    return int(first), int(last)


def _place_between(numbers: Floats, first: int, last: int) -> Floats:
    """Return the places of numbers relative to the range of these two, or of all of them if they are one."""
    if first == last:
        first, last = 0, -1
    if np.abs(numbers[[0, -1]]).max() > _HALF_OF_FLOATS:  # so that no difference is infinite
        numbers = numbers / 2
    low, high = numbers[first], numbers[last]
    with np.errstate(over="ignore"):
        places = (numbers - low) / ((high - low) or 1.0) * _RANGE
    return np.clip(places, 1 - _LARGEST_VALUE, _LARGEST_VALUE - 1)


_Pairs = Sequence[tuple[ColumnDistances, _Places, _Places]]
"""Columns with the places of persons and of records: paired, or broadcast to every person and record."""


def _add_up(
    shape: tuple[int, ...], columns: Sequence[ColumnDistances], pairs: _Pairs
) -> tuple[IntArray, ...]:
    """Add up the distances of pairs of records over the columns of `pairs`, in the order of `DISTANCES`.

    `shape` is that of the pairs. `columns` without `pairs` add nothing.
    """
    # All columns have the same records, so they have the same unit and type.
    unit, number = columns[0].unit, columns[0].ranks.dtype.type
    differ = np.zeros(shape, dtype=np.min_scalar_type(len(columns) + 1))
    # Columns without an order only need to be counted if they differ.
    for column, person, record in pairs:
        if not column.is_ordered:
            differ += person.ranks != record.ranks
    ranks = np.multiply(differ, number(unit), dtype=number)
    values = np.multiply(differ, np.int32(_RANGE), dtype=np.int32)
    rank_steps, value_steps = np.empty_like(ranks), np.empty_like(values)
    for column, person, record in pairs:
        if column.is_ordered:
            np.abs(np.subtract(person.ranks, record.ranks, out=rank_steps), out=rank_steps)
            ranks += np.minimum(rank_steps, unit, out=rank_steps)
            np.abs(np.subtract(person.values, record.values, out=value_steps), out=value_steps)
            differ += value_steps > _DISAGREEING
            values += np.minimum(value_steps, _RANGE, out=value_steps)
    return ranks, values, differ


@dataclass(frozen=True)
class ComparedTable:
    """A table to find records in: its position among the columns' tables, and which records count.

    `left_out`: for each person the record that is skipped (the person's own), or -1; with several records a
    person, a row for each of them.
    """

    table: int
    counted: Mask
    left_out: IntArray


@dataclass(frozen=True)
class Comparison:
    """GT records, `persons`, to be compared with the records of some tables."""

    persons: IntArray
    tables: tuple[ComparedTable, ...]


def nearest_distances(columns: Sequence[CodedColumn], comparison: Comparison) -> list[IntArray]:
    """Return the distance of each person to the nearest record of each table.

    The shape of each table's array is (`DISTANCES`, persons).
    """
    persons, tables = comparison.persons, comparison.tables
    column_distances = measure_columns(columns, sorted({0, *(table.table for table in tables)}))
    if len(persons) * sum(int(table.counted.sum()) for table in tables) <= _MOST_PAIRS:
        return [_nearest_of_all(column_distances, persons, table) for table in tables]
    blocks = _form_blocks(columns, tables)
    return [_nearest_of_candidates(column_distances, blocks, persons, table) for table in tables]


def _nearest_of_all(columns: Sequence[ColumnDistances], persons: IntArray, table: ComparedTable) -> IntArray:
    """Compare every person with every record."""
    records = np.flatnonzero(table.counted)
    position_of = np.full(len(table.counted) + 1, -1)  # the last one is for persons that skip nobody (-1)
    position_of[records] = np.arange(len(records))
    nearest = np.full((len(DISTANCES), len(persons)), NOBODY)
    if not len(records):
        return nearest
    places = [
        (column, column.places_of(0, persons), column.places_of(table.table, records)) for column in columns
    ]
    step = max(1, _AT_A_TIME // len(records))
    for start in range(0, len(persons), step):
        report_progress("Finding the nearest records", start, len(persons))
        part = slice(start, start + step)
        own = np.atleast_2d(position_of[table.left_out[..., part]])
        pairs = [(column, person.take_rows(part), record) for column, person, record in places]
        left_out_pairs = [(rows, of_rows[rows]) for of_rows in own for rows in [np.flatnonzero(of_rows >= 0)]]
        for kind, distances in enumerate(_add_up((own.shape[1], len(records)), columns, pairs)):
            nobody = np.iinfo(distances.dtype).max  # larger than any distance
            for pair in left_out_pairs:
                distances[pair] = nobody
            smallest = distances.min(axis=1)
            nearest[kind, part] = np.where(smallest == nobody, NOBODY, smallest.astype(np.int64))
    return nearest


def _nearest_of_candidates(
    columns: Sequence[ColumnDistances],
    blocks: Sequence[Sequence[CodedColumn]],
    persons: IntArray,
    table: ComparedTable,
) -> IntArray:
    """Compare every person with the records that agree in at least one block."""
    nearest = np.full((len(DISTANCES), len(persons)), NOBODY)
    for block in blocks:
        # Records that agree in a column are at distance 0 there.
        agreeing = set(map(id, block))
        differing = [column for column in columns if id(column.column) not in agreeing]
        places = [(column, column.places_of(0, persons)) for column in differing]
        for person, record in _find_candidates(block, persons, table):
            pairs = [
                (column, mine.take(person), column.places_of(table.table, record)) for column, mine in places
            ]
            is_other = ~_is_left_out(person, record, table)
            others = person[is_other]
            for kind, distances in enumerate(_add_up(person.shape, columns, pairs)):
                # With arrays of one type this is thirty times as fast.
                np.minimum.at(nearest[kind], others, distances[is_other].astype(nearest.dtype))
    return nearest


def _is_left_out(person: IntArray, record: IntArray, table: ComparedTable) -> Mask:
    left_out = np.atleast_2d(table.left_out)
    if len(left_out) == 1:
        return record == left_out[0, person]
    records = len(table.counted)
    pairs = (np.arange(left_out.shape[1]) * records + left_out).reshape(-1)
    return np.isin(person * records + record, pairs)


def _form_blocks(columns: Sequence[CodedColumn], tables: Sequence[ComparedTable]) -> list[list[CodedColumn]]:
    """Deal the columns into as many blocks as possible with few candidates each; else into a single block.

    The columns of the largest entropy are dealt out first, each to the block with the least so far.
    """
    ranks = sorted(columns, key=lambda column: -_entropy(column, tables))
    for number in range(min(_MOST_BLOCKS, len(columns)), 1, -1):
        blocks: list[list[CodedColumn]] = [[] for _ in range(number)]
        entropy = [0.0] * number
        for column in ranks:
            least_informative = entropy.index(min(entropy))
            blocks[least_informative].append(column)
            entropy[least_informative] += _entropy(column, tables)
        if all(_expected_candidates(tables, block) <= _MOST_CANDIDATES for block in blocks):
            return blocks
    return [list(columns)]


def _entropy(column: CodedColumn, tables: Sequence[ComparedTable]) -> float:
    counts = np.sum([column.counts[table.table] for table in tables], axis=0)
    share = counts[counts > 0] / counts.sum()
    return float(-(share * np.log(share)).sum())


def _expected_candidates(tables: Sequence[ComparedTable], block: Sequence[CodedColumn]) -> float:
    probes, records = [], 0
    for table in tables:
        step = max(1, len(table.counted) // _PROBE)
        probes.append([column.tables[table.table].codes(slice(None, None, step)) for column in block])
        records += len(table.counted)
    pooled = [np.concatenate(codes) for codes in zip(*probes, strict=True)]
    q = combine_keys([[codes] for codes in pooled], [column.size for column in block]).q[0]
    number = np.bincount(q).astype(np.float64)
    pairs = (number * (number - 1)).sum() / max(1, len(q) * (len(q) - 1))
    return float(pairs * records)


def _find_candidates(
    block: Sequence[CodedColumn], persons: IntArray, table: ComparedTable
) -> Iterator[tuple[IntArray, IntArray]]:
    codes = build_radix(block, [len(own.stored) for own in block[0].tables], _LARGEST)
    person_codes = _combine_codes(codes.readers(0, 1, np.int64), persons)
    order = np.argsort(person_codes, kind="stable")
    wanted, first, number = np.unique(person_codes[order], return_index=True, return_counts=True)
    for records, position in _find_agreeing(codes, table, wanted):
        # Pair every record with each person that has its code.
        pairs = np.cumsum(number[position])
        start = 0
        while start < len(records):
            before = int(pairs[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(pairs, before + _AT_A_TIME)))
            part = slice(start, stop)
            repeats = number[position[part]]
            yield (
                order[np.repeat(first[position[part]], repeats) + aranges(repeats)],
                np.repeat(records[part], repeats),
            )
            start = stop


def _find_agreeing(
    codes: Radix, table: ComparedTable, wanted: IntArray
) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield the records that have one of the `wanted` codes, which ascend, and its position among them.

    Most records have none: those with other lowest digits are skipped before the whole code is looked up.
    """
    readers = codes.readers(table.table, 1, np.int64)
    digit_readers = codes.readers(table.table, 1, np.uint32)
    # The lowest digits are the whole code: no need to look it up.
    is_whole_code = codes.size <= _LOWEST_DIGITS
    position_of = np.full(_LOWEST_DIGITS, -1, np.min_scalar_type(-len(wanted) - 1))
    position_of[wanted % _LOWEST_DIGITS] = np.arange(len(wanted))
    digits = np.empty(_RECORDS_AT_A_TIME, dtype=np.uint32)
    for start in range(0, len(table.counted), _RECORDS_AT_A_TIME):
        report_progress("Finding the nearest records", start, len(table.counted))
        stop = min(start + _RECORDS_AT_A_TIME, len(table.counted))
        part_digits = digits[: stop - start]
        sum_readers(digit_readers, slice(start, stop), part_digits)
        part_digits &= np.uint32(_LOWEST_DIGITS - 1)
        candidates = position_of.take(part_digits, mode="clip")
        may_agree = np.flatnonzero((candidates != -1) & table.counted[start:stop])
        records = may_agree + start
        if is_whole_code:
            yield records, candidates[may_agree].astype(np.int64)
            continue
        record_codes = _combine_codes(readers, records)
        position = np.minimum(np.searchsorted(wanted, record_codes), len(wanted) - 1)
        hits = wanted[position] == record_codes
        yield records[hits], position[hits]


def _combine_codes(readers: Sequence[Reader], records: IntArray) -> IntArray:
    return np.sum([reader(records) for reader in readers], axis=0)
