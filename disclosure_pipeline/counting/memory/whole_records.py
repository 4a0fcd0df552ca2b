"""Distinct records of GT and one SD, by the code of all their columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.counting.memory.radix import Codes, Radix, sum_readers
from disclosure_pipeline.measures.exact import IntArray, Mask
from disclosure_pipeline.measures.frequency import first_of_run

_BITS = 64  # of the largest number
_EXACT = 53  # bits of the whole numbers that floats hold exactly
_CELLS = 8  # for each distinct record, up to which a table is faster than sorting


@dataclass(frozen=True)
class DistinctRecords:
    """Distinct records by their ascending `codes`; `d` GT records and `s` SD records have each code."""

    codes: Codes
    d: IntArray
    s: IntArray


@dataclass(frozen=True)
class PackedCounts:
    """The d and the s of records as one number of `bits` each: s in the lowest `bits_of_s`, d above."""

    numbers: Codes
    bits_of_s: int
    bits: int
    has_exact_sum: bool  # as a float

    @classmethod
    def from_records(cls, records: DistinctRecords) -> PackedCounts:
        """Pack the d and the s of these records.

        >>> records = DistinctRecords(np.array([3, 4, 7]), np.array([1, 1, 0]), np.array([1, 1, 2]))
        >>> PackedCounts.from_records(records).numbers
        array([5, 5, 2], dtype=uint8)
        """
        bits_of_d, bits_of_s = (int(n.max(initial=0)).bit_length() for n in (records.d, records.s))
        number = np.min_scalar_type((1 << (bits_of_d + bits_of_s)) - 1).type
        numbers = (records.d.astype(number) << number(bits_of_s)) | records.s.astype(number)
        bits_of_sums = sum(int(n.sum()).bit_length() for n in (records.d, records.s))
        return cls(numbers, bits_of_s, bits_of_d + bits_of_s, bits_of_sums <= _EXACT)

    def is_single(self, numbers: Codes) -> Mask:
        """Mark the numbers that stand for a single record, of GT or of SD."""
        single = numbers == 1
        if 0 < self.bits_of_s < self.bits:
            single |= numbers == 1 << self.bits_of_s
        return single

    def count_single_synthetic(self, numbers: npt.NDArray[Any]) -> int:
        """Count the numbers that stand for a single record of SD and none of GT."""
        return int(np.count_nonzero(numbers == 1)) if self.bits_of_s else 0

    def is_tabulated(self, records: int, entries: int) -> bool:
        """Return whether this number of records is counted in a table with this number of entries."""
        return entries <= _CELLS * records and self.has_exact_sum

    def choose_type(self, records: int, entries: int) -> type[Any]:
        """Return the type for cells below `entries`: the smallest in which `add_up` can sort them."""
        if self.is_tabulated(records, entries):
            return np.int64
        return np.uint32 if max(entries - 1, 0) << self.bits < 1 << 32 else np.uint64

    def add_up(self, cells: Codes, numbers: Codes, entries: int) -> tuple[IntArray, IntArray, int]:
        """Return the d and the s of each cell of several records, and the number of cells of one SD record.

        Cells of SD records alone may be left out. `cells` have the chosen type, and are overwritten.
        """
        if self.is_tabulated(len(cells), entries):
            d, s = self._unpack(numbers)
            above = int(s.sum()).bit_length()  # both sums fit one float exactly
            table = np.bincount(cells, (d << above) | s, entries)
            sums = table[np.flatnonzero(table > 1 << above)].astype(np.int64)
            single = int(np.count_nonzero(table == 1)) if above else 0
            return sums >> above, sums & ((1 << above) - 1), single
        if max(entries - 1, 0) << self.bits >> _BITS:
            order = np.argsort(cells)
            cells, numbers = cells[order], numbers[order]
        else:  # sorting numbers is several times faster than argsort
            number = cells.dtype.type
            cells <<= number(self.bits)
            cells |= numbers
            cells.sort()
            numbers = (cells & number((1 << self.bits) - 1)).astype(numbers.dtype)
            cells >>= number(self.bits)
        new = np.append(first_of_run(cells), True)
        alone = new[:-1] & new[1:] & self.is_single(numbers)
        single = self.count_single_synthetic(numbers[alone])
        together = np.flatnonzero(~alone)
        first = np.flatnonzero(new[together])
        d, s = self._unpack(numbers[together])
        if len(first):
            d, s = np.add.reduceat(d, first), np.add.reduceat(s, first)
        return d, s, single

    def _unpack(self, numbers: Codes) -> tuple[IntArray, IntArray]:
        number = numbers.dtype.type
        s = numbers & number((1 << self.bits_of_s) - 1)
        return (numbers >> number(self.bits_of_s)).astype(np.int64), s.astype(np.int64)


def find_distinct(pooled: Codes) -> DistinctRecords:
    """Find the distinct records among one or more of `sort_codes`; no code is split between calls.

    >>> records = find_distinct(np.array([2, 2, 3, 9]))
    >>> records.codes.tolist(), records.d.tolist(), records.s.tolist()
    ([1, 4], [2, 0], [1, 1])
    """
    codes = pooled >> pooled.dtype.type(1)
    bounds = np.append(np.flatnonzero(first_of_run(codes)), len(pooled))
    SD_before = np.zeros(len(pooled) + 1, dtype=np.int64)
    np.cumsum((pooled & pooled.dtype.type(1)).astype(np.int64), out=SD_before[1:])
    s = np.diff(SD_before[bounds])
    d = np.diff(bounds) - s
    return DistinctRecords(
        codes[bounds[:-1]], *(number.astype(np.min_scalar_type(int(number.max()))) for number in (d, s))
    )


LARGEST = 1 << 63
"""One more than the largest code: with a bit for the table, it fits 64 bits."""


def sort_codes(codes: Radix, synthesis: int) -> Codes:
    """Sort twice the code of each record of GT and a synthesis; the lowest bit is 1 for SD."""
    dtype = np.uint32 if 2 * codes.size <= 1 << 32 else np.uint64
    records = [codes.records(table) for table in (0, synthesis)]
    pooled = np.empty(sum(records), dtype=dtype)
    parts = (pooled[: records[0]], pooled[records[0] :])
    for table, part in zip((0, synthesis), parts, strict=True):
        sum_readers(codes.readers(table, 2, dtype), slice(0, len(part)), part)
    parts[1][:] += dtype(1)
    pooled.sort()
    return pooled
