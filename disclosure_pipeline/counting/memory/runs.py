"""Runs of equal values among sorted ones, by their length: a byte per value is worked on, not its place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.measures.exact import IntArray, Mask
from disclosure_pipeline.measures.frequency import first_of_run


@dataclass(frozen=True)
class Runs:
    """Runs of equal values: `begins` marks the first value of each, and holds one more mark at the end."""

    begins: Mask

    @classmethod
    def from_ascending(cls, ascending: IntArray) -> Runs:
        """The runs of values that ascend, of which there is at least one."""
        return cls(np.append(first_of_run(ascending), True))

    def count_lone(self, of_SD: Mask) -> tuple[int, int]:
        """The number of values that are alone in their run, and of those of them that are of SD."""
        lone = self.begins[:-1] & self.begins[1:]
        return int(np.count_nonzero(lone)), int(np.count_nonzero(lone & of_SD))

    def by_length(self, most: int) -> Iterator[tuple[int, IntArray]]:
        """Every number of values from 1 to `most`, and the places at which runs of so many begin."""
        longer = self.begins[:-1]  # the beginnings of runs of n values and more
        for n in range(1, min(most, len(self.begins) - 1) + 1):
            longer = longer[: len(self.begins) - n]
            ends = self.begins[n:]
            yield n, np.flatnonzero(longer & ends)
            longer = longer & ~ends

    def longer_than(self, n: int) -> Mask:
        """Marks the values in runs of more than n values."""
        number = np.diff(np.flatnonzero(self.begins))
        return np.repeat(number > n, number)
