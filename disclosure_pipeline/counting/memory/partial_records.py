"""Records of GT and of one SD that agree in all columns but one, for each column in turn.

The columns are parted into two halves. Records are sorted twice, each half being the lower digits of their
code once: who agrees in all but one of the lower columns agrees in what stands above it, and so stands near.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import prod

import numpy as np

from disclosure_pipeline.counting.memory.radix import Codes, Radix
from disclosure_pipeline.counting.memory.whole_records import (
    LARGEST,
    count_copies,
    count_runs,
    sort_codes,
)
from disclosure_pipeline.measures.adding import add_up
from disclosure_pipeline.measures.copies import CopyCounts, copy_counts
from disclosure_pipeline.measures.frequency import first_of_run
from disclosure_pipeline.runtime.threads import run_in_threads, threads_for
from disclosure_pipeline.tables.levels import CodedColumn

_AT_A_TIME = 1 << 17  # records, about, so that they fit the cache
_CELLS = 4  # of a table, for each record: more are not counted by a table


def count_partial_copies(columns: Sequence[CodedColumn]) -> list[list[CopyCounts]]:
    """For each column, of each synthesis: by all of the columns but this one; missing is a level."""
    records = [len(table.stored) for table in columns[0].tables]
    threads = threads_for(sum(records))
    if prod(column.size for column in columns) > LARGEST:
        others = [[column for column in columns if column is not left_out] for left_out in columns]
        return run_in_threads([partial(count_copies, some) for some in others], threads)
    syntheses = range(1, len(records))
    halves = _halve(columns)
    tasks = [
        partial(_count_without_lower, upper, lower, synthesis)
        for upper, lower in (halves, halves[::-1])
        for synthesis in syntheses
    ]
    counts = iter(run_in_threads(tasks, threads))
    by_column: dict[int, list[CopyCounts]] = {id(column): [] for column in columns}
    for lower in (halves[1], halves[0]):
        for _ in syntheses:
            for column, column_counts in zip(lower, next(counts), strict=True):
                by_column[id(column)].append(column_counts)
    return [by_column[id(column)] for column in columns]


def _halve(columns: Sequence[CodedColumn]) -> tuple[list[CodedColumn], list[CodedColumn]]:
    """Two halves of about as many combinations, the largest columns first in each."""
    halves: tuple[list[CodedColumn], list[CodedColumn]] = ([], [])
    for column in sorted(columns, key=lambda column: -column.size):
        smaller = min(halves, key=lambda half: prod(other.size for other in half))
        smaller.append(column)
    return halves


def _count_without_lower(
    upper: Sequence[CodedColumn], lower: Sequence[CodedColumn], synthesis: int
) -> list[CopyCounts]:
    """Without each of the lower columns in turn."""
    code = Radix((*upper, *lower))
    pooled = sort_codes(code, synthesis)
    weights = [2 * weight for weight in code.weights[len(upper) :]]  # the lowest digit is the table
    sums: list[list[CopyCounts]] = [[] for _ in lower]
    for records in _cut(pooled, weights[0] * lower[0].size):
        for column, weight, column_sums in zip(lower, weights, sums, strict=True):
            column_sums.append(_count_without(records, weight, column.size))
    return [add_up(column_sums) for column_sums in sums]


def _cut(pooled: Codes, unit: int) -> Iterator[Codes]:
    """Pieces of ascending codes; those that are in one `unit` stay together."""
    start = 0
    while start < len(pooled):
        stop = start + _AT_A_TIME
        if stop < len(pooled):
            last = int(pooled[stop - 1]) // unit * unit + (unit - 1)
            stop = int(np.searchsorted(pooled, pooled.dtype.type(last), side="right"))
        yield pooled[start:stop]
        start = stop


def _count_without(records: Codes, weight: int, size: int) -> CopyCounts:
    """Without the digit of this weight and size; records that agree above it are all here."""
    number = records.dtype.type
    above = records // number(weight * size) if weight * size <= np.iinfo(records.dtype).max else 0 * records
    new = np.append(first_of_run(above), True)
    together = np.flatnonzero(~(new[:-1] & new[1:]))  # who is alone above is alone in all
    records, new = records[together], new[together]
    below = records - records // number(weight) * number(weight)
    cells = (np.cumsum(new, dtype=np.int64) - 1) * weight + below.astype(np.int64)
    entries = int(np.count_nonzero(new)) * weight
    if entries <= _CELLS * len(cells):
        table = np.bincount(cells, minlength=entries)
        d, s = table[::2], table[1::2]
        repeated = np.flatnonzero((d > 0) & (d + s > 1))
        return copy_counts(d[repeated], s[repeated])
    in_order = cells.astype(np.uint32 if entries <= 1 << 32 else np.uint64)
    in_order.sort()
    return count_runs(in_order)
