"""The assets of a gate, from the tables to the release; their bodies load, call and return metadata."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import dagster as dg

from disclosure_pipeline.candidates.arrival import deliver, receive, record_ground_truth
from disclosure_pipeline.candidates.evaluation import (
    file_dossier,
    find_void_waivers,
    load_group_levels,
    locate_page,
    measure,
    prepare_dossier,
    read_first_page,
)
from disclosure_pipeline.candidates.evaluation_records import count_evaluations
from disclosure_pipeline.candidates.store import list_published
from disclosure_pipeline.evaluation.long_table import FURTHER
from disclosure_pipeline.evidence.dossier import (
    collect_figures,
    describe_broken_clauses,
    list_broken_clauses,
)
from disclosure_pipeline.evidence.page.first_page import write_headline
from disclosure_pipeline.measures.entry import About
from disclosure_pipeline.orchestration import presentation, steps
from disclosure_pipeline.orchestration.steps import (
    GateGraph,
    RunOutcome,
    StepOutcome,
    StepResult,
    gate_step,
    refuse,
)
from disclosure_pipeline.policy.clauses import KEY_OVERLAPS
from disclosure_pipeline.policy.sentences import write_sentence
from disclosure_pipeline.policy.verdict import Judgement, order_judgements, read_judgements
from disclosure_pipeline.release import releasing
from disclosure_pipeline.release.readiness import summarize_gate_power
from disclosure_pipeline.release.releasing import remove_abandoned
from disclosure_pipeline.release.standing import describe_standing, is_published, record_releases
from disclosure_pipeline.tables.dictionary import Violation
from disclosure_pipeline.tables.messages import capitalized


def build_ground_truth(graph: GateGraph) -> dg.AssetsDefinition:
    """Build the asset that checks the ground truth against its data dictionary and records its hash."""
    gate = graph.gate
    key = graph.key("ground_truth")
    upstream = (
        [] if gate.ground_truth_asset is None else [dg.AssetKey.from_user_string(gate.ground_truth_asset)]
    )

    @dg.asset(
        key=key,
        deps=upstream,
        metadata={"dagster/column_schema": presentation.describe_dictionary(gate)},
        check_specs=[
            graph.check("contract", "ground_truth", "The table keeps its data dictionary"),
        ],
        **graph.attributes("The confidential records, read in place. The asset is a reference.", {"pandera"}),
    )
    @gate_step()
    def ground_truth() -> StepOutcome:
        remove_abandoned(graph.folders.store, graph.folders.staging)
        recorded = record_ground_truth(graph.folders)
        is_broken = bool(recorded.violations)
        power = "not measured" if is_broken else summarize_gate_power(graph.folders, recorded.sha256)
        metadata: dict[str, Any] = {
            "dagster/column_schema": presentation.describe_dictionary(gate),
            "power": power,
            "dagster/row_count": recorded.records,
            "location": graph.folders.ground_truth.redacted_location,
            "sha256": recorded.sha256,
        }
        contract = presentation.build_contract_check(key, recorded.violations)
        results: list[StepResult] = [dg.MaterializeResult(metadata=metadata), contract]
        if not is_broken:
            return StepOutcome(results)
        sentence = "Nothing can be determined: the ground truth breaks its data dictionary"
        reasons = _describe_violations(recorded.violations)
        return StepOutcome(results, refuse("undetermined", sentence, reasons, ["contract"]))

    return ground_truth


def build_synthetic(graph: GateGraph) -> dg.AssetsDefinition:
    """Build the asset that takes a candidate's snapshot and compares it with the data dictionary and GT."""
    gate = graph.gate
    key = graph.key("synthetic")
    clauses = sum(clause.figure in KEY_OVERLAPS for clause in gate.clauses())
    labels = {"labels": gate.labels}
    settings: dict[str, Any] = dict(
        key=key,
        partitions_def=graph.candidates,
        metadata={"dagster/column_schema": presentation.describe_dictionary(gate)},
        check_specs=[
            graph.check("contract", "synthetic", "Every table keeps the data dictionary"),
            graph.check(
                "key_overlap",
                "synthetic",
                f"GT and SD share at least {gate.policy.find_bound('key_overlap'):g} % of each key's values, "
                f"and {gate.policy.find_bound('whole_key_overlap'):g} % of the whole key's",
            ),
        ],
        **graph.attributes(
            "The candidate's tables, copied once into the store; everything later reads that copy.",
            {"pandera"},
        ),
    )

    def take(candidate: str, syntheses: Any = None) -> StepOutcome:
        folders = graph.folders
        prepare_dossier()
        remove_abandoned(folders.store, folders.staging)
        delivered = None if gate.synthesis_asset is None else deliver(folders, candidate, syntheses)
        arrival = receive(folders, candidate, delivered)
        metadata: dict[str, Any] = {
            "dagster/column_schema": presentation.describe_dictionary(gate),
            "dagster/row_count": sum(arrival.records),
            "syntheses": len(arrival.records),
            "sha256": arrival.snapshot.sha256,
        }
        contract, overlap = (
            presentation.build_contract_check(key, arrival.violations),
            presentation.build_overlap_check(key, arrival, clauses, labels),
        )
        results: list[StepResult] = [dg.MaterializeResult(metadata=metadata), contract, overlap]
        name = f"Candidate {candidate!r}"
        if arrival.violations:
            sentence = f"{name} is refused: it breaks the data dictionary"
            failure = refuse("refused", sentence, _describe_violations(arrival.violations), ["contract"])
        elif not overlap.passed:
            sentence = f"{name} could not be judged: it shares too few values with the ground truth"
            broken = {
                write_sentence(overlap, labels): write_sentence(public, labels)
                for overlap, public in zip(arrival.overlaps, arrival.public_overlaps, strict=True)
                if overlap.outcome != "kept"
            }
            reasons = broken or {presentation.NOT_MEASURED: presentation.NOT_MEASURED}
            failure = refuse("undetermined", sentence, reasons, ["key_overlap"])
        else:
            return StepOutcome(results)
        return StepOutcome([*results, materialize_candidates(graph)], failure)

    if gate.synthesis_asset is None:

        @dg.asset(**settings, deps=list(map(dg.AssetKey.from_user_string, gate.synthetic_asset)))
        @gate_step()
        def synthetic(context: dg.AssetExecutionContext) -> StepOutcome:
            return take(context.partition_key)

        return synthetic

    @dg.asset(
        **settings, ins={"syntheses": dg.AssetIn(key=dg.AssetKey.from_user_string(gate.synthesis_asset))}
    )
    @gate_step()
    def synthetic_of_asset(context: dg.AssetExecutionContext, syntheses: Any) -> StepOutcome:
        return take(context.partition_key, syntheses)

    return synthetic_of_asset


