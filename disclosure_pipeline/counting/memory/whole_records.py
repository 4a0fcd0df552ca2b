"""Records of GT and of one SD that agree in all of some columns: sorted together, equal ones counted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from disclosure_pipeline.counting.counts import KeyCounts
from disclosure_pipeline.counting.memory.distinct_records import (
    DistinctRecords,
    count_distinct,
    find_distinct,
    split_between,
)
from disclosure_pipeline.counting.memory.radix import Codes, Radix, add, radix
from disclosure_pipeline.measures.adding import add_up
from disclosure_pipeline.measures.copies import CopyCounts, copy_counts
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.tables.levels import CodedColumn

LARGEST = 1 << 63  # a code and a binary digit for the table fit 64
_AT_A_TIME = 1 << 17  # records, so that they fit the cache
_TABLE = 1 << 20  # combinations that are counted by a table of all of them


def count_copies(columns: Sequence[CodedColumn]) -> list[CopyCounts]:
    """Of each synthesis, by all of these columns; missing is a level."""
    records = [len(table.stored) for table in columns[0].tables]
    codes = radix(columns, records, LARGEST)
    if codes.size <= min(_TABLE, sum(records)):
        d, *by_synthesis = (_count_codes(codes, table) for table in range(len(records)))
        return [copy_counts(d, s) for s in by_synthesis]
    return [
        add_up([copy_counts(piece.d, piece.s) for piece in _find_distinct(codes, synthesis)])
        for synthesis in range(1, len(records))
    ]


def count_whole_records(columns: Sequence[CodedColumn]) -> tuple[KeyCounts, ...]:
    """Of each synthesis, all that the keys tell where they are all of these columns."""
    records = [len(table.stored) for table in columns[0].tables]
    codes = radix(columns, records, LARGEST)
    return tuple(count_distinct(_find_distinct(codes, synthesis)) for synthesis in range(1, len(records)))


def _find_distinct(codes: Radix, synthesis: int) -> list[DistinctRecords]:
    pooled = sort_codes(codes, synthesis)
    return [find_distinct(pooled[some]) for some in split_between(pooled, 2, _AT_A_TIME)]


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
