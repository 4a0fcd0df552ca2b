"""What the assets of one gate share: keys, checks of clauses, settings."""

import warnings
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from typing import Any

import dagster as dg

from disclosure_pipeline.candidates.store import GateFolders
from disclosure_pipeline.orchestration.clause_checks import ClauseCheck, group_clauses
from disclosure_pipeline.orchestration.gate_file import folders_of
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.waivers import Waiver


@dataclass(frozen=True)
class GateGraph:
    """Keys, checks and settings that the assets of one gate share."""

    gate: Gate
    waivers: tuple[Waiver, ...] = ()

    @property
    def folders(self) -> GateFolders:
        """Return where the gate's tables, records and releases lie, as the environment says now."""
        return folders_of(self.gate, self.waivers)

    def key(self, name: str) -> dg.AssetKey:
        """Return the key of one of the gate's assets."""
        return dg.AssetKey([self.gate.name, name])

    @property
    def candidates(self) -> dg.DynamicPartitionsDefinition:
        """One partition a candidate, added as it arrives."""
        return dg.DynamicPartitionsDefinition(name=f"{self.gate.name}_candidates")

    @cached_property
    def clause_checks(self) -> tuple[ClauseCheck, ...]:
        """The checks of the clauses; they do not block: the whole picture is always there."""
        return group_clauses(self.gate.clauses())

    def attributes(self, description: str, kinds: set[str]) -> dict[str, Any]:
        """Return what Dagster shows of every asset of the gate. Editing the policy makes its assets stale."""
        return {
            "group_name": self.gate.name,
            "description": description,
            "owners": list(self.gate.owners),
            "kinds": kinds,
            "tags": {"disclosure_pipeline/gate": self.gate.name},
            "code_version": f"{version('disclosure-pipeline')}-{self.gate.policy_digest()[:12]}",
        }

    def check(self, name: str, asset: str, description: str, *, blocking: bool = True) -> dg.AssetCheckSpec:
        """Return a check of one of the assets, with a result a candidate, but one of the ground truth."""
        partitions = None if asset == "ground_truth" else self.candidates
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dg.PreviewWarning)
            return dg.AssetCheckSpec(
                name,
                asset=self.key(asset),
                description=description,
                blocking=blocking,
                partitions_def=partitions,
            )
