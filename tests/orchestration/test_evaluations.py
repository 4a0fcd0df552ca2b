"""What the event log has to say of a candidate's checks before it is released."""

import shutil
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationTargetMaterializationData,
)
from support import gates
from support.gates import COPY, GATE, HONEST, Home, failures
from support.sampling import some_of

from disclosure_pipeline.orchestration.clause_checks import find_check_problems

DOSSIER = dg.AssetKey([GATE, "dossier"])
IDENTITY = dg.AssetKey([GATE, "identity_disclosure"])
REPU = dg.AssetCheckKey(IDENTITY, "bound_repU")


def specs(home: Home) -> list[dg.AssetCheckSpec]:
    """Every check of the gate."""
    return [spec for asset in home.defs.resolve_asset_graph().assets_defs for spec in asset.check_specs]


def problems(home: Home, candidate: str = HONEST, may_warn: Sequence[dg.AssetCheckKey] = ()) -> list[str]:
    return find_check_problems(home.instance, specs(home), candidate, may_warn)


def report_check(home: Home, key: dg.AssetCheckKey, candidate: str | None = HONEST, **changes: Any) -> None:
    """Write an evaluation into the event log as anybody can who reaches the web server."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        evaluation = dg.AssetCheckEvaluation(
            asset_key=key.asset_key,
            check_name=key.name,
            **{"passed": True, "metadata": {}, "partition": candidate, **changes},
        )
    home.instance.report_runless_asset_event(evaluation)


def report_materialization(home: Home, key: dg.AssetKey, candidate: str = HONEST) -> None:
    home.instance.report_runless_asset_event(dg.AssetMaterialization(key, partition=candidate))


def test_every_check_of_an_approved_candidate_passed(finished_home: Home) -> None:
    assert len(specs(finished_home)) > 15
    assert problems(finished_home) == []


def test_a_check_that_failed_is_named(finished_home: Home) -> None:
    listed = problems(finished_home, COPY)
    assert "check bound_repU of identity_disclosure did not pass" in listed
    assert "check within_policy of dossier did not pass" in listed


def test_nothing_is_known_of_a_candidate_that_never_ran(finished_home: Home) -> None:
    # That of the ground truth has no partitions.
    assert len(problems(finished_home, "third")) == len(specs(finished_home)) - 1


def report_both(home: Home) -> None:
    report_materialization(home, IDENTITY)
    report_check(home, REPU)


FORGED: dict[str, tuple[Callable[[Home], object], str]] = {
    "a pass, of no materialisation": (lambda home: report_check(home, REPU), "no run that exists"),
    "a failure, of no materialisation": (
        lambda home: report_check(home, REPU, passed=False),
        "did not pass",
    ),
    "a materialisation": (
        lambda home: report_materialization(home, IDENTITY),
        "not evaluated on the latest materialisation",
    ),
    "a materialisation, and a pass": (
        report_both,
        "not evaluated on the latest materialisation",
    ),
    "a warning": (
        lambda home: report_check(home, REPU, passed=False, severity=dg.AssetCheckSeverity.WARN),
        "did not pass",
    ),
    "a pass of the ground truth's contract": (
        lambda home: report_check(
            home, dg.AssetCheckKey(dg.AssetKey([GATE, "ground_truth"]), "contract"), None
        ),
        "check contract of ground_truth passed in no run that exists",
    ),
}


@pytest.mark.parametrize("what", some_of(FORGED))
def test_what_is_forged_stops_a_release_and_a_run_heals_it(finished_home: Home, what: str) -> None:
    forge, message = FORGED[what]
    shutil.rmtree(finished_home.path / "releases")
    forge(finished_home)
    assert any(message in problem for problem in problems(finished_home))
    ran = finished_home.materialize("release", HONEST)
    assert message in "".join(failures(ran).values())
    assert finished_home.nothing_published()
    assert finished_home.run_ground_truth().success
    assert finished_home.run_gate(HONEST).success
    assert problems(finished_home) == []


def test_forged_passes_do_not_help_a_refused_candidate(finished_home: Home) -> None:
    for spec in specs(finished_home):
        report_check(finished_home, spec.key, COPY if spec.partitions_def else None)
    assert len(problems(finished_home, COPY)) == len(specs(finished_home))


def report_pass_of_run(home: Home, key: dg.AssetCheckKey, candidate: str, run_of: str) -> None:
    """A pass for one candidate's latest materialisation, evaluated by a run of another candidate."""
    (run,) = home.instance.get_runs(dg.RunsFilter(tags={"dagster/partition": run_of}))
    latest = home.instance.fetch_materializations(
        dg.AssetRecordsFilter(asset_key=key.asset_key, asset_partitions=[candidate]), limit=1
    ).records[0]
    target = AssetCheckEvaluationTargetMaterializationData(
        storage_id=latest.storage_id, run_id=latest.run_id, timestamp=latest.timestamp
    )
    evaluation = dg.AssetCheckEvaluation(
        asset_key=key.asset_key,
        check_name=key.name,
        passed=True,
        metadata={},
        target_materialization_data=target,
        partition=candidate,
    )
    event = dg.DagsterEvent(
        event_type_value=dg.DagsterEventType.ASSET_CHECK_EVALUATION.value,
        job_name=run.job_name,
        event_specific_data=evaluation,
    )
    home.instance.report_dagster_event(event, run.run_id)


