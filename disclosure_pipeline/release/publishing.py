"""Publishing: what was measured, everything at once, once."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from disclosure_pipeline.candidates.files import StoreError, copy_hashed, sync_folder
from disclosure_pipeline.candidates.store import Snapshot, Store

# Not allowed in a candidate's id: it separates the id from what makes a staged folder's name unique.
_SEPARATOR = "~"


@dataclass(frozen=True)
class Stage:
    """Two folders that nobody else writes to: the copy of what arrived, and what becomes the release."""

    arrived: Path
    release: Path


@contextmanager
def stage_snapshot(snapshot: Snapshot, store: Store, releases: Path) -> Iterator[Stage]:
    """A copy of a snapshot's bytes, in the store, and an empty folder next to where it will be published.

    What is measured and what is written anew for the release are the same tables, whatever happens to the
    store. One release of a candidate at a time; what a killed one left is removed. StoreError where the
    stored bytes are not those of the snapshot.
    """
    staging = store.root / "staging"
    with _hold_lock(store.candidate_folder(snapshot.candidate) / "release.lock"), ExitStack() as stack:
        arrived, release = (
            stack.enter_context(_make_folder(parent, snapshot.candidate)) for parent in (staging, releases)
        )
        for file in snapshot.files:
            with store.stored_path(file).open("rb") as original, (arrived / file.name).open("xb") as copy:
                copied = copy_hashed(original, copy)
            if copied.sha256 != file.sha256:
                raise StoreError(f"The stored bytes of {file.name!r} changed: run synthetic again.")
        yield Stage(arrived, release)


@contextmanager
def _make_folder(parent: Path, candidate: str) -> Iterator[Path]:
    """An empty folder that is gone afterwards, unless it has another name by then."""
    parent.mkdir(parents=True, exist_ok=True)
    prefix = f".partial-{candidate}{_SEPARATOR}"
    for abandoned in parent.glob(f"{prefix}*"):
        shutil.rmtree(abandoned)
    folder = Path(tempfile.mkdtemp(dir=parent, prefix=prefix))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _hold_lock(path: Path) -> Iterator[None]:
    """Hold a lock that the system takes back when the process ends, however it ends."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def publish(stage: Path, target: Path) -> None:
    """Give a staged folder its final name, in one step. OSError where the name is taken."""
    for path in stage.iterdir():
        path.chmod(0o644)
    stage.chmod(0o755)
    sync_folder(stage)
    stage.rename(target)
    sync_folder(target.parent)
