"""The one way to open tables: whatever holds GT and its syntheses, an engine opens them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from disclosure_pipeline.counting.engines import DATABASE, Engine, OpenedTables, find_engine, list_engines
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.runtime.machine import available_memory
from disclosure_pipeline.tables.alignment import as_frames, is_frame
from disclosure_pipeline.tables.messages import HOLDOUT, describe_argument, listed, table_names
from disclosure_pipeline.tables.sources import (
    COUNTING,
    DuckDBSource,
    SqlSource,
    bytes_needed,
    is_location,
)

_SHARE_OF_FREE = 0.5  # of the memory that is free; the rest is for whoever else needs it


@contextmanager
def open_tables(
    ground_truth: Any, synthetic: Any, engine: str, numeric: Collection[Any] = (), holdout: Any = None
) -> Iterator[OpenedTables]:
    """Open frames, files or tables of a database by an engine, which is chosen if it is "auto".

    `numeric` and errors as `Engine.open`; a holdout comes last.
    """
    if not isinstance(engine, str) or not (engine in {"auto", *list_engines()} or DATABASE in engine):
        raise InputError(
            f"engine must be {listed(['auto', *list_engines()])} or the URL of a database for Ibis, such as "
            f"'duckdb://', not {describe_argument(engine)}."
        )
    if not (is_location(synthetic) or is_ibis(synthetic) or is_frame(synthetic)):
        if not isinstance(synthetic, Sequence) or not synthetic:
            as_frames(ground_truth, synthetic)  # says what is wrong
        syntheses = list(synthetic)
    else:
        syntheses = [synthetic]
    tables, names = [ground_truth, *syntheses], table_names(1 + len(syntheses))
    if holdout is not None:
        tables, names = [*tables, holdout], (*names, HOLDOUT)
    with choose_engine(engine, tables, names).open(tables, names, numeric) as opened:
        yield opened


def choose_engine(engine: str, tables: Sequence[Any], names: Sequence[str] = ()) -> Engine:
    """Return the engine for tables: as requested, or chosen by their size, and described so.

    `names` are those of the tables in messages, by default of GT and its syntheses.
    """
    if any(map(is_ibis, tables)):
        if engine != "auto":
            raise InputError("Tables of Ibis are counted in their own database: leave the engine to 'auto'.")
        return find_engine(DATABASE)
    if engine != "auto":
        return find_engine(engine)
    needed, free = sum(map(_estimate_bytes, tables, names or table_names(len(tables)))), available_memory()
    chosen = "partitioned" if needed > _SHARE_OF_FREE * free else "memory"
    compared = f"about {needed / 1e9:.1f} GB are needed in memory, {free / 1e9:.1f} GB are free"
    return find_engine(chosen, f"{chosen} ({compared})")


def _estimate_bytes(table: Any, name: str) -> int:
    """Return bytes that reading and counting a table needs; of a database it is not known beforehand."""
    if is_frame(table):
        return COUNTING * len(table) if hasattr(table, "__len__") else 0
    if isinstance(table, (SqlSource, DuckDBSource)) or not is_location(table):
        return 0
    return bytes_needed(table, name)


def is_ibis(table: Any) -> bool:
    """Return whether it is a table of a database, as Ibis has it."""
    return type(table).__module__.split(".", maxsplit=1)[0] == "ibis"
