"""Threads on the machine's cores, and its free memory."""

from __future__ import annotations

import os
import re
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
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
    results = []
    with _open_pool(min(threads, len(tasks))) if threads and tasks else nullcontext() as pool:
        for get_result in [pool.submit(task).result for task in tasks] if pool else tasks:
            results.append(get_result())
            if on_progress is not None:
                on_progress(len(results), len(tasks))
    return results


def map_in_threads(items: Iterable[Item], work: Callable[[Item], Result], threads: int) -> Iterator[Result]:
    """Return the results of `work` on each item in order, with only a few items in memory at a time.

    The caller's own thread fetches the items, and does the work if `threads` is 0. An exception of `work`, or
    an interrupt, is raised after the running tasks have ended.
    """
    return _map_in_pool(items, work, threads) if threads else map(work, items)


def _map_in_pool(items: Iterable[Item], work: Callable[[Item], Result], threads: int) -> Iterator[Result]:
    with _open_pool(threads) as pool:
        running: deque[Future[Result]] = deque()
        for item in items:
            running.append(pool.submit(work, item))
            del item  # the task alone holds it, and frees it when it ends
            if len(running) > threads:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()


@contextmanager
def _open_pool(threads: int) -> Iterator[ThreadPoolExecutor]:
    """Open a pool of threads, all of which have ended when it is left; no further task is started then."""
    pool = ThreadPoolExecutor(threads)
    try:
        yield pool
    finally:
        try:
            pool.shutdown(cancel_futures=True)
        except KeyboardInterrupt:  # while it waits for them
            pool.shutdown()
            raise


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
