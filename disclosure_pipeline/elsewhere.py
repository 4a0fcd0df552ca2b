"""Which engine measures which tables: frames in memory, files read in batches, tables of a database."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from disclosure_pipeline.engines import partitioned
from disclosure_pipeline.engines.counted import Counted
from disclosure_pipeline.engines.job import Target
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.machine import available_memory
from disclosure_pipeline.progress import Progress
from disclosure_pipeline.tables.alignment import table_names, told
from disclosure_pipeline.tables.distinct import Distinct
from disclosure_pipeline.tables.levels import CodedColumn
from disclosure_pipeline.tables.locations import filled
from disclosure_pipeline.tables.sizes import COUNTING, bytes_needed
from disclosure_pipeline.tables.sources import (
    DuckDBSource,
    FileSource,
    Location,
    SqlSource,
    columns_of,
    read_raw,
)
from disclosure_pipeline.tables.streams import Stream, stream

Here = Literal["memory", "partitioned"]
_HERE: Mapping[str, Here] = {"memory": "memory", "partitioned": "partitioned"}
_SHARE_OF_FREE = 0.5  # of the memory that is free; the rest is for whoever else needs it


MOST_VALUES = 10_000_000
"""So many values of a column are fetched from a database at most."""


@dataclass(frozen=True)
class Elsewhere:
    """Tables (GT first) that are counted where they are. `told`: by which engine, as it is told.

    `columns`: the names of each table's columns. `distinct`: for some of them, the values in each table.
    `count`: as `memory.count`, of columns coded over these values.
    """

    told: str
    columns: tuple[tuple[str, ...], ...]
    distinct: Callable[[Sequence[str], Progress], Mapping[str, Sequence[Distinct]]]
    count: Callable[[Sequence[CodedColumn], Sequence[Target], Progress], Counted]


@dataclass(frozen=True)
class Frames:
    """Tables in memory, as they were given: GT, and one or more syntheses."""

    told: str
    tables: tuple[Any, Any]
    engine: Here


@contextmanager
def tables_given(ground_truth: Any, synthetic: Any, engine: str) -> Iterator[Elsewhere | Frames]:
    """The tables as the engine takes them, which is chosen if it is "auto". InputError as `disclosure()`."""
    _check_engine(engine)
    several = isinstance(synthetic, Sequence) and not isinstance(synthetic, (str, bytes))
    tables = [ground_truth, *(synthetic if several else [synthetic])]
    of_ibis = [table for table in tables if _is_ibis(table)]
    if of_ibis or "://" in engine:
        with relational_tables(tables, engine) as found:
            yield found
        return
    yield _here(ground_truth, synthetic, tables, engine)


def _here(ground_truth: Any, synthetic: Any, tables: Sequence[Any], engine: str) -> Elsewhere | Frames:
    """Frames and files, which this process counts."""
    name, why = chosen(engine, tables)
    if not any(map(_is_location, tables)):
        return Frames(why, (ground_truth, synthetic), name)
    if name == "partitioned":
        if not all(map(_is_location, tables)):
            raise InputError(
                "engine 'partitioned' takes either files or data frames: give all tables in one way."
            )
        return streamed(tables, why)
    names = table_names(len(tables))
    frames = [
        read_raw(table, name) if _is_location(table) else table
        for table, name in zip(tables, names, strict=True)
    ]
    return Frames(why, (frames[0], frames[1:]), "memory")


def streamed(locations: Sequence[Location], why: str) -> Elsewhere:
    """Tables that are read in batches. InputError where one cannot be read."""
    names = table_names(len(locations))
    streams: list[Stream] = []

    def distinct(columns: Sequence[str], progress: Progress) -> Mapping[str, Sequence[Distinct]]:
        streams[:] = [stream(at, name, columns, progress) for at, name in zip(locations, names, strict=True)]
        return {column: [table.distinct(column) for table in streams] for column in columns}

    known = tuple(columns_of(at, name) for at, name in zip(locations, names, strict=True))
    return Elsewhere(why, known, distinct, lambda *asked: count_streams(streams, *asked))


def count_streams(
    streams: Sequence[Stream], keys: Sequence[CodedColumn], targets: Sequence[Target], progress: Progress
) -> Counted:
    """Count tables (GT first) that are read in batches: see `Elsewhere.count`."""
    columns = [*keys, *(target.column for target in targets)]
    batches = partitioned.Batches(
        tuple(table.records for table in streams),
        lambda table: streams[table].batches([column.name for column in columns]),
        lambda table, batch: [
            streams[table].codes(column.name, batch, column.codes[table]) for column in columns
        ],
    )
    return partitioned.count(keys, targets, batches, progress)


@dataclass(frozen=True)
class InDatabase(Elsewhere):
    """Tables of a database; `count_known` counts columns coded over values that were read of them before."""

    count_known: Callable[
        [Mapping[str, Sequence[Distinct]], Sequence[CodedColumn], Sequence[Target], Progress], Counted
    ]


@contextmanager
def relational_tables(
    tables: Sequence[Any], engine: str, names: Sequence[str] | None = None
) -> Iterator[InDatabase]:
    """Tables that are counted by a database. InputError where one cannot be reached.

    `names` are those in messages; by default of GT and its syntheses.
    """
    from disclosure_pipeline.engines import relational

    names = names or table_names(len(tables))
    with relational.open_tables([_for_database(table) for table in tables], engine, names) as opened:
        found: dict[str, list[Distinct]] = {}

        def distinct(columns: Sequence[str], progress: Progress) -> Mapping[str, Sequence[Distinct]]:
            for i, column in enumerate(columns):
                progress("Reading the values", i, len(columns))
                found[column] = [
                    relational.distinct(table, column, MOST_VALUES, name)
                    for table, name in zip(opened, names, strict=True)
                ]
            return found

        yield InDatabase(
            f"{opened[0].get_backend().name}, by Ibis",
            tuple(tuple(table.columns) for table in opened),
            distinct,
            lambda *asked: relational.count(opened, found, *asked),
            lambda *asked: relational.count(opened, *asked),
        )


def _for_database(table: Any) -> Any:
    """A table as a database takes it: by name, or the path of Parquet."""
    if isinstance(table, FileSource):
        return Path(filled(table.path, "path"))
    if isinstance(table, (SqlSource, DuckDBSource)):
        if table.table is None:
            raise InputError("A database counts tables, not queries: make a view of the query and name that.")
        schema = table.schema_ if isinstance(table, SqlSource) else None
        return f"{schema}.{table.table}" if schema else table.table
    return Path(table) if isinstance(table, str) and table.endswith(".parquet") else table


def _check_engine(engine: str) -> None:
    if not isinstance(engine, str) or not (engine in {"auto", *_HERE} or "://" in engine):
        raise InputError(
            f"engine must be 'auto', 'memory', 'partitioned' or the URL of a database for Ibis, such as "
            f"'duckdb://', not {told(engine)}."
        )


def chosen(engine: str, tables: Sequence[Any]) -> tuple[Here, str]:
    """The engine for frames and files, and how it is told: what was asked for, or what was chosen and why."""
    if engine in _HERE:
        return _HERE[engine], engine
    needed, free = sum(map(_needed, tables, table_names(len(tables)))), available_memory()
    compared = f"about {needed / 1e9:.1f} GB are needed in memory, {free / 1e9:.1f} GB are free"
    if needed > _SHARE_OF_FREE * free:
        return "partitioned", f"partitioned ({compared})"
    return "memory", f"memory ({compared})"


def _needed(table: Any, name: str) -> int:
    """Bytes that reading and counting a table needs; of a database it is not known beforehand."""
    if isinstance(table, pd.DataFrame):
        return COUNTING * len(table)
    if isinstance(table, (SqlSource, DuckDBSource)) or not _is_location(table):
        return 0
    return bytes_needed(table, name)


def _is_location(table: Any) -> bool:
    of_files = hasattr(table, "fs") and hasattr(table, "storage_options")  # a UPath
    return of_files or isinstance(table, (str, Path, FileSource, SqlSource, DuckDBSource))


def _is_ibis(table: Any) -> bool:
    return type(table).__module__.split(".", maxsplit=1)[0] == "ibis"
