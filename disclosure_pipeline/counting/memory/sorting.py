"""Counting sorted records with NumPy, where a table of all possible cells would be too large."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from disclosure_pipeline.counting.counts import (
    KeyCounts,
    TargetCounts,
    count_equal_keys,
    count_keys,
    find_excluded_cells,
)
from disclosure_pipeline.counting.memory.look_alikes import CellCounts, count_cells, finish_target
from disclosure_pipeline.counting.memory.packing import Packing
from disclosure_pipeline.counting.memory.radix import Codes, Job, sum_readers
from disclosure_pipeline.measures.exact import IntArray, Mask, add_up
from disclosure_pipeline.measures.frequency import (
    first_of_run,
    run_lengths,
    tabulate_cells,
    undo_cumsum,
)
from disclosure_pipeline.measures.together import TogetherCounts, count_together, count_unique_in_any
from disclosure_pipeline.runtime.machine import run_in_threads

_NARROW = np.iinfo(np.uint32).max


def unsigned_type(bits: int) -> type[np.uint32] | type[np.uint64]:
    """Return the smaller type that holds numbers of `bits` bits."""
    return np.uint32 if bits <= 32 else np.uint64  # noqa: PLR2004


def count_sorted(job: Job, packing: Packing) -> tuple[tuple[KeyCounts, ...], list[tuple[TargetCounts, ...]]]:
    """Count the keys, and each packed target, in each synthesis."""
    ground_truth = read_records(job, packing, 0)
    keys, targets = [], []
    for synthesis in job.syntheses:
        records = np.concatenate((ground_truth, read_records(job, packing, synthesis)))
        records.sort()
        tasks = [
            partial(_count_part, job, packing, synthesis, records[part])
            for part in split_by_unit(records, 2 << packing.table_bit, job.limits.part)
        ]
        of_keys, cells = add_up(run_in_threads(tasks, job.threads, job.report("Measuring")))
        keys.append(of_keys)
        targets.append(
            [
                finish_target(counts, target, synthesis, job.keys.width)
                for counts, target in zip(cells, packing.targets, strict=True)
            ]
        )
    return tuple(keys), list(zip(*targets, strict=True))


def read_records(job: Job, packing: Packing, table: int) -> Codes:
    """Return the number of every record of a table."""
    records = np.empty(job.records[table], dtype=unsigned_type(packing.bits))
    readers = packing.readers(table, records.dtype)
    reading = [partial(sum_readers, readers, part, records[part]) for part in job.parts(table)]
    run_in_threads(reading, job.threads, job.report("Packing"))
    return records


def split_by_unit(ascending: Codes, unit: int, most: int) -> Sequence[slice]:
    """Split ascending numbers into parts of about `most`; those with equal `number // unit` stay together.

    >>> split_by_unit(np.array([0, 1, 2, 3]), unit=2, most=3)
    [slice(0, 2, None), slice(2, 4, None)]
    """
    bounds = np.arange(0, len(ascending), most)
    lowest = [int(number) // unit * unit for number in ascending[bounds[1:]]]
    bounds[1:] = np.searchsorted(ascending, np.array(lowest, dtype=ascending.dtype))
    return [slice(*ends) for ends in pairwise(np.unique(np.append(bounds, len(ascending))).tolist())]


def _count_part(
    job: Job, packing: Packing, synthesis: int, records: Codes
) -> tuple[KeyCounts, tuple[CellCounts, ...]]:
    """Count some keys, all of whose records these are, and then each target."""
    new = np.append(first_of_run(packing.q(records)), True)
    is_alone, is_synthetic = new[:-1] & new[1:], packing.are_synthetic(records)
    SD = int(np.count_nonzero(is_alone & is_synthetic))
    alone = [int(np.count_nonzero(is_alone)) - SD, SD]
    of_several = ~is_alone
    by_key = RecordsByKey.from_sorted(packing, records[of_several], is_synthetic[of_several], 2)
    d_q, s_q = by_key.count()
    hits_apart = 0
    if job.shares_apart:
        alone_in_GT = packing.q(records[is_alone & ~is_synthetic])
        codes = np.concatenate((alone_in_GT, by_key.codes[d_q == 1]))
        hits_apart = job.count_hits_apart(synthesis, codes)
    key_counts = add_up(
        [
            count_keys(np.array([1, 0]), np.array([0, 1]), np.array(alone), hits_apart),
            count_equal_keys(d_q, s_q),
        ]
    )
    if any(target.exclusions for target in packing.targets):
        by_key, alone = RecordsByKey.from_sorted(packing, records, is_synthetic, 2), [0, 0]
    levels_of = partial(_key_levels, packing, by_key.codes)
    return key_counts, tuple(
        count_cells(*by_key.count_cells(i), target, synthesis, levels_of, alone)
        for i, target in enumerate(packing.targets)
    )


def measure_together(job: Job, packing: Packing) -> TogetherCounts:
    """Count what all syntheses together disclose of the packed targets."""
    records = np.concatenate([read_records(job, packing, table) for table in range(len(job.records))])
    table = np.repeat(np.arange(len(job.records)), job.records)
    order = np.argsort(packing.q(records), kind="stable")
    records, table = records[order], table[order]

    def measure_part(part: slice) -> TogetherCounts:
        by_key = RecordsByKey.from_sorted(packing, records[part], table[part], len(job.records))
        d_q, *s_q_of_tables = by_key.count()
        counts = []
        for i, target in enumerate(packing.targets):
            q, t, of_tables = by_key.count_cells(i)
            f, *others = tabulate_cells(q, t, of_tables, job.records, target.column.size)
            f = find_excluded_cells(f, target, partial(_key_levels, packing, by_key.codes))
            counts.append(count_together([f, *others], target.exclusions, target.all_sizes))
        return TogetherCounts(count_unique_in_any(d_q, s_q_of_tables), tuple(counts))

    parts = split_by_unit(packing.q(records), 1, job.limits.part)
    tasks = [partial(measure_part, part) for part in parts]
    return add_up(run_in_threads(tasks, job.threads, job.report("Measuring together")))


def _key_levels(packing: Packing, codes: Codes, positions: IntArray) -> IntArray:
    return packing.keys.levels_of(codes[positions])


@dataclass(frozen=True)
class RecordsByKey:
    """Records of some `tables` in the order of their q, both numbered from 0.

    `codes` has the code of each q, and `first` the position of its first record.
    """

    packing: Packing
    targets: IntArray
    q: IntArray
    table: IntArray | Mask
    tables: int
    codes: Codes
    first: IntArray

    @classmethod
    def from_sorted(
        cls, packing: Packing, records: Codes, table: IntArray | Mask, tables: int
    ) -> RecordsByKey:
        """Find the q of records in the order of their keys."""
        codes = packing.q(records)
        new = first_of_run(codes)
        first = np.flatnonzero(new)
        q = np.cumsum(new, dtype=np.uint32 if len(codes) <= _NARROW else np.int64)
        q -= q.dtype.type(1)
        return cls(packing, packing.targets_of(records), q, table, tables, codes[first], first)

    def count(self) -> list[IntArray]:
        """Count the records of each table with each q."""
        return _count_by_run(self.table, self.first, self.tables)

    def count_cells(self, target: int) -> tuple[IntArray, IntArray, list[IntArray]]:
        """Return the q and t of each cell that occurs, and its records of each table."""
        levels, bits = self.packing.targets[target].column.size, (self.tables - 1).bit_length()
        dtype: Any = unsigned_type(((len(self.codes) * levels << bits) - 1).bit_length())
        cells = self.q.astype(dtype)
        cells *= dtype(levels)
        cells += self.packing.t(self.targets, target).astype(dtype)
        cells <<= dtype(bits)
        cells |= self.table.astype(dtype)
        cells.sort()
        table = cells & dtype((1 << bits) - 1)
        cells >>= dtype(bits)
        first = np.flatnonzero(first_of_run(cells))
        cells = cells[first]
        q = cells // dtype(levels)
        t = cells - q * dtype(levels)
        return q.astype(np.int64), t.astype(np.int64), _count_by_run(table, first, self.tables)


def _count_by_run(table: IntArray | Mask, first: IntArray, tables: int) -> list[IntArray]:
    """Count the records of each table in each run of records, given where the runs begin."""
    lengths = run_lengths(first, len(table))
    last = first + lengths - 1
    of_SD = [undo_cumsum(np.cumsum(table == i)[last]) for i in range(1, tables)]
    return [lengths - np.sum(of_SD, axis=0), *of_SD]
