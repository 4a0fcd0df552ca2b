"""Exact sums: integers until the last division, so that the order of the records makes no difference."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.integer]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

SCALE = 2**160
"""Sums of quotients are integers in units of 1 / `SCALE`.

An error in the 160th bit cannot reach the 53rd, so the sum is rounded once, when it becomes a float.
"""


def percent(part: int | np.integer, whole: int | np.integer) -> float:
    """Return 100 * part / whole, rounded once; NaN, which passes no bound, if `whole` is 0."""
    return 100 * int(part) / int(whole) if whole else math.nan


def divide(part: IntArray, whole: IntArray) -> Floats:
    """Return part / whole, and 0 where the whole is 0.

    >>> divide(np.array([1, 0]), np.array([4, 0])).tolist()
    [0.25, 0.0]
    """
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)


def total(counts: IntArray, where: Mask | None = None) -> int:
    """Return the sum of `counts`, or of those marked by `where`, as a Python integer."""
    chosen = counts if where is None else counts[where]
    return int(chosen.sum(dtype=np.int64))


def sum_by_position(positions: IntArray, values: IntArray | int, size: int | None = None) -> IntArray:
    """Return the sum of the values at each position (shape: size, by default up to the largest position)."""
    sums = np.zeros(int(positions.max(initial=-1)) + 1 if size is None else size, dtype=np.int64)
    np.add.at(sums, positions, values)
    return sums


def percent_of_quotients(numerators: IntArray, denominators: IntArray, whole: int) -> float:
    """Return 100 * sum(numerators / denominators) / whole, rounded once; NaN if `whole` is 0."""
    return percent(sum_quotients(numerators, denominators), whole * SCALE)


def sum_quotients(numerators: IntArray, denominators: IntArray) -> int:
    """Return sum(numerators / denominators) in units of 1 / `SCALE`.

    Each distinct denominator contributes a rounding error of less than one unit. Numerators with the same
    denominator are added as integers first, so the order of the records makes no difference. An entry with
    denominator 0 must have numerator 0.
    """
    grouped = Grouped.sum_by_group(denominators, numerators)
    pairs = zip(grouped.sums.tolist(), grouped.groups.tolist(), strict=True)
    return sum(numerator * SCALE // denominator for numerator, denominator in pairs)


def sum_exactly(values: npt.NDArray[np.float64]) -> float:
    """Return the sum of finite numbers, rounded once: `math.fsum` for arrays.

    Source: Rump, Ogita and Oishi 2008, "Accurate floating-point summation part I", algorithm 3.2.

    >>> sum_exactly(np.array([1e16, 1.0, 1.0]))
    1.0000000000000002e+16
    """
    parts = []
    while largest := float(np.abs(values).max(initial=0)):
        # The upper digits of all values are multiples of one number, so their sum is exact.
        unit = 2.0 ** (math.frexp(largest)[1] + len(values).bit_length() + 1)
        upper = (values + unit) - unit
        parts.append(float(upper.sum()))
        values = values - upper
    return math.fsum(parts)


Part = TypeVar("Part")


_WAITING = 8  # parts that are added up at once: each may take megabytes


def add_up(parts: Iterable[Part]) -> Part:
    """Add instances of one class field by field, or as the field's `metadata["add"]` says, as they come."""
    waiting = list[Part]()
    for part in parts:
        add_to(waiting, part)
    return waiting[0] if len(waiting) == 1 else cast(Part, _add_up(waiting))


def add_to(waiting: list[Part], part: Part) -> None:
    """Append a part to those that wait to be added up, which few do at a time."""
    waiting.append(part)
    if len(waiting) == _WAITING:
        waiting[:] = [_add_up(waiting)]


def _add_up(parts: Sequence[Any]) -> Any:
    first: Any = parts[0]
    if first is None:
        return None
    if isinstance(first, tuple):
        return tuple(_add_up(entries) for entries in zip(*parts, strict=True))
    if hasattr(first, "joined"):
        return first.joined(parts)
    if not is_dataclass(first):
        return sum(parts[1:], start=first)
    added = {
        field.name: field.metadata.get("add", _add_up)([getattr(part, field.name) for part in parts])
        for field in fields(first)
    }
    return first.__class__(**added)


_MAX_ENTRIES_PER_VALUE = 4  # of a dense table in which values are added up by position


@dataclass(frozen=True)
class Grouped:
    """Integer sums by group: `sums[i]` is that of `groups[i]`. Groups ascend; sums of 0 are omitted."""

    groups: IntArray
    sums: IntArray

    @classmethod
    def empty(cls) -> Grouped:
        """Return no sums."""
        return cls(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))

    @classmethod
    def sum_by_group(cls, groups: IntArray, values: IntArray) -> Grouped:
        """Add up integer values by group; `groups` (same shape) are integers from 0."""
        if not len(groups):
            return cls.empty()
        size = int(groups.max()) + 1
        if size <= _MAX_ENTRIES_PER_VALUE * len(groups):
            return cls.from_positions(sum_by_position(groups, values, size))
        order = np.argsort(groups, kind="stable")
        ordered = groups[order].astype(np.int64)
        first = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
        sums = np.add.reduceat(values[order].astype(np.int64), first)
        present = np.flatnonzero(sums)
        return cls(ordered[first[present]], sums[present])

    @classmethod
    def count(cls, groups: IntArray) -> Grouped:
        """Count the entries by group; `groups` are integers from 0."""
        if not len(groups):
            return cls.empty()
        if int(groups.max()) < _MAX_ENTRIES_PER_VALUE * len(groups):
            return cls.from_positions(np.bincount(groups))
        ascending = np.sort(groups)
        first = np.flatnonzero(np.concatenate(([True], ascending[1:] != ascending[:-1])))
        return cls(ascending[first], np.concatenate((first[1:], [len(groups)])) - first)

    @classmethod
    def from_positions(cls, sums: IntArray) -> Grouped:
        """Return the non-zero sums, grouped by their position."""
        groups = np.flatnonzero(sums)
        return cls(groups, sums[groups])

    @classmethod
    def joined(cls, parts: Sequence[Grouped]) -> Grouped:
        """Add up the sums of several parts."""
        if len(parts) == 1:
            return parts[0]
        return cls.sum_by_group(
            np.concatenate([part.groups for part in parts]), np.concatenate([part.sums for part in parts])
        )

    def by_position(self, size: int) -> IntArray:
        """Return the sums of groups 0 to `size` - 1, 0 for omitted groups."""
        sums = np.zeros(size, dtype=np.int64)
        sums[self.groups] = self.sums
        return sums
