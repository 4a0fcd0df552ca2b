"""Worker processes: they import slow libraries in the background, and a crash does not end this process."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from threading import Lock

# Only answers reach the output; anything else that is printed, and the text of errors, is discarded.
_SERVE = """
import gc, importlib, json, os, sys
answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
module, function, *others = sys.argv[1:]
gc.disable()
answer = getattr(importlib.import_module(module), function)
for other in others:
    importlib.import_module(other)
gc.enable()
for question in sys.stdin:
    try:
        line = json.dumps(answer(json.loads(question)))
    except Exception:
        line = "null"
    print(line, file=answers, flush=True)
"""


class WorkerProcess:
    """A process that answers each question by calling a function with it; both are JSON data.

    `start` or the first question starts it, and it ends with this process. `imports` names further modules
    that it imports when it starts.
    """

    def __init__(self, module: str, function: str, *imports: str) -> None:
        self._arguments = (module, function, *imports)
        self._process: subprocess.Popen[str] | None = None
        self._owner = os.getpid()
        self._lock = Lock()
        atexit.register(self.stop)

    def start(self) -> None:
        """Start the process unless it is running; do not wait for it."""
        self._disown_after_fork()
        with self._lock, suppress(OSError):  # the first question retries
            self._start()

    def ask(self, question: object) -> object:
        """Return the answer; None if the function raised an exception or the process crashed."""
        self._disown_after_fork()
        line = json.dumps(question)
        with self._lock:
            try:
                process = self._start()
                assert process.stdin is not None and process.stdout is not None
                process.stdin.write(f"{line}\n")
                process.stdin.flush()
                return json.loads(process.stdout.readline())  # an empty line if the process has ended
            except (OSError, ValueError):
                self.stop()
                return None

    @contextmanager
    def asking(self, question: object) -> Iterator[Callable[[], object]]:
        """Ask in the background; yield a function that waits for the answer.

        An exception in the block ends the process.
        """
        self.start()  # there is a process to end, even if an exception comes before the thread asks
        with ThreadPoolExecutor(1) as thread:
            answer = thread.submit(self.ask, question)
            try:
                yield answer.result
            except BaseException:
                if self._process is not None:
                    self._process.kill()  # which ends the thread, too
                raise

    def stop(self) -> None:
        """End the process; the next question starts another."""
        process, self._process = self._process, None
        if process is not None and self._owner == os.getpid():
            process.kill()
            with suppress(OSError):
                process.communicate()

    def _start(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-X", "utf8", "-c", _SERVE, *self._arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # it may quote the question
                encoding="utf-8",
            )
        return self._process

    def _disown_after_fork(self) -> None:
        if self._owner != os.getpid():  # process and lock belong to the parent
            if self._process is not None:
                self._process.returncode = 0
            self._process, self._owner, self._lock = None, os.getpid(), Lock()
