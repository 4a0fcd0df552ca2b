"""Counting records in boxes on many sets of columns, by a bit for each person and record."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.counting.memory.boxes import Boxes
from disclosure_pipeline.measures.exact import IntArray

Bits = npt.NDArray[np.uint64]  # shape: people, records / 64

BoxSet = Sequence[tuple[int, int]]
"""Columns, each with the place of its tolerance."""

_BITS = 64
_RECORDS_AT_A_TIME = 1 << 16
_MOST_KEPT = 1 << 28  # bytes
_ONES_OF_TWO_BYTES = np.array([bin(i).count("1") for i in range(1 << 16)], dtype=np.uint8)


class BoxCounter:
    """Counts the records of a table in people's boxes; the bits of small tables are kept for further sets."""

    def __init__(self, boxes: Boxes, table: int) -> None:
        self.boxes, self.table = boxes, table
        self._kept: dict[tuple[int, int, int], Bits] = {}
        self._bytes = 0

    def count(self, sets: Sequence[BoxSet]) -> list[IntArray]:
        """Count the records in each person's box, on each set (shape of each result: people).

        Sets that begin alike are counted faster one after the other.
        """
        records = len(self.boxes.columns[0].codes[self.table])
        counts: list[IntArray] = [np.zeros(1, dtype=np.int64)] * len(sets)
        for start in range(0, records, _RECORDS_AT_A_TIME):
            joined_before: tuple[BoxSet, Bits] | None = None
            for number, one in enumerate(sets):
                bits = [self._find_bits(start, *pair) for pair in one]
                *first, last = bits
                if not first:
                    joined = last
                elif joined_before is not None and list(joined_before[0]) == list(one[:-1]):
                    joined = joined_before[1] & last
                else:
                    begin = first[0]
                    for more in first[1:]:
                        begin = begin & more
                    joined_before, joined = (one[:-1], begin), begin & last
                counts[number] = counts[number] + _count_ones(joined)
        return counts

    def _find_bits(self, start: int, k: int, place: int) -> Bits:
        """Return which of some records are near each person in a column."""
        if not self.boxes.columns[k].is_number:
            place = 0
        key = (start, k, place)
        if key in self._kept:
            return self._kept[key]
        column, (low, high) = self.boxes.columns[k], self.boxes.windows[k][place]
        codes = column.codes[self.table][start : start + _RECORDS_AT_A_TIME]
        windows, position = np.unique(np.stack([low, high]), axis=1, return_inverse=True)
        small = np.min_scalar_type(column.size)
        codes, (lowest, highest) = codes.astype(small), windows.astype(small)[:, :, None]
        near = (codes >= lowest) & (codes <= highest) if place else codes == lowest
        packed = np.packbits(near, axis=1)
        padded = np.zeros((len(packed), -(-len(codes) // _BITS) * _BITS // 8), dtype=np.uint8)
        padded[:, : packed.shape[1]] = packed
        bits: Bits = padded.view(np.uint64)[position.ravel()]
        if self._bytes + bits.nbytes <= _MOST_KEPT:
            self._kept[key] = bits
            self._bytes += bits.nbytes
        return bits


def _count_ones(bits: Bits) -> IntArray:
    """Return the number of ones of each row."""
    if hasattr(np, "bitwise_count"):
        ones = np.bitwise_count(bits)
    else:  # NumPy before 2
        ones = _ONES_OF_TWO_BYTES[bits.view(np.uint16)]
    counts: IntArray = ones.sum(axis=1, dtype=np.int64)
    return counts
