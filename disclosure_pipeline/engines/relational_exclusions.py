"""Exclusions, where a database counts: of key combinations with equal cells one is judged for all.

What is excluded at a key combination, and what is left there, depends on its cells and on those of its key
levels that an exclusion names, on nothing else. So the database says which of these occur, and how often;
one of each goes through the formulas of `counted.of_target`, and the result counts that many times.
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

from disclosure_pipeline.engines.connections import fetched
from disclosure_pipeline.engines.counted import OfTarget, Part, of_target
from disclosure_pipeline.engines.job import Target
from disclosure_pipeline.engines.relational_cells import Packing, pack
from disclosure_pipeline.engines.relational_coding import Digits, long, number_of, wide, words_of
from disclosure_pipeline.measures.adding import add_up
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.measures.exclusions import CodedExclusions
from disclosure_pipeline.measures.frequency import FrequencyTable

_NO_LIMIT = float("inf")  # of cells that are told one by one: there are none of them here


@dataclass(frozen=True)
class Classes:
    """Key combinations by their cells: `cells` are those of one of each class, `first` where they begin.

    A cell is a number of a `Packing`. `key_levels` are the levels that exclusions name, and for all others
    of a key the same one (shape: keys, classes); `number` is how many key combinations a class has.
    """

    cells: IntArray
    first: IntArray
    key_levels: IntArray
    number: IntArray

    def only(self, some: IntArray) -> Classes:
        """Some of the classes."""
        ends = np.append(self.first, len(self.cells))
        cells = np.concatenate([self.cells[ends[i] : ends[i + 1]] for i in some])
        first = np.cumsum([0, *(ends[some + 1] - ends[some])])[:-1]
        return Classes(cells, first, self.key_levels[:, some], self.number[some])


def classes(
    cells: Any, synthesis: int, packing: Packing, wanted: CodedExclusions, digits: Sequence[Digits]
) -> Any:
    """The classes: rows (cells, n, x0, x3, …), the cells as text, the named levels of some keys by key."""
    d, s, t = (wide(cells[name]) for name in ("n0", f"n{synthesis}", "t"))
    rows = cells.select(*words_of(cells), d=d, s=s, cell=pack(packing, d, s, t).cast("string"))
    rows = rows.filter((rows["d"] > 0) | (rows["s"] > 0))
    lists = rows.group_by(words_of(cells)).aggregate(cells=rows["cell"].collect())
    named = {f"x{k}": _if_named(lists, digits[k], levels) for k, levels in _named(wanted).items()}
    texts = lists.select(cells=lists["cells"].sort().join(","), **named)
    return texts.group_by("cells", *named).aggregate(n=number_of)


def measure(
    cells: Any, synthesis: int, packing: Packing, target: Target, digits: Sequence[Digits], N: tuple[int, int]
) -> OfTarget:
    """Of a target in a synthesis, but for large cells and pairs, which ask for every key level."""
    found = _read(fetched(classes(cells, synthesis, packing, target.wanted, digits)), target.wanted, digits)
    levels = target.levels(synthesis)
    result: OfTarget | None = None
    # Each class as often as its number says, from the highest binary digit down: twice as often, once more.
    for digit in reversed(range(int(found.number.max()).bit_length())):
        some = np.flatnonzero((found.number >> digit) & 1)
        parts = [result, result] if result else []
        if len(some):
            parts.append(_once(found.only(some), packing, target, levels, N))
        result = add_up([part for part in parts if part])
    assert result is not None
    return result


def left(cells: Any, wanted: CodedExclusions, digits: Sequence[Digits]) -> Any:
    """The cells that GT has and whose GT records are not excluded."""
    t, d = wide(cells["t"]), wide(cells["n0"])
    excluded = [t == long(level) for level in wanted.target_levels]
    if wanted.missing_target is not None:
        excluded.append(t == long(wanted.missing_target))
    excluded += [_has_level(cells, digits[k], level) for k, level in wanted.missing_keys]
    excluded += [_has_level(cells, digits[k], level) & (t == long(of_t)) for k, level, of_t in wanted.pairs]
    if wanted.count_over is not None:
        excluded.append(d > long(wanted.count_over))
    return cells.filter(d > 0, ~reduce(or_, excluded))


def _if_named(keys: Any, digits: Digits, levels: Sequence[int]) -> Any:
    """The level of a key in its place within a word; for levels that are not named all bits set: no level."""
    level = keys[f"q{digits.word}"] & long(digits.mask)
    return level.isin([long(each << digits.shift) for each in levels]).ifelse(level, long(digits.mask))


def _has_level(cells: Any, digits: Digits, level: int) -> Any:
    return (cells[f"q{digits.word}"] & long(digits.mask)) == long(level << digits.shift)


def _named(wanted: CodedExclusions) -> Mapping[int, list[int]]:
    """The levels that exclusions name, by key."""
    named: dict[int, set[int]] = {}
    for k, level, *_ in (*wanted.missing_keys, *wanted.pairs):
        named.setdefault(k, set()).add(level)
    return {k: sorted(named[k]) for k in sorted(named)}


def _read(rows: Any, wanted: CodedExclusions, digits: Sequence[Digits]) -> Classes:
    texts = rows.column("cells").combine_chunks()
    lists = pc.split_pattern(texts.cast(pa.string()), ",")
    lengths = np.asarray(pc.list_value_length(lists)).astype(np.int64)
    levels = np.zeros((len(digits), len(rows)), dtype=np.int64)  # of keys that no exclusion looks at: any
    for k in _named(wanted):
        levels[k] = np.asarray(rows.column(f"x{k}").cast(pa.int64())) >> digits[k].shift
    return Classes(
        cells=np.asarray(pc.list_flatten(lists).cast(pa.int64())),
        first=np.cumsum(np.append(0, lengths))[:-1],
        key_levels=levels,
        number=np.asarray(rows.column("n").cast(pa.int64())),
    )


def _once(found: Classes, packing: Packing, target: Target, levels: int, N: tuple[int, int]) -> OfTarget:
    """What one key combination of each class tells."""
    number = np.diff(found.first, append=len(found.cells))
    q = np.repeat(np.arange(len(number)), number)
    d, s, t = packing.unpack(found.cells)
    order = np.lexsort((t, q))
    d, s, t = d[order], s[order], t[order]
    table = FrequencyTable(
        q=q,
        t=t,
        d=d,
        s=s,
        d_q=np.add.reduceat(d, found.first)[q],
        s_q=np.add.reduceat(s, found.first)[q],
        N_d=N[0],
        N_s=N[1],
        keys=len(number),
        targets=target.column.size,
    )
    return of_target(Part(table, lambda some: found.key_levels[:, some]), levels, _NO_LIMIT, target.wanted)
