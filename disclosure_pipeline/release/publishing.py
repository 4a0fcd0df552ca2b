"""Publishing: the very bytes that were measured, everything at once, once."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from disclosure_pipeline.candidates.files import StoreError, copy_hashed, sync_folder
from disclosure_pipeline.candidates.store import Snapshot, Store

# Not allowed in a candidate's id: it separates the id from what makes a staged folder's name unique.
_SEPARATOR = "~"


@contextmanager
def stage_snapshot(snapshot: Snapshot, store: Store, releases: Path) -> Iterator[Path]:
    """A copy of a snapshot's bytes that nobody else writes to, next to where it will be published.

    What is measured there and what is published are the same bytes, whatever happens to the store. One
    release of a candidate at a time; what a killed one left is removed. StoreError where the stored bytes
    are not those of the snapshot.
    """
    releases.mkdir(parents=True, exist_ok=True)
    with _hold_lock(store.candidate_folder(snapshot.candidate) / "release.lock"):
        prefix = f".partial-{snapshot.candidate}{_SEPARATOR}"
        for abandoned in releases.glob(f"{prefix}*"):
            shutil.rmtree(abandoned)
        stage = Path(tempfile.mkdtemp(dir=releases, prefix=prefix))
        try:
            for file in snapshot.files:
                with store.stored_path(file).open("rb") as original, (stage / file.name).open("xb") as copy:
                    copied = copy_hashed(original, copy)
                if copied.sha256 != file.sha256:
                    raise StoreError(f"The stored bytes of {file.name!r} changed: run synthetic again.")
            yield stage
        finally:
            shutil.rmtree(stage, ignore_errors=True)


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
