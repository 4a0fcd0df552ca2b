"""Settings that all tests share, and homes of a gate to try things in."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    import dagster as dg
    import gates

# Random tables are large as random inputs go, and a shared machine can be slow at any moment.
settings.register_profile(
    "default",
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("ci", settings.get_profile("default"), max_examples=500)
settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.fixture(scope="session")
def small_gate() -> dg.Definitions:
    """The definitions of the small gate of gates.py."""
    import gates  # imports Dagster, which most tests do not need

    return gates.load(gates.definition())


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, small_gate: dg.Definitions) -> Path:
    """A home in which the small gate approved one candidate and refused another. To be copied."""
    import dagster as dg
    import gates

    path = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch, dg.DagsterInstance.ephemeral() as instance:
        patch.setenv("DAGSTER_HOME", str(path))
        gates.finish(gates.Home(path, small_gate, instance))
    return path


@pytest.fixture
def home(tmp_path: Path, small_gate: dg.Definitions, monkeypatch: pytest.MonkeyPatch) -> Iterator[gates.Home]:
    """An empty home of the small gate, with an instance that is in memory."""
    import dagster as dg
    import gates

    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    with dg.DagsterInstance.ephemeral() as instance:
        yield gates.Home(tmp_path, small_gate, instance)


@pytest.fixture
def finished_home(home: gates.Home, finished: Path) -> gates.Home:
    """A copy of the finished home; its instance knows nothing of the runs."""
    shutil.copytree(finished, home.path, dirs_exist_ok=True)
    return home


@pytest.fixture(scope="session")
def demo() -> Iterator[tuple[Path, str]]:
    """The home in which `disclosure-pipeline demo` ran, in a process of its own, and what it printed."""
    import gates

    with gates.quick_folder() as path:
        shutil.copy(gates.ROOT / "dagster_home" / "dagster.yaml", path)
        ran = gates.run_cli("demo", home=path)
        assert ran.returncode == 0, ran.stderr
        yield path, ran.stdout
