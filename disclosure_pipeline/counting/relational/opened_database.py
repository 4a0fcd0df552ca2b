"""Tables of a database, opened to be counted there: their values come here, their records stay."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.counts import DisclosureCounts
from disclosure_pipeline.counting.memory.nearest_records import Draw
from disclosure_pipeline.counting.relational.database import (
    count_in_database,
    fetch_distinct,
    open_database_tables,
)
from disclosure_pipeline.counting.relational.nearest import fetch_nearest
from disclosure_pipeline.counting.relational.staging import KeptRecords, ReadTables, fetch_codes
from disclosure_pipeline.counting.targets import CountRequest
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.runtime.progress import OnProgress, ignore_progress
from disclosure_pipeline.tables.additions import identifying_columns
from disclosure_pipeline.tables.alignment import Distinct, code_distinct_columns, stack_distinct
from disclosure_pipeline.tables.canonical_tables import canonical_values
from disclosure_pipeline.tables.dictionary import Dictionary
from disclosure_pipeline.tables.encoding import Change, count_levels, encode
from disclosure_pipeline.tables.files import fill_in_variables
from disclosure_pipeline.tables.frames import stack_frames
from disclosure_pipeline.tables.grouping import Grouping
from disclosure_pipeline.tables.levels import CodedColumn
from disclosure_pipeline.tables.messages import names_in_all, table_names
from disclosure_pipeline.tables.sources import DuckDBSource, FileSource, Location, SqlSource, read_raw


class CountedTables(ABC):
    """The part of `opening.OpenedTables` that needs the records, which are counted where they are."""

    @property
    def frames(self) -> None:
        """None: the records stay where they are."""
        return None

    @property
    def sorts_whole_records(self) -> bool:
        """False: codes of all records are not in memory."""
        return False

    @property
    @abstractmethod
    def _read(self) -> ReadTables:
        """The tables, and what is known of their values."""

    def count(
        self, requests: Sequence[CountRequest], on_progress: OnProgress = ignore_progress
    ) -> list[DisclosureCounts]:
        """Count the records by coded columns, request by request."""
        return count_in_database(self._read, requests, on_progress)

    def code_records(self, columns: Sequence[CodedColumn], most: int, seed: int) -> Sequence[CodedColumn]:
        """Coded columns with a code for each of at most so many records of each table, drawn by the seed."""
        return fetch_codes(self._read, columns, most, seed)

    def find_nearest(self, columns: Sequence[CodedColumn], draw: Draw, seed: int) -> list[list[IntArray]]:
        """Return the distances of GT records to the nearest ones, for each comparison that is drawn."""
        return fetch_nearest(self._read, columns, draw(columns, seed))


_STACKED = 2  # tables: GT, and all syntheses as one

Values = Mapping[str, Sequence[Distinct]]


@dataclass(frozen=True)
class StackedDatabaseTables(CountedTables):
    """Two tables, as `opening.OpenedTables`: the records of all syntheses are stacked once they are coded.

    `opened` are GT and each synthesis, `raw` their values as the database has them. `known` gives the values
    of some columns as they are compared, `draw` some records of each table; `kept` is that of the tables.
    """

    opened: Sequence[Any]
    columns: tuple[tuple[str, ...], ...]
    engine_description: str
    ledger: tuple[Change, ...]
    raw: Values
    known: Callable[[Sequence[str], OnProgress], Values]
    draw: Callable[[int, int], list[pd.DataFrame]]
    kept: KeptRecords

    def code(
        self, columns: Sequence[Any], grouping: Grouping, on_progress: OnProgress = ignore_progress
    ) -> list[CodedColumn]:
        """Columns as codes over the levels of all tables, not grouped yet: a code for each value."""
        known = self.known(columns, on_progress)
        distinct = {name: _stack(known[name]) for name in columns}
        return code_distinct_columns(distinct, grouping, table_names(_STACKED))

    @property
    def _read(self) -> ReadTables:
        return ReadTables(self.opened, self.raw, table_names(_STACKED), stacked=True, kept=self.kept)

    def identifiers(self, columns: Sequence[CodedColumn]) -> list[tuple[int, Any]]:
        """Return the (synthesis, column) of GT's columns whose values tell which record it is."""
        stacked = {name: _stack(of_tables) for name, of_tables in self.raw.items()}
        tables = [{name: of_tables[i] for name, of_tables in stacked.items()} for i in range(2)]
        return identifying_columns(columns, tables)

    def stacked(self) -> StackedDatabaseTables:
        """Return the same: there is one synthetic table."""
        return self

    def sample(self, most: int, seed: int) -> list[pd.DataFrame]:
        """Invented tables: see `DatabaseTables`; at most so many records of each."""
        ground_truth, *syntheses = self.draw(most, seed)
        return [ground_truth, stack_frames(syntheses).head(most)]


def _stack(tables: Sequence[Distinct]) -> list[Distinct]:
    """Return the values of a column of GT and of all syntheses as one table."""
    return [tables[0], stack_distinct(tables[1:])]


MOST_VALUES = 10_000_000
"""This many values of a column are fetched from a database at most."""