def _describe_violations(violations: Sequence[Violation]) -> dict[str, str]:
    """Return the sentence for custodians on each violation -> the sentence for notices."""
    return {str(violation): violation.without_numbers for violation in violations}


def build_bins(graph: GateGraph) -> dg.AssetsDefinition:
    """Build the asset that shows auditors the edges of grouped columns."""

    @dg.asset(
        key=graph.key("bins"),
        deps=[graph.key("ground_truth"), graph.key("synthetic")],
        partitions_def=graph.candidates,
        **graph.attributes(
            "The groups of every grouped numeric column, and the number of records in each.", {"pandas"}
        ),
    )
    @gate_step()
    def bins_(context: dg.AssetExecutionContext) -> StepOutcome:
        groups = load_group_levels(graph.folders, context.partition_key)
        metadata: dict[str, Any] = {
            "bins": presentation.show_table(groups, "bins"),
            "dagster/row_count": len(groups),
            "dagster/column_schema": presentation.describe_frame(groups, "bins"),
        }
        return StepOutcome([dg.MaterializeResult(metadata=metadata)])

    return bins_


def build_disclosure(graph: GateGraph) -> dg.AssetsDefinition:
    """Build the two assets of one measurement, with checks of every clause except key overlaps."""
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
    # Dagster accepts only the annotation of a tuple.
    @gate_step(returns=tuple[dg.MaterializeResult, dg.AssetCheckResult])
    def disclosure(context: dg.AssetExecutionContext) -> StepOutcome:
        if skipped := list_published(graph.folders.releases).note:
            context.log.warning(skipped)
        record_releases(graph.folders)
        evaluation = measure(graph.folders, context.partition_key, steps.now())
        result = evaluation.result
        judgements = {judgement.clause: judgement for judgement in evaluation.judgements}

        def check_results(asset: dg.AssetKey) -> list[dg.AssetCheckResult]:
            checks = [check for check in graph.clause_checks if check.asset == asset.path[-1]]
            labels = {"labels": gate.labels}
            return [presentation.build_clause_check(check, judgements, asset, labels) for check in checks]

        def judgements_of(about: About) -> list[Judgement]:
            return [
                judgement
                for judgement in evaluation.judgements
                if judgement.clause.entry is not None and judgement.clause.entry.about == about
            ]

        figures = evaluation.dossier["figures"]
        further = collect_figures(result, gate.policy.smallest_count, FURTHER.values())
        figures = figures | {"table": [*figures["table"], *further["table"]]}
        tables = {
            name: presentation.view_table(figures, name)
            for name in ("identity", "attribute", "cap", "protection", "prediction", "control_attribute")
        }
        identity: dg.MaterializeResult = dg.MaterializeResult(
            asset_key=identity_key,
            metadata={
                "identity": presentation.show_table(tables["identity"], "identity"),
                "engine": result.engine,
                "dagster/row_count": len(tables["identity"]),
                "dagster/column_schema": presentation.describe_frame(tables["identity"], "identity"),
                **presentation.show_plots(figures, judgements_of(""), [None]),
            },
        )
        attribute: dg.MaterializeResult = dg.MaterializeResult(
            asset_key=attribute_key,
            metadata={
                "engine": result.engine,
                **{
                    name: presentation.show_table(table, name)
                    for name, table in tables.items()
                    if name != "identity" and len(table)
                },
                **presentation.show_flags(figures, "one_way"),
                **presentation.show_flags(figures, "two_way"),
                "dagster/row_count": len(tables["attribute"]),
                "dagster/column_schema": presentation.describe_frame(tables["attribute"], "attribute"),
                **presentation.show_plots(figures, judgements_of("target"), gate.targets),
            },
        )
        # Results follow their asset instead of being part of it: Dagster would read those twice.
        return StepOutcome([identity, *check_results(identity_key), attribute, *check_results(attribute_key)])

    return disclosure


