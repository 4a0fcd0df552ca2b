"""The statement of a release: in-toto Statement v1 in a signed DSSE envelope, in one form only.

https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md,
https://github.com/secure-systems-lab/dsse/blob/master/protocol.md
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError

from disclosure_pipeline.candidates.store import is_safe_name
from disclosure_pipeline.policy.clauses import Clause, find_unbounded
from disclosure_pipeline.policy.registry import has_public_value
from disclosure_pipeline.policy.reviewed_files import Digest
from disclosure_pipeline.policy.verdict import can_be_waived, hold
from disclosure_pipeline.release.keys import KeysError, parse_public_key, to_pem
from disclosure_pipeline.release.predicate import (
    ClauseStated,
    Predicate,
    StatementError,
    describe_errors,
    locate_errors,
)
from disclosure_pipeline.tables.dictionary import FrozenModel

if TYPE_CHECKING:
    from securesystemslib.dsse import Envelope
    from securesystemslib.signer import Signer, SSlibKey

    from disclosure_pipeline.policy.reviewed_files import TrustedKey


def find_contradictions(predicate: Predicate, files: Mapping[str, str]) -> list[str]:
    """List, in sentences, where a predicate contradicts itself, or the released files (name -> sha256)."""
    return [
        *_find_in_tables(predicate, files),
        *_find_in_clauses(predicate),
        *_find_in_waivers(predicate),
        *_find_in_times(predicate),
        *_find_in_power(predicate),
    ]


def _find_in_tables(predicate: Predicate, files: Mapping[str, str]) -> Iterator[str]:
    names = [table.name for table in predicate.synthetic]
    page = set() if predicate.page is None else {predicate.page.name}
    if {*names, *page} != set(files) or len({*names, *page}) < len(names) + len(page):
        yield "the synthetic tables that it counts are not the released ones"
    records = {table.name: table.records for table in predicate.synthetic}
    for name in names:
        other = name.removesuffix(".csv") + ".parquet"
        if name.endswith(".csv") and records.get(other, records[name]) != records[name]:
            yield f"{name} does not have as many records as {other}"


def _find_in_clauses(predicate: Predicate) -> Iterator[str]:
    all_clauses = [*predicate.clauses, *predicate.controls]
    repeated = [name for name, count in Counter(clause.name for clause in all_clauses).items() if count > 1]
    if repeated:
        yield f"it has more than one clause {', '.join(repeated)}"
    bounded = {(clause.measure, clause.column) for clause in predicate.clauses if not clause.warns}
    for unbounded in find_unbounded(bounded, predicate.policy.targets):
        yield f"it has no bound on {unbounded}"
    for stated in all_clauses:
        clause = _to_clause(stated, control=stated in predicate.controls)
        if stated.name != clause.name:
            yield f"clause {stated.name} is named for another measure than {clause.name}"
        if stated.loosened_from != clause.loosened_from:
            yield f"clause {stated.name} does not say right from which default it is loosened"
        if stated.outcome == "undetermined":
            yield f"clause {stated.name} could not be determined"
            continue
        yield from _find_in_figures(stated, clause)
        if (clause.control and stated.outcome != "kept") or (
            stated.outcome == "exceeded" and not stated.warns
        ):
            yield f"clause {stated.name} stands against an approval: {stated.words}"


def _find_in_figures(stated: ClauseStated, clause: Clause) -> Iterator[str]:
    if stated.share_of is not None and stated.limit is not None:
        yield f"clause {stated.name} tells the limit of a share, which is a figure of the ground truth"
    if stated.share_of is None and stated.limit != stated.bound:
        yield f"clause {stated.name} has another limit than its bound"
    if has_public_value(stated.measure, stated.share_of) != (stated.value is not None):
        has_to = "does not tell its value" if stated.value is None else "tells a value that is no share"
        yield f"clause {stated.name} {has_to}"
    elif stated.value is not None and stated.limit is not None:
        outcome = hold(_to_clause(stated, bound=stated.limit), [stated.value], 1).outcome
        if outcome != ("exceeded" if stated.outcome == "waived" else stated.outcome):
            yield (
                f"clause {stated.name} is said to be {stated.outcome}, but by value and limit it is {outcome}"
            )


def _to_clause(stated: ClauseStated, bound: float | None = None, *, control: bool = False) -> Clause:
    clause = Clause.from_row(vars(stated) | {"control": control})
    return clause if bound is None else replace(clause, bound=bound)


def _find_in_waivers(predicate: Predicate) -> Iterator[str]:
    waived = {clause.name: clause for clause in predicate.clauses if clause.outcome == "waived"}
    if sorted(waived) != sorted(waiver.clause for waiver in predicate.waivers):
        yield "its waivers are not those of the clauses that are waived"
        return
    for waiver in predicate.waivers:
        clause = waived[waiver.clause]
        if not can_be_waived(_to_clause(clause)):
            yield f"clause {clause.name} cannot be waived"
        limited = _to_clause(clause, bound=waiver.ceiling)
        if clause.value is not None and hold(limited, [clause.value], 1).outcome != "kept":
            yield f"clause {clause.name} is beyond the ceiling of waiver {waiver.name}"
        if waiver.expires <= predicate.published_at:
            yield f"waiver {waiver.name} had expired when the candidate was published"


def _find_in_times(predicate: Predicate) -> Iterator[str]:
    if predicate.published_at < predicate.measured_at:
        yield "it was published before it was measured"


def _find_in_power(predicate: Predicate) -> Iterator[str]:
    power = predicate.power
    if power is None:
        return
    if any(stated.refused > stated.tries for stated in (power.noticed, power.honest)):
        yield "of what its policy was tried on, more was refused than tried"
    if (power.share is not None) != power.noticed.as_refusals().are_reliable:
        yield "the share of copies that it states for its policy is not that which was refused 19 of 20 times"


STATEMENT = "statement.dsse.json"
"""The name of the statement's file in a published folder."""

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:disclosure-pipeline:release:v1"


