"""Threads on the machine's cores, and its free memory."""

from __future__ import annotations

import itertools
import os
import re
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


FEW_RECORDS = 1 << 16  # below this, threads take longer to start than they save


def threads_for(records: int) -> int:
    """Return the number of threads worth starting for this many records; 0: use the caller's own."""
    return count_cores() if records > FEW_RECORDS else 0


def run_in_threads(
    tasks: Sequence[Callable[[], Result]],
    threads: int,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[Result]:
    """Run the tasks on `threads` threads (0: on the caller's own) and return their results in order.

    `on_progress` is called after each task with the numbers of completed and of all tasks. An exception of a
    task, or an interrupt, is raised after the running tasks have ended; no further task is started.
    """
    results: list[Result] = []
    for result in map_in_threads(tasks, lambda task: task(), min(threads, len(tasks)), len(tasks)):
        results.append(result)
        if on_progress is not None:
            on_progress(len(results), len(tasks))
    return results


def map_in_threads(
    items: Iterable[Item], work: Callable[[Item], Result], threads: int, most_waiting: int | None = None
) -> Iterator[Result]:
    """Return the results of `work` on each item in order.

    The caller's own thread fetches the items, and does the work if `threads` is 0. At most `most_waiting` of
    them, by default `threads`, are being worked on or wait for the caller. Iterate in a `for` statement, and
    keep no name for the iterator: an exception or an interrupt there, or in `work`, is then raised after the
    running tasks have ended.
    """
    if not threads:
        return map(work, items)
    return _map_in_pool(items, work, threads, threads if most_waiting is None else most_waiting)


def _map_in_pool(
    items: Iterable[Item], work: Callable[[Item], Result], threads: int, most_waiting: int
) -> Iterator[Result]:
    running: deque[Future[Result]] = deque()
    name = f"pool {next(_numbers)} "
    pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
    try:
        for item in items:
            running.append(pool.submit(work, item))
            del item  # the task alone holds it, and frees it when it ends
            if len(running) > most_waiting:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
    finally:
        try:  # once more if an interrupt comes here; the exit of a `with` would be one more place for it
            _end(pool, name)
        except BaseException:
            _end(pool, name)
            raise


_numbers = itertools.count()
_START = 1.0  # seconds in which a thread starts, if ever


def _end(pool: ThreadPoolExecutor, name: str) -> None:
    """Wait for all threads of a pool, also for one that it does not know: an interrupt came as it started."""
    pool.shutdown(cancel_futures=True)
    asked = time.monotonic()
    while own := [t for t in threading.enumerate() if t.name.startswith(name)]:
        if not any(thread.is_alive() for thread in own) and time.monotonic() > asked + _START:
            return
        time.sleep(0.001)


_CGROUP = Path("/sys/fs/cgroup")  # limits of a container


def available_memory() -> int:
    """Return the bytes of memory that this process can still allocate."""
    import psutil

    available = int(psutil.virtual_memory().available)
    try:
        limit, used = ((_CGROUP / f"memory.{name}").read_text().strip() for name in ("max", "current"))
        return min(available, int(limit) - int(used)) if limit != "max" else available
    except (OSError, ValueError):
        return available


_DISABLED_FEATURES = "NPY_DISABLE_CPU_FEATURES"
_ZEN_4 = {*range(0x10, 0x20), *range(0x60, 0x80), *range(0xA0, 0xB0)}  # models of AMD's family 25
_NUMPY_WITH_LEVELS = (2, 4)  # from this version on, NumPy names AVX-512 by the processor's level


def avoid_slow_sort(processor: Path = Path("/proc/cpuinfo")) -> None:
    """Disable NumPy's AVX-512 on AMD's Zen 4, where sorting with it takes four times as long as with AVX2.

    Does nothing if NumPy is already imported or the environment already disables features.
    """
    if "numpy" in sys.modules or _DISABLED_FEATURES in os.environ or not _is_zen_4(processor):
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        numbers = re.findall(r"\d+", version("numpy"))
    except PackageNotFoundError:
        return
    os.environ[_DISABLED_FEATURES] = (
        "X86_V4" if tuple(map(int, numbers[:2])) >= _NUMPY_WITH_LEVELS else "AVX512F"
    )


def _is_zen_4(processor: Path) -> bool:
    try:
        described = processor.read_text(encoding="utf-8", errors="replace")
    except OSError:  # no Linux
        return False
    first, *_ = described.split("\n\n")
    facts = dict(re.findall(r"^(vendor_id|cpu family|model)\s*: (\S+)$", first, re.MULTILINE))
    if (facts.get("vendor_id"), facts.get("cpu family")) != ("AuthenticAMD", "25"):
        return False
    return int(facts.get("model", "0")) in _ZEN_4
