"""Every set of some columns, each made from a smaller one by a further column: records as numbers of their q.

The records of a set can be sorted by its q. Whatever columns are added, the records of such a q then stay
together, and so do the numbers of their further q: what is counted of some of them at a time stays in the
processor's cache.

Records that can no longer matter are dropped on the way, with all sets that hold the columns so far. A GT
record that is alone with its q, where SD has no record either, is alone in every larger set: no figure counts
it but as one that nothing is known of. An SD record whose q no GT record has is looked up by nobody.
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

_LARGEST = 1 << 24  # codes that are counted; of more, those that occur are numbered
_WORTH_DROPPING = 0.8  # dropping pays where no larger share of the records is left
_SMALL = 1 << 14  # codes that are not worth numbering anew
_ENTRIES_AT_A_TIME = 1 << 17  # of a table of counts
_RECORDS_AT_A_TIME = 1 << 20


@dataclass(frozen=True)
class KeySetColumn:
    """A column of GT (first) and the syntheses as codes below `size`, one for each record."""

    codes: tuple[Codes, ...]
    size: int

    def of_records(self, records: Sequence[IntArray]) -> KeySetColumn:
        """Return the codes of some records of each table."""
        return KeySetColumn(
            tuple(codes[rows] for codes, rows in zip(self.codes, records, strict=True)), self.size
        )


@dataclass(frozen=True)
class KeyRuns:
    """Parts of the records, each with key combinations of its own; the last entry of each is the end."""

    q: IntArray
    records: tuple[IntArray, ...]

    @classmethod
    def one(cls, size: int, records: Sequence[int]) -> KeyRuns:
        """Return all in one part."""
        return cls(np.array([0, size]), tuple(np.array([0, number]) for number in records))

    def blocks(self, targets: int) -> Iterator[KeyBlock]:
        """Return some parts at a time, so that their records and a table (targets, q) stay in the cache."""
        records = np.add.reduce(self.records)
        filled = self.q * (targets / _ENTRIES_AT_A_TIME) + records / _RECORDS_AT_A_TIME
        block = filled[:-1].astype(np.int64)
        start = np.flatnonzero(np.concatenate(([True], block[1:] != block[:-1])))
        end = np.append(start[1:], len(self.q) - 1)
        bounds = [
            np.stack((positions[start], positions[end]), axis=1).tolist()
            for positions in (self.q, *self.records)
        ]
        for q, *of_tables in zip(*bounds, strict=True):
            if of_tables[0][0] < of_tables[0][1]:
                yield KeyBlock(slice(*q), tuple(slice(*of_table) for of_table in of_tables))


@dataclass(frozen=True)
class KeyBlock:
    """The key combinations of some parts, and their records in each table; there is a GT record."""

    q: slice
    records: tuple[slice, ...]

    @property
    def size(self) -> int:
        """The number of key combinations."""
        return int(self.q.stop - self.q.start)


@dataclass(frozen=True)
class KeySet:
    """The records that matter for a set of columns.

    `columns` are the positions of the columns. `q[i]` are the key combinations, numbers below `size`, of the
    records `rows[i]` of table i, or of all its records where that is None. `counts[i]` are the records of
    table i with each of them. Every GT record that is not here has its q alone in all tables. `runs` are
    parts of the records.
    """

    columns: tuple[int, ...]
    q: tuple[IntArray, ...]
    rows: tuple[IntArray | None, ...]
    counts: tuple[IntArray, ...]
    size: int
    runs: KeyRuns

    @classmethod
    def empty(cls, records: Sequence[int]) -> KeySet:
        """No column at all, which all records of all tables have in common."""
        return cls(
            (),
            tuple(np.zeros(number, dtype=np.int64) for number in records),
            (None,) * len(records),
            tuple(np.array([number]) for number in records),
            1,
            KeyRuns.one(1, records),
        )

    def pick(self, table: int, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Pick the values of the records that matter from those of all records of a table."""
        rows = self.rows[table]
        return values if rows is None else values[rows]

    def sorted_by_key(self) -> tuple[KeySet, tuple[IntArray, ...]]:
        """Return the same of the records that matter alone, each q a part; and which records these are."""
        small = np.min_scalar_type(self.size)
        order = [np.argsort(q.astype(small), kind="stable") for q in self.q]
        rows = tuple(
            places if rows is None else rows[places] for places, rows in zip(order, self.rows, strict=True)
        )
        q = tuple(of_table[places] for of_table, places in zip(self.q, order, strict=True))
        first = tuple(np.concatenate(([0], np.cumsum(counts))) for counts in self.counts)
        runs = KeyRuns(np.arange(self.size + 1), first)
        return KeySet(self.columns, q, (None,) * len(q), self.counts, self.size, runs), rows

    def with_column(self, position: int, column: KeySetColumn) -> KeySet:
        """Return the set with one column more."""
        size = self.size * column.size
        runs = KeyRuns(self.runs.q * column.size, self.runs.records)
        q = []
        for table, codes in enumerate(column.codes):
            joined = self.q[table] * column.size
            joined += self.pick(table, codes)
            q.append(joined)
        if size > _LARGEST:
            numbers, distinct = pd.factorize(np.concatenate(q))
            q, size = np.split(numbers, np.cumsum([len(table) for table in q])[:-1]), len(distinct)
            runs = KeyRuns.one(size, [len(table) for table in q])
        counts = [np.bincount(table, minlength=size) for table in q]
        wider = KeySet((*self.columns, position), tuple(q), self.rows, tuple(counts), size, runs)
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
    """Return the set itself, and all sets of at most `up_to` columns that add later columns to it."""
    yield start
    if len(start.columns) < up_to:
        for position in range(start.columns[-1] + 1, len(columns)):
            yield from iterate_key_sets(columns, start.with_column(position, columns[position]), up_to)


