"""Coded records in parts by their keys, each counted like a whole table.

Records with equal keys are in one part, and all counts are sums over keys, so those of the parts add up.
Parts wait in a spill file until all batches are read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.counting.counts import CountRequest, DisclosureCounts, gather_columns
from disclosure_pipeline.counting.memory.cell_tables import count_pairs
from disclosure_pipeline.counting.memory.engine import count_in_memory
from disclosure_pipeline.counting.memory.partial_records import count_records, deal_columns
from disclosure_pipeline.counting.memory.radix import Codes, Limits
from disclosure_pipeline.counting.partitioned.spill_file import SpillFile, open_spill_file
from disclosure_pipeline.counting.partitioned.streams import CodedBatch
from disclosure_pipeline.measures.exact import Grouped, IntArray, add_up
from disclosure_pipeline.runtime.machine import map_in_threads
from disclosure_pipeline.runtime.progress import OnProgress
from disclosure_pipeline.tables.levels import CodedColumn, StoredColumn

Records = npt.NDArray[Any]
PartCounts = tuple[list[int], DisclosureCounts]
"""The numbers of some syntheses, and their counts in a part."""

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # spreads neighbouring codes over all parts
_HALF = np.uint64(32)


@dataclass(frozen=True)
class PartCounter:
    """Counts the records of `tables` part by part, by the codes of `columns`.

    For each of the `requests`, records with equal keys are in one part: the keys of the first request decide,
    and records that differ in them also differ in the keys of every other. With an `order`, which takes a
    single request, records are in one part if they agree in all keys that it never leaves out
    (`deal_columns`).
    """

    requests: tuple[CountRequest, ...]
    columns: tuple[CodedColumn, ...]
    tables: range
    order: int | None = None

    @classmethod
    def from_requests(
        cls, requests: Sequence[CountRequest], tables: int, order: int | None = None
    ) -> PartCounter:
        """Return the counter for requests that can share parts (`group_requests`)."""
        return cls(tuple(requests), tuple(gather_columns(requests)), range(tables), order)

    @property
    def left_out(self) -> list[CodedColumn]:
        """The keys left out one at a time in this order; none without an order."""
        keys = self.requests[0].keys
        dealt = () if self.order is None else deal_columns(keys)[self.order]
        return [key for key in keys if any(key is column for column in dealt)]

    @property
    def deciding(self) -> list[CodedColumn]:
        """The keys that decide a record's part."""
        left_out = set(map(id, self.left_out))
        return [key for key in self.requests[0].keys if id(key) not in left_out]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of a record: a field for each column, wide enough for its codes and one for no level."""
        return np.dtype(
            [(f"{number}", np.min_scalar_type(column.size)) for number, column in enumerate(self.columns)]
        )

    def field(self, column: CodedColumn) -> str:
        """Return the name of the field with the codes of a column."""
        return f"{next(i for i, counted in enumerate(self.columns) if counted is column)}"

    def find_parts(self, codes_of: Callable[[CodedColumn], Codes], parts: int) -> IntArray:
        """Return the part of each record, the same for all that agree in the deciding keys."""
        keys = [codes_of(key) for key in self.deciding]
        mixed = np.zeros(len(keys[0]), dtype=np.uint64)
        for codes in keys:
            mixed += codes.astype(np.uint64)
            mixed *= _MULTIPLIER
            mixed ^= mixed >> _HALF
        mixed *= _MULTIPLIER
        return (((mixed >> _HALF) * np.uint64(parts)) >> _HALF).astype(np.min_scalar_type(parts - 1))

    def count(self, records: Sequence[Records], limits: Limits) -> list[list[PartCounts]]:
        """Count a part for each request, from the `records` that each table has in it.

        Only syntheses for which GT or the synthesis itself has records are counted.
        """
        present = [synthesis for synthesis in self.tables[1:] if len(records[0]) or len(records[synthesis])]
        # With GT records every synthesis can be measured, without them only those that have records.
        together = [present] if len(records[0]) else [[synthesis] for synthesis in present]
        return [
            [
                (syntheses, self._count(request, records, [0, *syntheses], limits))
                for syntheses in together
                if syntheses
            ]
            for request in self.requests
        ]

    def _count(
        self, request: CountRequest, records: Sequence[Records], tables: Sequence[int], limits: Limits
    ) -> DisclosureCounts:
        def in_part(column: CodedColumn) -> CodedColumn:
            name = self.field(column)
            stored = tuple(_store(column, records[table][name], table) for table in tables)
            return replace(column, tables=stored)

        keys = [in_part(key) for key in request.keys]
        if self.order is not None:
            return count_records(keys, self.order).to_disclosure_counts()
        targets = [replace(target, column=in_part(target.column)) for target in request.targets]
        # A part without GT records discloses nothing; its syntheses are counted one by one.
        together = request.together and len(records[0]) > 0
        shares = replace(request, keys=keys).shares_apart
        return count_in_memory(keys, targets, limits=limits, together=together, shares_apart=shares)

    def pairs_of_key(
        self, records: Records, keys: Sequence[CodedColumn], targets: Sequence[CodedColumn]
    ) -> tuple[tuple[Grouped, ...], ...]:
        """Count the pairs of each target and key in a part, from GT's `records`: see `count_pairs`."""

        def in_part(column: CodedColumn) -> CodedColumn:
            return replace(column, tables=(_store(column, records[self.field(column)], 0),))

        keys_in_part = [in_part(key) for key in keys]
        return tuple(count_pairs(keys_in_part, in_part(target)) for target in targets)


def _store(column: CodedColumn, codes: Codes, table: int) -> StoredColumn:
    """Return a column of some records of a table; `counts` stay those of the whole table, with all levels."""
    return StoredColumn(np.ascontiguousarray(codes), 0, np.arange(column.size), column.counts[table])


