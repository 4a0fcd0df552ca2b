"""Code a column of several tables over the levels of all of them, matched by value, or over bins of these."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.tables.levels import (
    ORDERED_KINDS,
    CodedColumn,
    IntArray,
    Kind,
    Mask,
    StoredColumn,
    Values,
    common_kind,
    count_codes,
    nan_as_missing,
)

ROUNDING_NOISE = 1e-9
"""Relative to the smaller of two floats, in the order of numbers: closer ones are the same level."""

ROUNDING = "number that differs by rounding noise only, read as the same"
"""The rule of the ledger."""


def first_of_runs(levels: npt.NDArray[np.float64]) -> Mask | None:
    """Mark the levels (distinct floats, ascending) that begin a run of equal ones; None if all do.

    A run holds the floats within `ROUNDING_NOISE` of its first, so that no chain of neighbours grows beyond
    that. No run holds two whole numbers: 1000000001.0 and 1000000002.0 are two identifiers, not noise.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        reach = levels + np.abs(levels) * ROUNDING_NOISE
        close = levels[1:] <= reach[:-1]
    close &= np.isfinite(levels[1:]) & np.isfinite(levels[:-1])
    if not close.any():
        return None
    chained = np.flatnonzero(close)  # the neighbour after each is close to it
    whole = levels == np.floor(levels)
    ends = np.minimum(
        np.searchsorted(levels, reach[chained], side="right"), _second_whole(whole, chained, len(levels))
    )
    begins = np.zeros(len(chained), dtype=bool)
    following = np.searchsorted(chained, ends)  # the first chained level behind the run of each
    run = 0
    while run < len(chained):
        begins[run] = True
        run = int(following[run])
    depth = np.zeros(len(levels) + 1, dtype=np.int8)  # runs do not overlap
    depth[chained[begins] + 1] += 1
    np.subtract.at(depth, ends[begins], 1)
    first = np.cumsum(depth[:-1], dtype=np.int8) == 0
    return None if first.all() else first


def _second_whole(whole: Mask, chained: npt.NDArray[np.intp], none: int) -> npt.NDArray[np.intp]:
    """Return for each chained level the position of the second whole number from it on, or `none`."""
    positions = np.append(np.flatnonzero(whole), [none, none])
    return positions[np.searchsorted(positions[:-2], chained, side="left") + 1]


# Every integer up to here is a float of its own; beyond it two integers can share one.
_EXACT_IN_FLOAT = 2**53


def comparable_levels(column: Any, kind: Kind, levels: Sequence[Any]) -> list[Values]:
    """Return the levels of each table in one representation, in which equal means the same value."""
    if kind is Kind.NUMBER:
        return _numbers([_number_array(of_table) for of_table in levels])
    if kind in {Kind.DATE, Kind.ZONED_DATE}:
        instants = [_instants(of_table, kind is Kind.ZONED_DATE) for of_table in levels]
        return _in_one_unit(column, [index.tz_localize(None) for index in instants])
    if kind is Kind.DURATION:
        return _in_one_unit(column, [pd.TimedeltaIndex(of_table) for of_table in levels])
    if kind is Kind.BOOLEAN:
        return [np.asarray(of_table, dtype=bool) for of_table in levels]
    return [np.asarray(of_table, dtype=object) for of_table in levels]


def _number_array(levels: Any) -> Values:
    array = np.asarray(levels)
    if array.dtype.kind in "iuf":
        return array
    inferred = pd.api.types.infer_dtype(array)
    if inferred == "integer":
        return np.array(array.tolist())
    return array.astype(np.float64 if inferred == "floating" else object)


def _numbers(levels: list[Values]) -> list[Values]:
    """Return 64-bit integers, else floats, else (where a float could not tell two apart) objects."""
    kinds = {of_table.dtype.kind for of_table in levels if len(of_table)}
    if kinds <= {"i", "u"} and all(int(of_table.max()) < 2**63 for of_table in levels if len(of_table)):
        return [of_table.astype(np.int64) for of_table in levels]
    exact = all(
        int(of_table.min()) >= -_EXACT_IN_FLOAT and int(of_table.max()) <= _EXACT_IN_FLOAT
        for of_table in levels
        if len(of_table) and of_table.dtype.kind in "iu"
    )
    if "O" not in kinds and exact:
        return [of_table.astype(np.float64) for of_table in levels]
    # Numbers of Python compare and hash by their exact value, whether integer, float or decimal.
    return [
        np.array(
            [value.item() if isinstance(value, np.generic) else value for value in of_table.tolist()],
            dtype=object,
        )
        for of_table in levels
    ]


