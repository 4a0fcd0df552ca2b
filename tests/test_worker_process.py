"""Processes that work for another: what they answer, and what is left when they or their questions end."""

import os
import signal
import time
from typing import Any

import pytest

from disclosure_pipeline.runtime.worker_process import WorkerProcess


def test_each_question_has_its_answer() -> None:
    worker = WorkerProcess("math", "sqrt")
    worker.start()
    assert [worker.ask(number) for number in (4, 2, -1, 16)] == [2.0, 2**0.5, None, 4.0]


def test_one_process_answers_all() -> None:
    worker = WorkerProcess("builtins", "eval")
    first = worker.ask("__import__('os').getpid()")
    worker.start()
    assert worker.ask("__import__('os').getpid()") == first != os.getpid()


@pytest.mark.parametrize(
    ("worker", "question", "answer"),
    [
        (WorkerProcess("builtins", "eval", "wave"), "'wave' in __import__('sys').modules", True),
        (WorkerProcess("builtins", "eval"), "print('7') or 8", 8),  # what is printed is no answer
        (WorkerProcess("no_such_module", "function"), 1, None),
    ],
)
def test_an_answer_is_what_the_function_returns(worker: WorkerProcess, question: object, answer: Any) -> None:
    assert worker.ask(question) is answer


@pytest.mark.parametrize("end", ["_exit(1)", "abort()", f"kill(__import__('os').getpid(), {signal.SIGKILL})"])
def test_a_crash_takes_nobody_along(end: str) -> None:
    worker = WorkerProcess("builtins", "eval")
    assert worker.ask(f"__import__('os').{end}") is None
    assert worker.ask("1 + 1") == 2


def test_a_killed_process_is_replaced() -> None:
    worker = WorkerProcess("builtins", "eval")
    pid = worker.ask("__import__('os').getpid()")
    assert isinstance(pid, int)
    os.kill(pid, signal.SIGKILL)
    assert worker.ask("1 + 1") is None
    assert worker.ask("1 + 1") == 2


def test_an_answer_is_waited_for_when_it_is_needed() -> None:
    worker = WorkerProcess("builtins", "eval")
    with worker.asking("[__import__('time').sleep(0.5), 7][1]") as wait:
        assert wait() == 7


def test_an_error_meanwhile_ends_the_process() -> None:
    """Nobody waits an hour for an answer that nobody needs."""
    worker = WorkerProcess("time", "sleep")
    process = None
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt), worker.asking(3600):
        process = worker._process
        raise KeyboardInterrupt
    assert time.monotonic() - started < 60
    assert process is not None and process.poll() is not None
