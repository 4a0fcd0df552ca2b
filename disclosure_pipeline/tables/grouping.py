"""Group numeric columns: the request, break points, and levels that are intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.measures.band_counts import Band
from disclosure_pipeline.tables.bands import Within, band_of
from disclosure_pipeline.tables.levels import ORDERED_KINDS, CodedColumn, IntArray, Kind, level_label
from disclosure_pipeline.tables.messages import describe_argument, listed

Edges = Literal["pooled", "ground_truth", "equal_width"] | Mapping[Any, Sequence[float]]
Floats = npt.NDArray[np.float64]

_EDGE_RULES = ("pooled", "ground_truth", "equal_width")
_FEWEST_GROUPS = 2
_FEWEST_QUANTILE_GROUPS = 3


@dataclass(frozen=True)
class Grouping:
    """A request to group numeric columns: see `disclosure()` for the meaning of the first three.

    `hides_edges`: edges that a rule finds in the tables are shown rounded, since each may be the value of a
    record; records are grouped by them as they are. Edges that were given are shown as they are. `within`:
    how far from a value a number of a target is still told; such a column is not grouped.
    """

    groups: Mapping[Any, int]
    special_values: Mapping[Any, Sequence[float]]
    edges: Edges
    hides_edges: bool = False
    within: Mapping[Any, Within] = field(default_factory=dict)

    @property
    def explicit(self) -> Mapping[Any, Sequence[float]]:
        """Column -> edges that were given as they are."""
        return self.edges if isinstance(self.edges, Mapping) else {}

    @property
    def numeric(self) -> frozenset[Any]:
        """The columns that it treats as numbers."""
        return frozenset((*self.groups, *self.special_values, *self.explicit, *self.within))

    def grouped(self, column: Any) -> bool:
        """Return whether grouping of the column is requested."""
        return column in self.groups or column in self.explicit

    def apply(self, column: CodedColumn) -> CodedColumn:
        """Return the column, grouped where that was requested."""
        if not self.grouped(column.name):
            return column
        return self.group_by(column, self.edges_of(column))

    def group_by(self, column: CodedColumn, edges: Floats) -> CodedColumn:
        """Return the column, grouped by these interior edges and named as the grouping shows them."""
        hidden = self.hides_edges and column.name not in self.explicit
        labels = group_labels(round_edges(edges) if hidden else [level_label(edge) for edge in edges])
        return group(column, edges, labels, self.special_values.get(column.name, ()))

    def band_of(self, column: CodedColumn) -> Band | None:
        """Return whose band each level of a column lies in; None where no band was requested."""
        if column.name not in self.within:
            return None
        return band_of(column, self.within[column.name], self.special_values.get(column.name, ()))

    def edges_of(self, column: CodedColumn) -> Floats:
        """Return the interior edges of a column that is grouped."""
        if column.name in self.explicit:
            return explicit_edges(column.name, self.explicit[column.name])
        rule = "pooled" if isinstance(self.edges, Mapping) else self.edges
        special = self.special_values.get(column.name, ())
        return interior_edges(column, self.groups[column.name], special, rule)


def grouping_of(
    groups: Any = None, special_values: Any = None, edges: Any = "pooled", within: Any = None
) -> Grouping:
    """Return the grouping that the arguments of a public function request: see `disclosure()`.

    InputError where one is not what it must be; whether the columns exist is not checked.
    """
    grouping = Grouping(
        _groups(groups), _special_values(special_values), _edges(edges), within=_within(within)
    )
    for column, of_column in grouping.explicit.items():
        if column in grouping.groups:
            raise InputError(
                f"Column {column!r} is in groups and in edges: give it a number of groups or explicit edges."
            )
        explicit_edges(column, of_column)
    for column in grouping.within:
        if grouping.grouped(column):
            raise InputError(
                f"Column {column!r} is in within and in groups or edges: a band needs no groups. Give one."
            )
    return grouping


def _within(within: Any) -> dict[Any, Within]:
    if not isinstance(within, Mapping | None):
        raise InputError(
            "within must be a mapping from column to a share or an amount, such as {'income': 0.02}, "
            f"not {describe_argument(within)}."
        )
    return {column: Within.from_argument(column, size) for column, size in (within or {}).items()}


def _edges(edges: Any) -> Any:
    if not isinstance(edges, Mapping) and not (isinstance(edges, str) and edges in _EDGE_RULES):
        raise InputError(
            f"edges must be one of {listed(_EDGE_RULES)} or a mapping from column to edges, "
            f"not {describe_argument(edges)}."
        )
    return edges


def _groups(groups: Any) -> dict[Any, int]:
    if not isinstance(groups, Mapping | None):
        raise InputError(
            "groups must be a mapping from column to number of groups, such as {'income': 20}, "
            f"not {describe_argument(groups)}."
        )
    for column, number in (groups or {}).items():
        whole = isinstance(number, Integral) and not isinstance(number, bool)
        if not whole or number < _FEWEST_GROUPS:
            raise InputError(
                f"groups of column {column!r} must be a whole number from 2 on, "
                f"not {describe_argument(number)}."
            )
    return dict(groups or {})


def _special_values(special_values: Any) -> dict[Any, tuple[float, ...]]:
    if not isinstance(special_values, Mapping | None):
        raise InputError(
            "special_values must be a mapping from column to a list of numbers, such as {'income': [-8]}, "
            f"not {describe_argument(special_values)}."
        )
    checked = {}
    for column, values in (special_values or {}).items():
        sequence = isinstance(values, Iterable) and not isinstance(values, (str, bytes, Mapping))
        checked[column] = tuple(values) if sequence else ()
        if not sequence or not all(map(_is_number, checked[column])):
            raise InputError(
                f"special_values of column {column!r} must be a list of numbers, such as [-8], "
                f"not {describe_argument(values)}."
            )
    return checked


def _is_number(value: Any) -> bool:
    return isinstance(value, (Real, Decimal)) and not isinstance(value, bool) and not math.isnan(value)


def interior_edges(
    column: CodedColumn,
    groups: int,
    special: Iterable[float],
    edges: Literal["pooled", "ground_truth", "equal_width"],
) -> Floats:
    """Return the edges between the groups of a numeric column, ascending, without the infinite ones.

    "pooled": quantiles of all non-missing, non-special values of GT and of every synthesis, by linear
    interpolation between order statistics (R's type 7), duplicates removed; where fewer than 3 groups
    result, equal widths over the same range. "ground_truth": the same from GT alone. "equal_width":
    equal widths over the pooled range. [R 3.3; synthpop]
    """
    _require_numbers(column)
    ordinary = ~_is_special(column, special)
    tables = column.counts[:1] if edges == "ground_truth" else column.counts
    counts = np.sum(tables, axis=0)[:-1][ordinary]
    values = column.levels[ordinary].astype(np.float64)[counts > 0]
    counts = counts[counts > 0]
    if not len(values):
        return np.empty(0)
    if not np.isfinite(values).all():
        raise InputError(
            f"Column {column.name!r} holds infinite values and cannot be grouped: make them special values."
        )
    if edges != "equal_width":
        breaks = np.unique(_quantiles(values, counts, groups))
        if len(breaks) - 1 >= _FEWEST_QUANTILE_GROUPS:
            return breaks[1:-1]
    width = values[-1] - values[0]
    return np.unique([values[0] + width * k / groups for k in range(groups + 1)])[1:-1]


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


def explicit_edges(column: Any, edges: Sequence[float]) -> Floats:
    """Return the interior of edges that the user gave; the outermost are opened, so nothing falls outside."""
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
            f"The edges of column {column!r} must be at least three finite numbers, ascending (two groups)."
        )
    return array[1:-1]


def group(column: CodedColumn, edges: Floats, labels: Sequence[str], special: Iterable[float]) -> CodedColumn:
    """Group a column into intervals closed on the left; special values and missing stay levels.

    Values below the first interior edge belong to the first group, those from the last one on to the
    last group. The levels are the `labels` of the groups, one more than `edges`, then those of the special
    values.
    """
    _require_numbers(column)
    special_levels = column.levels[_is_special(column, special)]
    ordinary = ~_is_special(column, special)
    new_code = np.empty(column.size, dtype=np.int64)
    new_code[:-1][ordinary] = np.searchsorted(edges, column.levels[ordinary].astype(np.float64), side="right")
    new_code[:-1][~ordinary] = len(labels) + np.arange(len(special_levels))
    new_code[-1] = len(labels) + len(special_levels)
    levels = np.array([*labels, *(level_label(value) for value in special_levels)], dtype=object)
    return column.recoded(levels, new_code, Kind.TEXT)


def group_labels(edges: Sequence[str]) -> list[str]:
    """Return the intervals between edges, closed on the left: no smallest or largest value.

    >>> group_labels(["500", "1000"])
    ['(-inf, 500)', '[500, 1000)', '[1000, inf)']
    """
    bounds = ["-inf", *edges, "inf"]
    return [f"{'[' if low != '-inf' else '('}{low}, {high})" for low, high in pairwise(bounds)]


def round_edges(edges: Iterable[float]) -> list[str]:
    """Round edges for display to about two significant digits, numbered where several look the same.

    An edge that a rule finds is a value of a record, or lies between two; rounded it is neither.

    >>> round_edges([1210.0, 1234.5, 20000.0])
    ['~1200 (1)', '~1200 (2)', '~20000']
    """
    rounded = [f"~{level_label(float(f'{edge:.1e}'))}" for edge in edges]
    return [
        f"{edge} ({rounded[:position].count(edge) + 1})" if rounded.count(edge) > 1 else edge
        for position, edge in enumerate(rounded)
    ]


def _is_special(column: CodedColumn, special: Iterable[float]) -> npt.NDArray[np.bool_]:
    return np.isin(column.levels, list(special))


def _require_numbers(column: CodedColumn) -> None:
    if column.kind not in {Kind.NUMBER, Kind.EMPTY}:
        raise InputError(f"Column {column.name!r} holds {column.kind.value}: only numbers can be grouped.")


def bin_by_width(column: CodedColumn, bins: int, table_names: Sequence[str]) -> CodedColumn:
    """Group a column into bins of equal width over GT's range; missing stays a level of its own.

    InputError where its values have no width, or are infinite.
    """
    if column.kind not in ORDERED_KINDS:
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
    """Return the bin of each level, closed on the right; GT's range is levels[lowest] to levels[highest].

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
    """Return levels as Python integers, or as fractions where there are others."""
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
