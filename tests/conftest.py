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
def finished(small_gate: dg.Definitions) -> Iterator[Path]:
    """A home in which the small gate approved one candidate and refused another. To be copied."""
    import gates

    with gates.quick_folder() as path, pytest.MonkeyPatch.context() as patch:
        gates.with_keys(path, patch)
        with gates.instance_on_disk(path) as instance:
            gates.finish(gates.Home(path, small_gate, instance))
        yield path


@pytest.fixture
def home(tmp_path: Path, small_gate: dg.Definitions, monkeypatch: pytest.MonkeyPatch) -> Iterator[gates.Home]:
    """An empty home of the small gate, with an instance that is in memory."""
    import dagster as dg
    import gates

    gates.with_keys(tmp_path, monkeypatch)
    with dg.DagsterInstance.ephemeral() as instance:
        yield gates.Home(tmp_path, small_gate, instance)


@pytest.fixture
def finished_home(
    finished: Path, small_gate: dg.Definitions, monkeypatch: pytest.MonkeyPatch
) -> Iterator[gates.Home]:
    """A copy of the finished home, with all that its instance knows of the runs."""
    import gates

    with gates.quick_folder() as folder:
        path = folder / "home"  # what surrounds it is nobody else's
        shutil.copytree(finished, path)
        gates.with_keys(path, monkeypatch)
        with gates.instance_on_disk(path) as instance:
            yield gates.Home(path, small_gate, instance)


@pytest.fixture(scope="session")
def demo() -> Iterator[tuple[Path, str]]:
    """The home in which `disclosure-pipeline demo` ran, in a process of its own, and what it printed."""
    import gates

    with gates.quick_folder() as path:
        shutil.copy(gates.ROOT / "dagster_home" / "dagster.yaml", path)
        ran = gates.run_cli("demo", home=path)
        assert ran.returncode == 0, ran.stderr
        yield path, ran.stdout
