"""`DisclosureGate`: a gate's YAML file as assets, checks, jobs, sensors and a schedule; and runs of it."""

import logging
import os
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import dagster as dg
from pydantic import BaseModel, Field

from disclosure_pipeline.candidates.store import GateFolders
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.orchestration.arrivals import (
    CandidatePartitions,
    build_arrivals_sensor,
    build_ground_truth_schedule,
    must_record,
    require_arrived,
)
from disclosure_pipeline.orchestration.assets import (
    build_bins,
    build_candidates,
    build_disclosure,
    build_dossier,
    build_ground_truth,
    build_release,
    build_synthetic,
)
from disclosure_pipeline.orchestration.failures import build_failures_sensor
from disclosure_pipeline.orchestration.gate_file import (
    fill_in_templates,
    require_as_written,
    require_other_table,
    require_prerequisites,
    set_up_gate,
    write_gate,
)
from disclosure_pipeline.orchestration.steps import VERDICT, GateGraph, Verdict, now
from disclosure_pipeline.policy.clauses import list_effective_clauses
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.gate_template import (
    EXAMPLE,
    describe_table,
    find_gate_file,
)
from disclosure_pipeline.policy.reviewed_files import Waiver, read_waivers
from disclosure_pipeline.release.readiness import find_home_problem
from disclosure_pipeline.tables.sources import read_descriptions, read_raw


class GateParams(BaseModel):
    """The parameters of a new gate. Without a table, its file describes invented columns to be replaced."""

    table: str | None = Field(None, description="A synthetic or invented table with the columns of GT")
    ground_truth: str | None = Field(None, description="The location of the confidential table")
    key: list[str] = Field([], description="A column that somebody may know; repeat for more")
    target: list[str] = Field([], description="A column to protect; by default all columns except keys")


class GateScaffolder(dg.Scaffolder[GateParams]):
    """Writes a gate's file, makes its folders and keys, and adds its variables to `.env`."""

    @classmethod
    def get_scaffold_params(cls) -> type[GateParams]:
        """Return the parameters of the command."""
        return GateParams

    def scaffold(self, request: dg.ScaffoldRequest[GateParams]) -> None:
        """Write the gate into the folder that Dagster names; in a project, make folders and keys, too."""
        if request.scaffold_format != "yaml" or request.append:
            raise InputError("A gate is a YAML file in its own folder.")
        folder_name = re.sub(r"[^a-z0-9_]", "_", request.target_path.name.casefold())
        name, params = (folder_name if folder_name[:1].isalpha() else f"g{folder_name}")[:50], request.params
        schema = EXAMPLE
        if params.table is not None:
            if not params.key:
                raise InputError("Name the columns that somebody may know: --key COLUMN, once for each.")
            if params.ground_truth is not None:
                require_other_table(Path(params.table), params.ground_truth)
            raw = read_raw(params.table, "the table")
            descriptions = read_descriptions(params.table, "the table")
            schema = describe_table(raw, params.key, params.target, descriptions=descriptions)
        elif params.key or params.target:
            raise InputError("Keys and targets are columns of a table: give --table FILE, too.")
        ground_truth = params.ground_truth or f"{name}/ground_truth.csv"
        project = request.project_root
        if project is not None and (project / "pyproject.toml").is_file():
            set_up_gate(name, request.target_path, project, ground_truth, schema)
        else:
            write_gate(name, request.target_path, ground_truth, schema)


_LOG = logging.getLogger(__name__)


