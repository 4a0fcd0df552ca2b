"""Bins of equal width over GT's range, exactly: how SDMetrics makes numbers, dates and durations discrete."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.tables.kinds import Kind
from disclosure_pipeline.tables.levels import CodedColumn, IntArray

_ORDERED_KINDS = {Kind.NUMBER, Kind.DATE, Kind.ZONED_DATE, Kind.DURATION}


def bin_by_width(column: CodedColumn, bins: int, table_names: Sequence[str]) -> CodedColumn:
    """The column with bins of equal width over GT's range as its levels; missing stays a level of its own.

    InputError where its values have no width, or are infinite.
    """
    if column.kind not in _ORDERED_KINDS:
        raise InputError(
            f"Column {column.name!r} holds {column.kind.value}: only numbers, dates and durations can be "
            "continuous. Leave it out of continuous, or convert it in both tables."
        )
    _check_finite(column, table_names)
    levels_in_GT = np.flatnonzero(column.counts[0][:-1] > 0)
    bin_of_level = _bin_levels(column.levels, levels_in_GT[0], levels_in_GT[-1], bins)
    occupied, position = np.unique(bin_of_level, return_inverse=True)
    return column.recoded(occupied, np.append(position, len(occupied)), Kind.NUMBER)


def _bin_levels(levels: npt.NDArray[Any], lowest: int, highest: int, bins: int) -> IntArray:
    """The bin of each level, closed on the right; GT's range goes from levels[lowest] to levels[highest].

    For floats the edges are floats, those of pandas.cut, which SDMetrics calls. Whole numbers and dates are
    held against the edges exactly, so that neither 2^53 nor a rounded edge puts one into a wrong bin. Where
    GT has one value only, its range is that value plus and minus a thousandth of it, or of 1, as there.
    """
    if levels.dtype.kind == "f":
        low, high = float(levels[lowest]), float(levels[highest])
        if low == high:
            margin = 0.001 * abs(low) or 0.001
            low, high = low - margin, high + margin
        if math.isfinite(high - low):
            return np.searchsorted(np.linspace(low, high, bins + 1)[1:-1], levels, side="left")
    values = _exact_numbers(levels)
    first, last = values[lowest], values[highest]
    if first == last:
        margin = abs(first) or 1
        values, first, last = 1000 * values, 1000 * first - margin, 1000 * last + margin
    bin_of_level = -((first - values) * bins // (last - first)) - 1  # rounded up: closed on the right
    return np.clip(bin_of_level, 0, bins - 1).astype(np.int64)


def _exact_numbers(levels: npt.NDArray[Any]) -> npt.NDArray[np.object_]:
    """Levels as Python integers, or as fractions where there are others."""
    if levels.dtype.kind in "mM":
        return levels.astype(np.int64).astype(object)
    if levels.dtype.kind == "i":
        return levels.astype(object)
    return np.array([Fraction(level) for level in levels.tolist()], dtype=object)


def _check_finite(column: CodedColumn, table_names: Sequence[str]) -> None:
    infinite = np.zeros(column.size, dtype=bool)
    if column.levels.dtype.kind == "f":
        infinite[:-1] = np.isinf(column.levels)
    elif column.levels.dtype.kind == "O":
        infinite[:-1] = [isinstance(value, (float, Decimal)) and math.isinf(value) for value in column.levels]
    for counts, name in zip(column.counts, table_names, strict=True):
        if counts[infinite].any():
            raise InputError(
                f"Column {column.name!r} of {name} holds infinite values, which have no bin of equal width: "
                "make them missing, or leave the column out of continuous."
            )
