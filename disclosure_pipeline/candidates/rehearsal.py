"""A candidate judged as a run would, without a run: nothing of it is kept, and nothing is published.

The engine, the contract, the guards and the clauses are those of a run, for it is the same code over a store
of its own that is gone afterwards. One record stays: that the ground truth was asked. The answer is the same
as a run's, so it counts as one against `policy.evaluations_per_ground_truth`; otherwise whoever may ask
without end would learn the ground truth from the answers. The same content counts once, here and in a run
together.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from disclosure_pipeline.candidates.arrival import receive
from disclosure_pipeline.candidates.evaluation import list_refusal_reasons, measure
from disclosure_pipeline.candidates.evaluation_records import EVALUATIONS
from disclosure_pipeline.candidates.folders import GateFolders, UndeterminedError
from disclosure_pipeline.candidates.ground_truth import record_ground_truth
from disclosure_pipeline.candidates.moments import LAST_MOMENT
from disclosure_pipeline.candidates.near_tables import SKETCHES
from disclosure_pipeline.candidates.store import Store
from disclosure_pipeline.policy.verdict import Decision


@dataclass(frozen=True)
class Rehearsal:
    """What a run would decide on a candidate, and why; `dossier` is empty where nothing was measured."""

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
        return Rehearsal(decision, tuple(list_refusal_reasons(evaluation)), evaluation.dossier)


@contextmanager
def _open_scratch(folders: GateFolders) -> Iterator[GateFolders]:
    """The gate with an empty store inside its own, where stored tables are as safe as others.

    It shares the record of what the ground truth was asked, and about which tables, and knows the last moment
    that was recorded.
    """
    root = folders.store.root
    for shared in (EVALUATIONS, SKETCHES):
        (root / shared).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root, prefix=".rehearsal-") as name:
        scratch = Path(name)
        for shared in (EVALUATIONS, SKETCHES):
            (scratch / shared).symlink_to(root / shared, target_is_directory=True)
        if (root / LAST_MOMENT).is_file():
            shutil.copyfile(root / LAST_MOMENT, scratch / LAST_MOMENT)
        yield replace(folders, store=Store(scratch))
