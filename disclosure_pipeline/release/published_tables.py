"""The tables of a release: written anew from canonical values, in an order given by their content.

Nothing else of the arrived files survives: no metadata, unused levels or file names, no order of files or
records.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from disclosure_pipeline.candidates.reading import StagedTables
from disclosure_pipeline.errors import StoreError
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.release.predicate import EVENTS
from disclosure_pipeline.runtime.files import hash_file, hash_stream
from disclosure_pipeline.runtime.machine import map_in_threads
from disclosure_pipeline.runtime.progress import report_progress
from disclosure_pipeline.tables.additions import starts_formula
from disclosure_pipeline.tables.contract import CanonicalTable
from disclosure_pipeline.tables.dictionary import CATEGORIES, Dictionary
from disclosure_pipeline.tables.encoding import Encoded, arrow_codes, encode, take_levels
from disclosure_pipeline.tables.levels import IntArray, look_up
from disclosure_pipeline.tables.record_hashes import (
    MISSING,
    RECORDS_AT_ONCE,
    Hashes,
    Records,
    hash_levels,
    mix,
    plain_type,
)

NAME = "synthetic"

# Records of a row group of Parquet, however the table was read.
_RECORDS = RECORDS_AT_ONCE
_HASHED_AT_ONCE = 1 << 15  # records that fit the cache
_FIRST = 1 << 14  # records that contain all levels of most columns

# The most levels and bytes of a text column that is written as codes. Parquet gives up a dictionary at 1 MiB.
_FEW_LEVELS, _FEW_BYTES = 1 << 12, 1 << 17


@dataclass(frozen=True)
class PublishedFile:
    """A released file of a synthetic table."""

    name: str
    records: int
    sha256: str


def write_tables(gate: Gate, staged: StagedTables, folder: Path) -> tuple[PublishedFile, ...]:
    """Write the published columns of a candidate's measured tables into `folder`: Parquet and, if set, CSV.

    Equal tables give the same bytes, whatever the order, format and spelling in which they arrived. Raise
    StoreError if the staged files are not the snapshot's.
    """
    assert staged.candidate.stage is not None
    for file in staged.candidate.snapshot.files:
        if hash_file(staged.candidate.stage / file.name) != file.sha256:
            raise StoreError(f"The staged copy of {file.name!r} was changed: run release again.")
    syntheses = [_order_synthesis(gate, table) for table in staged.tables]
    syntheses.sort(key=lambda tables: [table.digest for table in tables])
    names = [NAME] if len(syntheses) == 1 else [f"{NAME}_{number}" for number in range(1, len(syntheses) + 1)]
    return tuple(
        file
        for name, tables in zip(names, syntheses, strict=True)
        for suffix, table in zip(("", EVENTS), tables, strict=False)
        for file in _write(table, folder / f"{name}{suffix}", with_csv=gate.csv)
    )


@dataclass(frozen=True)
class _ColumnWriter:
    """Converts the canonical values of a column to an Arrow type, with formulas quoted if `quotes`.

    `as_codes`: texts with few levels reach Parquet as codes. The file's bytes are the same, but sooner.
    """

    type: Any
    quotes: bool
    as_codes: bool = False

    @property
    def written_type(self) -> Any:
        """The Arrow type of the values that `convert` returns."""
        return pa.dictionary(pa.int32(), self.type) if self.as_codes else self.type

    def convert_levels(self, levels: Any) -> Any:
        """Return the published form of levels, an Arrow array."""
        written = levels.cast(self.type)
        if not self.quotes:
            return written
        quoted = pc.binary_join_element_wise("'", written, "")
        return pc.if_else(pa.array(starts_formula(written)), quoted, written)

    def choose_form(self, values: pd.Series[Any]) -> _ColumnWriter:
        """Choose codes for texts with levels few enough for a dictionary of Parquet."""
        levels = encode(values).levels
        fits = pa.types.is_string(self.type) and len(levels) <= _FEW_LEVELS and levels.nbytes <= _FEW_BYTES
        return replace(self, as_codes=fits)

    def convert(self, values: pd.Series[Any]) -> Any:
        """Return the published form of values, an Arrow array of the `written_type`."""
        encoded = encode(values)
        levels = self.convert_levels(encoded.levels)
        if not self.as_codes:
            return levels.take(arrow_codes(encoded.codes))
        # Only used levels, numbered by first appearance as Parquet does.
        used = _list_used_levels(encoded)
        number = np.full(len(levels) + 1, -1, dtype=np.int32)
        number[used] = np.arange(len(used))
        codes = look_up(number, encoded.codes)
        return take_levels(codes, levels.take(pa.array(used)))


@dataclass(frozen=True)
class _OrderedTable:
    """A table whose records are published in the order of `positions`; `digest` hashes its content."""

    columns: Mapping[str, _ColumnWriter]
    records: Records
    positions: IntArray
    digest: bytes

    @property
    def schema(self) -> Any:
        """The schema of the published file."""
        return pa.schema([pa.field(name, column.type) for name, column in self.columns.items()])

    @property
    def written_schema(self) -> Any:
        """The schema of the batches."""
        return pa.schema([pa.field(name, column.written_type) for name, column in self.columns.items()])

    def batches(self) -> Iterator[Any]:
        """Yield the ordered records as Arrow tables."""
        written, ordered = 0, self.records.records_in_order(self.positions, _RECORDS)
        for batch in map_in_threads(ordered, self._convert, 1):  # while the batch before is written
            report_progress("Writing the table", written, len(self.positions))
            written += len(batch)
            yield batch

    def _convert(self, records: pd.DataFrame) -> Any:
        arrays = [column.convert(records[name]) for name, column in self.columns.items()]
        return pa.Table.from_arrays(arrays, schema=self.written_schema)


def _make_writers(gate: Gate, dictionary: Dictionary) -> dict[str, _ColumnWriter]:
    return {
        name: _ColumnWriter(plain_type(column), gate.formulas == "quote" and column.type in CATEGORIES)
        for name, column in dictionary.items()
    }


def _order_synthesis(gate: Gate, table: Any) -> tuple[_OrderedTable, ...]:
    """Return the ordered table of a synthesis, or that of its persons and that of their events."""
    if gate.events is None or gate.unit is None:
        columns = {name: gate.columns[name] for name in gate.published_columns}
        return (_order_records(_make_writers(gate, columns), table),)
    # Persons are ordered by their records and events, then numbered: no value of the unit is published.
    columns = {name: column for name, column in gate.person_columns.items() if name in gate.published_columns}
    person_columns, event_columns = _make_writers(gate, columns), _make_writers(gate, gate.events.columns)
    hashes = np.zeros(table.records, dtype=np.uint64)
    if person_columns:
        hashes = _hash_table(person_columns, table)
    np.add.at(hashes, table.owners, mix(_hash_table(event_columns, table.events)))
    order = _sort_positions(mix(hashes))
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.arange(1, len(order) + 1)
    unit_column = {gate.unit: _ColumnWriter(pa.int64(), quotes=False)}
    persons = pd.DataFrame({gate.unit: number, **{name: table.frame[name] for name in person_columns}})
    events = table.events.frame.assign(**{gate.unit: number[table.owners]})
    ordered = _order_records(unit_column | person_columns, CanonicalTable(persons.iloc[order], ()))
    return (
        replace(ordered, positions=np.arange(len(order))),
        _order_records(unit_column | event_columns, CanonicalTable(events, ())),
    )


def _hash_table(columns: Mapping[str, _ColumnWriter], records: Records) -> Hashes:
    hashes = np.zeros(records.records, dtype=np.uint64)
    for part in _cut(len(hashes)):
        _hash_records(records.records_from(part.start, part.stop), columns, hashes[part])
    return hashes


def _order_records(columns: Mapping[str, _ColumnWriter], records: Records) -> _OrderedTable:
    """Order records by their content alone, whatever their order before."""
    first = records.records_from(0, 1)
    columns = {name: column.choose_form(first[name]) for name, column in columns.items()}
    hashes = _hash_table(columns, records)
    order = _sort_positions(hashes)
    digest = _digest(columns, (hashes[order[part]] for part in _cut(len(order))))
    return _OrderedTable(columns, records, order, digest)


def digest_published(path: Path) -> str:
    """Hash the records of a published table, whatever the order of records, columns and row groups."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        columns = {field.name: _ColumnWriter(field.type, quotes=False) for field in file.schema_arrow}
        hashes = np.zeros(file.metadata.num_rows, dtype=np.uint64)
        start = 0
        for batch in file.iter_batches(_RECORDS):
            records = batch.to_pandas(types_mapper=pd.ArrowDtype)
            _hash_records(records, columns, hashes[start : start + len(records)])
            start += len(records)
    hashes.sort()
    return _digest(columns, [hashes]).hex()


