"""Where a work spends its time: its threads are looked at every few milliseconds."""

from __future__ import annotations

import linecache
import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import disclosure_pipeline as dp

_EVERY = 0.002
_ROOT = Path(dp.__file__).parent
_WAITING = ("threading.py", "thread.py", "queue.py")


@dataclass(frozen=True)
class Place:
    """A function of the package, the share of time spent there, and its line that takes most."""

    module: str
    function: str
    share: float
    line: str


def profiled(work: Callable[[], Any]) -> list[Place]:
    """The functions in which the threads were met, but for waiting, from the most frequent on."""
    seen: Counter[tuple[str, str, int]] = Counter()
    over = threading.Event()

    def look() -> None:
        own = threading.get_ident()
        while not over.wait(_EVERY):
            for thread, frame in sys._current_frames().items():
                place = None if thread == own else _place(frame)
                if place:
                    seen[place] += 1

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        work()
    finally:
        over.set()
        watcher.join()
    functions: Counter[tuple[str, str]] = Counter()
    for (file, function, _), times in seen.items():
        functions[file, function] += times
    return [
        Place(
            Path(file).relative_to(_ROOT).as_posix(),
            function,
            times / seen.total(),
            _most(seen, file, function),
        )
        for (file, function), times in functions.most_common()
    ]


def _place(frame: FrameType | None) -> tuple[str, str, int] | None:
    """The innermost function of the package; None for a thread that waits, or works for somebody else."""
    if frame and Path(frame.f_code.co_filename).name in _WAITING:
        return None
    while frame and _ROOT not in Path(frame.f_code.co_filename).parents:
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_code.co_name, frame.f_lineno) if frame else None


def _most(seen: Counter[tuple[str, str, int]], file: str, function: str) -> str:
    lines = {line: times for (of, name, line), times in seen.items() if (of, name) == (file, function)}
    return linecache.getline(file, max(lines, key=lambda line: lines[line])).strip()
