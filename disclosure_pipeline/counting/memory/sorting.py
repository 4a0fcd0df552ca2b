"""Counting sorted records with NumPy, where a table of all possible cells would be too large."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from disclosure_pipeline.counting.cells import Cells, Found, LoneKeys, Parts
from disclosure_pipeline.counting.memory.cell_tables import count_pairs_of
from disclosure_pipeline.counting.memory.packing import Packing, table_bits
from disclosure_pipeline.counting.memory.radix import Codes, Job, sum_readers, unsigned_type
from disclosure_pipeline.measures.exact import IntArray, Mask
from disclosure_pipeline.measures.frequency import first_of_run, run_lengths, undo_cumsum
from disclosure_pipeline.runtime.machine import run_in_threads

_NARROW = np.iinfo(np.uint32).max


def find_sorted_cells(
    job: Job, packing: Packing, targets: Sequence[int], *, each: bool = True, with_keys: bool = True
) -> Parts:
    """Return parts of the cells of the packed targets, by their places, and perhaps of the keys.

    `each`: see `Cells`.
    """
    records = pack_records(job, packing)
    records.sort()
    parts = split_by_unit(records, 1 << packing.key_bit, job.limits.part)
    find = partial(_find_in_part, job, packing, targets, each=each, with_keys=with_keys)
    finds = [partial(find, records[part]) for part in parts]
    return job.collect(finds, targets if each else (), partial(count_pairs_of, job))


def pack_records(job: Job, packing: Packing) -> Codes:
    """Return the numbers of the records of all tables, one table after the other."""
    packed = np.empty(sum(job.records), dtype=unsigned_type(packing.bits))
    reading = [
        partial(sum_readers, readers, part, own[part])
        for table, own in enumerate(split_tables(job, packed))
        for readers in [packing.readers(table, packed.dtype)]
        for part in job.parts(table)
    ]
    run_in_threads(reading, job.threads, job.report("Packing"))
    return packed


def split_tables(job: Job, packed: Codes) -> list[Codes]:
    """Return the records of each table."""
    return np.split(packed, np.cumsum(job.records)[:-1])


def split_by_unit(ascending: Codes, unit: int, most: int) -> Sequence[slice]:
    """Split ascending numbers into parts of about `most`; those with equal `number // unit` stay together.

    >>> split_by_unit(np.array([0, 1, 2, 3]), unit=2, most=3)
    [slice(0, 2, None), slice(2, 4, None)]
    """
    bounds = np.arange(0, len(ascending), most)
    lowest = [int(number) // unit * unit for number in ascending[bounds[1:]]]
    bounds[1:] = np.searchsorted(ascending, np.array(lowest, dtype=ascending.dtype))
    return [slice(*ends) for ends in pairwise(np.unique(np.append(bounds, len(ascending))).tolist())]


def find_keys_without(job: Job, syntheses: Sequence[int]) -> Callable[[int | None, int | None], list[Cells]]:
    """Return what finds the key combinations without a digit of the keys' code, which is the `left_out` key.

    With all digits for None.
    """
    packing = Packing(job.keys, (), len(job.records))
    packed = pack_records(job, packing)
    readers = [packing.readers(table, packed.dtype) for table in range(packing.tables)]

    def find(digit: int | None, left_out: int | None) -> list[Cells]:
        records = packed.copy()
        if digit is not None:
            for table, own in enumerate(split_tables(job, records)):
                for part in job.parts(table):
                    own[part] -= readers[table][digit](part)
        records.sort()
        parts = split_by_unit(records, 1 << packing.key_bit, job.limits.part)
        return [_count_keys(packing, records[part], syntheses, left_out) for part in parts]

    return find


def _count_keys(packing: Packing, records: Codes, syntheses: Sequence[int], left_out: int | None) -> Cells:
    """Return the key combinations of sorted records."""
    table, is_alone = _find_alone(packing, records)
    by_key = RecordsByKey.from_sorted(packing, records[~is_alone], table[~is_alone])
    alone = np.bincount(table[is_alone], minlength=packing.tables)
    return Cells.of_keys(by_key.count(), syntheses, alone=alone, left_out=left_out)


def _find_alone(packing: Packing, records: Codes) -> tuple[Codes, Mask]:
    """Return the table of each of some sorted records, and which of them no other has the keys of."""
    new = np.append(first_of_run(packing.q(records)), True)
    return packing.table_of(records), new[:-1] & new[1:]


def _find_in_part(
    job: Job, packing: Packing, targets: Sequence[int], records: Codes, *, each: bool, with_keys: bool
) -> Iterator[Found]:
    """Yield the cells of some keys, all of whose records these are."""
    table, is_alone = _find_alone(packing, records)
    alone = np.bincount(table[is_alone], minlength=packing.tables)
    of_several = ~is_alone
    by_key = RecordsByKey.from_sorted(packing, records[of_several], table[of_several])
    if with_keys:
        counts = by_key.count()
        yield Cells.of_keys(counts, alone=alone, each=each)
        if job.request.apart and each:
            alone_in_GT = packing.q(records[is_alone & (table == 0)])
            lone = np.concatenate((alone_in_GT, by_key.codes[counts[0] == 1]))
            yield LoneKeys(packing.keys.levels_of(lone))
    if any(target.exclusions for target in packing.targets):
        by_key, alone = RecordsByKey.from_sorted(packing, records, table), 0 * alone
    for place, i in enumerate(targets):
        cells = by_key.count_cells(place)
        yield Cells(i, job.request.syntheses, *cells, by_key.levels_of, alone=alone, each=each)


@dataclass(frozen=True)
class RecordsByKey:
    """Records of some tables in the order of their q, both numbered from 0.

    `codes` has the code of each q, and `first` the position of its first record.
    """

    packing: Packing
    targets: IntArray
    q: IntArray
    table: Codes
    codes: Codes
    first: IntArray

    @classmethod
    def from_sorted(cls, packing: Packing, records: Codes, table: Codes) -> RecordsByKey:
        """Find the q of records in the order of their keys."""
        codes = packing.q(records)
        new = first_of_run(codes)
        first = np.flatnonzero(new)
        q = np.cumsum(new, dtype=np.uint32 if len(codes) <= _NARROW else np.int64)
        q -= q.dtype.type(1)
        return cls(packing, packing.targets_of(records), q, table, codes[first], first)

    def levels_of(self, q: IntArray) -> IntArray:
        """Return the level of each key for some q: see `cells.LevelsOf`."""
        return self.packing.keys.levels_of(self.codes[q])

    def count(self) -> list[IntArray]:
        """Count the records of each table with each q."""
        return _count_by_run(self.table, self.first, self.packing.tables)

    def count_cells(self, target: int) -> tuple[IntArray, IntArray, list[IntArray]]:
        """Return the q and t of each cell that occurs, and its records of each table."""
        levels, bits = self.packing.targets[target].column.size, table_bits(self.packing.tables)
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
        return q.astype(np.int64), t.astype(np.int64), _count_by_run(table, first, self.packing.tables)


def _count_by_run(table: Codes, first: IntArray, tables: int) -> list[IntArray]:
    """Count the records of each table in each run of records, given where the runs begin."""
    lengths = run_lengths(first, len(table))
    last = first + lengths - 1
    of_SD = [undo_cumsum(np.cumsum(table == i)[last]) for i in range(1, tables)]
    return [lengths - np.sum(of_SD, axis=0), *of_SD]
