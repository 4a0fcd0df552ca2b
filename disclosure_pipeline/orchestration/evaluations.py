"""What Dagster's event log says of a candidate's checks: needed for a release, and never enough for one.

`PartitionKeyFilter`, the event log's storage and an evaluation's materialisation are not Dagster's public
interface; they are used nowhere else.
"""

from collections.abc import Collection, Iterable

import dagster as dg
from dagster._core.event_api import PartitionKeyFilter
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecord

# A check of one candidate runs once a run: more than this would have to run at the same moment.
_NEWEST = 50


def doubts(
    instance: dg.DagsterInstance,
    checks: Iterable[dg.AssetCheckSpec],
    candidate: str,
    may_warn: Collection[dg.AssetCheckKey],
) -> list[str]:
    """Which checks did not pass for a candidate, in a run that exists, on the latest materialisation.

    A check of `may_warn` may have failed with a warning. Checks without partitions are those of the ground
    truth: they speak for every candidate.
    """
    found = []
    for check in checks:
        partition = candidate if check.partitions_def is not None else None
        problem = _doubt(instance, check.key, partition, warns=check.key in may_warn)
        if problem:
            found.append(f"check {check.name} of {check.asset_key.path[-1]} {problem}")
    return found


def _doubt(
    instance: dg.DagsterInstance, check: dg.AssetCheckKey, partition: str | None, *, warns: bool
) -> str | None:
    """What stands against taking a check for passed, or None."""
    at = [] if partition is None else [partition]
    latest = instance.fetch_materializations(
        dg.AssetRecordsFilter(asset_key=check.asset_key, asset_partitions=at or None), limit=1
    ).records
    if not latest:
        return "speaks of an asset that was never materialised"
    evaluated = [
        (record, evaluation)
        for record in instance.event_log_storage.get_asset_check_execution_history(
            check, limit=_NEWEST, partition_filter=PartitionKeyFilter(key=partition)
        )
        if (evaluation := _evaluation(record)) is not None
    ]
    on_latest = [
        (record, evaluation)
        for record, evaluation in evaluated
        if (target := evaluation.target_materialization_data) is not None
        and target.storage_id == latest[0].storage_id
    ]
    if not on_latest:
        return "was not evaluated on the latest materialisation"
    # The newest of all must have passed too: one that speaks of no materialisation is not passed over.
    for record, evaluation in (evaluated[0], on_latest[0]):
        if not evaluation.passed and not (warns and evaluation.severity == dg.AssetCheckSeverity.WARN):
            return "did not pass"
        run = instance.get_run_by_id(record.run_id) if record.run_id else None
        if run is None:
            return "passed in no run that exists"
        if partition is not None and run.tags.get("dagster/partition") != partition:
            return "passed in a run of another candidate"
    return None


def _evaluation(record: AssetCheckExecutionRecord) -> dg.AssetCheckEvaluation | None:
    """The evaluation of an execution; None of one that has only been planned."""
    event = record.event and record.event.dagster_event
    if not event or event.event_type != dg.DagsterEventType.ASSET_CHECK_EVALUATION:
        return None
    return event.asset_check_evaluation_data
