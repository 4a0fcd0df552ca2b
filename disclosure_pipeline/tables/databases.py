"""Tables of databases as batches of Arrow columns: any that SQLAlchemy reaches, and DuckDB files."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pyarrow as pa

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.tables.encoding import arrow_array
from disclosure_pipeline.tables.files import OpenTable

_ROWS = 1 << 16


def open_sql(
    url: str, table: str | None, schema: str | None, query: str | None, stack: ExitStack
) -> OpenTable:
    """A table or a query of an SQL database. Errors of the driver come through: they may tell credentials."""
    import sqlalchemy as sa

    # One connection, closed with the stack: no pool keeps the credentials.
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
        result = connection.execution_options(stream_results=True, max_row_buffer=_ROWS).execute(chosen)
        for rows in result.partitions(_ROWS):
            yield _make_batch(columns, list(zip(*rows, strict=True)))

    return OpenTable(names, batches)


def open_duckdb(path: str, table: str | None, query: str | None, stack: ExitStack) -> OpenTable:
    """A table or a query of a DuckDB file, which is opened for reading only."""
    import duckdb

    connection = stack.enter_context(duckdb.connect(path, read_only=True))
    source = _quote(table) if table is not None else f"({_strip_query(query)}) AS source"
    names = tuple(connection.sql(f"SELECT * FROM {source} LIMIT 0").columns)

    def batches(columns: list[str]) -> Iterator[Any]:
        chosen = ", ".join(map(_quote, columns))
        relation: Any = connection.sql(f"SELECT {chosen} FROM {source}")
        # Its name up to DuckDB 1.4, and since.
        reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
        yield from reader(_ROWS)

    return OpenTable(names, batches)


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _strip_query(query: str | None) -> str:
    return (query or "").strip().rstrip(";")


def _make_batch(columns: Sequence[str], values: Sequence[Sequence[Any]]) -> Any:
    return pa.table(
        [_make_array(name, column) for name, column in zip(columns, values, strict=True)], list(columns)
    )


def _make_array(name: str, values: Sequence[Any]) -> Any:
    if any(isinstance(value, uuid.UUID) for value in values):
        values = [str(value) if isinstance(value, uuid.UUID) else value for value in values]
    try:
        return arrow_array(values)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        pass
    raise InputError(f"Column {name!r} holds values of several kinds: give it one type.")
