"""The assets of the figures: the groups of numeric columns, and the disclosure of identity and attributes."""

import dagster as dg

from disclosure_pipeline.candidates.evaluation import load_group_levels, measure
from disclosure_pipeline.evidence.dossier import withhold_rare_levels
from disclosure_pipeline.orchestration import clock, presentation
from disclosure_pipeline.orchestration.graph import GateGraph
from disclosure_pipeline.orchestration.plots import show_plots
from disclosure_pipeline.orchestration.steps import StepOutcome, gate_step
from disclosure_pipeline.policy.verdict import Judgement


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
    @gate_step()
    def bins_(context: dg.AssetExecutionContext) -> StepOutcome:
        groups = load_group_levels(graph.folders, context.partition_key)
        result: dg.MaterializeResult = dg.MaterializeResult(
            metadata={
                "bins": presentation.show_table(groups, "bins"),
                "dagster/row_count": len(groups),
                "dagster/column_schema": presentation.frame_schema(groups, "bins"),
            }
        )
        return StepOutcome([result])

    return bins_


def disclosure_assets(graph: GateGraph) -> dg.AssetsDefinition:
    """The two assets of one measurement, with checks of every clause but those on key overlaps."""
    gate = graph.gate
    identity_key, attribute_key = graph.key("identity_disclosure"), graph.key("attribute_disclosure")

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
            graph.check(check.name, check.asset, check.description, blocking=False)
            for check in graph.clause_checks
        ],
    )
    # Dagster takes no annotation but that of a tuple.
    @gate_step(returns=tuple[dg.MaterializeResult, dg.AssetCheckResult])
    def disclosure(context: dg.AssetExecutionContext) -> StepOutcome:
        evaluation = measure(graph.folders, context.partition_key, clock.now())
        result = evaluation.result
        judgements = {public.judgement.clause: public for public in evaluation.public}

        def check_results(asset: dg.AssetKey) -> list[dg.AssetCheckResult]:
            checks = [check for check in graph.clause_checks if check.asset == asset.path[-1]]
            return [presentation.check_result(check, judgements, asset) for check in checks]

        def judgements_of(*columns: str | None) -> list[Judgement]:
            return [judgement for judgement in evaluation.judgements if judgement.clause.column in columns]

        smallest = gate.policy.smallest_count
        identity: dg.MaterializeResult = dg.MaterializeResult(
            asset_key=identity_key,
            metadata={
                "identity": presentation.show_table(result.identity, "identity"),
                "engine": result.engine,
                "dagster/row_count": len(result.identity),
                "dagster/column_schema": presentation.frame_schema(result.identity.reset_index(), "identity"),
                **show_plots(result, judgements_of(None), [None]),
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
                **presentation.show_flags(withhold_rare_levels(result, "one_way", smallest), "one_way"),
                **presentation.show_flags(withhold_rare_levels(result, "two_way", smallest), "two_way"),
                "dagster/row_count": len(result.attribute),
                "dagster/column_schema": presentation.frame_schema(
                    result.attribute.reset_index(), "attribute"
                ),
                **show_plots(result, judgements_of(*gate.targets), gate.targets),
            },
        )
        # Results beside their asset, not within it: Dagster would read the materialisation twice for each.
        return StepOutcome([identity, *check_results(identity_key), attribute, *check_results(attribute_key)])

    return disclosure
