"""Revoke a release by a signed statement, for everyone who verifies it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, ValidationError

from disclosure_pipeline.errors import DisclosurePipelineError
from disclosure_pipeline.policy.trust import Digest, Moment, Text, TrustedKey
from disclosure_pipeline.release.keys import parse_keys_by_id
from disclosure_pipeline.release.predicate import Predicate, StatementError, describe_errors
from disclosure_pipeline.release.statement import (
    STATEMENT,
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
from disclosure_pipeline.candidates.store import locate_revocations

PAYLOAD_TYPE = "application/vnd.disclosure-pipeline.revocation+json"

# Far more than any list of revocations; what is larger is not read.
_MAXIMUM_BYTES = 1 << 24


class RevocationError(DisclosurePipelineError):
    """A revocation cannot be made, or a file of them cannot be believed."""


class Revocation(FrozenModel):
    """A revoked release: its content and the hashes of its tables' records (version 1 has none), and why."""

    type: Literal["urn:disclosure-pipeline:revocation:v1", "urn:disclosure-pipeline:revocation:v2"] = (
        "urn:disclosure-pipeline:revocation:v2"
    )
    gate: Annotated[str, Field(min_length=1)]
    candidate: Annotated[str, Field(min_length=1)]
    snapshot: Digest
    tables: tuple[Digest, ...] = ()
    reason: Text
    revoked_at: Moment

    def concerns(self, released: Predicate) -> bool:
        """Return whether it is about a release of that gate: of that candidate, or of the same files."""
        return self.gate == released.gate and (
            self.candidate == released.candidate or self.snapshot == released.snapshot
        )

    def __str__(self) -> str:
        return (
            f"candidate {self.candidate} of gate {self.gate} was revoked at {self.revoked_at.isoformat()}: "
            f"{self.reason}"
        )


def revoke(
    folder: Path, file: Path, reason: str, keys: Sequence[TrustedKey], signer: Signer, now: datetime
) -> Revocation:
    """Add a signed revocation of the release in a folder to a file of revocations, which is made if needed.

    A table that is damaged or gone is revoked without the hash of its records: in another form it would not
    be found. RevocationError where the statement is not signed with one of the keys, `now` lies before the
    release, or what the file holds already cannot be believed: then nothing is written.
    """
    statement = read_released(folder, keys)
    released = statement.predicate
    if now < released.published_at:
        raise RevocationError(
            f"The clock shows {now.isoformat()}, but {folder} was published at "
            f"{released.published_at.isoformat()}: set the clock right."
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
    content = b"".join(line + b"\n" for line in earlier) + sign_payload(payload, PAYLOAD_TYPE, signer)
    # As everyone will read it: what could not be believed then is not written now.
    _parse(content.splitlines(), file, keys)
    write_whole(file, content)
    return revocation


def _digest_tables(folder: Path, files: Mapping[str, str]) -> tuple[str, ...]:
    """Return the hashes of the records of each table that is as it was released."""
    # CSV stands beside the same table as Parquet.
    tables = [(folder / name, sha256) for name, sha256 in files.items() if name.endswith(".parquet")]
    intact = [path for path, sha256 in tables if path.is_file() and hash_file(path) == sha256]
    if not intact:
        return ()
    from disclosure_pipeline.release.published_tables import digest_published

    return tuple(sorted(map(digest_published, intact)))


def find_revocations(
    folder: Path, released: Predicate, files: Mapping[str, str], revocations: Sequence[Revocation]
) -> list[Revocation]:
    """Return the revocations of a release, or of the same table in another; `files`: name -> sha256."""
    tables = set(_digest_tables(folder, files)) if any(of.tables for of in revocations) else set()
    return [
        revocation
        for revocation in revocations
        if revocation.concerns(released) or tables.intersection(revocation.tables)
    ]


def read_gate_revocations(releases: Path, keys: Sequence[TrustedKey]) -> tuple[Revocation, ...]:
    """Return the revocations beside the releases of a gate; none where there is no such file."""
    file = locate_revocations(releases)
    return read_revocations(file, keys) if os.path.lexists(file) else ()


def read_released(folder: Path, keys: Sequence[TrustedKey]) -> Statement:
    """Return a folder's statement. RevocationError unless its signature is right."""
    try:
        envelope, problems = read_envelope((folder / STATEMENT).read_bytes())
        _, signature_problems = check_signature(envelope, parse_keys_by_id(keys))
        statement = read_statement(envelope.payload)
    except (OSError, StatementError) as error:
        wrong = (error.strerror or "it cannot be read") if isinstance(error, OSError) else str(error)
        raise RevocationError(f"The statement of {folder} cannot be read: {wrong}.") from None
    if problems or signature_problems:
        raise RevocationError(f"{folder} is no release: {'; '.join([*problems, *signature_problems])}.")
    return statement


def read_revocations(file: Path, keys: Sequence[TrustedKey]) -> tuple[Revocation, ...]:
    """Return the revocations in a file, one signed envelope a line.

    RevocationError where it cannot be read, or one of them is not signed with one of the keys in its
    period: one that is passed over would not be missed.
    """
    return _parse(_read_lines(file), file, keys)


def _read_lines(file: Path) -> list[bytes]:
    try:
        with file.open("rb") as opened:
            content = opened.read(_MAXIMUM_BYTES + 1)
    except OSError as error:
        raise RevocationError(f"The revocations in {file} cannot be read: {error.strerror}.") from None
    if len(content) > _MAXIMUM_BYTES:
        raise RevocationError(f"{file} is far too large for a list of revocations.")
    if content and not content.endswith(b"\n"):
        raise RevocationError(f"{file} ends within a revocation: get a whole copy of it.")
    return content.splitlines()


def _parse(lines: Sequence[bytes], file: Path, keys: Sequence[TrustedKey]) -> tuple[Revocation, ...]:
    trusted_keys = parse_keys_by_id(keys)
    revocations = []
    for number, line in enumerate(lines, start=1):
        place = f"{file}:{number}"
        try:
            envelope, problems = read_envelope(line + b"\n", PAYLOAD_TYPE)
            keyid, signature_problems = check_signature(envelope, trusted_keys)
            problems += signature_problems
            revocation = None if problems else Revocation.model_validate(json.loads(envelope.payload))
        except ValidationError as error:
            raise RevocationError(
                f"{place}: it is no revocation: {'; '.join(describe_errors(error))}."
            ) from None
        except (StatementError, ValueError, RecursionError) as error:
            wrong = str(error) if isinstance(error, StatementError) else "it is no JSON"
            raise RevocationError(f"{place}: {wrong}.") from None
        if revocation is None:
            raise RevocationError(f"{place}: {'; '.join(problems)}.")
        if not trusted_keys[keyid][1].covers(revocation.revoked_at):
            raise RevocationError(f"{place}: it was revoked outside the period of the key {keyid}.")
        revocations.append(revocation)
    return tuple(revocations)
