"""Progress on a terminal and in a log, and what an interrupt ends."""

import io
import re
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import click
import pytest
from click.testing import CliRunner
from support import gates
from support.gates import HONEST, Home
from support.processes import PIPE, running_program

from disclosure_pipeline.cli.printing import ExitCode, report_errors
from disclosure_pipeline.runtime import progress
from disclosure_pipeline.runtime.progress import listen, log_progress, report_progress, show_progress

CLEAR = "\r\x1b[2K"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which stands still unless it is changed."""
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_a_bar_and_clears_it(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    for name, value in {"TERM": "xterm", "COLUMNS": "100", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    with show_progress() as on_progress:
        report_progress("Counting [all]", 1, 4)
        time.sleep(0.3)
        report_progress("Reading", 1200, 0)
        time.sleep(0.3)
        on_progress("Judging", 0, 0)
        time.sleep(0.3)
    report_progress("Unheard", 1, 2)
    shown = terminal.getvalue().split(CLEAR)
    for step in (r"Counting \[all\] \S+ +25% ", r"Reading: 1,200 records ", "Judging (?!.*%)"):
        assert any(re.match(step, line) for line in shown), (step, shown)
    assert terminal.getvalue().endswith("\x1b[2K")
    assert "Unheard" not in terminal.getvalue()


def test_elsewhere_a_line_says_that_a_step_begins_or_ends(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with show_progress():
        for completed in range(5):
            report_progress("Counting", completed, 4)
            clock[0] += 3
        report_progress("Judging", 0, 0)
        report_progress("Judging", 0, 0)
        clock[0] += 10
        report_progress("Judging", 0, 0)
    report_progress("Unheard", 1, 2)
    assert capsys.readouterr().err.splitlines() == [
        "Counting: 0 %",
        "Counting: 100 %, 12 s so far",
        "Judging",
        "Judging, 10 s so far",
    ]


def test_a_log_has_a_line_every_ten_seconds(clock: list[float]) -> None:
    written: list[str] = []
    heard: list[int] = []
    with listen(lambda _step, completed, _total: heard.append(completed)):
        on_progress = log_progress(written.append)
    for second in range(31):
        on_progress("Counting", second, 60)
        clock[0] += 1
    assert heard == list(range(31))
    assert written == [f"Counting: {second * 100 // 60} %, {60 - second} s left" for second in (10, 20, 30)]


def test_a_log_that_cannot_be_written_stops_nothing(clock: list[float]) -> None:
    on_progress = log_progress(lambda _: 1 / 0)
    clock[0] += 11
    on_progress("Counting", 1, 2)


def test_a_run_logs_its_progress(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LOG_LINES", 0.0)
    home.prepare({HONEST: gates.honest()})
    run = home.run_gate(HONEST)
    logged = [entry.user_message for entry in home.instance.all_logs(run.run_id) if not entry.dagster_event]
    for step in ("Working on the dossier", "Reading the ground truth", "Measuring the controls", "Writing"):
        assert [message for message in logged if message.startswith(step)], step


_STUCK = """
import hashlib, signal
from disclosure_pipeline.runtime.progress import watch_interrupts

signal.signal(signal.SIGINT, lambda *_: None)  # whatever handles it comes too late
with watch_interrupts(3):
    print("begun", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2_000_000_000)
"""


def test_an_interrupt_ends_what_handles_no_signal() -> None:
    with running_program([sys.executable, "-c", _STUCK], stdout=PIPE, stderr=PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "Interrupted." in errors


def _end_as_Dagster_does() -> None:  # noqa: N802
    with suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    time.sleep(0.1)
    sys.exit(ExitCode.CRASHED)


@pytest.mark.parametrize(
    ("work", "code"),
    [
        (lambda: signal.raise_signal(signal.SIGINT), ExitCode.UNDETERMINED),
        (_end_as_Dagster_does, ExitCode.UNDETERMINED),
        (partial(sys.exit, ExitCode.CRASHED), ExitCode.CRASHED),
    ],
    ids=["raised", "swallowed", "a crash"],
)
def test_an_interrupt_is_no_refusal(work: Callable[[], None], code: ExitCode) -> None:
    """Nor a crash, for which Dagster takes it; which one is without an interrupt."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        ended = CliRunner().invoke(click.command(report_errors()(work)))
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.exit_code == code
    assert ("Interrupted." in ended.output) == (code == ExitCode.UNDETERMINED)
