"""Coded records in parts by their keys, each of which is counted as if it were the whole table.

Records with equal keys lie in one part, and all counts are sums over keys: those of the parts add up. Parts
wait in a spill file until all batches were read.
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

from disclosure_pipeline.counting.counts import CountRequest, DisclosureCounts, columns_of_requests
from disclosure_pipeline.counting.memory.engine import count_in_memory
from disclosure_pipeline.counting.memory.partial_records import count_records, deal_columns
from disclosure_pipeline.counting.memory.radix import Codes, Limits
from disclosure_pipeline.counting.memory.whole_records import count_whole_records
from disclosure_pipeline.counting.partitioned.spill_file import SpillFile, open_spill_file
from disclosure_pipeline.counting.partitioned.streams import CodedBatch
from disclosure_pipeline.measures.exact import Grouped, IntArray, add_up
from disclosure_pipeline.runtime.machine import map_in_threads
from disclosure_pipeline.runtime.progress import OnProgress
from disclosure_pipeline.tables.levels import CodedColumn, StoredColumn

Records = npt.NDArray[Any]
PartCounts = tuple[list[int], DisclosureCounts]
"""The counts of some syntheses in a part, and which these are."""

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # spreads neighbouring codes over all parts
_HALF = np.uint64(32)


@dataclass(frozen=True)
class PartCounter:
    """Counts the records of one part after the other: the codes of `columns`, in so many `tables`.

    Records with equal keys are in one part, for each of the `requests`: the keys of the first decide, and
    records that differ in them differ in the keys of all others too. `order`: records are in one part that
    agree in all keys but those that are left out in this order (`deal_columns`); of one request.
    """

    requests: tuple[CountRequest, ...]
    columns: tuple[CodedColumn, ...]
    tables: range
    order: int | None = None

    @classmethod
    def of_requests(
        cls, requests: Sequence[CountRequest], tables: int, order: int | None = None
    ) -> PartCounter:
        """Return the counter for the columns of these requests, which can share their parts."""
        return cls(tuple(requests), tuple(columns_of_requests(requests)), range(tables), order)

    @property
    def left_out(self) -> list[CodedColumn]:
        """The keys that are left out in this order, one at a time; none without an order."""
        keys = self.requests[0].keys
        dealt = () if self.order is None else deal_columns(keys)[self.order]
        return [key for key in keys if any(key is column for column in dealt)]

    @property
    def deciding(self) -> list[CodedColumn]:
        """The columns that decide in which part a record is."""
        left_out = set(map(id, self.left_out))
        return [key for key in self.requests[0].keys if id(key) not in left_out]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of a record: a field for the code of each column, and for one more, that of no level."""
        return np.dtype(
            [(f"{number}", np.min_scalar_type(column.size)) for number, column in enumerate(self.columns)]
        )

    def field(self, column: CodedColumn) -> str:
        """Return the field of the records that holds the codes of a column."""
        return f"{next(i for i, counted in enumerate(self.columns) if counted is column)}"

    def find_parts(self, codes_of: Callable[[CodedColumn], Codes], parts: int) -> IntArray:
        """Return the part of each record: one and the same for all that agree in what decides."""
        keys = [codes_of(key) for key in self.deciding]
        mixed = np.zeros(len(keys[0]), dtype=np.uint64)
        for codes in keys:
            mixed += codes.astype(np.uint64)
            mixed *= _MULTIPLIER
            mixed ^= mixed >> _HALF
        mixed *= _MULTIPLIER
        return (((mixed >> _HALF) * np.uint64(parts)) >> _HALF).astype(np.min_scalar_type(parts - 1))

    def count(self, records: Sequence[Records], limits: Limits) -> list[list[PartCounts]]:
        """For each request the counts in a part, of some syntheses at a time; none of those without a record.

        `records` are those of each table in the part.
        """
        present = [synthesis for synthesis in self.tables[1:] if len(records[0]) or len(records[synthesis])]
        # With GT every synthesis can be measured; without it only those that have records.
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
            return count_records(keys, () if self.order else request.by_level, self.order).as_found()
        if request.by_level:
            return count_whole_records(keys, request.by_level)
        targets = [replace(target, column=in_part(target.column)) for target in request.targets]
        # Of a part without a GT record nothing is disclosed; its syntheses are counted one by one.
        together = request.together and len(records[0]) > 0
        return count_in_memory(keys, targets, limits=limits, together=together)

    def pairs_of_key(
        self, records: Records, keys: Sequence[CodedColumn], targets: Sequence[CodedColumn]
    ) -> tuple[tuple[Grouped, ...], ...]:
        """For each target and key the GT records by level of the key * size of the target + target level.

        `records` are those of GT in a part.
        """
        ones = np.ones(len(records), dtype=np.int64)
        levels = [records[self.field(key)].astype(np.int64) for key in keys]
        pairs = []
        for target in targets:
            t, size = records[self.field(target)].astype(np.int64), target.size
            pairs.append(tuple(Grouped.sum_by_group(of_key * size + t, ones) for of_key in levels))
        return tuple(pairs)


