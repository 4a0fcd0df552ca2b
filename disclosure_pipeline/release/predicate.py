"""The content of a release's statement: the approved files, their figures, the policy and the code."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)
from pydantic_core import ErrorDetails

from disclosure_pipeline.errors import DisclosurePipelineError
from disclosure_pipeline.evaluation.power import COPIES, GatePower, Refusals, summarize_power
from disclosure_pipeline.policy.bounds import Over
from disclosure_pipeline.policy.registry import round_records
from disclosure_pipeline.policy.reviewed_files import Digest, Moment
from disclosure_pipeline.policy.verdict import Judgement, Outcome, publish, read_judgements


def describe_errors(error: ValidationError) -> list[str]:
    """Say where something is wrong, with pydantic's message for each place; no value that was read."""
    return [f"{_place(detail)}: {detail['msg']}" for detail in error.errors(include_url=False)]


def locate_errors(error: ValidationError) -> list[str]:
    """Say where something is wrong, and of what type; no message, which may quote what was read."""
    return [f"{_place(detail)} ({detail['type']})" for detail in error.errors(include_url=False)]


def _place(detail: ErrorDetails) -> str:
    return ".".join(map(str, detail["loc"]))


Figure = Annotated[float, Field(allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Named = Annotated[str, Field(min_length=1)]


EVENTS = "_events"
"""The suffix of the name of a synthetic table that holds the events of its people."""


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
    """A file of the release: a synthetic table, its people's events, or the same in another format."""

    name: Named
    records: Count


class PageStated(_StatedModel):
    """The page of the dossier in its edition for publication: a file of the release."""

    name: Named
    rounded_to: Annotated[Count, Field(description="The number of people that every figure is rounded to")]


class RefusalsStated(_StatedModel):
    """The number of tries, and of those that were refused."""

    refused: Annotated[int, Field(ge=0)]
    tries: Count

    def as_refusals(self) -> Refusals:
        """Return the library's own form."""
        return Refusals(self.refused, self.tries)


class PowerStated(_StatedModel):
    """The policy's power, measured on random halves of the ground truth before any candidate."""

    records: Annotated[
        Count, Field(description="Records of a half, rounded down to the policy's smallest_count")
    ]
    share: Annotated[
        Figure | None,
        Field(
            description="The smallest percentage of the people of whom copies are refused 19 of 20 times; "
            "null: not even copies of everybody are"
        ),
    ]
    noticed: Annotated[RefusalsStated, Field(description="Tables with so many copied people, or everybody")]
    honest: Annotated[RefusalsStated, Field(description="Tables without any copy")]

    def __str__(self) -> str:
        limit = math.inf if self.share is None else self.share
        return summarize_power(limit, self.noticed.as_refusals(), self.honest.as_refusals())


class Predicate(_StatedModel):
    """An approved candidate with its figures, its policy and the code that judged it; null stands for NaN."""

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
    power: Annotated[
        PowerStated | None,
        Field(description="What the policy would notice; left out where it was not measured"),
    ] = None
    documentation: Annotated[
        dict[Named, Named],
        Field(description="What the custodian says of the release, by name: purpose, recipients, generator"),
    ]
    versions: Annotated[dict[str, str], Field(description="This package, Python and what it computes with")]
    run_id: Named
    measured_at: Moment
    published_at: Moment

    @model_serializer(mode="wrap")
    def _to_one_form(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave `power` out where there is none: statements that were signed before have no such field."""
        content: dict[str, Any] = serialize(self)
        if self.power is None:
            del content["power"]
        return content


def build_predicate(
    content: Mapping[str, Any],
    definition: Mapping[str, Any],
    *,
    dossier: str,
    ground_truth: str,
    tables: Mapping[str, int],
    run_id: str,
    measured_at: datetime,
    published_at: datetime,
    page: str | None = None,
    confidential: Mapping[str, str] | None = None,
    power: GatePower | None = None,
) -> Predicate:
    """Return the predicate of an approved candidate, from its dossier's content.

    `definition` is the policy section as plain data, `dossier` the sha256 of the dossier's file,
    `ground_truth` the salted hash of GT, `confidential` that of each further confidential table, by name,
    `tables` the numbers of records of the released tables by name, `page` the name of the released page, if
    there is one, `power` what the policy would notice, if that is measured.
    StatementError where the dossier says anything but approved, or lacks a figure.
    """
    from disclosure_pipeline.evidence.dossier import read_versions

    try:
        figures, judgements = content["figures"], _read_exact(content)
        _require_measured(tables, figures["N_s"])
        policy = PolicyStated(
            digest=content["policy_digest"],
            keys=tuple(figures["keys"]),
            targets=tuple(figures["targets"]),
            definition=dict(definition),
        )
        smallest_count, records = int(definition["smallest_count"]), [figures["N_d"], *figures["N_s"]]
        if min(records) < 1:
            raise ValueError("a table is empty")
        public = publish(judgements, records, smallest_count)
        return Predicate(
            gate=content["gate"],
            candidate=content["candidate"],
            decision=content["decision"],
            snapshot=content["measured"]["snapshot"],
            policy=policy,
            clauses=tuple(_state_clause(judged) for judged in public if not judged.clause.control),
            controls=tuple(_state_clause(judged) for judged in public if judged.clause.control),
            waivers=tuple(
                WaiverStated.model_validate(waiver.model_dump(include=set(WaiverStated.model_fields)))
                for judgement in judgements
                if (waiver := judgement.waiver) is not None
            ),
            ground_truth=GroundTruthStated(
                salted_hash=ground_truth, records=round_records(figures["N_d"], smallest_count)
            ),
            confidential=tuple(
                ConfidentialStated(name=name, salted_hash=digest)
                for name, digest in (confidential or {}).items()
            ),
            synthetic=tuple(SyntheticStated(name=name, records=records) for name, records in tables.items()),
            dossier=dossier,
            power=None if power is None else _state_power(power, smallest_count),
            page=None if page is None else PageStated(name=page, rounded_to=content["smallest_count"]),
            documentation=content["documentation"],
            versions=read_versions(),
            run_id=run_id,
            measured_at=measured_at,
            published_at=published_at,
        )
    except ValidationError as error:
        problem = "; ".join(locate_errors(error))
    except (KeyError, TypeError, ValueError) as error:
        problem = f"a {type(error).__name__} came up"
    raise StatementError(f"No statement can be made of this dossier: {problem}. Run dossier again.")


def _require_measured(tables: Mapping[str, int], measured: Sequence[int]) -> None:
    """Raise ValueError unless the files are the measured tables, in one format or two, and their events."""
    further = {
        name
        for name in tables
        for suffix in (".csv", f"{EVENTS}.parquet", f"{EVENTS}.csv")
        if name.endswith(suffix) and f"{name.removesuffix(suffix)}.parquet" in tables
    }
    if sorted(records for name, records in tables.items() if name not in further) != sorted(measured):
        raise ValueError("the files are not the tables that were measured")


def _read_exact(content: Mapping[str, Any]) -> list[Judgement]:
    """Return the judgements of a dossier without notes. ValueError where a figure or row cannot be so."""
    judgements = read_judgements(content)
    for row, judgement in zip(content["clauses"], judgements, strict=True):
        if row != judgement.to_row():
            raise ValueError("a clause contradicts itself")
        if not all(value is None or math.isfinite(value) for value in (judgement.value, judgement.limit)):
            raise ValueError("a figure is not finite")
    return [replace(judgement, note="") for judgement in judgements]


def _state_power(power: GatePower, smallest_count: int) -> PowerStated:
    limit = power.detection_limit()
    noticed, honest = power.count_refused(COPIES, limit), power.false_refusals
    return PowerStated(
        records=round_records(power.records, smallest_count),
        share=limit if math.isfinite(limit) else None,
        noticed=RefusalsStated(refused=noticed.refused, tries=noticed.tries),
        honest=RefusalsStated(refused=honest.refused, tries=honest.tries),
    )


def _state_clause(judgement: Judgement) -> ClauseStated:
    row = judgement.to_row() | {"words": str(judgement)}
    return ClauseStated(**{name: row[name] for name in ClauseStated.model_fields})
