"""Counting in a table of all possible cells, where that is small."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from math import prod

import numpy as np

from disclosure_pipeline.counting.counts import (
    KeyCounts,
    Target,
    TargetCounts,
    count_keys,
    count_target,
    find_excluded_cells,
    find_key_levels,
)
from disclosure_pipeline.counting.memory.radix import (
    Codes,
    Job,
    Numbering,
    Radix,
    is_compiled,
    sum_readers,
)
from disclosure_pipeline.measures.exact import Grouped, IntArray, add_up
from disclosure_pipeline.measures.frequency import FrequencyTable, combine_keys, first_of_run, tabulate_cells
from disclosure_pipeline.measures.together import (
    TogetherTargetCounts,
    count_together,
)
from disclosure_pipeline.runtime.machine import run_in_threads
from disclosure_pipeline.tables.levels import CodedColumn, Reader

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


def number_keys(job: Job) -> tuple[Numbering, list[IntArray]]:
    """Number the key combinations, and count each table's records with each of them."""
    size = job.keys.size
    codes = [np.empty(records, dtype=np.uint32) for records in job.records]
    coding = [
        partial(sum_readers, readers, part, codes[table][part])
        for table in range(len(codes))
        for readers in [job.keys.readers(table, 1, np.uint32)]
        for part in job.parts(table)
    ]
    run_in_threads(coding, job.threads, job.report("Coding the keys"))
    counting = [partial(_count_codes, table_codes, size) for table_codes in codes]
    counts = run_in_threads(counting, job.threads, job.report("Counting the keys"))
    occurring = np.flatnonzero(np.any(np.array(counts) > 0, axis=0))
    if 2 * len(occurring) > size:
        return Numbering(tuple(codes), np.arange(size), job.keys), counts
    number = np.zeros(size, dtype=np.uint32)
    number[occurring] = np.arange(len(occurring))

    def renumber(table_codes: Codes, part: slice) -> None:
        table_codes[part] = number[table_codes[part]]

    numbering = [
        partial(renumber, codes[table], part) for table in range(len(codes)) for part in job.parts(table)
    ]
    run_in_threads(numbering, job.threads, job.report("Numbering the keys"))
    return Numbering(tuple(codes), occurring, job.keys), [table_counts[occurring] for table_counts in counts]


def measure_keys(job: Job, combinations: Codes, counts: Sequence[IntArray]) -> tuple[KeyCounts, ...]:
    """Count the keys alone, for each synthesis, from the code of each combination and its records."""
    alone = combinations[counts[0] == 1]
    return tuple(
        count_keys(counts[0], counts[i], hits_apart=job.count_hits_apart(i, alone)) for i in job.syntheses
    )


@dataclass(frozen=True)
class TargetsMeasured:
    """The counts of each target in each synthesis, and its `pairs_of_key` if cells are listed.

    `together`: what all syntheses disclose; empty unless the job asks for it.
    """

    counts: list[tuple[TargetCounts, ...]]
    pairs: list[tuple[Grouped, ...]]
    together: list[TogetherTargetCounts]


def measure_targets(job: Job, keys: Numbering, targets: Sequence[Target]) -> TargetsMeasured:
    """Count each target, in batches whose tables of cells fit into memory."""
    batches = [
        measure_cells(job, keys, batch, _count_all_cells(job, keys, batch))
        for batch in _split_targets(job, keys, targets)
    ]
    return TargetsMeasured(
        [counts for batch in batches for counts in batch.counts],
        [pairs for batch in batches for pairs in batch.pairs],
        [together for batch in batches for together in batch.together],
    )


def measure_cells(
    job: Job,
    keys: Numbering,
    targets: Sequence[Target],
    cells: Sequence[Sequence[IntArray]],
) -> TargetsMeasured:
    """Measure as `measure_targets` does, from `cells[target][table]`, the records by q * levels + t."""
    results = _measure_all(job, keys, targets, cells)
    listed = [any(counts.has_large_cells for counts in target_counts) for target_counts in results]
    tasks = [
        partial(_pairs_of_key, keys, target, target_cells[0] if has_listed_cells else None)
        for target, target_cells, has_listed_cells in zip(targets, cells, listed, strict=True)
    ]
    pairs = run_in_threads(tasks, job.threads, job.report("Measuring"))
    return TargetsMeasured(results, pairs, _measure_together(job, keys, targets, cells))


def _measure_together(
    job: Job, keys: Numbering, targets: Sequence[Target], cells: Sequence[Sequence[IntArray]]
) -> list[TogetherTargetCounts]:
    if not job.together:
        return []

    def measure(target: Target, target_cells: Sequence[IntArray]) -> TogetherTargetCounts:
        parts = []
        for rows in _split_combinations(keys, target, job):
            tabulated = _tabulate(job, keys, target, target_cells, range(len(target_cells)), rows)
            if tabulated is not None:
                (first, *others), key_levels_of = tabulated
                tables = [find_excluded_cells(first, target, key_levels_of), *others]
                parts.append(count_together(tables, target.exclusions, target.all_sizes))
        return add_up(parts)

    tasks = [
        partial(measure, target, target_cells) for target, target_cells in zip(targets, cells, strict=True)
    ]
    return run_in_threads(tasks, job.threads, job.report("Measuring together"))