def _store(column: CodedColumn, codes: Codes, table: int) -> StoredColumn:
    """Return some records of a table; `counts` stay those of all, which say what levels there are."""
    return StoredColumn(np.ascontiguousarray(codes), 0, np.arange(column.size), column.counts[table])


_WAITING = 8  # parts whose counts are added up at once: by group they take megabytes each


@dataclass
class RunningSum:
    """A sum of counts that come one after the other, few of which are held at a time."""

    waiting: list[Any] = field(default_factory=list)

    def add(self, counts: Any) -> None:
        """Add the counts of one more part."""
        self.waiting.append(counts)
        if len(self.waiting) == _WAITING:
            self.waiting = [self.result()]

    def result(self) -> Any:
        """Return the sum of all that was added."""
        return add_up(self.waiting)


@dataclass
class PartSums:
    """The sums of the parts that were counted so far, of each synthesis and of all together."""

    request: CountRequest
    of_syntheses: dict[int, RunningSum] = field(default_factory=lambda: defaultdict(RunningSum))
    together: RunningSum = field(default_factory=RunningSum)

    def add(self, counted: Sequence[PartCounts]) -> None:
        """Add the counts of one more part."""
        for syntheses, counts in counted:
            for i, synthesis in enumerate(syntheses):
                targets = tuple(of_target[i] for of_target in counts.targets)
                levels = counts.levels[i] if counts.levels else ()
                without = tuple(of_set[i] for of_set in counts.without)
                self.of_syntheses[synthesis].add((counts.keys[i], targets, levels, without))
            if counts.together:
                self.together.add(counts.together)

    def counts(self, count_pairs: Callable[[list[int]], Sequence[tuple[Grouped, ...]]]) -> DisclosureCounts:
        """Return what the request asks for, once all parts are counted.

        `count_pairs` is asked for the pairs of those targets, by number, that have large cells.
        """
        request = self.request
        of_syntheses = [self.of_syntheses[i].result() for i in sorted(self.of_syntheses)]
        by_target = tuple(zip(*(targets for _, targets, *_ in of_syntheses), strict=True))
        listed = [t for t, of_target in enumerate(by_target) if any(c.has_large_cells for c in of_target)]
        pairs_of_target = dict(zip(listed, count_pairs(listed) if listed else [], strict=True))
        return DisclosureCounts(
            tuple(keys for keys, *_ in of_syntheses),
            by_target,
            tuple(pairs_of_target.get(t, ()) for t in range(len(request.targets))),
            self.together.result() if request.together else None,
            tuple(levels for _, _, levels, _ in of_syntheses) if request.by_level else (),
            tuple(zip(*(without for *_, without in of_syntheses), strict=True)),
        )


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
