"""Verify a published folder with nothing but the folder and the public keys."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from errno import EINVAL
from pathlib import Path

from disclosure_pipeline.errors import DisclosurePipelineError
from disclosure_pipeline.policy.trust import TrustedKey
from disclosure_pipeline.release.keys import parse_keys_by_id
from disclosure_pipeline.release.predicate import ClauseStated, Predicate, StatementError
from disclosure_pipeline.release.revoking import find_revocations, read_revocations
from disclosure_pipeline.release.statement import (
    STATEMENT,
    check_signature,
    find_statement_problems,
    read_envelope,
    read_statement,
)
from disclosure_pipeline.runtime.files import hash_stream
from disclosure_pipeline.tables.messages import escape_unseen

# A statement is far smaller; what is larger is not even read.
_MAXIMUM_BYTES = 1 << 24
_NAME_LENGTH_SHOWN = 100


class VerificationError(DisclosurePipelineError):
    """A folder is not what was approved, or was revoked; `problems` has a sentence for each difference."""

    def __init__(self, folder: Path, problems: Sequence[str], revocations: Sequence[str] = ()) -> None:
        self.problems = tuple(map(escape_unseen, [*problems, *revocations]))
        listed = "".join(f"\n- {problem}" for problem in self.problems)
        what = "is not a release that was approved" if problems else "is a release that was revoked"
        super().__init__(f"{folder} {what}:{listed}")


@dataclass(frozen=True)
class Approval:
    """A release that was verified: what was approved, its files (name -> sha256), and whose key says so.

    `unchecked`: a sentence for each comparison that was not asked for. `revocations`: the number that were
    read, none of which concerns it; None where no file of them was given.
    """

    predicate: Predicate
    files: Mapping[str, str]
    keyid: str
    unchecked: tuple[str, ...] = ()
    revocations: int | None = None

    def __str__(self) -> str:
        return "\n".join(map(escape_unseen, _describe_approval(self)))


@dataclass(frozen=True)
class Expected:
    """The release that is expected. None accepts any, also one of another gate or policy."""

    gate: str | None = None
    candidate: str | None = None
    policy_digest: str | None = None
    not_before: datetime | None = None

    def find_differences(self, predicate: Predicate) -> list[str]:
        """List, in sentences, where a release is not the expected one."""
        problems = [
            f"it is of {what} {stated!r}, asked for was {expected!r}"
            for what, stated, expected in (
                ("gate", predicate.gate, self.gate),
                ("candidate", predicate.candidate, self.candidate),
                ("policy", predicate.policy.digest, self.policy_digest),
            )
            if expected is not None and stated != expected
        ]
        published = predicate.published_at
        if self.not_before is not None and published < self.not_before:
            problems.append(
                f"it was published at {published.isoformat()}, before {self.not_before.isoformat()}"
            )
        return problems

    def list_unchecked(self) -> list[str]:
        """Return a sentence for each comparison that is not asked for."""
        consequences = {
            "--gate": (self.gate, "a release of another gate would be taken too"),
            "--candidate": (self.candidate, "a release of another candidate would be taken too"),
            "--policy-digest": (self.policy_digest, "a release under another policy would be taken too"),
            "--not-before": (self.not_before, "a release of any age would be taken too"),
        }
        return [f"{name}: {what}" for name, (expected, what) in consequences.items() if expected is None]


def verify(
    folder: Path,
    keys: Sequence[TrustedKey],
    expected: Expected | None = None,
    revocations: Path | None = None,
) -> Approval:
    """Return what was approved, if the folder holds exactly that, signed with one of the keys in its period.

    It has to be the release that is `expected`, and none that a file of signed revocations revokes. Nothing
    else outside the folder is read, and no link is followed. VerificationError with all that is wrong;
    KeysError where the keys cannot be used, RevocationError where the revocations cannot be believed.
    """
    expected = expected or Expected()
    trusted_keys = parse_keys_by_id(keys)
    revoked = None if revocations is None else read_revocations(revocations, keys)
    files, problems = _read_folder(folder)
    statement_file = files.pop(STATEMENT, None)
    if statement_file is None:
        raise VerificationError(folder, [f"it holds no statement, {STATEMENT}", *problems])
    if len(statement_file.beginning) > _MAXIMUM_BYTES:
        raise VerificationError(folder, ["its statement is far too large to be one", *problems])
    try:
        envelope, envelope_problems = read_envelope(statement_file.beginning)
    except StatementError as error:
        raise VerificationError(folder, [f"its statement cannot be read: {error}", *problems]) from None
    problems += [f"the statement was changed: {problem}" for problem in envelope_problems]
    keyid, signature_problems = check_signature(envelope, trusted_keys)
    problems += signature_problems
    try:
        statement = read_statement(envelope.payload)
    except StatementError as error:
        raise VerificationError(folder, [f"its statement cannot be read: {error}", *problems]) from None
    published_at = statement.predicate.published_at
    if keyid in trusted_keys and not trusted_keys[keyid][1].covers(published_at):
        problems.append(
            f"it was published at {published_at.isoformat()}, which is outside the period of the key {keyid}"
        )
    problems += _find_differences(statement.files, {name: file.sha256 for name, file in files.items()})
    problems += [
        f"the statement contradicts itself: {problem}" for problem in find_statement_problems(statement)
    ]
    problems += expected.find_differences(statement.predicate)
    revocations_of_it = [
        f"it was approved on {_write_moment(published_at)}, revoked on "
        f"{_write_moment(revocation.revoked_at)} because: {revocation.reason}"
        for revocation in find_revocations(folder, statement.predicate, statement.files, revoked or ())
    ]
    if problems or revocations_of_it:
        raise VerificationError(folder, problems, revocations_of_it)
    unchecked = expected.list_unchecked()
    if revoked is None:
        unchecked.append("--revocations: a release that was revoked would be taken too")
    number = None if revoked is None else len(revoked)
    return Approval(statement.predicate, statement.files, keyid, tuple(unchecked), number)


def _write_moment(moment: datetime) -> str:
    return f"{moment.astimezone(timezone.utc):%Y-%m-%d %H:%M} UTC"


@dataclass(frozen=True)
class _ReadFile:
    """A file as it was read: its hash, and, if it can be the statement, its first bytes."""

    sha256: str
    beginning: bytes


def _read_folder(folder: Path) -> tuple[dict[str, _ReadFile], list[str]]:
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        problem = "it is a link: give the folder itself" if folder.is_symlink() else error.strerror
        raise VerificationError(folder, [f"it cannot be opened as a folder: {problem}"]) from None
    files: dict[str, _ReadFile] = {}
    problems: list[str] = []
    try:
        with os.scandir(handle) as entries:
            names = sorted(entry.name for entry in entries)
        for name in names:
            try:
                files[name] = _read_file(name, handle)
            except OSError as error:
                problems.append(f"{_quote(name)} cannot be read: {error.strerror}")
    finally:
        os.close(handle)
    return files, problems


def _read_file(name: str, folder_handle: int) -> _ReadFile:
    mode = os.stat(name, dir_fd=folder_handle, follow_symlinks=False).st_mode
    if not stat.S_ISREG(mode):
        kind = "link" if stat.S_ISLNK(mode) else "folder" if stat.S_ISDIR(mode) else "special file"
        raise OSError(EINVAL, f"it is a {kind}, and a release holds plain files only")
    handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder_handle)
    beginning = bytearray()

    def keep_statement(chunk: bytes) -> None:
        if name == STATEMENT and len(beginning) <= _MAXIMUM_BYTES:
            beginning.extend(chunk)

    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(EINVAL, "it was replaced while it was read")
        hashed = hash_stream(file, keep_statement)
    return _ReadFile(hashed.sha256, bytes(beginning))


def _find_differences(approved: Mapping[str, str], present: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(approved.keys() | present.keys()):
        if name not in present:
            yield f"{_quote(name)} is missing: it was approved with the others"
        elif name not in approved:
            yield f"{_quote(name)} was added: it was not approved"
        elif approved[name] != present[name]:
            yield f"{_quote(name)} was changed: its sha256 is {present[name]}, approved was {approved[name]}"


def _quote(name: str) -> str:
    return repr(name if len(name) <= _NAME_LENGTH_SHOWN else f"{name[:_NAME_LENGTH_SHOWN]}…")


def _describe_approval(approval: Approval) -> Iterator[str]:
    predicate = approval.predicate
    yield f"Approved: candidate {predicate.candidate} of gate {predicate.gate}."
    yield f"Published {predicate.published_at.isoformat()}, signed with the key {approval.keyid}."
    yield f"Power: {predicate.power or 'what this gate would notice was not measured.'}"
    yield f"Policy: digest {predicate.policy.digest}."
    yield f"  keys: {', '.join(predicate.policy.keys)}; targets: {', '.join(predicate.policy.targets)}"
    yield "Files:"
    records = {table.name: f", {table.records} records" for table in predicate.synthetic}
    for name, sha256 in approval.files.items():
        yield f"  {name}: sha256 {sha256}{records.get(name, '')}"
    yield "Clauses:"
    yield from map(_describe_clause, predicate.clauses)
    yield "Controls of the measuring itself:"
    yield from map(_describe_clause, predicate.controls)
    yield "Waivers:" if predicate.waivers else "Waivers: none."
    for waiver in predicate.waivers:
        yield f"  {waiver.name}: {waiver.clause} may go to {waiver.ceiling:.4g}"
        yield f"    Until {waiver.expires.isoformat()}, approved by {waiver.approver}: {waiver.reason}"
    ground_truth = predicate.ground_truth
    yield f"Ground truth: at least {ground_truth.records} records, salted hash {ground_truth.salted_hash}."
    for table in predicate.confidential:
        yield f"Confidential table {table.name}: salted hash {table.salted_hash}."
    yield f"Snapshot: {predicate.snapshot}. Dossier: {predicate.dossier}."
    yield f"Measured {predicate.measured_at.isoformat()} in run {predicate.run_id}, with:"
    yield f"  {', '.join(f'{name} {version}' for name, version in predicate.versions.items())}"
    if approval.revocations is not None:
        yield f"Held against revocations: {approval.revocations}. None concerns it."
    if approval.unchecked:
        yield "Not asked for:"
        yield from (f"  {sentence}" for sentence in approval.unchecked)


def _describe_clause(clause: ClauseStated) -> str:
    outcome = "warns" if clause.outcome == "exceeded" else clause.outcome
    return f"  {outcome:<6}  {clause.words}"
