"""Tables of a database, opened to be counted there: their values come here, their records stay."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from disclosure_pipeline.counting.counts import CountRequest, DisclosureCounts, count_without_each
from disclosure_pipeline.counting.memory.nearest_records import Draw
from disclosure_pipeline.counting.opening import Engine
from disclosure_pipeline.counting.relational.coding import as_comparable
from disclosure_pipeline.counting.relational.database import count_in_database
from disclosure_pipeline.counting.relational.distances import fetch_nearest
from disclosure_pipeline.counting.relational.staging import KeptRecords, ReadTables, fetch_codes
from disclosure_pipeline.counting.relational.transfer import (
    borrow_table,
    fetch_rows,
    open_connection,
    run_query,
)
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.measures.exact import IntArray, total
from disclosure_pipeline.runtime.progress import OnProgress, ignore_progress
from disclosure_pipeline.tables.additions import identifying_columns
from disclosure_pipeline.tables.alignment import code_distinct_columns, stack_frames
from disclosure_pipeline.tables.coding import Distinct, stack_distinct
from disclosure_pipeline.tables.contract import TableOfValues, canonical_values
from disclosure_pipeline.tables.dictionary import Contract
from disclosure_pipeline.tables.encoding import Change
from disclosure_pipeline.tables.files import fill_in_variables
from disclosure_pipeline.tables.grouping import Grouping
from disclosure_pipeline.tables.levels import CodedColumn
from disclosure_pipeline.tables.messages import names_in_all, table_names
from disclosure_pipeline.tables.sources import DuckDBSource, FileSource, Location, SqlSource, read_raw

MOST_VALUES = 10_000_000
"""This many values of a column are fetched from a database at most."""


@dataclass
class DatabaseEngine(Engine):
    """The engine for tables in a database, whose URL is its name: see `opening.Engine`."""

    name: str
    description: str = ""
    holds_frames: bool = False
    gives_records: bool = False

    def open(
        self, tables: Sequence[Any], names: Sequence[str], numeric: Collection[Any] = ()
    ) -> AbstractContextManager[DatabaseTables]:
        """Open tables as the database has them: see `open_in_database`."""
        return open_in_database(tables, self.name, names)

    def read(self, location: Location, contract: Contract, stack: ExitStack) -> DatabaseTable:
        """Ask for the values of a table."""
        location = _readable(location, contract.table)
        with open_in_database([location], self.name, [contract.table]) as opened:
            [columns] = opened.columns
            described = [name for name in contract.dictionary if name in columns]
            fetched = opened.distinct(described or columns[:1])
        values = {name: of_table for name, [of_table] in fetched.items()}
        records = next(iter(values.values())).records
        raw = {name: values[name] for name in described}
        distinct, ledger = canonical_values(columns, records, raw, contract)
        return DatabaseTable(records, distinct, ledger, location, raw)

    @contextmanager
    def open_read(self, tables: Sequence[DatabaseTable]) -> Iterator[DatabaseTables]:
        """Open tables that were read in canonical form."""
        with open_in_database([table.location for table in tables], self.name) as opened:
            shared = names_in_all([table.distinct for table in tables])
            opened.raw.update({name: [table.raw[name] for table in tables] for name in shared})
            opened.canonical = {name: [table.distinct[name] for table in tables] for name in shared}
            opened.distinct_of_tables = [table.distinct for table in tables]
            opened.columns = tuple(table.columns for table in tables)
            opened.ledger = tuple(change for table in tables for change in table.ledger)
            yield opened


@contextmanager
def open_in_database(
    tables: Sequence[Any], engine: str, names: Sequence[str] | None = None
) -> Iterator[DatabaseTables]:
    """Tables as the database has them. InputError where one cannot be reached.

    `names` are those in messages; by default of GT and its syntheses.
    """
    names = names or table_names(len(tables))
    with open_database_tables([_for_database(table) for table in tables], engine, names) as opened:
        columns = tuple(tuple(table.columns) for table in opened)
        in_database = DatabaseTables(opened, names, columns, f"{opened[0].get_backend().name}, by Ibis")
        with closing(in_database.kept):
            yield in_database


@dataclass(frozen=True)
class DatabaseTable(TableOfValues):
    """A table that a database reads at `location`; `raw` are the values that it has, each in its place."""

    location: Any
    raw: Mapping[str, Distinct]


@dataclass
class DatabaseTables:
    """GT (first) and its syntheses in one database: see `opening.OpenedTables`.

    `opened` are tables of Ibis, `names` what messages call them. `raw` are the values of columns that were
    fetched, as the database has them, `canonical` those in canonical form, where they are known;
    `distinct_of_tables` has those of all columns of each table, `kept` records that stay coded. `is_stacked`:
    all syntheses are one table, whose records are stacked once they are coded.
    """

    opened: Sequence[Any]
    names: Sequence[str]
    columns: tuple[tuple[str, ...], ...]
    engine_description: str
    raw: dict[str, Sequence[Distinct]] = field(default_factory=dict)
    canonical: Mapping[str, Sequence[Distinct]] | None = None
    distinct_of_tables: Sequence[Mapping[str, Distinct]] = ()
    ledger: tuple[Change, ...] = ()
    kept: KeptRecords = field(default_factory=KeptRecords)
    is_stacked: bool = False

    @property
    def frames(self) -> None:
        """None: the records stay where they are."""
        return None

    def distinct(
        self, columns: Sequence[str], on_progress: OnProgress = ignore_progress
    ) -> dict[str, Sequence[Distinct]]:
        """Return the values of some columns in each table, as the database has them."""
        for i, column in enumerate(columns):
            on_progress("Reading the values", i, len(columns))
            if column not in self.raw:
                self.raw[column] = [
                    fetch_distinct(table, column, MOST_VALUES, name)
                    for table, name in zip(self.opened, self.names, strict=True)
                ]
        return {column: self.raw[column] for column in columns}

    def code(
        self, columns: Sequence[Any], grouping: Grouping, on_progress: OnProgress = ignore_progress
    ) -> list[CodedColumn]:
        """Columns as codes over the levels of all tables, not grouped yet: a code for each value."""
        fetched = self.distinct(columns, on_progress)
        known = fetched if self.canonical is None else self.canonical
        distinct = {name: self._stack(known[name]) for name in columns}
        return code_distinct_columns(distinct, grouping, self._read.names)

    def count(
        self, requests: Sequence[CountRequest], on_progress: OnProgress = ignore_progress
    ) -> list[DisclosureCounts]:
        """Count the records by coded columns, request by request."""
        return count_without_each(
            requests, lambda all_of_them: count_in_database(self._read, all_of_them, on_progress)
        )

    def identifiers(self, columns: Sequence[CodedColumn]) -> list[tuple[int, Any]]:
        """Return the (synthesis, column) of GT's columns whose values tell which record it is."""
        known = self.distinct_of_tables
        if self.is_stacked or not known:
            of_tables = {name: self._stack(tables) for name, tables in self.raw.items()}
            known = [{name: of_tables[name][i] for name in of_tables} for i in range(len(self.columns))]
        return identifying_columns(columns, known)

    def code_records(self, columns: Sequence[CodedColumn], most: int, seed: int) -> Sequence[CodedColumn]:
        """Coded columns with a code for each of at most so many records of each table, drawn by the seed."""
        return fetch_codes(self._read, columns, most, seed)

    def find_nearest(self, columns: Sequence[CodedColumn], draw: Draw, seed: int) -> list[list[IntArray]]:
        """Return the distances of GT records to the nearest ones, for each comparison that is drawn."""
        return fetch_nearest(self._read, columns, draw(columns, seed))

    def with_columns(self, names: Sequence[Any]) -> DatabaseTables:
        """Return the tables with these columns of GT, empty in SD."""
        import ibis

        ground_truth, *syntheses = self.opened
        empty = {name: ibis.null(ground_truth[name].type()) for name in names}
        opened = replace(
            self,
            opened=[ground_truth, *(table.mutate(**empty) for table in syntheses)],
            raw={known: values for known, values in self.raw.items() if known not in names},
            distinct_of_tables=(),
            ledger=(),
        )
        if self.canonical is not None:
            known = dict(self.canonical)
            for name, (of_GT, *of_SD) in opened.distinct(names).items():
                known[name] = [replace(of_GT, values=self.distinct_of_tables[0][name].values), *of_SD]
            opened.canonical = known
        return opened

    def only(self, tables: Sequence[int]) -> DatabaseTables:
        """Return some of the tables, in this order; values that were fetched are not fetched again."""
        names = [self.names[i] for i in tables]

        def select_tables(values: Mapping[str, Sequence[Distinct]]) -> dict[str, Sequence[Distinct]]:
            return {name: [of_tables[i] for i in tables] for name, of_tables in values.items()}

        known = [self.distinct_of_tables[i] for i in tables] if self.distinct_of_tables else []
        of_these = {name: [of_table[name] for of_table in known] for name in names_in_all(known or [()])}
        return replace(
            self,
            opened=[self.opened[i] for i in tables],
            names=names,
            columns=tuple(self.columns[i] for i in tables),
            raw=select_tables(self.raw),
            canonical=None if self.canonical is None else of_these | select_tables(self.canonical),
            distinct_of_tables=known,
            ledger=tuple(change for change in self.ledger if change.table in names),
        )

    def stacked(self) -> DatabaseTables:
        """GT, and all the syntheses as one table, of the columns that all of them have."""
        shared = tuple(names_in_all(self.columns[1:]))
        return replace(self, columns=(self.columns[0], shared), is_stacked=True)

    def sample(self, most: int, seed: int) -> list[pd.DataFrame]:
        """Invented tables, as no record leaves the database: each column drawn by itself from its values.

        As many records as the tables have, but at most so many.
        """
        known = self.raw if self.canonical is None else self.canonical
        frames = []
        for table in range(len(self.opened)):
            rng = np.random.default_rng([seed, table])
            records = min(next(iter(known.values()))[table].records, most)
            drawn = {name: _draw(of_tables[table], records, rng) for name, of_tables in known.items()}
            frames.append(pd.DataFrame(drawn, copy=False))
        return [frames[0], stack_frames(frames[1:]).head(most)] if self.is_stacked else frames

    @property
    def _read(self) -> ReadTables:
        names = table_names(len(self.columns)) if self.is_stacked else self.names
        return ReadTables(self.opened, self.raw, names, self.is_stacked, self.kept)

    def _stack(self, tables: Sequence[Distinct]) -> Sequence[Distinct]:
        """Return the values of a column, by table, where all syntheses may be one."""
        return [tables[0], stack_distinct(tables[1:])] if self.is_stacked else tables


