"""`DisclosureGate`: a gate's YAML file as assets, checks, jobs, a sensor and a schedule."""

from __future__ import annotations

from typing import Any

import dagster as dg
from pydantic import BaseModel

from disclosure_pipeline.orchestration.arrivals import arrivals_sensor, ground_truth_schedule
from disclosure_pipeline.orchestration.assets import gate_assets
from disclosure_pipeline.orchestration.failures import failures_sensor
from disclosure_pipeline.orchestration.graph import GateGraph
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.waivers import read_waivers

_PATHS = ("ground_truth", "incoming", "store", "releases", "trusted_keys")


class DisclosureGate(dg.Component, dg.Resolvable):
    """Decides for one data set, under one policy, which synthetic versions of it may be released.

    The attributes are those of `Gate`; paths may be templates such as "{{ env.GROUND_TRUTH }}". The policy
    is part of the file, never of a run: nothing of it can be changed in the launchpad.
    """

    def __init__(self, gate: Gate) -> None:
        self.gate = gate

    @classmethod
    def get_spec(cls) -> dg.ComponentTypeSpec:
        """What tools show of the component."""
        return dg.ComponentTypeSpec(
            description="A gate that measures what synthetic tables disclose, and releases or refuses them",
            tags=["statistical disclosure control", "synthetic data"],
        )

    @classmethod
    def model(cls) -> type[BaseModel]:
        """The file is read as a `Gate`: unknown and contradictory attributes are refused with their place."""
        return Gate

    @classmethod
    def resolve_from_model(cls, context: dg.ResolutionContext, model: BaseModel) -> DisclosureGate:
        """Fill in templates in the paths; nothing else is a template.

        A source of the ground truth that is no path has none: what it takes from the environment is taken
        when it is read, and is in no definition.
        """
        paths = {name: getattr(model, name) for name in _PATHS}
        resolved: dict[str, Any] = {
            name: context.resolve_value(path, as_type=str)
            for name, path in paths.items()
            if isinstance(path, str)
        }
        return cls(Gate.model_validate(model.model_dump() | resolved))

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """The assets and checks of the gate; a job for GT and one for a candidate; sensors and schedule."""
        gate = self.gate
        graph = GateGraph(gate, read_waivers(context.path / "waivers"))
        assets = gate_assets(graph)
        ground_truth_job = dg.define_asset_job(
            f"{gate.name}_ground_truth",
            selection=dg.AssetSelection.assets(graph.key("ground_truth")),
            description="Checks and records the ground truth",
            executor_def=dg.in_process_executor,
        )
        gate_job = dg.define_asset_job(
            f"{gate.name}_gate",
            selection=dg.AssetSelection.groups(gate.name)
            - dg.AssetSelection.assets(graph.key("ground_truth")),
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