@dataclass(frozen=True)
class DatabaseTable:
    """A table of `records` that a database reads at `location`; the values of its described columns.

    `raw` are those that the database has, `distinct` their canonical form, each in its place.
    """

    location: Any
    records: int
    raw: Mapping[str, Distinct]
    distinct: Mapping[str, Distinct]
    ledger: tuple[Change, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its described columns."""
        return tuple(self.distinct)

    @property
    def values(self) -> Mapping[str, Any]:
        """The distinct values of each column, as Arrow arrays."""
        return {name: encode(distinct.values).levels for name, distinct in self.distinct.items()}

    def count_levels(self, name: str) -> IntArray:
        """Return the number of records with each value of a column, in any order."""
        return count_levels(self.distinct[name].values, self.distinct[name].counts)

    def keep_columns(self, names: Collection[str]) -> DatabaseTable:
        """Return the table without its other columns."""
        return replace(
            self,
            raw={name: self.raw[name] for name in self.raw if name in names},
            distinct={name: self.distinct[name] for name in self.distinct if name in names},
            ledger=tuple(change for change in self.ledger if change.column in names),
        )


@dataclass
class DatabaseTables(CountedTables):
    """GT (first) and its syntheses in one database: see `opening.OpenedTables`.

    `opened` are tables of Ibis, `names` what messages call them. `raw` are the values of columns that were
    fetched, as the database has them, `canonical` those in canonical form, where they are known;
    `distinct_of_tables` has those of all columns of each table, `kept` records that stay coded.
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
        known = self._known(columns, on_progress)
        return code_distinct_columns({name: known[name] for name in columns}, grouping, self.names)

    def identifiers(self, columns: Sequence[CodedColumn]) -> list[tuple[int, Any]]:
        """Return the (synthesis, column) of GT's columns whose values tell which record it is."""
        known = self.distinct_of_tables or [
            {name: of_tables[i] for name, of_tables in self.raw.items()} for i in range(len(self.opened))
        ]
        return identifying_columns(columns, known)

    def with_unit(self, unit: Any) -> DatabaseTables:
        """Return the tables with GT's column `unit`, empty in SD."""
        import ibis

        ground_truth, *syntheses = self.opened
        empty = ibis.null(ground_truth[unit].type())
        opened = DatabaseTables(
            [ground_truth, *(table.mutate(**{unit: empty}) for table in syntheses)],
            self.names,
            self.columns,
            self.engine_description,
            dict(self.raw),
            kept=self.kept,
        )
        if self.canonical is not None:
            of_GT, *of_SD = opened.distinct([unit])[unit]
            values = self.distinct_of_tables[0][unit].values
            opened.canonical = {**self.canonical, unit: [replace(of_GT, values=values), *of_SD]}
        return opened

    def only(self, tables: Sequence[int]) -> DatabaseTables:
        """Return some of the tables, in this order; values that were fetched are not fetched again."""
        names = [self.names[i] for i in tables]

        def select_tables(values: Mapping[str, Sequence[Distinct]]) -> dict[str, Sequence[Distinct]]:
            return {name: [of_tables[i] for i in tables] for name, of_tables in values.items()}

        return DatabaseTables(
            [self.opened[i] for i in tables],
            names,
            tuple(self.columns[i] for i in tables),
            self.engine_description,
            select_tables(self.raw),
            None if self.canonical is None else select_tables(self.canonical),
            [self.distinct_of_tables[i] for i in tables] if self.distinct_of_tables else (),
            tuple(change for change in self.ledger if change.table in names),
            self.kept,
        )

    def stacked(self) -> StackedDatabaseTables:
        """GT, and all the syntheses as one table, of the columns that all of them have."""
        shared = tuple(names_in_all(self.columns[1:]))
        return StackedDatabaseTables(
            self.opened,
            (self.columns[0], shared),
            self.engine_description,
            self.ledger,
            self.raw,
            self._known,
            self.sample,
            self.kept,
        )

    @property
    def _read(self) -> ReadTables:
        return ReadTables(self.opened, self.raw, self.names, kept=self.kept)

    def _known(self, columns: Sequence[str], on_progress: OnProgress) -> Mapping[str, Sequence[Distinct]]:
        """Return the values of some columns in each table, as they are compared."""
        return self.distinct(columns, on_progress) if self.canonical is None else self.canonical

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
        return frames


def _draw(column: Distinct, records: int, rng: np.random.Generator) -> Any:
    numbers: IntArray = rng.choice(len(column.counts), records, p=column.counts / column.counts.sum())
    return column.take(np.where(numbers == len(column.counts) - 1, -1, numbers))


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


@contextmanager
def open_canonical_in_database(tables: Sequence[DatabaseTable], engine: str) -> Iterator[DatabaseTables]:
    """Tables that were read by `read_database_table`, in canonical form."""
    with open_in_database([table.location for table in tables], engine) as opened:
        shared = names_in_all([table.raw for table in tables])
        opened.raw.update({name: [table.raw[name] for table in tables] for name in shared})
        opened.canonical = {name: [table.distinct[name] for table in tables] for name in shared}
        opened.distinct_of_tables = [table.distinct for table in tables]
        opened.columns = tuple(tuple(table.distinct) for table in tables)
        opened.ledger = tuple(change for table in tables for change in table.ledger)
        yield opened


def read_database_table(
    location: Location,
    engine: str,
    dictionary: Dictionary,
    table: str,
    needed: Collection[str],
    only_known: bool,
) -> DatabaseTable:
    """Ask for the values of a table. ContractError where it breaks its contract, InputError as `read_raw`."""
    location = _readable(location, table)
    with open_in_database([location], engine, [table]) as opened:
        [columns] = opened.columns
        described = [name for name in dictionary if name in columns]
        fetched = opened.distinct(described or columns[:1])
    values = {name: of_table for name, [of_table] in fetched.items()}
    records = next(iter(values.values())).records
    raw = {name: values[name] for name in described}
    distinct, ledger = canonical_values(columns, records, raw, dictionary, table, needed, only_known)
    return DatabaseTable(location, records, raw, distinct, ledger)


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
