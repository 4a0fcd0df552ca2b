"""Records as numbers, in sorted blocks: their key combination, whether they are of SD, and target levels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from disclosure_pipeline.counting.memory.job import Job
from disclosure_pipeline.counting.memory.radix import Codes, Radix, Reader, add
from disclosure_pipeline.counting.targets import Target

_NARROW = 32  # binary digits of the smaller of two types of numbers


@dataclass(frozen=True)
class PackedRecords:
    """Records as numbers, in sorted blocks: `blocks[0]` of GT, `blocks[i]` of synthesis i.

    From the lowest binary digit up: the levels of the `targets`, target i from digit `shifts[i]` on; at digit
    `table_bit` whether the record is of SD; and above it the key combination.
    """

    keys: Radix
    targets: tuple[Target, ...]
    shifts: tuple[int, ...]
    table_bit: int
    blocks: tuple[tuple[Codes, ...], ...]

    def q(self, records: Codes) -> Codes:
        """The key combination of some records."""
        return records >> (self.table_bit + 1)

    def t(self, records: Codes, target: int) -> Codes:
        """The level of a target in some records, or in their lowest digits as `target_digits` gives them."""
        return (records >> self.shifts[target]) & ((1 << self.targets[target].bits) - 1)

    def target_digits(self, records: Codes) -> Codes:
        """Some records without what stands above the targets, in the smallest type that holds these."""
        return records.astype(np.min_scalar_type((1 << self.table_bit) - 1))


def targets_packed_together(job: Job, targets: Sequence[int]) -> Iterator[list[int]]:
    """Targets that fit into one number together, with exclusions or without."""
    of, key_bits = job.targets, (job.keys.size - 1).bit_length()
    for with_exclusions in (False, True):
        group: list[int] = []
        for i in (i for i in targets if bool(of[i].exclusions) is with_exclusions):
            if group and key_bits + 1 + sum(of[j].bits for j in (*group, i)) > job.limits.bits:
                yield group
                group = []
            group.append(i)
        if group:
            yield group


def pack(job: Job, targets: Sequence[Target]) -> PackedRecords:
    """Make every record a number, and sort the blocks."""
    shifts = [sum(target.bits for target in targets[:i]) for i in range(len(targets))]
    table_bit = sum(target.bits for target in targets)
    keys = job.keys
    dtype = unsigned_type((keys.size - 1).bit_length() + 1 + table_bit)

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
    return PackedRecords(
        keys,
        tuple(targets),
        tuple(shifts),
        table_bit,
        tuple(tuple(next(blocks) for _ in of_table) for of_table in tasks),
    )


def unsigned_type(bits: int) -> type[np.uint32] | type[np.uint64]:
    """The smaller type for numbers of so many binary digits."""
    return np.uint32 if bits <= _NARROW else np.uint64
