"""Notices of failed runs, read from their events: one for each, whatever it ended in.

One test drives Dagster's own daemon, by names that are not its public interface; they are used nowhere else.
"""

import logging
import math
import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import dagster as dg
import pandas as pd
import pytest
import yaml
from support import gates, services
from support.gates import CANARIES, COPY, GATE, HONEST, Home
from support.paths import ROOT
from support.processes import no_child_left, wait_until
from support.sampling import only_in_ci, some_of
from support.services import PASSWORD, Posted

from disclosure_pipeline.candidates import evaluation
from disclosure_pipeline.counting.memory import engine as memory
from disclosure_pipeline.evaluation.controls import controls
from disclosure_pipeline.orchestration import failures
from disclosure_pipeline.orchestration.failures import classify_failed_run

NOTIFY = {"webhook": "${HOOK}", "web_server": "https://dagster.example.org/"}


@pytest.fixture(scope="module")
def telling() -> dg.Definitions:
    return gates.load(gates.definition(notify=NOTIFY))


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Posted]:
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(failures, "PAUSES", (0.0, 0.0))
    with services.notice_server() as posted:
        monkeypatch.setenv("HOOK", posted.url)
        yield posted


class Daemon:
    """Call the sensor as Dagster's daemon does: keep the cursor, also after a failure."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.cursor: str | None = None

    def tick(self) -> list[str | None]:
        context = dg.build_sensor_context(
            instance=self.home.instance, cursor=self.cursor, definitions=self.home.defs
        )
        result = self.home.defs.resolve_sensor_def(f"{GATE}_failures").evaluate_tick(context)
        assert result.run_requests == []
        self.cursor = result.cursor
        errors = [reaction.error for reaction in result.dagster_run_reactions or []]
        return [None if error is None else error.to_string() for error in errors]


@pytest.fixture
def watching(finished_home: Home, telling: dg.Definitions) -> Daemon:
    daemon = Daemon(replace(finished_home, defs=telling))
    assert daemon.tick() == []
    return daemon


# What runs end in. Each takes a home and lets one run of the gate fail.


def a_copy(home: Home, _: pytest.MonkeyPatch) -> None:
    home.run_gate(COPY)


def a_broken_contract(home: Home, _: pytest.MonkeyPatch) -> None:
    home.deliver("broken", {"synthetic.csv": gates.honest().drop(columns="age")})
    home.run_gate("broken")


def a_release_alone(home: Home, _: pytest.MonkeyPatch) -> None:
    home.defs.resolve_job_def(f"{GATE}_gate").execute_in_process(
        instance=home.instance,
        partition_key=COPY,
        raise_on_error=False,
        asset_selection=[dg.AssetKey([GATE, "release"])],
    )


def tables_that_share_no_key(home: Home, _: pytest.MonkeyPatch) -> None:
    home.deliver("strange", {"synthetic.csv": gates.honest().assign(age=98)})
    home.run_gate("strange")


def a_control_that_fails(home: Home, patch: pytest.MonkeyPatch) -> None:
    def blind(*arguments: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
        of_identity, of_attribute = controls(*arguments)
        return of_identity * math.nan, of_attribute

    patch.setattr("disclosure_pipeline.candidates.measuring.controls", blind)
    home.run_gate(HONEST)


def no_ground_truth(home: Home, _: pytest.MonkeyPatch) -> None:
    (home.path / "ground_truth.csv").unlink()
    home.run_gate(HONEST)


def another_ground_truth(home: Home, _: pytest.MonkeyPatch) -> None:
    home.write_ground_truth(gates.ground_truth().iloc[1:])
    home.run_gate(HONEST)


def a_ground_truth_that_breaks_its_contract(home: Home, _: pytest.MonkeyPatch) -> None:
    broken = gates.ground_truth().astype({"age": object})
    broken.loc[3, "age"] = CANARIES[0]
    home.write_ground_truth(broken)
    home.run_ground_truth()


def a_crash(home: Home, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(evaluation, "judge", gates.crash)
    home.run_gate(HONEST)


def a_crash_after_the_verdict(home: Home, patch: pytest.MonkeyPatch) -> None:
    """The clauses are not kept, and then something breaks: nobody can say that it was refused."""
    patch.setattr("disclosure_pipeline.candidates.evaluation.to_markdown", gates.crash)
    home.run_gate(COPY)


def a_crash_of_the_ground_truth(home: Home, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(memory, "read_canonical", gates.crash)
    home.run_ground_truth()


def an_error_that_nobody_catches(home: Home, patch: pytest.MonkeyPatch) -> None:
    """Dagster's own code, or an added asset, may raise it: its words are in the run's events."""

    def ends(*_: Any, **__: Any) -> NoReturn:
        raise SystemExit(CANARIES[0])

    patch.setattr(evaluation, "read_measured", ends)
    home.run_gate(HONEST)
    assert CANARIES[0] in gates.everything_logged(home.instance)


def a_process_that_is_lost(home: Home, _: pytest.MonkeyPatch) -> None:
    """As Dagster's monitor reports one whose process is gone."""
    job = home.defs.resolve_job_def(f"{GATE}_gate")
    run = home.instance.create_run_for_job(job, tags={"dagster/partition": HONEST})
    home.instance.report_run_failed(run, f"Run worker failed: {CANARIES[0]}")


