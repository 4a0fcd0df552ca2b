"""Whatever way the records are counted, every figure is the same; and the work can be watched and stopped."""

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from support.figures import assert_same
from support.processes import PIPE, running_program
from support.sampling import only_in_ci
from support.surveys import TARGETS, survey

import disclosure_pipeline as dp
from disclosure_pipeline.counting.cells import count_tables
from disclosure_pipeline.counting.counts import CountRequest, Target
from disclosure_pipeline.counting.memory import engine as memory
from disclosure_pipeline.counting.memory import packing, radix, sorting
from disclosure_pipeline.counting.memory.radix import Limits
from disclosure_pipeline.measures.checks import CodedExclusions
from disclosure_pipeline.runtime.machine import count_cores, map_in_threads, run_in_threads, threads_for
from disclosure_pipeline.tables.alignment import check_tables
from disclosure_pipeline.tables.grouping import Grouping


def test_the_paths_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    frames = [survey(4000, 1), survey(4000, 2)]
    tables = check_tables(frames[0], frames[1:], ["age", "sex"], TARGETS, Grouping({}, {}, "pooled"))
    keys, targets = tables.code(tables.keys), tables.code(tables.targets)
    request = CountRequest(keys, [Target(target, CodedExclusions(), math.inf) for target in targets])

    def steps(limits: Limits) -> set[str]:
        message: list[str] = []
        monkeypatch.setattr(memory, "Limits", lambda: limits)
        opened = memory.FramesInMemory((), "memory")
        count_tables(opened, [request], lambda step, completed, total: message.append(step))
        return set(message)

    assert "Packing" not in steps(Limits())
    assert {"Packing", "Counting the targets"} <= steps(Limits(table=1000))
    assert "Counting the keys" not in steps(Limits(table=0))
    job = radix.Job(request, radix.build_radix(keys, (4000, 4000), 1 << 60), (4000, 4000), Limits())
    packed = packing.Packing(job.keys, tuple(request.targets), 2)
    assert sorting.pack_records(job, packed).dtype == np.uint32


# Threads, progress, interruption


def test_results_are_in_the_order_of_the_tasks() -> None:
    def task(i: int) -> int:
        time.sleep(0.01 * (i % 3))
        return i

    message: list[tuple[int, int]] = []
    assert run_in_threads(
        [partial(task, i) for i in range(9)], 5, lambda *progress: message.append(progress)
    ) == list(range(9))
    assert message == [(i, 9) for i in range(1, 10)]
    assert run_in_threads([], 2) == []
    assert run_in_threads([threading.get_ident], 0) == [threading.get_ident()]
    assert run_in_threads([threading.get_ident], 1) != [threading.get_ident()]
    assert threads_for(10) == 0 < threads_for(10_000_000) == count_cores()


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_what_a_task_raises_ends_the_work(error: type[BaseException]) -> None:
    begun: list[int] = []

    def task(i: int) -> None:
        begun.append(i)
        time.sleep(0.02)
        if i == 1:
            raise error

    before = set(threading.enumerate())
    with pytest.raises(error):
        run_in_threads([partial(task, i) for i in range(100)], 2)
    assert len(begun) < 20
    assert set(threading.enumerate()) <= before


def test_progress_is_shown_where_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    ask: Callable[..., dp.Disclosure] = partial(
        dp.disclosure, survey(4000, 1), survey(5000, 2), ["age", "sex"], TARGETS
    )
    quiet = ask()
    assert capsys.readouterr() == ("", "")
    assert_same(ask(progress=True), quiet)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Measuring: 100 %" in shown.err.splitlines()


INTERRUPTED = """
import signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the suite runs in the background
import numpy as np, pandas as pd
import disclosure_pipeline as dp
rng = np.random.default_rng(1)
frame = pd.DataFrame({name: rng.integers(0, 3000, 6_000_000) for name in "abct"})
before = time.process_time()
dp.disclosure(frame, frame, ["a", "b", "c"], ["t"])
print(time.process_time() - before, flush=True)
try:
    while True:
        dp.disclosure(frame, frame, ["a", "b", "c"], ["t"])
except KeyboardInterrupt:
    print(time.process_time(), threading.active_count(), flush=True)
"""


def processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_an_interrupt_while_a_pool_ends_still_waits_for_its_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupts, join = [KeyboardInterrupt()], threading.Thread.join

    def join_or_interrupt(thread: threading.Thread, timeout: float | None = None) -> None:
        if interrupts:
            raise interrupts.pop()
        join(thread, timeout)

    monkeypatch.setattr(threading.Thread, "join", join_or_interrupt)
    before = set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt):
        run_in_threads([threading.get_ident] * 9, 4)
    assert set(threading.enumerate()) <= before


def test_an_interrupt_while_a_thread_starts_waits_for_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool does not know of this thread: it keeps those whose start has ended."""
    start, started = threading.Thread.start, list[threading.Thread]()

    def start_and_interrupt(thread: threading.Thread) -> None:
        start(thread)
        started.append(thread)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", start_and_interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_in_threads([partial(time.sleep, 0.01)] * 9, 4)
    [thread] = started
    assert not thread.is_alive()


def test_an_interrupt_between_two_results_leaves_no_thread() -> None:
    before = set(threading.enumerate())

    with pytest.raises(KeyboardInterrupt):
        for _ in map_in_threads(range(9), abs, 2):
            raise KeyboardInterrupt
    assert set(threading.enumerate()) <= before


@only_in_ci("a process that counts millions of records")
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks the system for a process's time")
def test_an_interrupt_ends_the_work_at_once_and_leaves_nothing(tmp_path: Path) -> None:
    """Measured in what the processors do, since a busy machine can take any time."""
    environment = os.environ | {"TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    with running_program(
        [sys.executable, "-c", INTERRUPTED], stdout=PIPE, env=environment, cwd=tmp_path
    ) as process:
        assert process.stdout is not None
        whole = float(process.stdout.readline())
        started = processor_seconds(process.pid)
        while processor_seconds(process.pid) < started + 0.2 * whole:
            time.sleep(0.01)
        used = processor_seconds(process.pid)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    used_in_all, threads = out.split()
    assert threads == "1"
    assert float(used_in_all) - used < 0.5 * whole
    assert list(tmp_path.iterdir()) == []
