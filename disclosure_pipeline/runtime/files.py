"""Files that are written whole or not at all, and the hashes of files and streams."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import IO, Any, NamedTuple

from disclosure_pipeline.errors import StoreError

_CHUNK = 1 << 20


class HashedStream(NamedTuple):
    """The sha256 of a stream in hexadecimal, and its number of bytes."""

    sha256: str
    bytes: int


def hash_stream(stream: IO[bytes], on_chunk: Callable[[bytes], object] | None = None) -> HashedStream:
    """Hash a stream from its current position to its end; `on_chunk` is called with every part."""
    digest, size = hashlib.sha256(), 0
    while chunk := stream.read(_CHUNK):
        digest.update(chunk)
        size += len(chunk)
        if on_chunk is not None:
            on_chunk(chunk)
    return HashedStream(digest.hexdigest(), size)


def hash_file(path: Path) -> str:
    """Return the sha256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hash_stream(file).sha256


def copy_hashed(original: IO[bytes], copy: IO[bytes]) -> HashedStream:
    """Copy an open file into another, sync that to disk, and return the hash and size."""
    copied = hash_stream(original, copy.write)
    copy.flush()
    os.fsync(copy.fileno())
    return copied


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file atomically: a reader sees the old content or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".partial-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def make_private(folder: Path) -> None:
    """Make a folder that only its owner can enter, unless it exists."""
    folder.mkdir(mode=stat.S_IRWXU, parents=True, exist_ok=True)


def is_open_to_others(folder: Path) -> bool:
    """Return True if users who are neither owner nor of the group can list or enter an existing folder."""
    folder = folder.resolve()
    can_reach = all(parent.stat().st_mode & stat.S_IXOTH for parent in folder.parents)
    return can_reach and bool(folder.stat().st_mode & (stat.S_IROTH | stat.S_IXOTH))


@contextmanager
def hold_lock(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold a lock that the system releases when the process ends, however it ends.

    Raises BlockingIOError if another process holds it and `wait` is false.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Sync a folder to disk, so that the names in it survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file atomically. Raises ValueError for NaN: a missing value is null."""
    write_whole(path, to_json(content))


def to_json(content: Mapping[str, Any]) -> bytes:
    """Return the bytes of a JSON file; equal content gives equal bytes."""
    return (_indent(content, "\n") + "\n").encode()


def _indent(content: Any, newline: str) -> str:
    """Return `json.dumps(content, indent=2)`, but faster: given an indent, that does not use its C encoder.

    Values without nested containers are encoded in one call, as many as follow one another. `newline` ends
    with the indent of this level.
    """
    if not _is_nested(content):
        return _encode(content, ", ")
    inner, is_mapping = newline + "  ", isinstance(content, dict)
    entries = content.items() if is_mapping else enumerate(content)
    parts: list[str] = []
    for are_nested, run in groupby(entries, key=lambda entry: _is_nested(entry[1])):
        values = dict(run)
        if not are_nested:
            side_by_side = values if is_mapping else list(values.values())
            parts.append(_encode(side_by_side, f",{inner}")[1:-1])
            continue
        for name, value in values.items():
            label = _encode({name: None}, ", ")[1 : -len("null}")] if is_mapping else ""
            parts.append(label + _indent(value, inner))
    brackets = "{}" if is_mapping else "[]"
    return f"{brackets[0]}{inner}{f',{inner}'.join(parts)}{newline}{brackets[1]}"


def _is_nested(content: Any) -> bool:
    return isinstance(content, (dict, list, tuple)) and len(content) > 0


def _encode(content: Any, separator: str) -> str:
    return _find_encoder(separator).encode(content)


@lru_cache
def _find_encoder(separator: str) -> json.JSONEncoder:
    return json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(separator, ": "))


def read_json(path: Path, made_by: str) -> dict[str, Any]:
    """Read a JSON object of the store; raises StoreError if it is missing or damaged.

    `made_by` is the asset that writes the file, for the message.
    """
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        content = None
    except (ValueError, RecursionError):
        content = ()
    if content is None:
        raise StoreError(f"{path.name} is missing: run {made_by} first.")
    if not isinstance(content, dict):
        raise StoreError(f"{path.name} is damaged: run {made_by} again.")
    return content


def read_json_if_whole(path: Path) -> dict[str, Any]:
    """Read a JSON object; return an empty one if the file is missing or damaged."""
    try:
        return read_json(path, "")
    except StoreError:
        return {}
