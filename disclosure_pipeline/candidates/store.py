"""A gate's store, the snapshots of candidates in it, and the privacy that is claimed for them."""

from __future__ import annotations

import hashlib
import math
import os
import re
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO

from disclosure_pipeline.errors import StoreError, UndeterminedError, choose_form
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.reviewed_files import DefinitionError, TrustedKey, Waiver, read_definition
from disclosure_pipeline.runtime.files import (
    copy_hashed,
    hash_file,
    read_json,
    sync_folder,
    write_json,
)
from disclosure_pipeline.tables.files import KNOWN_FORMATS, find_suffix
from disclosure_pipeline.tables.sources import LinkedSource, Source

CLAIMS = "claims.yaml"
MOST_BYTES = 4096


@dataclass(frozen=True)
class Claims:
    """The ε and δ of differential privacy that are claimed for the candidate's generator."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        if not (0 < self.epsilon < math.inf and 0 <= self.delta < 1):
            raise ValueError("Epsilon must be above 0, delta at least 0 and below 1.")


def read_claims(content: bytes) -> Claims:
    """Return the claims in the content of a file. Raise StoreError if it holds anything else.

    >>> read_claims(b"claims: {epsilon: 1, delta: 1e-6}")
    Claims(epsilon=1.0, delta=1e-06)
    """
    written = None
    with suppress(DefinitionError, UnicodeDecodeError):  # their messages quote the file
        if len(content) <= MOST_BYTES:
            written = read_definition(content.decode(), CLAIMS, exponents=True)
    claims = written.get("claims") if isinstance(written, Mapping) and set(written) == {"claims"} else None
    if isinstance(claims, Mapping) and {"epsilon"} <= set(claims) <= {"epsilon", "delta"}:
        with suppress(ValueError, OverflowError):
            return Claims(_to_number(claims["epsilon"]), _to_number(claims.get("delta", 0)))
    raise StoreError(
        f"{CLAIMS} must hold only a claim, such as claims: {{epsilon: 1, delta: 1e-6}}: an epsilon above 0, "
        "and a delta of at least 0 and below 1."
    )


def _to_number(value: Any) -> float:
    """Return the value as a number, or NaN."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number else math.nan


MARKER = "_SUCCESS"
PARTIAL_PREFIX = ".partial-"
"""The beginning of the names of files and folders that are being written."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SAFE_NAME = "at most 100 letters, digits, '.', '_' and '-', beginning with a letter or digit, without '..'"
_MOST_NAMED = 5  # folders in a sentence


def is_safe_name(name: str) -> bool:
    """Return whether a candidate's id or a file's name may become part of a path."""
    return _NAME.fullmatch(name) is not None and ".." not in name


def require_safe_name(name: str, kind: str) -> str:
    """Return the name, or raise StoreError if it is not safe as part of a path."""
    if not is_safe_name(name):
        raise StoreError(f"The {kind} {name[:100]!r} is not allowed: expected {_SAFE_NAME}.")
    return name


def _name_first(folders: Sequence[str]) -> str:
    """Name the first folders, and say how many more there are."""
    more = len(folders) - _MOST_NAMED
    named = ", ".join(repr(name[:100]) for name in folders[:_MOST_NAMED])
    return f"{named} and {more} more" if more > 0 else named


STATEMENT = "statement.dsse.json"
"""The file of a published folder with its signed statement."""


@dataclass(frozen=True)
class PublishedFolders:
    """The folders of releases by the name of their candidate, and the names of what is none."""

    releases: Mapping[str, Path]
    foreign: tuple[str, ...]

    @property
    def note(self) -> str:
        """A sentence on what is skipped; empty if nothing is."""
        if not self.foreign:
            return ""
        return f"Skipped in the folder of releases, as no release: {_name_first(self.foreign)}."


def list_published(releases: Path) -> PublishedFolders:
    """Return the folders of releases, and the names of the others: a snapshot of the disk, lost+found.

    Other are those whose name no candidate can have, and those that hold neither a statement nor a table.
    """
    published, foreign = {}, []
    for path in sorted(releases.iterdir()) if releases.is_dir() else ():
        if not path.is_dir():
            continue
        if is_safe_name(path.name) and any(
            entry.name == STATEMENT or find_suffix(entry.name) for entry in path.iterdir()
        ):
            published[path.name] = path
        elif not path.name.startswith(PARTIAL_PREFIX):
            foreign.append(path.name)
    return PublishedFolders(published, tuple(foreign))


@dataclass(frozen=True)
class Incoming:
    """Complete candidates, each with a signature of its content, and forbidden names of folders."""

    complete: dict[str, str]
    refused: tuple[str, ...]

    def describe_refused(self) -> str:
        """Return a sentence on the ignored folders, naming the first five; empty if there are none."""
        if not self.refused:
            return ""
        ignored = choose_form(
            len(self.refused),
            "A folder is ignored because of its name",
            f"{len(self.refused)} folders are ignored because of their names",
        )
        return f"{ignored}, {_name_first(self.refused)}: expected {_SAFE_NAME}."


def find_complete_candidates(incoming: Path) -> Incoming:
    """Return the folders in `incoming` that hold a marker file, ordered by the time of the marker."""
    folders = [path for path in incoming.iterdir() if (path / MARKER).is_file()] if incoming.is_dir() else []
    folders.sort(key=lambda path: ((path / MARKER).stat().st_mtime_ns, path.name))
    return Incoming(
        complete={path.name: _sign_listing(path.iterdir()) for path in folders if is_safe_name(path.name)},
        refused=tuple(path.name for path in folders if not is_safe_name(path.name)),
    )


def _sign_listing(files: Iterable[Path]) -> str:
    """Return a signature that changes when a file or link is added, removed or rewritten."""
    states = [(path.name, path.lstat()) for path in files]
    listing = sorted((name, state.st_size, state.st_mtime_ns) for name, state in states)
    return hashlib.sha256(repr(listing).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Store:
    """The folder of one gate, with stored files by hash and a folder of records per candidate."""

    root: Path

    @property
    def ground_truth(self) -> Path:
        """The path of the record of the ground truth, which never has its content."""
        return self.root / "ground_truth.json"

    @property
    def power(self) -> Path:
        """The path of the record of the policy's power."""
        return self.root / "power.json"

    def stored_path(self, file: StoredFile) -> Path:
        """Return the path of the stored bytes of a file."""
        return self.root / "objects" / f"{file.sha256}{find_suffix(file.name) or ''}"

    def candidate_folder(self, candidate: str) -> Path:
        """Return the folder of a candidate's records."""
        return self.root / "candidates" / require_safe_name(candidate, "candidate")

    def read_snapshots(self) -> list[Snapshot]:
        """Return the snapshots of all candidates, except those whose record is damaged."""
        snapshots = []
        for record in sorted((self.root / "candidates").glob("*/snapshot.json")):
            try:
                snapshots.append(read_snapshot(record.parent.name, self))
            except StoreError:
                continue
        return snapshots


