"""When the gate runs by itself: for every new candidate, and again where the ground truth changed."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import dagster as dg

from disclosure_pipeline.candidates.files import StoreError, read_json
from disclosure_pipeline.candidates.folders import GateFolders
from disclosure_pipeline.candidates.store import MARKER, is_safe_name
from disclosure_pipeline.orchestration.folders import folders_of
from disclosure_pipeline.orchestration.redaction import redact_errors
from disclosure_pipeline.policy.gate import Gate

# How many of the newest candidates are evaluated again when the ground truth changed.
NEWEST = 5

# What stands for the state of a database, which nothing cheap tells.
_DATABASE = "database"


def arrivals_sensor(
    gate: Gate, candidates: dg.DynamicPartitionsDefinition, ground_truth_job: Any, gate_job: Any
) -> dg.SensorDefinition:
    """Starts one run for every candidate folder that is complete, and again if its content changes.

    A ground truth that is new or changed is checked and recorded first; candidates wait for it.
    """

    @dg.sensor(
        name=f"{gate.name}_arrivals",
        jobs=[ground_truth_job, gate_job],
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"One run for each new candidate of {gate.name}, once its folder holds {MARKER}",
    )
    @redact_errors
    def arrivals(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        folders = folders_of(gate)
        if not folders.ground_truth.exists():
            return dg.SkipReason("The ground truth is not where the gate's definition says")
        cursor: dict[str, Any] = json.loads(context.cursor) if context.cursor else {}
        state = folders.ground_truth.state() or _DATABASE
        if cursor.get("ground_truth") != state:  # only then is it worth the time to hash it
            current, recorded = folders.ground_truth.sha256(), read_ground_truth_record(folders)
            # A database has no hash until it is read: it is recorded once, and again when somebody asks.
            if current != recorded.sha256 if current else recorded.sha256 is None:
                # A key starts one run, ever: content that comes back after another needs a new one.
                key = f"ground_truth:{current}:after:{recorded.recorded_at}:{gate.policy_digest()[:12]}"
                return dg.SensorResult(
                    run_requests=[dg.RunRequest(run_key=key, job_name=ground_truth_job.name)],
                    cursor=context.cursor,
                )
        seen: dict[str, str] = cursor.get("candidates", {})
        incoming = find_complete_candidates(folders.incoming)
        for name in incoming.refused:
            context.log.warning(f"A folder in incoming is left out, its name is not allowed: {name[:100]!r}")
        new = {name: content for name, content in incoming.complete.items() if seen.get(name) != content}
        known_partitions = set(context.instance.get_dynamic_partitions(str(candidates.name)))
        added = [name for name in new if name not in known_partitions]
        return dg.SensorResult(
            run_requests=[
                dg.RunRequest(run_key=f"{name}:{content}", partition_key=name, job_name=gate_job.name)
                for name, content in new.items()
            ],
            skip_reason=None if new else f"No new candidate in {folders.incoming}",
            dynamic_partitions_requests=[candidates.build_add_request(added)] if added else [],
            cursor=json.dumps({"ground_truth": state, "candidates": seen | new}),
        )

    return arrivals


@dataclass(frozen=True)
class Incoming:
    """Complete candidates with a signature of their content, and names of folders that are not allowed."""

    complete: dict[str, str]
    refused: tuple[str, ...]


def find_complete_candidates(incoming: Path) -> Incoming:
    """The folders in `incoming` that hold a marker file, in order of arrival of the marker."""
    folders = [path for path in incoming.iterdir() if (path / MARKER).is_file()] if incoming.is_dir() else []
    folders.sort(key=lambda path: ((path / MARKER).stat().st_mtime_ns, path.name))
    return Incoming(
        complete={path.name: _sign_listing(path.iterdir()) for path in folders if is_safe_name(path.name)},
        refused=tuple(path.name for path in folders if not is_safe_name(path.name)),
    )


def _sign_listing(files: Iterable[Path]) -> str:
    """Changes when a file is added, removed or written again. Cheap: the run itself hashes the content.

    A link counts as itself: one that leads nowhere must not stop the sensor for everybody else.
    """
    states = [(path.name, path.lstat()) for path in files]
    listing = sorted((name, state.st_size, state.st_mtime_ns) for name, state in states)
    return hashlib.sha256(repr(listing).encode()).hexdigest()[:16]


def ground_truth_schedule(
    gate: Gate, candidates: dg.DynamicPartitionsDefinition, gate_job: Any
) -> dg.ScheduleDefinition:
    """Evaluates the newest candidates again once a changed ground truth is recorded."""

    @dg.schedule(
        name=f"{gate.name}_ground_truth_changed",
        cron_schedule="*/15 * * * *",
        target=gate_job,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description=f"Evaluates the {NEWEST} newest candidates again when the ground truth changed",
    )
    @redact_errors
    def ground_truth_changed(
        context: dg.ScheduleEvaluationContext,
    ) -> list[dg.RunRequest] | dg.SkipReason:
        folders = folders_of(gate)
        recorded = read_ground_truth_record(folders)
        known_partitions = set(context.instance.get_dynamic_partitions(str(candidates.name)))
        if recorded.recorded_at is None:
            return dg.SkipReason("No ground truth is recorded")
        since = datetime.fromisoformat(recorded.recorded_at)

        def is_outdated(name: str) -> bool:
            """Not measured with the recorded GT, and not tried: what cannot be measured is tried once."""
            if name not in known_partitions or read_measured_hash(folders, name) == recorded.sha256:
                return False
            runs = dg.RunsFilter(
                job_name=gate_job.name, tags={"dagster/partition": name}, created_after=since
            )
            return not context.instance.get_runs_count(runs)

        return [
            dg.RunRequest(run_key=f"{name}:{recorded.recorded_at}", partition_key=name)
            for name in find_newest(folders)
            if is_outdated(name)
        ] or dg.SkipReason("The newest candidates are measured with the recorded ground truth")

    return ground_truth_changed


def find_newest(folders: GateFolders) -> list[str]:
    """The newest complete candidates, the latest last."""
    return list(find_complete_candidates(folders.incoming).complete)[-NEWEST:]


@dataclass(frozen=True)
class GroundTruthRecord:
    """The hash of the GT that was recorded last, and when that was; None where none is."""

    sha256: str | None
    recorded_at: str | None


def read_ground_truth_record(folders: GateFolders) -> GroundTruthRecord:
    """The record of the ground truth in the store."""
    record = _read_record(folders.store.ground_truth)
    return GroundTruthRecord(record.get("sha256"), record.get("recorded_at"))


def read_measured_hash(folders: GateFolders, candidate: str) -> str | None:
    """The hash of the GT that a candidate was measured with last, if it was."""
    measured: dict[str, str] = _read_record(folders.store.candidate_folder(candidate) / "figures.json").get(
        "measured", {}
    )
    return measured.get("ground_truth")


def _read_record(path: Path) -> dict[str, Any]:
    """A record of the store; empty where there is none that can be read."""
    try:
        return read_json(path, "")
    except StoreError:
        return {}
