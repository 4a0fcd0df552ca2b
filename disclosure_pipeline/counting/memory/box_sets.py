"""Counting records in boxes on many sets of columns, by a bit for each person and record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.counting.memory.boxes import Boxes, count_in_boxes
from disclosure_pipeline.counting.memory.radix import find_loaded_loops
from disclosure_pipeline.measures.exact import IntArray, Mask
from disclosure_pipeline.measures.found import TOLERANCES

Bits = npt.NDArray[np.uint64]  # shape: people, or different boxes; records / 64

BoxSet = Sequence[tuple[int, int]]
"""Columns, each with the place of its tolerance."""

MOST_RECORDS = 1 << 17
"""The most records of a table that have bits; records of larger ones are sorted for each set."""

_BITS = 64
_AT_A_TIME = 1 << 15  # words of people's bits: they fit the cache
_MOST_KEPT = 1 << 28  # bytes
_MANY_WORDS = 1 << 9  # of a row of bits, which the compiled loops read
_ONES_OF_TWO_BYTES = np.array([bin(i).count("1") for i in range(1 << 16)], dtype=np.uint8)


class BoxCounter:
    """Counts the records of a table in people's boxes; the bits of columns are kept for further sets.

    People with the same box in a column share a row of bits.
    """

    def __init__(self, boxes: Boxes, table: int) -> None:
        self.boxes, self.table = boxes, table
        self._rows_of: dict[tuple[int, int], IntArray] = {}
        self._rows_in_use = 0

    def count(self, sets: Sequence[BoxSet], people: int) -> list[IntArray]:
        """Count the records in the boxes of the first people, on each set (shape of each result: people).

        Sets that begin alike are counted faster one after the other.
        """
        if self._is_sorted:
            return [count_in_boxes(self.boxes, self.table, one)[:people] for one in sets]
        return [count for some in self._split(sets) for count in self._read(some, _count_common, people)]

    def find_shown(self, sets: Sequence[BoxSet]) -> list[Mask]:
        """Return in whose box there is a record, on each set: faster than to count them."""
        people = self.boxes.people
        if self._is_sorted:
            return [count > 0 for count in self.count(sets, people)]
        return [shown > 0 for some in self._split(sets) for shown in self._read(some, _have_common, people)]

    @property
    def _is_sorted(self) -> bool:
        return len(self.boxes.columns[0].codes[self.table]) > MOST_RECORDS

    @cached_property
    def _kept(self) -> Bits:
        """Room for the bits of columns (shape: different boxes, records / 64)."""
        words = -(-len(self.boxes.columns[0].codes[self.table]) // _BITS)
        columns, people = len(self.boxes.columns), max(self.boxes.people, 1)
        fitting = _MOST_KEPT // (8 * people * max(words, 1))
        return np.empty((people * min(max(fitting, columns), columns * len(TOLERANCES)), words), np.uint64)

    @property
    def _people_at_a_time(self) -> int:
        return max(1, _AT_A_TIME // max(self._kept.shape[1], 1))

    def _split(self, sets: Sequence[BoxSet]) -> Iterator[list[BoxSet]]:
        """Yield the sets in order, as many at a time as there is room for the bits of their columns."""
        some: list[BoxSet] = []
        columns = set[tuple[int, int]]()
        for one in sets:
            columns |= set(one)
            if some and len(columns) * self.boxes.people > len(self._kept):
                yield some
                some, columns = [], set(one)
            some.append(one)
        if some:
            yield some

    def _read(
        self, sets: Sequence[BoxSet], read: Callable[[Bits, Bits], IntArray | Mask], people: int
    ) -> IntArray:
        """Return what is read of the first people's bits of each set: the records near in all its columns.

        What two sets begin with, one after the other, is joined once.
        """
        results = np.empty((len(sets), people), dtype=np.int64)
        pairs = sorted({pair for one in sets for pair in one})
        rows = self._find_rows(pairs)
        place_of = {pair: place for place, pair in enumerate(pairs)}
        places = [[place_of[pair] for pair in one] for one in sets]
        joined_before = [0] + [_count_same(before[:-1], one[:-1]) for before, one in pairwise(places)]
        loops = find_loaded_loops()  # to import them takes longer than this
        if loops and self._kept.shape[1] >= _MANY_WORDS:
            lengths = np.array([len(one) for one in places])
            padded = np.array([one + [0] * (lengths.max() - len(one)) for one in places])
            loops.count_in_sets(self._kept, np.array(rows), padded, lengths, np.array(joined_before), results)
            return results
        for start in range(0, people, self._people_at_a_time):
            some = slice(start, min(start + self._people_at_a_time, people))
            bits = [self._kept[of_pair[some]] for of_pair in rows]
            joined: list[Bits] = []
            for one, same, result in zip(places, joined_before, results, strict=True):
                del joined[same:]
                for place in one[same:-1]:
                    joined.append(joined[-1] & bits[place] if joined else bits[place])
                last = bits[one[-1]]
                result[some] = read(joined[-1] if joined else last, last)
        return results

    def _find_rows(self, pairs: Sequence[tuple[int, int]]) -> list[IntArray]:
        """Return where the bits of each person are, for columns within tolerances; find those missing."""
        own = [(k, place if self.boxes.columns[k].is_number else 0) for k, place in pairs]
        missing = set(own) - self._rows_of.keys()
        if self._rows_in_use + len(missing) * self.boxes.people > len(self._kept):
            self._rows_of, self._rows_in_use, missing = {}, 0, set(own)
        for k, place in sorted(missing):
            self._rows_of[k, place] = self._find_bits(k, place)
        return [self._rows_of[pair] for pair in own]

    def _find_bits(self, k: int, place: int) -> IntArray:
        """Write which records are near people in a column; return in which row those of each person are."""
        column, (low, high) = self.boxes.columns[k], self.boxes.windows[k][place]
        windows, row = np.unique(low.astype(np.int64) * column.size + high, return_inverse=True)
        low, above = windows // column.size, windows % column.size + 1
        borders = np.union1d(low, above)
        part = np.searchsorted(borders, np.arange(column.size), side="right")[column.codes[self.table]]
        below = _mark_bits(part, len(borders) + 1)
        np.bitwise_or.accumulate(below, axis=0, out=below)  # a row has the records below a border
        ends, begins = np.searchsorted(borders, above), np.searchsorted(borders, low)
        first = self._rows_in_use
        self._rows_in_use += len(windows)
        bits = self._kept[first : self._rows_in_use]
        for start in range(0, len(bits), self._people_at_a_time):
            some = slice(start, start + self._people_at_a_time)
            np.bitwise_xor(below[ends[some]], below[begins[some]], out=bits[some])
        return row + first


def _count_same(before: Sequence[int], after: Sequence[int]) -> int:
    """Return with how many numbers both begin."""
    both = zip(before, after, strict=False)
    return next((i for i, (old, new) in enumerate(both) if old != new), min(len(before), len(after)))


def _mark_bits(rows: IntArray, number: int) -> Bits:
    """Return a bit for each record, in its row."""
    bits = np.zeros((number, -(-len(rows) // _BITS)), dtype=np.uint64)
    records = np.arange(len(rows))
    places = rows * bits.shape[1] + records // _BITS
    np.add.at(bits.reshape(-1), places, np.uint64(1) << (records % _BITS).astype(np.uint64))
    return bits


def _count_common(bits: Bits, others: Bits) -> IntArray:
    """Return the number of ones that each row has in both."""
    both = bits & others
    if hasattr(np, "bitwise_count"):
        ones = np.bitwise_count(both)
    else:  # NumPy before 2
        ones = _ONES_OF_TWO_BYTES[both.view(np.uint16)]
    counts: IntArray = np.einsum("ij->i", ones, dtype=np.uint32)  # faster than sum()
    return counts


def _have_common(bits: Bits, others: Bits) -> Mask:
    """Return which rows have ones in common."""
    have_common: Mask = np.bitwise_or.reduce(bits & others, axis=1) > 0
    return have_common
