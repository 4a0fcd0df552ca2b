"""DuckDB: keys as one number a record in a temporary table, then two GROUP BYs for each target."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
from figures import IDENTITY, Figures, of_sums

# Fields of the last query: of the keys alone, and of a target. A division by 0 would be an error.
_IDENTITY = """,
    count(*) FILTER (d = 1), count(*) FILTER (s = 1),
    count(*) FILTER (d = 1 AND s > 0), count(*) FILTER (d = 1 AND s = 1)"""
_TOTALS = {
    "Dorig": "coalesce(sum(d) FILTER (GT_has_one), 0)",
    "Dsyn": "coalesce(sum(s) FILTER (SD_has_one), 0)",
    "iS": "coalesce(sum(d) FILTER (s > 0), 0)",
    "DiS": "coalesce(sum(d) FILTER (SD_has_one), 0)",
    "DiSCO": "coalesce(sum(ds // greatest(s, 1)) FILTER (SD_has_one), 0)",
    "DiSDiO": "coalesce(sum(d) FILTER (GT_has_one AND SD_has_one AND ds > 0), 0)",
    "certain": "coalesce(sum(s) FILTER (SD_has_one AND d > 0), 0)",
    "CAPd": "coalesce(sum(dd / greatest(d, 1)), 0)",
    "CAPs": "coalesce(sum(ss / greatest(s, 1)), 0)",
    "DCAP": "coalesce(sum(ds / greatest(s, 1)), 0)",
    "TCAP_taub": "coalesce(sum(ds / greatest(d, 1)) FILTER (SD_has_one), 0)",
}


def prepare(paths: Sequence[Path], keys: Sequence[str], targets: Sequence[str]) -> Callable[[], Figures]:
    """Text becomes enumerations, of the same levels in both tables."""
    connection = duckdb.connect()
    connection.execute(f"SET threads = {len(os.sched_getaffinity(0))}")
    connection.execute("SET preserve_insertion_order = false")
    connection.execute("SET enable_progress_bar = false")
    files = [str(path) for path in paths]
    stored = connection.execute("DESCRIBE SELECT * FROM read_parquet(?)", [files[0]]).fetchall()
    text = {name for name, kind, *_ in stored if name in {*keys, *targets} and not kind.endswith("INT")}
    text -= {name for name, kind, *_ in stored if kind == "INTEGER"}
    for name in text:
        connection.execute(
            f"CREATE TYPE {name}_levels AS ENUM (SELECT DISTINCT {name} FROM read_parquet({files}) "
            f"WHERE {name} IS NOT NULL ORDER BY 1)"
        )
    columns = ", ".join(
        f"{name}::{name}_levels AS {name}" if name in text else name for name in (*keys, *targets)
    )
    for table, file in zip(("gt", "sd"), files, strict=True):
        connection.execute(f"CREATE TABLE {table} AS SELECT {columns} FROM read_parquet('{file}')")
    return lambda: measure(connection, keys, targets, text)


def measure(
    connection: duckdb.DuckDBPyConnection, keys: Sequence[str], targets: Sequence[str], text: set[str]
) -> Figures:
    q = "0::BIGINT"
    for key in keys:
        code, size = _code(connection, key, key in text)
        q = f"({q}) * {size} + {code}"
    columns = f"{q} AS q, {', '.join(targets)}"
    connection.execute(
        f"CREATE TEMP TABLE records AS SELECT {columns}, 1::TINYINT AS d FROM gt "
        f"UNION ALL SELECT {columns}, 0 FROM sd"
    )
    identity: dict[str, Any] = {}
    target_sums = {}
    for target in targets:
        row = _one(connection, _query(target, with_identity=not identity))
        target_sums[target] = dict(zip(_TOTALS, row, strict=False))
        identity = identity or dict(zip(IDENTITY, row[len(_TOTALS) :], strict=True))
        base = f"SELECT sum(n * n) FROM (SELECT count(*) AS n FROM gt GROUP BY {target})"
        target_sums[target]["base"] = _one(connection, base)[0]
    connection.execute("DROP TABLE records")
    N_d, N_s = (_one(connection, f"SELECT count(*) FROM {table}")[0] for table in ("gt", "sd"))
    return of_sums(identity, target_sums, N_d, N_s)


def _query(target: str, *, with_identity: bool) -> str:
    """GROUP BY takes NULL for a level; sums of HUGEINT are cast so that they stay cheap."""
    return f"""
        WITH cells AS (
            SELECT q, {target}, sum(d)::BIGINT AS d, count(*) - sum(d)::BIGINT AS s FROM records GROUP BY ALL
        ), keys AS (
            SELECT sum(d)::BIGINT AS d, sum(s)::BIGINT AS s,
                sum(d * d)::BIGINT AS dd, sum(s * s)::BIGINT AS ss, sum(d * s)::BIGINT AS ds
            FROM cells GROUP BY q
        ), levels_of_keys AS (
            SELECT *, d > 0 AND dd = d * d AS GT_has_one, s > 0 AND ss = s * s AS SD_has_one FROM keys
        )
        SELECT {", ".join(_TOTALS.values())}{_IDENTITY if with_identity else ""} FROM levels_of_keys"""


def _code(connection: duckdb.DuckDBPyConnection, name: str, text: bool) -> tuple[str, int]:
    """The code of a level, from 0, which is missing; and how many there are."""
    if text:
        [levels] = _one(connection, f"SELECT len(enum_range(NULL::{name}_levels))")
        return f"coalesce(enum_code({name}) + 1, 0)", levels + 1
    both = f"SELECT {name} FROM gt UNION ALL SELECT {name} FROM sd"
    low, high = _one(connection, f"SELECT min({name}), max({name}) FROM ({both})")
    return f"coalesce({name} - {low} + 1, 0)", high - low + 2


def _one(connection: duckdb.DuckDBPyConnection, query: str) -> tuple[Any, ...]:
    row = connection.execute(query).fetchone()
    assert row is not None
    return row
