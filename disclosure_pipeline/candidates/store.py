"""A gate's store, the snapshot of a candidate in it, and the privacy that may be claimed for that."""

from __future__ import annotations

import hashlib
import math
import os
import re
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO

import yaml

from disclosure_pipeline.errors import StoreError, UndeterminedError
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.reviewed_files import TrustedKey, Waiver
from disclosure_pipeline.runtime.files import (
    copy_hashed,
    hash_file,
    read_json,
    sync_folder,
    write_json,
)
from disclosure_pipeline.tables.files import FORMATS, find_suffix
from disclosure_pipeline.tables.sources import LinkedSource, Source

CLAIMS = "claims.yaml"
MOST_BYTES = 4096

# YAML 1.1 takes 1e-6, which has no point, for text.
_EXPONENT = re.compile(r"[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+")


@dataclass(frozen=True)
class Claims:
    """The ε and δ that what made the candidate is claimed to keep. ValueError where they are none."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        if not (0 < self.epsilon < math.inf and 0 <= self.delta < 1):
            raise ValueError("An epsilon is above 0, a delta from 0 to below 1.")


def read_claims(content: bytes) -> Claims:
    """Return what the file claims, such as `claims: {epsilon: 1, delta: 1e-6}`. StoreError where it is none.

    >>> read_claims(b"claims: {epsilon: 1, delta: 1e-6}")
    Claims(epsilon=1.0, delta=1e-06)
    """
    written = _read_yaml(content)
    claims = written.get("claims") if isinstance(written, Mapping) and set(written) == {"claims"} else None
    if isinstance(claims, Mapping) and {"epsilon"} <= set(claims) <= {"epsilon", "delta"}:
        with suppress(ValueError):
            return Claims(_to_number(claims["epsilon"]), _to_number(claims.get("delta", 0)))
    raise StoreError(
        f"{CLAIMS} must hold nothing but a claim, such as claims: {{epsilon: 1, delta: 1e-6}}: an epsilon "
        "above 0, and a delta from 0 to below 1."
    )


def _read_yaml(content: bytes) -> Any:
    """Return the content of YAML; None where it is none, or names something twice."""
    if len(content) > MOST_BYTES:
        return None
    try:
        text = content.decode()
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        return None if _names_twice(node) else yaml.safe_load(text)
    except (UnicodeDecodeError, yaml.YAMLError, RecursionError, ValueError):
        return None


def _names_twice(node: yaml.Node | None) -> bool:
    if not isinstance(node, yaml.MappingNode):
        return False
    names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
    return len(set(names)) < len(names) or any(_names_twice(value) for _, value in node.value)


def _to_number(value: Any) -> float:
    """Return the number that is written, NaN where there is none."""
    if isinstance(value, str) and _EXPONENT.fullmatch(value):
        return float(value)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number else math.nan


MARKER = "_SUCCESS"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def is_safe_name(name: str) -> bool:
    """Return whether a candidate's id or a file's name is plain enough to become part of a path."""
    return _NAME.fullmatch(name) is not None and ".." not in name


def require_safe_name(name: str, kind: str) -> str:
    """Return the name itself. StoreError where it could lead anywhere but into its folder."""
    if not is_safe_name(name):
        raise StoreError(
            f"The {kind} {name[:100]!r} is not allowed: letters, digits, '.', '_' and '-' only, a letter or "
            "digit first, no '..', at most 100 characters."
        )
    return name


@dataclass(frozen=True)
class Store:
    """The folder of one gate: stored bytes by their hash, and a folder of records per candidate."""

    root: Path

    @property
    def ground_truth(self) -> Path:
        """The record of the ground truth: its reference, never its content."""
        return self.root / "ground_truth.json"

    @property
    def power(self) -> Path:
        """The file of the policy's power, which names its ground truth and policy."""
        return self.root / "power.json"

    def stored_path(self, file: StoredFile) -> Path:
        """Return where the bytes of a snapshot's file lie."""
        return self.root / "objects" / f"{file.sha256}{find_suffix(file.name) or ''}"

    def candidate_folder(self, candidate: str) -> Path:
        """Return the folder of a candidate's records."""
        return self.root / "candidates" / require_safe_name(candidate, "candidate")

    def read_snapshots(self) -> list[Snapshot]:
        """Return the snapshots of all candidates; one whose record is damaged is left out."""
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
    """The files of a candidate, in order of their names: synthesis 1, 2 and so on; and what is claimed."""

    candidate: str
    files: tuple[StoredFile, ...]
    claims: Claims | None = None

    @property
    def sha256(self) -> str:
        """One hash of all names and contents, and of what is claimed."""
        listing = "".join(f"{file.sha256}  {file.name}\n" for file in self.files)
        listing += f"{self.claims}\n" if self.claims else ""
        return hashlib.sha256(listing.encode()).hexdigest()


