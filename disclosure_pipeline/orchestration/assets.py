"""The assets of the tables, of the groups of numeric columns, and of identity and attribute disclosure."""

from collections.abc import Sequence
from typing import Any

import dagster as dg

from disclosure_pipeline.candidates.arrival import Arrival, deliver, receive, record_ground_truth
from disclosure_pipeline.candidates.evaluation import load_group_levels, measure
from disclosure_pipeline.evidence.dossier import withhold_rare_levels
from disclosure_pipeline.orchestration import presentation, steps
from disclosure_pipeline.orchestration.decision_assets import list_candidates
from disclosure_pipeline.orchestration.presentation import show_plots
from disclosure_pipeline.orchestration.steps import GateGraph, StepOutcome, StepResult, gate_step, refuse
from disclosure_pipeline.policy.verdict import Judgement, find_worst_judgement
from disclosure_pipeline.release.readiness import keep_power_once
from disclosure_pipeline.release.releasing import remove_abandoned
from disclosure_pipeline.release.standing import record_releases
from disclosure_pipeline.tables.contract import Violation

NOT_MEASURED = "Not measured: the contract is broken"
KEPT = "Every rule of the data dictionary is kept"


def ground_truth_asset(graph: GateGraph) -> dg.AssetsDefinition:
    """Return the asset that checks the ground truth against its data dictionary, and records its hash."""
    gate = graph.gate
    key = graph.key("ground_truth")
    upstream = (
        [] if gate.ground_truth_asset is None else [dg.AssetKey.from_user_string(gate.ground_truth_asset)]
    )

    @dg.asset(
        key=key,
        deps=upstream,
        metadata={"dagster/column_schema": presentation.dictionary_schema(gate)},
        check_specs=[
            graph.check("contract", "ground_truth", "The table keeps its data dictionary"),
        ],
        **graph.attributes(
            "The confidential records, read where they lie. The asset is a reference.", {"pandera"}
        ),
    )
    @gate_step()
    def ground_truth() -> StepOutcome:
        remove_abandoned(graph.folders.store, graph.folders.staging)
        recorded = record_ground_truth(graph.folders)
        is_broken = bool(recorded.violations)
        power = "not measured" if is_broken else keep_power_once(graph.folders, recorded.sha256)
        metadata: dict[str, Any] = {
            "power": power,
            "dagster/row_count": recorded.records,
            "location": graph.folders.ground_truth.redacted_location,
            "sha256": recorded.sha256,
        }
        sentence = "Nothing can be determined: the ground truth breaks its data dictionary"
        return StepOutcome(
            [dg.MaterializeResult(metadata=metadata), _contract_result(key, recorded.violations)],
            refuse("undetermined", sentence, _reasons(recorded.violations), ["contract"])
            if is_broken
            else None,
        )

    return ground_truth


