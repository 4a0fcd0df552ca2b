"""The tables of a release: written anew from canonical values, in an order that their content decides.

No byte of what arrived is copied: neither metadata nor unused levels, neither names of files nor the order
of files and records.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from disclosure_pipeline.candidates.files import StoreError, hash_file
from disclosure_pipeline.candidates.reading import name_table
from disclosure_pipeline.candidates.store import Snapshot
from disclosure_pipeline.counting.opening import choose_engine, read_canonical_table
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.runtime.hashing import hash_stream
from disclosure_pipeline.tables.additions import starts_formula
from disclosure_pipeline.tables.dictionary import CATEGORIES
from disclosure_pipeline.tables.encoding import encode
from disclosure_pipeline.tables.record_hashes import (
    MISSING,
    RECORDS_AT_ONCE,
    Hashes,
    hash_levels,
    mix,
    plain_type,
)

NAME = "synthetic"

# So many records are written at once: a row group of Parquet, whichever way the table was read.
_RECORDS = RECORDS_AT_ONCE
_HASHED_AT_ONCE = 1 << 15  # records, so that they fit the cache


@dataclass(frozen=True)
class PublishedFile:
    """A file of a release that holds a synthetic table: its name, number of records, and sha256."""

    name: str
    records: int
    sha256: str


def write_tables(gate: Gate, snapshot: Snapshot, arrived: Path, folder: Path) -> tuple[PublishedFile, ...]:
    """Write the published columns of the tables of a snapshot, which lie in `arrived`, into `folder`.

    Parquet, and CSV beside it if the gate asks for it; the same tables give the same bytes in whatever order,
    format and spelling they arrived. StoreError where what lies in `arrived` is not the snapshot.
    """
    with ExitStack() as stack:
        tables = []
        for file in snapshot.files:
            path = arrived / file.name
            engine, _ = choose_engine("auto", [path])
            read = read_canonical_table(
                path, engine, gate.columns, name_table(file), gate.published, only_known=True, stack=stack
            )
            tables.append(_order_records(_describe_columns(gate), read.records, read.some_records))
            # After it was read: what was read is what was measured.
            if hash_file(path) != file.sha256:
                raise StoreError(f"The staged copy of {file.name!r} was changed: run release again.")
        tables.sort(key=lambda table: table.digest)
        names = [NAME] if len(tables) == 1 else [f"{NAME}_{number}" for number in range(1, len(tables) + 1)]
        return tuple(
            file
            for name, table in zip(names, tables, strict=True)
            for file in _write(table, folder / name, with_csv=gate.csv)
        )


@dataclass(frozen=True)
class _ColumnWriter:
    """How the canonical values of a column are written: its Arrow type, and whether formulas are quoted."""

    type: Any
    quotes: bool

    def write_levels(self, levels: Any) -> Any:
        """The levels as they are published, an Arrow array."""
        written = levels.cast(self.type)
        if not self.quotes:
            return written
        quoted = pc.binary_join_element_wise("'", written, "")
        return pc.if_else(pa.array(starts_formula(written)), quoted, written)


@dataclass(frozen=True)
class _OrderedTable:
    """A table whose records are published in the order of these positions; `digest` is of its content."""

    columns: Mapping[str, _ColumnWriter]
    some_records: Callable[[Any], pd.DataFrame]
    positions: npt.NDArray[np.int64]
    digest: bytes

    @property
    def schema(self) -> Any:
        return pa.schema([pa.field(name, column.type) for name, column in self.columns.items()])

    def batches(self) -> Iterator[Any]:
        """The records in their order, as Arrow tables."""
        for start in range(0, len(self.positions), _RECORDS):
            records = self.some_records(self.positions[start : start + _RECORDS])
            arrays = [_write_column(records[name], column) for name, column in self.columns.items()]
            yield pa.Table.from_arrays(arrays, schema=self.schema)


def _describe_columns(gate: Gate) -> dict[str, _ColumnWriter]:
    return {
        name: _ColumnWriter(
            plain_type(gate.columns[name]),
            gate.formulas == "quote" and gate.columns[name].type in CATEGORIES,
        )
        for name in gate.published
    }


def _order_records(
    columns: Mapping[str, _ColumnWriter], records: int, some_records: Callable[[Any], pd.DataFrame]
) -> _OrderedTable:
    """The records in an order that follows from the content alone, wherever each of them stood."""
    hashes = np.zeros(records, dtype=np.uint64)
    for start in range(0, records, _RECORDS):
        positions = np.arange(start, min(start + _RECORDS, records))
        _hash_records(some_records(positions), columns, hashes[start : start + len(positions)])
    content = hashlib.sha256(repr(list(columns)).encode())
    content.update(np.sort(hashes).astype("<u8").tobytes())
    seed = np.uint64(int.from_bytes(content.digest()[:8], "little"))
    return _OrderedTable(
        columns, some_records, np.argsort(mix(hashes ^ seed), kind="stable"), content.digest()
    )


def _write_column(values: pd.Series[Any], column: _ColumnWriter) -> Any:
    encoded = encode(values)
    codes = pa.array(encoded.codes, mask=encoded.codes < 0)
    return column.write_levels(encoded.levels).take(codes)


def _hash_records(records: pd.DataFrame, columns: Mapping[str, _ColumnWriter], out: Hashes) -> None:
    """A hash of each record, which depends on nothing but its values, written into zeros."""
    encoded = [(encode(records[name]), column) for name, column in columns.items()]
    of_levels = [
        np.append(hash_levels(column.write_levels(values.levels)).astype(np.uint64), MISSING)
        for values, column in encoded
    ]
    for start in range(0, len(out), _HASHED_AT_ONCE):
        some = slice(start, start + _HASHED_AT_ONCE)
        for (values, _), hashes in zip(encoded, of_levels, strict=True):
            out[some] = mix(out[some] + hashes[values.codes[some]])


def _write(table: _OrderedTable, path: Path, *, with_csv: bool) -> list[PublishedFile]:
    """Write a table as Parquet without any metadata, and as CSV."""
    import pyarrow.csv
    import pyarrow.parquet as pq

    parquet, text = path.with_suffix(".parquet"), path.with_suffix(".csv")
    with ExitStack() as stack:
        writers = [stack.enter_context(pq.ParquetWriter(parquet, table.schema, store_schema=False))]
        if with_csv:
            options = pyarrow.csv.WriteOptions(quoting_style="needed")
            writers.append(
                stack.enter_context(pyarrow.csv.CSVWriter(text, table.schema, write_options=options))
            )
        for batch in table.batches():
            for writer in writers:
                writer.write_table(batch)
    written = [parquet, text] if with_csv else [parquet]
    return [PublishedFile(file.name, len(table.positions), _sync_and_hash(file)) for file in written]


def _sync_and_hash(path: Path) -> str:
    with path.open("rb") as file:
        os.fsync(file.fileno())
        return hash_stream(file).sha256
