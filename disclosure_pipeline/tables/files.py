"""Files and database tables as batches of selected Arrow columns, never as whole tables."""

from __future__ import annotations

import hashlib
import os
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.runtime.files import hash_stream
from disclosure_pipeline.tables.canonical import is_text
from disclosure_pipeline.tables.encoding import arrow_array
from disclosure_pipeline.tables.text_forms import DECIMAL_COMMA, DECIMAL_POINT, GROUPED_BY_POINTS

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_EXTRAS = {
    "s3": "s3",
    "s3a": "s3",
    "gs": "gs",
    "gcs": "gs",
    "az": "az",
    "abfs": "az",
    "abfss": "az",
    "adl": "az",
}


def fill_in_variables(text: str, what: str) -> str:
    """Replace each ${NAME} by that environment variable. Raise InputError if one is not set."""
    missing = sorted({name for name in _VARIABLE.findall(text) if name not in os.environ})
    if missing:
        raise InputError(f"{what} needs the environment variable {', '.join(missing)}, which is not set.")
    return _VARIABLE.sub(lambda variable: os.environ[variable[1]], text)


def redact_location(location: str) -> str:
    """Return the location without user, password and query string."""
    scheme, mark, rest = location.partition("://")
    if not mark:
        return location
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path.partition('?')[0]}"


def refuse_password(location: str) -> None:
    """Raise ValueError if a password is written out: it would stay in the file's history forever."""
    user, at, _ = location.partition("://")[2].rpartition("@")
    password = user.partition(":")[2]
    if at and password and not re.fullmatch(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}", password):
        raise ValueError("a password does not belong here: write ${NAME} and set that environment variable")


_LONGEST_PATH, _LONGEST_NAME = 4096, 255  # bytes


def refuse_unusable_path(path: str) -> str:
    """Return a path or location. Raise ValueError, without the path, if no system can have such a file."""
    if "\0" in path:
        raise ValueError("a path cannot have the character NUL")
    longest = 0 if is_remote(path) else max(len(part.encode(errors="replace")) for part in path.split("/"))
    if len(path.encode(errors="replace")) > _LONGEST_PATH or longest > _LONGEST_NAME:
        raise ValueError(
            f"a path has at most {_LONGEST_PATH:,} bytes, and each of its names at most {_LONGEST_NAME}"
        )
    return path


def require_usable_path(path: str, what: str) -> str:
    """Return a path or location. Raise InputError, naming `what`, if no system can have such a file."""
    try:
        return refuse_unusable_path(path)
    except ValueError as error:
        wrong = str(error)
    raise InputError(f"{what}: {wrong}.")


def is_remote(location: str) -> bool:
    """Return whether a location is remote, for fsspec, instead of a path on this machine."""
    return "://" in location


@dataclass(frozen=True)
class Entry:
    """A file: its path within its file system, its size, and a mark that changes when it is written again.

    `inside` is its path within the folder that was listed.
    """

    path: str
    size: int
    version: str
    inside: str


@dataclass(frozen=True)
class StoragePath:
    """A local or remote file or folder, which messages call `redacted_location`."""

    fs: Any
    path: str
    redacted_location: str

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rstrip("/").rpartition("/")[2]

    def is_file(self) -> bool:
        """Return whether it is a file."""
        return bool(self.fs.isfile(self.path))

    def is_folder(self) -> bool:
        """Return whether it is a folder."""
        return bool(self.fs.isdir(self.path))

    def files(self) -> list[Entry]:
        """Return the file itself, or a folder's files in order of path, except hidden ones (. or _)."""
        if self.is_file():
            return [_entry(self.path, self.fs.info(self.path), self.name)]
        information_by_path = self.fs.find(self.path, detail=True)
        # The file system's own name of the folder: `path` may be relative, paths of files are not.
        inside = len(self.fs.info(self.path)["name"].rstrip("/")) + 1 if information_by_path else 0
        files = [
            _entry(path, information_by_path[path], path[inside:]) for path in sorted(information_by_path)
        ]
        return [
            file for file in files if not any(part.startswith((".", "_")) for part in file.inside.split("/"))
        ]

    def open_file(self, path: str) -> Any:
        """Open a file at or below the path as a seekable stream of bytes."""
        return self.fs.open(path, "rb")

    def sha256(self) -> str:
        """Return the hash of a file's bytes, or of the names and hashes of a folder's files."""
        if self.is_file():
            return self._sha256(self.path)
        listing = "".join(f"{self._sha256(file.path)}  {file.inside}\n" for file in self.files())
        return hashlib.sha256(listing.encode()).hexdigest()

    def _sha256(self, path: str) -> str:
        with self.open_file(path) as file:
            return hash_stream(file).sha256


