"""Progress of long work, on one line of the standard error stream."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

OnProgress: TypeAlias = Callable[[str, int, int], None]
"""Called with the step that is under way, and how many of its parts, of how many, are completed.

A total of 0 stands for records whose number is not known yet.
"""

_SECONDS_BETWEEN = 0.1  # two updates of the line
_WIDTH = 60


def ignore_progress(_step: str, _completed: int, _total: int) -> None:
    """Show nothing."""


@contextmanager
def show_progress() -> Iterator[OnProgress]:
    """Show progress while the block runs; the line is cleared at its end, however it ends."""
    last_step, shown_at = "", 0.0

    def on_progress(step: str, completed: int, total: int) -> None:
        nonlocal last_step, shown_at
        now = time.monotonic()
        is_last = total and completed >= total
        if step == last_step and not is_last and now - shown_at < _SECONDS_BETWEEN:
            return
        last_step, shown_at = step, now
        share = f"{100 * completed // total} %" if total else f"{completed:,} records"
        sys.stderr.write(f"\r{f'{step}: {share}':<{_WIDTH}}")
        sys.stderr.flush()

    try:
        yield on_progress
    finally:
        if last_step:
            sys.stderr.write(f"\r{' ' * _WIDTH}\r")
            sys.stderr.flush()
