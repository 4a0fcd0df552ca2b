"""Progress of long work, with the time that it still takes: on a line of a terminal, or in a log."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TypeAlias

OnProgress: TypeAlias = Callable[[str, int, int], None]
"""Called with the step that is under way, and how many of its parts, of how many, are completed.

A total of 0 stands for records whose number is not known yet.
"""

_SECONDS_BETWEEN = 0.1  # two updates of the line
_SECONDS_ALIKE = 1.0  # after which the line shows how long a step takes, whether it moves or not
_LOGGED_EVERY = 10.0  # seconds
_LONG = 2.0  # seconds: what ends before needs no time beside it
_WIDTH = 78


def ignore_progress(_step: str, _completed: int, _total: int) -> None:
    """Show nothing."""


_listener: ContextVar[OnProgress] = ContextVar("on_progress", default=ignore_progress)


def report_progress(step: str, completed: int, total: int) -> None:
    """Tell whoever listens on this thread; nobody does by default."""
    _listener.get()(step, completed, total)


@contextmanager
def listen(on_progress: OnProgress) -> Iterator[None]:
    """Hand what is reported while the block runs to `on_progress`."""
    token = _listener.set(on_progress)
    try:
        yield
    finally:
        _listener.reset(token)


def describe_progress(step: str, completed: int, total: int, seconds: float, since: float = 0.0) -> str:
    """Describe a step after so many seconds: how far it is, and how long it takes yet.

    `since`: the seconds that have gone since it was so far.

    >>> describe_progress("Counting", 1, 4, 20), describe_progress("Counting", 1, 4, 30, since=10)
    ('Counting: 25 %, 60 s left', 'Counting: 25 %, 50 s left')
    >>> describe_progress("Reading", 1200, 0, 3), describe_progress("Judging", 0, 0, 1)
    ('Reading: 1,200 records, 3 s so far', 'Judging')
    """
    if total:
        share = f"{step}: {100 * completed // total} %"
    else:
        share = f"{step}: {completed:,} records" if completed else step
    if seconds < _LONG:
        return share
    if 0 < completed < total:
        left = (seconds - since) * (total - completed) / completed - since
        return f"{share}, {_format_seconds(math.ceil(max(left, 1)))} left"
    return f"{share}, {_format_seconds(int(seconds))} so far"


def _format_seconds(seconds: int) -> str:
    minutes = round(seconds / 60)
    return f"{seconds} s" if seconds < 100 else f"{minutes} min"  # noqa: PLR2004


class _Line:
    """One line of the standard error stream, which is drawn again every second."""

    def __init__(self) -> None:
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._step, self._completed, self._total = "", 0, 0
        self._began = self._updated_at = self._shown_at = 0.0
        self._thread = threading.Thread(target=self._draw_again, daemon=True)

    def update(self, step: str, completed: int, total: int) -> None:
        now = time.monotonic()
        is_last = total and completed >= total
        with self._lock:
            is_new = step != self._step or completed < self._completed
            self._step, self._completed, self._total = step, completed, total
            self._updated_at = now
            if is_new:
                self._began = now
            elif not is_last and now - self._shown_at < _SECONDS_BETWEEN:
                return
            self._draw(now)
        if self._thread.ident is None:
            self._thread.start()

    def _draw(self, now: float) -> None:
        self._shown_at = now
        seconds, since = now - self._began, now - self._updated_at
        text = describe_progress(self._step, self._completed, self._total, seconds, since)
        sys.stderr.write(f"\r{text[:_WIDTH]:<{_WIDTH}}")
        sys.stderr.flush()

    def _draw_again(self) -> None:
        while not self._ended.wait(_SECONDS_ALIKE):
            with self._lock:
                now = time.monotonic()
                if now - self._shown_at >= _SECONDS_ALIKE and not self._ended.is_set():
                    self._draw(now)

    def clear(self) -> None:
        self._ended.set()
        with self._lock:
            if self._step:
                sys.stderr.write(f"\r{' ' * _WIDTH}\r")
                sys.stderr.flush()


@contextmanager
def show_progress() -> Iterator[OnProgress]:
    """Show what is reported while the block runs; the line is cleared at its end, however it ends."""
    line = _Line()
    try:
        with listen(line.update):
            yield line.update
    finally:
        line.clear()


def log_progress(write: Callable[[str], object]) -> OnProgress:
    """Return what writes the progress of a step into a log, every ten seconds; others hear it, too."""
    outer = _listener.get()
    last_step, last_completed, began, written_at = "", 0, 0.0, time.monotonic()

    def on_progress(step: str, completed: int, total: int) -> None:
        nonlocal last_step, last_completed, began, written_at
        outer(step, completed, total)
        now = time.monotonic()
        if step != last_step or completed < last_completed:
            began = now
        last_step, last_completed = step, completed
        if now - written_at >= _LOGGED_EVERY:
            written_at = now
            with suppress(Exception):  # no log stands in the way of a measurement
                write(describe_progress(step, completed, total, now - began))

    return on_progress


_SECONDS_TO_END = 0.8


@contextmanager
def watch_interrupts(code: int | None) -> Iterator[threading.Event]:
    """Give the block what is set once an interrupt has come; with a `code` the process ends with it soon.

    Within a second, whatever it is doing: what does not end by itself, such as a long sort or threads, is cut
    off. That is for work that leaves no files. Does nothing but on the main thread, where signals arrive.
    """
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    def watch() -> None:
        while number := os.read(reader, 1):  # nothing once the block has ended
            if number[0] != signal.SIGINT:
                continue
            interrupted.set()
            if code is not None:
                time.sleep(_SECONDS_TO_END)
                sys.stderr.write(f"\r{'Interrupted.':<{_WIDTH}}\n")
                sys.stderr.flush()
                os._exit(code)
        os.close(reader)

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield interrupted
    finally:
        signal.set_wakeup_fd(before)
        os.close(writer)
