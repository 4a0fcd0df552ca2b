"""The sources of tables, as a gate's file declares them, and reading a table as a frame of raw levels.

Errors of readers, drivers and file systems are replaced: their messages may quote a record or a password.
"""

from __future__ import annotations

import codecs
import hashlib
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, TypeVar

import pandas as pd
from pydantic import AfterValidator, ConfigDict, Field, model_validator

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.runtime.progress import report_progress
from disclosure_pipeline.tables import damage
from disclosure_pipeline.tables.archives import enter_archive
from disclosure_pipeline.tables.columnar_files import open_arrow, open_parquet
from disclosure_pipeline.tables.databases import open_duckdb, open_sql
from disclosure_pipeline.tables.descriptions import Description
from disclosure_pipeline.tables.dictionary import FrozenModel
from disclosure_pipeline.tables.encoding import collect
from disclosure_pipeline.tables.files import (
    DELIMITERS,
    FileFormat,
    Format,
    OpenTable,
    StoragePath,
    describe_unknown_format,
    fill_in_variables,
    find_format,
    find_suffix,
    locate,
    redact_location,
    refuse_password,
    refuse_unusable_path,
    require_usable_path,
)
from disclosure_pipeline.tables.statistics_files import FORMATS as STATISTICS
from disclosure_pipeline.tables.statistics_files import open_statistics
from disclosure_pipeline.tables.text_files import guess_form, open_text
from disclosure_pipeline.tables.workbooks import open_workbook

T = TypeVar("T")

_OPENERS: Mapping[str, Callable[[StoragePath, FileFormat, str, ExitStack], OpenTable]] = {
    **dict.fromkeys(DELIMITERS, open_text),
    "parquet": open_parquet,
    "arrow": open_arrow,
    **dict.fromkeys(STATISTICS, open_statistics),
    "workbook": open_workbook,
}

_DECLARED = ("delimiter", "decimal", "thousands", "encoding", "quote", "sheet")

ENVIRONMENT = "${NAME} is replaced by the environment variable"


def _require_encoding(name: str | None) -> str | None:
    try:
        codecs.lookup(name or "utf-8")
    except LookupError:
        raise ValueError(f"{name!r} is no encoding: expected one such as utf-8, cp1252 or latin-1") from None
    return name


class FileSource(FrozenModel):
    """A file, or a folder of Parquet files: a local path or any location that fsspec knows.

    Columns that a folder is partitioned by are read from the names of its folders, such as `year=2019`.
    """

    path: Annotated[
        str,
        AfterValidator(refuse_unusable_path),
        Field(description=f"Path, or location such as s3://bucket/table.parquet; {ENVIRONMENT}"),
    ]
    format: Annotated[Format | None, Field(description="Needed if the file's name does not show it")] = None
    delimiter: Annotated[
        str | None, Field(description="The separator of a CSV file's fields", min_length=1, max_length=1)
    ] = None
    decimal: Annotated[
        Literal[".", ","] | None,
        Field(
            description="The decimal mark of a CSV file's numbers, by default a point. With a comma, every "
            "value that is a number with a comma is read as that number"
        ),
    ] = None
    thousands: Annotated[
        Literal[".", ",", " ", "'", "\u00a0", "\u202f"] | None,
        Field(
            description="What separates thousands in a CSV file's numbers, by default nothing. Every value "
            "that is a number with such separators is read as that number"
        ),
    ] = None
    encoding: Annotated[
        str | None,
        AfterValidator(_require_encoding),
        Field(
            description="The encoding of a text file, such as cp1252 or latin-1, by default UTF-8; of a file "
            "of SPSS, Stata or SAS, if it does not say it itself"
        ),
    ] = None
    quote: Annotated[
        str | None,
        Field(
            description='What quotes fields of a CSV file, by default "; empty if nothing does', max_length=1
        ),
    ] = None
    sheet: Annotated[
        str | None, Field(description="The sheet of a workbook, by default its only one", min_length=1)
    ] = None

    @model_validator(mode="after")
    def _has_no_secret(self) -> FileSource:
        refuse_password(self.path)
        return self

    @model_validator(mode="after")
    def _has_distinct_marks(self) -> FileSource:
        delimiter, quote = self.delimiter or ",", '"' if self.quote is None else self.quote
        if self.thousands is not None and self.thousands == (self.decimal or "."):
            raise ValueError("decimal and thousands are the same mark: set both")
        if delimiter == quote or not (delimiter + quote).isascii():
            raise ValueError("delimiter and quote must be two different characters of ASCII")
        return self

    @property
    def redacted_location(self) -> str:
        """The location without user, password and query string, for messages."""
        return redact_location(self.path)

    def open(self, table: str, stack: ExitStack) -> OpenTable:
        """Open the table. Raise InputError if there is no such file, or its format is unknown."""
        return _open_path(locate(self.path, table), self, table, stack)

    def guess_undeclared(self) -> FileSource:
        """Return the source of a text file with the form that its first lines show: see `guess_form`."""

        def guess(path: StoragePath) -> FileSource:
            with ExitStack() as stack:
                path = enter_archive(path, self.redacted_location, stack)
                file_format = self.file_format(path.name, path.is_folder())
                if file_format is None or file_format.format not in DELIMITERS or not path.is_file():
                    return self
                guessed = guess_form(path, file_format)
            return self.model_copy(update={name: getattr(guessed, name) for name in _DECLARED})

        try:
            return self._inspect(guess)
        except InputError:
            return self  # to open it says what is wrong, and with which table

    def file_format(self, name: str, folder: bool) -> FileFormat | None:
        """Return the declared format, else the one that the name shows, or None."""
        by_name = find_format(name) or (FileFormat("parquet") if folder else None)
        if self.format is not None:
            by_name = FileFormat(self.format, by_name.codec if by_name else None)
        return by_name and replace(by_name, **{name: getattr(self, name) for name in _DECLARED})

    def exists(self) -> bool:
        """Return whether the file or folder exists."""
        return self._inspect(lambda path: path.is_file() or path.is_folder())

    def state(self) -> str | None:
        """Return a cheap mark of the files' sizes and versions, which changes when they are written again."""
        listed = self._inspect(lambda path: [(file.path, file.size, file.version) for file in path.files()])
        return hashlib.sha256(repr(listed).encode()).hexdigest()[:16]

    def sha256(self) -> str | None:
        """Return the hash of its bytes."""
        return self._inspect(lambda path: path.sha256())

    def _inspect(self, look_up: Callable[[StoragePath], T]) -> T:
        """Apply a function to the path. If it fails, raise InputError without the file system's message."""
        path = locate(self.path, self.redacted_location)
        try:
            return look_up(path)
        except Exception as error:  # of any file system
            reason = type(error).__name__
        raise InputError(f"{self.redacted_location!r} cannot be read ({reason}).")


