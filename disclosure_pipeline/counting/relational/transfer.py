"""What is brought to a database and taken away again, what it keeps for a while, and what comes back."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from disclosure_pipeline.counting.relational.connections import SPARK, run_query, spark_session
from disclosure_pipeline.counting.relational.copying import copy_rows
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.tables.encoding import arrow_array

_POSTGRES = "postgres"
_READ_PARQUET = ("duckdb", SPARK)
_BATCH_RECORDS = 1 << 16


@contextmanager
def borrow_table(backend: Any, source: Any, table_name: str) -> Iterator[Any]:
    """A table as `open_table` opens it; what that brought to the database is gone after the block."""
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
    """A table of Ibis, which messages call `table_name`.

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
    paths = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    files = [pq.ParquetFile(file) for file in paths]
    batches = (
        pa.Table.from_batches([batch])
        for file in files
        for batch in file.iter_batches(batch_size=_BATCH_RECORDS)
    )
    return _create_table(backend, files[0].schema_arrow, batches)


def _create_table(backend: Any, schema: Any, batches: Iterable[Any]) -> Any:
    """A temporary table of the batches."""
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
    """A type that databases have: no dictionary, and text for a column of nothing but nulls."""
    if pa.types.is_dictionary(arrow_type):
        arrow_type = arrow_type.value_type
    return pa.string() if pa.types.is_null(arrow_type) else arrow_type


@contextmanager
def upload_temporarily(backend: Any, rows: Any) -> Iterator[Any]:
    """A small Arrow table in the database, for as long as the block runs."""
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
    """The rows of an expression, kept in the database for as long as the block runs."""
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


def fetch_rows(table: Any) -> Any:
    """The rows of an expression as an Arrow table."""
    backend = table.get_backend()
    if backend.name == SPARK:  # by way of pandas, as Ibis does it, integers beside a NULL become floats
        return backend.raw_sql(backend.compile(table)).toArrow()
    return table.to_pyarrow()


def fetch_integers(table: Any) -> Mapping[str, IntArray]:
    """The rows of an expression as 64-bit integers, column by column. ValueError where one is NULL."""
    rows = fetch_rows(table)
    if any(column.null_count for column in rows.columns):  # NumPy would make floats of them all
        raise ValueError("An integer that was asked for is NULL.")
    return {name: np.asarray(rows.column(name).cast(pa.int64())) for name in rows.column_names}


def _new_name() -> str:
    return f"disclosure_{uuid.uuid4().hex}"
