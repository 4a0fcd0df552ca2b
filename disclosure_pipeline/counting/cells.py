"""From cells to counts: the one way for all engines, of targets, keys, and what several syntheses disclose.

An engine returns the cells of its tables in parts, and knows no formula. The formulas run on each part in the
thread that found it, and their integers add up.

Key combinations that look the same count as one with their number (`FrequencyTable.alike`). Most of them have
few records: some thousands of classes stand for millions, and the formulas run on few cells. With exclusions
or a band every level matters, and a key combination stands for itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.counts import (
    CountRequest,
    DisclosureCounts,
    KeyCounts,
    Target,
    count_equal_keys,
    count_keys,
    count_target,
    select_copies,
)
from disclosure_pipeline.measures.checks import find_excluded, find_large_cells, sum_by_pair
from disclosure_pipeline.measures.copies import Combinations
from disclosure_pipeline.measures.exact import Grouped, IntArray, Mask, add_to, add_up, total
from disclosure_pipeline.measures.frequency import FrequencyTable, first_of_run, run_lengths, tabulate_cells
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.measures.together import TogetherCounts, count_together, count_unique_in_any
from disclosure_pipeline.measures.totals import count_hits_apart
from disclosure_pipeline.runtime.machine import map_in_threads
from disclosure_pipeline.runtime.progress import OnProgress, ignore_progress

Place = tuple[Any, ...]
"""Where counts belong in `DisclosureCounts`."""
_KEYS, _APART, _WITHOUT, _PAIRS, _ANY = "keys", "apart", "without", "pairs", "any"

LevelsOf = Callable[[IntArray], IntArray]
"""Returns the level of each key for an array of q (shape: keys, numbers)."""


def _refuse(_: IntArray) -> IntArray:
    raise AssertionError("These cells have no keys of their own.")


@dataclass(frozen=True)
class Cells:
    """The records of GT and some `syntheses` in each cell of some key combinations: a row a cell.

    target: its place in the request; None for the key combinations themselves, which have one cell each.
    q, t: the key combination, numbered from 0 in ascending order, and the level.
    counts: the records of GT, then of each synthesis. A cell may be empty.
    levels_of: see `LevelsOf`.
    alone: records of each table that share their key combination with no other record, and are in no row.
    alike, n: see `FrequencyTable`. is_joined: key combinations that look the same stand as one, if any do.
    find_large: returns the key levels, t and d of a synthesis' DiSCO cells to list, if q are joined.
    each: False to count only what all syntheses disclose together.
    left_out: the place of a key without which these are key combinations. Only copies are counted by them:
        those of SD records alone, and of one record in `alone`, may be in no row.
    """

    target: int | None
    syntheses: Sequence[int]
    q: IntArray
    t: IntArray
    counts: Sequence[IntArray]
    levels_of: LevelsOf = _refuse
    alone: IntArray | None = None
    alike: IntArray | int = 1
    n: IntArray | int = 1
    is_joined: bool = False
    find_large: Callable[[int], tuple[IntArray, IntArray, IntArray]] | None = None
    each: bool = True
    left_out: int | None = None

    @classmethod
    def of_keys(cls, counts: Sequence[IntArray], syntheses: Sequence[int] = (), **others: Any) -> Cells:
        """Return cells that are the key combinations; by default the tables are GT and all syntheses."""
        nothing = np.arange(0)
        return cls(None, syntheses or range(1, len(counts)), nothing, nothing, counts, **others)

    def count(self, request: CountRequest) -> Iterator[tuple[Place, Any]]:
        """Yield the counts of these cells, and where they belong."""
        if self.left_out is not None:
            for i, synthesis in enumerate(self.syntheses):
                in_GT, in_SD = self._alone(i).tolist()
                combinations = Combinations.of_records(self.counts[0], self.n)
                copies = combinations.count_copies(self.counts[1 + i], (in_GT, in_SD))
                yield (_WITHOUT, self.left_out, synthesis), copies
            return
        together = request.together and len(self.syntheses) == len(request.syntheses)
        if self.target is None:
            for i, synthesis in enumerate(self.syntheses if self.each else ()):
                yield (_KEYS, synthesis), self._count_keys(i)
            if together:
                yield (_ANY,), count_unique_in_any(self.counts[0], self.counts[1:], self.n)
            return
        target, tables = request.targets[self.target], list[FrequencyTable]()
        for i, synthesis in enumerate(self.syntheses if self.each else ()):
            f, levels_of = self._tabulate(target, i)
            if f.keys:
                large = self._sum_large(f, target, synthesis, levels_of)
                yield (self.target, synthesis), count_target(f, large, target, synthesis)
            tables = [f]
        if together:
            if len(self.syntheses) > 1:
                records = [total(counts) for counts in target.column.counts]
                size = target.column.size
                tables = tabulate_cells(self.q, self.t, self.counts, records, size, self.alike)
                tables[0] = _find_excluded(tables[0], target, self.levels_of)
            yield (self.target,), count_together(tables, target.exclusions)

    def _alone(self, i: int) -> IntArray:
        return np.zeros(2, dtype=np.int64) if self.alone is None else self.alone[[0, 1 + i]]

    def _count_keys(self, i: int) -> KeyCounts:
        d_q, s_q = self.counts[0], self.counts[1 + i]
        counted = count_equal_keys(d_q, s_q) if isinstance(self.n, int) else count_keys(d_q, s_q, self.n)
        if self.alone is None:
            return counted
        return add_up([count_keys(np.array([1, 0]), np.array([0, 1]), self._alone(i)), counted])

    def _tabulate(self, target: Target, i: int) -> tuple[FrequencyTable, LevelsOf]:
        """Return the cells of GT and a synthesis, by its place, and the levels of their q."""
        rows: tuple[IntArray, ...]
        rows, levels_of = (self.q, self.t, self.counts[0], self.counts[1 + i]), self.levels_of
        sizes, levels, alone = target.sizes(self.syntheses[i]), target.column.size, self._alone(i)
        joined = None
        if len(self.syntheses) > 1:
            rows, levels_of = _select(np.flatnonzero(rows[2] | rows[3]), rows, levels_of)
        if not (self.is_joined or target.exclusions or target.band) and len(rows[0]):
            is_joined, joined = _join(target, *rows)
            if is_joined.any():
                rows, levels_of = _select(np.flatnonzero(~is_joined), rows, levels_of)
            else:
                joined = None
        q, t, d, s = rows
        if joined is None and isinstance(self.n, int) and not alone.any():
            [f] = tabulate_cells(q, t, [d, s], [sizes.N_d, sizes.N_s], levels)
            return _find_excluded(f, target, levels_of), levels_of
        parts = [_list_alone(alone), *([] if joined is None else [joined])]
        keys = int(q[-1]) + 1 if len(q) else 0
        parts.append(_Classes(q, t, d, s, np.broadcast_to(self.n, len(q)), np.broadcast_to(self.alike, keys)))
        classes = _Classes.stacked(parts)
        before = len(classes.alike) - keys
        f = classes.tabulate(sizes, levels)

        def levels_of_rest(some: IntArray) -> IntArray:
            return levels_of(some - before)

        return _find_excluded(f, target, levels_of_rest), levels_of_rest

    def _sum_large(
        self, f: FrequencyTable, target: Target, synthesis: int, levels_of: LevelsOf
    ) -> tuple[Grouped, ...]:
        """Return the records of DiSCO cells to list: see `TargetCounts.large_pairs`."""
        if self.find_large and target.list_cells_above < math.inf:
            return sum_by_pair(*self.find_large(synthesis), f.targets)
        large = find_large_cells(f, target.exclusions, target.list_cells_above)
        return sum_by_pair(levels_of(f.q[large]), f.t[large], f.d[large], f.targets)


def _select(
    cells: IntArray, rows: tuple[IntArray, ...], levels_of: LevelsOf
) -> tuple[tuple[IntArray, ...], LevelsOf]:
    """Return some of the rows (q, t, d, s), with their q numbered anew, and the levels of these."""
    q, *others = (column[cells] for column in rows)
    new = first_of_run(q)
    known = q[new]
    return (np.cumsum(new) - 1, *others), lambda some: levels_of(known[some])


def _find_excluded(f: FrequencyTable, target: Target, levels_of: LevelsOf) -> FrequencyTable:
    """Return the cells, with `excluded` found."""
    exclusions = target.exclusions
    if not (exclusions.missing_keys or exclusions.pairs):
        return f
    levels = levels_of(np.arange(f.keys))
    return replace(f, excluded=find_excluded(exclusions, f.t, lambda k: levels[k][f.q]))


@dataclass(frozen=True)
class _Classes:
    """Rows of cells in order of q, each q for as many key combinations as `alike` says: `FrequencyTable`."""

    q: IntArray
    t: IntArray
    d: IntArray
    s: IntArray
    n: IntArray
    alike: IntArray

    @classmethod
    def stacked(cls, parts: Sequence[_Classes]) -> _Classes:
        """Return the rows of all parts, whose q follow each other."""
        before = np.cumsum([0, *(len(part.alike) for part in parts)])
        q = np.concatenate([part.q + first for part, first in zip(parts, before[:-1], strict=True)])
        others = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("t", "d", "s", "n", "alike")
        )
        return cls(q, *others)

    def tabulate(self, sizes: Sizes, levels: int) -> FrequencyTable:
        """Return the frequency table of these rows."""
        f = FrequencyTable(
            self.q,
            self.t,
            self.d,
            self.s,
            self.d,
            self.s,
            sizes.N_d,
            sizes.N_s,
            len(self.alike),
            levels,
            self.n,
            self.alike,
        )
        return replace(f, d_q=f.at_cells(f.sum_by_q(f.d)), s_q=f.at_cells(f.sum_by_q(f.s)))


def _list_alone(alone: IntArray) -> _Classes:
    """Return the cells of records that share their key combination with none; their level is of no matter."""
    some = np.flatnonzero(alone)
    is_GT, number = (some == 0).astype(np.int64), alone[some]
    return _Classes(np.arange(len(some)), 0 * some, is_GT, 1 - is_GT, number, number)


_FEW = 3  # records of a table in a cell of a class
_BASE = _FEW + 2  # for a digit of d, or of s: more than a few are the last
_LOOKS = _BASE * _BASE
_FIELD = 4  # bits
_MOST_CELLS = (1 << _FIELD) - 1
_TOO_MANY = 1 << 60


def _list_codes() -> IntArray:
    """Return what a cell of each look adds to the code of its class, then a cell of the missing level.

    A cell looks like its d and s, each at most three. The code has a field for each look: how many cells have
    it; its lowest field is the look of the missing level.
    """
    d, s = np.divmod(np.arange(_LOOKS), _BASE)
    field = (_FEW + 1) * d + s
    fits = (d <= _FEW) & (s <= _FEW) & (field < _MOST_CELLS)
    field[~fits] = 0
    codes = np.concatenate((1 << _FIELD * field, field))
    codes[np.tile(~fits, 2)] = _TOO_MANY
    return codes.astype(np.uint64)


_CODES = _list_codes()


def _join(target: Target, q: IntArray, t: IntArray, d: IntArray, s: IntArray) -> tuple[Mask, _Classes]:
    """Join key combinations that look the same: of few cells, none too large or to be listed.

    Return a mask of the rows that are joined, and the classes.
    """
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
    rows, level = np.divmod(counted.groups[occurring], levels)
    number_of_row, look = np.divmod(rows, _LOOKS)
    alike = np.bincount(number[fits], minlength=len(codes))
    return cells < end, _Classes(
        number_of_row, level, *np.divmod(look, _BASE), counted.sums[occurring], alike
    )


@dataclass(frozen=True)
class LoneKeys:
    """The key combinations that one GT record has: the level of each key (shape: keys, combinations).

    Only a request for hits of keys drawn apart needs them, each once for all syntheses.
    """

    levels: IntArray

    def count(self, request: CountRequest) -> Iterator[tuple[Place, Any]]:
        """Yield the hits of each synthesis."""
        for synthesis, shares in enumerate(request.shares_apart, start=1):
            yield (_APART, synthesis), count_hits_apart(self.levels, shares)


@dataclass(frozen=True)
class Counted:
    """Counts of cells that are counted where they were found, and where they belong."""

    counts: Sequence[tuple[Place, Any]]

    @classmethod
    def apart(cls, hits: Sequence[int]) -> Counted:
        """Return what `LoneKeys` are counted to, for each synthesis."""
        return cls([((_APART, synthesis), number) for synthesis, number in enumerate(hits, start=1)])

    def count(self, _: CountRequest) -> Sequence[tuple[Place, Any]]:
        """Return the counts."""
        return self.counts


Found = Cells | LoneKeys | Counted
Part = Callable[[], Iterable[tuple[int, Found]]]
"""Finds cells of some key combinations: the number of a request, and its cells."""


@dataclass(frozen=True)
class Parts:
    """Parts that threads may find at once, and the targets (request, place) that are complete with them.

    `find_pairs` counts the GT records of complete targets: see `DisclosureCounts.pairs_of_key`.
    """

    parts: Sequence[Part]
    complete: Sequence[tuple[int, int]] = ()
    find_pairs: Callable[[Sequence[tuple[int, int]]], Iterable[tuple[Grouped, ...]]] | None = None
    threads: int = 0
    report: Callable[[int, int], None] = lambda completed, total: None


CellParts = Generator[Parts, None, None]
"""The parts that an engine finds; it tidies up when this is closed."""


class FindsCells(Protocol):
    """Tables whose cells an engine finds."""

    def find_cells(self, requests: Sequence[CountRequest], on_progress: OnProgress) -> CellParts:
        """Yield the cells of columns coded here, grouped or not, in parts that one thread each can find.

        Records are read once.
        """

    def leaves_out_each(self, request: CountRequest) -> bool:
        """Return whether a request `without_each` is answered in one pass, not by requests of its own."""


def count_tables(
    opened: FindsCells, requests: Sequence[CountRequest], on_progress: OnProgress = ignore_progress
) -> list[DisclosureCounts]:
    """Count the records of opened tables by columns coded there, grouped or not.

    Raise InputError as the engine does.
    """
    asked, without = [*requests], dict[int, range]()
    for number, request in enumerate(requests):
        if request.left_out and not opened.leaves_out_each(request):
            keys = request.keys
            asked[number] = replace(request, without_each=False)
            without[number] = range(len(asked), len(asked) + len(keys))
            asked += [CountRequest([*keys[:k], *keys[k + 1 :]]) for k in request.left_out]
    sums: dict[Place, list[Any]] = {}
    with closing(opened.find_cells(asked, on_progress)) as found:
        for some in found:
            for completed, of_part in enumerate(
                map_in_threads(
                    some.parts,
                    lambda part: [
                        ((number, *place), counts)
                        for number, cells in part()
                        for place, counts in cells.count(asked[number])
                    ],
                    some.threads,
                ),
                start=1,
            ):
                for place, counts in of_part:
                    add_to(sums.setdefault(place, []), counts)
                some.report(completed, len(some.parts))
            listed = [
                (number, i)
                for number, i in some.complete
                if any(add_up(sums[number, i, j]).has_large_cells for j in asked[number].syntheses)
            ]
            if listed:
                assert some.find_pairs is not None
                for place, pairs in zip(listed, some.find_pairs(listed), strict=True):
                    add_to(sums.setdefault((*place, _PAIRS), []), pairs)
    gathered = [_gather(sums, number, request) for number, request in enumerate(asked)]
    for number, of_each in without.items():
        copies = tuple(tuple(map(select_copies, gathered[i].keys)) for i in of_each)
        gathered[number] = replace(gathered[number], without=copies)
    return gathered[: len(requests)]


def _gather(sums: Mapping[Place, Sequence[Any]], number: int, request: CountRequest) -> DisclosureCounts:
    """Return the counts of a request; KeyError if an engine left out any."""
    syntheses, targets = request.syntheses, range(len(request.targets))

    def of(*place: Any) -> Any:
        of_request: Place = (number, *place)
        return add_up(sums[of_request])

    return DisclosureCounts(
        tuple(of(_KEYS, j) for j in syntheses),
        tuple(tuple(of(i, j) for j in syntheses) for i in targets),
        tuple(of(i, _PAIRS) if (number, i, _PAIRS) in sums else () for i in targets),
        TogetherCounts(of(_ANY), tuple(of(i) for i in targets)) if request.together else None,
        tuple(of(_APART, j) for j in syntheses) if request.apart else (),
        tuple(tuple(of(_WITHOUT, k, j) for j in syntheses) for k in request.left_out),
    )