def _entry(path: str, details: dict[str, Any], inside: str) -> Entry:
    changes = [
        details.get(name) for name in ("ETag", "etag", "LastModified", "last_modified", "updated", "mtime")
    ]
    return Entry(path, int(details["size"] or 0), repr(changes), inside)


def locate(location: str | Path | Any, what: str) -> StoragePath:
    """Return the storage path of a path, a UPath or the text of either, with environment variables filled in.

    Raise InputError if the package that reads such locations is not installed, or refuses the location.
    """
    text = str(location)
    redacted_location = redact_location(text)
    universal: Any = location
    if hasattr(universal, "fs") and hasattr(universal, "storage_options"):
        return StoragePath(universal.fs, universal.path, redacted_location)
    text = require_usable_path(fill_in_variables(text, what), what)
    try:
        import fsspec

        if not is_remote(text):
            return StoragePath(fsspec.filesystem("file"), str(Path(text)), redacted_location)
        # No cached instance, so that neither listings nor credentials outlive this one.
        fs, path = fsspec.core.url_to_fs(text, skip_instance_cache=True, use_listings_cache=False)
        return StoragePath(fs, path, redacted_location)
    except ImportError:
        extra = _EXTRAS.get(text.partition("://")[0])
        install = f"install disclosure-pipeline[{extra}]" if extra else "install the one that fsspec requires"
        reason = f"the package that reads it is not installed: {install}"
    except Exception as error:  # of any file system; its message may contain credentials
        reason = type(error).__name__
    raise InputError(f"{what}: {redacted_location!r} cannot be opened ({reason}).")


Format = Literal["csv", "tsv", "parquet", "arrow"]

_BY_SUFFIX: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
}
_CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
DELIMITERS = {"csv": ",", "tsv": "\t"}
"""The separator of a text file's fields, by its format."""

FORMATS = (*_BY_SUFFIX, *(f"{text}{packed}" for text in (".csv", ".tsv") for packed in _CODECS))
"""The suffixes of files that hold tables."""

_BLOCK = 1 << 23
_ROWS = 1 << 20


@dataclass(frozen=True)
class TextForm:
    """Declare how a text file is written: the separator of its fields, and its decimal mark."""

    delimiter: str | None = None
    decimal: Literal[".", ","] | None = None


@dataclass(frozen=True)
class FileFormat:
    """The format of a file, its compression, and how its text is written."""

    format: Format
    codec: str | None = None
    text: TextForm = TextForm()

    @property
    def delimiter(self) -> str:
        """The separator of a text file's fields: the declared one, or that of the format."""
        return self.text.delimiter or DELIMITERS[self.format]


def find_suffix(name: str) -> str | None:
    """Return the suffix of a file's name that shows its format, such as ".csv.gz", or None.

    >>> find_suffix("TABLE.CSV"), find_suffix("table.csv.gz"), find_suffix("table.dta")
    ('.csv', '.csv.gz', None)
    """
    suffixes = (suffix for suffix in FORMATS if name.lower().endswith(suffix))
    return max(suffixes, key=len, default=None)


_READERS = {
    ".dta": "pandas.read_stata",
    ".sav": "pandas.read_spss, which needs pyreadstat",
    ".zsav": "pandas.read_spss, which needs pyreadstat",
    ".por": "pyreadstat.read_por",
    ".sas7bdat": "pandas.read_sas",
    ".xpt": "pandas.read_sas",
    ".xlsx": "pandas.read_excel",
    ".xlsm": "pandas.read_excel",
    ".xls": "pandas.read_excel",
    ".ods": "pandas.read_excel",
    ".rds": "pyreadr.read_r",
    ".rdata": "pyreadr.read_r",
    ".orc": "pandas.read_orc",
    ".json": "pandas.read_json",
}