ENDS: dict[Callable[[Home, pytest.MonkeyPatch], None], tuple[str | None, str, Sequence[str]]] = {
    a_copy: (COPY, "refused", ["singled out in both tables", "the table correctly shows their work"]),
    a_broken_contract: ("broken", "refused", ["age"]),
    a_release_alone: (COPY, "refused", [f"Candidate '{COPY}' is refused: "]),
    tables_that_share_no_key: (
        "strange",
        "undetermined",
        ["share their age with the other table", "is needed"],
    ),
    a_control_that_fails: (HONEST, "undetermined", ["ontrols of the measurement that fail"]),
    no_ground_truth: (HONEST, "undetermined", ["The ground truth is not at the location"]),
    another_ground_truth: (HONEST, "undetermined", ["The ground truth differs from the recorded one"]),
    a_ground_truth_that_breaks_its_contract: (None, "undetermined", ["age"]),
    a_crash: (HONEST, "crashed", ["Unexpected ValueError at ", "withheld"]),
    a_crash_after_the_verdict: (
        COPY,
        "crashed",
        [
            "Unexpected ValueError at ",
            "People singled out in both tables (of UiO): not as the policy allows.",
        ],
    ),
    a_crash_of_the_ground_truth: (None, "crashed", ["Unexpected ValueError at "]),
    an_error_that_nobody_catches: (HONEST, "crashed", ["Step small__disclosure failed with SystemExit: "]),
    a_process_that_is_lost: (HONEST, "crashed", ["No step ended the run"]),
}


