"""The verdict on a candidate: its figures, held against policy and waivers, and filed with their evidence."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd

from disclosure_pipeline.candidates.arrival import (
    name_measured,
    read_recorded_ground_truth,
    receive,
    record_ground_truth,
)
from disclosure_pipeline.candidates.evaluation_records import EVALUATIONS, SKETCHES
from disclosure_pipeline.candidates.measuring import (
    Measured,
    measure_candidate,
    measure_without_controls,
    read_groups,
    read_measured,
    record_measured,
    without_rare_levels,
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
    list_released_paths,
    name_releases,
)
from disclosure_pipeline.candidates.store import (
    LAST_MOMENT,
    GateFolders,
    Snapshot,
    Store,
    load_snapshot,
    read_snapshot,
    require_forward_clock,
)
from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.errors import (
    DisclosurePipelineError,
    InputError,
    RefusedError,
    StoreError,
    UndeterminedError,
)
from disclosure_pipeline.evaluation.plots.drawing import start_drawing
from disclosure_pipeline.evaluation.remedies import Remedy, apply_remedy
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.evidence.dossier import build_dossier, describe_broken_clauses, to_markdown
from disclosure_pipeline.evidence.page.clauses_section import TriedRemedy
from disclosure_pipeline.evidence.page.rendering import PAGE, is_dossier, render_page
from disclosure_pipeline.evidence.validation import find_disagreements, start_validation, validating
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.registry import CONFIDENTIAL
from disclosure_pipeline.policy.verdict import Decision, Judgement, can_be_waived, judge, waive
from disclosure_pipeline.runtime.files import read_json, read_json_if_whole, write_json, write_whole
from disclosure_pipeline.tables.alignment import Tables, check_tables


@dataclass(frozen=True)
class Evaluation:
    """The figures of a candidate, the verdict on them, and the dossier that says both."""

    result: Disclosure
    judgements: tuple[Judgement, ...]
    dossier: dict[str, Any]


def load_group_levels(folders: GateFolders, candidate: str) -> pd.DataFrame:
    """Return the groups of each grouped column and their records, without those of too few GT records."""
    snapshot = read_snapshot(candidate, folders.store)
    groups = read_groups(folders, snapshot, read_recorded_ground_truth(folders))
    return _load_or_measure(folders, snapshot)[0].result.groups if groups is None else groups


def measure(folders: GateFolders, candidate: str, now: datetime) -> Evaluation:
    """Judge the figures of a candidate, measured unless they are recorded, and write them for its dossier."""
    snapshot = read_snapshot(candidate, folders.store)
    measured, ground_truth = _load_or_measure(folders, snapshot, is_complete=True)
    evaluation = _judge(folders, snapshot, measured, ground_truth, now)
    write_json(folders.store.candidate_folder(candidate) / "figures.json", evaluation.dossier)
    return evaluation


def evaluate(
    folders: GateFolders, candidate: str, now: datetime, staged: StagedTables | None = None
) -> Evaluation:
    """Measure the snapshot against GT, or its tables that are read already, and judge the figures."""
    earlier = list_earlier(folders, candidate)
    # What is staged was compared with the snapshot when it was copied there.
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
    """Return what an earlier step recorded of this candidate and the recorded GT, or what is measured now.

    The comparison with further confidential tables, and with what is published, is added only where it is
    wanted: a record that holds one with a table in a database is not believed by later steps, which would
    measure everything again.
    """
    earlier = list_earlier(folders, snapshot.candidate) if is_complete else None
    digest = read_recorded_ground_truth(folders)
    tables = find_tables(folders, snapshot)
    measured = read_measured(folders, snapshot, digest)
    if measured is not None:  # who counts stands in no file: no figure depends on it
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
    return without_rare_levels(measured, folders.gate.policy.smallest_count), digest


def _judge(
    folders: GateFolders, snapshot: Snapshot, measured: Measured, ground_truth: str, now: datetime
) -> Evaluation:
    gate = folders.gate
    if measured.releases is None:
        raise StoreError("The candidate was not measured beside what is published: run it again.")
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
            **{name_measured(name): digest for name, digest in measured.confidential.items()},
            "snapshot": snapshot.sha256,
            **name_releases(measured.releases),
        },
        measured.result,
        judgements,
        refused_waivers,
    )
    return Evaluation(measured.result, judgements, content)


@dataclass(frozen=True)
class Rehearsal:
    """The decision of a run on a candidate, and why; `dossier` is empty if nothing was measured."""

    decision: Decision
    reasons: tuple[str, ...]
    dossier: dict[str, Any]


def rehearse(folders: GateFolders, folder: Path, now: datetime) -> Rehearsal:
    """Judge the tables in a folder against the ground truth as it is now; no marker file is needed.

    Refused where a table breaks its contract or a clause; undetermined where the ground truth breaks its own,
    or the tables share too little to be compared. RefusedError where the ground truth was asked too often,
    StoreError where the folder or the ground truth is not there or holds something else.
    """
    with _open_scratch(folders) as scratch:
        recorded = record_ground_truth(scratch)
        if recorded.violations:
            raise UndeterminedError("; ".join(map(str, recorded.violations)))
        arrival = receive(scratch, folder.name, folder, needs_marker=False)
        if arrival.violations:
            return Rehearsal("refused", tuple(map(str, arrival.violations)), {})
        evaluation = measure(scratch, folder.name, now)
        decision: Decision = evaluation.dossier["decision"]
        if any(judgement.outcome != "kept" for judgement in arrival.overlaps):
            decision = "undetermined"  # in a run a check stops it before anything is decided
        reasons = describe_broken_clauses(evaluation.dossier, folders.gate.policy.smallest_count).values()
        return Rehearsal(decision, tuple(reasons), evaluation.dossier)


@contextmanager
def _open_scratch(folders: GateFolders) -> Iterator[GateFolders]:
    """Return the gate with an empty store inside its own, where stored tables are as safe as others.

    It shares the record of what the ground truth was asked, and about which tables, and knows the last moment
    that was recorded.
    """
    root = folders.store.root
    for shared in (EVALUATIONS, SKETCHES):
        (root / shared).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root, prefix=".rehearsal-") as name:
        scratch = Path(name)
        for shared in (EVALUATIONS, SKETCHES, RELEASED):
            if (root / shared).is_dir():
                (scratch / shared).symlink_to(root / shared, target_is_directory=True)
        # The bytes of what is published lie where they are.
        (scratch / "objects").mkdir()
        for path in list_released_paths(folders.store):
            (scratch / "objects" / path.name).symlink_to(path)
        if (root / LAST_MOMENT).is_file():
            shutil.copyfile(root / LAST_MOMENT, scratch / LAST_MOMENT)
        yield replace(folders, store=Store(scratch))


# Recoding needs somebody who knows the columns; these need nothing.
_REMEDIES: Mapping[str, tuple[Remedy, ...]] = {
    "Take out the copies of one person": (Remedy.remove_unique_copies(),),
    "Take out the records that single a person out": (Remedy.remove_replicated_uniques(),),
    "Take out both": (Remedy.remove_unique_copies(), Remedy.remove_replicated_uniques()),
    "Blank the targets that copies tell": (Remedy.blank_copied_targets(),),
}
_MOST_RECORDS = 100_000  # of all tables together: a refusal is not to wait for minutes
_SECONDS = 10.0


def try_remedies(
    folders: GateFolders, snapshot: Snapshot, content: Mapping[str, Any]
) -> list[TriedRemedy] | None:
    """Try each remedy on the tables of a candidate for which there is time; `content` is its dossier.

    None where the candidate is not refused, or the gate wants none. Large tables, and those that do not lie
    in memory, are not tried.
    """
    gate = folders.gate
    if not gate.remedies or content["decision"] != "refused":
        return None
    candidate, figures = find_tables(folders, snapshot), content["figures"]
    if not candidate.engine.holds_frames or sum((figures["N_d"], *figures["N_s"])) > _MOST_RECORDS:
        return []
    tried: list[TriedRemedy] = []
    # Whatever cannot be tried is left out: the verdict stands without it.
    with suppress(DisclosurePipelineError), open_candidate(folders, candidate) as opened:
        frames = opened.opened.frames or ()
        if not frames:
            return []
        tables = check_tables(frames[0], frames[1:], gate.keys, gate.targets, gate.grouping)
        end = time.monotonic() + _SECONDS
        for name, remedies in _REMEDIES.items():
            if time.monotonic() < end:
                with suppress(InputError):  # it leaves no record
                    tried.append(_try(gate, name, remedies, tables, content["clauses"]))
    return tried


def _try(
    gate: Gate,
    name: str,
    remedies: tuple[Remedy, ...],
    tables: Tables,
    clauses: Sequence[Mapping[str, Any]],
) -> TriedRemedy:
    after, changed = apply_remedy(remedies, tables)
    result = measure_without_controls(gate, FramesInMemory(after.frames, "memory"))
    outcomes = {clause["name"]: clause["outcome"] for clause in clauses}
    values = {}
    for judgement in judge(gate.clauses(), result):
        # What cannot be tried here is as it was: controls, and further confidential tables. A waiver is for
        # the content as it is: what is changed has to keep the clause.
        if not judgement.clause.control and judgement.clause.column not in gate.confidential:
            outcomes[judgement.clause.name] = judgement.outcome
            values[judgement.clause.name] = judgement.value
    return TriedRemedy(
        name=name,
        lost=sum(map(len, tables.frames[1:])) - sum(map(len, after.frames[1:])),
        blanked=sum(changed),
        broken=tuple(
            clause["name"] for clause in clauses if outcomes[clause["name"]] != "kept" and not clause["warns"]
        ),
        values=values,
        distance=float(result.columns_apart["TVD"].max()),
    )


def prepare_dossier() -> None:
    """Start the processes that validate and draw: they are ready when a dossier is to be filed."""
    start_validation()
    start_drawing()


def file_dossier(folders: GateFolders, candidate: str) -> dict[str, Any]:
    """Write the dossier from the recorded figures, with what Great Expectations says of them.

    StoreError where they are of other tables or another policy; RefusedError where the suite and the policy
    do not agree on a clause.
    """
    folder = folders.store.candidate_folder(candidate)
    content = read_json(folder / "figures.json", "identity_risk and attribute_risk")
    snapshot = read_snapshot(candidate, folders.store)
    recorded = read_json(folders.store.ground_truth, "ground_truth")
    of_figures = content.get("measured", {})
    measured = {
        "ground_truth": recorded.get("sha256"),
        # What has no sha256 before it is read is compared by the release, which measures again.
        **{
            label: source.sha256() or of_figures.get(label)
            for name, source in folders.confidential.items()
            for label in [f"{CONFIDENTIAL}[{name}]"]
        },
        "snapshot": snapshot.sha256,
        # Another candidate may be published meanwhile: the release measures beside that, too.
        **name_releases(of_figures.get(RELEASED, "")),
    }
    if of_figures != measured or content.get("policy_digest") != folders.gate.policy_digest():
        raise StoreError(
            "The figures were measured with another ground truth, snapshot or policy: run identity_risk and "
            "attribute_risk again."
        )
    with validating(folders.gate.clauses(), content["figures"]) as wait_for_validation:
        power = read_power(folders, measured["ground_truth"] or "")
        remedies = try_remedies(folders, snapshot, content)
        others = _read_others(folders, candidate)
        page = render_page(content, others=others, power=power, remedies=remedies)
        validation = wait_for_validation()
    disagreeing = find_disagreements(validation.kept, content["clauses"])
    if disagreeing:
        raise RefusedError(f"The expectation suite and the policy do not agree on {', '.join(disagreeing)}.")
    write_json(folder / "validation.json", validation.results)
    write_whole(folder / PAGE, page.encode())
    write_whole(folder / "dossier.md", to_markdown(content).encode())
    # Last, so that where a dossier is its evidence is.
    write_json(folder / "dossier.json", content)
    return content


def path_of_page(folders: GateFolders, candidate: str) -> Path:
    """Return the page of a candidate's dossier."""
    return folders.store.candidate_folder(candidate) / PAGE


