"""The statement of a release: in-toto Statement v1 in a signed DSSE envelope, with one valid encoding.

https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md,
https://github.com/secure-systems-lab/dsse/blob/master/protocol.md
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError

from disclosure_pipeline.candidates.store import STATEMENT, is_safe_name
from disclosure_pipeline.policy.bounds import read_way
from disclosure_pipeline.policy.clauses import RequiredBound
from disclosure_pipeline.policy.reviewed_files import Digest
from disclosure_pipeline.release.keys import KeysError, parse_public_key, to_pem
from disclosure_pipeline.release.predicate import (
    AnyStatedClause,
    EarlierStatedClause,
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
    """List, in sentences, where a predicate contradicts itself or the released files (name -> sha256)."""
    return [
        *_check_tables(predicate, files),
        *_check_clauses(predicate),
        *_check_waivers(predicate),
        *_check_times(predicate),
        *_check_power(predicate),
    ]


def _check_tables(predicate: Predicate, files: Mapping[str, str]) -> Iterator[str]:
    names = [table.name for table in predicate.synthetic]
    page = set() if predicate.page is None else {predicate.page.name}
    if {*names, *page} != set(files) or len({*names, *page}) < len(names) + len(page):
        yield "the files that it describes are not the released ones"
    records = {table.name: table.records for table in predicate.synthetic}
    for name in names:
        other = name.removesuffix(".csv") + ".parquet"
        if name.endswith(".csv") and records.get(other, records[name]) != records[name]:
            yield f"{name} does not have as many records as {other}"


# The names and rules of statements without `rules`, as they were when those were signed.
_REQUIRED_BEFORE: Mapping[str, RequiredBound] = {
    "repU": "identity",
    "unique_hits_beyond": "identity",
    "unique_hits_beyond_strictly": "identity",
    "DiSCO": "attribute",
    "DiSCO_beyond_both": "attribute",
    "DiSCO_beyond_both_strictly": "attribute",
    "DiSCO_within": "attribute",
    "DiSCO_within_beyond": "attribute",
    "DiSCO_within_beyond_strictly": "attribute",
}
_NEVER_WAIVED_BEFORE = frozenset(
    ("epsilon_beyond_claim", "equal_content", "excluded", "key_overlap", "target_overlap", "warnings")
)


def _check_clauses(predicate: Predicate) -> Iterator[str]:
    all_clauses = [*predicate.clauses, *predicate.controls]
    repeated = [name for name, count in Counter(clause.name for clause in all_clauses).items() if count > 1]
    if repeated:
        yield f"it repeats clause {', '.join(repeated)}"
    if len({clause.rules is None for clause in all_clauses}) > 1:
        yield "it names the rules of some clauses only"
    bounded = {
        (_find_required(clause), about)
        for clause in predicate.clauses
        if not clause.warns
        for about in clause.about or (None,)
    }
    if ("identity", None) not in bounded:
        yield "it has no bound on identity disclosure"
    for target in predicate.policy.targets:
        if ("attribute", target) not in bounded:
            yield f"it has no bound on attribute disclosure of {target}"
    for stated in all_clauses:
        yield from _check_clause(stated, predicate)


def _check_clause(stated: AnyStatedClause, predicate: Predicate) -> Iterator[str]:
    is_control = stated in predicate.controls
    clause = stated.to_clause(control=is_control)
    if clause.control != is_control:
        yield f"clause {stated.name} is {'no' if is_control else 'a'} control"
        return
    if stated.name != clause.name:
        yield f"clause {stated.name} must be named {clause.name} for its figure"
    if not _is_loosened_as_stated(stated):
        yield f"clause {stated.name} names a wrong default that it is loosened from"
    written = _list_written_bounds(stated, predicate)
    if written and stated.bound not in written:
        yield f"clause {stated.name} has another bound than its policy"
    if stated.outcome == "undetermined":
        yield f"clause {stated.name} could not be determined"
        return
    yield from _check_figures(stated, is_control=is_control)
    if (is_control and stated.outcome != "kept") or (stated.outcome == "exceeded" and not stated.warns):
        yield f"clause {stated.name} forbids an approval: {stated.words}"


def _find_required(stated: AnyStatedClause) -> RequiredBound | None:
    return _REQUIRED_BEFORE.get(stated.figure) if stated.rules is None else stated.rules.required


def _read_guards(predicate: Predicate) -> Mapping[str, Any]:
    guards = predicate.policy.definition.get("guards")
    return guards if isinstance(guards, dict) else {}


def _list_written_bounds(stated: AnyStatedClause, predicate: Predicate) -> list[Any]:
    """List the bounds that the policy has for a clause, or the default of a figure that it does not name."""
    if isinstance(stated, EarlierStatedClause):
        guards = _read_guards(predicate)
        return [guards[stated.figure]] if stated.figure in guards else []
    default = [] if stated.rules.default is None else [stated.rules.default]
    written = predicate.policy.definition.get(stated.figure)
    if written is None:
        return default
    places = [written]
    targets = written.get("targets") if isinstance(written, dict) else None
    if isinstance(targets, dict):
        places += [of for name, of in targets.items() if of is not None and name in stated.about]
    if isinstance(written, dict):  # of the ways in which people are found
        places += [of for name, of in written.items() if of is not None and read_way(name) in stated.about]
    words = (stated.statistic, "worst")
    bounds = [
        bound
        for place in places
        for bound in (map(place.get, words) if isinstance(place, dict) else [place])
        if bound is not None
    ]
    return bounds or default


def _is_loosened_as_stated(stated: AnyStatedClause) -> bool:
    if stated.rules is None:
        return stated.loosened_from is None or stated.bound > stated.loosened_from
    default = stated.rules.default
    return stated.loosened_from == (default if default is not None and stated.bound > default else None)


def _check_figures(stated: AnyStatedClause, *, is_control: bool) -> Iterator[str]:
    if stated.is_share and stated.limit is not None:
        yield f"clause {stated.name} reveals the limit of a share, which is a figure of the ground truth"
    if not stated.is_share and stated.limit != stated.bound:
        yield f"clause {stated.name} has a limit that is not its bound"
    may_be_published = not stated.is_share and not is_control
    if stated.rules is not None:
        may_be_published = may_be_published and stated.rules.is_published
        if stated.value is None and may_be_published:
            yield f"clause {stated.name} lacks its value"
    if stated.value is not None and not may_be_published:
        yield f"clause {stated.name} has a value that must be withheld"
    elif stated.value is not None and stated.limit is not None:
        outcome = "kept" if _is_within(stated, stated.value, stated.limit) else "exceeded"
        if outcome != ("exceeded" if stated.outcome == "waived" else stated.outcome):
            yield f"clause {stated.name} is stated as {stated.outcome}, but its value and limit say {outcome}"


def _is_within(stated: AnyStatedClause, value: float, limit: float) -> bool:
    return value >= limit if stated.at_least else value <= limit


def _check_waivers(predicate: Predicate) -> Iterator[str]:
    waived = {clause.name: clause for clause in predicate.clauses if clause.outcome == "waived"}
    if sorted(waived) != sorted(waiver.clause for waiver in predicate.waivers):
        yield "its waivers do not match its waived clauses"
        return
    guards = _read_guards(predicate)
    for waiver in predicate.waivers:
        clause = waived[waiver.clause]
        if clause.figure in guards or not _can_be_waived(clause):
            yield f"clause {clause.name} cannot be waived"
        if clause.value is not None and not _is_within(clause, clause.value, waiver.ceiling):
            yield f"clause {clause.name} is beyond the ceiling of waiver {waiver.name}"
        if waiver.expires <= predicate.published_at:
            yield f"waiver {waiver.name} had expired when the candidate was published"


def _can_be_waived(stated: AnyStatedClause) -> bool:
    if stated.rules is None:
        return stated.loosened_from is None and stated.figure not in _NEVER_WAIVED_BEFORE
    return stated.rules.can_be_waived


def _check_times(predicate: Predicate) -> Iterator[str]:
    if predicate.published_at < predicate.measured_at:
        yield "it was published before it was measured"


def _check_power(predicate: Predicate) -> Iterator[str]:
    power = predicate.power
    if power is None:
        return
    if any(stated.refused > stated.tries for stated in (power.noticed, power.honest) if stated is not None):
        yield "its policy's power counts more refusals than tries"
    is_noticed = power.noticed is not None and power.noticed.as_refusals().are_reliable
    if (power.share is not None) != is_noticed:
        yield "its policy's power names a share of copies that was not refused 19 of 20 times, or omits it"


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
    """The files of a release and the predicate on them."""

    model_config = ConfigDict(title="The statement of a release")

    statement_type: Annotated[Literal["https://in-toto.io/Statement/v1"], Field(alias="_type")]
    subject: Annotated[
        tuple[Subject, ...],
        Field(min_length=1, description="Every file of the release except the statement, sorted by name"),
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
    """Return the statement on files (name -> sha256). Raise StatementError if it contradicts itself."""
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
            f"No statement can be made about these files: {'; '.join(locate_errors(error))}."
        ) from None
    problems = find_statement_problems(statement)
    if problems:
        raise StatementError(f"The statement would contradict itself: {'; '.join(problems)}.")
    return statement


def find_statement_problems(statement: Statement) -> list[str]:
    """List, in sentences, where a statement contradicts itself."""
    names = [subject.name for subject in statement.subject]
    problems = [
        f"{name!r} is not a valid name of a released file"
        for name in names
        if not is_safe_name(name) or name == STATEMENT
    ]
    if names != sorted(set(names)):
        problems.append("its files are not listed once each, sorted by name")
    return problems + find_contradictions(statement.predicate, statement.files)


def sign(statement: Statement, signer: Signer) -> bytes:
    """Return the content of a signed statement's file. Raise KeysError if the signer fails."""
    return sign_payload(encode_statement(statement), PAYLOAD_TYPE, signer)


