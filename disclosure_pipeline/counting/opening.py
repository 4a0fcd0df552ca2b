"""The one way to open tables: an engine, found by its name, opens whatever holds GT and its syntheses.

Every engine implements `Engine`, and returns `OpenedTables`. Analyses that need every record at once read the
tables into memory, wherever they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, fields, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

import pandas as pd

from disclosure_pipeline.counting.cells import FindsCells
from disclosure_pipeline.counting.engines import DATABASE, ENGINES, list_engines
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.runtime.machine import available_memory
from disclosure_pipeline.tables.alignment import Tables, as_frames, check_tables, is_frame
from disclosure_pipeline.tables.coding import build_table, decode_arrow
from disclosure_pipeline.tables.events import Joining, write_ids
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
from disclosure_pipeline.tables.missing import MissingCodes
from disclosure_pipeline.tables.sources import (
    COUNTING,
    DuckDBSource,
    Location,
    SqlSource,
    estimate_bytes,
    is_location,
)

if TYPE_CHECKING:
    from disclosure_pipeline.measures.exact import IntArray
    from disclosure_pipeline.runtime.progress import OnProgress
    from disclosure_pipeline.tables.additions import RealValues
    from disclosure_pipeline.tables.dictionary import Contract
    from disclosure_pipeline.tables.encoding import Change
    from disclosure_pipeline.tables.levels import CodedColumn


class OpenedTables(FindsCells, Protocol):
    """GT (first) and its syntheses, opened by an engine.

    Library, command line and gate measure only these, and know no engine.
    """

    @property
    def engine_description(self) -> str:
        """The engine that counts, and why it was chosen."""

    @property
    def columns(self) -> tuple[tuple[Any, ...], ...]:
        """The names of each table's columns."""

    @property
    def ledger(self) -> tuple[Change, ...]:
        """The changes made to values so that the tables can be compared."""

    @property
    def frames(self) -> tuple[pd.DataFrame, ...] | None:
        """The tables as frames if the engine has them in memory, else None."""

    def code(self, columns: Sequence[Any], grouping: Grouping, on_progress: OnProgress) -> list[CodedColumn]:
        """Return columns as codes over the levels of all tables, not grouped yet.

        Raise InputError if their values cannot be compared, or cannot be grouped as `grouping` says.
        """

    def find_real_values(self, columns: Sequence[CodedColumn]) -> list[RealValues]:
        """Return the columns like identifiers of which SD has GT's values; `columns` are not grouped."""

    def stack_syntheses(self) -> OpenedTables:
        """Return GT and, as a second table, all syntheses stacked; only columns that all tables have."""

    def code_records(self, columns: Sequence[CodedColumn], limit: int, seed: int) -> Sequence[CodedColumn]:
        """Return columns coded here (not grouped) with codes of single records.

        At most `limit` records of each table, drawn by the seed.
        """

    def sample(self, limit: int, seed: int) -> list[pd.DataFrame]:
        """Draw at most `limit` records of each table; an engine that holds no records makes them up."""

    def only(self, tables: Sequence[int]) -> OpenedTables:
        """Return some of the tables, by number and in this order; columns already coded stay valid."""

    def with_columns(self, names: Sequence[Any]) -> OpenedTables:
        """Return the tables, reduced to the columns coded here, with these GT columns added, empty in SD."""


class ReadTable(Protocol):
    """A table in canonical form, which the engine that read it can open."""

    @property
    def records(self) -> int:
        """The number of records."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""

    @property
    def ledger(self) -> tuple[Change, ...]:
        """The changes made to values for the canonical form."""

    @property
    def values(self) -> Mapping[str, Any]:
        """The distinct values of each column, as Arrow arrays."""

    @property
    def sha256(self) -> str:
        """The hash of the content, whatever the order of records; in a database, of each column's values."""

    def count_levels(self, name: str) -> IntArray:
        """Count the records with each value of a column, in any order."""

    def keep_columns(self, names: Collection[str]) -> ReadTable:
        """Return the table reduced to these columns."""


class Engine(Protocol):
    """A way to count. All engines give the same figures; they differ in where they keep the records.

    `name` finds it (a database by its URL); `description` is the name without secrets, or with the reason for
    the choice. `holds_frames`: opened tables are frames in memory. `gives_records`: tables that were read
    return single records; False if they stay in a database, which reads them again for every query.
    """

    name: str
    description: str
    holds_frames: bool
    gives_records: bool

    def open(
        self,
        tables: Sequence[Any],
        names: Sequence[str],
        numeric: Collection[Any],
        missing: MissingCodes | None = None,
    ) -> AbstractContextManager[OpenedTables]:
        """Open GT, its syntheses and perhaps a holdout: frames, files or tables of a database.

        Messages call the tables by `names`. Column types of files are inferred from all tables; columns of
        `numeric` hold numbers. Values that are codes of `missing` are missing, and the type of a column that
        has any is inferred from its other values. Raise InputError as `disclosure()` does.
        """

    def read(self, location: Location, contract: Contract, stack: ExitStack) -> ReadTable:
        """Read a table in canonical form. Its temporary files are removed when the stack closes.

        Raise ContractError if it breaks its contract, InputError as `read_raw` does.
        """

    def open_read(self, tables: Sequence[Any]) -> AbstractContextManager[OpenedTables]:
        """Open GT, its syntheses and perhaps a holdout, all read by this engine."""


