"""The kinds of values, and columns of several tables as integer codes over one list of levels."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum
from functools import cache, cached_property
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from disclosure_pipeline.errors import InputError

EXACT_IN_FLOAT = 2.0**53
"""Whole numbers below this are distinct floats; beyond it, two can be the same."""

_PROBE = 1000


class Kind(Enum):
    """The kind of values that a column holds, in words for messages."""

    NUMBER = "numbers"
    TEXT = "text"
    BOOLEAN = "true/false"
    DATE = "dates"
    ZONED_DATE = "dates with a time zone"
    DURATION = "durations"
    EMPTY = "nothing but missing values"


ORDERED_KINDS = frozenset({Kind.NUMBER, Kind.DATE, Kind.ZONED_DATE, Kind.DURATION})
"""The kinds with an order, whose different values can be near each other."""

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


def find_kind(series: pd.Series[Any], table: str) -> Kind:
    """Return the kind of a column's values, whatever its dtype. Raise InputError if there are several."""
    dtype = series.dtype
    if isinstance(series.array, pd.Categorical):
        codes = series.array.codes
        if (codes[:_PROBE] < 0).all() and (codes < 0).all():
            return Kind.EMPTY
        return find_kind(pd.Series(series.array.categories, name=series.name), table)
    if _is_all_missing(series):
        return Kind.EMPTY
    if not isinstance(dtype, pd.ArrowDtype) and pd.api.types.is_object_dtype(dtype):
        return _kind_of_objects(series, table)
    kind = _kind_of_type(dtype)
    if kind is None:
        raise _unusable(series.name, table, f"is of type {dtype}")
    return kind


@cache
def _kind_of_type(dtype: Any) -> Kind | None:
    """Return the kind of a type other than categories and objects; None if it cannot be used."""
    if isinstance(dtype, pd.ArrowDtype):
        return _kind_of_arrow(dtype)
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
    return Kind.TEXT if isinstance(dtype, pd.StringDtype) else None


def _is_all_missing(series: pd.Series[Any]) -> bool:
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "iub":
        return not len(series)
    if len(series) and pd.api.types.is_scalar(series.array[0]) and not pd.isna(series.array[0]):
        return False
    # If there is a value, there usually is one among the first records.
    parts = (series.iloc[:_PROBE], series) if len(series) > _PROBE else (series,)
    return all(bool(pd.isna(replace_nan(part)).all()) for part in parts)


def _kind_of_arrow(dtype: pd.ArrowDtype) -> Kind | None:
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
    return Kind.EMPTY if pa.types.is_null(arrow) else None


def _kind_of_objects(series: pd.Series[Any], table: str) -> Kind:
    values = series.to_numpy()
    values = values[~pd.isna(values)]
    inferred = pd.api.types.infer_dtype(values)
    if inferred in {"datetime", "datetime64"}:
        with_zone = {value.tzinfo is not None for value in values if isinstance(value, datetime.datetime)}
        if len(with_zone) > 1:
            raise _unusable(series.name, table, "holds dates with and without a time zone")
        return Kind.ZONED_DATE if with_zone == {True} else Kind.DATE
    if inferred in {"mixed", "mixed-integer"} and all(map(_is_number, values)):  # decimals and others
        return Kind.NUMBER
    if inferred not in _KIND_OF_OBJECTS:
        raise _unusable(
            series.name, table, f"holds values of more than one kind, or of no usable kind ({inferred})"
        )
    return _KIND_OF_OBJECTS[inferred]


def _is_number(value: Any) -> bool:
    return isinstance(value, (Real, Decimal)) and not isinstance(value, (bool, np.bool_))


def _unusable(column: Any, table: str, problem: str) -> InputError:
    return InputError(
        f"Column {column!r} of {table} {problem}. Expected numbers, text, true/false, dates or durations: "
        "convert it in both tables."
    )


def find_common_kind(column: Any, columns: Sequence[pd.Series[Any]], tables: Sequence[str]) -> Kind:
    """Return the kind of a column in all tables. Raise InputError if it has several, which share no level."""
    table_with: dict[Kind, str] = {}
    for series, table in zip(columns, tables, strict=True):
        kind = find_kind(series, table)
        if kind is not Kind.EMPTY:
            table_with.setdefault(kind, table)
    if len(table_with) > 1:
        kinds = " and ".join(f"{kind.value} in {table}" for kind, table in table_with.items())
        raise InputError(
            f"Column {column!r} holds {kinds}. They share no level, so every risk would read 0: "
            "give the column one type in all tables."
        )
    return next(iter(table_with), Kind.EMPTY)


