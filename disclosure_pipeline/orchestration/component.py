"""`DisclosureGate`: a gate's YAML file as assets, checks, jobs, a sensor and a schedule."""

import logging
from collections.abc import Sequence

import dagster as dg
from pydantic import BaseModel

from disclosure_pipeline.orchestration.arrivals import arrivals_sensor, ground_truth_schedule
from disclosure_pipeline.orchestration.decision_assets import candidates_asset, dossier_asset, release_asset
from disclosure_pipeline.orchestration.failures import failures_sensor
from disclosure_pipeline.orchestration.gate_file import (
    GateScaffolder,
    fill_in_templates,
    is_validating,
    require_as_written,
    require_prerequisites,
)
from disclosure_pipeline.orchestration.graph import GateGraph
from disclosure_pipeline.orchestration.measuring_assets import (
    bins_asset,
    disclosure_assets,
    ground_truth_asset,
    synthetic_asset,
)
from disclosure_pipeline.policy.clauses import list_effective_clauses
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.gate_reader import find_gate_file
from disclosure_pipeline.policy.waivers import Waiver, read_waivers


def gate_assets(graph: GateGraph) -> list[dg.AssetsDefinition]:
    """Return the assets of one gate, from ground_truth to release, and the list of its candidates."""
    return [
        ground_truth_asset(graph),
        synthetic_asset(graph),
        bins_asset(graph),
        disclosure_assets(graph),
        dossier_asset(graph),
        release_asset(graph),
        candidates_asset(graph),
    ]


_LOG = logging.getLogger(__name__)


@dg.scaffold_with(GateScaffolder)
class DisclosureGate(dg.Component, dg.Resolvable):
    """Decides for one data set, under one policy, which synthetic versions of it may be released.

    The attributes are those of `Gate`; paths may be templates such as "{{ env.GROUND_TRUTH }}". The policy
    is part of the file, never of a run: nothing of it can be changed in the launchpad.
    """

    def __init__(self, gate: Gate) -> None:
        self.gate = gate

    @classmethod
    def get_spec(cls) -> dg.ComponentTypeSpec:
        """Return what tools show of the component."""
        return dg.ComponentTypeSpec(
            description="A gate that measures what synthetic tables disclose, and releases or refuses them",
            tags=["statistical disclosure control", "synthetic data"],
        )

    @classmethod
    def model(cls) -> type[BaseModel]:
        """The file is read as a `Gate`: unknown and contradictory attributes are refused with their place."""
        return Gate

    @classmethod
    def resolve_from_model(cls, context: dg.ResolutionContext, model: BaseModel) -> "DisclosureGate":
        """Fill in templates in the paths; nothing else is a template."""
        return cls(fill_in_templates(Gate.model_validate(model.model_dump()), context))

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Return the gate's definitions, if its file, read strictly, says what Dagster took from it."""
        file = find_gate_file(context.path)
        if file is not None:
            key = context.component_path.instance_key
            position = key if isinstance(key, int) else 0
            require_as_written(self.gate, file, position)
            if is_validating():
                require_prerequisites(self.gate, file, position)
        return build_definitions(self.gate, read_waivers(context.path / "waivers"))


def build_definitions(gate: Gate, waivers: Sequence[Waiver] = ()) -> dg.Definitions:
    """Return the assets and checks of a gate; a job for GT and one for a candidate; sensors and schedule."""
    for clause in list_effective_clauses(gate.clauses()):
        _LOG.info("Gate %s: %s", gate.name, clause)
    graph = GateGraph(gate, tuple(waivers))
    assets = gate_assets(graph)
    ground_truth_job = dg.define_asset_job(
        f"{gate.name}_ground_truth",
        selection=dg.AssetSelection.assets(graph.key("ground_truth")),
        description="Checks and records the ground truth",
        executor_def=dg.in_process_executor,
    )
    gate_job = dg.define_asset_job(
        f"{gate.name}_gate",
        # Each run lists the candidates at its end, also where it refuses.
        selection=dg.AssetSelection.groups(gate.name)
        - dg.AssetSelection.assets(graph.key("ground_truth"), graph.key("candidates")),
        partitions_def=graph.candidates,
        description="Measures one candidate and releases or refuses it",
        executor_def=dg.in_process_executor,
    )
    return dg.Definitions(
        assets=assets,
        jobs=[ground_truth_job, gate_job],
        sensors=[
            arrivals_sensor(gate, graph.candidates, ground_truth_job, gate_job),
            failures_sensor(
                gate,
                [check.key for asset in assets for check in asset.check_specs],
                [ground_truth_job, gate_job],
            ),
        ],
        schedules=[ground_truth_schedule(gate, graph.candidates, gate_job)],
    )
