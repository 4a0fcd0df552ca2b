"""Removing old tables of candidates that were refused or never judged."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from errno import ENOENT, ENOTEMPTY
from pathlib import Path, PurePath

from disclosure_pipeline.candidates.released import list_released_paths
from disclosure_pipeline.candidates.snapshot import Snapshot, read_snapshot
from disclosure_pipeline.candidates.store import PARTIAL_PREFIX, STATEMENT, Store, list_published
from disclosure_pipeline.errors import StoreError
from disclosure_pipeline.release.predicate import StatementError
from disclosure_pipeline.release.standing import CRASH
from disclosure_pipeline.release.statement import read_envelope, read_statement
from disclosure_pipeline.runtime.files import read_json

_SHA256 = re.compile(r"[0-9a-f]{64}")
_OBJECT = re.compile(r"([0-9a-f]{64})(\.[a-z0-9.]+)?")
# Prefixes of files in a candidate's folder that are not records.
_NOT_A_RECORD = (PARTIAL_PREFIX, "release.lock", CRASH)
_DECISIONS = ("approved", "refused", "undetermined")


@dataclass(frozen=True)
class Pruned:
    """The paths of removed files in the store, their total size, and the problems of unreadable records."""

    removed: tuple[str, ...]
    bytes: int
    unclear: tuple[str, ...]


def prune(
    store: Store, releases: Path, older_than: timedelta, now: datetime, *, dry_run: bool = False
) -> Pruned:
    """Remove stored bytes that no candidate of a gate needs, if they are older than `older_than`.

    A candidate needs its bytes if it is published or approved, or has a record younger than that. Remains of
    interrupted writing and of tables delivered in memory are removed, too. Records stay, as evidence; if one
    cannot be read, no candidate's bytes are removed. Nothing outside the store is touched and no link is
    followed. `releases` is the folder in which the gate publishes. With `dry_run`, only report what would be
    removed. Raise StoreError if the folders are not those of one gate.
    """
    if now.tzinfo is None or older_than <= timedelta(0):
        raise ValueError("now must have a time zone, and older_than must be positive.")
    _require_folders(store.root, releases)
    cutoff_ns = int((now - older_than).timestamp() * 1e9)
    needed, unclear = _find_needed(store, releases, cutoff_ns)
    unneeded = [*_find_partial_files(store.root), *_find_delivered_files(store.root, cutoff_ns)]
    if not unclear:
        unneeded += _find_unneeded_objects(store.root, needed)
    removed, total_size = [], 0
    for path in unneeded:
        size = _remove(store.root, path.relative_to(store.root), cutoff_ns, dry_run=dry_run)
        if size is not None:
            removed.append(path.relative_to(store.root).as_posix())
            total_size += size
    return Pruned(tuple(removed), total_size, tuple(unclear))


def _require_folders(root: Path, releases: Path) -> None:
    if not _is_folder(root) or not _is_folder(root / "candidates"):
        raise StoreError(f"{root} is not the store of a gate: give the folder named after the gate.")
    if not releases.is_dir() or releases.resolve().name != root.resolve().name:
        raise StoreError(
            f"{releases} is not where the candidates of {root} are published: give the folder of the same "
            "name among the releases; if nothing was ever published, make it first."
        )


def _find_needed(store: Store, releases: Path, cutoff_ns: int) -> tuple[set[str], list[str]]:
    """Return the sha256 of all needed files, and the problems of records that cannot be read."""
    needed: set[str] = set()
    unclear = []
    foreign = list_published(releases).foreign
    published = {path.name: path for path in releases.iterdir() if not path.name.startswith(PARTIAL_PREFIX)}
    for name, path in sorted(published.items()):
        if name in foreign:
            continue
        try:
            needed |= _read_released_hashes(path)
        except (StatementError, OSError) as error:
            unclear.append(f"release {name!r}: {error}")
    try:
        needed |= {path.name[:64] for path in list_released_paths(store)}
    except StoreError as error:
        unclear.append(str(error))
    for path in sorted((store.root / "candidates").iterdir()):
        try:
            snapshot = _read_snapshot(path, store)
            if snapshot and (path.name in published or _is_open(path, cutoff_ns)):
                needed |= {file.sha256 for file in snapshot.files}
        except (StoreError, OSError, TypeError, RecursionError) as error:
            unclear.append(f"candidate {path.name!r}: {error}")
    return needed, unclear


def _read_released_hashes(folder: Path) -> set[str]:
    """Return the stated sha256 of all files of a release, which may have changed since."""
    if not _is_folder(folder):
        raise StatementError("it is not a folder")
    envelope, _ = read_envelope((folder / STATEMENT).read_bytes())
    return set(read_statement(envelope.payload).files.values())


def _read_snapshot(folder: Path, store: Store) -> Snapshot | None:
    if not _is_folder(folder):
        raise StoreError("it is not a folder.")
    records = [path for path in folder.iterdir() if not path.name.startswith(_NOT_A_RECORD)]
    if not records:
        return None
    if any(path.is_symlink() for path in records):
        raise StoreError("one of its records is a link.")
    snapshot = read_snapshot(folder.name, store)
    if not all(_SHA256.fullmatch(file.sha256) for file in snapshot.files):
        raise StoreError("snapshot.json is damaged: run synthetic again.")
    return snapshot


def _is_open(folder: Path, cutoff_ns: int) -> bool:
    """Return True if an unpublished candidate is approved or has a recent record."""
    dossier = folder / "dossier.json"
    if dossier.exists():
        content = read_json(dossier, "dossier")
        if content.get("candidate") != folder.name or content.get("decision") not in _DECISIONS:
            raise StoreError("dossier.json is damaged: run dossier again.")
        if content["decision"] == "approved":
            return True
    records = (Path(place, name) for place, _, names in os.walk(folder) for name in names)
    return any(path.lstat().st_mtime_ns >= cutoff_ns for path in records)


def _find_unneeded_objects(root: Path, needed: set[str]) -> Iterator[Path]:
    for path in _list_folder(root / "objects"):
        stored = _OBJECT.fullmatch(path.name)
        if stored and stored[1] not in needed and path.is_file():
            yield path


def _find_partial_files(root: Path) -> Iterator[Path]:
    for place, _, names in os.walk(root):
        paths = (Path(place, name) for name in sorted(names) if name.startswith(PARTIAL_PREFIX))
        yield from (path for path in paths if path.is_file())


def _find_delivered_files(root: Path, cutoff_ns: int) -> Iterator[Path]:
    """Yield the files of folders delivered in memory long ago, each folder after its files."""
    for folder in _list_folder(root / "delivered"):
        files = _list_folder(folder)
        if _is_folder(folder) and all(path.lstat().st_mtime_ns < cutoff_ns for path in (folder, *files)):
            yield from files
            yield folder


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _list_folder(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if _is_folder(folder) else []


def _remove(root: Path, path: PurePath, cutoff_ns: int, *, dry_run: bool) -> int | None:
    """Remove an old regular file or an empty folder and return its size, or None if it stays.

    Open its folders one by one, since any may have become a link. Raise StoreError if it cannot be removed.
    """
    handles: list[int] = []
    try:
        handles.append(os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW))
        for part in path.parts[:-1]:
            handles.append(os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=handles[-1]))
        status = os.stat(path.name, dir_fd=handles[-1], follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            if not dry_run:
                os.rmdir(path.name, dir_fd=handles[-1])
            return 0
        if not stat.S_ISREG(status.st_mode) or status.st_mtime_ns >= cutoff_ns:
            return None
        if not dry_run:
            os.unlink(path.name, dir_fd=handles[-1])
        return status.st_size
    except OSError as error:
        if error.errno in {ENOENT, ENOTEMPTY}:  # somebody else removed it, or added a file
            return None
        raise StoreError(f"{root / path} cannot be removed: {error.strerror}.") from None
    finally:
        for handle in handles:
            os.close(handle)
