"""The tables of a release: written anew from canonical values, in an order that their content decides.

No byte of what arrived is copied: neither metadata nor unused levels, neither names of files nor the order
of files and records.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator, Mapping
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
from disclosure_pipeline.runtime.progress import report_progress
from disclosure_pipeline.tables.additions import starts_formula
from disclosure_pipeline.tables.contract import CanonicalTable
from disclosure_pipeline.tables.dictionary import CATEGORIES, Dictionary
from disclosure_pipeline.tables.encoding import Encoded, arrow_codes, encode
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

# The records that are written at once: a row group of Parquet, whichever way the table was read.
_RECORDS = RECORDS_AT_ONCE
_HASHED_AT_ONCE = 1 << 15  # records, so that they fit the cache
_FIRST = 1 << 14  # records, in which most levels are

# Texts are written as codes up to so many: far from where Parquet would give up its dictionary (1 MiB).
_FEW_LEVELS, _FEW_BYTES = 1 << 12, 1 << 17


@dataclass(frozen=True)
class PublishedFile:
    """A file of a release that holds a synthetic table: its name, number of records, and sha256."""

    name: str
    records: int
    sha256: str


def write_tables(gate: Gate, staged: StagedTables, folder: Path) -> tuple[PublishedFile, ...]:
    """Write the published columns of a candidate's tables, as they were read and measured, into `folder`.

    Parquet, and CSV beside it if the gate asks for it; the same tables give the same bytes in whatever order,
    format and spelling they arrived. StoreError where what they were read from is not the snapshot.
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
        for of_table, table in zip(("", EVENTS), tables, strict=False)
        for file in _write(table, folder / f"{name}{of_table}", with_csv=gate.csv)
    )


@dataclass(frozen=True)
class _ColumnWriter:
    """Writes the canonical values of a column as an Arrow type, with formulas quoted if asked.

    `in_levels`: texts are handed over as codes of their few levels. Parquet has the same bytes then, without
    looking at each text.
    """

    type: Any
    quotes: bool
    in_levels: bool = False

    @property
    def written_type(self) -> Any:
        """The Arrow type in which the values are handed to the file's writer."""
        return pa.dictionary(pa.int32(), self.type) if self.in_levels else self.type

    def write_levels(self, levels: Any) -> Any:
        """Return the levels as they are published, an Arrow array."""
        written = levels.cast(self.type)
        if not self.quotes:
            return written
        quoted = pc.binary_join_element_wise("'", written, "")
        return pc.if_else(pa.array(starts_formula(written)), quoted, written)

    def choose_form(self, values: pd.Series[Any]) -> _ColumnWriter:
        """Choose levels for texts of which Parquet keeps a dictionary: so few are different."""
        levels = encode(values).levels
        fits = pa.types.is_string(self.type) and len(levels) <= _FEW_LEVELS and levels.nbytes <= _FEW_BYTES
        return replace(self, in_levels=fits)

    def write(self, values: pd.Series[Any]) -> Any:
        """Return the values as they are published, an Arrow array of the `written_type`."""
        encoded = encode(values)
        levels = self.write_levels(encoded.levels)
        if not self.in_levels:
            return levels.take(arrow_codes(encoded.codes))
        # In the order in which they come, as Parquet would number them, and no other level.
        used = _list_used_levels(encoded)
        number = np.full(len(levels) + 1, -1, dtype=np.int32)
        number[used] = np.arange(len(used))
        codes = look_up(number, encoded.codes)
        return pa.DictionaryArray.from_arrays(arrow_codes(codes), levels.take(pa.array(used)))


@dataclass(frozen=True)
class _OrderedTable:
    """A table whose records are published in the order of these positions; `digest` is of its content."""

    columns: Mapping[str, _ColumnWriter]
    records: Records
    positions: IntArray
    digest: bytes

    @property
    def schema(self) -> Any:
        """The columns as they are published."""
        return pa.schema([pa.field(name, column.type) for name, column in self.columns.items()])

    @property
    def written_schema(self) -> Any:
        """The columns of the batches."""
        return pa.schema([pa.field(name, column.written_type) for name, column in self.columns.items()])

    def batches(self) -> Iterator[Any]:
        """Return the records in their order, as Arrow tables."""
        written = 0
        for records in self.records.records_in_order(self.positions, _RECORDS):
            report_progress("Writing the table", written, len(self.positions))
            written += len(records)
            arrays = [column.write(records[name]) for name, column in self.columns.items()]
            yield pa.Table.from_arrays(arrays, schema=self.written_schema)


def _describe_columns(gate: Gate, described: Dictionary) -> dict[str, _ColumnWriter]:
    return {
        name: _ColumnWriter(plain_type(column), gate.formulas == "quote" and column.type in CATEGORIES)
        for name, column in described.items()
    }


