"""Tables read once, batch by batch: the values of their columns, numbered, and each record's value numbers.

The numbers of the records' values are spilled to disk, sealed, and read from there whenever the records are
counted: the table itself is not read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from disclosure_pipeline.counting.partitioned.spill_file import SpillFile, open_spill_file
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.runtime.machine import count_cores, map_in_threads
from disclosure_pipeline.runtime.progress import OnProgress, ignore_progress
from disclosure_pipeline.tables.coding import Distinct
from disclosure_pipeline.tables.encoding import (
    cast_to_one_type,
    dictionary_encode,
    encode_by_range,
    smallest_code_type,
)
from disclosure_pipeline.tables.levels import CodedColumn
from disclosure_pipeline.tables.sources import Location, read_batches

Codes = npt.NDArray[Any]

_RECORDS = 1 << 20  # of a batch


@dataclass(frozen=True)
class Batches:
    """The records of some tables (GT first), which can be read any number of times.

    `records` are the numbers of records. `read(table)` returns the batches of a table. `code(table, batch,
    column)` returns the codes of a column in a batch; only this is called in threads.
    """

    records: tuple[int, ...]
    read: Callable[[int], Iterable[Any]]
    code: Callable[[int, Any, CodedColumn], Codes]


@dataclass(frozen=True)
class CodedBatch:
    """The codes of a batch's records, by the identity of the column."""

    records: int
    codes: Mapping[int, Codes]

    def codes_of(self, column: CodedColumn) -> Codes:
        """Return the codes of a column, one for each record."""
        return self.codes[id(column)]


def code_batch(batches: Batches, columns: Sequence[CodedColumn], table: int, batch: Any) -> CodedBatch:
    """Code a batch of a table by each of the columns."""
    codes = {id(column): batches.code(table, batch, column) for column in columns}
    return CodedBatch(len(next(iter(codes.values()))), codes)


def batches_in_memory(columns: Sequence[CodedColumn], records: int = _RECORDS) -> Batches:
    """Return batches of this number of records from columns in memory."""
    sizes = tuple(len(table.stored) for table in columns[0].tables)
    readers = {
        (table, id(column)): column.reader(table, np.arange(column.size))
        for column in columns
        for table in range(len(sizes))
    }
    return Batches(
        sizes,
        lambda table: (slice(start, start + records) for start in range(0, sizes[table], records)),
        lambda table, batch, column: readers[table, id(column)](batch),
    )


@dataclass
class SeenValues:
    """The values of one column in the batches read so far, numbered.

    `by_type`: Arrow type -> the values of that type, and their numbers. `counts`: records by number.
    """

    by_type: dict[Any, tuple[Any, IntArray]] = field(default_factory=dict)
    counts: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    missing: int = 0

    def add(self, batch: _EncodedColumn) -> IntArray:
        """Count the records of a batch, and return the number of each one's value, -1 for missing."""
        counts = np.bincount(batch.codes + 1, minlength=len(batch.values) + 1)
        occurs = counts[1:] > 0
        self.missing += int(counts[0] + counts[1:][occurs & batch.empty].sum())
        values = batch.values.filter(pa.array(occurs & ~batch.empty))
        records = counts[1:][occurs & ~batch.empty]
        numbers = self._numbers_of(values)
        new = numbers < 0
        if new.any():
            known, known_numbers = self.by_type.get(values.type, (values[:0], np.empty(0, dtype=np.int64)))
            numbers[new] = len(self.counts) + np.arange(int(new.sum()))
            self.counts = np.append(self.counts, np.zeros(int(new.sum()), dtype=np.int64))
            self.by_type[values.type] = (
                pa.concat_arrays([known, values.filter(pa.array(new))]),
                np.append(known_numbers, numbers[new]),
            )
        np.add.at(self.counts, numbers, records)
        number_of_value = np.full(len(batch.values) + 1, -1, dtype=smallest_code_type(len(self.counts)))
        number_of_value[:-1][occurs & ~batch.empty] = numbers
        return number_of_value[batch.codes]

    def _numbers_of(self, values: Any) -> IntArray:
        """Return the number of each value, -1 for a new one."""
        known, numbers = self.by_type.get(values.type, (None, np.empty(0, dtype=np.int64)))
        if known is None:
            return np.full(len(values), -1)
        positions = pc.index_in(values, value_set=known).fill_null(-1).to_numpy(zero_copy_only=False)
        return np.append(numbers, -1)[positions]

    def distinct(self, column: str, table: str) -> Distinct:
        """Return the values in the order of their numbers."""
        counts = np.append(self.counts, self.missing)
        if not self.by_type:
            return Distinct(pd.Series(pd.arrays.ArrowExtensionArray(pa.nulls(0))), counts)
        order = np.argsort(np.concatenate([numbers for _, numbers in self.by_type.values()]))
        arrays = cast_to_one_type([values for values, _ in self.by_type.values()], column, table)
        values = pa.concat_arrays(arrays).take(pa.array(order))
        return Distinct(pd.Series(pd.arrays.ArrowExtensionArray(values)), counts)


@dataclass(frozen=True)
class _EncodedColumn:
    """A column of a batch: `codes` are positions in `values` (-1: missing); `empty` marks missing values."""

    codes: IntArray
    values: Any
    empty: Any


