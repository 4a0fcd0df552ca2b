"""How often a ground truth was asked: every new content that is measured against it is a question to it."""

from __future__ import annotations

import hashlib
import os

from disclosure_pipeline.candidates.files import StoreError, read_json, sync_folder
from disclosure_pipeline.candidates.folders import GateFolders, RefusedError
from disclosure_pipeline.candidates.store import Snapshot, Store

EVALUATIONS = "evaluations"
"""The folder of a store that records them."""


def count_evaluations(store: Store, ground_truth: str) -> int:
    """How many contents were measured against the ground truth of that sha256."""
    folder = store.root / EVALUATIONS / ground_truth
    return len(list(folder.iterdir())) if folder.is_dir() else 0


def count_recorded(store: Store) -> int:
    """The same of the ground truth that is recorded; where none is, of the one that was asked most."""
    try:
        sha256 = read_json(store.ground_truth, "ground_truth").get("sha256")
    except StoreError:
        folder = store.root / EVALUATIONS
        asked = [count_evaluations(store, path.name) for path in folder.iterdir()] if folder.is_dir() else []
        return max(asked, default=0)
    return count_evaluations(store, sha256) if isinstance(sha256, str) else 0


def record_evaluation(folders: GateFolders, snapshot: Snapshot, ground_truth: str) -> None:
    """Record that a candidate is measured against a ground truth, before it is; once for the same content.

    RefusedError where the policy's `evaluations_per_ground_truth` were made: whoever may ask without end
    learns the ground truth from the answers.
    """
    limit = folders.gate.policy.evaluations_per_ground_truth
    folder = folders.store.root / EVALUATIONS / ground_truth
    folder.mkdir(parents=True, exist_ok=True)
    question = folder / _hash_content(snapshot)
    if question.exists():
        return
    os.close(os.open(question, os.O_CREAT | os.O_WRONLY, 0o600))
    # Counted with this one in it, so that of several at the same moment none is overlooked.
    if count_evaluations(folders.store, ground_truth) > limit:
        question.unlink(missing_ok=True)
        raise RefusedError(
            f"Candidate {snapshot.candidate!r} is not measured: {limit} contents were measured against this "
            "ground truth, which is the limit (policy.evaluations_per_ground_truth)."
        )
    sync_folder(folder)


def _hash_content(snapshot: Snapshot) -> str:
    """The same for the same tables, whatever their files are called."""
    return hashlib.sha256("\n".join(sorted(file.sha256 for file in snapshot.files)).encode()).hexdigest()
