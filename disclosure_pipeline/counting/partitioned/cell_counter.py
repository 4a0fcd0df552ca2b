"""Cells that are counted as the batches come, where the table of all cells is small."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.counting.counts import DisclosureCounts
from disclosure_pipeline.counting.memory import cell_tables
from disclosure_pipeline.counting.memory.job import Job, Limits
from disclosure_pipeline.counting.memory.radix import Numbered, Radix
from disclosure_pipeline.counting.partitioned.batches import CodedBatch
from disclosure_pipeline.counting.targets import CountRequest
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.measures.together import TogetherCounts, count_unique_in_any
from disclosure_pipeline.runtime.progress import OnProgress


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
        """The records of a batch by key combination, then by the cells of each target."""
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
        """What the request asks for, once all batches are counted."""
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
        )


def count_cells(request: CountRequest, records: tuple[int, ...], limits: Limits) -> CellCounter | None:
    """A counter for tables of so many records; None where there are too many possible cells."""
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
