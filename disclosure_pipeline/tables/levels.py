"""Columns of several tables as integer codes over one list of levels, matched by value."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from disclosure_pipeline.errors import InputError

IntArray = npt.NDArray[np.integer]
Values = npt.NDArray[Any]

GROUND_TRUTH = "the ground truth"

# Every integer up to here is a float of its own; beyond it two integers can share one.
_EXACT_IN_FLOAT = 2**53

_PROBE = 1000
_CHUNK = 1 << 16  # records at a time: they fit the cache


class Kind(Enum):
    """What the values of a column are. Only columns of one kind can be compared."""

    NUMBER = "numbers"
    TEXT = "text"
    BOOLEAN = "true/false"
    DATE = "dates"
    ZONED_DATE = "dates with a time zone"
    DURATION = "durations"
    EMPTY = "nothing but missing values"


_KIND_OF_OBJECTS = {
    "string": Kind.TEXT,
    "integer": Kind.NUMBER,
    "floating": Kind.NUMBER,
    "mixed-integer-float": Kind.NUMBER,
    "decimal": Kind.NUMBER,
    "boolean": Kind.BOOLEAN,
    "date": Kind.DATE,
    "timedelta": Kind.DURATION,
    "empty": Kind.EMPTY,
}


@dataclass(frozen=True)
class Stored:
    """One column of one table as the table itself holds it, so that no record is copied.

    `position[stored - lowest]` are the codes over the levels of all tables; its last entry is for missing,
    which is stored as -1. `counts` are the numbers of records with each entry of `position`.
    """

    stored: IntArray
    lowest: int
    position: IntArray
    counts: IntArray

    def look_up(self, values: Values, records: slice = slice(None)) -> Values:
        """For some of the records their entry of `values`, which has one for each entry of `position`."""
        return values[_offsets(self.stored[records], self.lowest)]


@dataclass(frozen=True)
class CodedColumn:
    """One column of all tables: `codes[0]` of GT, `codes[i]` of synthesis i, one entry per record.

    A code is the position in `levels`, which are sorted and hold no missing value; missing is the code
    len(levels). `size` is one more than the largest possible code. `tables` holds GT and the syntheses as
    they are stored; the codes are made of them when they are asked for.
    """

    name: Any
    kind: Kind
    tables: tuple[Stored, ...]
    levels: Values

    @cached_property
    def codes(self) -> tuple[IntArray, ...]:
        """The code of every record."""
        return tuple(table.look_up(table.position) for table in self.tables)

    @cached_property
    def counts(self) -> tuple[IntArray, ...]:
        """The number of records of each table with each code."""
        return tuple(_added_up(table.position, table.counts, self.size) for table in self.tables)

    @property
    def size(self) -> int:
        """Number of codes, the one for missing included."""
        return len(self.levels) + 1

    @property
    def missing(self) -> int:
        """The code of a missing value."""
        return len(self.levels)

    def reader(self, table: int, values: Values) -> Callable[[slice], Values]:
        """A function from some records of a table to their entry of `values`, which has one for each code."""
        own = self.tables[table]
        by_own = values[own.position]
        return lambda records: own.look_up(by_own, records)

    def label(self, code: int) -> str | None:
        """The level as text, None for missing."""
        return None if code == self.missing else level_label(self.levels[code])

    def find(self, level: Any) -> int | None:
        """The code of a level given by its value or its label (None, NaN: missing); None if there is none."""
        if _is_missing(level):
            return self.missing
        wanted = level_label(level)
        found = [code for code, known in enumerate(self.levels) if level_label(known) == wanted]
        return found[0] if found else None

    def recoded(self, levels: Values, new_code: IntArray, kind: Kind) -> CodedColumn:
        """The column over other levels; `new_code[c]` is the new code of c, missing included."""
        small = new_code.astype(np.min_scalar_type(-len(levels) - 1))
        tables = tuple(replace(table, position=small[table.position]) for table in self.tables)
        return CodedColumn(self.name, kind, tables, levels)


def level_label(level: Any) -> str:
    """A level as text: 18 and 18.0 are both "18", text is itself."""
    if isinstance(level, (bool, np.bool_)):
        return str(bool(level))
    if isinstance(level, (float, np.floating)):
        return str(int(level)) if float(level).is_integer() else repr(float(level))
    if isinstance(level, Decimal):
        return str(int(level)) if level == level.to_integral_value() else format(level.normalize(), "f")
    if isinstance(level, (np.datetime64, datetime.date)):
        return str(pd.Timestamp(level))
    if isinstance(level, np.timedelta64):
        return str(pd.Timedelta(level))
    return str(level)


def _is_missing(level: Any) -> bool:
    return (
        level is None or level is pd.NA or level is pd.NaT or (isinstance(level, float) and math.isnan(level))
    )


def kind_of(series: pd.Series[Any], table: str) -> Kind:
    """What the values of a column are, whatever its dtype. InputError if they are of several kinds."""
    dtype = series.dtype
    if _all_missing(series):
        return Kind.EMPTY
    if isinstance(dtype, pd.CategoricalDtype):
        return kind_of(pd.Series(dtype.categories, name=series.name), table)
    if isinstance(dtype, pd.ArrowDtype):
        return _kind_of_arrow(series, dtype, table)
    if pd.api.types.is_bool_dtype(dtype):
        return Kind.BOOLEAN
    if isinstance(dtype, pd.DatetimeTZDtype):
        return Kind.ZONED_DATE
    if pd.api.types.is_datetime64_dtype(dtype):
        return Kind.DATE
    if pd.api.types.is_timedelta64_dtype(dtype):
        return Kind.DURATION
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype):
        return Kind.NUMBER
    if isinstance(dtype, pd.StringDtype):
        return Kind.TEXT
    if pd.api.types.is_object_dtype(dtype):
        return _kind_of_objects(series, table)
    raise _unusable(series.name, table, f"is of type {dtype}")


def _all_missing(series: pd.Series[Any]) -> bool:
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "iub":
        return not len(series)
    # Whoever holds a value mostly holds one among its first records.
    return all(bool(pd.isna(_without_nan(part)).all()) for part in (series.iloc[:_PROBE], series))


def _kind_of_arrow(series: pd.Series[Any], dtype: pd.ArrowDtype, table: str) -> Kind:
    import pyarrow as pa  # slow, and only frames with Arrow columns need it

    arrow = dtype.pyarrow_dtype
    if pa.types.is_dictionary(arrow):
        arrow = arrow.value_type
    if pa.types.is_boolean(arrow):
        return Kind.BOOLEAN
    if pa.types.is_integer(arrow) or pa.types.is_floating(arrow) or pa.types.is_decimal(arrow):
        return Kind.NUMBER
    if pa.types.is_string(arrow) or pa.types.is_large_string(arrow) or pa.types.is_string_view(arrow):
        return Kind.TEXT
    if pa.types.is_timestamp(arrow):
        return Kind.DATE if arrow.tz is None else Kind.ZONED_DATE
    if pa.types.is_date(arrow):
        return Kind.DATE
    if pa.types.is_duration(arrow):
        return Kind.DURATION
    if pa.types.is_null(arrow):
        return Kind.EMPTY
    raise _unusable(series.name, table, f"is of type {dtype}")


def _kind_of_objects(series: pd.Series[Any], table: str) -> Kind:
    inferred = pd.api.types.infer_dtype(series.dropna())  # which drops every form of missing
    if inferred in {"datetime", "datetime64"}:
        zoned = {
            value.tzinfo is not None for value in series.dropna() if isinstance(value, datetime.datetime)
        }
        if len(zoned) > 1:
            raise _unusable(series.name, table, "holds dates with and without a time zone")
        return Kind.ZONED_DATE if zoned == {True} else Kind.DATE
    if inferred not in _KIND_OF_OBJECTS:
        raise _unusable(
            series.name, table, f"holds values of more than one kind, or of no usable kind ({inferred})"
        )
    return _KIND_OF_OBJECTS[inferred]


def _unusable(column: Any, table: str, what: str) -> InputError:
    return InputError(
        f"Column {column!r} of {table} {what}. Expected numbers, text, true/false, dates or durations: "
        "convert it in both tables."
    )


def common_kind(column: Any, columns: Sequence[pd.Series[Any]], tables: Sequence[str]) -> Kind:
    """The one kind that a column has in all tables. InputError if it has several: they are never compared."""
    found: dict[Kind, str] = {}
    for series, table in zip(columns, tables, strict=True):
        kind = kind_of(series, table)
        if kind is not Kind.EMPTY:
            found.setdefault(kind, table)
    if len(found) > 1:
        held = " and ".join(f"{kind.value} in {table}" for kind, table in found.items())
        raise InputError(
            f"Column {column!r} holds {held}. They share no level, so every risk would read 0: "
            "give the column one type in all tables."
        )
    return next(iter(found), Kind.EMPTY)


def code_column(column: Any, columns: Sequence[pd.Series[Any]], tables: Sequence[str]) -> CodedColumn:
    """Code one column of GT (first) and of the syntheses over the union of their levels.

    `tables` names the tables for messages. Raises InputError as `common_kind` does.
    """
    kind = common_kind(column, columns, tables)
    own = [_own_codes(series) for series in columns]
    comparable = _comparable(column, kind, [found for _, found in own])
    levels, positions = _union(comparable)
    stored = tuple(
        replace(table, position=_apply(position, table.position, len(levels)))
        for position, (table, _) in zip(positions, own, strict=True)
    )
    return CodedColumn(column, kind, stored, levels)


def _apply(position: IntArray, codes: IntArray, missing: int) -> IntArray:
    """Positions in the union for a table's own codes; its -1 (missing) picks the last entry."""
    dtype = np.min_scalar_type(-missing - 1)
    return np.append(position, missing).astype(dtype)[codes]


