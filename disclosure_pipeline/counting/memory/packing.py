"""Records as numbers: the key combination, a bit for SD, and the levels of targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.counting.counts import Target
from disclosure_pipeline.counting.memory.radix import Codes, Job, Radix
from disclosure_pipeline.measures.exact import Mask
from disclosure_pipeline.tables.levels import Reader


@dataclass(frozen=True)
class Packing:
    """The places of keys and targets in the number of a record.

    From the lowest bit up: the levels of the `targets`, target i from bit `shifts[i]` on; at `table_bit` a 1
    for SD; above it the code of the `keys`.
    """

    keys: Radix
    targets: tuple[Target, ...]

    @property
    def shifts(self) -> list[int]:
        """The lowest bit of each target's level."""
        return [sum(target.bits for target in self.targets[:i]) for i in range(len(self.targets))]

    @property
    def table_bit(self) -> int:
        """The bit that marks SD."""
        return sum(target.bits for target in self.targets)

    @property
    def bits(self) -> int:
        """The number of bits of a record."""
        return (self.keys.size - 1).bit_length() + 1 + self.table_bit

    def readers(self, table: int, dtype: npt.DTypeLike) -> list[Reader]:
        """Return functions from records of a table to numbers that add up to those of the records."""
        number = np.dtype(dtype).type
        first, *others = self.keys.readers(table, 1 << (self.table_bit + 1), dtype)
        if table:
            first = replace(first, values=first.values | number(1 << self.table_bit))
        targets = [
            target.column.reader(table, np.arange(target.column.size, dtype=dtype) << number(shift))
            for target, shift in zip(self.targets, self.shifts, strict=True)
        ]
        return [first, *others, *targets]

    def q(self, records: Codes) -> Codes:
        """Return the code of the keys of some records."""
        return records >> (self.table_bit + 1)

    def are_synthetic(self, records: Codes) -> Mask:
        """Mark the records of SD."""
        marked: Mask = (records & records.dtype.type(1 << self.table_bit)) != 0
        return marked

    def targets_of(self, records: Codes) -> Codes:
        """Return the bits of the targets, in the smallest type that holds them."""
        return records.astype(np.min_scalar_type((1 << self.table_bit) - 1))

    def t(self, records: Codes, target: int) -> Codes:
        """Return a target's level in some records, or in their `targets_of`."""
        return (records >> self.shifts[target]) & ((1 << self.targets[target].bits) - 1)


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
