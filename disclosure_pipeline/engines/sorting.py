"""Records are sorted where there are too many cells to count them all.

Every record is one number: its key combination, whether it is of SD, its target levels. Blocks of records
are sorted one by one; a part is what all blocks hold of a range of key combinations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from disclosure_pipeline.engines.counted import OfKeys, OfTarget, Part, of_keys, of_target, settled
from disclosure_pipeline.engines.few import MOST, can_be_compared, few_of, of_few
from disclosure_pipeline.engines.job import Job, Target
from disclosure_pipeline.engines.radix import Codes, Radix, Reader, add
from disclosure_pipeline.measures.adding import add_up
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.measures.frequency import FrequencyTable, first_of_run
from disclosure_pipeline.measures.grouped import Grouped

_NARROW = 32  # binary digits of the smaller of two types of numbers
_SAMPLES = 64  # of each part, to find where parts end
_CHUNK_OF_PAIRS = 1 << 20  # records at a time: not many fewer than there are pairs
_SMALL = 1 << 16  # most combinations of keys whose pairs with target levels are counted together


@dataclass(frozen=True)
class Packed:
    """Records as numbers, in sorted blocks: `blocks[0]` of GT, `blocks[i]` of synthesis i.

    From the lowest binary digit up: the levels of the `targets`, target i from digit `shifts[i]` on; at digit
    `table` whether the record is of SD; and above it the key combination.
    """

    keys: Radix
    targets: tuple[Target, ...]
    shifts: tuple[int, ...]
    table: int
    blocks: tuple[tuple[Codes, ...], ...]

    def q(self, records: Codes) -> Codes:
        """The key combination of some records."""
        return records >> (self.table + 1)

    def t(self, records: Codes, target: int) -> Codes:
        """The target level of some records."""
        return (records >> self.shifts[target]) & ((1 << self.targets[target].bits) - 1)


def groups(job: Job, targets: Sequence[int]) -> Iterator[list[int]]:
    """Targets that fit into one number together, of either all or none of which something is excluded."""
    of, key_bits = job.targets, (job.keys.size - 1).bit_length()
    for excluding in (False, True):
        group: list[int] = []
        for i in (i for i in targets if bool(of[i].wanted) is excluding):
            if group and key_bits + 1 + sum(of[j].bits for j in (*group, i)) > job.limits.bits:
                yield group
                group = []
            group.append(i)
        if group:
            yield group


def pack(job: Job, targets: Sequence[Target]) -> Packed:
    """Make every record a number, and sort the blocks."""
    shifts = [sum(target.bits for target in targets[:i]) for i in range(len(targets))]
    table_bit = sum(target.bits for target in targets)
    keys = job.keys
    dtype = _unsigned((keys.size - 1).bit_length() + 1 + table_bit)

    def sorted_block(readers: Sequence[Reader], block: slice, table: int) -> Codes:
        records = np.empty(block.stop - block.start, dtype=dtype)
        add(readers, block, records)
        if table:
            records += dtype(1 << table_bit)
        records.sort()
        return records

    def readers_of(table: int) -> list[Reader]:
        return [
            *keys.readers(table, 1 << (table_bit + 1), dtype),
            *(
                target.column.reader(table, np.arange(target.column.size, dtype=dtype) << dtype(shift))
                for target, shift in zip(targets, shifts, strict=True)
            ),
        ]

    tables = range(len(job.records))
    tasks = [
        [partial(sorted_block, readers, block, table) for block in job.blocks(table)]
        for table in tables
        for readers in [readers_of(table)]
    ]
    blocks = iter(job.run("Sorting", [task for of_table in tasks for task in of_table]))
    return Packed(
        keys,
        tuple(targets),
        tuple(shifts),
        table_bit,
        tuple(tuple(next(blocks) for _ in of_table) for of_table in tasks),
    )


def measure(job: Job, packed: Packed) -> tuple[tuple[OfKeys, ...], list[tuple[OfTarget, ...]]]:
    """What the keys and each target tell, of each synthesis."""
    parts, bounds = _bounds(job, packed)
    tasks = [
        partial(
            _measure,
            job,
            packed,
            synthesis,
            [
                block[bound[part] : bound[part + 1]]
                for table in (0, synthesis)
                for block, bound in zip(packed.blocks[table], bounds[table], strict=True)
            ],
        )
        for synthesis in job.syntheses
        for part in range(parts)
    ]
    found = job.run("Measuring", tasks)
    of_synthesis = [
        [part for part in found[i * parts : (i + 1) * parts] if part] for i in range(len(job.syntheses))
    ]
    of_all_keys = tuple(add_up([part[0] for part in each]) for each in of_synthesis)
    of_all_targets = [
        tuple(add_up([one for part in each for one in part[1][i]]) for each in of_synthesis)
        for i in range(len(packed.targets))
    ]
    return of_all_keys, of_all_targets


def _bounds(job: Job, packed: Packed) -> tuple[int, list[list[IntArray]]]:
    """The number of parts, and where they begin and end in each block of each table.

    All records of a q are in one part.
    """
    step = max(1, job.limits.part // _SAMPLES)
    every = job.limits.part // step
    sample = packed.q(np.sort(np.concatenate([block[::step] for of in packed.blocks for block in of])))
    ends = np.unique(sample[every::every]) << (packed.table + 1)
    return len(ends) + 1, [
        [np.concatenate(([0], np.searchsorted(block, ends), [len(block)])) for block in of_table]
        for of_table in packed.blocks
    ]


def _measure(
    job: Job, packed: Packed, synthesis: int, slices: Sequence[Codes]
) -> tuple[OfKeys, list[list[OfTarget]]] | None:
    """Of the records of some q: GT's and one SD's. None where there are none."""
    records = np.concatenate(slices)
    if not len(records):
        return None
    records.sort()
    of_all: list[OfKeys] = []
    of_targets: list[list[OfTarget]] = [[] for _ in packed.targets]
    rest = [_Rest(records, range(len(packed.targets)), with_keys=True)]
    if not any(target.wanted for target in packed.targets):
        rest = _measure_rare(packed, synthesis, records, of_all, of_targets)
    for each in rest:
        keys = _Keys.of(packed, each.records)
        if each.with_keys:
            of_all.append(of_keys(keys.d_q, keys.s_q))
        for i in each.targets:
            target = packed.targets[i]
            f = _cells(job, packed, synthesis, keys, i)
            part = Part(f, partial(_levels_of, packed, keys.codes))
            of_targets[i].append(of_target(part, target.levels(synthesis), target.larger_than, target.wanted))
    return add_up(of_all), of_targets


def _levels_of(packed: Packed, codes: Codes, some: IntArray) -> IntArray:
    """The level of each key in some of the key combinations."""
    return packed.keys.levels_of(codes[some])


@dataclass(frozen=True)
class _Rest:
    """Records whose cells have to be counted for some targets, and whether `with_keys` what the keys tell."""

    records: Codes
    targets: Sequence[int]
    with_keys: bool


def _measure_rare(
    packed: Packed,
    synthesis: int,
    records: Codes,
    of_all: list[OfKeys],
    of_targets: list[list[OfTarget]],
) -> list[_Rest]:
    """Measure the q of few records, which is added; what is left to do."""
    first = np.flatnonzero(first_of_run(packed.q(records)))
    number = np.diff(first, append=len(records))
    lone = records[first[number == 1]]
    if len(lone):
        SD = int(((lone >> packed.table) & 1).sum())
        GT = len(lone) - SD
        of_all.append(of_keys(np.array([1, 0]), np.array([0, 1]), np.array([GT, SD])))
        for target, found in zip(packed.targets, of_targets, strict=True):
            found.append(settled(GT, SD, packed.keys.width, target.levels(synthesis)))
    left = []
    for few in few_of(records, first, number, packed.table):
        of_all.append(of_keys(few.d_q.astype(np.int64), few.s_q.astype(np.int64)))
        others = []
        levels_of = partial(_levels_of, packed, packed.q(few.records[0]))
        for i, (target, found) in enumerate(zip(packed.targets, of_targets, strict=True)):
            size = target.column.size
            if can_be_compared(few, size, target.levels(synthesis)):
                t = packed.t(few.records, i).astype(np.min_scalar_type(size))
                found.append(of_few(few, t, size, target.larger_than, levels_of, packed.keys.width))
            else:
                others.append(i)
        if others:
            left.append(_Rest(np.sort(few.records, axis=None), others, with_keys=False))
    many = np.repeat(number > MOST, number)
    if many.any():
        left.append(_Rest(records[many], range(len(packed.targets)), with_keys=True))
    return left


@dataclass(frozen=True)
class _Keys:
    """Sorted records of GT and one SD, and their q, numbered from 0 (`codes`: shape of d_q and s_q)."""

    records: Codes
    q: IntArray
    of_SD: Codes
    codes: Codes
    d_q: IntArray
    s_q: IntArray

    @classmethod
    def of(cls, packed: Packed, records: Codes) -> _Keys:
        codes = packed.q(records)
        new = first_of_run(codes)
        first = np.flatnonzero(new)
        of_SD = (records >> packed.table) & 1
        number = np.diff(first, append=len(records))
        s_q = _sums(of_SD, first, number)
        return cls(records, np.cumsum(new) - 1, of_SD, codes[first], number - s_q, s_q)


def _cells(job: Job, packed: Packed, synthesis: int, keys: _Keys, target: int) -> FrequencyTable:
    """Count the cells of some q and a target: by a table of all of them where it is small, else sorted."""
    bits = packed.targets[target].bits
    size = len(keys.codes) << bits
    dtype: Any = _unsigned((2 * size - 1).bit_length())
    cells = keys.q.astype(dtype) << (bits + 1)
    cells |= packed.t(keys.records, target).astype(dtype) << 1
    cells |= keys.of_SD.astype(dtype)
    occupied: Any
    if size <= min(len(cells), job.limits.table):
        counts = np.bincount(cells.astype(np.intp), minlength=2 * size)
        occupied = np.flatnonzero(counts[::2] | counts[1::2])
        d, s = counts[::2][occupied], counts[1::2][occupied]
    else:
        cells.sort()
        cell: Codes = cells >> 1
        first = np.flatnonzero(first_of_run(cell))
        number = np.diff(first, append=len(cell))
        s = _sums(cells & 1, first, number)
        d, occupied = number - s, cell[first].astype(np.int64)
    q = occupied >> bits
    return FrequencyTable(
        q=q,
        t=occupied - (q << bits),
        d=d,
        s=s,
        d_q=keys.d_q[q],
        s_q=keys.s_q[q],
        N_d=job.records[0],
        N_s=job.records[synthesis],
        keys=len(keys.codes),
        targets=packed.targets[target].column.size,
    )


def _unsigned(bits: int) -> type[np.uint32] | type[np.uint64]:
    """The smallest type for numbers of so many binary digits."""
    return np.uint32 if bits <= _NARROW else np.uint64


def _sums(values: Codes, first: IntArray, number: IntArray) -> IntArray:
    """The sums of runs of values, each of so many from its first one on."""
    return np.diff(np.cumsum(values, dtype=np.int64)[first + number - 1], prepend=0)


def pairs_of_key(job: Job, packed: Packed, targets: Sequence[int]) -> list[tuple[Grouped, ...]]:
    """The GT records by level of each key * size of the target + target level, of some of the targets."""
    digits = list(_digits(packed.keys))
    found = job.run("Measuring", [partial(_pairs, job, packed, targets, digit) for digit in digits])
    return [tuple(pairs for of_digit in found for pairs in of_digit[i]) for i in range(len(targets))]


def _digits(keys: Radix) -> Iterator[tuple[int, Radix]]:
    """The keys in groups of few combinations, and what each group's code counts in that of all keys."""
    group: list[int] = []
    for k, column in enumerate(keys.columns):
        if group and column.size * Radix(tuple(keys.columns[j] for j in group)).size > _SMALL:
            yield keys.weights[group[-1]], Radix(tuple(keys.columns[j] for j in group))
            group = []
        group.append(k)
    yield keys.weights[group[-1]], Radix(tuple(keys.columns[j] for j in group))


