"""One key set, one target: what is disclosed, what is guessed, and which GT records are exposed."""

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

_ROOMY = 8  # entries of a table for each record: in a larger one most would be 0
_SMALL_TABLE = 1 << 16


@dataclass(frozen=True)
class ExposureFigures:
    """Figures of one key set, target and synthesis: records, and percentage points."""

    disclosed: KeySetDisclosure
    guessed_beyond: float
    guessed_beyond_se: float


@dataclass(frozen=True)
class _BlockCounts:
    """Counts that add up over key combinations; guesses are None where they are of draws."""

    disclosed: DisclosedCounts
    by_SD: GuessCounts | None
    by_others: GuessCounts | None

    @classmethod
    def empty(cls, synthesis: Synthesis) -> _BlockCounts:
        """Count no key combination."""
        nobody = GuessCounts(Grouped.empty(), Grouped.empty())
        return cls(
            DisclosedCounts.empty(synthesis.chances),
            None if synthesis.sizes.synthetic_is_drawn else nobody,
            None if synthesis.sizes.others_are_drawn else nobody,
        )


@dataclass(frozen=True)
class _Part:
    """One target, and some key combinations of a set, numbered from 0, with their records."""

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
        return sum(of_table.stop - of_table.start for of_table in self.block.records)

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
        """Return the position of each record in a table (targets, q), row by row."""
        cells = self.t(table).astype(np.int64)
        cells *= self.keys
        cells += self.key_set.q[table][self.block.records[table]]
        cells -= self.block.q.start
        return cells

    def count(self, cells: IntArray) -> IntArray:
        """Return the records of each cell (shape: targets, q)."""
        counts = np.bincount(cells, minlength=self.levels * self.keys)
        return counts.astype(np.int32).reshape(self.levels, self.keys)

    def expose(self, exposed: ExposedRecords, sizes: Codes) -> None:
        """Add that the GT records of this part are exposed by sets of these sizes, too."""
        records, rows = self.block.records[0], self.key_set.rows[0]
        exposed.sizes[records if rows is None else rows[records]] |= sizes


def measure_key_set(
    key_set: KeySet,
    target: ExposureTarget,
    syntheses: Sequence[Synthesis],
    support: int,
    exposed: Sequence[ExposedRecords],
    of_keys: Sequence[KeySetKeyCounts],
) -> list[ExposureFigures]:
    """Return the figures in each synthesis; who is exposed with so much `support` is added to `exposed`."""
    counts = [[_BlockCounts.empty(synthesis)] for synthesis in syntheses]
    cells: list[list[FrequencyTable]] = [[] for _ in syntheses]
    for block in key_set.runs.blocks(target.column.size):
        part = _Part(key_set, block, target)
        in_tables = part.keys * part.levels <= max(_SMALL_TABLE, _ROOMY * part.records)
        count_part = _count_tables if in_tables else _count_cells
        for i, (of_part, f) in enumerate(count_part(part, syntheses, support, exposed)):
            counts[i].append(of_part)
            cells[i] += [f] if f is not None else []
    return [
        _figures(add_up(counts[i]), of_keys[i], cells[i], target.guessing[i], synthesis)
        for i, synthesis in enumerate(syntheses)
    ]


def _figures(
    counts: _BlockCounts,
    of_keys: KeySetKeyCounts,
    cells: Sequence[FrequencyTable],
    guessing: Guessing,
    synthesis: Synthesis,
) -> ExposureFigures:
    by_SD = by_others = DrawnGuessCounts.empty()
    if cells:
        f = _joined(cells)
        drawn = count_drawn_guesses(f, f.d, guessing.no_guess, guessing.sizes)
        by_SD, by_others = drawn[0] or by_SD, drawn[1] or by_others
    N_d = guessing.sizes.N_d
    right, right_others, error = guessing.compare_guesses(
        counts.by_SD or by_SD,
        counts.by_others or by_others,
        of_keys.with_others,
        N_d,
        guessing.sizes.n,
    )
    return ExposureFigures(
        disclosure_of_key_set(counts.disclosed, of_keys, synthesis.chances),
        percent(right - right_others, N_d * SCALE),
        error,
    )


