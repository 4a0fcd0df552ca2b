"""Coding a column of several tables over the levels of all of them, matched by value, or over bins."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.tables.encoding import Change, encode
from disclosure_pipeline.tables.levels import (
    EXACT_IN_FLOAT,
    ORDERED_KINDS,
    CodedColumn,
    IntArray,
    Kind,
    Mask,
    StoredColumn,
    Values,
    count_codes,
    find_common_kind,
    replace_nan,
    to_exact,
    widen_column,
    widen_floats,
    widen_number,
)

ROUNDING_NOISE = 1e-9
"""The distance, relative to the smaller of two floats, within which they are the same level."""

ROUNDING = "number that differs by rounding noise only, read as the same"
"""The rule in the ledger."""


def mark_run_starts(levels: npt.NDArray[np.float64]) -> Mask | None:
    """Mark the levels (distinct floats, ascending) that begin a run of equal ones; None if all do.

    A run holds the floats within `ROUNDING_NOISE` of its first, so that neighbours do not form long chains.
    No run holds two whole numbers: 1000000001.0 and 1000000002.0 are two identifiers, not noise.
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
        np.searchsorted(levels, reach[chained], side="right"),
        _find_second_whole(whole, chained, len(levels)),
    )
    begins = np.zeros(len(chained), dtype=bool)
    following = np.searchsorted(chained, ends)  # the first chained level after the run of each
    run = 0
    while run < len(chained):
        begins[run] = True
        run = int(following[run])
    depth = np.zeros(len(levels) + 1, dtype=np.int8)  # runs do not overlap
    depth[chained[begins] + 1] += 1
    np.subtract.at(depth, ends[begins], 1)
    first = np.cumsum(depth[:-1], dtype=np.int8) == 0
    return None if first.all() else first


def _find_second_whole(whole: Mask, chained: npt.NDArray[np.intp], none: int) -> npt.NDArray[np.intp]:
    """Return, for each chained level, the position of the second whole number from it on, or `none`."""
    positions = np.append(np.flatnonzero(whole), [none, none])
    return positions[np.searchsorted(positions[:-2], chained, side="left") + 1]


def _make_comparable(column: Any, kind: Kind, levels: Sequence[Any]) -> list[Values]:
    """Return the levels of each table in one representation, in which equal means the same value."""
    if kind is Kind.NUMBER:
        return _unify_numbers([_as_number_array(table) for table in levels])
    if kind in {Kind.DATE, Kind.ZONED_DATE}:
        instants = [_as_instants(table, kind is Kind.ZONED_DATE) for table in levels]
        return _unify_resolution(column, [index.tz_localize(None) for index in instants])
    if kind is Kind.DURATION:
        return _unify_resolution(column, [pd.TimedeltaIndex(table) for table in levels])
    if kind is Kind.BOOLEAN:
        return [np.asarray(table, dtype=bool) for table in levels]
    return [np.asarray(table, dtype=object) for table in levels]


def _as_number_array(levels: Any) -> Values:
    array = np.asarray(levels)
    if array.dtype.kind in "iuf":
        return widen_floats(array)
    inferred = pd.api.types.infer_dtype(array)
    if inferred == "integer":
        whole = np.array(array.tolist())
        # NumPy makes floats of numbers that fit no type of integers together.
        return whole if whole.dtype.kind in "iu" else array
    numbers = np.array([widen_number(value) for value in array], dtype=object)
    return numbers.astype(np.float64 if inferred == "floating" else object)


def _unify_numbers(levels: list[Values]) -> list[Values]:
    """Return 64-bit integers, else floats, else (if floats could not distinguish two numbers) objects."""
    kinds = {table.dtype.kind for table in levels if len(table)}
    if kinds <= {"i", "u"} and all(int(table.max()) < 2**63 for table in levels if len(table)):
        return [table.astype(np.int64) for table in levels]
    exact = all(
        int(table.min()) >= -EXACT_IN_FLOAT and int(table.max()) <= EXACT_IN_FLOAT
        for table in levels
        if len(table) and table.dtype.kind in "iu"
    )
    if "O" not in kinds and exact:
        return [table.astype(np.float64) for table in levels]
    # Python's integers and decimals compare and hash by their exact value.
    return [np.array([to_exact(value) for value in table.tolist()], dtype=object) for table in levels]


def _as_instants(levels: Any, utc: bool) -> pd.DatetimeIndex:
    opaque = levels.dtype.kind == "O" or isinstance(levels.dtype, pd.ArrowDtype)
    times = pd.Index(levels, dtype=object if opaque else None)
    try:
        return pd.DatetimeIndex(pd.to_datetime(times, utc=utc))
    except pd.errors.OutOfBoundsDatetime:
        pass
    # Python's dates have a wider range than nanoseconds allow, and no finer resolution than microseconds.
    if utc:
        times = pd.Index([time.astimezone(datetime.timezone.utc).replace(tzinfo=None) for time in times])
    index = pd.DatetimeIndex(np.array(times, dtype="datetime64[us]"))
    return index.tz_localize("UTC") if utc else index


