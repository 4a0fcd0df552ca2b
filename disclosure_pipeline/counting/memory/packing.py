"""Records as numbers: the key combination, a bit for SD, and the levels of targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.counting.counts import Target
from disclosure_pipeline.counting.memory.radix import Codes, Job, Radix
from disclosure_pipeline.tables.levels import Reader


@dataclass(frozen=True)
class Packing:
    """The places of keys and targets in the number of a record.

    From the lowest bit up: the levels of the `targets`, target i from bit `shifts[i]` on; from `table_bit` on
    the table, one of as many as there are (of two: GT and any synthesis); from `key_bit` on the code of the
    `keys`.
    """

    keys: Radix
    targets: tuple[Target, ...]
    tables: int = 2

    @cached_property
    def shifts(self) -> list[int]:
        """The lowest bit of each target's level."""
        return [sum(target.bits for target in self.targets[:i]) for i in range(len(self.targets))]

    @cached_property
    def table_bit(self) -> int:
        """The lowest bit of the table."""
        return sum(target.bits for target in self.targets)

    @property
    def key_bit(self) -> int:
        """The lowest bit of the keys' code."""
        return self.table_bit + table_bits(self.tables)

    @property
    def bits(self) -> int:
        """The number of bits of a record."""
        return (self.keys.size - 1).bit_length() + self.key_bit

    def readers(self, table: int, dtype: npt.DTypeLike) -> list[Reader]:
        """Return functions from records of a table to numbers that add up to those of the records.

        Of two tables, the second is any synthesis.
        """
        number = np.dtype(dtype).type
        first, *others = self.keys.readers(table, 1 << self.key_bit, dtype)
        marked = number(min(table, self.tables - 1) << self.table_bit)
        first = replace(first, values=first.values | marked)
        targets = [
            target.column.reader(table, np.arange(target.column.size, dtype=dtype) << number(shift))
            for target, shift in zip(self.targets, self.shifts, strict=True)
        ]
        return [first, *others, *targets]

    def q(self, records: Codes) -> Codes:
        """Return the code of the keys of some records."""
        return records >> self.key_bit

    def table_of(self, records: Codes) -> Codes:
        """Return the table of some records."""
        table: Codes = (records >> self.table_bit) & ((1 << table_bits(self.tables)) - 1)
        return table.astype(np.min_scalar_type(self.tables - 1))

    def targets_of(self, records: Codes) -> Codes:
        """Return the bits of the targets, in the smallest type that holds them."""
        return records.astype(np.min_scalar_type((1 << self.table_bit) - 1))

    def t(self, records: Codes, target: int) -> Codes:
        """Return a target's level in some records, or in their `targets_of`."""
        return (records >> self.shifts[target]) & ((1 << self.targets[target].bits) - 1)


def table_bits(tables: int) -> int:
    """Return the number of bits that tell so many tables apart."""
    return (tables - 1).bit_length()


def targets_packed_together(job: Job, targets: Sequence[int]) -> Iterator[list[int]]:
    """Yield groups of targets that fit into one number; none mixes targets with and without exclusions."""
    packed, others = job.request.targets, (job.keys.size - 1).bit_length() + table_bits(len(job.records))
    for with_exclusions in (False, True):
        group: list[int] = []
        for i in (i for i in targets if bool(packed[i].exclusions) is with_exclusions):
            if group and others + sum(packed[j].bits for j in (*group, i)) > job.limits.bits:
                yield group
                group = []
            group.append(i)
        if group:
            yield group