class Digests(FrozenModel):
    """The hash of a file."""

    sha256: Digest


class Subject(FrozenModel):
    """A file of the release."""

    name: str
    digest: Digests


class Statement(FrozenModel):
    """The files of a release and what is said of them."""

    model_config = ConfigDict(title="The statement of a release")

    statement_type: Annotated[Literal["https://in-toto.io/Statement/v1"], Field(alias="_type")]
    subject: Annotated[
        tuple[Subject, ...],
        Field(
            min_length=1, description="Every file of the release but the statement, in order of their names"
        ),
    ]
    predicateType: Literal["urn:disclosure-pipeline:release:v1"]
    predicate: Predicate

    @property
    def files(self) -> dict[str, str]:
        """The files of the release: name -> sha256."""
        return {subject.name: subject.digest.sha256 for subject in self.subject}


class _Signature(FrozenModel):
    keyid: str
    sig: str


class _Envelope(FrozenModel):
    payload: str
    payloadType: str
    signatures: Annotated[list[_Signature], Field(min_length=1, max_length=1)]


def build_statement(subjects: Mapping[str, str], predicate: Predicate) -> Statement:
    """Return the statement on files (name -> sha256). StatementError where it contradicts itself."""
    try:
        statement = Statement.model_validate(
            {
                "_type": STATEMENT_TYPE,
                "subject": [
                    {"name": name, "digest": {"sha256": sha256}} for name, sha256 in sorted(subjects.items())
                ],
                "predicateType": PREDICATE_TYPE,
                "predicate": predicate,
            }
        )
    except ValidationError as error:
        raise StatementError(
            f"No statement can be made of these files: {'; '.join(locate_errors(error))}."
        ) from None
    problems = find_statement_problems(statement)
    if problems:
        raise StatementError(f"The statement would contradict itself: {'; '.join(problems)}.")
    return statement


def find_statement_problems(statement: Statement) -> list[str]:
    """List, in sentences, where a statement contradicts itself."""
    names = [subject.name for subject in statement.subject]
    problems = [
        f"{name!r} is no name that a released file can have"
        for name in names
        if not is_safe_name(name) or name == STATEMENT
    ]
    if names != sorted(set(names)):
        problems.append("its files are not each there once, in order of their names")
    return problems + find_contradictions(statement.predicate, statement.files)


