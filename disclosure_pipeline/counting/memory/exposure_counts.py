"""One key set, one target: what is disclosed, what is guessed, and which GT records are exposed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.counting.memory.key_set_tree import Codes, Column, KeySet
from disclosure_pipeline.measures.exact import IntArray, Mask
from disclosure_pipeline.measures.exposure import (
    Chances,
    Disclosed,
    Guessing,
    KeySetTables,
    disclosed,
    guess_counts_of_table,
    guess_counts_of_table_without_self,
)
from disclosure_pipeline.measures.frequency import FrequencyTable, first_of_run
from disclosure_pipeline.measures.guesses import guess_counts, guess_counts_without_self
from disclosure_pipeline.measures.samples import Sizes

MOST_COLUMNS = 32
"""In a set: twice as many binary digits are kept of each GT record."""

_ROOMY = 4  # entries of a table for each record: in a larger one most would be 0
_SMALL_TABLE = 1 << 16


@dataclass(frozen=True)
class Synthesis:
    """One synthesis: its table, and what follows from its size."""

    table: int
    sizes: Sizes
    chances: Chances


@dataclass(frozen=True)
class ExposureTarget:
    """A target: its codes, its place among the columns that sets are made of, how each SD is guessed from."""

    column: Column
    position: int | None
    guessing: tuple[Guessing, ...]

    @classmethod
    def of(
        cls, column: Column, no_guess: Mask, position: int | None, syntheses: Sequence[Synthesis]
    ) -> ExposureTarget:
        """`no_guess` marks the levels that nobody guesses."""
        counts = [np.bincount(codes, minlength=column.size) for codes in column.codes]
        guessing = [Guessing(of.sizes, counts[0], counts[of.table], no_guess) for of in syntheses]
        return cls(column, position, tuple(guessing))


@dataclass(frozen=True)
class ExposureFigures:
    """Of one key set, target and synthesis: records, and percentage points."""

    disclosed: Disclosed
    guessed_beyond: float


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
        """What stands for so many columns in SD, and in the others."""
        return 1 << (columns - 1), 1 << (self.up_to + columns - 1)

    def by_smallest_set(self) -> tuple[list[int], list[int]]:
        """GT records by the size of the smallest set that exposes them: 1, 2, … up_to, none.

        In SD, and in the other GT records.
        """
        sizes, records = np.unique(self.sizes, return_counts=True)
        by_SD, by_others = [0] * (self.up_to + 1), [0] * (self.up_to + 1)
        for digits, number in zip(sizes.tolist(), records.tolist(), strict=True):
            of_SD, of_others = digits & ((1 << self.up_to) - 1), digits >> self.up_to
            by_SD[_lowest_digit(of_SD, self.up_to)] += number
            by_others[_lowest_digit(of_others, self.up_to)] += number
        return by_SD, by_others

    def add(self, rows: IntArray | None, sizes: Codes) -> None:
        """Some records, None for all, are exposed by sets of these sizes, too."""
        if rows is None:
            self.sizes |= sizes
        else:
            self.sizes[rows] |= sizes


def _lowest_digit(digits: int, none: int) -> int:
    return (digits & -digits).bit_length() - 1 if digits else none


def measure_key_set(
    key_set: KeySet,
    target: ExposureTarget,
    syntheses: Sequence[Synthesis],
    support: int,
    exposed: Sequence[ExposedRecords],
) -> list[ExposureFigures]:
    """The figures in each synthesis; who is exposed with so much `support` is added to `exposed`."""
    records = sum(map(len, key_set.q))
    if key_set.size * target.column.size <= max(_SMALL_TABLE, _ROOMY * records):
        return _measure_tables(key_set, target, syntheses, support, exposed)
    return [
        _measure_cells(key_set, target, i, synthesis, support, exposed[i])
        for i, synthesis in enumerate(syntheses)
    ]


def _measure_tables(
    key_set: KeySet,
    target: ExposureTarget,
    syntheses: Sequence[Synthesis],
    support: int,
    exposed: Sequence[ExposedRecords],
) -> list[ExposureFigures]:
    """By tables with a row for each target level."""

    def cells_of(table: int) -> IntArray:
        cells = key_set.pick(table, target.column.codes[table]).astype(np.int64)
        cells *= key_set.size
        cells += key_set.q[table]
        return cells

    def count(cells: IntArray) -> IntArray:
        shape = (target.column.size, key_set.size)
        return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)

    cells = cells_of(0)
    d, d_q = count(cells), key_set.counts[0]
    figures = []
    for synthesis, guessing, of_synthesis in zip(syntheses, target.guessing, exposed, strict=True):
        cells_SD = cells_of(synthesis.table)
        s, s_q = count(cells_SD), key_set.counts[synthesis.table]
        tables = KeySetTables(d, s, d_q, s_q, d_q, s_q)
        by_SD, by_others = of_synthesis.digits(len(key_set.columns))
        sizes = ((s == s_q) & (s_q >= support)).astype(of_synthesis.sizes.dtype)
        sizes *= sizes.dtype.type(by_SD)
        sizes |= ((d == d_q) & (d_q > support)) * sizes.dtype.type(by_others)
        of_synthesis.add(key_set.rows[0], sizes.ravel().take(cells))
        sparse = _cells_of_tables(d, s) if synthesis.sizes.something_is_drawn else None
        from_SD, from_others = guessing.drawn_counts(sparse) if sparse else (None, None)
        beyond = guessing.guessed_beyond(
            from_SD or guess_counts_of_table(d, s, guessing.no_guess),
            from_others or guess_counts_of_table_without_self(d, guessing.no_guess),
        )
        figures.append(ExposureFigures(disclosed(tables, synthesis.chances), beyond))
    return figures


def _measure_cells(
    key_set: KeySet,
    target: ExposureTarget,
    i: int,
    synthesis: Synthesis,
    support: int,
    exposed: ExposedRecords,
) -> ExposureFigures:
    """By the cells that occur, where a table of all would be mostly empty."""
    both = (0, synthesis.table)
    q = [key_set.q[table] for table in both]
    t = [key_set.pick(table, target.column.codes[table]) for table in both]
    f = _cells(q, t, key_set.size, target.column.size)
    d_q, s_q = (key_set.counts[table] for table in both)
    tables = KeySetTables(f.d, f.s, f.d_q, f.s_q, d_q, s_q)
    by_SD, by_others = exposed.digits(len(key_set.columns))
    sizes = np.zeros(len(q[0]), dtype=exposed.sizes.dtype)
    for where, digit in (
        ((f.s == f.s_q) & (f.s >= support), by_SD),
        ((f.d == f.d_q) & (f.d > support), by_others),
    ):
        level = np.full(key_set.size, -1)  # the one level of each q
        level[f.q[where]] = f.t[where]
        sizes |= (level[q[0]] == t[0]) * sizes.dtype.type(digit)
    exposed.add(key_set.rows[0], sizes)
    guessing = target.guessing[i]
    from_SD, from_others = guessing.drawn_counts(f)
    beyond = guessing.guessed_beyond(
        from_SD or guess_counts(f, f.d, f.s, guessing.no_guess),
        from_others or guess_counts_without_self(f, f.d, f.d, guessing.no_guess),
    )
    return ExposureFigures(disclosed(tables, synthesis.chances), beyond)


def _cells(q: Sequence[IntArray], t: Sequence[Codes], keys: int, levels: int) -> FrequencyTable:
    """The cells of GT and one SD, either of which may have no record here."""
    counts = [np.bincount(table, minlength=keys) for table in q]
    pooled = np.concatenate(q)
    pooled *= levels
    pooled += np.concatenate(t)
    pooled *= 2
    pooled[len(q[0]) :] += 1  # the last binary digit says whether a record is of SD
    pooled.sort()
    of_SD = np.concatenate(([0], np.cumsum(pooled & 1)))
    pooled >>= 1
    first = np.flatnonzero(first_of_run(pooled)) if len(pooled) else np.empty(0, dtype=np.int64)
    end = np.append(first[1:], len(pooled)) if len(first) else first
    s = of_SD[end] - of_SD[first]
    key, level = np.divmod(pooled[first], levels)
    return FrequencyTable(
        q=key,
        t=level,
        d=end - first - s,
        s=s,
        d_q=counts[0][key],
        s_q=counts[1][key],
        N_d=len(q[0]),
        N_s=len(q[1]),
        keys=keys,
        targets=levels,
    )


def _cells_of_tables(d: IntArray, s: IntArray) -> FrequencyTable:
    """The cells of tables (targets, q) in which a record is."""
    targets, keys = d.shape
    q, t = np.nonzero((d.T > 0) | (s.T > 0))
    return FrequencyTable(
        q=q,
        t=t,
        d=d[t, q],
        s=s[t, q],
        d_q=d.sum(axis=0)[q],
        s_q=s.sum(axis=0)[q],
        N_d=int(d.sum()),
        N_s=int(s.sum()),
        keys=keys,
        targets=targets,
    )
