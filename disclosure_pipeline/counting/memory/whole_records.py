"""Count records of GT and of one SD that agree in all of some columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.counting.counts import DisclosureCounts, KeyCounts, count_keys
from disclosure_pipeline.counting.memory.radix import Codes, Radix, add, radix
from disclosure_pipeline.measures.copies import CopyCounts, copy_counts
from disclosure_pipeline.measures.exact import IntArray, Mask, add_up
from disclosure_pipeline.measures.frequency import first_of_run
from disclosure_pipeline.measures.people import LevelCounts
from disclosure_pipeline.tables.levels import CodedColumn

_BITS = 64  # of the largest number
_EXACT = 53  # binary digits of a whole number that is stored as a float
_CELLS = 8  # of a table, for each distinct record: more are not counted by a table
_FEW = 64  # records: most records have fewer that are equal to them


@dataclass(frozen=True)
class DistinctRecords:
    """Distinct records by their ascending `codes`; `d` GT records and `s` SD records have each code."""

    codes: Codes
    d: IntArray
    s: IntArray

    def __len__(self) -> int:
        return len(self.codes)


@dataclass(frozen=True)
class PackedDistinctRecords:
    """Distinct records as one ascending number each: its code, and in the lower binary digits d and s."""

    packed: Codes
    digits_of_d: int
    digits_of_s: int

    @property
    def unit(self) -> int:
        """Return by how much the number grows where the code does by one."""
        return 1 << (self.digits_of_d + self.digits_of_s)

    def read(self, some: slice) -> DistinctRecords:
        """Return some of the records."""
        packed = self.packed[some]
        return DistinctRecords(
            packed >> np.uint64(self.digits_of_d + self.digits_of_s),
            (packed >> np.uint64(self.digits_of_s) & np.uint64((1 << self.digits_of_d) - 1)).astype(np.int64),
            (packed & np.uint64((1 << self.digits_of_s) - 1)).astype(np.int64),
        )


@dataclass(frozen=True)
class BothNumbers:
    """The d and the s of some records as one number of `digits` each, d above `digits_of_s`."""

    numbers: Codes
    digits_of_s: int
    digits: int
    is_exact_as_float: bool  # the sum of all of them

    @classmethod
    def from_records(cls, records: DistinctRecords) -> BothNumbers:
        """Return the numbers of these records.

        >>> records = DistinctRecords(np.array([3, 4, 7]), np.array([1, 1, 0]), np.array([1, 1, 2]))
        >>> BothNumbers.from_records(records).numbers
        array([5, 5, 2], dtype=uint8)
        """
        of_GT, of_SD = (int(number.max(initial=0)).bit_length() for number in (records.d, records.s))
        number = np.min_scalar_type((1 << (of_GT + of_SD)) - 1).type
        numbers = (records.d.astype(number) << number(of_SD)) | records.s.astype(number)
        of_sums = sum(int(number.sum()).bit_length() for number in (records.d, records.s))
        return cls(numbers, of_SD, of_GT + of_SD, of_sums <= _EXACT)

    def is_single(self, numbers: Codes) -> Mask:
        """Mark those that stand for one record of GT, or one of SD."""
        single = numbers == 1
        if 0 < self.digits_of_s < self.digits:
            single |= numbers == 1 << self.digits_of_s
        return single

    def count_single_synthetic(self, numbers: npt.NDArray[Any]) -> int:
        """Count those that stand for one record of SD and none of GT."""
        return int(np.count_nonzero(numbers == 1)) if self.digits_of_s else 0

    def is_tabulated(self, records: int, entries: int) -> bool:
        """Return whether so many cells of so many records are counted by a table."""
        return entries <= _CELLS * records and self.is_exact_as_float

    def choose_type(self, records: int, entries: int) -> type[Any]:
        """Return the type of cells below `entries`: the smallest in which they are sorted fast."""
        if self.is_tabulated(records, entries):
            return np.int64
        return np.uint32 if max(entries - 1, 0) << self.digits < 1 << 32 else np.uint64

    def add_up(self, cells: Codes, numbers: Codes, entries: int) -> tuple[IntArray, IntArray, int]:
        """Return the d and the s of each cell of several records, those of SD alone perhaps left out.

        Last the number of cells that a single SD record has. `cells` are of the chosen type, and lost.
        """
        if self.is_tabulated(len(cells), entries):
            d, s = self._divide(numbers)
            above = int(s.sum()).bit_length()  # sums fit beside each other, exact as floats
            table = np.bincount(cells, (d << above) | s, entries)
            sums = table[np.flatnonzero(table > 1 << above)].astype(np.int64)
            single = int(np.count_nonzero(table == 1)) if above else 0
            return sums >> above, sums & ((1 << above) - 1), single
        if max(entries - 1, 0) << self.digits >> _BITS:
            order = np.argsort(cells)
            cells, numbers = cells[order], numbers[order]
        else:  # sorting numbers is several times faster than sorting their places
            number = cells.dtype.type
            cells <<= number(self.digits)
            cells |= numbers
            cells.sort()
            numbers = (cells & number((1 << self.digits) - 1)).astype(numbers.dtype)
            cells >>= number(self.digits)
        new = np.append(first_of_run(cells), True)
        alone = new[:-1] & new[1:] & self.is_single(numbers)
        single = self.count_single_synthetic(numbers[alone])
        together = np.flatnonzero(~alone)
        first = np.flatnonzero(new[together])
        d, s = self._divide(numbers[together])
        if len(first):
            d, s = np.add.reduceat(d, first), np.add.reduceat(s, first)
        return d, s, single

    def _divide(self, numbers: Codes) -> tuple[IntArray, IntArray]:
        number = numbers.dtype.type
        s = numbers & number((1 << self.digits_of_s) - 1)
        return (numbers >> number(self.digits_of_s)).astype(np.int64), s.astype(np.int64)


def find_distinct(pooled: Codes) -> DistinctRecords:
    """Find the distinct records among some of `sort_codes`, all of those with one code; at least one.

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


