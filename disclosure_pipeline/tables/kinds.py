"""The kinds of values that a column can hold; only columns of one kind can be compared."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from enum import Enum
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.errors import InputError

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
"""Values that can be near to one another without being the same."""

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


def kind_of(series: pd.Series[Any], table: str) -> Kind:
    """Return what the values of a column are, whatever its dtype. InputError if they are of several kinds."""
    dtype = series.dtype
    if isinstance(series.array, pd.Categorical):
        codes = series.array.codes
        if (codes[:_PROBE] < 0).all() and (codes < 0).all():
            return Kind.EMPTY
        return kind_of(pd.Series(series.array.categories, name=series.name), table)
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
    """Return what a type other than categories and objects holds; None for what cannot be used."""
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
    # Whoever holds a value mostly holds one among its first records.
    parts = (series.iloc[:_PROBE], series) if len(series) > _PROBE else (series,)
    return all(bool(pd.isna(nan_as_missing(part)).all()) for part in parts)


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
    values = values[~pd.isna(values)]  # every form of missing
    inferred = pd.api.types.infer_dtype(values)
    if inferred in {"datetime", "datetime64"}:
        with_zone = {value.tzinfo is not None for value in values if isinstance(value, datetime.datetime)}
        if len(with_zone) > 1:
            raise _unusable(series.name, table, "holds dates with and without a time zone")
        return Kind.ZONED_DATE if with_zone == {True} else Kind.DATE
    if inferred not in _KIND_OF_OBJECTS:
        raise _unusable(
            series.name, table, f"holds values of more than one kind, or of no usable kind ({inferred})"
        )
    return _KIND_OF_OBJECTS[inferred]


def _unusable(column: Any, table: str, problem: str) -> InputError:
    return InputError(
        f"Column {column!r} of {table} {problem}. Expected numbers, text, true/false, dates or durations: "
        "convert it in both tables."
    )


def common_kind(column: Any, columns: Sequence[pd.Series[Any]], tables: Sequence[str]) -> Kind:
    """Return the kind of a column in all tables. InputError if it has several: those are never compared."""
    table_with: dict[Kind, str] = {}
    for series, table in zip(columns, tables, strict=True):
        kind = kind_of(series, table)
        if kind is not Kind.EMPTY:
            table_with.setdefault(kind, table)
    if len(table_with) > 1:
        kinds = " and ".join(f"{kind.value} in {table}" for kind, table in table_with.items())
        raise InputError(
            f"Column {column!r} holds {kinds}. They share no level, so every risk would read 0: "
            "give the column one type in all tables."
        )
    return next(iter(table_with), Kind.EMPTY)


def nan_as_missing(series: pd.Series[Any]) -> Any:
    """Replace NaN by missing: nullable and Arrow floats can hold both, and take NaN for a number."""
    if not isinstance(series.dtype, np.dtype) and pd.api.types.is_float_dtype(series.dtype):
        return series.to_numpy(dtype=np.float64, na_value=np.nan)
    return series
