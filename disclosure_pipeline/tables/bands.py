"""Bands around amounts: the request, and which levels of a column lie in whose band, exactly as written."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real
from typing import Any

import numpy as np

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.measures.band_counts import Band
from disclosure_pipeline.tables.levels import CodedColumn, IntArray, Kind, Values
from disclosure_pipeline.tables.messages import describe_argument

_LARGEST = 2**62  # below, sums of two products fit into 64 bits


@dataclass(frozen=True)
class Within:
    """The distance from a value within which it counts as told: a share of it, below 1, or an amount."""

    size: Fraction
    is_share: bool

    @classmethod
    def from_argument(cls, column: Any, size: Any) -> Within:
        """Return what a number means: a share below 1, from 1 on an amount; {"amount": 0.5} says which.

        InputError where it is neither.

        >>> Within.from_argument("income", 0.02).is_share
        True
        """
        kind, number = (None, size)
        if isinstance(size, Mapping) and len(size) == 1 and set(size) <= {"share", "amount"}:
            [(kind, number)] = size.items()
        is_number = isinstance(number, (Real, Decimal)) and not isinstance(number, (bool, np.bool_))
        if not is_number or not math.isfinite(number) or number < 0 or (kind == "share" and number >= 1):
            raise InputError(
                f"within of column {column!r} must be a share of the value from 0 and below 1, such as 0.02, "
                "an amount from 1 on, such as 100, or one of {'share': 0.02} and {'amount': 0.5}, not "
                f"{describe_argument(size)}."
            )
        return cls(_as_written(number), kind == "share" or (kind is None and number < 1))

    def __str__(self) -> str:
        """Return the band in words: "2 %" or "100".

        >>> str(Within.from_argument("income", 0.025))
        '2.5 %'
        """
        return f"{float(100 * self.size):g} %" if self.is_share else f"{float(self.size):g}"


def band_of(column: CodedColumn, within: Within, special: Iterable[float]) -> Band:
    """Return whose band each level of numbers lies in; special values and missing are in none but their own.

    InputError where it holds no numbers, or infinite ones.
    """
    if column.kind not in {Kind.NUMBER, Kind.EMPTY}:
        raise InputError(f"Column {column.name!r} holds {column.kind.value}: only numbers have a band.")
    is_special = np.isin(column.levels, list(special))
    codes = np.flatnonzero(~is_special)
    levels = column.levels[codes]
    if not all(map(math.isfinite, levels[[0, -1]] if len(levels) else ())):
        raise InputError(
            f"Column {column.name!r} holds infinite values, which have no band: make them special values."
        )
    codes_of_special = np.flatnonzero(is_special)
    # Where they are in order no record has to be sorted again.
    below = codes_of_special[codes_of_special < (codes[0] if len(codes) else 0)]
    order = np.concatenate((below, codes, codes_of_special[len(below) :], [column.missing]))
    amounts = range(len(below), len(below) + len(codes))
    low = np.arange(len(order))
    high, reach = low + 1, low + 1
    for ends, of_amounts in zip((low, high, reach), _find_ends(levels, within), strict=True):
        ends[amounts.start : amounts.stop] = amounts.start + of_amounts
    return Band(order, low, high, reach, amounts)


def _find_ends(levels: Values, within: Within) -> tuple[IntArray, IntArray, IntArray]:
    """Return `low`, `high` and `reach` of `Band`, of ascending numbers."""
    values, unit = _in_whole_numbers(levels)
    a, b = within.size.numerator, within.size.denominator
    largest = max((abs(int(value)) for value in values[[0, -1]]), default=0) if len(values) else 0
    if largest * (a + b) >= _LARGEST or (not within.is_share and largest + 2 * a * unit // b >= _LARGEST):
        values = values.astype(object)
    if within.is_share:
        reached = abs(values) * a
        smallest, highest = -((reached - values * b) // b), (values * b + reached) // b
        negative = values < 0
        farthest = np.where(negative, values * (b - a) // (b + a), values * (b + a) // (b - a))
    else:
        reach = a * unit // b
        smallest, highest, farthest = values - reach, values + reach, values + 2 * a * unit // b
    return (
        np.searchsorted(values, smallest, side="left"),
        np.searchsorted(values, highest, side="right"),
        np.searchsorted(values, farthest, side="right"),
    )


def _in_whole_numbers(levels: Values) -> tuple[Values, int]:
    """Return numbers exactly as they are written, in so many parts of 1, as integers."""
    if levels.dtype.kind in "iu" and (not len(levels) or int(levels[-1]) < _LARGEST):
        return levels.astype(np.int64), 1
    if levels.dtype.kind == "f" and len(levels):
        is_single = bool((levels.astype(np.float32) == levels).all())
        floats = levels.astype(np.float32 if is_single else np.float64)
        most = np.finfo(floats.dtype).precision  # so many decimal digits every float keeps
        largest = float(np.abs(levels[[0, -1]]).max())
        for digits in range(most):
            if largest * 10**digits >= 10**most:
                break
            scaled = np.rint(levels * 10.0**digits)
            if ((scaled / 10.0**digits).astype(floats.dtype) == floats).all():  # as it is written shortest
                return scaled.astype(np.int64), 10**digits
    written = [_as_written(level) for level in levels.tolist()]
    unit = math.lcm(*(level.denominator for level in written))
    return np.array([int(level * unit) for level in written], dtype=object), unit


def _as_written(number: Any) -> Fraction:
    """Return a number as it is written: 0.1 is one tenth."""
    if isinstance(number, (Rational, Decimal)):
        return Fraction(number)
    return Fraction(repr(float(number)))
