"""Progress of long work and its remaining time, on a terminal or in a log."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeAlias

from disclosure_pipeline.errors import write_count

if TYPE_CHECKING:
    from rich.console import Console

OnProgress: TypeAlias = Callable[[str, int, int], None]
"""Called with the current step, the number of its completed parts, and their total.

A total of 0 means that parts are records whose number is not known yet.
"""

_SECONDS_BETWEEN_LOG_LINES = 10.0
_SECONDS_WITHOUT_TIME = 2.0  # a shorter step shows no time


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


def describe_progress(step: str, completed: int, total: int, seconds: float) -> str:
    """Describe how far a step is after `seconds`, and how long it will still take.

    >>> describe_progress("Counting", 1, 4, 20)
    'Counting: 25 %, 60 s left'
    >>> describe_progress("Reading", 1200, 0, 3), describe_progress("Judging", 0, 0, 1)
    ('Reading: 1,200 records, 3 s so far', 'Judging')
    """
    share = f"{step}: {100 * completed // total} %" if total else _count_records(step, completed)
    if seconds < _SECONDS_WITHOUT_TIME:
        return share
    if 0 < completed < total:
        left = seconds * (total - completed) / completed
        return f"{share}, {_format_seconds(math.ceil(max(left, 1)))} left"
    return f"{share}, {_format_seconds(int(seconds))} so far"


def _count_records(step: str, completed: int) -> str:
    return f"{step}: {write_count(completed, 'record')}" if completed else step


def _format_seconds(seconds: int) -> str:
    minutes = round(seconds / 60)
    return f"{seconds} s" if seconds < 100 else f"{minutes} min"  # noqa: PLR2004


@contextmanager
def show_progress() -> Iterator[OnProgress]:
    """Show progress that is reported in the block on standard error.

    It is a bar on a terminal and in a notebook, cleared at its end; elsewhere it is a line when a step begins
    or ends, and every ten seconds.
    """
    from rich.console import Console

    console = Console(stderr=True)
    is_live = console.is_jupyter or (console.is_terminal and not console.is_dumb_terminal)
    lines = log_progress(lambda line: print(line, file=sys.stderr), each_step=True)
    with _show_bar(console) if is_live else nullcontext(lines) as on_progress, listen(on_progress):
        yield on_progress


@contextmanager
def _show_bar(console: Console) -> Iterator[OnProgress]:
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    step = TextColumn("{task.description}", markup=False)
    columns = (step, BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:

        def on_progress(step: str, completed: int, total: int) -> None:
            text = step if total else _count_records(step, completed)
            for task in bar.tasks:
                if task.fields["step"] != step or completed < task.completed:
                    bar.remove_task(task.id)
            shown = bar.task_ids[0] if bar.task_ids else bar.add_task(text, total=total or None, step=step)
            bar.update(shown, description=text, completed=completed, total=total or None)

        yield on_progress


def log_progress(write: Callable[[str], object], *, each_step: bool = False) -> OnProgress:
    """Return a listener that logs progress every ten seconds and passes it to the current listener, too.

    With `each_step` it also logs that a step begins or ends.
    """
    outer = _listener.get()
    last_step, last_completed, began, written_at = "", 0, 0.0, time.monotonic()

    def on_progress(step: str, completed: int, total: int) -> None:
        nonlocal last_step, last_completed, began, written_at
        outer(step, completed, total)
        now = time.monotonic()
        is_new = step != last_step or completed < last_completed
        if is_new:
            began = now
        last_step, last_completed = step, completed
        turns = is_new or 0 < total <= completed
        if now - written_at >= _SECONDS_BETWEEN_LOG_LINES or (each_step and turns):
            written_at = now
            with suppress(Exception):  # a failing log must not stop a measurement
                write(describe_progress(step, completed, total, now - began))

    return on_progress


_SECONDS_BEFORE_EXIT = 0.8
_STANDARD_ERROR = 2  # beneath what a bar puts before it
_CLEAR_LINE = "\r\x1b[2K\x1b[?25h"  # and shows the cursor, which a bar hides


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
                clear = _CLEAR_LINE if os.isatty(_STANDARD_ERROR) else ""
                os.write(_STANDARD_ERROR, f"{clear}Interrupted.\n".encode())
                os._exit(code)
        os.close(reader)

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield interrupted
    finally:
        signal.set_wakeup_fd(before)
        os.close(writer)
