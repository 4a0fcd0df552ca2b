"""Local paths and locations that fsspec knows, opened without telling a secret."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.runtime.hashing import hash_stream

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_EXTRAS = {
    "s3": "s3",
    "s3a": "s3",
    "gs": "gs",
    "gcs": "gs",
    "az": "az",
    "abfs": "az",
    "abfss": "az",
    "adl": "az",
}


def fill_in_variables(text: str, what: str) -> str:
    """Replace each ${NAME} by that environment variable. InputError where one is not set."""
    missing = sorted({name for name in _VARIABLE.findall(text) if name not in os.environ})
    if missing:
        raise InputError(f"{what} needs the environment variable {', '.join(missing)}, which is not set.")
    return _VARIABLE.sub(lambda variable: os.environ[variable[1]], text)


def redact_location(location: str) -> str:
    """Return the location without user, password and whatever follows a question mark."""
    scheme, mark, rest = location.partition("://")
    if not mark:
        return location
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path.partition('?')[0]}"


def refuse_password(location: str) -> None:
    """Raise ValueError where a password is written out: it would be in a file's history for ever."""
    user, at, _ = location.partition("://")[2].rpartition("@")
    password = user.partition(":")[2]
    if at and password and not re.fullmatch(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}", password):
        raise ValueError("a password does not belong here: write ${NAME} and set that environment variable")


def is_remote(location: str) -> bool:
    """Return whether a location is for fsspec, not a path of this machine."""
    return "://" in location


@dataclass(frozen=True)
class Entry:
    """A file: its path within its file system, its size, and what else changes when it is written again."""

    path: str
    size: int
    version: str


@dataclass(frozen=True)
class StoragePath:
    """A local or remote file or folder. `redacted_location` is its name in messages."""

    fs: Any
    path: str
    redacted_location: str

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rstrip("/").rpartition("/")[2]

    def is_file(self) -> bool:
        """Return whether it is a file."""
        return bool(self.fs.isfile(self.path))

    def is_folder(self) -> bool:
        """Return whether it is a folder."""
        return bool(self.fs.isdir(self.path))

    def files(self) -> list[Entry]:
        """Return the file itself, or a folder's files in order of path, without hidden and _ files."""
        if self.is_file():
            return [_entry(self.path, self.fs.info(self.path))]
        information_by_path = self.fs.find(self.path, detail=True)
        inside = len(self.path.rstrip("/")) + 1
        return [
            _entry(path, information_by_path[path])
            for path in sorted(information_by_path)
            if not any(part.startswith((".", "_")) for part in path[inside:].split("/"))
        ]

    def open_file(self, path: str) -> Any:
        """Open a file at or below the path as a seekable stream of bytes."""
        return self.fs.open(path, "rb")

    def sha256(self) -> str:
        """Return the hash of a file's bytes; of a folder, that of the names and hashes of its files."""
        if self.is_file():
            return self._sha256(self.path)
        inside = len(self.path.rstrip("/")) + 1
        listing = "".join(f"{self._sha256(file.path)}  {file.path[inside:]}\n" for file in self.files())
        return hashlib.sha256(listing.encode()).hexdigest()

    def _sha256(self, path: str) -> str:
        with self.open_file(path) as file:
            return hash_stream(file).sha256


def _entry(path: str, details: dict[str, Any]) -> Entry:
    changes = [
        details.get(name) for name in ("ETag", "etag", "LastModified", "last_modified", "updated", "mtime")
    ]
    return Entry(path, int(details["size"] or 0), repr(changes))


def locate(location: str | Path | Any, what: str) -> StoragePath:
    """Return the storage path of a path, a UPath or the text of either. Environment variables are filled in.

    InputError where the package that reads such locations is not installed, or refuses the location.
    """
    text = str(location)
    redacted_location = redact_location(text)
    universal: Any = location
    if hasattr(universal, "fs") and hasattr(universal, "storage_options"):
        return StoragePath(universal.fs, universal.path, redacted_location)
    text = fill_in_variables(text, what)
    try:
        import fsspec

        if not is_remote(text):
            return StoragePath(fsspec.filesystem("file"), str(Path(text)), redacted_location)
        # No instance is taken from a cache: neither listings nor credentials outlive this one.
        fs, path = fsspec.core.url_to_fs(text, skip_instance_cache=True, use_listings_cache=False)
        return StoragePath(fs, path, redacted_location)
    except ImportError:
        extra = _EXTRAS.get(text.partition("://")[0])
        install = f"install disclosure-pipeline[{extra}]" if extra else "install what fsspec names for it"
        reason = f"the package that reads it is not installed: {install}"
    except Exception as error:  # of whatever the file system raises; its message may tell credentials
        reason = type(error).__name__
    raise InputError(f"{what}: {redacted_location!r} cannot be opened ({reason}).")