def describe_unknown_format(name: str) -> str:
    """Return a sentence on a file of an unknown format, with the function that reads it, if there is one.

    >>> describe_unknown_format("SURVEY.DTA").partition("; ")[2]
    'read it with pandas.read_stata, and give the data frame, or write it with to_parquet'
    """
    reader = _READERS.get(name.lower()[name.rfind(".") :])
    advice = (
        f"; read it with {reader}, and give the data frame, or write it with to_parquet" if reader else ""
    )
    return f"{name!r} has an unknown format: expected {', '.join(FORMATS[:-1])} or {FORMATS[-1]}{advice}"


def find_format(name: str) -> FileFormat | None:
    """Return the format that the name of a file shows, or None."""
    suffix = find_suffix(name)
    if suffix is None:
        return None
    packed = next((codec for codec in _CODECS if suffix.endswith(codec)), "")
    return FileFormat(_BY_SUFFIX[suffix.removesuffix(packed)], _CODECS.get(packed))


@dataclass(frozen=True)
class OpenTable:
    """An open table: the names of its columns, and a function from selected names to batches.

    `is_text`: it is a text file, whose separator may not be the expected one.
    """

    names: tuple[str, ...]
    batches: Callable[[list[str]], Iterator[Any]]
    is_text: bool = False


def open_files(path: StoragePath, file_format: FileFormat, table: str, stack: ExitStack) -> OpenTable:
    """Open a file, or a folder of Parquet files, until the stack closes.

    Errors of the readers pass through; they may quote a record.
    """
    if file_format.format in DELIMITERS:
        return _open_text(path, file_format, table, stack)
    if file_format.format == "arrow":
        return _open_arrow(path, stack)
    return _open_parquet(path, table, stack)


def _open_text(path: StoragePath, file_format: FileFormat, table: str, stack: ExitStack) -> OpenTable:
    from pyarrow import csv

    parse = csv.ParseOptions(delimiter=file_format.delimiter, newlines_in_values=True)
    read = csv.ReadOptions(block_size=_BLOCK)

    def stream() -> Any:
        file = stack.enter_context(path.open_file(path.path))
        if file_format.codec is None:
            return file
        return pa.CompressedInputStream(pa.PythonFile(file), file_format.codec)

    def batches(columns: list[str]) -> Iterator[Any]:
        convert = csv.ConvertOptions(
            column_types=dict.fromkeys(columns, pa.dictionary(pa.int32(), pa.string())),
            include_columns=columns,
            null_values=[""],
            strings_can_be_null=True,
        )
        with csv.open_csv(
            stream(), read_options=read, parse_options=parse, convert_options=convert
        ) as reader:
            yield from _write_points(reader, table) if file_format.text.decimal == "," else reader

    with csv.open_csv(stream(), read_options=read, parse_options=parse) as reader:
        names = tuple(reader.schema.names)
    return OpenTable(names, batches, is_text=True)


