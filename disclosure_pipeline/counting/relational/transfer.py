"""Connections to databases, and what is brought to one, kept there for a while and fetched from it."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
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

_MASTERS = ("local", "yarn", "k8s", "mesos")  # what a Spark master may begin with, beside a host


def run_query(action: str, query: Callable[[], Result]) -> Result:
    """The answer of a database. InputError beginning with `action` where it raises, without its own words."""
    try:
        return query()
    except InputError as error:
        message = str(error)
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        message = f"{action}: the package {package} is needed: {_how_to_install(package)}."
    except Exception as error:  # of whatever driver
        message = f"{action} ({type(error).__name__})."
    # Outside the except block: the driver's own error, which may quote a record, is not carried along.
    raise InputError(message)


def _how_to_install(package: str) -> str:
    if package in {"pyspark", "py4j"}:
        return "install disclosure-pipeline[spark]"
    if package in {"ibis", "sqlglot", "duckdb", "psycopg"}:
        return "install disclosure-pipeline[ibis]"
    return "install it, or ibis-framework with the extra for this database"


def connect(url: str) -> Any:
    """A connection of Ibis from a URL: duckdb://, duckdb:///file, postgres://user:password@host/database.

    pyspark://local[2] names the master of a Spark session; pyspark:// is the session that there is, or a new
    one; what follows a question mark configures it. Raises InputError where a package is missing or nothing
    answers; it tells neither the password nor what the driver says.
    """
    redacted_url = redact_location(url)
    if "://" not in url:
        raise InputError(
            f"{redacted_url!r} is no URL of a database: expected one such as duckdb:///path/to/file."
        )
    open_url = _connect_spark if url.startswith(f"{SPARK}://") else _connect
    return run_query(f"{redacted_url!r} cannot be connected to", partial(open_url, url))


@contextmanager
def open_connection(url: str) -> Iterator[Any]:
    """Return a connection as `connect` makes it, closed after the block; a Spark session goes on."""
    backend = connect(url)
    try:
        yield backend
    finally:
        if backend.name != SPARK:
            backend.disconnect()


def _connect(url: str) -> Any:
    import ibis

    return ibis.connect(url)


def _connect_spark(url: str) -> Any:
    import ibis
    from pyspark.sql import SparkSession

    # Ibis does not look at the master, and Python's urllib takes its brackets for those of an address.
    master, _, options = url.partition("://")[2].partition("?")
    master = master.rstrip("/")
    if master.startswith("local"):  # executors are on this machine, and have the packages of this Python
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
    """Append the rows of an Arrow table to a table that has its columns, all of them or none.

    `connection` is one of psycopg. Raises what it raises, and pa.ArrowInvalid for times that have more than
    the six digits of a second that PostgreSQL keeps.
    """
    from psycopg import sql

    columns = sql.SQL(", ").join(map(sql.Identifier, rows.column_names))
    # What is sent is UTF-8, whatever encoding the connection has for all else.
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
    """Return a record batch in the text format of COPY: a line for each row, its values between tabs."""
    nothing, tab, newline = (pa.scalar(text, pa.large_string()) for text in ("", "\t", "\n"))
    texts = [_write_as_text(column) for column in batch.columns]
    texts[-1] = pc.binary_join_element_wise(texts[-1], newline, nothing)
    lines = pc.binary_join_element_wise(*texts, tab)
    size = pc.sum(pc.binary_length(lines)).as_py() or 0
    return memoryview(lines.buffers()[2] or b"")[:size]  # the lines lie there one after the other


def _can_be_text(arrow_type: Any) -> bool:
    """Return whether Arrow writes values of a type as PostgreSQL reads them."""
    kinds = (
        *(pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal),
        *(pa.types.is_string, pa.types.is_large_string, pa.types.is_date, pa.types.is_timestamp),
    )
    return any(is_kind(arrow_type) for is_kind in kinds)


def _write_as_text(column: Any) -> Any:
    """Return the values of a column as COPY has them, NULL included."""
    if pa.types.is_timestamp(column.type):
        zone = None if column.type.tz is None else "UTC"
        column = column.cast(pa.timestamp("us", zone))
    text = column.cast(pa.large_string())
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        for character, escaped in _ESCAPED:
            text = pc.replace_substring(text, character, escaped)
    return text.fill_null(_NULL)


_POSTGRES = "postgres"
_READ_PARQUET = ("duckdb", SPARK)


@contextmanager
def borrow_table(backend: Any, source: Any, table_name: str) -> Iterator[Any]:
    """Return a table as `open_table` opens it; what that brought to the database is gone after the block."""
    table = open_table(backend, source, table_name)
    try:
        yield table
    finally:
        if table is not source and not isinstance(source, str):
            if backend.name == SPARK:
                spark_session(backend).catalog.dropTempView(table.op().name)
            else:
                is_view = isinstance(source, Path) and backend.name in _READ_PARQUET
                drop = backend.drop_view if is_view else backend.drop_table
                drop(table.op().name, force=True)


def open_table(backend: Any, source: Any, table_name: str) -> Any:
    """Return a table of Ibis, which messages call `table_name`.

    `source` is the name of a table ("table" or "schema.table"), the path of a Parquet file or of a folder of
    them, a data frame, an Arrow table, or a table of Ibis, which stays as it is. A file is read where it lies
    by a database that can; what is not in the database otherwise becomes a temporary table there, which ends
    with the connection. Raises InputError where there is no such table or it cannot be brought there.
    """
    import ibis.expr.types as ir

    if isinstance(source, ir.Table):
        return source
    if isinstance(source, str):
        schema, _, name = source.rpartition(".")
        action = f"{table_name}: the database has no table {source!r} that can be read"
        return run_query(action, partial(backend.table, name, database=schema or None))
    if isinstance(source, Path):
        action = f"{table_name}: {source.name!r} cannot be read or brought to the database"
        return run_query(action, partial(_open_parquet, backend, source))
    if isinstance(source, pd.DataFrame):
        columns = {column: _arrow_column(source, column, table_name) for column in source.columns}
        source = pa.table(columns)
    if isinstance(source, pa.Table):
        action = f"{table_name} cannot be brought to the database"
        return run_query(action, partial(_create_table, backend, source.schema, [source]))
    raise InputError(
        f"{table_name} must be the name of a table, a path of Parquet, a data frame or an Arrow table, "
        f"not {type(source).__name__}."
    )


def _arrow_column(frame: pd.DataFrame, column: Any, table_name: str) -> Any:
    try:
        return arrow_array(frame[column])
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        pass
    raise InputError(f"{table_name}: column {column!r} holds values of several kinds: give it one type.")


def _open_parquet(backend: Any, path: Path) -> Any:
    if backend.name in _READ_PARQUET:
        is_folder = path.is_dir() and backend.name == "duckdb"
        return backend.read_parquet(path / "*.parquet" if is_folder else path)
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
    """Return a temporary table of the batches."""
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
            _append(backend, name, batch.cast(plain))
    except BaseException:
        backend.drop_table(name, force=True)
        raise
    return table


def _append(backend: Any, name: str, rows: Any) -> None:
    if backend.name == _POSTGRES:
        copy_rows(backend.con, name, rows)
        return
    with upload_temporarily(backend, rows) as uploaded:
        backend.insert(name, uploaded)


def _plain_type(arrow_type: Any) -> Any:
    """Return a type that databases have: no dictionary, and text for a column of nothing but nulls."""
    if pa.types.is_dictionary(arrow_type):
        arrow_type = arrow_type.value_type
    return pa.string() if pa.types.is_null(arrow_type) else arrow_type


@contextmanager
def upload_temporarily(backend: Any, rows: Any) -> Iterator[Any]:
    """Return a small Arrow table in the database, for as long as the block runs."""
    import ibis

    if backend.name == SPARK:
        name = _new_name()
        session = spark_session(backend)
        session.createDataFrame(rows).createTempView(name)
        try:
            yield backend.table(name)
        finally:
            session.catalog.dropTempView(name)
        return
    if backend.name == _POSTGRES:
        table = _create_table(backend, rows.schema, [rows])
        try:
            yield table
        finally:
            backend.drop_table(table.op().name, force=True)
        return
    table = ibis.memtable(rows)
    try:
        yield table
    finally:
        # Ibis brings it there on first use, and would leave it there until the process ends.
        drop = backend.drop_view if backend.name == "duckdb" else backend.drop_table
        drop(table.op().name, force=True)


@contextmanager
def store_temporarily(table: Any) -> Iterator[Any]:
    """Return the rows of an expression, kept in the database for as long as the block runs."""
    backend = table.get_backend()
    if backend.name == SPARK:
        with table.cache() as kept:
            yield kept
        return
    name = _new_name()
    try:
        yield backend.create_table(name, table, temp=True)
    finally:  # also where it could be made, but not filled
        backend.drop_table(name, force=True)


def as_spark_frame(table: Any) -> Any:
    """Return an expression over tables of Spark as a data frame of Spark."""
    backend = table.get_backend()
    return backend.raw_sql(backend.compile(table))


def fetch_rows(table: Any) -> Any:
    """Return the rows of an expression as an Arrow table."""
    if table.get_backend().name == SPARK:
        # By way of pandas, as Ibis does it, integers beside a NULL become floats.
        return as_spark_frame(table).toArrow()
    return table.to_pyarrow()


def fetch_integers(table: Any) -> Mapping[str, IntArray]:
    """Return the rows of an expression as 64-bit integers, column by column. ValueError where one is NULL."""
    return read_integers(fetch_rows(table))


def read_integers(rows: Any) -> Mapping[str, IntArray]:
    """Return an Arrow table as 64-bit integers, column by column. ValueError where one is NULL."""
    if any(column.null_count for column in rows.columns):  # NumPy would make floats of them all
        raise ValueError("An integer that was asked for is NULL.")
    return {name: np.asarray(rows.column(name).cast(pa.int64())) for name in rows.column_names}


def _new_name() -> str:
    return f"disclosure_{uuid.uuid4().hex}"
