"""The predicate of a release's statement: the approved files, their figures, the policy and the code."""

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
from disclosure_pipeline.measures.entry import Statistic
from disclosure_pipeline.policy.bounds import Over
from disclosure_pipeline.policy.clauses import Clause, RequiredBound, find_required_bound
from disclosure_pipeline.policy.reviewed_files import Digest, Moment
from disclosure_pipeline.policy.rounding import round_records
from disclosure_pipeline.policy.sentences import Content, write_sentence
from disclosure_pipeline.policy.verdict import (
    Judgement,
    Outcome,
    can_be_waived,
    has_public_value,
    read_judgements,
    round_judgements,
)
from disclosure_pipeline.tables.dictionary import describe_problem


def describe_errors(error: ValidationError) -> list[str]:
    """Return the location and message of each error, without the input."""
    return [
        f"{_join_location(detail)}: {describe_problem(detail)}" for detail in error.errors(include_url=False)
    ]


def locate_errors(error: ValidationError) -> list[str]:
    """Return the location and type of each error, without its message, which may quote the input."""
    return [f"{_join_location(detail)} ({detail['type']})" for detail in error.errors(include_url=False)]


def _join_location(detail: ErrorDetails) -> str:
    return ".".join(map(str, detail["loc"]))


Figure = Annotated[float, Field(allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
NonEmpty = Annotated[str, Field(min_length=1)]


EVENTS = "_events"
"""The suffix that turns the name of a table of people into that of their events."""


class StatementError(DisclosurePipelineError):
    """A statement cannot be made or read."""


def _require_finite(content: dict[str, JsonValue]) -> dict[str, JsonValue]:
    json.dumps(content, allow_nan=False)
    return content


class _StatementModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _omit_if_none(name: str, content: dict[str, Any]) -> dict[str, Any]:
    """Omit a field without a value, as statements do that were signed before the field existed."""
    if content[name] is None:
        del content[name]
    return content


class StatedPolicy(_StatementModel):
    """The policy that the candidate was judged by."""

    digest: Annotated[
        Digest,
        Field(description="sha256 of the decisive part of the gate's definition: dictionary and policy"),
    ]
    keys: Annotated[tuple[NonEmpty, ...], Field(min_length=1)]
    targets: Annotated[tuple[NonEmpty, ...], Field(min_length=1)]
    definition: Annotated[
        dict[str, JsonValue],
        AfterValidator(_require_finite),
        Field(description="The policy section of the gate's definition"),
    ]


class StatedRules(_StatementModel):
    """The rules of the signing version for a clause's figure: later versions judge the clause by these."""

    default: Annotated[
        Figure | None, Field(description="The default bound of a guard; null for any other figure")
    ]
    is_published: Annotated[bool, Field(description="True if the figure is stated, rounded")]
    can_be_waived: Annotated[bool, Field(description="True if a waiver may let the clause pass")]
    required: Annotated[
        RequiredBound | None,
        Field(
            description="The kind of disclosure that every policy must bound and this clause does; null if "
            "there is none"
        ),
    ]


class StatedClause(_StatementModel):
    """A clause of the policy, the measured figure, and the outcome."""

    name: NonEmpty
    figure: NonEmpty
    statistic: Annotated[
        Statistic,
        Field(
            description="What is bounded: the figure, its share of the ground truth's own risk, or what is "
            "beyond other people's records"
        ),
    ]
    about: Annotated[
        tuple[NonEmpty, ...],
        Field(description="The targets or keys, or the further confidential table; empty: the whole table"),
    ]
    over: Annotated[Over, Field(description="Whether the worst synthesis counts, or the mean of all")]
    chance: Annotated[bool, Field(description="True if a difference counts only beyond chance")]
    by_weight: Annotated[
        bool, Field(description="True if the bound also holds for the shares of people by weight")
    ]
    warns: Annotated[
        bool, Field(description="True if the candidate may be approved with this clause exceeded")
    ]
    value: Annotated[
        Figure | None,
        Field(
            description="The worst figure, rounded to the policy's smallest_count records, never to the "
            "safer side; null if it is not a share of all records, or if the bound is a share"
        ),
    ]
    bound: Annotated[Figure, Field(description="The bound as written in the policy")]
    loosened_from: Annotated[
        Figure | None,
        Field(description="The default bound that the policy loosens; null if it does not"),
    ]
    limit: Annotated[
        Figure | None,
        Field(description="The bound in the figure's own unit; null if it is a share of GT's own risk"),
    ]
    outcome: Outcome
    words: Annotated[str, Field(description="All of this in a sentence")]
    rules: StatedRules

    @property
    def at_least(self) -> bool:
        """True if the limit is a minimum."""
        return self.statistic == "at_least"

    @property
    def is_share(self) -> bool:
        """True if the bound is a share of GT's own risk."""
        return self.statistic == "at_most_share"

    def to_clause(self, *, control: bool) -> Clause:
        """Return the clause that it states, a control or not."""
        return Clause.from_row(vars(self))


class EarlierStatedClause(_StatementModel):
    """A clause as earlier versions stated it: `measure` names the figure and what is bounded of it."""

    name: NonEmpty
    measure: NonEmpty
    column: str | None
    over: Over
    share_of: str | None
    at_least: bool
    warns: bool
    value: Figure | None
    bound: Figure
    loosened_from: Figure | None
    limit: Figure | None
    outcome: Outcome
    words: str
    rules: StatedRules | None = None

    @model_serializer(mode="wrap")
    def _to_one_form(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return _omit_if_none("rules", serialize(self))

    @property
    def figure(self) -> str:
        """The name of the figure."""
        return self.measure

    @property
    def about(self) -> tuple[str, ...]:
        """The target, key or further confidential table that the clause is about, if it is about one."""
        return () if self.column is None else (self.column,)

    @property
    def is_share(self) -> bool:
        """True if the bound is a share of GT's own risk."""
        return self.share_of is not None

    def to_clause(self, *, control: bool) -> Clause:
        """Return the clause that it states; only the statement says whether it is a control."""
        return Clause.from_row(vars(self) | {"control": control})


AnyStatedClause = StatedClause | EarlierStatedClause


class StatedWaiver(_StatementModel):
    """A waiver that let a clause pass."""

    name: NonEmpty
    clause: NonEmpty
    ceiling: Annotated[Figure, Field(description="The furthest value that the waiver allows")]
    reason: NonEmpty
    approver: NonEmpty
    expires: Moment


class StatedGroundTruth(_StatementModel):
    """The ground truth: only its custodian can tell which table it is."""

    salted_hash: Annotated[
        Digest,
        Field(
            description="HMAC-SHA256 of the table's sha256 (in hexadecimal), keyed with the custodian's salt"
        ),
    ]
    records: Annotated[
        Count, Field(description="Its number of records, rounded down to the policy's smallest_count")
    ]


class StatedConfidential(_StatementModel):
    """A further confidential table that was searched for copies and near copies."""

    name: NonEmpty
    salted_hash: Annotated[Digest, Field(description="Made as that of the ground truth")]


class StatedSynthetic(_StatementModel):
    """A released file: a synthetic table or the events of its people, in one format."""

    name: NonEmpty
    records: Count


class StatedPage(_StatementModel):
    """The dossier's page in its edition for publication: a released file."""

    name: NonEmpty
    rounded_to: Annotated[Count, Field(description="The number of people that every figure is rounded to")]


class StatedRefusals(_StatementModel):
    """The number of tries, and of those that were refused."""

    refused: Annotated[int, Field(ge=0)]
    tries: Count

    def as_refusals(self) -> Refusals:
        """Return the same as the library's own type."""
        return Refusals(self.refused, self.tries)


class StatedPower(_StatementModel):
    """The policy's power, measured on random halves of the ground truth before any candidate."""

    records: Annotated[
        Count, Field(description="Records of a half, rounded down to the policy's smallest_count")
    ]
    share: Annotated[
        Figure | None,
        Field(
            description="The smallest percentage of copied people at which 19 of 20 tables are refused; "
            "null if not even copies of everybody are"
        ),
    ]
    noticed: Annotated[
        StatedRefusals | None,
        Field(
            description="Tables with that share of copied people, or of everybody if the share is null; null "
            "if fewer than 20 were tried, which is too few to say anything"
        ),
    ]
    honest: Annotated[
        StatedRefusals | None,
        Field(description="Tables without any copy; null if fewer than 20 were tried"),
    ]

    def __str__(self) -> str:
        limit = math.inf if self.share is None else self.share
        noticed, honest = (
            None if part is None else part.as_refusals() for part in (self.noticed, self.honest)
        )
        return summarize_power(limit, noticed, honest)


class Predicate(_StatementModel):
    """An approved candidate with its figures, its policy and the code that judged it; null means NaN."""

    gate: NonEmpty
    candidate: NonEmpty
    decision: Literal["approved"]
    snapshot: Annotated[
        Digest,
        Field(
            description="sha256 over a line `sha256  name` for each file that arrived; identifies to the "
            "custodian what the release was written from"
        ),
    ]
    policy: StatedPolicy
    clauses: Annotated[tuple[AnyStatedClause, ...], Field(min_length=1)]
    controls: Annotated[
        tuple[AnyStatedClause, ...],
        Field(min_length=1, description="Clauses that test whether the figures can be trusted at all"),
    ]
    waivers: tuple[StatedWaiver, ...]
    ground_truth: StatedGroundTruth
    confidential: Annotated[
        tuple[StatedConfidential, ...],
        Field(description="Further confidential tables whose records must not be copied"),
    ] = ()
    synthetic: Annotated[tuple[StatedSynthetic, ...], Field(min_length=1)]
    dossier: Annotated[
        Digest, Field(description="sha256 of the dossier, the evidence that stays in the store")
    ]
    page: Annotated[
        StatedPage | None, Field(description="The dossier's page for publication; null if there is none")
    ]
    power: Annotated[
        StatedPower | None,
        Field(description="The copies that the policy would notice; absent if that was not measured"),
    ] = None
    documentation: Annotated[
        dict[NonEmpty, NonEmpty],
        Field(description="The custodian's notes on the release by name: purpose, recipients, generator"),
    ]
    versions: Annotated[
        dict[str, str], Field(description="Versions of this package, Python and the libraries that compute")
    ]
    run_id: NonEmpty
    measured_at: Moment
    published_at: Moment

    @model_serializer(mode="wrap")
    def _to_one_form(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return _omit_if_none("power", serialize(self))


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
    """Return the predicate of an approved candidate from its dossier's content.

    `definition` is the policy section as plain data, `dossier` the sha256 of the dossier's file,
    `ground_truth` the salted hash of GT, `confidential` the salted hash of each further confidential table,
    `tables` the number of records of each released table, and `page` the name of the released page.
    Raise StatementError if the dossier's decision is not approved, or if it lacks a figure.
    """
    from disclosure_pipeline.evidence.dossier import read_versions

    try:
        figures, judgements = content["figures"], _read_exact(content)
        _require_measured(tables, figures["N_s"])
        policy = StatedPolicy(
            digest=content["policy_digest"],
            keys=tuple(figures["keys"]),
            targets=tuple(figures["targets"]),
            definition=dict(definition),
        )
        smallest_count, records = int(definition["smallest_count"]), [figures["N_d"], *figures["N_s"]]
        if min(records) < 1:
            raise ValueError("a table is empty")
        public = round_judgements(judgements, records, smallest_count)
        labels = {"labels": content.get("labels", {})}
        return Predicate(
            gate=content["gate"],
            candidate=content["candidate"],
            decision=content["decision"],
            snapshot=content["measured"]["snapshot"],
            policy=policy,
            clauses=tuple(_state_clause(judged, labels) for judged in public if not judged.clause.control),
            controls=tuple(_state_clause(judged, labels) for judged in public if judged.clause.control),
            waivers=tuple(
                StatedWaiver.model_validate(waiver.model_dump(include=set(StatedWaiver.model_fields)))
                for judgement in judgements
                if (waiver := judgement.waiver) is not None
            ),
            ground_truth=StatedGroundTruth(
                salted_hash=ground_truth, records=round_records(figures["N_d"], smallest_count)
            ),
            confidential=tuple(
                StatedConfidential(name=name, salted_hash=digest)
                for name, digest in (confidential or {}).items()
            ),
            synthetic=tuple(StatedSynthetic(name=name, records=records) for name, records in tables.items()),
            dossier=dossier,
            power=None if power is None else _state_power(power, smallest_count),
            page=None if page is None else StatedPage(name=page, rounded_to=content["smallest_count"]),
            documentation=content["documentation"],
            versions=read_versions(),
            run_id=run_id,
            measured_at=measured_at,
            published_at=published_at,
        )
    except ValidationError as error:
        problem = "; ".join(locate_errors(error))
    except (KeyError, TypeError, ValueError) as error:
        problem = f"reading it raised {type(error).__name__}"
    raise StatementError(f"No statement can be made from this dossier: {problem}. Run dossier again.")


def _require_measured(tables: Mapping[str, int], measured: Sequence[int]) -> None:
    """Raise ValueError unless the files are the measured tables and, beside those, their CSV and events."""
    beside_tables = {
        name
        for name in tables
        for suffix in (".csv", f"{EVENTS}.parquet", f"{EVENTS}.csv")
        if name.endswith(suffix) and f"{name.removesuffix(suffix)}.parquet" in tables
    }
    if sorted(records for name, records in tables.items() if name not in beside_tables) != sorted(measured):
        raise ValueError("the files are not the tables that were measured")


def _read_exact(content: Mapping[str, Any]) -> list[Judgement]:
    """Return a dossier's judgements without notes. Raise ValueError if one is not finite or consistent."""
    judgements = read_judgements(content)
    for row, judgement in zip(content["clauses"], judgements, strict=True):
        if row != judgement.to_row():
            raise ValueError("a clause contradicts itself")
        if not all(value is None or math.isfinite(value) for value in (judgement.value, judgement.limit)):
            raise ValueError("a figure is not finite")
    return [replace(judgement, note="") for judgement in judgements]


def _state_power(power: GatePower, smallest_count: int) -> StatedPower:
    limit = power.detection_limit()
    return StatedPower(
        records=round_records(power.records, smallest_count),
        share=limit if math.isfinite(limit) else None,
        noticed=_state_refusals(power.count_refused(COPIES, limit)),
        honest=_state_refusals(power.false_refusals),
    )


def _state_refusals(counted: Refusals) -> StatedRefusals | None:
    return StatedRefusals(refused=counted.refused, tries=counted.tries) if counted.are_enough else None


def _state_clause(judgement: Judgement, labels: Content) -> StatedClause:
    clause = judgement.clause
    rules = StatedRules(
        default=clause.default_bound,
        is_published=has_public_value(clause),
        can_be_waived=can_be_waived(clause),
        required=find_required_bound(clause),
    )
    row = judgement.to_row() | {"words": write_sentence(judgement, labels), "rules": rules}
    return StatedClause(**{name: row[name] for name in StatedClause.model_fields})
