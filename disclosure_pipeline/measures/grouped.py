"""Integer sums by group: the form in which sums of quotients, and counts by level, add up over keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.integer]

_ROOMY = 4  # adding up by position takes a table of at most so many entries for each value


@dataclass(frozen=True)
class Grouped:
    """Integer sums by group: `sums[i]` belongs to `groups[i]`, which ascend; sums of 0 are left out."""

    groups: IntArray
    sums: IntArray

    @classmethod
    def nothing(cls) -> Grouped:
        """No sum at all."""
        return cls(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))

    @classmethod
    def sum_by_group(cls, groups: IntArray, values: IntArray) -> Grouped:
        """The values (shape: that of groups, integers from 0 on) added up by group."""
        if not len(groups):
            return cls.nothing()
        size = int(groups.max()) + 1
        if size <= _ROOMY * len(groups):
            sums = np.zeros(size, dtype=np.int64)
            np.add.at(sums, groups, values)
            return cls.from_positions(sums)
        order = np.argsort(groups, kind="stable")
        ordered = groups[order].astype(np.int64)
        first = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
        sums = np.add.reduceat(values[order].astype(np.int64), first)
        present = np.flatnonzero(sums)
        return cls(ordered[first[present]], sums[present])

    @classmethod
    def from_positions(cls, sums: IntArray) -> Grouped:
        """The sums that are not 0, each by its position."""
        groups = np.flatnonzero(sums)
        return cls(groups, sums[groups])

    @classmethod
    def joined(cls, parts: Sequence[Grouped]) -> Grouped:
        """The sums of several parts."""
        return cls.sum_by_group(
            np.concatenate([part.groups for part in parts]), np.concatenate([part.sums for part in parts])
        )

    def by_position(self, size: int) -> IntArray:
        """The sum of each group from 0 to `size` - 1, where groups of no sum have 0."""
        sums = np.zeros(size, dtype=np.int64)
        sums[self.groups] = self.sums
        return sums
