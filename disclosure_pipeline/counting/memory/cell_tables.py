"""Counting in a table of all possible cells, where that is small."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from disclosure_pipeline.counting.counts import (
    KeyCounts,
    Target,
    TargetCounts,
    count_keys,
    count_target,
    find_key_levels,
)
from disclosure_pipeline.counting.memory.packing import PackedRecords
from disclosure_pipeline.counting.memory.radix import Codes, Job, Numbering, Reader, sum_readers
from disclosure_pipeline.measures.checks import mark_remaining
from disclosure_pipeline.measures.exact import Grouped, IntArray, add_up
from disclosure_pipeline.measures.frequency import FrequencyTable, combine_keys, first_of_run, run_lengths
from disclosure_pipeline.measures.together import (
    DisclosingTables,
    TogetherCounts,
    TogetherTargetCounts,
    chance_of_disclosure,
    count_together,
    count_unique_in_any,
)
from disclosure_pipeline.runtime.machine import run_in_threads
from disclosure_pipeline.tables.levels import CodedColumn


def count_in_cells(target: Target, cells: Sequence[IntArray], key_levels: IntArray) -> TogetherTargetCounts:
    """Count some q from the records of each table in their `cells` (shape: q, t).

    `key_levels` has the level of each key (shape: keys, q).
    """
    d, *s_of_syntheses = cells
    left = d
    if target.exclusions:
        t = np.broadcast_to(np.arange(d.shape[1]), d.shape)
        left = d * mark_remaining(target.exclusions, t, d, lambda k: key_levels[k][:, None])
    return count_together(d, s_of_syntheses, left, target.all_sizes)


def count_in_sorted_records(packed: PackedRecords, tables: Sequence[Codes]) -> TogetherCounts:
    """Count some q from each table's records with them (GT first), which ascend."""
    if not len(tables[0]):
        return TogetherCounts(0, (TogetherTargetCounts(),) * len(packed.targets))
    ground_truth = _RecordsOfTable.from_packed(packed, tables[0])
    words, number = packed.target_digits(tables[0]), ground_truth.counts
    shape, dtype = (len(packed.targets), len(words)), np.min_scalar_type(len(tables))
    disclosing, rightly = np.zeros(shape, dtype=dtype), np.zeros(shape, dtype=dtype)
    s_q_of_tables = []
    cells = [_CellsOfRecords.from_packed(packed, i, tables[0], ground_truth) for i in range(len(disclosing))]
    at_n: list[list[IntArray]] = [[] for _ in cells]
    for number_of_table, records in enumerate(tables[1:], start=1):
        if not len(records):
            continue
        synthesis = _RecordsOfTable.from_packed(packed, records)
        place = np.minimum(np.searchsorted(synthesis.q, ground_truth.q), len(synthesis.q) - 1)
        present = synthesis.q[place] == ground_truth.q
        s_q_of_tables.append(np.where(present, synthesis.counts[place], 0))
        several = _targets_of_several_levels(packed, synthesis, records)
        example = np.repeat(packed.target_digits(records[synthesis.first])[place], number)
        for i, has_several in enumerate(several):  # as `together.disclosed_of_tables`, by record
            one_level = np.repeat(present & ~has_several[place], number)
            disclosing[i] += one_level
            rightly[i] += one_level & (packed.t(words, i) == packed.t(example, i))
            s_tq = cells[i].count_alike(_CellsOfRecords.from_packed(packed, i, records, synthesis), place)
            s_q, sizes = np.repeat(s_q_of_tables[-1], number), packed.targets[i].sizes(number_of_table)
            at_n[i].append(chance_of_disclosure(s_q - np.where(s_q > 0, s_tq, 0), s_q, sizes.q0))
    counted, q_of_record = [], np.repeat(np.arange(len(number)), number)
    for i, (target, target_cells) in enumerate(zip(packed.targets, cells, strict=True)):
        left = _count_left(packed, i, tables[0], target_cells, ground_truth)
        d_q = np.repeat(number, number)
        by_others = [
            chance_of_disclosure(d_q - target_cells.counts, d_q - 1, sizes.p0) for sizes in target.all_sizes
        ]
        counted.append(
            DisclosingTables(disclosing[i], rightly[i]).count(left, q_of_record, at_n[i], by_others)
        )
    return TogetherCounts(count_unique_in_any(number, s_q_of_tables), tuple(counted))


@dataclass(frozen=True)
class _RecordsOfTable:
    """The q of some sorted records: their codes, positions of first records, and numbers of records."""

    q: Codes
    first: IntArray
    counts: IntArray

    @classmethod
    def from_packed(cls, packed: PackedRecords, records: Codes) -> _RecordsOfTable:
        codes = packed.q(records)
        first = np.flatnonzero(first_of_run(codes))
        return cls(codes[first], first, run_lengths(first, len(records)))


def _targets_of_several_levels(
    packed: PackedRecords, table: _RecordsOfTable, records: Codes
) -> list[np.ndarray]:
    """Mark, for each target, the q of the table that have several of its levels."""
    words = packed.target_digits(records)
    differences = words ^ np.repeat(words[table.first], table.counts)
    in_q = np.bitwise_or.reduceat(differences, table.first)
    return [packed.t(in_q, i) > 0 for i in range(len(packed.targets))]