def _digest(columns: Collection[str], ascending: Iterable[Hashes]) -> bytes:
    content = hashlib.sha256(repr(sorted(columns)).encode())
    for part in ascending:
        content.update(part.astype("<u8", copy=False).data)
    return content.digest()


def _sort_positions(hashes: Hashes) -> IntArray:
    """Return the positions of the hashes in ascending order.

    To sort in place, the position of each hash replaces its lowest digits. The few hashes whose order those
    digits decide are sorted again.

    >>> _sort_positions(np.array([7 << 40, 3, 2], dtype=np.uint64)).tolist()
    [2, 1, 0]
    """
    lowest = np.uint64((1 << len(hashes).bit_length()) - 1)
    parts = _cut(len(hashes))  # saves memory
    numbers = hashes & ~lowest
    for part in parts:
        numbers[part] |= np.arange(part.start, part.stop, dtype=np.uint64)
    numbers.sort()
    misplaced = [numbers[:0]]
    for part in parts:
        some = numbers[part.start : part.stop + 1]
        in_order = hashes[some & lowest]
        misplaced.append(some[1:][in_order[1:] < in_order[:-1]] & ~lowest)
    for start in np.unique(np.searchsorted(numbers, np.concatenate(misplaced))).tolist():
        equal = slice(start, int(np.searchsorted(numbers, numbers[start] | lowest, side="right")))
        numbers[equal] = numbers[equal][np.argsort(hashes[numbers[equal] & lowest], kind="stable")]
    numbers &= lowest
    return numbers.view(np.int64)


