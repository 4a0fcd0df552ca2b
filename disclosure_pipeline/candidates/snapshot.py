"""The snapshot of a candidate: its files, copied once while they are hashed."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from disclosure_pipeline.candidates.claims import CLAIMS, MOST_BYTES, Claims, read_claims
from disclosure_pipeline.candidates.store import MARKER, PARTIAL_PREFIX, Store, StoredFile, require_safe_name
from disclosure_pipeline.errors import StoreError
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.runtime.files import (
    copy_hashed,
    hash_file,
    read_json,
    sync_folder,
    write_json,
)
from disclosure_pipeline.tables.files import KNOWN_FORMATS, find_suffix


@dataclass(frozen=True)
class Snapshot:
    """The files of a candidate, ordered by name (synthesis 1, 2 and so on), and its claims."""

    candidate: str
    files: tuple[StoredFile, ...]
    claims: Claims | None = None

    @property
    def sha256(self) -> str:
        """The hash of all names, contents and claims."""
        listing = "".join(f"{file.sha256}  {file.name}\n" for file in self.files)
        listing += f"{self.claims}\n" if self.claims else ""
        return hashlib.sha256(listing.encode()).hexdigest()


def take_snapshot(folder: Path, candidate: str, store: Store, *, needs_marker: bool = True) -> Snapshot:
    """Copy a candidate's files into the store, hash them while copying, and record the snapshot.

    No symbolic link is followed. Raise StoreError if the candidate is incomplete (it needs a marker file and
    has none), empty, changes while it is read, or holds anything but tables of known formats and
    `claims.yaml`.
    """
    with _open_folder(folder, candidate) as folder_handle:
        with os.scandir(folder_handle) as entries:
            is_plain = {entry.name: entry.is_file(follow_symlinks=False) for entry in entries}
        has_marker = is_plain.pop(MARKER, False)
        if needs_marker and not has_marker:
            raise StoreError(f"Candidate {candidate!r} is not complete: its folder has no file {MARKER}.")
        claims = None
        if is_plain.pop(CLAIMS, None) is not None:  # not a table, and never published
            with _open_plain_file(CLAIMS, folder_handle) as file:
                claims = read_claims(file.read(MOST_BYTES + 1))
        if not is_plain:
            raise StoreError(f"Candidate {candidate!r} has no table.")
        if any("=" in name and not is_file for name, is_file in is_plain.items()):
            raise StoreError(
                f"Candidate {candidate!r} has a table partitioned by a column, in folders with names such as "
                "year=2019: write each table into one file, such as with pandas.read_parquet and to_parquet."
            )
        for name, is_file in is_plain.items():
            require_safe_name(name, "file name")
            if not is_file or find_suffix(name) is None:
                raise StoreError(
                    f"Candidate {candidate!r} has {name!r}, which is not a regular file of a known format "
                    f"({KNOWN_FORMATS}): remove it from the candidate's folder."
                )
        files = tuple(_copy(name, folder_handle, store) for name in sorted(is_plain))
        snapshot = Snapshot(candidate, files, claims)
    record = {name: value for name, value in asdict(snapshot).items() if value is not None}
    write_json(store.candidate_folder(candidate) / "snapshot.json", record)
    return snapshot


@contextmanager
def _open_folder(folder: Path, candidate: str) -> Iterator[int]:
    """Open a candidate's folder, so that files are read from it even if its path is replaced meanwhile."""
    try:
        folder_handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise StoreError(
            f"The folder of candidate {candidate!r} cannot be opened ({os.strerror(error.errno or 0)}): it "
            "must exist and be a folder, not a link to one."
        ) from None
    try:
        yield folder_handle
    finally:
        os.close(folder_handle)


