"""Read dates and times in one form: as declared, in one time zone. Nothing else is read."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from disclosure_pipeline.tables.levels import Mask

_DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?)?$"
_ZONED = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?"
    r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
)
_DAYS_IN_MONTH = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
_FEBRUARY = 2

# A format other than ISO 8601 is read by pandas; what pandas cannot hold as nanoseconds (the year 9999) is
# read one by one, but not endlessly: a column in which more fails is not in that format.
_MOST_ONE_BY_ONE = 200_000

_SECONDS, _MICROSECONDS = pa.timestamp("s"), pa.timestamp("us")


def read_dates(raw: Any, text: Any, date_format: str | None) -> tuple[Any, Mask]:
    """Read days as timestamps (null where it is none), and mark the texts that were in ISO form.

    `text` is None for the levels of a typed file. A time of day other than midnight, or a time zone, is not
    cut off: it is not read.
    """
    if text is None:
        days, exact = _convert_typed(raw)
        whole = pc.equal(pc.floor_temporal(days, unit="day"), days)
        return keep_where(pc.and_(whole, exact), days).cast(_SECONDS, safe=False), _all(raw)
    if date_format is None:
        return keep_where(_is_day(text, _DAY), text).cast(_SECONDS), _all(raw)
    parsed, zoned = _by_format(text, date_format)
    days = pa.array(parsed, _MICROSECONDS)
    whole = pc.and_(pc.equal(pc.floor_temporal(days, unit="day"), days), not zoned)
    return keep_where(whole, days).cast(_SECONDS, safe=False), _none(raw)


def read_datetimes(
    raw: Any, text: Any, date_format: str | None, time_zone: str | None
) -> tuple[Any, Mask, Mask]:
    """Read times (null where it is none); mark the texts in ISO form and those moved to UTC.

    With a time zone, all become UTC: those without an offset are local times of that zone, and one that
    the zone has twice or never is not read. Without a time zone, no time with an offset is read.
    """
    if text is None:
        times, exact = _convert_typed(raw)
        zoned = pa.types.is_timestamp(raw.type) and raw.type.tz is not None
        values, moved = (times, _none(raw)) if zoned else _to_local_time(times, time_zone)
        if zoned and time_zone is None:
            return pa.nulls(len(raw), _MICROSECONDS), _all(raw), _none(raw)
        return keep_where(exact, values), _all(raw), moved
    if date_format is not None:
        parsed, zoned = _by_format(text, date_format)
        times = pa.array(parsed, _MICROSECONDS)
        if zoned:
            values = times if time_zone is not None else pa.nulls(len(raw), _MICROSECONDS)
            return values, _none(raw), np.asarray(times.is_valid())
        values, moved = _to_local_time(times, time_zone)
        return values, _none(raw), moved
    values, moved = _to_local_time(keep_where(_is_day(text, _TIME), text).cast(_MICROSECONDS), time_zone)
    if time_zone is None:
        return values, _all(raw), moved
    with_offset = _is_day(text, _ZONED)
    utc = keep_where(with_offset, text).cast(pa.timestamp("us", "UTC")).cast(_MICROSECONDS)
    return pc.coalesce(values, utc), _all(raw), moved | to_mask(with_offset)


def _convert_typed(raw: Any) -> tuple[Any, Any]:
    """Return dates of a typed file at microseconds, and mark those that lost nothing by it."""
    if pa.types.is_date(raw.type):
        return raw.cast(pa.timestamp("ms")).cast(_MICROSECONDS), raw.is_valid()
    if not pa.types.is_timestamp(raw.type):
        nothing = pa.nulls(len(raw), _MICROSECONDS)
        return nothing, nothing.is_valid()
    naive = raw.cast(pa.int64()).cast(pa.timestamp(raw.type.unit))  # instants in UTC, where there is a zone
    times = naive.cast(_MICROSECONDS, safe=False)
    return times, pc.equal(times.cast(naive.type, safe=False), naive)


def _to_local_time(times: Any, time_zone: str | None) -> tuple[Any, Mask]:
    """Return local times of a zone in UTC, and mark those that moved; without a zone they stay."""
    if time_zone is None:
        return times, np.zeros(len(times), dtype=bool)
    local = pd.DatetimeIndex(times.to_numpy(zero_copy_only=False))
    moved = (
        local.tz_localize(time_zone, ambiguous="NaT", nonexistent="NaT").tz_convert("UTC").tz_localize(None)
    )
    utc = pa.array(moved).cast(_MICROSECONDS)
    return utc, np.asarray(moved != local) & np.asarray(moved.notna())


def _is_day(text: Any, pattern: str) -> Any:
    """Return which texts have the form, and begin with a day that exists."""
    formed = keep_where(pc.match_substring_regex(text, pattern), text)
    year, month, day = (
        pc.fill_null(pc.utf8_slice_codeunits(formed, start, stop).cast(pa.int64()), 0).to_numpy()
        for start, stop in ((0, 4), (5, 7), (8, 10))
    )
    possible = (year > 0) & (month > 0) & (month < len(_DAYS_IN_MONTH))
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    longest = _DAYS_IN_MONTH[np.where(possible, month, 0)] + (leap & (month == _FEBRUARY))
    return pa.array(possible & (day > 0) & (day <= longest))


def _by_format(text: Any, date_format: str) -> tuple[npt.NDArray[np.datetime64], bool]:
    """Parse times, NaT where a text is not in the format; True where that holds an offset: then in UTC."""
    zoned = "%z" in date_format
    strings = pd.Series(text.to_pylist(), dtype=object)
    parsed = pd.to_datetime(strings, format=date_format, errors="coerce", utc=zoned)
    index = pd.DatetimeIndex(parsed).tz_localize(None)
    times = index.as_unit("us").to_numpy().copy()
    failed = np.flatnonzero(np.isnat(times) & strings.notna().to_numpy())
    for i in failed[: _MOST_ONE_BY_ONE if len(failed) <= _MOST_ONE_BY_ONE else 0]:
        times[i] = _parse_one(strings.iloc[i], date_format)
    return times, zoned


def _parse_one(text: str, date_format: str) -> np.datetime64:
    try:
        time = datetime.datetime.strptime(text, date_format)
    except ValueError:
        return np.datetime64("NaT")
    if time.tzinfo is not None:
        time = time.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    return np.datetime64(time, "us")


def keep_where(where: Any, values: Any) -> Any:
    """Return the values where the condition holds, else null."""
    return pc.if_else(pc.fill_null(where, False), values, pa.scalar(None, values.type))


def to_mask(array: Any) -> Mask:
    """Return a boolean Arrow array as a mask; null is False."""
    return np.asarray(pc.fill_null(array, False).to_numpy(zero_copy_only=False), dtype=bool)


def _all(raw: Sequence[Any]) -> Mask:
    return np.ones(len(raw), dtype=bool)


def _none(raw: Sequence[Any]) -> Mask:
    return np.zeros(len(raw), dtype=bool)