def _read_others(folders: GateFolders, candidate: str) -> list[dict[str, Any]]:
    """Read the dossiers of the gate's other candidates, oldest file first; skip unreadable ones."""
    files = [
        file
        for file in folders.store.candidate_folder(candidate).parent.glob("*/dossier.json")
        if file.parent.name != candidate
    ]
    others = []
    for file in sorted(files, key=lambda file: (file.stat().st_mtime_ns, file.parent.name)):
        dossier = read_json_if_whole(file)
        if is_dossier(dossier):
            others.append(dossier)
    return others


def find_void_waivers(folders: GateFolders, content: Mapping[str, Any], now: datetime) -> list[str]:
    """Find the gate's waivers that can let nothing pass, and why, but for those for this snapshot."""
    clauses = [clause.name for clause in folders.gate.clauses() if can_be_waived(clause)]
    arrived = {snapshot.sha256 for snapshot in folders.store.read_snapshots()}
    problems = []
    for waiver in folders.waivers:
        if waiver.snapshot == content["measured"]["snapshot"]:
            continue
        problem = waiver.problem(folders.gate.name, content["policy_digest"], clauses, now)
        if problem is None and waiver.snapshot not in arrived:
            problem = "no candidate has the content that it is for"
        if problem:
            problems.append(f"{waiver.name} lets nothing pass: {problem}")
    return problems
