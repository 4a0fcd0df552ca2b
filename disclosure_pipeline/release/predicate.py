"""What a release's statement says: what was approved, on which figures, under which policy, by which code."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, ValidationError

from disclosure_pipeline.errors import DisclosurePipelineError
from disclosure_pipeline.policy.policy import Clause, Over
from disclosure_pipeline.policy.trust import Moment
from disclosure_pipeline.policy.verdict import Judgement, Outcome, can_be_waived, hold
from disclosure_pipeline.policy.waivers import Digest, Waiver
from disclosure_pipeline.release.store import Snapshot, StoredFile

Figure = Annotated[float, Field(allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Named = Annotated[str, Field(min_length=1)]


class StatementError(DisclosurePipelineError):
    """A statement cannot be made, or cannot be read."""


def _finite(content: dict[str, JsonValue]) -> dict[str, JsonValue]:
    json.dumps(content, allow_nan=False)
    return content


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PolicyStated(_Part):
    """The policy that the candidate was held against."""

    digest: Annotated[
        Digest,
        Field(description="sha256 of all of the gate's definition that decides: dictionary and policy"),
    ]
    keys: Annotated[tuple[Named, ...], Field(min_length=1)]
    targets: Annotated[tuple[Named, ...], Field(min_length=1)]
    definition: Annotated[
        dict[str, JsonValue],
        AfterValidator(_finite),
        Field(description="The policy section of the gate's definition"),
    ]


class ClauseStated(_Part):
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
    value: Figure | None
    bound: Annotated[Figure, Field(description="The bound as the policy writes it")]
    limit: Annotated[Figure | None, Field(description="The bound in the measure's own unit")]
    outcome: Outcome
    words: Annotated[str, Field(description="The same for a reader")]


class WaiverStated(_Part):
    """A waiver that let a clause pass."""

    name: Named
    clause: Named
    ceiling: Annotated[Figure, Field(description="How far the value was allowed to go")]
    reason: Named
    approver: Named
    expires: Moment


class GroundTruthStated(_Part):
    """The confidential table: only its custodian can tell which one it is."""

    salted_hash: Annotated[
        Digest,
        Field(
            description="HMAC-SHA256 of the table's sha256 (in hexadecimal), keyed with the custodian's salt"
        ),
    ]
    records: Count


class SyntheticStated(_Part):
    """One of the synthetic tables: a file of the release."""

    name: Named
    records: Count


class Predicate(_Part):
    """What was approved, on which figures, under which policy, by which code. NaN never: null."""

    gate: Named
    candidate: Named
    decision: Literal["approved"]
    snapshot: Annotated[
        Digest, Field(description="sha256 of a line `sha256  name` for each synthetic table, in their order")
    ]
    policy: PolicyStated
    clauses: Annotated[tuple[ClauseStated, ...], Field(min_length=1)]
    controls: Annotated[
        tuple[ClauseStated, ...],
        Field(min_length=1, description="Clauses that tell whether the figures can be trusted at all"),
    ]
    waivers: tuple[WaiverStated, ...]
    ground_truth: GroundTruthStated
    synthetic: Annotated[tuple[SyntheticStated, ...], Field(min_length=1)]
    dossier: Annotated[
        Digest, Field(description="sha256 of the dossier, the evidence that stays in the store")
    ]
    versions: Annotated[dict[str, str], Field(description="This package, Python and what it computes with")]
    run_id: Named
    measured_at: Moment
    published_at: Moment


def predicate(
    content: Mapping[str, Any],
    definition: Mapping[str, Any],
    *,
    dossier: str,
    ground_truth: str,
    tables: Sequence[str],
    run_id: str,
    measured_at: datetime,
    published_at: datetime,
) -> Predicate:
    """The predicate of an approved candidate, from its dossier's content.

    `definition` is the policy section as plain data, `dossier` the sha256 of the dossier's file,
    `ground_truth` the salted hash of GT, `tables` the names of the snapshot's files in their order.
    StatementError where the dossier says anything but approved, or lacks a figure.
    """
    from disclosure_pipeline.evidence.dossier import versions

    try:
        figures, rows = content["figures"], content["clauses"]
        used = {row["waiver"] for row in rows if row.get("waiver")}
        waivers = {row["name"]: row for row in content.get("waivers", ()) if row["name"] in used}
        stated = [(row["control"], _stated(row, waivers)) for row in rows]
        return Predicate(
            gate=content["gate"],
            candidate=content["candidate"],
            decision=content["decision"],
            snapshot=content["measured"]["snapshot"],
            policy=PolicyStated(
                digest=content["policy_digest"],
                keys=tuple(figures["keys"]),
                targets=tuple(figures["targets"]),
                definition=dict(definition),
            ),
            clauses=tuple(clause for is_control, clause in stated if not is_control),
            controls=tuple(clause for is_control, clause in stated if is_control),
            waivers=tuple(
                WaiverStated.model_validate({name: row[name] for name in WaiverStated.model_fields})
                for row in waivers.values()
            ),
            ground_truth=GroundTruthStated(salted_hash=ground_truth, records=figures["N_d"]),
            synthetic=tuple(
                SyntheticStated(name=name, records=records)
                for name, records in zip(tables, figures["N_s"], strict=True)
            ),
            dossier=dossier,
            versions=versions(),
            run_id=run_id,
            measured_at=measured_at,
            published_at=published_at,
        )
    except ValidationError as error:
        wrong = "; ".join(places(error))
    except (KeyError, TypeError, ValueError) as error:
        wrong = f"a {type(error).__name__} came up"
    raise StatementError(f"No statement can be made of this dossier: {wrong}. Run dossier again.")


def _stated(row: Mapping[str, Any], waivers: Mapping[str, Mapping[str, Any]]) -> ClauseStated:
    clause = Clause(**{field.name: row[field.name] for field in fields(Clause)})
    used = waivers[row["waiver"]] if row.get("waiver") else None
    waiver = Waiver(**{name: used[name] for name in Waiver.model_fields}) if used else None
    judged = Judgement(clause, row["value"], row["limit"], row["outcome"], waiver)
    shown = {name: row[name] for name in ClauseStated.model_fields if name != "words"}
    return ClauseStated(**shown, words=str(judged))


def told(error: ValidationError) -> list[str]:
    """What pydantic found wrong, without the values that it found."""
    return [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors(include_url=False)]


def places(error: ValidationError) -> list[str]:
    """Where pydantic found something wrong, and of what kind, without what a check of ours ran into."""
    return [f"{'.'.join(map(str, each['loc']))} ({each['type']})" for each in error.errors(include_url=False)]


def contradictions(said: Predicate, files: Mapping[str, str]) -> list[str]:
    """Where a predicate does not fit itself or the released files (name -> sha256), in words.

    The same rules by which the verdict was found: only finite values within their limits pass.
    """
    return [*_of_tables(said, files), *_of_clauses(said), *_of_waivers(said), *_of_times(said)]


def _of_tables(said: Predicate, files: Mapping[str, str]) -> Iterator[str]:
    names = [table.name for table in said.synthetic]
    missing = [name for name in names if name not in files]
    if missing or len(set(names)) < len(names):
        yield "the synthetic tables that it counts are not the released ones"
        return
    listed = Snapshot(said.candidate, tuple(StoredFile(name, files[name], 0) for name in names))
    if listed.sha256 != said.snapshot:
        yield "the released tables are not those of the snapshot that was measured"


def _of_clauses(said: Predicate) -> Iterator[str]:
    every = [*said.clauses, *said.controls]
    twice = [name for name, count in Counter(each.name for each in every).items() if count > 1]
    if twice:
        yield f"it has more than one clause {', '.join(twice)}"
    bounded = {(each.measure, each.column) for each in said.clauses if not each.warns}
    for measure, target in [("repU", None), *(("DiSCO", target) for target in said.policy.targets)]:
        if (measure, target) not in bounded:
            yield f"it has no bound on {measure}{f' of {target}' if target else ''}"
    for each in every:
        clause = _clause(each, control=each in said.controls)
        if each.name != clause.name:
            yield f"clause {each.name} is named for another measure than {clause.name}"
        if each.value is None or each.limit is None:
            yield f"clause {each.name} could not be determined"
            continue
        if each.share_of is None and each.limit != each.bound:
            yield f"clause {each.name} has another limit than its bound"
        found = hold(_clause(each, bound=each.limit, control=clause.control), [each.value], 1).outcome
        if found != ("exceeded" if each.outcome == "waived" else each.outcome):
            yield f"clause {each.name} is said to be {each.outcome}, but by value and limit it is {found}"
        elif found != "kept" and each.outcome != "waived" and not (found == "exceeded" and each.warns):
            yield f"clause {each.name} stands against an approval: {each.words}"


def _clause(said: ClauseStated, bound: float | None = None, *, control: bool = False) -> Clause:
    return Clause(
        measure=said.measure,
        column=said.column,
        bound=said.bound if bound is None else bound,
        over=said.over,
        share_of=said.share_of,
        at_least=said.at_least,
        warns=said.warns,
        control=control,
    )


def _of_waivers(said: Predicate) -> Iterator[str]:
    waived = {each.name: each for each in said.clauses if each.outcome == "waived"}
    if sorted(waived) != sorted(waiver.clause for waiver in said.waivers):
        yield "its waivers are not those of the clauses that are waived"
        return
    for waiver in said.waivers:
        clause = waived[waiver.clause]
        if not can_be_waived(_clause(clause)):
            yield f"clause {clause.name} cannot be waived"
        value = [] if clause.value is None else [clause.value]
        if hold(_clause(clause, bound=waiver.ceiling), value, 1).outcome != "kept":
            yield f"clause {clause.name} is beyond the ceiling of waiver {waiver.name}"
        if waiver.expires <= said.published_at:
            yield f"waiver {waiver.name} had expired when the candidate was published"


def _of_times(said: Predicate) -> Iterator[str]:
    if said.published_at < said.measured_at:
        yield "it was published before it was measured"