def _pairs(job: Job, packed: Packed, targets: Sequence[int], digit: tuple[int, Radix]) -> list[list[Grouped]]:
    """Of the keys of one digit, for each of the targets."""
    weight, keys = digit
    sizes = [packed.targets[target].column.size for target in targets]
    tables = [
        np.zeros(keys.size * size if keys.size * size <= job.limits.table else 0, int) for size in sizes
    ]
    found: list[list[Grouped]] = [[] for _ in targets]
    for block in packed.blocks[0]:
        for start in range(0, len(block), _CHUNK_OF_PAIRS):
            some = block[start : start + _CHUNK_OF_PAIRS]
            above = packed.q(some) // block.dtype.type(weight)
            level = above - above // block.dtype.type(keys.size) * block.dtype.type(keys.size)
            level = level.astype(np.intp)
            for i, (target, size) in enumerate(zip(targets, sizes, strict=True)):
                pairs = level * size
                pairs += packed.t(some, target).astype(np.intp)
                if len(tables[i]):
                    tables[i] += np.bincount(pairs, minlength=len(tables[i]))
                else:
                    found[i].append(Grouped.of(pairs, np.ones(len(pairs), dtype=np.int64)))
    results = []
    for grouped, size, counts in zip(found, sizes, tables, strict=True):
        if len(counts):
            grouped.append(Grouped(np.flatnonzero(counts), counts[counts > 0]))
        records = Grouped.joined(grouped)
        codes = records.groups // size
        t = records.groups - codes * size
        results.append([Grouped.of(level * size + t, records.sums) for level in keys.levels_of(codes)])
    return results
