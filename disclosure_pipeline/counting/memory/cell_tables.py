"""Counting in a table of all possible cells, where that is small."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, reduce
from itertools import pairwise
from math import prod

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.counting.cells import CellParts, Cells, Found, LoneKeys, Parts
from disclosure_pipeline.counting.counts import Target
from disclosure_pipeline.counting.memory.radix import (
    Codes,
    Job,
    Radix,
    is_compiled,
    split_records,
    sum_readers,
)
from disclosure_pipeline.measures.checks import sum_by_pair
from disclosure_pipeline.measures.exact import Grouped, IntArray
from disclosure_pipeline.measures.frequency import combine_keys, first_of_run
from disclosure_pipeline.runtime.machine import run_in_threads
from disclosure_pipeline.tables.levels import CodedColumn, Reader

_LARGEST = 1 << 22  # cells counted in a table of all of them
_AT_A_TIME = 1 << 17  # records at a time: they fit the cache
_MOST_TOGETHER = 1 << 15  # cells of several keys and a target


def count_pair(first: CodedColumn, second: CodedColumn) -> tuple[IntArray, ...]:
    """Count the records of each table (GT first) in each cell, in the same order; cells may be empty."""
    if first.size * second.size > _LARGEST:
        return combine_keys([first.codes, second.codes], [first.size, second.size]).counts
    keys, cells = Radix((first,)), first.size * second.size
    return tuple(count_cells(keys, [second], i)[0].by_position(cells) for i in range(len(first.tables)))


def count_pairs(
    keys: Sequence[CodedColumn],
    targets: Sequence[CodedColumn],
    threads: int = 0,
    report: Callable[[int, int], None] | None = None,
) -> list[tuple[Grouped, ...]]:
    """Count the GT records by level of each key * size of a target + its level, for each target.

    Keys of few levels are counted together, and then added up for each of them.
    """
    largest, groups = max(target.size for target in targets), list[list[CodedColumn]]()
    for key in keys:
        if groups and prod(column.size for column in (*groups[-1], key)) * largest <= _MOST_TOGETHER:
            groups[-1].append(key)
        else:
            groups.append([key])
    together, records = [Radix(tuple(group)) for group in groups], len(keys[0].tables[0].stored)
    parts = [split_records(records, group.size * largest, len(groups), threads) for group in together]
    order = sorted(range(len(groups)), key=lambda number: -together[number].size)  # the slowest first
    tasks = [
        partial(count_cells, together[number], targets, 0, part) for number in order for part in parts[number]
    ]
    counted = iter(run_in_threads(tasks, threads, report))
    by_group = {number: list(zip(*(next(counted) for _ in parts[number]), strict=True)) for number in order}
    adding = [
        partial(_add_up_pairs, together, target.size, [by_group[number][i] for number in range(len(groups))])
        for i, target in enumerate(targets)
    ]
    return run_in_threads(adding, threads)


def _add_up_pairs(
    groups: Sequence[Radix], levels: int, counted: Sequence[Sequence[Grouped]]
) -> tuple[Grouped, ...]:
    """Return the pairs of each key and a target from the cells of groups of keys, in parts of the records."""
    pairs = []
    for group, parts in zip(groups, counted, strict=True):
        records, keys = Grouped.joined(parts), range(len(group.columns))
        if len(keys) == 1:
            pairs.append(records)
            continue
        sizes = [*(column.size for column in group.columns), levels]
        table = records.by_position(prod(sizes)).reshape(sizes)
        pairs += [
            Grouped.from_positions(table.sum(axis=tuple(other for other in keys if other != axis)).ravel())
            for axis in keys
        ]
    return tuple(pairs)


def count_pairs_of(job: Job, targets: Sequence[int]) -> list[tuple[Grouped, ...]]:
    """Count the pairs of targets, by their places, as `count_pairs` does."""
    columns = [job.request.targets[i].column for i in targets]
    return count_pairs(job.request.keys, columns, job.threads, job.report("Measuring"))


def count_cells(
    keys: Radix, targets: Sequence[CodedColumn], table: int, records: slice | None = None
) -> list[Grouped]:
    """Count a table's records, by default all, by code of the keys * size of each target + its level."""
    N = len(targets[0].tables[table].stored)
    records, cells = records or slice(0, N), [keys.size * column.size for column in targets]
    is_small = max(cells) <= _LARGEST
    compiled = is_small and is_compiled(N)
    dtype: npt.DTypeLike = np.uint32 if compiled else np.int64
    readers = keys.readers(table, 1, dtype)
    counts = [np.zeros(number if is_small else 0, dtype=dtype) for number in cells]
    counted = [[Grouped.empty()] for _ in targets]
    step = _AT_A_TIME if compiled else max(_AT_A_TIME, *map(len, counts))
    room = np.empty(min(step, records.stop - records.start), dtype=dtype)
    for start in range(records.start, records.stop, step):
        some = slice(start, min(start + step, records.stop))
        codes = room[: some.stop - start]
        sum_readers(readers, some, codes, compiled=compiled)
        for target, of_target, parts in zip(targets, counts, counted, strict=True):
            reader = target.reader(table, np.arange(target.size))
            if is_small:
                _add_records(of_target, codes, some, reader, target.size, compiled=compiled)
            else:
                parts.append(Grouped.count(codes * target.size + reader(some)))
    if is_small:
        return [Grouped.from_positions(of_target.astype(np.int64)) for of_target in counts]
    return [*map(Grouped.joined, counted)]


