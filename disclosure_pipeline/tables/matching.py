"""Levels of several tables matched by value: in one representation, and in one sorted list."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.tables.kinds import Kind
from disclosure_pipeline.tables.levels import IntArray, Values

# Every integer up to here is a float of its own; beyond it two integers can share one.
_EXACT_IN_FLOAT = 2**53


def comparable_levels(column: Any, kind: Kind, levels: Sequence[Any]) -> list[Values]:
    """The levels of each table in one representation, in which equal means the same value."""
    if kind is Kind.NUMBER:
        return _numbers([_number_array(of_table) for of_table in levels])
    if kind in {Kind.DATE, Kind.ZONED_DATE}:
        return _instants(column, levels, kind)
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
    """Integers as 64-bit integers, else floats, else (where a float could not tell two apart) objects."""
    kinds = {of_table.dtype.kind for of_table in levels if len(of_table)}
    if kinds <= {"i", "u"} and all(int(of_table.max()) < 2**63 for of_table in levels if len(of_table)):
        return [of_table.astype(np.int64) for of_table in levels]
    exact = all(
        of_table.dtype.kind == "f" or _within(of_table, _EXACT_IN_FLOAT)
        for of_table in levels
        if of_table.dtype.kind != "O"
    )
    if "O" not in kinds and exact:
        return [of_table.astype(np.float64) for of_table in levels]
    return [
        np.array([_python_number(value) for value in of_table.tolist()], dtype=object) for of_table in levels
    ]


def _within(integers: Values, limit: int) -> bool:
    return not len(integers) or (-limit <= int(integers.min()) and int(integers.max()) <= limit)


def _python_number(value: Any) -> Any:
    """Python numbers compare and hash by exact value, whether integer, float or decimal."""
    return value.item() if isinstance(value, np.generic) else value


def _instants(column: Any, levels: Sequence[Any], kind: Kind) -> list[Values]:
    utc = kind is Kind.ZONED_DATE
    indexes = [_instant_index(pd.Index(times, dtype=_date_dtype(times)), utc) for times in levels]
    return _in_one_unit(column, [index.tz_localize(None) if utc else index for index in indexes])


def _instant_index(times: pd.Index[Any], utc: bool) -> pd.DatetimeIndex:
    try:
        return pd.DatetimeIndex(pd.to_datetime(times, utc=utc))
    except pd.errors.OutOfBoundsDatetime:
        pass
    # Python's dates reach further than nanoseconds, and are no finer than microseconds.
    if utc:
        times = pd.Index([time.astimezone(datetime.timezone.utc).replace(tzinfo=None) for time in times])
    index = pd.DatetimeIndex(np.array(times, dtype="datetime64[us]"))
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


def unite_levels(levels: Sequence[Values]) -> tuple[Values, list[IntArray]]:
    """The sorted union of the levels, and for each table the positions of its own levels in it."""
    pooled = np.concatenate(levels) if levels[0].dtype.kind != "O" else _pool_objects(levels)
    codes, distinct = pd.factorize(pooled)
    distinct = np.asarray(distinct)
    order = np.argsort(distinct, kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    ends = np.cumsum([len(table) for table in levels])[:-1]
    return distinct[order], [rank[table] for table in np.split(codes, ends)]


def _pool_objects(levels: Sequence[Values]) -> Values:
    pooled = np.empty(sum(len(table) for table in levels), dtype=object)
    pooled[:] = [value for table in levels for value in table]
    return pooled
