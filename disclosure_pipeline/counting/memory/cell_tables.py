"""Counting in a table of all possible cells, where that is small."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial, reduce
from itertools import pairwise
from math import prod

import numpy as np

from disclosure_pipeline.counting.cells import CellParts, Cells, Parts
from disclosure_pipeline.counting.counts import Target
from disclosure_pipeline.counting.memory.radix import Codes, Job, Radix, is_compiled, sum_readers
from disclosure_pipeline.measures.checks import sum_by_pair
from disclosure_pipeline.measures.exact import Grouped, IntArray
from disclosure_pipeline.measures.frequency import combine_keys, first_of_run
from disclosure_pipeline.runtime.machine import run_in_threads
from disclosure_pipeline.tables.levels import CodedColumn

_LARGEST = 1 << 22  # cells counted in a table of all of them
_AT_A_TIME = 1 << 17  # records at a time: they fit the cache
_MOST_TOGETHER = 1 << 15  # cells of several keys and a target


def count_pair(first: CodedColumn, second: CodedColumn) -> tuple[IntArray, ...]:
    """Count the records of each table (GT first) in each cell, in the same order; cells may be empty."""
    if first.size * second.size > _LARGEST:
        return combine_keys([first.codes, second.codes], [first.size, second.size]).counts
    cells = Radix((first, second))
    return tuple(count_codes(cells, table).by_position(cells.size) for table in range(len(first.tables)))


def count_pairs(keys: Sequence[CodedColumn], target: CodedColumn) -> tuple[Grouped, ...]:
    """Count the GT records by level of each key * size of the target + target level.

    Keys of few levels are counted together, and then added up for each of them.
    """
    groups: list[list[int]] = []
    for k, key in enumerate(keys):
        if groups and prod(keys[j].size for j in groups[-1]) * key.size * target.size <= _MOST_TOGETHER:
            groups[-1].append(k)
        else:
            groups.append([k])
    pairs = []
    for group in groups:
        counted = count_codes(Radix((*(keys[k] for k in group), target)), 0)
        if len(group) > 1:
            sizes = [*(keys[k].size for k in group), target.size]
            table = counted.by_position(prod(sizes)).reshape(sizes)
            for axis in range(len(group)):
                others = tuple(other for other in range(len(group)) if other != axis)
                pairs.append(Grouped.from_positions(table.sum(axis=others).ravel()))
        else:
            pairs.append(counted)
    return tuple(pairs)


def count_pairs_of(job: Job, i: int) -> tuple[Grouped, ...]:
    """Count the pairs of a target, by its place, as `count_pairs` does."""
    return count_pairs(job.request.keys, job.request.targets[i].column)


def count_codes(codes: Radix, table: int) -> Grouped:
    """Count a table's records by code."""
    records, is_small = codes.records(table), codes.size <= _LARGEST
    compiled = is_small and is_compiled(records)
    readers = codes.readers(table, 1, np.uint64 if compiled else np.int64)
    counts, counted = np.zeros(codes.size if is_small else 0, dtype=np.int64), [Grouped.empty()]
    step = _AT_A_TIME if compiled else max(_AT_A_TIME, len(counts))
    if compiled:
        from disclosure_pipeline.counting.memory import loops
    for start in range(0, records, step):
        of_records = np.empty(min(step, records - start), dtype=np.uint64 if compiled else np.int64)
        sum_readers(readers, slice(start, start + len(of_records)), of_records, compiled=compiled)
        if compiled:
            loops.count(of_records, counts)
        elif is_small:
            counts += np.bincount(of_records, minlength=len(counts))
        else:
            counted.append(Grouped.count(of_records))
    return Grouped.from_positions(counts) if is_small else Grouped.joined(counted)


_FEWEST_AT_ONCE, _MOST_AT_ONCE = 1 << 18, 1 << 22  # records
_MOST_TABLES = 4  # tables of cells of the largest size that are in memory together


def code_keys(job: Job) -> tuple[list[Codes], list[IntArray]]:
    """Return the code of each record of each table, and the number of records with each code."""
    codes = [np.empty(records, dtype=np.uint32) for records in job.records]
    coding = [
        partial(sum_readers, readers, part, codes[table][part])
        for table in range(len(codes))
        for readers in [job.keys.readers(table, 1, np.uint32)]
        for part in job.parts(table)
    ]
    run_in_threads(coding, job.threads, job.report("Coding the keys"))
    counting = [partial(_count_cells, of_table, job.keys.size) for of_table in codes]
    return codes, run_in_threads(counting, job.threads, job.report("Counting the keys"))


