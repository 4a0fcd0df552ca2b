"""Counting sorted records, where a table of all possible cells would be too large.

A part has the records of all tables in some ranges of key combinations. The records of a q stand together,
those of GT before those of SD, otherwise in no order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.counting.counts import (
    KeyCounts,
    Target,
    TargetCounts,
    count_keys,
    count_target,
    find_excluded_cells,
    find_key_levels,
)
from disclosure_pipeline.counting.memory.packing import PackedRecords, sort_by_key, unsigned_type
from disclosure_pipeline.counting.memory.radix import Codes, Job
from disclosure_pipeline.counting.memory.rare_keys import (
    MOST_RECORDS,
    count_by_pattern,
    count_lone_records,
    count_most_records,
    tabulate_patterns,
)
from disclosure_pipeline.measures.exact import Grouped, IntArray, add_up
from disclosure_pipeline.measures.frequency import (
    FrequencyTable,
    aranges,
    first_of_run,
    run_lengths,
    sort_together,
    tabulate_cells,
)
from disclosure_pipeline.measures.together import TogetherCounts, count_together, count_unique_in_any
from disclosure_pipeline.runtime.machine import run_in_threads


@dataclass(frozen=True)
class Runs:
    """Runs of equal values, by the positions at which they begin; the last of `begins` is the end of all.

    `by_length`: the numbers of the runs, shorter ones first. The first `ends[n]` of them have at most n
    values; all runs longer than the longest length distinguished come last.
    """

    begins: IntArray
    by_length: IntArray
    ends: IntArray

    @classmethod
    def from_ascending(cls, ascending: npt.NDArray[Any], most: int) -> Runs:
        """Find the runs of ascending values (at least one), and distinguish lengths up to `most`.

        >>> runs = Runs.from_ascending(np.array([3, 5, 5, 7, 8, 8, 8]), most=2)
        >>> runs.of_length(1).tolist(), runs.of_length(2).tolist(), runs.places_of_longer(2).tolist()
        ([0, 3], [1], [4, 5, 6])
        """
        begins = np.append(np.flatnonzero(first_of_run(ascending)), len(ascending))
        lengths = np.minimum(begins[1:] - begins[:-1], most + 1).astype(np.min_scalar_type(most + 1))
        ends = np.cumsum(np.bincount(lengths, minlength=most + 2))
        return cls(begins, np.argsort(lengths, kind="stable"), ends)

    def of_length(self, n: int) -> IntArray:
        """Return the positions at which runs of n values begin, in ascending order."""
        return self.begins.take(self.by_length[self.ends[n - 1] : self.ends[n]])

    def places_of_longer(self, n: int) -> IntArray:
        """Return the positions of values in runs of more than n values, in ascending order.

        n is at most the longest length distinguished.
        """
        longer = np.sort(self.by_length[self.ends[n] :])
        begins = self.begins.take(longer)
        lengths = self.begins.take(longer + 1) - begins
        return np.repeat(begins, lengths) + aranges(lengths)


_ROOMY = 2  # cells for each record, up to which a table of cells is faster than sorting
_LARGEST_PART = 2  # times the usual records of a part


@dataclass(frozen=True)
class PartCounts:
    """The counts of a part, to be added up: of the keys, and of each target.

    rare: the cells of each target by the number of records of their q, as `count_by_pattern` returns them.
    large: the records of its DiSCO cells to list, of these q.
    """

    keys: list[KeyCounts]
    targets: list[list[TargetCounts]]
    rare: list[dict[int, list[Grouped]]]
    large: list[list[tuple[Grouped, ...]]]

    @classmethod
    def empty(cls, targets: int) -> PartCounts:
        """Return no counts of a number of targets."""
        each = range(targets)
        return cls([], [[] for _ in each], [defaultdict(list) for _ in each], [[] for _ in each])


def list_tasks(job: Job, packed: PackedRecords) -> list[Callable[[], PartCounts]]:
    """Return a task for each part of each synthesis, synthesis by synthesis."""
    return [
        partial(_measure_part, job, packed, synthesis, ranges)
        for synthesis in job.syntheses
        for ranges in packed.parts
    ]


def add_up_parts(
    parts: Sequence[PartCounts], packed: PackedRecords, syntheses: int
) -> tuple[tuple[KeyCounts, ...], list[tuple[TargetCounts, ...]]]:
    """Add up the results of `list_tasks`: the counts of the keys and of each target, by synthesis."""
    number = len(parts) // syntheses
    by_synthesis = [parts[i * number : (i + 1) * number] for i in range(syntheses)]
    key_counts = tuple(
        add_up([counts for part in own_parts for counts in part.keys]) for own_parts in by_synthesis
    )
    target_counts = [
        tuple(
            _add_up_target(own_parts, i, target, synthesis, packed.keys.width)
            for synthesis, own_parts in enumerate(by_synthesis, start=1)
        )
        for i, target in enumerate(packed.targets)
    ]
    return key_counts, target_counts


def _add_up_target(
    parts: Sequence[PartCounts], i: int, target: Target, synthesis: int, keys: int
) -> TargetCounts:
    counts = [counts for part in parts for counts in part.targets[i]]
    nothing = (Grouped.empty(),) * keys
    rare = {
        n: Grouped.joined([cells for part in parts for cells in part.rare[i][n]])
        for n in sorted({n for part in parts for n in part.rare[i]})
    }
    if rare:
        f = tabulate_patterns(rare, target, target.sizes(synthesis))
        large = add_up([nothing, *(pairs for part in parts for pairs in part.large[i])])
        counts.append(count_target(f, large, target, synthesis))
    return add_up(counts)


def measure_together(job: Job, packed: PackedRecords) -> TogetherCounts:
    """Count what all syntheses together disclose of the packed targets."""
    tables = [table for table, arranged in enumerate(packed.arranged) if arranged]

    def measure_part(ranges: range) -> TogetherCounts:
        records = [packed.in_ranges(ranges, table) for table in tables]
        together = np.concatenate(records)
        of_table = np.repeat(tables, [len(of_one) for of_one in records])
        _, order = sort_together(packed.q(together), np.arange(len(together)))
        keys = _RecordsByKey.from_sorted(packed, together[order], of_table[order], len(packed.arranged))
        d_q, *s_q_of_tables = keys.count()
        counts = []
        for i, target in enumerate(packed.targets):
            f, *others = keys.tabulate(job, packed, i, range(len(packed.arranged)))
            f = find_excluded_cells(f, target, partial(_key_levels, packed, keys.codes))
            counts.append(count_together([f, *others], target.exclusions, target.all_sizes))
        return TogetherCounts(count_unique_in_any(d_q, s_q_of_tables), tuple(counts))

    tasks = [partial(measure_part, ranges) for ranges in packed.parts]
    return add_up(run_in_threads(tasks, job.threads, job.report("Measuring together")))


def _measure_part(job: Job, packed: PackedRecords, synthesis: int, ranges: range) -> PartCounts:
    """Count the records of GT and one SD in some ranges."""
    key_bit = packed.table_bit + 1
    records = np.concatenate(
        [sort_by_key(packed.in_ranges(range(i, i + 1), 0, synthesis), key_bit) for i in ranges]
    )
    counts = PartCounts.empty(len(packed.targets))
    for some in _split_between_keys(packed, records, _LARGEST_PART * job.limits.part):
        _count_keys_and_targets(job, packed, synthesis, some, counts)
    return counts


def _count_keys_and_targets(
    job: Job, packed: PackedRecords, synthesis: int, records: Codes, counts: PartCounts
) -> None:
    """Add the counts of some key combinations to those of the part; `records` are all of theirs."""
    runs = Runs.from_ascending(packed.q(records), MOST_RECORDS)
    most = [min(count_most_records(target), MOST_RECORDS) for target in packed.targets]
    for n in range(1, MOST_RECORDS + 1):
        some = records.take(runs.of_length(n) + np.arange(n)[:, None])
        if not some.size:
            continue
        is_synthetic, q = packed.mark_synthetic(some), packed.q(some[0])
        d_q = n - is_synthetic.sum(axis=0, dtype=np.uint8)
        number, keys = np.arange(n + 1), np.bincount(d_q, minlength=n + 1)
        counts.keys.append(count_keys(number, n - number, keys, job.count_hits_apart(synthesis, q[d_q == 1])))
        digits = packed.target_digits(some)
        for i in (i for i, most_records in enumerate(most) if n <= most_records):
            if n == 1:
                lone = count_lone_records(int(keys[1]), int(keys[0]), packed.targets[i].column.size)
                counts.rare[i][n].append(lone)
                continue
            cells, large = count_by_pattern(
                packed.t(digits, i), is_synthetic, packed.targets[i], partial(_key_levels, packed, q)
            )
            counts.rare[i][n].append(cells)
            counts.large[i].append(large)
    for shortest in {MOST_RECORDS, *most}:
        remaining = records.take(runs.places_of_longer(shortest))
        if not len(remaining):
            continue
        by_key = _RecordsByKey.from_sorted(packed, remaining, packed.mark_synthetic(remaining), 2)
        levels_of = partial(_key_levels, packed, by_key.codes)
        for i in (i for i, most_records in enumerate(most) if most_records == shortest):
            [f] = by_key.tabulate(job, packed, i, (0, synthesis))
            f, large = find_key_levels(f, packed.targets[i], levels_of)
            counts.targets[i].append(count_target(f, large, packed.targets[i], synthesis))
        if shortest == MOST_RECORDS:
            d_of_keys, s_of_keys = by_key.count()
            hits_apart = job.count_hits_apart(synthesis, by_key.codes[d_of_keys == 1])
            counts.keys.append(count_keys(d_of_keys, s_of_keys, hits_apart=hits_apart))


def _split_between_keys(packed: PackedRecords, records: Codes, most: int) -> list[Codes]:
    """Split sorted records into parts of about `most`: a range with a frequent level can hold far more."""
    ends = np.unique(np.searchsorted(records, packed.first_of_key(records[most::most])))
    return [some for some in np.split(records, ends) if len(some)]


def _key_levels(packed: PackedRecords, codes: Codes, positions: IntArray) -> IntArray:
    return packed.keys.levels_of(codes[positions])


@dataclass(frozen=True)
class _RecordsByKey:
    """Records of some `tables` by their q, both numbered from 0; `codes` has the code of each q."""

    records: Codes
    q: IntArray
    table: IntArray
    codes: Codes
    tables: int

    @classmethod
    def from_sorted(
        cls, packed: PackedRecords, records: Codes, table: IntArray, tables: int
    ) -> _RecordsByKey:
        codes = packed.q(records)
        new = first_of_run(codes)
        return cls(records, np.cumsum(new) - 1, table, codes[new], tables)

    def count(self) -> IntArray:
        """Count the records of each table with each q (shape: tables, q)."""
        counts = np.bincount(self.q * self.tables + self.table, minlength=len(self.codes) * self.tables)
        return np.ascontiguousarray(counts.reshape(-1, self.tables).T)

    def tabulate(
        self, job: Job, packed: PackedRecords, target: int, tables: Sequence[int]
    ) -> list[FrequencyTable]:
        """Count the cells of a target: in a table of all possible ones, or sorted if it is large.

        `tables` are the numbers that the job has for these tables.
        """
        levels, bits = packed.targets[target].column.size, (self.tables - 1).bit_length()
        size = len(self.codes) * levels
        dtype: Any = unsigned_type(((size << bits) - 1).bit_length())
        cells = self.q.astype(dtype)
        cells *= dtype(levels << bits)
        cells += packed.t(self.records, target).astype(dtype) << bits
        cells += self.table.astype(dtype)
        if size <= min(_ROOMY * len(cells), job.limits.table):
            by_table = np.bincount(cells.astype(np.intp), minlength=size << bits).reshape(size, 1 << bits).T
            occupied = np.flatnonzero(reduce(np.bitwise_or, by_table))
            counts = [of_table[occupied] for of_table in by_table[: self.tables]]
        else:
            cells.sort()
            first = np.flatnonzero(first_of_run(cells))
            cells, records = cells[first], run_lengths(first, len(cells))
            new = first_of_run(cells >> bits)
            occupied, place = (cells[new] >> bits).astype(np.int64), np.cumsum(new) - 1
            table, counts = cells & ((1 << bits) - 1), []
            for i in range(self.tables):
                of_table = np.zeros(len(occupied), dtype=np.int64)
                of_table[place[table == i]] = records[table == i]
                counts.append(of_table)
        q = occupied // levels
        return tabulate_cells(
            q,
            occupied - q * levels,
            counts,
            [job.records[table] for table in tables],
            levels,
        )