def _own_codes(series: pd.Series[Any]) -> tuple[Stored, Any]:
    """A table's own codes (`position` of what is stored; missing is -1), and its levels in any order."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        counts = count_codes(series.cat.codes.to_numpy(), 0, len(series.dtype.categories) + 1)
        return _used(series.cat.codes.to_numpy(), 0, counts, series.dtype.categories)
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "iu" and len(series):
        values = series.to_numpy()
        lowest, highest = int(values.min()), int(values.max())
        if highest - lowest < len(values):
            counts = count_codes(values, lowest, highest - lowest + 2)
            return _used(values, lowest, counts, np.arange(highest - lowest + 1) + lowest)
    codes, found = pd.factorize(_without_nan(series))
    if pd.isna(found).all():  # Arrow's type of nothing but nulls takes null for a level
        codes, found = np.full(len(series), -1), found[:0]
    codes = codes.astype(np.min_scalar_type(-len(found) - 1), copy=False)
    return _used(codes, 0, count_codes(codes, 0, len(found) + 1), found)


def _used(stored: IntArray, lowest: int, counts: IntArray, levels: Any) -> tuple[Stored, Any]:
    """Leave out the levels that no record has. `counts` has an entry for each level, and one for missing."""
    used = counts[:-1] > 0
    position = np.append(np.where(used, np.cumsum(used) - 1, -1), -1)
    return Stored(stored, lowest, position, counts), levels[used]


def count_codes(stored: IntArray, lowest: int, entries: int) -> IntArray:
    """The number of records with lowest, lowest + 1, …, and in the last entry of those with -1, missing."""
    from_missing = np.zeros(entries, dtype=np.int64)
    rows = max(_CHUNK, entries)
    for start in range(0, len(stored), rows):
        offsets = _offsets(stored[start : start + rows], lowest)
        shifted = np.add(offsets, 1, dtype=np.intp, casting="unsafe")
        from_missing += np.bincount(shifted, minlength=entries)
    return np.roll(from_missing, -1)


def _offsets(stored: IntArray, lowest: int) -> IntArray:
    """How far each value is above the lowest, also where the difference does not fit the values' own type."""
    if not lowest:
        return stored
    return (stored - stored.dtype.type(lowest)).view(f"u{stored.dtype.itemsize}")


