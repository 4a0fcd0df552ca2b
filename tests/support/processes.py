"""Processes of the tests: programs, and forked children. Each has a limit, after which it is killed.

A child is forked from a process in which everything is imported: starting Python anew would take seconds
each time.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn

import psutil

if TYPE_CHECKING:
    from multiprocessing.context import ForkProcess

# Seconds after which something hangs. Far more than anything takes on a machine that is busy.
PATIENCE = 300

Finished = subprocess.CompletedProcess[str]
Process = subprocess.Popen[str]
PIPE = subprocess.PIPE

FORK = multiprocessing.get_context("fork")


# Programs


@contextmanager
def running_program(
    command: Sequence[str | Path],
    *,
    limit: float = PATIENCE,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    user: str | None = None,
    stop: signal.Signals = signal.SIGTERM,
    stdout: int | IO[str] = subprocess.DEVNULL,
    stderr: int | IO[str] = subprocess.DEVNULL,
) -> Iterator[Process]:
    """A program that runs meanwhile; ended with all its children at the end, or killed after `limit` seconds.

    It has a session of its own, so that what the terminal or the system sends to the suite does not reach it.
    """
    with _default_handling(stop):
        process = subprocess.Popen(
            command,
            env=env,
            cwd=cwd,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            text=True,
            start_new_session=True,
        )
    watchdog = threading.Timer(limit, lambda: kill(_tree(process.pid)))
    watchdog.daemon = True
    watchdog.start()
    try:
        yield process
    finally:
        watchdog.cancel()
        tree = _tree(process.pid)
        if process.poll() is None:
            process.send_signal(stop)
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
        kill(tree)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


@contextmanager
def _default_handling(number: signal.Signals) -> Iterator[None]:
    """A program inherits what is ignored here: Dagster ignores SIGTERM where SIGINT is, in the background."""
    handler = signal.getsignal(number)
    if handler is not signal.SIG_IGN or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(number, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(number, handler)


def run_program(
    command: Sequence[str | Path],
    *,
    limit: float = PATIENCE,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    user: str | None = None,
) -> Finished:
    """Run a program; return its output and exit code. Fail if it is not done after `limit` seconds.

    Its output goes to files: a pipe would also wait for programs that it leaves running, such as a database.
    """
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        with running_program(
            command, limit=2 * limit, env=env, cwd=cwd, user=user, stdout=out, stderr=err
        ) as process:
            with suppress(subprocess.TimeoutExpired):
                process.wait(limit)
            code = process.returncode
        for file in (out, err):
            file.seek(0)
        finished = Finished(list(command), code, out.read(), err.read())
    if code is None:
        printed = (finished.stdout + finished.stderr)[-2000:]
        raise AssertionError(f"A program was not done after {limit} seconds: {command[0]}\n{printed}")
    return finished


def wait_until(is_there: Callable[[], bool], problem: str, process: Process | None = None) -> None:
    """Wait until something is there. It fails where that takes far too long, or the process has ended."""
    limit = time.monotonic() + 2 * PATIENCE
    while not is_there():
        assert time.monotonic() < limit and (process is None or process.poll() is None), problem
        time.sleep(0.1)


def _tree(process: int) -> list[psutil.Process]:
    try:
        root = psutil.Process(process)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def kill(processes: Sequence[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()


@contextmanager
def no_child_left() -> Iterator[None]:
    """End what another package started meanwhile and left running, such as Dagster's code servers.

    They are told to shut down and outlive the test that told them; who waits for them waits for ever. A child
    in a session of its own is found as well, one whose parent has ended is not.
    """
    before = {process.pid for process in _tree(os.getpid())}
    try:
        yield
    finally:
        left = [process for process in _tree(os.getpid()) if process.pid not in before]
        _, alive = psutil.wait_procs(left, timeout=5)
        kill(alive)
        psutil.wait_procs(alive, timeout=10)


# Forked children


@dataclass(frozen=True)
class Child:
    process: ForkProcess
    outcome: Connection

    def wait(self) -> int:
        """Wait until it ended, and return its exit code. A child that hangs is a failure."""
        self.process.join(PATIENCE)
        if self.process.exitcode is None:
            self.kill()
            raise AssertionError(f"A process was not done after {PATIENCE} seconds")
        return self.process.exitcode

    def result(self) -> Any:
        """Return what the function returned. Fail if the child raised, died or hangs."""
        if not self.outcome.poll(PATIENCE):
            self.kill()
            raise AssertionError(f"A process was not done after {PATIENCE} seconds")
        try:
            problem, value = self.outcome.recv()
        except EOFError:
            raise AssertionError(f"A process died: {self.wait()}") from None
        assert self.wait() == 0
        assert problem is None, problem
        return value

    def kill(self) -> None:
        if self.process.pid is not None and self.process.is_alive():
            kill(_tree(self.process.pid))
        self.process.join()

    def hold(self) -> bool:
        """Stop it where it is, with all its threads; whether it had not ended by then."""
        if self.process.pid is None or self.process.exitcode is not None:
            return False
        os.kill(self.process.pid, signal.SIGSTOP)
        became = os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        return became is not None and became.si_code == os.CLD_STOPPED

    def go_on(self) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, signal.SIGCONT)

    def was_killed(self) -> bool:
        """Wait until it ended: whether by SIGKILL, or with its function done."""
        code = self.wait()
        assert code in {0, -signal.SIGKILL}
        return code != 0


def fork(function: Callable[..., Any], *arguments: Any) -> Child:
    import great_expectations  # noqa: F401 (what takes seconds to import is there before the fork)

    receives, sends = FORK.Pipe(duplex=False)

    def body() -> None:
        gc.freeze()  # what the parent made is not looked through again, and so not copied
        receives.close()
        sent: tuple[str | None, Any]
        try:
            sent = (None, function(*arguments))
        except BaseException:
            sent = (traceback.format_exc(), None)
        sends.send(sent)

    process = FORK.Process(target=body)
    process.start()
    sends.close()
    return Child(process, receives)


@dataclass(frozen=True)
class Branch:
    """The other of two processes that both go on from one place; `child` is 0 in the one that is new."""

    child: int
    outcome: Connection

    def end(self, value: Any) -> NoReturn:
        """End the new process with a value, wherever it is by now."""
        try:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            self.outcome.send(value)
        finally:
            os._exit(0)

    def result(self) -> Any:
        """Return what the new process ended with. Fail if it died or hangs."""
        is_ready = self.outcome.poll(PATIENCE)
        if not is_ready:
            kill(_tree(self.child))
        try:
            value = self.outcome.recv() if is_ready else None
        except EOFError:
            value = None
        self.outcome.close()
        _, status = os.waitpid(self.child, 0)
        assert is_ready and status == 0 and value is not None, f"A process was not done: {status}"
        return value


def branch() -> Branch:
    """Fork this process here: its stack, its tables and its connections are in both. Not with threads."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    receives, sends = FORK.Pipe(duplex=False)
    child = os.fork()
    if not child:
        gc.freeze()
    (sends if child else receives).close()
    return Branch(child, receives if child else sends)


def together(*functions: Callable[[], Any]) -> list[Any]:
    """Run functions in processes that start at the same moment; what they returned."""
    start = FORK.Barrier(len(functions))

    def waiting(function: Callable[[], Any]) -> Any:
        start.wait(PATIENCE)
        return function()

    children = [fork(waiting, function) for function in functions]
    try:
        return [child.result() for child in children]
    finally:
        for child in children:
            child.kill()


def kill_myself() -> None:
    """End this process as a power cut would: nothing is cleaned up."""
    os.kill(os.getpid(), signal.SIGKILL)
