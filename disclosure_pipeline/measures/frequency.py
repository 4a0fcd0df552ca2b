"""The sparse frequency table (q, t, d, s) of coded records, and the rows that figures are asked about.

All measures use the notation of Raab, Nowok & Dibben 2024, "Practical privacy metrics for synthetic data"
(arXiv:2406.16826), cited as [R]:

- GT is the ground truth, SD one synthetic table; `q` is a combination of key values, `t` a target level;
- `d` and `s` are the numbers of GT and SD records with (q, t), d_tq and s_tq in [R];
- `d_q` and `s_q` are their sums over t, `d_t` and `s_t` their sums over q;
- `N_d` and `N_s` are the numbers of all GT and SD records;
- `pd = d / d_q` and `ps = s / s_q`. "pd = 1" is always tested as `d == d_q`, on integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from disclosure_pipeline.measures.band_places import Band
from disclosure_pipeline.measures.exact import Floats, IntArray, Mask, sum_by_position, total
from disclosure_pipeline.measures.samples import Sizes

_LARGEST_CODE = 2**63 - 1

Found = TypeVar("Found")


def is_only_level(records: Any, of_key: Any) -> Any:
    """Mark the cells with p_tq = 1 [R]: all records `of_key` have this target level.

    DiSCO counts the GT records in these cells of SD. The arguments are arrays or columns of a database.
    """
    return (records > 0) & (records == of_key)


@dataclass(frozen=True)
class Keys:
    """The key combinations of all records, which all targets share.

    `columns[k][0]` holds key k of the GT records as codes 0..levels[k]-1, `columns[k][i]` that of synthesis
    i. `q[0]` and `q[i]` hold the combination of each record, 0..size-1; each occurs in at least one table.
    """

    columns: tuple[tuple[IntArray, ...], ...]
    levels: tuple[int, ...]
    q: tuple[IntArray, ...]
    size: int

    @cached_property
    def counts(self) -> tuple[IntArray, ...]:
        """d_q, then s_q of each synthesis."""
        return tuple(np.bincount(q, minlength=self.size) for q in self.q)

    @cached_property
    def _example(self) -> IntArray:
        """The position of one record with each combination, in all tables end to end."""
        record = np.empty(self.size, dtype=np.int64)
        start = 0
        for q in self.q:
            record[q] = np.arange(start, start + len(q))
            start += len(q)
        return record

    def level_of(self, k: int) -> IntArray:
        """Return the level of key k in each combination (shape: size)."""
        return np.concatenate(self.columns[k])[self._example]


def combine_keys(columns: Sequence[Sequence[IntArray]], levels: Sequence[int]) -> Keys:
    """Number the key combinations of GT and all syntheses.

    `columns[k][i]` are the codes of key k in table i (0 is GT), all below `levels[k]`. The codes are joined
    as digits of one number, renumbered before it exceeds 64 bits: any number of keys and levels works.
    """
    joined, product = join_codes(columns, levels)
    joined, size = _renumber(joined, product)
    return Keys(tuple(tuple(column) for column in columns), tuple(levels), tuple(joined), size)


def find_lone_combinations(
    columns: Sequence[IntArray], levels: Sequence[int], unit: IntArray
) -> tuple[IntArray, IntArray]:
    """Return the combinations that only one unit of a table has, in any order.

    The position of one of its records, and their number. `columns[k]` are the codes of column k, all below
    `levels[k]`; `unit` says whose each record is.

    >>> columns = [np.array([0, 1, 1, 0, 0]), np.array([2, 0, 0, 1, 2])]
    >>> [array.tolist() for array in find_lone_combinations(columns, [2, 3], np.array([7, 8, 9, 8, 7]))]
    [[3, 0], [1, 2]]
    """
    [codes], _ = join_codes([[column] for column in columns], levels)
    codes, order = sort_together(codes, np.arange(len(codes)))
    begins = first_of_run(codes)
    first = np.flatnonzero(begins)
    has_others = np.zeros(len(first), dtype=bool)
    again = np.flatnonzero(~begins)
    changes = again[unit[order[again]] != unit[order[again - 1]]]
    has_others[np.cumsum(begins)[changes] - 1] = True
    alone = np.flatnonzero(~has_others)
    return order[first[alone]], run_lengths(first, len(codes))[alone]


def join_codes(columns: Sequence[Sequence[IntArray]], levels: Sequence[int]) -> tuple[list[IntArray], int]:
    """Return the codes of each record joined as digits of one number, and a number above all of these."""
    joined: list[IntArray] = [np.zeros(len(table), dtype=np.int64) for table in columns[0]]
    product = 1
    for column, n in zip(columns, levels, strict=True):
        if product > _LARGEST_CODE // max(n, 1):
            joined, product = _renumber(joined, product)
        joined = [table * n + codes for table, codes in zip(joined, column, strict=True)]
        product *= max(n, 1)
    return joined, product


def _renumber(tables: Sequence[IntArray], product: int) -> tuple[list[IntArray], int]:
    """Renumber the codes that occur as 0, 1, 2, …; `product` is larger than every code."""
    records = sum(len(table) for table in tables)
    if product <= records:
        present = np.zeros(product, dtype=bool)
        for table in tables:
            present[table] = True
        number = np.cumsum(present) - 1
        return [number[table] for table in tables], int(present.sum())
    codes, distinct = pd.factorize(np.concatenate(tables))
    return np.split(codes, np.cumsum([len(table) for table in tables])[:-1]), len(distinct)


@dataclass(frozen=True)
class FrequencyTable:
    """The cells (q, t) that occur in GT or in one SD, in order of q; all other cells are zero.

    `q`, `t`, `d`, `s`, and `d_q` and `s_q` of the cell's q have one entry per cell. `keys` and `targets` are
    the numbers of q and of target levels.

    A q may stand for several key combinations that look the same: `alike` of them (shape: q with cells), of
    which `n` have the cell (shape: cells). They look the same if they have as many cells with the same d, s,
    `excluded` and `Target.kinds` of t: the cells of one may have other levels than those of another. Every
    sum over cells weighs by `n`, every sum over q by `alike`.

    excluded: The place in `checks.STEPS`, from 1 on, of the step that takes a cell out for the levels of its
        keys; 0 if none does.
    """

    q: IntArray
    t: IntArray
    d: IntArray
    s: IntArray
    d_q: IntArray
    s_q: IntArray
    N_d: int
    N_s: int
    keys: int
    targets: int
    n: IntArray | int = 1
    alike: IntArray | int = 1
    excluded: IntArray | int = 0

    @cached_property
    def first(self) -> IntArray:
        """The position of the first cell of each q that has cells (shape: q with cells)."""
        return np.flatnonzero(first_of_run(self.q))

    @cached_property
    def _last(self) -> IntArray:
        """The position of the last cell of each q that has cells."""
        return np.append(self.first, len(self.q))[1:] - 1

    @cached_property
    def _q_of_cells(self) -> IntArray:
        """For each cell, the position of its q among those that have cells."""
        return np.cumsum(first_of_run(self.q)) - 1

    def find_cell(self, q: IntArray, t: IntArray) -> IntArray:
        """Return the position of the cell of each q and t, which must be there."""
        return np.searchsorted(self.q * self.targets + self.t, q * self.targets + t)

    def sum_by_q(self, values: IntArray | Mask) -> IntArray:
        """Return the sum of `values` over the cells of one key combination (shape: q with cells).

        Cells that look the same must have the same value.
        """
        weighted = values if isinstance(self.n, int) else values * self.n
        # Several times faster than np.add.reduceat.
        sums = undo_cumsum(np.cumsum(weighted, dtype=np.int64)[self._last])
        return sums if isinstance(self.alike, int) else sums // self.alike

    def total(self, values: IntArray | Mask, where: Mask | None = None) -> int:
        """Return the sum of `values`, or of those marked by `where`, over the cells of all combinations."""
        cells = slice(None) if where is None else np.flatnonzero(where)
        chosen = values[cells]
        return int(chosen.sum() if isinstance(self.n, int) else chosen @ self.n[cells])

    def largest_by_q(self, values: IntArray) -> IntArray:
        """Return the largest of `values` over t (shape: q with cells; at least one)."""
        return np.maximum.reduceat(values, self.first)

    def at_cells(self, by_q: npt.NDArray[Any], cells: IntArray | None = None) -> npt.NDArray[Any]:
        """Repeat an array (shape: q with cells) for every cell of each q, or for some `cells`."""
        return by_q.take(self._q_of_cells if cells is None else self._q_of_cells[cells])

    def per_target(self, counts: IntArray) -> IntArray:
        """Return the sum of `counts` over q (shape: targets)."""
        return sum_by_position(self.t, counts, self.targets)


def tabulate_cells(
    q: IntArray,
    t: IntArray,
    counts: Sequence[IntArray],
    records: Sequence[int],
    targets: int,
    alike: IntArray | int = 1,
    excluded: IntArray | int = 0,
) -> list[FrequencyTable]:
    """Return the table of each synthesis, with the same cells in all of them; every q has some.

    `counts` are the records of each table in each cell (GT first; `records` are those of whole tables). `q`
    ascends from 0. `alike`, `excluded`: see `FrequencyTable`.
    """
    first = np.flatnonzero(first_of_run(q))
    of_q = [undo_cumsum(np.cumsum(of_table)[np.append(first, len(q))[1:] - 1])[q] for of_table in counts]
    n = alike if isinstance(alike, int) else alike[q]
    return [
        FrequencyTable(
            q,
            t,
            counts[0],
            s,
            of_q[0],
            s_q,
            records[0],
            N_s,
            len(first),
            targets,
            n,
            alike,
            excluded,
        )
        for s, s_q, N_s in zip(counts[1:], of_q[1:], records[1:], strict=True)
    ]


def tabulate_keys(d_q: IntArray, s_q: IntArray, alike: IntArray | int = 1) -> FrequencyTable:
    """Return the table of key combinations as if the target had one level, from the records of each.

    An entry can stand for several combinations that look the same: `alike` of them.
    """
    q, N_d, N_s = np.arange(len(d_q)), total(d_q * alike), total(s_q * alike)
    return FrequencyTable(q, np.zeros_like(q), d_q, s_q, d_q, s_q, N_d, N_s, len(q), 1, alike, alike)


def tabulate_levels(d_t: IntArray, s_t: IntArray) -> FrequencyTable:
    """Return the table of all records by target level: one key combination, without d_q and s_q."""
    nothing = np.zeros(len(d_t), dtype=np.int64)
    t, N_d, N_s = np.arange(len(d_t)), total(d_t), total(s_t)
    return FrequencyTable(nothing, t, d_t, s_t, nothing, nothing, N_d, N_s, 1, len(d_t))


def frequency_tables(keys: Keys, target: Sequence[IntArray], levels: int) -> list[FrequencyTable]:
    """Return the table of each synthesis; `target[0]` holds GT's codes, `target[i]` those of synthesis i."""
    cells, counts = _count_cells(keys.q[0], target[0], keys.size, levels)
    return [
        _merge(keys, i, levels, cells, counts, *_count_cells(keys.q[i], target[i], keys.size, levels))
        for i in range(1, len(target))
    ]


