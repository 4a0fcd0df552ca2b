"""Runs of the gate for every new candidate, and again when a confidential table has changed."""

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from pathlib import Path
from typing import Any

import dagster as dg

from disclosure_pipeline.candidates.arrival import (
    RecordedTables,
    name_confidential_hash,
    read_recorded_tables,
)
from disclosure_pipeline.candidates.claims import CLAIMS
from disclosure_pipeline.candidates.snapshot import read_snapshot
from disclosure_pipeline.candidates.store import (
    MARKER,
    GateFolders,
    find_complete_candidates,
    require_safe_name,
)
from disclosure_pipeline.errors import DisclosurePipelineError, InputError, StoreError, write_count
from disclosure_pipeline.orchestration.gate_file import folders_of
from disclosure_pipeline.orchestration.steps import VERDICT, redact_errors
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.release.standing import MOST_TRIES, find_revoked
from disclosure_pipeline.runtime.files import read_json_if_whole

# The number of newest candidates that are evaluated again when the ground truth has changed.
NEWEST = 5

FOLDER = "folder"
"""The metadata of a materialisation that names the folder of the candidate that it brings."""

# The most events of an asset that one tick reads.
_MOST_EVENTS = 100


class CandidatePartitions(dg.DynamicPartitionsDefinition):
    """The candidates of a gate as partitions; a run may name an arrived one that no sensor has seen."""

    gate: Gate

    @classmethod
    def of_gate(cls, gate: Gate) -> "CandidatePartitions":
        """Return the partitions of a gate's candidates."""
        partitions = cls(name=f"{gate.name}_candidates")
        partitions.gate = gate
        return partitions

    def __hash__(self) -> int:
        """Return the hash of the plain partitions that it equals."""
        return hash(dg.DynamicPartitionsDefinition(name=self.name))

    def validate_partition_key(self, partition_key: str, context: Any) -> None:
        """Add an arrived candidate before its run is launched. Raise InputError if it has not arrived."""
        instance = context.dynamic_partitions_store
        if (
            isinstance(instance, dg.DagsterInstance)
            and self.gate.synthesis_asset is None
            and not instance.has_dynamic_partition(str(self.name), partition_key)
        ):
            require_arrived(folders_of(self.gate), partition_key)
            instance.add_dynamic_partitions(str(self.name), [partition_key])
        super().validate_partition_key(partition_key, context)


def require_arrived(folders: GateFolders, candidate: str) -> None:
    """Raise InputError, with advice, unless the gate's folder holds the complete candidate.

    Raise StoreError if no candidate may have this name.
    """
    if folders.gate.synthesis_asset is not None:
        raise InputError(
            f"The candidates of {folders.gate.name} come from the asset {folders.gate.synthesis_asset}: "
            "materialise its partition and those downstream in Dagster."
        )
    require_safe_name(candidate, "candidate")
    complete = find_complete_candidates(folders.incoming).complete
    if candidate not in complete:
        others = f"Complete are: {', '.join(complete)}." if complete else "No candidate there is complete."
        raise InputError(
            f"No complete candidate {candidate!r} is in {folders.incoming}: put its tables into a folder of "
            f"that name there, then add an empty file {MARKER}. {others}"
        )


