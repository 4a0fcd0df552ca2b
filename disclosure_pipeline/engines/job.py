"""What an engine in memory is given to do, and how it cuts it up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from disclosure_pipeline.engines.radix import Radix
from disclosure_pipeline.measures.exclusions import CodedExclusions
from disclosure_pipeline.parallel import in_threads, threads_for
from disclosure_pipeline.tables.levels import CodedColumn

Result = TypeVar("Result")


@dataclass(frozen=True)
class Limits:
    """How the work is cut up; no result depends on it.

    block: records that are coded and sorted at a time. part: records of a part, about. table: most cells
    that are counted instead of sorted. bits: most binary digits of a number that stands for a record.
    threads: None for as many as the tables are worth. aside: records of a part that is put aside, about.
    """

    block: int = 1 << 20
    part: int = 1 << 20
    table: int = 1 << 22
    bits: int = 64
    threads: int | None = None
    aside: int = 1 << 21


@dataclass(frozen=True)
class Target:
    """A target column, and what is asked of it: see `counted.of_target`."""

    column: CodedColumn
    wanted: CodedExclusions
    larger_than: float

    def levels(self, synthesis: int) -> int:
        """The number of levels that occur in GT or in this SD."""
        counts = self.column.counts
        return int(((counts[0] > 0) | (counts[synthesis] > 0)).sum())

    @property
    def bits(self) -> int:
        """Binary digits of a level's code."""
        return (self.column.size - 1).bit_length()


@dataclass(frozen=True)
class Job:
    """Tables of so many `records` (GT first); `done` is told what is being done, and how much of how much."""

    keys: Radix
    targets: tuple[Target, ...]
    records: tuple[int, ...]
    limits: Limits
    done: Callable[[str, int, int], None]

    def run(self, what: str, tasks: Sequence[Callable[[], Result]]) -> list[Result]:
        """The results of the tasks, which do one thing."""
        threads = self.limits.threads
        return in_threads(
            tasks,
            threads_for(sum(self.records)) if threads is None else threads,
            lambda done, of: self.done(what, done, of),
        )

    def blocks(self, table: int) -> Iterator[slice]:
        """The records of a table, block by block."""
        for start in range(0, self.records[table], self.limits.block):
            yield slice(start, min(start + self.limits.block, self.records[table]))

    @property
    def syntheses(self) -> range:
        """The numbers of the syntheses, which are those of their tables."""
        return range(1, len(self.records))
