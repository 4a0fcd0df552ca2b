"""The engine for tables that do not fit into memory: it reads them once, batch by batch.

If the table of all possible cells is small, cells are counted batch by batch. Otherwise records are spilled
in parts by key, and each part is counted like a whole table, as all counts are sums over keys. For copies by
all columns but one, the columns that are never left out decide the part.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from disclosure_pipeline.counting.counts import (
    CountRequest,
    DisclosureCounts,
    count_without_each,
    gather_columns,
)
from disclosure_pipeline.counting.memory import cell_tables
from disclosure_pipeline.counting.memory.partial_records import deal_columns
from disclosure_pipeline.counting.memory.radix import Job, Limits, Radix
from disclosure_pipeline.counting.partitioned.record_parts import (
    RecordParts,
    group_requests,
    open_record_parts,
    supports_orders,
)
from disclosure_pipeline.counting.partitioned.streams import Batches, CodedBatch, code_batch
from disclosure_pipeline.measures.copies import CopyCounts
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.measures.together import TogetherCounts, count_unique_in_any
from disclosure_pipeline.runtime.machine import map_in_threads, threads_for
from disclosure_pipeline.runtime.progress import OnProgress, ignore_progress


@dataclass(frozen=True)
class CellCounter:
    """The number of records of each table by key combination, and by cell of each target.

    `by_key[table]` has an entry for each code of `keys`; `by_cell[i][table]` one for each code * size of
    target i + target level.
    """

    keys: Radix
    request: CountRequest
    records: tuple[int, ...]
    by_key: list[IntArray]
    by_cell: list[list[IntArray]]

    def count_batch(self, batch: CodedBatch) -> list[IntArray]:
        """Count the records of a batch by key combination, then by the cells of each target."""
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
        """Add the counts of a batch of a table."""
        for sums, batch_counts in zip([self.by_key, *self.by_cell], counts, strict=True):
            sums[table] += batch_counts

    def measure(self, limits: Limits, on_progress: OnProgress) -> DisclosureCounts:
        """Return the requested counts, once all batches are counted."""
        together = self.request.together
        targets, shares = tuple(self.request.targets), self.request.shares_apart
        job = Job(self.keys, targets, self.records, limits, on_progress, together, shares)
        measured = cell_tables.measure_cells(job, self.request.targets, self.by_cell)
        unique_in_any = count_unique_in_any(self.by_key[0], self.by_key[1:])
        return DisclosureCounts(
            cell_tables.measure_keys(job, self.by_key),
            tuple(measured.counts),
            tuple(measured.pairs),
            TogetherCounts(unique_in_any, tuple(measured.together)) if together else None,
        )


def _create_cell_counter(
    request: CountRequest, records: tuple[int, ...], limits: Limits
) -> CellCounter | None:
    """Return a counter for tables of these sizes; None if there are too many possible cells."""
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
    """Count GT and all syntheses for each request, as `memory` does; batches are read once.

    The columns' `counts` are those of whole tables. A column object shared by several requests is coded once.
    Raise InputError if the disk has no room; errors of the batches pass through.
    """
    limits = limits or Limits()
    count = partial(_count_in_one_pass, batches=batches, on_progress=on_progress, limits=limits)
    return count_without_each(
        requests, count, partial(supports_orders, records=batches.records, limits=limits)
    )


def _count_in_one_pass(
    requests: Sequence[CountRequest], batches: Batches, on_progress: OnProgress, limits: Limits
) -> list[DisclosureCounts]:
    if not requests:
        return []
    total = sum(batches.records)
    threads = threads_for(total) if limits.threads is None else limits.threads
    columns = gather_columns(requests)
    with ExitStack() as stack:
        counters, spilled = _prepare(requests, batches.records, limits, stack)

        def process(table: int, batch: Any) -> tuple[int, list[list[IntArray]]]:
            coded = code_batch(batches, columns, table, batch)
            for parts in spilled:
                parts.spill_batch(table, coded)
            return coded.records, [counter.count_batch(coded) for counter in counters]

        completed = 0
        for table in batches.tables:
            for records, counts in map_in_threads(batches.read(table), partial(process, table), threads):
                for counter, batch_counts in zip(counters, counts, strict=True):
                    counter.add(table, batch_counts)
                completed += records
                on_progress("Counting", completed, total)
        by_request = {id(counter.request): counter.measure(limits, on_progress) for counter in counters}
        without: dict[tuple[int, int], tuple[CopyCounts, ...]] = {}
        for parts in spilled:
            measured = parts.measure(limits, threads, on_progress)
            for request, request_counts in zip(parts.counter.requests, measured, strict=True):
                by_request.setdefault(id(request), request_counts)
                for key, copies in zip(parts.counter.left_out, request_counts.without, strict=True):
                    without[id(request), id(key)] = copies
    return [
        replace(by_request[id(request)], without=tuple(without[id(request), id(key)] for key in request.keys))
        if request.without_each
        else by_request[id(request)]
        for request in requests
    ]


def _prepare(
    requests: Sequence[CountRequest], records: tuple[int, ...], limits: Limits, stack: ExitStack
) -> tuple[list[CellCounter], list[RecordParts]]:
    """Return the counters for requests with few cells, and for the others the parts that records spill to."""
    counters, to_spill, in_orders = [], [], list[RecordParts]()
    for request in requests:
        if request.without_each:
            orders = range(len(deal_columns(request.keys)))
            in_orders += [open_record_parts([request], records, limits, stack, order) for order in orders]
            continue
        counter = _create_cell_counter(request, records, limits)
        if counter is None:
            to_spill.append(request)
        else:
            counters.append(counter)
    groups = [open_record_parts(group, records, limits, stack) for group in group_requests(to_spill)]
    return counters, [*groups, *in_orders]
