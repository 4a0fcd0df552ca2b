"""The machine's cores, to share work among, and its free memory."""

from __future__ import annotations

import os
import re
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# With fewer records, threads take longer to start than they save.
FEW_RECORDS = 1 << 16


def threads_for(records: int) -> int:
    """Return the number of threads that pay for this many records; 0 stands for the caller's own."""
    return count_cores() if records > FEW_RECORDS else 0


def run_in_threads(
    tasks: Sequence[Callable[[], Result]],
    threads: int,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[Result]:
    """Run the tasks on `threads`, or on the caller's own if that is 0; return their results in order.

    `on_progress` is called after each task with the number of completed tasks and of all. What a task raises
    is raised, as is an interrupt: no further task is begun then, and no thread is left when this returns.
    """
    results = []
    with ThreadPoolExecutor(min(threads, len(tasks))) if threads and tasks else nullcontext() as pool:
        pending = [pool.submit(task).result for task in tasks] if pool else tasks
        try:
            for result_of in pending:
                results.append(result_of())
                if on_progress is not None:
                    on_progress(len(results), len(tasks))
        except BaseException:
            if pool:
                pool.shutdown(wait=True, cancel_futures=True)
            raise
    return results


def map_in_threads(items: Iterable[Item], work: Callable[[Item], Result], threads: int) -> Iterator[Result]:
    """Yield the results of `work` on each item, in order; only a few items are in memory at a time.

    Items are taken on the caller's own thread, which also does the work if `threads` is 0. What is raised
    there is raised here, as is an interrupt: no thread is left then.
    """
    if not threads:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(threads) as pool:
        running: deque[Future[Result]] = deque()
        try:
            for item in items:
                running.append(pool.submit(work, item))
                del item  # only the task holds it now, and frees it when it ends
                if len(running) > threads:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


_CGROUP = Path("/sys/fs/cgroup")  # of a container that may use less than its machine has


def available_memory() -> int:
    """Return the bytes of memory that this process can still take."""
    import psutil

    available = int(psutil.virtual_memory().available)
    try:
        limit, used = ((_CGROUP / f"memory.{name}").read_text().strip() for name in ("max", "current"))
        return min(available, int(limit) - int(used)) if limit != "max" else available
    except (OSError, ValueError):
        return available


_SWITCHED_OFF = "NPY_DISABLE_CPU_FEATURES"
_ZEN_4 = {*range(0x10, 0x20), *range(0x60, 0x80), *range(0xA0, 0xB0)}  # models of AMD's family 25
_WITH_LEVELS = (2, 4)  # NumPy calls AVX-512 by the level of the processor from this version on


def avoid_slow_sort(processor: Path = Path("/proc/cpuinfo")) -> None:
    """Switch NumPy's AVX-512 off, before it is imported, where it sorts four times slower than with AVX2.

    That is on AMD's Zen 4. Does nothing where NumPy is imported, or the environment says what is off.
    """
    if "numpy" in sys.modules or _SWITCHED_OFF in os.environ or not _is_zen_4(processor):
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        numbers = re.findall(r"\d+", version("numpy"))
    except PackageNotFoundError:
        return
    os.environ[_SWITCHED_OFF] = "X86_V4" if tuple(map(int, numbers[:2])) >= _WITH_LEVELS else "AVX512F"


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