def find_engine(name: str, description: str = "") -> Engine:
    """Return the engine of this name, or raise KeyError. `description` is the name by default."""
    module, _, kind = ENGINES[DATABASE if DATABASE in name else name].rpartition(".")
    engine: type[Any] = getattr(import_module(module), kind)
    return cast(Engine, engine(name, description or name))


_SHARE_OF_FREE = 0.5  # of the free memory; other processes need the rest


@contextmanager
def open_tables(
    ground_truth: Any,
    synthetic: Any,
    engine: str,
    numeric: Collection[Any] = (),
    holdout: Any = None,
    missing: MissingCodes | None = None,
) -> Iterator[OpenedTables]:
    """Open frames, files or tables of a database by an engine; "auto" chooses one.

    `numeric`, `missing` and errors are those of `Engine.open`; a holdout comes last.
    """
    if not isinstance(engine, str) or not (engine in {"auto", *list_engines()} or DATABASE in engine):
        raise InputError(
            f"engine must be {listed(['auto', *list_engines()])} or the URL of a database for Ibis, such as "
            f"'duckdb://', not {describe_argument(engine)}."
        )
    if not (is_location(synthetic) or is_ibis(synthetic) or is_frame(synthetic)):
        if not isinstance(synthetic, Sequence) or not synthetic:
            as_frames(ground_truth, synthetic)  # raises the InputError
        syntheses = list(synthetic)
    else:
        syntheses = [synthetic]
    tables, names = [ground_truth, *syntheses], table_names(1 + len(syntheses))
    if holdout is not None:
        tables, names = [*tables, holdout], (*names, HOLDOUT)
    with choose_engine(engine, tables, names).open(tables, names, numeric, missing) as opened:
        yield opened


def choose_engine(engine: str, tables: Sequence[Any], names: Sequence[str] = ()) -> Engine:
    """Return the engine requested, or for "auto" the one that suits the tables' sizes, described so.

    Messages call the tables by `names`, by default GT and its syntheses.
    """
    if any(map(is_ibis, tables)):
        if engine != "auto":
            raise InputError("Ibis tables are counted in their own database: leave engine at 'auto'.")
        return find_engine(DATABASE)
    if engine != "auto":
        return find_engine(engine)
    needed, free = sum(map(_estimate_bytes, tables, names or table_names(len(tables)))), available_memory()
    chosen = "partitioned" if needed > _SHARE_OF_FREE * free else "memory"
    compared = f"about {needed / 1e9:.1f} GB are needed in memory, {free / 1e9:.1f} GB are free"
    return find_engine(chosen, f"{chosen} ({compared})")


def _estimate_bytes(table: Any, name: str) -> int:
    """Estimate the bytes needed to read and count a table; 0 for a database, whose size is unknown."""
    if is_frame(table):
        return COUNTING * len(table) if hasattr(table, "__len__") else 0
    if isinstance(table, (SqlSource, DuckDBSource)) or not is_location(table):
        return 0
    return estimate_bytes(table, name)


def is_ibis(table: Any) -> bool:
    """Return whether this is an Ibis table."""
    return type(table).__module__.split(".", maxsplit=1)[0] == "ibis"


def read_tables(
    ground_truth: Any, synthetic: Any, keys: Sequence[Any], targets: Any, grouping: Grouping
) -> Tables:
    """Read tables as `read_frames` does, check them as `check_tables` does, and require a target."""
    return check_read_tables(read_frames(ground_truth, synthetic, grouping.numeric), keys, targets, grouping)


def check_read_tables(
    frames: Sequence[pd.DataFrame], keys: Sequence[Any], targets: Any, grouping: Grouping
) -> Tables:
    """Check GT and its syntheses as `check_tables` does, and require a target."""
    tables = check_tables(frames[0], frames[1:], keys, targets, grouping)
    if not tables.targets:
        raise InputError("targets is empty: name at least one column, or pass None for all that are no keys.")
    return tables


def read_shared_columns(ground_truth: Any, synthetic: Any) -> Tables:
    """Read tables as `read_frames` does; every column that all of them have is a key."""
    return share_columns(read_frames(ground_truth, synthetic))


def share_columns(frames: Sequence[pd.DataFrame]) -> Tables:
    """Return tables whose keys are all the columns they share. Raise InputError if they share none."""
    shared = names_in_all([list(frame.columns) for frame in frames])
    if not shared:
        raise InputError("No column is in all tables: there is nothing to compare.")
    return check_tables(frames[0], frames[1:], shared, (), grouping_of())


