"""Finding records of GT and one SD that agree in all columns but one, for each column in turn.

The columns are dealt into two or more parts. Records that agree in all columns outside a part stand close
together once they are sorted by these: by a code whose lower digits are the part's columns, in one thread, as
the steps are so short that several threads would mostly wait for each other; many records by the compiled
loops, which hash each range of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.counting.cells import Cells
from disclosure_pipeline.counting.counts import CountRequest, Target
from disclosure_pipeline.counting.memory.radix import (
    Codes,
    Job,
    Limits,
    Radix,
    build_radix,
    is_compiled,
    sum_readers,
)
from disclosure_pipeline.counting.memory.sorting import split_by_unit
from disclosure_pipeline.measures.checks import CodedExclusions
from disclosure_pipeline.measures.exact import IntArray, Mask
from disclosure_pipeline.measures.frequency import first_of_run
from disclosure_pipeline.runtime.progress import report_progress
from disclosure_pipeline.tables.levels import CodedColumn

_AT_A_TIME = 1 << 16  # records, about: they and a table of their cells fit the cache
_MOST_LOWER = 1 << 32  # combinations of a part: leaves room in the code for the numbered others
_MANY = 1 / 8  # of the records: taking out fewer is not worth it


@dataclass(frozen=True)
class _Order:
    """An order of the records: by a code whose lowest digits are the `lower` columns."""

    code: Radix
    lower: Sequence[CodedColumn]

    @property
    def lower_size(self) -> int:
        """The number of combinations of the lower columns."""
        return prod(column.size for column in self.lower)


def find_records(
    columns: Sequence[CodedColumn],
    syntheses: Sequence[int],
    limits: Limits,
    order: int | None = None,
) -> Iterator[Cells]:
    """Yield the cells by all of two or more columns, and by all but one, for each column; missing is a level.

    The tables of the columns are GT and these syntheses. `order`: leave out only columns of this part of
    `deal_columns`; the cells by all columns are found with the first.
    """
    places = {id(column): place for place, column in enumerate(columns)}
    records = tuple(len(table.stored) for table in columns[0].tables)
    jobs = _list_jobs(columns, records, limits, order) if is_compiled(sum(records), limits) else []
    for number, job in enumerate(jobs):
        from disclosure_pipeline.counting.memory.scanning import find_combinations

        of_targets = [places[id(target.column)] for target in job.request.targets]
        whole = [] if order or number else [None]
        yield from find_combinations(job, syntheses, [*whole, *of_targets])
    if jobs:
        return
    orders = _list_orders(columns, records, order)
    for table, synthesis in enumerate(syntheses, start=1):
        for number, one in enumerate(orders):
            for left_out, d, s, alone in _find_in_order(one, table, with_whole=not (order or number)):
                place = None if left_out is None else places[id(left_out)]
                yield Cells.of_keys([d, s], [synthesis], alone=alone, left_out=place)


def _list_jobs(
    columns: Sequence[CodedColumn], records: tuple[int, ...], limits: Limits, order: int | None
) -> list[Job]:
    """Return for each part of the columns a job with these as targets, and the others as keys.

    None are returned if a record does not fit a number.
    """
    parts = deal_columns(columns)
    jobs = []
    for left_out in parts if order is None else [parts[order]]:
        others = [column for part in parts if part is not left_out for column in part]
        request = CountRequest(others, [Target(column, CodedExclusions(), math.inf) for column in left_out])
        bits = sum(target.bits for target in request.targets)
        keys = build_radix(others, records, LARGEST >> bits)
        if keys.size > LARGEST >> bits:
            return []
        jobs.append(Job(request, keys, records, limits))
    return jobs


def _list_orders(columns: Sequence[CodedColumn], records: Sequence[int], order: int | None) -> list[_Order]:
    """Return an order for each part of the columns, or for this one, which are its lower digits."""
    parts, orders = deal_columns(columns), []
    for lower in parts if order is None else [parts[order]]:
        others = [column for part in parts if part is not lower for column in part]
        upper = build_radix(others, records, LARGEST // prod(column.size for column in lower))
        orders.append(_Order(Radix((*upper.columns, *lower)), lower))
    return orders


def deal_columns(columns: Sequence[CodedColumn]) -> list[list[CodedColumn]]:
    """Deal the columns into parts of about equal numbers of combinations, two unless codes get too long.

    The largest columns come first in each part.
    """
    number = 2
    while True:
        parts: list[list[CodedColumn]] = [[] for _ in range(number)]
        for column in sorted(columns, key=lambda column: -column.size):
            fewest = min(parts, key=lambda part: (prod(other.size for other in part), len(part)))
            fewest.append(column)
        if number == len(columns) or max(prod(c.size for c in part) for part in parts) <= _MOST_LOWER:
            return parts
        number += 1


_Found = tuple[CodedColumn | None, IntArray, IntArray, IntArray | None]
"""The column that is left out, the records of GT and SD with each combination, and `Cells.alone`."""


def _find_in_order(order: _Order, table: int, *, with_whole: bool) -> Iterator[_Found]:
    """Yield the combinations of GT and this table without each of the order's lower columns."""
    pooled = sort_codes(order.code, table)
    parts = split_by_unit(pooled, 2 * order.lower_size, _AT_A_TIME)
    for completed, part in enumerate(parts, start=1):
        records = find_distinct(pooled[part])
        if with_whole:
            yield None, records.d.astype(np.int64), records.s.astype(np.int64), None
        yield from _find_without_lower(order, records)
        report_progress("Comparing records without a column", completed, len(parts))


def _find_without_lower(order: _Order, records: DistinctRecords) -> Iterator[_Found]:
    """Yield the combinations without each of the lower columns.

    `records` are all that agree in the digits above these. Combinations of SD records alone are left out, and
    those of a single record only counted.
    """
    codes, packed = _count_from_first(records.codes, order.lower_size), PackedCounts.from_records(records)
    number, numbers = codes.dtype.type, packed.numbers
    N_d, single = int(records.d.sum()), 0  # single: combinations of one SD record that were taken out
    above = codes // number(order.lower_size)
    for column, weight in zip(order.lower, order.code.weights[-len(order.lower) :], strict=True):
        new = first_of_run(above)
        # A record that is alone above is alone in all columns, and also above each column that follows.
        alone = new & np.append(new[1:], True) & packed.is_single(numbers)
        if np.count_nonzero(alone) > _MANY * len(alone):
            single += packed.count_single_synthetic(numbers[alone])
            together = np.flatnonzero(~alone)
            codes, numbers, new = codes[together], numbers[together], new[together]
        above = codes // number(weight)
        entries = int(np.count_nonzero(new)) * weight
        cell = packed.choose_type(len(codes), entries)
        # A cell is a code whose digits above are replaced by their rank among those that occur.
        cells = np.cumsum(new, dtype=cell)
        cells -= above.astype(cell) + cell(1)
        cells *= cell(weight)
        cells += codes.astype(cell)
        d, s, single_here = packed.add_up(cells, numbers, entries)
        yield column, d, s, np.array([N_d - int(d.sum()), single + single_here])


def _count_from_first(codes: Codes, unit: int) -> Codes:
    """Subtract the start of the first code's `unit` from ascending codes: small numbers divide fast."""
    first = int(codes[0]) // unit * unit if len(codes) else 0
    largest = int(codes[-1]) - first if len(codes) else 0
    fits = largest <= np.iinfo(np.uint32).max
    return (codes - codes.dtype.type(first)).astype(np.uint32 if fits else np.uint64)


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
