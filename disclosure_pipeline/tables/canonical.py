"""Bringing the raw levels of a column to the one form that the data dictionary declares, without guessing.

All functions work on Arrow arrays of distinct levels, not on records.
"""

from __future__ import annotations

import datetime
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from disclosure_pipeline.tables.dictionary import CATEGORIES, NUMERIC, Column, MapTo, normalize_text
from disclosure_pipeline.tables.levels import EXACT_IN_FLOAT, Mask, level_label

_INTEGER = r"^[+-]?[0-9]{1,18}(\.0*)?$"
_NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_WHOLE = r"^[+-]?[0-9]+$"
# "01" and "1" are two codes, not one number.
_LEADING_ZERO = r"^\s*[+-]?0[0-9]"
_NOT_ZERO = r"^[^eE]*[1-9]"

_DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?)?$"
_ZONED = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?"
    r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
)
_DAYS_IN_MONTH = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
_FEBRUARY = 2

# Formats other than ISO 8601 are read by pandas. Dates that it cannot hold in nanoseconds (the year 9999) are
# read one by one, up to this number: a column in which more fail is not in that format.
_MOST_ONE_BY_ONE = 200_000

_SECONDS, _MICROSECONDS = pa.timestamp("s"), pa.timestamp("us")

# The rules of the ledger: the changes that bring a value to its canonical form.
BLANKS = "outer blanks removed"
UNICODE = "brought to Unicode form NFC"
ALIAS = "alias replaced by its level"
MISSING_CODE = "missing code read as missing"
EMPTY_TEXT = "empty text read as missing"
NUMBER_FORM = "number in another form, read by its value"
WHOLE_FLOAT = "whole number stored as a float, read as an integer"
SPELLING = "other spelling of true or false"
DATE_FORM = "date in a form other than ISO 8601"
TIME_ZONE = "time brought to UTC"
UNKNOWN_KEPT = "unknown level kept"
UNKNOWN_MAPPED = "unknown level mapped"


@dataclass(frozen=True)
class Levels:
    """Raw levels in canonical form: every array has an entry for each raw level.

    `values` are null for levels that are `missing` or `unreadable` (not of the column's type). `unknown`: not
    among the declared levels. `outside`: outside the range. `changed`: rule of the ledger -> changed levels.
    """

    values: Any
    missing: Mask
    unreadable: Mask
    unknown: Mask
    outside: Mask
    changed: Mapping[str, Mask]


def read_levels(column: Column, raw: Any) -> Levels:
    """Read the raw levels of a column, an Arrow array of any type, in its canonical form."""
    changed: dict[str, Mask] = {}
    absent = to_mask(raw.is_null(nan_is_null=pa.types.is_floating(raw.type)))
    text = _convert_to_text(raw, column, changed)
    values = _READERS[column.type](column, raw, text, changed)
    missing = absent | _find_missing(column, text, values, changed)
    readable = to_mask(values.is_valid())
    unknown = np.zeros(len(raw), dtype=bool)
    outside = np.zeros(len(raw), dtype=bool)
    if column.levels is not None:
        unknown = ~to_mask(pc.is_in(values, value_set=pa.array(column.level_names, pa.string()))) & ~missing
        if isinstance(column.unknown_levels, MapTo):
            values = pc.if_else(pa.array(unknown), column.unknown_levels.map_to, values)
            changed[UNKNOWN_MAPPED] = unknown
        elif column.unknown_levels == "keep":
            changed[UNKNOWN_KEPT] = unknown
    if column.range is not None:
        outside = _find_outside_range(column, values) & ~missing
    return Levels(
        values=pc.if_else(pa.array(missing), pa.scalar(None, values.type), values),
        missing=missing,
        unreadable=~readable & ~missing,
        unknown=unknown & readable if column.unknown_levels == "refuse" else np.zeros_like(unknown),
        outside=outside,
        changed={
            rule: where & (~missing if rule not in {MISSING_CODE, EMPTY_TEXT} else missing)
            for rule, where in changed.items()
        },
    )