def _order_synthesis(gate: Gate, table: Any) -> tuple[_OrderedTable, ...]:
    """Return the table of a synthesis in the order that it is published in; after persons their events."""
    if gate.events is None or gate.unit is None:
        columns = {name: gate.columns[name] for name in gate.published}
        return (_order_records(_describe_columns(gate, columns), table),)
    # Persons stand in the order of their records and events, and are numbered: no value of the unit is left.
    columns = {name: column for name, column in gate.of_persons.items() if name in gate.published}
    of_persons, of_events = (_describe_columns(gate, columns) for columns in (columns, gate.events.columns))
    hashes = _hash_table(of_persons, table) if of_persons else np.zeros(table.records, dtype=np.uint64)
    np.add.at(hashes, table.owners, mix(_hash_table(of_events, table.events)))
    order = _sort_hashes(mix(hashes))[1]
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.arange(1, len(order) + 1)
    of_unit = {gate.unit: _ColumnWriter(pa.int64(), quotes=False)}
    persons = pd.DataFrame({gate.unit: number, **{name: table.frame[name] for name in of_persons}})
    events = table.events.frame.assign(**{gate.unit: number[table.owners]})
    in_order = _order_records(of_unit | of_persons, CanonicalTable(persons.iloc[order], ()))
    return (
        replace(in_order, positions=np.arange(len(order))),
        _order_records(of_unit | of_events, CanonicalTable(events, ())),
    )


def _hash_table(columns: Mapping[str, _ColumnWriter], records: Records) -> Hashes:
    hashes = np.zeros(records.records, dtype=np.uint64)
    for start in range(0, len(hashes), _RECORDS):
        stop = start + _RECORDS
        _hash_records(records.records_from(start, stop), columns, hashes[start:stop])
    return hashes


def _order_records(columns: Mapping[str, _ColumnWriter], records: Records) -> _OrderedTable:
    """Return the records in an order that follows from the content alone, wherever each of them stood."""
    first = records.records_from(0, 1)
    columns = {name: column.choose_form(first[name]) for name, column in columns.items()}
    ascending, order = _sort_hashes(_hash_table(columns, records))
    return _OrderedTable(columns, records, order, _digest(columns, ascending))


def digest_published(path: Path) -> str:
    """Return the hash of a published table's records, whatever the order of them, columns or row groups."""
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
    return _digest(columns, hashes).hex()


def _digest(columns: Collection[str], ascending: Hashes) -> bytes:
    content = hashlib.sha256(repr(sorted(columns)).encode())
    content.update(ascending.astype("<u8", copy=False).data)
    return content.digest()


def _sort_hashes(hashes: Hashes) -> tuple[Hashes, IntArray]:
    """Return the hashes in ascending order, and the position of each.

    They are sorted without their lowest digits, in whose place the positions stand. Where those decide the
    order of two hashes, which is rare, they are sorted in whole.

    >>> ascending, positions = _sort_hashes(np.array([7 << 40, 3, 2], dtype=np.uint64))
    >>> ascending.tolist(), positions.tolist()
    ([2, 3, 7696581394432], [2, 1, 0])
    """
    lowest = np.uint64((1 << len(hashes).bit_length()) - 1)
    parts = [slice(start, start + _RECORDS) for start in range(0, len(hashes), _RECORDS)]  # to spare memory
    numbers = hashes & ~lowest
    for part in parts:
        numbers[part] |= np.arange(part.start, min(part.stop, len(hashes)), dtype=np.uint64)
    numbers.sort()
    ascending = np.empty_like(hashes)
    for part in parts:
        ascending[part] = hashes[numbers[part] & lowest]
    misplaced = numbers[1:][ascending[1:] < ascending[:-1]] & ~lowest
    for start in np.unique(np.searchsorted(numbers, misplaced)).tolist():
        equal = slice(start, int(np.searchsorted(numbers, numbers[start] | lowest, side="right")))
        numbers[equal] = numbers[equal][np.argsort(ascending[equal], kind="stable")]
        ascending[equal] = hashes[numbers[equal] & lowest]
    numbers &= lowest
    return ascending, numbers.view(np.int64)


def _list_used_levels(column: Encoded) -> IntArray:
    """Return the levels that records have, in the order in which they come; most columns show theirs soon."""
    used = _list_codes(column.codes[:_FIRST])
    if len(used) == len(column.levels) or len(used) == np.count_nonzero(column.counts[:-1]):
        return used
    return _list_codes(column.codes)


def _list_codes(codes: IntArray) -> IntArray:
    distinct = pd.unique(codes)
    return distinct[distinct >= 0]


def _hash_records(records: pd.DataFrame, columns: Mapping[str, _ColumnWriter], out: Hashes) -> None:
    """Return a hash of each record, which depends on nothing but its values, written into zeros."""
    encoded = [(encode(records[name]), columns[name]) for name in sorted(columns)]
    of_levels = [
        np.append(hash_levels(column.write_levels(values.levels)).astype(np.uint64), MISSING)
        for values, column in encoded
    ]
    for start in range(0, len(out), _HASHED_AT_ONCE):
        some = slice(start, start + _HASHED_AT_ONCE)
        for (values, _), hashes in zip(encoded, of_levels, strict=True):
            out[some] = mix(out[some] + look_up(hashes, values.codes[some]))


def _write(table: _OrderedTable, path: Path, *, with_csv: bool) -> list[PublishedFile]:
    import pyarrow.csv
    import pyarrow.parquet as pq

    parquet, text = path.with_suffix(".parquet"), path.with_suffix(".csv")
    with ExitStack() as stack:
        # The order of the records means nothing: no statistic of a row group would spare a reader anything.
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