def test_a_pass_in_a_run_of_another_candidate_is_none(finished_home: Home) -> None:
    """The pass of an approved candidate's run is not the pass of the candidate that was refused."""
    report_pass_of_run(finished_home, REPU, COPY, run_of=COPY)
    assert not [problem for problem in problems(finished_home, COPY) if "check bound_repU " in problem]
    report_pass_of_run(finished_home, REPU, COPY, run_of=HONEST)
    listed = problems(finished_home, COPY)
    assert "check bound_repU of identity_disclosure passed in a run of another candidate" in listed


def test_a_deleted_run_is_no_run(finished_home: Home) -> None:
    (run,) = finished_home.instance.get_runs(dg.RunsFilter(tags={"dagster/partition": HONEST}))
    finished_home.instance.run_storage.delete_run(run.run_id)
    assert len(problems(finished_home)) == len(specs(finished_home)) - 1


def test_a_warning_is_enough_where_one_is_expected(finished_home: Home) -> None:
    """Only for that check, and only a warning."""
    strict = gates.definition(policy={"repU": 1, "DiSCO": 100, "one_way": "refuse"})
    home = Home(finished_home.path, gates.load(strict), finished_home.instance)
    assert not home.run_gate(HONEST).success
    failed = "check bound_repU of identity_disclosure did not pass"
    assert failed in problems(home)
    assert failed in problems(home, may_warn=[REPU])  # it failed as an error


def test_a_planned_check_is_not_an_evaluated_one(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that ends before its checks leaves them planned."""
    from disclosure_pipeline.orchestration import measuring_assets

    def broken(*_: Any) -> None:
        raise ValueError

    home.prepare({HONEST: gates.honest()})
    with monkeypatch.context() as patch:
        patch.setattr(measuring_assets, "measure", broken)
        assert not home.run_gate(HONEST).success
    never = "check bound_repU of identity_disclosure speaks of an asset that was never materialised"
    assert never in problems(home)
    assert home.run_gate(HONEST).success
    assert problems(home) == []


def test_what_is_not_public_in_dagster_is_where_it_was() -> None:
    """When this breaks, evaluations.py has to follow."""
    from dagster._core.event_api import PartitionKeyFilter
    from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecord

    assert PartitionKeyFilter(key="x").key == "x"
    assert {"run_id", "event"} <= set(AssetCheckExecutionRecord._fields)
    with dg.DagsterInstance.ephemeral() as instance:
        actual = instance.event_log_storage.get_asset_check_execution_history(
            REPU, limit=1, partition_filter=PartitionKeyFilter(key=None)
        )
    assert list(actual) == []
