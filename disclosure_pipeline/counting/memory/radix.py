"""Key combinations as one number each, whose digits are the levels of the keys, and their tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.counting.counts import Target
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.measures.frequency import first_of_run, sort_together
from disclosure_pipeline.runtime.machine import threads_for
from disclosure_pipeline.runtime.progress import OnProgress
from disclosure_pipeline.tables.levels import CodedColumn

Item = TypeVar("Item")

Codes = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]
Reader = Callable[[slice | IntArray], Codes]

_AT_A_TIME = 1 << 16  # records at a time: they fit the cache, and threads seldom wait for each other
_BITS = 64  # of a code


@dataclass(frozen=True)
class Numbered:
    """The combinations of some columns that occur, numbered: `codes[i]` are those of table i's records.

    `combinations` holds the code in `radix` that each number stands for.
    """

    codes: tuple[Codes, ...]
    combinations: Codes
    radix: Radix

    @property
    def size(self) -> int:
        """The number of combinations."""
        return len(self.combinations)

    def reader(self, table: int, values: Codes) -> Reader:
        """Return a function from some records of a table to their entry of `values` (one for each number)."""
        return lambda records: values.take(self.codes[table][records], mode="clip")


@dataclass(frozen=True)
class Radix:
    """Columns as the digits of one code, the first one the highest; each digit has a column's `size`.

    `places` are the places at which `levels_of` returns the columns, those that are numbered together one by
    one; None for the order of the digits.
    """

    columns: tuple[CodedColumn | Numbered, ...]
    places: tuple[int, ...] | None = None

    @cached_property
    def size(self) -> int:
        """One more than the largest code."""
        return prod(column.size for column in self.columns)

    @property
    def width(self) -> int:
        """The number of columns, those that are numbered together one by one."""
        return sum(column.radix.width if isinstance(column, Numbered) else 1 for column in self.columns)

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """The value of a one at each digit."""
        return tuple(prod(column.size for column in self.columns[k + 1 :]) for k in range(len(self.columns)))

    def records(self, table: int) -> int:
        """Return the number of records of a table."""
        column = self.columns[0]
        return len(column.codes[table] if isinstance(column, Numbered) else column.tables[table].stored)

    def readers(self, table: int, unit: int, dtype: npt.DTypeLike) -> list[Reader]:
        """Return functions from some records of a table to codes in units of `unit`; their sum is the code.

        Where a code does not fit the `dtype`, the sum holds its lowest binary digits.
        """
        return [
            column.reader(table, _multiples(weight * unit, column.size, np.dtype(dtype)))
            for column, weight in zip(self.columns, self.weights, strict=True)
        ]

    def levels_of(self, codes: Codes) -> IntArray:
        """Return the digits of some codes: the level of each column (shape: columns, codes)."""
        digits: list[IntArray] = []
        for column in reversed(self.columns):
            above = codes // codes.dtype.type(column.size)  # by one number this is fast, divmod is not
            digit = (codes - above * codes.dtype.type(column.size)).astype(np.int64)
            if isinstance(column, Numbered):
                digits[:0] = column.radix.levels_of(column.combinations[digit])
            else:
                digits[:0] = [digit]
            codes = above
        return np.array(self.in_given_order(digits))

    def in_given_order(self, of_digits: Sequence[Item]) -> list[Item]:
        """Return what belongs to each column, from the order of the digits into that of `places`."""
        if self.places is None:
            return list(of_digits)
        return [of_digits[self.places.index(k)] for k in range(len(of_digits))]


def _multiples(weight: int, number: int, dtype: np.dtype[Any]) -> Codes:
    """Return the first multiples of a weight, from 0 on, in their lowest binary digits."""
    lowest = weight % (1 << (8 * dtype.itemsize)) if dtype.kind == "u" else weight
    return np.arange(number, dtype=dtype) * np.array(lowest, dtype=dtype)


def add(readers: Sequence[Reader], records: slice, sums: Codes) -> None:
    """Write to `sums` the sum of what the readers return for some records."""
    for start in range(0, len(sums), _AT_A_TIME):
        part = slice(records.start + start, min(records.start + start + _AT_A_TIME, records.stop))
        codes = sums[start : start + _AT_A_TIME]
        codes[:] = readers[0](part)
        for reader in readers[1:]:
            codes += reader(part)


def radix(columns: Sequence[CodedColumn], records: Sequence[int], limit: int) -> Radix:
    """Return columns as digits of a code of at most `limit` (or the number of records, if that is larger).

    The largest column is the highest digit: sorted records then have their most scattered levels in a row.
    Where the product of the sizes is larger than `limit`, columns are numbered together, so any number of
    columns and of levels works. `records` is the number of records of each table.
    """
    order = sorted(range(len(columns)), key=lambda k: -columns[k].size)
    digits: list[CodedColumn | Numbered] = []
    waiting = [columns[k] for k in order]
    together = min(limit, 1 << (_BITS - sum(records).bit_length()))  # sizes that are numbered fast
    while waiting:
        fits = prod(column.size for column in (*digits, *waiting)) <= limit
        if len(digits) > 1 and not fits and Radix((*digits, waiting[0])).size > together:
            digits = [_number(Radix(tuple(digits)), records)]
        digits.append(waiting.pop(0))
    if Radix(tuple(digits)).size > limit:
        digits = [_number(Radix(tuple(digits)), records)]
    return Radix(tuple(digits), tuple(order))


def _number(columns: Radix, records: Sequence[int]) -> Numbered:
    """Number the combinations that occur, in the order of their codes."""
    codes: Codes = np.empty(sum(records), dtype=np.uint64)
    ends = np.cumsum(records)
    for table, end in enumerate(ends):
        own = codes[end - records[table] : end]
        add(columns.readers(table, 1, np.uint64), slice(0, len(own)), own)
    codes, order = sort_together(codes, np.arange(len(codes), dtype=codes.dtype))
    new = first_of_run(codes)
    numbers = np.empty(len(codes), dtype=np.min_scalar_type(len(codes)))
    numbers[order] = np.cumsum(new, dtype=numbers.dtype) - numbers.dtype.type(1)
    return Numbered(tuple(np.split(numbers, ends[:-1])), codes[new], columns)


@dataclass(frozen=True)
class Limits:
    """Sizes of the parts that the work is cut into; no result depends on them.

    coded_part: records that are coded at a time. part: records that are measured at a time, about. table:
    most cells that are counted instead of sorted. bits: most binary digits of a number that is a record.
    threads: None for as many as the tables are worth. spill_part: records of a part of the spill file, about.
    rare: records of keys with as many records each that are not worth to be measured by themselves.
    """

    coded_part: int = 1 << 17
    part: int = 5 << 19  # fewer, and threads wait for each other; more, and an interrupt waits for them
    table: int = 1 << 22
    bits: int = 64
    threads: int | None = None
    spill_part: int = 1 << 21
    rare: int = 1 << 14


@dataclass(frozen=True)
class Job:
    """The tables to count, of so many `records` each, GT first; `on_progress(step, completed, total)`.

    `together`: whether to count what all syntheses disclose together.
    """

    keys: Radix
    targets: tuple[Target, ...]
    records: tuple[int, ...]
    limits: Limits
    on_progress: OnProgress
    together: bool = False

    @property
    def threads(self) -> int:
        """The number of threads: see `run_in_threads`."""
        chosen = self.limits.threads
        return threads_for(sum(self.records)) if chosen is None else chosen

    def report(self, step: str) -> Callable[[int, int], None]:
        """Return what is called with the number of completed tasks and of all tasks of one step."""
        return partial(self.on_progress, step)

    def parts(self, table: int) -> Iterator[slice]:
        """Return the records of a table, part by part, as they are coded."""
        for start in range(0, self.records[table], self.limits.coded_part):
            yield slice(start, min(start + self.limits.coded_part, self.records[table]))

    @property
    def syntheses(self) -> range:
        """The numbers of the syntheses, which are those of their tables."""
        return range(1, len(self.records))