def _count_cells(q: IntArray, t: IntArray, keys: int, levels: int) -> tuple[IntArray, IntArray]:
    """Return the cells that occur, as ascending q * levels + t, and their numbers of records."""
    size = keys * levels
    cells = q.astype(np.int32 if size < 2**31 else np.int64)
    cells *= cells.dtype.type(levels)
    cells += t.astype(cells.dtype, copy=False)
    if size <= len(cells):  # a dense table takes no more memory than the records
        counts = np.bincount(cells, minlength=size)
        occupied = np.flatnonzero(counts)
        return occupied, counts[occupied]
    if not len(cells):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    cells.sort()
    first = np.flatnonzero(first_of_run(cells))
    return cells[first].astype(np.int64), run_lengths(first, len(cells))


def first_of_run(ascending: IntArray | Floats) -> Mask:
    """Mark the entries that differ from the one before."""
    return np.concatenate(([True], ascending[1:] != ascending[:-1]))[: len(ascending)]


def run_lengths(first: IntArray, end: int) -> IntArray:
    """Return the length of each run, given the positions of their first entries and the end of the last.

    As `np.diff(first, append=end)`, which takes many times as long for few runs.

    >>> run_lengths(np.array([0, 2]), 7).tolist()
    [2, 5]
    """
    return np.concatenate((first[1:], (end,))) - first


