"""The assets of a gate: one run of them decides on one candidate."""

import dagster as dg

from disclosure_pipeline.orchestration.decision_assets import candidates_asset, dossier_asset, release_asset
from disclosure_pipeline.orchestration.graph import GateGraph
from disclosure_pipeline.orchestration.measuring_assets import (
    bins_asset,
    disclosure_assets,
    ground_truth_asset,
    synthetic_asset,
)


def gate_assets(graph: GateGraph) -> list[dg.AssetsDefinition]:
    """Return the assets of one gate, from ground_truth to release, and the list of its candidates."""
    deciding = [
        ground_truth_asset(graph),
        synthetic_asset(graph),
        bins_asset(graph),
        disclosure_assets(graph),
        dossier_asset(graph),
    ]
    checks = [check for asset in deciding for check in asset.check_specs]
    return [*deciding, release_asset(graph, checks), candidates_asset(graph)]
