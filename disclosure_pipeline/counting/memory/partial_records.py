"""Records of GT and of one SD that agree in all columns but one, for each column in turn.

The columns are dealt into two parts, or more. Distinct records are sorted as often, each part being the lower
digits of their code once: who agrees in all but one of the lower columns stands near, as what is above it
agrees. All of it is on one thread: its steps are so short that several would mostly wait for each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from disclosure_pipeline.counting.counts import DisclosureCounts, KeyCounts
from disclosure_pipeline.counting.memory.radix import Codes, Radix, radix
from disclosure_pipeline.counting.memory.whole_records import (
    LARGEST,
    BothNumbers,
    DistinctRecords,
    PackedDistinctRecords,
    count_distinct,
    count_levels,
    find_distinct,
    pack,
    sort_codes,
    split_between,
)
from disclosure_pipeline.measures.copies import CopyCounts, copy_counts
from disclosure_pipeline.measures.exact import add_up
from disclosure_pipeline.measures.frequency import first_of_run
from disclosure_pipeline.measures.people import LevelCounts
from disclosure_pipeline.runtime.progress import report_progress
from disclosure_pipeline.tables.levels import CodedColumn

_AT_A_TIME = 1 << 16  # records, about, so that they and a table of their cells fit the cache
_MOST_LOWER = 1 << 32  # combinations of a part: numbered ones of the others fit a code beside them
_TWO = 2
_MANY = 1 / 8  # of the records: fewer are not taken out


@dataclass(frozen=True)
class PartialRecordCounts:
    """`whole`: by all columns, of each synthesis; `without`: by all but this one, for each that is left out.

    `levels`: of each synthesis, by the levels of some columns.
    """

    whole: tuple[KeyCounts, ...]
    without: tuple[tuple[CopyCounts, ...], ...]
    levels: tuple[tuple[LevelCounts, ...], ...]

    def as_found(self) -> DisclosureCounts:
        """Return the counts that a request `without_each` asks for."""
        without = [[found.as_found() for found in of_set] for of_set in self.without]
        return DisclosureCounts(
            self.whole, (), (), levels=self.levels, without=tuple(tuple(of_set) for of_set in without)
        )


@dataclass(frozen=True)
class _Order:
    """An order of the records: by a code whose lowest digits are the `lower` columns.

    `columns` are those of the code, in the order of its digits.
    """

    code: Radix
    columns: Sequence[CodedColumn]
    lower: Sequence[CodedColumn]

    @property
    def lower_size(self) -> int:
        """The number of combinations of the lower columns."""
        return prod(column.size for column in self.lower)


@dataclass(frozen=True)
class _Orders:
    """The orders in which each column is a lower one once.

    `can_be_exchanged`: they are two, and only their upper and lower digits change places between them.
    """

    orders: Sequence[_Order]
    can_be_exchanged: bool


@dataclass(frozen=True)
class _SynthesisCounts:
    """Counts of one synthesis by all columns, and without each of them, by the column's identity."""

    whole: KeyCounts
    without: dict[int, CopyCounts]
    levels: tuple[LevelCounts, ...]


def count_records(
    columns: Sequence[CodedColumn], by_level: Sequence[int] = (), order: int | None = None
) -> PartialRecordCounts:
    """Count by all of two or more columns, and by all but each one; missing is a level.

    `by_level` are the places of the columns by whose levels people are counted. `order`: only the columns of
    this part that they are dealt into (`deal_columns`) are left out.
    """
    records = [len(table.stored) for table in columns[0].tables]
    orders = _list_orders(columns, records)
    if order is not None:
        orders = replace(orders, orders=[orders.orders[order]])
    grouped = [columns[place] for place in by_level]
    counts = [_count_synthesis(orders, synthesis, grouped) for synthesis in range(1, len(records))]
    return PartialRecordCounts(
        tuple(of_synthesis.whole for of_synthesis in counts),
        tuple(
            tuple(of_synthesis.without[id(column)] for of_synthesis in counts)
            for column in columns
            if id(column) in counts[0].without
        ),
        tuple(of_synthesis.levels for of_synthesis in counts),
    )


