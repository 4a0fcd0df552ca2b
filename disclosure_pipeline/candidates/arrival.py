"""Arrival of GT and of a candidate: check their contracts, record them, and measure the key overlap."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pandas as pd

from disclosure_pipeline.candidates.measuring import measure_candidate, record_measured
from disclosure_pipeline.candidates.reading import (
    CandidateTables,
    choose_engine_for,
    find_tables,
    open_candidate,
    read_confidential,
    read_ground_truth,
    read_synthesis,
)
from disclosure_pipeline.candidates.snapshot import LINKED, Snapshot, list_syntheses, take_snapshot
from disclosure_pipeline.candidates.store import MARKER, GateFolders, require_safe_name
from disclosure_pipeline.errors import InputError, StoreError
from disclosure_pipeline.evaluation.disclosure import measure_key_overlap
from disclosure_pipeline.evaluation.long_table import CONFIDENTIAL
from disclosure_pipeline.policy.clauses import KEY_OVERLAPS
from disclosure_pipeline.policy.verdict import Judgement, judge_key_overlap, round_judgements
from disclosure_pipeline.runtime.files import make_private, read_json, read_json_if_whole, write_json
from disclosure_pipeline.tables.additions import find_naming_columns
from disclosure_pipeline.tables.alignment import label_values
from disclosure_pipeline.tables.dictionary import ContractError, Violation
from disclosure_pipeline.tables.messages import GROUND_TRUTH

ARRIVAL = "arrival.json"
"""The file with the reason why a candidate was not measured; absent if it was."""

BROKEN_CONTRACT = "broken contract"
TOO_LITTLE_OVERLAP = "too little overlap"


@dataclass(frozen=True)
class Arrival:
    """A candidate on arrival: its snapshot, its violations of the contract, and its key overlap with GT.

    If the contract is broken, there are no overlaps. `public_overlaps` have figures rounded for publication.
    """

    snapshot: Snapshot
    records: tuple[int, ...]
    violations: tuple[Violation, ...]
    key_overlap: pd.DataFrame
    overlaps: tuple[Judgement, ...]
    public_overlaps: tuple[Judgement, ...] = ()

    @property
    def problem(self) -> str | None:
        """The reason to end the run on arrival, or None."""
        if self.violations:
            return BROKEN_CONTRACT
        is_compared = bool(self.overlaps) and all(overlap.outcome == "kept" for overlap in self.overlaps)
        return None if is_compared else TOO_LITTLE_OVERLAP


def deliver(folders: GateFolders, candidate: str, delivered: Any) -> Path:
    """Write in-memory tables to a folder for `receive`, each a DataFrame or a pair (persons, events)."""
    require_safe_name(candidate, "candidate")
    names = ("synthesis",) if folders.gate.events is None else LINKED
    is_single = isinstance(delivered, pd.DataFrame if len(names) == 1 else tuple)
    listed = [delivered] if is_single else delivered
    syntheses = [(table,) if len(names) == 1 else table for table in listed] if _is_list(listed) else [()]
    if not all(
        _is_list(tables)
        and len(tables) == len(names)
        and all(isinstance(table, pd.DataFrame) for table in tables)
        for tables in syntheses
    ):
        expected = "a pandas DataFrame" if len(names) == 1 else "a pair of DataFrames (persons, events)"
        raise StoreError(f"The asset that makes the syntheses must return {expected} or a list of them.")
    make_private(folders.store.root)
    folder = folders.store.root / "delivered" / candidate
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for number, tables in enumerate(syntheses, start=1):
        for name, table in zip(names, label_values(tables), strict=True):
            table.to_parquet(folder / f"{name}_{number:04}.parquet", index=False)
    (folder / MARKER).touch()
    return folder


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def receive(
    folders: GateFolders, candidate: str, folder: Path | None = None, *, needs_marker: bool = True
) -> Arrival:
    """Take a candidate's snapshot, check its contract and measure how much of each key it shares with GT.

    The snapshot is taken from `folder`, by default the candidate's incoming folder (see `take_snapshot`). As
    GT and the candidate are read anyway, all figures are measured and recorded for the following steps. GT is
    recorded first if it is not yet; raise ContractError if it breaks its own contract.
    """
    if read_recorded_tables(folders).ground_truth is None:
        recorded = record_ground_truth(folders)
        if recorded.violations:
            raise ContractError(recorded.violations)
    arrival = _receive(folders, candidate, folder, needs_marker=needs_marker)
    record = folders.store.candidate_folder(candidate) / ARRIVAL
    if arrival.problem is None:
        record.unlink(missing_ok=True)
    else:
        write_json(
            record,
            {
                "snapshot": arrival.snapshot.sha256,
                "policy_digest": folders.gate.policy_digest(),
                "problem": arrival.problem,
            },
        )
    return arrival


def _receive(folders: GateFolders, candidate: str, folder: Path | None, *, needs_marker: bool) -> Arrival:
    require_safe_name(candidate, "candidate")
    incoming = folder or folders.incoming / candidate
    snapshot = take_snapshot(incoming, candidate, folders.store, needs_marker=needs_marker)
    tables = find_tables(folders, snapshot)
    syntheses: list[Any] = []
    violations: list[Violation] = []
    with ExitStack() as stack:
        for files in list_syntheses(folders.gate, snapshot):
            try:
                syntheses.append(read_synthesis(folders, tables, files, stack))
            except ContractError as broken:
                violations += broken.violations
        records = tuple(table.records for table in syntheses)
        if violations:
            return Arrival(snapshot, records, tuple(violations), pd.DataFrame(), ())
        try:
            overlap = _measure_overlap(folders, replace(tables, read=syntheses))
        except ContractError as broken:
            return Arrival(snapshot, records, broken.violations, pd.DataFrame(), ())
    clauses = [clause for clause in folders.gate.clauses() if clause.figure in KEY_OVERLAPS]
    overlaps = judge_key_overlap(clauses, overlap, len(syntheses))
    in_GT: int = read_json(folders.store.ground_truth, "ground_truth")["records"]
    public = round_judgements(overlaps, [in_GT, *records], folders.gate.policy.smallest_count)
    return Arrival(snapshot, records, (), overlap, overlaps, public)


def _measure_overlap(folders: GateFolders, tables: CandidateTables) -> pd.DataFrame:
    """Measure all figures, record them and return the key overlap of GT and SD."""
    gate = folders.gate
    with open_candidate(folders, tables) as candidate:
        try:
            measured = measure_candidate(folders, candidate, tables.engine)
        except InputError:  # the step that needs the figures measures again, and reports the error
            return measure_key_overlap(candidate.opened, gate.keys, gate.key_grouping)
    record_measured(folders, tables.snapshot, candidate.ground_truth, measured)
    return measured.result.key_overlap


def read_recorded_ground_truth(folders: GateFolders) -> str:
    """Return the recorded sha256 of GT. Raise StoreError if GT has changed since."""
    recorded: str = read_json(folders.store.ground_truth, "ground_truth").get("sha256", "")
    if folders.ground_truth.sha256() not in {None, recorded}:
        raise StoreError(
            "The ground truth differs from the recorded one: run ground_truth again, then this step."
        )
    return recorded


@dataclass(frozen=True)
class GroundTruth:
    """The hash and size of GT, and its violations of the data dictionary."""

    sha256: str
    records: int
    violations: tuple[Violation, ...]


def record_ground_truth(folders: GateFolders) -> GroundTruth:
    """Check GT and, if it keeps its contract, record its hash and those of further confidential tables.

    Raise StoreError if GT is missing.
    """
    with ExitStack() as stack:
        try:
            engine = choose_engine_for(folders.gate, [folders.ground_truth])
            table, digest = read_ground_truth(folders, engine, stack)
        except ContractError as broken:
            return GroundTruth(folders.ground_truth.sha256() or "", 0, broken.violations)
        gate = folders.gate
        violations = find_naming_columns(
            gate.arriving_columns, gate.released_columns, table.count_levels, GROUND_TRUTH
        )
        records: int = table.records
    if violations:
        return GroundTruth(digest, records, tuple(violations))
    record = {
        "sha256": digest,
        "records": records,
        "confidential": _hash_confidential(folders),
        "recorded_at": datetime.now(timezone.utc).isoformat(),
    }
    make_private(folders.store.root)
    write_json(folders.store.ground_truth, record)
    return GroundTruth(digest, records, ())


def _hash_confidential(folders: GateFolders) -> dict[str, str]:
    """Return the sha256 of each further confidential table, or "" if it cannot be read."""
    hashes = {}
    for name, source in folders.confidential.items():
        hashes[name] = ""
        with suppress(StoreError, InputError, ContractError), ExitStack() as stack:
            hashes[name] = source.sha256() or ""
            if not hashes[name]:  # a table in a database must be read to be hashed
                engine = choose_engine_for(folders.gate, [source])
                hashes[name] = read_confidential(folders, name, engine, stack)[1]
    return hashes


@dataclass(frozen=True)
class RecordedTables:
    """The recorded sha256 of each confidential table, by its name in a dossier's `measured`."""

    hashes: Mapping[str, str | None]
    recorded_at: str | None

    @property
    def ground_truth(self) -> str | None:
        """The sha256 of GT."""
        return self.hashes["ground_truth"]

    def were_measured(self, measured: Any) -> bool:
        """Return whether all tables are recorded and a dossier's `measured` has the same hashes."""
        return isinstance(measured, Mapping) and all(
            digest and measured.get(name) == digest for name, digest in self.hashes.items()
        )


def read_recorded_tables(folders: GateFolders) -> RecordedTables:
    """Return the recorded hashes of a gate's tables; None for each if the record is missing or damaged."""
    record = read_json_if_whole(folders.store.ground_truth)
    further = record.get("confidential")
    further = further if isinstance(further, Mapping) else {}
    hashes = {name_confidential_hash(name): further.get(name) for name in folders.confidential}
    return RecordedTables({"ground_truth": record.get("sha256"), **hashes}, record.get("recorded_at"))


def name_confidential_hash(confidential: str) -> str:
    """Return the name of a further confidential table's hash in a dossier's `measured`.

    >>> name_confidential_hash("last_year")
    'confidential[last_year]'
    """
    return f"{CONFIDENTIAL}[{confidential}]"
