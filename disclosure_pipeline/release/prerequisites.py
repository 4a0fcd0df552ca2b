"""What a gate needs before it can decide and release: its ground truth, its keys, those that are believed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from disclosure_pipeline.candidates.folders import GateFolders
from disclosure_pipeline.errors import DisclosurePipelineError
from disclosure_pipeline.policy.trust import TrustedKey, read_trusted
from disclosure_pipeline.release.keys import hash_with_salt, load_signer, parse_keys_by_id


def find_missing(folders: GateFolders, now: datetime) -> list[tuple[str, str]]:
    """What is not there, each as the attribute of the definition that it belongs to and a sentence on it."""
    return [*_check_ground_truth(folders), *_check_confidential(folders), *_check_keys(folders, now)]


def _check_ground_truth(folders: GateFolders) -> Iterator[tuple[str, str]]:
    try:
        if not folders.ground_truth.exists():
            location = folders.ground_truth.redacted_location
            yield "ground_truth", f"the ground truth is not there: {location}"
    except DisclosurePipelineError as error:
        yield "ground_truth", str(error)


def _check_confidential(folders: GateFolders) -> Iterator[tuple[str, str]]:
    for name, source in folders.confidential.items():
        try:
            if not source.exists():
                yield "confidential", f"the table {name!r} is not there: {source.redacted_location}"
        except DisclosurePipelineError as error:
            yield "confidential", f"{name}: {error}"


def _check_keys(folders: GateFolders, now: datetime) -> Iterator[tuple[str, str]]:
    trusted: dict[str, TrustedKey] = {}
    try:
        keys = read_trusted_keys(folders)
        trusted = {keyid: key for keyid, (_, key) in parse_keys_by_id(keys).items()}
    except DisclosurePipelineError as error:
        yield "trusted_keys", str(error)
    try:
        keyid = load_signer().public_key.keyid
        if trusted and (keyid not in trusted or not trusted[keyid].covers(now)):
            yield "trusted_keys", f"they do not believe what the gate's key {keyid} signs today"
    except DisclosurePipelineError as error:
        yield "trusted_keys", f"no release can be signed: {error}"
    try:
        hash_with_salt("0" * 64)
    except DisclosurePipelineError as error:
        yield "ground_truth", f"it cannot be hashed for a statement: {error}"


def read_trusted_keys(folders: GateFolders) -> tuple[TrustedKey, ...]:
    """The public keys that the gate believes. TrustError where they are not there, or cannot be read."""
    keys = folders.trusted_keys
    return read_trusted(keys) if isinstance(keys, Path) else keys
