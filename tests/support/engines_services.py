"""Databases for the tests of the relational engine: Spark in this process, and PostgreSQL on this machine."""

import atexit
import importlib.util
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from disclosure_pipeline.counting.relational.transfer import connect, spark_session
from support.services import PASSWORD, absent, postgres

# Java runs here for seconds: what its second compiler and its parallel collector win is less than they cost.
# Executors in processes of their own take the options over.
SPARK_ENVIRONMENT = {
    "SPARK_LOCAL_IP": "127.0.0.1",
    "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def require_spark() -> None:
    """Skip where Spark cannot run."""
    if shutil.which("java") is None:
        absent("Java, which Spark needs,")
    if importlib.util.find_spec("pyspark") is None:
        absent("PySpark")


# Compiling and planning anew take longer than running a query over so few records.
QUICK_OVER_FEW_RECORDS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}


def spark_url(master: str, folder: Path, plans: Mapping[str, str] = QUICK_OVER_FEW_RECORDS) -> str:
    """The URL of a session that keeps its files in a folder and shows nothing; how it plans and compiles."""
    options = {
        # Room from the beginning: else what is new is collected a hundred times.
        "spark.driver.extraJavaOptions": "-Xms1g+-Xmn600m+-XX:MetaspaceSize=256m",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder),
        **plans,
    }
    return f"pyspark://{master}?" + "&".join(f"{name}={value}" for name, value in options.items())


@contextmanager
def _disconnecting(backend: Any) -> Iterator[Any]:
    try:
        yield backend
    finally:
        backend.disconnect()


def spark() -> AbstractContextManager[Any]:
    """A local session of its own, without a web page and without a word; Ibis' connection to it."""
    return _disconnecting(connect_to_spark(spark_url("local[2]", spark_folder())))


def connect_to_spark(url: str) -> Any:
    """Ibis' connection to the session of this process, which says nothing."""
    require_spark()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SPARK_ENVIRONMENT.items():
            patch.setenv(name, value)
        backend = connect(url)
    spark_session(backend).sparkContext.setLogLevel("OFF")
    return backend


@cache
def spark_folder() -> Path:
    """One for all sessions of this process: Java keeps to the first one that it was told."""
    folder = Path(tempfile.mkdtemp(prefix="spark-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def postgresql() -> AbstractContextManager[Any]:
    return _disconnecting(connect(f"postgres://tester:{PASSWORD}@{postgres().place}"))


def duckdb() -> AbstractContextManager[Any]:
    """A database in memory; several threads take longer over few records. By its URL a test has them all."""
    return _disconnecting(connect("duckdb://?threads=1"))


BACKENDS = {"duckdb": duckdb, "spark": spark, "postgres": postgresql}
