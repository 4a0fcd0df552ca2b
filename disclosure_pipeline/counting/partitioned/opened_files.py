"""The engine `partitioned` and the tables it opens: files read in batches, in canonical form or not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.cells import CellParts
from disclosure_pipeline.counting.counts import CountRequest, gather_columns, sample_positions
from disclosure_pipeline.counting.memory.engine import FramesInMemory, code_sample, read_without_codes
from disclosure_pipeline.counting.opening import Engine, OpenedTables
from disclosure_pipeline.counting.partitioned.engine import find_in_batches, leaves_out_each
from disclosure_pipeline.counting.partitioned.streams import (
    Batches,
    StackedStream,
    Stream,
    batches_in_memory,
    read_stream,
)
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.runtime.progress import OnProgress, ignore_progress
from disclosure_pipeline.tables.additions import RealValues, find_real_values_in, have_own_values
from disclosure_pipeline.tables.alignment import check_frames, code_distinct_columns
from disclosure_pipeline.tables.coding import code_distinct, stack_distinct
from disclosure_pipeline.tables.contract import TableOfValues, canonical_values
from disclosure_pipeline.tables.dictionary import Contract
from disclosure_pipeline.tables.encoding import Change
from disclosure_pipeline.tables.grouping import Grouping
from disclosure_pipeline.tables.inference import canonical_distinct
from disclosure_pipeline.tables.levels import CodedColumn
from disclosure_pipeline.tables.messages import names_in_all, table_names
from disclosure_pipeline.tables.missing import MissingCodes, blank_distinct
from disclosure_pipeline.tables.sources import Location, is_location, read_column_names

_ORDERED_AT_ONCE = 1 << 23  # records whose value numbers are in memory at once


@dataclass
class PartitionedEngine(Engine):
    """The engine for tables that do not fit into memory: see `opening.Engine`."""

    name: str = "partitioned"
    description: str = "partitioned"
    holds_frames: bool = False
    gives_records: bool = True

    @contextmanager
    def open(
        self,
        tables: Sequence[Any],
        names: Sequence[str],
        numeric: Collection[Any] = (),
        missing: MissingCodes | None = None,
    ) -> Iterator[OpenedTables]:
        """Open files, to read them in batches, or frames, to count their records in parts."""
        if not any(map(is_location, tables)):
            ledger: tuple[Change, ...] = ()
            if missing:
                tables, ledger = read_without_codes(tables, names, numeric, missing, from_files=False)
            yield FramesInParts(check_frames(tables, names), self.description, ledger, tuple(names))
            return
        if not all(map(is_location, tables)):
            raise InputError("engine 'partitioned' takes either files or data frames: do not mix them.")
        with ExitStack() as stack:
            yield _open_streams(tables, names, self.description, numeric, missing, stack)

    def read(self, location: Location, contract: Contract, stack: ExitStack) -> StreamedTable:
        """Read a table in batches: see `stream_canonical`."""
        return stream_canonical(location, contract, stack)

    @contextmanager
    def open_read(self, tables: Sequence[StreamedTable]) -> Iterator[StreamedTables]:
        """Open tables that were read in canonical form."""
        columns, names = tuple(table.columns for table in tables), table_names(len(tables))
        yield StreamedTables(
            columns, lambda numbers, *_: [tables[i] for i in numbers], self.description, names
        )


@dataclass(frozen=True)
class FramesInParts(FramesInMemory):
    """Frames whose records are counted in parts, spilled to disk to save memory."""

    def leaves_out_each(self, request: CountRequest) -> bool:
        """Return whether records are spilled evenly by the keys that are never left out."""
        return leaves_out_each(request)

    def find_cells(
        self, requests: Sequence[CountRequest], on_progress: OnProgress = ignore_progress
    ) -> CellParts:
        """Yield the cells of columns coded here, grouped or not: see `OpenedTables`."""
        return find_in_batches(requests, batches_in_memory(gather_columns(requests)), on_progress)


@dataclass(frozen=True)
class StreamedTable(TableOfValues):
    """A table read in batches: `distinct` has the values, in the order of their numbers in `stream`."""

    stream: Stream | StackedStream

    def take_records(self, positions: IntArray) -> pd.DataFrame:
        """Return the records at these positions, in their order."""
        [records] = self.records_in_order(positions, max(1, len(positions)))
        return records

    def records_in_order(self, positions: IntArray, at_once: int) -> Iterator[pd.DataFrame]:
        """Yield the records at these positions, in their order, `at_once` in a frame.

        All batches are read once for millions of records, which wait as value numbers.
        """
        for start in range(0, max(1, len(positions)), max(at_once, _ORDERED_AT_ONCE)):
            some = positions[start : start + max(at_once, _ORDERED_AT_ONCE)]
            order = np.argsort(some, kind="stable")
            place = np.empty_like(order)
            place[order] = np.arange(len(order))
            numbers = self.stream.value_numbers(some[order])
            for first in range(0, max(1, len(some)), at_once):
                part = place[first : first + at_once]
                columns = {name: self.distinct[name].take(numbers[name][part]) for name in self.distinct}
                yield pd.DataFrame(columns, copy=False)

    def records_from(self, start: int, stop: int) -> pd.DataFrame:
        """Return the records from `start` to before `stop`, or to the last."""
        return self.take_records(np.arange(start, min(stop, self.records)))


def stream_canonical(location: Location, contract: Contract, stack: ExitStack) -> StreamedTable:
    """Read as `read_canonical` does, but in batches: all its rules are about distinct values."""
    names = read_column_names(location, contract.table, contract.dictionary)
    described = [name for name in contract.dictionary if name in names]
    stream = read_stream(location, contract.table, described or names[:1], stack)
    raw = {name: stream.distinct(name) for name in described}
    distinct, ledger = canonical_values(names, stream.records, raw, contract)
    return StreamedTable(stream.records, distinct, ledger, stream)


def stack_tables(tables: Sequence[StreamedTable]) -> StreamedTable:
    """Stack tables without reading or copying records; only columns that all of them have."""
    names = names_in_all([table.distinct for table in tables])
    return StreamedTable(
        sum(table.records for table in tables),
        {name: stack_distinct([table.distinct[name] for table in tables]) for name in names},
        tuple(change for table in tables for change in table.ledger),
        StackedStream(
            tuple(table.stream for table in tables),
            {name: tuple(len(table.distinct[name].counts) - 1 for table in tables) for name in names},
        ),
    )


def _open_streams(
    locations: Sequence[Location],
    names: Sequence[str],
    description: str,
    numeric: Collection[Any],
    missing: MissingCodes | None,
    stack: ExitStack,
) -> StreamedTables:
    def read(numbers: Sequence[int], columns: Sequence[str], on_progress: OnProgress) -> list[StreamedTable]:
        chosen = [names[number] for number in numbers]
        streams = [
            read_stream(locations[number], names[number], columns, stack, on_progress) for number in numbers
        ]
        raw = [{name: stream.distinct(name) for name in columns} for stream in streams]
        coded: list[Change] = []
        if missing:
            for name in columns:
                blanked, changes = blank_distinct(name, [table[name] for table in raw], chosen, missing)
                coded += changes
                for table, distinct in zip(raw, blanked, strict=True):
                    table[name] = distinct
        canonical, inferred = canonical_distinct(raw, chosen, numeric)
        ledger = (*coded, *inferred)
        return [
            StreamedTable(
                stream.records, distinct, tuple(change for change in ledger if change.table == name), stream
            )
            for stream, distinct, name in zip(streams, canonical, chosen, strict=True)
        ]

    known = tuple(read_column_names(location, name) for location, name in zip(locations, names, strict=True))
    if missing:
        missing.check_columns(known[0], names[0])
    return StreamedTables(known, read, description, tuple(names))


@dataclass
class StreamedTables:
    """GT (first) and its syntheses, read in batches: see `opening.OpenedTables`.

    `read` returns the tables with these numbers and columns; `columns` are the names of all columns of each.
    Messages call the tables by `names`.
    """

    columns: tuple[tuple[str, ...], ...]
    read: Callable[[Sequence[int], Sequence[str], OnProgress], Sequence[StreamedTable]]
    engine_description: str
    names: tuple[str, ...]
    tables: tuple[StreamedTable, ...] = ()

    @property
    def frames(self) -> None:
        """None: records are not held in memory."""

    @property
    def ledger(self) -> tuple[Change, ...]:
        """The changes made to values so that the tables can be compared."""
        return tuple(change for table in self.tables for change in table.ledger)

    def code(
        self, columns: Sequence[Any], grouping: Grouping, on_progress: OnProgress = ignore_progress
    ) -> list[CodedColumn]:
        """Return columns as a code for each value, over the levels of all tables, not grouped yet."""
        self.tables = tuple(self.read(range(len(self.columns)), columns, on_progress))
        distinct = {name: [table.distinct[name] for table in self.tables] for name in columns}
        return code_distinct_columns(distinct, grouping, self.names)

    def leaves_out_each(self, request: CountRequest) -> bool:
        """Return whether records are spilled evenly by the keys that are never left out."""
        return leaves_out_each(request)

    def find_cells(
        self, requests: Sequence[CountRequest], on_progress: OnProgress = ignore_progress
    ) -> CellParts:
        """Yield the cells of coded columns; no table is read again."""
        streams = [table.stream for table in self.tables]
        batches = Batches(
            tuple(stream.records for stream in streams),
            lambda table: streams[table].batches,
            lambda table, batch, column: streams[table].codes(column.name, batch, column.codes[table]),
        )
        return find_in_batches(requests, batches, on_progress)

    def find_real_values(self, columns: Sequence[CodedColumn]) -> list[RealValues]:
        """Return the columns like identifiers of which SD has GT's values."""
        distinct = [table.distinct for table in self.tables]
        names = table_names(len(distinct))
        return find_real_values_in(columns, distinct, names, have_own_values, code_distinct)

    def only(self, tables: Sequence[int]) -> StreamedTables:
        """Return some of the tables, in this order; columns already read are not read again."""

        def read(
            numbers: Sequence[int], columns: Sequence[str], on_progress: OnProgress
        ) -> Sequence[StreamedTable]:
            chosen = [tables[number] for number in numbers]
            if self.tables and all(name in self.tables[i].distinct for i in chosen for name in columns):
                return [self.tables[i] for i in chosen]
            return self.read(chosen, columns, on_progress)

        return StreamedTables(
            tuple(self.columns[i] for i in tables),
            read,
            self.engine_description,
            tuple(self.names[i] for i in tables),
            tuple(self.tables[i] for i in tables) if self.tables else (),
        )

    def stack_syntheses(self) -> StreamedTables:
        """Return GT and, as a second table, all syntheses stacked; only columns that all tables have."""
        _, *syntheses_columns = self.columns
        shared = tuple(names_in_all(syntheses_columns))

        def read(
            numbers: Sequence[int], columns: Sequence[str], on_progress: OnProgress
        ) -> Sequence[StreamedTable]:
            needed = range(max(numbers) * len(syntheses_columns) + 1)  # GT may have columns of its own
            ground_truth, *syntheses = self.only(needed).read(needed, columns, on_progress)
            return [stack_tables(syntheses) if number else ground_truth for number in numbers]

        return StreamedTables((self.columns[0], shared), read, self.engine_description, table_names(2))

    def with_columns(self, names: Sequence[Any]) -> FramesInMemory:
        """Read the records into memory, with these GT columns added, empty in SD."""
        frames = self.sample(max(table.records for table in self.tables), 0)
        if names:
            [ground_truth] = self.read([0], names, ignore_progress)
            read = ground_truth.records_from(0, ground_truth.records)
            for name in names:
                frames[0][name] = read[name]
        return FramesInMemory(tuple(frames), self.engine_description, names=self.names).with_columns(names)

    def code_records(self, columns: Sequence[CodedColumn], limit: int, seed: int) -> Sequence[CodedColumn]:
        """Return columns with the codes of at most `limit` records of each table, drawn by the seed."""
        return code_sample(self.sample(limit, seed), columns)

    def sample(self, limit: int, seed: int) -> list[pd.DataFrame]:
        """Draw at most `limit` records of each table, in their order."""
        records = [table.records for table in self.tables]
        drawn = sample_positions(records, limit, seed)
        return [
            table.records_from(0, table.records) if positions is None else table.take_records(positions)
            for table, positions in zip(self.tables, drawn, strict=True)
        ]
