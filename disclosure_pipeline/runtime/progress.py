"""Progress of long work and its remaining time, on a terminal line or in a log."""

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

from disclosure_pipeline.errors import write_count

OnProgress: TypeAlias = Callable[[str, int, int], None]
"""Called with the current step, the number of its completed parts, and their total.

A total of 0 means that parts are records whose number is not known yet.
"""

_SECONDS_BETWEEN_UPDATES = 0.1
_SECONDS_BETWEEN_REDRAWS = 1.0  # of a line without news, to update its time
_SECONDS_BETWEEN_LOG_LINES = 10.0
_SECONDS_WITHOUT_TIME = 2.0  # a shorter step shows no time
_WIDTH = 78


def ignore_progress(_step: str, _completed: int, _total: int) -> None:
    """Show nothing."""


_listener: ContextVar[OnProgress] = ContextVar("on_progress", default=ignore_progress)


def report_progress(step: str, completed: int, total: int) -> None:
    """Report progress to the listener of this thread, by default none."""
    _listener.get()(step, completed, total)


@contextmanager
def listen(on_progress: OnProgress) -> Iterator[None]:
    """Pass progress that is reported in the block to `on_progress`."""
    token = _listener.set(on_progress)
    try:
        yield
    finally:
        _listener.reset(token)


def describe_progress(step: str, completed: int, total: int, seconds: float, since: float = 0.0) -> str:
    """Describe how far a step is after `seconds`, and how long it will still take.

    `since`: seconds since the last part was completed.

    >>> describe_progress("Counting", 1, 4, 20), describe_progress("Counting", 1, 4, 30, since=10)
    ('Counting: 25 %, 60 s left', 'Counting: 25 %, 50 s left')
    >>> describe_progress("Reading", 1200, 0, 3), describe_progress("Judging", 0, 0, 1)
    ('Reading: 1,200 records, 3 s so far', 'Judging')
    """
    if total:
        share = f"{step}: {100 * completed // total} %"
    else:
        share = f"{step}: {write_count(completed, 'record')}" if completed else step
    if seconds < _SECONDS_WITHOUT_TIME:
        return share
    if 0 < completed < total:
        left = (seconds - since) * (total - completed) / completed - since
        return f"{share}, {_format_seconds(math.ceil(max(left, 1)))} left"
    return f"{share}, {_format_seconds(int(seconds))} so far"


def _format_seconds(seconds: int) -> str:
    minutes = round(seconds / 60)
    return f"{seconds} s" if seconds < 100 else f"{minutes} min"  # noqa: PLR2004


class _Line:
    """A line on standard error that is redrawn every second."""

    def __init__(self) -> None:
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._step, self._completed, self._total = "", 0, 0
        self._began = self._updated_at = self._shown_at = 0.0
        self._thread = threading.Thread(target=self._redraw, daemon=True)

    def update(self, step: str, completed: int, total: int) -> None:
        now = time.monotonic()
        is_last = total and completed >= total
        with self._lock:
            is_new = step != self._step or completed < self._completed
            self._step, self._completed, self._total = step, completed, total
            self._updated_at = now
            if is_new:
                self._began = now
            elif not is_last and now - self._shown_at < _SECONDS_BETWEEN_UPDATES:
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

    def _redraw(self) -> None:
        while not self._ended.wait(_SECONDS_BETWEEN_REDRAWS):
            with self._lock:
                now = time.monotonic()
                if now - self._shown_at >= _SECONDS_BETWEEN_REDRAWS and not self._ended.is_set():
                    self._draw(now)

    def clear(self) -> None:
        self._ended.set()
        with self._lock:
            if self._step:
                sys.stderr.write(f"\r{' ' * _WIDTH}\r")
                sys.stderr.flush()


@contextmanager
def show_progress() -> Iterator[OnProgress]:
    """Show progress that is reported in the block on a line that is cleared at its end."""
    line = _Line()
    try:
        with listen(line.update):
            yield line.update
    finally:
        line.clear()


def log_progress(write: Callable[[str], object]) -> OnProgress:
    """Return a listener that logs progress every ten seconds and passes it to the current listener, too."""
    outer = _listener.get()
    last_step, last_completed, began, written_at = "", 0, 0.0, time.monotonic()

    def on_progress(step: str, completed: int, total: int) -> None:
        nonlocal last_step, last_completed, began, written_at
        outer(step, completed, total)
        now = time.monotonic()
        if step != last_step or completed < last_completed:
            began = now
        last_step, last_completed = step, completed
        if now - written_at >= _SECONDS_BETWEEN_LOG_LINES:
            written_at = now
            with suppress(Exception):  # a failing log must not stop a measurement
                write(describe_progress(step, completed, total, now - began))

    return on_progress


_SECONDS_BEFORE_EXIT = 0.8


@contextmanager
def watch_interrupts(code: int | None) -> Iterator[threading.Event]:
    """Yield an event that is set on an interrupt; with a `code`, the process exits with it within a second.

    The exit cuts off a long sort or running threads, so use a `code` only for work that writes no files.
    Signals arrive on the main thread: on any other, the event is never set.
    """
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    def watch() -> None:
        while number := os.read(reader, 1):  # empty once the block has ended
            if number[0] != signal.SIGINT:
                continue
            interrupted.set()
            if code is not None:
                time.sleep(_SECONDS_BEFORE_EXIT)
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
