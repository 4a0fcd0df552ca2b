"""The distance of some records to the nearest of many, in memory.

A distance is a sum over columns: 0 or 1, and for numbers and dates the difference of their mid-ranks in the
pooled tables, divided by the number of records; a missing value is at distance 1 from all but a missing one.
Here it is a whole number, in units of half a rank, so that what is equally near is so exactly.

Small tables are compared record by record. Of large ones only records are looked at that agree with the
person in at least one of a few blocks of columns: who differs in fewer columns than there are blocks does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from disclosure_pipeline.counting.memory.radix import Radix, Reader, add, radix
from disclosure_pipeline.measures.exact import IntArray, Mask
from disclosure_pipeline.measures.frequency import combine_keys, count_up
from disclosure_pipeline.measures.nearness import twice_mid_ranks
from disclosure_pipeline.tables.kinds import Kind
from disclosure_pipeline.tables.levels import CodedColumn

NOBODY = np.iinfo(np.int64).max
"""The distance where there is no record to look at."""

ORDERED = {Kind.NUMBER, Kind.DATE, Kind.ZONED_DATE, Kind.DURATION}

_MOST_PAIRS = 200_000_000  # pairs of records that are all compared
_MOST_CANDIDATES = 4_000  # of a person in a block and both tables, on average
_MOST_BLOCKS = 4
_PROBE = 100_000  # records of each table, to foresee how many candidates a block gives
_AT_A_TIME = 1 << 16  # pairs, so that they fit the cache
_RECORDS_AT_A_TIME = 1 << 17  # so that they fit the cache
_LOWEST_DIGITS = 1 << 20  # numbers by which most records are told apart
_LARGEST = 1 << 62


@dataclass(frozen=True)
class Distances:
    """How far apart the values of one column are: as their `places` by code, but never more than `unit`."""

    column: CodedColumn
    places: IntArray
    unit: int

    @classmethod
    def from_column(cls, column: CodedColumn, tables: Sequence[int]) -> Distances:
        """Among the records of these tables; `unit` stands for a distance of 1."""
        counts = np.sum([column.counts[table] for table in tables], axis=0)
        unit = 2 * int(counts.sum())
        if column.kind not in ORDERED:
            return cls(column, np.arange(column.size) * unit, unit)
        # Ranks are less than a unit apart; missing is further than that from all of them.
        return cls(column, np.append(twice_mid_ranks(counts[:-1]), -2 * unit), unit)

    @property
    def is_ordered(self) -> bool:
        """True if values can be near to one another without being the same."""
        return self.column.kind in ORDERED

    def places_of(self, table: int, records: IntArray) -> IntArray:
        """Return the places of some records of a table."""
        stored = self.column.tables[table]
        return stored.look_up(self.places[stored.position], records)

    def between(self, places: IntArray, others: IntArray) -> IntArray:
        """Between pairs of places, or of every one of a column with every one of a row."""
        apart: IntArray = places - others
        np.abs(apart, out=apart)
        return np.minimum(apart, self.unit, out=apart)


@dataclass(frozen=True)
class ComparedTable:
    """A table to find records in: its position among the columns' tables, and which of its records count."""

    table: int
    counted: Mask


@dataclass(frozen=True)
class Comparison:
    """GT records, `persons`, to be compared with those of some tables.

    `left_out[i]`: for each person the record of `tables[i]` that is not looked at (the person's own), or -1;
    of people with several records a row for each of these.
    """

    persons: IntArray
    tables: tuple[ComparedTable, ...]
    left_out: tuple[IntArray, ...]

    @property
    def numbers(self) -> list[int]:
        """The numbers of the tables, GT's among them."""
        return sorted({0, *(table.table for table in self.tables)})

    @property
    def is_of_all_pairs(self) -> bool:
        """True if the tables are so small that every person is compared with every record."""
        return len(self.persons) * sum(int(table.counted.sum()) for table in self.tables) <= _MOST_PAIRS


Draw = Callable[[Sequence[CodedColumn]], Iterator[Comparison]]
"""What is to be compared, of columns whose counts are those of the tables: one comparison a synthesis."""