def take_snapshot(folder: Path, candidate: str, store: Store, *, needs_marker: bool = True) -> Snapshot:
    """Copy a candidate's files into the store, hashed while they are copied, and record what was copied.

    No link is followed, neither to the folder nor in it. StoreError where the candidate is incomplete (it
    has no marker file and needs one), empty, changes while it is read, or holds anything but tables of known
    formats, or `claims.yaml`: whatever else is in the folder would be published.
    """
    with _open_folder(folder, candidate) as folder_handle:
        with os.scandir(folder_handle) as entries:
            is_plain = {entry.name: entry.is_file(follow_symlinks=False) for entry in entries}
        has_marker = is_plain.pop(MARKER, False)
        if needs_marker and not has_marker:
            raise StoreError(f"Candidate {candidate!r} is not complete: its folder holds no file {MARKER}.")
        claims = None
        if is_plain.pop(CLAIMS, None) is not None:  # it is no table, and is never published
            with _open_plain_file(CLAIMS, folder_handle) as file:
                claims = read_claims(file.read(MOST_BYTES + 1))
        if not is_plain:
            raise StoreError(f"Candidate {candidate!r} holds no table.")
        for name, is_file in is_plain.items():
            require_safe_name(name, "file name")
            if not is_file or not name.endswith(FORMATS):
                raise StoreError(
                    f"Candidate {candidate!r} holds {name!r}, which is no plain file of a known format "
                    f"({', '.join(FORMATS)}): remove it from the candidate's folder."
                )
        files = tuple(_copy(name, folder_handle, store) for name in sorted(is_plain))
        snapshot = Snapshot(candidate, files, claims)
    record = {name: value for name, value in asdict(snapshot).items() if value is not None}
    write_json(store.candidate_folder(candidate) / "snapshot.json", record)
    return snapshot


@contextmanager
def _open_folder(folder: Path, candidate: str) -> Iterator[int]:
    """Return a candidate's folder, opened: what is read through it lies in that very folder."""
    try:
        folder_handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise StoreError(
            f"The folder of candidate {candidate!r} cannot be opened ({os.strerror(error.errno or 0)}): it "
            "must be there, and be a folder, no link to one."
        ) from None
    try:
        yield folder_handle
    finally:
        os.close(folder_handle)


def _copy(name: str, folder_handle: int, store: Store) -> StoredFile:
    objects = store.root / "objects"
    objects.mkdir(parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(dir=objects, prefix=".partial-")
    try:
        with os.fdopen(handle, "wb") as target, _open_plain_file(name, folder_handle) as source:
            before = os.fstat(source.fileno())
            copied = copy_hashed(source, target)
            after = os.fstat(source.fileno())
        sizes = {before.st_size, copied.bytes, after.st_size}
        if len(sizes) > 1 or before.st_mtime_ns != after.st_mtime_ns:
            raise StoreError(f"{name!r} changed while it was read: wait until it is written, then rerun.")
        file = StoredFile(name, copied.sha256, copied.bytes)
        Path(partial).replace(store.stored_path(file))
    finally:
        Path(partial).unlink(missing_ok=True)
    sync_folder(objects)
    return file


def _open_plain_file(name: str, folder_handle: int) -> BinaryIO:
    """Open a file of an opened folder for reading; refuse what became a link or a pipe meanwhile."""
    try:
        # A pipe would be waited for until somebody writes into it.
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder_handle)
    except OSError as error:
        raise StoreError(f"{name!r} cannot be read ({os.strerror(error.errno or 0)}).") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise StoreError(f"{name!r} is no plain file: remove it from the candidate's folder.")
    return os.fdopen(handle, "rb")


