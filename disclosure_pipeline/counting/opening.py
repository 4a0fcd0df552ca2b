"""The one way to open tables: an engine, found by its name, opens whatever holds GT and its syntheses.

Every engine has the protocol `Engine`, and what it opens that of `OpenedTables`. What needs every record at
once reads the tables into memory, wherever they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import fields
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

import pandas as pd

from disclosure_pipeline.counting.engines import DATABASE, ENGINES, list_engines
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.runtime.machine import available_memory
from disclosure_pipeline.tables.alignment import Tables, as_frames, check_tables, is_frame
from disclosure_pipeline.tables.events import Joining
from disclosure_pipeline.tables.grouping import Grouping, grouping_of
from disclosure_pipeline.tables.messages import (
    GROUND_TRUTH,
    HOLDOUT,
    describe_argument,
    listed,
    name_events,
    names_in_all,
    table_names,
)
from disclosure_pipeline.tables.sources import (
    COUNTING,
    DuckDBSource,
    Location,
    SqlSource,
    bytes_needed,
    is_location,
)

if TYPE_CHECKING:
    from disclosure_pipeline.counting.counts import CountRequest, DisclosureCounts
    from disclosure_pipeline.counting.memory.nearest_records import Draw
    from disclosure_pipeline.measures.exact import IntArray
    from disclosure_pipeline.runtime.progress import OnProgress
    from disclosure_pipeline.tables.dictionary import Contract
    from disclosure_pipeline.tables.encoding import Change
    from disclosure_pipeline.tables.levels import CodedColumn


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

    def code(self, columns: Sequence[Any], grouping: Grouping, on_progress: OnProgress) -> list[CodedColumn]:
        """Return columns as codes over the levels of all tables, not grouped yet.

        InputError where their values cannot be compared, or not grouped as requested.
        """

    def count(self, requests: Sequence[CountRequest], on_progress: OnProgress) -> list[DisclosureCounts]:
        """Count the records by columns that were coded here, grouped or not."""

    def identifiers(self, columns: Sequence[CodedColumn]) -> list[tuple[int, Any]]:
        """Return each (synthesis, column) whose values identify records; `columns` are coded, not grouped."""

    def stacked(self) -> OpenedTables:
        """Return GT, and all the syntheses as one table, of the columns that all of them have."""

    def code_records(self, columns: Sequence[CodedColumn], most: int, seed: int) -> Sequence[CodedColumn]:
        """Return columns that were coded here, not grouped, with a code for each of some records.

        At most so many of each table, drawn by the seed.
        """

    def find_nearest(self, columns: Sequence[CodedColumn], draw: Draw, seed: int) -> list[list[IntArray]]:
        """Return GT records' distances to the nearest ones, for each comparison that is drawn by the seed.

        Of columns that were coded here, not grouped: see `nearest_distances`.
        """

    def sample(self, most: int, seed: int) -> list[pd.DataFrame]:
        """Return at most so many records of each table by number, invented ones if none can be had."""

    def only(self, tables: Sequence[int]) -> OpenedTables:
        """Return some tables, by number and in this order; columns that were coded here can be counted."""

    def with_columns(self, names: Sequence[Any]) -> OpenedTables:
        """Return the tables, of the columns that were coded here, with these of GT, empty in SD."""


class ReadTable(Protocol):
    """A table in canonical form, to be opened by the engine that read it."""

    @property
    def records(self) -> int:
        """The number of records."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns."""

    @property
    def ledger(self) -> tuple[Change, ...]:
        """Return what was changed for the canonical form."""

    @property
    def values(self) -> Mapping[str, Any]:
        """The distinct values of each column, as Arrow arrays."""

    @property
    def sha256(self) -> str:
        """The hash of its content, whatever the order of records: of records where these can be had."""

    def count_levels(self, name: str) -> IntArray:
        """Return the number of records with each value of a column, in any order."""

    def keep_columns(self, names: Collection[str]) -> ReadTable:
        """Return the table without its other columns."""