def build_arrivals_sensor(
    gate: Gate, candidates: dg.DynamicPartitionsDefinition, ground_truth_job: Any, gate_job: Any
) -> dg.SensorDefinition:
    """Build the sensor that starts a run for each complete candidate, and another if its content changes.

    It also starts the run that checks and records a new or changed confidential table; candidates wait for a
    changed one. Candidates that were judged, or whose release was revoked, before the sensor saw them are not
    judged again. If the gate names assets that bring its candidates, such an asset must have reported the
    candidate, too.
    """
    condition = f"its folder holds {MARKER}"
    if gate.synthetic_asset:
        condition += f", and {' or '.join(gate.synthetic_asset)} brought it"

    @dg.sensor(
        name=f"{gate.name}_arrivals",
        jobs=[ground_truth_job, gate_job],
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"One run for each new candidate of {gate.name}, once {condition}",
    )
    @redact_errors
    def arrivals(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        folders = folders_of(gate)
        if not folders.ground_truth.exists():
            return dg.SkipReason("The ground truth is not where the gate's file says")
        cursor: dict[str, Any] = json.loads(context.cursor) if context.cursor else {}
        state, recorded = _read_state(folders), read_recorded_tables(folders)
        requests = []
        if cursor.get("ground_truth") != state:  # hashing takes time
            current = _hash_tables(folders)
            if _are_outdated(current, recorded):
                # A key starts one run ever: content that returns after a change needs a new key.
                content = hashlib.sha256(json.dumps(current, sort_keys=True).encode()).hexdigest()
                key = f"ground_truth:{content}:after:{recorded.recorded_at}:{gate.policy_digest()[:12]}"
                requests = [dg.RunRequest(run_key=key, job_name=ground_truth_job.name)]
                if context.cursor or recorded.ground_truth:
                    return dg.SensorResult(run_requests=requests, cursor=context.cursor)
                state = ""  # present candidates do not wait for the first ground truth
        seen: dict[str, str] = cursor.get("candidates", {})
        incoming = find_complete_candidates(folders.incoming)
        if ignored := incoming.describe_ignored():
            context.log.warning(ignored)
        complete = incoming.complete
        brought, last_events = _read_brought(context, folders, cursor.get("brought"))
        if gate.synthetic_asset:
            complete = {name: content for name, content in complete.items() if name in brought}
            brought -= set(complete)
        new = {name: content for name, content in complete.items() if seen.get(name) != content}
        revoked = _find_revoked(folders)
        judged = {
            name
            for name in new
            if name not in seen and (name in revoked or _was_judged(folders, name, recorded))
        }
        known_partitions = set(context.instance.get_dynamic_partitions(str(candidates.name)))
        added = [name for name in new if name not in known_partitions]
        requests += [
            dg.RunRequest(
                # Content that returns with its times, from a backup, needs a new key.
                run_key=f"{name}:{content}" + (f":after:{seen[name]}" if name in seen else ""),
                partition_key=name,
                job_name=gate_job.name,
            )
            for name, content in new.items()
            if name not in judged
        ]
        after: dict[str, Any] = {"ground_truth": state, "candidates": seen | new}
        if gate.synthetic_asset:
            after["brought"] = {"candidates": sorted(brought), "last_events": last_events}
        return dg.SensorResult(
            run_requests=requests,
            skip_reason=None if requests else f"No new candidate in {folders.incoming}. {ignored}".strip(),
            dynamic_partitions_requests=[candidates.build_add_request(added)] if added else [],
            cursor=json.dumps(after),
        )

    return arrivals


def _read_brought(
    context: dg.SensorEvaluationContext, folders: GateFolders, row: Mapping[str, Any] | None
) -> tuple[set[str], dict[str, int]]:
    """Return the candidates that the gate's assets brought and no run has seen, and the last events read."""
    candidates = set(row["candidates"]) if row else set()
    last_events = dict(row["last_events"]) if row else {}
    for name in folders.gate.synthetic_asset:
        records = context.instance.fetch_materializations(
            dg.AssetRecordsFilter(
                asset_key=dg.AssetKey.from_user_string(name), after_storage_id=last_events.get(name)
            ),
            limit=_MOST_EVENTS,
            ascending=True,
        ).records
        for record in records:
            last_events[name] = record.storage_id
            materialization = record.asset_materialization
            folder = materialization.metadata.get(FOLDER) if materialization else None
            candidate = None if folder is None else _find_in(folders.incoming, str(folder.value))
            if candidate is None:
                context.log.warning(
                    f"A materialisation of {name} is ignored: its metadata {FOLDER!r} must name a folder in "
                    "incoming"
                )
            else:
                candidates.add(candidate)
    return candidates, last_events


def _find_in(incoming: Path, path: str) -> str | None:
    """Return the name of a folder in `incoming`; None for any other path or text."""
    with suppress(OSError, ValueError, RuntimeError):
        folder = (incoming / path).resolve()
        return folder.name if folder.parent == incoming.resolve() else None
    return None


def _read_state(folders: GateFolders) -> str:
    """Return a cheap mark that changes when a confidential table is rewritten or removed."""
    tables = [folders.ground_truth, *folders.confidential.values()]
    # The state of a database cannot be read cheaply.
    return repr([(table.state() or "database") if table.exists() else None for table in tables])


def _hash_tables(folders: GateFolders) -> dict[str, str | None]:
    """Return the sha256 of each existing confidential table, named as in a dossier's `measured`."""
    further = {name_confidential_hash(name): source for name, source in folders.confidential.items()}
    tables = {"ground_truth": folders.ground_truth, **further}
    return {name: source.sha256() for name, source in tables.items() if source.exists()}


def must_record(folders: GateFolders) -> bool:
    """Return True if a confidential table is new or has changed since it was recorded."""
    return _are_outdated(_hash_tables(folders), read_recorded_tables(folders))


def _are_outdated(current: Mapping[str, str | None], recorded: RecordedTables) -> bool:
    """Return True if a table must be recorded; a database, which has no hash, only once."""
    return any(
        digest != recorded.hashes[name] if digest else recorded.hashes[name] is None
        for name, digest in current.items()
    )


def build_ground_truth_schedule(
    gate: Gate, candidates: dg.DynamicPartitionsDefinition, gate_job: Any
) -> dg.ScheduleDefinition:
    """Build the schedule that evaluates the newest candidates again after a changed table was recorded.

    A run that crashed is tried again, up to `MOST_TRIES` runs in turn; a candidate whose release was revoked
    is not evaluated.
    """

    @dg.schedule(
        name=f"{gate.name}_ground_truth_changed",
        cron_schedule=gate.schedule,
        target=gate_job,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description=f"Evaluates the {NEWEST} newest candidates again when the ground truth changed",
    )
    @redact_errors
    def ground_truth_changed(
        context: dg.ScheduleEvaluationContext,
    ) -> list[dg.RunRequest] | dg.SkipReason:
        folders = folders_of(gate)
        recorded = read_recorded_tables(folders)
        known_partitions = set(context.instance.get_dynamic_partitions(str(candidates.name)))
        if recorded.recorded_at is None:
            return dg.SkipReason("No ground truth is recorded")
        revoked = _find_revoked(folders)
        requests, others = [], []
        for name in list(find_complete_candidates(folders.incoming).complete)[-NEWEST:]:
            if name in revoked or name not in known_partitions:
                others.append(f"{name} ({'revoked' if name in revoked else 'left to the sensor'})")
                continue
            tries = list_tries(context.instance, gate_job.name, name, recorded)
            if not tries.crashed and _was_decided(folders, name, recorded):
                continue
            if tries.may_be_tried:
                key = f"{name}:{recorded.recorded_at}:{tries.crashed}"
                requests.append(dg.RunRequest(run_key=key, partition_key=name))
            else:
                others.append(f"{name} ({tries})")
        if requests:
            return requests
        sentence = "The newest candidates are judged with the recorded ground truth"
        return dg.SkipReason(f"{sentence}, except {', '.join(others)}" if others else sentence)

    return ground_truth_changed


@dataclass(frozen=True)
class Tries:
    """The runs of a candidate since the tables were recorded: how many crashed in turn, and the newest's end.

    `verdict` is None if there is none, and a word for a run that has not ended or was canceled.
    """

    crashed: int
    verdict: str | None

    @property
    def may_be_tried(self) -> bool:
        """True if there was no run, or the newest crashed and fewer than `MOST_TRIES` did."""
        return self.verdict is None or 0 < self.crashed < MOST_TRIES

    def __str__(self) -> str:
        if self.crashed:
            return f"crashed, {write_count(self.crashed, 'try', 'tries')}: see its status"
        return self.verdict or "not tried"


def list_tries(
    instance: dg.DagsterInstance, job_name: str, candidate: str, recorded: RecordedTables
) -> Tries:
    """Return the runs of a candidate since the confidential tables were recorded, as far as they count."""
    since = None if recorded.recorded_at is None else datetime.fromisoformat(recorded.recorded_at)
    filters = dg.RunsFilter(job_name=job_name, tags={"dagster/partition": candidate}, created_after=since)
    verdicts = [_read_end(run) for run in instance.get_runs(filters)]  # newest first
    crashed = sum(1 for _ in takewhile(lambda verdict: verdict == "crashed", verdicts))
    return Tries(crashed, verdicts[0] if verdicts else None)


def _read_end(run: dg.DagsterRun) -> str:
    """Return the verdict of a run; one that failed without a verdict crashed."""
    if not run.is_finished:
        return "its run has not ended"
    if run.status is dg.DagsterRunStatus.CANCELED:
        return "its run was canceled"
    return run.tags.get(VERDICT, "approved" if run.is_success else "crashed")


def _find_revoked(folders: GateFolders) -> frozenset[str]:
    """Return the candidates whose release was revoked; none if the revocations cannot be believed."""
    with suppress(DisclosurePipelineError):
        return find_revoked(folders)
    return frozenset()


def _was_decided(folders: GateFolders, candidate: str, recorded: RecordedTables) -> bool:
    """Return True if the dossier of a candidate was filed with the recorded tables."""
    dossier = read_json_if_whole(folders.store.candidate_folder(candidate) / "dossier.json")
    return recorded.were_measured(dossier.get("measured"))


def _was_judged(folders: GateFolders, candidate: str, recorded: RecordedTables) -> bool:
    """Return True if the present content of a candidate was measured with the recorded tables."""
    try:
        snapshot = read_snapshot(candidate, folders.store)
    except StoreError:
        return False
    figures = folders.store.candidate_folder(candidate) / "figures.json"
    if not recorded.were_measured(read_json_if_whole(figures).get("measured")):
        return False
    measured_at = figures.stat().st_mtime_ns
    states = {path.name: path.lstat() for path in (folders.incoming / candidate).iterdir()}
    sizes = {name: state.st_size for name, state in states.items() if name not in {MARKER, CLAIMS}}
    return (
        (CLAIMS in states) == (snapshot.claims is not None)
        and sizes == {file.name: file.bytes for file in snapshot.files}
        and all(state.st_mtime_ns < measured_at for state in states.values())
    )