def _list_orders(columns: Sequence[CodedColumn], records: Sequence[int]) -> _Orders:
    """Return as many orders as there are parts; each part is the lower digits of one."""
    parts = deal_columns(columns)
    if len(parts) == _TWO and prod(column.size for column in columns) <= LARGEST:
        first, second = parts
        codes = ((*second, *first), (*first, *second))
        orders = [_Order(Radix(code), code, lower) for code, lower in zip(codes, parts, strict=True)]
        return _Orders(orders, can_be_exchanged=True)
    orders = []
    for lower in parts:
        others = [column for part in parts if part is not lower for column in part]
        upper = radix(others, records, LARGEST // prod(column.size for column in lower))
        above = [others[place] for place in upper.places or ()]
        orders.append(_Order(Radix((*upper.columns, *lower)), (*above, *lower), lower))
    return _Orders(orders, can_be_exchanged=False)


def deal_columns(columns: Sequence[CodedColumn]) -> list[list[CodedColumn]]:
    """Deal the columns into parts of about as many combinations: two, or more if a code has no room.

    The largest columns are the first in each.
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


def _count_synthesis(orders: _Orders, synthesis: int, by_level: Sequence[CodedColumn]) -> _SynthesisCounts:
    first, *others = orders.orders
    records, without = _count_in_order(first, sort_codes(first.code, synthesis))
    whole = count_distinct(records)
    place = {id(column): place for place, column in enumerate(first.columns)}
    levels = count_levels(records, first.code, [place[id(column)] for column in by_level])
    packed = _exchange_digits(records, first) if others and orders.can_be_exchanged else None
    del records  # as large as the tables
    for order in others:
        if packed is None:
            without |= _count_in_order(order, sort_codes(order.code, synthesis))[1]
        else:
            without |= _count_packed(order, packed)
    return _SynthesisCounts(whole, without, levels)


def _count_in_order(order: _Order, pooled: Codes) -> tuple[list[DistinctRecords], dict[int, CopyCounts]]:
    """The distinct records among those that are sorted in this order, and the counts without its columns."""
    parts = split_between(pooled, 2 * order.lower_size, _AT_A_TIME)
    records = [find_distinct(pooled[some]) for some in parts]
    return records, _add_up_parts(order, records, len(parts))


def _count_packed(order: _Order, packed: PackedDistinctRecords) -> dict[int, CopyCounts]:
    """Return the counts without the columns of this order."""
    parts = split_between(packed.packed, packed.unit * order.lower_size, _AT_A_TIME)
    return _add_up_parts(order, (packed.read(some) for some in parts), len(parts))


def _add_up_parts(order: _Order, records: Iterable[DistinctRecords], parts: int) -> dict[int, CopyCounts]:
    counts = []
    for part in records:
        counts.append(_count_without_lower(order, part))
        report_progress("Comparing records without a column", len(counts), parts)
    return {id(column): add_up([part[place] for part in counts]) for place, column in enumerate(order.lower)}


def _exchange_digits(parts: Sequence[DistinctRecords], order: _Order) -> PackedDistinctRecords | None:
    """The records in the order in which the lower digits stand above the others; None if they do not fit."""
    upper_size = order.code.size // order.lower_size

    def exchange(codes: Codes) -> Codes:
        number = codes.dtype.type
        above = codes // number(order.lower_size)
        below = codes - above * number(order.lower_size)
        return below * number(upper_size) + above

    return pack(parts, exchange, order.code.size - 1)


def _count_without_lower(order: _Order, records: DistinctRecords) -> list[CopyCounts]:
    """Without each of the lower columns; records that agree above all of these are all here."""
    codes, both = _count_from_first(records.codes, order.lower_size), BothNumbers.from_records(records)
    number, numbers = codes.dtype.type, both.numbers
    of_GT, single = int(records.d.sum()), 0  # of GT; combinations of one SD record that were taken out
    counts = []
    above = codes // number(order.lower_size)
    for weight in order.code.weights[-len(order.lower) :]:
        new = first_of_run(above)
        # Who is alone above is alone in all, and above the columns that are still lower.
        alone = new & np.append(new[1:], True) & both.is_single(numbers)
        if np.count_nonzero(alone) > _MANY * len(alone):
            single += both.count_single_synthetic(numbers[alone])
            together = np.flatnonzero(~alone)
            codes, numbers, new = codes[together], numbers[together], new[together]
        above = codes // number(weight)
        entries = int(np.count_nonzero(new)) * weight
        cell = both.choose_type(len(codes), entries)
        cells = np.cumsum(new, dtype=cell)
        cells -= cell(1)
        cells *= cell(weight)
        cells += (codes - above * number(weight)).astype(cell)
        d, s, single_here = both.add_up(cells, numbers, entries)
        counts.append(copy_counts(d, s, (of_GT - int(d.sum()), single + single_here)))
    return counts


def _count_from_first(codes: Codes, unit: int) -> Codes:
    """Return ascending codes counted from the first of their `unit`s on: small ones divide fast."""
    first = int(codes[0]) // unit * unit if len(codes) else 0
    largest = int(codes[-1]) - first if len(codes) else 0
    fits = largest <= np.iinfo(np.uint32).max
    return (codes - codes.dtype.type(first)).astype(np.uint32 if fits else np.uint64)
