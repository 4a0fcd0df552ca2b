"""Counting records in boxes on many sets of columns, by a bit for each person and record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.counting.memory.boxes import Boxes, count_in_boxes
from disclosure_pipeline.measures.exact import IntArray, Mask

Bits = npt.NDArray[np.uint64]  # shape: people, records / 64

BoxSet = Sequence[tuple[int, int]]
"""Columns, each with the place of its tolerance."""

MOST_RECORDS = 1 << 17
"""The most records of a table that have bits; records of larger ones are sorted for each set."""

_BITS = 64
_PEOPLE_AT_A_TIME = 32  # their bits fit the cache
_NEW_AT_A_TIME = 16  # columns, whose bits take up to 8 MB each
_WINDOWS_AT_A_TIME = 64
_MOST_KEPT = 1 << 28  # bytes
_ONES_OF_TWO_BYTES = np.array([bin(i).count("1") for i in range(1 << 16)], dtype=np.uint8)


class BoxCounter:
    """Counts the records of a table in people's boxes; the bits of columns are kept for further sets."""

    def __init__(self, boxes: Boxes, table: int) -> None:
        self.boxes, self.table = boxes, table
        self._kept: dict[tuple[int, int], Bits] = {}
        self._bytes = 0

    def count(self, sets: Sequence[BoxSet]) -> list[IntArray]:
        """Count the records in each person's box, on each set (shape of each result: people).

        Sets that begin alike are counted faster one after the other.
        """
        if self._is_sorted:
            return [count_in_boxes(self.boxes, self.table, one) for one in sets]
        return [count for some in self._split(sets) for count in self._read(some, _count_ones)]

    def find_shown(self, sets: Sequence[BoxSet]) -> list[Mask]:
        """Return in whose box there is a record, on each set: faster than to count them."""
        if self._is_sorted:
            return [count > 0 for count in self.count(sets)]
        return [shown > 0 for some in self._split(sets) for shown in self._read(some, _has_ones)]

    @property
    def _is_sorted(self) -> bool:
        return len(self.boxes.columns[0].codes[self.table]) > MOST_RECORDS

    def _split(self, sets: Sequence[BoxSet]) -> Iterator[list[BoxSet]]:
        """Yield the sets in order, as many at a time as have few columns whose bits are not kept."""
        some: list[BoxSet] = []
        new: set[tuple[int, int]] = set()
        for one in sets:
            new |= set(one) - self._kept.keys()
            if some and len(new) > _NEW_AT_A_TIME:
                yield some
                some, new = [], set(one)
            some.append(one)
        yield some

    def _read(self, sets: Sequence[BoxSet], read: Callable[[Bits], IntArray | Mask]) -> Iterable[IntArray]:
        """Return what is read of the bits of each set: the records that are in the box in all its columns."""
        results = np.empty((len(sets), self.boxes.people), dtype=np.int64)
        bits_of = {pair: self._find_bits(*pair) for pair in {pair for one in sets for pair in one}}
        for start in range(0, self.boxes.people, _PEOPLE_AT_A_TIME):
            people = slice(start, start + _PEOPLE_AT_A_TIME)
            begun: list[tuple[int, int]] = []
            joined: list[Bits] = []
            for one, result in zip(sets, results, strict=True):
                both = list(zip(begun, one[:-1], strict=False))
                same = next((i for i, (old, new) in enumerate(both) if old != new), len(both))
                del begun[same:], joined[same:]
                for pair in one[same:]:
                    bits = bits_of[pair][people]
                    joined.append(joined[-1] & bits if joined else bits)
                result[people] = read(joined[-1])
                begun[:] = one[:-1]
                del joined[len(begun) :]
        return results

    def forget(self) -> None:
        """Make room for the bits of another tolerance; those of equal values, as of categories, stay."""
        self._kept = {pair: bits for pair, bits in self._kept.items() if not pair[1]}
        self._bytes = sum(bits.nbytes for bits in self._kept.values())

    def _find_bits(self, k: int, place: int) -> Bits:
        """Return which records are near each person in a column."""
        if not self.boxes.columns[k].is_number:
            place = 0
        if (k, place) in self._kept:
            return self._kept[k, place]
        column, (low, high) = self.boxes.columns[k], self.boxes.windows[k][place]
        windows, position = np.unique(np.stack([low, high]), axis=1, return_inverse=True)
        small = np.min_scalar_type(column.size)
        codes, windows = column.codes[self.table].astype(small), windows.astype(small)[:, :, None]
        packed = np.zeros((len(windows[0]), -(-len(codes) // _BITS) * _BITS // 8), dtype=np.uint8)
        for start in range(0, len(packed), _WINDOWS_AT_A_TIME):
            some = slice(start, start + _WINDOWS_AT_A_TIME)
            lowest, highest = windows[:, some]
            near = np.packbits((codes >= lowest) & (codes <= highest) if place else codes == lowest, axis=1)
            packed[some, : near.shape[1]] = near
        bits: Bits = packed.view(np.uint64)[position.ravel()]
        if self._bytes + bits.nbytes <= _MOST_KEPT:
            self._kept[k, place] = bits
            self._bytes += bits.nbytes
        return bits


def _count_ones(bits: Bits) -> IntArray:
    """Return the number of ones of each row."""
    if hasattr(np, "bitwise_count"):
        ones = np.bitwise_count(bits)
    else:  # NumPy before 2
        ones = _ONES_OF_TWO_BYTES[bits.view(np.uint16)]
    counts: IntArray = np.einsum("ij->i", ones, dtype=np.uint32)  # faster than sum()
    return counts


def _has_ones(bits: Bits) -> Mask:
    """Return which rows have ones."""
    has_ones: Mask = np.bitwise_or.reduce(bits, axis=1) > 0
    return has_ones
