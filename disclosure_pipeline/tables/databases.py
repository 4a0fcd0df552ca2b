"""Tables and queries of SQL databases and DuckDB, as batches of selected columns."""

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
        streaming = connection.execution_options(stream_results=True, max_row_buffer=_ROWS)
        for rows in streaming.execute(chosen).partitions(_ROWS):
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
        yield from reader(_ROWS)

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
