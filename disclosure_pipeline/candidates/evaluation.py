"""The verdict on a candidate: judge its figures by policy and waivers, and file the dossier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from disclosure_pipeline.candidates.arrival import (
    name_confidential_hash,
    read_recorded_ground_truth,
)
from disclosure_pipeline.candidates.clock import require_forward_clock
from disclosure_pipeline.candidates.measuring import (
    Measured,
    drop_rare_levels,
    measure_candidate,
    read_groups,
    read_measured,
    record_measured,
)
from disclosure_pipeline.candidates.power import read_power
from disclosure_pipeline.candidates.reading import (
    StagedTables,
    find_tables,
    open_candidate,
)
from disclosure_pipeline.candidates.released import (
    RELEASED,
    add_confidential,
    add_releases,
    list_earlier,
    name_releases,
)
from disclosure_pipeline.candidates.snapshot import Snapshot, load_snapshot, read_snapshot, read_snapshots
from disclosure_pipeline.candidates.store import GateFolders
from disclosure_pipeline.candidates.tried_remedies import try_remedies
from disclosure_pipeline.errors import (
    RefusedError,
    StoreError,
)
from disclosure_pipeline.evaluation.plots.drawing import start_drawing
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.evidence.dossier import build_dossier, to_markdown
from disclosure_pipeline.evidence.page.first_page import write_first_page
from disclosure_pipeline.evidence.page.rendering import PAGE, is_dossier, render_page
from disclosure_pipeline.evidence.validation import find_disagreements, start_validation, validating
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.verdict import Judgement, can_be_waived, judge, waive
from disclosure_pipeline.runtime.files import (
    read_json,
    read_json_if_whole,
    write_json,
    write_whole,
)


@dataclass(frozen=True)
class Evaluation:
    """The figures of a candidate, the judgements of all clauses, and the dossier with both."""

    result: Disclosure
    judgements: tuple[Judgement, ...]
    dossier: dict[str, Any]


def load_group_levels(folders: GateFolders, candidate: str) -> pd.DataFrame:
    """Return the groups of each grouped column and their counts, without those of too few GT records."""
    snapshot = read_snapshot(candidate, folders.store)
    groups = read_groups(folders, snapshot, read_recorded_ground_truth(folders))
    return _load_or_measure(folders, snapshot)[0].result.groups if groups is None else groups


def measure(folders: GateFolders, candidate: str, now: datetime) -> Evaluation:
    """Judge a candidate's figures, measuring it unless they are recorded, and write them for its dossier."""
    snapshot = read_snapshot(candidate, folders.store)
    measured, ground_truth = _load_or_measure(folders, snapshot, is_complete=True)
    evaluation = _judge(folders, snapshot, measured, ground_truth, now)
    write_json(folders.store.candidate_folder(candidate) / "figures.json", evaluation.dossier)
    return evaluation


def evaluate(
    folders: GateFolders, candidate: str, now: datetime, staged: StagedTables | None = None
) -> Evaluation:
    """Measure the snapshot of a candidate, or its `staged` tables, and judge the figures."""
    earlier = list_earlier(folders, candidate)
    # Staged files were compared with the snapshot as they were copied.
    read = load_snapshot if staged is None else read_snapshot
    snapshot = read(candidate, folders.store)
    tables = find_tables(folders, snapshot) if staged is None else staged.candidate
    with open_candidate(folders, tables) as opened:
        measured = measure_candidate(folders, opened, tables.engine)
    measured = add_confidential(folders, tables, measured)
    measured = add_releases(folders, tables, measured, opened.ground_truth, earlier)
    return _judge(folders, snapshot, measured, opened.ground_truth, now)


def _load_or_measure(
    folders: GateFolders, snapshot: Snapshot, *, is_complete: bool = False
) -> tuple[Measured, str]:
    """Return the figures that an earlier step recorded, or measure them, and GT's sha256.

    Comparisons with further confidential tables and with releases are only added if `is_complete`: later
    steps would not accept a record with a comparison with a table in a database, and measure everything
    again.
    """
    earlier = list_earlier(folders, snapshot.candidate) if is_complete else None
    digest = read_recorded_ground_truth(folders)
    tables = find_tables(folders, snapshot)
    measured = read_measured(folders, snapshot, digest)
    if measured is not None:  # the engine is not recorded, since no figure depends on it
        measured = replace(measured, result=replace(measured.result, engine=tables.engine.description))
        has_confidential = len(measured.result.confidential) > 0 or not folders.confidential
        if earlier is None or (has_confidential and measured.releases == earlier.digest):
            return measured, digest
    snapshot = load_snapshot(snapshot.candidate, folders.store)
    tables = replace(tables, snapshot=snapshot)
    if measured is None:
        with open_candidate(folders, tables) as opened:
            measured = measure_candidate(folders, opened, tables.engine)
            digest = opened.ground_truth
    if earlier is not None:
        measured = add_confidential(folders, tables, measured)
        measured = add_releases(folders, tables, measured, digest, earlier)
    record_measured(folders, snapshot, digest, measured)
    return drop_rare_levels(measured, folders.gate.policy.smallest_count), digest


