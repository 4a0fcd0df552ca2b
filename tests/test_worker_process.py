"""Processes that work for another: what they answer, and what is left when they or their questions end."""

import os
import signal
import time

import pytest

from disclosure_pipeline.runtime.worker_process import WorkerProcess


def test_each_question_has_its_answer() -> None:
    worker = WorkerProcess("math", "sqrt")
    worker.start()
    assert [worker.ask(number) for number in (4, 2, 9)] == [2.0, 2**0.5, 3.0]
    assert worker.ask(-1) is None
    assert worker.ask(16) == 4.0


def test_one_process_answers_all() -> None:
    worker = WorkerProcess("builtins", "eval")
    first = worker.ask("__import__('os').getpid()")
    worker.start()
    assert worker.ask("__import__('os').getpid()") == first != os.getpid()


def test_further_modules_are_imported() -> None:
    assert WorkerProcess("builtins", "eval", "wave").ask("'wave' in __import__('sys').modules") is True


def test_what_is_printed_is_no_answer() -> None:
    assert WorkerProcess("builtins", "eval").ask("print('7') or 8") == 8


@pytest.mark.parametrize("question", ["__import__('os')._exit(1)", "__import__('os').abort()"])
def test_a_crash_takes_nobody_along(question: str) -> None:
    worker = WorkerProcess("builtins", "eval")
    assert worker.ask(question) is None
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


def test_a_module_that_is_missing_gives_no_answer() -> None:
    assert WorkerProcess("no_such_module", "function").ask(1) is None
