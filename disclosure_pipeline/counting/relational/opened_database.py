"""Tables of a database, opened to be counted there: distinct values are fetched, records stay."""

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

from disclosure_pipeline.counting.cells import CellParts
from disclosure_pipeline.counting.counts import CountRequest
from disclosure_pipeline.counting.opening import Engine
from disclosure_pipeline.counting.relational.coding import as_comparable
from disclosure_pipeline.counting.relational.database import find_in_database
from disclosure_pipeline.counting.relational.staging import KeptRecords, ReadTables, fetch_codes
from disclosure_pipeline.counting.relational.transfer import (
    SPARK,
    borrow_table,
    connect,
    fetch_rows,
    run_query,
)
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.measures.exact import IntArray, total
from disclosure_pipeline.runtime.progress import OnProgress, ignore_progress
from disclosure_pipeline.tables.additions import RealValues, find_real_values_in, have_own_values
from disclosure_pipeline.tables.alignment import code_distinct_columns, label_values, stack_frames
from disclosure_pipeline.tables.coding import Distinct, code_distinct, stack_distinct
from disclosure_pipeline.tables.columnar_files import find_partitions
from disclosure_pipeline.tables.contract import TableOfValues, canonical_values
from disclosure_pipeline.tables.dictionary import Contract
from disclosure_pipeline.tables.encoding import Change, widen_arrow
from disclosure_pipeline.tables.files import fill_in_variables, locate
from disclosure_pipeline.tables.grouping import Grouping
from disclosure_pipeline.tables.inference import canonical_distinct
from disclosure_pipeline.tables.levels import CodedColumn
from disclosure_pipeline.tables.messages import names_in_all, table_names
from disclosure_pipeline.tables.missing import MissingCodes, blank_distinct
from disclosure_pipeline.tables.sources import DuckDBSource, FileSource, Location, SqlSource, read_raw

MOST_VALUES = 10_000_000
"""The most distinct values of a column that are fetched from a database."""


@dataclass
class DatabaseEngine(Engine):
    """The engine for tables in a database, whose URL is its name: see `opening.Engine`."""

    name: str
    description: str = ""
    holds_frames: bool = False
    gives_records: bool = False

    def open(
        self,
        tables: Sequence[Any],
        names: Sequence[str],
        numeric: Collection[Any] = (),
        missing: MissingCodes | None = None,
    ) -> AbstractContextManager[DatabaseTables]:
        """Open tables as they are in the database: see `open_in_database`."""
        return open_in_database(tables, self.name, names, numeric, missing)

    def read(self, location: Location, contract: Contract, stack: ExitStack) -> DatabaseTable:
        """Fetch the distinct values of a table, and bring them to canonical form."""
        location = _prepare_location(location, contract.table)
        with open_in_database([location], self.name, [contract.table]) as opened:
            [columns] = opened.columns
            described = [name for name in contract.dictionary if name in columns]
            fetched = opened.distinct(described or columns[:1])
        values = {name: distinct for name, [distinct] in fetched.items()}
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
    tables: Sequence[Any],
    engine: str,
    names: Sequence[str] | None = None,
    numeric: Collection[Any] = (),
    missing: MissingCodes | None = None,
) -> Iterator[DatabaseTables]:
    """Open tables as they are in the database. Raise InputError if one cannot be reached.

    Messages call the tables by `names`, by default GT and its syntheses. Only columns with codes of `missing`
    are read anew: then those of `numeric` are numbers.
    """
    names = names or table_names(len(tables))
    sources = label_values(list(map(_as_database_source, tables, names)))
    with open_database_tables(sources, engine, names) as opened:
        columns = tuple(tuple(table.columns) for table in opened)
        tables_in_database = DatabaseTables(
            opened,
            names,
            columns,
            f"{opened[0].get_backend().name}, by Ibis",
            missing=missing,
            numeric=numeric,
        )
        if missing:
            missing.check_columns(columns[0], names[0])
        with closing(tables_in_database.kept):
            yield tables_in_database


@dataclass(frozen=True)
class DatabaseTable(TableOfValues):
    """A table that a database reads at `location`; `raw` are its values before canonical form."""

    location: Any
    raw: Mapping[str, Distinct]


