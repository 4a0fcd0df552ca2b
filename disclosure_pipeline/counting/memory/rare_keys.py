"""Key combinations of few records, whose cells are counted by pattern.

The records of a key combination in order of level and table follow a pattern: which of them are of SD, which
have the level of the one before, and whether the last level is one that nobody guesses. The pattern says all
but the levels, which are counted by pattern and place. Most patterns occur often, so that thousands of cells
stand for millions of records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from disclosure_pipeline.counting.counts import Target
from disclosure_pipeline.counting.memory.radix import Bytes, Codes
from disclosure_pipeline.measures.checks import sum_by_pair
from disclosure_pipeline.measures.exact import Grouped, IntArray, Mask
from disclosure_pipeline.measures.frequency import FrequencyTable, first_of_run
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.measures.totals import is_only_level

MOST_RECORDS = 7  # of a q: two bits of a pattern for each, which fit 16


@dataclass(frozen=True)
class Patterns:
    """Patterns of `n` records: a bit for each record of SD, each level told again, and the last level."""

    codes: IntArray
    n: int

    @classmethod
    def of_records(cls, t: Codes, is_synthetic: Bytes, no_guess: int) -> Codes:
        """Return the pattern of each q from its records in order (shape: n, q)."""
        pattern = np.zeros(t.shape[1], dtype=np.uint16)
        for marks in (*is_synthetic, *(t[1:] == t[:-1]), t[-1] == no_guess):
            pattern <<= np.uint16(1)
            pattern |= marks
        return pattern

    def _bits(self, first: int, number: int) -> IntArray:
        return self.codes[:, None] >> (first + np.arange(number)[::-1]) & 1

    @cached_property
    def is_synthetic(self) -> IntArray:
        """1 for a record of SD, else 0 (shape: patterns, n)."""
        return self._bits(self.n, self.n)

    @cached_property
    def begins(self) -> Mask:
        """Mark the records that are the first with their level (shape: patterns, n)."""
        return np.concatenate((np.ones((len(self.codes), 1), bool), self._bits(1, self.n - 1) == 0), axis=1)

    def count_cells(self) -> tuple[IntArray, IntArray]:
        """Return the GT and SD records of the cell that begins at each record (shape: patterns, n)."""
        s, number = self.is_synthetic.copy(), np.ones_like(self.is_synthetic)
        for j in range(self.n - 2, -1, -1):
            goes_on = ~self.begins[:, j + 1]
            s[:, j] += s[:, j + 1] * goes_on
            number[:, j] += number[:, j + 1] * goes_on
        return number - s, s


def count_most_records(target: Target) -> int:
    """Return the most records of a q that are counted by pattern.

    Bands need to know which levels stand together, exclusions those of the keys, too.
    """
    return 0 if target.exclusions else 1 if target.band else MOST_RECORDS


def count_by_pattern(
    t: Codes, is_synthetic: Bytes, target: Target, key_levels_of: Callable[[IntArray], IntArray]
) -> tuple[Grouped, tuple[Grouped, ...]]:
    """Count the q of n records each (shape: n, q) by (pattern * n + place) * size of the target + level.

    A cell is counted at the place of its first record. The second result are the records of DiSCO cells to
    list, as `sum_by_pair`; `key_levels_of` gives the level of each key in some of the q.
    """
    n, size = len(t), target.column.size
    records = t.astype(np.min_scalar_type(2 * size)) << 1 | is_synthetic
    for end in range(n - 1, 0, -1):  # sorts the records of every q at once
        for j in range(end):
            lower = np.minimum(records[j], records[j + 1])
            np.maximum(records[j], records[j + 1], out=records[j + 1])
            records[j] = lower
    t = records >> 1
    pattern = Patterns.of_records(t, records.astype(np.uint8) & np.uint8(1), target.column.missing)
    occurring = np.flatnonzero(np.bincount(pattern))
    rank = np.zeros(1 << 16, dtype=np.uint16)
    rank[occurring] = np.arange(len(occurring))
    patterns, of_q = Patterns(occurring, n), rank[pattern]
    cells, of_pattern = [], of_q.astype(np.int64) * size
    for j in range(n):
        counted = Grouped.count(of_pattern + t[j])
        place, level = np.divmod(counted.groups, size)
        here = patterns.begins[place, j]
        cells.append(Grouped(((occurring[place] * n + j) * size + level)[here], counted.sums[here]))
    return Grouped.joined(cells), _list_large_cells(patterns, of_q, t, target, key_levels_of)


def _list_large_cells(
    patterns: Patterns,
    of_q: Codes,
    t: Codes,
    target: Target,
    key_levels_of: Callable[[IntArray], IntArray],
) -> tuple[Grouped, ...]:
    if patterns.n <= target.list_cells_above + 1:  # a DiSCO cell has a record of SD
        return (Grouped.empty(),) * len(key_levels_of(np.arange(0)))
    d, s = patterns.count_cells()
    s_q = patterns.is_synthetic.sum(axis=1, keepdims=True)
    large = patterns.begins & is_only_level(s, s_q) & (d > target.list_cells_above)
    has_large = large.any(axis=1)
    q = np.flatnonzero(has_large[of_q])
    place = large.argmax(axis=1)[of_q[q]]  # a q has one DiSCO cell
    return sum_by_pair(key_levels_of(q), t[place, q].astype(np.int64), d[of_q[q], place], target.column.size)


def count_lone_records(GT: int, SD: int, size: int) -> Grouped:
    """Count lone records as `count_by_pattern` does; nobody else has their keys: any level gives the same."""
    return Grouped.sum_by_group(np.array([0, 2 * size]), np.array([GT, SD]))


def tabulate_patterns(by_number: Mapping[int, Grouped], target: Target, sizes: Sizes) -> FrequencyTable:
    """Return the cells of the q counted by pattern, for each number of records."""
    size, columns, alike, keys = target.column.size, dict[str, list[Any]](), [], 0
    for n, counted in by_number.items():
        place, t = np.divmod(counted.groups, size)
        code, j = np.divmod(place, n)
        new = first_of_run(code)
        q = np.cumsum(new) - 1
        patterns = Patterns(code[new], n)
        d, s = patterns.count_cells()
        s_q = patterns.is_synthetic.sum(axis=1)[q]
        of_block = {"q": keys + q, "t": t, "d": d[q, j], "s": s[q, j], "d_q": n - s_q, "s_q": s_q}
        for name, values in (of_block | {"n": counted.sums}).items():
            columns.setdefault(name, []).append(values)
        alike.append(np.bincount(q, counted.sums * (j == 0)).astype(np.int64))
        keys += len(patterns.codes)
    return FrequencyTable(
        **{name: np.concatenate(values) for name, values in columns.items()},
        alike=np.concatenate(alike),
        N_d=sizes.N_d,
        N_s=sizes.N_s,
        keys=keys,
        targets=size,
    )
