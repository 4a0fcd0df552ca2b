"""Progress of long work, on one line of the standard error stream."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

Progress: TypeAlias = Callable[[str, int, int], None]
"""Told what is being done, and how many steps of how many are done; of 0 are records of an unknown number."""

_EVERY = 0.1  # seconds
_WIDTH = 60


def silent(_what: str, _done: int, _of: int) -> None:
    """Show nothing."""


@contextmanager
def shown() -> Iterator[Progress]:
    """Show progress while the block runs; the line is cleared at its end, however it ends."""
    last, shown_at = "", 0.0

    def show(what: str, done: int, of: int) -> None:
        nonlocal last, shown_at
        now = time.monotonic()
        if what == last and (done < of or not of) and now - shown_at < _EVERY:
            return
        last, shown_at = what, now
        far = f"{100 * done // of} %" if of else f"{done:,} records"
        sys.stderr.write(f"\r{f'{what}: {far}':<{_WIDTH}}")
        sys.stderr.flush()

    try:
        yield show
    finally:
        if last:
            sys.stderr.write(f"\r{' ' * _WIDTH}\r")
            sys.stderr.flush()
