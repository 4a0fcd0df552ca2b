"""A verdict on tables that are not a candidate yet, without a run."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from disclosure_pipeline.candidates.arrival import receive, record_ground_truth
from disclosure_pipeline.candidates.clock import LAST_MOMENT
from disclosure_pipeline.candidates.evaluation import measure
from disclosure_pipeline.candidates.evaluation_records import EVALUATIONS, SKETCHES
from disclosure_pipeline.candidates.power import read_power
from disclosure_pipeline.candidates.released import RELEASED, list_released_paths
from disclosure_pipeline.candidates.store import GateFolders, Store
from disclosure_pipeline.errors import UndeterminedError
from disclosure_pipeline.evidence.dossier import describe_broken_clauses
from disclosure_pipeline.evidence.page.rendering import render_page
from disclosure_pipeline.policy.verdict import Decision
from disclosure_pipeline.runtime.files import make_private, write_whole


@dataclass(frozen=True)
class Rehearsal:
    """The decision that a run would make, and why, and the file of its page.

    If nothing was measured, `dossier` is empty and there is no page.
    """

    decision: Decision
    reasons: tuple[str, ...]
    dossier: dict[str, Any]
    page: Path | None = None


REHEARSALS = "rehearsals"
"""The folder of the store with the pages of candidates that were judged without a run."""


def rehearse(folders: GateFolders, folder: Path, now: datetime) -> Rehearsal:
    """Judge the tables of a folder, which needs no marker file, against the current ground truth.

    The decision is "refused" if a table breaks its contract or a clause, and "undetermined" if the tables
    share too little to be compared. Raise UndeterminedError if the ground truth breaks its contract,
    RefusedError if too many candidates were measured against it, and StoreError if folder or ground truth are
    missing or unusable.
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
            decision = "undetermined"  # a run would end at the check of the overlap
        reasons = describe_broken_clauses(evaluation.dossier, folders.gate.policy.smallest_count)
    page = folders.store.root / REHEARSALS / f"{folder.name}.html"
    power = read_power(folders, evaluation.dossier["measured"]["ground_truth"])
    write_whole(page, render_page({**evaluation.dossier, "decision": decision}, power=power).encode())
    return Rehearsal(decision, tuple(reasons), evaluation.dossier, page)


@contextmanager
def _open_scratch(folders: GateFolders) -> Iterator[GateFolders]:
    """Return the gate with an empty store inside its own, so that its files are equally protected.

    The scratch store shares the records of evaluations and releases, and has the last recorded time.
    """
    root = folders.store.root
    make_private(root)
    for shared in (EVALUATIONS, SKETCHES):
        (root / shared).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root, prefix=".rehearsal-") as name:
        scratch = Path(name)
        for shared in (EVALUATIONS, SKETCHES, RELEASED):
            if (root / shared).is_dir():
                (scratch / shared).symlink_to(root / shared, target_is_directory=True)
        # Released files are linked, not copied.
        (scratch / "objects").mkdir()
        for path in list_released_paths(folders.store):
            (scratch / "objects" / path.name).symlink_to(path)
        if (root / LAST_MOMENT).is_file():
            shutil.copyfile(root / LAST_MOMENT, scratch / LAST_MOMENT)
        yield replace(folders, store=Store(scratch))
