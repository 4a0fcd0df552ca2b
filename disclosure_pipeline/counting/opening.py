"""The one way to open tables: whatever holds GT and its syntheses, they are opened as `OpenedTables`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Protocol

import pandas as pd

from disclosure_pipeline.counting.counts import DisclosureCounts
from disclosure_pipeline.counting.memory.nearest_records import Draw
from disclosure_pipeline.counting.memory.opened_frames import FramesInMemory
from disclosure_pipeline.counting.partitioned.opened_files import (
    StreamedTable,
    StreamedTables,
    stream_canonical,
    stream_raw,
)
from disclosure_pipeline.counting.targets import CountRequest
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.runtime.machine import available_memory
from disclosure_pipeline.runtime.progress import OnProgress
from disclosure_pipeline.tables.canonical_tables import read_canonical
from disclosure_pipeline.tables.dictionary import Dictionary
from disclosure_pipeline.tables.encoding import Change
from disclosure_pipeline.tables.frames import as_frame, as_frames, check_not_empty, is_frame
from disclosure_pipeline.tables.grouping import Grouping
from disclosure_pipeline.tables.inference import canonical_distinct, canonical_frames
from disclosure_pipeline.tables.levels import CodedColumn
from disclosure_pipeline.tables.messages import HOLDOUT, describe_argument, table_names
from disclosure_pipeline.tables.sources import (
    COUNTING,
    DuckDBSource,
    FileSource,
    Location,
    SqlSource,
    bytes_needed,
    columns_of,
    read_raw,
)

LocalEngine = Literal["memory", "partitioned"]
_LOCAL: Mapping[str, LocalEngine] = {"memory": "memory", "partitioned": "partitioned"}
_SHARE_OF_FREE = 0.5  # of the memory that is free; the rest is for whoever else needs it


class OpenedTables(Protocol):
    """GT (first) and its syntheses, opened by an engine.

    Library, command line and gate measure nothing else, and know no engine.
    """

    @property
    def engine_description(self) -> str:
        """Return which engine counts, and why that one."""

    @property
    def columns(self) -> tuple[tuple[Any, ...], ...]:
        """The names of each table's columns."""

    @property
    def ledger(self) -> tuple[Change, ...]:
        """Return what was changed to compare the tables."""

    @property
    def frames(self) -> tuple[pd.DataFrame, ...] | None:
        """The tables as frames where an engine has them in memory, else None."""

    @property
    def sorts_whole_records(self) -> bool:
        """True if whole records are best sorted by their codes, instead of counted as keys."""

    def code(self, columns: Sequence[Any], grouping: Grouping, on_progress: OnProgress) -> list[CodedColumn]:
        """Columns as codes over the levels of all tables, not grouped yet.

        InputError where their values cannot be compared, or not grouped as requested.
        """

    def count(self, requests: Sequence[CountRequest], on_progress: OnProgress) -> list[DisclosureCounts]:
        """Count the records by columns that were coded here, grouped or not."""

    def identifiers(self, columns: Sequence[CodedColumn]) -> list[tuple[int, Any]]:
        """The (synthesis, column) whose values tell which record it is; `columns` are coded, not grouped."""

    def stacked(self) -> OpenedTables:
        """GT, and all the syntheses as one table, of the columns that all of them have."""

    def code_records(self, columns: Sequence[CodedColumn], most: int, seed: int) -> Sequence[CodedColumn]:
        """Columns that were coded here, not grouped, with a code for each of some records.

        At most so many of each table, drawn by the seed.
        """

    def find_nearest(self, columns: Sequence[CodedColumn], draw: Draw, seed: int) -> list[list[IntArray]]:
        """For each comparison that is drawn by the seed, the distances of GT records to the nearest ones.

        Of columns that were coded here, not grouped: see `nearest_distances`.
        """

    def sample(self, most: int, seed: int) -> list[pd.DataFrame]:
        """At most so many records of each table by number, or invented ones where records cannot be had."""


class SeparableTables(OpenedTables, Protocol):
    """Tables of which some can be counted without the others."""

    def only(self, tables: Sequence[int]) -> SeparableTables:
        """Some of the tables by their numbers, in this order; columns that were coded here can be counted."""

    def with_unit(self, unit: Any) -> OpenedTables:
        """Return the tables, of the columns that were coded here, with GT's column `unit`, empty in SD."""


