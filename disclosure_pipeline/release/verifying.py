"""The verification of a published folder from its files and public keys alone."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from errno import EINVAL, ENOTDIR
from pathlib import Path
from typing import BinaryIO

from disclosure_pipeline.candidates.store import STATEMENT
from disclosure_pipeline.errors import DisclosurePipelineError, write_count
from disclosure_pipeline.policy.reviewed_files import TrustedKey
from disclosure_pipeline.release.keys import parse_keys_by_id
from disclosure_pipeline.release.predicate import AnyStatedClause, Predicate, StatementError
from disclosure_pipeline.release.revoking import MOST_BYTES, find_revocations, read_revocations
from disclosure_pipeline.release.statement import (
    check_signature,
    find_statement_problems,
    read_envelope,
    read_statement,
)
from disclosure_pipeline.runtime.files import hash_stream
from disclosure_pipeline.tables.messages import escape_unseen

_NAME_LENGTH_SHOWN = 100
_MOMENT = "%Y-%m-%d %H:%M UTC"


class VerificationError(DisclosurePipelineError):
    """A folder is not an approved release, or was revoked; `problems` lists the reasons."""

    def __init__(self, folder: Path, problems: Sequence[str], revocations: Sequence[str] = ()) -> None:
        self.problems = tuple(map(escape_unseen, [*problems, *revocations]))
        listed = "".join(f"\n- {problem}" for problem in self.problems)
        verdict = "is not an approved release" if problems else "is a revoked release"
        super().__init__(f"{folder} {verdict}:{listed}")


@dataclass(frozen=True)
class Approval:
    """A verified release, its files (name -> sha256), and the key that signed it.

    `unchecked`: a sentence for each comparison that was not requested. `revocations`: the number of
    revocations read, none of which concerns the release; None if no file was given.
    """

    predicate: Predicate
    files: Mapping[str, str]
    keyid: str
    unchecked: tuple[str, ...] = ()
    revocations: int | None = None

    def summarize(self) -> str:
        """Return what is released and under which policy, the verdict, and what was not checked."""
        return "\n".join(map(escape_unseen, (*_summarize_content(self), *_write_verdict(self))))

    def __str__(self) -> str:
        return "\n".join(map(escape_unseen, (*_describe_content(self), *_write_verdict(self))))


@dataclass(frozen=True)
class Expected:
    """The expected release; None accepts any value."""

    gate: str | None = None
    candidate: str | None = None
    policy_digest: str | None = None
    not_before: datetime | None = None

    def find_differences(self, predicate: Predicate) -> list[str]:
        """List, in sentences, where a release differs from the expected one."""
        problems = [
            f"its {subject} is {stated!r}, not the expected {expected!r}"
            for subject, stated, expected in (
                ("gate", predicate.gate, self.gate),
                ("candidate", predicate.candidate, self.candidate),
                ("policy digest", predicate.policy.digest, self.policy_digest),
            )
            if expected is not None and stated != expected
        ]
        published = predicate.published_at
        if self.not_before is not None and published < self.not_before:
            problems.append(
                f"it was published at {published.isoformat()}, before {self.not_before.isoformat()}"
            )
        return problems


def verify(
    folder: Path,
    keys: Sequence[TrustedKey],
    expected: Expected | None = None,
    revocations: Path | None = None,
) -> Approval:
    """Return the approval of a folder that holds exactly the files signed with one of the keys in its period.

    The release must be the `expected` one, and not be revoked in the file `revocations`. Nothing else outside
    the folder is read, and no link is followed. Raise VerificationError with all problems, KeysError if the
    keys cannot be used, and RevocationError if the revocations cannot be trusted.
    """
    expected = expected or Expected()
    trusted_keys = parse_keys_by_id(keys)
    revoked = None if revocations is None else read_revocations(revocations, keys)
    files, content, problems = _read_folder(folder)
    if content is None:
        raise VerificationError(folder, [f"it holds no statement, {STATEMENT}", *problems])
    if len(content) > MOST_BYTES:
        raise VerificationError(folder, [f"its statement has more than {MOST_BYTES} bytes", *problems])
    try:
        envelope, envelope_problems = read_envelope(content)
        problems += [f"the statement was changed: {problem}" for problem in envelope_problems]
        keyid, signature_problems = check_signature(envelope, trusted_keys)
        problems += signature_problems
        statement = read_statement(envelope.payload)
    except StatementError as error:
        raise VerificationError(folder, [f"its statement cannot be read: {error}", *problems]) from None
    published_at = statement.predicate.published_at
    if keyid in trusted_keys and not trusted_keys[keyid][1].covers(published_at):
        problems.append(
            f"it was published at {published_at.isoformat()}, outside the period of the key {keyid}"
        )
    problems += _find_differences(statement.files, files)
    contradictions = find_statement_problems(statement)
    problems += [f"the statement contradicts itself: {problem}" for problem in contradictions]
    problems += expected.find_differences(statement.predicate)
    reasons_to_revoke = [
        f"it was approved on {published_at.astimezone(timezone.utc):{_MOMENT}}, revoked on "
        f"{revocation.revoked_at.astimezone(timezone.utc):{_MOMENT}} because: {revocation.reason}"
        for revocation in find_revocations(folder, statement.predicate, statement.files, revoked or ())
    ]
    if problems or reasons_to_revoke:
        raise VerificationError(folder, problems, reasons_to_revoke)
    comparisons = {
        "--gate": (expected.gate, "of another gate"),
        "--candidate": (expected.candidate, "of another candidate"),
        "--policy-digest": (expected.policy_digest, "under another policy"),
        "--not-before": (expected.not_before, "of any age"),
        "--revocations": (revoked, "that was revoked"),
    }
    unchecked = tuple(
        f"{option}: a release {difference} would pass, too"
        for option, (given, difference) in comparisons.items()
        if given is None
    )
    revocation_count = None if revoked is None else len(revoked)
    return Approval(statement.predicate, statement.files, keyid, unchecked, revocation_count)


def _read_folder(folder: Path) -> tuple[dict[str, str], bytes | None, list[str]]:
    """Return each file's sha256, the beginning of the statement, and sentences on unreadable files."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        is_link = error.errno == ENOTDIR and folder.is_symlink()
        problem = "it is a link: give the folder itself" if is_link else error.strerror
        raise VerificationError(folder, [f"it cannot be opened as a folder: {problem}"]) from None
    files: dict[str, str] = {}
    statement = None
    problems: list[str] = []
    try:
        with os.scandir(handle) as entries:
            names = sorted(entry.name for entry in entries)
        for name in names:
            try:
                with _open_file(name, handle) as file:
                    if name == STATEMENT:
                        statement = file.read(MOST_BYTES + 1)
                    else:
                        files[name] = hash_stream(file).sha256
            except OSError as error:
                problems.append(f"{_quote(name)} cannot be read: {error.strerror}")
    finally:
        os.close(handle)
    return files, statement, problems


