"""Verifying a published folder: with nothing but the folder and the public keys."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from errno import EINVAL
from pathlib import Path
from typing import TYPE_CHECKING

from disclosure_pipeline.errors import DisclosurePipelineError
from disclosure_pipeline.policy.trust import TrustedKey
from disclosure_pipeline.release.keys import by_id
from disclosure_pipeline.release.predicate import ClauseStated, Predicate, StatementError
from disclosure_pipeline.release.statement import STATEMENT, faults, read_envelope, read_statement

if TYPE_CHECKING:
    from securesystemslib.dsse import Envelope
    from securesystemslib.signer import SSlibKey

_CHUNK = 1 << 20
# A statement is far smaller; what is larger is not even read.
_LARGEST = 1 << 24
_NAME_SHOWN = 100


class VerificationError(DisclosurePipelineError):
    """A folder is not what was approved; `problems` are all that are found."""

    def __init__(self, folder: Path, problems: Sequence[str]) -> None:
        self.problems = tuple(map(_plain, problems))
        listed = "".join(f"\n- {problem}" for problem in self.problems)
        super().__init__(f"{folder} is not a release that was approved:{listed}")


@dataclass(frozen=True)
class Approval:
    """A release that was verified: what was approved, its files (name -> sha256), and whose key says so."""

    predicate: Predicate
    files: Mapping[str, str]
    keyid: str

    def __str__(self) -> str:
        return "\n".join(map(_plain, _told(self)))


def verify(folder: Path, keys: Sequence[TrustedKey]) -> Approval:
    """What was approved, if the folder holds exactly that, signed with one of the keys in its period.

    Nothing outside the folder is read, and no link is followed. VerificationError with all that is wrong;
    KeysError where the keys cannot be used.
    """
    trusted = by_id(keys)
    found, problems = _contents(folder)
    raw = found.pop(STATEMENT, None)
    if raw is None:
        raise VerificationError(folder, [f"it holds no statement, {STATEMENT}", *problems])
    if len(raw.beginning) > _LARGEST:
        raise VerificationError(folder, ["its statement is far too large to be one", *problems])
    try:
        envelope, wrong = read_envelope(raw.beginning)
    except StatementError as error:
        raise VerificationError(folder, [f"its statement cannot be read: {error}", *problems]) from None
    problems += [f"the statement was changed: {each}" for each in wrong]
    keyid, unsigned = _signed_by(envelope, trusted)
    problems += unsigned
    try:
        statement = read_statement(envelope.payload)
    except StatementError as error:
        raise VerificationError(folder, [f"its statement cannot be read: {error}", *problems]) from None
    published = statement.predicate.published_at
    if keyid in trusted and not trusted[keyid][1].covers(published):
        problems.append(
            f"it was published at {published.isoformat()}, which is outside the period of the key {keyid}"
        )
    problems += _differences(statement.files, {name: file.sha256 for name, file in found.items()})
    problems += [f"the statement contradicts itself: {each}" for each in faults(statement)]
    if problems:
        raise VerificationError(folder, problems)
    return Approval(statement.predicate, statement.files, keyid)


@dataclass(frozen=True)
class _File:
    """A file as it was read: its hash, and its beginning if it can be the statement."""

    sha256: str
    beginning: bytes


def _contents(folder: Path) -> tuple[dict[str, _File], list[str]]:
    """The plain files of a folder by their names, and what else is there."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        said = "it is a link: give the folder itself" if folder.is_symlink() else error.strerror
        raise VerificationError(folder, [f"it cannot be opened as a folder: {said}"]) from None
    found: dict[str, _File] = {}
    problems: list[str] = []
    try:
        with os.scandir(handle) as entries:
            names = sorted(entry.name for entry in entries)
        for name in names:
            try:
                found[name] = _read(name, handle)
            except OSError as error:
                problems.append(f"{_quoted(name)} cannot be read: {error.strerror}")
    finally:
        os.close(handle)
    return found, problems


def _read(name: str, within: int) -> _File:
    mode = os.stat(name, dir_fd=within, follow_symlinks=False).st_mode
    if not stat.S_ISREG(mode):
        kind = "link" if stat.S_ISLNK(mode) else "folder" if stat.S_ISDIR(mode) else "special file"
        raise OSError(EINVAL, f"it is a {kind}, and a release holds plain files only")
    handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=within)
    digest, beginning = hashlib.sha256(), b""
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(EINVAL, "it was replaced while it was read")
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            if name == STATEMENT and len(beginning) <= _LARGEST:
                beginning += chunk
    return _File(digest.hexdigest(), beginning)


def _signed_by(
    envelope: Envelope, trusted: Mapping[str, tuple[SSlibKey, TrustedKey]]
) -> tuple[str, list[str]]:
    """The id of the key that an envelope names, and why the signature is not believed."""
    from securesystemslib.exceptions import VerificationError as NotVerified

    (signature,) = envelope.signatures.values()
    if signature.keyid not in trusted:
        return signature.keyid, [
            f"it is signed with the key {_quoted(signature.keyid)}, which is none of those that were given "
            f"({', '.join(trusted)})"
        ]
    try:
        envelope.verify([trusted[signature.keyid][0]], 1)
    except NotVerified:
        return signature.keyid, [
            f"its signature is wrong: what it says is not what was signed with the key {signature.keyid}"
        ]
    return signature.keyid, []


def _differences(approved: Mapping[str, str], there: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(approved.keys() | there.keys()):
        if name not in there:
            yield f"{_quoted(name)} is missing: it was approved with the others"
        elif name not in approved:
            yield f"{_quoted(name)} was added: it was not approved"
        elif approved[name] != there[name]:
            yield f"{_quoted(name)} was changed: its sha256 is {there[name]}, approved was {approved[name]}"


def _quoted(name: str) -> str:
    return repr(name if len(name) <= _NAME_SHOWN else f"{name[:_NAME_SHOWN]}…")


def _plain(text: str) -> str:
    """One line that does nothing to a terminal."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _told(approval: Approval) -> Iterator[str]:
    said = approval.predicate
    yield f"Approved: candidate {said.candidate} of gate {said.gate}."
    yield f"Published {said.published_at.isoformat()}, signed with the key {approval.keyid}."
    yield f"Policy: digest {said.policy.digest}."
    yield f"  keys: {', '.join(said.policy.keys)}; targets: {', '.join(said.policy.targets)}"
    yield "Files:"
    records = {table.name: f", {table.records} records" for table in said.synthetic}
    for name, sha256 in approval.files.items():
        yield f"  {name}: sha256 {sha256}{records.get(name, '')}"
    yield "Clauses:"
    yield from map(_clause, said.clauses)
    yield "Controls of the measuring itself:"
    yield from map(_clause, said.controls)
    yield "Waivers:" if said.waivers else "Waivers: none."
    for waiver in said.waivers:
        yield f"  {waiver.name}: {waiver.clause} may go to {waiver.ceiling:.4g}"
        yield f"    Until {waiver.expires.isoformat()}, approved by {waiver.approver}: {waiver.reason}"
    yield f"Ground truth: {said.ground_truth.records} records, salted hash {said.ground_truth.salted_hash}."
    yield f"Snapshot: {said.snapshot}. Dossier: {said.dossier}."
    yield f"Measured {said.measured_at.isoformat()} in run {said.run_id}, with:"
    yield f"  {', '.join(f'{name} {version}' for name, version in said.versions.items())}"


def _clause(clause: ClauseStated) -> str:
    outcome = "warns" if clause.outcome == "exceeded" else clause.outcome
    return f"  {outcome:<6}  {clause.words}"
