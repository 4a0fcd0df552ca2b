"""Records as numbers: keys and target levels packed, dealt into ranges of key combinations, and counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.counting.counts import Target
from disclosure_pipeline.counting.memory.radix import Bytes, Codes, Job, Radix, sum_readers
from disclosure_pipeline.runtime.machine import run_in_threads

MOST_RANGES = 1 << 8  # their numbers fit a byte
_DIGIT = 16  # bits sorted at a time


@dataclass(frozen=True)
class ArrangedPart:
    """Some records of a table, by ranges: range i is `records[bounds[i] : bounds[i + 1]]`."""

    records: Codes
    bounds: list[int]


@dataclass(frozen=True)
class KeyRanges:
    """Ranges of key combinations; `number_by_bucket` has the range number of each `record >> shift`."""

    size: int
    shift: int
    number_by_bucket: npt.NDArray[np.uint8]

    @classmethod
    def from_sample(cls, sample: Codes, size: int, key_bit: int, bits: int) -> KeyRanges:
        """Return at most `size` ranges (up to 256) with about equal numbers of the sample's records.

        Records have `bits` bits; those from `key_bit` on are the key combination, which no range splits.

        >>> ranges = KeyRanges.from_sample(np.array([0, 2, 4, 6], dtype=np.uint32), size=2, key_bit=1, bits=3)
        >>> ranges.number_by_bucket.tolist()
        [0, 0, 1, 1]
        """
        shift = max(key_bit, bits - _DIGIT)
        counts = np.bincount((sample >> shift).astype(np.intp))
        below = np.cumsum(counts) - counts
        return cls(size, shift, (below * size // max(1, len(sample))).astype(np.uint8))

    def arrange(self, records: Codes, *, compiled: bool = False) -> ArrangedPart:
        """Sort records by their ranges; within a range they keep their order.

        >>> part = KeyRanges(2, 1, np.array([0, 1], dtype=np.uint8)).arrange(np.array([3, 0, 2, 1]))
        >>> part.records.tolist(), part.bounds
        ([0, 1, 3, 2], [0, 2, 4])
        """
        if compiled:
            from disclosure_pipeline.counting.memory import loops

            ends, dealt = np.zeros(self.size, dtype=np.int64), np.empty_like(records)
            loops.deal(records, np.uint64(self.shift), self.number_by_bucket, ends, dealt)
            return ArrangedPart(dealt, [0, *ends.tolist()])
        buckets = (records >> self.shift).astype(np.uint16)
        numbers = self.number_by_bucket.take(buckets, mode="clip")  # clip keys larger than the sample's
        bounds = np.cumsum(np.bincount(numbers, minlength=self.size))
        return ArrangedPart(records.take(np.argsort(numbers, kind="stable")), [0, *bounds.tolist()])


def sort_by_key(records: Codes, key_bit: int) -> Codes:
    """Sort records by their bits from `key_bit` on; equal ones keep their order.

    >>> sort_by_key(np.array([3, 0, 2, 1]), 1).tolist()
    [0, 1, 3, 2]
    """
    digits = records >> key_bit
    if not len(digits):
        return records
    digits -= digits.min()
    order = np.argsort(digits.astype(np.uint16), kind="stable")
    for _ in range(_DIGIT, int(digits.max()).bit_length(), _DIGIT):
        digits >>= _DIGIT
        order = order.take(np.argsort(digits.astype(np.uint16).take(order), kind="stable"))
    return records.take(order)


_RANGES_OF_PART = 16
_SAMPLE = 1 << 16  # records, to find ranges of about equal numbers of records
_NARROW = 32  # bits of the smaller type
_COMPILED_PART = 1 << 16  # records that the fast kernel sorts at a time: they fit the cache


@dataclass(frozen=True)
class PackedRecords:
    """Records as numbers, arranged by ranges of keys: `arranged[i]` are the parts of table i, GT first.

    From the lowest bit up: the levels of the `targets`, target i from bit `shifts[i]` on; at `table_bit` a 1
    for SD; above it the key combination. `parts` are the ranges of keys that are measured together.
    """

    keys: Radix
    targets: tuple[Target, ...]
    shifts: tuple[int, ...]
    table_bit: int
    parts: tuple[range, ...]
    arranged: tuple[tuple[ArrangedPart, ...], ...]

    def in_ranges(self, ranges: range, *tables: int) -> Codes:
        """Return the records of these tables in these ranges, table by table."""
        first, end = ranges.start, ranges.stop
        return np.concatenate(
            [
                part.records[part.bounds[first] : part.bounds[end]]
                for table in tables
                for part in self.arranged[table]
            ]
        )

    def q(self, records: Codes) -> Codes:
        """Return the key combination of some records."""
        return records >> (self.table_bit + 1)

    def first_of_key(self, records: Codes) -> Codes:
        """Return, for each record, the lowest number that its key combination can have."""
        shift = self.table_bit + 1
        return (records >> shift) << shift

    def mark_synthetic(self, records: Codes) -> Bytes:
        """Return 1 for the records of SD, else 0."""
        return (records >> self.table_bit).astype(np.uint8) & np.uint8(1)

    def t(self, records: Codes, target: int) -> Codes:
        """Return a target's level in some records, or in their `target_digits`."""
        return (records >> self.shifts[target]) & ((1 << self.targets[target].bits) - 1)

    def target_digits(self, records: Codes) -> Codes:
        """Return the targets' bits of records, in the smallest type that holds them."""
        return records.astype(np.min_scalar_type((1 << self.table_bit) - 1))


