"""Records that do not fit into memory, on disk until they are read again part by part.

They include GT records. So each chunk is encrypted and sealed with a key that only this process has, in a
file without a name: however the process ends, nothing readable is left.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.errors import DisclosurePipelineError, InputError

Records = npt.NDArray[Any]

_KEY_BITS = 256
_NONCE, _TAG = 12, 16  # bytes


@dataclass(frozen=True)
class SpillFile:
    """A file of sealed chunks; `chunks[part]` alternates the positions and sizes of a part's chunks.

    Records wait in memory until their part has `smallest_chunk` bytes: otherwise every batch would write a
    tiny chunk for each of many parts.
    """

    file: IO[bytes]
    cipher: Any
    dtype: np.dtype[Any]
    smallest_chunk: int = 0
    chunks: dict[Any, array[int]] = field(default_factory=dict)
    waiting: dict[Any, bytearray] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def add(self, part: Any, records: Records) -> None:
        """Append records to a part. Raise DisclosurePipelineError if the disk is full."""
        chunk = records.tobytes()
        with self.lock:
            if len(chunk) < self.smallest_chunk:
                waiting = self.waiting.setdefault(part, bytearray())
                waiting += chunk
                if len(waiting) < self.smallest_chunk:
                    return
                chunk = bytes(self.waiting.pop(part))
            place = self.file.seek(0, os.SEEK_END)
            self.file.truncate(place + len(chunk) + _TAG)  # reserves the place
            self.chunks.setdefault(part, array("q")).extend((place, len(chunk) + _TAG))
        sealed = self.cipher.encrypt(place.to_bytes(_NONCE, "big"), chunk, None)
        try:
            written = os.pwrite(self.file.fileno(), sealed, place)
        except OSError:
            written = 0
        if written != len(sealed):
            raise DisclosurePipelineError(
                f"The disk of {tempfile.gettempdir()!r} is full or cannot be written: set TMPDIR to a folder "
                "with enough space."
            )

    def read(self, part: Any) -> Records:
        """Return all records of a part. Raise DisclosurePipelineError if a chunk was changed."""
        chunks = self.chunks.get(part, array("q"))
        places, sizes = chunks[::2], chunks[1::2]
        waiting = np.frombuffer(self.waiting.get(part, b""), dtype=self.dtype)
        sealed = (sum(sizes) - _TAG * len(sizes)) // self.dtype.itemsize
        records = np.empty(sealed + len(waiting), dtype=self.dtype)
        records[sealed:] = waiting
        start = 0
        for place, size in zip(places, sizes, strict=True):
            chunk = np.frombuffer(self._decrypt(place, size), dtype=self.dtype)
            records[start : start + len(chunk)] = chunk
            start += len(chunk)
        return records

    def _decrypt(self, place: int, size: int) -> bytes:
        from cryptography.exceptions import InvalidTag

        try:
            sealed = os.pread(self.file.fileno(), size, place)
            chunk: bytes = self.cipher.decrypt(place.to_bytes(_NONCE, "big"), sealed, None)
            return chunk
        except (InvalidTag, OSError, ValueError):
            pass
        raise DisclosurePipelineError(
            f"The records spilled to {tempfile.gettempdir()!r} cannot be read back: they were changed, or "
            "the disk is damaged."
        )


@contextmanager
def open_spill_file(dtype: np.dtype[Any], records: int, smallest_chunk: int = 0) -> Iterator[SpillFile]:
    """Open a file for this number of records in the folder for temporary files, until the block ends.

    Raise InputError if they do not fit on the disk.
    """
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    folder = tempfile.gettempdir()
    needed, free = records * dtype.itemsize, shutil.disk_usage(folder).free
    if free < needed:
        raise InputError(
            f"{needed / 1e9:.1f} GB are needed in {folder!r}, which has {free / 1e9:.1f}: set TMPDIR to a "
            "folder with enough space."
        )
    with tempfile.TemporaryFile() as file:
        yield SpillFile(file, AESGCM(AESGCM.generate_key(_KEY_BITS)), dtype, smallest_chunk)
