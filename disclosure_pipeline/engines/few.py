"""Key combinations that few records have: each record is compared with every other one of its q.

Where most keys are rare this is much faster than to sort the cells of each target: for so few records all
counts fit into a byte, and the q of as many records are worked on at once. A cell is seen here as often as
there are records in it, so a sum over cells becomes a sum over records: of d² the sum of d over GT records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.engines.counted import OfTarget
from disclosure_pipeline.measures.cells import CellTotals, LargeCells
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.measures.grouped import Grouped
from disclosure_pipeline.measures.totals import KeySums, totals_of_keys

Codes = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]

MOST = 7  # records of a q; their number squared is the largest sum, which fits a byte
_BITS = 3  # of a number of records
_NONE = 1 << (2 * _BITS + 1)  # stands for what is no record of GT
_SMALL = 1 << 12  # entries of a table that is worth making for any number of records


@dataclass(frozen=True)
class Few:
    """Some q that have n records each: `records` (shape: n, q), in each q those of GT before those of SD.

    `d_q`, `s_q`: how many records of each table a q has. `of_GT` (shape: n, q) is 1 for those of GT, else 0.
    """

    records: Codes
    d_q: Bytes
    s_q: Bytes
    of_GT: Bytes


def few_of(records: Codes, first: IntArray, number: IntArray, table: int) -> Iterator[Few]:
    """The q of 2 to `MOST` sorted records, by their number; each begins at `first` and has `number` of them.

    The binary digit `table` says whether a record is of SD.
    """
    for n in range(2, MOST + 1):
        start = first[number == n]
        if len(start):
            some = records[start + np.arange(n)[:, None]]
            of_GT = (((some >> records.dtype.type(table)) & records.dtype.type(1)) ^ 1).astype(np.uint8)
            d_q = of_GT.sum(axis=0, dtype=np.uint8)
            yield Few(some, d_q, np.uint8(n) - d_q, of_GT)


def can_be_compared(few: Few, size: int, levels: int) -> bool:
    """Whether `of_few` measures a target of `size` codes, of which `levels` occur in GT or in SD.

    Not where its table of counts would be larger than the work; and not where no level is missing in some q,
    since it does not look for the rarest one.
    """
    if (_NONE + 1) * size > max(few.records.size, _SMALL):
        return False
    in_GT = few.d_q[few.d_q > 0]
    return not len(in_GT) or int(in_GT.min()) < levels


def of_few(
    few: Few, t: Codes, size: int, larger_than: float, levels_of: Callable[[IntArray], IntArray], keys: int
) -> OfTarget:
    """What the q tell of one target; nothing is excluded.

    `t` (shape: n, q): the codes of the records. `levels_of` gives the level of each of the `keys` in some of
    the q.
    """
    d, s = _cells(few, t)
    totals = totals_of_keys(_key_sums(few, d, s))
    disclosed = ((s == few.s_q) & (few.s_q > 0)).view(np.uint8) & few.of_GT
    kind = (disclosed << np.uint8(2 * _BITS)) | (d << np.uint8(_BITS)) | few.s_q
    kind[few.of_GT == 0] = _NONE
    place = kind.astype(np.min_scalar_type((_NONE + 1) * size))
    place *= place.dtype.type(size)
    place += t
    counts = np.bincount(place.ravel(), minlength=(_NONE + 1) * size)[: _NONE * size]
    of_GT = counts.reshape(2, 1 << _BITS, 1 << _BITS, size)  # GT records by DiSCO, d, s_q, t
    number = np.arange(1 << _BITS)
    in_both = of_GT.sum(axis=0)
    in_both[:, 0] = 0
    cells = CellTotals(
        guessed=_guessed(few, t, s, size),
        DiSCO_t=_grouped(of_GT[1].sum(axis=(0, 1))),
        drawn=_grouped(in_both.sum(axis=0).ravel()),
        drawn_squares=_grouped((in_both * number[:, None, None]).sum(axis=0).ravel()),
        most=int(number[of_GT.any(axis=(0, 2, 3))].max(initial=0)),
        least=0,
        least_share=Fraction(0 if few.d_q.any() else 1),
    )
    return OfTarget(totals, cells, _large(few, t, d, disclosed, larger_than, levels_of, keys), None)


def _cells(few: Few, t: Codes) -> tuple[Bytes, Bytes]:
    """For each record the GT and the SD records of its cell."""
    d, of_SD = few.of_GT.copy(), few.of_GT ^ 1
    s = of_SD.copy()
    for apart in range(1, len(t)):
        same = (t[apart:] == t[:-apart]).view(np.uint8)
        d[apart:] += same & few.of_GT[:-apart]
        d[:-apart] += same & few.of_GT[apart:]
        s[apart:] += same & of_SD[:-apart]
        s[:-apart] += same & of_SD[apart:]
    return d, s


def _key_sums(few: Few, d: Bytes, s: Bytes) -> KeySums:
    """The five sums, an entry for all q that have the same."""
    n = len(d)
    dd = (d * few.of_GT).sum(axis=0, dtype=np.uint8)
    ds = (s * few.of_GT).sum(axis=0, dtype=np.uint8)
    ss = (s * (few.of_GT ^ 1)).sum(axis=0, dtype=np.uint8)
    sizes = (n + 1, n * n + 1, n * n + 1, n * n // 4 + 1)
    code = few.d_q.astype(np.uint32)
    for sums, size in zip((dd, ss, ds), sizes[1:], strict=True):
        code *= np.uint32(size)
        code += sums
    counts = np.bincount(code)
    found = np.flatnonzero(counts)
    d_q, of_dd, of_ss, of_ds = np.unravel_index(found, sizes)
    return KeySums(d_q, n - d_q, of_dd, of_ss, of_ds, counts[found])


def _guessed(few: Few, t: Codes, s: Bytes, size: int) -> int:
    """GT records in the cells of `cells.guessed_by_mode`: of the most frequent level of SD, or the first."""
    dtype = np.min_scalar_type((MOST + 1) * size)
    rank = s.astype(dtype)
    rank *= dtype.type(size)
    rank += dtype.type(size - 1) - t.astype(dtype)
    # A level that SD does not have at q ranks below all that it has: only q that are not in SD are left out.
    best = rank.max(axis=0)
    return int(np.count_nonzero((rank == best) & (few.of_GT > 0) & (few.s_q > 0)))


def _large(
    few: Few,
    t: Codes,
    d: Bytes,
    disclosed: Bytes,
    larger_than: float,
    levels_of: Callable[[IntArray], IntArray],
    keys: int,
) -> LargeCells:
    """The DiSCO cells of more than so many records."""
    if len(t) <= larger_than + 1:  # one record at least is of SD
        return LargeCells.nothing(keys)
    i, q = np.nonzero(disclosed & (d > larger_than))
    if not len(q):
        return LargeCells.nothing(keys)
    _, first = np.unique(q, return_index=True)  # a q has one DiSCO cell
    i, q = i[first], q[first]
    return LargeCells(levels_of(q), t[i, q].astype(np.int64), d[i, q].astype(np.int64))


def _grouped(counts: IntArray) -> Grouped:
    """Sums by their place."""
    found = np.flatnonzero(counts)
    return Grouped(found, counts[found])