def _added_up(codes: IntArray, counts: IntArray, size: int) -> IntArray:
    sums = np.zeros(size, dtype=np.int64)
    np.add.at(sums, codes, counts)
    return sums


def _without_nan(series: pd.Series[Any]) -> Any:
    """Nullable and Arrow floats can hold NaN beside their missing value, and take it for a number."""
    if pd.api.types.is_float_dtype(series.dtype) and not isinstance(series.dtype, np.dtype):
        return series.to_numpy(dtype=np.float64, na_value=np.nan)
    return series


def _comparable(column: Any, kind: Kind, levels: Sequence[Any]) -> list[Values]:
    """The levels of each table in one representation, in which equal means the same value."""
    if kind is Kind.NUMBER:
        return _numbers([_as_array(found) for found in levels])
    if kind in {Kind.DATE, Kind.ZONED_DATE}:
        return _instants(column, levels, kind)
    if kind is Kind.DURATION:
        return _in_one_unit(column, [pd.TimedeltaIndex(found) for found in levels])
    if kind is Kind.BOOLEAN:
        return [np.asarray(found, dtype=bool) for found in levels]
    return [np.asarray(found, dtype=object) for found in levels]


def _as_array(levels: Any) -> Values:
    array = np.asarray(levels)
    if array.dtype.kind in "iuf":
        return array
    inferred = pd.api.types.infer_dtype(array)
    if inferred == "integer":
        return np.array(array.tolist())
    return array.astype(np.float64 if inferred == "floating" else object)


