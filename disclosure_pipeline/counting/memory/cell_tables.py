"""Counting in a table of all possible cells, where that is small."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import pairwise
from math import prod

import numpy as np

from disclosure_pipeline.counting.counts import (
    KeyCounts,
    Target,
    TargetCounts,
    count_equal_keys,
    find_excluded_cells,
)
from disclosure_pipeline.counting.memory.look_alikes import CellCounts, count_cells, finish_target
from disclosure_pipeline.counting.memory.radix import Codes, Job, Radix, is_compiled, sum_readers
from disclosure_pipeline.measures.checks import sum_by_pair
from disclosure_pipeline.measures.exact import Grouped, IntArray, add_up
from disclosure_pipeline.measures.frequency import combine_keys, first_of_run, tabulate_cells
from disclosure_pipeline.measures.together import (
    TogetherTargetCounts,
    count_together,
)
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


def measure_keys(job: Job, counts: Sequence[IntArray]) -> tuple[KeyCounts, ...]:
    """Count the keys alone, for each synthesis, from the records of each table with each code."""
    alone = np.flatnonzero(counts[0] == 1)
    return tuple(
        count_equal_keys(counts[0], counts[i], job.count_hits_apart(i, alone)) for i in job.syntheses
    )


@dataclass(frozen=True)
class TargetsMeasured:
    """The counts of each target in each synthesis, and its `pairs_of_key` if cells are listed.

    `together`: what all syntheses disclose; empty unless the job asks for it.
    """

    counts: list[tuple[TargetCounts, ...]]
    pairs: list[tuple[Grouped, ...]]
    together: list[TogetherTargetCounts]


def measure_targets(job: Job, codes: Sequence[Codes], targets: Sequence[Target]) -> TargetsMeasured:
    """Count each target, in batches whose tables of cells fit into memory; `codes`: see `code_keys`."""
    batches = []
    for batch in _split_targets(job, targets):
        tasks = [
            partial(_count_cells, of_table, job.keys.size, target, table)
            for target in batch
            for table, of_table in enumerate(codes)
        ]
        counted = iter(run_in_threads(tasks, job.threads, job.report("Counting the targets")))
        batches.append(measure_cells(job, batch, [[next(counted) for _ in codes] for _ in batch]))
    return TargetsMeasured(
        [counts for batch in batches for counts in batch.counts],
        [pairs for batch in batches for pairs in batch.pairs],
        [together for batch in batches for together in batch.together],
    )


def _split_targets(job: Job, targets: Sequence[Target]) -> Iterator[list[Target]]:
    """Yield batches of targets whose tables of cells fit into memory together."""
    batch: list[Target] = []
    for target in targets:
        size = job.keys.size * sum(other.column.size for other in (*batch, target)) * len(job.records)
        if batch and size > _MOST_TABLES * job.limits.table:
            yield batch
            batch = []
        batch.append(target)
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


def measure_cells(
    job: Job, targets: Sequence[Target], cells: Sequence[Sequence[IntArray]]
) -> TargetsMeasured:
    """Measure as `measure_targets` does, from `cells[target][table]`, the records by code * levels + t."""
    places = [
        (i, j, rows) for i, t in enumerate(targets) for j in job.syntheses for rows in _split_rows(job, t)
    ]
    tasks = [partial(_measure, job, targets[i], cells[i], j, rows) for i, j, rows in places]
    parts: dict[tuple[int, int], list[CellCounts]] = {}
    measured = run_in_threads(tasks, job.threads, job.report("Measuring"))
    for (i, j, _), part in zip(places, measured, strict=True):
        parts.setdefault((i, j), []).append(part)
    results = [
        tuple(finish_target(add_up(parts[i, j]), target, j, job.keys.width) for j in job.syntheses)
        for i, target in enumerate(targets)
    ]
    pairs = [
        _pairs_of_key(job, target, target_cells[0])
        if any(counts.has_large_cells for counts in target_counts)
        else ()
        for target, target_cells, target_counts in zip(targets, cells, results, strict=True)
    ]
    together = [
        partial(_measure_together, job, target, target_cells)
        for target, target_cells in zip(targets if job.together else (), cells, strict=False)
    ]
    return TargetsMeasured(
        results, pairs, run_in_threads(together, job.threads, job.report("Measuring together"))
    )


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


def _measure(job: Job, target: Target, cells: Sequence[IntArray], synthesis: int, rows: slice) -> CellCounts:
    q, t, counts = _find_cells(target, (cells[0], cells[synthesis]), rows)
    return count_cells(q, t, counts, target, synthesis, job.keys.levels_of)


def _measure_together(job: Job, target: Target, cells: Sequence[IntArray]) -> TogetherTargetCounts:
    parts = []
    for rows in _split_rows(job, target):
        q, t, counts = _find_cells(target, cells, rows)
        if len(q):
            new = first_of_run(q)
            f, *others = tabulate_cells(np.cumsum(new) - 1, t, counts, job.records, target.column.size)
            f = find_excluded_cells(f, target, partial(_key_levels, job, q[new]))
            parts.append(count_together([f, *others], target.exclusions, target.all_sizes))
    return add_up(parts)


def _key_levels(job: Job, q: IntArray, some: IntArray) -> IntArray:
    return job.keys.levels_of(q[some])


def _pairs_of_key(job: Job, target: Target, d: IntArray) -> tuple[Grouped, ...]:
    q, t, [records] = _find_cells(target, [d], slice(0, len(d)))
    return sum_by_pair(job.keys.levels_of(q), t, records, target.column.size)