@pytest.mark.parametrize("fail", some_of(ENDS), ids=lambda fail: fail.__name__)
def test_each_failed_run_is_told_of_once(
    fail: Callable[[Home, pytest.MonkeyPatch], None],
    watching: Daemon,
    web: Posted,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    candidate, outcome, words = ENDS[fail]
    with monkeypatch.context() as patch, gates.quiet():
        fail(watching.home, patch)
    (run,) = watching.home.instance.get_runs(limit=1)
    assert run.status is dg.DagsterRunStatus.FAILURE
    capfd.readouterr()
    assert [watching.tick(), watching.tick()] == [[None], []]
    (notice,) = web.contents()
    assert (notice["gate"], notice["candidate"], notice["outcome"]) == (GATE, candidate, outcome)
    assert notice["run_id"] == run.run_id
    assert notice["link"] == f"https://dagster.example.org/runs/{run.run_id}"
    text = "\n".join(notice["reasons"])
    for word in words:
        assert word in text
    everything = f"{web.requests}{capfd.readouterr()}"
    assert run.run_id in everything
    assert not [canary for canary in CANARIES if canary in everything]


@pytest.mark.usefixtures("remembered_results")
def test_a_run_that_succeeds_is_not_told_of(watching: Daemon, web: Posted) -> None:
    assert watching.home.run_ground_truth().success
    assert watching.home.run_gate(HONEST).success
    assert watching.tick() == []
    assert web.requests == []


def test_many_failed_runs_are_told_of_once_each(watching: Daemon, web: Posted) -> None:
    (watching.home.path / "ground_truth.csv").unlink()
    failed = {watching.home.run_ground_truth().run_id for _ in range(7)}
    assert [len(watching.tick()) for _ in range(3)] == [5, 2, 0]
    assert sorted(notice["run_id"] for notice in web.contents()) == sorted(failed)


@pytest.mark.usefixtures("remembered_results")
def test_a_notice_that_cannot_be_sent_is_in_the_log_and_the_tick_says_so(
    watching: Daemon, web: Posted, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOOK", f"{web.url}services/{PASSWORD}")
    web.answers = [503]
    a_copy(watching.home, monkeypatch)
    capfd.readouterr()
    (error,) = watching.tick()
    assert error is not None
    assert "was not sent by webhook (HTTPError 503)" in error
    logged = capfd.readouterr().err
    for part in (
        f"{GATE}, candidate {COPY}: refused",
        "are singled out in both tables",
        "was not sent by webhook",
    ):
        assert part in logged
    assert not [text for text in (PASSWORD, str(web.port)) if text in error + logged]
    web.answers, web.requests = [200], []
    assert watching.tick() == []  # Dagster goes on
    no_ground_truth(watching.home, monkeypatch)
    assert watching.tick() == [None]
    assert [notice["candidate"] for notice in web.contents()] == [HONEST]


@pytest.mark.usefixtures("remembered_results")
def test_events_that_cannot_be_read_are_told_of_as_a_crash(
    watching: Daemon, web: Posted, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_copy(watching.home, monkeypatch)
    monkeypatch.setattr(dg.DagsterInstance, "all_logs", gates.crash)
    assert watching.tick() == [None]
    (notice,) = web.contents()
    assert notice["outcome"] == "crashed"
    assert notice["reasons"] == ["The events of the run cannot be read (ValueError)."]


@pytest.mark.parametrize("name", ["../../evil", "a\nRun 1: approved", "<!channel>" * 100])
def test_a_name_that_no_candidate_may_have_is_told_as_it_is_written(
    watching: Daemon, web: Posted, name: str
) -> None:
    watching.home.run_gate(name)
    assert watching.tick() == [None]
    (notice,) = web.contents()
    assert notice["outcome"] == "undetermined"
    assert notice["candidate"] == ascii(name[:100])
    assert len(notice["text"].splitlines()[0]) < 150


def added_and_failing() -> dg.AssetCheckResult:
    return dg.AssetCheckResult(passed=False, description=CANARIES[0])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (added_and_failing, "plausible of synthetic: not a check of the gate, description withheld"),
        (gates.crash, "Step small__synthetic_plausible failed with ValueError: its message is withheld."),
    ],
    ids=["fails", "raises"],
)
def test_a_check_that_somebody_added_is_not_known_and_its_words_are_withheld(
    watching: Daemon, web: Posted, body: Callable[[], dg.AssetCheckResult], message: str
) -> None:
    @dg.asset_check(asset=dg.AssetKey([GATE, "synthetic"]), blocking=True)
    def plausible() -> dg.AssetCheckResult:
        return body()

    with gates.quiet():
        watching.home = replace(
            watching.home,
            defs=dg.Definitions.merge(watching.home.defs, dg.Definitions(asset_checks=[plausible])),
        )
        assert not watching.home.run_gate(HONEST).success
    assert watching.tick() == [None]
    (notice,) = web.contents()
    assert notice["outcome"] == "crashed"
    assert notice["reasons"] == [message]


@pytest.fixture(scope="module")
def refused(finished: Path) -> list[dg.DagsterEvent]:
    with pytest.MonkeyPatch.context() as patch, gates.quiet():
        patch.setenv("DAGSTER_HOME", str(finished))
        with gates.instance_on_disk(finished) as instance:
            (run,) = instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE]))
            assert run.tags["dagster/partition"] == COPY
            entries = instance.all_logs(run.run_id)
    return [entry.get_dagster_event() for entry in entries if entry.is_dagster_event]


