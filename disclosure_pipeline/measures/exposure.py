"""DiSCO of one of many key sets, and beyond other people's records, from a few sums.

The formulas are those of `baselines`. All counts add up over key combinations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from disclosure_pipeline.measures.baselines import sum_of_squares
from disclosure_pipeline.measures.exact import Floats, IntArray
from disclosure_pipeline.measures.samples import Sizes, to_integer_chances

_NEGLIGIBLE = 1e-30
_FEW = 3  # up to this many numbers of other records, comparing is faster than looking up


@dataclass(frozen=True)
class DrawChances:
    """P0(m) and Q0(m) of `samples.Sizes` for m = 0, 1, … until they are negligible."""

    p0: Floats
    q0: Floats

    @classmethod
    def for_sizes(cls, sizes: Sizes) -> DrawChances:
        """Tabulate for tables of these sizes."""
        p0 = sizes.p0(_numbers(sizes.others_left, sizes.N_d - 1, sizes.n))
        q0 = sizes.q0(_numbers(sizes.synthetic_left, sizes.N_s, sizes.n))
        return cls(p0[p0 > _NEGLIGIBLE], q0[q0 > _NEGLIGIBLE])


def _numbers(left: int, records: int, n: int) -> IntArray:
    """Return 0, 1, … until the chance of m, at most (1 - n / records)^m, is negligible."""
    most = math.ceil(-math.log(_NEGLIGIBLE) * records / n) if n else left
    return np.arange(min(left, most) + 1)


@dataclass(frozen=True)
class KeySetDisclosure:
    """DiSCO, DiSCO at n (at_n) and DiSCO_others (by_others), in GT records; see also `DisclosedCounts`."""

    DiSCO: int
    at_n: float
    by_others: float
    smallest_support: int
    squares: int


def _smallest(supports: Sequence[int]) -> int:
    return min(filter(None, supports), default=0)


@dataclass(frozen=True)
class DisclosedCounts:
    """Counts for `disclosure_of_key_set` over some key combinations; they add up over combinations.

    by_other_levels_in_SD, by_other_levels: GT records by the number of SD (GT) records with their q and
        another level, from 0 up to the last number that `DrawChances` has.
    smallest_support: the smallest number of SD records that agree on a disclosed record; 0 if there is none.
    squares: squares of what the records of each q add to DiSCO_beyond.
    """

    DiSCO: int
    by_other_levels_in_SD: Floats
    by_other_levels: Floats
    squares: int
    smallest_support: int = field(metadata={"add": _smallest})

    @classmethod
    def empty(cls, chances: DrawChances) -> DisclosedCounts:
        """Return the counts of no key combination."""
        return cls(0, np.zeros(len(chances.q0)), np.zeros(len(chances.p0)), 0, 0)


@dataclass(frozen=True)
class KeySetKeyCounts:
    """GT records by the number of SD records and of other GT records with their q; the same for all targets.

    with_others: iS_others in GT records.
    """

    by_s_q: Floats
    by_others: Floats
    with_others: float

    @classmethod
    def from_frequencies(cls, d_q: IntArray, s_q: IntArray, chances: DrawChances) -> KeySetKeyCounts:
        """Count from d_q and s_q of all key combinations (shape: q)."""
        by_others = _sum_by_number(d_q, np.maximum(d_q - 1, 0), len(chances.p0))
        return cls(
            _sum_by_number(d_q, s_q, len(chances.q0)) if len(chances.q0) > 1 else np.zeros(1),
            by_others,
            float(d_q.sum()) - float(by_others @ chances.p0),
        )


def disclosure_of_key_set(
    counts: DisclosedCounts, of_keys: KeySetKeyCounts, chances: DrawChances
) -> KeySetDisclosure:
    """Compute DiSCO, DiSCO at n and DiSCO_others: see `baselines`."""
    return KeySetDisclosure(
        DiSCO=counts.DiSCO,
        at_n=float(counts.DiSCO)
        if len(chances.q0) == 1
        else float(counts.by_other_levels_in_SD @ chances.q0) - float(of_keys.by_s_q @ chances.q0),
        by_others=float(counts.by_other_levels @ chances.p0) - float(of_keys.by_others @ chances.p0),
        smallest_support=counts.smallest_support,
        squares=counts.squares,
    )


@dataclass(frozen=True)
class CellCounts:
    """The GT records `d` and SD records `s` of cells, with the sums d_q and s_q.

    Either of a dense table (targets, q), or of the cells that occur; then `first` are the first cells of q.

    disclosed: GT records that DiSCO counts, by q or by cell. support: the SD records of the same q or cells.
    alone: all GT records whose level is the only one that GT has in their q.
    """

    d: IntArray
    s: IntArray
    d_q: IntArray
    s_q: IntArray
    disclosed: IntArray
    support: IntArray
    alone: int
    first: IntArray | None = None


def disclosed_counts(cells: CellCounts, chances: DrawChances) -> DisclosedCounts:
    """Count from cells; the support of a disclosed record is the number of SD records that agree on it."""
    support = cells.support[cells.disclosed > 0]
    numbers, numbers_in_SD = len(chances.p0), len(chances.q0)
    return DisclosedCounts(
        DiSCO=int(cells.disclosed.sum()),
        by_other_levels_in_SD=_sum_by_number(cells.d, cells.s_q - cells.s, numbers_in_SD)
        if numbers_in_SD > 1
        else np.zeros(1),
        by_other_levels=_sum_by_number(cells.d, cells.d_q - cells.d, numbers)
        if numbers > 1
        else np.array([float(cells.alone)]),
        squares=_square_differences(cells, chances),
        smallest_support=int(support.min()) if len(support) else 0,
    )


def _square_differences(cells: CellCounts, chances: DrawChances) -> int:
    """Return the sum of the squares of what the records of each q add to DiSCO_beyond."""
    if not cells.d.size:
        return 0
    q0, p0 = to_integer_chances(chances.q0), to_integer_chances(chances.p0)
    added = _look_up(q0, cells.s_q - cells.s) - _look_up(p0, cells.d_q - cells.d)
    added -= _look_up(q0, cells.s_q) - _look_up(p0, np.maximum(cells.d_q - 1, 0))
    added *= cells.d
    return sum_of_squares(added.sum(axis=0) if cells.first is None else np.add.reduceat(added, cells.first))


def _look_up(chances: IntArray, records: IntArray) -> IntArray:
    """Return the chance that none of `records` is drawn, 0 if it is negligible."""
    if len(chances) <= _FEW:
        return sum((chance * (records == m) for m, chance in enumerate(chances.tolist())), 0 * records)
    return np.append(chances, 0)[np.minimum(records, len(chances))]


def _sum_by_number(records: IntArray, other_records: IntArray, numbers: int) -> Floats:
    """Add up the records by their number of `other_records`, if below `numbers`."""
    if numbers <= _FEW:
        return np.array([float(records[other_records == m].sum()) for m in range(numbers)])
    possible = other_records < numbers
    sums = np.bincount(other_records[possible], weights=records[possible], minlength=numbers)
    return sums.astype(np.float64)
