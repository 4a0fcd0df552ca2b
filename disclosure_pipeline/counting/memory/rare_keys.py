"""Key combinations of few records: each record is compared with every other one of its q.

Where most keys are rare this is much faster than sorting the cells of each target: all counts fit into a
byte, and all q with the same number of records are counted at once. Sums over cells become sums over records:
d² summed over cells is d summed over GT records.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.counting.counts import KeyCounts, Target, TargetCounts, count_keys
from disclosure_pipeline.counting.memory.radix import Bytes, Codes
from disclosure_pipeline.counting.memory.rare_bands import count_rare_bands
from disclosure_pipeline.measures.baselines import (
    BaselineCounts,
    Squares,
    attributed_beyond,
    found_beyond,
    sum_of_squares,
)
from disclosure_pipeline.measures.checks import sum_by_pair
from disclosure_pipeline.measures.exact import Grouped, IntArray, Mask
from disclosure_pipeline.measures.guesses import GuessCounts
from disclosure_pipeline.measures.samples import Sizes, to_integer_chances
from disclosure_pipeline.measures.totals import CellTotals, KeySums, totals_of_keys

_RANGE = 8  # a q has 0 to 7 records of a table
_FEWEST_OTHERS = 2  # GT records of a q, so that each has another


@dataclass(frozen=True)
class RareCells:
    """The cells of one target at q of n records each, seen from each record (shape: n, q).

    is_original, is_synthetic: 1 for records of GT, of SD. d_q, s_q: numbers of records by q. t: target codes.
    d: for a GT record the GT records of its cell, else 0. s: the SD records of any record's cell.
    by_s_q_t: the GT records by s_q and t.
    """

    is_original: Bytes
    is_synthetic: Bytes
    d_q: Bytes
    s_q: Bytes
    t: Codes
    d: Bytes
    s: Bytes
    by_s_q_t: IntArray

    def count_original(self, q: IntArray) -> IntArray:
        """Count the GT records of some of the q, by level."""
        t = self.t.take(q, axis=1)[self.is_original.take(q, axis=1) > 0]
        return np.bincount(t, minlength=self.by_s_q_t.shape[1])


def count_rare_baselines(
    cells: RareCells, sums: KeySums, disclosed: Bytes, sizes: Sizes, no_guess: Mask | None
) -> BaselineCounts:
    """Count as `baseline_counts` does, with nothing excluded or drawn.

    `disclosed` marks the DiSCO records. `no_guess` marks levels; None if no record has such a level.
    """
    may_be = None if no_guess is None else (~no_guess).view(np.uint8).take(cells.t, mode="clip")
    guesses = count_rare_guesses(cells, may_be)
    return _count_baselines(
        cells, sums, disclosed, sizes, guesses, _count_guesses_without_self(cells, may_be, no_guess)
    )


def _count_baselines(
    cells: RareCells,
    sums: KeySums,
    disclosed: Bytes,
    sizes: Sizes,
    guesses: GuessCounts,
    without_self: GuessCounts,
) -> BaselineCounts:
    n = len(cells.t)
    one_other_level = (cells.s + np.uint8(1) == cells.s_q).view(np.uint8) & cells.is_original
    code = _sum(disclosed)
    for number, size in (
        (_sum(one_other_level), _RANGE),
        ((cells.d[0] == cells.d_q).view(np.uint8), 2),  # all GT records, which come first, have one level
        (cells.s_q, _RANGE),
    ):
        code = code * np.uint16(size) + number
    counts = np.bincount(code)
    occurring = np.flatnonzero(counts)
    of_DiSCO, of_one_other_level, has_one_level, s_q = np.unravel_index(
        occurring, (_RANGE, _RANGE, 2, _RANGE)
    )
    keys, d_q = counts[occurring], n - s_q
    q0, p0 = to_integer_chances(sizes.q0(np.arange(n + 1))), to_integer_chances(sizes.p0(np.arange(n + 1)))
    added = of_DiSCO * (q0[0] - q0[s_q]) + of_one_other_level * (q0[1] - q0[s_q])
    added -= has_one_level * d_q * (p0[0] - p0[np.maximum(d_q - 1, 0)])
    in_SD = s_q > 0
    by_other_levels_in_SD = np.array([(of_DiSCO * keys).sum(), (of_one_other_level * keys).sum()])
    return BaselineCounts(
        by_d_q=Grouped.sum_by_group(d_q, d_q * keys),
        by_s_q=Grouped.sum_by_group(s_q[in_SD], (d_q * keys)[in_SD]),
        by_other_levels=Grouped.sum_by_group(np.array([0]), np.array([(has_one_level * d_q * keys).sum()])),
        by_other_levels_in_SD=Grouped.from_positions(by_other_levels_in_SD[: sizes.synthetic_left + 1]),
        left_by_d_q=None,
        squares=Squares(
            iS=sum_of_squares(d_q * found_beyond(d_q - 1, s_q, sizes), keys),
            DiSCO=sum_of_squares(added, keys),
            DCAP=sum_of_squares(
                attributed_beyond(sums.dd - sums.d_q, sums.d_q - 1, sums.ds, sums.s_q, sizes), sums.keys
            ),
        ),
        guessed=guesses,
        guessed_others=without_self,
        drawn_from_SD=None,
        drawn_from_GT=None,
    )


def count_rare_guesses(cells: RareCells, may_be: Bytes | None = None) -> GuessCounts:
    """Count as `guesses.guess_counts` does; `may_be` is 0 for records whose level is no guess, else 1.

    None means that every level may be guessed.
    """
    s = cells.s if may_be is None else cells.s * may_be
    largest = s.max(axis=0)
    top = (s == largest).view(np.uint8)
    code = (_sum(top & cells.is_original) * np.uint16(_RANGE) + _sum(top & cells.is_synthetic)) * np.uint16(
        _RANGE
    )
    counts = np.bincount(code + largest)
    occurring = np.flatnonzero(counts)
    GT_top, SD_top, most = np.unravel_index(occurring, (_RANGE, _RANGE, _RANGE))
    named = most > 0
    levels = SD_top[named] // most[named]
    matched = cells.by_s_q_t[1:].sum(axis=0)
    if may_be is not None:
        matched -= cells.count_original(np.flatnonzero((largest == 0) & (cells.s_q > 0)))
    return GuessCounts(
        Grouped.sum_by_group(levels, (GT_top * counts[occurring])[named]),
        Grouped.from_positions(matched),
    )


def _count_guesses_without_self(cells: RareCells, may_be: Bytes | None, no_guess: Mask | None) -> GuessCounts:
    """Count as `guesses.guess_counts_without_self` does."""
    n = len(cells.t)
    d = cells.d if may_be is None else cells.d * may_be
    largest = d.max(axis=0)
    total = cells.d_q if may_be is None else _sum((d > 0).view(np.uint8))
    is_second = (d + np.uint8(1) == largest) & (d > 0)
    code = _sum((d == largest).view(np.uint8) & cells.is_original)
    for number in (_sum(is_second.view(np.uint8)), largest, total):
        code = code * np.uint16(_RANGE) + number
    counts = np.bincount(code)
    occurring = np.flatnonzero(counts)
    top, second, most, records = np.unravel_index(occurring, (_RANGE,) * 4)
    alone = (most > 0) & (top == most) & (records >= _FEWEST_OTHERS)
    levels = 1 + second[alone] // np.maximum(most[alone] - 1, 1)
    matched = cells.by_s_q_t[: max(0, n - _FEWEST_OTHERS + 1)].sum(axis=0)
    if no_guess is not None:
        matched -= cells.count_original(
            np.flatnonzero((total < _FEWEST_OTHERS) & (cells.d_q >= _FEWEST_OTHERS))
        )
        matched[no_guess] = 0
    return GuessCounts(
        Grouped.sum_by_group(levels, (most * counts[occurring])[alone]),
        Grouped.from_positions(matched),
    )


def _sum(marks: Bytes) -> npt.NDArray[np.uint16]:
    """Count the marks of each q, in a type wide enough for the codes built from them."""
    return marks.sum(axis=0, dtype=np.uint8).astype(np.uint16)


MOST_RECORDS = 7  # of a q; the largest sum is its square, which fits a byte
_BITS = 3  # of a number of records
_KINDS = 1 << (2 * _BITS + 1)  # of GT records: by DiSCO or not, d and s_q
_NOT_GT = np.uint8(2 * _BITS + 1)  # the bit that marks records of SD
_SMALL_TABLE = 1 << 12  # entries: worth making for any number of records


@dataclass(frozen=True)
class RareKeys:
    """Some q of n records each, those of GT before those of SD.

    `is_synthetic` is 1 for records of SD, else 0 (shape: n, q). `d_q`, `s_q`: numbers of records by q.
    """

    is_synthetic: Bytes
    d_q: Bytes
    s_q: Bytes

    @classmethod
    def from_marks(cls, is_synthetic: Bytes) -> RareKeys:
        """Return the keys of records marked by table."""
        s_q = is_synthetic.sum(axis=0, dtype=np.uint8)
        return cls(is_synthetic, np.uint8(len(is_synthetic)) - s_q, s_q)

    @cached_property
    def is_original(self) -> Bytes:
        """1 for records of GT, else 0 (shape: n, q)."""
        return self.is_synthetic ^ np.uint8(1)

    @cached_property
    def is_in_synthetic(self) -> Bytes:
        """1 for records of GT whose q is in SD, else 0 (shape: n, q)."""
        return self.is_original & (self.s_q > 0)

    @cached_property
    def kinds(self) -> Bytes:
        """s_q, with a bit that marks records of SD (shape: n, q)."""
        return (self.is_synthetic << _NOT_GT) | self.s_q

    @cached_property
    def keys_by_d_q(self) -> IntArray:
        """The number of q with 0, 1, … n records of GT."""
        return np.bincount(self.d_q, minlength=len(self.is_synthetic) + 1)

    def count_keys(self) -> KeyCounts:
        """Count these q, whatever the target."""
        d_q = np.arange(len(self.keys_by_d_q))
        return count_keys(d_q, len(self.is_synthetic) - d_q, self.keys_by_d_q)


def can_be_compared(rare: RareKeys, size: int, levels: int) -> bool:
    """Return whether `count_rare_keys` can count a target of `size` codes, `levels` of which occur.

    It cannot if its table of counts would be larger than the work, or if some q may have every level, as it
    does not look for the rarest one.
    """
    if _KINDS * size > max(rare.is_synthetic.size, _SMALL_TABLE):
        return False
    in_GT = np.flatnonzero(rare.keys_by_d_q[1:]) + 1
    return not len(in_GT) or int(in_GT[0]) < levels


def count_rare_keys(
    rare: RareKeys,
    t: Codes,
    target: Target,
    synthesis: int,
    key_levels_of: Callable[[IntArray], IntArray],
    keys: int,
) -> TargetCounts:
    """Count one target for which sums over key combinations are enough (`counts.can_be_summed`).

    `t`: the code of each record (shape: n, q). `key_levels_of` gives the level of each of the `keys` in some
    of the q.
    """
    size = target.column.size
    d, s = _records_of_cells(rare, t)
    sums = _key_sums(rare, d, s)
    # `totals.is_only_level` by record, at key combinations that are in SD.
    disclosed = (s == rare.s_q).view(np.uint8) & rare.is_in_synthetic
    kind = disclosed << np.uint8(2 * _BITS)
    kind |= d << np.uint8(_BITS)
    kind |= rare.kinds
    cell = kind.astype(np.min_scalar_type(2 * _KINDS * size))
    cell *= cell.dtype.type(size)
    cell += t
    counts = np.bincount(cell.ravel(), minlength=2 * _KINDS * size)[: _KINDS * size]
    GT_counts = counts.reshape(2, 1 << _BITS, 1 << _BITS, size)  # GT records by DiSCO, d, s_q, t
    number = np.arange(1 << _BITS)
    in_both = GT_counts.sum(axis=0)
    in_both[:, 0] = 0
    rare_cells = RareCells(
        rare.is_original, rare.is_synthetic, rare.d_q, rare.s_q, t, d, s, GT_counts.sum(axis=(0, 1))
    )
    no_guess = target.occurring_no_guess(synthesis)
    baselines = count_rare_baselines(rare_cells, sums, disclosed, target.sizes(synthesis), no_guess)
    cells = CellTotals(
        guessed=baselines.guessed.named if no_guess is None else count_rare_guesses(rare_cells).named,
        DiSCO_t=Grouped.from_positions(GT_counts[1].sum(axis=(0, 1))),
        d_by_s_q_t=Grouped.from_positions(in_both.sum(axis=0).ravel()),
        dd_by_s_q_t=Grouped.from_positions((in_both * number[:, None, None]).sum(axis=0).ravel()),
        largest_d=int(number[GT_counts.any(axis=(0, 2, 3))].max(initial=0)),
        smallest_d=0,
        smallest_share=Fraction(1 if rare.keys_by_d_q[0] == len(rare.d_q) else 0),
    )
    large = _large_cells(t, d, disclosed, target.list_cells_above, key_levels_of, keys, size)
    bands = (
        count_rare_bands(rare.is_synthetic, t, target.band, target.sizes(synthesis)) if target.band else None
    )
    return TargetCounts(totals_of_keys(sums), cells, large, None, baselines, (), bands)


def _records_of_cells(rare: RareKeys, t: Codes) -> tuple[Bytes, Bytes]:
    """Count the GT records of each GT record's cell (else 0), and the SD records of each record's cell."""
    d, s = rare.is_original.copy(), rare.is_synthetic.copy()
    for apart in range(1, len(t)):
        same = (t[apart:] == t[:-apart]).view(np.uint8)
        both_of_GT = same & rare.is_original[apart:]  # GT records come first
        d[apart:] += both_of_GT
        d[:-apart] += both_of_GT
        s[apart:] += same & rare.is_synthetic[:-apart]
        same &= rare.is_synthetic[apart:]
        s[:-apart] += same
    return d, s


def _key_sums(rare: RareKeys, d: Bytes, s: Bytes) -> KeySums:
    """Return the five sums, with one entry for all q that have the same sums.

    The sum of d² over the cells of a q is d_q plus twice the number of pairs of records with the same level.
    """
    n = len(d)
    GT_pairs = (d.sum(axis=0, dtype=np.uint8) - rare.d_q) >> 1
    ds = (s * rare.is_original).sum(axis=0, dtype=np.uint8)
    SD_pairs = (s.sum(axis=0, dtype=np.uint8) - ds - rare.s_q) >> 1
    pairs = n * (n - 1) // 2 + 1
    sizes = (n + 1, pairs, pairs, n * n // 4 + 1)
    code = rare.d_q.astype(np.uint32)
    for sums, size in zip((GT_pairs, SD_pairs, ds), sizes[1:], strict=True):
        code *= np.uint32(size)
        code += sums
    counts = np.bincount(code)
    occurring = np.flatnonzero(counts)
    d_q, of_GT_pairs, of_SD_pairs, of_ds = np.unravel_index(occurring, sizes)
    return KeySums(
        d_q=d_q,
        s_q=n - d_q,
        dd=d_q + 2 * of_GT_pairs,
        ss=n - d_q + 2 * of_SD_pairs,
        ds=of_ds,
        keys=counts[occurring],
    )


def _large_cells(
    t: Codes,
    d: Bytes,
    disclosed: Bytes,
    list_cells_above: float,
    key_levels_of: Callable[[IntArray], IntArray],
    keys: int,
    targets: int,
) -> tuple[Grouped, ...]:
    """Count the records of DiSCO cells of more than `list_cells_above`, as `pairs_in_large_cells` does."""
    if len(t) <= list_cells_above + 1:  # at least one record is of SD
        return (Grouped.empty(),) * keys
    large = disclosed & (d > list_cells_above)
    q = np.flatnonzero(np.bitwise_or.reduce(large, axis=0))
    if not len(q):
        return (Grouped.empty(),) * keys
    i = large[:, q].argmax(axis=0)  # a q has one DiSCO cell
    return sum_by_pair(key_levels_of(q), t[i, q].astype(np.int64), d[i, q].astype(np.int64), targets)