class _Database(FrozenModel):
    table: Annotated[str | None, Field(description="The table to read")] = None
    query: Annotated[str | None, Field(description="Or a query, instead of a table")] = None

    @model_validator(mode="after")
    def _one_of_both(self) -> _Database:
        if (self.table is None) == (self.query is None):
            raise ValueError("give either a table or a query")
        return self

    def exists(self) -> bool:
        """Return True: databases are only queried to be read."""
        return True

    def state(self) -> str | None:
        """Return None: there is no cheap way to see whether a database changed."""
        return None

    def sha256(self) -> str | None:
        """Return None: a database has no bytes of its own; see `content_sha256`."""
        return None


class SqlSource(_Database):
    """A table or query of an SQL database, read by SQLAlchemy."""

    model_config = ConfigDict(populate_by_name=True)

    url: Annotated[
        str,
        Field(description=f"SQLAlchemy URL without a password; {ENVIRONMENT}, also for the whole URL"),
    ]
    schema_: Annotated[str | None, Field(alias="schema", description="Schema of the table")] = None

    @model_validator(mode="after")
    def _has_no_secret(self) -> SqlSource:
        refuse_password(self.url)
        return self

    @property
    def redacted_location(self) -> str:
        """The location without user, password and query string, for messages."""
        return f"{redact_location(self.url)} ({self.table or 'query'})"

    def open(self, table: str, stack: ExitStack) -> OpenTable:
        """Open the table over its own connection."""
        return open_sql(fill_in_variables(self.url, table), self.table, self.schema_, self.query, stack)


class DuckDBSource(_Database):
    """A table or query of a DuckDB file."""

    duckdb: Annotated[
        str, AfterValidator(refuse_unusable_path), Field(description=f"Path of the file; {ENVIRONMENT}")
    ]

    @property
    def redacted_location(self) -> str:
        """The location, for messages."""
        return f"{self.duckdb} ({self.table or 'query'})"

    def open(self, table: str, stack: ExitStack) -> OpenTable:
        """Open the table for reading only."""
        path = Path(fill_in_variables(self.duckdb, table))
        if not path.is_file():
            raise InputError(f"{table}: there is no file {self.duckdb!r}.")
        return open_duckdb(str(path), self.table, self.query, stack)

    def exists(self) -> bool:
        """Return whether the file exists."""
        return Path(fill_in_variables(self.duckdb, "the table")).is_file()


