"""What the baselines are made of, at key combinations that few records have: byte by byte, as `rare_keys`.

Only where nothing is drawn: SD then has as many records as GT, or one less, so that one other record decides.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.counting.memory.radix import Bytes, Codes
from disclosure_pipeline.measures.baseline_counts import BaselineCounts, Squares, in_units_of_squares
from disclosure_pipeline.measures.exact import IntArray, Mask
from disclosure_pipeline.measures.grouped import Grouped
from disclosure_pipeline.measures.guesses import GuessCounts
from disclosure_pipeline.measures.samples import Sizes, in_integers

_RANGE = 8  # the numbers of records of a q, and 0
_FEWEST_OTHERS = 2  # records of a q of which one has another


@dataclass(frozen=True)
class RareCells:
    """The cells of one target at some q that have n records each, seen from each record (shape: n, q).

    is_original, of_SD: 1 for the records of GT, of SD. d_q, s_q: records of each table a q has. t: the target
    codes. d: for a GT record (else 0) the GT records of its cell; s: for any record the SD records of its
    cell. by_s_q_t: the GT records by s_q and t.
    """

    is_original: Bytes
    of_SD: Bytes
    d_q: Bytes
    s_q: Bytes
    t: Codes
    d: Bytes
    s: Bytes
    by_s_q_t: IntArray

    def count_original(self, q: IntArray) -> IntArray:
        """The GT records of some of the q, by level."""
        t = self.t.take(q, axis=1)[self.is_original.take(q, axis=1) > 0]
        return np.bincount(t, minlength=self.by_s_q_t.shape[1])


def count_rare_baselines(
    cells: RareCells, disclosed: Bytes, sizes: Sizes, no_guess: Mask | None
) -> BaselineCounts:
    """The counts of `baseline_counts` with nothing excluded or drawn.

    `disclosed` marks the DiSCO records. `no_guess` marks levels; None where no record has such a level.
    """
    may_be = None if no_guess is None else (~no_guess).view(np.uint8).take(cells.t, mode="clip")
    guesses = count_rare_guesses(cells, may_be)
    return _count_baselines(
        cells, disclosed, sizes, guesses, _count_guesses_without_self(cells, may_be, no_guess)
    )


def _count_baselines(
    cells: RareCells, disclosed: Bytes, sizes: Sizes, guesses: GuessCounts, without_self: GuessCounts
) -> BaselineCounts:
    n = len(cells.t)
    one_other_level = (cells.s + np.uint8(1) == cells.s_q).view(np.uint8) & cells.is_original
    code = _sum(disclosed)
    for number, size in (
        (_sum(one_other_level), _RANGE),
        ((cells.d[0] == cells.d_q).view(np.uint8), 2),  # GT records come first: whether all have one level
        (cells.s_q, _RANGE),
    ):
        code = code * np.uint16(size) + number
    counts = np.bincount(code)
    occurring = np.flatnonzero(counts)
    of_DiSCO, of_one_other_level, has_one_level, s_q = np.unravel_index(
        occurring, (_RANGE, _RANGE, 2, _RANGE)
    )
    keys, d_q = counts[occurring], n - s_q
    q0, p0 = in_integers(sizes.q0(np.arange(n + 1))), in_integers(sizes.p0(np.arange(n + 1)))
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
        DiSCO_squares=Squares.sum_up(in_units_of_squares(added), keys),
        guessed=guesses,
        guessed_others=without_self,
        drawn_from_SD=None,
        drawn_from_GT=None,
    )


def count_rare_guesses(cells: RareCells, may_be: Bytes | None = None) -> GuessCounts:
    """The counts of `guesses.guess_counts`; `may_be` is 0 for records whose level is no guess, else 1.

    None where every level may be guessed.
    """
    s = cells.s if may_be is None else cells.s * may_be
    largest = s.max(axis=0)
    top = (s == largest).view(np.uint8)
    code = (_sum(top & cells.is_original) * np.uint16(_RANGE) + _sum(top & cells.of_SD)) * np.uint16(_RANGE)
    counts = np.bincount(code + largest)
    occurring = np.flatnonzero(counts)
    GT_top, SD_top, most = np.unravel_index(occurring, (_RANGE, _RANGE, _RANGE))
    named = most > 0
    levels = SD_top[named] // most[named]
    matched = cells.by_s_q_t[1:].sum(axis=0)
    if may_be is not None:
        matched -= cells.count_original(np.flatnonzero((largest == 0) & (cells.s_q > 0)))
    return GuessCounts(
        Grouped.sum_by_group(levels, (GT_top * counts[occurring])[named]), Grouped.from_positions(matched)
    )


def _count_guesses_without_self(cells: RareCells, may_be: Bytes | None, no_guess: Mask | None) -> GuessCounts:
    """The counts of `guesses.guess_counts_without_self`."""
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
        Grouped.sum_by_group(levels, (most * counts[occurring])[alone]), Grouped.from_positions(matched)
    )


def _sum(marks: Bytes) -> npt.NDArray[np.uint16]:
    """The number of marks of each q, wide enough for the codes that are made of it."""
    return marks.sum(axis=0, dtype=np.uint8).astype(np.uint16)
