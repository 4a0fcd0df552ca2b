"""Signed revocations of releases: writing, reading and finding them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, ValidationError

from disclosure_pipeline.candidates.store import STATEMENT, locate_revocations
from disclosure_pipeline.errors import DisclosurePipelineError
from disclosure_pipeline.policy.reviewed_files import Digest, Moment, Text, TrustedKey
from disclosure_pipeline.release.keys import parse_keys_by_id
from disclosure_pipeline.release.predicate import Predicate, StatementError, describe_errors
from disclosure_pipeline.release.statement import (
    Statement,
    check_signature,
    read_envelope,
    read_statement,
    sign_payload,
    to_canonical_json,
)
from disclosure_pipeline.runtime.files import hash_file, write_whole
from disclosure_pipeline.tables.dictionary import FrozenModel

if TYPE_CHECKING:
    from securesystemslib.signer import Signer

MOST_BYTES = 1 << 24
"""Larger files are not parsed: a statement or a list of revocations is far smaller."""

_REVOCATION = "application/vnd.disclosure-pipeline.revocation+json"


class RevocationError(DisclosurePipelineError):
    """A revocation cannot be made, or a file of revocations cannot be trusted."""


class Revocation(FrozenModel):
    """A revoked release and the reason; `tables` hashes the records of each table (none in version 1)."""

    type: Literal["urn:disclosure-pipeline:revocation:v1", "urn:disclosure-pipeline:revocation:v2"] = (
        "urn:disclosure-pipeline:revocation:v2"
    )
    gate: Annotated[str, Field(min_length=1)]
    candidate: Annotated[str, Field(min_length=1)]
    snapshot: Digest
    tables: tuple[Digest, ...] = ()
    reason: Text
    revoked_at: Moment

    def concerns(self, gate: str, candidate: str, snapshot: str) -> bool:
        """Return True if a release is of this gate, and of this candidate or snapshot."""
        return self.gate == gate and (self.candidate == candidate or self.snapshot == snapshot)

    def __str__(self) -> str:
        revoked_at = self.revoked_at.isoformat()
        return f"candidate {self.candidate} of gate {self.gate} was revoked at {revoked_at}: {self.reason}"


def revoke(
    folder: Path, file: Path, reason: str, keys: Sequence[TrustedKey], signer: Signer, now: datetime
) -> Revocation:
    """Append a signed revocation of the release in `folder` to `file`, which is made if needed.

    A damaged or missing table is revoked without the hash of its records, so the same table in another
    release is not. Raise RevocationError, and write nothing, if the statement is not signed with one of the
    keys, if `now` is before the release, or if the file holds a revocation that cannot be trusted.
    """
    statement = read_signed_statement(folder, keys)
    released = statement.predicate
    if now < released.published_at:
        raise RevocationError(
            f"The clock shows {now.isoformat()}, but {folder} was published at "
            f"{released.published_at.isoformat()}: correct the clock."
        )
    try:
        revocation = Revocation(
            gate=released.gate,
            candidate=released.candidate,
            snapshot=released.snapshot,
            tables=_digest_tables(folder, statement.files),
            reason=reason,
            revoked_at=now,
        )
    except ValidationError as error:
        raise RevocationError(f"No revocation can be made: {'; '.join(describe_errors(error))}.") from None
    earlier = _read_lines(file) if file.exists() else []
    payload = to_canonical_json(revocation.model_dump(mode="json"))
    content = b"".join(line + b"\n" for line in earlier) + sign_payload(payload, _REVOCATION, signer)
    # Write nothing that its readers could not trust.
    _parse(content.splitlines(), file, keys)
    write_whole(file, content)
    return revocation


def _digest_tables(folder: Path, files: Mapping[str, str]) -> tuple[str, ...]:
    # Only of intact tables. The CSV files hold the same tables as the Parquet files.
    tables = [(folder / name, sha256) for name, sha256 in files.items() if name.endswith(".parquet")]
    intact = [path for path, sha256 in tables if path.is_file() and hash_file(path) == sha256]
    if not intact:
        return ()
    from disclosure_pipeline.release.published_tables import digest_published

    return tuple(sorted(map(digest_published, intact)))


def find_revocations(
    folder: Path, released: Predicate, files: Mapping[str, str], revocations: Sequence[Revocation]
) -> list[Revocation]:
    """Return the revocations of a release, or of one of its tables; `files`: name -> sha256."""
    has_tables = any(revocation.tables for revocation in revocations)
    tables = set(_digest_tables(folder, files)) if has_tables else set()
    release = (released.gate, released.candidate, released.snapshot)
    return [entry for entry in revocations if entry.concerns(*release) or tables.intersection(entry.tables)]


def read_gate_revocations(releases: Path, keys: Sequence[TrustedKey]) -> tuple[Revocation, ...]:
    """Return the revocations in the file beside a gate's releases; none if there is no such file."""
    file = locate_revocations(releases)
    return read_revocations(file, keys) if os.path.lexists(file) else ()


