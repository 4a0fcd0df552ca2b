"""The assets of the figures: the groups of numeric columns, and the disclosure of identity and attributes."""

from collections.abc import Sequence

import dagster as dg

from disclosure_pipeline.candidates.evaluation import load_group_levels, measure
from disclosure_pipeline.evidence.figures import withhold_rare_levels
from disclosure_pipeline.orchestration import clock, presentation
from disclosure_pipeline.orchestration.graph import GateGraph
from disclosure_pipeline.orchestration.redaction import redact_errors
from disclosure_pipeline.policy.clauses import Clause


def bins_asset(graph: GateGraph) -> dg.AssetsDefinition:
    """The asset that shows the groups of grouped columns, so that an auditor can see their edges."""

    @dg.asset(
        key=graph.key("bins"),
        deps=[graph.key("ground_truth"), graph.key("synthetic")],
        partitions_def=graph.candidates,
        **graph.attributes(
            "The groups of every grouped numeric column, and the records in each.", {"pandas"}
        ),
    )
    @redact_errors
    def bins_(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        groups = load_group_levels(graph.folders, context.partition_key)
        return dg.MaterializeResult(
            metadata={
                "bins": presentation.show_table(groups, "bins"),
                "dagster/row_count": len(groups),
                "dagster/column_schema": presentation.frame_schema(groups, "bins"),
            }
        )

    return bins_


def disclosure_assets(graph: GateGraph) -> dg.AssetsDefinition:
    """The two assets of one measurement, with a check for every clause but those on key overlaps."""
    gate = graph.gate
    identity_key, attribute_key = graph.key("identity_disclosure"), graph.key("attribute_disclosure")
    clauses = [clause for clause in gate.clauses() if clause.measure != "key_overlap"]
    identity_clauses = [clause for clause in clauses if clause.column is None]
    attribute_clauses = [clause for clause in clauses if clause.column is not None]

    @dg.multi_asset(
        name=f"{gate.name}__disclosure",
        specs=[
            dg.AssetSpec(
                identity_key,
                deps=[graph.key("bins")],
                partitions_def=graph.candidates,
                **graph.attributes(
                    "UiO, UiS, UiOiS and repU: who is unique, and can be found in SD.", {"numpy"}
                ),
            ),
            dg.AssetSpec(
                attribute_key,
                deps=[graph.key("bins")],
                partitions_def=graph.candidates,
                **graph.attributes("Dorig, Dsyn, iS, DiS, DiSCO, DiSDiO and CAP of each target.", {"numpy"}),
            ),
        ],
        check_specs=[
            *graph.clause_checks("identity_disclosure", identity_clauses),
            *graph.clause_checks("attribute_disclosure", attribute_clauses),
        ],
    )
    @redact_errors
    def disclosure(context: dg.AssetExecutionContext) -> tuple[dg.MaterializeResult, dg.AssetCheckResult]:
        evaluation = measure(graph.folders, context.partition_key, clock.now())
        result = evaluation.result
        judgements = {public.judgement.clause: public for public in evaluation.public}

        def check_results(clauses: Sequence[Clause], asset: dg.AssetKey) -> list[dg.AssetCheckResult]:
            return [
                presentation.check_result(judgements[clause], graph.check_names[clause.name], asset)
                for clause in clauses
            ]

        smallest = gate.policy.smallest_count
        identity: dg.MaterializeResult = dg.MaterializeResult(
            asset_key=identity_key,
            metadata={
                "identity": presentation.show_table(result.identity, "identity"),
                "engine": result.engine,
                "dagster/row_count": len(result.identity),
                "dagster/column_schema": presentation.frame_schema(result.identity.reset_index(), "identity"),
                **presentation.show_worst_figures(result, ["identity"]),
            },
        )
        attribute: dg.MaterializeResult = dg.MaterializeResult(
            asset_key=attribute_key,
            metadata={
                "attribute": presentation.show_table(result.attribute, "attribute"),
                "engine": result.engine,
                **{
                    name: presentation.show_table(result.frame(name), name)
                    for name in ("cap", "protection", "prediction", "control_attribute")
                    if len(result.frame(name))
                },
                **{
                    name: presentation.show_table(withhold_rare_levels(result, name, smallest), name)
                    for name in ("one_way", "two_way")
                },
                "dagster/row_count": len(result.attribute),
                "dagster/column_schema": presentation.frame_schema(
                    result.attribute.reset_index(), "attribute"
                ),
                **presentation.show_worst_figures(result, ["attribute", "cap", "protection", "prediction"]),
            },
        )
        # Results beside their asset, not within it: Dagster would read the materialisation twice for each.
        results = (
            identity,
            *check_results(identity_clauses, identity_key),
            attribute,
            *check_results(attribute_clauses, attribute_key),
        )
        # As a generator, in this order; Dagster takes no annotation but that of a tuple.
        return (result for result in results)  # type: ignore[return-value]

    return disclosure
