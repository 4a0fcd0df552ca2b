"""A column of several tables coded over the levels of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pandas as pd

from disclosure_pipeline.tables.kinds import Kind, common_kind, nan_as_missing
from disclosure_pipeline.tables.levels import CodedColumn, IntArray, StoredColumn, count_codes
from disclosure_pipeline.tables.matching import comparable_levels, unite_levels
from disclosure_pipeline.tables.rounding import Mask, first_of_runs

_BEYOND_INT64 = 2**63

# The types whose levels pandas leaves as they are: objects, truth values, whole numbers and most floats.
_PLAIN = frozenset("O?bBhHiIlLqQfd")


def code_column(column: Any, columns: Sequence[pd.Series[Any]], tables: Sequence[str]) -> CodedColumn:
    """Code one column of GT (first) and of the syntheses over the union of their levels.

    `tables` names the tables for messages. Raises InputError as `common_kind` does.
    """
    return code_column_of_kind(column, common_kind(column, columns, tables), columns)


def code_column_of_kind(column: Any, kind: Kind, columns: Sequence[pd.Series[Any]]) -> CodedColumn:
    """As `code_column`, of a column that is of this kind in all tables."""
    coded, differs = code_and_mark(column, kind, columns)
    if differs is None:
        return coded
    marked = tuple(
        replace(table, rounded=int(table.counts[by_position].sum()))
        for table, by_position in zip(coded.tables, differs, strict=True)
    )
    return replace(coded, tables=marked)


def code_and_mark(
    column: Any, kind: Kind, columns: Sequence[pd.Series[Any]]
) -> tuple[CodedColumn, list[Mask] | None]:
    """As `code_column_of_kind`, and for each entry of a table's `position` whether it differs from its level.

    None where nothing does: see `rounding.first_of_runs`. `rounded` is not set.
    """
    stored = [_store(series) for series in columns]
    comparable = comparable_levels(column, kind, [own_levels for _, own_levels in stored])
    levels, positions = unite_levels(comparable)
    first = first_of_runs(levels) if kind is Kind.NUMBER and levels.dtype.kind == "f" else None
    over_union = [
        _over_union(position, table.position, len(levels))
        for position, (table, _) in zip(positions, stored, strict=True)
    ]
    differs = None
    if first is not None:
        differs = [np.append(~first, False)[position] for position in over_union]
        new_code = np.append(np.cumsum(first) - 1, np.count_nonzero(first))
        over_union = [new_code.astype(position.dtype)[position] for position in over_union]
        levels = levels[first]
    coded = tuple(
        replace(table, position=position) for position, (table, _) in zip(over_union, stored, strict=True)
    )
    return CodedColumn(column, kind, coded, levels), differs


def _over_union(position: IntArray, codes: IntArray, missing: int) -> IntArray:
    """Positions in the union for a table's own codes; its -1 (missing) picks the last entry."""
    dtype = np.min_scalar_type(-missing - 1)
    return np.append(position, missing).astype(dtype)[codes]


def _store(series: pd.Series[Any]) -> tuple[StoredColumn, Any]:
    """A table's own codes (`position` of what is stored; missing is -1), and its levels in any order."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        own_codes = cast(pd.Categorical, series.array).codes
        counts = count_codes(own_codes, 0, len(series.dtype.categories) + 1)
        return _without_unused(own_codes, 0, counts, series.dtype.categories)
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "iu" and len(series):
        values = series.to_numpy()
        lowest, highest = int(values.min()), int(values.max())
        if highest - lowest < len(values):
            counts = count_codes(values, lowest, highest - lowest + 2)
            dtype = np.uint64 if highest >= _BEYOND_INT64 else np.int64
            levels = np.arange(highest - lowest + 1, dtype=dtype) + dtype(lowest)
            return _without_unused(values, lowest, counts, levels)
    codes, levels = _factorize(series)
    if pd.isna(levels).all():  # Arrow's type of nothing but nulls takes null for a level
        codes, levels = np.full(len(series), -1), levels[:0]
    codes = codes.astype(np.min_scalar_type(-len(levels) - 1), copy=False)
    return _without_unused(codes, 0, count_codes(codes, 0, len(levels) + 1), levels)


def _factorize(series: pd.Series[Any]) -> tuple[IntArray, Any]:
    """As pandas does, which makes an index of the levels of a series."""
    if isinstance(series.dtype, np.dtype) and series.dtype.char in _PLAIN:
        return pd.factorize(series.to_numpy())
    return pd.factorize(nan_as_missing(series))


def _without_unused(stored: IntArray, lowest: int, counts: IntArray, levels: Any) -> tuple[StoredColumn, Any]:
    """Leave out the levels that no record has. `counts` has an entry for each level, and one for missing."""
    used = counts[:-1] > 0
    position = np.append(np.where(used, np.cumsum(used) - 1, -1), -1)
    return StoredColumn(stored, lowest, position, counts), levels[used]
