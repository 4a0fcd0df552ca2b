"""Work on threads: NumPy releases the interpreter for what takes long."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# Below, threads take longer to start than they save.
FEW_RECORDS = 1 << 16


def threads_for(records: int) -> int:
    """How many threads tables of so many records are worth; 0 is none but the caller's own."""
    return cores() if records > FEW_RECORDS else 0


def in_threads(
    tasks: Sequence[Callable[[], Result]],
    threads: int,
    done: Callable[[int, int], None] | None = None,
) -> list[Result]:
    """The results of the tasks, in their order; on as many `threads`, or on the caller's own if that is 0.

    `done` is called after each task with the number of those that are done and of all. What a task raises is
    raised, as is an interrupt: no further task is begun then, and no thread is left when this returns.
    """
    if not threads or not tasks:
        return _collected(tasks, done)
    with ThreadPoolExecutor(min(threads, len(tasks))) as pool:
        futures = [pool.submit(task) for task in tasks]
        try:
            return _collected([future.result for future in futures], done)
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def each_in_threads(items: Iterable[Item], work: Callable[[Item], Result], threads: int) -> Iterator[Result]:
    """What `work` makes of each item, in their order; few items are in memory at a time.

    Items are taken on the caller's own thread, which also works if `threads` is 0. What is raised is raised,
    as is an interrupt: no thread is left then.
    """
    if not threads:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(threads) as pool:
        begun: deque[Future[Result]] = deque()
        try:
            for item in items:
                begun.append(pool.submit(work, item))
                del item  # the work has it, and lets it go
                if len(begun) > threads:
                    yield begun.popleft().result()
            while begun:
                yield begun.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _collected(
    tasks: Sequence[Callable[[], Result]], done: Callable[[int, int], None] | None
) -> list[Result]:
    results = []
    for task in tasks:
        results.append(task())
        if done is not None:
            done(len(results), len(tasks))
    return results
