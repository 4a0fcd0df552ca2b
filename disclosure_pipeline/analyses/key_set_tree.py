"""All sets of some columns, each formed from a smaller one by adding a column; records as numbers of their q.

The records of a set can be sorted by q. Whatever columns are added, the records of each q then stay together,
and so do the numbers of their new q, so that counting some of them at a time stays in the processor's cache.

Records that no longer matter are dropped from all larger sets. A GT record that is alone with its q, with no
SD record either, is alone in every larger set and adds to no figure. An SD record whose q no GT record has is
never looked up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from disclosure_pipeline.measures.exact import IntArray, Mask
from disclosure_pipeline.measures.exposure import DrawChances
from disclosure_pipeline.measures.guesses import Guessing
from disclosure_pipeline.measures.samples import Sizes

Codes = npt.NDArray[np.integer]

_LARGEST = 1 << 24  # the most codes; if there are more, only those that occur are numbered
_WORTH_DROPPING = 0.8  # records are dropped if at most this share of them is left
_SMALL = 1 << 14  # codes that are too few to be worth renumbering
_ENTRIES_AT_A_TIME = 1 << 17  # of a table of counts
_RECORDS_AT_A_TIME = 1 << 20


@dataclass(frozen=True)
class KeySetColumn:
    """A column of GT (first) and the syntheses as codes below `size`, one per record."""

    codes: tuple[Codes, ...]
    size: int

    def select(self, records: Sequence[IntArray]) -> KeySetColumn:
        """Return the column of some records of each table."""
        return KeySetColumn(
            tuple(codes[rows] for codes, rows in zip(self.codes, records, strict=True)), self.size
        )


@dataclass(frozen=True)
class KeyRuns:
    """The starts of parts of the records, which share no key combination; the last entries are the ends."""

    q: IntArray
    records: tuple[IntArray, ...]

    @classmethod
    def whole(cls, size: int, records: Sequence[int]) -> KeyRuns:
        """Return a single part with all records."""
        return cls(np.array([0, size]), tuple(np.array([0, number]) for number in records))

    def iterate_blocks(self, targets: int) -> Iterator[KeyBlock]:
        """Yield several parts at a time, whose records and table (targets, q) fit into the cache."""
        records = np.add.reduce(self.records)
        filled = self.q * (targets / _ENTRIES_AT_A_TIME) + records / _RECORDS_AT_A_TIME
        block = filled[:-1].astype(np.int64)
        start = np.flatnonzero(np.concatenate(([True], block[1:] != block[:-1])))
        end = np.append(start[1:], len(self.q) - 1)
        bounds = [
            np.stack((positions[start], positions[end]), axis=1).tolist()
            for positions in (self.q, *self.records)
        ]
        for q, *tables in zip(*bounds, strict=True):
            if tables[0][0] < tables[0][1]:
                yield KeyBlock(slice(*q), tuple(slice(*table) for table in tables))


@dataclass(frozen=True)
class KeyBlock:
    """The key combinations of some parts, and their records in each table, of which GT has at least one."""

    q: slice
    records: tuple[slice, ...]

    @property
    def size(self) -> int:
        """The number of key combinations."""
        return int(self.q.stop - self.q.start)


@dataclass(frozen=True)
class KeySet:
    """The records that matter for a set of columns.

    `columns` are the positions of the columns. `q[i]` are the key combinations (numbers below `size`) of the
    records `rows[i]` of table i, or of all its records if that is None. `counts[i]` are the numbers of
    records of table i by key combination. GT records that were dropped have their q alone in all tables.
    `runs` are parts of the records.
    """

    columns: tuple[int, ...]
    q: tuple[IntArray, ...]
    rows: tuple[IntArray | None, ...]
    counts: tuple[IntArray, ...]
    size: int
    runs: KeyRuns

    @classmethod
    def empty(cls, records: Sequence[int]) -> KeySet:
        """Return the set without columns, in which all records have the same q."""
        return cls(
            (),
            tuple(np.zeros(number, dtype=np.int64) for number in records),
            (None,) * len(records),
            tuple(np.array([number]) for number in records),
            1,
            KeyRuns.whole(1, records),
        )

    def select(self, table: int, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Select the values of the records that matter from those of all records of a table."""
        rows = self.rows[table]
        return values if rows is None else values[rows]

    def sorted_by_key(self) -> tuple[KeySet, tuple[IntArray, ...]]:
        """Return the set with its records sorted by q, each q being a part, and the rows of these records."""
        small = np.min_scalar_type(self.size)
        order = [np.argsort(q.astype(small), kind="stable") for q in self.q]
        rows = tuple(
            places if rows is None else rows[places] for places, rows in zip(order, self.rows, strict=True)
        )
        q = tuple(q[places] for q, places in zip(self.q, order, strict=True))
        first = tuple(np.concatenate(([0], np.cumsum(counts))) for counts in self.counts)
        runs = KeyRuns(np.arange(self.size + 1), first)
        return KeySet(self.columns, q, (None,) * len(q), self.counts, self.size, runs), rows

    def with_column(self, position: int, column: KeySetColumn) -> KeySet:
        """Return the set with a column added."""
        size = self.size * column.size
        runs = KeyRuns(self.runs.q * column.size, self.runs.records)
        q = []
        for table, codes in enumerate(column.codes):
            joined = self.q[table] * column.size
            joined += self.select(table, codes)
            q.append(joined)
        if size > _LARGEST:
            numbers, distinct = pd.factorize(np.concatenate(q))
            q, size = np.split(numbers, np.cumsum([len(table) for table in q])[:-1]), len(distinct)
            runs = KeyRuns.whole(size, [len(table) for table in q])
        counts = [np.bincount(table, minlength=size) for table in q]
        wider = KeySet((*self.columns, position), tuple(q), self.rows, tuple(counts), size, runs)
        return wider.without_lone_records()

    def without_lone_records(self) -> KeySet:
        """Return the set without records that cannot matter, if dropping them is worth the effort."""
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
        q, rows, first = [], [], []
        for old_q, old_rows, old_first in zip(self.q, self.rows, self.runs.records, strict=True):
            kept_records = np.flatnonzero(kept[old_q])
            first.append(np.searchsorted(kept_records, old_first))
            q.append(number[old_q[kept_records]])
            rows.append(kept_records if old_rows is None else old_rows[kept_records])
        counts = tuple(table[kept] for table in self.counts)
        runs = KeyRuns(np.concatenate(([0], number + 1))[self.runs.q], tuple(first))
        return KeySet(self.columns, tuple(q), tuple(rows), counts, size, runs)


