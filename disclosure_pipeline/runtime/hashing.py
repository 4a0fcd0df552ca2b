"""Hashing a stream piece by piece, so that a file of any size is read once and never held whole."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import IO, NamedTuple

_CHUNK = 1 << 20


class HashedStream(NamedTuple):
    """The sha256 of a stream's bytes, in hexadecimal, and their number."""

    sha256: str
    bytes: int


def hash_stream(stream: IO[bytes], on_chunk: Callable[[bytes], object] | None = None) -> HashedStream:
    """Hash a stream from here to its end; `on_chunk` gets every part of it, to be written."""
    digest, size = hashlib.sha256(), 0
    while chunk := stream.read(_CHUNK):
        digest.update(chunk)
        size += len(chunk)
        if on_chunk is not None:
            on_chunk(chunk)
    return HashedStream(digest.hexdigest(), size)