def replace_nan(series: pd.Series[Any]) -> Any:
    """Replace NaN by missing in nullable and Arrow floats, which can hold both."""
    if not isinstance(series.dtype, np.dtype) and pd.api.types.is_float_dtype(series.dtype):
        return series.to_numpy(dtype=float_type(series.dtype), na_value=np.nan)
    return series


IntArray = npt.NDArray[np.integer]
Values = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

NARROW_FLOATS = (np.float16, np.float32)
"""The types of floats with fewer bits than Python's."""


def float_type(dtype: Any) -> np.dtype[Any]:
    """Return NumPy's type for the floats of a column of this type.

    >>> float_type(pd.Float32Dtype())
    dtype('float32')
    """
    return np.dtype(getattr(dtype, "numpy_dtype", getattr(dtype, "subtype", dtype)))


def widen_floats(values: Values) -> Values:
    """Return floats of 16 or 32 bits in 64 bits: each is the shortest decimal that stands for it.

    So 172.3 is one number, however many bits hold it. Other values are returned unchanged.

    >>> widen_floats(np.array([172.3, 3, np.nan], dtype=np.float32)).tolist()
    [172.3, 3.0, nan]
    """
    if values.dtype == np.float16:
        return values.astype(str).astype(np.float64)
    if values.dtype != np.float32:
        return values
    import pyarrow as pa  # slow, and most tables hold no such number

    texts = pa.array(values).cast(pa.string())  # ten times as fast as NumPy
    return np.asarray(texts.cast(pa.float64()).to_numpy(zero_copy_only=False))


def widen_number(value: Any) -> Any:
    """Return a single value as `widen_floats` does."""
    return float(str(value)) if isinstance(value, NARROW_FLOATS) else value


