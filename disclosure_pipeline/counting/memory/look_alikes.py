"""Key combinations that look the same, counted as one with their number (`FrequencyTable.alike`).

Most key combinations have few records: some thousands of classes stand for millions, and the formulas run on
few cells. With exclusions or a band every level matters, and a key combination stands for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.counts import Target, TargetCounts, count_target, find_key_levels
from disclosure_pipeline.measures.exact import Grouped, IntArray, Mask, add_up, sum_by_position
from disclosure_pipeline.measures.frequency import FrequencyTable, first_of_run, run_lengths, tabulate_cells
from disclosure_pipeline.measures.samples import Sizes

_FEW = 3  # records of a table in a cell of a class
_BASE = _FEW + 2  # for a digit of d, or of s: more than a few are the last
_LOOKS = _BASE * _BASE
_FIELD = 4  # bits
_MOST_CELLS = (1 << _FIELD) - 1
_TOO_MANY = 1 << 60


@dataclass(frozen=True)
class LookAlikes:
    """Classes of key combinations that look the same.

    A cell looks like its d and s, each at most three. The code of a class has a field for each look: how many
    cells have it; its lowest field is the look of the missing level. `alike`: how many key combinations have
    each code. `cells`: how many cells there are, by (position of the code * looks + look) * levels + t.
    """

    codes: IntArray
    alike: IntArray
    cells: Grouped
    levels: int

    @classmethod
    def joined(cls, parts: Sequence[LookAlikes]) -> LookAlikes:
        """Add up the classes of several parts."""
        number, codes = pd.factorize(np.concatenate([part.codes for part in parts]))
        own = np.split(number, np.cumsum([len(part.codes) for part in parts])[:-1])
        cells = [part.renumber(of_part) for part, of_part in zip(parts, own, strict=True)]
        alike = sum_by_position(number, np.concatenate([part.alike for part in parts]), len(codes))
        return cls(codes, alike, Grouped.joined(cells), parts[0].levels)

    def renumber(self, number: IntArray) -> Grouped:
        """Return the cells by another number of each code."""
        unit = _LOOKS * self.levels
        code, cell = np.divmod(self.cells.groups, unit)
        return Grouped(number[code] * unit + cell, self.cells.sums)

    def tabulate(self, alone: IntArray, sizes: Sizes) -> FrequencyTable:
        """Return the cells, and those of the records that are `alone`."""
        rows, t = np.divmod(self.cells.groups, self.levels)
        number, look = np.divmod(rows, _LOOKS)
        d, s = np.divmod(look, _BASE)
        return tabulate_classes(number, t, d, s, self.cells.sums, self.alike, alone, sizes, self.levels)


def tabulate_classes(
    q: IntArray,
    t: IntArray,
    d: IntArray,
    s: IntArray,
    n: IntArray,
    alike: IntArray,
    alone: IntArray,
    sizes: Sizes,
    levels: int,
) -> FrequencyTable:
    """Return the cells of classes, whose numbers are q; records that are `alone` become the first two."""
    some = np.flatnonzero(alone)
    d, s = (np.concatenate((some == table, of_table)) for table, of_table in enumerate((d, s)))
    f = FrequencyTable(
        np.concatenate((np.arange(len(some)), q + len(some))),
        np.concatenate((np.zeros(len(some), dtype=np.int64), t)),
        d,
        s,
        d,
        s,
        sizes.N_d,
        sizes.N_s,
        len(some) + len(alike),
        levels,
        np.concatenate((alone[some], n)),
        np.concatenate((alone[some], alike)),
    )
    return replace(f, d_q=f.at_cells(f.sum_by_q(d)), s_q=f.at_cells(f.sum_by_q(s)))


@dataclass(frozen=True)
class CellCounts:
    """Counts of a target in a synthesis, to be added up: of classes, and of the `others`.

    `alone`: the GT and SD records that share their key combination with no record.
    """

    classes: LookAlikes
    alone: IntArray
    others: list[TargetCounts]


def finish_target(counts: CellCounts, target: Target, synthesis: int, keys: int) -> TargetCounts:
    """Return the counts of a target by this number of keys, once all its cells are counted."""
    f = counts.classes.tabulate(counts.alone, target.sizes(synthesis))
    nothing = (Grouped.empty(),) * keys
    of_classes = [count_target(f, nothing, target, synthesis)] if f.keys else []
    return add_up([*counts.others, *of_classes])


def count_cells(
    q: IntArray,
    t: IntArray,
    counts: Sequence[IntArray],
    target: Target,
    synthesis: int,
    key_levels_of: Callable[[IntArray], IntArray],
    alone: Sequence[int] = (0, 0),
) -> CellCounts:
    """Count cells in order of q; those of records that are `alone` may be left out.

    `counts`: the records of GT and of SD in each cell. `key_levels_of` returns the level of each key for an
    array of q (shape: keys, numbers).
    """
    sizes, levels = target.sizes(synthesis), target.column.size
    is_alike, others = np.zeros(len(q), dtype=bool), []
    classes = LookAlikes(np.empty(0, dtype=np.uint64), np.arange(0), Grouped.empty(), levels)
    if len(q) and not (target.exclusions or target.band):
        is_alike, classes = _find_classes(q, t, counts, target)
    if not is_alike.all():
        rest = np.flatnonzero(~is_alike)
        q = q[rest]
        new = first_of_run(q)
        number, q_of = np.cumsum(new) - 1, q[new]
        of_rest = [of_table[rest] for of_table in counts]
        [f] = tabulate_cells(number, t[rest], of_rest, [sizes.N_d, sizes.N_s], levels)
        f, large = find_key_levels(f, target, lambda some: key_levels_of(q_of[some]))
        others.append(count_target(f, large, target, synthesis))
    return CellCounts(classes, np.array(alone), others)


def _list_codes() -> IntArray:
    """Return what a cell of each look adds to the code of its class, then a cell of the missing level."""
    d, s = np.divmod(np.arange(_LOOKS), _BASE)
    field = (_FEW + 1) * d + s
    fits = (d <= _FEW) & (s <= _FEW) & (field < _MOST_CELLS)
    field[~fits] = 0
    codes = np.concatenate((1 << _FIELD * field, field))
    codes[np.tile(~fits, 2)] = _TOO_MANY
    return codes.astype(np.uint64)


_CODES = _list_codes()


def _find_classes(
    q: IntArray, t: IntArray, counts: Sequence[IntArray], target: Target
) -> tuple[Mask, LookAlikes]:
    """Mark the cells of classes: of key combinations of few cells, none too large or to be listed."""
    d, s = counts
    first = np.flatnonzero(first_of_run(q))
    lengths = run_lengths(first, len(q))
    look = np.minimum(d, _FEW + 1) * _BASE + np.minimum(s, _FEW + 1)
    if target.list_cells_above < _FEW:
        look[d > target.list_cells_above] = _LOOKS - 1
    codes = np.add.reduceat(_CODES[look + _LOOKS * (t == target.column.missing)], first)
    fits = (codes < _TOO_MANY) & (lengths <= _MOST_CELLS)
    number = np.empty(len(first), dtype=np.int64)
    number[fits], codes = pd.factorize(codes[fits])
    number[~fits] = len(codes)  # one more class, which is left out
    levels, end = target.column.size, len(codes) * _LOOKS * target.column.size
    cells = np.repeat(number * (_LOOKS * levels), lengths)
    look *= levels
    cells += look
    cells += t
    counted = Grouped.count(cells)
    occurring = slice(np.searchsorted(counted.groups, end))
    kept = Grouped(counted.groups[occurring], counted.sums[occurring])
    return cells < end, LookAlikes(codes, np.bincount(number[fits], minlength=len(codes)), kept, levels)