def _copy(name: str, folder_handle: int, store: Store) -> StoredFile:
    objects = store.root / "objects"
    objects.mkdir(parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(dir=objects, prefix=PARTIAL_PREFIX)
    try:
        with os.fdopen(handle, "wb") as target, _open_plain_file(name, folder_handle) as source:
            before = os.fstat(source.fileno())
            copied = copy_hashed(source, target)
            after = os.fstat(source.fileno())
        sizes = {before.st_size, copied.bytes, after.st_size}
        if len(sizes) > 1 or before.st_mtime_ns != after.st_mtime_ns:
            raise StoreError(f"{name!r} changed while it was read: wait until it is complete, then rerun.")
        file = StoredFile(name, copied.sha256, copied.bytes)
        Path(partial).replace(store.stored_path(file))
    finally:
        Path(partial).unlink(missing_ok=True)
    sync_folder(objects)
    return file


def _open_plain_file(name: str, folder_handle: int) -> BinaryIO:
    """Open a file of an opened folder for reading. Raise StoreError if it is no longer a regular file."""
    try:
        # Opening a pipe would otherwise block until somebody writes to it.
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder_handle)
    except OSError as error:
        raise StoreError(f"{name!r} cannot be read ({os.strerror(error.errno or 0)}).") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise StoreError(f"{name!r} is not a regular file: remove it from the candidate's folder.")
    return os.fdopen(handle, "rb")


def read_snapshot(candidate: str, store: Store) -> Snapshot:
    """Return the recorded snapshot. Raise StoreError if the record is missing or damaged."""
    record = read_json(store.candidate_folder(candidate) / "snapshot.json", "synthetic")
    try:
        claims = record.get("claims")
        snapshot = Snapshot(
            record["candidate"],
            tuple(StoredFile(**file) for file in record["files"]),
            None if claims is None else Claims(**claims),
        )
    except (KeyError, TypeError, ValueError):
        snapshot = Snapshot("", ())
    names = [file.name for file in snapshot.files]
    if snapshot.candidate != candidate or not names or len(set(names)) < len(names):
        raise StoreError(f"The snapshot of {candidate!r} is damaged: run synthetic again.")
    for name in names:
        require_safe_name(name, "file name")
    return snapshot


def load_snapshot(candidate: str, store: Store) -> Snapshot:
    """Return the recorded snapshot. Raise StoreError if its stored bytes are missing or changed."""
    snapshot = read_snapshot(candidate, store)
    for file in snapshot.files:
        if not is_stored(file, store):
            raise StoreError(
                f"The stored bytes of {file.name!r} are missing or changed: run synthetic again."
            )
    return snapshot


def is_stored(file: StoredFile, store: Store) -> bool:
    """Return whether the stored bytes of a file match their record."""
    path = store.stored_path(file)
    return path.is_file() and path.stat().st_size == file.bytes and hash_file(path) == file.sha256


LINKED = ("persons", "events")
"""Prefixes of the names of a candidate's files, if people have events."""


def list_syntheses(gate: Gate, snapshot: Snapshot) -> list[tuple[StoredFile, ...]]:
    """Return the files of each synthesis: one, or (persons, events) if people have events.

    Raise StoreError if a file has another name, or its counterpart is missing.
    """
    if gate.events is None:
        return [(file,) for file in snapshot.files]
    pairs: dict[str, dict[str, StoredFile]] = {}
    for file in snapshot.files:
        stem = file.name[: len(file.name) - len(find_suffix(file.name) or "")]
        kind = next((kind for kind in LINKED if stem.startswith(kind)), "")
        pair = pairs.setdefault(stem.removeprefix(kind), {})
        if not kind or kind in pair:
            raise StoreError(
                f"Candidate {snapshot.candidate!r} has {file.name!r}: name its files persons and events, or "
                "persons_2 and events_2 and so on, one of each."
            )
        pair[kind] = file
    for pair in pairs.values():
        if len(pair) < len(LINKED):
            [file] = pair.values()
            raise StoreError(
                f"Candidate {snapshot.candidate!r} has {file.name!r} without its counterpart: each file of "
                "persons needs a file of events whose name has the same ending, and vice versa."
            )
    return [tuple(pair[kind] for kind in LINKED) for pair in pairs.values()]


def read_snapshots(store: Store) -> list[Snapshot]:
    """Return the snapshots of all candidates, except those whose record is damaged."""
    snapshots = []
    for record in sorted((store.root / "candidates").glob("*/snapshot.json")):
        try:
            snapshots.append(read_snapshot(record.parent.name, store))
        except StoreError:
            continue
    return snapshots