@dataclass(frozen=True)
class StoredFile:
    """A file of a candidate as it arrived."""

    name: str
    sha256: str
    bytes: int


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


@dataclass(frozen=True)
class GateFolders:
    """A gate and the locations of its tables, records and releases."""

    gate: Gate
    ground_truth: Source | LinkedSource
    incoming: Path
    store: Store
    releases: Path
    waivers: tuple[Waiver, ...]
    trusted_keys: Path | tuple[TrustedKey, ...]
    confidential: Mapping[str, Source] = field(default_factory=dict)

    @property
    def staging(self) -> Path:
        """The folder in which a release is written before it is moved to the releases."""
        releases = self.releases.parent
        return releases.with_name(f"{releases.name}-staging") / self.releases.name


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


def locate_revocations(releases: Path) -> Path:
    """Return the file of revocations that the gate reads, beside the folder of its releases.

    >>> locate_revocations(Path("releases/survey"))
    PosixPath('releases/survey.revocations')
    """
    return releases.with_name(f"{releases.name}.revocations")


# The clocks of several machines may differ by this much, or be corrected by it.
TOLERANCE = timedelta(minutes=5)

LAST_MOMENT = "last_moment.json"
"""The file of a store with the latest time that was recorded."""


def require_forward_clock(store: Store, now: datetime) -> None:
    """Record the time. Raise UndeterminedError if a time more than five minutes later is already recorded.

    With a clock that is set back, expired waivers would be valid again, and signatures would be dated into
    the period of an expired key.
    """
    last = _read_last_moment(store)
    if last is not None and now < last - TOLERANCE:
        raise UndeterminedError(
            f"The clock shows {now.isoformat()}, but {last.isoformat()} is already recorded: no waiver is "
            f"applied and nothing is signed. Correct the clock; if the recorded time is wrong, remove "
            f"{LAST_MOMENT} from the store."
        )
    if last is None or now > last:
        write_json(store.root / LAST_MOMENT, {"last_moment": now.isoformat()})


def _read_last_moment(store: Store) -> datetime | None:
    path = store.root / LAST_MOMENT
    if not path.exists():
        return None
    try:
        moment = datetime.fromisoformat(read_json(path, "")["last_moment"])
        if moment.tzinfo is not None:
            return moment
    except (StoreError, KeyError, TypeError, ValueError):
        pass
    raise StoreError(f"{LAST_MOMENT} in the store is damaged: check the clock, then remove the file.")
