"""The verdict on a candidate: its figures, held against the policy and the waivers of that time."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd

from disclosure_pipeline.candidates.arrival import (
    name_measured,
    read_recorded_ground_truth,
    receive,
    record_ground_truth,
)
from disclosure_pipeline.candidates.evaluation_records import EVALUATIONS, SKETCHES, draw_seed
from disclosure_pipeline.candidates.filing import describe_broken_clauses
from disclosure_pipeline.candidates.measuring import (
    Measured,
    measure_against,
    measure_candidate,
    read_groups,
    read_measured,
    record_measured,
    without_rare_levels,
)
from disclosure_pipeline.candidates.reading import (
    StagedTables,
    choose_candidate_engine,
    name_confidential,
    open_candidate,
    read_confidential,
    read_syntheses,
)
from disclosure_pipeline.candidates.released import (
    RELEASED,
    add_releases,
    list_earlier,
    list_released_paths,
    name_releases,
)
from disclosure_pipeline.candidates.store import GateFolders, Snapshot, Store, load_snapshot, read_snapshot
from disclosure_pipeline.counting.opening import Engine
from disclosure_pipeline.errors import StoreError, UndeterminedError
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.evidence.dossier import build_dossier
from disclosure_pipeline.policy.registry import CONFIDENTIAL
from disclosure_pipeline.policy.verdict import Decision, Judgement, judge, waive
from disclosure_pipeline.runtime.files import read_json, write_json
from disclosure_pipeline.tables.messages import capitalized


def add_confidential(
    folders: GateFolders,
    snapshot: Snapshot,
    engine: Engine,
    measured: Measured,
    syntheses: Sequence[Any] | None = None,
    stage: Path | None = None,
) -> Measured:
    """Return what was measured of a candidate, and its copies of every further confidential table's records.

    In the frame `confidential`, index (confidential, synthesis), of each file and of all of them stacked;
    the sha256 of each table beside it. `syntheses`: the candidate's tables, where they are read already.
    StoreError where a table is not there or changes while it is read, ContractError where it breaks the
    dictionary: then nothing is determined.
    """
    digests: dict[str, str] = {}
    by_file: dict[str, pd.DataFrame] = {}
    stacked: dict[str, pd.DataFrame] = {}
    if not folders.confidential:
        return measured
    seed = draw_seed(folders.store)
    with ExitStack() as kept:
        if syntheses is None:
            syntheses = read_syntheses(folders, engine, snapshot, kept, stage)
        for name in folders.confidential:
            with ExitStack() as stack:
                table, digests[name] = read_confidential(folders, name, engine, stack)
                changed = f"{capitalized(name_confidential(name))} changed while it was read: run again."
                if measured.confidential.get(name, digests[name]) != digests[name]:
                    raise StoreError(changed)
                gate = folders.gate
                known = gate.published if gate.unit is None else (*gate.published, gate.unit)
                tables = [table.keep_columns(known), *syntheses]
                opened = stack.enter_context(engine.open_read(tables))
                by_file[name] = measure_against(gate, opened, seed)
                if len(syntheses) > 1:
                    stacked[name] = measure_against(gate, opened, seed, stacked=True)
                # A database reads its tables while they are measured.
                if not engine.gives_records and folders.confidential[name].sha256() not in {
                    None,
                    digests[name],
                }:
                    raise StoreError(changed)
    result = replace(measured.result, confidential=_join(by_file))
    if result.stacked is not None:
        result = replace(result, stacked=replace(result.stacked, confidential=_join(stacked)))
    return replace(measured, result=result, confidential=digests)


def _join(frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    return pd.concat(frames, names=[CONFIDENTIAL]) if frames else pd.DataFrame()


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
    engine = choose_candidate_engine(folders, snapshot) if staged is None else staged.engine
    syntheses = None if staged is None else staged.measured
    stage = None if staged is None else staged.folder
    with open_candidate(folders, snapshot, engine, syntheses, stage) as opened:
        measured = measure_candidate(folders.gate, opened, engine.name, draw_seed(folders.store))
    measured = add_confidential(folders, snapshot, engine, measured, syntheses, stage)
    measured = add_releases(folders, snapshot, measured, opened.ground_truth, earlier, stage)
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
    engine = choose_candidate_engine(folders, snapshot)
    measured = read_measured(folders, snapshot, digest)
    if measured is not None:  # who counts stands in no file: no figure depends on it
        measured = replace(measured, result=replace(measured.result, engine=engine.description))
        has_confidential = len(measured.result.confidential) > 0 or not folders.confidential
        if earlier is None or (has_confidential and measured.releases == earlier.digest):
            return measured, digest
    snapshot = load_snapshot(snapshot.candidate, folders.store)
    if measured is None:
        with open_candidate(folders, snapshot, engine) as opened:
            measured = measure_candidate(folders.gate, opened, engine.name, draw_seed(folders.store))
            digest = opened.ground_truth
    if earlier is not None:
        measured = add_confidential(folders, snapshot, engine, measured)
        measured = add_releases(folders, snapshot, measured, digest, earlier)
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


# Clocks of several machines may differ by so much, and may be set right by so much.
TOLERANCE = timedelta(minutes=5)

LAST_MOMENT = "last_moment.json"
"""The file of a store that records it."""


def require_forward_clock(store: Store, now: datetime) -> None:
    """Record that moment as the last one. UndeterminedError where one that was recorded is later.

    A clock that runs back would make waivers valid again that have expired, and date signatures into the
    period of a key that is over. Five minutes are allowed between machines.
    """
    last = _read(store)
    if last is not None and now < last - TOLERANCE:
        raise UndeterminedError(
            f"The clock shows {now.isoformat()}, but {last.isoformat()} was recorded before: no waiver is "
            f"applied and nothing is signed. Set the clock right; if the recorded moment is wrong, remove "
            f"{LAST_MOMENT} from the store."
        )
    if last is None or now > last:
        write_json(store.root / LAST_MOMENT, {"last_moment": now.isoformat()})


def _read(store: Store) -> datetime | None:
    path = store.root / LAST_MOMENT
    if not path.exists():
        return None
    try:
        moment = datetime.fromisoformat(read_json(path, "")["last_moment"])
        if moment.tzinfo is not None:
            return moment
    except (StoreError, KeyError, TypeError, ValueError):
        pass
    raise StoreError(f"{LAST_MOMENT} in the store is damaged: look at the clock, then remove the file.")
