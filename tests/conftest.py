"""Settings that all tests share, and homes of a gate to try things in."""

from __future__ import annotations

import gc
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, seed, settings
from support import distributions
from support.paths import ROOT
from support.sampling import (
    CI,
    DATABASES,
    EXAMPLES,
    EXAMPLES_IN_CI,
    NOT_TODAY,
    PART,
    PART_IN_CI,
    SEED,
    is_for_today,
)

if TYPE_CHECKING:
    import dagster as dg
    from support import gates

    from disclosure_pipeline.runtime.worker_process import WorkerProcess

# Container images often tell Python to write nothing. Each program would then compile all that it imports,
# which takes longer than most of them run.
if sys.dont_write_bytecode:
    sys.dont_write_bytecode = False
    sys.pycache_prefix = sys.pycache_prefix or str(ROOT / "build" / "bytecode")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix

# Random tables are large as random inputs go, and a shared machine can be slow at any moment.
# Every day the same examples are tried, in CI new ones each day, drawn by the seed.
settings.register_profile(
    "every day",
    max_examples=EXAMPLES,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile(
    "ci", settings.get_profile("every day"), max_examples=EXAMPLES_IN_CI, derandomize=False, print_blob=True
)
settings.load_profile("ci" if CI else "every day")


# What takes long to set up for a whole session, and the fixtures that need it. Tests that share it stand side
# by side, so that one worker of several sets it up.
SHARED_FIXTURES = ("demo", "finished", "installed", "databases")
OF_A_DATABASE = ("database", "engine", "recorded")  # the fixtures whose parameter is the name of a database
# Who names no more files wants all of their tests.
A_FEW_FILES = 3


@pytest.fixture(scope="module")
def no_guards() -> Iterator[None]:
    """Let no test of a module look for copies, as `without_guards` does for one."""
    from support.figures import without_guards

    with without_guards():
        yield


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return distributions.build("wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that has the package from its wheel; nobody installs anything else there."""
    environment = distributions.environment(tmp_path_factory.mktemp("installed") / "environment")
    distributions.install(environment, wheel)
    return environment


@pytest.fixture(scope="session")
def databases() -> Iterator[Callable[[str], Any]]:
    """Ibis' connection to a database by its name: opened when first asked for, closed with the session."""
    from support.engines_services import BACKENDS

    with ExitStack() as stack:
        yield cache(lambda name: stack.enter_context(BACKENDS[name]()))


@pytest.fixture(params=DATABASES)
def database(request: pytest.FixtureRequest, databases: Callable[[str], Any]) -> Any:
    return databases(request.param)


@dataclass(frozen=True)
class InThisProcess:
    """A stand-in for a worker process, which the real thing is compared with in a test of its own."""

    function: Callable[[Any], Any]

    def start(self) -> None:
        """Start nothing."""

    @contextmanager
    def asking(self, question: object) -> Iterator[Callable[[], object]]:
        def answer() -> object:
            try:
                return json.loads(json.dumps(self.function(json.loads(json.dumps(question)))))
            except Exception:
                return None

        yield answer


@pytest.fixture(scope="session", autouse=True)
def validator() -> Iterator[WorkerProcess]:
    """Import Great Expectations once: forks of this process have it, and need no process of their own.

    The worker process of the package, which does the same elsewhere.
    """
    from disclosure_pipeline.evidence import validation

    worker = validation._validator
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(validation, "_validator", InThisProcess(validation._answer))
        yield worker


def pytest_report_header() -> str:
    """Print what part of long lists is tried, and the seed that draws it."""
    return f"one in {PART_IN_CI if CI else PART} cases of long lists is tried: SAMPLE_SEED={SEED}"


def is_of_spark(item: pytest.Item) -> bool:
    """Return whether a fixture of a test is Spark."""
    parameters: Mapping[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    return "spark" in (parameters.get(fixture) for fixture in OF_A_DATABASE)


@pytest.hookimpl(trylast=True)  # Hypothesis marks its tests before
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put tests of Spark and of a shared fixture first; in CI, draw random examples by the seed.

    They go to the same worker: Java, which takes long to get going, is started by it alone. What takes
    seconds is skipped on other days, unless only a few files were asked for.
    """

    def shared(item: pytest.Item) -> int:
        if is_of_spark(item):
            return -1
        names = getattr(item, "fixturenames", ())
        return next((i for i, name in enumerate(SHARED_FIXTURES) if name in names), len(SHARED_FIXTURES))

    items.sort(key=shared)
    for item in items if len({item.path for item in items}) > A_FEW_FILES else ():
        takes_seconds = is_of_spark(item) or item.get_closest_marker("on_some_days")
        if takes_seconds and not is_for_today(item.nodeid):
            item.add_marker(pytest.mark.skip(reason=NOT_TODAY))
    for item in items if CI else ():
        if isinstance(item, pytest.Function) and item.get_closest_marker("hypothesis"):
            seed(SEED)(item.obj)


def pytest_collection_finish() -> None:
    """Freeze what is imported and collected: searching it for garbage takes a seventh of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def pytest_unconfigure() -> None:
    """Stop the services that were started for the whole session."""
    from support import services

    services.stop()


@pytest.fixture(scope="session")
def small_gate() -> dg.Definitions:
    from support import gates  # imports Dagster, which most tests do not need

    return gates.load(gates.definition())


@pytest.fixture(scope="session")
def results_folder() -> Iterator[Path]:
    """The results that tests with `remembered_results` share."""
    from support import gates

    with gates.quick_folder() as folder:
        yield folder


@pytest.fixture(scope="session")
def finished(small_gate: dg.Definitions, results_folder: Path) -> Iterator[Path]:
    """A home in which the small gate approved one candidate and refused another. To be copied."""
    from support import gates
    from support.homes import remember_results

    with gates.quick_folder() as path, pytest.MonkeyPatch.context() as patch:
        with gates.home_on_disk(path, small_gate, patch) as home, remember_results(results_folder):
            gates.finish(home)
        yield path


@pytest.fixture
def remembered_results(results_folder: Path) -> Iterator[None]:
    """Replace the measuring, charts and expectations of runs by those of an equal run before."""
    from support.homes import remember_results

    with remember_results(results_folder):
        yield


@pytest.fixture
def home(tmp_path: Path, small_gate: dg.Definitions, monkeypatch: pytest.MonkeyPatch) -> Iterator[gates.Home]:
    """An empty home of the small gate, with an instance that is in memory."""
    from support import gates

    with gates.home_in_memory(tmp_path, small_gate, monkeypatch) as home:
        yield home


@pytest.fixture
def finished_home(
    finished: Path, small_gate: dg.Definitions, monkeypatch: pytest.MonkeyPatch
) -> Iterator[gates.Home]:
    """A copy of the finished home, with all that its instance knows of the runs."""
    from support import gates

    with gates.copied_home(finished, small_gate, monkeypatch) as home:
        yield home


@pytest.fixture(scope="session")
def demo() -> Iterator[tuple[Path, str]]:
    """The home in which `disclosure-pipeline demo` ran, in a process of its own, and what it printed."""
    from support import gates
    from support.processes import fork

    with gates.quick_folder() as path:
        shutil.copy(ROOT / "dagster_home" / "dagster.yaml", path)
        yield path, fork(gates.run_demo, path).result()
