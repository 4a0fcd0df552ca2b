"""A home on disk that several processes share, each with an instance of its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import dagster as dg
import pytest

from support import event_stores, gates
from support.gates import GATE, Home
from support.paths import ROOT

# The job that runs the release alone.
ALONE = f"{GATE}_release_alone"


@contextmanager
def opened(path: Path, defs: dg.Definitions) -> Iterator[Home]:
    """A home on disk, with an instance of this process as its dagster.yaml says."""
    event_stores.keep_engines()
    with pytest.MonkeyPatch.context() as patch, gates.quiet():
        gates.with_keys(path, patch)
        with dg.DagsterInstance.from_config(str(path)) as instance:
            yield Home(path, defs, instance)


@contextmanager
def new_home(settings: str | None = None) -> Iterator[Path]:
    """A folder with a ground truth and a dagster.yaml: the project's own, or `settings`."""
    with gates.quick_folder() as path:
        shutil.copy(ROOT / "dagster_home" / "dagster.yaml", path)
        if settings is not None:
            (path / "dagster.yaml").write_text(settings)
        yield path


@contextmanager
def copied(template: Path) -> Iterator[Path]:
    """A copy of a home that no instance has open."""
    with gates.quick_folder() as path:
        shutil.copytree(template, path, dirs_exist_ok=True)
        yield path


@lru_cache
def code_location() -> dg.Definitions:
    """The small gate with the executor of the project's code location, and a job that only publishes."""
    release = dg.AssetSelection.assets(dg.AssetKey([GATE, "release"]))
    return dg.Definitions.merge(
        gates.load(gates.definition()),
        dg.Definitions(executor=dg.in_process_executor, jobs=[dg.define_asset_job(ALONE, release)]),
    )