def sign(statement: Statement, signer: Signer) -> bytes:
    """Return the signed envelope as it is written to a file. KeysError where the signer does not sign."""
    return sign_payload(encode_statement(statement), PAYLOAD_TYPE, signer)


def sign_payload(content: bytes, payload_type: str, signer: Signer) -> bytes:
    """Return the envelope of any content, signed, as one line. KeysError where the signer does not sign."""
    from securesystemslib.dsse import Envelope

    envelope = Envelope(content, payload_type, {})
    try:
        signature = envelope.sign(signer)
        # By the key that a verifier will have, not by what the signer says of itself.
        parse_public_key(to_pem(signer.public_key)).verify_signature(signature, envelope.pae())
    except Exception as error:  # securesystemslib: a signer may raise anything
        error_type = type(error).__name__
    else:
        return to_canonical_json(envelope.to_dict()) + b"\n"
    raise KeysError(f"The signer does not sign: it failed with {error_type}.")


def encode_statement(statement: Statement) -> bytes:
    """Return the bytes of a statement that are signed."""
    return to_canonical_json(statement.model_dump(mode="json", by_alias=True))


def to_canonical_json(content: Any) -> bytes:
    """Return the bytes of canonical JSON: sorted names, no white space. ValueError for NaN and infinity."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode()


def read_envelope(raw: bytes, payload_type: str = PAYLOAD_TYPE) -> tuple[Envelope, list[str]]:
    """Return the envelope of a file's bytes, and what is wrong with its form. StatementError if none."""
    from securesystemslib.dsse import Envelope
    from securesystemslib.exceptions import FormatError

    try:
        content = _Envelope.model_validate(json.loads(raw)).model_dump()
        envelope = Envelope.from_dict(content)
        expected = to_canonical_json(envelope.to_dict()) + b"\n"
    except ValidationError as error:
        raise StatementError(f"it is no signed envelope: {'; '.join(describe_errors(error))}") from None
    except (ValueError, RecursionError, FormatError):
        raise StatementError("it is no signed envelope") from None
    problems = [] if expected == raw else ["its file is not written as it was when it was signed"]
    if envelope.payload_type != payload_type:
        problems.append(f"it is of type {envelope.payload_type[:100]!r}, not {payload_type}")
    return envelope, problems


def check_signature(
    envelope: Envelope, trusted_keys: Mapping[str, tuple[SSlibKey, TrustedKey]]
) -> tuple[str, list[str]]:
    """Return the id of the key that an envelope names, and sentences on why its signature does not count."""
    from securesystemslib.exceptions import VerificationError as NotVerified

    (signature,) = envelope.signatures.values()
    if signature.keyid not in trusted_keys:
        return signature.keyid, [
            f"it is signed with the key {signature.keyid[:100]!r}, which is none of those that were given "
            f"({', '.join(trusted_keys)})"
        ]
    try:
        envelope.verify([trusted_keys[signature.keyid][0]], 1)
    except NotVerified:
        return signature.keyid, [
            f"its signature is wrong: what it says is not what was signed with the key {signature.keyid}"
        ]
    return signature.keyid, []


def read_statement(content: bytes) -> Statement:
    """Return the statement of an envelope's payload. StatementError where it cannot be understood."""
    try:
        fields = json.loads(content)
    except (ValueError, RecursionError):
        raise StatementError("it is no JSON") from None
    expected_types = {"_type": STATEMENT_TYPE, "predicateType": PREDICATE_TYPE}
    for name, expected in expected_types.items():
        stated = fields.get(name) if isinstance(fields, dict) else None
        if stated != expected:
            raise StatementError(
                f"its {name} is {str(stated)[:100]!r}, not {expected!r}: a newer one is verified with a "
                "newer version of this package"
            )
    try:
        statement = Statement.model_validate(fields)
    except ValidationError as error:
        raise StatementError(f"it is not as it must be: {'; '.join(describe_errors(error)[:10])}") from None
    if encode_statement(statement) != content:
        raise StatementError("it is not written in its one form")
    return statement