@dataclass
class DatabaseTables:
    """GT (first) and its syntheses in one database: see `opening.OpenedTables`.

    `opened` are Ibis tables, `names` their names in messages. `raw` are the fetched values of columns as in
    the database, `canonical` the same in canonical form, if known; `distinct_of_tables` are the canonical
    values by table, for all its columns. `kept` holds coded records. `is_stacked`: all syntheses are one
    table, stacked once they are coded. `missing`, `numeric`: see `Engine.open`.
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
    missing: MissingCodes | None = None
    numeric: Collection[Any] = ()

    @property
    def frames(self) -> None:
        """None: records are not held in memory."""

    def distinct(
        self, columns: Sequence[str], on_progress: OnProgress = ignore_progress
    ) -> dict[str, Sequence[Distinct]]:
        """Fetch the values of columns in each table, as they are in the database."""
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
        """Return columns as a code for each value, over the levels of all tables, not grouped yet."""
        fetched = self.distinct(columns, on_progress)
        for name in fetched:
            self._read_without_codes(name, fetched[name])
        known = {**fetched, **(self.canonical or {})}
        distinct = {name: self._stack(known[name]) for name in columns}
        return code_distinct_columns(distinct, grouping, self._read.names)

    def _read_without_codes(self, name: str, fetched: Sequence[Distinct]) -> None:
        """Note a column's canonical form without codes of missing values, if it has any."""
        if not self.missing or name in (self.canonical or {}):
            return
        blanked, codes = blank_distinct(name, fetched, self.names, self.missing)
        if not codes:
            return
        canonical, ledger = canonical_distinct(
            [{name: of_table} for of_table in blanked], self.names, self.numeric
        )
        self.canonical = {**(self.canonical or {}), name: [columns[name] for columns in canonical]}
        self.ledger = (*self.ledger, *codes, *ledger)

    def leaves_out_each(self, request: CountRequest) -> bool:
        """Return False: keys are merged for each of them."""
        return False

    def find_cells(
        self, requests: Sequence[CountRequest], on_progress: OnProgress = ignore_progress
    ) -> CellParts:
        """Yield the cells of columns coded here, grouped or not: see `opening.OpenedTables`."""
        return find_in_database(self._read, requests, on_progress)

    def find_real_values(self, columns: Sequence[CodedColumn]) -> list[RealValues]:
        """Return the columns like identifiers of which SD has GT's values."""
        known = self.distinct_of_tables
        if self.is_stacked or not known:
            values = {**self.raw, **(self.canonical or {})}
            by_column = {name: self._stack(tables) for name, tables in values.items()}
            known = [
                {name: tables[i] for name, tables in by_column.items()} for i in range(len(self.columns))
            ]
        return find_real_values_in(columns, known, table_names(len(known)), have_own_values, code_distinct)

    def code_records(self, columns: Sequence[CodedColumn], limit: int, seed: int) -> Sequence[CodedColumn]:
        """Return columns with the codes of at most `limit` records of each table, drawn by the seed."""
        return fetch_codes(self._read, columns, limit, seed)

    def with_columns(self, names: Sequence[Any]) -> DatabaseTables:
        """Return the tables with these GT columns added, empty in SD."""
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
        if self.canonical is not None and self.distinct_of_tables:
            known = dict(self.canonical)
            for name, (raw, *empty_columns) in opened.distinct(names).items():
                canonical = replace(raw, values=self.distinct_of_tables[0][name].values)
                known[name] = [canonical, *empty_columns]
            opened.canonical = known
        return opened

    def only(self, tables: Sequence[int]) -> DatabaseTables:
        """Return some of the tables, in this order; values already fetched are not fetched again."""
        names = [self.names[i] for i in tables]

        def select_tables(values: Mapping[str, Sequence[Distinct]]) -> dict[str, Sequence[Distinct]]:
            return {name: [by_table[i] for i in tables] for name, by_table in values.items()}

        known = [self.distinct_of_tables[i] for i in tables] if self.distinct_of_tables else []
        shared = {name: [columns[name] for columns in known] for name in names_in_all(known or [()])}
        return replace(
            self,
            opened=[self.opened[i] for i in tables],
            names=names,
            columns=tuple(self.columns[i] for i in tables),
            raw=select_tables(self.raw),
            canonical=None if self.canonical is None else shared | select_tables(self.canonical),
            distinct_of_tables=known,
            ledger=tuple(change for change in self.ledger if change.table in names),
            is_stacked=self.is_stacked and len(tables) > 1,
        )

    def stack_syntheses(self) -> DatabaseTables:
        """Return GT and, as a second table, all syntheses stacked; only columns that all tables have."""
        shared = tuple(names_in_all(self.columns[1:]))
        return replace(self, columns=(self.columns[0], shared), is_stacked=True)

    def sample(self, limit: int, seed: int) -> list[pd.DataFrame]:
        """Make up at most `limit` records of each table, as no record leaves the database.

        Each column is drawn independently from its values.
        """
        known = {**self.raw, **(self.canonical or {})}
        frames = []
        for table in range(len(self.opened)):
            rng = np.random.default_rng([seed, table])
            records = min(next(iter(known.values()))[table].records, limit)
            drawn = {name: _draw(by_table[table], records, rng) for name, by_table in known.items()}
            frames.append(pd.DataFrame(drawn, copy=False))
        return [frames[0], stack_frames(frames[1:]).head(limit)] if self.is_stacked else frames

    @property
    def _read(self) -> ReadTables:
        names = table_names(len(self.columns)) if self.is_stacked else self.names
        return ReadTables(self.opened, self.raw, names, self.is_stacked, self.kept)

    def _stack(self, tables: Sequence[Distinct]) -> Sequence[Distinct]:
        """Return the values of a column by table, with all syntheses stacked if they are one table."""
        return [tables[0], stack_distinct(tables[1:])] if self.is_stacked else tables