def read_signed_statement(folder: Path, keys: Sequence[TrustedKey]) -> Statement:
    """Return a folder's statement. Raise RevocationError unless one of the keys signed it."""
    try:
        envelope, problems = read_envelope((folder / STATEMENT).read_bytes())
        problems += check_signature(envelope, parse_keys_by_id(keys))[1]
        statement = read_statement(envelope.payload)
    except (OSError, StatementError) as error:
        problem = (error.strerror or "it cannot be read") if isinstance(error, OSError) else str(error)
        raise RevocationError(f"The statement of {folder} cannot be read: {problem}.") from None
    if problems:
        raise RevocationError(f"{folder} is not a release: {'; '.join(problems)}.")
    return statement


def read_revocations(file: Path, keys: Sequence[TrustedKey]) -> tuple[Revocation, ...]:
    """Return the revocations in a file with one signed envelope per line.

    Raise RevocationError if any cannot be trusted: nobody would notice one that is skipped.
    """
    return _parse(_read_lines(file), file, keys)


def _read_lines(file: Path) -> list[bytes]:
    try:
        with file.open("rb") as opened:
            content = opened.read(MOST_BYTES + 1)
    except OSError as error:
        raise RevocationError(f"The revocations in {file} cannot be read: {error.strerror}.") from None
    if len(content) > MOST_BYTES:
        raise RevocationError(f"{file} is too large for a list of revocations.")
    if content and not content.endswith(b"\n"):
        raise RevocationError(f"{file} ends within a revocation: get a complete copy of it.")
    return content.splitlines()


def _parse(lines: Sequence[bytes], file: Path, keys: Sequence[TrustedKey]) -> tuple[Revocation, ...]:
    trusted_keys = parse_keys_by_id(keys)
    revocations = []
    for number, line in enumerate(lines, start=1):
        place = f"{file}:{number}"
        try:
            envelope, problems = read_envelope(line + b"\n", _REVOCATION)
            keyid, signature_problems = check_signature(envelope, trusted_keys)
            problems += signature_problems
            revocation = None if problems else Revocation.model_validate(json.loads(envelope.payload))
        except ValidationError as error:
            problem = "; ".join(describe_errors(error))
            raise RevocationError(f"{place}: it is not a revocation: {problem}.") from None
        except (StatementError, ValueError, RecursionError) as error:
            problem = str(error) if isinstance(error, StatementError) else "it is not JSON"
            raise RevocationError(f"{place}: {problem}.") from None
        if revocation is None:
            raise RevocationError(f"{place}: {'; '.join(problems)}.")
        if not trusted_keys[keyid][1].covers(revocation.revoked_at):
            raise RevocationError(f"{place}: it was revoked outside the period of the key {keyid}.")
        revocations.append(revocation)
    return tuple(revocations)
