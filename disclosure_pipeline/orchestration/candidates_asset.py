"""The asset `candidates`: where every candidate of the gate stands, as each of its runs leaves it."""

from collections import Counter
from typing import Any

import dagster as dg
import pandas as pd

from disclosure_pipeline.orchestration import presentation
from disclosure_pipeline.orchestration.graph import GateGraph
from disclosure_pipeline.orchestration.steps import StepOutcome, gate_step
from disclosure_pipeline.release.standing import Standing, list_standings

_COLUMNS = ["candidate", "verdict", "worst clause", "records", "published", "date"]


def candidates_asset(graph: GateGraph) -> dg.AssetsDefinition:
    """The asset that lists all candidates: at the end of each run of the gate, or run alone."""

    @dg.asset(
        key=graph.key("candidates"),
        deps=[
            # On no partition of them: the list is of all candidates as the store has them. A candidate that
            # was refused has no release, for which Dagster would call the list out of date for ever.
            dg.AssetDep(graph.key(name), partition_mapping=dg.SpecificPartitionsPartitionMapping([]))
            for name in ("dossier", "release")
        ],
        **graph.attributes(
            "Every candidate: verdict, date, the clause that is nearest to its bound or farthest beyond it, "
            "records, and whether it is published.",
            {"table"},
        ),
    )
    @gate_step()
    def candidates() -> StepOutcome:
        result: dg.MaterializeResult = dg.MaterializeResult(metadata=_describe_candidates(graph))
        return StepOutcome([result])

    return candidates


def list_candidates(graph: GateGraph) -> dg.AssetMaterialization:
    """The same list, to be handed over at the end of a run that changed where a candidate stands."""
    return dg.AssetMaterialization(graph.key("candidates"), metadata=_describe_candidates(graph))


def _describe_candidates(graph: GateGraph) -> dict[str, Any]:
    standings = list_standings(graph.folders)
    newest_first = sorted(
        standings, key=lambda standing: (standing.judged_at is not None, standing.judged_at), reverse=True
    )
    table = pd.DataFrame([_to_row(standing) for standing in newest_first], columns=_COLUMNS)
    decisions = Counter(standing.decision or "not judged" for standing in standings)
    return {
        "candidates": presentation.show_table(table),
        "dagster/row_count": len(standings),
        **{decision: decisions[decision] for decision in ("approved", "refused", "undetermined")},
        "published": sum(standing.is_published for standing in standings),
    }


def _to_row(standing: Standing) -> dict[str, Any]:
    return dict(
        zip(
            _COLUMNS,
            (
                standing.candidate,
                str(standing),
                standing.worst_clause or "",
                "" if standing.records is None else f"{standing.records:,}",
                "yes" if standing.is_published else "no",
                "" if standing.judged_at is None else f"{standing.judged_at:%Y-%m-%d %H:%M} UTC",
            ),
            strict=True,
        )
    )
