"""Grouping a numeric column: break points, and levels that are intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.tables.levels import CodedColumn, IntArray, Kind, level_label

Edges = Literal["pooled", "ground_truth", "equal_width"] | Mapping[Any, Sequence[float]]
Floats = npt.NDArray[np.float64]

_FEWEST_QUANTILE_GROUPS = 3


def interior_edges(
    column: CodedColumn,
    groups: int,
    special: Iterable[float],
    edges: Literal["pooled", "ground_truth", "equal_width"],
) -> Floats:
    """The edges between the groups of a numeric column, ascending; outermost edges are infinite and left out.

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
    """The 0, 1/groups, …, 1 quantiles of `values`, each taken `counts` times (R's type 7)."""
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
    """The interior of edges that the user gave. The outermost ones are opened: nothing falls outside."""
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


def group(column: CodedColumn, edges: Floats, special: Iterable[float]) -> CodedColumn:
    """The column with intervals as its levels, closed on the left; special values and missing stay levels.

    Values below the first interior edge belong to the first group, those from the last one on to the
    last group. The levels are the labels of the groups, then those of the special values.
    """
    _require_numbers(column)
    special_levels = column.levels[_is_special(column, special)]
    ordinary = ~_is_special(column, special)
    new_code = np.empty(column.size, dtype=np.int64)
    new_code[:-1][ordinary] = np.searchsorted(edges, column.levels[ordinary].astype(np.float64), side="right")
    groups = group_labels(edges)
    new_code[:-1][~ordinary] = len(groups) + np.arange(len(special_levels))
    new_code[-1] = len(groups) + len(special_levels)
    levels = np.array([*groups, *(level_label(value) for value in special_levels)], dtype=object)
    return column.recoded(levels, new_code, Kind.TEXT)


def group_labels(edges: Floats) -> list[str]:
    """Such as "(-inf, 500)", "[500, 1000)", "[1000, inf)": neither smallest nor largest value is told."""
    bounds = ["-inf", *(level_label(edge) for edge in edges), "inf"]
    return [f"{'[' if low != '-inf' else '('}{low}, {high})" for low, high in pairwise(bounds)]


def _is_special(column: CodedColumn, special: Iterable[float]) -> npt.NDArray[np.bool_]:
    return np.isin(column.levels, list(special))


def _require_numbers(column: CodedColumn) -> None:
    if column.kind not in {Kind.NUMBER, Kind.EMPTY}:
        raise InputError(f"Column {column.name!r} holds {column.kind.value}: only numbers can be grouped.")