@pytest.fixture(scope="module")
def known(small_gate: dg.Definitions) -> set[dg.AssetCheckKey]:
    return set(small_gate.resolve_asset_graph().asset_check_keys)


def is_of(kind: str) -> Callable[[dg.DagsterEvent], bool]:
    return lambda event: event.event_type_value == kind


def is_within_policy(event: dg.DagsterEvent) -> bool:
    kind = event.event_type is dg.DagsterEventType.ASSET_CHECK_EVALUATION
    return kind and event.asset_check_evaluation_data.check_name == "within_policy"


def test_a_refusal_is_one_for_what_its_events_say(
    refused: list[dg.DagsterEvent], known: set[dg.AssetCheckKey]
) -> None:
    outcome = classify_failed_run(refused, known)
    assert outcome.outcome == "refused"
    # Every clause that is not kept, once: not for its check and for within_policy again. Copies come first.
    first, *others = outcome.reasons
    assert first.startswith("One table holds every record of the other, unchanged")
    told = ["People found (whole)", "singled out in both tables", "their income"]
    places = [next(place for place, reason in enumerate(others) if text in reason) for text in told]
    assert places == sorted(places)
    assert len(outcome.reasons) == len(set(outcome.reasons)) > 10


Events = list[dg.DagsterEvent]


def without(is_left_out: Callable[[dg.DagsterEvent], bool]) -> Callable[[Events], Events]:
    return lambda events: [event for event in events if not is_left_out(event)]


def with_another_failure(events: Events) -> Events:
    (failure,) = filter(is_of("STEP_FAILURE"), events)
    return [*events, failure._replace(step_key="another")]


def with_an_end_from_outside(events: Events) -> Events:
    """As of a process that was lost just after its last step."""
    (end,) = filter(is_of("PIPELINE_FAILURE"), events)
    return [*events, end._replace(event_specific_data=None)]


def decided(decision: Any, events: Events) -> Events:
    def change(event: dg.DagsterEvent) -> dg.DagsterEvent:
        if not is_of("ASSET_MATERIALIZATION")(event):
            return event
        materialization = event.step_materialization_data.materialization
        if "decision" not in materialization.metadata:
            return event
        changed = materialization.with_metadata({**materialization.metadata, "decision": decision})
        data = event.step_materialization_data._replace(materialization=changed)
        return event._replace(event_specific_data=data)

    return list(map(change, events))


UNEXPLAINED: dict[str, Callable[[Events], Events]] = {
    "no events": lambda _: [],
    "no decision": without(is_of("ASSET_MATERIALIZATION")),
    "no failed step": without(is_of("STEP_FAILURE")),
    "no end of the run": without(is_of("PIPELINE_FAILURE")),
    "no failed check": without(is_within_policy),
    "a step that failed for no check of its own": with_another_failure,
    "an end from outside, too": with_an_end_from_outside,
    "an end from outside alone": lambda events: [
        with_an_end_from_outside(events)[-1] if is_of("PIPELINE_FAILURE")(event) else event
        for event in events
    ],
    **{f"decided {of!r}": partial(decided, of) for of in ("approved", "", None, "REFUSED")},
}


@pytest.mark.parametrize("change", UNEXPLAINED.values(), ids=UNEXPLAINED)
def test_a_refusal_that_its_events_do_not_explain_is_a_crash(
    refused: Events, known: set[dg.AssetCheckKey], change: Callable[[Events], Events]
) -> None:
    changed = change(refused)
    assert changed != refused
    assert classify_failed_run(changed, known).outcome == "crashed"


def test_a_check_of_another_gate_is_not_known(
    refused: list[dg.DagsterEvent], known: set[dg.AssetCheckKey]
) -> None:
    others = {key for key in known if key.name != "within_policy"}
    assert len(others) == len(known) - 1
    assert classify_failed_run(refused, others).outcome == "crashed"