class Engine(Protocol):
    """A way to count. All engines give the same figures; they differ in where the records are meanwhile.

    `name` is what it is found by (of a database the URL), `description` the same without a secret, or why it
    was chosen. `holds_frames`: opened tables are frames in memory. `gives_records`: records can be had of a
    table that was read; False where they stay in a database, which reads them again and again.
    """

    name: str
    description: str
    holds_frames: bool
    gives_records: bool

    def open(
        self, tables: Sequence[Any], names: Sequence[str], numeric: Collection[Any]
    ) -> AbstractContextManager[OpenedTables]:
        """Open GT, its syntheses and perhaps a holdout: frames, files or tables of a database.

        `names` are the tables' in messages. Files have no types, or other ones than their fellows: what
        their columns hold is inferred from all of them; those of `numeric` hold numbers. InputError as
        `disclosure()`.
        """

    def read(self, location: Location, contract: Contract, stack: ExitStack) -> ReadTable:
        """Read a table in canonical form. What is kept of it on disk is gone with the stack.

        ContractError where it breaks its contract, InputError as `read_raw`.
        """

    def open_read(self, tables: Sequence[Any]) -> AbstractContextManager[OpenedTables]:
        """Open GT, its syntheses and perhaps a holdout, all read by this engine."""


def find_engine(name: str, description: str = "") -> Engine:
    """Return the engine of a name, described by it unless otherwise; KeyError where there is none."""
    module, _, kind = ENGINES[DATABASE if DATABASE in name else name].rpartition(".")
    engine: type[Any] = getattr(import_module(module), kind)
    return cast(Engine, engine(name, description or name))


_SHARE_OF_FREE = 0.5  # of the memory that is free; the rest is for whoever else needs it


@contextmanager
def open_tables(
    ground_truth: Any, synthetic: Any, engine: str, numeric: Collection[Any] = (), holdout: Any = None
) -> Iterator[OpenedTables]:
    """Open frames, files or tables of a database by an engine, which is chosen if it is "auto".

    `numeric` and errors as `Engine.open`; a holdout comes last.
    """
    if not isinstance(engine, str) or not (engine in {"auto", *list_engines()} or DATABASE in engine):
        raise InputError(
            f"engine must be {listed(['auto', *list_engines()])} or the URL of a database for Ibis, such as "
            f"'duckdb://', not {describe_argument(engine)}."
        )
    if not (is_location(synthetic) or is_ibis(synthetic) or is_frame(synthetic)):
        if not isinstance(synthetic, Sequence) or not synthetic:
            as_frames(ground_truth, synthetic)  # says what is wrong
        syntheses = list(synthetic)
    else:
        syntheses = [synthetic]
    tables, names = [ground_truth, *syntheses], table_names(1 + len(syntheses))
    if holdout is not None:
        tables, names = [*tables, holdout], (*names, HOLDOUT)
    with choose_engine(engine, tables, names).open(tables, names, numeric) as opened:
        yield opened


def choose_engine(engine: str, tables: Sequence[Any], names: Sequence[str] = ()) -> Engine:
    """Return the engine for tables: as requested, or chosen by their size, and described so.

    `names` are those of the tables in messages, by default of GT and its syntheses.
    """
    if any(map(is_ibis, tables)):
        if engine != "auto":
            raise InputError("Tables of Ibis are counted in their own database: leave the engine to 'auto'.")
        return find_engine(DATABASE)
    if engine != "auto":
        return find_engine(engine)
    needed, free = sum(map(_estimate_bytes, tables, names or table_names(len(tables)))), available_memory()
    chosen = "partitioned" if needed > _SHARE_OF_FREE * free else "memory"
    compared = f"about {needed / 1e9:.1f} GB are needed in memory, {free / 1e9:.1f} GB are free"
    return find_engine(chosen, f"{chosen} ({compared})")


def _estimate_bytes(table: Any, name: str) -> int:
    """Return bytes that reading and counting a table needs; of a database it is not known beforehand."""
    if is_frame(table):
        return COUNTING * len(table) if hasattr(table, "__len__") else 0
    if isinstance(table, (SqlSource, DuckDBSource)) or not is_location(table):
        return 0
    return bytes_needed(table, name)


def is_ibis(table: Any) -> bool:
    """Return whether it is a table of a database, as Ibis has it."""
    return type(table).__module__.split(".", maxsplit=1)[0] == "ibis"