def _write_points(batches: Iterable[Any], table: str) -> Iterator[Any]:
    """Yield batches of text with a point for the comma of each number that has a decimal comma.

    Raise InputError if a column has numbers with points, too: those may separate thousands.
    """
    with_comma: set[str] = set()
    with_point: set[str] = set()
    for batch in batches:
        columns = []
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            levels = column.dictionary
            if pc.any(pc.match_substring_regex(levels, DECIMAL_COMMA)).as_py():
                with_comma.add(name)
            if pc.any(pc.match_substring_regex(levels, DECIMAL_POINT)).as_py():
                with_point.add(name)
            is_grouped = pc.any(pc.match_substring_regex(levels, GROUPED_BY_POINTS)).as_py()
            if is_grouped or name in with_comma & with_point:
                raise InputError(
                    f"{table}: column {name!r} has numbers with a decimal comma, and numbers with a point: "
                    "write all of them alike, without separators of thousands."
                )
            written = pc.replace_substring_regex(levels, DECIMAL_COMMA, r"\1.\2")
            columns.append(pa.DictionaryArray.from_arrays(column.indices, written))
        yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _open_arrow(path: StoragePath, stack: ExitStack) -> OpenTable:
    from pyarrow import ipc

    file = stack.enter_context(path.open_file(path.path))
    names = tuple(_open_ipc(file, None).schema.names)

    def batches(columns: list[str]) -> Iterator[Any]:
        file.seek(0)
        options = ipc.IpcReadOptions(included_fields=[names.index(name) for name in columns])
        reader = _open_ipc(file, options)
        if isinstance(reader, ipc.RecordBatchStreamReader):
            yield from reader
        else:
            for i in range(reader.num_record_batches):
                yield reader.get_batch(i)

    return OpenTable(names, batches)


def _open_ipc(file: Any, options: Any) -> Any:
    """Open an Arrow file or an Arrow stream: both have the same suffix."""
    from pyarrow import ipc

    try:
        return ipc.open_file(file, options=options)
    except pa.ArrowInvalid:
        file.seek(0)
    return ipc.open_stream(file, options=options)


def _open_parquet(path: StoragePath, table: str, stack: ExitStack) -> OpenTable:
    import pyarrow.parquet as pq

    files = path.files()
    partitions = find_partitions(path, files, table)
    others = [file.path for file in files if find_suffix(file.path) != ".parquet"] if len(files) > 1 else []
    if not files or others:
        problem = "files that are not Parquet" if files else "no Parquet file"
        by = f" partitioned by {', '.join(partitions)}" if partitions else ""
        raise InputError(f"{table}: the folder {path.name!r}{by} holds {problem}: expected .parquet files.")
    schema = None
    for file in files:
        with path.open_file(file.path) as opened:
            file_schema = pq.read_schema(opened)
        if schema is not None and not file_schema.equals(schema):
            raise InputError(
                f"{table}: the files of the folder {path.name!r} differ in their columns or types."
            )
        schema = file_schema
    assert schema is not None
    in_both = [name for name in partitions if name in schema.names]
    if in_both:
        raise InputError(
            f"{table}: the folder {path.name!r} is partitioned by {', '.join(in_both)}, also a column of its "
            "files: remove it from either."
        )
    text = [field.name for field in schema if is_text(field.type)]

    def batches(columns: list[str]) -> Iterator[Any]:
        in_files = [name for name in columns if name not in partitions]
        for number, file in enumerate(files):
            opened = stack.enter_context(path.open_file(file.path))
            reader = pq.ParquetFile(opened, read_dictionary=[name for name in text if name in in_files])
            if in_files == columns:
                if columns:
                    yield from reader.iter_batches(batch_size=_ROWS, columns=columns)
                continue
            # Columns of the folders' names alone take no reading, but need the number of records.
            parts = (
                reader.iter_batches(batch_size=_ROWS, columns=in_files)
                if in_files
                else (pa.nulls(rows) for rows in _split(reader.metadata.num_rows))
            )
            for part in parts:
                arrays = [
                    part.column(name) if name in in_files else partitions[name].repeat(number, len(part))
                    for name in columns
                ]
                yield pa.RecordBatch.from_arrays(arrays, names=columns)

    return OpenTable((*schema.names, *partitions), batches)


def _split(records: int) -> Iterator[int]:
    """Yield the numbers of records of batches."""
    for start in range(0, records, _ROWS):
        yield min(_ROWS, records - start)


_PARTITION = re.compile(r"([^=]+)=(.*)")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")


@dataclass(frozen=True)
class Partition:
    """A column whose values are in the names of folders: an Arrow array with one entry for each file."""

    values: Any

    def repeat(self, file: int, records: int) -> Any:
        """Return the value of a file, repeated."""
        value = self.values.slice(file, 1).drop_null()
        # Dictionaries with a missing entry cannot be joined.
        codes = pa.array(np.zeros(records, dtype=np.int32)) if len(value) else pa.nulls(records, pa.int32())
        return pa.DictionaryArray.from_arrays(codes, value)


