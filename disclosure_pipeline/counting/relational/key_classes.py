"""Key combinations in classes: one of those with equal cells is counted for all of them.

What is counted at a key combination depends on its cells, and on those of its key levels that an exclusion
names, on nothing else. So the database says which cells occur together, and how often; one key combination of
each class goes through the formulas of `counts.count_target`, and the result counts that many times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from disclosure_pipeline.measures.frequency import FrequencyTable, run_lengths

_NO_LIMIT = float("inf")  # of cells that are listed one by one: the database lists them


@dataclass(frozen=True)
class KeyClasses:
    """Classes of key combinations that have the same cells.

    `cells` are the cells of one combination of each class, numbers of a `Packing`, which begin at `first`.
    `key_levels` are the levels that
    exclusions name, and for all others of a key the same one (shape: keys, classes); `number` is how many key
    combinations a class has.
    """

    cells: IntArray
    first: IntArray
    key_levels: IntArray
    number: IntArray

    def only(self, positions: IntArray) -> KeyClasses:
        """Some of the classes, by their positions, which ascend."""
        lengths = run_lengths(self.first, len(self.cells))
        selected = np.zeros(len(lengths), dtype=bool)
        selected[positions] = True
        of_selected = np.repeat(selected, lengths)
        return KeyClasses(
            self.cells[of_selected],
            np.cumsum(lengths[positions]) - lengths[positions],
            self.key_levels[:, positions],
            self.number[positions],
        )


def classify_keys(
    cells: Any, synthesis: int, packing: Packing, exclusions: CodedExclusions, digits: Sequence[Digits]
) -> Any:
    """The classes of key combinations, counted: rows (cells, n, x0, x3, …).

    The cells are text; x0, x3, … are the levels of those keys that exclusions name.
    """
    occurring = cells.filter((cells["n0"] > 0) | (cells[f"n{synthesis}"] > 0))
    d, s, t = (as_int64(occurring[name]) for name in ("n0", f"n{synthesis}", "t"))
    cell = pack(packing, d, s, t).cast("string")
    lists = occurring.group_by(word_columns(cells)).aggregate(cells=cell.collect())
    named = {
        f"x{k}": _level_if_named(lists, digits[k], levels) for k, levels in _named_levels(exclusions).items()
    }
    texts = lists.select(cells=lists["cells"].sort().join(","), **named)
    return texts.group_by("cells", *named).aggregate(n=count_rows)


def count_by_classes(
    cells: Any, synthesis: int, packing: Packing, target: Target, digits: Sequence[Digits]
) -> TargetCounts | None:
    """The counts of a target in a synthesis, but for large cells and pairs, which need every key level.

    None where there is no cell.
    """
    rows = fetch_rows(classify_keys(cells, synthesis, packing, target.exclusions, digits))
    if not len(rows):
        return None
    classes = _read_classes(rows, target.exclusions, digits)
    unlisted = replace(target, list_cells_above=_NO_LIMIT)
    result: TargetCounts | None = None
    # Each class as often as its number says, from the highest binary digit down: twice as often, once more.
    for digit in reversed(range(int(classes.number.max()).bit_length())):
        selected = np.flatnonzero((classes.number >> digit) & 1)
        parts = [result, result] if result else []
        if len(selected):
            parts.append(_count_once(classes.only(selected), packing, unlisted, synthesis))
        result = add_up([part for part in parts if part])
    return result


def _level_if_named(keys: Any, digits: Digits, levels: Sequence[int]) -> Any:
    """The level of a key in its place within a word; all bits set, which is no level, if it is not named."""
    level = keys[f"q{digits.word}"] & int64(digits.mask)
    return level.isin([int64(named << digits.shift) for named in levels]).ifelse(level, int64(digits.mask))


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
        first=np.cumsum(lengths) - lengths,
        key_levels=levels,
        number=np.asarray(rows.column("n").cast(pa.int64())),
    )


def _count_once(classes: KeyClasses, packing: Packing, target: Target, synthesis: int) -> TargetCounts:
    """The counts of one key combination of each class."""
    number = run_lengths(classes.first, len(classes.cells))
    q = np.repeat(np.arange(len(number)), number)
    d, s, t = packing.unpack(classes.cells)
    order = np.lexsort((t, q))
    d, s, t = d[order], s[order], t[order]
    sizes = target.sizes(synthesis)
    table = FrequencyTable(
        q=q,
        t=t,
        d=d,
        s=s,
        d_q=np.add.reduceat(d, classes.first)[q],
        s_q=np.add.reduceat(s, classes.first)[q],
        N_d=sizes.N_d,
        N_s=sizes.N_s,
        keys=len(number),
        targets=target.column.size,
    )
    return count_target(
        CountedCells(table, lambda positions: classes.key_levels[:, positions]), target, synthesis
    )
