"""The record of the ground truth and of other confidential tables: hashes and sizes, never their content."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import datetime, timezone

from disclosure_pipeline.candidates.files import StoreError, write_json
from disclosure_pipeline.candidates.folders import GateFolders
from disclosure_pipeline.candidates.reading import choose_engine_for, read_confidential, read_ground_truth
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.tables.contract import ContractError, Violation


@dataclass(frozen=True)
class GroundTruth:
    """What is recorded of GT: its hash and size, and where it breaks the data dictionary."""

    sha256: str
    records: int
    violations: tuple[Violation, ...]


def record_ground_truth(folders: GateFolders) -> GroundTruth:
    """Check GT and record its hash, if it keeps its contract. StoreError where it is not there.

    The hashes of the gate's further confidential tables are recorded beside it: a verdict is of all of them.
    """
    with ExitStack() as stack:
        try:
            engine = choose_engine_for(folders.gate, [folders.ground_truth])
            table, digest = read_ground_truth(folders, engine, stack)
        except ContractError as broken:
            return GroundTruth(folders.ground_truth.sha256() or "", 0, broken.violations)
        records: int = table.records
    record = {
        "sha256": digest,
        "records": records,
        "confidential": _hash_confidential(folders),
        "recorded_at": datetime.now(timezone.utc).isoformat(),
    }
    write_json(folders.store.ground_truth, record)
    return GroundTruth(digest, records, ())


def _hash_confidential(folders: GateFolders) -> dict[str, str]:
    """The sha256 of each further confidential table; empty where it cannot be read."""
    hashes = {}
    for name, source in folders.confidential.items():
        hashes[name] = ""
        with suppress(StoreError, InputError, ContractError):
            hashes[name] = source.sha256() or _read_hash(folders, name)
    return hashes


def _read_hash(folders: GateFolders, name: str) -> str:
    """The hash of what is read from a database, which has no bytes of its own."""
    with ExitStack() as stack:
        engine = choose_engine_for(folders.gate, [folders.confidential[name]])
        return read_confidential(folders, name, engine, stack)[1]
