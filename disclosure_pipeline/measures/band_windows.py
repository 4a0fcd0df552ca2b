"""Windows: the cells of one key combination whose amounts lie within a band."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from disclosure_pipeline.measures.band_places import Band
from disclosure_pipeline.measures.exact import IntArray, Mask
from disclosure_pipeline.measures.frequency import FrequencyTable, Rows

_NARROW = 2**31


@dataclass(frozen=True)
class Windows:
    """The cells of a table in order of key combination and place, and where the band of each ends.

    f: the table, of which t is the place. order: the position of each cell in the table that it is of.
    """

    f: FrequencyTable
    band: Band
    order: IntArray

    @classmethod
    def over(cls, f: FrequencyTable, band: Band) -> Windows:
        """Order the cells of a table."""
        if band.is_ordered:
            return cls(f, band, np.arange(len(f.q)))
        t = band.place[f.t]
        by_place = np.lexsort((t, f.q))
        return cls(_select(replace(f, t=t), by_place, f.alike), band, by_place)

    def select_keys(self, of_q: Mask) -> Windows:
        """Return the windows of the marked q (shape: q with cells)."""
        cells, alike = np.flatnonzero(self.f.at_cells(of_q)), self.f.alike
        alike = alike if isinstance(alike, int) else alike[of_q]
        return replace(self, f=_select(self.f, cells, alike), order=self.order[cells])

    @cached_property
    def position(self) -> IntArray:
        """The position of each cell of the table among those in order; of some q, only of their cells."""
        position = np.zeros(int(self.order.max(initial=-1)) + 1, dtype=np.int64)
        position[self.order] = np.arange(len(self.order))
        return position

    @cached_property
    def reach(self) -> IntArray:
        """The position after the last cell that fits into one band with each cell."""
        return self.locate(np.arange(len(self.f.q)), self.band.reach)

    @cached_property
    def _places(self) -> IntArray:
        """The cells as ascending numbers, in 32 bits if these suffice: they are found faster."""
        dtype = np.int32 if self.f.keys * (self.band.size + 1) < _NARROW else np.int64
        return self.f.q.astype(dtype) * dtype(self.band.size) + self.f.t.astype(dtype)

    def locate(self, cells: IntArray, ends: IntArray) -> IntArray:
        """Return the position in its q of the place that `ends` gives for the place of each cell."""
        t = self.f.t[cells]
        return np.searchsorted(self._places, self._places[cells] + (ends[t] - t).astype(self._places.dtype))

    def may_fit(self, records: IntArray, left: int) -> Mask:
        """Mark the q whose records, except `left` + 1 of them, may fit into one band.

        If they do, the band holds the middle record, so only records within reach of that are counted.
        """
        f, up_to = self.f, sum_before(records)
        first, end = up_to[f.first], up_to[np.append(f.first[1:], len(f.q))]
        number = end - first
        middle = np.searchsorted(up_to, first + number // 2, side="right") - 1
        middle = np.minimum(middle, len(f.q) - 1)
        back = np.searchsorted(self.band.reach, np.arange(self.band.size), side="right")
        around = up_to[self.locate(middle, self.band.reach)] - up_to[self.locate(middle, back)]
        return (around >= number - left - 1) | (number <= 2 * (left + 1))

    def from_smallest(self, records: IntArray) -> IntArray:
        """Return W_v of each cell: the records from it up to the largest amount that fits into one band."""
        up_to = sum_before(records)
        return up_to[self.reach] - up_to[:-1]


def _select(f: FrequencyTable, cells: IntArray, alike: IntArray | int) -> FrequencyTable:
    names = ["q", "t", "d", "s", "d_q", "s_q", *(() if isinstance(f.n, int) else ("n",))]
    return replace(f, alike=alike, **{name: getattr(f, name)[cells] for name in names})


def sum_before(values: IntArray) -> IntArray:
    """Return the sums of the values before each position, and of all values."""
    return np.concatenate(([0], np.cumsum(values, dtype=np.int64)))


def order_by_amount(r: Rows) -> Windows:
    """Return the cells of the rows' table in order of amount."""
    band = r.band
    assert band is not None
    return r.remember(Windows, lambda: Windows.over(r.f, band))


def count_near(r: Rows, records: IntArray) -> IntArray:
    """Return those of the records (shape: cells) that have each row's q and lie within its band."""
    w = order_by_amount(r)

    def find_ends() -> tuple[IntArray, IntArray]:
        at = w.position[r.cell]
        return w.locate(at, w.band.low), w.locate(at, w.band.high)

    first, end = r.remember(count_near, find_ends)
    up_to = sum_before(records if w.band.is_ordered else records[w.order])
    return up_to[end] - up_to[first]


def count_own_near(r: Rows, counted: Mask | None = None) -> IntArray:
    """Return the records of each row's unit with its q and within its band; only those `counted`."""
    if not r.has_several:
        return np.ones(len(r), dtype=np.int64) if counted is None else counted.astype(np.int64)
    assert r.band is not None
    own = r.own_records(counted)
    place, start = r.band.place[r.f.t[own.cell]], own.pair * (r.band.size + 1)
    order = np.argsort(start + place)
    ascending, up_to = (start + place)[order], sum_before(own.records[order])
    first, end = (np.searchsorted(ascending, start + ends[place]) for ends in (r.band.low, r.band.high))
    return (up_to[end] - up_to[first])[own.entry]
