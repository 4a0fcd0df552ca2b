"""One candidate through the gate: taken in, measured from the bytes of its snapshot, judged, told."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pandas as pd

from disclosure_pipeline.elsewhere import Here
from disclosure_pipeline.errors import DisclosurePipelineError
from disclosure_pipeline.evidence.dossier import dossier, to_markdown
from disclosure_pipeline.evidence.site import INDEX, pages
from disclosure_pipeline.evidence.validation import disagreements, validate
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.measured import smallest_overlap
from disclosure_pipeline.policy.trust import TrustedKey
from disclosure_pipeline.policy.verdict import Judgement, RefusedWaiver, can_be_waived, hold, judge, waive
from disclosure_pipeline.policy.waivers import Waiver
from disclosure_pipeline.release import tables
from disclosure_pipeline.release.files import StoreError, read_json, write_json, write_whole
from disclosure_pipeline.release.in_database import DatabaseTable, values_sha256
from disclosure_pipeline.release.store import (
    MARKER,
    Snapshot,
    Store,
    StoredFile,
    checked_name,
    load_snapshot,
    take_snapshot,
)
from disclosure_pipeline.release.tables import Table, engine_for
from disclosure_pipeline.result import Disclosure
from disclosure_pipeline.tables.contract import (
    CanonicalTable,
    ContractError,
    Violation,
    shared_identifiers,
)
from disclosure_pipeline.tables.fingerprint import content_sha256
from disclosure_pipeline.tables.levels import GROUND_TRUTH
from disclosure_pipeline.tables.sources import FORMATS, Source

_CHANGED = "The ground truth changed while it was read: run again."


class RefusedError(DisclosurePipelineError):
    """The policy does not let the candidate pass; the message lists the reasons."""


class UndeterminedError(DisclosurePipelineError):
    """It could not be determined whether the candidate may be released; the message lists the reasons."""


@dataclass(frozen=True)
class GateFolders:
    """A gate and where its tables, records and releases lie."""

    gate: Gate
    ground_truth: Source
    incoming: Path
    store: Store
    releases: Path
    waivers: tuple[Waiver, ...]
    trusted_keys: Path | tuple[TrustedKey, ...]


@dataclass(frozen=True)
class GroundTruth:
    """What is recorded of GT: its hash and size, and where it breaks the data dictionary."""

    sha256: str
    records: int
    violations: tuple[Violation, ...]


@dataclass(frozen=True)
class Arrival:
    """A candidate as it arrived: its snapshot, its violations, and how much of each key it shares with GT.

    Where the contract is broken nothing is compared: no overlap is there.
    """

    snapshot: Snapshot
    records: tuple[int, ...]
    violations: tuple[Violation, ...]
    key_overlap: pd.DataFrame
    overlaps: tuple[Judgement, ...]


@dataclass(frozen=True)
class Evaluation:
    """What was measured, the verdict on it, and the dossier that says both."""

    result: Disclosure
    judgements: tuple[Judgement, ...]
    refused_waivers: tuple[RefusedWaiver, ...]
    dossier: dict[str, Any]


def record_ground_truth(folders: GateFolders) -> GroundTruth:
    """Check GT and record its hash, if it keeps its contract. StoreError where it is not there."""
    engine, _ = engine_for(folders.gate, [folders.ground_truth])
    try:
        found, digest = _read_ground_truth(folders, engine)
    except ContractError as broken:
        return GroundTruth(folders.ground_truth.sha256() or "", 0, broken.violations)
    recorded = {
        "sha256": digest,
        "records": tables.records(found),
        "recorded_at": datetime.now(timezone.utc).isoformat(),
    }
    write_json(folders.store.ground_truth, recorded)
    return GroundTruth(digest, tables.records(found), ())


def _read_ground_truth(folders: GateFolders, engine: Here | None) -> tuple[Table, str]:
    """GT in canonical form, and its sha256: of its bytes, or of what was read from a database.

    StoreError where it is not there, or changes while it is read.
    """
    source, gate = folders.ground_truth, folders.gate
    if not source.exists():
        raise StoreError("The ground truth is not where the gate's definition says.")
    before = source.sha256()
    found = tables.read(gate, engine, source, GROUND_TRUTH, only_known=False)
    if source.sha256() != before:
        raise StoreError(_CHANGED)
    if before is not None:
        return found, before
    if isinstance(found, DatabaseTable):
        return found, values_sha256(found)
    assert isinstance(found, CanonicalTable)  # what is in a database is not read in batches
    return found, content_sha256(found.frame)


def _require_unchanged(folders: GateFolders, engine: Here | None, digest: str) -> None:
    """StoreError unless GT is what it was before the work that read it again, where it is not in memory."""
    if engine != "memory" and folders.ground_truth.sha256() not in {None, digest}:
        raise StoreError(_CHANGED)


def _read_recorded_ground_truth(folders: GateFolders, engine: Here | None) -> tuple[Table, str]:
    """As `_read_ground_truth`; StoreError where it is not the one that was recorded."""
    recorded = read_json(folders.store.ground_truth, "ground_truth")
    found, digest = _read_ground_truth(folders, engine)
    if recorded.get("sha256") != digest:
        raise StoreError("The ground truth is not the recorded one: run ground_truth, then this again.")
    return found, digest


def _read_synthesis(
    folders: GateFolders, engine: Here | None, file: StoredFile, stage: Path | None = None
) -> Table:
    """One table of a snapshot in canonical form, read from the stored bytes or their copy in `stage`."""
    stored = _stored(folders, file, stage)
    return tables.read(folders.gate, engine, stored, _named(file), only_known=True)


def _stored(folders: GateFolders, file: StoredFile, stage: Path | None = None) -> Path:
    return folders.store.stored(file) if stage is None else stage / file.name


def _engine(folders: GateFolders, snapshot: Snapshot) -> tuple[Here | None, str]:
    """The engine for GT and a candidate, and how it is told."""
    stored = [folders.store.stored(file) for file in snapshot.files]
    return engine_for(folders.gate, [folders.ground_truth, *stored])


def _named(file: StoredFile) -> str:
    return f"synthetic table {file.name!r}"


def _identifiers(
    folders: GateFolders, snapshot: Snapshot, ground_truth: Table, syntheses: Sequence[Table]
) -> list[Violation]:
    """Where a candidate holds identifiers of GT. A gate with identifiers reads all tables into memory."""
    if not isinstance(ground_truth, CanonicalTable):
        return []
    return [
        violation
        for file, table in zip(snapshot.files, syntheses, strict=True)
        if isinstance(table, CanonicalTable)
        for violation in shared_identifiers(
            ground_truth.frame, table.frame, folders.gate.columns, _named(file)
        )
    ]


def deliver(folders: GateFolders, candidate: str, made: Any) -> Path:
    """Put tables that were made in memory (one DataFrame, or a list of them) where `receive` takes them."""
    checked_name(candidate, "candidate")
    tables = [made] if isinstance(made, pd.DataFrame) else made
    if not isinstance(tables, list | tuple) or not all(isinstance(table, pd.DataFrame) for table in tables):
        raise StoreError("The asset that makes the syntheses must give a pandas DataFrame or a list of them.")
    folder = folders.store.root / "delivered" / candidate
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for number, table in enumerate(tables, start=1):
        table.to_parquet(folder / f"synthesis_{number:04}.parquet", index=False)
    (folder / MARKER).touch()
    return folder


def receive(folders: GateFolders, candidate: str, folder: Path | None = None) -> Arrival:
    """Take the snapshot of a candidate, check its contract and how much of each key it shares with GT.

    It is taken from the incoming folder of that name, or from `folder`.
    """
    checked_name(candidate, "candidate")
    snapshot = take_snapshot(folder or folders.incoming / candidate, candidate, folders.store, FORMATS)
    engine, _ = _engine(folders, snapshot)
    syntheses: list[Table] = []
    violations: list[Violation] = []
    for file in snapshot.files:
        try:
            syntheses.append(_read_synthesis(folders, engine, file))
        except ContractError as broken:
            violations += broken.violations
    records = tuple(map(tables.records, syntheses))
    if violations:
        return Arrival(snapshot, records, tuple(violations), pd.DataFrame(), ())
    ground_truth, digest = _read_recorded_ground_truth(folders, engine)
    violations += _identifiers(folders, snapshot, ground_truth, syntheses)
    if violations:
        return Arrival(snapshot, records, tuple(violations), pd.DataFrame(), ())
    gate = folders.gate
    overlap = tables.overlap(gate, [ground_truth, *syntheses])
    _require_unchanged(folders, engine, digest)
    overlaps = tuple(
        hold(clause, smallest_overlap(overlap, clause.column), len(syntheses))
        for clause in gate.clauses()
        if clause.measure == "key_overlap"
    )
    return Arrival(snapshot, records, (), overlap, overlaps)


def group_levels(folders: GateFolders, candidate: str) -> pd.DataFrame:
    """The groups of every grouped column and the records in each (see `evaluation.bins`).

    Groups of too few GT records to be told are left out.
    """
    snapshot = load_snapshot(candidate, folders.store)
    engine, _ = _engine(folders, snapshot)
    ground_truth, digest = _read_recorded_ground_truth(folders, engine)
    syntheses = [_read_synthesis(folders, engine, file) for file in snapshot.files]
    groups = tables.groups(folders.gate, [ground_truth, *syntheses])
    _require_unchanged(folders, engine, digest)
    return groups[groups["GT"] >= folders.gate.policy.smallest_count].reset_index(drop=True)


def evaluate(folders: GateFolders, candidate: str, now: datetime, stage: Path | None = None) -> Evaluation:
    """Measure the snapshot against GT and hold the figures against the policy and the waivers of that time.

    The tables are read from the store, or from a copy of them in `stage`. Raises ContractError, InputError
    or StoreError where anything is not as it must be.
    """
    gate = folders.gate
    snapshot = load_snapshot(candidate, folders.store)
    engine, told = _engine(folders, snapshot)
    ground_truth, digest = _read_recorded_ground_truth(folders, engine)
    syntheses = [_read_synthesis(folders, engine, file, stage) for file in snapshot.files]
    identifiers = _identifiers(folders, snapshot, ground_truth, syntheses)
    if identifiers:
        raise ContractError(identifiers)
    everything = [ground_truth, *syntheses]
    result = tables.measure(gate, everything, told)
    judgements, refused_waivers = waive(
        judge(gate.clauses(), result),
        folders.waivers,
        gate=gate.name,
        snapshot=snapshot.sha256,
        policy_digest=gate.policy_digest(),
        now=now,
    )
    measured = {"ground_truth": digest, "snapshot": snapshot.sha256}
    ledger = [change for table in everything for change in table.ledger]
    copies = tables.copies(gate, everything)
    _require_unchanged(folders, engine, digest)
    content = dossier(gate, candidate, measured, result, judgements, ledger, copies, refused_waivers)
    return Evaluation(result, judgements, refused_waivers, content)


def reasons(evaluation: Evaluation) -> list[str]:
    """The clauses and waivers that stand against a release."""
    return [
        *(
            str(judgement)
            for judgement in evaluation.judgements
            if judgement.outcome == "undetermined"
            or (judgement.outcome == "exceeded" and not judgement.clause.warns)
        ),
        *map(str, evaluation.refused_waivers),
    ]


def measure(folders: GateFolders, candidate: str, now: datetime) -> Evaluation:
    """Evaluate a candidate and record the figures for its dossier."""
    evaluation = evaluate(folders, candidate, now)
    write_json(folders.store.candidate(candidate) / "figures.json", evaluation.dossier)
    return evaluation


def file_dossier(folders: GateFolders, candidate: str) -> dict[str, Any]:
    """Write the dossier from the recorded figures, with what Great Expectations says of them.

    StoreError where they are of other tables or another policy; RefusedError where the suite and the policy
    do not agree on a clause.
    """
    folder = folders.store.candidate(candidate)
    content = read_json(folder / "figures.json", "identity_disclosure and attribute_disclosure")
    snapshot = load_snapshot(candidate, folders.store)
    recorded = read_json(folders.store.ground_truth, "ground_truth")
    measured = {"ground_truth": recorded.get("sha256"), "snapshot": snapshot.sha256}
    if content.get("measured") != measured or content.get("policy_digest") != folders.gate.policy_digest():
        raise StoreError(
            "The figures were measured with another ground truth, snapshot or policy: run "
            "identity_disclosure and attribute_disclosure again."
        )
    validation = validate(folders.gate.clauses(), content["figures"])
    disagreed = disagreements(validation.kept, content["clauses"])
    if disagreed:
        raise RefusedError(f"The expectation suite and the policy do not agree on {', '.join(disagreed)}.")
    write_json(folder / "validation.json", validation.results)
    for name, page in pages(content, validation).items():
        write_whole(folder / "evidence" / name, page.encode())
    write_whole(folder / "dossier.md", to_markdown(content).encode())
    # Last, so that where a dossier is its evidence is.
    write_json(folder / "dossier.json", content)
    return content


def evidence_page(folders: GateFolders, candidate: str) -> Path:
    """The first page of a candidate's Data Docs."""
    return folders.store.candidate(candidate) / "evidence" / INDEX


def against(content: Mapping[str, Any]) -> list[str]:
    """The names of the clauses, and the refused waivers, of a dossier that stand against a release."""
    return [
        *(
            clause["name"]
            for clause in content["clauses"]
            if clause["outcome"] not in {"kept", "waived"} and not clause["warns"]
        ),
        *(f"waiver {waiver['name']}" for waiver in content["waivers"] if waiver["problem"]),
    ]


def void_waivers(folders: GateFolders, content: Mapping[str, Any], now: datetime) -> list[str]:
    """The gate's waivers that can let nothing pass, and why; but for those of this dossier's content."""
    clauses = [clause.name for clause in folders.gate.clauses() if can_be_waived(clause)]
    arrived = {snapshot.sha256 for snapshot in folders.store.recorded()}
    found = []
    for waiver in folders.waivers:
        if waiver.snapshot == content["measured"]["snapshot"]:
            continue
        problem = waiver.problem(folders.gate.name, content["policy_digest"], clauses, now)
        if problem is None and waiver.snapshot not in arrived:
            problem = "no candidate has the content that it is for"
        if problem:
            found.append(f"{waiver.name} lets nothing pass: {problem}")
    return found
