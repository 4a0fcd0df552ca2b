"""Key combinations as numbers whose digits are the levels of the keys; the limits and the job of a count."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from importlib.util import find_spec
from math import prod
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.counting.cells import Found, Parts
from disclosure_pipeline.counting.counts import CountRequest
from disclosure_pipeline.measures.exact import Grouped, IntArray
from disclosure_pipeline.measures.frequency import first_of_run, sort_together
from disclosure_pipeline.runtime.machine import threads_for
from disclosure_pipeline.runtime.progress import OnProgress, ignore_progress
from disclosure_pipeline.tables.levels import CodedColumn, Reader, StoredColumn

Item = TypeVar("Item")

Codes = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]

_AT_A_TIME = 1 << 16  # records at a time: they fit the cache, and threads seldom wait for each other
_BITS = 64  # of a code
_LOOPS = f"{__package__}.loops"  # their module
_GAIN = 4  # times as many records, where loops save less of the time that Numba takes to import
_MOST_COMPILED = (1 << 31) - 1  # records: the loops count them in 32 bits
_FORMULAS = 2  # at once: their many small steps take the lock, and eight threads are no faster
_TASKS = 8  # for each thread
_RECORDS = 4  # for each cell: fewer are counted faster in one table than in several that are added up


def unsigned_type(bits: int) -> type[np.uint32] | type[np.uint64]:
    """Return the smaller type that holds numbers of `bits` bits."""
    return np.uint32 if bits <= 32 else np.uint64  # noqa: PLR2004


@dataclass(frozen=True)
class Numbering:
    """The occurring combinations of some columns, numbered: `codes[i]` are the numbers of table i's records.

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
        """Return a function from records of a table to their `values`, which has one for each number."""
        every = np.arange(len(values))
        return Reader(StoredColumn(self.codes[table], 0, every, every), values)


@dataclass(frozen=True)
class Radix:
    """Columns as the digits of one code, the first the highest; a column's `size` is the base of its digit.

    `places[i]` is the row of `levels_of` for column i, columns numbered together counted one by one; None
    for the order of the digits.
    """

    columns: tuple[CodedColumn | Numbering, ...]
    places: tuple[int, ...] | None = None

    @cached_property
    def size(self) -> int:
        """One more than the largest code."""
        return prod(column.size for column in self.columns)

    @property
    def width(self) -> int:
        """The number of columns, those numbered together counted one by one."""
        return sum(column.radix.width if isinstance(column, Numbering) else 1 for column in self.columns)

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """The value of a 1 at each digit."""
        return tuple(prod(column.size for column in self.columns[k + 1 :]) for k in range(len(self.columns)))

    def readers(self, table: int, unit: int, dtype: npt.DTypeLike) -> list[Reader]:
        """Return functions from records of a table to numbers that add up to `unit` times their code.

        If a sum does not fit the `dtype`, its lowest bits are kept.
        """
        return [
            column.reader(table, _multiples(weight * unit, column.size, np.dtype(dtype)))
            for column, weight in zip(self.columns, self.weights, strict=True)
        ]

    def levels_of(self, codes: Codes) -> IntArray:
        """Return the digits of codes: the level of each column (shape: columns, codes)."""
        digits: list[IntArray] = []
        for column in reversed(self.columns):
            above = codes // codes.dtype.type(column.size)  # faster than divmod
            digit = (codes - above * codes.dtype.type(column.size)).astype(np.int64)
            if isinstance(column, Numbering):
                digits[:0] = column.radix.levels_of(column.combinations[digit])
            else:
                digits[:0] = [digit]
            codes = above
        return np.array(self.restore_order(digits))

    def restore_order(self, by_digit: Sequence[Item]) -> list[Item]:
        """Return one item for each column, from the order of the digits to that of `places`."""
        if self.places is None:
            return list(by_digit)
        return [by_digit[self.places.index(k)] for k in range(len(by_digit))]


def _multiples(weight: int, number: int, dtype: np.dtype[Any]) -> Codes:
    """Return the first multiples of a weight, from 0 on; the lowest bits of those that do not fit."""
    lowest = weight % (1 << (8 * dtype.itemsize)) if dtype.kind == "u" else weight
    return np.arange(number, dtype=dtype) * np.array(lowest, dtype=dtype)


def sum_readers(readers: Sequence[Reader], records: slice, sums: Codes, *, compiled: bool = False) -> None:
    """Write the sum of the readers' numbers for these records to `sums`."""
    if compiled:
        from disclosure_pipeline.counting.memory import loops

        sums[:] = 0
        for reader in readers:
            loops.add_levels(sums, reader.column.stored[records], reader.column.lowest_stored, reader.values)
        return
    for start in range(0, len(sums), _AT_A_TIME):
        part = slice(records.start + start, min(records.start + start + _AT_A_TIME, records.stop))
        codes = sums[start : start + _AT_A_TIME]
        codes[:] = readers[0](part)
        for reader in readers[1:]:
            codes += reader(part)


def build_radix(columns: Sequence[CodedColumn], records: Sequence[int], limit: int) -> Radix:
    """Return columns as digits of a code of at most `limit` (or the number of records, if that is larger).

    The largest column is the highest digit, so that sorted records have each of its many levels in one run.
    If the product of the sizes exceeds `limit`, columns are numbered together: any number of columns and
    levels works. `records` is the number of records of each table.
    """
    order = sorted(range(len(columns)), key=lambda k: -columns[k].size)
    digits: list[CodedColumn | Numbering] = []
    waiting = [columns[k] for k in order]
    together = min(limit, 1 << (_BITS - sum(records).bit_length()))  # larger sizes are numbered slowly
    while waiting:
        fits = prod(column.size for column in (*digits, *waiting)) <= limit
        if len(digits) > 1 and not fits and Radix((*digits, waiting[0])).size > together:
            digits = [_number(Radix(tuple(digits)), records)]
        digits.append(waiting.pop(0))
    if Radix(tuple(digits)).size > limit:
        digits = [_number(Radix(tuple(digits)), records)]
    return Radix(tuple(digits), tuple(order))