_WAITING = 8  # parts whose counts are added up at once: each takes megabytes


@dataclass
class RunningSum:
    """A sum of counts that arrive one by one and are added up a few at a time."""

    waiting: list[Any] = field(default_factory=list)

    def add(self, counts: Any) -> None:
        """Add the counts of a part."""
        self.waiting.append(counts)
        if len(self.waiting) == _WAITING:
            self.waiting = [self.result()]

    def result(self) -> Any:
        """Return the sum of all counts added so far."""
        return add_up(self.waiting)


@dataclass
class PartSums:
    """The sums of the parts counted so far, for each synthesis and for all together."""

    request: CountRequest
    by_synthesis: dict[int, RunningSum] = field(default_factory=lambda: defaultdict(RunningSum))
    together: RunningSum = field(default_factory=RunningSum)

    def add(self, counted: Sequence[PartCounts]) -> None:
        """Add the counts of a part."""
        for syntheses, counts in counted:
            for i, synthesis in enumerate(syntheses):
                targets = tuple(target_counts[i] for target_counts in counts.targets)
                without = tuple(copies[i] for copies in counts.without)
                self.by_synthesis[synthesis].add((counts.keys[i], targets, without))
            if counts.together:
                self.together.add(counts.together)

    def counts(self, count_pairs: Callable[[list[int]], Sequence[tuple[Grouped, ...]]]) -> DisclosureCounts:
        """Return the requested counts, once all parts are counted.

        `count_pairs` counts the pairs of targets, given by number: of those with large cells.
        """
        request = self.request
        results = [self.by_synthesis[i].result() for i in sorted(self.by_synthesis)]
        by_target = tuple(zip(*(targets for _, targets, *_ in results), strict=True))
        listed = [t for t, counts in enumerate(by_target) if any(c.has_large_cells for c in counts)]
        pairs_of_target = dict(zip(listed, count_pairs(listed) if listed else [], strict=True))
        return DisclosureCounts(
            tuple(keys for keys, *_ in results),
            by_target,
            tuple(pairs_of_target.get(t, ()) for t in range(len(request.targets))),
            self.together.result() if request.together else None,
            tuple(zip(*(without for *_, without in results), strict=True)),
        )


_EVEN = 16  # combinations for each part: with fewer, frequent ones make parts uneven
_SMALLEST_CHUNK = 1 << 15  # bytes; with 10 billion records in each table, at most 0.6 GB wait


@dataclass(frozen=True)
class RecordParts:
    """The spilled records of each table, in a number of `parts`, and the counter for them."""

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
        """Return the counts for each request, once all batches are spilled."""
        sums = [PartSums(request) for request in self.counter.requests]
        compiled = 0 if self.parts * limits.spill_part >= limits.compiled else limits.compiled
        work = partial(_measure_part, self, replace(limits, threads=0, compiled=compiled))
        for completed, counts in enumerate(map_in_threads(range(self.parts), work, threads), start=1):
            for request_sums, part_counts in zip(sums, counts, strict=True):
                request_sums.add(part_counts)
            on_progress("Measuring", completed, self.parts)
        return [
            request_sums.counts(partial(_pairs_of_key, self, request_sums.request, threads))
            for request_sums in sums
        ]


def open_record_parts(
    requests: Sequence[CountRequest],
    records: tuple[int, ...],
    limits: Limits,
    stack: ExitStack,
    order: int | None = None,
) -> RecordParts:
    """Open a spill file, until the stack closes, for the records of tables of these sizes.

    The requests can share parts (`group_requests`); an `order` takes a single one. Raise InputError if the
    disk has no room.
    """
    counter = PartCounter.from_requests(requests, len(records), order)
    spill_file = stack.enter_context(open_spill_file(counter.dtype, sum(records), _SMALLEST_CHUNK))
    return RecordParts(counter, _count_parts(records, limits), spill_file)


def supports_orders(request: CountRequest, records: tuple[int, ...], limits: Limits) -> bool:
    """Return whether records are spilled, and evenly by the columns that each order never leaves out."""
    combinations = prod(column.size for column in request.keys)
    fewest = _EVEN * _count_parts(records, limits)
    return combinations > min(limits.table, sum(records)) and all(
        combinations // prod(column.size for column in left_out) > fewest
        for left_out in deal_columns(request.keys)
    )


def _count_parts(records: tuple[int, ...], limits: Limits) -> int:
    return max(1, -(-sum(records) // limits.spill_part))


def group_requests(requests: Sequence[CountRequest]) -> list[list[CountRequest]]:
    """Group requests that can share parts: the keys of each determine those of the group's first."""
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
    """Return whether a record's code in `finer` determines that in `coarser`: the same column, or grouped."""
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
    records = [parts.spill_file.read((part, table)) for table in parts.counter.tables]
    return parts.counter.count(records, limits)


def _pairs_of_key(
    parts: RecordParts, request: CountRequest, threads: int, targets: Sequence[int]
) -> Sequence[tuple[Grouped, ...]]:
    """Count the pairs of these targets, given by number, in all parts: see `PartCounter.pairs_of_key`."""
    columns = [request.targets[t].column for t in targets]

    def pairs_in_part(part: int) -> tuple[tuple[Grouped, ...], ...]:
        return parts.counter.pairs_of_key(parts.spill_file.read((part, 0)), request.keys, columns)

    sums = RunningSum()
    for pairs in map_in_threads(range(parts.parts), pairs_in_part, threads):
        sums.add(pairs)
    return cast(Sequence[tuple[Grouped, ...]], sums.result())