def find_keys(job: Job, counts: Sequence[IntArray]) -> Parts:
    """Return the key combinations, from the records of each table with each code."""

    def find() -> Iterator[Cells]:
        def list_alone() -> Codes:
            return np.flatnonzero(counts[0] == 1)

        hits_apart = [job.count_hits_apart(synthesis, list_alone) for synthesis in job.syntheses]
        yield Cells.of_keys(counts, hits_apart=hits_apart)

    return job.collect([find])


def find_in_tables(job: Job, codes: Sequence[Codes], targets: Sequence[int]) -> CellParts:
    """Yield the cells of targets, as many at a time as have tables that fit into memory together.

    `codes`: see `code_keys`.
    """
    for batch in _split_targets(job, targets):
        tasks = [
            partial(_count_cells, of_table, job.keys.size, job.request.targets[i], table)
            for i in batch
            for table, of_table in enumerate(codes)
        ]
        counted = iter(run_in_threads(tasks, job.threads, job.report("Counting the targets")))
        yield find_in_counts(job, {i: [next(counted) for _ in codes] for i in batch})


def _split_targets(job: Job, targets: Sequence[int]) -> Iterator[list[int]]:
    """Yield batches of targets whose tables of cells fit into memory together."""
    batch: list[int] = []
    for i in targets:
        levels = sum(job.request.targets[other].column.size for other in (*batch, i))
        if batch and job.keys.size * levels * len(job.records) > _MOST_TABLES * job.limits.table:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def _count_cells(codes: Codes, size: int, target: Target | None = None, table: int = 0) -> IntArray:
    """Count the records of a table with each code below `size`, or with each code and level of a target."""
    levels = target.column.size if target else 1
    reader = target.column.reader(table, np.arange(levels)) if target else None
    counts = np.zeros(size * levels, dtype=np.int64)
    step = min(max(len(counts), _FEWEST_AT_ONCE), _MOST_AT_ONCE)
    for start in range(0, len(codes), step):
        records = slice(start, start + step)
        cells = codes[records].astype(np.intp)
        if reader:
            cells *= levels
            cells += reader(records)
        counts += np.bincount(cells, minlength=len(counts))
    return counts


def find_in_counts(job: Job, counts: Mapping[int, Sequence[IntArray]]) -> Parts:
    """Return parts of the cells of targets, from `counts[i][table]`, the records by code * levels + t."""

    def find(i: int, rows: slice) -> Iterator[Cells]:
        q, t, of_tables = _find_cells(job.request.targets[i], counts[i], rows)
        new = first_of_run(q)
        codes = q[new]
        yield Cells(
            i, job.syntheses, np.cumsum(new) - 1, t, of_tables, lambda some: job.keys.levels_of(codes[some])
        )

    def add_up_pairs(i: int) -> tuple[Grouped, ...]:
        target = job.request.targets[i]
        q, t, [records] = _find_cells(target, counts[i][:1], slice(0, len(counts[i][0])))
        return sum_by_pair(job.keys.levels_of(q), t, records, target.column.size)

    finds = [partial(find, i, rows) for i in counts for rows in _split_rows(job, job.request.targets[i])]
    return job.collect(finds, list(counts), add_up_pairs)


def _split_rows(job: Job, target: Target) -> list[slice]:
    """Split the cells into parts, between codes."""
    levels = target.column.size
    step = max(1, job.limits.part // levels)
    bounds = [*range(0, job.keys.size, step), job.keys.size]
    return [slice(first * levels, end * levels) for first, end in pairwise(bounds)]


def _find_cells(
    target: Target, counts: Sequence[IntArray], rows: slice
) -> tuple[IntArray, IntArray, list[IntArray]]:
    """Return the code and the level of each cell that occurs in some rows, and its records of each table."""
    some = [of_table[rows] for of_table in counts]
    occupied = np.flatnonzero(reduce(np.bitwise_or, some))
    row = occupied // target.column.size
    t = occupied - row * target.column.size
    return row + rows.start // target.column.size, t, [of_table[occupied] for of_table in some]
