"""Databases for the tests of the relational engine: Spark in this process, and PostgreSQL on this machine."""

from __future__ import annotations

import atexit
import importlib.util
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from disclosure_pipeline.counting.relational.connections import connect
from support.services import PASSWORD, absent, postgres


def require_spark() -> None:
    """Skip where Spark cannot run."""
    if shutil.which("java") is None:
        absent("Java, which Spark needs,")
    if importlib.util.find_spec("pyspark") is None:
        absent("PySpark")


def spark_url(master: str, folder: Path) -> str:
    """The URL of a session that keeps its files in a folder, shows nothing and is quick over few records."""
    options = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder),
        # Compiling a query takes longer than running it over so few records.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.adaptive.enabled": "false",
    }
    return f"pyspark://{master}?" + "&".join(f"{name}={value}" for name, value in options.items())


@contextmanager
def spark() -> Iterator[Any]:
    """A local session of its own, without a web page and without a word; Ibis' connection to it."""
    require_spark()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        backend = connect(spark_url("local[2]", spark_folder()))
    try:
        backend.raw_sql("SELECT 1").sparkSession.sparkContext.setLogLevel("OFF")
        yield backend
    finally:
        backend.disconnect()


@cache
def spark_folder() -> Path:
    """One for all sessions of this process: Java keeps to the first one that it was told."""
    folder = Path(tempfile.mkdtemp(prefix="spark-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@contextmanager
def postgresql() -> Iterator[Any]:
    """Ibis' connection to an empty database."""
    backend = connect(f"postgres://tester:{PASSWORD}@{postgres().place}")
    try:
        yield backend
    finally:
        backend.disconnect()


@contextmanager
def duckdb() -> Iterator[Any]:
    """A database in memory."""
    backend = connect("duckdb://")
    try:
        yield backend
    finally:
        backend.disconnect()


BACKENDS = {"duckdb": duckdb, "spark": spark, "postgres": postgresql}
