"""Records of GT and of one SD that agree in all columns but one, for each column in turn.

The columns are dealt into two parts, or more. Records are sorted as often, each part being the lower digits
of their code once: who agrees in all but one of the lower columns stands near, as what is above it agrees.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod

import numpy as np

from disclosure_pipeline.counting.counts import KeyCounts
from disclosure_pipeline.counting.memory.radix import Codes, Radix, radix
from disclosure_pipeline.counting.memory.whole_records import (
    LARGEST,
    count_keys_of_runs,
    count_runs,
    sort_codes,
)
from disclosure_pipeline.measures.adding import add_up
from disclosure_pipeline.measures.copies import CopyCounts, copy_counts
from disclosure_pipeline.measures.frequency import first_of_run
from disclosure_pipeline.runtime.threads import run_in_threads, threads_for
from disclosure_pipeline.tables.levels import CodedColumn

_AT_A_TIME = 1 << 17  # records, about, so that they fit the cache
_MOST_LOWER = 1 << 32  # combinations of a part: numbered ones of the others fit a code beside them
_CELLS = 4  # of a table, for each record: more are not counted by a table


@dataclass(frozen=True)
class RecordCounts:
    """`whole`: by all columns, of each synthesis; `without`: by all but this one, for each column."""

    whole: tuple[KeyCounts, ...]
    without: tuple[tuple[CopyCounts, ...], ...]


def count_records(columns: Sequence[CodedColumn]) -> RecordCounts:
    """Counts of each synthesis by all of two or more columns, and by all but one; missing is a level."""
    records = [len(table.stored) for table in columns[0].tables]
    parts = _part(columns)
    syntheses = range(1, len(records))
    tasks = []
    for lower in parts:
        others = [column for part in parts if part is not lower for column in part]
        upper = radix(others, records, LARGEST // prod(column.size for column in lower))
        code = Radix((*upper.columns, *lower))
        tasks += [partial(_count_without_lower, code, lower, synthesis) for synthesis in syntheses]
    counts = run_in_threads(tasks, threads_for(sum(records)))
    by_part = [counts[start : start + len(syntheses)] for start in range(0, len(counts), len(syntheses))]
    by_column = {
        id(column): tuple(of_synthesis.without[place] for of_synthesis in part_counts)
        for lower, part_counts in zip(parts, by_part, strict=True)
        for place, column in enumerate(lower)
    }
    whole = tuple(of_synthesis.whole for of_synthesis in by_part[0])
    return RecordCounts(whole, tuple(by_column[id(column)] for column in columns))


def _part(columns: Sequence[CodedColumn]) -> list[list[CodedColumn]]:
    """Two parts of about as many combinations, or more where a part would have too many for a code.

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


@dataclass(frozen=True)
class _LowerCounts:
    """Of one synthesis: the counts by all columns, and without each of the lower ones in turn."""

    whole: KeyCounts
    without: list[CopyCounts]


def _count_without_lower(code: Radix, lower: Sequence[CodedColumn], synthesis: int) -> _LowerCounts:
    pooled = sort_codes(code, synthesis)
    weights = [2 * weight for weight in code.weights[-len(lower) :]]  # the lowest digit is the table
    sums: list[list[CopyCounts]] = [[] for _ in lower]
    for records in _split_between_units(pooled, weights[0] * lower[0].size):
        for column, weight, column_sums in zip(lower, weights, sums, strict=True):
            column_sums.append(_count_without(records, weight, column.size))
    whole = count_keys_of_runs(pooled, (code.records(0), code.records(synthesis)))
    return _LowerCounts(whole, [add_up(column_sums) for column_sums in sums])


def _split_between_units(pooled: Codes, unit: int) -> Iterator[Codes]:
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
