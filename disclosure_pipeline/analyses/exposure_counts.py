"""Figures of one key set and target: what is disclosed and guessed, and which GT records are exposed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from disclosure_pipeline.analyses.key_set_tree import (
    Codes,
    ExposedRecords,
    ExposureTarget,
    KeyBlock,
    KeySet,
    Synthesis,
)
from disclosure_pipeline.measures.drawn_guesses import DrawnGuessCounts, count_drawn_guesses
from disclosure_pipeline.measures.exact import SCALE, Grouped, IntArray, add_up, percent
from disclosure_pipeline.measures.exposure import (
    CellCounts,
    DisclosedCounts,
    KeySetDisclosure,
    KeySetKeyCounts,
    disclosed_counts,
    disclosure_of_key_set,
)
from disclosure_pipeline.measures.frequency import FrequencyTable, first_of_run
from disclosure_pipeline.measures.guesses import (
    GuessCounts,
    Guessing,
    Modes,
    guess_counts,
    guess_counts_of_table,
    guess_counts_of_table_without_self,
    guess_counts_without_self,
)

_ROOMY = 8  # table entries per record: in larger tables most would be 0
_SMALL_TABLE = 1 << 16


@dataclass(frozen=True)
class ExposureFigures:
    """Figures of one key set, target and synthesis: `disclosed` in records, the others percentage points."""

    disclosed: KeySetDisclosure
    guessed_beyond: float
    guessed_beyond_se: float


@dataclass(frozen=True)
class _BlockCounts:
    """Counts that add up over key combinations; guesses are None if they depend on draws."""

    disclosed: DisclosedCounts
    by_SD: GuessCounts | None
    by_others: GuessCounts | None

    @classmethod
    def empty(cls, synthesis: Synthesis) -> _BlockCounts:
        """Return the counts of no key combinations."""
        nobody = GuessCounts(Grouped.empty(), Grouped.empty())
        return cls(
            DisclosedCounts.empty(synthesis.chances),
            None if synthesis.sizes.synthetic_is_drawn else nobody,
            None if synthesis.sizes.others_are_drawn else nobody,
        )


@dataclass(frozen=True)
class _Part:
    """One target, and some key combinations of a set (numbered from 0) with their records."""

    key_set: KeySet
    block: KeyBlock
    target: ExposureTarget

    @property
    def keys(self) -> int:
        return self.block.size

    @property
    def levels(self) -> int:
        return self.target.column.size

    @property
    def records(self) -> int:
        return sum(table.stop - table.start for table in self.block.records)

    def q(self, table: int) -> IntArray:
        q = self.key_set.q[table][self.block.records[table]]
        return q - self.block.q.start if self.block.q.start else q

    def t(self, table: int) -> Codes:
        codes, rows, records = (
            self.target.column.codes[table],
            self.key_set.rows[table],
            self.block.records[table],
        )
        return codes[records] if rows is None else codes[rows[records]]

    def counts(self, table: int) -> IntArray:
        return self.key_set.counts[table][self.block.q]

    def cells(self, table: int) -> IntArray:
        """Return the position of each record in a flattened table (targets, q)."""
        cells = self.t(table).astype(np.int64)
        cells *= self.keys
        cells += self.key_set.q[table][self.block.records[table]]
        cells -= self.block.q.start
        return cells

    def count(self, cells: IntArray) -> IntArray:
        """Count the records of each cell (shape: targets, q)."""
        counts = np.bincount(cells, minlength=self.levels * self.keys)
        return counts.astype(np.int32).reshape(self.levels, self.keys)

    def expose(self, exposed: ExposedRecords, sizes: Codes) -> None:
        """Record that sets of these sizes expose the GT records of this part."""
        records, rows = self.block.records[0], self.key_set.rows[0]
        exposed.sizes[records if rows is None else rows[records]] |= sizes


def measure_key_set(
    key_set: KeySet,
    target: ExposureTarget,
    syntheses: Sequence[Synthesis],
    support: int,
    exposed: Sequence[ExposedRecords],
    keys_by_synthesis: Sequence[KeySetKeyCounts],
) -> list[ExposureFigures]:
    """Return the figures for each synthesis, and add the GT records exposed with `support` to `exposed`."""
    counts = [[_BlockCounts.empty(synthesis)] for synthesis in syntheses]
    cells: list[list[FrequencyTable]] = [[] for _ in syntheses]
    for block in key_set.runs.iterate_blocks(target.column.size):
        part = _Part(key_set, block, target)
        in_tables = part.keys * part.levels <= max(_SMALL_TABLE, _ROOMY * part.records)
        count_part = _count_tables if in_tables else _count_cells
        for i, (part_counts, f) in enumerate(count_part(part, syntheses, support, exposed)):
            counts[i].append(part_counts)
            cells[i] += [f] if f is not None else []
    return [
        _calculate_figures(add_up(counts[i]), keys_by_synthesis[i], cells[i], target.guessing[i], synthesis)
        for i, synthesis in enumerate(syntheses)
    ]


def _calculate_figures(
    counts: _BlockCounts,
    keys: KeySetKeyCounts,
    cells: Sequence[FrequencyTable],
    guessing: Guessing,
    synthesis: Synthesis,
) -> ExposureFigures:
    by_SD = by_others = DrawnGuessCounts.empty()
    if cells:
        f = _join_cells(cells)
        drawn = count_drawn_guesses(f, f.d, guessing.no_guess, guessing.sizes)
        by_SD, by_others = drawn[0] or by_SD, drawn[1] or by_others
    N_d = guessing.sizes.N_d
    right, right_others, error = guessing.compare_guesses(
        counts.by_SD or by_SD,
        counts.by_others or by_others,
        keys.with_others,
        N_d,
        guessing.sizes.n,
    )
    return ExposureFigures(
        disclosure_of_key_set(counts.disclosed, keys, synthesis.chances),
        percent(right - right_others, N_d * SCALE),
        error,
    )


def _count_tables(
    part: _Part, syntheses: Sequence[Synthesis], support: int, exposed: Sequence[ExposedRecords]
) -> Iterator[tuple[_BlockCounts, FrequencyTable | None]]:
    """Count in dense tables with a row for each target level."""
    cells = part.cells(0)
    d, d_q = part.count(cells), part.counts(0)
    modes_GT = Modes.from_table(d)
    alone = modes_GT.largest == d_q
    columns = len(part.key_set.columns)
    for guessing, synthesis, exposed_records in zip(part.target.guessing, syntheses, exposed, strict=True):
        s, s_q = part.count(part.cells(synthesis.table)), part.counts(synthesis.table)
        modes_SD = Modes.from_table(s)
        certain = (modes_SD.largest == s_q) & (s_q > 0)
        dtype = exposed_records.sizes.dtype
        by_SD, by_others = (dtype.type(bit) for bit in exposed_records.bits_of(columns))
        sizes = modes_SD.are_largest * ((certain & (s_q >= support)) * by_SD)
        sizes |= modes_GT.are_largest * ((alone & (d_q > support)) * by_others)
        if sizes.any():
            part.expose(exposed_records, sizes.ravel().take(cells))
        right = modes_SD.records_of(d)
        cell_counts = CellCounts(d, s, d_q, s_q, right[certain], s_q[certain], int(d_q[alone].sum()))
        drawn, no_guess = synthesis.sizes, guessing.no_guess
        yield (
            _BlockCounts(
                disclosed_counts(cell_counts, synthesis.chances),
                None if drawn.synthetic_is_drawn else guess_counts_of_table(d, s, modes_SD, right, no_guess),
                None if drawn.others_are_drawn else guess_counts_of_table_without_self(d, modes_GT, no_guess),
            ),
            _list_table_cells(d, s, part) if drawn.something_is_drawn else None,
        )


def _count_cells(
    part: _Part, syntheses: Sequence[Synthesis], support: int, exposed: Sequence[ExposedRecords]
) -> Iterator[tuple[_BlockCounts, FrequencyTable | None]]:
    """Count the cells that occur, where dense tables would be mostly empty."""
    columns = len(part.key_set.columns)
    q, t, d_q = part.q(0), part.t(0), part.counts(0)
    for guessing, synthesis, exposed_records in zip(part.target.guessing, syntheses, exposed, strict=True):
        s_q = part.counts(synthesis.table)
        f = _list_cells([q, part.q(synthesis.table)], [t, part.t(synthesis.table)], d_q, s_q, part.levels)
        certain, certain_in_GT = (f.s == f.s_q) & (f.s > 0), (f.d == f.d_q) & (f.d > 0)
        sizes = np.zeros(len(q), dtype=exposed_records.sizes.dtype)
        by_SD, by_others = exposed_records.bits_of(columns)
        for where, bit in (
            (certain & (f.s >= support), by_SD),
            (certain_in_GT & (f.d > support), by_others),
        ):
            level = np.full(part.keys, -1)  # the single level of each q
            level[f.q[where]] = f.t[where]
            sizes |= (level[q] == t) * sizes.dtype.type(bit)
        part.expose(exposed_records, sizes)
        drawn = synthesis.sizes
        alone = int(f.d[certain_in_GT].sum())
        cells = CellCounts(f.d, f.s, f.d_q, f.s_q, f.d[certain], f.s[certain], alone, f.first)
        yield (
            _BlockCounts(
                disclosed_counts(cells, synthesis.chances),
                None if drawn.synthetic_is_drawn else guess_counts(f, f.d, f.s, guessing.no_guess),
                None if drawn.others_are_drawn else guess_counts_without_self(f, f.d, f.d, guessing.no_guess),
            ),
            replace(f, q=f.q + part.block.q.start) if drawn.something_is_drawn else None,
        )


def _list_cells(
    q: Sequence[IntArray], t: Sequence[Codes], d_q: IntArray, s_q: IntArray, levels: int
) -> FrequencyTable:
    """Return the cells of GT and one SD, either of which may be empty."""
    pooled = np.concatenate(q)
    pooled *= levels
    pooled += np.concatenate(t)
    pooled *= 2
    pooled[len(q[0]) :] += 1  # the last bit marks records of SD
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
        d_q=d_q[key],
        s_q=s_q[key],
        N_d=len(q[0]),
        N_s=len(q[1]),
        keys=len(d_q),
        targets=levels,
    )


def _list_table_cells(d: IntArray, s: IntArray, part: _Part) -> FrequencyTable:
    """Return the cells of tables (targets, q) that have records, with q numbered as in the set."""
    q, t = np.nonzero((d.T > 0) | (s.T > 0))
    return FrequencyTable(
        q=q + part.block.q.start,
        t=t,
        d=d[t, q].astype(np.int64),
        s=s[t, q].astype(np.int64),
        d_q=d.sum(axis=0)[q],
        s_q=s.sum(axis=0)[q],
        N_d=int(d.sum()),
        N_s=int(s.sum()),
        keys=part.keys,
        targets=part.levels,
    )


def _join_cells(parts: Sequence[FrequencyTable]) -> FrequencyTable:
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("q", "t", "d", "s", "d_q", "s_q")
    }
    return replace(parts[0], **columns)
