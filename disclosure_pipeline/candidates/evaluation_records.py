"""The count of evaluations of a ground truth: one for every content that was measured against it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence

from disclosure_pipeline.candidates.files import StoreError, hold_lock, read_json, sync_folder
from disclosure_pipeline.candidates.linked_tables import list_syntheses
from disclosure_pipeline.candidates.near_tables import (
    SKETCHES,
    SketchedTable,
    is_recorded,
    record_tables,
    require_far_tables,
)
from disclosure_pipeline.candidates.store import GateFolders, RefusedError, Snapshot, Store
from disclosure_pipeline.policy.gate import Gate

EVALUATIONS = "evaluations"
"""The folder of a store that records them."""


def count_evaluations(store: Store, ground_truth: str) -> int:
    """Return how many contents were measured against the ground truth of that sha256."""
    folder = store.root / EVALUATIONS / ground_truth
    return len(list(folder.iterdir())) if folder.is_dir() else 0


def count_recorded(store: Store) -> int:
    """Count those of the recorded ground truth; where none is, of the one that was evaluated most."""
    try:
        sha256 = read_json(store.ground_truth, "ground_truth").get("sha256")
    except StoreError:
        folder = store.root / EVALUATIONS
        numbers = (
            [count_evaluations(store, path.name) for path in folder.iterdir()] if folder.is_dir() else []
        )
        return max(numbers, default=0)
    return count_evaluations(store, sha256) if isinstance(sha256, str) else 0


def record_evaluation(
    folders: GateFolders,
    snapshot: Snapshot,
    ground_truth: str,
    sketch_tables: Callable[[], Sequence[SketchedTable]],
) -> None:
    """Record that a candidate is measured against a ground truth, before it is; once for the same content.

    `sketch_tables` gives its tables, and is called unless they are recorded. RefusedError where the policy's
    `evaluations_per_ground_truth` were made, or where a table differs in too few records from another one of
    the candidate or from one that was measured before: whoever may ask without end, or about single
    records, learns the ground truth from the answers.
    """
    store, gate = folders.store, folders.gate
    content = _hash_content(gate, snapshot)
    folder = store.root / EVALUATIONS / ground_truth
    folder.mkdir(parents=True, exist_ok=True)
    evaluation = folder / content
    tables = None if is_recorded(store, gate, content, ground_truth) else sketch_tables()
    if tables is None and evaluation.exists():
        return
    (store.root / SKETCHES).mkdir(exist_ok=True)
    with hold_lock(
        store.root / SKETCHES / "measured.lock"
    ):  # of several at the same moment none is overlooked
        limit = gate.policy.evaluations_per_ground_truth
        if not evaluation.exists() and count_evaluations(store, ground_truth) >= limit:
            raise RefusedError(
                f"Candidate {snapshot.candidate!r} is not measured: {limit} contents were measured against "
                "this ground truth, which is the limit (policy.evaluations_per_ground_truth)."
            )
        if tables is not None:
            require_far_tables(store, gate, snapshot.candidate, content, tables)
            record_tables(store, gate, snapshot.candidate, content, ground_truth, tables)
        os.close(os.open(evaluation, os.O_CREAT | os.O_WRONLY, 0o600))
        sync_folder(folder)


def _hash_content(gate: Gate, snapshot: Snapshot) -> str:
    """Return the same for the same tables, whatever their files are called."""
    tables = [" ".join(file.sha256 for file in files) for files in list_syntheses(gate, snapshot)]
    return hashlib.sha256("\n".join(sorted(tables)).encode()).hexdigest()