@dataclass(frozen=True)
class _CellsOfRecords:
    """For each record its q (numbered from 0), its level `t` of a target, and the `counts` of its cell.

    `cells` are those that occur, as q * size + t, with the `cell_counts` of records.
    """

    q: IntArray
    t: IntArray
    size: int
    counts: IntArray
    cells: IntArray
    cell_counts: IntArray

    @classmethod
    def from_packed(
        cls, packed: PackedRecords, i: int, records: Codes, table: _RecordsOfTable
    ) -> _CellsOfRecords:
        t, size = packed.t(records, i).astype(np.int64), packed.targets[i].column.size
        q = np.repeat(np.arange(len(table.q)), table.counts)
        cells, cell, counts = np.unique(q * size + t, return_inverse=True, return_counts=True)
        return cls(q, t, size, counts[cell.reshape(-1)], cells, counts)

    def count_alike(self, other: _CellsOfRecords, place: IntArray) -> IntArray:
        """Count, for each record, the other table's records with its level at the other's q `place[q]`."""
        wanted = place[self.q] * self.size + self.t
        nearest = np.minimum(np.searchsorted(other.cells, wanted), len(other.cells) - 1)
        return np.where(other.cells[nearest] == wanted, other.cell_counts[nearest], 0)


def _count_left(
    packed: PackedRecords, i: int, records: Codes, cells: _CellsOfRecords, table: _RecordsOfTable
) -> IntArray:
    """Return 1 for each GT record that the target's exclusions leave, else 0."""
    exclusions = packed.targets[i].exclusions
    if not exclusions:
        return np.ones(len(records), dtype=np.int64)
    key_levels = packed.keys.levels_of(table.q)
    return mark_remaining(exclusions, cells.t, cells.counts, lambda k: key_levels[k][cells.q]).astype(
        np.int64
    )


_LARGEST = 1 << 22  # cells counted in a table of all of them
_AT_A_TIME = 1 << 17  # records at a time: they fit the cache


def count_pair(first: CodedColumn, second: CodedColumn) -> tuple[IntArray, ...]:
    """Count the records of each table (GT first) in each cell, in the same order; cells may be empty."""
    size = first.size * second.size
    if size > _LARGEST:
        return combine_keys([first.codes, second.codes], [first.size, second.size]).counts
    counts = []
    for first_codes, second_codes in zip(first.codes, second.codes, strict=True):
        table_counts = np.zeros(size, dtype=np.int64)
        step = max(_AT_A_TIME, size)
        for start in range(0, len(first_codes), step):
            cells = first_codes[start : start + step].astype(np.intp)
            cells *= second.size
            cells += second_codes[start : start + step]
            table_counts += np.bincount(cells, minlength=size)
        counts.append(table_counts)
    return tuple(counts)


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


def measure_targets(
    job: Job, keys: Numbering, counts: Sequence[IntArray], targets: Sequence[Target]
) -> TargetsMeasured:
    """Count each target, in batches whose tables of cells fit into memory."""
    batches = [
        measure_cells(job, keys, counts, batch, _count_all_cells(job, keys, batch))
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
    counts: Sequence[IntArray],
    targets: Sequence[Target],
    cells: Sequence[Sequence[IntArray]],
) -> TargetsMeasured:
    """Measure as `measure_targets` does, from `cells[target][table]`, the records by q * levels + t."""
    results = _measure_all(job, keys, counts, targets, cells)
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
            tables = [counts.reshape(keys.size, target.column.size)[rows] for counts in target_cells]
            key_levels = keys.radix.levels_of(keys.combinations[rows])
            parts.append(count_in_cells(target, tables, key_levels))
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
    counts: Sequence[IntArray],
    targets: Sequence[Target],
    cells: Sequence[Sequence[IntArray]],
) -> list[tuple[TargetCounts, ...]]:
    places = [
        (i, j, rows)
        for i, t in enumerate(targets)
        for j in job.syntheses
        for rows in _split_combinations(keys, t, job)
    ]
    tasks = [partial(_measure, job, keys, counts, targets[i], cells[i], j, rows) for i, j, rows in places]
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
    job: Job,
    keys: Numbering,
    counts: Sequence[IntArray],
    target: Target,
    cells: Sequence[IntArray],
    synthesis: int,
    rows: slice,
) -> TargetCounts | None:
    """Count the q of some rows; return None if no record of GT or this SD has any of them."""
    size = target.column.size
    range_of_cells = slice(rows.start * size, rows.stop * size)
    d, s = cells[0][range_of_cells], cells[synthesis][range_of_cells]
    occupied = np.flatnonzero(d | s)
    if not len(occupied):
        return None
    row = occupied // size
    new = first_of_run(row)
    q = np.cumsum(new) - 1
    number = row[new] + rows.start
    f = FrequencyTable(
        q=q,
        t=occupied - row * size,
        d=d[occupied],
        s=s[occupied],
        d_q=counts[0][number][q],
        s_q=counts[synthesis][number][q],
        N_d=job.records[0],
        N_s=job.records[synthesis],
        keys=len(number),
        targets=size,
    )
    f, large_pairs = find_key_levels(
        f, target, lambda some: job.keys.levels_of(keys.combinations[number[some]])
    )
    return count_target(f, large_pairs, target, synthesis)


def _pairs_of_key(keys: Numbering, target: Target, d: IntArray | None) -> tuple[Grouped, ...]:
    if d is None:
        return ()
    size = target.column.size
    occupied = np.flatnonzero(d)
    row = occupied // size
    t, levels = occupied - row * size, keys.radix.levels_of(keys.combinations)
    return tuple(Grouped.sum_by_group(level[row] * size + t, d[occupied]) for level in levels)
