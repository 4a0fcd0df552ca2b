"""Seconds, CPU seconds and peak memory of works, each in a process of its own, in turn."""

from __future__ import annotations

import gc
import signal
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil

Prepare = Callable[..., Callable[[], Any]]
"""Loads what a work needs and returns the work; has to be a function of a module."""

# What takes long to import, and what peers are compared by: imported once, before any work has begun.
_IMPORTED = (
    "disclosure_pipeline.tables.contract",
    "pandera.pandas",
    "pyarrow.parquet",
    "duckdb",
    "polars",
)

SECONDS = 300  # what takes longer is stopped
LONG = 10  # seconds from which on a work is run FEW times instead of OFTEN
OFTEN, FEW = 5, 3


@dataclass(frozen=True)
class Run:
    """CPU seconds are those of all threads; `peak`: bytes over what the process held before."""

    seconds: float
    cpu: float
    peak: int
    result: Any


@dataclass
class Measured:
    """`first` has the peak of memory, as nothing ran before it, and the result; `runs` have the times."""

    first: Run | None = None
    runs: list[Run] = field(default_factory=list)
    failed: str = ""

    @property
    def seconds(self) -> float:
        return statistics.median(run.seconds for run in self.runs)

    @property
    def cpu(self) -> float:
        return statistics.median(run.cpu for run in self.runs)


def resident(field_name: str) -> int:
    """Bytes of resident memory of this process: VmRSS now, VmHWM at its peak."""
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith(field_name))
    return int(line.split()[1]) * 1024


def cpu_seconds() -> float:
    """CPU seconds of this process and of those below it, such as a gate's worker processes, or Spark's."""
    children = psutil.Process().children(recursive=True)
    # Of each its own, and of those that it waited for; not its waits for a disk, which come last.
    return time.process_time() + sum(sum(child.cpu_times()[:4]) for child in children)


def run(work: Callable[[], Any]) -> Run:
    """Run a work in this process."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = resident("VmRSS")
    start, cpu = time.perf_counter(), cpu_seconds()
    result = work()
    seconds, cpu = time.perf_counter() - start, cpu_seconds() - cpu
    return Run(seconds, cpu, resident("VmHWM") - before, result)


def measured(work: Callable[[], Any]) -> tuple[float, float]:
    """CPU seconds, and megabytes of peak memory over what was there before."""
    measurement = run(work)
    return measurement.cpu, measurement.peak / 1e6


class StoppedError(Exception):
    """Why a work has no result."""


@dataclass(frozen=True)
class Worker:
    """A process that prepared a work."""

    process: Any
    connection: Connection

    def ask(self, question: Callable[[Callable[[], Any]], Any]) -> Any:
        """The answer of a function of a module, which is called in the process with the work."""
        self.connection.send(question)
        return self.answer()

    def answer(self) -> Any:
        if not self.connection.poll(SECONDS):
            self.process.kill()
            raise StoppedError(f"over {SECONDS} s")
        try:
            reply = self.connection.recv()
        except EOFError:
            self.process.join()
            killed = self.process.exitcode == -signal.SIGKILL  # which is how the system gets memory back
            raise StoppedError("out of memory" if killed else "crashed") from None
        if isinstance(reply, StoppedError):
            raise reply
        return reply


@contextmanager
def worker(prepare: Prepare, *arguments: Any) -> Iterator[Worker]:
    """A process of its own, forked from one that only imported; how it begins is not timed."""
    context = get_context("forkserver")
    context.set_forkserver_preload(list(_IMPORTED))
    connection, of_process = context.Pipe()
    process = context.Process(target=_serve, args=(of_process, prepare, arguments), daemon=True)
    process.start()
    of_process.close()
    try:
        yield Worker(process, connection)
    finally:
        process.kill()
        process.join()
        connection.close()


def _serve(connection: Connection, prepare: Prepare, arguments: tuple[Any, ...]) -> None:
    try:
        work = prepare(*arguments)
        gc.freeze()  # what is imported is not looked through before every run
        connection.send("ready")
        while True:
            connection.send(connection.recv()(work))
    except MemoryError:
        connection.send(StoppedError("out of memory"))
    except Exception as error:
        out = "OutOfMemory" in type(error).__name__
        connection.send(StoppedError("out of memory" if out else f"failed: {type(error).__name__}"))
        if not out:
            raise


def in_turn(
    works: Mapping[str, tuple[Prepare, Sequence[Any]]],
    check: Callable[[Mapping[str, Any]], None],
) -> dict[str, Measured]:
    """Run every work once, for its memory and its result, which are checked; then all, several times."""
    measurements = {name: Measured() for name in works}
    with _workers(works, measurements) as workers:
        for name in works:
            _try(measurements[name], workers[name], first=True)
        check(
            {
                name: measured_work.first.result
                for name, measured_work in measurements.items()
                if measured_work.first
            }
        )
        for i in range(OFTEN):
            for name, measured_work in measurements.items():
                if measured_work.first and (i < FEW or measured_work.first.seconds < LONG):
                    _try(measured_work, workers[name], first=False)
    return measurements


@contextmanager
def _workers(
    works: Mapping[str, tuple[Prepare, Sequence[Any]]], measurements: Mapping[str, Measured]
) -> Iterator[dict[str, Worker]]:
    with ExitStack() as stack:
        started = {
            name: stack.enter_context(worker(prepare, *arguments))
            for name, (prepare, arguments) in works.items()
        }
        for name, started_worker in started.items():  # all are ready before one is measured
            try:
                started_worker.answer()
            except StoppedError as reason:
                measurements[name].failed = str(reason)
        yield started


def _try(measurement: Measured, worker_of_work: Worker, *, first: bool) -> None:
    if measurement.failed:
        return
    try:
        result = worker_of_work.ask(run)
    except StoppedError as reason:
        measurement.failed = str(reason)
        return
    if first:
        measurement.first = result
    else:
        measurement.runs.append(result)