def _convert_to_text(raw: Any, column: Column, changed: dict[str, Mask]) -> Any:
    """Return raw levels as text without outer blanks, in NFC; None for types not compared as text.

    18 and 18.0 in a typed file are both "18". Changes of text are noted in `changed`.
    """
    if is_text(raw.type):
        text = raw.cast(pa.string()) if raw.type != pa.string() else raw
        trimmed = pc.utf8_trim_whitespace(text)
        normal = _compose(trimmed)
        changed[BLANKS] = to_mask(pc.not_equal(text, trimmed))
        changed[UNICODE] = to_mask(pc.not_equal(trimmed, normal))
        return normal
    if column.type in NUMERIC and (pa.types.is_integer(raw.type) or pa.types.is_floating(raw.type)):
        return None
    if pa.types.is_integer(raw.type) or (column.type in NUMERIC and pa.types.is_decimal(raw.type)):
        return raw.cast(pa.string())
    if pa.types.is_nested(raw.type) or pa.types.is_binary(raw.type) or pa.types.is_large_binary(raw.type):
        return None
    labels = [None if value is None or value != value else level_label(value) for value in raw.to_pylist()]  # noqa: PLR0124 (NaN)
    return pa.array(labels, pa.string())


def _compose(text: Any) -> Any:
    """Return the text in Unicode form NFC. Python composes it, as some releases of Arrow do not."""
    beyond_ascii = pc.fill_null(pc.invert(pc.string_is_ascii(text)), False)
    if not pc.any(beyond_ascii).as_py():
        return text
    composed = [unicodedata.normalize("NFC", value) for value in text.filter(beyond_ascii).to_pylist()]
    return pc.replace_with_mask(text, beyond_ascii, pa.array(composed, pa.string()))


def is_text(arrow: Any) -> bool:
    """Return whether an Arrow type is one of its string types."""
    return bool(
        pa.types.is_string(arrow) or pa.types.is_large_string(arrow) or pa.types.is_string_view(arrow)
    )


def mark_leading_zeros(raw: Any) -> Mask:
    """Mark the raw levels that are written with a leading zero, as codes are and numbers are not.

    >>> mark_leading_zeros(pa.array(["00501", "-07.5", "0.5", "0", None])).tolist()
    [True, True, False, False, False]
    """
    if not is_text(raw.type):
        return np.zeros(len(raw), dtype=bool)
    return to_mask(pc.match_substring_regex(raw, _LEADING_ZERO))


CONVENTIONAL_MISSING = ("NA", "N/A", "NaN", "nan", "NULL", "null", ".")
"""The texts that programs write for missing values. Messages may show these values of GT, and no others."""


def find_conventional_missing(raw: Any) -> tuple[str, ...]:
    """Return the texts of `CONVENTIONAL_MISSING` that are among the raw levels."""
    if not mark_texts(raw, CONVENTIONAL_MISSING).any():
        return ()
    return tuple(code for code in CONVENTIONAL_MISSING if mark_texts(raw, [code]).any())


def mark_texts(raw: Any, texts: Sequence[str]) -> Mask:
    """Mark the raw levels that are one of these texts, whatever their outer blanks."""
    if not is_text(raw.type):
        return np.zeros(len(raw), dtype=bool)
    return to_mask(pc.is_in(pc.utf8_trim_whitespace(raw.cast(pa.string())), pa.array(texts, pa.string())))


def _find_missing(column: Column, text: Any, values: Any, changed: dict[str, Mask]) -> Mask:
    """Mark the levels that mean missing: empty text, and declared codes (numbers are compared by value)."""
    codes = np.zeros(len(values), dtype=bool)
    empty = np.zeros(len(values), dtype=bool)
    labels = pa.array([normalize_text(level_label(code)) for code in column.missing_codes], pa.string())
    if text is not None:
        empty = to_mask(pc.equal(text, ""))
        codes |= to_mask(pc.is_in(text, value_set=labels))
    elif column.type == "integer":  # a code of many digits is no float
        codes |= to_mask(pc.is_in(values.cast(pa.string()), value_set=labels))
    if column.type in NUMERIC and column.missing_codes:
        numbers = read_levels(Column(type="number"), labels)
        known = numbers.values.drop_null()
        codes |= to_mask(pc.is_in(values.cast(pa.float64(), safe=False), value_set=known))
    changed[MISSING_CODE] = codes & ~empty
    changed[EMPTY_TEXT] = empty
    return codes | empty


