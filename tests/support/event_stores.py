"""Dagster's instances on disk, with one engine for each of their databases instead of one for each event.

SQLAlchemy's engines hold no connection here; what is kept is what they learned of the database and the
statements that they compiled. The scripts that change Dagster's tables from one version to the next are read
once as well, and not for every database that is opened. The modules are not public: they are imported here
only, and where they move no test starts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from alembic.script import ScriptDirectory
from dagster._core.storage.event_log.sqlite import sqlite_event_log
from dagster._core.storage.runs.sqlite import sqlite_run_storage
from dagster._core.storage.schedules.sqlite import sqlite_schedule_storage

# So many databases at a time: each run has one of its own.
_KEPT = 64


def keep_engines() -> None:
    """For the rest of this process, and for what it forks."""
    for module in (sqlite_event_log, sqlite_run_storage, sqlite_schedule_storage):
        original = getattr(module, "create_engine")  # noqa: B009 (mypy knows no such name of the module)
        if not hasattr(original, "keeps"):
            setattr(module, "create_engine", _keep(original))  # noqa: B010
    # Dagster keeps the configuration of each kind of storage, which is so the same object each time.
    setattr(ScriptDirectory, "from_config", lru_cache(ScriptDirectory.from_config))  # noqa: B010


def _keep(create: Callable[..., Any]) -> Callable[..., Any]:
    kept: dict[str, Any] = {}

    def create_once(url: str, **settings: Any) -> Any:
        key = f"{url} {settings}"
        if key not in kept:
            if len(kept) >= _KEPT:
                kept.clear()
            kept[key] = create(url, **settings)
        return kept[key]

    setattr(create_once, "keeps", kept)  # noqa: B010
    return create_once