def _add_records(
    counts: IntArray, codes: Codes, records: slice, reader: Reader | None, levels: int, *, compiled: bool
) -> None:
    """Count records by their `codes` * `levels` + what the reader says."""
    if compiled:
        from disclosure_pipeline.counting.memory import loops

        if reader:
            stored, lowest = reader.column.stored[records], reader.column.lowest_stored
            loops.count_cells(codes, stored, lowest, reader.values, levels, counts)
        else:
            loops.count(codes, counts)
        return
    cells = codes.astype(np.intp)
    if reader:
        cells *= levels
        cells += reader(records)
    counts += np.bincount(cells, minlength=len(counts))


_FEWEST_AT_ONCE, _MOST_AT_ONCE = 1 << 18, 1 << 22  # records
_MEASURED = 1 << 17  # cells at a time: the formulas' arrays fit the cache
_MOST_TABLES = 4  # tables of cells of the largest size that are in memory together


def code_keys(job: Job) -> tuple[list[Codes], list[IntArray]]:
    """Return the code of each record of each table, and the number of records with each code."""
    codes: list[Codes] = [np.empty(records, dtype=np.uint32) for records in job.records]
    coding = [
        partial(sum_readers, readers, part, codes[table][part], compiled=job.gains_by_loops)
        for table in range(len(codes))
        for readers in [job.keys.readers(table, 1, np.uint32)]
        for part in job.parts(table)
    ]
    run_in_threads(coding, job.threads, job.report("Coding the keys"))
    [counts] = _count_cells(job, codes, [None], "Counting the keys")
    return codes, [of_table.astype(np.int64) for of_table in counts]


def find_keys(job: Job, counts: Sequence[IntArray]) -> Parts:
    """Return the key combinations, from the records of each table with each code."""

    def find_lone() -> Iterator[Found]:
        yield LoneKeys(job.keys.levels_of(np.flatnonzero(counts[0] == 1)))

    return job.collect([lambda: [Cells.of_keys(counts)], *([find_lone] if job.request.apart else [])])


def find_in_tables(job: Job, codes: Sequence[Codes], targets: Sequence[int]) -> CellParts:
    """Yield the cells of targets, as many at a time as have tables that fit into memory together.

    `codes`: see `code_keys`.
    """
    for batch in _split_targets(job, targets):
        counts = _count_cells(job, codes, [job.request.targets[i] for i in batch], "Counting the targets")
        yield find_in_counts(job, dict(zip(batch, counts, strict=True)))


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


def _count_cells(
    job: Job, codes: Sequence[Codes], targets: Sequence[Target | None], step: str
) -> Iterator[list[IntArray]]:
    """Yield the records of each table with each code and level of a target, or with each code."""
    tasks, parts = list[Callable[[], IntArray]](), []
    for target in targets:
        size = job.keys.size * (target.column.size if target else 1)
        for table, of_table in enumerate(codes):
            own = [slice(0, len(of_table))]
            if job.gains_by_loops:
                own = split_records(len(of_table), size, len(targets) * len(codes), job.threads)
            tasks += [partial(_count_part, job, of_table, part, target, table) for part in own]
            parts.append(len(own))
    counted = iter(run_in_threads(tasks, job.threads, job.report(step)))
    sums = [partial(reduce, np.add, [next(counted) for _ in range(number)]) for number in parts]
    summed = iter(run_in_threads(sums, job.threads))
    return ([next(summed) for _ in codes] for _ in targets)


def _count_part(job: Job, codes: Codes, records: slice, target: Target | None, table: int) -> IntArray:
    levels = target.column.size if target else 1
    reader = target.column.reader(table, np.arange(levels)) if target else None
    compiled = job.gains_by_loops
    counts = np.zeros(job.keys.size * levels, dtype=np.uint32 if compiled else np.int64)
    step = max(1, len(codes)) if compiled else min(max(len(counts), _FEWEST_AT_ONCE), _MOST_AT_ONCE)
    for start in range(records.start, records.stop, step):
        some = slice(start, min(start + step, records.stop))
        _add_records(counts, codes[some], some, reader, levels, compiled=compiled)
    return counts


def find_in_counts(job: Job, counts: Mapping[int, Sequence[IntArray]]) -> Parts:
    """Return parts of the cells of targets, from `counts[i][table]`, the records by code * levels + t."""

    def find(i: int, rows: slice) -> Iterator[Cells]:
        q, t, of_tables = _find_cells(job.request.targets[i], counts[i], rows)
        new = first_of_run(q)
        codes, numbers, syntheses = q[new], np.cumsum(new) - 1, job.request.syntheses
        yield Cells(i, syntheses, numbers, t, of_tables, lambda some: job.keys.levels_of(codes[some]))

    def add_up_pairs(i: int) -> tuple[Grouped, ...]:
        target = job.request.targets[i]
        q, t, [records] = _find_cells(target, counts[i][:1], slice(0, len(counts[i][0])))
        return sum_by_pair(job.keys.levels_of(q), t, records, target.column.size)

    finds = [partial(find, i, rows) for i in counts for rows in _split_rows(job, job.request.targets[i])]

    def add_up_all(targets: Sequence[int]) -> list[tuple[Grouped, ...]]:
        tasks = [partial(add_up_pairs, i) for i in targets]
        return run_in_threads(tasks, job.threads, job.report("Measuring"))

    return job.collect(finds, list(counts), add_up_all, job.formula_threads)


def _split_rows(job: Job, target: Target) -> list[slice]:
    """Split the cells into parts, between codes."""
    levels = target.column.size
    step = max(1, min(job.limits.part, _MEASURED) // levels)
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
    of_tables: list[IntArray] = [of_table[occupied].astype(np.int64) for of_table in some]
    return row + rows.start // target.column.size, t, of_tables
