"""The assets of a gate: one run of them decides on one candidate."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from importlib.metadata import version
from typing import Any

import dagster as dg

from disclosure_pipeline.evidence.dossier import to_markdown
from disclosure_pipeline.evidence.figures import publishable
from disclosure_pipeline.orchestration import shown
from disclosure_pipeline.orchestration.evaluations import doubts
from disclosure_pipeline.orchestration.folders import folders_of
from disclosure_pipeline.orchestration.guard import guarded
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.policy import Clause
from disclosure_pipeline.policy.verdict import Judgement
from disclosure_pipeline.policy.waivers import Waiver
from disclosure_pipeline.release import approval, releasing


@dataclass(frozen=True)
class Graph:
    """Keys, check names and settings that the assets of one gate share."""

    gate: Gate
    waivers: tuple[Waiver, ...] = ()

    @property
    def folders(self) -> approval.GateFolders:
        """Where the gate's tables, records and releases lie, as the environment says now."""
        return folders_of(self.gate, self.waivers)

    def key(self, name: str) -> dg.AssetKey:
        """The key of one of the gate's assets."""
        return dg.AssetKey([self.gate.name, name])

    @property
    def candidates(self) -> dg.DynamicPartitionsDefinition:
        """One partition a candidate, added as it arrives."""
        return dg.DynamicPartitionsDefinition(name=f"{self.gate.name}_candidates")

    @cached_property
    def check_names(self) -> dict[str, str]:
        """Clause -> name of its check."""
        return shown.check_names(self.gate.clauses())

    def common(self, description: str, kinds: set[str]) -> dict[str, Any]:
        """What every asset of the gate tells about itself. Editing the policy makes its assets stale."""
        return {
            "group_name": self.gate.name,
            "description": description,
            "owners": list(self.gate.owners),
            "kinds": kinds,
            "tags": {"disclosure_pipeline/gate": self.gate.name},
            "code_version": f"{version('disclosure-pipeline')}-{self.gate.policy_digest()[:12]}",
        }

    def check(self, name: str, asset: str, description: str, *, blocking: bool = True) -> dg.AssetCheckSpec:
        """A check of one of the gate's assets, with a result for each candidate."""
        partitions = None if asset == "ground_truth" else self.candidates
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dg.PreviewWarning)
            return dg.AssetCheckSpec(
                name,
                asset=self.key(asset),
                description=description,
                blocking=blocking,
                partitions_def=partitions,
            )

    def checks(self, asset: str, clauses: Sequence[Clause]) -> list[dg.AssetCheckSpec]:
        """The checks of an asset, one a clause. They do not block: the whole picture is always there."""
        return [
            self.check(self.check_names[clause.name], asset, str(clause), blocking=False)
            for clause in clauses
        ]


def gate_assets(graph: Graph) -> list[dg.AssetsDefinition]:
    """The assets of one gate, from ground_truth to release."""
    deciding = [
        _ground_truth(graph),
        _synthetic(graph),
        _bins(graph),
        _disclosure(graph),
        _dossier(graph),
    ]
    checks = [check for asset in deciding for check in asset.check_specs]
    return [*deciding, _release(graph, checks)]


def _ground_truth(graph: Graph) -> dg.AssetsDefinition:
    gate = graph.gate
    key = graph.key("ground_truth")

    upstream = (
        [] if gate.ground_truth_asset is None else [dg.AssetKey.from_user_string(gate.ground_truth_asset)]
    )

    @dg.asset(
        key=key,
        deps=upstream,
        metadata={"dagster/column_schema": shown.dictionary_schema(gate)},
        check_specs=[
            graph.check("contract", "ground_truth", "The table keeps its data dictionary"),
        ],
        **graph.common(
            "The confidential records, read where they lie. The asset is a reference.", {"pandera"}
        ),
    )
    @guarded
    def ground_truth() -> dg.MaterializeResult:
        found = approval.record_ground_truth(graph.folders)
        return dg.MaterializeResult(
            metadata={
                "dagster/row_count": found.records,
                "location": graph.folders.ground_truth.shown,
                "sha256": found.sha256,
            },
            check_results=[_contract(key, found.violations)],
        )

    return ground_truth


def _contract(key: dg.AssetKey, violations: Sequence[Any]) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        passed=not violations,
        asset_key=key,
        check_name="contract",
        description="; ".join(map(str, violations)) or "Every rule of the data dictionary is kept",
        metadata={"violations": shown.violations_table(violations)},
    )