def _find_outside_range(column: Column, values: Any) -> Mask:
    assert column.range is not None
    low, high = (pa.scalar(bound) for bound in column.range)
    if column.type not in NUMERIC:
        day = to_own_zone(column, values).cast(pa.date32(), safe=False)
        return to_mask(pc.or_(pc.less(day, low), pc.greater(day, high)))
    numbers = values.cast(pa.float64(), safe=False)
    special = pa.array([float(value) for value in column.special_values], pa.float64())
    beyond = to_mask(pc.or_(pc.less(numbers, low), pc.greater(numbers, high)))
    return beyond & ~to_mask(pc.is_in(numbers, value_set=special))


# Each reader returns null for values that are not of the column's type.


def _read_texts(column: Column, raw: Any, text: Any, changed: dict[str, Mask]) -> Any:
    if text is None:
        return pa.nulls(len(raw), pa.string())
    if not column.aliases:
        return text
    aliases = pa.array(list(column.aliases), pa.string())
    position = pc.index_in(text, value_set=aliases)
    changed[ALIAS] = to_mask(position.is_valid())
    return pc.coalesce(pa.array(list(column.aliases.values()), pa.string()).take(position), text)


def _read_integers(_column: Column, raw: Any, text: Any, changed: dict[str, Mask]) -> Any:
    if pa.types.is_integer(raw.type):
        if raw.type == pa.uint64():
            raw = keep_where(pc.less_equal(raw, pa.scalar(2**63 - 1, pa.uint64())), raw)
        return raw.cast(pa.int64())
    if pa.types.is_floating(raw.type):
        numbers = raw.cast(pa.float64())
        whole = pc.and_(
            pc.equal(pc.floor(numbers), numbers),
            pc.less(pc.abs(numbers), EXACT_IN_FLOAT),
        )
        changed[WHOLE_FLOAT] = to_mask(whole)
        return keep_where(whole, numbers).cast(pa.int64())
    if text is None or pa.types.is_boolean(raw.type):
        return pa.nulls(len(raw), pa.int64())
    readable = keep_where(pc.match_substring_regex(text, _INTEGER), text)
    plain = pc.replace_substring_regex(readable, pattern=r"^\+|\.0*$", replacement="")
    values = plain.cast(pa.int64())
    if is_text(raw.type):
        changed[NUMBER_FORM] = to_mask(pc.not_equal(values.cast(pa.string()), text))
    return values


def _read_numbers(_column: Column, raw: Any, text: Any, changed: dict[str, Mask]) -> Any:
    if pa.types.is_integer(raw.type):
        values = raw.cast(pa.float64(), safe=False)
        return keep_where(pc.less(pc.abs(values), EXACT_IN_FLOAT), values)
    if pa.types.is_floating(raw.type):
        values = raw.cast(pa.float64())
        return pc.add(keep_where(pc.is_finite(values), values), 0.0)  # 0.0 for -0.0
    if text is None or pa.types.is_boolean(raw.type):
        return pa.nulls(len(raw), pa.float64())
    readable = keep_where(pc.match_substring_regex(text, _NUMBER), text)
    values = _parse_floats(pc.replace_substring_regex(readable, pattern=r"^\+", replacement=""))
    # Whole numbers from 2^53 on can share a float: such a column must be declared as integer. A number too
    # small for a float is not 0.
    blurred = pc.and_(
        pc.match_substring_regex(text, _WHOLE), pc.greater_equal(pc.abs(values), EXACT_IN_FLOAT)
    )
    vanished = pc.and_(pc.equal(values, 0.0), pc.match_substring_regex(text, _NOT_ZERO))
    lost = pc.or_(pc.or_(blurred, vanished), pc.invert(pc.is_finite(values)))
    values = pc.add(keep_where(pc.invert(lost), values), 0.0)
    if is_text(raw.type):
        other_form = pc.match_substring_regex(text, r"^\+|^-?0[0-9]|\.[0-9]*0$|\.$|^-?\.|[eE]")
        changed[NUMBER_FORM] = to_mask(pc.and_(other_form, values.is_valid()))
    return values


