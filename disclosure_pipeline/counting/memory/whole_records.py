"""Records of GT and of one SD that agree in all of some columns: sorted together, and counted run by run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from disclosure_pipeline.counting.memory.radix import Codes, add, radix
from disclosure_pipeline.measures.adding import add_up
from disclosure_pipeline.measures.copies import CopyCounts, copy_counts
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.tables.levels import CodedColumn

_LARGEST = 1 << 63  # a code and a binary digit for the table fit 64
_AT_A_TIME = 1 << 20  # records, so that they fit the cache


def count_copies(columns: Sequence[CodedColumn]) -> list[CopyCounts]:
    """Of each synthesis, by all of these columns; missing is a level."""
    records = [len(table.stored) for table in columns[0].tables]
    codes = radix(columns, records, _LARGEST)
    dtype = np.uint32 if 2 * codes.size <= 1 << 32 else np.uint64
    counts = []
    for synthesis in range(1, len(records)):
        pooled = np.empty(records[0] + records[synthesis], dtype=dtype)
        ends = (slice(0, records[0]), slice(records[0], None))
        for table, end in zip((0, synthesis), ends, strict=True):
            add(codes.readers(table, 2, dtype), slice(0, records[table]), pooled[end])
        pooled[ends[1]] += dtype(1)
        pooled.sort()
        counts.append(add_up([copy_counts(d, s) for d, s in _runs(pooled)]))
    return counts


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
        some = pooled[start:stop]
        first = np.flatnonzero(np.concatenate(([True], (some[1:] ^ some[:-1]) > 1)))
        number = np.diff(first, append=len(some))
        repeated = np.flatnonzero(number > 1)  # who is alone is no copy, and has none
        first, number = first[repeated], number[repeated]
        of_SD = np.concatenate(([0], np.cumsum((some & pooled.dtype.type(1)).astype(np.int32))))
        s = of_SD[first + number] - of_SD[first]
        yield number - s, s
        start = stop