def _encode_column(column: Any, name: str, table: str) -> _EncodedColumn:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    by_offset = encode_by_range(array)
    if by_offset is not None:
        codes, levels = by_offset
        return _EncodedColumn(codes, levels, np.zeros(len(levels), dtype=bool))
    array = dictionary_encode(array, name, table)
    values = array.dictionary
    empty = values.is_null(nan_is_null=pa.types.is_floating(values.type)).to_numpy(zero_copy_only=False)
    # A file may index its dictionary by bytes, which have no value left for missing.
    indices = array.indices.cast(pa.int32()).fill_null(-1)
    return _EncodedColumn(indices.to_numpy(zero_copy_only=False), values, empty)


@dataclass(frozen=True)
class Stream:
    """A table that was read: the values `seen` in its columns, and the numbers of its records' values.

    `numbers` has a part for each batch and column, of the integer type in `types`. `ends`: the number of
    records up to the end of each batch.
    """

    name: str
    seen: dict[str, SeenValues]
    numbers: SpillFile
    types: dict[tuple[int, str], np.dtype[Any]] = field(default_factory=dict)
    ends: list[int] = field(default_factory=list)

    @property
    def records(self) -> int:
        """The number of records."""
        return self.ends[-1] if self.ends else 0

    @property
    def batches(self) -> range:
        """The numbers of the batches."""
        return range(len(self.ends))

    def distinct(self, column: str) -> Distinct:
        """Return the values of a column."""
        return self.seen[column].distinct(column, self.name)

    def codes(self, column: str, batch: int, code_by_number: IntArray) -> IntArray:
        """Return each record's code in a batch; `code_by_number` ends with the code of missing."""
        numbers = self.numbers.read((batch, column)).view(self.types[batch, column])
        return code_by_number[numbers]

    def value_numbers(self, positions: IntArray) -> dict[str, IntArray]:
        """Return the value numbers (-1: missing) of each column, of records whose positions ascend."""
        numbers: dict[str, IntArray] = {
            column: np.empty(len(positions), dtype=smallest_code_type(len(seen.counts)))
            for column, seen in self.seen.items()
        }
        bounds = np.searchsorted(positions, [0, *self.ends])
        for batch, (first, last) in enumerate(pairwise(bounds.tolist())):
            if first == last:  # no need to read the whole batch
                continue
            in_batch = positions[first:last] - (self.ends[batch - 1] if batch else 0)
            for column, column_numbers in numbers.items():
                stored = self.numbers.read((batch, column)).view(self.types[batch, column])
                column_numbers[first:last] = stored[in_batch]
        return numbers


def read_stream(
    location: Location,
    name: str,
    columns: Sequence[str],
    stack: ExitStack,
    on_progress: OnProgress = ignore_progress,
) -> Stream:
    """Read columns of a table, which messages call `name`; what is spilled is gone when the stack closes.

    Raise InputError as `sources.read_raw` does, and if a column holds values of several kinds.
    """

    def encode(batch: dict[str, Any]) -> tuple[int, dict[str, _EncodedColumn]]:
        encoded = {column: _encode_column(batch[column], column, name) for column in columns}
        return len(next(iter(batch.values()))), encoded

    numbers = stack.enter_context(open_spill_file(np.dtype(np.uint8), 0))
    stream = Stream(name, {column: SeenValues() for column in columns}, numbers)
    if not columns:
        return stream
    batches = read_batches(location, name, columns)
    for batch, (rows, encoded) in enumerate(map_in_threads(batches, encode, count_cores())):
        for column, encoded_column in encoded.items():
            value_numbers = stream.seen[column].add(encoded_column)
            stream.types[batch, column] = value_numbers.dtype
            numbers.add((batch, column), value_numbers.view(np.uint8))
        stream.ends.append(stream.records + rows)
        on_progress(f"Reading {name}", stream.records, 0)
    return stream


@dataclass(frozen=True)
class StackedStream:
    """A `Stream` of all records of `streams`, in their order.

    `values`: column -> the number of values of each stream. The numbers of a stream's values follow those of
    the stream before it.
    """

    streams: Sequence[Stream | StackedStream]
    values: Mapping[str, Sequence[int]]

    @property
    def records(self) -> int:
        """The number of records of all streams."""
        return sum(stream.records for stream in self.streams)

    @property
    def batches(self) -> range:
        """The numbers of the batches of all streams."""
        return range(sum(len(stream.batches) for stream in self.streams))

    def codes(self, column: str, batch: int, code_by_number: IntArray) -> IntArray:
        """Return each record's code in a batch; `code_by_number` ends with the code of missing."""
        position, own_batch = self._find(batch)
        first = sum(self.values[column][:position])
        own = code_by_number[first : first + self.values[column][position]]
        return self.streams[position].codes(column, own_batch, np.append(own, code_by_number[-1]))

    def value_numbers(self, positions: IntArray) -> dict[str, IntArray]:
        """Return the value numbers (-1: missing) of each column, of records whose positions ascend."""
        parts: dict[str, list[IntArray]] = {column: [] for column in self.values}
        start = 0
        for position, stream in enumerate(self.streams):
            first, last = np.searchsorted(positions, [start, start + stream.records])
            numbers = stream.value_numbers(positions[first:last] - start)
            for column, column_parts in parts.items():
                before = sum(self.values[column][:position])
                own = numbers[column].astype(np.int64)
                column_parts.append(np.where(own < 0, -1, own + before))
            start += stream.records
        return {column: np.concatenate(column_parts) for column, column_parts in parts.items()}

    def _find(self, batch: int) -> tuple[int, int]:
        """Return the position of the batch's stream, and its number there."""
        for position, stream in enumerate(self.streams):
            if batch < len(stream.batches):
                return position, batch
            batch -= len(stream.batches)
        raise IndexError(batch)