Source = FileSource | SqlSource | DuckDBSource


@dataclass(frozen=True)
class LinkedSource:
    """A ground truth in two tables: persons, and their events."""

    persons: Source
    events: Source

    @property
    def redacted_location(self) -> str:
        """The locations without user, password and query string, for messages."""
        return f"{self.persons.redacted_location} and {self.events.redacted_location}"

    def exists(self) -> bool:
        """Return whether both tables exist."""
        return self.persons.exists() and self.events.exists()

    def state(self) -> str | None:
        """Return a mark of both tables, or None if one has none."""
        return _join_marks(self.persons.state(), self.events.state())

    def sha256(self) -> str | None:
        """Return one hash of the bytes of both tables, or None if one has none."""
        return _join_marks(self.persons.sha256(), self.events.sha256())


def _join_marks(persons: str | None, events: str | None) -> str | None:
    if persons is None or events is None:
        return None
    return hashlib.sha256(f"{persons}\n{events}\n".encode()).hexdigest()


Location = str | Path | Source


class ArrowTable(Protocol):
    """A table that Arrow can read, of Polars, Arrow, DuckDB or Ibis."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return its records."""


TableSource = pd.DataFrame | ArrowTable | Location
Syntheses = TableSource | Sequence[TableSource]
Columns = Hashable | Sequence[Hashable] | None
"""The name of one column, or of several; None for every column that all tables share and that is no key."""


def is_location(table: Any) -> bool:
    """Return whether a table is given by its location: a path of any file system, or a source."""
    is_universal_path = hasattr(table, "fs") and hasattr(table, "storage_options")
    return is_universal_path or isinstance(table, (str, Path, FileSource, SqlSource, DuckDBSource))


def as_source(location: str | Path | Source) -> Source:
    """Return the source of a path; return a source unchanged."""
    if not isinstance(location, (str, Path)):
        return location
    return FileSource(path=require_usable_path(str(location), "the table"))


def read_raw(
    location: str | Path | Source | Any, table: str, columns: Collection[str] | None = None
) -> pd.DataFrame:
    """Read a table as a frame of raw levels: dictionary-encoded Arrow columns.

    `location` is a source, a path or a UPath. Fields of CSV are text, so that "01", "1e5" and "NA" keep their
    form; an empty field is missing. Names in `columns` that the table lacks are ignored. Raise InputError
    that names the table and the problem, but no value and no password.
    """

    def read(opened: OpenTable) -> pd.DataFrame:
        names = [name for name in opened.names if columns is None or name in columns]
        report_progress(f"Reading {table}", 0, 0)
        return collect(names, opened.batches(names), table)

    return _open_and(read, location, table, columns)


def read_column_names(
    location: Location | Any, table: str, known: Collection[str] | None = None
) -> tuple[str, ...]:
    """Return the names of a table's columns. Raise InputError as `read_raw`; it may show `known` names."""
    return _open_and(lambda opened: opened.names, location, table, known)


def read_descriptions(location: Location | Any, table: str) -> Mapping[str, Description]:
    """Return what a file of SPSS, Stata or SAS says of its columns; of others, nothing.

    Raise InputError as `read_raw` does.
    """
    return _open_and(lambda opened: opened.descriptions, location, table, None)


def _open_and(
    read: Callable[[OpenTable], T], location: Location | Any, table: str, known: Collection[str] | None
) -> T:
    try:
        with ExitStack() as stack:
            opened = _open(location, table, stack)
            _check_names(opened, known, table)
            return read(opened)
    except Exception as error:  # of any reader, driver or file system
        message = _error_message(error, location, table)
    # Outside the except block, so that the reader's error, which may quote a record, is not its context.
    raise InputError(message)


def read_batches(location: Location | Any, table: str, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield a table's batches as Arrow arrays by column. Raise InputError as `read_raw` does."""
    try:
        with ExitStack() as stack:
            for batch in _open(location, table, stack).batches(list(columns)):
                yield {name: batch.column(name) for name in columns}
            return
    except Exception as error:  # of any reader, driver or file system
        message = _error_message(error, location, table)
    raise InputError(message)


_EXTRAS = {"pyreadstat": "stats", "python_calamine": "stats", "duckdb": "duckdb", "sqlalchemy": "sql"}


def _error_message(error: Exception, location: Any, table: str) -> str:
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, ModuleNotFoundError):
        extra = _EXTRAS.get((error.name or "").partition(".")[0])
        install = f"[{extra}]" if extra else "[sql], [duckdb], [stats], [s3], [gs] or [az]"
        return (
            f"{table} cannot be read: the package {error.name} is missing: install "
            f"disclosure-pipeline{install}."
        )
    return describe_unreadable(location, table, type(error).__name__)