def form_key_set(columns: Sequence[KeySetColumn], positions: Sequence[int], records: Sequence[int]) -> KeySet:
    """One set, column by column."""
    key_set = KeySet.empty(records)
    for position in positions:
        key_set = key_set.with_column(position, columns[position])
    return key_set


MOST_COLUMNS = 32
"""In a set: twice as many binary digits are kept of each GT record."""


@dataclass
class ExposedRecords:
    """For each GT record, of one target and synthesis, the sizes of the sets that expose it.

    Binary digit k - 1 stands for k columns; up_to + k - 1 for the same from the other GT records.
    """

    up_to: int
    sizes: Codes

    @classmethod
    def nobody(cls, records: int, up_to: int) -> ExposedRecords:
        """Nobody is exposed yet."""
        return cls(up_to, np.zeros(records, dtype=np.min_scalar_type((1 << 2 * up_to) - 1)))

    def digits(self, columns: int) -> tuple[int, int]:
        """Return what stands for so many columns in SD, and in the others."""
        return 1 << (columns - 1), 1 << (self.up_to + columns - 1)

    def by_smallest_set(self) -> tuple[list[int], list[int]]:
        """Return GT records by the size of the smallest set that exposes them: 1, 2, … up_to, none."""
        sizes, records = np.unique(self.sizes, return_counts=True)
        by_SD, by_others = [0] * (self.up_to + 1), [0] * (self.up_to + 1)
        for digits, number in zip(sizes.tolist(), records.tolist(), strict=True):
            of_SD, of_others = digits & ((1 << self.up_to) - 1), digits >> self.up_to
            by_SD[_lowest_digit(of_SD, self.up_to)] += number
            by_others[_lowest_digit(of_others, self.up_to)] += number
        return by_SD, by_others

    def of_records(self, rows: IntArray, records: int) -> ExposedRecords:
        """Return the same where these are the records `rows` of so many."""
        sizes = np.zeros(records, dtype=self.sizes.dtype)
        sizes[rows] = self.sizes
        return ExposedRecords(self.up_to, sizes)


def _lowest_digit(digits: int, none: int) -> int:
    return (digits & -digits).bit_length() - 1 if digits else none


@dataclass(frozen=True)
class Synthesis:
    """One synthesis: its table, and what follows from its size."""

    table: int
    sizes: Sizes
    chances: DrawChances


@dataclass(frozen=True)
class ExposureTarget:
    """A target: its codes, its place among the columns that sets are made of, how each SD is guessed from."""

    column: KeySetColumn
    position: int | None
    guessing: tuple[Guessing, ...]

    @classmethod
    def from_column(
        cls, column: KeySetColumn, no_guess: Mask, position: int | None, syntheses: Sequence[Synthesis]
    ) -> ExposureTarget:
        """`no_guess` marks the levels that nobody guesses."""
        counts = [np.bincount(codes, minlength=column.size) for codes in column.codes]
        guessing = [
            Guessing(synthesis.sizes, counts[0], counts[synthesis.table], counts[0], no_guess)
            for synthesis in syntheses
        ]
        return cls(column, position, tuple(guessing))

    def of_records(self, records: Sequence[IntArray]) -> ExposureTarget:
        """Return the same of some records of each table; guesses are of all."""
        return replace(self, column=self.column.of_records(records))
