"""Which GT records are exposed, and by sets of how many columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.counting.memory.key_set_tree import Codes
from disclosure_pipeline.measures.exact import IntArray

MOST_COLUMNS = 32
"""In a set: twice as many binary digits are kept of each GT record."""


@dataclass
class ExposedRecords:
    """For each GT record, of one target and synthesis, the sizes of the sets that expose it.

    Binary digit k - 1 stands for k columns; up_to + k - 1 for the same from the other GT records.
    """

    up_to: int
    sizes: Codes

    @classmethod
    def nobody(cls, records: int, up_to: int) -> ExposedRecords:
        """Nobody is exposed yet."""
        return cls(up_to, np.zeros(records, dtype=np.min_scalar_type((1 << 2 * up_to) - 1)))

    def digits(self, columns: int) -> tuple[int, int]:
        """What stands for so many columns in SD, and in the others."""
        return 1 << (columns - 1), 1 << (self.up_to + columns - 1)

    def by_smallest_set(self) -> tuple[list[int], list[int]]:
        """GT records by the size of the smallest set that exposes them: 1, 2, … up_to, none.

        In SD, and in the other GT records.
        """
        sizes, records = np.unique(self.sizes, return_counts=True)
        by_SD, by_others = [0] * (self.up_to + 1), [0] * (self.up_to + 1)
        for digits, number in zip(sizes.tolist(), records.tolist(), strict=True):
            of_SD, of_others = digits & ((1 << self.up_to) - 1), digits >> self.up_to
            by_SD[_lowest_digit(of_SD, self.up_to)] += number
            by_others[_lowest_digit(of_others, self.up_to)] += number
        return by_SD, by_others

    def of_records(self, rows: IntArray, records: int) -> ExposedRecords:
        """The same where these are the records `rows` of so many."""
        sizes = np.zeros(records, dtype=self.sizes.dtype)
        sizes[rows] = self.sizes
        return ExposedRecords(self.up_to, sizes)


def _lowest_digit(digits: int, none: int) -> int:
    return (digits & -digits).bit_length() - 1 if digits else none
