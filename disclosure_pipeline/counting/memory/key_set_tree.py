"""Every set of some columns, each made from a smaller one by a further column: records as numbers of their q.

Records that can no longer matter are dropped on the way, with all sets that hold the columns so far. A GT
record that is alone with its q, where SD has no record either, is alone in every larger set: no figure counts
it but as one that nothing is known of. An SD record whose q no GT record has is looked up by nobody.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from disclosure_pipeline.measures.exact import IntArray

Codes = npt.NDArray[np.integer]

_LARGEST = 1 << 24  # codes that are counted; of more, those that occur are numbered
_WORTH_DROPPING = 0.8  # dropping pays where no larger share of the records is left
_SMALL = 1 << 14  # codes that are not worth numbering anew


@dataclass(frozen=True)
class Column:
    """A column of GT (first) and the syntheses as codes below `size`, one for each record."""

    codes: tuple[Codes, ...]
    size: int


@dataclass(frozen=True)
class KeySet:
    """The records that matter for a set of columns.

    `columns` are the positions of the columns. `q[i]` are the key combinations, numbers below `size`, of the
    records `rows[i]` of table i, or of all its records where that is None. `counts[i]` are the records of
    table i with each of them. Every GT record that is not here has its q alone in all tables.
    """

    columns: tuple[int, ...]
    q: tuple[IntArray, ...]
    rows: tuple[IntArray | None, ...]
    counts: tuple[IntArray, ...]
    size: int

    @classmethod
    def nothing(cls, records: Sequence[int]) -> KeySet:
        """No column at all, which all records of all tables have in common."""
        return cls(
            (),
            tuple(np.zeros(number, dtype=np.int64) for number in records),
            (None,) * len(records),
            tuple(np.array([number]) for number in records),
            1,
        )

    def pick(self, table: int, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Of values with an entry for each record of a table those of the records that matter."""
        rows = self.rows[table]
        return values if rows is None else values[rows]

    def with_column(self, position: int, column: Column) -> KeySet:
        """The set with one column more."""
        size = self.size * column.size
        q = []
        for table, codes in enumerate(column.codes):
            joined = self.q[table] * column.size
            joined += self.pick(table, codes)
            q.append(joined)
        if size > _LARGEST:
            numbers, distinct = pd.factorize(np.concatenate(q))
            q, size = np.split(numbers, np.cumsum([len(table) for table in q])[:-1]), len(distinct)
        counts = [np.bincount(table, minlength=size) for table in q]
        wider = KeySet((*self.columns, position), tuple(q), self.rows, tuple(counts), size)
        return wider.without_lone_records()

    def without_lone_records(self) -> KeySet:
        """Without the records that cannot matter, where that is worth the work."""
        d_q, *s = self.counts
        in_SD = np.zeros(self.size, dtype=bool)
        for s_q in s:
            in_SD |= s_q > 0
        kept = (d_q > 1) | ((d_q == 1) & in_SD)
        size = int(np.count_nonzero(kept))
        left = sum(int(table[kept].sum()) for table in self.counts)
        records = sum(map(len, self.q))
        if left > _WORTH_DROPPING * records and (size > self.size // 2 or self.size <= _SMALL):
            return self
        number = np.cumsum(kept) - 1
        q, rows = [], []
        for old_q, old_rows in zip(self.q, self.rows, strict=True):
            some = np.flatnonzero(kept[old_q])
            q.append(number[old_q[some]])
            rows.append(some if old_rows is None else old_rows[some])
        counts = tuple(table[kept] for table in self.counts)
        return KeySet(self.columns, tuple(q), tuple(rows), counts, size)


def iterate_key_sets(columns: Sequence[Column], start: KeySet, up_to: int) -> Iterator[KeySet]:
    """The set itself, and all sets of at most `up_to` columns that add later columns to it."""
    yield start
    if len(start.columns) < up_to:
        for position in range(start.columns[-1] + 1, len(columns)):
            yield from iterate_key_sets(columns, start.with_column(position, columns[position]), up_to)


def form_key_set(columns: Sequence[Column], positions: Sequence[int], records: Sequence[int]) -> KeySet:
    """One set, column by column."""
    key_set = KeySet.nothing(records)
    for position in positions:
        key_set = key_set.with_column(position, columns[position])
    return key_set
