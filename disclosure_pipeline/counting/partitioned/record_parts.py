"""Coded records in parts by their keys, each counted like a whole table.

Records with equal keys are in one part, and all counts are sums over keys, so those of the parts add up.
Parts wait in a spill file until all batches are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.counting.cells import CellParts, Found, Parts
from disclosure_pipeline.counting.counts import CountRequest, gather_columns
from disclosure_pipeline.counting.memory.cell_tables import count_pairs
from disclosure_pipeline.counting.memory.engine import find_in_memory
from disclosure_pipeline.counting.memory.partial_records import deal_columns, find_records
from disclosure_pipeline.counting.memory.radix import Codes, Limits
from disclosure_pipeline.counting.partitioned.spill_file import SpillFile, open_spill_file
from disclosure_pipeline.counting.partitioned.streams import CodedBatch
from disclosure_pipeline.measures.exact import Grouped, IntArray, add_up
from disclosure_pipeline.runtime.machine import map_in_threads
from disclosure_pipeline.runtime.progress import OnProgress
from disclosure_pipeline.tables.levels import CodedColumn, StoredColumn

Records = npt.NDArray[Any]

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # spreads neighbouring codes over all parts
_HALF = np.uint64(32)


@dataclass(frozen=True)
class PartCounter:
    """Counts the records of `tables` part by part, by the codes of `columns`.

    For each of the `requests`, by number, records with equal keys are in one part: the keys of the first
    request decide, and records that differ in them also differ in the keys of every other (`group_requests`).
    With an `order`, which takes a single request, records are in one part if they agree in all keys that it
    never leaves out (`deal_columns`).
    """

    requests: Mapping[int, CountRequest]
    tables: range
    order: int | None = None

    @cached_property
    def columns(self) -> list[CodedColumn]:
        """The columns of all requests."""
        return gather_columns([*self.requests.values()])

    @property
    def first(self) -> CountRequest:
        """The first request."""
        return next(iter(self.requests.values()))

    @property
    def deciding(self) -> list[CodedColumn]:
        """The keys that decide a record's part."""
        keys = self.first.keys
        left_out = () if self.order is None else deal_columns(keys)[self.order]
        return [key for key in keys if not any(key is column for column in left_out)]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of a record: a field for each column, wide enough for its codes and one for no level."""
        return np.dtype(
            [(f"{number}", np.min_scalar_type(column.size)) for number, column in enumerate(self.columns)]
        )

    def field(self, column: CodedColumn) -> str:
        """Return the name of the field with the codes of a column."""
        return f"{next(i for i, counted in enumerate(self.columns) if counted is column)}"

    def find_parts(self, records: Records, parts: int) -> IntArray:
        """Return the part of each record, the same for all that agree in the deciding keys."""
        mixed = np.zeros(len(records), dtype=np.uint64)
        for key in self.deciding:
            mixed += records[self.field(key)].astype(np.uint64)
            mixed *= _MULTIPLIER
            mixed ^= mixed >> _HALF
        mixed *= _MULTIPLIER
        return (((mixed >> _HALF) * np.uint64(parts)) >> _HALF).astype(np.min_scalar_type(parts - 1))

    def find_cells(self, records: Sequence[Records], limits: Limits) -> Iterator[tuple[int, Found]]:
        """Yield the cells of a part for each request, by number, from the `records` of each table in it."""
        if not any(map(len, records)):
            return
        for number, request in self.requests.items():
            find_parts = self._find_cells if self.order is None else self._find_records
            for some in find_parts(number, request, records, limits):
                for find in some.parts:
                    yield from find()

    def _find_cells(
        self, number: int, request: CountRequest, records: Sequence[Records], limits: Limits
    ) -> CellParts:
        targets = [
            replace(target, column=self._in_part(target.column, records)) for target in request.targets
        ]
        keys = [self._in_part(key, records) for key in request.keys]
        yield from find_in_memory(replace(request, keys=keys, targets=targets), limits, number=number)

    def _find_records(
        self, number: int, request: CountRequest, records: Sequence[Records], limits: Limits
    ) -> CellParts:
        """Find whole records of a part, and those without the keys that its order leaves out."""
        present = [j for j in self.tables[1:] if len(records[0]) or len(records[j])]
        # With GT records every synthesis can be counted, without them only those that have records.
        for syntheses in [present] if len(records[0]) else [[j] for j in present]:
            tables = [0, *syntheses]
            keys = [self._in_part(key, records, tables) for key in request.keys]
            yield from find_records(keys, syntheses, limits, self.order, number)

    def _in_part(
        self, column: CodedColumn, records: Sequence[Records], tables: Sequence[int] | None = None
    ) -> CodedColumn:
        """Return a column of the records of a part, in some tables."""
        name = self.field(column)
        chosen = self.tables if tables is None else tables
        return replace(column, tables=tuple(_store(column, records[i][name], i) for i in chosen))

    def count_pairs(
        self, records: Records, listed: Sequence[tuple[int, int]]
    ) -> tuple[tuple[Grouped, ...], ...]:
        """Count the pairs of each listed target and key in a part, from GT's `records`: see `count_pairs`."""

        def count(number: int, i: int) -> tuple[Grouped, ...]:
            request = self.requests[number]
            keys = [self._in_part(key, [records], [0]) for key in request.keys]
            return count_pairs(keys, [self._in_part(request.targets[i].column, [records], [0])])[0]

        return tuple(count(*place) for place in listed)