def _cut(records: int) -> list[slice]:
    return [slice(start, min(start + _RECORDS, records)) for start in range(0, records, _RECORDS)]


def _list_used_levels(column: Encoded) -> IntArray:
    """Return the codes of used levels by first appearance, from the first records if those have them all."""
    used = _list_codes(column.codes[:_FIRST])
    if len(used) == len(column.levels) or len(used) == np.count_nonzero(column.counts[:-1]):
        return used
    return _list_codes(column.codes)


def _list_codes(codes: IntArray) -> IntArray:
    distinct = pd.unique(codes)
    return distinct[distinct >= 0]


def _hash_records(records: pd.DataFrame, columns: Mapping[str, _ColumnWriter], out: Hashes) -> None:
    """Write a hash of each record's published values into `out`, which holds zeros."""
    encoded = [(encode(records[name]), columns[name]) for name in sorted(columns)]
    level_hashes = [
        np.append(hash_levels(column.convert_levels(values.levels)).astype(np.uint64), MISSING)
        for values, column in encoded
    ]
    for start in range(0, len(out), _HASHED_AT_ONCE):
        part = slice(start, start + _HASHED_AT_ONCE)
        for (values, _), hashes in zip(encoded, level_hashes, strict=True):
            out[part] = mix(out[part] + look_up(hashes, values.codes[part]))


def _write(table: _OrderedTable, path: Path, *, with_csv: bool) -> list[PublishedFile]:
    import pyarrow.csv
    import pyarrow.parquet as pq

    parquet, text = path.with_suffix(".parquet"), path.with_suffix(".csv")
    with ExitStack() as stack:
        # In an order without meaning, statistics of row groups would not let a reader skip any.
        writer = stack.enter_context(
            pq.ParquetWriter(parquet, table.written_schema, store_schema=False, write_statistics=False)
        )
        text_writer = None
        if with_csv:
            options = pyarrow.csv.WriteOptions(quoting_style="needed")
            text_writer = stack.enter_context(
                pyarrow.csv.CSVWriter(text, table.schema, write_options=options)
            )
        for batch in table.batches():
            writer.write_table(batch)
            if text_writer is not None:
                text_writer.write_table(batch.cast(table.schema))
    written = [parquet, text] if with_csv else [parquet]
    return [PublishedFile(file.name, len(table.positions), _sync_and_hash(file)) for file in written]


def _sync_and_hash(path: Path) -> str:
    with path.open("rb") as file:
        os.fsync(file.fileno())
        return hash_stream(file).sha256
