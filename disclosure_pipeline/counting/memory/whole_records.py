"""Records of GT and of one SD that agree in all of some columns: sorted together, and counted run by run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from disclosure_pipeline.counting.counts import KeyCounts, count_keys
from disclosure_pipeline.counting.memory.radix import Codes, Radix, add, radix
from disclosure_pipeline.measures.adding import add_up
from disclosure_pipeline.measures.copies import CopyCounts, copy_counts
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.tables.levels import CodedColumn

LARGEST = 1 << 63  # a code and a binary digit for the table fit 64
_AT_A_TIME = 1 << 20  # records, so that they fit the cache
_TABLE = 1 << 20  # combinations that are counted by a table of all of them
_NONE = np.zeros(0, dtype=np.int64)


def count_copies(columns: Sequence[CodedColumn]) -> list[CopyCounts]:
    """Of each synthesis, by all of these columns; missing is a level."""
    records = [len(table.stored) for table in columns[0].tables]
    codes = radix(columns, records, LARGEST)
    if codes.size <= min(_TABLE, sum(records)):
        d, *by_synthesis = (_count_codes(codes, table) for table in range(len(records)))
        return [copy_counts(d, s) for s in by_synthesis]
    return [count_runs(sort_codes(codes, synthesis)) for synthesis in range(1, len(records))]


def count_whole_records(columns: Sequence[CodedColumn]) -> tuple[KeyCounts, ...]:
    """Of each synthesis, all that the keys tell where they are all of these columns."""
    records = [len(table.stored) for table in columns[0].tables]
    codes = radix(columns, records, LARGEST)
    return tuple(
        count_keys_of_runs(sort_codes(codes, synthesis), (records[0], records[synthesis]))
        for synthesis in range(1, len(records))
    )


def count_keys_of_runs(pooled: Codes, records: tuple[int, int]) -> KeyCounts:
    """Counts of what `sort_codes` returns of so many GT and SD records."""
    runs = list(_runs(pooled))
    GT, SD = (total - sum(int(counts[i].sum()) for counts in runs) for i, total in enumerate(records))
    lone = count_keys(np.array([1, 0]), np.array([0, 1]), np.array([GT, SD]))
    return add_up([lone, *(count_keys(d, s) for d, s in runs)])


def _count_codes(codes: Radix, table: int) -> IntArray:
    """The number of a table's records with each code."""
    readers, records = codes.readers(table, 1, np.int64), codes.records(table)
    counts = np.zeros(codes.size, dtype=np.int64)
    for start in range(0, records, _AT_A_TIME):
        stop = min(start + _AT_A_TIME, records)
        of_records = np.empty(stop - start, dtype=np.int64)
        add(readers, slice(start, stop), of_records)
        counts += np.bincount(of_records, minlength=codes.size)
    return counts


def sort_codes(codes: Radix, synthesis: int) -> Codes:
    """Twice the code of each record of GT and a synthesis, ascending; the lowest binary digit marks SD's."""
    dtype = np.uint32 if 2 * codes.size <= 1 << 32 else np.uint64
    records = [codes.records(table) for table in (0, synthesis)]
    pooled = np.empty(sum(records), dtype=dtype)
    parts = (pooled[: records[0]], pooled[records[0] :])
    for table, part in zip((0, synthesis), parts, strict=True):
        add(codes.readers(table, 2, dtype), slice(0, len(part)), part)
    parts[1][:] += dtype(1)
    pooled.sort()
    return pooled


def count_runs(pooled: Codes) -> CopyCounts:
    """Counts of what `sort_codes` returns."""
    return add_up([copy_counts(d, s) for d, s in _runs(pooled)] or [copy_counts(_NONE, _NONE)])


def _runs(pooled: Codes) -> Iterator[tuple[IntArray, IntArray]]:
    """The GT and the SD records of each code that several records have, some codes at a time.

    The lowest binary digit of an entry says whether it is of SD.
    """
    start = 0
    while start < len(pooled):
        stop = min(start + _AT_A_TIME, len(pooled))
        if stop < len(pooled):
            after = (pooled[stop - 1] | pooled.dtype.type(1)) + pooled.dtype.type(1)
            stop = int(np.searchsorted(pooled, after)) if after else len(pooled)
        records = pooled[start:stop]
        first = np.flatnonzero(np.concatenate(([True], (records[1:] ^ records[:-1]) > 1)))
        number = np.diff(first, append=len(records))
        repeated = np.flatnonzero(number > 1)  # who is alone is no copy, and has none
        first, number = first[repeated], number[repeated]
        of_SD = np.concatenate(([0], np.cumsum((records & pooled.dtype.type(1)).astype(np.int32))))
        s = of_SD[first + number] - of_SD[first]
        yield number - s, s
        start = stop
