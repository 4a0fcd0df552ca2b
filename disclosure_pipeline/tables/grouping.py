"""Grouping numeric columns: the request, edges, levels that are intervals, and bands around amounts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from numbers import Integral, Rational, Real
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.measures.band_places import Band
from disclosure_pipeline.tables.levels import (
    CodedColumn,
    IntArray,
    Kind,
    Mask,
    Values,
    level_label,
    to_exact,
)
from disclosure_pipeline.tables.messages import describe_argument, listed

MOST_GROUPS = 1000
"""The most groups of a column: more would be levels of their own."""

_LARGEST = 2**62  # below this, sums of two products fit 64 bits


@dataclass(frozen=True)
class Within:
    """The distance from a value within which it counts as disclosed: a share of it, below 1, or an amount."""

    size: Fraction
    is_share: bool

    @classmethod
    def from_argument(cls, column: Any, size: Any) -> Within:
        """Read a number, below 1 as a share and from 1 on as an amount; {"amount": 0.5} says which.

        Raise InputError if it is neither.

        >>> Within.from_argument("income", 0.02).is_share
        True
        """
        kind, number = (None, size)
        if isinstance(size, Mapping) and len(size) == 1 and set(size) <= {"share", "amount"}:
            [(kind, number)] = size.items()
        if (
            not _is_number(number)
            or not math.isfinite(number)
            or number < 0
            or (kind == "share" and number >= 1)
        ):
            raise InputError(
                f"within of column {column!r} must be a share of the value from 0 and below 1, such as 0.02, "
                "an amount from 1 on, such as 100, or one of {'share': 0.02} and {'amount': 0.5}, not "
                f"{describe_argument(size)}."
            )
        return cls(_as_fraction(number), kind == "share" or (kind is None and number < 1))

    def __str__(self) -> str:
        """Return the band in words: "2 %" or "100".

        >>> str(Within.from_argument("income", 0.025))
        '2.5 %'
        """
        return f"{float(100 * self.size):g} %" if self.is_share else f"{float(self.size):g}"


def _is_number(value: Any) -> bool:
    """Return whether a value is a number that a float can hold, infinity and NaN included."""
    if not isinstance(value, (Real, Decimal)) or isinstance(value, (bool, np.bool_)):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


def band_of(column: CodedColumn, within: Within, special: Iterable[float]) -> Band:
    """Return the bands of numbers; special values and missing lie in no band but their own.

    Raise InputError if the column holds no numbers, or infinite ones.
    """
    if column.kind not in {Kind.NUMBER, Kind.EMPTY}:
        raise InputError(f"Column {column.name!r} holds {column.kind.value}: only numbers have a band.")
    is_special = mark_special(column.levels, special)
    codes = np.flatnonzero(~is_special)
    levels = column.levels[codes]
    if not all(map(math.isfinite, levels[[0, -1]] if len(levels) else ())):
        raise InputError(
            f"Column {column.name!r} holds infinite values, which have no band: make them special values."
        )
    special_codes = np.flatnonzero(is_special)
    # If special values are at the ends, codes stay in order, and no record has to be sorted again.
    below = special_codes[special_codes < (codes[0] if len(codes) else 0)]
    order = np.concatenate((below, codes, special_codes[len(below) :], [column.missing]))
    amounts = range(len(below), len(below) + len(codes))
    low = np.arange(len(order))
    high, reach = low + 1, low + 1
    numbers, unit = _scale_to_integers(levels)
    a, b = within.size.numerator, within.size.denominator
    width = 2 * a * unit // b
    largest = max((abs(int(number)) for number in numbers[[0, -1]]), default=0) if len(numbers) else 0
    if largest * (a + b) >= _LARGEST or (not within.is_share and 2 * largest + width >= _LARGEST):
        numbers = numbers.astype(object)
    for ends, amount_ends in zip((low, high, reach), _find_ends(numbers, unit, within), strict=True):
        ends[amounts.start : amounts.stop] = amounts.start + amount_ends
    return Band(order, low, high, reach, amounts, numbers, None if within.is_share else width, within.size)


def mark_special(levels: Values, special: Iterable[float]) -> Mask:
    """Mark the levels that are special values."""
    if levels.dtype != object:
        return np.isin(levels, list(special))
    # Among numbers of several types, fractions are exact decimals.
    return np.isin(levels, np.array([to_exact(value) for value in special], dtype=object))


def _find_ends(values: Values, unit: int, within: Within) -> tuple[IntArray, IntArray, IntArray]:
    """Return the `low`, `high` and `reach` of `Band` for ascending integers in units of 1 / `unit`."""
    a, b = within.size.numerator, within.size.denominator
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


def _scale_to_integers(levels: Values) -> tuple[Values, int]:
    """Return numbers, exactly as written, as integers in units of 1 / n, and n."""
    if levels.dtype.kind in "iu" and (not len(levels) or int(levels[-1]) < _LARGEST):
        return levels.astype(np.int64), 1
    if levels.dtype.kind == "f" and len(levels):
        most = np.finfo(levels.dtype).precision  # decimal digits that every float keeps
        largest = float(np.abs(levels[[0, -1]]).max())
        for digits in range(most):
            if largest * 10**digits >= 10**most:
                break
            scaled = np.rint(levels * 10.0**digits)
            if (scaled / 10.0**digits == levels).all():  # their shortest form
                return scaled.astype(np.int64), 10**digits
    written = [_as_fraction(level) for level in levels.tolist()]
    unit = math.lcm(*(level.denominator for level in written))
    return np.array([int(level * unit) for level in written], dtype=object), unit


def _as_fraction(number: Any) -> Fraction:
    """Return a number exactly as written: 0.1 is one tenth."""
    if isinstance(number, (Rational, Decimal)):
        return Fraction(number)
    return Fraction(repr(float(number)))


Edges = Literal["pooled", "ground_truth", "equal_width"] | Mapping[Any, Sequence[float]]
Floats = npt.NDArray[np.float64]

_EDGE_RULES = ("pooled", "ground_truth", "equal_width")
_FEWEST_GROUPS = 2
_FEWEST_QUANTILE_GROUPS = 3


@dataclass(frozen=True)
class Grouping:
    """A request to group numeric columns: see `disclosure()` for the meaning of the first three.

    `hides_edges`: round edges that a rule finds in the tables for display, since each may be the value of a
    record; records are grouped by the exact edges, and given edges are shown unchanged. `within`: how near to
    a target's value counts as disclosed; such a column is not grouped.
    """

    groups: Mapping[Any, int]
    special_values: Mapping[Any, Sequence[float]]
    edges: Edges
    hides_edges: bool = False
    within: Mapping[Any, Within] = field(default_factory=dict)

    @property
    def explicit(self) -> Mapping[Any, Sequence[float]]:
        """Column -> the edges given for it."""
        return self.edges if isinstance(self.edges, Mapping) else {}

    @property
    def numeric(self) -> frozenset[Any]:
        """The columns that must hold numbers."""
        return frozenset((*self.groups, *self.special_values, *self.explicit, *self.within))

    def groups_column(self, column: Any) -> bool:
        """Return whether grouping of the column is requested."""
        return column in self.groups or column in self.explicit

    def apply(self, column: CodedColumn, drawn_from: CodedColumn | None = None) -> CodedColumn:
        """Return the column, grouped if that is requested; `drawn_from`: the column whose edges it gets."""
        if not self.groups_column(column.name):
            return column
        return self.group_by(column, self.find_edges(column if drawn_from is None else drawn_from))

    def group_by(self, column: CodedColumn, edges: Floats) -> CodedColumn:
        """Group a column into intervals closed on the left; special values and missing stay levels.

        `edges` are interior: values below the first belong to the first group, those from the last on to the
        last group, infinite ones included. The levels are the labels of the groups, then the special values.
        """
        hidden = self.hides_edges and column.name not in self.explicit
        labels = label_groups(round_edges(edges) if hidden else [level_label(edge) for edge in edges])
        ordinary = ~self._mark_special(column)
        special_levels = column.levels[~ordinary]
        new_code = np.empty(column.size, dtype=np.int64)
        numbers = column.levels[ordinary].astype(np.float64)
        new_code[:-1][ordinary] = np.searchsorted(edges, numbers, side="right")
        new_code[:-1][~ordinary] = len(labels) + np.arange(len(special_levels))
        new_code[-1] = len(labels) + len(special_levels)
        levels = np.array([*labels, *map(level_label, special_levels)], dtype=object)
        return column.recode(levels, new_code, Kind.TEXT)

    def find_edges(self, column: CodedColumn) -> Floats:
        """Return the edges between the groups of a numeric column, ascending, without the outermost ones.

        "pooled": quantiles of all non-missing, non-special values of GT and all syntheses, by linear
        interpolation between order statistics (R's type 7), duplicates removed; equal widths over the same
        range if fewer than 3 groups result. "ground_truth": the same from GT alone. "equal_width": equal
        widths over the pooled range. [R 3.3; synthpop] Infinite values have no part in it.
        """
        if column.name in self.explicit:
            return check_edges(column.name, self.explicit[column.name])
        ordinary = ~self._mark_special(column)
        tables = column.counts[:1] if self.edges == "ground_truth" else column.counts
        counts = np.sum(tables, axis=0)[:-1][ordinary]
        values = column.levels[ordinary].astype(np.float64)
        counted = (counts > 0) & np.isfinite(values)
        values, counts = values[counted], counts[counted]
        if not len(values):
            return np.empty(0)
        groups = self.groups[column.name]
        if self.edges != "equal_width":
            breaks = np.unique(_quantiles(values, counts, groups))
            if len(breaks) - 1 >= _FEWEST_QUANTILE_GROUPS:
                return breaks[1:-1]
        low, high = float(values[0]), float(values[-1])
        width = high - low
        if not math.isfinite(width):
            return np.unique([low * (1 - k / groups) + high * (k / groups) for k in range(1, groups)])
        return np.unique([low + width * k / groups for k in range(groups + 1)])[1:-1]

    def band_of(self, column: CodedColumn) -> Band | None:
        """Return the bands of a column, or None if none were requested."""
        if column.name not in self.within:
            return None
        return band_of(column, self.within[column.name], self.special_values.get(column.name, ()))

    def _mark_special(self, column: CodedColumn) -> Mask:
        """Mark the levels that are special values. Raise InputError if the column holds no numbers."""
        if column.kind not in {Kind.NUMBER, Kind.EMPTY}:
            raise InputError(
                f"Column {column.name!r} holds {column.kind.value}: only numbers can be grouped."
            )
        return mark_special(column.levels, self.special_values.get(column.name, ()))


def grouping_of(
    groups: Any = None, special_values: Any = None, edges: Any = "pooled", within: Any = None
) -> Grouping:
    """Return the grouping that the arguments of a public function request: see `disclosure()`.

    Raise InputError if one is invalid; whether the columns exist is not checked.
    """
    if not isinstance(edges, Mapping) and not (isinstance(edges, str) and edges in _EDGE_RULES):
        raise InputError(
            f"edges must be one of {listed(_EDGE_RULES)} or a mapping from column to edges, "
            f"not {describe_argument(edges)}."
        )
    sizes = _list_items("within", within, "a share or an amount, such as {'income': 0.02}")
    bands = {column: Within.from_argument(column, size) for column, size in sizes}
    grouping = Grouping(
        _check_groups(groups), _check_special_values(special_values), cast("Edges", edges), within=bands
    )
    for column, column_edges in grouping.explicit.items():
        if column in grouping.groups:
            raise InputError(
                f"Column {column!r} is in groups and in edges: give it a number of groups or explicit edges."
            )
        check_edges(column, column_edges)
    for column in grouping.within:
        if grouping.groups_column(column):
            raise InputError(
                f"Column {column!r} is in within and in groups or edges: a band needs no groups. Remove one."
            )
    return grouping


def _list_items(argument: str, mapping: Any, expected: str) -> Iterable[tuple[Any, Any]]:
    if not isinstance(mapping, Mapping | None):
        raise InputError(
            f"{argument} must be a mapping from column to {expected}, not {describe_argument(mapping)}."
        )
    return (mapping or {}).items()


def _check_groups(groups: Any) -> dict[Any, int]:
    numbers = _list_items("groups", groups, "number of groups, such as {'income': 20}")
    for column, number in numbers:
        whole = isinstance(number, Integral) and not isinstance(number, bool)
        if not whole or not _FEWEST_GROUPS <= number <= MOST_GROUPS:
            raise InputError(
                f"groups of column {column!r} must be a whole number from 2 to {MOST_GROUPS:,}, "
                f"not {describe_argument(number)}."
            )
    return dict(numbers)


def _check_special_values(special_values: Any) -> dict[Any, tuple[float, ...]]:
    checked = {}
    lists = _list_items("special_values", special_values, "a list of numbers, such as {'income': [-8]}")
    for column, values in lists:
        sequence = isinstance(values, Iterable) and not isinstance(values, (str, bytes, Mapping))
        checked[column] = tuple(values) if sequence else ()
        if not sequence or not all(_is_number(value) and not math.isnan(value) for value in checked[column]):
            raise InputError(
                f"special_values of column {column!r} must be a list of numbers, such as [-8], "
                f"not {describe_argument(values)}."
            )
    return checked


def _quantiles(values: Floats, counts: IntArray, groups: int) -> list[float]:
    """Return the 0, 1/groups, …, 1 quantiles of `values`, each taken `counts` times (R's type 7)."""
    up_to = np.cumsum(counts)
    last = int(up_to[-1]) - 1
    quantiles = []
    for k in range(groups + 1):
        below, rest = divmod(last * k, groups)
        low, high = values[np.searchsorted(up_to, [below, min(below + 1, last)], side="right")]
        weight = rest / groups
        quantiles.append(low if low == high or not rest else (1 - weight) * low + weight * high)
    return quantiles


def check_edges(column: Any, edges: Sequence[float]) -> Floats:
    """Check the edges that a user gave, and return the interior ones: the outer groups are open.

    Raise InputError if they are invalid.
    """
    try:
        array = np.asarray(edges, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    if (
        array.ndim != 1
        or len(array) < _FEWEST_QUANTILE_GROUPS
        or not np.isfinite(array).all()
        or (np.diff(array) <= 0).any()
    ):
        raise InputError(
            f"The edges of column {column!r} must be three or more finite numbers, ascending (two groups or "
            "more)."
        )
    return array[1:-1]


def label_groups(edges: Sequence[str]) -> list[str]:
    """Return labels for the intervals between edges, closed on the left, without smallest and largest value.

    >>> label_groups(["500", "1000"])
    ['(-inf, 500)', '[500, 1000)', '[1000, inf)']
    """
    bounds = ["-inf", *edges, "inf"]
    return [f"{'[' if low != '-inf' else '('}{low}, {high})" for low, high in pairwise(bounds)]


def round_edges(edges: Iterable[float]) -> list[str]:
    """Round edges for display to two significant digits, and number those that look the same.

    An edge that a rule finds may be the value of a record; rounded, it is not.

    >>> round_edges([1210.0, 1234.5, 20000.0])
    ['~1200 (1)', '~1200 (2)', '~20000']
    """
    rounded = [f"~{level_label(float(f'{edge:.1e}'))}" for edge in edges]
    return [
        f"{edge} ({rounded[:position].count(edge) + 1})" if rounded.count(edge) > 1 else edge
        for position, edge in enumerate(rounded)
    ]