def undo_cumsum(sums: IntArray) -> IntArray:
    """Return the summands of cumulative sums.

    >>> undo_cumsum(np.array([3, 5])).tolist()
    [3, 2]
    """
    return sums - np.concatenate(((0,), sums[:-1]))


def sort_together(codes: IntArray, numbers: IntArray) -> tuple[IntArray, IntArray]:
    """Return the codes in ascending order, and the number that belongs to each; all are integers from 0.

    The numbers become the lowest digits of the codes: sorting these is several times faster than argsort.

    >>> sort_together(np.array([7, 3]), np.array([1, 2]))
    (array([3, 7]), array([2, 1]))
    """
    digits = int(numbers.max(initial=0)).bit_length()
    if int(codes.max(initial=0)) << digits > np.iinfo(codes.dtype).max:
        order = np.argsort(codes)
        return codes[order], numbers[order]
    both = codes << codes.dtype.type(digits)
    both |= numbers.astype(codes.dtype, copy=False)
    both.sort()
    numbers = (both & codes.dtype.type((1 << digits) - 1)).astype(numbers.dtype, copy=False)
    both >>= codes.dtype.type(digits)
    return both, numbers


def aranges(lengths: IntArray) -> IntArray:
    """Return `np.arange(length)` of every length, concatenated."""
    return np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def _merge(
    keys: Keys, i: int, levels: int, gt: IntArray, d: IntArray, sd: IntArray, s: IntArray
) -> FrequencyTable:
    cells = np.concatenate((gt, sd))
    cells.sort(kind="stable")  # two ascending runs, which this kind of sort merges
    cells = cells[first_of_run(cells)]
    q, t = np.divmod(cells, levels)
    return FrequencyTable(
        q=q,
        t=t,
        d=_spread(d, np.searchsorted(cells, gt), len(cells)),
        s=_spread(s, np.searchsorted(cells, sd), len(cells)),
        d_q=keys.counts[0][q],
        s_q=keys.counts[i][q],
        N_d=len(keys.q[0]),
        N_s=len(keys.q[i]),
        keys=keys.size,
        targets=levels,
    )