def _draw(column: Distinct, records: int, rng: np.random.Generator) -> Any:
    numbers: IntArray = rng.choice(len(column.counts), records, p=column.counts / column.counts.sum())
    return column.take(np.where(numbers == len(column.counts) - 1, -1, numbers))


@contextmanager
def open_database_tables(sources: Sequence[Any], url: str, names: Sequence[str]) -> Iterator[list[Any]]:
    """Open tables of one database, each as `open_table` does; drop uploaded ones after the block.

    Ibis tables determine the database; without any, the `url` does. Messages call the tables by `names`.
    Raise InputError if there is no such database or table, or if there are several databases.
    """
    ibis_tables = run_query("Databases cannot be used", lambda: _select_ibis_tables(sources))
    backends = run_query(
        "The tables have no known database", lambda: [table.get_backend() for table in ibis_tables]
    )
    if any(backend is not backends[0] for backend in backends):
        raise InputError("The tables are in several databases: bring them to one.")
    with ExitStack() as stack:
        backend = backends[0] if backends else connect(url)
        if not (backends or backend.name == SPARK):  # whose session is left open
            stack.callback(backend.disconnect)
        borrowed = (borrow_table(backend, source, name) for source, name in zip(sources, names, strict=True))
        yield [stack.enter_context(table) for table in borrowed]


def _select_ibis_tables(sources: Sequence[Any]) -> list[Any]:
    import ibis.expr.types as ir

    return [source for source in sources if isinstance(source, ir.Table)]


def fetch_distinct(table: Any, column: str, most: int, table_name: str) -> Distinct:
    """Fetch the distinct values of a column, ascending and in the database's type, with their counts.

    NULL and NaN are missing. Raise InputError if there is no such column, or if it has more than `most`
    distinct values, without fetching them all.
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
            f"Column {column!r} of {table_name} has more than {most} distinct values, too many to align: "
            "group them in the database, leave the column out, or read the table into memory."
        )
    present = present.sort_by("value")  # databases have no order, and draws from the values depend on it
    counts = np.asarray(present["n"].cast(pa.int64()))
    missing = total(np.asarray(rows["n"].cast(pa.int64()))) - total(counts)
    levels = widen_arrow(present["value"].combine_chunks())
    values = pd.Series(pd.arrays.ArrowExtensionArray(levels), name=column)
    return Distinct(values, np.append(counts, missing))


def _prepare_location(location: Location, table: str) -> Any:
    """Return a location that a database can read, or the rows of a file that is not Parquet."""
    path = fill_in_variables(location.path, table) if isinstance(location, FileSource) else location
    if isinstance(path, (str, Path)) and not str(path).lower().endswith(".parquet"):
        return read_raw(location, table)
    return _read_if_partitioned(Path(path), table) if isinstance(path, (str, Path)) else path


def _read_if_partitioned(path: Path, table: str) -> Any:
    """Return the rows of a folder that is partitioned by columns; databases differ in how they read these."""
    if path.is_dir():
        located = locate(path, table)
        if find_partitions(located, located.files(), table):
            return read_raw(path, table)
    return path


def _as_database_source(table: Any, name: str) -> Any:
    """Return a table as `open_table` takes it: the name of a table, the path of Parquet, or rows."""
    if isinstance(table, FileSource):
        return _read_if_partitioned(Path(fill_in_variables(table.path, "path")), name)
    if isinstance(table, (SqlSource, DuckDBSource)):
        if table.table is None:
            raise InputError("A database counts tables, not queries: create a view of the query and name it.")
        schema = table.schema_ if isinstance(table, SqlSource) else None
        return f"{schema}.{table.table}" if schema else table.table
    if isinstance(table, Path) or (isinstance(table, str) and table.lower().endswith(".parquet")):
        return _read_if_partitioned(Path(table), name)
    return table
