"""The assets of the decision: the dossier of a candidate, and its release."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import dagster as dg

from disclosure_pipeline.candidates.evaluation_records import count_evaluations
from disclosure_pipeline.candidates.filing import (
    describe_broken_clauses,
    file_dossier,
    find_void_waivers,
    list_broken_clauses,
    path_of_page,
)
from disclosure_pipeline.evidence.dossier import to_markdown
from disclosure_pipeline.orchestration import clock, presentation
from disclosure_pipeline.orchestration.candidates_asset import list_candidates
from disclosure_pipeline.orchestration.evaluations import find_check_problems
from disclosure_pipeline.orchestration.graph import GateGraph
from disclosure_pipeline.orchestration.redaction import RunOutcome
from disclosure_pipeline.orchestration.steps import StepOutcome, StepResult, gate_step, refuse
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
    @gate_step()
    def dossier(context: dg.AssetExecutionContext) -> StepOutcome:
        folders, candidate = graph.folders, context.partition_key
        content = file_dossier(folders, candidate)
        void = find_void_waivers(folders, content, clock.now())
        broken = list_broken_clauses(content)
        standing = describe_standing(content["decision"], is_published=is_published(folders, candidate))
        materialization: dg.MaterializeResult = dg.MaterializeResult(
            metadata={
                "decision": content["decision"],
                "standing": standing,
                "evaluations_of_ground_truth": count_evaluations(
                    folders.store, content["measured"]["ground_truth"]
                ),
                "clauses": presentation.clauses_table(content["clauses"]),
                "dossier": dg.MetadataValue.md(to_markdown(content)),
                "page": dg.MetadataValue.path(str(path_of_page(folders, candidate))),
                "folder": str(folders.store.candidate_folder(candidate)),
            },
        )
        approved = content["decision"] == "approved"
        description = f"{standing}: {', '.join(broken) or 'every clause is kept'}"
        within_policy = dg.AssetCheckResult(
            passed=approved,
            asset_key=key,
            check_name="within_policy",
            description=description,
            metadata={"value": len(broken), "bound": 0, presentation.FOR_ANYBODY: description},
        )
        waivers = presentation.waivers_result(content["waivers"], void, key)
        results: list[StepResult] = [materialization, within_policy, waivers, list_candidates(graph)]
        if approved:
            return StepOutcome(results)
        reasons = describe_broken_clauses(content, graph.gate.policy.smallest_count)
        if not reasons:
            reasons = {"no clause of the policy is determined": "no clause of the policy is determined"}
        outcome: RunOutcome = "refused" if content["decision"] == "refused" else "undetermined"
        published = ", which is published," if is_published(folders, candidate) else ""
        sentence = f"Candidate {candidate!r}{published} is {content['decision']}"
        return StepOutcome(results, refuse(outcome, sentence, reasons, ["within_policy"]))

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
    @gate_step()
    def release(context: dg.AssetExecutionContext) -> StepOutcome:
        candidate = context.partition_key

        def find_problems(judgements: Sequence[Judgement]) -> list[str]:
            by_clause = {judgement.clause: judgement for judgement in judgements}
            may_warn = [
                dg.AssetCheckKey(graph.key(check.asset), check.name)
                for check in graph.clause_checks
                if check.may_fail(by_clause)
            ]
            may_warn.append(dg.AssetCheckKey(graph.key("dossier"), "waivers"))
            return find_check_problems(context.instance, checks, candidate, may_warn)

        released = releasing.release(
            graph.folders,
            candidate,
            context.run.run_id,
            clock=clock.now,
            find_check_problems=find_problems,
        )
        results: list[StepResult] = []
        metadata: dict[str, Any] = {
            "published": "now" if released.is_new else "before, with the same content",
            "folder": dg.MetadataValue.path(str(released.folder)),
        }
        # It is published: what cannot be told of it is no failure of the release.
        with suppress(Exception):
            metadata |= presentation.describe_release(released, graph.folders.trusted_keys)
        with suppress(Exception):
            results.append(list_candidates(graph))
        return StepOutcome(
            [dg.MaterializeResult(metadata=metadata), *results],
            verdict="approved",
            last_words=f"Candidate {candidate!r} is approved: every clause of the policy is kept or waived. "
            f"It is published in {released.folder}.",
        )

    return release
