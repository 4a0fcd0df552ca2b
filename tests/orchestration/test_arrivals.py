"""The sensor and the schedule, and which names and files of candidates are let in."""

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg
import pandas as pd
import pytest
from support import gates, homes
from support.event_stores import kept_connections
from support.gates import COPY, GATE, HONEST, MARKER, Home, failures
from support.homes import Ran, opened, ran
from support.processes import together
from support.sampling import CI, on_some_days

from disclosure_pipeline.candidates.claims import CLAIMS
from disclosure_pipeline.candidates.store import find_complete_candidates, is_safe_name
from disclosure_pipeline.errors import InputError, StoreError
from disclosure_pipeline.orchestration.arrivals import NEWEST, CandidatePartitions

pytestmark = [pytest.mark.usefixtures("remembered_results"), on_some_days]

UNSAFE = (
    *("../../evil", "..", ".hidden", "a/b", "a b", "a..b", "/evil"),
    *("ü", "", "a\n", "a\0b", "x" * 101, "-a"),
)


def later(path: Path, seconds: int) -> None:
    """Move a modification time forward: file systems may count in coarse steps."""
    when = path.stat().st_mtime_ns + seconds * 1_000_000_000
    os.utime(path, ns=(when, when))


class Daemon:
    """Call the sensor as Dagster's daemon does: keep the cursor, add partitions, skip known run keys."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.cursor: str | None = None
        self.run_keys: set[str | None] = set()
        self.failure_text: str | None = None

    def tick(self) -> list[dg.RunRequest]:
        result = self.home.tick(self.cursor)
        self.cursor = result.cursor
        self.failure_text = result.skip_reason.skip_message if result.skip_reason else None
        for request in result.dynamic_partitions_requests or []:
            assert isinstance(request, dg.AddDynamicPartitionsRequest)
            assert request.partitions_def_name == f"{GATE}_candidates"
            self.home.instance.add_dynamic_partitions(request.partitions_def_name, request.partition_keys)
        new = [request for request in result.run_requests or [] if request.run_key not in self.run_keys]
        self.run_keys |= {request.run_key for request in new}
        return new

    def candidates(self) -> list[str | None]:
        requests = self.tick()
        assert all(request.job_name == f"{GATE}_gate" for request in requests)
        known = self.home.instance.get_dynamic_partitions(f"{GATE}_candidates")
        assert all(request.partition_key in known for request in requests)
        return [request.partition_key for request in requests]


def forget_candidates(home: Home) -> None:
    """Leave the candidates where they arrived, as if nobody had looked at them."""
    shutil.rmtree(home.record(HONEST, "figures.json").parents[1])


@pytest.fixture
def daemon(finished_home: Home) -> Daemon:
    """A daemon for a home in which GT is recorded and two candidates lie, none of them seen."""
    forget_candidates(finished_home)
    return Daemon(finished_home)


def test_one_run_for_each_new_candidate(daemon: Daemon) -> None:
    assert set(daemon.candidates()) == {HONEST, COPY}
    assert daemon.candidates() == []
    assert daemon.failure_text is not None and "No new candidate" in daemon.failure_text
    daemon.home.deliver("third", {"synthetic.csv": gates.honest(3)})
    assert daemon.candidates() == ["third"]
    assert daemon.candidates() == []


def test_the_tick_names_folders_that_are_ignored_because_of_their_names(daemon: Daemon) -> None:
    daemon.candidates()
    daemon.home.deliver("wave 2", {"synthetic.csv": gates.honest(3)})
    assert daemon.candidates() == []
    assert daemon.failure_text is not None and daemon.failure_text.startswith("No new candidate in ")
    assert "A folder is ignored because of its name, 'wave 2': expected at most 100" in daemon.failure_text


def test_a_candidate_without_its_marker_is_not_there(daemon: Daemon) -> None:
    daemon.candidates()
    daemon.home.deliver("slow", {"1.csv": gates.honest(3)}, complete=False)
    assert daemon.candidates() == []
    assert "slow" not in daemon.home.instance.get_dynamic_partitions(f"{GATE}_candidates")
    daemon.home.deliver("slow", {"2.csv": gates.honest(4)})
    assert daemon.candidates() == ["slow"]


def test_a_candidate_that_changed_back_is_run_again(daemon: Daemon) -> None:
    daemon.candidates()
    for seconds, table in ((10, gates.honest(5)), (20, gates.ground_truth())):
        folder = daemon.home.deliver(COPY, {"synthetic.csv": table})
        later(folder / "synthetic.csv", seconds)
        assert daemon.candidates() == [COPY]


def test_a_candidate_that_a_backup_brings_back_is_run_again(daemon: Daemon, tmp_path: Path) -> None:
    daemon.candidates()
    folder = daemon.home.path / "incoming" / COPY
    shutil.copytree(folder, tmp_path / "backup")  # with the times of its files
    later(daemon.home.deliver(COPY, {"synthetic.csv": gates.honest(5)}) / "synthetic.csv", 10)
    assert daemon.candidates() == [COPY]
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "backup", folder)
    assert daemon.candidates() == [COPY]


def test_candidates_wait_for_the_ground_truth(home: Home) -> None:
    daemon = Daemon(home)
    home.deliver(HONEST, {"synthetic.csv": gates.honest()})
    assert daemon.tick() == []
    assert daemon.failure_text is not None and "ground truth" in daemon.failure_text
    home.write_ground_truth(gates.ground_truth())
    first, second = daemon.tick()
    assert (first.job_name, first.partition_key) == (f"{GATE}_ground_truth", None)
    assert (second.job_name, second.partition_key) == (f"{GATE}_gate", HONEST)
    home.deliver(COPY, {"synthetic.csv": gates.ground_truth()})
    assert daemon.tick() == []  # it is not recorded yet, and asked for once
    assert home.run_gate(HONEST).success  # it records the ground truth itself
    assert daemon.candidates() == [COPY]


def change_ground_truth(home: Home, _: Path) -> None:
    home.write_ground_truth(gates.ground_truth().iloc[1:])
    assert home.run_ground_truth().success


def write_long_ago(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    os.utime(path, (0, 0))


# What may change after the verdicts, in the folder of one of two candidates or around it.
CHANGES: dict[str, Callable[[Home, Path], object]] = {
    "content": lambda _, folder: gates.honest(5).to_csv(folder / "synthetic.csv", index=False),
    "time": lambda _, folder: later(folder / "synthetic.csv", 3600),
    "file": lambda _, folder: write_long_ago(folder / "more.csv", b""),
    "claims": lambda _, folder: write_long_ago(folder / CLAIMS, b"claims: {epsilon: 1}"),
    "record": lambda home, _: home.record(COPY, "snapshot.json").write_text("{}"),
    "ground truth": change_ground_truth,
}


@pytest.mark.parametrize("change", CHANGES)
def test_only_what_is_not_as_it_was_judged_is_run(finished_home: Home, change: str) -> None:
    CHANGES[change](finished_home, finished_home.path / "incoming" / COPY)
    expected = {HONEST, COPY} if change == "ground truth" else {COPY}
    assert set(Daemon(finished_home).candidates()) == expected


def test_a_candidate_that_claims_something_is_judged_once(finished_home: Home) -> None:
    folder = finished_home.deliver("claims", {"synthetic.csv": gates.honest(3)})
    (folder / CLAIMS).write_text("claims: {epsilon: 1}")
    assert finished_home.run_gate("claims").success
    assert Daemon(finished_home).candidates() == []
    (folder / CLAIMS).write_text("claims: {epsilon: 2}")
    assert Daemon(finished_home).candidates() == ["claims"]


def test_candidates_wait_again_when_the_ground_truth_changed(daemon: Daemon) -> None:
    daemon.candidates()
    daemon.home.write_ground_truth(gates.ground_truth().iloc[1:])
    later(daemon.home.path / "ground_truth.csv", 10)
    daemon.home.deliver("third", {"synthetic.csv": gates.honest(3)})
    (request,) = daemon.tick()
    assert request.job_name == f"{GATE}_ground_truth"
    assert daemon.home.run_ground_truth().success
    assert daemon.candidates() == ["third"]


def test_a_ground_truth_that_changed_back_is_recorded_again(home: Home) -> None:
    """A run key that was used once never starts a run again."""
    daemon = Daemon(home)
    for seconds, records in enumerate((300, 299, 300)):
        home.write_ground_truth(gates.ground_truth().head(records))
        later(home.path / "ground_truth.csv", 10 * seconds)
        requests = daemon.tick()
        assert [request.job_name for request in requests] == [f"{GATE}_ground_truth"]
        assert home.run_ground_truth().success
        assert daemon.tick() == []


def test_a_ground_truth_written_again_with_the_same_content_starts_nothing(daemon: Daemon) -> None:
    daemon.candidates()
    later(daemon.home.path / "ground_truth.csv", 10)
    assert daemon.tick() == []


def test_the_sensor_tells_no_value(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("disclosure_pipeline.orchestration.arrivals.find_complete_candidates", gates.crash)
    with pytest.raises(Exception) as caught:
        daemon.tick()
    error: BaseException | None = caught.value
    while error is not None:
        assert gates.CANARIES[0] not in f"{error!r} {error}"
        error = error.__cause__ or error.__context__


def scheduled(home: Home) -> list[str | None]:
    result = ask_schedule(home)
    return [] if isinstance(result, dg.SkipReason) else [request.partition_key for request in result]


def ask_schedule(home: Home) -> Any:
    return schedule_of(home)(dg.build_schedule_context(instance=home.instance))


def schedule_of(home: Home) -> dg.ScheduleDefinition:
    return home.defs.resolve_schedule_def(f"{GATE}_ground_truth_changed")


@pytest.fixture
def on_disk(finished_home: Home) -> Iterator[Home]:
    """A home that the schedule can be evaluated in: it takes an instance on disk."""
    with gates.quick_folder() as folder, dg.DagsterInstance.local_temp(str(folder)) as instance:
        yield replace(finished_home, instance=instance)


@pytest.fixture
def changed(on_disk: Home) -> Home:
    """A home whose GT changed, and was recorded, after two candidates were decided on."""
    on_disk.instance.add_dynamic_partitions(f"{GATE}_candidates", [HONEST, COPY])
    assert scheduled(on_disk) == []
    on_disk.write_ground_truth(gates.ground_truth().iloc[1:])
    assert scheduled(on_disk) == []  # what is not recorded cannot be measured with
    assert on_disk.run_ground_truth().success
    return on_disk


def test_the_schedule_evaluates_again_what_was_measured_with_another_ground_truth(changed: Home) -> None:
    changed.deliver("third", {"synthetic.csv": gates.honest(3)})  # left to the sensor
    assert set(scheduled(changed)) == {HONEST, COPY}
    changed.run_gate(COPY)
    assert scheduled(changed) == [HONEST]
    changed.run_gate(HONEST)
    assert scheduled(changed) == []


def test_the_schedule_takes_the_newest(changed: Home) -> None:
    newest = [f"new-{number}" for number in range(NEWEST)]
    for seconds, name in enumerate(newest, start=1):
        folder = changed.deliver(name, {"synthetic.csv": gates.honest()})
        later(folder / MARKER, 10 * seconds)
        figures = changed.record(name, "figures.json")
        figures.parent.mkdir()
        figures.write_text(json.dumps({"measured": {"ground_truth": "another"}}))
        changed.instance.add_dynamic_partitions(f"{GATE}_candidates", [name])
    assert scheduled(changed) == newest


def test_the_schedule_does_not_try_again_what_cannot_be_measured(changed: Home) -> None:
    """Dagster compares run keys of a schedule within one tick only: it would be run every quarter hour."""
    changed.deliver("broken", {"synthetic.csv": gates.honest().drop(columns="age")})
    assert not changed.run_gate("broken").success
    assert "broken" not in scheduled(changed)
    changed.deliver(COPY, {"synthetic.csv": gates.honest().assign(age=98)})
    assert COPY in scheduled(changed)
    assert not changed.run_gate(COPY).success  # its keys share nothing with GT: its figures stay the old ones
    assert COPY not in scheduled(changed)


def why_nothing(home: Home) -> str:
    result = ask_schedule(home)
    assert isinstance(result, dg.SkipReason)
    return str(result.skip_message)


def notified(home: Home, cursor: str | None = None) -> str | None:
    """Let the sensor of failures see the runs since its last tick, as Dagster's daemon does."""
    context = dg.build_sensor_context(instance=home.instance, cursor=cursor, definitions=home.defs)
    result = home.defs.resolve_sensor_def(f"{GATE}_failures").evaluate_tick(context)
    assert not [reaction.error for reaction in result.dagster_run_reactions or [] if reaction.error]
    return result.cursor


