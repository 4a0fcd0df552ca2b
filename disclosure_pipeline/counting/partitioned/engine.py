"""The engine for tables that do not fit into memory: it reads them once, batch by batch.

If the table of all possible cells is small, cells are counted batch by batch. Otherwise records are spilled
in parts by key, and each part is counted like a whole table, as all counts are sums over keys. For copies by
all columns but one, the columns that are never left out decide the part.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np

from disclosure_pipeline.counting.cells import CellParts
from disclosure_pipeline.counting.counts import CountRequest, gather_columns
from disclosure_pipeline.counting.memory import cell_tables
from disclosure_pipeline.counting.memory.partial_records import deal_columns
from disclosure_pipeline.counting.memory.radix import Job, Limits, Radix
from disclosure_pipeline.counting.partitioned.record_parts import (
    RecordParts,
    count_parts,
    group_requests,
    open_record_parts,
)
from disclosure_pipeline.counting.partitioned.streams import Batches, CodedBatch, code_batch
from disclosure_pipeline.measures.exact import IntArray, total
from disclosure_pipeline.runtime.machine import map_in_threads, threads_for
from disclosure_pipeline.runtime.progress import OnProgress, ignore_progress


@dataclass(frozen=True)
class CellCounter:
    """The number of records of each table by key combination, and by cell of each target.

    `sums[0][table]` has an entry for each code of `keys`; `sums[1 + i][table]` one for each code * size of
    target i + target level.
    """

    keys: Radix
    request: CountRequest
    records: tuple[int, ...]
    sums: list[list[IntArray]]

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
        for sums, batch_counts in zip(self.sums, counts, strict=True):
            sums[table] += batch_counts

    def find_cells(self, number: int, limits: Limits, on_progress: OnProgress) -> CellParts:
        """Yield the cells of the request of this number, once all batches are counted."""
        job = Job(self.request, self.keys, self.records, limits, on_progress, number)
        by_key, *by_cell = self.sums
        yield cell_tables.find_keys(job, by_key)
        yield cell_tables.find_in_counts(job, dict(enumerate(by_cell)))


def _create_cell_counter(
    request: CountRequest, records: tuple[int, ...], limits: Limits
) -> CellCounter | None:
    """Return a counter for tables of these sizes; None if there are too many possible cells."""
    keys = Radix(tuple(request.keys))
    sizes = [keys.size, *(keys.size * target.column.size for target in request.targets)]
    if max(sizes) > min(limits.table, sum(records)):
        return None
    sums: list[list[IntArray]] = [[np.zeros(size, dtype=np.int64) for _ in records] for size in sizes]
    return CellCounter(keys, request, records, sums)


_EVEN = 16  # combinations for each part: with fewer, frequent ones make parts uneven


def leaves_out_each(request: CountRequest) -> bool:
    """Return whether records are spilled, and evenly by the columns that each order never leaves out."""
    limits, records = Limits(), tuple(total(counts) for counts in request.keys[0].counts)
    combinations = prod(column.size for column in request.keys)
    fewest = _EVEN * count_parts(records, limits)
    return combinations > min(limits.table, sum(records)) and all(
        combinations // prod(column.size for column in left_out) > fewest
        for left_out in deal_columns(request.keys)
    )


def find_in_batches(
    requests: Sequence[CountRequest],
    batches: Batches,
    on_progress: OnProgress = ignore_progress,
    limits: Limits | None = None,
) -> CellParts:
    """Yield the cells of GT and all syntheses for each request; batches are read once.

    The columns' `counts` are those of whole tables. A column object shared by several requests is coded once.
    Raise InputError if the disk has no room; errors of the batches pass through.
    """
    if not requests:
        return
    limits = limits or Limits()
    of_all = sum(batches.records)
    threads = threads_for(of_all) if limits.threads is None else limits.threads
    columns = gather_columns(requests)
    with ExitStack() as stack:
        counters, spilled = _prepare(requests, batches.records, limits, stack)

        def process(table: int, batch: Any) -> tuple[int, list[list[IntArray]]]:
            coded = code_batch(batches, columns, table, batch)
            for parts in spilled:
                parts.spill_batch(table, coded)
            return coded.records, [counter.count_batch(coded) for counter in counters.values()]

        completed = 0
        for table in range(len(batches.records)):
            for records, counts in map_in_threads(batches.read(table), partial(process, table), threads):
                for counter, batch_counts in zip(counters.values(), counts, strict=True):
                    counter.add(table, batch_counts)
                completed += records
                on_progress("Counting", completed, of_all)
        for number, counter in counters.items():
            yield from counter.find_cells(number, limits, on_progress)
        for parts in spilled:
            yield parts.find_cells(limits, threads, on_progress)


def _prepare(
    requests: Sequence[CountRequest], records: tuple[int, ...], limits: Limits, stack: ExitStack
) -> tuple[dict[int, CellCounter], list[RecordParts]]:
    """Return the counters for requests with few cells, and for the others the parts that records spill to."""
    counters, to_spill, in_orders = dict[int, CellCounter](), dict[int, CountRequest](), list[RecordParts]()
    for number, request in enumerate(requests):
        if request.left_out:
            orders = range(len(deal_columns(request.keys)))
            in_orders += [
                open_record_parts({number: request}, records, limits, stack, order) for order in orders
            ]
            continue
        counter = _create_cell_counter(request, records, limits)
        if counter is None:
            to_spill[number] = request
        else:
            counters[number] = counter
    groups = [open_record_parts(group, records, limits, stack) for group in group_requests(to_spill)]
    return counters, [*groups, *in_orders]