def build_candidates(graph: GateGraph) -> dg.AssetsDefinition:
    """Build the asset that lists all candidates, at the end of each run of the gate or by itself."""

    @dg.asset(
        key=graph.key("candidates"),
        deps=[
            # Without partitions: the list is of all candidates in the store. For a refused candidate, which
            # has no release, Dagster would call the list stale forever.
            dg.AssetDep(graph.key(name), partition_mapping=dg.SpecificPartitionsPartitionMapping([]))
            for name in ("dossier", "release")
        ],
        **graph.attributes(
            f"The standing of each candidate and, for the {presentation.SHOWN} newest, the reason: the first "
            "broken clause, or the one that is nearest to its bound.",
            {"table"},
        ),
    )
    @gate_step()
    def candidates() -> StepOutcome:
        metadata = presentation.describe_candidates(graph.folders)
        return StepOutcome([dg.MaterializeResult(metadata=metadata)])

    return candidates


def materialize_candidates(graph: GateGraph) -> dg.AssetMaterialization:
    """Return the list of candidates as an event, for the end of a run that changed a standing."""
    return dg.AssetMaterialization(
        graph.key("candidates"), metadata=presentation.describe_candidates(graph.folders)
    )


def build_dossier(graph: GateGraph) -> dg.AssetsDefinition:
    """Build the asset that files the evidence on a candidate; its check `within_policy` blocks."""
    key = graph.key("dossier")

    @dg.asset(
        key=key,
        deps=[graph.key("identity_risk"), graph.key("attribute_risk")],
        partitions_def=graph.candidates,
        metadata={"effective_clauses": presentation.show_effective_clauses(graph.gate.clauses())},
        check_specs=[
            graph.check("within_policy", "dossier", "Every deciding clause is kept or waived"),
            graph.check(
                "without_waivers", "dossier", "No clause needs a waiver for this content", blocking=False
            ),
        ],
        **graph.attributes(
            "Figures and verdict of a candidate, whether refused or approved.",
            {"json", "markdown", "greatexpectations"},
        ),
    )
    @gate_step()
    def dossier(context: dg.AssetExecutionContext) -> StepOutcome:
        folders, candidate = graph.folders, context.partition_key
        content = file_dossier(folders, candidate)
        void = find_void_waivers(folders, content, steps.now())
        judgements = order_judgements(read_judgements(content))
        broken = list_broken_clauses(content)
        was_published = is_published(folders, candidate)
        standing = describe_standing(content["decision"], is_published=was_published)
        evaluations = count_evaluations(folders.store, content["measured"]["ground_truth"])
        metadata = {
            "decision": content["decision"],
            "standing": standing,
            "page": presentation.link_page(graph.gate, folders.store.root, locate_page(folders, candidate)),
            "evaluations_of_ground_truth": evaluations,
            "clauses": presentation.show_judgements(judgements),
            "first_page": dg.MetadataValue.md(read_first_page(folders, candidate)),
            "folder": str(folders.store.candidate_folder(candidate)),
        }
        approved = content["decision"] == "approved"
        description = f"{capitalized(standing)}: {write_headline(content).partition(': ')[2]}."
        within_policy = dg.AssetCheckResult(
            passed=approved,
            asset_key=key,
            check_name="within_policy",
            description=description,
            metadata={
                **{"value": len(broken), "bound": 0, "outcome": content["decision"]},
                **{name: metadata[name] for name in ("page", "first_page")},
            },
        )
        waivers = presentation.build_waivers_check(content["waivers"], void, key)
        filed: dg.MaterializeResult = dg.MaterializeResult(metadata=metadata)
        results: list[StepResult] = [filed, within_policy, waivers, materialize_candidates(graph)]
        if approved:
            return StepOutcome(results)
        nothing = "no clause of the policy is determined"
        reasons = describe_broken_clauses(content, graph.gate.policy.smallest_count) or {nothing: nothing}
        outcome: RunOutcome = "refused" if content["decision"] == "refused" else "undetermined"
        published = ", which is published," if was_published else ""
        sentence = f"Candidate {candidate!r}{published} is {content['decision']}"
        return StepOutcome(results, refuse(outcome, sentence, reasons, ["within_policy"], broken))

    return dossier


def build_release(graph: GateGraph) -> dg.AssetsDefinition:
    """Build the asset that publishes an approved candidate."""

    @dg.asset(
        key=graph.key("release"),
        deps=[graph.key("dossier")],
        partitions_def=graph.candidates,
        **graph.attributes(
            "The approved candidate, verified again and published once with a signed statement.",
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
        # It is published: a failed description is no failure of the release.
        with suppress(Exception):
            folders = graph.folders
            metadata |= presentation.describe_release(released, folders.trusted_keys)
            metadata["first_page"] = dg.MetadataValue.md(read_first_page(folders, candidate))
            page = locate_page(folders, candidate)
            metadata["page"] = presentation.link_page(graph.gate, folders.store.root, page)
        with suppress(Exception):
            results.append(materialize_candidates(graph))
        return StepOutcome(
            [dg.MaterializeResult(metadata=metadata), *results],
            verdict="approved",
            last_words=f"Candidate {candidate!r} is approved: every deciding clause is kept or waived. It is "
            f"published in {released.folder}.",
        )

    return release