def _parse_floats(text: Any) -> Any:
    """Parse texts that are numbers as floats; a number that is too large becomes infinite."""
    try:
        return text.cast(pa.float64())
    except pa.ArrowInvalid:  # a form that Arrow does not read, or a number too large for a float
        return pa.array(
            [None if number is None else float(number) for number in text.to_pylist()], pa.float64()
        )


def _read_booleans(column: Column, raw: Any, text: Any, changed: dict[str, Mask]) -> Any:
    if pa.types.is_boolean(raw.type):
        return raw
    if text is None:
        return pa.nulls(len(raw), pa.bool_())
    true, false = (
        [level_label(value) for value in values] for values in (column.true_values, column.false_values)
    )
    is_true = pc.is_in(text, value_set=pa.array(true, pa.string()))
    is_false = pc.is_in(text, value_set=pa.array(false, pa.string()))
    changed[SPELLING] = to_mask(
        pc.and_(pc.or_(is_true, is_false), pc.invert(pc.is_in(text, value_set=pa.array([true[0], false[0]]))))
    )
    return keep_where(pc.or_(is_true, is_false), is_true)


def _read_dates(column: Column, raw: Any, text: Any, changed: dict[str, Mask]) -> Any:
    """Return days as timestamps. Values with a time of day or a time zone are not cut off, but unreadable."""
    if not is_text(raw.type):
        days, exact = _convert_typed(raw)
    elif column.date_format is None:
        return keep_where(_is_day(text, _DAY), text).cast(_SECONDS)
    else:
        parsed, zoned = _parse_times(text, column.date_format)
        days, exact = pa.array(parsed, _MICROSECONDS), not zoned
        changed[DATE_FORM] = np.ones(len(raw), dtype=bool)
    whole = pc.equal(pc.floor_temporal(days, unit="day"), days)
    return keep_where(pc.and_(whole, exact), days).cast(_SECONDS, safe=False)


def _read_datetimes(column: Column, raw: Any, text: Any, changed: dict[str, Mask]) -> Any:
    """Return times, in UTC if the column has a time zone.

    Times without an offset are local times of that zone; one that occurs there twice or never is not read.
    Without a time zone, no time with an offset is read.
    """
    nothing = pa.nulls(len(raw), _MICROSECONDS)
    if not is_text(raw.type):
        times, exact = _convert_typed(raw)
        if pa.types.is_timestamp(raw.type) and raw.type.tz is not None:
            return nothing if column.time_zone is None else keep_where(exact, times)
        values, changed[TIME_ZONE] = _to_local_time(times, column.time_zone)
        return keep_where(exact, values)
    if column.date_format is not None:
        changed[DATE_FORM] = np.ones(len(raw), dtype=bool)
        parsed, zoned = _parse_times(text, column.date_format)
        times = pa.array(parsed, _MICROSECONDS)
        if zoned:
            changed[TIME_ZONE] = np.asarray(times.is_valid())
            return nothing if column.time_zone is None else times
        values, changed[TIME_ZONE] = _to_local_time(times, column.time_zone)
        return values
    times = keep_where(_is_day(text, _TIME), text).cast(_MICROSECONDS)
    values, moved = _to_local_time(times, column.time_zone)
    if column.time_zone is not None:
        with_offset = _is_day(text, _ZONED)
        utc = keep_where(with_offset, text).cast(pa.timestamp("us", "UTC")).cast(_MICROSECONDS)
        values, moved = pc.coalesce(values, utc), moved | to_mask(with_offset)
    changed[TIME_ZONE] = moved
    return values


def _convert_typed(raw: Any) -> tuple[Any, Any]:
    """Return dates of a typed file in microseconds, and mark those that are exact."""
    if pa.types.is_date(raw.type):
        return raw.cast(pa.timestamp("ms")).cast(_MICROSECONDS), raw.is_valid()
    if not pa.types.is_timestamp(raw.type):
        nothing = pa.nulls(len(raw), _MICROSECONDS)
        return nothing, nothing.is_valid()
    naive = raw.cast(pa.int64()).cast(pa.timestamp(raw.type.unit))  # with a zone, in UTC
    times = naive.cast(_MICROSECONDS, safe=False)
    return times, pc.equal(times.cast(naive.type, safe=False), naive)


