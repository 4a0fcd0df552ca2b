"""A home on disk that several processes share: forked children of the tests, and Dagster's web server.

A child is forked from a process in which everything is imported: starting Python anew would take seconds
each time.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
import gates
import pytest
from gates import GATE, Home
from services import free_port

if TYPE_CHECKING:
    from multiprocessing.context import ForkProcess

# Seconds after which something hangs. Far more than anything takes on a machine that is busy.
PATIENCE = 120

# The job that runs the release alone.
ALONE = f"{GATE}_release_alone"

FORK = multiprocessing.get_context("fork")


@contextmanager
def opened(path: Path, defs: dg.Definitions) -> Iterator[Home]:
    """A home on disk, with an instance of this process as its dagster.yaml says."""
    with pytest.MonkeyPatch.context() as patch, gates.quiet():
        gates.with_keys(path, patch)
        with dg.DagsterInstance.from_config(str(path)) as instance:
            yield Home(path, defs, instance)


@contextmanager
def new_home(settings: str | None = None) -> Iterator[Path]:
    """A folder with a ground truth and a dagster.yaml: the project's own, or `settings`."""
    with gates.quick_folder() as path:
        shutil.copy(gates.ROOT / "dagster_home" / "dagster.yaml", path)
        if settings is not None:
            (path / "dagster.yaml").write_text(settings)
        yield path


@contextmanager
def copied(template: Path) -> Iterator[Path]:
    """A copy of a home that no instance has open."""
    with gates.quick_folder() as path:
        shutil.copytree(template, path, dirs_exist_ok=True)
        yield path


@lru_cache
def code_location() -> dg.Definitions:
    """The small gate with the executor of the project's code location, and a job that only publishes."""
    release = dg.AssetSelection.assets(dg.AssetKey([GATE, "release"]))
    return dg.Definitions.merge(
        gates.load(gates.definition()),
        dg.Definitions(executor=dg.in_process_executor, jobs=[dg.define_asset_job(ALONE, release)]),
    )


# Children


@dataclass(frozen=True)
class Child:
    """A forked process that runs a function."""

    process: ForkProcess
    outcome: Connection

    def wait(self) -> int:
        """Wait until it ended, and return its exit code. A child that hangs is a failure."""
        self.process.join(PATIENCE)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()
            raise AssertionError(f"A process was not done after {PATIENCE} seconds")
        return self.process.exitcode

    def result(self) -> Any:
        """What the function returned. It fails where the child raised, died or hangs."""
        if not self.outcome.poll(PATIENCE):
            self.process.kill()
            self.process.join()
            raise AssertionError(f"A process was not done after {PATIENCE} seconds")
        try:
            problem, value = self.outcome.recv()
        except EOFError:
            raise AssertionError(f"A process died: {self.wait()}") from None
        assert self.wait() == 0
        assert problem is None, problem
        return value

    def was_killed(self) -> bool:
        """Wait until it ended: whether by SIGKILL, or with its function done."""
        code = self.wait()
        assert code in {0, -signal.SIGKILL}
        return code != 0


def fork(function: Callable[..., Any], *arguments: Any) -> Child:
    """Run a function in a forked process."""
    import great_expectations  # noqa: F401 (what takes seconds to import is there before the fork)

    receives, sends = FORK.Pipe(duplex=False)

    def body() -> None:
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
            child.process.kill()
            child.process.join()


def kill_myself() -> None:
    """End this process as a power cut would: nothing is cleaned up."""
    os.kill(os.getpid(), signal.SIGKILL)


# The web server


@dataclass(frozen=True)
class Server:
    """Dagster's web server on a port of this machine."""

    port: int

    def post(self, path: str, body: Mapping[str, Any]) -> int:
        """Post JSON to a path; the status of the answer."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as refusal:
            return refusal.code

    def ask(self, query: str, **variables: Any) -> Any:
        """The data that GraphQL answers."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/graphql",
            json.dumps({"query": query, "variables": variables}).encode(),
            {"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                content = json.load(answer)
        except urllib.error.HTTPError as refusal:
            content = json.load(refusal)
        assert "errors" not in content, content["errors"]
        return content["data"]


@contextmanager
def web_server(home: Path) -> Iterator[Server]:
    """A server for a home on disk, with the small gate as its code location."""
    location = home / "location.py"
    location.write_text("import processes\n\ndefs = processes.code_location()\n")
    port = free_port()
    folders = [str(gates.ROOT), str(Path(__file__).parent)]
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "dagster_webserver", "-h", "127.0.0.1", "-p", str(port)),
            *("-f", str(location), "-d", str(home), "--code-server-log-level", "warning"),
        ],
        env=os.environ | {"DAGSTER_HOME": str(home), "PYTHONPATH": os.pathsep.join(folders)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        _wait_for(port, process)
        yield Server(port)
    finally:
        process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/server_info", timeout=10):
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("Dagster's web server did not come up")
