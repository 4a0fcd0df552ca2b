"""The engine for tables that do not fit into memory: it reads them once, batch by batch.

Where the table of all cells is small, cells are counted as the batches come. Else the records are spilled in
parts by key, and each part is counted as if it were the whole table: everything is a sum over keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from disclosure_pipeline.counting.counts import DisclosureCounts
from disclosure_pipeline.counting.memory.job import Limits
from disclosure_pipeline.counting.partitioned.batches import Batches, code_batch
from disclosure_pipeline.counting.partitioned.cell_counter import CellCounter, count_cells
from disclosure_pipeline.counting.partitioned.record_parts import (
    RecordParts,
    shared_parts,
    spill_in_parts,
)
from disclosure_pipeline.counting.targets import CountRequest, columns_of_requests
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.runtime.machine import map_in_threads, threads_for
from disclosure_pipeline.runtime.progress import OnProgress, ignore_progress
from disclosure_pipeline.tables.levels import CodedColumn


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
        """The number of records of a batch, and for each of the counters what it counts in them."""
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
