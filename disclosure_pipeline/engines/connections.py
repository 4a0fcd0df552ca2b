"""Databases that Ibis reaches: connecting, tables that are there or are brought there, and what comes back.

No error of a driver gets out: its message may quote a record or a password.
"""

from __future__ import annotations

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
import pyarrow.parquet as pq

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.tables.encoding import arrow_array
from disclosure_pipeline.tables.locations import redacted

Result = TypeVar("Result")

_SPARK = "pyspark"
_READ_FILES = ("duckdb", _SPARK)
_MASTERS = ("local", "yarn", "k8s", "mesos")  # what a Spark master may begin with, beside a host
_ROWS = 1 << 16


def asked(what: str, question: Callable[[], Result]) -> Result:
    """The answer of a database. InputError beginning with `what` where it raises, without its own words."""
    try:
        return question()
    except InputError as error:
        told = str(error)
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        told = f"{what}: the package {package} is needed: {_extra(package)}."
    except Exception as error:  # of whatever driver
        told = f"{what} ({type(error).__name__})."
    # Outside the except block: the driver's own error, which may quote a record, is not carried along.
    raise InputError(told)


def _extra(package: str) -> str:
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
    shown = redacted(url)
    if "://" not in url:
        raise InputError(f"{shown!r} is no URL of a database: expected one such as duckdb:///path/to/file.")
    open_url = _connect_spark if url.startswith(f"{_SPARK}://") else _connect
    return asked(f"{shown!r} cannot be connected to", partial(open_url, url))


@contextmanager
def connected(url: str) -> Iterator[Any]:
    """A connection as `connect` makes it, closed after the block; a Spark session goes on."""
    backend = connect(url)
    try:
        yield backend
    finally:
        if backend.name != _SPARK:
            backend.disconnect()


@contextmanager
def opened_table(backend: Any, source: Any, what: str) -> Iterator[Any]:
    """A table as `open_table` opens it; what it brought to the database is gone after the block."""
    table = open_table(backend, source, what)
    try:
        yield table
    finally:
        if table is not source and not isinstance(source, str):
            if backend.name == _SPARK:
                backend.raw_sql("SELECT 1").sparkSession.catalog.dropTempView(table.op().name)
            else:
                view = isinstance(source, Path) and backend.name in _READ_FILES
                drop = backend.drop_view if view else backend.drop_table
                drop(table.op().name, force=True)


def _connect(url: str) -> Any:
    import ibis

    return ibis.connect(url)


def _connect_spark(url: str) -> Any:
    import ibis
    from pyspark.sql import SparkSession

    # Ibis does not look at the master, and Python's urllib takes its brackets for those of an address.
    master, _, options = url.partition("://")[2].partition("?")
    master = master.rstrip("/")
    builder = SparkSession.builder
    if master:
        builder = builder.master(master if master.startswith(_MASTERS) else f"spark://{master}")
    for name, value in parse_qsl(options):
        builder = builder.config(name, value)
    return ibis.pyspark.connect(builder.getOrCreate())


def open_table(backend: Any, source: Any, what: str) -> Any:
    """A table of Ibis: `what` names it in messages.

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
        refused = f"{what}: the database has no table {source!r} that can be read"
        return asked(refused, partial(backend.table, name, database=schema or None))
    if isinstance(source, Path):
        refused = f"{what}: {source.name!r} cannot be read or brought to the database"
        return asked(refused, partial(_open_parquet, backend, source))
    refused = f"{what} cannot be brought to the database"
    if isinstance(source, pd.DataFrame):
        source = pa.table({name: _arrow_column(source, name, what) for name in source.columns})
    if isinstance(source, pa.Table):
        return asked(refused, partial(_bring, backend, source.schema, [source]))
    raise InputError(
        f"{what} must be the name of a table, a path of Parquet, a data frame or an Arrow table, "
        f"not {type(source).__name__}."
    )


def _arrow_column(frame: pd.DataFrame, name: Any, what: str) -> Any:
    try:
        return arrow_array(frame[name])
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        pass
    raise InputError(f"{what}: column {name!r} holds values of several kinds: give it one type.")


def _open_parquet(backend: Any, path: Path) -> Any:
    if backend.name in _READ_FILES:
        return backend.read_parquet(
            path / "*.parquet" if path.is_dir() and backend.name == "duckdb" else path
        )
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    opened = [pq.ParquetFile(file) for file in files]
    batches = (
        pa.Table.from_batches([batch]) for file in opened for batch in file.iter_batches(batch_size=_ROWS)
    )
    return _bring(backend, opened[0].schema_arrow, batches)


def _bring(backend: Any, schema: Any, batches: Iterable[Any]) -> Any:
    """A temporary table of the batches."""
    import ibis

    name = _new_name()
    plain = pa.schema([(field.name, _plain(field.type)) for field in schema])
    if backend.name == _SPARK:
        data = pa.concat_tables([batch.cast(plain) for batch in batches])
        backend.raw_sql("SELECT 1").sparkSession.createDataFrame(data).createTempView(name)
        return backend.table(name)
    try:
        table = backend.create_table(name, schema=ibis.Schema.from_pyarrow(plain), temp=True)
        for batch in batches:
            with uploaded(backend, batch.cast(plain)) as rows:
                backend.insert(name, rows)
    except BaseException:
        backend.drop_table(name, force=True)
        raise
    return table


def _plain(kind: Any) -> Any:
    """A type that databases have: no dictionary, and text for a column of nothing but nulls."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.string() if pa.types.is_null(kind) else kind


@contextmanager
def uploaded(backend: Any, data: Any) -> Iterator[Any]:
    """A small Arrow table in the database, for as long as it is needed."""
    import ibis

    if backend.name == _SPARK:
        name = _new_name()
        session = backend.raw_sql("SELECT 1").sparkSession
        session.createDataFrame(data).createTempView(name)
        try:
            yield backend.table(name)
        finally:
            session.catalog.dropTempView(name)
        return
    table = ibis.memtable(data)
    try:
        yield table
    finally:
        # Ibis brings it there when it is asked for, and would leave it there until the process ends.
        drop = backend.drop_view if backend.name == "duckdb" else backend.drop_table
        drop(table.op().name, force=True)


@contextmanager
def stored(table: Any) -> Iterator[Any]:
    """What an expression finds, kept in the database for as long as it is needed."""
    backend = table.get_backend()
    if backend.name == _SPARK:
        with table.cache() as kept:
            yield kept
        return
    name = _new_name()
    try:
        yield backend.create_table(name, table, temp=True)
    finally:  # also where it could be made, but not filled
        backend.drop_table(name, force=True)


def fetched(table: Any) -> Any:
    """The rows as an Arrow table."""
    backend = table.get_backend()
    if backend.name == _SPARK:  # by way of pandas, as Ibis does it, integers beside a NULL become floats
        return backend.raw_sql(backend.compile(table)).toArrow()
    return table.to_pyarrow()


def numbers(table: Any) -> Mapping[str, IntArray]:
    """The rows as 64-bit integers, column by column."""
    found = fetched(table)
    return {name: np.asarray(found.column(name).cast(pa.int64())) for name in found.column_names}


def _new_name() -> str:
    return f"disclosure_{uuid.uuid4().hex}"
