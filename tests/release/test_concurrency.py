"""Runs at the same moment, in processes of their own: one publication each, no deadlock, no half state.

The daemon of Dagster's queue and what stands for a code location in a run are not public; they are imported
here only, to see dagster.yaml at work.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pandas as pd
import pytest
from support import gates, homes
from support.gates import COPY, GATE, HONEST, Home
from support.homes import Moment, Ran, copied, opened, run_gate, watch
from support.paths import ROOT
from support.processes import fork, together
from support.sampling import CI, on_some_days

from disclosure_pipeline.policy.rounding import round_records

pytestmark = pytest.mark.usefixtures("remembered_results")

# How often what races is raced: now and then it comes out differently.
ROUNDS = 5 if CI else 1
MANY = 10 if CI else 4


@pytest.fixture(scope="module")
def template(small_gate: dg.Definitions) -> Iterator[Path]:
    with homes.new_home() as path:
        with opened(path, small_gate) as home:
            home.prepare()
            for number in range(MANY):
                home.deliver(named(number), {"synthetic.csv": table(number)})
            home.instance.add_dynamic_partitions(f"{GATE}_candidates", [named(n) for n in range(MANY)])
        yield path


def named(number: int) -> str:
    return f"{COPY if number % 3 == 2 else HONEST}-{number}"


def table(number: int) -> Any:
    """Every third is a copy; the first and the last hold the same."""
    return gates.ground_truth() if number % 3 == 2 else gates.honest(number % (MANY - 1))


@pytest.fixture
def path(template: Path) -> Iterator[Path]:
    with copied(template) as path:
        yield path


def whole(path: Path, *candidates: str) -> None:
    """Exactly these candidates are published, whole; nothing is left of staging."""
    releases = path / "releases" / GATE
    assert {actual.name for actual in releases.iterdir()} == set(candidates)
    for candidate in candidates:
        assert gates.stated(releases / candidate).candidate == candidate
        delivered = pd.read_csv(path / "incoming" / candidate / "synthetic.csv")
        assert gates.published_records(releases / candidate) == gates.sorted_records(delivered)
    assert not [actual for actual in path.rglob(".partial-*") if GATE in actual.parts]


@on_some_days
def test_two_runs_of_one_candidate(template: Path, small_gate: dg.Definitions) -> None:
    """If they hinder each other, at least the later one goes through."""
    candidate = named(0)
    for _ in range(ROUNDS):
        with copied(template) as path:
            start = partial(run_gate, path, small_gate, candidate)
            runs: list[Ran] = together(start, start)
            assert [run.published for run in runs].count("now") == 1
            for run in runs:
                assert run.success or "is not released: " in run.failure_text, run
                assert run.success == (run.published is not None)
            whole(path, candidate)
            alone = fork(run_gate, path, small_gate, candidate).result()
            assert alone.published == "before, with the same content"
            whole(path, candidate)


@on_some_days
def test_many_candidates(path: Path, small_gate: dg.Definitions) -> None:
    """Ten in CI. Two of them have the same content, which the store holds once."""
    candidates = [named(number) for number in range(MANY)]
    runs: list[Ran] = together(*(partial(run_gate, path, small_gate, candidate) for candidate in candidates))
    honest = [candidate for candidate in candidates if candidate.startswith(HONEST)]
    for candidate, actual in zip(candidates, runs, strict=True):
        assert actual.success == (candidate in honest), actual
        assert actual.published == ("now" if candidate in honest else None)
    whole(path, *honest)
    assert table(0).equals(table(MANY - 1))
    stored = list((path / "store" / GATE / "objects").iterdir())
    assert len(stored) == len(honest)  # one for the two that are the same, and one for all the copies


REFRESHED = gates.ground_truth().iloc[1:]


def refresh(path: Path, defs: dg.Definitions, table: Any) -> None:
    with opened(path, defs) as home:
        home.write_ground_truth(table)
        assert home.run_ground_truth().success


def run_while_refreshed(path: Path, defs: dg.Definitions, candidate: str, step: str) -> Ran:
    def at(moment: Moment) -> None:
        if moment == Moment("STEP_START", f"{GATE}__{step}"):
            fork(refresh, path, defs, REFRESHED).result()

    watch(path, at)
    return run_gate(path, defs, candidate)


@on_some_days
@pytest.mark.parametrize(
    "step", ["synthetic", "bins", "disclosure", "dossier", "release"] if CI else ["release"]
)
def test_nothing_is_measured_with_two_ground_truths(
    path: Path, small_gate: dg.Definitions, step: str
) -> None:
    candidate = named(0)
    hindered: Ran = fork(run_while_refreshed, path, small_gate, candidate, step).result()
    assert "Unexpected" not in hindered.failure_text
    # Before the measuring it is as good as before the run; later, nothing fits together any more.
    assert hindered.success == (step in {"synthetic", "bins", "disclosure"}), hindered
    recorded = gates.read_json(path / "store" / GATE / "ground_truth.json")["sha256"]
    if not hindered.success:
        assert not (path / "releases" / GATE / candidate).exists()
        assert fork(run_gate, path, small_gate, candidate).result().published == "now"
    dossier = gates.read_json(path / "store" / GATE / "candidates" / candidate / "dossier.json")
    assert dossier["measured"]["ground_truth"] == recorded
    assert gates.stated(path / "releases" / GATE / candidate).ground_truth.records == round_records(
        len(REFRESHED), 10
    )
    whole(path, candidate)


def test_the_queue_runs_one_run_a_candidate(small_gate: dg.Definitions) -> None:
    """As dagster_home/dagster.yaml says; a launcher that only notes stands for the processes."""
    settings = (ROOT / "dagster_home" / "dagster.yaml").read_text()
    notes = "run_launcher: {module: dagster._core.test_utils, class: MockedRunLauncher}\n"
    with homes.new_home(f"{settings}\n{notes}") as path, opened(path, small_gate) as home:
        instance = home.instance
        instance.add_dynamic_partitions(f"{GATE}_candidates", [HONEST, COPY])
        queued = [queue(home, candidate) for candidate in (HONEST, HONEST, COPY, HONEST, COPY)]
        assert tick(instance) == [queued[0], queued[2]]
        assert tick(instance) == []  # two runs at a time
        # The second run of the first candidate waits, though it was there before the other's.
        for ended, begun in ((2, [4]), (4, []), (0, [1]), (1, [3])):
            run = instance.get_run_by_id(queued[ended])
            assert run is not None
            instance.report_run_failed(run)
            assert tick(instance) == [queued[number] for number in begun]


def queue(home: Home, candidate: str) -> str:
    from dagster._core.remote_origin import (
        RegisteredCodeLocationOrigin,
        RemoteJobOrigin,
        RemoteRepositoryOrigin,
    )

    job = home.defs.resolve_job_def(f"{GATE}_gate")
    repository = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("here"), "__repository__")
    run = home.instance.create_run_for_job(
        job,
        tags={"dagster/partition": candidate},
        status=dg.DagsterRunStatus.QUEUED,
        remote_job_origin=RemoteJobOrigin(repository, job.name),
    )
    return str(run.run_id)


def tick(instance: dg.DagsterInstance) -> list[str]:
    from dagster._daemon.run_coordinator import QueuedRunCoordinatorDaemon

    launcher: Any = instance.run_launcher
    launched = len(launcher.queue())
    # What the daemon needs of a workspace: the instance, and a context for the launcher.
    workspace: Any = SimpleNamespace(instance=instance, create_request_context=lambda: None)
    with QueuedRunCoordinatorDaemon(interval_seconds=1) as daemon:
        list(daemon.run_iteration(workspace))
    return [run.run_id for run in launcher.queue()[launched:]]