def pack(
    parts: Sequence[DistinctRecords], recode: Callable[[Codes], Codes], largest: int
) -> PackedDistinctRecords | None:
    """Return records by codes up to `largest`, which `recode` makes of theirs; None where they do not fit.

    Sorting numbers is several times faster than sorting their places.

    >>> records = DistinctRecords(np.array([1, 4]), np.array([2, 1]), np.array([0, 3]))
    >>> pack([records], lambda codes: 4 - codes, 4).read(slice(None))
    DistinctRecords(codes=array([0, 3], dtype=uint64), d=array([1, 2]), s=array([3, 0]))
    """
    digits_of_d, digits_of_s = (
        max((int(getattr(part, name).max(initial=0)) for part in parts), default=0).bit_length()
        for name in ("d", "s")
    )
    if largest.bit_length() + digits_of_d + digits_of_s > _BITS:
        return None
    packed = np.empty(sum(map(len, parts)), dtype=np.uint64)
    end = 0
    for part in parts:
        of_part: Codes = packed[end : end + len(part)]
        of_part[:] = recode(part.codes)
        of_part <<= np.uint64(digits_of_d + digits_of_s)
        of_part |= part.d.astype(np.uint64) << np.uint64(digits_of_s)
        of_part |= part.s.astype(np.uint64)
        end += len(part)
    packed.sort()
    return PackedDistinctRecords(packed, digits_of_d, digits_of_s)


def count_distinct(parts: Sequence[DistinctRecords]) -> KeyCounts:
    """Count what the keys tell, if they are all columns; records of equal numbers are counted together.

    >>> records = DistinctRecords(np.array([3, 4, 7]), np.array([1, 1, 0]), np.array([1, 1, 2]))
    >>> count_distinct([records]).uniques.in_both
    2
    """
    table = np.zeros(_FEW * _FEW, dtype=np.int64)
    counts: list[KeyCounts] = []
    for part in parts:
        few = (part.d < _FEW) & (part.s < _FEW)
        if not few.all():
            counts.append(count_keys(*(number[~few].astype(np.int64) for number in (part.d, part.s))))
        table += np.bincount((part.d.astype(np.int64) * _FEW + part.s)[few], minlength=len(table))
    numbers = np.flatnonzero(table)
    d, s = np.divmod(numbers, _FEW)
    return add_up([count_keys(d, s, table[numbers]), *counts])