def _count_tables(
    part: _Part, syntheses: Sequence[Synthesis], support: int, exposed: Sequence[ExposedRecords]
) -> Iterator[tuple[_BlockCounts, FrequencyTable | None]]:
    """By tables with a row for each target level."""
    cells = part.cells(0)
    d, d_q = part.count(cells), part.counts(0)
    of_GT = Modes.from_table(d)
    alone = of_GT.largest == d_q
    columns = len(part.key_set.columns)
    for guessing, synthesis, of_synthesis in zip(part.target.guessing, syntheses, exposed, strict=True):
        s, s_q = part.count(part.cells(synthesis.table)), part.counts(synthesis.table)
        of_SD = Modes.from_table(s)
        certain = (of_SD.largest == s_q) & (s_q > 0)
        by_SD, by_others = (of_synthesis.sizes.dtype.type(digit) for digit in of_synthesis.digits(columns))
        sizes = of_SD.are_largest * ((certain & (s_q >= support)) * by_SD)
        sizes |= of_GT.are_largest * ((alone & (d_q > support)) * by_others)
        if sizes.any():
            part.expose(of_synthesis, sizes.ravel().take(cells))
        right = of_SD.records_of(d)
        of_cells = CellCounts(d, s, d_q, s_q, right[certain], s_q[certain], int(d_q[alone].sum()))
        drawn, no_guess = synthesis.sizes, guessing.no_guess
        yield (
            _BlockCounts(
                disclosed_counts(of_cells, synthesis.chances),
                None if drawn.synthetic_is_drawn else guess_counts_of_table(d, s, of_SD, right, no_guess),
                None if drawn.others_are_drawn else guess_counts_of_table_without_self(d, of_GT, no_guess),
            ),
            _cells_of_tables(d, s, part) if drawn.something_is_drawn else None,
        )


def _count_cells(
    part: _Part, syntheses: Sequence[Synthesis], support: int, exposed: Sequence[ExposedRecords]
) -> Iterator[tuple[_BlockCounts, FrequencyTable | None]]:
    """By the cells that occur, where a table of all would be mostly empty."""
    columns = len(part.key_set.columns)
    q, t, d_q = part.q(0), part.t(0), part.counts(0)
    for guessing, synthesis, of_synthesis in zip(part.target.guessing, syntheses, exposed, strict=True):
        s_q = part.counts(synthesis.table)
        f = _cells([q, part.q(synthesis.table)], [t, part.t(synthesis.table)], d_q, s_q, part.levels)
        certain, certain_in_GT = (f.s == f.s_q) & (f.s > 0), (f.d == f.d_q) & (f.d > 0)
        sizes = np.zeros(len(q), dtype=of_synthesis.sizes.dtype)
        by_SD, by_others = of_synthesis.digits(columns)
        for where, digit in (
            (certain & (f.s >= support), by_SD),
            (certain_in_GT & (f.d > support), by_others),
        ):
            level = np.full(part.keys, -1)  # the one level of each q
            level[f.q[where]] = f.t[where]
            sizes |= (level[q] == t) * sizes.dtype.type(digit)
        part.expose(of_synthesis, sizes)
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


def _cells(
    q: Sequence[IntArray], t: Sequence[Codes], d_q: IntArray, s_q: IntArray, levels: int
) -> FrequencyTable:
    """Return the cells of GT and one SD, either of which may have no record here."""
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
        d_q=d_q[key],
        s_q=s_q[key],
        N_d=len(q[0]),
        N_s=len(q[1]),
        keys=len(d_q),
        targets=levels,
    )


def _cells_of_tables(d: IntArray, s: IntArray, part: _Part) -> FrequencyTable:
    """Return the cells of tables (targets, q) in which a record is; each q by its number in the set."""
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


def _joined(parts: Sequence[FrequencyTable]) -> FrequencyTable:
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("q", "t", "d", "s", "d_q", "s_q")
    }
    return replace(parts[0], **columns)
