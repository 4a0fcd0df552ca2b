"""The assets of the decision: the dossier of a candidate, and its release."""

from collections.abc import Sequence

import dagster as dg

from disclosure_pipeline.candidates.asked import count_evaluations
from disclosure_pipeline.candidates.filing import (
    file_dossier,
    find_void_waivers,
    list_broken_clauses,
    path_of_evidence,
)
from disclosure_pipeline.evidence.dossier import to_markdown
from disclosure_pipeline.orchestration import clock, presentation
from disclosure_pipeline.orchestration.evaluations import find_check_problems
from disclosure_pipeline.orchestration.graph import GateGraph
from disclosure_pipeline.orchestration.redaction import redact_errors
from disclosure_pipeline.policy.verdict import Judgement
from disclosure_pipeline.release import releasing
from disclosure_pipeline.release.standing import describe_standing, is_published


def dossier_asset(graph: GateGraph) -> dg.AssetsDefinition:
    """The asset that files the evidence of a candidate; its check `within_policy` blocks."""
    key = graph.key("dossier")

    @dg.asset(
        key=key,
        deps=[graph.key("identity_disclosure"), graph.key("attribute_disclosure")],
        partitions_def=graph.candidates,
        metadata={"effective_clauses": presentation.effective_clauses(graph.gate.clauses())},
        check_specs=[
            graph.check("within_policy", "dossier", "Every clause that refuses is kept or waived"),
            graph.check(
                "waivers", "dossier", "Every waiver for this content lets its clause pass", blocking=False
            ),
        ],
        **graph.attributes(
            "Figures and verdict of a candidate, for a refusal as for an approval.",
            {"json", "markdown", "greatexpectations"},
        ),
    )
    @redact_errors
    def dossier(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        folders = graph.folders
        content = file_dossier(folders, context.partition_key)
        void = find_void_waivers(folders, content, clock.now())
        broken = list_broken_clauses(content)
        standing = describe_standing(
            content["decision"], is_published=is_published(folders, context.partition_key)
        )
        description = f"{standing}: {', '.join(broken) or 'every clause is kept'}"
        return dg.MaterializeResult(
            metadata={
                "decision": content["decision"],
                "standing": standing,
                "evaluations_of_ground_truth": count_evaluations(
                    folders.store, content["measured"]["ground_truth"]
                ),
                "clauses": presentation.clauses_table(content["clauses"]),
                "dossier": dg.MetadataValue.md(to_markdown(content)),
                "evidence": dg.MetadataValue.path(str(path_of_evidence(folders, context.partition_key))),
                "folder": str(folders.store.candidate_folder(context.partition_key)),
            },
            check_results=[
                dg.AssetCheckResult(
                    passed=content["decision"] == "approved",
                    asset_key=key,
                    check_name="within_policy",
                    description=description,
                    metadata={"value": len(broken), "bound": 0, presentation.FOR_ANYBODY: description},
                ),
                presentation.waivers_result(content["waivers"], void, key),
            ],
        )

    return dossier


def release_asset(graph: GateGraph, checks: Sequence[dg.AssetCheckSpec]) -> dg.AssetsDefinition:
    """The asset that publishes an approved candidate, if all `checks` of the gate passed for it."""

    @dg.asset(
        key=graph.key("release"),
        deps=[graph.key("dossier")],
        partitions_def=graph.candidates,
        **graph.attributes(
            "The approved candidate, published once with a signed statement, after everything is verified "
            "again.",
            {"file"},
        ),
    )
    @redact_errors
    def release(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        candidate = context.partition_key

        def find_problems(judgements: Sequence[Judgement]) -> list[str]:
            warning_clauses = [judgement.clause for judgement in judgements if presentation.warns(judgement)]
            names = {graph.check_names[clause.name] for clause in warning_clauses} | {"waivers"}
            may_warn = [check.key for check in checks if check.name in names]
            return find_check_problems(context.instance, checks, candidate, may_warn)

        folder, published_now = releasing.release(
            graph.folders,
            candidate,
            context.run.run_id,
            clock=clock.now,
            find_check_problems=find_problems,
        )
        return dg.MaterializeResult(
            metadata={
                "folder": dg.MetadataValue.path(str(folder)),
                "published": "now" if published_now else "before, with the same content",
            }
        )

    return release