def _draw(column: Distinct, records: int, rng: np.random.Generator) -> Any:
    numbers: IntArray = rng.choice(len(column.counts), records, p=column.counts / column.counts.sum())
    return column.take(np.where(numbers == len(column.counts) - 1, -1, numbers))


@contextmanager
def open_database_tables(sources: Sequence[Any], url: str, names: Sequence[str]) -> Iterator[list[Any]]:
    """Tables of one database, each as `open_table` opens it; what was brought there is gone after the block.

    Where tables of Ibis are among them these say which database it is, not the `url`. `names` are the tables'
    in messages. Raises InputError where there is no such database or table, or there are several databases.
    """
    ibis_tables = run_query("Databases cannot be used", lambda: _tables_of_ibis(sources))
    backends = run_query(
        "The database of the tables is not known", lambda: [table.get_backend() for table in ibis_tables]
    )
    if any(backend is not backends[0] for backend in backends):
        raise InputError("The tables are in several databases: bring them to one.")
    with ExitStack() as stack:
        backend = backends[0] if backends else stack.enter_context(open_connection(url))
        borrowed = (borrow_table(backend, source, name) for source, name in zip(sources, names, strict=True))
        yield [stack.enter_context(table) for table in borrowed]


def _tables_of_ibis(sources: Sequence[Any]) -> list[Any]:
    import ibis.expr.types as ir

    return [source for source in sources if isinstance(source, ir.Table)]


