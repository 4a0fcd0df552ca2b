"""The assets of the tables themselves: the ground truth, and what arrived of a candidate."""

from collections.abc import Sequence
from typing import Any

import dagster as dg

from disclosure_pipeline.candidates.arrival import Arrival, deliver, receive
from disclosure_pipeline.candidates.ground_truth import record_ground_truth
from disclosure_pipeline.orchestration import presentation
from disclosure_pipeline.orchestration.graph import GateGraph
from disclosure_pipeline.orchestration.redaction import redact_errors
from disclosure_pipeline.release.publishing import remove_abandoned
from disclosure_pipeline.tables.contract import Violation

NOT_MEASURED = "Not measured: the contract is broken"
KEPT = "Every rule of the data dictionary is kept"


def ground_truth_asset(graph: GateGraph) -> dg.AssetsDefinition:
    """The asset that checks the ground truth against its data dictionary, and records its hash."""
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
    @redact_errors
    def ground_truth() -> dg.MaterializeResult:
        remove_abandoned(graph.folders.store, graph.folders.staging)
        recorded = record_ground_truth(graph.folders)
        return dg.MaterializeResult(
            metadata={
                "dagster/row_count": recorded.records,
                "location": graph.folders.ground_truth.redacted_location,
                "sha256": recorded.sha256,
            },
            check_results=[_contract_result(key, recorded.violations)],
        )

    return ground_truth


def synthetic_asset(graph: GateGraph) -> dg.AssetsDefinition:
    """The asset that takes the snapshot of a candidate and compares it with the data dictionary and GT."""
    gate = graph.gate
    key = graph.key("synthetic")
    overlap_clauses = [clause for clause in gate.clauses() if clause.measure == "key_overlap"]

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

    def describe_arrival(arrival: Arrival) -> dg.MaterializeResult:
        shares = [
            judgement.value
            for judgement in arrival.overlaps
            if judgement.value is not None and judgement.clause.column is not None
        ]
        kept = [judgement.outcome == "kept" for judgement in arrival.overlaps]
        return dg.MaterializeResult(
            metadata={
                "dagster/row_count": sum(arrival.records),
                "syntheses": len(arrival.snapshot.files),
                "sha256": arrival.snapshot.sha256,
            },
            check_results=[
                _contract_result(key, arrival.violations),
                dg.AssetCheckResult(
                    # No judgement at all is no overlap: tables that break the contract are not compared.
                    passed=len(kept) == len(overlap_clauses) and all(kept),
                    asset_key=key,
                    check_name="key_overlap",
                    description="; ".join(map(str, arrival.overlaps)) or NOT_MEASURED,
                    metadata=presentation.show_numbers(
                        {"value": min(shares, default=None), "bound": gate.policy.key_overlap}
                    )
                    | {
                        "overlap": presentation.show_table(arrival.key_overlap, "key_overlap"),
                        presentation.FOR_ANYBODY: "; ".join(map(str, arrival.public_overlaps))
                        or NOT_MEASURED,
                    },
                ),
            ],
        )

    if gate.synthesis_asset is None:

        @dg.asset(**settings)
        @redact_errors
        def synthetic(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
            remove_abandoned(graph.folders.store, graph.folders.staging)
            return describe_arrival(receive(graph.folders, context.partition_key))

        return synthetic

    @dg.asset(
        **settings, ins={"syntheses": dg.AssetIn(key=dg.AssetKey.from_user_string(gate.synthesis_asset))}
    )
    @redact_errors
    def synthetic_of_asset(context: dg.AssetExecutionContext, syntheses: Any) -> dg.MaterializeResult:
        folders = graph.folders
        remove_abandoned(folders.store, folders.staging)
        delivered = deliver(folders, context.partition_key, syntheses)
        return describe_arrival(receive(folders, context.partition_key, delivered))

    return synthetic_of_asset


def _contract_result(key: dg.AssetKey, violations: Sequence[Violation]) -> dg.AssetCheckResult:
    """The result of the check `contract`: where a table breaks its data dictionary."""
    return dg.AssetCheckResult(
        passed=not violations,
        asset_key=key,
        check_name="contract",
        description="; ".join(map(str, violations)) or KEPT,
        metadata={
            "violations": presentation.violations_table(violations),
            presentation.FOR_ANYBODY: "; ".join(
                dict.fromkeys(violation.without_numbers for violation in violations)
            )
            or KEPT,
        },
    )
