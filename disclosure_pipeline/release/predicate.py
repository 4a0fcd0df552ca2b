"""What a release's statement says: what was approved, on which figures, under which policy, by which code."""

from __future__ import annotations

import json
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue

from disclosure_pipeline.errors import DisclosurePipelineError
from disclosure_pipeline.policy.bounds import Over
from disclosure_pipeline.policy.trust import Moment
from disclosure_pipeline.policy.verdict import Outcome
from disclosure_pipeline.policy.waivers import Digest

Figure = Annotated[float, Field(allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Named = Annotated[str, Field(min_length=1)]


class StatementError(DisclosurePipelineError):
    """A statement cannot be made, or cannot be read."""


def _require_finite(content: dict[str, JsonValue]) -> dict[str, JsonValue]:
    json.dumps(content, allow_nan=False)
    return content


class _StatedModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PolicyStated(_StatedModel):
    """The policy that the candidate was held against."""

    digest: Annotated[
        Digest,
        Field(description="sha256 of all of the gate's definition that decides: dictionary and policy"),
    ]
    keys: Annotated[tuple[Named, ...], Field(min_length=1)]
    targets: Annotated[tuple[Named, ...], Field(min_length=1)]
    definition: Annotated[
        dict[str, JsonValue],
        AfterValidator(_require_finite),
        Field(description="The policy section of the gate's definition"),
    ]


class ClauseStated(_StatedModel):
    """One condition of the policy, the figure that was found, and what follows."""

    name: Named
    measure: Named
    column: Annotated[str | None, Field(description="The target or key; null: the whole table, or all keys")]
    over: Annotated[Over, Field(description="Whether the worst synthesis counts, or their mean")]
    share_of: Annotated[
        str | None,
        Field(description="The measure of the ground truth's own risk that the bound is a share of"),
    ]
    at_least: Annotated[
        bool, Field(description="Whether the value must not be below the limit, or not above")
    ]
    warns: Annotated[
        bool, Field(description="Whether the candidate may be approved with this clause exceeded")
    ]
    value: Annotated[
        Figure | None,
        Field(
            description="The figure, rounded to the policy's smallest_count records, never to the safer "
            "side; null where the measure is no share of all records, or the bound is a share"
        ),
    ]
    bound: Annotated[Figure, Field(description="The bound as the policy writes it")]
    loosened_from: Annotated[
        Figure | None,
        Field(description="The default of a guard that the policy bounds more loosely; null: it does not"),
    ]
    limit: Annotated[
        Figure | None,
        Field(description="The bound in the measure's own unit; null where it is a share of GT's own risk"),
    ]
    outcome: Outcome
    words: Annotated[str, Field(description="The same for a reader")]


class WaiverStated(_StatedModel):
    """A waiver that let a clause pass."""

    name: Named
    clause: Named
    ceiling: Annotated[Figure, Field(description="How far the value was allowed to go")]
    reason: Named
    approver: Named
    expires: Moment


class GroundTruthStated(_StatedModel):
    """The confidential table: only its custodian can tell which one it is."""

    salted_hash: Annotated[
        Digest,
        Field(
            description="HMAC-SHA256 of the table's sha256 (in hexadecimal), keyed with the custodian's salt"
        ),
    ]
    records: Annotated[
        Count, Field(description="Its number of records, rounded down to the policy's smallest_count")
    ]


class ConfidentialStated(_StatedModel):
    """A further confidential table that copies and nearness were held against."""

    name: Named
    salted_hash: Annotated[Digest, Field(description="As that of the ground truth")]


class SyntheticStated(_StatedModel):
    """A file of the release: a synthetic table, or the same table in another format."""

    name: Named
    records: Count


class PageStated(_StatedModel):
    """The page of the dossier in its edition for publication: a file of the release."""

    name: Named
    rounded_to: Annotated[Count, Field(description="The number of people that every figure is rounded to")]


class Predicate(_StatedModel):
    """What was approved, on which figures, under which policy, by which code. NaN never: null."""

    gate: Named
    candidate: Named
    decision: Literal["approved"]
    snapshot: Annotated[
        Digest,
        Field(
            description="sha256 of a line `sha256  name` for each file that arrived: by it the custodian "
            "finds what the release was written from"
        ),
    ]
    policy: PolicyStated
    clauses: Annotated[tuple[ClauseStated, ...], Field(min_length=1)]
    controls: Annotated[
        tuple[ClauseStated, ...],
        Field(min_length=1, description="Clauses that tell whether the figures can be trusted at all"),
    ]
    waivers: tuple[WaiverStated, ...]
    ground_truth: GroundTruthStated
    confidential: Annotated[
        tuple[ConfidentialStated, ...],
        Field(description="Further confidential tables of which no copies are released"),
    ] = ()
    synthetic: Annotated[tuple[SyntheticStated, ...], Field(min_length=1)]
    dossier: Annotated[
        Digest, Field(description="sha256 of the dossier, the evidence that stays in the store")
    ]
    page: Annotated[PageStated | None, Field(description="The dossier for people; null: there is none")]
    documentation: Annotated[
        dict[Named, Named],
        Field(description="What the custodian says of the release, by name: purpose, recipients, generator"),
    ]
    versions: Annotated[dict[str, str], Field(description="This package, Python and what it computes with")]
    run_id: Named
    measured_at: Moment
    published_at: Moment