def _spread(counts: IntArray, positions: IntArray, size: int) -> IntArray:
    spread = np.zeros(size, dtype=np.int64)
    spread[positions] = counts
    return spread


@dataclass(frozen=True, eq=False)
class Rows:
    """GT records, one a row; or, where nobody has two, cells, of which all records add the same.

    cell: the position of each row's cell (q, t) in `f`, the table before the exclusions.
    unit: the number of the person whose each record is; None if nobody has two.
    d_left, s_left: the GT and SD records that the exclusions leave in each cell (shape: cells); None: all.
    no_guess: the target levels that nobody guesses (shape: targets).
    band: how close an amount must be told; None for a target of levels. certainties: at which an intruder
        acts who wants an amount.
    of_levels: all records by target level (`tabulate_levels`); None if `f` has all cells.
    """

    f: FrequencyTable
    cell: IntArray
    unit: IntArray | None = None
    d_left: IntArray | None = None
    s_left: IntArray | None = None
    no_guess: Mask | None = None
    band: Band | None = None
    certainties: tuple[Fraction, ...] = ()
    of_levels: FrequencyTable | None = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.cell)

    @cached_property
    def q(self) -> IntArray:
        """The key combination of each row, as are t, d, s, d_q and s_q those of its cell."""
        return self.f.q[self.cell]

    @cached_property
    def t(self) -> IntArray:
        """The target level."""
        return self.f.t[self.cell]

    @cached_property
    def d(self) -> IntArray:
        """The GT records with the row's q and t."""
        return self.f.d[self.cell]

    @cached_property
    def s(self) -> IntArray:
        """The SD records with the row's q and t."""
        return self.f.s[self.cell]

    @cached_property
    def d_q(self) -> IntArray:
        """The GT records with the row's q."""
        return self.f.d_q[self.cell]

    @cached_property
    def s_q(self) -> IntArray:
        """The SD records with the row's q."""
        return self.f.s_q[self.cell]

    @cached_property
    def has_one_level(self) -> Mask:
        """True if all SD records with the row's q have one target level."""
        return self.sum_by_q(is_only_level(self.f.s, self.f.s_q)) > 0

    def sum_by_q(self, values: IntArray | Mask) -> IntArray:
        """Return the sum of some values of the cells (shape: cells) over those with each row's q."""
        of_rows: IntArray = self.f.at_cells(self.f.sum_by_q(values), self.cell)
        return of_rows

    @cached_property
    def by_level(self) -> FrequencyTable:
        """All GT and SD records by target level."""
        return self.of_levels or tabulate_levels(self.f.per_target(self.f.d), self.f.per_target(self.f.s))

    @cached_property
    def _found(self) -> dict[Any, Any]:
        return {}

    def remember(self, what: Any, find: Callable[[], Found]) -> Found:
        """Return what was found of the rows before, or find it."""
        if what not in self._found:
            self._found[what] = find()
        found: Found = self._found[what]
        return found

    @cached_property
    def is_left(self) -> Mask:
        """True if the exclusions leave the row."""
        return np.ones(len(self), dtype=bool) if self.d_left is None else (self.d_left > 0)[self.cell]

    @cached_property
    def left_d_q(self) -> IntArray:
        """The GT records with the row's q that the exclusions leave."""
        return self.d_q if self.d_left is None else self.sum_by_q(self.d_left)

    @cached_property
    def left_s(self) -> IntArray:
        """The SD records with the row's q and t that the exclusions leave."""
        return self.s if self.s_left is None else self.s_left[self.cell]

    @cached_property
    def left_s_q(self) -> IntArray:
        """The SD records with the row's q that the exclusions leave."""
        return self.s_q if self.s_left is None else self.sum_by_q(self.s_left)

    @cached_property
    def own(self) -> IntArray:
        """The records of the row's own unit."""
        return self.count_own(np.zeros_like(self.cell))

    @cached_property
    def own_q(self) -> IntArray:
        """Those of them with the row's q."""
        return self.count_own(self.q)

    @cached_property
    def own_t(self) -> IntArray:
        """Those of them with the row's q and t."""
        return self.count_own(self.cell)

    @cached_property
    def left_own_q(self) -> IntArray:
        """Those of them with the row's q that the exclusions leave."""
        return self.own_q if self.d_left is None else self.count_own(self.q, self.is_left.astype(np.int64))

    @cached_property
    def has_several(self) -> bool:
        """True if some unit has several records."""
        return self.unit is not None and self.units < len(self)

    def count_own(self, place: IntArray, counted: IntArray | int = 1) -> IntArray:
        """Return the records of the row's own unit in its place; only those `counted`."""
        if not self.has_several:
            return np.ones_like(self.cell) * counted
        assert self.unit is not None
        numbers = self.unit * (int(place.max(initial=0)) + 1) + place
        _, alike = np.unique(numbers, return_inverse=True)
        of_rows: IntArray = sum_by_position(alike, counted)[alike]
        return of_rows

    @cached_property
    def units(self) -> int:
        """The number of units."""
        return len(self) if self.unit is None else int(np.count_nonzero(np.bincount(self.unit)))

    @cached_property
    def sizes(self) -> list[tuple[Sizes, IntArray]]:
        """The sizes of the tables beside a unit, and the rows of units with as many records."""
        if self.unit is None:
            return [(Sizes(self.f.N_d, self.f.N_s), np.arange(len(self)))]
        return [
            (Sizes(self.f.N_d, self.f.N_s, own), np.flatnonzero(self.own == own))
            for own in np.unique(self.own).tolist()
        ]

    @cached_property
    def none_of_own_key_in_others(self) -> Floats:
        """The chance that n records of the others have none with the row's q."""
        return self.none_of_others(self.d_q - self.own_q)

    @cached_property
    def none_of_own_key_in_synthetic(self) -> Floats:
        """The chance that n records of SD have none with the row's q."""
        return self.none_of_synthetic(self.s_q)

    @cached_property
    def none_of_left_key_in_others(self) -> Floats:
        """The same of those records with the row's q that the exclusions leave."""
        if self.d_left is None:
            return self.none_of_own_key_in_others
        return self.none_of_others(self.left_d_q - self.left_own_q)

    @cached_property
    def none_of_left_key_in_synthetic(self) -> Floats:
        """The same of those records with the row's q that the exclusions leave."""
        return (
            self.none_of_own_key_in_synthetic
            if self.s_left is None
            else self.none_of_synthetic(self.left_s_q)
        )

    def none_of_others(self, records: IntArray) -> Floats:
        """Return P0 of a number of records for each row."""
        return self.find_chances(Sizes.p0, np.maximum(records, 0))

    def none_of_synthetic(self, records: IntArray) -> Floats:
        """Return Q0 of a number of records for each row."""
        return self.find_chances(Sizes.q0, records)

    def only_of_synthetic(self, records: IntArray) -> Floats:
        """Return Q0(s_q - m) - Q0(s_q) of each row's m records: n have the q, and none but these have it."""
        return self.none_of_synthetic(self.s_q - records) - self.none_of_own_key_in_synthetic

    def only_of_others(self, records: IntArray) -> Floats:
        """Return P0(o - m) - P0(o) of each row's m records, with o those of other units."""
        return self.none_of_others(self.d_q - self.own_q - records) - self.none_of_own_key_in_others

    def find_chances(self, find: Callable[..., Floats], *records: IntArray) -> Floats:
        """Return the chances that `find` gives for the sizes beside a row's unit and numbers of records."""
        if len(self.sizes) == 1:  # all have the same
            return find(self.sizes[0][0], *records)
        chances = np.empty(len(self))
        for sizes, at in self.sizes:
            chances[at] = find(sizes, *(of_rows[at] for of_rows in records))
        return chances

    def own_records(self, counted: Mask | None = None, *, by_key: bool = True) -> OwnRecords:
        """Return the records of each unit by cell, or by target level; only those `counted`."""
        assert self.unit is not None
        number = np.ones(len(self), dtype=np.int64) if counted is None else counted.astype(np.int64)
        q, cell = (self.q, self.cell) if by_key else (np.zeros_like(self.q), self.t)
        return OwnRecords.of(q, cell, self.unit, number)