def shown(home: Home, candidate: str) -> Any:
    file = gates.write_definition(home.path, gates.definition())
    told = gates.run_command("status", file, "--format", "json")
    assert told.exit_code == 0, told.output
    (row,) = (row for row in json.loads(told.stdout)["candidates"] if row["candidate"] == candidate)
    return row


def crash_twice(home: Home, step: str, *, is_judged: bool) -> None:
    """Each time it is tried again, and `status` says why."""
    cursor = notified(home)  # from now on
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"disclosure_pipeline.orchestration.{step}", gates.crash)
        for tries in (1, 2):
            assert HONEST in scheduled(home)
            assert not home.run_gate(HONEST).success
            cursor = notified(home, cursor)
            standing = shown(home, HONEST)["standing"]
            assert f": its last run crashed (try {tries} of 3): Unexpected ValueError" in standing
            assert ("not judged today" in standing) == (not is_judged)
            assert not any(canary in standing for canary in gates.CANARIES)


@pytest.mark.parametrize("step", ["assets.measure", "assets.file_dossier"])
def test_an_evaluation_that_crashed_before_its_verdict_is_tried_again(step: str, changed: Home) -> None:
    """Before anything is measured, or after the figures are recorded."""
    crash_twice(changed, step, is_judged=False)
    assert HONEST in scheduled(changed)


