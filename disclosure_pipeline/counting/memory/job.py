"""The tables that an engine in memory counts, and the sizes of the pieces that it cuts them into."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from disclosure_pipeline.counting.memory.radix import Radix
from disclosure_pipeline.counting.targets import Target
from disclosure_pipeline.runtime.machine import run_in_threads, threads_for
from disclosure_pipeline.runtime.progress import OnProgress

Result = TypeVar("Result")


@dataclass(frozen=True)
class Limits:
    """Sizes of the pieces that the work is cut into; no result depends on them.

    block: records that are coded at a time. part: records that are measured at a time, about. table: most
    cells that are counted instead of sorted. bits: most binary digits of a number that stands for a record.
    threads: None for as many as the tables are worth. spill_part: records of a part of the spill file, about.
    rare: records of keys with as many records each that are not worth to be measured by themselves.
    """

    block: int = 1 << 17
    part: int = 5 << 19  # fewer, and threads wait for each other; more, and an interrupt waits for them
    table: int = 1 << 22
    bits: int = 64
    threads: int | None = None
    spill_part: int = 1 << 21
    rare: int = 1 << 14


@dataclass(frozen=True)
class Job:
    """The tables to count, of so many `records` each, GT first; `on_progress(step, completed, total)`.

    `together`: whether to count what all syntheses disclose together.
    """

    keys: Radix
    targets: tuple[Target, ...]
    records: tuple[int, ...]
    limits: Limits
    on_progress: OnProgress
    together: bool = False

    def run(self, step: str, tasks: Sequence[Callable[[], Result]]) -> list[Result]:
        """The results of the tasks, which are one step of the work."""
        threads = self.limits.threads
        return run_in_threads(
            tasks,
            threads_for(sum(self.records)) if threads is None else threads,
            partial(self.on_progress, step),
        )

    def blocks(self, table: int) -> Iterator[slice]:
        """The records of a table, block by block."""
        for start in range(0, self.records[table], self.limits.block):
            yield slice(start, min(start + self.limits.block, self.records[table]))

    @property
    def syntheses(self) -> range:
        """The numbers of the syntheses, which are those of their tables."""
        return range(1, len(self.records))
