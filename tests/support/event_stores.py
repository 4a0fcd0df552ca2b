"""Dagster's instances, whose databases are opened once instead of once for each event.

On disk each database has one engine. SQLAlchemy's engines hold no connection there, but within
`kept_connections`; what is kept is what they learned of the database and the statements that they compiled.
In memory the connections are kept, and told once what Dagster tells each of them. The modules are not public:
they are imported here only, and where they move no test starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sqlalchemy
    from alembic.config import Config
    from alembic.script import ScriptDirectory

# So many databases at a time: each run has one of its own.
_KEPT = 64
# The statements that were compiled for databases in memory.
_COMPILED: dict[Any, Any] = {}
# Within each `kept_connections`: the engines that keep theirs, by the databases.
_connected: list[dict[str, sqlalchemy.Engine]] = []


@contextmanager
def kept_connections() -> Iterator[None]:
    """Meanwhile connections to databases on disk are kept, which Dagster opens for each statement.

    Of a process that forks none meanwhile, and of which nothing counts that a kill would leave.
    """
    engines: dict[str, sqlalchemy.Engine] = {}
    _connected.append(engines)
    try:
        yield
    finally:
        _connected.remove(engines)
        for engine in engines.values():
            type(engine).dispose(engine)


@cache
def keep_engines() -> None:
    from alembic.script import ScriptDirectory
    from dagster._core.storage.event_log import in_memory as in_memory_event_log
    from dagster._core.storage.event_log.sqlite import sqlite_event_log
    from dagster._core.storage.runs import in_memory as in_memory_run_storage
    from dagster._core.storage.runs.sqlite import sqlite_run_storage
    from dagster._core.storage.schedules.sqlite import sqlite_schedule_storage

    for module in (sqlite_event_log, sqlite_run_storage, sqlite_schedule_storage):
        setattr(module, "create_engine", _keep(getattr(module, "create_engine")))  # noqa: B009, B010
    setattr(ScriptDirectory, "from_config", _keep_revisions(ScriptDirectory.from_config))  # noqa: B010
    for module in (in_memory_event_log, in_memory_run_storage):
        setattr(module, "create_engine", _create_engine_in_memory)  # noqa: B010
    setattr(in_memory_event_log.InMemoryEventLogStorage, "_connect", _connect_to_events)  # noqa: B010
    setattr(in_memory_run_storage.InMemoryRunStorage, "connect", _connect_to_runs)  # noqa: B010


def _keep(create: Callable[..., Any]) -> Callable[..., Any]:
    kept: dict[str, Any] = {}

    def create_once(url: str, **settings: Any) -> Any:
        if _connected:
            if url not in _connected[-1]:
                _connected[-1][url] = _create_connected(url, **settings)
            return _connected[-1][url]
        key = f"{url} {settings}"
        if key not in kept:
            if len(kept) >= _KEPT:
                kept.clear()
            kept[key] = create(url, **settings)
        return kept[key]

    return create_once


def _create_connected(
    url: str, *, poolclass: object, connect_args: Mapping[str, Any] | None = None
) -> sqlalchemy.Engine:
    """An engine that keeps its connections, also when Dagster is done with one statement."""
    import sqlalchemy
    from sqlalchemy.pool import QueuePool

    del poolclass
    engine = sqlalchemy.create_engine(
        url, poolclass=QueuePool, connect_args={**(connect_args or {}), "check_same_thread": False}
    )
    setattr(engine, "dispose", lambda: None)  # noqa: B010 (mypy knows it as a method)
    return engine


def _keep_revisions(read: Callable[[Config], ScriptDirectory]) -> Callable[[Config], ScriptDirectory]:
    kept: dict[str | None, ScriptDirectory] = {}

    def read_once(config: Config) -> ScriptDirectory:
        location = config.get_main_option("script_location")
        if location not in kept:
            kept[location] = read(config)
        return kept[location]

    return read_once


def _create_engine_in_memory(url: str, poolclass: object) -> sqlalchemy.Engine:
    """An engine that keeps its connections, for whichever thread is next, and what others compiled."""
    import sqlalchemy
    from sqlalchemy.pool import QueuePool

    del poolclass
    engine = sqlalchemy.create_engine(url, poolclass=QueuePool, connect_args={"check_same_thread": False})
    engine.dialect = _sqlite_dialect()  # what is compiled is found again by its dialect
    engine.update_execution_options(compiled_cache=_COMPILED)
    sqlalchemy.event.listen(engine, "connect", _enforce_foreign_keys)
    return engine


@cache
def _sqlite_dialect() -> sqlalchemy.Dialect:
    import sqlalchemy

    engine = sqlalchemy.create_engine("sqlite://")
    engine.connect().close()  # it learns of the database what it may write
    return engine.dialect


def _enforce_foreign_keys(connection: Any, _: object) -> None:
    connection.execute("PRAGMA foreign_keys=ON;").close()


@contextmanager
def _connect_to_events(storage: Any) -> Iterator[sqlalchemy.Connection]:
    with storage._db_lock, storage._engine.connect() as connection, connection.begin():
        yield connection


@contextmanager
def _connect_to_runs(storage: Any) -> Iterator[sqlalchemy.Connection]:
    with storage._engine.connect() as connection, connection.begin():
        yield connection