@contextmanager
def open_tables(
    ground_truth: Any, synthetic: Any, engine: str, numeric: Collection[Any] = (), holdout: Any = None
) -> Iterator[SeparableTables]:
    """Frames, files or tables of a database as the engine takes them, which is chosen if it is "auto".

    Files have no types, or other ones than their fellows: what their columns hold is inferred from all of
    them; those of `numeric` hold numbers. A holdout comes last. InputError as `disclosure()`.
    """
    _check_engine(engine)
    several = isinstance(synthetic, Sequence) and not isinstance(synthetic, (str, bytes))
    tables = [ground_truth, *(synthetic if several else [synthetic])]
    names = table_names(len(tables))
    if holdout is not None:
        tables, names = [*tables, holdout], (*names, HOLDOUT)
    if any(map(_is_ibis, tables)) or "://" in engine:
        from disclosure_pipeline.counting.relational.opened_database import open_in_database

        with open_in_database(tables, engine, names) as in_database:
            yield in_database
        return
    tables = [
        as_frame(table, name) if is_frame(table) else table for table, name in zip(tables, names, strict=True)
    ]
    local_engine, description = choose_engine(engine, tables, names)
    if local_engine == "partitioned" and any(map(_is_location, tables)):
        if not all(map(_is_location, tables)):
            raise InputError(
                "engine 'partitioned' takes either files or data frames: give all tables in one way."
            )
        with ExitStack() as stack:
            yield _open_streams(tables, names, description, numeric, stack)
        return
    frames = [
        read_raw(table, name) if _is_location(table) else table
        for table, name in zip(tables, names, strict=True)
    ]
    ledger: tuple[Change, ...] = ()
    if any(map(_is_location, tables)) and all(map(is_frame, frames)):
        frames, ledger = canonical_frames(frames, names, numeric)
    of_holdout = [] if holdout is None else [as_frame(frames.pop(), HOLDOUT)]
    check_not_empty([len(frame) for frame in of_holdout], [HOLDOUT][: len(of_holdout)])
    syntheses = frames[1:] if several or is_frame(frames[1]) else synthetic
    checked = (*as_frames(frames[0], syntheses), *of_holdout)
    yield FramesInMemory(checked, description, local_engine == "partitioned", ledger, tuple(names))


def _open_streams(
    locations: Sequence[Location],
    names: Sequence[str],
    description: str,
    numeric: Collection[Any],
    stack: ExitStack,
) -> StreamedTables:
    def read(numbers: Sequence[int], columns: Sequence[str], on_progress: OnProgress) -> list[StreamedTable]:
        chosen = [names[number] for number in numbers]
        raw = [
            stream_raw(locations[number], names[number], columns, stack, on_progress) for number in numbers
        ]
        canonical, ledger = canonical_distinct([table.distinct for table in raw], chosen, numeric)
        return [
            replace(
                table, distinct=distinct, ledger=tuple(change for change in ledger if change.table == name)
            )
            for table, distinct, name in zip(raw, canonical, chosen, strict=True)
        ]

    known = tuple(columns_of(location, name) for location, name in zip(locations, names, strict=True))
    return StreamedTables(known, read, description, tuple(names))


def read_canonical_table(
    location: Location,
    engine: str,
    dictionary: Dictionary,
    table: str,
    needed: Collection[str],
    only_known: bool,
    stack: ExitStack,
) -> Any:
    """Return a table in canonical form, to be opened by `open_canonical`.

    `engine` is "memory", "partitioned" or the URL of a database. The table gives its number of `records`
    and the `ledger` of what was changed. What is kept of it on disk is gone with the stack.
    ContractError where it breaks its contract, InputError as `read_raw`.
    """
    if engine == "memory":
        return read_canonical(location, dictionary, table, needed, only_known)
    if engine == "partitioned":
        return stream_canonical(location, dictionary, table, needed, only_known, stack)
    from disclosure_pipeline.counting.relational.opened_database import read_database_table

    return read_database_table(location, engine, dictionary, table, needed, only_known)


@contextmanager
def open_canonical(tables: Sequence[Any], engine: str, description: str) -> Iterator[SeparableTables]:
    """GT (first) and its syntheses, all read by `read_canonical_table` for that engine; a holdout last."""
    if "://" in engine:
        from disclosure_pipeline.counting.relational.opened_database import open_canonical_in_database

        with open_canonical_in_database(tables, engine) as in_database:
            yield in_database
        return
    ledger = tuple(change for table in tables for change in table.ledger)
    if engine == "partitioned":
        columns, names = tuple(table.columns for table in tables), table_names(len(tables))
        yield StreamedTables(columns, lambda numbers, *_: [tables[i] for i in numbers], description, names)
        return
    yield FramesInMemory(tuple(table.frame for table in tables), description, ledger=ledger)


def choose_engine(engine: str, tables: Sequence[Any], names: Sequence[str] = ()) -> tuple[LocalEngine, str]:
    """Return the engine for frames and files, and its description: as requested, or what was chosen and why.

    `names` are those of the tables in messages, by default of GT and its syntheses.
    """
    if engine in _LOCAL:
        return _LOCAL[engine], engine
    needed, free = sum(map(_estimate_bytes, tables, names or table_names(len(tables)))), available_memory()
    compared = f"about {needed / 1e9:.1f} GB are needed in memory, {free / 1e9:.1f} GB are free"
    if needed > _SHARE_OF_FREE * free:
        return "partitioned", f"partitioned ({compared})"
    return "memory", f"memory ({compared})"


def _check_engine(engine: str) -> None:
    if not isinstance(engine, str) or not (engine in {"auto", *_LOCAL} or "://" in engine):
        raise InputError(
            f"engine must be 'auto', 'memory', 'partitioned' or the URL of a database for Ibis, such as "
            f"'duckdb://', not {describe_argument(engine)}."
        )


def _estimate_bytes(table: Any, name: str) -> int:
    """Return bytes that reading and counting a table needs; of a database it is not known beforehand."""
    if isinstance(table, pd.DataFrame):
        return COUNTING * len(table)
    if isinstance(table, (SqlSource, DuckDBSource)) or not _is_location(table):
        return 0
    return bytes_needed(table, name)


def _is_location(table: Any) -> bool:
    is_universal_path = hasattr(table, "fs") and hasattr(table, "storage_options")
    return is_universal_path or isinstance(table, (str, Path, FileSource, SqlSource, DuckDBSource))


def _is_ibis(table: Any) -> bool:
    return type(table).__module__.split(".", maxsplit=1)[0] == "ibis"
