"""Confidential tables where a database counts them: of DuckDB, of PostgreSQL, and files that Spark reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from disclosure_pipeline.counting.relational.transfer import spark_session
from support.engines_services import QUICK_OVER_FEW_RECORDS, connect_to_spark, spark_folder, spark_url
from support.services import PASSWORD, postgres, require_engine

PASSWORD_VARIABLE = "REGISTER_PASSWORD"


@dataclass(frozen=True)
class Registers:
    """`engine` of a gate, and `source`: how the gate names a table.

    `write` replaces tables, by their names; `list_tables` tells all that are there, temporary ones too.
    `kept_in` is the file or folder in `folder` that holds the tables; None where they are elsewhere.
    """

    engine: str
    source: Callable[[str], str | dict[str, str]]
    write: Callable[[Mapping[str, pd.DataFrame]], None]
    list_tables: Callable[[], list[str]]
    folder: Path
    kept_in: str | None


@contextmanager
def registers_of_duckdb(folder: Path) -> Iterator[Registers]:
    require_engine("duckdb://")
    import duckdb

    path = folder / "registers.duckdb"

    def write(tables: Mapping[str, pd.DataFrame]) -> None:
        with duckdb.connect(str(path)) as database:
            for name, table in tables.items():
                database.register("frame", table)
                database.execute(f"CREATE OR REPLACE TABLE {name} AS FROM frame")

    def list_tables() -> list[str]:
        with duckdb.connect(str(path)) as database:
            return sorted(row[2] for row in database.execute("SHOW ALL TABLES").fetchall())

    yield Registers(
        f"duckdb:///{path}",
        lambda name: {"duckdb": str(path), "table": name},
        write,
        list_tables,
        folder,
        path.name,
    )


@contextmanager
def registers_of_postgresql(folder: Path) -> Iterator[Registers]:
    """With a password that only a variable of the environment holds.

    Queries are compiled, as a server does it that nobody set up otherwise.
    """
    require_engine("duckdb://")  # Ibis
    server = postgres()
    import sqlalchemy as sa

    engine, url = sa.create_engine(server.url), server.url_with(PASSWORD_VARIABLE)
    with engine.begin() as connection:
        connection.execute(sa.text(f"ALTER DATABASE {server.database} SET jit = on"))

    def write(tables: Mapping[str, pd.DataFrame]) -> None:
        with engine.begin() as connection:
            for name, table in tables.items():
                table.to_sql(name, connection, index=False, if_exists="replace")

    def list_tables() -> list[str]:
        with engine.begin() as connection:
            every = "SELECT relname FROM pg_class WHERE relkind IN ('r', 'v') AND relnamespace >= 16384"
            temporary = connection.execute(sa.text(every)).scalars()
            return sorted([*sa.inspect(connection).get_table_names(), *temporary])

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(PASSWORD_VARIABLE, PASSWORD)
        try:
            yield Registers(
                url.replace("+psycopg", ""),
                lambda name: {"url": url, "table": name},
                write,
                list_tables,
                folder,
                None,
            )
        finally:
            engine.dispose()


@contextmanager
def registers_of_spark(folder: Path) -> Iterator[Registers]:
    """Parquet files that the session of this process reads where they lie; it goes on."""
    files = folder / "registers"
    files.mkdir()
    # Several parts are the subject of the tests of the engine, where the session has two of them again.
    in_one_part = {"spark.sql.shuffle.partitions": "1", "spark.sql.leafNodeDefaultParallelism": "1"}
    engine = spark_url("local[2]", spark_folder(), QUICK_OVER_FEW_RECORDS | in_one_part)
    session: Any = spark_session(connect_to_spark(engine))

    def list_kept() -> list[str]:
        cached = session.sparkContext._jsc.getPersistentRDDs()
        # By SQL: the catalog's own list cannot be decoded without compiling, once it holds something.
        return [*(row.tableName for row in session.sql("SHOW TABLES").collect()), *map(str, cached)]

    before = list_kept()

    def write(tables: Mapping[str, pd.DataFrame]) -> None:
        for name, table in tables.items():
            table.to_parquet(files / f"{name}.parquet", index=False)

    def list_tables() -> list[str]:
        kept = [name for name in list_kept() if name not in before]
        return sorted([*(path.stem for path in files.glob("*.parquet")), *kept])

    yield Registers(
        engine, lambda name: str(files / f"{name}.parquet"), write, list_tables, folder, files.name
    )
    session.conf.unset("spark.sql.leafNodeDefaultParallelism")
    connect_to_spark(spark_url("local[2]", spark_folder()))


REGISTERS: Mapping[str, Callable[[Path], AbstractContextManager[Registers]]] = {
    "duckdb": registers_of_duckdb,
    "postgresql": registers_of_postgresql,
    "spark": registers_of_spark,
}