def test_three_evaluations_that_crashed_in_turn_are_enough(
    changed: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the verdict, too. A run that decides, or another ground truth, is a new beginning."""
    crash_twice(changed, "assets.releasing.release", is_judged=True)
    assert HONEST in scheduled(changed)
    cursor = notified(changed)
    with monkeypatch.context() as patch:
        patch.setattr("disclosure_pipeline.orchestration.assets.releasing.release", gates.crash)
        assert not changed.run_gate(HONEST).success
    notified(changed, cursor)
    told = "its last run crashed (3 tries, and no more by itself): Unexpected ValueError"
    assert told in shown(changed, HONEST)["standing"]
    assert scheduled(changed) == [COPY]
    assert not changed.run_gate(COPY).success  # refused, which is an answer
    assert why_nothing(changed) == (
        "The newest candidates are judged with the recorded ground truth, except honest (crashed, 3 tries: "
        "see its status)"
    )
    assert changed.run_gate(HONEST).success  # somebody mended what crashed
    assert shown(changed, HONEST)["standing"] == "published"
    assert why_nothing(changed) == "The newest candidates are judged with the recorded ground truth"
    changed.write_ground_truth(gates.ground_truth().iloc[2:])
    assert changed.run_ground_truth().success
    assert set(scheduled(changed)) == {HONEST, COPY}  # counted anew


def test_only_a_crash_is_tried_again(changed: Home) -> None:
    """Each of these runs is the newest; two crash in turn."""
    assert not changed.run_gate(COPY).success
    for status, verdict, expected in (
        ("NOT_STARTED", None, "its run has not ended"),
        ("STARTED", None, "its run has not ended"),
        ("CANCELED", None, "its run was canceled"),
        ("FAILURE", None, None),  # its process was lost before it could say anything
        ("FAILURE", "crashed", None),
        ("FAILURE", "undetermined", "undetermined"),
        ("FAILURE", "refused", "refused"),
        ("FAILURE", "crashed", None),
    ):
        tags = {"dagster/partition": HONEST} | ({"verdict": verdict} if verdict else {})
        run = dg.DagsterRun(job_name=f"{GATE}_gate", status=dg.DagsterRunStatus[status], tags=tags)
        changed.instance.add_run(run)
        if expected is None:
            assert scheduled(changed) == [HONEST]
        else:
            assert why_nothing(changed).endswith(f", except {HONEST} ({expected})")


def test_a_run_whose_process_was_lost_is_told_too(changed: Home) -> None:
    """The daemon ends it; no step could say why."""
    cursor = notified(changed)
    run = dg.DagsterRun(job_name=f"{GATE}_gate", tags={"dagster/partition": "lost"})
    changed.instance.add_run(run)
    changed.instance.report_run_failed(run)
    notified(changed, cursor)
    standing = shown(changed, "lost")["standing"]
    assert standing.startswith("not judged: its last run crashed (try 1 of 3): No step ended the run")


def test_a_revoked_release_is_not_evaluated_again(changed: Home) -> None:
    """Nor is it called published: not by `status`, its check or a notice."""
    key = str(changed.path / "keys" / "public-key.pem")
    folder = changed.published(HONEST)
    assert shown(changed, HONEST)["published"] is True
    revoked = gates.run_command("revoke", folder, "--key", key, "--reason", "GT was corrected")
    assert revoked.exit_code == 0, revoked.output
    assert scheduled(changed) == [COPY]
    assert not changed.run_gate(COPY).success
    assert why_nothing(changed).endswith(f", except {HONEST} (revoked)")
    row = shown(changed, HONEST)
    assert (row["standing"], row["published"]) == ("revoked", False)
    assert HONEST not in Daemon(changed).candidates()
    # Somebody asks for it nevertheless: the table is a copy by now.
    changed.write_ground_truth(gates.honest())
    assert changed.run_ground_truth().success
    ran = changed.run_gate(HONEST)
    assert "published" not in failures(ran)[f"{GATE}__dossier"]
    description = gates.checks(ran)["dossier:within_policy"].description
    assert description is not None and description.startswith("Refused: ")
    assert shown(changed, HONEST)["standing"] == "revoked"
    listed = gates.metadata_of(ran, "candidates")[-1]
    assert listed["are published"].value == 0


def test_ticks_as_dagster_evaluates_them(on_disk: Home) -> None:
    """With partitions that are resolved."""
    forget_candidates(on_disk)
    context = dg.build_sensor_context(
        instance=on_disk.instance, instance_ref=on_disk.instance.get_ref(), definitions=on_disk.defs
    )
    with gates.quiet():
        tick = on_disk.defs.resolve_sensor_def(f"{GATE}_arrivals").evaluate_tick(context)
    assert {request.partition_key for request in tick.run_requests or []} == {HONEST, COPY}
    (added,) = tick.dynamic_partitions_requests or []
    assert isinstance(added, dg.AddDynamicPartitionsRequest)
    assert set(added.partition_keys) == {HONEST, COPY}

    on_disk.instance.add_dynamic_partitions(f"{GATE}_candidates", [HONEST, COPY])
    on_disk.write_ground_truth(gates.ground_truth().iloc[1:])
    assert on_disk.run_ground_truth().success
    at = dg.build_schedule_context(
        instance=on_disk.instance,
        repository_def=on_disk.defs.get_repository_def(),
        scheduled_execution_time=datetime(2024, 5, 1, tzinfo=timezone.utc),
    )
    requests = schedule_of(on_disk).evaluate_tick(at).run_requests or []
    assert {request.partition_key for request in requests} == {HONEST, COPY}


def test_a_candidate_that_no_sensor_has_seen_is_found_or_the_error_says_what_to_do(home: Home) -> None:
    """Dagster asks whether there is such a partition before it launches a run."""
    home.prepare({HONEST: gates.honest()})
    job = home.defs.resolve_job_def(f"{GATE}_gate")
    with gates.quiet():
        assert job.execute_in_process(instance=home.instance, partition_key=HONEST).success
        home.deliver("slow", {"synthetic.csv": gates.honest(3)}, complete=False)
        for name in ("slow", "missing"):
            with pytest.raises(InputError, match="put its tables into a folder of that name") as caught:
                job.execute_in_process(instance=home.instance, partition_key=name)
            assert f"Complete are: {HONEST}." in str(caught.value)
        with pytest.raises(StoreError, match=r"'\.\./evil' is not allowed: expected at most 100 letters"):
            job.execute_in_process(instance=home.instance, partition_key="../evil")
    assert home.instance.get_dynamic_partitions(f"{GATE}_candidates") == [HONEST]


def test_partitions_are_those_that_a_synthesizer_names(small_gate: dg.Definitions) -> None:
    (ours,) = {
        node.partitions_def
        for node in small_gate.resolve_asset_graph().asset_nodes
        if node.partitions_def is not None
    }
    plain = dg.DynamicPartitionsDefinition(name=f"{GATE}_candidates")
    assert isinstance(ours, CandidatePartitions)
    assert ours == plain and plain == ours and len({ours, plain}) == 1


@pytest.mark.parametrize(
    ("name", "is_safe"),
    [
        *((name, False) for name in UNSAFE),
        *((name, True) for name in ("a", "2024-05", "Release_7.1", "x" * 100)),
    ],
)
def test_names_are_safe_or_not(name: str, is_safe: bool) -> None:
    assert is_safe_name(name) == is_safe


def test_folders_without_allowed_names_are_told_apart(tmp_path: Path) -> None:
    for name in ("good", ".hidden", "a b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / MARKER).touch()
    (tmp_path / "incomplete").mkdir()
    (tmp_path / "file").touch()
    candidates = find_complete_candidates(tmp_path)
    assert set(candidates.complete) == {"good"}
    assert set(candidates.refused) == {".hidden", "a b"}
    assert find_complete_candidates(tmp_path / "missing").complete == {}


@pytest.mark.parametrize("refused", ["is_file", "iterdir"])  # a folder that nobody may enter, or list
def test_a_folder_that_cannot_be_read_does_not_keep_the_others_waiting(
    refused: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever runs the tests may read everything, so the system's refusal is played."""
    for name in ("good", "private"):
        (tmp_path / name).mkdir()
        (tmp_path / name / MARKER).touch()
    read = getattr(Path, refused)

    def refuse(path: Path) -> Any:
        if "private" in path.parts:
            raise PermissionError(13, "Permission denied", str(path))
        return read(path)

    monkeypatch.setattr(Path, refused, refuse)
    candidates = find_complete_candidates(tmp_path)
    assert set(candidates.complete) == {"good"}
    assert candidates.unreadable == ("private",)
    assert "because it cannot be read, 'private': let the gate's user" in candidates.describe_ignored()


# Two hundred candidates arrive at once: each has one run, one verdict and at most one publication


ARRIVED = 200
# So many of them are run: a few every day, in CI twice as many as are run at once, two of which are alike.
RUN = 40 if CI else 5
# So many at a time are shared by so many processes.
AT_ONCE, PROCESSES = 20, 2

# The verdicts on five that follow each other. A broken one has not all the columns that it should have.
VERDICTS = ("approved", "broken", "refused", "broken", "broken")


def verdict_of(candidate: str) -> str:
    return VERDICTS[int(candidate.split("-")[1]) % len(VERDICTS)]


def table(candidate: str) -> pd.DataFrame:
    if verdict_of(candidate) == "approved":
        return gates.honest(int(candidate.split("-")[1]) % 7)
    return gates.ground_truth() if verdict_of(candidate) == "refused" else gates.honest().drop(columns="age")


def run(path: Path, defs: dg.Definitions, candidates: list[str]) -> dict[str, Ran]:
    with opened(path, defs) as home, kept_connections():
        return {candidate: ran(home.run_gate(candidate)) for candidate in candidates}


def test_two_hundred_candidates(small_gate: dg.Definitions) -> None:
    with homes.new_home() as path, opened(path, small_gate) as home:
        home.prepare()
        names = [f"candidate-{number:03}" for number in range(ARRIVED)]
        for name in names:
            home.deliver(name, {"synthetic.csv": table(name)})

        daemon = Daemon(home)
        requests = daemon.tick()
        assert sorted(str(request.partition_key) for request in requests) == names
        assert {request.job_name for request in requests} == {f"{GATE}_gate"}
        assert len(daemon.run_keys) == ARRIVED
        assert daemon.tick() == []
        # With its cursor lost it asks for the same, and the daemon starts no run twice for one key.
        again = home.tick().run_requests or []
        assert [request.run_key for request in again] == [request.run_key for request in requests]

        started = [str(request.partition_key) for request in requests][:RUN]
        actual: dict[str, Ran] = {}
        for first in range(0, RUN, AT_ONCE):
            batch = started[first : first + AT_ONCE]
            shares = [batch[number::PROCESSES] for number in range(PROCESSES)]
            for ended in together(*(partial(run, path, small_gate, share) for share in shares)):
                actual |= ended
        assert sorted(actual) == sorted(started)

        for candidate, outcome in actual.items():
            assert verdicts(home, candidate) == [verdict_of(candidate)], outcome
            assert outcome.success == (verdict_of(candidate) == "approved"), outcome
        passed = {candidate for candidate in started if verdict_of(candidate) == "approved"}
        releases = path / "releases" / GATE
        assert {folder.name for folder in releases.iterdir()} == passed
        for candidate in passed:
            predicate = gates.stated(releases / candidate)
            assert (predicate.candidate, predicate.run_id) == (candidate, actual[candidate].run_id)
            assert actual[candidate].published == "now"
        assert home.instance.get_materialized_partitions(dg.AssetKey([GATE, "release"])) == passed
        assert daemon.tick() == []


def verdicts(home: Home, candidate: str) -> list[str]:
    """Every verdict on a candidate that its runs left in the event log; the records must agree with it."""
    runs = home.instance.get_runs(dg.RunsFilter(tags={"dagster/partition": candidate}))
    logged = Counter(
        (evaluation.check_name, evaluation.passed)
        for run in runs
        for entry in home.instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION)
        if entry.dagster_event is not None
        and (evaluation := entry.dagster_event.asset_check_evaluation_data)
        and evaluation.asset_key.path[-1] in {"synthetic", "dossier"}
    )
    dossier = home.record(candidate, "dossier.json")
    if not dossier.exists():
        assert logged["within_policy", True] == logged["within_policy", False] == 0
        return ["broken"] * logged["contract", False]
    decision = gates.read_json(dossier)["decision"]
    assert logged["within_policy", decision != "approved"] == 0
    return [decision] * logged["within_policy", decision == "approved"]