def test_a_warning_is_no_reason(refused: list[dg.DagsterEvent], known: set[dg.AssetCheckKey]) -> None:
    (check,) = filter(is_within_policy, refused)

    def with_another(severity: dg.AssetCheckSeverity) -> tuple[str, ...]:
        data = dg.AssetCheckEvaluation(
            asset_key=dg.AssetKey([GATE, "identity_risk"]),
            check_name="trusted_relabelled",
            passed=False,
            metadata={
                **{"value": 12.34, "outcome": "exceeded"},
                **{"what": "Values that look renamed", "worst_clause": "relabelled"},
            },
            severity=severity,
            description="12.34",
        )
        return classify_failed_run([*refused, check._replace(event_specific_data=data)], known).reasons

    before = classify_failed_run(refused, known).reasons
    assert with_another(dg.AssetCheckSeverity.WARN) == before
    assert with_another(dg.AssetCheckSeverity.ERROR) == (
        *before,
        "Values that look renamed: not as the policy allows.",
    )


@only_in_ci("a daemon and its code server")
def test_the_daemon_tells_of_each_failed_run_and_says_where_it_could_not(
    web: Posted, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dagster._core.run_coordinator import DefaultRunCoordinator
    from dagster._core.workspace.context import WorkspaceProcessContext
    from dagster._core.workspace.load_target import PythonFileTarget
    from dagster._daemon import sensor as daemon

    with gates.quick_folder() as path, ExitStack() as stack:
        gates.with_keys(path, monkeypatch)
        monkeypatch.setenv("HOOK", f"{web.url}services/{PASSWORD}")
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (ROOT, ROOT / "tests"))))
        monkeypatch.setattr(daemon, "is_under_min_interval", lambda *_: False)
        location = path / "location.py"
        definition = gates.definition(notify=NOTIFY)
        location.write_text(f"from support import gates\n\ndefs = gates.load({definition!r})\n")
        coordinator = {"module": DefaultRunCoordinator.__module__, "class": DefaultRunCoordinator.__name__}
        (path / "dagster.yaml").write_text(
            yaml.safe_dump({"telemetry": {"enabled": False}, "run_coordinator": coordinator})
        )
        (path / "ground_truth.csv").write_text(gates.ground_truth().drop(columns="age").to_csv(index=False))
        stack.enter_context(gates.quiet())
        instance = stack.enter_context(dg.DagsterInstance.from_config(str(path)))
        target = PythonFileTarget(str(location), attribute=None, working_directory=None, location_name=None)
        stack.enter_context(no_child_left())
        workspace = stack.enter_context(
            WorkspaceProcessContext(instance, target, code_server_log_level="WARNING")
        )

        def iterate() -> None:
            for _ in daemon.execute_sensor_iteration(workspace, logging.getLogger("daemon"), None, None):
                pass
            wait_until(lambda: all(run.is_finished for run in instance.get_runs()), "a run did not end")

        iterate()  # the sensor of arrivals asks for a run of the ground truth, which breaks its contract
        (run,) = instance.get_runs()
        iterate()
        assert [(notice["run_id"], notice["outcome"]) for notice in web.contents()] == [
            (run.run_id, "undetermined")
        ]

        lost = [instance.add_run(run._replace(run_id=str(uuid.uuid4()))) for _ in range(2)]
        for notice in lost:
            instance.report_run_failed(notice)
        web.requests, web.answers = [], [503, 503, 503, 200]
        iterate()
        iterate()
        assert [(notice["run_id"], notice["outcome"]) for notice in web.contents()] == [
            *[(lost[0].run_id, "crashed")] * 3,
            (lost[1].run_id, "crashed"),
        ]
        (state,) = [notice for notice in instance.all_instigator_state() if notice.name == f"{GATE}_failures"]
        ticks = instance.get_ticks(state.instigator_origin_id, state.selector_id)
        assert [tick.status.value for tick in reversed(ticks)] == ["SKIPPED", "SUCCESS", "FAILURE", "SKIPPED"]
        assert ticks[1].log_key
        content = str(instance.compute_log_manager.get_log_data(ticks[1].log_key).stderr)
        assert f"The notice of run {lost[0].run_id} was not sent by webhook (HTTPError 503)" in content
        for notice in lost:
            assert f"/runs/{notice.run_id}" in content
        assert not gates.files_with(path, [PASSWORD, *CANARIES], ["ground_truth.csv"])
