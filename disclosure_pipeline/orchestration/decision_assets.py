"""The assets of the decision: the dossier of a candidate, and its release."""

from collections import Counter
from contextlib import suppress
from typing import Any

import dagster as dg
import pandas as pd

from disclosure_pipeline.candidates.evaluation_records import count_evaluations
from disclosure_pipeline.candidates.filing import (
    describe_broken_clauses,
    file_dossier,
    find_void_waivers,
    list_broken_clauses,
    path_of_page,
)
from disclosure_pipeline.evidence.dossier import to_markdown
from disclosure_pipeline.orchestration import presentation, steps
from disclosure_pipeline.orchestration.steps import (
    GateGraph,
    RunOutcome,
    StepOutcome,
    StepResult,
    gate_step,
    refuse,
)
from disclosure_pipeline.policy.verdict import read_judgements
from disclosure_pipeline.release import releasing
from disclosure_pipeline.release.standing import Standing, describe_standing, is_published, list_standings

SHOWN = 50
"""Of this many of the newest candidates the verdict and worst clause are shown."""


_FIT_INTO_LINE = 45


def candidates_asset(graph: GateGraph) -> dg.AssetsDefinition:
    """Return the asset that lists all candidates: at the end of each run of the gate, or run alone."""

    @dg.asset(
        key=graph.key("candidates"),
        deps=[
            # On no partition of them: the list is of all candidates as the store has them. A candidate that
            # was refused has no release, for which Dagster would call the list out of date for ever.
            dg.AssetDep(graph.key(name), partition_mapping=dg.SpecificPartitionsPartitionMapping([]))
            for name in ("dossier", "release")
        ],
        **graph.attributes(
            f"Where each candidate stands (the {SHOWN} newest), and its worst clause: the one that is "
            "nearest to its bound or farthest beyond it.",
            {"table"},
        ),
    )
    @gate_step()
    def candidates() -> StepOutcome:
        return StepOutcome([dg.MaterializeResult(metadata=_describe_candidates(graph))])

    return candidates


def list_candidates(graph: GateGraph) -> dg.AssetMaterialization:
    """Return the same list, to be handed over at the end of a run that changed where a candidate stands."""
    return dg.AssetMaterialization(graph.key("candidates"), metadata=_describe_candidates(graph))


def _describe_candidates(graph: GateGraph) -> dict[str, Any]:
    standings = list_standings(graph.folders)
    newest_first = sorted(
        standings, key=lambda standing: (standing.judged_at is not None, standing.judged_at), reverse=True
    )
    rows = [
        {
            "candidate": standing.candidate,
            "records": "" if standing.records is None else f"{standing.records:,}",
            "date (UTC)": "" if standing.judged_at is None else f"{standing.judged_at:%Y-%m-%d}",
        }
        for standing in newest_first
    ]
    decisions = Counter(standing.decision or "not judged" for standing in standings)
    # An entry a candidate, whose value Dagster folds: the columns of a table within the table are cut. No
    # candidate has a blank in its name, so that none takes the place of what follows.
    return {
        **{of.candidate: _describe_in_line(of) for of in newest_first[:SHOWN]},
        "records and dates": presentation.show_table(
            pd.DataFrame(rows, columns=["candidate", "records", "date (UTC)"])
        ),
        "dagster/row_count": len(standings),
        **{f"are {name}": decisions[name] for name in ("approved", "refused", "undetermined")},
        "are published": sum(standing.is_published for standing in standings),
    }


def _describe_in_line(standing: Standing) -> str:
    text = str(standing) if standing.worst_clause is None else f"{standing}: {standing.worst_clause}"
    # At 1,440 pixels this many characters fit into the column of values, which Dagster makes narrower.
    return text.replace(" ", "\u00a0") if len(text) <= _FIT_INTO_LINE else text


def dossier_asset(graph: GateGraph) -> dg.AssetsDefinition:
    """Return the asset that files the evidence of a candidate; its check `within_policy` blocks."""
    key = graph.key("dossier")

    @dg.asset(
        key=key,
        deps=[graph.key("identity_risk"), graph.key("attribute_risk")],
        partitions_def=graph.candidates,
        metadata={"effective_clauses": presentation.effective_clauses(graph.gate.clauses())},
        check_specs=[
            graph.check("within_policy", "dossier", "Every clause that refuses is kept or waived"),
            graph.check(
                "without_waivers", "dossier", "No clause has to be waived for this content", blocking=False
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
        void = find_void_waivers(folders, content, steps.now())
        # Those that are not kept first.
        judgements = sorted(read_judgements(content), key=lambda judgement: judgement.outcome == "kept")
        broken = list_broken_clauses(content)
        standing = describe_standing(content["decision"], is_published=is_published(folders, candidate))
        evaluations = count_evaluations(folders.store, content["measured"]["ground_truth"])
        metadata = {
            "decision": content["decision"],
            "standing": standing,
            "page": presentation.link_page(graph.gate, path_of_page(folders, candidate)),
            "evaluations_of_ground_truth": evaluations,
            "clauses": presentation.clauses_table(judgements),
            "dossier": dg.MetadataValue.md(to_markdown(content)),
            "folder": str(folders.store.candidate_folder(candidate)),
        }
        approved = content["decision"] == "approved"
        description = f"{standing}: {', '.join(broken) or 'every clause that decides is kept'}"
        within_policy = dg.AssetCheckResult(
            passed=approved,
            asset_key=key,
            check_name="within_policy",
            description=description,
            metadata={"value": len(broken), "bound": 0, "outcome": content["decision"]},
        )
        waivers = presentation.waivers_result(content["waivers"], void, key)
        made: dg.MaterializeResult = dg.MaterializeResult(metadata=metadata)
        results: list[StepResult] = [made, within_policy, waivers, list_candidates(graph)]
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


def release_asset(graph: GateGraph) -> dg.AssetsDefinition:
    """Return the asset that publishes an approved candidate."""

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
        released = releasing.release(graph.folders, candidate, context.run.run_id, clock=steps.now)
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
            last_words=f"Candidate {candidate!r} is approved: every clause that decides is kept or waived. "
            f"It is published in {released.folder}.",
        )

    return release