def _number(columns: Radix, records: Sequence[int]) -> Numbering:
    """Number the occurring combinations in the order of their codes."""
    codes: Codes = np.empty(sum(records), dtype=np.uint64)
    ends = np.cumsum(records)
    for table, end in enumerate(ends):
        own = codes[end - records[table] : end]
        sum_readers(columns.readers(table, 1, np.uint64), slice(0, len(own)), own)
    codes, order = sort_together(codes, np.arange(len(codes), dtype=codes.dtype))
    new = first_of_run(codes)
    numbers = np.empty(len(codes), dtype=np.min_scalar_type(len(codes)))
    numbers[order] = np.cumsum(new, dtype=numbers.dtype) - numbers.dtype.type(1)
    return Numbering(tuple(np.split(numbers, ends[:-1])), codes[new], columns)


def split_records(records: int, cells: int, tables: int, threads: int) -> list[slice]:
    """Return parts of a table's records, each of which is counted in a table of so many cells.

    As many as keep all threads busy, with so many tables counted, but each with several records a cell.
    """
    parts = max(1, min(_TASKS * threads // tables, records // (_RECORDS * cells)))
    step = max(1, -(-records // parts))
    return [slice(start, min(start + step, records)) for start in range(0, max(1, records), step)]


@dataclass(frozen=True)
class Limits:
    """Sizes of the parts of the work; no result depends on them.

    coded_part: records coded at a time. part: records measured at a time, about. table: most cells counted
    in a table instead of sorted. bits: most bits of a packed record. threads: None to choose by the records.
    spill_part: records of a part of the spill file, about. compiled: fewest records for the fast kernel.
    """

    coded_part: int = 1 << 17
    part: int = 1 << 20  # if fewer, threads wait for each other; if more, arrays leave the cache
    table: int = 1 << 22
    bits: int = 64
    threads: int | None = None
    spill_part: int = 1 << 21
    compiled: int = 1 << 22  # Numba takes half a second to import


def is_compiled(records: int, limits: Limits | None = None, times: int = 1) -> bool:
    """Return whether the fast kernel counts this many records: if they are many, and Numba is installed.

    `times`: how many times as many as usual.
    """
    return times * (limits or Limits()).compiled <= records <= _MOST_COMPILED and has_numba()


def gains_by_loops(records: int, limits: Limits | None = None) -> bool:
    """Return whether the fast kernel counts this many records where it saves little by itself.

    Where it counted before, nothing needs to be imported.
    """
    return is_compiled(records, limits, 1 if find_loaded_loops() else _GAIN)


def find_loaded_loops() -> Any:
    """Return the module of the loops, which counting a large table imports; None before that."""
    return sys.modules.get(_LOOPS)


@cache
def has_numba() -> bool:
    """Return whether Numba is installed."""
    return find_spec("numba") is not None


@dataclass(frozen=True)
class Job:
    """A request to count tables, GT first, with these numbers of `records`.

    `number` is that of the request. `keys` are its keys as one code. `on_progress(step, completed, total)` is
    called with this `step` while parts are counted.
    """

    request: CountRequest
    keys: Radix
    records: tuple[int, ...]
    limits: Limits
    on_progress: OnProgress = ignore_progress
    number: int = 0
    step: str = "Measuring"

    @property
    def threads(self) -> int:
        """The number of threads: see `run_in_threads`."""
        chosen = self.limits.threads
        return threads_for(sum(self.records)) if chosen is None else chosen

    @property
    def formula_threads(self) -> int:
        """The number of threads where parts are counted, and only formulas run on them."""
        return min(self.threads, _FORMULAS)

    @property
    def is_compiled(self) -> bool:
        """True if the fast kernel counts."""
        return is_compiled(sum(self.records), self.limits)

    @property
    def gains_by_loops(self) -> bool:
        """True if it also counts in tables of all possible cells."""
        return gains_by_loops(sum(self.records), self.limits)

    def report(self, step: str) -> Callable[[int, int], None]:
        """Return the callback of a step: it takes the number of completed tasks and of all tasks."""
        return partial(self.on_progress, step)

    def parts(self, table: int) -> Iterator[slice]:
        """Yield the parts of a table that are coded at a time."""
        for start in range(0, self.records[table], self.limits.coded_part):
            yield slice(start, min(start + self.limits.coded_part, self.records[table]))

    def collect(
        self,
        finds: Sequence[Callable[[], Iterable[Found]]],
        targets: Sequence[int] = (),
        find_pairs: Callable[[Sequence[int]], list[tuple[Grouped, ...]]] | None = None,
        threads: int | None = None,
    ) -> Parts:
        """Return parts of the cells of this request, with which these targets are complete.

        `find_pairs` counts the pairs of some of them: see `DisclosureCounts.pairs_of_key`. `threads`: by
        default all.
        """
        number = self.number

        def find(find_cells: Callable[[], Iterable[Found]]) -> Iterator[tuple[int, Found]]:
            return ((number, cells) for cells in find_cells())

        def find_all_pairs(listed: Sequence[tuple[int, int]]) -> list[tuple[Grouped, ...]]:
            assert find_pairs is not None
            return find_pairs([i for _, i in listed])

        parts = [partial(find, find_cells) for find_cells in finds]
        complete = [(number, i) for i in targets]
        chosen = self.threads if threads is None else threads
        return Parts(parts, complete, find_all_pairs, chosen, self.report(self.step))
