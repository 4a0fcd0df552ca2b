"""Connections of Ibis to databases, and queries whose errors tell nothing.

No error of a driver gets out: its message may quote a record or a password.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.tables.locations import redact_location

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
    """A connection as `connect` makes it, closed after the block; a Spark session goes on."""
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
    builder = SparkSession.builder
    if master:
        builder = builder.master(master if master.startswith(_MASTERS) else f"spark://{master}")
    for name, value in parse_qsl(options):
        builder = builder.config(name, value)
    return ibis.pyspark.connect(builder.getOrCreate())


def spark_session(backend: Any) -> Any:
    """The Spark session of a connection."""
    return backend.raw_sql("SELECT 1").sparkSession