def _split_targets(job: Job, keys: Numbering, targets: Sequence[Target]) -> Iterator[list[Target]]:
    """Yield batches of targets whose tables of cells fit into memory together."""
    batch: list[Target] = []
    for target in targets:
        size = keys.size * sum(other.column.size for other in (*batch, target)) * len(job.records)
        if batch and size > _MOST_TABLES * job.limits.table:
            yield batch
            batch = []
        batch.append(target)
    if batch:
        yield batch


def _count_all_cells(job: Job, keys: Numbering, targets: Sequence[Target]) -> list[list[IntArray]]:
    """Count the records in every cell, for each target and table."""
    tables = range(len(job.records))
    tasks = [
        partial(_count_cells, keys, table, target, target.column.reader(table, np.arange(target.column.size)))
        for target in targets
        for table in tables
    ]
    counted = iter(run_in_threads(tasks, job.threads, job.report("Counting the targets")))
    return [[next(counted) for _ in tables] for _ in targets]


def _measure_all(
    job: Job,
    keys: Numbering,
    targets: Sequence[Target],
    cells: Sequence[Sequence[IntArray]],
) -> list[tuple[TargetCounts, ...]]:
    places = [
        (i, j, rows)
        for i, t in enumerate(targets)
        for j in job.syntheses
        for rows in _split_combinations(keys, t, job)
    ]
    tasks = [partial(_measure, job, keys, targets[i], cells[i], j, rows) for i, j, rows in places]
    parts: dict[tuple[int, int], list[TargetCounts]] = {}
    measured = run_in_threads(tasks, job.threads, job.report("Measuring"))
    for (i, j, _), part in zip(places, measured, strict=True):
        if part is not None:
            parts.setdefault((i, j), []).append(part)
    return [tuple(add_up(parts[i, j]) for j in job.syntheses) for i in range(len(targets))]


def _count_codes(codes: Codes, size: int) -> IntArray:
    counts = np.zeros(size, dtype=np.int64)
    step = min(max(size, _FEWEST_AT_ONCE), _MOST_AT_ONCE)
    for start in range(0, len(codes), step):
        counts += np.bincount(codes[start : start + step].astype(np.intp), minlength=size)
    return counts


def _count_cells(keys: Numbering, table: int, target: Target, reader: Reader) -> IntArray:
    """Count the records of a table in each cell: q * size of the target + t."""
    q = keys.codes[table]
    size = keys.size * target.column.size
    counts = np.zeros(size, dtype=np.int64)
    step = min(max(size, _FEWEST_AT_ONCE), _MOST_AT_ONCE)
    for start in range(0, len(q), step):
        records = slice(start, start + step)
        cells = q[records].astype(np.intp)
        cells *= target.column.size
        cells += reader(records)
        counts += np.bincount(cells, minlength=size)
    return counts


def _split_combinations(keys: Numbering, target: Target, job: Job) -> list[slice]:
    step = max(1, job.limits.part // target.column.size)
    return [slice(start, min(start + step, keys.size)) for start in range(0, keys.size, step)]


def _measure(
    job: Job, keys: Numbering, target: Target, cells: Sequence[IntArray], synthesis: int, rows: slice
) -> TargetCounts | None:
    """Count the q of some rows; return None if no record of GT or this SD has any of them."""
    tabulated = _tabulate(job, keys, target, cells, (0, synthesis), rows)
    if tabulated is None:
        return None
    [f], key_levels_of = tabulated
    return count_target(*find_key_levels(f, target, key_levels_of), target, synthesis)


def _tabulate(
    job: Job, keys: Numbering, target: Target, cells: Sequence[IntArray], tables: Sequence[int], rows: slice
) -> tuple[list[FrequencyTable], Callable[[IntArray], IntArray]] | None:
    """Return the cells of some rows, and a function to their levels of keys; None if all are empty."""
    size = target.column.size
    counts = [cells[table][rows.start * size : rows.stop * size] for table in tables]
    occupied = np.flatnonzero(reduce(np.bitwise_or, counts))
    if not len(occupied):
        return None
    row = occupied // size
    new = first_of_run(row)
    combinations = keys.combinations[row[new] + rows.start]
    return tabulate_cells(
        np.cumsum(new) - 1,
        occupied - row * size,
        [of_table[occupied] for of_table in counts],
        [job.records[table] for table in tables],
        size,
    ), lambda some: job.keys.levels_of(combinations[some])


def _pairs_of_key(keys: Numbering, target: Target, d: IntArray | None) -> tuple[Grouped, ...]:
    if d is None:
        return ()
    size = target.column.size
    occupied = np.flatnonzero(d)
    row = occupied // size
    t, levels = occupied - row * size, keys.radix.levels_of(keys.combinations)
    return tuple(Grouped.sum_by_group(level[row] * size + t, d[occupied]) for level in levels)