def nearest_distances(columns: Sequence[CodedColumn], comparison: Comparison) -> list[IntArray]:
    """Return each person's distance to the nearest record of each of the tables."""
    persons, tables = comparison.persons, comparison.tables
    column_distances = [Distances.from_column(column, comparison.numbers) for column in columns]
    if comparison.is_of_all_pairs:
        return [
            nearest_of_all(column_distances, persons, table, own)
            for table, own in zip(tables, comparison.left_out, strict=True)
        ]
    blocks = form_blocks(columns, tables, partial(_expected_candidates, tables))
    return [
        nearest_of_candidates(column_distances, blocks, persons, table, own)
        for table, own in zip(tables, comparison.left_out, strict=True)
    ]


def nearest_of_all(
    column_distances: Sequence[Distances], persons: IntArray, table: ComparedTable, left_out: IntArray
) -> IntArray:
    """Compare every person with every record."""
    records = np.flatnonzero(table.counted)
    position_of = np.full(len(table.counted) + 1, len(records))  # one more, for those who leave out nobody
    position_of[records] = np.arange(len(records))
    unit = column_distances[0].unit  # of every column: all are of the same records
    # No difference of places is larger than three units: most tables need half the bytes.
    largest = (len(column_distances) + 3) * unit
    number: type[np.signedinteger[Any]] = np.int32 if largest < np.iinfo(np.int32).max else np.int64
    nobody = np.iinfo(number).max
    ordered = [distances for distances in column_distances if distances.is_ordered]
    named = [distances.column for distances in column_distances if not distances.is_ordered]
    # Of columns without an order it is enough to count those that differ.
    differing = np.min_scalar_type(len(named))
    record_places = [distances.places_of(table.table, records).astype(number) for distances in ordered]
    record_codes = [column.tables[table.table].codes(records) for column in named]
    person_places = [distances.places_of(0, persons).astype(number) for distances in ordered]
    person_codes = [column.tables[0].codes(persons) for column in named]
    nearest = np.full(len(persons), NOBODY)
    step = max(1, _AT_A_TIME // len(records))
    for start in range(0, len(persons), step):
        chunk = slice(start, start + step)
        rows = np.arange(len(persons[chunk]))
        differ = np.zeros((len(rows), len(records)), dtype=differing)
        for of_persons, of_records in zip(person_codes, record_codes, strict=True):
            differ += of_persons[chunk, None] != of_records
        distance = np.empty((len(rows), len(records) + 1), dtype=number)
        distance[:, -1] = nobody
        np.multiply(differ, number(unit), out=distance[:, :-1], dtype=number)
        for distances, of_persons, of_records in zip(ordered, person_places, record_places, strict=True):
            distance[:, :-1] += distances.between(of_persons[chunk, None], of_records)
        distance[rows, position_of[left_out[..., chunk]]] = nobody
        of_chunk = distance.min(axis=1)
        nearest[chunk] = np.where(of_chunk == nobody, NOBODY, of_chunk)
    return nearest


def nearest_of_candidates(
    column_distances: Sequence[Distances],
    blocks: Sequence[Sequence[CodedColumn]],
    persons: IntArray,
    table: ComparedTable,
    left_out: IntArray,
) -> IntArray:
    """Compare every person with the records that agree in a block."""
    nearest = np.full(len(persons), NOBODY)
    for block in blocks:
        # Who agrees in a column is at distance 0 there.
        agreeing = set(map(id, block))
        others = [distances for distances in column_distances if id(distances.column) not in agreeing]
        person_places = [distances.places_of(0, persons) for distances in others]
        for person, record in _find_candidates(block, persons, table):
            distance = np.zeros(len(person), dtype=np.int64)
            for distances, places in zip(others, person_places, strict=True):
                distance += distances.between(places[person], distances.places_of(table.table, record))
            distance[_is_left_out(person, record, left_out, len(table.counted))] = NOBODY
            np.minimum.at(nearest, person, distance)
    return nearest


def _is_left_out(person: IntArray, record: IntArray, left_out: IntArray, records: int) -> Mask:
    if left_out.ndim == 1:
        return record == left_out[person]
    pairs = (np.arange(left_out.shape[1]) * records + left_out).reshape(-1)
    return np.isin(person * records + record, pairs)


def form_blocks(
    columns: Sequence[CodedColumn],
    tables: Sequence[ComparedTable],
    expect_candidates: Callable[[Sequence[CodedColumn]], float],
) -> list[list[CodedColumn]]:
    """Return the columns in as many blocks as give few candidates each; one block of all where none do.

    The columns of the largest entropy are dealt out first, each to the block of the least so far.
    `expect_candidates` gives the number of records of all tables that agree with one of them in a block.
    """
    ranks = sorted(columns, key=lambda column: -_entropy(column, tables))
    for number in range(min(_MOST_BLOCKS, len(columns)), 1, -1):
        blocks: list[list[CodedColumn]] = [[] for _ in range(number)]
        entropy = [0.0] * number
        for column in ranks:
            least_informative = entropy.index(min(entropy))
            blocks[least_informative].append(column)
            entropy[least_informative] += _entropy(column, tables)
        if all(expect_candidates(block) <= _MOST_CANDIDATES for block in blocks):
            return blocks
    return [list(columns)]


def _entropy(column: CodedColumn, tables: Sequence[ComparedTable]) -> float:
    """Return the entropy of the column's values in all the tables, in nats."""
    counts = np.sum([column.counts[table.table] for table in tables], axis=0)
    share = counts[counts > 0] / counts.sum()
    return float(-(share * np.log(share)).sum())


def _expected_candidates(tables: Sequence[ComparedTable], block: Sequence[CodedColumn]) -> float:
    """Return the number of records of all tables that agree with one of them in a block, about."""
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
    """Pairs of a person and a record that agree in a block, some at a time."""
    codes = radix(block, [len(own.stored) for own in block[0].tables], _LARGEST)
    person_codes = _combine_codes(codes.readers(0, 1, np.int64), persons)
    order = np.argsort(person_codes, kind="stable")
    wanted, first, number = np.unique(person_codes[order], return_index=True, return_counts=True)
    for records, position in _find_agreeing(codes, table, wanted):
        # Every record with each of the persons that have its code.
        pairs = np.cumsum(number[position])
        start = 0
        while start < len(records):
            before = int(pairs[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(pairs, before + _AT_A_TIME)))
            chunk = slice(start, stop)
            repeats = number[position[chunk]]
            yield (
                order[np.repeat(first[position[chunk]], repeats) + count_up(repeats)],
                np.repeat(records[chunk], repeats),
            )
            start = stop


def _find_agreeing(
    codes: Radix, table: ComparedTable, wanted: IntArray
) -> Iterator[tuple[IntArray, IntArray]]:
    """Return the records that have one of the `wanted` codes, which ascend, and its position among them.

    Most have none: whose lowest digits no wanted code has is put aside before the whole code is looked up.
    """
    readers = codes.readers(table.table, 1, np.int64)
    digit_readers = codes.readers(table.table, 1, np.uint32)
    may_agree = np.zeros(_LOWEST_DIGITS, dtype=bool)
    may_agree[wanted % _LOWEST_DIGITS] = True
    digits = np.empty(_RECORDS_AT_A_TIME, dtype=np.uint32)
    for start in range(0, len(table.counted), _RECORDS_AT_A_TIME):
        stop = min(start + _RECORDS_AT_A_TIME, len(table.counted))
        chunk_digits = digits[: stop - start]
        add(digit_readers, slice(start, stop), chunk_digits)
        chunk_digits &= np.uint32(_LOWEST_DIGITS - 1)
        records = np.flatnonzero(may_agree.take(chunk_digits, mode="clip")) + start
        records = records[table.counted[records]]
        record_codes = _combine_codes(readers, records)
        position = np.minimum(np.searchsorted(wanted, record_codes), len(wanted) - 1)
        hits = wanted[position] == record_codes
        yield records[hits], position[hits]


def _combine_codes(readers: Sequence[Reader], records: IntArray) -> IntArray:
    """Return the codes of some records."""
    return np.sum([reader(records) for reader in readers], axis=0)
