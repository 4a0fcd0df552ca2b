"""Publishing: everything at once, once."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from disclosure_pipeline.release.files import (
    StoreError,
    read_json,
    sha256_of,
    sync_folder,
    write_json,
    write_whole,
)
from disclosure_pipeline.release.store import Snapshot, Store

MANIFEST = "manifest.json"


def publish(
    snapshot: Snapshot, store: Store, releases: Path, manifest: Mapping[str, Any]
) -> tuple[Path, bool]:
    """Put the snapshot's bytes and the manifest into `releases/<candidate>`, by one atomic rename.

    Returns the folder, and whether it was published now: a candidate that is there already, with the same
    content, is left untouched. StoreError where it is there with other content, or where the stored bytes
    are no longer those of the snapshot.
    """
    target = releases / snapshot.candidate
    if target.exists():
        _require_same(target, snapshot)
        return target, False
    releases.mkdir(parents=True, exist_ok=True)
    staged = Path(tempfile.mkdtemp(dir=releases, prefix=".partial-"))
    try:
        for file in snapshot.files:
            content = store.stored(file).read_bytes()
            write_whole(staged / file.name, content)
            if sha256_of(staged / file.name) != file.sha256:
                raise StoreError(f"The stored bytes of {file.name!r} changed before they were published.")
        write_json(staged / MANIFEST, manifest)
        staged.chmod(0o755)
        sync_folder(staged)
        staged.rename(target)
    except OSError:
        # Somebody else was faster: the rename fails where the folder is there and not empty.
        if not target.exists():
            raise
        _require_same(target, snapshot)
        return target, False
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    sync_folder(releases)
    return target, True


def _require_same(target: Path, snapshot: Snapshot) -> None:
    expected = {file.name: file.sha256 for file in snapshot.files}
    published = {file["name"]: file["sha256"] for file in read_json(target / MANIFEST, "release")["files"]}
    there = {path.name: sha256_of(path) for path in target.iterdir() if path.name != MANIFEST}
    if not expected == published == there:
        raise StoreError(
            f"Candidate {snapshot.candidate!r} was published before with other content. A candidate is "
            "published once: give the new synthesis a name of its own."
        )
