"""Runs of equal values among sorted ones, by their length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.measures.frequency import count_up, first_of_run


@dataclass(frozen=True)
class Runs:
    """The places of the runs of equal values, in their order: where each begins, and after it the end of all.

    `by_length`: the numbers of the runs, the shorter ones first; the first `ends[n]` of them have n values at
    most, for n up to the longest length that is told from longer ones.
    """

    begins: IntArray
    by_length: IntArray
    ends: IntArray

    @classmethod
    def from_ascending(cls, ascending: npt.NDArray[Any], most: int) -> Runs:
        """The runs of ascending values, of which there is at least one; lengths up to `most` are told apart.

        >>> runs = Runs.from_ascending(np.array([3, 5, 5, 7, 8, 8, 8]), most=2)
        >>> runs.of_length(1).tolist(), runs.of_length(2).tolist(), runs.places_of_longer().tolist()
        ([0, 3], [1], [4, 5, 6])
        """
        begins = np.append(np.flatnonzero(first_of_run(ascending)), len(ascending))
        lengths = np.minimum(begins[1:] - begins[:-1], most + 1).astype(np.min_scalar_type(most + 1))
        ends = np.cumsum(np.bincount(lengths, minlength=most + 2))
        return cls(begins, np.argsort(lengths, kind="stable"), ends)

    def of_length(self, n: int) -> IntArray:
        """The places at which runs of so many values begin, in ascending order."""
        return self.begins.take(self.by_length[self.ends[n - 1] : self.ends[n]])

    def places_of_longer(self) -> IntArray:
        """The places of all values in longer runs than those that are told apart, in ascending order."""
        longer = self.by_length[self.ends[-2] :]
        begins = self.begins.take(longer)
        lengths = self.begins.take(longer + 1) - begins
        return np.repeat(begins, lengths) + count_up(lengths)
