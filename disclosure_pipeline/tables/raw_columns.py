"""The columns of a raw table, read as the data dictionary says, and what was changed of them for that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from disclosure_pipeline.runtime.machine import run_in_threads, threads_for
from disclosure_pipeline.tables.canonical import Levels, read_levels
from disclosure_pipeline.tables.coding import ROUNDING
from disclosure_pipeline.tables.dictionary import Column, Dictionary
from disclosure_pipeline.tables.encoding import Encoded, arrow_codes, encode, smallest_code_type
from disclosure_pipeline.tables.levels import CodedColumn, IntArray


@dataclass(frozen=True)
class Change:
    """What was done to bring values of a column into canonical form, and to how many records."""

    table: str
    column: str
    rule: str
    records: int


@dataclass(frozen=True)
class RawColumn:
    """A column of a raw table: its codes, and its levels as the dictionary reads them.

    Of a table that is read in batches there is a code for each level, and `counts` are the records with
    each; else they are counted.
    """

    encoded: Encoded
    levels: Levels
    counts: IntArray | None = None

    def counted(self, codes: IntArray) -> IntArray:
        """Count the records with each level, and last those missing, from the codes as pandera has them."""
        if self.counts is None:
            known = np.may_share_memory(codes, self.encoded.codes)
            return (self.encoded if known else Encoded(codes, self.encoded.levels)).counts
        occurs = np.zeros(len(self.counts), dtype=bool)
        occurs[codes] = True  # -1, missing, is the last
        return np.where(occurs, self.counts, 0)


def read_columns(raw: pd.DataFrame, dictionary: Dictionary) -> dict[str, RawColumn]:
    """Return the columns of a raw table that the dictionary describes, on threads."""

    def read(name: str) -> RawColumn:
        encoded = encode(raw[name])
        _ = encoded.counts  # kept, while this is a thread of its own
        return RawColumn(encoded, read_levels(dictionary[name], encoded.levels))

    names = [name for name in dictionary if name in raw.columns]
    columns = run_in_threads([partial(read, name) for name in names], threads_for(len(raw)))
    return dict(zip(names, columns, strict=True))


def canonical_records(column: RawColumn, declared: Column) -> Any:
    """Return the column's records in canonical form: categories, or plain text for identifiers."""
    encoded = column.levels.values.dictionary_encode()
    position = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    levels = encoded.dictionary
    occurs = np.zeros(len(levels) + 1, dtype=bool)
    occurs[position[column.encoded.counts[:-1] > 0]] = True  # -1, missing, is the last
    used = np.flatnonzero(occurs[:-1])
    if declared.type == "ordered category" and declared.level_names is not None:
        order = {name: i for i, name in enumerate(declared.level_names)}
        kept = len(order)  # unknown levels that are kept come last
        used = np.array(
            sorted(used, key=lambda code: order.get(levels[int(code)].as_py(), kept)), dtype=np.int64
        )
    renumber = np.full(len(levels) + 1, -1)
    renumber[used] = np.arange(len(used))
    codes = _look_up(
        np.append(renumber[position], -1).astype(smallest_code_type(len(used))), column.encoded.codes
    )
    if declared.type == "text identifier":  # nearly as many levels as records: they stay in Arrow
        return pd.arrays.ArrowExtensionArray(
            pa.DictionaryArray.from_arrays(arrow_codes(codes), levels.take(pa.array(used)))
        )
    categories = pd.Index(levels.take(pa.array(used)).to_pandas())
    return pd.Categorical.from_codes(codes, categories, ordered=declared.type == "ordered category")


def _look_up(new: IntArray, codes: IntArray) -> IntArray:
    """Return the new code of each; the same array where every code stays as it is."""
    same = new.dtype == codes.dtype and np.array_equal(new[:-1], np.arange(len(new) - 1))
    return codes if same else new[codes]


def rounding_changes(columns: Iterable[CodedColumn], tables: Sequence[str]) -> list[Change]:
    """Count each table's records whose number became another that differs by rounding noise only."""
    return [
        Change(table, column.name, ROUNDING, stored.rounded)
        for column in columns
        for table, stored in zip(tables, column.tables, strict=True)
        if stored.rounded
    ]


def changes_of_column(column: RawColumn, table: str, name: str) -> list[Change]:
    """Return what was done to a column, an entry for each rule that changed records."""
    counts = column.encoded.counts if column.counts is None else column.counts
    counted = {
        rule: int(counts[np.append(where, False)].sum()) for rule, where in column.levels.changed.items()
    }
    return [Change(table, name, rule, records) for rule, records in counted.items() if records]
