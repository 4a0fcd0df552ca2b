"""Compressed files and ZIP archives, unpacked while they are read, and only as far as is reasonable."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any

import pyarrow as pa

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.tables.files import ARCHIVE, StoragePath

_ALWAYS_ALLOWED = 1 << 30  # bytes
_MOST_TIMES = 200  # as large unpacked as packed: ten times as much as most tables
_ENCRYPTED = 1  # of the flags of a member
PASSWORD = "it is protected by a password: save it without one"


def most_unpacked(packed: int) -> int:
    """Return how many bytes a file of `packed` bytes may have when it is unpacked."""
    return max(_ALWAYS_ALLOWED, _MOST_TIMES * packed)


def describe_bomb(table: str, packed: int) -> InputError:
    """Return the error for a file that is far larger when it is unpacked than any table."""
    return InputError(
        f"{table}: unpacked, the file has more than {most_unpacked(packed):,} bytes, which no table of "
        f"{packed:,} packed bytes has: deliver it unpacked."
    )


class _Unpacked(io.RawIOBase):
    """A stream of unpacked bytes, which raises InputError where it is too long."""

    def __init__(self, stream: Any, packed: int, table: str) -> None:
        self._stream, self._packed, self._table = stream, packed, table
        self._left = most_unpacked(packed)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        content = bytes(self._stream.read(size if size >= 0 else self._left + 1))
        self._left -= len(content)
        if self._left < 0:
            raise describe_bomb(self._table, self._packed)
        return content


def unpack(path: StoragePath, codec: str | None, table: str, stack: ExitStack) -> Any:
    """Open a file as a stream of its unpacked bytes until the stack closes."""
    file = stack.enter_context(path.open_file(path.path))
    if codec is None:
        return file
    packed = path.files()[0].size
    return _Unpacked(pa.CompressedInputStream(pa.PythonFile(file), codec), packed, table)


def enter_archive(path: StoragePath, table: str, stack: ExitStack) -> StoragePath:
    """Return the path of the only file in a ZIP archive, or any other path unchanged.

    Raise InputError if the archive is damaged, holds another number of files, or needs a password.
    """
    if not path.name.lower().endswith(ARCHIVE) or not path.is_file():
        return path
    from fsspec.implementations.zip import ZipFileSystem

    file = stack.enter_context(path.open_file(path.path))
    try:
        archive = ZipFileSystem(file, skip_instance_cache=True)
    except zipfile.BadZipFile:
        archive = None
    if archive is None:
        raise InputError(f"{table}: the archive {path.name!r} is damaged, or no ZIP archive: write it again.")
    stack.callback(archive.close)  # it would close the file where nothing refers to it any more
    members = [member for member in archive.zip.infolist() if _is_table(member)]
    if len(members) != 1:
        raise InputError(
            f"{table}: the archive {path.name!r} holds {len(members)} files: expected one, a table."
        )
    require_unpackable(members, path.files()[0].size, table)
    return StoragePath(archive, members[0].filename, path.redacted_location)


def _is_table(member: zipfile.ZipInfo) -> bool:
    """Return whether a member is neither a folder nor a hidden file, such as macOS adds."""
    parts = member.filename.split("/")
    return not member.is_dir() and not any(part.startswith((".", "_")) for part in parts)


def require_unpackable(members: Iterable[zipfile.ZipInfo], packed: int, table: str) -> None:
    """Raise InputError if members of an archive need a password, or are far larger than it."""
    members = list(members)
    if any(member.flag_bits & _ENCRYPTED for member in members):
        raise InputError(f"{table}: {PASSWORD}.")
    if sum(member.file_size for member in members) > most_unpacked(packed):
        raise describe_bomb(table, packed)