def sign_payload(content: bytes, payload_type: str, signer: Signer) -> bytes:
    """Return a signed envelope of any content, as one line. Raise KeysError if the signer fails."""
    from securesystemslib.dsse import Envelope

    envelope = Envelope(content, payload_type, {})
    try:
        signature = envelope.sign(signer)
        # With the key as a verifier parses it, not as the signer holds it.
        parse_public_key(to_pem(signer.public_key)).verify_signature(signature, envelope.pae())
    except Exception as error:  # securesystemslib: a signer may raise anything
        error_type = type(error).__name__
    else:
        return to_canonical_json(envelope.to_dict()) + b"\n"
    raise KeysError(f"The signer failed to sign: {error_type}.")


def encode_statement(statement: Statement) -> bytes:
    """Return the signed bytes of a statement."""
    return to_canonical_json(statement.model_dump(mode="json", by_alias=True))


def to_canonical_json(content: Any) -> bytes:
    """Encode as canonical JSON: sorted names, no white space. Raise ValueError for NaN and infinity."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode()


def read_envelope(raw: bytes, payload_type: str = PAYLOAD_TYPE) -> tuple[Envelope, list[str]]:
    """Parse an envelope; return it and sentences on its faults. Raise StatementError if it is not one."""
    from securesystemslib.dsse import Envelope
    from securesystemslib.exceptions import FormatError

    try:
        content = _Envelope.model_validate(json.loads(raw)).model_dump()
        envelope = Envelope.from_dict(content)
        expected = to_canonical_json(envelope.to_dict()) + b"\n"
    except ValidationError as error:
        raise StatementError(f"it is not a signed envelope: {'; '.join(describe_errors(error))}") from None
    except (ValueError, RecursionError, FormatError):
        raise StatementError("it is not a signed envelope") from None
    problems = [] if expected == raw else ["its file is not encoded as it was when it was signed"]
    if envelope.payload_type != payload_type:
        problems.append(f"it is of type {envelope.payload_type[:100]!r}, not {payload_type}")
    return envelope, problems


def check_signature(
    envelope: Envelope, trusted_keys: Mapping[str, tuple[SSlibKey, TrustedKey]]
) -> tuple[str, list[str]]:
    """Return the id of the key that an envelope names, and why its signature is not valid, if so."""
    from securesystemslib.exceptions import VerificationError as NotVerified

    (signature,) = envelope.signatures.values()
    if signature.keyid not in trusted_keys:
        return signature.keyid, [
            f"it is signed with the key {signature.keyid[:100]!r}, not with a given one "
            f"({', '.join(trusted_keys)})"
        ]
    try:
        envelope.verify([trusted_keys[signature.keyid][0]], 1)
    except NotVerified:
        return signature.keyid, [
            f"its signature is wrong: the key {signature.keyid} did not sign this content"
        ]
    return signature.keyid, []


def read_statement(content: bytes) -> Statement:
    """Parse the payload of an envelope. Raise StatementError if it is not a statement of this version."""
    try:
        fields = json.loads(content)
    except (ValueError, RecursionError):
        raise StatementError("it is not JSON") from None
    expected_types = {"_type": STATEMENT_TYPE, "predicateType": PREDICATE_TYPE}
    for name, expected in expected_types.items():
        stated = fields.get(name) if isinstance(fields, dict) else None
        if stated != expected:
            raise StatementError(
                f"its {name} is {str(stated)[:100]!r}, not {expected!r}: verify a newer statement with a "
                "newer version of this package"
            )
    try:
        statement = Statement.model_validate(fields)
    except ValidationError as error:
        raise StatementError(f"its fields are not valid: {'; '.join(describe_errors(error)[:10])}") from None
    if encode_statement(statement) != content:
        raise StatementError("it is not encoded in canonical form")
    return statement
