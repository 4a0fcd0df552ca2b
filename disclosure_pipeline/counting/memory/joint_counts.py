"""The records of each table by the levels of two columns together."""

from __future__ import annotations

import numpy as np

from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.measures.frequency import combine_keys
from disclosure_pipeline.tables.levels import CodedColumn

_LARGEST = 1 << 22  # cells that are counted by their position
_AT_A_TIME = 1 << 17  # records, so that they fit the cache


def count_pair(first: CodedColumn, second: CodedColumn) -> tuple[IntArray, ...]:
    """The number of records of each table (GT first) in each cell, in one order; some cells may be empty."""
    size = first.size * second.size
    if size > _LARGEST:
        return combine_keys([first.codes, second.codes], [first.size, second.size]).counts
    counts = []
    for first_codes, second_codes in zip(first.codes, second.codes, strict=True):
        table_counts = np.zeros(size, dtype=np.int64)
        step = max(_AT_A_TIME, size)
        for start in range(0, len(first_codes), step):
            cells = first_codes[start : start + step].astype(np.intp)
            cells *= second.size
            cells += second_codes[start : start + step]
            table_counts += np.bincount(cells, minlength=size)
        counts.append(table_counts)
    return tuple(counts)
