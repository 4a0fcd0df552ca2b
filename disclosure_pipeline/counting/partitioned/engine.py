"""The engine for tables that do not fit into memory: it reads them once, batch by batch.

Where the table of all cells is small, cells are counted as the batches come. Else the records are spilled in
parts by key, and each part is counted as if it were the whole table: everything is a sum over keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from disclosure_pipeline.counting.counts import DisclosureCounts
from disclosure_pipeline.counting.memory import cell_tables
from disclosure_pipeline.counting.memory.radix import Job, Limits, Numbered, Radix
from disclosure_pipeline.counting.partitioned.batches import Batches, CodedBatch, code_batch
from disclosure_pipeline.counting.partitioned.record_parts import RecordParts, shared_parts, spill_in_parts
from disclosure_pipeline.counting.targets import CountRequest, columns_of_requests
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.measures.people import LevelCounts
from disclosure_pipeline.measures.together import TogetherCounts, count_unique_in_any
from disclosure_pipeline.runtime.machine import map_in_threads, threads_for
from disclosure_pipeline.runtime.progress import OnProgress, ignore_progress
from disclosure_pipeline.tables.levels import CodedColumn


@dataclass(frozen=True)
class CellCounter:
    """The records of each table with each key combination, and those in each cell of each target.

    `by_key[table]` has an entry for each code of `keys`, `by_cell[i][table]` one for each such code * size of
    target i + its level.
    """

    keys: Radix
    request: CountRequest
    records: tuple[int, ...]
    by_key: list[IntArray]
    by_cell: list[list[IntArray]]

    def count_batch(self, batch: CodedBatch) -> list[IntArray]:
        """Return the records of a batch by key combination, then by the cells of each target."""
        q = np.zeros(batch.records, dtype=np.int64)
        for key, weight in zip(self.request.keys, self.keys.weights, strict=True):
            q += batch.codes_of(key).astype(np.int64) * weight
        counts: list[IntArray] = [np.bincount(q, minlength=self.keys.size)]
        for target in self.request.targets:
            size = target.column.size
            cells = q * size + batch.codes_of(target.column)
            counts.append(np.bincount(cells, minlength=self.keys.size * size))
        return counts

    def add(self, table: int, counts: Sequence[IntArray]) -> None:
        """Add what was counted of a batch of a table."""
        for sums, of_batch in zip([self.by_key, *self.by_cell], counts, strict=True):
            sums[table] += of_batch

    def measure(self, limits: Limits, on_progress: OnProgress) -> DisclosureCounts:
        """Return what the request asks for, once all batches are counted."""
        together = self.request.together
        job = Job(self.keys, tuple(self.request.targets), self.records, limits, on_progress, together)
        numbered = Numbered((), np.arange(self.keys.size), self.keys)
        measured = cell_tables.measure_cells(job, numbered, self.by_key, self.request.targets, self.by_cell)
        unique_in_any = count_unique_in_any(self.by_key[0], self.by_key[1:])
        return DisclosureCounts(
            cell_tables.measure_keys(job, self.by_key),
            tuple(measured.counts),
            tuple(measured.pairs),
            TogetherCounts.from_pairs(unique_in_any, measured.together) if together else None,
            self._count_levels(),
        )

    def _count_levels(self) -> tuple[tuple[LevelCounts, ...], ...]:
        if not self.request.by_level:
            return ()
        levels = self.keys.levels_of(np.arange(self.keys.size))
        d, *by_synthesis = self.by_key
        return tuple(
            tuple(LevelCounts.from_combinations(levels[place], d, s) for place in self.request.by_level)
            for s in by_synthesis
        )


def count_cells(request: CountRequest, records: tuple[int, ...], limits: Limits) -> CellCounter | None:
    """Return a counter for tables of so many records; None where there are too many possible cells."""
    keys = Radix(tuple(request.keys))
    largest_target = max((target.column.size for target in request.targets), default=1)
    if keys.size * largest_target > min(limits.table, sum(records)):
        return None
    by_key: list[IntArray] = [np.zeros(keys.size, dtype=np.int64) for _ in records]
    by_cell: list[list[IntArray]] = [
        [np.zeros(keys.size * target.column.size, dtype=np.int64) for _ in records]
        for target in request.targets
    ]
    return CellCounter(keys, request, records, by_key, by_cell)


def count_in_parts(
    requests: Sequence[CountRequest],
    batches: Batches,
    on_progress: OnProgress = ignore_progress,
    limits: Limits | None = None,
) -> list[DisclosureCounts]:
    """For each request the counts of GT and all syntheses, as `memory` counts them; batches are read once.

    `counts` of the columns are those of the tables. A column of several requests is coded once if it is one
    object. InputError where the disk has no room; errors of the batches come through.
    """
    if not requests:
        return []
    limits = limits or Limits()
    total = sum(batches.records)
    threads = threads_for(total) if limits.threads is None else limits.threads
    with ExitStack() as stack:
        one_pass = _prepare(requests, batches, limits, stack)
        completed = 0
        for table in batches.tables:

            def process(batch: Any, table: int = table) -> tuple[int, list[list[IntArray]]]:
                return one_pass.process(table, batch)

            for records, counts in map_in_threads(batches.read(table), process, threads):
                one_pass.add(table, counts)
                completed += records
                on_progress("Counting", completed, total)
        by_request: dict[int, DisclosureCounts] = {}
        for counter in one_pass.counters:
            by_request[id(counter.request)] = counter.measure(limits, on_progress)
        for parts in one_pass.spilled:
            measured = parts.measure(limits, threads, on_progress)
            by_request |= {
                id(request): counts for request, counts in zip(parts.requests, measured, strict=True)
            }
    return [by_request[id(request)] for request in requests]


@dataclass(frozen=True)
class _Pass:
    """One pass over the batches: who counts them, and where they are spilled."""

    batches: Batches
    columns: Sequence[CodedColumn]
    counters: Sequence[CellCounter]
    spilled: Sequence[RecordParts]

    def process(self, table: int, batch: Any) -> tuple[int, list[list[IntArray]]]:
        """Return the number of records of a batch, and for each of the counters what it counts in them."""
        coded = code_batch(self.batches, self.columns, table, batch)
        for parts in self.spilled:
            parts.spill_batch(table, coded)
        return coded.records, [counter.count_batch(coded) for counter in self.counters]

    def add(self, table: int, counts: Sequence[Sequence[IntArray]]) -> None:
        """Add what the counters counted in a batch."""
        for counter, of_batch in zip(self.counters, counts, strict=True):
            counter.add(table, of_batch)


def _prepare(requests: Sequence[CountRequest], batches: Batches, limits: Limits, stack: ExitStack) -> _Pass:
    counters, to_spill = [], []
    for request in requests:
        counter = count_cells(request, batches.records, limits)
        if counter is None:
            to_spill.append(request)
        else:
            counters.append(counter)
    spilled = [spill_in_parts(group, batches.records, limits, stack) for group in shared_parts(to_spill)]
    return _Pass(batches, columns_of_requests(requests), counters, spilled)