def _synthetic(graph: Graph) -> dg.AssetsDefinition:
    gate = graph.gate
    key = graph.key("synthetic")
    overlap = [clause for clause in gate.clauses() if clause.measure == "key_overlap"]

    settings: dict[str, Any] = dict(
        key=key,
        partitions_def=graph.candidates,
        metadata={"dagster/column_schema": shown.dictionary_schema(gate)},
        check_specs=[
            graph.check("contract", "synthetic", "Every table keeps the data dictionary"),
            graph.check(
                "key_overlap",
                "synthetic",
                f"GT and SD share at least {gate.policy.key_overlap:g} % of each key's values, and "
                f"{gate.policy.whole_key_overlap:g} % of the whole key's",
            ),
        ],
        **graph.common(
            "What arrived, copied once into the store; everything later reads that copy.", {"pandera"}
        ),
    )

    def received(found: approval.Arrival) -> dg.MaterializeResult:
        shares = [
            judgement.value
            for judgement in found.overlaps
            if judgement.value is not None and judgement.clause.column is not None
        ]
        return dg.MaterializeResult(
            metadata={
                "dagster/row_count": sum(found.records),
                "syntheses": len(found.snapshot.files),
                "sha256": found.snapshot.sha256,
            },
            check_results=[
                _contract(key, found.violations),
                dg.AssetCheckResult(
                    # No judgement at all is no overlap: tables that break the contract are not compared.
                    passed=len(found.overlaps) == len(overlap) and all(map(_kept, found.overlaps)),
                    asset_key=key,
                    check_name="key_overlap",
                    description="; ".join(map(str, found.overlaps)) or "Not measured: the contract is broken",
                    metadata=shown.numbers(
                        {"value": min(shares, default=None), "bound": gate.policy.key_overlap}
                    )
                    | {"overlap": shown.table(found.key_overlap)},
                ),
            ],
        )

    if gate.synthesis_asset is None:

        @dg.asset(**settings)
        @guarded
        def synthetic(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
            return received(approval.receive(graph.folders, context.partition_key))

        return synthetic

    @dg.asset(**settings, ins={"made": dg.AssetIn(key=dg.AssetKey.from_user_string(gate.synthesis_asset))})
    @guarded
    def synthetic_of_asset(context: dg.AssetExecutionContext, made: Any) -> dg.MaterializeResult:
        folders = graph.folders
        delivered = approval.deliver(folders, context.partition_key, made)
        return received(approval.receive(folders, context.partition_key, delivered))

    return synthetic_of_asset


def _kept(judgement: Judgement) -> bool:
    return judgement.outcome == "kept"


def _bins(graph: Graph) -> dg.AssetsDefinition:
    @dg.asset(
        key=graph.key("bins"),
        deps=[graph.key("ground_truth"), graph.key("synthetic")],
        partitions_def=graph.candidates,
        **graph.common("The groups of every grouped numeric column, and the records in each.", {"pandas"}),
    )
    @guarded
    def bins_(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        groups = approval.group_levels(graph.folders, context.partition_key)
        return dg.MaterializeResult(
            metadata={
                "bins": shown.table(groups),
                "dagster/row_count": len(groups),
                "dagster/column_schema": shown.frame_schema(groups),
            }
        )

    return bins_


def _disclosure(graph: Graph) -> dg.AssetsDefinition:
    gate = graph.gate
    identity_key, attribute_key = graph.key("identity_disclosure"), graph.key("attribute_disclosure")
    measured = [clause for clause in gate.clauses() if clause.measure != "key_overlap"]
    of_identity = [clause for clause in measured if clause.column is None]
    of_attribute = [clause for clause in measured if clause.column is not None]

    @dg.multi_asset(
        name=f"{gate.name}__disclosure",
        specs=[
            dg.AssetSpec(
                identity_key,
                deps=[graph.key("bins")],
                partitions_def=graph.candidates,
                **graph.common("UiO, UiS, UiOiS and repU: who is unique, and can be found in SD.", {"numpy"}),
            ),
            dg.AssetSpec(
                attribute_key,
                deps=[graph.key("bins")],
                partitions_def=graph.candidates,
                **graph.common("Dorig, Dsyn, iS, DiS, DiSCO, DiSDiO and CAP of each target.", {"numpy"}),
            ),
        ],
        check_specs=[
            *graph.checks("identity_disclosure", of_identity),
            *graph.checks("attribute_disclosure", of_attribute),
        ],
    )
    @guarded
    def disclosure(context: dg.AssetExecutionContext) -> tuple[dg.MaterializeResult, dg.MaterializeResult]:
        found = approval.measure(graph.folders, context.partition_key, _now())
        result = found.result
        judgements = {judgement.clause: judgement for judgement in found.judgements}

        def results(clauses: Sequence[Clause], asset: dg.AssetKey) -> list[dg.AssetCheckResult]:
            return [
                shown.check_result(judgements[clause], graph.check_names[clause.name], asset)
                for clause in clauses
            ]

        smallest = gate.policy.smallest_count
        identity: dg.MaterializeResult = dg.MaterializeResult(
            asset_key=identity_key,
            metadata={
                "identity": shown.table(result.identity),
                "engine": result.engine,
                "dagster/row_count": len(result.identity),
                "dagster/column_schema": shown.frame_schema(result.identity.reset_index()),
                **shown.worst(result, ["identity"]),
            },
            check_results=results(of_identity, identity_key),
        )
        attribute: dg.MaterializeResult = dg.MaterializeResult(
            asset_key=attribute_key,
            metadata={
                "attribute": shown.table(result.attribute),
                "engine": result.engine,
                **{
                    name: shown.table(result.frame(name))
                    for name in ("attribution", "protection", "prediction", "control_attribute")
                    if len(result.frame(name))
                },
                "one_way": shown.table(publishable(result, "one_way", smallest)),
                "two_way": shown.table(publishable(result, "two_way", smallest)),
                "dagster/row_count": len(result.attribute),
                "dagster/column_schema": shown.frame_schema(result.attribute.reset_index()),
                **shown.worst(result, ["attribute", "attribution", "protection", "prediction"]),
            },
            check_results=results(of_attribute, attribute_key),
        )
        return identity, attribute

    return disclosure


def _dossier(graph: Graph) -> dg.AssetsDefinition:
    key = graph.key("dossier")

    @dg.asset(
        key=key,
        deps=[graph.key("identity_disclosure"), graph.key("attribute_disclosure")],
        partitions_def=graph.candidates,
        check_specs=[
            graph.check("within_policy", "dossier", "Every clause that refuses is kept or waived"),
            graph.check(
                "waivers", "dossier", "Every waiver for this content lets its clause pass", blocking=False
            ),
        ],
        **graph.common(
            "Figures and verdict of a candidate, for a refusal as for an approval.",
            {"json", "markdown", "greatexpectations"},
        ),
    )
    @guarded
    def dossier(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        folders = graph.folders
        content = approval.file_dossier(folders, context.partition_key)
        void = approval.void_waivers(folders, content, _now())
        against = approval.against(content)
        return dg.MaterializeResult(
            metadata={
                "decision": content["decision"],
                "clauses": shown.clauses_table(content["clauses"]),
                "dossier": dg.MetadataValue.md(to_markdown(content)),
                "evidence": dg.MetadataValue.path(
                    str(approval.evidence_page(folders, context.partition_key))
                ),
                "folder": str(folders.store.candidate(context.partition_key)),
            },
            check_results=[
                dg.AssetCheckResult(
                    passed=content["decision"] == "approved",
                    asset_key=key,
                    check_name="within_policy",
                    description=f"{content['decision']}: {', '.join(against) or 'every clause is kept'}",
                    metadata={"value": len(against), "bound": 0},
                ),
                shown.waivers_result(content["waivers"], void, key),
            ],
        )

    return dossier


def _release(graph: Graph, checks: Sequence[dg.AssetCheckSpec]) -> dg.AssetsDefinition:
    @dg.asset(
        key=graph.key("release"),
        deps=[graph.key("dossier")],
        partitions_def=graph.candidates,
        **graph.common(
            "The approved candidate, published once with a signed statement, after everything is verified "
            "again.",
            {"file"},
        ),
    )
    @guarded
    def release(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        candidate = context.partition_key

        def unpassed(judgements: Sequence[Judgement]) -> list[str]:
            names = [graph.check_names[each.clause.name] for each in judgements if shown.warns(each)]
            may_warn = [check.key for check in checks if check.name in {*names, "waivers"}]
            return doubts(context.instance, checks, candidate, may_warn)

        folder, now = releasing.release(graph.folders, candidate, context.run.run_id, _now, unpassed)
        return dg.MaterializeResult(
            metadata={
                "folder": dg.MetadataValue.path(str(folder)),
                "published": "now" if now else "before, with the same content",
            }
        )

    return release


def _now() -> datetime:
    return datetime.now(timezone.utc)
