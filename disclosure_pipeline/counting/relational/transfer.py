"""Connections to databases, temporary tables in them, and rows fetched from them."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.tables.encoding import arrow_array
from disclosure_pipeline.tables.files import redact_location

Result = TypeVar("Result")

SPARK = "pyspark"

_MASTERS = ("local", "yarn", "k8s", "mesos")  # beginnings of a Spark master that is not a host


def run_query(action: str, query: Callable[[], Result]) -> Result:
    """Run a query of a database; if it fails, raise an InputError that begins with `action`.

    The message leaves out the driver's own text, which may quote a record. An interrupt of which a driver
    makes an error of its own, as DuckDB does, stays an interrupt.
    """
    is_interrupt = False
    try:
        return query()
    except InputError as error:
        message = str(error)
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        message = f"{action}: the package {package} is missing: {_how_to_install(package)}."
    except Exception as error:  # of any driver
        is_interrupt = isinstance(error.__cause__, KeyboardInterrupt)
        message = f"{action} ({type(error).__name__})."
    # Outside the except block, so that the driver's error is not its context.
    if is_interrupt:
        raise KeyboardInterrupt
    raise InputError(message)


def run_queries(action: str, queries: Generator[Result, None, None]) -> Iterator[Result]:
    """Yield what a generator of queries does, each as `run_query` runs it; close it in the end."""
    with closing(queries):
        while (answer := run_query(action, partial(next, queries, None))) is not None:
            yield answer


def _how_to_install(package: str) -> str:
    if package in {"pyspark", "py4j"}:
        return "install disclosure-pipeline[spark]"
    if package in {"ibis", "sqlglot", "duckdb", "psycopg"}:
        return "install disclosure-pipeline[ibis]"
    return "install it, or ibis-framework with the extra for this database"


def connect(url: str) -> Any:
    """Connect Ibis to a URL: duckdb://, duckdb:///file, postgres://user:password@host/database.

    pyspark://local[2] names the master of a Spark session; pyspark:// takes the current session, or a new
    one; parameters after a question mark configure it. Raise InputError if a package is missing or nothing
    answers; its message has neither the password nor the driver's text.
    """
    redacted_url = redact_location(url)
    if "://" not in url:
        raise InputError(
            f"{redacted_url!r} is not the URL of a database: expected one such as duckdb:///path/to/file."
        )
    return run_query(f"Cannot connect to {redacted_url!r}", partial(_connect, url))


def _connect(url: str) -> Any:
    import ibis

    if not url.startswith(f"{SPARK}://"):
        return ibis.connect(url)
    from pyspark.sql import SparkSession

    # Ibis ignores the master, and urllib takes its brackets for those of an IPv6 address.
    master, _, options = url.partition("://")[2].partition("?")
    master = master.rstrip("/")
    if master.startswith("local"):  # executors run on this machine: let them have this Python's packages
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder
    if master:
        builder = builder.master(master if master.startswith(_MASTERS) else f"spark://{master}")
    for name, value in parse_qsl(options):
        builder = builder.config(name, value)
    return ibis.pyspark.connect(builder.getOrCreate())


def spark_session(backend: Any) -> Any:
    """Return the Spark session of a connection."""
    return backend.raw_sql("SELECT 1").sparkSession


_BATCH_RECORDS = 1 << 16
_ESCAPED = (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r"))  # the backslash first
_NULL = "\\N"


def copy_rows(connection: Any, table_name: str, rows: Any) -> None:
    """Append all rows of an Arrow table, or none, to a table that has its columns.

    `connection` is one of psycopg, whose errors pass through. Raise pa.ArrowInvalid for times with more than
    the six decimals of a second that PostgreSQL keeps.
    """
    from psycopg import sql

    columns = sql.SQL(", ").join(map(sql.Identifier, rows.column_names))
    # The rows are UTF-8, whatever the connection's encoding.
    statement = sql.SQL("COPY {} ({}) FROM STDIN (ENCODING 'UTF8')").format(
        sql.Identifier(table_name), columns
    )
    can_be_text = all(_can_be_text(column.type) for column in rows.columns)
    with connection.transaction(), connection.cursor() as cursor, cursor.copy(statement) as copy:
        for batch in rows.to_batches(max_chunksize=_BATCH_RECORDS):
            if can_be_text:
                copy.write(copy_text(batch))
            else:
                for row in batch.to_pylist():
                    copy.write_row(tuple(row.values()))


def copy_text(batch: Any) -> memoryview:
    """Return a record batch in the text format of COPY: a line for each row, with tabs between values."""
    nothing, tab, newline = (pa.scalar(text, pa.large_string()) for text in ("", "\t", "\n"))
    texts = [_write_as_text(column) for column in batch.columns]
    texts[-1] = pc.binary_join_element_wise(texts[-1], newline, nothing)
    lines = pc.binary_join_element_wise(*texts, tab)
    size = pc.sum(pc.binary_length(lines)).as_py() or 0
    return memoryview(lines.buffers()[2] or b"")[:size]  # this buffer has the lines one after the other


def _can_be_text(arrow_type: Any) -> bool:
    """Return whether PostgreSQL reads values of this type as Arrow writes them."""
    kinds = (
        *(pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal),
        *(pa.types.is_string, pa.types.is_large_string, pa.types.is_date, pa.types.is_timestamp),
    )
    return any(is_kind(arrow_type) for is_kind in kinds)


def _write_as_text(column: Any) -> Any:
    """Return the values of a column as text for COPY, NULL included."""
    if pa.types.is_timestamp(column.type):
        zone = None if column.type.tz is None else "UTC"
        column = column.cast(pa.timestamp("us", zone))
    text = column.cast(pa.large_string())
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        for character, escaped in _ESCAPED:
            text = pc.replace_substring(text, character, escaped)
    return text.fill_null(_NULL)


_DUCKDB, _POSTGRES = "duckdb", "postgres"


@contextmanager
def borrow_table(backend: Any, source: Any, table_name: str) -> Iterator[Any]:
    """Open a table as `open_table` does; if it was uploaded to the database, drop it after the block."""
    table = open_table(backend, source, table_name)
    try:
        yield table
    finally:
        if table is not source and not isinstance(source, str):
            _drop(backend, table, is_view=isinstance(source, Path) and backend.name == _DUCKDB)


def _drop(backend: Any, table: Any, *, is_view: bool) -> None:
    name = table.op().name
    if backend.name == SPARK:
        spark_session(backend).catalog.dropTempView(name)
    elif is_view:
        backend.drop_view(name, force=True)
    else:
        backend.drop_table(name, force=True)


def open_table(backend: Any, source: Any, table_name: str) -> Any:
    """Return an Ibis table, which messages call `table_name`.

    `source` is the name of a table ("table" or "schema.table"), the path of a Parquet file or of a folder of
    them, a data frame, an Arrow table, or an Ibis table, which is returned unchanged. DuckDB and Spark read
    files in place; anything else becomes a temporary table, which ends with the connection. Raise InputError
    if there is no such table or it cannot be uploaded.
    """
    import ibis.expr.types as ir

    if isinstance(source, ir.Table):
        return source
    if isinstance(source, str):
        schema, _, name = source.rpartition(".")
        action = f"{table_name}: the database has no table {source!r} that can be read"
        return run_query(action, partial(backend.table, name, database=schema or None))
    if isinstance(source, Path):
        action = f"{table_name}: {source.name!r} cannot be read or uploaded to the database"
        return run_query(action, partial(_open_parquet, backend, source))
    if isinstance(source, pd.DataFrame):
        columns = {column: _arrow_column(source, column, table_name) for column in source.columns}
        source = pa.table(columns)
    if isinstance(source, pa.Table):
        action = f"{table_name} cannot be uploaded to the database"
        return run_query(action, partial(_create_table, backend, source.schema, [source]))
    raise InputError(
        f"{table_name} must be the name of a table, the path of Parquet, a data frame or an Arrow table, "
        f"not {type(source).__name__}."
    )


def _arrow_column(frame: pd.DataFrame, column: Any, table_name: str) -> Any:
    try:
        return arrow_array(frame[column])
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        pass
    raise InputError(f"{table_name}: column {column!r} holds values of several kinds: give it one type.")


def _open_parquet(backend: Any, path: Path) -> Any:
    if backend.name == SPARK:
        return backend.read_parquet(path)
    if backend.name == _DUCKDB:
        # It would add columns for folders above the path whose names have an equals sign.
        return backend.read_parquet(path / "*.parquet" if path.is_dir() else path, hive_partitioning=False)
    import pyarrow.parquet as pq

    paths = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    files = [pq.ParquetFile(file) for file in paths]
    batches = (
        pa.Table.from_batches([batch])
        for file in files
        for batch in file.iter_batches(batch_size=_BATCH_RECORDS)
    )
    return _create_table(backend, files[0].schema_arrow, batches)


def _create_table(backend: Any, schema: Any, batches: Iterable[Any]) -> Any:
    """Create a temporary table of the batches."""
    import ibis

    name = _new_name()
    plain = pa.schema([(field.name, _plain_type(field.type)) for field in schema])
    if backend.name == SPARK:
        rows = pa.concat_tables([batch.cast(plain) for batch in batches])
        spark_session(backend).createDataFrame(rows).createTempView(name)
        return backend.table(name)
    try:
        table = backend.create_table(name, schema=ibis.Schema.from_pyarrow(plain), temp=True)
        for batch in batches:
            rows = batch.cast(plain)
            if backend.name == _POSTGRES:
                copy_rows(backend.con, name, rows)
                continue
            with upload_temporarily(backend, rows) as uploaded:
                backend.insert(name, uploaded)
    except BaseException:
        backend.drop_table(name, force=True)
        raise
    return table


def _plain_type(arrow_type: Any) -> Any:
    """Return a type that databases have: no dictionaries, and text for columns of nulls only."""
    if pa.types.is_dictionary(arrow_type):
        arrow_type = arrow_type.value_type
    return pa.string() if pa.types.is_null(arrow_type) else arrow_type


@contextmanager
def upload_temporarily(backend: Any, rows: Any) -> Iterator[Any]:
    """Upload a small Arrow table to the database, and drop it after the block."""
    import ibis

    if backend.name in {SPARK, _POSTGRES}:
        table = _create_table(backend, rows.schema, [rows])
    else:
        table = ibis.memtable(rows)
    try:
        yield table
    finally:
        # Ibis uploads a memtable on first use, and would leave it there until the process ends.
        _drop(backend, table, is_view=backend.name == _DUCKDB)


@contextmanager
def store_temporarily(table: Any) -> Iterator[Any]:
    """Store the rows of an expression in the database, and drop them after the block."""
    backend = table.get_backend()
    if backend.name == SPARK:
        with table.cache() as kept:
            yield kept
        return
    name = _new_name()
    try:
        yield backend.create_table(name, table, temp=True)
    finally:  # even if the table was created but not filled
        backend.drop_table(name, force=True)


def as_spark_frame(table: Any) -> Any:
    """Return an expression over Spark tables as a Spark data frame."""
    backend = table.get_backend()
    return backend.raw_sql(backend.compile(table))


def fetch_rows(table: Any) -> Any:
    """Return the rows of an expression as an Arrow table."""
    if table.get_backend().name == SPARK:
        # Ibis goes through pandas, which turns integers beside a NULL into floats.
        return as_spark_frame(table).toArrow()
    return table.to_pyarrow()


def fetch_integers(table: Any) -> Mapping[str, IntArray]:
    """Fetch the rows of an expression as 64-bit integers by column. Raise ValueError if one is NULL."""
    return read_integers(fetch_rows(table))


def read_integers(rows: Any) -> Mapping[str, IntArray]:
    """Return an Arrow table as 64-bit integers by column. Raise ValueError if one is NULL."""
    if any(column.null_count for column in rows.columns):  # NumPy would turn the column into floats
        raise ValueError("The database returned NULL for an integer.")
    return {name: np.asarray(rows.column(name).cast(pa.int64())) for name in rows.column_names}


def _new_name() -> str:
    return f"disclosure_{uuid.uuid4().hex}"
