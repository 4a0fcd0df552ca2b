"""Requests to the running web server release nothing, and hold up nothing.

Dagster's web server takes events from anyone who reaches it: that a check passed, that an asset was
materialised. Here everybody's worst forgeries are in the log, and `release` runs alone. It launches runs for
them as well.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import dagster as dg
import pytest
from support import gates, homes
from support.browser import Server, web_server
from support.event_stores import kept_connections
from support.gates import COPY, GATE, HONEST, Home
from support.homes import opened, ran, refused
from support.processes import wait_until
from support.sampling import CI, on_some_days, only_in_ci

pytestmark = pytest.mark.usefixtures("remembered_results")

# The only candidates that are released while events are forged: before the gate runs, or before the release.
UNHINDERED = ("forged-before", "forged-between")
# And the one of which a run is launched as it should be.
LAUNCHED = "launched"

# Without a queue, for there is no daemon that would take runs from it. Dagster has no public name for this.
LAUNCHES_AT_ONCE = """
telemetry: {enabled: false}
run_coordinator: {module: dagster._core.run_coordinator, class: DefaultRunCoordinator}
"""

MATERIALIZE = """
mutation ($event: ReportRunlessAssetEventsParams!) {
  reportRunlessAssetEvents(eventParams: $event) { __typename }
}"""
EVALUATE = """
mutation ($event: ReportAssetCheckEvaluationsParams!) {
  reportAssetCheckEvaluations(eventParams: $event) { __typename }
}"""
DELETE = "mutation ($run: String!) { deleteRun(runId: $run) { __typename } }"
LAUNCH = """
mutation ($run: ExecutionParams!) {
  launchRun(executionParams: $run) {
    __typename
    ... on LaunchRunSuccess { run { runId } }
    ... on PythonError { message }
  }
}"""
WIPE = """
mutation ($ranges: [PartitionsByAssetSelector!]!) {
  wipeAssets(assetPartitionRanges: $ranges) { __typename }
}"""


@dataclass(frozen=True)
class Served:
    home: Home
    server: Server


@pytest.fixture(scope="module")
def served(small_gate: dg.Definitions) -> Iterator[Served]:
    with homes.new_home(LAUNCHES_AT_ONCE) as path, opened(path, small_gate) as home:
        home.write_ground_truth(gates.ground_truth())
        home.deliver(HONEST, {"synthetic.csv": gates.honest()})
        for result in (home.run_ground_truth(), home.run_gate(HONEST)):
            assert ran(result).success, ran(result)
        with web_server(path) as server, kept_connections():
            yield Served(home, server)
        published = {actual.name for actual in (path / "releases" / GATE).iterdir()}
        assert published <= {HONEST, *UNHINDERED, LAUNCHED}


def checks(home: Home) -> list[dg.AssetCheckKey]:
    return sorted(home.defs.resolve_asset_graph().asset_check_keys, key=str)


def assets(home: Home) -> list[dg.AssetKey]:
    return sorted(home.defs.resolve_asset_graph().get_all_asset_keys(), key=str)


def over_http(served: Served, candidate: str, run_id: str, *, passed: bool = True) -> None:
    """Report that every asset is there, as another file, and that every check passed or failed."""
    body = {"partition": candidate, "run_id": run_id, "metadata": {"run_id": run_id, "sha256": "0" * 64}}
    for asset in assets(served.home):
        assert served.server.post(f"/report_asset_materialization/{asset.to_user_string()}", body) == 200
    for check in checks(served.home):
        message: dict[str, Any] = {"check_name": check.name, "passed": passed, "severity": "ERROR"}
        message |= body | {"metadata": {"value": 0, "run_id": run_id}}
        assert served.server.post(f"/report_asset_check/{check.asset_key.to_user_string()}", message) == 200


def over_graphql(served: Served, candidate: str, run_id: str) -> None:
    for asset in assets(served.home):
        event: dict[str, Any] = {
            "eventType": "ASSET_MATERIALIZATION",
            "assetKey": {"path": list(asset.path)},
            "partitionKeys": [candidate],
            "description": run_id,
        }
        answer = served.server.ask(MATERIALIZE, event=event)["reportRunlessAssetEvents"]
        assert answer["__typename"] == "ReportRunlessAssetEventsSuccess"
    for check in checks(served.home):
        event = {
            "assetKey": {"path": list(check.asset_key.path)},
            "checkName": check.name,
            "passed": True,
            "severity": "ERROR",
            "partitionKeys": [candidate],
            "serializedMetadata": f'{{"run_id": "{run_id}"}}',
        }
        answer = served.server.ask(EVALUATE, event=event)["reportAssetCheckEvaluations"]
        assert answer["__typename"] == "ReportAssetCheckEvaluationsSuccess"


Forge = Callable[[Served, str, str], None]
EACH_SENDER = pytest.mark.parametrize("forge", [over_http, over_graphql] if CI else [over_http])


def not_released(served: Served, candidate: str) -> str:
    folder = served.home.path / "releases" / GATE
    before = sorted(folder.rglob("*"))
    message = refused(served.home.materialize("release", candidate))
    assert sorted(folder.rglob("*")) == before
    assert candidate not in {path.name for path in before}
    return message


def is_forged(home: Home, candidate: str) -> bool:
    find = home.instance.get_latest_asset_check_evaluation_record
    return all(
        record is not None
        and record.event is not None
        and record.event.dagster_event is not None
        and (message := record.event.dagster_event.asset_check_evaluation_data).passed
        and message.partition == candidate
        and not record.run_id
        for record in map(find, checks(home))
    )


def run_of(home: Home, candidate: str) -> str:
    return home.instance.get_runs(dg.RunsFilter(tags={"dagster/partition": candidate}), limit=1)[0].run_id


@EACH_SENDER
def test_forged_passes_do_not_release_what_was_refused(served: Served, forge: Forge) -> None:
    candidate, run_id = f"{COPY}-{forge.__name__}", run_of(served.home, HONEST)
    served.home.deliver(candidate, {"synthetic.csv": gates.ground_truth()})
    assert not served.home.run_gate(candidate).success
    events = len(served.home.instance.all_logs(run_id))
    forge(served, candidate, run_id)
    assert is_forged(served.home, candidate)
    assert len(served.home.instance.all_logs(run_id)) == events  # whatever is claimed
    message = not_released(served, candidate)
    assert "refused" in message and "singled out in both tables" in message


@EACH_SENDER
def test_forged_passes_do_not_release_what_never_ran(served: Served, forge: Forge) -> None:
    arrived, unheard_of = f"arrived-{forge.__name__}", f"unheard-of-{forge.__name__}"
    served.home.deliver(arrived, {"synthetic.csv": gates.honest(7)})
    for candidate in (arrived, unheard_of):
        forge(served, candidate, run_of(served.home, HONEST))
        assert is_forged(served.home, candidate)
        assert "run synthetic first" in not_released(served, candidate)


@on_some_days
def test_what_refused_can_be_deleted_but_not_undone(served: Served) -> None:
    """Runs and materialisations can be deleted through the web server: what passed before is not believed."""
    candidate = "deleted"
    served.home.deliver(candidate, {"synthetic.csv": gates.honest(4)})
    assert served.home.decide(candidate).success
    served.home.deliver(candidate, {"synthetic.csv": gates.ground_truth()})
    assert not served.home.run_gate(candidate).success
    answer = served.server.ask(DELETE, run=run_of(served.home, candidate))
    assert answer["deleteRun"]["__typename"] == "DeletePipelineRunSuccess"
    assert "refused" in not_released(served, candidate)
    ranges = [
        {
            "assetKey": {"path": list(asset.path)},
            "partitions": {"range": {"start": candidate, "end": candidate}},
        }
        for asset in assets(served.home)
        if asset.path[-1] != "ground_truth"
    ]
    served.server.ask(WIPE, ranges=ranges)
    not_released(served, candidate)


def launched(served: Served, candidate: str, config: Any, job: str = f"{GATE}_gate") -> dg.DagsterRun | None:
    """Ask for a run as the launchpad does, and wait for its end; None where its configuration is refused."""
    location = {"repositoryName": "__repository__", "repositoryLocationName": "location.py"}
    run = {
        "selector": {**location, "jobName": job},
        "runConfigData": config,
        "executionMetadata": {"tags": [{"key": "dagster/partition", "value": candidate}]},
    }
    answer = served.server.ask(LAUNCH, run=run)["launchRun"]
    if answer["__typename"] == "RunConfigValidationInvalid":
        return None
    assert answer["__typename"] == "LaunchRunSuccess", answer

    def find() -> dg.DagsterRun | None:
        actual = served.home.instance.get_run_by_id(answer["run"]["runId"])
        return actual if actual is not None and actual.is_finished else None

    wait_until(lambda: find() is not None, "A run that was launched did not end")
    return find()


@only_in_ci("runs in processes of their own", days=2)
def test_a_launched_run_releases_what_is_approved_and_nothing_else(served: Served) -> None:
    """With a configuration by which Dagster goes on after a blocking check that failed."""
    goes_on = {"config": {"step_dependency_config": {"require_upstream_step_success": False}}}
    other_folder = {"io_manager": {"config": {"base_dir": str(served.home.path / "elsewhere")}}}
    lax = {"ops": {f"{GATE}__release": {"config": {"policy": {"repU": 100, "DiSCO": 100}}}}}
    config = {"execution": goes_on, "resources": other_folder, **lax}
    served.home.deliver("launched-copy", {"synthetic.csv": gates.ground_truth()})
    served.home.instance.add_dynamic_partitions(f"{GATE}_candidates", ["launched-copy"])

    assert launched(served, "launched-copy", {"resources": {"policy": {"config": {"repU": 100}}}}) is None
    run = launched(served, "launched-copy", config)
    assert run is not None and run.is_failure_or_canceled
    assert not served.home.published("launched-copy").exists()
    failed = served.home.instance.all_logs(run.run_id, of_type=dg.DagsterEventType.STEP_FAILURE)
    assert {entry.step_key for entry in failed} == {f"{GATE}__dossier", f"{GATE}__release"}
    assert not (served.home.path / "elsewhere").exists()
    alone = launched(served, "launched-copy", config, homes.ALONE)
    assert alone is not None and alone.is_failure_or_canceled
    assert not served.home.published("launched-copy").exists()
    served.home.deliver(LAUNCHED, {"synthetic.csv": gates.honest(8)})
    served.home.instance.add_dynamic_partitions(f"{GATE}_candidates", [LAUNCHED])
    assert served.home.run_ground_truth().success  # events of it may have been forged
    honest = launched(served, LAUNCHED, config)
    assert honest is not None and honest.is_success
    assert gates.stated(served.home.published(LAUNCHED)).run_id == honest.run_id


@on_some_days
@pytest.mark.parametrize("candidate", UNHINDERED)
def test_forged_failures_hold_up_no_release(served: Served, candidate: str) -> None:
    home, is_decided = served.home, candidate == UNHINDERED[1]
    home.deliver(candidate, {"synthetic.csv": gates.honest(UNHINDERED.index(candidate) + 5)})
    assert not is_decided or home.decide(candidate).success
    over_http(served, candidate, run_of(home, HONEST), passed=False)
    release = home.materialize("release", candidate) if is_decided else home.run_gate(candidate)
    assert ran(release).published == "now"