def _open(location: Any, table: str, stack: ExitStack) -> OpenTable:
    if isinstance(location, (FileSource, SqlSource, DuckDBSource)):
        return location.open(table, stack)
    path = locate(location, table)  # text, a Path, or a UPath with the options of its file system
    return _open_path(path, FileSource(path=path.redacted_location), table, stack)


def _open_path(path: StoragePath, source: FileSource, table: str, stack: ExitStack) -> OpenTable:
    path = enter_archive(path, table, stack)
    file_format = source.file_format(path.name, path.is_folder())
    if file_format is None:
        raise InputError(f"{table}: {describe_unknown_format(path.name)}.")
    if not path.is_file() and not (file_format.format == "parquet" and path.is_folder()):
        raise InputError(f"{table}: there is no file {path.redacted_location!r}.")
    _refuse_declared(file_format, table)
    return _OPENERS[file_format.format](path, file_format, table, stack)


def _refuse_declared(file_format: FileFormat, table: str) -> None:
    """Raise InputError if the source declares what a file of this format does not have."""
    kind = file_format.format
    has = {
        "encoding": kind in DELIMITERS or kind in STATISTICS,
        "sheet": kind == "workbook",
    }
    for name in _DECLARED:
        if getattr(file_format, name) is not None and not has.get(name, kind in DELIMITERS):
            raise InputError(f"{table}: {name} is declared, which a file of format {kind!r} does not have.")


def _check_names(opened: OpenTable, columns: Collection[str] | None, table: str) -> None:
    """Raise InputError unless each name is unique. Only expected names are shown: others may be values."""
    names = opened.names
    # With a dictionary, the contract reports a wrong separator.
    if opened.is_text and columns is None and (separator := damage.name_separator(names)):
        raise InputError(f"{table} cannot be read: {damage.describe_separator(separator)}.")
    for name in sorted({name for name in names if names.count(name) > 1}):
        at = " and ".join(str(i) for i, other in enumerate(names, start=1) if other == name)
        known = f", {name!r}" if columns is not None and name in columns else ""
        raise InputError(f"{table}: columns {at} have the same name{known}: every name must be unique.")


def describe_unreadable(location: Any, table: str, reason: str) -> str:
    """Say why a table cannot be read, judging by its location and the bytes of its file."""
    if isinstance(location, (SqlSource, DuckDBSource)):
        return (
            f"{table}: {location.redacted_location} cannot be read ({reason}): the database cannot be "
            "reached, does not know the table or a column, or does not allow it."
        )
    path_or_location = location.path if isinstance(location, FileSource) else location

    def find_file(stack: ExitStack) -> tuple[StoragePath, FileFormat | None]:
        path = enter_archive(locate(path_or_location, table), table, stack)
        source = location if isinstance(location, FileSource) else FileSource(path=path.redacted_location)
        return path, source.file_format(path.name, path.is_folder())

    return damage.describe_unreadable_file(table, redact_location(str(path_or_location)), find_file, reason)


COUNTING = 40
"""The bytes that a record needs while it is counted in memory."""

_OF_TEXT, _PACKED = 2, 10  # bytes in memory for a byte of a text file, and of a compressed or packed one


def estimate_bytes(location: Location | Any, table: str) -> int:
    """Estimate the memory for a file or a folder of Parquet files. Raise InputError if it cannot be read."""
    path_or_location = location.path if isinstance(location, FileSource) else location
    try:
        path = locate(path_or_location, table)
        files = path.files()
        if files and all(find_suffix(file.path) == ".parquet" for file in files):
            return sum(_bytes_of_parquet(path, file.path) for file in files)
        file_format = find_format(path.name)
        is_text = file_format is not None and file_format.format in DELIMITERS and not file_format.codec
        factor = _OF_TEXT if is_text else _PACKED
        return sum(factor * file.size for file in files)
    except InputError as error:
        message = str(error)
    except Exception as error:  # of any file system
        message = describe_unreadable(location, table, type(error).__name__)
    raise InputError(message)


def _bytes_of_parquet(folder: StoragePath, path: str) -> int:
    import pyarrow.parquet as pq

    with folder.open_file(path) as file:
        metadata = pq.read_metadata(file)
    groups = (metadata.row_group(i) for i in range(metadata.num_row_groups))
    return int(COUNTING * metadata.num_rows + 2 * sum(group.total_byte_size for group in groups))