def _store(column: CodedColumn, codes: Codes, table: int) -> StoredColumn:
    """Return a column of some records of a table; `counts` stay those of the whole table, with all levels."""
    return StoredColumn(np.ascontiguousarray(codes), 0, np.arange(column.size), column.counts[table])


def deal_records(records: Records, group: IntArray) -> Iterator[tuple[int, Records]]:
    """Yield the number of each group that has records, and these records in their order."""
    in_order = records.take(np.argsort(group, kind="stable"))  # many times as fast as by an index
    ends = np.cumsum(np.bincount(group)).tolist()
    for number, (start, end) in enumerate(pairwise([0, *ends])):
        if end > start:
            yield number, in_order[start:end]


_SMALLEST_CHUNK = 1 << 15  # bytes; with 10 billion records in each table, at most 0.6 GB wait


@dataclass(frozen=True)
class RecordParts:
    """The spilled records of each table, in a number of `parts`, and the counter for them."""

    counter: PartCounter
    parts: int
    spill_file: SpillFile

    def spill_batch(self, table: int, batch: CodedBatch) -> None:
        """Append the records of a batch to their parts."""
        records = np.empty(batch.records, dtype=self.spill_file.dtype)
        for column in self.counter.columns:
            records[self.counter.field(column)] = batch.codes_of(column)
        for part, of_part in deal_records(records, self.counter.find_parts(records, self.parts)):
            self.spill_file.add((part, table), of_part)

    def find_cells(self, limits: Limits, threads: int, on_progress: OnProgress) -> Parts:
        """Return the cells for each request in parts, once all batches are spilled."""
        compiled = 0 if self.parts * limits.spill_part >= limits.compiled else limits.compiled
        find = partial(_find_in_part, self, replace(limits, threads=0, compiled=compiled))
        return Parts(
            [partial(find, part) for part in range(self.parts)],
            [(number, i) for number, of in self.counter.requests.items() for i in range(len(of.targets))],
            partial(_find_pairs, self, threads),
            threads,
            partial(on_progress, "Measuring"),
        )


def open_record_parts(
    requests: Mapping[int, CountRequest],
    records: tuple[int, ...],
    limits: Limits,
    stack: ExitStack,
    order: int | None = None,
) -> RecordParts:
    """Open a spill file, until the stack closes, for the records of tables of these sizes.

    The requests can share parts (`group_requests`); an `order` takes a single one. Raise InputError if the
    disk has no room.
    """
    counter = PartCounter(requests, range(len(records)), order)
    spill_file = stack.enter_context(open_spill_file(counter.dtype, sum(records), _SMALLEST_CHUNK))
    return RecordParts(counter, count_parts(records, limits), spill_file)


def count_parts(records: tuple[int, ...], limits: Limits) -> int:
    """Return the number of parts of tables of these sizes."""
    return max(1, -(-sum(records) // limits.spill_part))


def group_requests(requests: Mapping[int, CountRequest]) -> list[dict[int, CountRequest]]:
    """Group requests that can share parts: the keys of each determine those of the group's first."""
    groups: list[dict[int, CountRequest]] = []
    for number, request in sorted(requests.items(), key=lambda item: len(item[1].keys)):
        for group in groups:
            first, *_ = group.values()
            if all(any(determines(key, coarser) for key in request.keys) for coarser in first.keys):
                group[number] = request
                break
        else:
            groups.append({number: request})
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


def _find_in_part(parts: RecordParts, limits: Limits, part: int) -> Iterator[tuple[int, Found]]:
    records = [parts.spill_file.read((part, table)) for table in parts.counter.tables]
    return parts.counter.find_cells(records, limits)


def _find_pairs(
    parts: RecordParts, threads: int, listed: Sequence[tuple[int, int]]
) -> list[tuple[Grouped, ...]]:
    """Count the pairs of these targets in all parts: see `Parts.find_pairs`."""

    def find_in_part(part: int) -> tuple[tuple[Grouped, ...], ...]:
        return parts.counter.count_pairs(parts.spill_file.read((part, 0)), listed)

    return [*add_up(map_in_threads(range(parts.parts), find_in_part, threads))]