def read_tables(
    ground_truth: Any, synthetic: Any, keys: Sequence[Any], targets: Any, grouping: Grouping
) -> Tables:
    """Read tables as `read_frames` and check them as `check_tables`; there is a target, at least."""
    frames = read_frames(ground_truth, synthetic, grouping.numeric)
    tables = check_tables(frames[0], frames[1:], keys, targets, grouping)
    if not tables.targets:
        raise InputError("targets is empty: name at least one column, or pass None for all that are no keys.")
    return tables


def read_shared_columns(ground_truth: Any, synthetic: Any) -> Tables:
    """Read tables as `read_frames`; every column that all of them have is a key."""
    return share_columns(read_frames(ground_truth, synthetic))


def share_columns(frames: Sequence[pd.DataFrame]) -> Tables:
    """Return tables in which every column that all have is a key. InputError where there is none."""
    shared = names_in_all([list(frame.columns) for frame in frames])
    if not shared:
        raise InputError("No column is in all tables: there is nothing to compare.")
    return check_tables(frames[0], frames[1:], shared, (), grouping_of())


def read_frames(ground_truth: Any, synthetic: Any, numeric: Collection[Any] = ()) -> tuple[pd.DataFrame, ...]:
    """Return GT and its syntheses as frames; in files the columns of `numeric` hold numbers.

    InputError as `open_tables`.
    """
    several = isinstance(synthetic, Sequence) and not isinstance(synthetic, (str, bytes))
    syntheses = [_fetch(table, "the synthetic data") for table in (synthetic if several else [synthetic])]
    ground_truth = _fetch(ground_truth, GROUND_TRUTH)
    with open_tables(ground_truth, syntheses if several else syntheses[0], "memory", numeric) as opened:
        frames = opened.frames
    assert frames is not None  # as this engine has them
    if all(map(is_frame, (ground_truth, *syntheses))):
        return frames
    return tuple(pd.DataFrame({name: _decode(frame[name]) for name in frame}) for frame in frames)


def link_tables(
    ground_truth: Any, synthetic: Any, unit: Any, events: Mapping[str, Any]
) -> tuple[pd.DataFrame, list[pd.DataFrame]]:
    """Return GT and its syntheses, of persons, each with what its `events` add: see `events.Joining`.

    The unit stays in GT alone. InputError where the tables do not belong together.
    """
    both, how = {"ground_truth", "synthetic"}, {field.name for field in fields(Joining)} - {"unit"}
    if unit is None:
        raise InputError("events need unit: the column of every table that says whose a record is.")
    if not isinstance(events, Mapping) or not both <= events.keys() <= both | how:
        raise InputError(f"events must have {listed(sorted(both))}, and may have {listed(sorted(how))}.")
    persons = read_frames(ground_truth, synthetic)
    of_events = read_frames(events["ground_truth"], events["synthetic"])
    if len(of_events) != len(persons):
        raise InputError("events must have as many synthetic tables as there are of persons.")
    joining = Joining(unit, **{name: events[name] for name in how & events.keys()})
    linked = []
    for name, table, events_of_table in zip(table_names(len(persons)), persons, of_events, strict=True):
        names = (name, name_events(name))
        joining.check(table, events_of_table, names)
        linked.append(joining.join(table, events_of_table, names)[0])
    return linked[0], [table.drop(columns=unit) for table in linked[1:]]


def _decode(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return plain values where reading a file has numbered them: only frames have categories."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        levels = pd.Series(column.cat.categories).convert_dtypes().array
        values = levels.take(column.cat.codes.to_numpy(), allow_fill=True)
        return pd.Series(values, index=column.index, name=column.name)
    if isinstance(column.dtype, pd.ArrowDtype):
        import pyarrow as pa  # slow, and only columns of Arrow need it

        if pa.types.is_dictionary(column.dtype.pyarrow_dtype):
            return column.astype(pd.ArrowDtype(column.dtype.pyarrow_dtype.value_type))
    return column


def _fetch(table: Any, name: str) -> Any:
    """Return a table of a database as one of Arrow, any other one as it is."""
    if not is_ibis(table):
        return table
    from disclosure_pipeline.counting.relational.transfer import run_query

    return run_query(f"The database did not give {name}", table.to_pyarrow)