def _to_local_time(times: Any, time_zone: str | None) -> tuple[Any, Mask]:
    """Convert local times of a zone to UTC, and mark those that changed; without a zone they stay."""
    if time_zone is None:
        return times, np.zeros(len(times), dtype=bool)
    local = pd.DatetimeIndex(times.to_numpy(zero_copy_only=False))
    moved = (
        local.tz_localize(time_zone, ambiguous="NaT", nonexistent="NaT").tz_convert("UTC").tz_localize(None)
    )
    utc = pa.array(moved).cast(_MICROSECONDS)
    return utc, np.asarray(moved != local) & np.asarray(moved.notna())


def to_own_zone(column: Column, times: Any) -> Any:
    """Return canonical times as those of the column's zone, if it has one: a day begins there, not in UTC."""
    if column.time_zone is None:
        return times
    utc = pd.DatetimeIndex(times.cast(_MICROSECONDS).to_numpy(zero_copy_only=False), tz="UTC")
    return pa.array(utc.tz_convert(column.time_zone).tz_localize(None)).cast(_MICROSECONDS)


def _is_day(text: Any, pattern: str) -> Any:
    """Mark the texts that match the pattern and begin with a day that exists."""
    formed = keep_where(pc.match_substring_regex(text, pattern), text)
    year, month, day = (
        pc.fill_null(pc.utf8_slice_codeunits(formed, start, stop).cast(pa.int64()), 0).to_numpy()
        for start, stop in ((0, 4), (5, 7), (8, 10))
    )
    possible = (year > 0) & (month > 0) & (month < len(_DAYS_IN_MONTH))
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    longest = _DAYS_IN_MONTH[np.where(possible, month, 0)] + (leap & (month == _FEBRUARY))
    return pa.array(possible & (day > 0) & (day <= longest))


_FIRST_TIME, _AFTER_LAST = np.datetime64("0001-01-01", "us"), np.datetime64("10000-01-01", "us")


def _parse_times(text: Any, date_format: str) -> tuple[npt.NDArray[np.datetime64], bool]:
    """Parse times, NaT for texts in another format; True, and times in UTC, if the format has an offset."""
    zoned = "%z" in date_format
    strings = pd.Series(text.to_pylist(), dtype=object)
    parsed = pd.to_datetime(strings, format=date_format, errors="coerce", utc=zoned)
    index = pd.DatetimeIndex(parsed).tz_localize(None)
    times = index.as_unit("us").to_numpy().copy()
    times[(times < _FIRST_TIME) | (times >= _AFTER_LAST)] = np.datetime64("NaT")
    failed = np.flatnonzero(np.isnat(times) & strings.notna().to_numpy())
    for i in failed[: _MOST_ONE_BY_ONE if len(failed) <= _MOST_ONE_BY_ONE else 0]:
        times[i] = _parse_one(strings.iloc[i], date_format)
    return times, zoned


def _parse_one(text: str, date_format: str) -> np.datetime64:
    try:
        time = datetime.datetime.strptime(text, date_format)
        if time.tzinfo is not None:
            time = time.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    except (ValueError, OverflowError):  # in UTC, it is not in the years 1 to 9999
        return np.datetime64("NaT", "us")
    return np.datetime64(time, "us")


def keep_where(where: Any, values: Any) -> Any:
    """Return the values, replaced by null unless the condition is true."""
    return pc.if_else(pc.fill_null(where, False), values, pa.scalar(None, values.type))


def to_mask(array: Any) -> Mask:
    """Return a boolean Arrow array as a mask; null is False."""
    return np.asarray(pc.fill_null(array, False).to_numpy(zero_copy_only=False), dtype=bool)


_READERS = {
    **dict.fromkeys((*CATEGORIES, "text identifier"), _read_texts),
    "integer": _read_integers,
    "number": _read_numbers,
    "boolean": _read_booleans,
    "date": _read_dates,
    "datetime": _read_datetimes,
}
