"""Two hundred candidates arrive at once: each has one run, one verdict and at most one publication."""

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from support import gates, homes
from support.event_stores import kept_connections
from support.gates import GATE, Home
from support.homes import Ran, opened, ran
from support.processes import together
from support.sampling import CI

ARRIVED = 200
# So many of them are run: a few every day, in CI three times as many as are run at once.
RUN = 60 if CI else 5
# So many at a time are shared by so many processes.
AT_ONCE, PROCESSES = 20, 2

# The verdicts on five that follow each other. A broken one has not all the columns that it should have.
VERDICTS = ("approved", "broken", "refused", "broken", "broken")


def verdict_of(candidate: str) -> str:
    return VERDICTS[int(candidate.split("-")[1]) % len(VERDICTS)]


def table(candidate: str, approved: dict[int, Any]) -> Any:
    """The content of a candidate; of those that are approved it is often the same."""
    match verdict_of(candidate):
        case "approved":
            seed = int(candidate.split("-")[1]) % 7
            return approved.setdefault(seed, gates.honest(seed))
        case "refused":
            return gates.ground_truth()
        case _:
            return gates.honest().drop(columns="age")


def tick(home: Home, cursor: str | None) -> tuple[list[dg.RunRequest], str | None]:
    context = dg.build_sensor_context(
        instance=home.instance, instance_ref=home.instance.get_ref(), definitions=home.defs, cursor=cursor
    )
    actual = home.defs.resolve_sensor_def(f"{GATE}_arrivals").evaluate_tick(context)
    for added in actual.dynamic_partitions_requests or []:
        assert isinstance(added, dg.AddDynamicPartitionsRequest)
        home.instance.add_dynamic_partitions(added.partitions_def_name, added.partition_keys)
    return list(actual.run_requests or []), actual.cursor


def run(path: Path, defs: dg.Definitions, candidates: list[str]) -> dict[str, Ran]:
    with opened(path, defs) as home, kept_connections():
        return {candidate: ran(home.run_gate(candidate)) for candidate in candidates}


@pytest.mark.usefixtures("remembered_results")
def test_two_hundred_candidates(small_gate: dg.Definitions) -> None:
    with homes.new_home() as path, opened(path, small_gate) as home:
        home.prepare()
        names, approved = [f"candidate-{number:03}" for number in range(ARRIVED)], dict[int, Any]()
        for name in names:
            home.deliver(name, {"synthetic.csv": table(name, approved)})

        requests, cursor = tick(home, None)
        assert sorted(str(request.partition_key) for request in requests) == names
        assert {request.job_name for request in requests} == {f"{GATE}_gate"}
        keys = [request.run_key for request in requests]
        assert len(set(keys)) == ARRIVED
        assert tick(home, cursor)[0] == []
        # With its cursor lost it asks for the same, and the daemon starts no run twice for one key.
        assert [request.run_key for request in tick(home, None)[0]] == keys

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
        assert tick(home, cursor)[0] == []


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
