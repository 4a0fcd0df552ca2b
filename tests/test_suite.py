"""What the suite promises of itself: no test hangs, none leans on another test's module."""

from __future__ import annotations

import ast
import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import psutil
import pytest
from support import sampling
from support.paths import ROOT
from support.processes import PIPE, fork, run_program, running_program
from support.sampling import some_of

TESTS = ROOT / "tests"


def imported(path: Path) -> Iterator[str]:
    """The modules that a file imports, with the names that it takes of them."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_no_test_leans_on_the_module_of_another() -> None:
    """What several share lies in tests/support."""
    leaning = [
        f"{path}: {name}"
        for path in TESTS.rglob("*.py")
        for name in imported(path)
        if any(part.startswith("test_") and (part != name.split(".")[-1]) for part in name.split("."))
        or name.startswith("test_")
    ]
    assert not leaning


HANGS = """
import signal, subprocess, sys, time
program = "import time; time.sleep(3600)"
child = subprocess.Popen([sys.executable, "-c", program], start_new_session=True)
print(child.pid, flush=True)
time.sleep(3600)
"""
IGNORES = """
import signal
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
"""


def gone(process: int) -> bool:
    """Whether a process ended, be it that nobody has asked for its exit code yet."""
    for _ in range(200):
        try:
            if psutil.Process(process).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.05)
    return False


def test_a_program_that_hangs_is_killed_with_its_children() -> None:
    """Also one that ignores all that it may, whose child has a session of its own."""
    with running_program([sys.executable, "-c", IGNORES + HANGS], limit=3, stdout=PIPE) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        assert process.stdout.read() == ""  # until the limit
        assert process.wait(10) == -signal.SIGKILL
        assert gone(child)


@pytest.mark.parametrize("handler", [signal.SIG_DFL, signal.SIG_IGN])
def test_a_program_ends_with_the_test_that_started_it(handler: signal.Handlers) -> None:
    """Also where this process ignores what ends it."""
    before = signal.signal(signal.SIGTERM, handler)
    try:
        with running_program([sys.executable, "-c", HANGS], stdout=PIPE) as process:
            assert process.stdout is not None
            child = int(process.stdout.readline())
        assert process.returncode == -signal.SIGTERM
        assert gone(child) and signal.getsignal(signal.SIGTERM) is handler
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_forked_child_is_killed_when_it_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("support.processes.PATIENCE", 1)
    child = fork(time.sleep, 3600)
    with pytest.raises(AssertionError, match="was not done after 1 seconds"):
        child.result()
    assert not child.process.is_alive()


@pytest.mark.parametrize("in_ci", [False, True])
def test_a_tenth_every_day_and_everything_in_ci(in_ci: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "CI", in_ci)
    cases = [f"case {number}" for number in range(95)]
    drawn = some_of(cases)
    assert drawn == sorted(drawn, key=cases.index) == some_of(cases)
    assert len(set(drawn)) == (95 if in_ci else 10)
    assert some_of(cases[:1]) == cases[:1]
    assert len(some_of(cases[:3], 2)) == (3 if in_ci else 2)


@pytest.mark.parametrize("given", [None, 7])
def test_the_sample_is_that_of_the_day_or_of_the_seed_given(given: int | None) -> None:
    """And that of the processes that are started, also after midnight."""
    program = "import os; from support.sampling import SEED; print(SEED, os.environ['SAMPLE_SEED'])"
    environment = {name: value for name, value in os.environ.items() if name != "SAMPLE_SEED"}
    environment |= {"PYTHONPATH": str(TESTS)} | ({} if given is None else {"SAMPLE_SEED": str(given)})
    days = [date.today()]
    ran = run_program([sys.executable, "-c", program], env=environment)
    days.append(date.today())
    seed, inherited = map(int, ran.stdout.split())
    assert seed == inherited
    assert seed in ([given] if given else [int(day.strftime("%Y%m%d")) for day in days])


def test_nothing_but_sampling_asks_whether_this_is_ci() -> None:
    """But for packages that are missing, which are a failure there."""
    asking = {
        path.relative_to(TESTS).as_posix()
        for path in TESTS.rglob("*.py")
        if re.search(r"environ.*\bCI\b", path.read_text(encoding="utf-8"))
    }
    assert asking <= {"support/sampling.py", "support/services.py", "mutants.py", "test_suite.py"}
