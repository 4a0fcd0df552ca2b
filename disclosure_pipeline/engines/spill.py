"""Records that do not fit into memory, on disk until they are read again, part by part.

They are those of the ground truth. So each chunk is encrypted and sealed with a key that only this process
has, in a file that has no name: whatever ends the process, nothing that can be read is left.
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
class Spill:
    """A file of sealed chunks; `chunks[part]` holds place and size of each chunk of a part in turn."""

    file: IO[bytes]
    cipher: Any
    dtype: np.dtype[Any]
    chunks: dict[Any, array[int]] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def add(self, part: Any, records: Records) -> None:
        """Put some records to those of a part. DisclosurePipelineError where the disk is full."""
        with self.lock:
            at = self.file.seek(0, os.SEEK_END)
            self.file.truncate(at + records.nbytes + _TAG)  # the place is taken
            self.chunks.setdefault(part, array("q")).extend((at, records.nbytes + _TAG))
        sealed = self.cipher.encrypt(at.to_bytes(_NONCE, "big"), records.tobytes(), None)
        try:
            written = os.pwrite(self.file.fileno(), sealed, at)
        except OSError:
            written = 0
        if written != len(sealed):
            raise DisclosurePipelineError(
                f"The disk of {tempfile.gettempdir()!r} is full, or cannot be written: set TMPDIR to a "
                "folder with room."
            )

    def read(self, part: Any) -> Records:
        """All records of a part. DisclosurePipelineError where a chunk is not what was written."""
        chunks = self.chunks.get(part, array("q"))
        places, sizes = chunks[::2], chunks[1::2]
        records = np.empty((sum(sizes) - _TAG * len(sizes)) // self.dtype.itemsize, dtype=self.dtype)
        start = 0
        for at, size in zip(places, sizes, strict=True):
            opened = np.frombuffer(self._opened(at, size), dtype=self.dtype)
            records[start : start + len(opened)] = opened
            start += len(opened)
        return records

    def _opened(self, at: int, size: int) -> bytes:
        from cryptography.exceptions import InvalidTag

        try:
            opened: bytes = self.cipher.decrypt(
                at.to_bytes(_NONCE, "big"), os.pread(self.file.fileno(), size, at), None
            )
            return opened
        except (InvalidTag, OSError, ValueError):
            pass
        raise DisclosurePipelineError(
            f"What was put aside in {tempfile.gettempdir()!r} cannot be read again: its disk is damaged."
        )


@contextmanager
def spill(dtype: np.dtype[Any], records: int) -> Iterator[Spill]:
    """A place for so many records in the folder for temporary files; it is gone after the block.

    InputError where there is no room for them.
    """
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    folder = tempfile.gettempdir()
    needed, free = records * dtype.itemsize, shutil.disk_usage(folder).free
    if free < needed:
        raise InputError(
            f"{needed / 1e9:.1f} GB are needed in {folder!r}, which has {free / 1e9:.1f}: set TMPDIR to a "
            "folder with room."
        )
    with tempfile.TemporaryFile() as file:
        yield Spill(file, AESGCM(AESGCM.generate_key(_KEY_BITS)), dtype)