def find_partitions(path: StoragePath, files: Sequence[Entry], table: str) -> dict[str, Partition]:
    """Return the columns that a folder is partitioned by, from names of folders such as "year=2019".

    They hold whole numbers, if all values are written as such, else text; a folder without a value means
    missing. Raise InputError if folders have other names, or do not agree in their columns: no column may be
    left out unnoticed.
    """
    rows: list[dict[str, str]] = []
    for file in files if path.is_folder() else ():
        folders = file.inside.split("/")[:-1]
        matches = [_PARTITION.fullmatch(folder) for folder in folders]
        row = {unquote(match[1]): unquote(match[2]) for match in matches if match is not None}
        if len(row) < len(folders) or (rows and list(row) != list(rows[0])):
            raise InputError(
                f"{table}: the folder {path.name!r} holds folders that are not all partitions by the same "
                "columns: expected files alone, or folders such as year=2019 for each of them."
            )
        rows.append(row)
    return {name: Partition(_read_partition([row[name] for row in rows])) for name in (rows or [{}])[0]}


def _read_partition(values: Sequence[str]) -> Any:
    present = [None if value == _NO_VALUE else value for value in values]
    if all(value is None or _WHOLE_NUMBER.fullmatch(value) for value in present) and any(present):
        return pa.array([None if value is None else int(value) for value in present], pa.int64())
    return pa.array(present, pa.string())


_DATABASE_ROWS = 1 << 16


def open_sql(
    url: str, table: str | None, schema: str | None, query: str | None, stack: ExitStack
) -> OpenTable:
    """Open a table or query of an SQL database. The driver's errors, which may hold secrets, pass through."""
    import sqlalchemy as sa

    # A single connection, closed with the stack, so that no pool keeps the credentials.
    engine = sa.create_engine(url, poolclass=sa.pool.NullPool, hide_parameters=True)
    connection = stack.enter_context(engine.connect())
    source: Any = (
        sa.table(table, schema=schema) if table is not None else sa.text(f"({_strip_query(query)}) AS source")
    )
    empty = connection.execute(sa.select(sa.text("*")).select_from(source).where(sa.text("1 = 0")))
    names = tuple(empty.keys())
    empty.close()

    def batches(columns: list[str]) -> Iterator[Any]:
        chosen: Any = sa.select(*(sa.column(name) for name in columns)).select_from(source)
        streaming = connection.execution_options(stream_results=True, max_row_buffer=_DATABASE_ROWS)
        for rows in streaming.execute(chosen).partitions(_DATABASE_ROWS):
            yield pa.table(list(map(_make_array, columns, zip(*rows, strict=True))), columns)

    return OpenTable(names, batches)


def open_duckdb(path: str, table: str | None, query: str | None, stack: ExitStack) -> OpenTable:
    """Open a table or a query of a DuckDB file, for reading only."""
    import duckdb

    connection = stack.enter_context(duckdb.connect(path, read_only=True))
    source = _quote(table) if table is not None else f"({_strip_query(query)}) AS source"
    names = tuple(connection.sql(f"SELECT * FROM {source} LIMIT 0").columns)

    def batches(columns: list[str]) -> Iterator[Any]:
        chosen = ", ".join(map(_quote, columns))
        relation: Any = connection.sql(f"SELECT {chosen} FROM {source}")
        # fetch_arrow_reader up to DuckDB 1.4.
        reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
        yield from reader(_DATABASE_ROWS)

    return OpenTable(names, batches)


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _strip_query(query: str | None) -> str:
    return (query or "").strip().rstrip(";")


def _make_array(name: str, values: Sequence[Any]) -> Any:
    if any(isinstance(value, uuid.UUID) for value in values):
        values = [str(value) if isinstance(value, uuid.UUID) else value for value in values]
    try:
        return arrow_array(values)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        pass
    raise InputError(f"Column {name!r} holds values of several kinds: give it one type.")