def widen_column(series: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column with its floats widened as by `widen_floats`; other columns are returned unchanged."""
    dtype: Any = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        levels = dtype.categories.to_series()
        widened = widen_column(levels)
        return series if widened is levels else series.cat.rename_categories(widened.tolist())
    if isinstance(dtype, pd.ArrowDtype):
        arrow = dtype.pyarrow_dtype
        dtype = pd.ArrowDtype(getattr(arrow, "value_type", arrow))  # of a dictionary
    if not pd.api.types.is_float_dtype(dtype) or float_type(dtype) not in NARROW_FLOATS:
        return series
    values = series.astype(dtype).to_numpy(dtype=float_type(dtype), na_value=np.nan)
    return pd.Series(widen_floats(np.asarray(values)), index=series.index, name=series.name)


_BYTES = 1 << 8  # values of a byte
_MANY = 1 << 16  # records, from which on bytes are counted two at a time
_CHUNK_OF_BYTES = 1 << 20  # records at a time, an even number
_LARGEST = 8  # bytes of the largest integers
_CHUNK = 1 << 16  # records at a time: they fit the cache


@dataclass(frozen=True)
class StoredColumn:
    """One column of one table as the table itself stores it, so that no record is copied.

    `position[stored - lowest]` are the codes over the levels of all tables; its last entry is for missing,
    which is stored as -1. `counts` are the records with each entry of `position`; `rounded` is the number of
    records whose value differs from its level by rounding noise.
    """

    stored: IntArray
    lowest: int
    position: IntArray
    counts: IntArray
    rounded: int = 0

    @property
    def lowest_stored(self) -> np.integer[Any]:
        """The `lowest`, in the type of what is stored."""
        lowest: np.integer[Any] = self.stored.dtype.type(self.lowest)
        return lowest

    def codes(self, records: slice | IntArray) -> IntArray:
        """Return the codes of these records."""
        return self.look_up(self.position, records)

    def draw(self, positions: IntArray) -> StoredColumn:
        """Return the column of the records at these positions; `rounded` is not counted."""
        stored = self.stored[positions]
        return replace(
            self, stored=stored, counts=count_codes(stored, self.lowest, len(self.position)), rounded=0
        )

    def look_up(self, values: Values, records: slice | IntArray = slice(None)) -> Values:
        """Return the records' entries of `values`, which has one for each entry of `position`."""
        return look_up(values, _offsets(self.stored[records], self.lowest))


@dataclass(frozen=True)
class Reader:
    """A function from records of a column to their entries of `values`: see `StoredColumn.look_up`."""

    column: StoredColumn
    values: Values

    def __call__(self, records: slice | IntArray) -> Values:
        """Return the values of these records."""
        return self.column.look_up(self.values, records)


@dataclass(frozen=True)
class CodedColumn:
    """One column of all tables: `codes[0]` of GT, `codes[i]` of synthesis i, one entry per record.

    A code is the position in `levels`, which are sorted and hold no missing value; missing is the code
    len(levels). `tables` holds GT and the syntheses as stored; `codes` are computed from them on first use.
    """

    name: Any
    kind: Kind
    tables: tuple[StoredColumn, ...]
    levels: Values

    @cached_property
    def codes(self) -> tuple[IntArray, ...]:
        """The code of every record."""
        return tuple(table.look_up(table.position) for table in self.tables)

    @cached_property
    def counts(self) -> tuple[IntArray, ...]:
        """The number of records of each table with each code."""
        counts = []
        for table in self.tables:
            counts.append(np.zeros(self.size, dtype=np.int64))
            np.add.at(counts[-1], table.position, table.counts)
        return tuple(counts)

    @property
    def size(self) -> int:
        """The number of codes, missing included."""
        return len(self.levels) + 1

    @property
    def missing(self) -> int:
        """The code of a missing value."""
        return len(self.levels)

    def reader(self, table: int, values: Values) -> Reader:
        """Return a function from records of a table to their entries of `values`, one for each code."""
        return Reader(self.tables[table], values[self.tables[table].position])

    def label(self, code: int) -> str | None:
        """Return the level as text, None for missing."""
        if code not in self._labels:
            self._labels[code] = None if code == self.missing else level_label(self.levels[code])
        return self._labels[code]

    def label_each(self, codes: IntArray) -> list[str | None]:
        """Return the level of each code as text, None for missing."""
        distinct, place = np.unique(codes, return_inverse=True)
        labels = [self.label(code) for code in distinct.tolist()]
        return [labels[i] for i in place.tolist()]

    @cached_property
    def _labels(self) -> dict[int, str | None]:
        """The labels asked for: of one key, every target asks for the same ones."""
        return {}

    def find(self, level: Any) -> int | None:
        """Return the code of a level given by value or label (None, NaN: missing); None if it is unknown."""
        if is_missing(level):
            return self.missing
        if self.kind is Kind.ZONED_DATE and getattr(level, "tzinfo", None) is not None:  # levels are in UTC
            level = level.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        wanted = level_label(level)
        return next((code for code, known in enumerate(self.levels) if level_label(known) == wanted), None)

    def only(self, tables: Sequence[int]) -> CodedColumn:
        """Return the column of these tables, in this order, over the same levels."""
        return replace(self, tables=tuple(self.tables[i] for i in tables))

    def draw(self, positions: Sequence[IntArray | None]) -> CodedColumn:
        """Return the column of the records at these positions (None: all), over the levels that they have."""
        tables = tuple(
            table if drawn is None else table.draw(drawn)
            for table, drawn in zip(self.tables, positions, strict=True)
        )
        column = replace(self, tables=tables)
        used = np.sum(column.counts, axis=0)[:-1] > 0
        number = np.count_nonzero(used)
        new_code = np.append(np.where(used, np.cumsum(used) - 1, number), number)
        return column.recode(self.levels[used], new_code, self.kind)

    def join(self, records: Mapping[int, Any]) -> StoredColumn:
        """Return the codes of these records of some tables, one table after the other."""
        codes = np.concatenate([self.codes[table][selected] for table, selected in records.items()])
        counts = np.bincount(codes, minlength=self.size)
        codes[codes == self.missing] = -1
        return StoredColumn(codes, 0, np.arange(self.size), counts)

    def recode(self, levels: Values, new_code: IntArray, kind: Kind) -> CodedColumn:
        """Return the column over other levels; `new_code[c]` is the new code of c, missing included."""
        new_code = new_code.astype(np.min_scalar_type(-len(levels) - 1))
        tables = tuple(replace(table, position=new_code[table.position]) for table in self.tables)
        return CodedColumn(self.name, kind, tables, levels)


def look_up(values: Values, positions: IntArray) -> Values:
    """Return the entry of `values` at each position; -1 is the last.

    >>> look_up(np.array([10, 20, 0]), np.array([1, -1], dtype=np.int8)).tolist()
    [20, 0]
    """
    if positions.itemsize == _LARGEST:
        return values.take(positions.view(np.int64), mode="wrap")
    # As an unsigned integer, -1 is clipped to the last entry: the fastest way to look up.
    return values.take(positions.view(f"u{positions.itemsize}"), mode="clip")


def level_label(level: Any) -> str:
    """Return a level as text: 18 and 18.0 are both "18", text is itself.

    >>> [level_label(level) for level in (18.0, "18", np.int64(18), True)]
    ['18', '18', '18', 'True']
    >>> [level_label(level) for level in (np.timedelta64(90, "m"), datetime.timedelta(minutes=90))]
    ['0 days 01:30:00', '0 days 01:30:00']
    """
    if isinstance(level, (bool, np.bool_)):
        return str(bool(level))
    if isinstance(level, (float, np.floating)):
        number = float(widen_number(level))
        return str(int(number)) if number.is_integer() else repr(number)
    if isinstance(level, Decimal):
        return str(int(level)) if level == level.to_integral_value() else format(level.normalize(), "f")
    if isinstance(level, (np.datetime64, datetime.date)):
        return str(pd.Timestamp(level))
    if isinstance(level, (np.timedelta64, datetime.timedelta)):
        return str(pd.Timedelta(level))
    return str(level)


def name_level(target: Any, level: Any) -> str:
    """Return the name of a level of a target in frames and clauses.

    >>> name_level("hiv", "positive")
    'hiv: positive'
    """
    return f"{target}: {level_label(level)}"


def is_missing(level: Any) -> bool:
    """Return whether a value is any form of missing."""
    return (
        level is None or level is pd.NA or level is pd.NaT or (isinstance(level, float) and math.isnan(level))
    )


def count_codes(stored: IntArray, lowest: int, entries: int) -> IntArray:
    """Count the records with lowest, lowest + 1, …, and last those with -1, missing."""
    if stored.itemsize == 1 and entries <= _BYTES + 1 and len(stored) >= _MANY:
        byte_counts = np.roll(_count_bytes(stored), -lowest)
        missing = byte_counts[-1] if stored.dtype.kind == "i" and not lowest else 0
        return np.append(byte_counts[: entries - 1], missing)
    from_missing = np.zeros(entries, dtype=np.int64)
    rows = max(_CHUNK, entries)
    for start in range(0, len(stored), rows):
        offsets = _offsets(stored[start : start + rows], lowest)
        shifted = np.add(offsets, 1, dtype=np.intp, casting="unsafe")
        from_missing += np.bincount(shifted, minlength=entries)
    return np.append(from_missing[1:], from_missing[0])


def _count_bytes(stored: IntArray) -> IntArray:
    """Count the entries with each byte, two entries at a time."""
    pairs = np.zeros(_BYTES * _BYTES, dtype=np.int64)
    for start in range(0, len(stored) - 1, _CHUNK_OF_BYTES):
        chunk = np.ascontiguousarray(stored[start : start + _CHUNK_OF_BYTES])
        pairs += np.bincount(chunk[: len(chunk) // 2 * 2].view(np.uint16), minlength=len(pairs))
    table = pairs.reshape(_BYTES, _BYTES)
    counts: IntArray = table.sum(axis=0) + table.sum(axis=1)
    if len(stored) % 2:
        counts[int(stored[-1]) % _BYTES] += 1
    return counts


def _offsets(stored: IntArray, lowest: int) -> IntArray:
    """Subtract the lowest from each value, even if its own type cannot hold the difference."""
    if not lowest:
        return stored
    return (stored - stored.dtype.type(lowest)).view(f"u{stored.dtype.itemsize}")


def to_exact(number: Any) -> Any:
    """Return a number as Python's integer or decimal: 0.1 is one tenth. Infinite numbers stay floats."""
    value = number.item() if isinstance(number, np.generic) else number
    if not isinstance(value, float) or not math.isfinite(value):
        return value
    return int(value) if value.is_integer() else Decimal(repr(value))
