"""Exclusions, where a database counts: one of the key combinations with equal cells is judged for all.

What is excluded at a key combination, and what is left there, depends on its cells and on those of its key
levels that an exclusion names, on nothing else. So the database says which of these occur, and how often;
one of each goes through the formulas of `counts.count_target`, and the result counts that many times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from disclosure_pipeline.counting.counts import CountedCells, TargetCounts, count_target
from disclosure_pipeline.counting.relational.cells import Packing, pack
from disclosure_pipeline.counting.relational.coding import Digits, as_int64, count_rows, int64, word_columns
from disclosure_pipeline.counting.relational.transfer import fetch_rows
from disclosure_pipeline.counting.targets import Target
from disclosure_pipeline.measures.adding import add_up
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.measures.exclusions import CodedExclusions
from disclosure_pipeline.measures.frequency import FrequencyTable

_NO_LIMIT = float("inf")  # of cells that are listed one by one: the database lists them


@dataclass(frozen=True)
class KeyClasses:
    """KeyClasses of key combinations that have the same cells.

    `cells` are the cells of one combination of each class, which begin at `first`.
    A cell is a number of a `Packing`. `key_levels` are the levels that exclusions name, and for all others
    of a key the same one (shape: keys, classes); `number` is how many key combinations a class has.
    """

    cells: IntArray
    first: IntArray
    key_levels: IntArray
    number: IntArray

    def only(self, some: IntArray) -> KeyClasses:
        """Some of the classes, by their positions."""
        ends = np.append(self.first, len(self.cells))
        cells = np.concatenate([self.cells[ends[i] : ends[i + 1]] for i in some])
        first = np.cumsum([0, *(ends[some + 1] - ends[some])])[:-1]
        return KeyClasses(cells, first, self.key_levels[:, some], self.number[some])


def classify_keys(
    cells: Any, synthesis: int, packing: Packing, exclusions: CodedExclusions, digits: Sequence[Digits]
) -> Any:
    """The classes of key combinations, counted: rows (cells, n, x0, x3, …).

    The cells are text; x0, x3, … are the levels of those keys that exclusions name.
    """
    d, s, t = (as_int64(cells[name]) for name in ("n0", f"n{synthesis}", "t"))
    rows = cells.select(*word_columns(cells), d=d, s=s, cell=pack(packing, d, s, t).cast("string"))
    rows = rows.filter((rows["d"] > 0) | (rows["s"] > 0))
    lists = rows.group_by(word_columns(cells)).aggregate(cells=rows["cell"].collect())
    named = {
        f"x{k}": _level_if_named(lists, digits[k], levels) for k, levels in _named_levels(exclusions).items()
    }
    texts = lists.select(cells=lists["cells"].sort().join(","), **named)
    return texts.group_by("cells", *named).aggregate(n=count_rows)


def count_with_exclusions(
    cells: Any, synthesis: int, packing: Packing, target: Target, digits: Sequence[Digits], N: tuple[int, int]
) -> TargetCounts:
    """The counts of a target in a synthesis, but for large cells and pairs, which need every key level."""
    rows = fetch_rows(classify_keys(cells, synthesis, packing, target.exclusions, digits))
    classes = _read_classes(rows, target.exclusions, digits)
    levels = target.occurring_levels(synthesis)
    result: TargetCounts | None = None
    # Each class as often as its number says, from the highest binary digit down: twice as often, once more.
    for digit in reversed(range(int(classes.number.max()).bit_length())):
        selected = np.flatnonzero((classes.number >> digit) & 1)
        parts = [result, result] if result else []
        if len(selected):
            parts.append(_count_once(classes.only(selected), packing, target, levels, N))
        result = add_up([part for part in parts if part])
    assert result is not None
    return result


def cells_left(cells: Any, exclusions: CodedExclusions, digits: Sequence[Digits]) -> Any:
    """The cells that GT has and whose GT records are not excluded."""
    t, d = as_int64(cells["t"]), as_int64(cells["n0"])
    excluded = [t == int64(level) for level in exclusions.target_levels]
    if exclusions.missing_target is not None:
        excluded.append(t == int64(exclusions.missing_target))
    excluded += [_has_level(cells, digits[k], level) for k, level in exclusions.missing_keys]
    excluded += [
        _has_level(cells, digits[k], level) & (t == int64(target_level))
        for k, level, target_level in exclusions.pairs
    ]
    if exclusions.count_over is not None:
        excluded.append(d > int64(exclusions.count_over))
    return cells.filter(d > 0, ~reduce(or_, excluded))


def _level_if_named(keys: Any, digits: Digits, levels: Sequence[int]) -> Any:
    """The level of a key in its place within a word; all bits set, which is no level, if it is not named."""
    level = keys[f"q{digits.word}"] & int64(digits.mask)
    return level.isin([int64(named << digits.shift) for named in levels]).ifelse(level, int64(digits.mask))


def _has_level(cells: Any, digits: Digits, level: int) -> Any:
    return (cells[f"q{digits.word}"] & int64(digits.mask)) == int64(level << digits.shift)


def _named_levels(exclusions: CodedExclusions) -> Mapping[int, list[int]]:
    """The levels that exclusions name, by key."""
    named: dict[int, set[int]] = {}
    for k, level, *_ in (*exclusions.missing_keys, *exclusions.pairs):
        named.setdefault(k, set()).add(level)
    return {k: sorted(named[k]) for k in sorted(named)}


def _read_classes(rows: Any, exclusions: CodedExclusions, digits: Sequence[Digits]) -> KeyClasses:
    texts = rows.column("cells").combine_chunks()
    lists = pc.split_pattern(texts.cast(pa.string()), ",")
    lengths = np.asarray(pc.list_value_length(lists)).astype(np.int64)
    levels = np.zeros((len(digits), len(rows)), dtype=np.int64)  # of keys that no exclusion looks at: any
    for k in _named_levels(exclusions):
        levels[k] = np.asarray(rows.column(f"x{k}").cast(pa.int64())) >> digits[k].shift
    return KeyClasses(
        cells=np.asarray(pc.list_flatten(lists).cast(pa.int64())),
        first=np.cumsum(np.append(0, lengths))[:-1],
        key_levels=levels,
        number=np.asarray(rows.column("n").cast(pa.int64())),
    )


def _count_once(
    classes: KeyClasses, packing: Packing, target: Target, levels: int, N: tuple[int, int]
) -> TargetCounts:
    """The counts of one key combination of each class."""
    number = np.diff(classes.first, append=len(classes.cells))
    q = np.repeat(np.arange(len(number)), number)
    d, s, t = packing.unpack(classes.cells)
    order = np.lexsort((t, q))
    d, s, t = d[order], s[order], t[order]
    table = FrequencyTable(
        q=q,
        t=t,
        d=d,
        s=s,
        d_q=np.add.reduceat(d, classes.first)[q],
        s_q=np.add.reduceat(s, classes.first)[q],
        N_d=N[0],
        N_s=N[1],
        keys=len(number),
        targets=target.column.size,
    )
    return count_target(
        CountedCells(table, lambda some: classes.key_levels[:, some]), levels, _NO_LIMIT, target.exclusions
    )