def _unify_resolution(column: Any, indexes: Sequence[Any]) -> list[Values]:
    unit = max((index.unit for index in indexes), key=["s", "ms", "us", "ns"].index)
    for common in (unit, "us"):  # pandas takes nanoseconds for objects, whatever they need
        try:
            unified = [index.as_unit(common) for index in indexes]
        except (pd.errors.OutOfBoundsDatetime, pd.errors.OutOfBoundsTimedelta):
            continue
        if all((new.as_unit(old.unit) == old).all() for new, old in zip(unified, indexes, strict=True)):
            return [index.to_numpy() for index in unified]
    raise InputError(
        f"Column {column!r} holds dates that do not fit the resolution of another table ({unit}): "
        "give it one resolution in all tables."
    )


def unite_levels(levels: Sequence[Values]) -> tuple[Values, list[IntArray]]:
    """Return the sorted union of the levels, and for each table the positions of its levels in it."""
    codes, distinct = pd.factorize(np.concatenate(levels))
    distinct = np.asarray(distinct)
    order = np.argsort(distinct, kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    ends = np.cumsum([len(table) for table in levels])[:-1]
    return distinct[order], [rank[table] for table in np.split(codes, ends)]


_BEYOND_INT64 = 2**63

# The types whose levels pandas returns unchanged: objects, booleans, integers and floats.
_PLAIN = frozenset("O?bBhHiIlLqQefd")


def code_column(column: Any, columns: Sequence[pd.Series[Any]], tables: Sequence[str]) -> CodedColumn:
    """Code a column of GT (first) and its syntheses over all levels; errors as `find_common_kind`."""
    return code_stored(column, find_common_kind(column, columns, tables), [*map(store_column, columns)])


def code_stored(column: Any, kind: Kind, stored: Sequence[tuple[StoredColumn, Any]]) -> CodedColumn:
    """Code a column that holds this kind of values in all tables, as `store_column` returns it.

    Numbers that differ by rounding noise get one code: see `mark_run_starts`.
    """
    comparable = _make_comparable(column, kind, [own_levels for _, own_levels in stored])
    levels, positions = unite_levels(comparable)
    dtype = np.min_scalar_type(-len(levels) - 1)
    tables = [  # -1, missing, takes the last entry
        replace(table, position=np.append(position, len(levels)).astype(dtype)[table.position])
        for position, (table, _) in zip(positions, stored, strict=True)
    ]
    first = mark_run_starts(levels) if kind is Kind.NUMBER and levels.dtype.kind == "f" else None
    if first is not None:
        differs = np.append(~first, False)
        new_code = np.append(np.cumsum(first) - 1, np.count_nonzero(first)).astype(dtype)
        tables = [
            replace(
                table,
                position=new_code[table.position],
                rounded=int(table.counts[differs[table.position]].sum()),
            )
            for table in tables
        ]
        levels = levels[first]
    return CodedColumn(column, kind, tuple(tables), levels)


def list_rounding_changes(columns: Iterable[CodedColumn], tables: Sequence[str]) -> list[Change]:
    """Return an entry for each column and table with numbers changed by rounding noise alone."""
    return [
        Change(table, column.name, ROUNDING, stored.rounded)
        for column in columns
        for table, stored in zip(tables, column.tables, strict=True)
        if stored.rounded
    ]


def store_column(
    series: pd.Series[Any], count: Callable[[IntArray, int, int], IntArray] = count_codes
) -> tuple[StoredColumn, Any]:
    """Return a column of one table with `position` over its own levels (-1: missing), and these levels.

    `count` does the same as `count_codes`.
    """
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "iu" and len(series):
        values = series.to_numpy().astype(series.dtype.newbyteorder("="), copy=False)
        lowest, highest = int(values.min()), int(values.max())
        if highest - lowest < len(values):
            counts = count(values, lowest, highest - lowest + 2)
            dtype = np.uint64 if highest >= _BEYOND_INT64 else np.int64
            levels = np.arange(highest - lowest + 1, dtype=dtype) + dtype(lowest)
            return _drop_unused(values, lowest, counts, levels)
    codes, own_levels = _find_codes(series)
    return _drop_unused(codes, 0, count(codes, 0, len(own_levels) + 1), own_levels)


def _find_codes(series: pd.Series[Any]) -> tuple[IntArray, Any]:
    """Return a code of each record (-1: missing), and the levels; some may occur in no record."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        return cast(pd.Categorical, series.array).codes, series.dtype.categories
    if isinstance(series.dtype, pd.ArrowDtype) and pa.types.is_dictionary(series.dtype.pyarrow_dtype):
        encoded = encode(series)
        return encoded.codes, replace_nan(pd.Series(pd.arrays.ArrowExtensionArray(encoded.levels)))
    # For a series, pandas would build an index of the levels, which is slow.
    is_plain = isinstance(series.dtype, np.dtype) and series.dtype.char in _PLAIN
    codes, levels = pd.factorize(series.to_numpy() if is_plain else replace_nan(series))
    return codes.astype(np.min_scalar_type(-len(levels) - 1), copy=False), levels


def _drop_unused(stored: IntArray, lowest: int, counts: IntArray, levels: Any) -> tuple[StoredColumn, Any]:
    """Leave out the levels that no record has. `counts` has an entry for each level and, last, missing.

    Arrow's dictionaries may have a missing level, and its null type has no other.
    """
    used = (counts[:-1] > 0) & ~np.asarray(pd.isna(levels))
    position = np.append(np.where(used, np.cumsum(used) - 1, -1), -1)
    return StoredColumn(stored, lowest, position, counts), levels[used]


@dataclass(frozen=True)
class Distinct:
    """The values of one column of one table, and the number of records with each.

    `values` may repeat, for example after aliases were replaced, and may include missing. `counts` has an
    entry for each, then the number of records without a value.
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
    """Code a column of GT (first) and its syntheses as `code_column` does, from its values alone.

    `codes[i]` are the codes of the values, not the records, of table i, then the code of missing; `counts`
    are the numbers of records. Messages call the tables by `names`.
    """
    kind = find_common_kind(column, [table.values for table in tables], names)
    return code_stored(column, kind, [*map(_store_distinct, tables)])


def _store_distinct(table: Distinct) -> tuple[StoredColumn, Any]:
    """Return what `store_column` does, with an entry for each value and one for missing."""
    stored, levels = store_column(table.values)
    position = np.append(np.arange(len(levels)), -1)
    codes = np.append(stored.look_up(stored.position), -1)
    counts = np.zeros(len(position), dtype=np.int64)
    np.add.at(counts, codes, table.counts)
    return StoredColumn(codes, 0, position, counts), levels


def stack_columns(columns: Sequence[pd.Series[Any]]) -> pd.Series[Any]:
    """Return all values of several columns as one column; categories stay categories."""
    types = [column.dtype for column in columns]
    if not all(isinstance(dtype, pd.CategoricalDtype) for dtype in types):
        if any(dtype != types[0] for dtype in types):  # a common type may lose digits or missing values
            columns = [decode_arrow(widen_column(column)).astype(object) for column in columns]
        dtype = columns[0].dtype
        if isinstance(dtype, np.dtype):  # faster than pandas, which searches for a common type
            return pd.Series(np.concatenate([column.to_numpy() for column in columns]), dtype=dtype)
        return pd.concat(columns, ignore_index=True)
    levels = [column.cat.categories for column in columns]
    if all(part.dtype == levels[0].dtype for part in levels):
        every = levels[0].append(levels[1:])
    else:  # see above
        levels = [widen_column(column).cat.categories.astype(object) for column in columns]
        every = pd.Index(np.concatenate(levels), dtype=object)
    categories, positions = every.unique(), pd.factorize(every)[0]
    ends = np.cumsum([len(part) for part in levels])[:-1]
    ordered = all(column.cat.ordered for column in columns)
    codes = []
    for column, position in zip(columns, np.split(positions, ends), strict=True):
        codes.append(np.append(position, -1)[column.cat.codes.to_numpy()])
    return pd.Series(pd.Categorical.from_codes(np.concatenate(codes), categories, ordered=ordered))


def build_table(columns: Mapping[Any, Any], index: pd.Index[Any] | None = None) -> pd.DataFrame:
    """Return a frame of these columns, whose names may be tuples, of which pandas would make levels.

    >>> build_table({("a", 1): [5]}).columns.nlevels
    1
    """
    frame = pd.DataFrame(dict(enumerate(columns.values())), index=index, copy=False)
    frame.columns = pd.Index(list(columns), tupleize_cols=False)
    return frame


def decode_arrow(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return plain values for an Arrow dictionary, of which pandas makes no objects of Python; others as is.

    >>> times = pa.array([0], pa.timestamp("ns", "UTC")).dictionary_encode()
    >>> column = pd.Series(pd.arrays.ArrowExtensionArray(times))
    >>> column.astype(object).tolist(), decode_arrow(column).astype(object).tolist()
    ([0], [Timestamp('1970-01-01 00:00:00+0000', tz='UTC')])
    """
    if isinstance(column.dtype, pd.ArrowDtype) and pa.types.is_dictionary(column.dtype.pyarrow_dtype):
        return column.astype(pd.ArrowDtype(column.dtype.pyarrow_dtype.value_type))
    return column


def bin_by_width(column: CodedColumn, bins: int, table_names: Sequence[str]) -> CodedColumn:
    """Group a column into bins of equal width over GT's range; missing stays a level of its own.

    Raise InputError if its values have no order, or are infinite.
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
    return column.recode(occupied, np.append(position, len(occupied)), Kind.NUMBER)


def _bin_levels(levels: Values, lowest: int, highest: int, bins: int) -> IntArray:
    """Return the bin of each level, closed on the right; GT's range is levels[lowest] to levels[highest].

    Floats have the float edges of pandas.cut, which SDMetrics calls. Integers and dates are compared with the
    edges exactly, so that no large number or rounded edge leads to a wrong bin. If GT has a single value, its
    range is that value plus and minus a thousandth of it (of 1 if it is 0), as in pandas.cut.
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
                f"Column {column.name!r} of {name} holds infinite values, which no bin of equal width can "
                "hold: make them missing, or leave the column out of continuous."
            )