def _numbers(levels: list[Values]) -> list[Values]:
    """Integers as 64-bit integers, else floats, else (where a float could not tell two apart) objects."""
    kinds = {found.dtype.kind for found in levels if len(found)}
    if kinds <= {"i", "u"} and all(int(found.max()) < 2**63 for found in levels if len(found)):
        return [found.astype(np.int64) for found in levels]
    exact = all(
        found.dtype.kind == "f" or _within(found, _EXACT_IN_FLOAT)
        for found in levels
        if found.dtype.kind != "O"
    )
    if "O" not in kinds and exact:
        return [found.astype(np.float64) for found in levels]
    return [np.array([_number(value) for value in found.tolist()], dtype=object) for found in levels]


def _within(integers: Values, limit: int) -> bool:
    return not len(integers) or (-limit <= int(integers.min()) and int(integers.max()) <= limit)


def _number(value: Any) -> Any:
    """Python numbers compare and hash by exact value, whether integer, float or decimal."""
    return value.item() if isinstance(value, np.generic) else value


def _instants(column: Any, levels: Sequence[Any], kind: Kind) -> list[Values]:
    utc = kind is Kind.ZONED_DATE
    indexes = [_instant_index(pd.Index(found, dtype=_date_dtype(found)), utc) for found in levels]
    return _in_one_unit(column, [index.tz_localize(None) if utc else index for index in indexes])


def _instant_index(found: pd.Index[Any], utc: bool) -> pd.DatetimeIndex:
    try:
        return pd.DatetimeIndex(pd.to_datetime(found, utc=utc))
    except pd.errors.OutOfBoundsDatetime:
        pass
    # Python's dates reach further than nanoseconds, and are no finer than microseconds.
    if utc:
        found = pd.Index([time.astimezone(datetime.timezone.utc).replace(tzinfo=None) for time in found])
    index = pd.DatetimeIndex(np.array(found, dtype="datetime64[us]"))
    return index.tz_localize("UTC") if utc else index


def _date_dtype(levels: Any) -> Any:
    opaque = levels.dtype.kind == "O" or isinstance(levels.dtype, pd.ArrowDtype)
    return object if opaque else None


def _in_one_unit(column: Any, indexes: Sequence[Any]) -> list[Values]:
    """Dates and durations at the finest resolution that occurs."""
    unit = max((index.unit for index in indexes), key=["s", "ms", "us", "ns"].index)
    try:
        return [index.as_unit(unit).to_numpy() for index in indexes]
    except (pd.errors.OutOfBoundsDatetime, pd.errors.OutOfBoundsTimedelta):
        pass
    raise InputError(
        f"Column {column!r} holds dates that do not fit the resolution of the other table ({unit}): "
        "give it one resolution in all tables."
    )


def _union(levels: Sequence[Values]) -> tuple[Values, list[IntArray]]:
    """The sorted union of the levels, and for each table the positions of its own levels in it."""
    pooled = np.concatenate(levels) if levels[0].dtype.kind != "O" else _pool_objects(levels)
    codes, found = pd.factorize(pooled)
    found = np.asarray(found)
    order = np.argsort(found, kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    ends = np.cumsum([len(table) for table in levels])[:-1]
    return found[order], [rank[table] for table in np.split(codes, ends)]


def _pool_objects(levels: Sequence[Values]) -> Values:
    pooled = np.empty(sum(len(table) for table in levels), dtype=object)
    pooled[:] = [value for table in levels for value in table]
    return pooled
