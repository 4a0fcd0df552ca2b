"""Tables that are read batch by batch, as often as needed: their values, then the codes of their records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.parallel import cores, each_in_threads
from disclosure_pipeline.tables.collecting import collect
from disclosure_pipeline.tables.distinct import Distinct
from disclosure_pipeline.tables.encoding import by_range
from disclosure_pipeline.tables.levels import IntArray
from disclosure_pipeline.tables.sources import Location, read_batches

_CHANGED = "changed while it was read: run again when nobody writes it"


@dataclass
class Met:
    """The values of one column that were met in the batches so far; each has a number.

    `by_type`: Arrow type -> the values of that type, and their numbers. `counts`: records by number.
    """

    by_type: dict[Any, tuple[Any, IntArray]] = field(default_factory=dict)
    counts: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    missing: int = 0

    def add(self, batch: _Encoded) -> None:
        """Count the records of a batch."""
        counts = np.bincount(batch.codes + 1, minlength=len(batch.values) + 1)
        there = counts[1:] > 0
        self.missing += int(counts[0] + counts[1:][there & batch.empty].sum())
        values = batch.values.filter(pa.array(there & ~batch.empty))
        records = counts[1:][there & ~batch.empty]
        numbers = self._numbers(values)
        new = numbers < 0
        if new.any():
            known, of_known = self.by_type.get(values.type, (values[:0], np.empty(0, dtype=np.int64)))
            numbers[new] = len(self.counts) + np.arange(int(new.sum()))
            self.counts = np.append(self.counts, np.zeros(int(new.sum()), dtype=np.int64))
            self.by_type[values.type] = (
                pa.concat_arrays([known, values.filter(pa.array(new))]),
                np.append(of_known, numbers[new]),
            )
        np.add.at(self.counts, numbers, records)

    def _numbers(self, values: Any) -> IntArray:
        """The number of each value, -1 where it was not met yet."""
        known, numbers = self.by_type.get(values.type, (None, np.empty(0, dtype=np.int64)))
        if known is None:
            return np.full(len(values), -1)
        at = pc.index_in(values, value_set=known).fill_null(-1).to_numpy(zero_copy_only=False)
        return np.append(numbers, -1)[at]

    def distinct(self, column: str, table: str) -> Distinct:
        """The values in the order of their numbers."""
        counts = np.append(self.counts, self.missing)
        if not self.by_type:
            return Distinct(pd.Series(pd.arrays.ArrowExtensionArray(pa.nulls(0))), counts)
        order = np.argsort(np.concatenate([numbers for _, numbers in self.by_type.values()]))
        values = _of_one_type([values for values, _ in self.by_type.values()], column, table)
        return Distinct(pd.Series(pd.arrays.ArrowExtensionArray(values.take(pa.array(order)))), counts)

    def codes(self, batch: _Encoded, of_number: IntArray, column: str, table: str) -> IntArray:
        """The code of each record of a batch. `of_number` has one for each number, and last for missing."""
        numbers = self._numbers(batch.values)
        there = np.zeros(len(numbers) + 1, dtype=bool)
        there[batch.codes] = True
        if (there[:-1] & (numbers < 0) & ~batch.empty).any():
            raise InputError(f"{table}: column {column!r} {_CHANGED}.")
        of_values = np.append(of_number[np.where(batch.empty, -1, numbers)], of_number[-1])
        return of_values[batch.codes]


@dataclass(frozen=True)
class _Encoded:
    """A column of a batch: `codes` (-1 is missing) are positions in `values`; `empty` marks missing ones."""

    codes: IntArray
    values: Any
    empty: Any


def _encoded(column: Any, name: str, table: str) -> _Encoded:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    found = by_range(array)
    if found is not None:
        return _Encoded(*found, np.zeros(len(found[1]), dtype=bool))
    try:
        array = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    except pa.ArrowException:
        array = None
    if array is None:
        raise InputError(
            f"{table}: column {name!r} is of type {column.type}, whose values cannot be compared: expected "
            "numbers, text, true/false or dates."
        )
    values = array.dictionary
    empty = values.is_null(nan_is_null=pa.types.is_floating(values.type)).to_numpy(zero_copy_only=False)
    return _Encoded(array.indices.fill_null(-1).to_numpy(zero_copy_only=False), values, empty)


def _of_one_type(arrays: Sequence[Any], column: str, table: str) -> Any:
    """The values of several types in one that holds all of them exactly."""
    try:
        [common] = pa.unify_schemas(
            [pa.schema([("values", array.type)]) for array in arrays], promote_options="permissive"
        ).types
        return pa.concat_arrays([array.cast(common) for array in arrays])
    except pa.ArrowException:
        pass
    raise InputError(f"{table}: column {column!r} holds values of several kinds: give it one type.")


@dataclass(frozen=True)
class Stream:
    """A table of `records`, and what was met in its columns when it was read for the first time."""

    location: Location
    name: str
    records: int
    met: dict[str, Met]

    def distinct(self, column: str) -> Distinct:
        """The values of a column."""
        return self.met[column].distinct(column, self.name)

    def batches(self, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        """The batches of some columns. InputError where they are not as many records as before."""
        records = 0
        for batch in read_batches(self.location, self.name, columns):
            records += len(next(iter(batch.values())))
            yield batch
        if records != self.records:
            raise InputError(f"{self.name} {_CHANGED}.")

    def some(self, positions: IntArray) -> pd.DataFrame:
        """Some records as `sources.read_raw` reads them; `positions` ascend."""

        def taken() -> Iterator[Any]:
            start = 0
            for batch in self.batches(list(self.met)):
                end = start + len(next(iter(batch.values())))
                first, last = np.searchsorted(positions, [start, end])
                here = pa.array(positions[first:last] - start)
                yield pa.table({name: column.take(here) for name, column in batch.items()})
                start = end

        return collect(list(self.met), taken(), self.name)

    def codes(self, column: str, batch: dict[str, Any], of_number: IntArray) -> IntArray:
        """The code of each record of a batch: see `Met.codes`."""
        encoded = _encoded(batch[column], column, self.name)
        return self.met[column].codes(encoded, of_number, column, self.name)


def stream(
    location: Location,
    name: str,
    columns: Sequence[str],
    done: Callable[[str, int, int], None] = lambda what, done, of: None,
) -> Stream:
    """Read the columns of a table for the first time. `name` is the table's in messages.

    InputError as `sources.read_raw`, and where a column holds values of several kinds.
    """

    def encode(batch: dict[str, Any]) -> tuple[int, dict[str, _Encoded]]:
        found = {column: _encoded(batch[column], column, name) for column in columns}
        return len(next(iter(batch.values()))), found

    met = {column: Met() for column in columns}
    records = 0
    if not columns:
        return Stream(location, name, records, met)
    for rows, found in each_in_threads(read_batches(location, name, columns), encode, cores()):
        records += rows
        for column, encoded in found.items():
            met[column].add(encoded)
        done(f"Reading {name}", records, 0)
    return Stream(location, name, records, met)