def targets_packed_together(job: Job, targets: Sequence[int]) -> Iterator[list[int]]:
    """Yield groups of targets that fit into one number; none mixes targets with and without exclusions."""
    packed, key_bits = job.targets, (job.keys.size - 1).bit_length()
    for with_exclusions in (False, True):
        group: list[int] = []
        for i in (i for i in targets if bool(packed[i].exclusions) is with_exclusions):
            if group and key_bits + 1 + sum(packed[j].bits for j in (*group, i)) > job.limits.bits:
                yield group
                group = []
            group.append(i)
        if group:
            yield group


def pack(job: Job, targets: Sequence[Target]) -> PackedRecords:
    """Pack every record into a number, and arrange each part by ranges of key combinations."""
    shifts = [sum(target.bits for target in targets[:i]) for i in range(len(targets))]
    table_bit = sum(target.bits for target in targets)
    keys, tables = job.keys, range(len(job.records))
    bits = (keys.size - 1).bit_length() + 1 + table_bit
    dtype = np.uint64 if job.is_compiled else unsigned_type(bits)
    readers = [
        [
            *keys.readers(table, 1 << (table_bit + 1), dtype),
            *(
                target.column.reader(table, np.arange(target.column.size, dtype=dtype) << dtype(shift))
                for target, shift in zip(targets, shifts, strict=True)
            ),
        ]
        for table in tables
    ]
    step = max(1, sum(job.records) // _SAMPLE)
    sample = np.concatenate(
        [sum(reader(slice(None, None, step)) for reader in table_readers) for table_readers in readers]
    )
    part = min(job.limits.part, _COMPILED_PART) if job.is_compiled else job.limits.part
    number = min(MOST_RANGES, -(-sum(job.records) // part))  # of parts
    ranges = KeyRanges.from_sample(sample, min(MOST_RANGES, _RANGES_OF_PART * number), table_bit + 1, bits)

    def arrange_part(table: int, part: slice) -> ArrangedPart:
        records = np.empty(part.stop - part.start, dtype=dtype)
        sum_readers(readers[table], part, records, compiled=job.is_compiled)
        if table:
            records += dtype(1 << table_bit)
        return ranges.arrange(records, compiled=job.is_compiled)

    parts_of_tables = [list(job.parts(table)) for table in tables]
    tasks = [
        partial(arrange_part, table, part) for table, parts in enumerate(parts_of_tables) for part in parts
    ]
    arranged = iter(run_in_threads(tasks, job.threads, job.report("Sorting")))
    return PackedRecords(
        keys,
        tuple(targets),
        tuple(shifts),
        table_bit,
        tuple(range(*bounds) for bounds in pairwise(ranges.size * i // number for i in range(number + 1))),
        tuple(tuple(next(arranged) for _ in parts) for parts in parts_of_tables),
    )


def unsigned_type(bits: int) -> type[np.uint32] | type[np.uint64]:
    """Return the smaller type that holds numbers of `bits` bits."""
    return np.uint32 if bits <= _NARROW else np.uint64