@dataclass(frozen=True)
class OwnRecords:
    """The records of each unit in each cell, in order of q, unit and t.

    records: of the unit in the `cell`. pair: number of the pair (q, unit). entry: the entry of each row.
    """

    cell: IntArray
    records: IntArray
    pair: IntArray
    entry: IntArray

    @classmethod
    def of(cls, q: IntArray, cell: IntArray, unit: IntArray, records: IntArray) -> OwnRecords:
        """Add up `records` by cell and unit; `q` belongs to `cell` (all arrays: one entry per row)."""
        order = np.lexsort((cell, unit, q))
        ordered = cell[order]
        begins_pair = first_of_run(q[order]) | first_of_run(unit[order])
        begins = begins_pair | first_of_run(ordered)
        first = np.flatnonzero(begins)
        entry = np.empty_like(order)
        entry[order] = np.cumsum(begins) - 1
        added = np.add.reduceat(records[order], first)
        return cls(ordered[first], added, (np.cumsum(begins_pair) - 1)[first], entry)


_CELLS_AT_A_TIME = 1 << 21


def beside_other_units(
    f: FrequencyTable, own: OwnRecords, entries: IntArray
) -> Iterator[tuple[IntArray, FrequencyTable, IntArray]]:
    """Yield, for some entries at a time, tables in which each entry has a q of its own.

    Of the unit's records, only one in the entry's cell is left there: so a figure that leaves a single record
    out of its table leaves out the whole unit. Returns the entries, their table, and the cell of each in it.
    """
    q = f.q[own.cell[entries]]
    start, end = np.searchsorted(f.q, q), np.searchsorted(f.q, q, side="right")
    first_of_pair = np.searchsorted(own.pair, own.pair[entries])
    of_pair = np.searchsorted(own.pair, own.pair[entries], side="right") - first_of_pair
    part = np.cumsum(end - start) // _CELLS_AT_A_TIME
    for chosen in np.split(np.arange(len(entries)), np.flatnonzero(np.diff(part)) + 1):
        lengths = (end - start)[chosen]
        view = np.repeat(np.arange(len(chosen)), lengths)
        cells = np.repeat(start[chosen], lengths) + aranges(lengths)
        first = np.cumsum(lengths) - lengths
        d = f.d[cells]
        own_entries = np.repeat(first_of_pair[chosen], of_pair[chosen]) + aranges(of_pair[chosen])
        own_view = np.repeat(np.arange(len(chosen)), of_pair[chosen])
        d[first[own_view] + own.cell[own_entries] - start[chosen][own_view]] -= own.records[own_entries]
        at = first + own.cell[entries[chosen]] - start[chosen]
        d[at] += own.records[entries[chosen]] > 0
        d_q = np.repeat(np.add.reduceat(d, first), lengths)
        nothing = np.zeros_like(d)
        table = replace(f, q=view, t=f.t[cells], d=d, s=nothing, d_q=d_q, s_q=nothing, keys=len(chosen))
        yield entries[chosen], table, at


@dataclass(frozen=True, eq=False)
class Guess:
    """The chances that a guess about each row is right.

    named: by the records with its q. matched: that there are any. `find_always` returns `always`.
    """

    named: Floats
    matched: Floats
    find_always: Callable[[], Floats]

    @cached_property
    def always(self) -> Floats:
        """By the guess of the whole table."""
        return self.find_always()

    @cached_property
    def by_key(self) -> Floats:
        """By the records with the row's q, and by the guess of the whole table if there are none."""
        of_rows: Floats = self.named + (1 - self.matched) * self.always
        return of_rows

    def apply(self, change: Callable[[Floats], Floats]) -> Guess:
        """Return the guess with changed chances."""
        return Guess(change(self.named), change(self.matched), lambda: change(self.always))


@dataclass(frozen=True)
class CommonGuess:
    """The guess of all records, GT and SD, in place of those of both tables where they have no record of a q.

    chances: that each level is guessed (shape: targets). of_levels: each of these levels is a guess of its
    own, of which one is made.
    """

    chances: Floats
    of_levels: bool

    @property
    def number(self) -> int:
        """The number of guesses of which one is made."""
        return max(int(np.count_nonzero(self.chances)), 1) if self.of_levels else 1
