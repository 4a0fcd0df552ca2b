"""Records, one a row, with what is known of the cell and the person of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from disclosure_pipeline.measures.band_places import Band
from disclosure_pipeline.measures.exact import Floats, IntArray, Mask, sum_by_position
from disclosure_pipeline.measures.frequency import FrequencyTable, first_of_run
from disclosure_pipeline.measures.samples import Sizes


@dataclass(frozen=True, eq=False)
class Rows:
    """GT records, one a row; or, where nobody has two, cells, of which all records add the same.

    cell: the position of each row's cell (q, t) in `f`, the table before the exclusions.
    unit: the number of the person whose each record is; None if nobody has two.
    d_left, s_left: the GT and SD records that the exclusions leave in each cell (shape: cells); None: all.
    no_guess: the target levels that nobody guesses (shape: targets).
    band: how close an amount must be told; None for a target of levels. certainties: at which an intruder
        acts who wants an amount.
    """

    f: FrequencyTable
    cell: IntArray
    unit: IntArray | None = None
    d_left: IntArray | None = None
    s_left: IntArray | None = None
    no_guess: Mask | None = None
    band: Band | None = None
    certainties: tuple[Fraction, ...] = ()

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
        return self.sum_by_q((self.f.s > 0) & (self.f.s == self.f.s_q)) > 0

    def sum_by_q(self, values: IntArray | Mask) -> IntArray:
        """Return the sum of some values of the cells (shape: cells) over those with each row's q."""
        of_rows: IntArray = self.f.at_cells(self.f.sum_by_q(values), self.cell)
        return of_rows

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
        return self._count_own(np.zeros_like(self.cell))

    @cached_property
    def own_q(self) -> IntArray:
        """Those of them with the row's q."""
        return self._count_own(self.q)

    @cached_property
    def own_t(self) -> IntArray:
        """Those of them with the row's q and t."""
        return self._count_own(self.cell)

    @cached_property
    def left_own_q(self) -> IntArray:
        """Those of them with the row's q that the exclusions leave."""
        return self.own_q if self.d_left is None else self._count_own(self.q, self.is_left.astype(np.int64))

    def _count_own(self, place: IntArray, counted: IntArray | int = 1) -> IntArray:
        if self.unit is None or self.units == len(self):  # nobody has two
            return np.ones_like(self.cell) * counted
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
        return self._find_chances(Sizes.p0, np.maximum(records, 0))

    def none_of_synthetic(self, records: IntArray) -> Floats:
        """Return Q0 of a number of records for each row."""
        return self._find_chances(Sizes.q0, records)

    def _find_chances(self, find: Callable[[Sizes, IntArray], Floats], records: IntArray) -> Floats:
        if self.unit is None:  # all have the same sizes
            return find(self.sizes[0][0], records)
        chances = np.empty(len(self))
        for sizes, at in self.sizes:
            chances[at] = find(sizes, records[at])
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