def _instants(levels: Any, utc: bool) -> pd.DatetimeIndex:
    opaque = levels.dtype.kind == "O" or isinstance(levels.dtype, pd.ArrowDtype)
    times = pd.Index(levels, dtype=object if opaque else None)
    try:
        return pd.DatetimeIndex(pd.to_datetime(times, utc=utc))
    except pd.errors.OutOfBoundsDatetime:
        pass
    # Python's dates reach further than nanoseconds, and are no finer than microseconds.
    if utc:
        times = pd.Index([time.astimezone(datetime.timezone.utc).replace(tzinfo=None) for time in times])
    index = pd.DatetimeIndex(np.array(times, dtype="datetime64[us]"))
    return index.tz_localize("UTC") if utc else index


def _in_one_unit(column: Any, indexes: Sequence[Any]) -> list[Values]:
    unit = max((index.unit for index in indexes), key=["s", "ms", "us", "ns"].index)
    try:
        return [index.as_unit(unit).to_numpy() for index in indexes]
    except (pd.errors.OutOfBoundsDatetime, pd.errors.OutOfBoundsTimedelta):
        pass
    raise InputError(
        f"Column {column!r} holds dates that do not fit the resolution of the other table ({unit}): "
        "give it one resolution in all tables."
    )


def unite_levels(levels: Sequence[Values]) -> tuple[Values, list[IntArray]]:
    """Return the sorted union of the levels, and for each table the positions of its own levels in it."""
    codes, distinct = pd.factorize(np.concatenate(levels))
    distinct = np.asarray(distinct)
    order = np.argsort(distinct, kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    ends = np.cumsum([len(table) for table in levels])[:-1]
    return distinct[order], [rank[table] for table in np.split(codes, ends)]


_BEYOND_INT64 = 2**63

# The types whose levels pandas leaves as they are: objects, truth values, whole numbers and most floats.
_PLAIN = frozenset("O?bBhHiIlLqQfd")


def code_column(column: Any, columns: Sequence[pd.Series[Any]], tables: Sequence[str]) -> CodedColumn:
    """Code one column of GT (first) and of the syntheses over all levels. InputError as `common_kind`."""
    return code_column_of_kind(column, common_kind(column, columns, tables), columns)


def code_column_of_kind(column: Any, kind: Kind, columns: Sequence[pd.Series[Any]]) -> CodedColumn:
    """Code a column as `code_column` does; it is of this kind in all tables."""
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
    """Code as `code_column_of_kind`, and mark the entries of `position` that differ from their level.

    None where nothing does: see `first_of_runs`. `rounded` is not set.
    """
    stored = [_store(series) for series in columns]
    comparable = comparable_levels(column, kind, [own_levels for _, own_levels in stored])
    levels, positions = unite_levels(comparable)
    first = first_of_runs(levels) if kind is Kind.NUMBER and levels.dtype.kind == "f" else None
    dtype = np.min_scalar_type(-len(levels) - 1)
    over_union = [  # a table's own -1, missing, picks the last entry
        np.append(position, len(levels)).astype(dtype)[table.position]
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


def _store(series: pd.Series[Any]) -> tuple[StoredColumn, Any]:
    """Return a table's own codes (`position` of what is stored; missing is -1) and its levels."""
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
    # pandas makes an index of the levels of a series, which takes a while.
    is_plain = isinstance(series.dtype, np.dtype) and series.dtype.char in _PLAIN
    codes, levels = pd.factorize(series.to_numpy() if is_plain else nan_as_missing(series))
    if pd.isna(levels).all():  # Arrow's type of nothing but nulls takes null for a level
        codes, levels = np.full(len(series), -1), levels[:0]
    codes = codes.astype(np.min_scalar_type(-len(levels) - 1), copy=False)
    return _without_unused(codes, 0, count_codes(codes, 0, len(levels) + 1), levels)


def _without_unused(stored: IntArray, lowest: int, counts: IntArray, levels: Any) -> tuple[StoredColumn, Any]:
    """Leave out the levels that no record has. `counts` has an entry for each level, and one for missing."""
    used = counts[:-1] > 0
    position = np.append(np.where(used, np.cumsum(used) - 1, -1), -1)
    return StoredColumn(stored, lowest, position, counts), levels[used]


@dataclass(frozen=True)
class Distinct:
    """The values of one column of one table, and the number of records with each.

    `values` may repeat, as where one is an alias of another, and may hold a missing one. `counts` has an
    entry for each, and last the number of records without a value.
    """

    values: pd.Series[Any]
    counts: IntArray

    @property
    def records(self) -> int:
        """The number of records of the table."""
        return int(self.counts.sum())

    def take(self, numbers: IntArray) -> Any:
        """Return the values at these positions as an array, missing for -1."""
        with_missing = pd.concat([self.values, pd.Series([None], dtype=self.values.dtype)], ignore_index=True)
        return with_missing.array.take(numbers)


def stack_distinct(tables: Sequence[Distinct]) -> Distinct:
    """Stack the values of a column of several tables, one table after the other."""
    counts = [table.counts[:-1] for table in tables]
    missing = sum(int(table.counts[-1]) for table in tables)
    values = stack_columns([table.values for table in tables])
    return Distinct(values, np.append(np.concatenate(counts), missing))


def code_distinct(column: Any, tables: Sequence[Distinct], names: Sequence[str]) -> CodedColumn:
    """Code a column of GT (first) and of the syntheses as `code_column` does, from its values alone.

    `codes[i]` are the codes of the values of table i instead of its records, and last that of missing;
    `counts` are the numbers of records. `names` are the tables' in messages.
    """
    values = [table.values for table in tables]
    coded, differs = code_and_mark(column, common_kind(column, values, names), values)
    weighted = [
        _weight_by_counts(codes, table.counts, coded.size)
        for codes, table in zip(coded.codes, tables, strict=True)
    ]
    if differs is not None:
        rounded = [
            stored.look_up(by_position) for stored, by_position in zip(coded.tables, differs, strict=True)
        ]
        weighted = [
            replace(stored, rounded=int(table.counts[:-1][differing].sum()))
            for stored, table, differing in zip(weighted, tables, rounded, strict=True)
        ]
    return replace(coded, tables=tuple(weighted))


def _weight_by_counts(codes: IntArray, counts: IntArray, size: int) -> StoredColumn:
    codes_and_missing = np.append(codes, size - 1).astype(np.int64)
    records = np.zeros(size, dtype=np.int64)
    np.add.at(records, codes_and_missing, counts)
    return StoredColumn(codes_and_missing, 0, np.arange(size), records)


def stack_columns(columns: Sequence[pd.Series[Any]]) -> pd.Series[Any]:
    """Return all values of several columns as one column; categories stay what they are."""
    types = [column.dtype for column in columns]
    if not all(isinstance(dtype, pd.CategoricalDtype) for dtype in types):
        if any(dtype != types[0] for dtype in types):  # one that fits both loses digits, or what is missing
            columns = [column.astype(object) for column in columns]
        dtype = columns[0].dtype
        if isinstance(dtype, np.dtype):  # as pandas does it, without its search for a common type
            return pd.Series(np.concatenate([column.to_numpy() for column in columns]), dtype=dtype)
        return pd.concat(columns, ignore_index=True)
    levels = [column.cat.categories for column in columns]
    if any(part.dtype != levels[0].dtype for part in levels):  # as above
        levels = [part.astype(object) for part in levels]
    categories = levels[0].append(levels[1:]).unique()
    ordered = all(column.cat.ordered for column in columns)
    codes = []
    for column in columns:
        position = np.append(categories.get_indexer(column.cat.categories), -1)
        codes.append(position[column.cat.codes.to_numpy()])
    return pd.Series(pd.Categorical.from_codes(np.concatenate(codes), categories, ordered=ordered))


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


def _bin_levels(levels: Values, lowest: int, highest: int, bins: int) -> IntArray:
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
    if levels.dtype.kind in "imM":
        values = levels.astype(np.int64).astype(object)
    else:
        values = np.array([Fraction(level) for level in levels.tolist()], dtype=object)
    first, last = values[lowest], values[highest]
    if first == last:
        margin = abs(first) or 1
        values, first, last = 1000 * values, 1000 * first - margin, 1000 * last + margin
    bin_of_level = -((first - values) * bins // (last - first)) - 1  # rounded up: closed on the right
    return np.clip(bin_of_level, 0, bins - 1).astype(np.int64)


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
