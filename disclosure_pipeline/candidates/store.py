"""A gate's store, and the folders of its releases."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from disclosure_pipeline.errors import StoreError, choose_form
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.policy.reviewed_files import TrustedKey, Waiver
from disclosure_pipeline.tables.files import find_suffix
from disclosure_pipeline.tables.sources import LinkedSource, Source

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
    """Complete candidates, each with a signature of its content, and the names of folders that are ignored.

    `refused` have names that no candidate may have; `unreadable` cannot be read by this user.
    """

    complete: dict[str, str]
    refused: tuple[str, ...]
    unreadable: tuple[str, ...] = ()

    def describe_ignored(self) -> str:
        """Return sentences on the ignored folders, naming the first five; empty if there are none."""
        return " ".join(
            f"{choose_form(len(names), ignored, f'{len(names)} {several}')}, {_name_first(names)}: {advice}."
            for names, ignored, several, advice in (
                (
                    self.refused,
                    "A folder is ignored because of its name",
                    "folders are ignored because of their names",
                    f"expected {_SAFE_NAME}",
                ),
                (
                    self.unreadable,
                    "A folder is ignored because it cannot be read",
                    "folders are ignored because they cannot be read",
                    "let the gate's user read and enter it",
                ),
            )
            if names
        )


def find_complete_candidates(incoming: Path) -> Incoming:
    """Return the folders in `incoming` that hold a marker file, ordered by the time of the marker."""
    complete: dict[str, tuple[int, str]] = {}
    unreadable = []
    for path in sorted(incoming.iterdir()) if incoming.is_dir() else ():
        try:
            if (path / MARKER).is_file():
                complete[path.name] = (path / MARKER).stat().st_mtime_ns, _sign_listing(path.iterdir())
        except OSError:  # must not keep the others waiting
            unreadable.append(path.name)
    in_order = sorted(complete, key=lambda name: (complete[name][0], name))
    return Incoming(
        complete={name: complete[name][1] for name in in_order if is_safe_name(name)},
        refused=tuple(name for name in in_order if not is_safe_name(name)),
        unreadable=tuple(unreadable),
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

    def list_dossiers(self) -> list[Path]:
        """Return the paths of all filed dossiers, oldest first."""
        paths = (self.root / "candidates").glob("*/dossier.json")
        return sorted(paths, key=lambda path: (path.stat().st_mtime_ns, path.parent.name))


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


def locate_revocations(releases: Path) -> Path:
    """Return the file of revocations that the gate reads, beside the folder of its releases.

    >>> locate_revocations(Path("releases/survey"))
    PosixPath('releases/survey.revocations')
    """
    return releases.with_name(f"{releases.name}.revocations")


@dataclass(frozen=True)
class StoredFile:
    """A file of a candidate as it arrived."""

    name: str
    sha256: str
    bytes: int