def iterate_key_sets(columns: Sequence[KeySetColumn], start: KeySet, up_to: int) -> Iterator[KeySet]:
    """Yield the set itself, and all sets of at most `up_to` columns that add later columns to it."""
    yield start
    if len(start.columns) < up_to:
        for position in range(start.columns[-1] + 1, len(columns)):
            yield from iterate_key_sets(columns, start.with_column(position, columns[position]), up_to)


def form_key_set(columns: Sequence[KeySetColumn], positions: Sequence[int], records: Sequence[int]) -> KeySet:
    """Form a set of the columns at these positions."""
    key_set = KeySet.empty(records)
    for position in positions:
        key_set = key_set.with_column(position, columns[position])
    return key_set


MOST_COLUMNS = 32
"""The most columns in a set: twice as many bits are stored for each GT record."""


@dataclass
class ExposedRecords:
    """The sizes of the sets that expose each GT record, for one target and synthesis.

    Bit k - 1 stands for k columns; bit up_to + k - 1 for the same from the other GT records.
    """

    up_to: int
    sizes: Codes

    @classmethod
    def nobody(cls, records: int, up_to: int) -> ExposedRecords:
        """Return records that no set exposes."""
        return cls(up_to, np.zeros(records, dtype=np.min_scalar_type((1 << 2 * up_to) - 1)))

    def bits_of(self, columns: int) -> tuple[int, int]:
        """Return the bits of sets of this size: by SD, and by the other GT records."""
        return 1 << (columns - 1), 1 << (self.up_to + columns - 1)

    def count_by_smallest_set(self) -> tuple[list[int], list[int]]:
        """Count GT records by the size of the smallest set that exposes them: 1, 2, …, up_to, none."""
        sizes, records = np.unique(self.sizes, return_counts=True)
        by_SD, by_others = [0] * (self.up_to + 1), [0] * (self.up_to + 1)
        for bits, number in zip(sizes.tolist(), records.tolist(), strict=True):
            by_SD[_find_lowest_bit(bits & ((1 << self.up_to) - 1), self.up_to)] += number
            by_others[_find_lowest_bit(bits >> self.up_to, self.up_to)] += number
        return by_SD, by_others

    def place(self, rows: IntArray, records: int) -> ExposedRecords:
        """Return the same for all `records` GT records, of which these are `rows`."""
        sizes = np.zeros(records, dtype=self.sizes.dtype)
        sizes[rows] = self.sizes
        return ExposedRecords(self.up_to, sizes)


def _find_lowest_bit(bits: int, none: int) -> int:
    return (bits & -bits).bit_length() - 1 if bits else none


@dataclass(frozen=True)
class Synthesis:
    """One synthesis: its table number, its size, and what follows from that."""

    table: int
    sizes: Sizes
    chances: DrawChances


@dataclass(frozen=True)
class ExposureTarget:
    """A target: its codes, its position among the columns of sets, and the guessing from each synthesis."""

    column: KeySetColumn
    position: int | None
    guessing: tuple[Guessing, ...]

    @classmethod
    def from_column(
        cls, column: KeySetColumn, no_guess: Mask, position: int | None, syntheses: Sequence[Synthesis]
    ) -> ExposureTarget:
        """Return the target; `no_guess` marks the levels that nobody guesses."""
        counts = [np.bincount(codes, minlength=column.size) for codes in column.codes]
        guessing = [
            Guessing(synthesis.sizes, counts[0], counts[synthesis.table], counts[0], no_guess)
            for synthesis in syntheses
        ]
        return cls(column, position, tuple(guessing))

    def select(self, records: Sequence[IntArray]) -> ExposureTarget:
        """Return the target of some records of each table; `guessing` remains that of all."""
        return replace(self, column=self.column.select(records))
