"""Publishing: what was measured, everything at once, once."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from disclosure_pipeline.candidates.files import StoreError, copy_hashed, hold_lock, sync_folder
from disclosure_pipeline.candidates.store import Snapshot, Store, is_safe_name

# Not allowed in a candidate's id: it separates the id from what makes a staged folder's name unique.
_SEPARATOR = "~"


@dataclass(frozen=True)
class Stage:
    """Two folders that nobody else writes to: the copy of what arrived, and what becomes the release."""

    arrived: Path
    release: Path


@contextmanager
def stage_snapshot(snapshot: Snapshot, store: Store, staging: Path) -> Iterator[Stage]:
    """A copy of a snapshot's bytes and an empty folder for the release, in one folder of `staging`.

    What is measured and what is written anew for the release are the same tables, whatever happens to the
    store. One release of a candidate at a time; what a killed one left is removed. StoreError where the
    stored bytes are not those of the snapshot.
    """
    staging.mkdir(parents=True, exist_ok=True)
    with hold_lock(_lock_path(store, snapshot.candidate)):
        prefix = f".partial-{snapshot.candidate}{_SEPARATOR}"
        for abandoned in staging.glob(f"{prefix}*"):
            shutil.rmtree(abandoned)
        folder = Path(tempfile.mkdtemp(dir=staging, prefix=prefix))
        stage = Stage(folder / "arrived", folder / "release")
        try:
            stage.arrived.mkdir()
            stage.release.mkdir()
            for file in snapshot.files:
                target = stage.arrived / file.name
                with store.stored_path(file).open("rb") as original, target.open("xb") as copy:
                    copied = copy_hashed(original, copy)
                if copied.sha256 != file.sha256:
                    raise StoreError(f"The stored bytes of {file.name!r} changed: run synthetic again.")
            yield stage
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def remove_abandoned(store: Store, staging: Path) -> None:
    """Remove what killed releases of any candidate left in `staging`; what a running one has stays."""
    for stage in sorted(staging.glob(f".partial-*{_SEPARATOR}*")) if staging.is_dir() else []:
        candidate = stage.name.removeprefix(".partial-").partition(_SEPARATOR)[0]
        if stage.is_symlink() or not is_safe_name(candidate):
            continue
        with suppress(BlockingIOError), hold_lock(_lock_path(store, candidate), wait=False):
            shutil.rmtree(stage, ignore_errors=True)


def require_one_file_system(staging: Path, releases: Path) -> None:
    """StoreError unless a staged folder can get its final name among the releases in one step."""
    staging.mkdir(parents=True, exist_ok=True)
    releases.mkdir(parents=True, exist_ok=True)
    if staging.stat().st_dev != releases.stat().st_dev:
        raise StoreError(
            f"{staging} and {releases} lie on two file systems: nothing can be published in one step. Let "
            "releases be a folder within what is mounted there."
        )


def _lock_path(store: Store, candidate: str) -> Path:
    folder = store.candidate_folder(candidate)
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "release.lock"


def publish(stage: Path, target: Path) -> None:
    """Give a staged folder its final name, in one step. OSError where the name is taken."""
    for path in stage.iterdir():
        path.chmod(0o644)
    stage.chmod(0o755)
    sync_folder(stage)
    stage.rename(target)
    sync_folder(target.parent)
