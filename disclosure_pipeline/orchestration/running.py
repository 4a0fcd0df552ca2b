"""Whole runs of a gate in this process, with the events that a daemon's run has."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import get_args

import dagster as dg

from disclosure_pipeline.candidates.store import GateFolders
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.orchestration.arrivals import must_record, require_arrived
from disclosure_pipeline.orchestration.component import build_definitions
from disclosure_pipeline.orchestration.steps import VERDICT, Verdict


def run_job(
    defs: dg.Definitions, job: str, instance: dg.DagsterInstance, candidate: str | None = None
) -> dg.ExecuteInProcessResult:
    """Run a job of a gate. A refusal is a failed run, not an exception."""
    return defs.resolve_job_def(job).execute_in_process(
        instance=instance,
        partition_key=candidate,
        raise_on_error=False,
        run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
    )


@dataclass(frozen=True)
class GateRun:
    """The end of a run: its verdict, in words for custodians, and its id in Dagster."""

    verdict: Verdict
    words: str
    run_id: str


def run_gate(
    folders: GateFolders, candidate: str, show_step: Callable[[str], AbstractContextManager[object]]
) -> GateRun:
    """Run the gate over a candidate, to its release or its refusal.

    The ground truth is recorded first where it is not recorded as it is now; where that fails, it is what
    ended. `show_step` is entered with what is under way. InputError, and nothing is run, where no complete
    candidate of the name lies in the gate's folder, or DAGSTER_HOME is not set.
    """
    _require_runnable(folders, candidate)
    gate = folders.gate
    defs = build_definitions(gate, folders.waivers)
    with dg.DagsterInstance.get() as instance:
        if must_record(folders):
            with show_step("Recording the ground truth"):
                recorded = run_job(defs, f"{gate.name}_ground_truth", instance)
            if not recorded.success:
                return _describe(recorded, instance)
        instance.add_dynamic_partitions(f"{gate.name}_candidates", [candidate])
        with show_step(f"Measuring {candidate}, judging it, and publishing it if it is approved"):
            return _describe(run_job(defs, f"{gate.name}_gate", instance, candidate), instance)


def _require_runnable(folders: GateFolders, candidate: str) -> None:
    """Raise InputError unless a candidate has arrived, and DAGSTER_HOME is set."""
    if not os.environ.get("DAGSTER_HOME"):
        raise InputError("DAGSTER_HOME is not set, so that nobody would find the run again: set it.")
    require_arrived(folders, candidate)


def _describe(run: dg.ExecuteInProcessResult, instance: dg.DagsterInstance) -> GateRun:
    """Read the verdict that the run was tagged with; a run that ended without one has crashed."""
    stored = instance.get_run_by_id(run.run_id)
    tagged = None if stored is None else stored.tags.get(VERDICT)
    verdict = next((word for word in get_args(Verdict) if word == tagged), None)
    if run.success:
        return GateRun(verdict or "approved", "", run.run_id)
    raised = [
        event.step_failure_data.user_failure_data
        for event in run.all_events
        if event.event_type is dg.DagsterEventType.STEP_FAILURE
    ]
    words = [data.description for data in raised if data is not None and data.description]
    return GateRun(verdict or "crashed", "\n".join(words), run.run_id)
