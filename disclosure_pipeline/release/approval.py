"""One candidate through the gate: taken in, measured from the bytes of its snapshot, judged, told."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pandas as pd

from disclosure_pipeline.comparison import exact_copies
from disclosure_pipeline.errors import DisclosurePipelineError
from disclosure_pipeline.evaluation import bins, key_overlap
from disclosure_pipeline.evidence.dossier import dossier, to_markdown
from disclosure_pipeline.evidence.site import INDEX, pages
from disclosure_pipeline.evidence.validation import disagreements, validate
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.measured import smallest_overlap
from disclosure_pipeline.policy.trust import TrustedKey
from disclosure_pipeline.policy.verdict import Judgement, RefusedWaiver, can_be_waived, hold, judge, waive
from disclosure_pipeline.policy.waivers import Waiver
from disclosure_pipeline.release.files import StoreError, read_json, write_json, write_whole
from disclosure_pipeline.release.store import (
    MARKER,
    Snapshot,
    Store,
    StoredFile,
    checked_name,
    load_snapshot,
    take_snapshot,
)
from disclosure_pipeline.result import Disclosure
from disclosure_pipeline.tables.contract import (
    CanonicalTable,
    ContractError,
    Violation,
    read_canonical,
    shared_identifiers,
)
from disclosure_pipeline.tables.fingerprint import content_sha256
from disclosure_pipeline.tables.levels import GROUND_TRUTH
from disclosure_pipeline.tables.sources import FORMATS, Source


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
    try:
        found, digest = _read_ground_truth(folders)
    except ContractError as broken:
        return GroundTruth(folders.ground_truth.sha256() or "", 0, broken.violations)
    recorded = {
        "sha256": digest,
        "records": len(found.frame),
        "recorded_at": datetime.now(timezone.utc).isoformat(),
    }
    write_json(folders.store.ground_truth, recorded)
    return GroundTruth(digest, len(found.frame), ())


def _read_ground_truth(folders: GateFolders) -> tuple[CanonicalTable, str]:
    """GT in canonical form, and its sha256: of its bytes, or of what was read from a database.

    StoreError where it is not there, or changes while it is read.
    """
    source, gate = folders.ground_truth, folders.gate
    if not source.exists():
        raise StoreError("The ground truth is not where the gate's definition says.")
    before = source.sha256()
    found = read_canonical(source, gate.columns, GROUND_TRUTH, gate.measured, only_known=False)
    if source.sha256() != before:
        raise StoreError("The ground truth changed while it was read: run again.")
    return found, before or content_sha256(found.frame)


def _read_recorded_ground_truth(folders: GateFolders) -> tuple[CanonicalTable, str]:
    """As `_read_ground_truth`; StoreError where it is not the one that was recorded."""
    recorded = read_json(folders.store.ground_truth, "ground_truth")
    found, digest = _read_ground_truth(folders)
    if recorded.get("sha256") != digest:
        raise StoreError("The ground truth is not the recorded one: run ground_truth, then this again.")
    return found, digest


def _read_synthesis(folders: GateFolders, file: StoredFile, stage: Path | None = None) -> CanonicalTable:
    """One table of a snapshot in canonical form, read from the stored bytes or their copy in `stage`."""
    gate = folders.gate
    stored = folders.store.stored(file) if stage is None else stage / file.name
    return read_canonical(stored, gate.columns, _named(file), gate.measured, only_known=True)


def _named(file: StoredFile) -> str:
    return f"synthetic table {file.name!r}"


def _identifiers(
    folders: GateFolders, snapshot: Snapshot, ground_truth: pd.DataFrame, tables: Sequence[pd.DataFrame]
) -> list[Violation]:
    """Where a candidate holds identifiers of GT."""
    return [
        violation
        for file, table in zip(snapshot.files, tables, strict=True)
        for violation in shared_identifiers(ground_truth, table, folders.gate.columns, _named(file))
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
    tables: list[pd.DataFrame] = []
    violations: list[Violation] = []
    for file in snapshot.files:
        try:
            tables.append(_read_synthesis(folders, file).frame)
        except ContractError as broken:
            violations += broken.violations
    records = tuple(len(table) for table in tables)
    if violations:
        return Arrival(snapshot, records, tuple(violations), pd.DataFrame(), ())
    ground_truth = _read_recorded_ground_truth(folders)[0].frame
    violations += _identifiers(folders, snapshot, ground_truth, tables)
    if violations:
        return Arrival(snapshot, records, tuple(violations), pd.DataFrame(), ())
    gate = folders.gate
    overlap = key_overlap(ground_truth, tables, list(gate.keys), **_of_keys(gate))
    overlaps = tuple(
        hold(clause, smallest_overlap(overlap, clause.column), len(tables))
        for clause in gate.clauses()
        if clause.measure == "key_overlap"
    )
    return Arrival(snapshot, records, (), overlap, overlaps)


def _of_keys(gate: Gate) -> dict[str, Any]:
    """The grouping of the keys alone."""
    grouping = gate.grouping
    groups = {name: groups for name, groups in grouping["groups"].items() if name in gate.keys}
    edges = grouping["edges"]
    if isinstance(edges, Mapping):
        edges = {name: given for name, given in edges.items() if name in gate.keys}
    return grouping | {"groups": groups, "edges": edges}


def group_levels(folders: GateFolders, candidate: str) -> pd.DataFrame:
    """The groups of every grouped column and the records in each (see `evaluation.bins`).

    Groups of too few GT records to be told are left out.
    """
    ground_truth = _read_recorded_ground_truth(folders)[0].frame
    snapshot = load_snapshot(candidate, folders.store)
    gate = folders.gate
    tables = [_read_synthesis(folders, file).frame for file in snapshot.files]
    groups = bins(ground_truth, tables, list(gate.keys), list(gate.targets), **gate.grouping)
    return groups[groups["GT"] >= gate.policy.smallest_count].reset_index(drop=True)


def evaluate(folders: GateFolders, candidate: str, now: datetime, stage: Path | None = None) -> Evaluation:
    """Measure the snapshot against GT and hold the figures against the policy and the waivers of that time.

    The tables are read from the store, or from a copy of them in `stage`. Raises ContractError, InputError
    or StoreError where anything is not as it must be.
    """
    gate = folders.gate
    snapshot = load_snapshot(candidate, folders.store)
    ground_truth, digest = _read_recorded_ground_truth(folders)
    tables = [_read_synthesis(folders, file, stage) for file in snapshot.files]
    frames = [table.frame for table in tables]
    identifiers = _identifiers(folders, snapshot, ground_truth.frame, frames)
    if identifiers:
        raise ContractError(identifiers)
    result = gate.measure(ground_truth.frame, frames)
    judgements, refused_waivers = waive(
        judge(gate.clauses(), result),
        folders.waivers,
        gate=gate.name,
        snapshot=snapshot.sha256,
        policy_digest=gate.policy_digest(),
        now=now,
    )
    measured = {"ground_truth": digest, "snapshot": snapshot.sha256}
    ledger = [change for table in (ground_truth, *tables) for change in table.ledger]
    copies = exact_copies(ground_truth.frame, frames)
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