def read_snapshot(candidate: str, store: Store) -> Snapshot:
    """Return the snapshot as it is recorded. StoreError where there is none, or not a whole one."""
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
    """Load the recorded snapshot, its bytes checked against their hashes. StoreError where any differs."""
    snapshot = read_snapshot(candidate, store)
    for file in snapshot.files:
        if not is_stored(file, store):
            raise StoreError(
                f"The stored bytes of {file.name!r} are missing or changed: run synthetic again."
            )
    return snapshot


def is_stored(file: StoredFile, store: Store) -> bool:
    """Return whether the bytes of a file are there as they are recorded."""
    path = store.stored_path(file)
    return path.is_file() and path.stat().st_size == file.bytes and hash_file(path) == file.sha256


@dataclass(frozen=True)
class GateFolders:
    """A gate and where its tables, records and releases lie."""

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
        """Return where a release is made before it is published: beside the releases, never among them."""
        releases = self.releases.parent
        return releases.with_name(f"{releases.name}-staging") / self.releases.name


LINKED = ("persons", "events")
"""Prefixes of the names of a candidate's files, where people have events."""


def list_syntheses(gate: Gate, snapshot: Snapshot) -> list[tuple[StoredFile, ...]]:
    """Return the files of each synthesis: one; where people have events two, of which the second holds these.

    StoreError where a file is called otherwise, or came without the other one.
    """
    if gate.events is None:
        return [(file,) for file in snapshot.files]
    halves: dict[str, dict[str, StoredFile]] = {}
    for file in snapshot.files:
        stem = file.name.removesuffix(find_suffix(file.name) or "")
        kind = next((kind for kind in LINKED if stem.startswith(kind)), "")
        of_synthesis = halves.setdefault(stem.removeprefix(kind), {})
        if not kind or kind in of_synthesis:
            raise StoreError(
                f"Candidate {snapshot.candidate!r} holds {file.name!r}: its files are called persons and "
                "events, or persons_2 and events_2 and so on, each once."
            )
        of_synthesis[kind] = file
    for of_synthesis in halves.values():
        if len(of_synthesis) < len(LINKED):
            [file] = of_synthesis.values()
            raise StoreError(
                f"Candidate {snapshot.candidate!r} holds {file.name!r} alone: persons and events come "
                "together, and their names end alike."
            )
    return [tuple(of_synthesis[kind] for kind in LINKED) for of_synthesis in halves.values()]


def locate_revocations(releases: Path) -> Path:
    """Return the file beside the folder of a gate's releases that the gate itself reads.

    >>> locate_revocations(Path("releases/survey"))
    PosixPath('releases/survey.revocations')
    """
    return releases.with_name(f"{releases.name}.revocations")


# Clocks of several machines may differ by so much, and may be set right by so much.
TOLERANCE = timedelta(minutes=5)

LAST_MOMENT = "last_moment.json"
"""The file of a store that records the last moment."""


def require_forward_clock(store: Store, now: datetime) -> None:
    """Record that moment as the last one. UndeterminedError where one that was recorded is later.

    A clock that runs back would make waivers valid again that have expired, and date signatures into the
    period of a key that is over. Five minutes are allowed between machines.
    """
    last = _read_last_moment(store)
    if last is not None and now < last - TOLERANCE:
        raise UndeterminedError(
            f"The clock shows {now.isoformat()}, but {last.isoformat()} was recorded before: no waiver is "
            f"applied and nothing is signed. Set the clock right; if the recorded moment is wrong, remove "
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
    raise StoreError(f"{LAST_MOMENT} in the store is damaged: look at the clock, then remove the file.")
