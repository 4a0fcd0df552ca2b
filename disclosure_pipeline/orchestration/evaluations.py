"""What Dagster's event log says of a candidate's checks: needed for a release, and never enough for one.

`PartitionKeyFilter`, the event log's storage and an evaluation's materialisation are not Dagster's public
interface; they are used nowhere else.
"""

from collections.abc import Collection, Iterable
from functools import cache

import dagster as dg
from dagster._core.event_api import PartitionKeyFilter
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecord

# A check of one candidate runs once a run: more than this would have to run at the same moment.
_NEWEST = 50


def find_check_problems(
    instance: dg.DagsterInstance,
    checks: Iterable[dg.AssetCheckSpec],
    candidate: str,
    may_warn: Collection[dg.AssetCheckKey],
) -> list[str]:
    """Which checks did not pass for a candidate, in a run that exists, on the latest materialisation.

    A check of `may_warn` may have failed with a warning. Checks without partitions are those of the ground
    truth: they hold for every candidate.
    """
    log = _EventLog(instance)
    problems = []
    for check in checks:
        partition = candidate if check.partitions_def is not None else None
        problem = _find_check_problem(log, check.key, partition, may_warn=check.key in may_warn)
        if problem:
            problems.append(f"check {check.name} of {check.asset_key.path[-1]} {problem}")
    return problems


class _EventLog:
    """What an instance recorded of checks, their assets and runs; an asset and a run are read once."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self._instance = instance
        self.latest_materialization = cache(self._latest_materialization)
        self.run = cache(instance.get_run_by_id)

    def _latest_materialization(self, asset: dg.AssetKey, partition: str | None) -> int | None:
        """The storage id of an asset's latest materialisation; None where it was never materialised."""
        partitions = None if partition is None else [partition]
        latest = self._instance.fetch_materializations(
            dg.AssetRecordsFilter(asset_key=asset, asset_partitions=partitions), limit=1
        ).records
        return latest[0].storage_id if latest else None

    def read_evaluations(
        self, check: dg.AssetCheckKey, partition: str | None
    ) -> list[tuple[str, dg.AssetCheckEvaluation]]:
        """The newest evaluations of a check for a partition, newest first, each with the id of its run."""
        records = self._instance.event_log_storage.get_asset_check_execution_history(
            check, limit=_NEWEST, partition_filter=PartitionKeyFilter(key=partition)
        )
        return [
            (record.run_id, evaluation)
            for record in records
            if (evaluation := _read_evaluation(record)) is not None
        ]


def _find_check_problem(
    log: _EventLog, check: dg.AssetCheckKey, partition: str | None, *, may_warn: bool
) -> str | None:
    """Why a check does not count as passed, or None."""
    latest = log.latest_materialization(check.asset_key, partition)
    if latest is None:
        return "speaks of an asset that was never materialised"
    evaluations = log.read_evaluations(check, partition)
    on_latest = [
        (run_id, evaluation)
        for run_id, evaluation in evaluations
        if (target := evaluation.target_materialization_data) is not None and target.storage_id == latest
    ]
    if not on_latest:
        return "was not evaluated on the latest materialisation"
    # The newest of all must have passed too: one that speaks of no materialisation is not passed over.
    for run_id, evaluation in (evaluations[0], on_latest[0]):
        if not evaluation.passed and not (may_warn and evaluation.severity == dg.AssetCheckSeverity.WARN):
            return "did not pass"
        run = log.run(run_id) if run_id else None
        if run is None:
            return "passed in no run that exists"
        if partition is not None and run.tags.get("dagster/partition") != partition:
            return "passed in a run of another candidate"
    return None


def _read_evaluation(record: AssetCheckExecutionRecord) -> dg.AssetCheckEvaluation | None:
    """The evaluation of an execution; None of one that has only been planned."""
    event = record.event and record.event.dagster_event
    if not event or event.event_type != dg.DagsterEventType.ASSET_CHECK_EVALUATION:
        return None
    return event.asset_check_evaluation_data
