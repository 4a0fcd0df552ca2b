"""The record of the ground truth: its hash and its size, never its content."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timezone

from disclosure_pipeline.candidates.files import write_json
from disclosure_pipeline.candidates.folders import GateFolders
from disclosure_pipeline.candidates.reading import choose_engine_for, read_ground_truth
from disclosure_pipeline.tables.contract import ContractError, Violation


@dataclass(frozen=True)
class GroundTruth:
    """What is recorded of GT: its hash and size, and where it breaks the data dictionary."""

    sha256: str
    records: int
    violations: tuple[Violation, ...]


def record_ground_truth(folders: GateFolders) -> GroundTruth:
    """Check GT and record its hash, if it keeps its contract. StoreError where it is not there."""
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
        "recorded_at": datetime.now(timezone.utc).isoformat(),
    }
    write_json(folders.store.ground_truth, record)
    return GroundTruth(digest, records, ())