def read_frames(
    ground_truth: Any, synthetic: Any, numeric: Collection[Any] = (), holdout: Any = None
) -> tuple[pd.DataFrame, ...]:
    """Return GT, its syntheses and perhaps a holdout as frames.

    In files the columns of `numeric` hold numbers. Raise InputError as `open_tables` does.
    """
    return _read(ground_truth, synthetic, numeric, holdout)[0]


def _read(
    ground_truth: Any,
    synthetic: Any,
    numeric: Collection[Any] = (),
    holdout: Any = None,
    missing: MissingCodes | None = None,
) -> tuple[tuple[pd.DataFrame, ...], tuple[Change, ...]]:
    """Return GT, its syntheses and perhaps a holdout as frames, and the changes made to their values."""
    several = isinstance(synthetic, Sequence) and not isinstance(synthetic, (str, bytes))
    syntheses = [_fetch(table, "the synthetic data") for table in (synthetic if several else [synthetic])]
    ground_truth, holdout = _fetch(ground_truth, GROUND_TRUTH), _fetch(holdout, HOLDOUT)
    given = syntheses if several else syntheses[0]
    with open_tables(ground_truth, given, "memory", numeric, holdout, missing) as opened:
        frames, ledger = opened.frames, opened.ledger
    assert frames is not None  # the engine `memory` holds them
    if not all(is_frame(table) for table in (ground_truth, *syntheses, holdout) if table is not None):
        frames = tuple(build_table({name: _decode(frame[name]) for name in frame}) for frame in frames)
    return frames, ledger


@dataclass(frozen=True)
class LinkedTables:
    """Persons with the columns from their events; `ledger`: the changes made to values of both tables."""

    ground_truth: pd.DataFrame
    synthetic: list[pd.DataFrame]
    holdout: pd.DataFrame | None
    ledger: tuple[Change, ...]


def link_tables(
    ground_truth: Any,
    synthetic: Any,
    unit: Any,
    events: Mapping[str, Any],
    holdout: Any = None,
    missing: MissingCodes | None = None,
) -> LinkedTables:
    """Join each table of persons with its `events`: see `events.Joining`.

    Synthetic tables do not keep the unit. `missing`: codes of the persons; those of the events are among
    `events`. Raise InputError if the tables do not belong together.
    """
    required, joined = {"ground_truth", "synthetic"}, {field.name for field in fields(Joining)} - {"unit"}
    if holdout is not None:
        required.add("holdout")
    options = joined | {"missing_codes"}
    if unit is None:
        raise InputError("events need unit: the column, in every table, that says whose record it is.")
    if not isinstance(events, Mapping) or not required <= events.keys() <= required | options:
        raise InputError(
            f"events must have {listed(sorted(required))}, and may have {listed(sorted(options))}."
        )
    codes = MissingCodes.from_argument(events.get("missing_codes"))
    persons, ledger = _read(ground_truth, synthetic, (), holdout, missing)
    event_tables, changes = _read(
        events["ground_truth"], events["synthetic"], (), events.get("holdout"), codes
    )
    if len(event_tables) != len(persons):
        raise InputError("events must have as many synthetic tables as there are of persons.")
    given = [ground_truth, synthetic, holdout, *(events.get(name) for name in required)]
    if any(
        is_location(table) for one in given for table in (one if isinstance(one, (list, tuple)) else [one])
    ):
        both = write_ids([*persons, *event_tables], unit)
        persons, event_tables = tuple(both[: len(persons)]), tuple(both[len(persons) :])
    joining = Joining(unit, **{name: events[name] for name in joined & events.keys()})
    tables = table_names(len(persons)) if holdout is None else (*table_names(len(persons) - 1), HOLDOUT)
    linked = []
    for name, table, table_events in zip(tables, persons, event_tables, strict=True):
        names = (name, name_events(name))
        joining.check(table, table_events, names)
        linked.append(joining.join(table, table_events, names)[0])
    ledger += tuple(replace(change, table=name_events(change.table)) for change in changes)
    linked_holdout = None if holdout is None else linked.pop()
    return LinkedTables(linked[0], [table.drop(columns=unit) for table in linked[1:]], linked_holdout, ledger)


def _decode(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return plain values for the dictionaries of a file: only frames have categories."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        levels = pd.Series(column.cat.categories).convert_dtypes().array
        values = levels.take(column.cat.codes.to_numpy(), allow_fill=True)
        return pd.Series(values, index=column.index, name=column.name)
    return decode_arrow(column)


def _fetch(table: Any, name: str) -> Any:
    """Return an Ibis table as an Arrow table, any other table unchanged."""
    if not is_ibis(table):
        return table
    from disclosure_pipeline.counting.relational.transfer import run_query

    return run_query(f"The database did not return {name}", table.to_pyarrow)