@dg.scaffold_with(GateScaffolder)
class DisclosureGate(dg.Component, dg.Resolvable):
    """Decides which synthetic versions of one data set may be released under one policy.

    The attributes are those of `Gate`; paths may be templates such as "{{ env.GROUND_TRUTH }}". The policy
    is part of the file, never of a run, so nobody can change it in the launchpad.
    """

    def __init__(self, gate: Gate) -> None:
        self.gate = gate

    @classmethod
    def get_spec(cls) -> dg.ComponentTypeSpec:
        """Return the description of the component for tools."""
        return dg.ComponentTypeSpec(
            description="A gate that measures what synthetic tables disclose, and releases or refuses them",
            tags=["statistical disclosure control", "synthetic data"],
        )

    @classmethod
    def model(cls) -> type[BaseModel]:
        """Return `Gate`, which refuses unknown and contradictory attributes with their place."""
        return Gate

    @classmethod
    def resolve_from_model(cls, context: dg.ResolutionContext, model: BaseModel) -> "DisclosureGate":
        """Return the component with the templates in its paths filled in; nothing else is a template."""
        return cls(fill_in_templates(Gate.model_validate(model.model_dump()), context))

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Return the gate's definitions, if its file, read strictly, is what Dagster read."""
        file = find_gate_file(context.path)
        if file is not None:
            key = context.component_path.instance_key
            position = key if isinstance(key, int) else 0
            require_as_written(self.gate, file, position)
            if os.environ.get("DAGSTER_IS_DEFS_VALIDATION_CLI") == "1":  # Dagster sets it for `dg check defs`
                require_prerequisites(self.gate, file, position, now())
        return build_definitions(self.gate, read_waivers(context.path / "waivers"))


def build_definitions(gate: Gate, waivers: Sequence[Waiver] = ()) -> dg.Definitions:
    """Build the assets and checks of a gate, a job for GT and one for a candidate, sensors and schedule."""
    for clause in list_effective_clauses(gate.clauses()):
        _LOG.info("Gate %s: %s", gate.name, clause)
    candidates = CandidatePartitions.of_gate(gate)
    graph = GateGraph(gate, candidates, tuple(waivers))
    assets = [
        build_ground_truth(graph),
        build_synthetic(graph),
        build_bins(graph),
        build_disclosure(graph),
        build_dossier(graph),
        build_release(graph),
        build_candidates(graph),
    ]
    ground_truth_job = dg.define_asset_job(
        f"{gate.name}_ground_truth",
        selection=dg.AssetSelection.assets(graph.key("ground_truth")),
        description="Checks and records the ground truth",
        executor_def=dg.in_process_executor,
    )
    gate_job = dg.define_asset_job(
        f"{gate.name}_gate",
        # Each run lists the candidates at its end, even when it refuses.
        selection=dg.AssetSelection.groups(gate.name)
        - dg.AssetSelection.assets(graph.key("ground_truth"), graph.key("candidates")),
        description="Measures one candidate and releases or refuses it",
        executor_def=dg.in_process_executor,
    )
    return dg.Definitions(
        assets=assets,
        jobs=[ground_truth_job, gate_job],
        sensors=[
            build_arrivals_sensor(gate, candidates, ground_truth_job, gate_job),
            build_failures_sensor(
                gate,
                [check.key for asset in assets for check in asset.check_specs],
                [ground_truth_job, gate_job],
            ),
        ],
        schedules=[build_ground_truth_schedule(gate, candidates, gate_job)],
    )


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
    """The verdict of a run, its reasons for custodians, and its id in Dagster."""

    verdict: Verdict
    words: str
    run_id: str


def run_gate(
    folders: GateFolders, candidate: str, show_step: Callable[[str], AbstractContextManager[object]]
) -> GateRun:
    """Run the gate on a candidate until its release or refusal.

    A new or changed ground truth is recorded first; if that fails, the result is about that run. `show_step`
    is entered with the name of each step. Raise InputError, and run nothing, if the gate's folder holds no
    complete candidate of the name, or if Dagster could not keep the run.
    """
    if problem := find_home_problem():
        raise InputError(f"DAGSTER_HOME {problem}.")
    require_arrived(folders, candidate)
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


def _describe(run: dg.ExecuteInProcessResult, instance: dg.DagsterInstance) -> GateRun:
    """Read the verdict from the run's tag; a failed run without one has crashed."""
    stored = instance.get_run_by_id(run.run_id)
    tag = None if stored is None else stored.tags.get(VERDICT)
    untagged: Verdict = "approved" if run.success else "crashed"
    verdict = next((verdict for verdict in get_args(Verdict) if verdict == tag), untagged)
    raised = [event.step_failure_data.user_failure_data for event in run.all_events if event.is_step_failure]
    words = [data.description for data in raised if data is not None and data.description]
    return GateRun(verdict, "\n".join(words), run.run_id)
