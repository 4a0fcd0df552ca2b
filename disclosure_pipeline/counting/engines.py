"""The protocols of an engine and of the tables that it opens. Engines are found by name."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    import pandas as pd

    from disclosure_pipeline.counting.counts import CountRequest, DisclosureCounts
    from disclosure_pipeline.counting.memory.nearest_records import Draw
    from disclosure_pipeline.measures.exact import IntArray
    from disclosure_pipeline.runtime.progress import OnProgress
    from disclosure_pipeline.tables.dictionary import Dictionary
    from disclosure_pipeline.tables.encoding import Change
    from disclosure_pipeline.tables.grouping import Grouping
    from disclosure_pipeline.tables.levels import CodedColumn
    from disclosure_pipeline.tables.sources import Location

DATABASE = "://"

# Name -> class. Every URL is that of a database.
ENGINES = {
    "memory": "disclosure_pipeline.counting.memory.engine.MemoryEngine",
    "partitioned": "disclosure_pipeline.counting.partitioned.opened_files.PartitionedEngine",
    DATABASE: "disclosure_pipeline.counting.relational.opened_database.DatabaseEngine",
}


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
        """GT, and all the syntheses as one table, of the columns that all of them have."""

    def code_records(self, columns: Sequence[CodedColumn], most: int, seed: int) -> Sequence[CodedColumn]:
        """Return columns that were coded here, not grouped, with a code for each of some records.

        At most so many of each table, drawn by the seed.
        """

    def find_nearest(self, columns: Sequence[CodedColumn], draw: Draw, seed: int) -> list[list[IntArray]]:
        """For each comparison that is drawn by the seed, the distances of GT records to the nearest ones.

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

    def read(
        self,
        location: Location,
        dictionary: Dictionary,
        table: str,
        needed: Collection[str],
        only_known: bool,
        stack: ExitStack,
    ) -> ReadTable:
        """Read a table in canonical form. What is kept of it on disk is gone with the stack.

        ContractError where it breaks its contract, InputError as `read_raw`.
        """

    def open_read(self, tables: Sequence[Any]) -> AbstractContextManager[OpenedTables]:
        """Open GT, its syntheses and perhaps a holdout, all read by this engine."""


def list_engines() -> list[str]:
    """Return the names of the engines that are no URLs."""
    return [name for name in ENGINES if name != DATABASE]


def find_engine(name: str, description: str = "") -> Engine:
    """Return the engine of a name, described by it unless otherwise; KeyError where there is none."""
    module, _, kind = ENGINES[DATABASE if DATABASE in name else name].rpartition(".")
    engine: type[Any] = getattr(import_module(module), kind)
    return cast(Engine, engine(name, description or name))