def _judge(
    folders: GateFolders, snapshot: Snapshot, measured: Measured, ground_truth: str, now: datetime
) -> Evaluation:
    gate = folders.gate
    if measured.releases is None:
        raise StoreError("The candidate was not compared with earlier releases: run it again.")
    if any(waiver.snapshot == snapshot.sha256 for waiver in folders.waivers):
        require_forward_clock(folders.store, now)
    judgements, refused_waivers = waive(
        judge(gate.clauses(), measured.result),
        folders.waivers,
        gate=gate.name,
        snapshot=snapshot.sha256,
        policy_digest=gate.policy_digest(),
        now=now,
    )
    content = build_dossier(
        gate,
        snapshot.candidate,
        {
            "ground_truth": ground_truth,
            **{name_confidential_hash(name): digest for name, digest in measured.confidential.items()},
            "snapshot": snapshot.sha256,
            **name_releases(measured.releases),
        },
        measured.result,
        judgements,
        refused_waivers,
    )
    return Evaluation(measured.result, judgements, content)


def prepare_dossier() -> None:
    """Start the processes that validate and draw, so that they are ready when a dossier is filed."""
    start_validation()
    start_drawing()


def file_dossier(folders: GateFolders, candidate: str) -> dict[str, Any]:
    """Write the dossier from the recorded figures, with the results of Great Expectations.

    Raise StoreError if the figures are of other tables or another policy, and RefusedError if the expectation
    suite and the policy disagree on a clause.
    """
    folder = folders.store.candidate_folder(candidate)
    content = read_json(folder / "figures.json", "identity_risk and attribute_risk")
    snapshot = read_snapshot(candidate, folders.store)
    recorded = read_json(folders.store.ground_truth, "ground_truth")
    measured = content.get("measured", {})
    expected = {
        "ground_truth": recorded.get("sha256"),
        # A table without a sha256 before it is read is checked by the release, which measures again.
        **{
            label: source.sha256() or measured.get(label)
            for name, source in folders.confidential.items()
            for label in [name_confidential_hash(name)]
        },
        "snapshot": snapshot.sha256,
        # Other candidates may have been published since: the release measures beside them.
        **name_releases(measured.get(RELEASED, "")),
    }
    if measured != expected or content.get("policy_digest") != folders.gate.policy_digest():
        raise StoreError(
            "The figures were measured with another ground truth, snapshot or policy: run identity_risk and "
            "attribute_risk again."
        )
    with validating(folders.gate.clauses(), content["figures"]) as wait_for_validation:
        power = read_power(folders, expected["ground_truth"] or "")
        remedies = try_remedies(folders, snapshot, content)
        others = _read_other_dossiers(folders, candidate)
        page = render_page(content, others=others, power=power, remedies=remedies)
        validation = wait_for_validation()
    disagreeing = find_disagreements(validation.kept, content["clauses"])
    if disagreeing:
        raise RefusedError(f"The expectation suite and the policy disagree on {', '.join(disagreeing)}.")
    write_json(folder / "validation.json", validation.results)
    write_whole(folder / PAGE, page.encode())
    first_page = write_first_page(content, power, remedies)
    write_whole(folder / MARKDOWN, f"{first_page}\n{to_markdown(content)}".encode())
    write_whole(folder / FIRST_PAGE, first_page.encode())
    # Last, so that a dossier is never without its evidence.
    write_json(folder / "dossier.json", content)
    return content


FIRST_PAGE, MARKDOWN = "first_page.md", "dossier.md"


def read_first_page(folders: GateFolders, candidate: str) -> str:
    """Return the first page of a candidate's dossier as Markdown. Raise OSError if it is not filed."""
    return (folders.store.candidate_folder(candidate) / FIRST_PAGE).read_text(encoding="utf-8")


def locate_page(folders: GateFolders, candidate: str) -> Path:
    """Return the path of the page of a candidate's dossier."""
    return folders.store.candidate_folder(candidate) / PAGE


def link_to_page(gate: Gate, store: Path, page: Path) -> str:
    """Return the address of a page in a gate's folder of the store if `pages` shows it, else its path."""
    if gate.pages is None:
        return str(page)
    place = page.relative_to(store.parent)
    return f"{gate.pages.rstrip('/')}/{'/'.join(map(quote, place.parts))}"


def _read_other_dossiers(folders: GateFolders, candidate: str) -> list[dict[str, Any]]:
    """Return the dossiers of the gate's other candidates, oldest first, without unreadable ones."""
    files = [file for file in folders.store.list_dossiers() if file.parent.name != candidate]
    return list(filter(is_dossier, map(read_json_if_whole, files)))


def find_void_waivers(folders: GateFolders, content: Mapping[str, Any], now: datetime) -> list[str]:
    """Describe the waivers, other than those for this snapshot, that cannot let anything pass."""
    clauses = [clause.name for clause in folders.gate.clauses() if can_be_waived(clause)]
    arrived = {snapshot.sha256 for snapshot in read_snapshots(folders.store)}
    problems = []
    for waiver in folders.waivers:
        if waiver.snapshot == content["measured"]["snapshot"]:
            continue
        problem = waiver.find_problem(folders.gate.name, content["policy_digest"], clauses, now)
        if problem is None and waiver.snapshot not in arrived:
            problem = "no candidate has the content that it is for"
        if problem:
            problems.append(f"{waiver.name} has no effect: {problem}")
    return problems