def split_between(ascending: Codes, unit: int, most: int) -> Sequence[slice]:
    """Split numbers into parts of about so many at `most`; those that are in one `unit` stay together.

    >>> split_between(np.array([0, 1, 2, 3]), unit=2, most=3)
    [slice(0, 2, None), slice(2, 4, None)]
    """
    bounds = np.arange(0, len(ascending), most)
    lowest = [int(number) // unit * unit for number in ascending[bounds[1:]]]
    bounds[1:] = np.searchsorted(ascending, np.array(lowest, dtype=ascending.dtype))
    return [slice(*ends) for ends in pairwise(np.unique(np.append(bounds, len(ascending))).tolist())]


LARGEST = 1 << 63  # a code and a binary digit for the table fit 64
_AT_A_TIME = 1 << 17  # records, so that they fit the cache
_TABLE = 1 << 20  # combinations that are counted by a table of all of them


def count_copies(columns: Sequence[CodedColumn]) -> list[CopyCounts]:
    """Count the copies in each synthesis, by all of these columns; missing is a level."""
    records = [len(table.stored) for table in columns[0].tables]
    codes = radix(columns, records, LARGEST)
    if codes.size <= min(_TABLE, sum(records)):
        d, *by_synthesis = (_count_codes(codes, table) for table in range(len(records)))
        return [copy_counts(d, s) for s in by_synthesis]
    return [
        add_up([copy_counts(part.d, part.s) for part in _find_distinct(codes, synthesis)])
        for synthesis in range(1, len(records))
    ]


def count_whole_records(columns: Sequence[CodedColumn], by_level: Sequence[int] = ()) -> DisclosureCounts:
    """Count all that keys tell of each synthesis, the keys being all of these columns.

    `by_level` are the places of those by whose levels people are counted, too.
    """
    records = [len(table.stored) for table in columns[0].tables]
    codes = radix(columns, records, LARGEST)
    keys, levels = [], []
    for synthesis in range(1, len(records)):
        parts = _find_distinct(codes, synthesis)
        keys.append(count_distinct(parts))
        levels.append(count_levels(parts, codes, by_level))
    return DisclosureCounts(tuple(keys), (), (), levels=tuple(levels) if by_level else ())


def count_levels(
    parts: Sequence[DistinctRecords], codes: Radix, places: Sequence[int]
) -> tuple[LevelCounts, ...]:
    """Count people by the levels of the columns of `codes` at these places, from the distinct records."""
    if not places:
        return ()
    counts = []
    for part in parts:
        d, s = part.d.astype(np.int64), part.s.astype(np.int64)
        several = np.flatnonzero(d + s > 1)
        levels = codes.levels_of(part.codes[several])
        counts.append(
            tuple(LevelCounts.from_combinations(levels[place], d[several], s[several]) for place in places)
        )
    return add_up(counts)


def _find_distinct(codes: Radix, synthesis: int) -> list[DistinctRecords]:
    pooled = sort_codes(codes, synthesis)
    return [find_distinct(pooled[some]) for some in split_between(pooled, 2, _AT_A_TIME)]


def _count_codes(codes: Radix, table: int) -> IntArray:
    """Return the number of a table's records with each code."""
    readers, records = codes.readers(table, 1, np.int64), codes.records(table)
    counts = np.zeros(codes.size, dtype=np.int64)
    for start in range(0, records, _AT_A_TIME):
        stop = min(start + _AT_A_TIME, records)
        of_records = np.empty(stop - start, dtype=np.int64)
        add(readers, slice(start, stop), of_records)
        counts += np.bincount(of_records, minlength=codes.size)
    return counts


def sort_codes(codes: Radix, synthesis: int) -> Codes:
    """Sort twice the code of each record of GT and a synthesis; the lowest binary digit marks SD's."""
    dtype = np.uint32 if 2 * codes.size <= 1 << 32 else np.uint64
    records = [codes.records(table) for table in (0, synthesis)]
    pooled = np.empty(sum(records), dtype=dtype)
    parts = (pooled[: records[0]], pooled[records[0] :])
    for table, part in zip((0, synthesis), parts, strict=True):
        add(codes.readers(table, 2, dtype), slice(0, len(part)), part)
    parts[1][:] += dtype(1)
    pooled.sort()
    return pooled
