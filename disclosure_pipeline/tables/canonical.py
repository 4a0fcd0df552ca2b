"""Bring the raw levels of a column into the one form that the data dictionary declares, never by guessing.

Everything works on whole Arrow arrays of distinct levels: no step is taken record by record.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from disclosure_pipeline.tables.dates import keep_where, read_dates, read_datetimes, to_mask
from disclosure_pipeline.tables.dictionary import CATEGORIES, NUMERIC, Column, MapTo, normalize_text
from disclosure_pipeline.tables.levels import Mask, level_label

_INTEGER = r"^[+-]?[0-9]{1,18}(\.0*)?$"
_NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_WHOLE = r"^[+-]?[0-9]+$"
_NOT_ZERO = r"^[^eE]*[1-9]"
# Every whole number below has a float of its own.
_EXACT_IN_FLOAT = 2.0**53

# The rules of the ledger: what is done to bring a value into its canonical form.
BLANKS = "outer blanks removed"
UNICODE = "brought to Unicode form NFC"
ALIAS = "alias replaced by its level"
MISSING_CODE = "missing code read as missing"
EMPTY_TEXT = "empty text read as missing"
NUMBER_FORM = "number in another form, read by its value"
WHOLE_FLOAT = "whole number stored as a float, read as an integer"
SPELLING = "other spelling of true or false"
DATE_FORM = "date in another form than ISO 8601"
TIME_ZONE = "time brought to UTC"
UNKNOWN_KEPT = "unknown level kept"
UNKNOWN_MAPPED = "unknown level mapped"


@dataclass(frozen=True)
class Levels:
    """Raw levels, read: one entry per raw level in every array.

    `values` are null where a level is `missing` or `unreadable` (not of the column's type). `unknown`: none
    of the declared levels. `outside`: outside the range. `changed`: rule of the ledger -> levels it changed.
    """

    values: Any
    missing: Mask
    unreadable: Mask
    unknown: Mask
    outside: Mask
    changed: Mapping[str, Mask] = field(default_factory=dict)


def read_levels(column: Column, raw: Any) -> Levels:
    """Return the raw levels (an Arrow array of any type) of a column in its canonical form."""
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

    18 and 18.0 in a typed file are both "18". What is changed of text is noted in `changed`.
    """
    if is_text(raw.type):
        text = raw.cast(pa.string()) if raw.type != pa.string() else raw
        trimmed = pc.utf8_trim_whitespace(text)
        normal = _compose(trimmed)
        changed[BLANKS] = to_mask(pc.not_equal(text, trimmed))
        changed[UNICODE] = to_mask(pc.not_equal(trimmed, normal))
        return normal
    typed = pa.types.is_integer(raw.type) or pa.types.is_floating(raw.type)
    if column.type in NUMERIC and typed:
        return None
    if pa.types.is_integer(raw.type):
        return raw.cast(pa.string())
    if pa.types.is_decimal(raw.type) and column.type in NUMERIC:
        return raw.cast(pa.string())
    if pa.types.is_nested(raw.type) or pa.types.is_binary(raw.type) or pa.types.is_large_binary(raw.type):
        return None
    labels = [None if value is None or value != value else level_label(value) for value in raw.to_pylist()]  # noqa: PLR0124 (NaN)
    return pa.array(labels, pa.string())


def _compose(text: Any) -> Any:
    """Return the text in Unicode form NFC, by Python: some releases of Arrow do not compose."""
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


def _find_missing(column: Column, text: Any, values: Any, changed: dict[str, Mask]) -> Mask:
    """Mark the levels that stand for a missing value: empty text, and declared codes (numbers by value)."""
    codes = np.zeros(len(values), dtype=bool)
    empty = np.zeros(len(values), dtype=bool)
    if text is not None:
        empty = to_mask(pc.equal(text, ""))
        labels = [normalize_text(level_label(code)) for code in column.missing_codes]
        codes |= to_mask(pc.is_in(text, value_set=pa.array(labels, pa.string())))
    if column.type in NUMERIC and column.missing_codes:
        numbers = read_levels(Column(type="number"), pa.array([level_label(c) for c in column.missing_codes]))
        known = numbers.values.drop_null()
        codes |= to_mask(pc.is_in(values.cast(pa.float64(), safe=False), value_set=known))
    changed[MISSING_CODE] = codes & ~empty
    changed[EMPTY_TEXT] = empty
    return codes | empty


def _find_outside_range(column: Column, values: Any) -> Mask:
    assert column.range is not None
    low, high = (pa.scalar(bound) for bound in column.range)
    if column.type not in NUMERIC:
        day = values.cast(pa.date32(), safe=False)
        return to_mask(pc.or_(pc.less(day, low), pc.greater(day, high)))
    numbers = values.cast(pa.float64(), safe=False)
    special = pa.array([float(value) for value in column.special_values], pa.float64())
    beyond = to_mask(pc.or_(pc.less(numbers, low), pc.greater(numbers, high)))
    return beyond & ~to_mask(pc.is_in(numbers, value_set=special))


# Each reader returns null for what the column cannot hold.


def _read_text(_column: Column, raw: Any, text: Any, _changed: dict[str, Mask]) -> Any:
    return pa.nulls(len(raw), pa.string()) if text is None else text


def _read_categories(column: Column, raw: Any, text: Any, changed: dict[str, Mask]) -> Any:
    if text is None or not column.aliases:
        return _read_text(column, raw, text, changed)
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
            pc.less(pc.abs(numbers), _EXACT_IN_FLOAT),
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
        return keep_where(pc.less(pc.abs(values), _EXACT_IN_FLOAT), values)
    if pa.types.is_floating(raw.type):
        values = raw.cast(pa.float64())
        return pc.add(keep_where(pc.is_finite(values), values), 0.0)  # 0.0 for -0.0
    if text is None or pa.types.is_boolean(raw.type):
        return pa.nulls(len(raw), pa.float64())
    readable = keep_where(pc.match_substring_regex(text, _NUMBER), text)
    values = _parse_floats(pc.replace_substring_regex(readable, pattern=r"^\+", replacement=""))
    # Two whole numbers from 2^53 on can share one float: such a column has to be declared as integer. What
    # is too small for a float is not zero.
    blurred = pc.and_(
        pc.match_substring_regex(text, _WHOLE), pc.greater_equal(pc.abs(values), _EXACT_IN_FLOAT)
    )
    vanished = pc.and_(pc.equal(values, 0.0), pc.match_substring_regex(text, _NOT_ZERO))
    lost = pc.or_(pc.or_(blurred, vanished), pc.invert(pc.is_finite(values)))
    values = pc.add(keep_where(pc.invert(lost), values), 0.0)
    if is_text(raw.type):
        other_form = pc.match_substring_regex(text, r"^\+|^-?0[0-9]|\.[0-9]*0$|\.$|^-?\.|[eE]")
        changed[NUMBER_FORM] = to_mask(pc.and_(other_form, values.is_valid()))
    return values


def _parse_floats(text: Any) -> Any:
    """Return texts of one of the number forms as floats; infinite where a number is too large."""
    try:
        return text.cast(pa.float64())
    except pa.ArrowInvalid:  # a form that Arrow does not read, or a number beyond all floats
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
    values, iso = read_dates(raw, text if is_text(raw.type) else None, column.date_format)
    changed[DATE_FORM] = ~iso
    return values


def _read_datetimes(column: Column, raw: Any, text: Any, changed: dict[str, Mask]) -> Any:
    values, iso, moved = read_datetimes(
        raw, text if is_text(raw.type) else None, column.date_format, column.time_zone
    )
    changed[DATE_FORM], changed[TIME_ZONE] = ~iso, moved
    return values


_READERS = {
    **dict.fromkeys(CATEGORIES, _read_categories),
    "text identifier": _read_text,
    "integer": _read_integers,
    "number": _read_numbers,
    "boolean": _read_booleans,
    "date": _read_dates,
    "datetime": _read_datetimes,
}