def synthetic_asset(graph: GateGraph) -> dg.AssetsDefinition:
    """Build the asset that takes a candidate's snapshot and compares it with the dictionary and GT."""
    gate = graph.gate
    key = graph.key("synthetic")
    clauses = sum(clause.measure == "key_overlap" for clause in gate.clauses())
    settings: dict[str, Any] = dict(
        key=key,
        partitions_def=graph.candidates,
        metadata={"dagster/column_schema": presentation.dictionary_schema(gate)},
        check_specs=[
            graph.check("contract", "synthetic", "Every table keeps the data dictionary"),
            graph.check(
                "key_overlap",
                "synthetic",
                f"GT and SD share at least {gate.policy.key_overlap:g} % of each key's values, and "
                f"{gate.policy.whole_key_overlap:g} % of the whole key's",
            ),
        ],
        **graph.attributes(
            "What arrived, copied once into the store; everything later reads that copy.", {"pandera"}
        ),
    )

    def describe_arrival(arrival: Arrival) -> StepOutcome:
        metadata: dict[str, Any] = {
            "dagster/row_count": sum(arrival.records),
            "syntheses": len(arrival.records),
            "sha256": arrival.snapshot.sha256,
        }
        contract, overlap = _contract_result(key, arrival.violations), _overlap_result(key, arrival, clauses)
        results: list[StepResult] = [dg.MaterializeResult(metadata=metadata), contract, overlap]
        name = f"Candidate {arrival.snapshot.candidate!r}"
        if arrival.violations:
            sentence = f"{name} is refused: it breaks the data dictionary"
            failure = refuse("refused", sentence, _reasons(arrival.violations), ["contract"])
        elif not overlap.passed:
            sentence = f"{name} is undetermined: it shares too few values with the ground truth"
            broken = {
                str(overlap): str(public)
                for overlap, public in zip(arrival.overlaps, arrival.public_overlaps, strict=True)
                if overlap.outcome != "kept"
            }
            reasons = broken or {NOT_MEASURED: NOT_MEASURED}
            failure = refuse("undetermined", sentence, reasons, ["key_overlap"])
        else:
            return StepOutcome(results)
        return StepOutcome([*results, list_candidates(graph)], failure)

    if gate.synthesis_asset is None:

        @dg.asset(**settings, deps=list(map(dg.AssetKey.from_user_string, gate.synthetic_asset)))
        @gate_step()
        def synthetic(context: dg.AssetExecutionContext) -> StepOutcome:
            remove_abandoned(graph.folders.store, graph.folders.staging)
            return describe_arrival(receive(graph.folders, context.partition_key))

        return synthetic

    @dg.asset(
        **settings, ins={"syntheses": dg.AssetIn(key=dg.AssetKey.from_user_string(gate.synthesis_asset))}
    )
    @gate_step()
    def synthetic_of_asset(context: dg.AssetExecutionContext, syntheses: Any) -> StepOutcome:
        folders = graph.folders
        remove_abandoned(folders.store, folders.staging)
        delivered = deliver(folders, context.partition_key, syntheses)
        return describe_arrival(receive(folders, context.partition_key, delivered))

    return synthetic_of_asset


def _contract_result(key: dg.AssetKey, violations: Sequence[Violation]) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        passed=not violations,
        asset_key=key,
        check_name="contract",
        description="; ".join(map(str, violations)) or KEPT,
        metadata={
            "value": len(violations),
            "bound": 0,
            "outcome": "exceeded" if violations else "kept",
            **({"violations": presentation.violations_table(violations)} if violations else {}),
        },
    )


def _reasons(violations: Sequence[Violation]) -> dict[str, str]:
    """Return each violation in words for custodians, and in those for anybody."""
    return {str(violation): violation.without_numbers for violation in violations}


def _overlap_result(key: dg.AssetKey, arrival: Arrival, clauses: int) -> dg.AssetCheckResult:
    worst = find_worst_judgement(arrival.overlaps)
    kept = [judgement.outcome == "kept" for judgement in arrival.overlaps]
    return dg.AssetCheckResult(
        # No judgement at all is no overlap: tables that break the contract are not compared.
        passed=len(kept) == clauses and all(kept),
        asset_key=key,
        check_name="key_overlap",
        description="; ".join(map(str, arrival.overlaps)) or NOT_MEASURED,
        metadata={
            **({"outcome": "undetermined"} if worst is None else presentation.describe_worst(worst)),
            "values": presentation.show_table(arrival.key_overlap, "key_overlap"),
        },
    )


def bins_asset(graph: GateGraph) -> dg.AssetsDefinition:
    """Return the asset that shows the groups of grouped columns, so that an auditor can see their edges."""

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
        metadata: dict[str, Any] = {
            "bins": presentation.show_table(groups, "bins"),
            "dagster/row_count": len(groups),
            "dagster/column_schema": presentation.frame_schema(groups, "bins"),
        }
        return StepOutcome([dg.MaterializeResult(metadata=metadata)])

    return bins_


def disclosure_assets(graph: GateGraph) -> dg.AssetsDefinition:
    """Return the two assets of one measurement, with checks of every clause but those on key overlaps."""
    gate = graph.gate
    identity_key, attribute_key = graph.key("identity_risk"), graph.key("attribute_risk")

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
        record_releases(graph.folders)
        evaluation = measure(graph.folders, context.partition_key, steps.now())
        result = evaluation.result
        judgements = {judgement.clause: judgement for judgement in evaluation.judgements}

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
