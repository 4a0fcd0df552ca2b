"""Records that are spilled in parts by key, each of which is counted as if it were the whole table."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import cast

import numpy as np

from disclosure_pipeline.counting.counts import CountRequest, DisclosureCounts
from disclosure_pipeline.counting.memory.partial_records import deal_columns
from disclosure_pipeline.counting.memory.radix import Limits
from disclosure_pipeline.counting.partitioned.parts import PartCounter, PartCounts, PartSums, RunningSum
from disclosure_pipeline.counting.partitioned.spill_file import SpillFile, open_spill_file
from disclosure_pipeline.counting.partitioned.streams import CodedBatch
from disclosure_pipeline.measures.exact import Grouped
from disclosure_pipeline.runtime.machine import map_in_threads
from disclosure_pipeline.runtime.progress import OnProgress
from disclosure_pipeline.tables.levels import CodedColumn

_EVEN = 16  # combinations for each part: some are frequent
_SMALLEST_CHUNK = 1 << 15  # bytes: of 10 billion records in each table they wait in 0.6 GB at most


@dataclass(frozen=True)
class RecordParts:
    """Spilled records, in so many `parts` of each table, and who counts them."""

    counter: PartCounter
    parts: int
    spill_file: SpillFile

    def spill_batch(self, table: int, batch: CodedBatch) -> None:
        """Append the records of a batch to their parts."""
        part = self.counter.find_parts(batch.codes_of, self.parts)
        order = np.argsort(part, kind="stable")
        records = np.empty(batch.records, dtype=self.spill_file.dtype)
        for column in self.counter.columns:
            records[self.counter.field(column)] = batch.codes_of(column)
        records = records[order]
        ends = np.cumsum(np.bincount(part, minlength=self.parts))
        for i, (start, end) in enumerate(zip(np.append(0, ends[:-1]), ends, strict=True)):
            if end > start:
                self.spill_file.add((i, table), records[start:end])

    def measure(self, limits: Limits, threads: int, on_progress: OnProgress) -> list[DisclosureCounts]:
        """Return what the requests ask for, once all batches are spilled."""
        sums = [PartSums(request) for request in self.counter.requests]
        work = partial(_measure_part, self, replace(limits, threads=0))
        for completed, counts in enumerate(map_in_threads(range(self.parts), work, threads), start=1):
            for of_request, of_part in zip(sums, counts, strict=True):
                of_request.add(of_part)
            on_progress("Measuring", completed, self.parts)
        return [
            of_request.counts(partial(_pairs_of_key, self, of_request.request, threads))
            for of_request in sums
        ]


def spill_in_parts(
    requests: Sequence[CountRequest],
    records: tuple[int, ...],
    limits: Limits,
    stack: ExitStack,
    order: int | None = None,
) -> RecordParts:
    """Return where records of tables of these sizes are spilled until the stack ends.

    The keys of every request determine those of the first: see `shared_parts`. With an `order` it is one
    request. InputError where the disk has no room.
    """
    counter = PartCounter.of_requests(requests, len(records), order)
    spill_file = stack.enter_context(open_spill_file(counter.dtype, sum(records), _SMALLEST_CHUNK))
    return RecordParts(counter, _count_parts(records, limits), spill_file)


def has_orders(request: CountRequest, records: tuple[int, ...], limits: Limits) -> bool:
    """True if the records are spilled, and part evenly by the columns that an order does not leave out."""
    combinations = prod(column.size for column in request.keys)
    fewest = _EVEN * _count_parts(records, limits)
    return combinations > min(limits.table, sum(records)) and all(
        combinations // prod(column.size for column in left_out) > fewest
        for left_out in deal_columns(request.keys)
    )


def _count_parts(records: tuple[int, ...], limits: Limits) -> int:
    return max(1, -(-sum(records) // limits.spill_part))


def shared_parts(requests: Sequence[CountRequest]) -> list[list[CountRequest]]:
    """Return the requests in groups that can share their parts: their keys determine those of the first."""
    groups: list[list[CountRequest]] = []
    for request in sorted(requests, key=lambda request: len(request.keys)):
        for group in groups:
            if all(any(determines(key, first) for key in request.keys) for first in group[0].keys):
                group.append(request)
                break
        else:
            groups.append([request])
    return groups


def determines(finer: CodedColumn, coarser: CodedColumn) -> bool:
    """Return whether a record's code in `finer` says that in `coarser`: the same column, or grouped."""
    if finer is coarser:
        return True
    coarser_code = np.full(finer.size, -1, dtype=np.int64)
    for fine, coarse in zip(finer.tables, coarser.tables, strict=True):
        if fine.stored is not coarse.stored:
            return False
        coarser_code[fine.position] = coarse.position
    return all(
        np.array_equal(coarser_code[fine.position], coarse.position)
        for fine, coarse in zip(finer.tables, coarser.tables, strict=True)
    )


def _measure_part(parts: RecordParts, limits: Limits, part: int) -> list[list[PartCounts]]:
    """For each request the counts in a part: see `PartCounter.count`."""
    records = [parts.spill_file.read((part, table)) for table in parts.counter.tables]
    return parts.counter.count(records, limits)


def _pairs_of_key(
    parts: RecordParts, request: CountRequest, threads: int, targets: Sequence[int]
) -> Sequence[tuple[Grouped, ...]]:
    """Return the pairs of some targets, by number, in all parts: see `PartCounter.pairs_of_key`."""
    columns = [request.targets[t].column for t in targets]

    def pairs_in_part(part: int) -> tuple[tuple[Grouped, ...], ...]:
        return parts.counter.pairs_of_key(parts.spill_file.read((part, 0)), request.keys, columns)

    sums = RunningSum()
    for pairs in map_in_threads(range(parts.parts), pairs_in_part, threads):
        sums.add(pairs)
    return cast(Sequence[tuple[Grouped, ...]], sums.result())