def _open_file(name: str, folder_handle: int) -> BinaryIO:
    mode = os.stat(name, dir_fd=folder_handle, follow_symlinks=False).st_mode
    if not stat.S_ISREG(mode):
        kind = "link" if stat.S_ISLNK(mode) else "folder" if stat.S_ISDIR(mode) else "special file"
        raise OSError(EINVAL, f"it is a {kind}, and a release holds only regular files")
    handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder_handle)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(EINVAL, "it was replaced while being read")
    return os.fdopen(handle, "rb")


def _find_differences(approved: Mapping[str, str], present: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(approved.keys() | present.keys()):
        if name not in present:
            yield f"{_quote(name)} is missing: it was approved with the others"
        elif name not in approved:
            yield f"{_quote(name)} was added: it was not approved"
        elif approved[name] != present[name]:
            yield f"{_quote(name)} was changed: its sha256 is {present[name]}, not {approved[name]}"


def _quote(name: str) -> str:
    return repr(name if len(name) <= _NAME_LENGTH_SHOWN else f"{name[:_NAME_LENGTH_SHOWN]}…")


def _write_verdict(approval: Approval) -> Iterator[str]:
    predicate = approval.predicate
    published_at = predicate.published_at.astimezone(timezone.utc)
    if approval.revocations is not None:
        yield f"Revocations checked: {approval.revocations}. None concerns it."
    published = f"published {published_at:{_MOMENT}}"
    yield f"Approved: candidate {predicate.candidate} of gate {predicate.gate}, {published}."
    if approval.unchecked:
        yield "Not checked:"
        yield from (f"  {sentence}" for sentence in approval.unchecked)


def _summarize_content(approval: Approval) -> Iterator[str]:
    predicate = approval.predicate
    yield from _list_files(approval, with_hashes=False)
    yield f"Keys: {', '.join(predicate.policy.keys)}; targets: {', '.join(predicate.policy.targets)}"
    yield f"Power: {predicate.power or 'not measured for this gate.'}"
    clauses = (*predicate.clauses, *predicate.controls)
    broken = [clause for clause in clauses if clause.outcome != "kept"]
    kept = len(clauses) - len(broken)
    yield f"Clauses: {kept} of {len(clauses)} are kept{', all but:' if broken else '.'}"
    yield from map(_write_clause, broken)
    yield from _list_waivers(predicate)


def _list_files(approval: Approval, *, with_hashes: bool) -> Iterator[str]:
    yield "Files:"
    records = {table.name: write_count(table.records, "record") for table in approval.predicate.synthetic}
    for name, sha256 in approval.files.items():
        facts = [
            *([f"sha256 {sha256}"] if with_hashes else []),
            *([records[name]] if name in records else []),
        ]
        yield f"  {name}{': ' if facts else ''}{', '.join(facts)}"


def _write_clause(clause: AnyStatedClause) -> str:
    outcome = "warns" if clause.outcome == "exceeded" else clause.outcome
    return f"  {outcome:<6}  {clause.words}"


def _list_waivers(predicate: Predicate) -> Iterator[str]:
    yield "Waivers:" if predicate.waivers else "Waivers: none."
    for waiver in predicate.waivers:
        yield f"  {waiver.name}: {waiver.clause} may go to {waiver.ceiling:.4g}"
        yield f"    Until {waiver.expires.isoformat()}, approved by {waiver.approver}: {waiver.reason}"


def _describe_content(approval: Approval) -> Iterator[str]:
    predicate = approval.predicate
    yield f"Published {predicate.published_at.isoformat()}, signed with the key {approval.keyid}."
    yield f"Power: {predicate.power or 'not measured for this gate.'}"
    yield f"Policy: digest {predicate.policy.digest}."
    yield f"  keys: {', '.join(predicate.policy.keys)}; targets: {', '.join(predicate.policy.targets)}"
    yield from _list_files(approval, with_hashes=True)
    stated = {"Clauses": predicate.clauses, "Controls of the measurement itself": predicate.controls}
    for heading, clauses in stated.items():
        yield f"{heading}:"
        yield from map(_write_clause, clauses)
    yield from _list_waivers(predicate)
    ground_truth = predicate.ground_truth
    yield (
        f"Ground truth: at least {write_count(ground_truth.records, 'record')}, salted hash "
        f"{ground_truth.salted_hash}."
    )
    for table in predicate.confidential:
        yield f"Confidential table {table.name}: salted hash {table.salted_hash}."
    yield f"Snapshot: {predicate.snapshot}. Dossier: {predicate.dossier}."
    yield f"Measured {predicate.measured_at.isoformat()} in run {predicate.run_id}, with:"
    yield f"  {', '.join(f'{name} {version}' for name, version in predicate.versions.items())}"