def fetch_distinct(table: Any, column: str, most: int, table_name: str) -> Distinct:
    """Return the different values of a column, ascending, as the database types them, and their records.

    NULL and NaN are missing. Raises InputError where there is no such column, or there are more than `most`
    different values: they are never fetched all, then.
    """
    if column not in table.columns:
        raise InputError(
            f"Column {column!r} is not in {table_name}. "
            f"Its columns are {', '.join(map(repr, table.columns))}."
        )

    def fetch_values() -> Any:
        grouped = table.group_by(value=as_comparable(table[column]))
        return fetch_rows(grouped.aggregate(n=table.count()).limit(most + 2))

    rows = run_query(f"The values of column {column!r} of {table_name} cannot be fetched", fetch_values)
    present = rows.filter(pc.is_valid(rows["value"]))
    if len(present) > most:
        raise InputError(
            f"Column {column!r} of {table_name} has more than {most} different values, too many to align: "
            "group them in the database, leave the column out, or read the table into memory."
        )
    present = present.sort_by("value")  # a database has no order: what is drawn from them would change
    counts = np.asarray(present["n"].cast(pa.int64()))
    missing = total(np.asarray(rows["n"].cast(pa.int64()))) - total(counts)
    values = pd.Series(pd.arrays.ArrowExtensionArray(present["value"]), name=column)
    return Distinct(values, np.append(counts, missing))


def _readable(location: Location, table: str) -> Any:
    """Return the location as a database takes it: a file that is not Parquet is read, and brought there."""
    if isinstance(location, FileSource):
        location = fill_in_variables(location.path, table)
    if isinstance(location, (str, Path)) and not str(location).endswith(".parquet"):
        return read_raw(location, table)
    return Path(location) if isinstance(location, str) else location


def _for_database(table: Any) -> Any:
    """Return a table as a database takes it: by name, or the path of Parquet."""
    if isinstance(table, FileSource):
        return Path(fill_in_variables(table.path, "path"))
    if isinstance(table, (SqlSource, DuckDBSource)):
        if table.table is None:
            raise InputError("A database counts tables, not queries: make a view of the query and name that.")
        schema = table.schema_ if isinstance(table, SqlSource) else None
        return f"{schema}.{table.table}" if schema else table.table
    return Path(table) if isinstance(table, str) and table.endswith(".parquet") else table
