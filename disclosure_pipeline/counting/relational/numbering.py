"""Coded records numbered in the order of their codes, which a database does not have by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from disclosure_pipeline.counting.relational.coding import Digits, as_int64, count_rows, int64, word_columns
from disclosure_pipeline.counting.relational.transfer import fetch_integers, upload_temporarily
from disclosure_pipeline.measures.exact import IntArray

_RANGE_BITS = 12  # of the first word; so many ranges at most, of which each is sorted by itself


def number_records(rows: Any, digits: Sequence[Digits], stack: Any) -> Any:
    """Coded records, each with its number r in its table, from 0 on, in the order of the codes.

    No table is sorted as a whole: records are numbered within ranges of the codes, each of which begins where
    the records before it end. What is uploaded for that is there as long as the stack.
    """
    import ibis

    bits = max(place.shift + place.bits for place in digits if place.word == 0)
    mask = ((1 << bits) - 1) & ~((1 << max(bits - _RANGE_BITS, 0)) - 1)
    parted = rows.mutate(range=rows["q0"] & int64(mask))
    counts = fetch_integers(parted.group_by("i", "range").aggregate(n=count_rows))
    starts = _find_starts(counts["i"], counts["range"], counts["n"])
    uploaded = stack.enter_context(upload_temporarily(rows.get_backend(), starts))
    in_range = [as_int64(parted["i"]) == uploaded["table"], parted["range"] == uploaded["of_range"]]
    joined = parted.inner_join(uploaded, in_range)
    within = ibis.row_number().over(group_by=["i", "range"], order_by=word_columns(rows))
    numbered = joined.mutate(within=within)
    return numbered.select("i", *word_columns(rows), r=as_int64(numbered["start"] + numbered["within"]))


def _find_starts(table: IntArray, ranges: IntArray, records: IntArray) -> Any:
    """The number of the first record of each range of each table: rows (table, of_range, start)."""
    order = np.lexsort([ranges, table])
    table, ranges, records = table[order], ranges[order], records[order]
    before = np.cumsum(records) - records
    first_of_table = before[np.searchsorted(table, table)]
    columns = {"table": table, "of_range": ranges, "start": before - first_of_table}
    return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})
