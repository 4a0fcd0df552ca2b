"""Infer what the columns of a table hold without a data dictionary, and draft one."""

from __future__ import annotations

import datetime
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import yaml

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.runtime.machine import run_in_threads, threads_for
from disclosure_pipeline.tables.additions import find_time_unit
from disclosure_pipeline.tables.canonical import is_text, read_levels
from disclosure_pipeline.tables.coding import Distinct
from disclosure_pipeline.tables.dictionary import Column, Type
from disclosure_pipeline.tables.encoding import (
    Change,
    Encoded,
    RawColumn,
    arrow_array,
    canonical_records,
    changes_of_column,
    encode,
)
from disclosure_pipeline.tables.levels import IntArray
from disclosure_pipeline.tables.messages import names_in_all

_NUMBERS = (Column(type="integer"), Column(type="number"))
_BOOLEAN = Column(type="boolean")
# Times with an offset are compared as instants, where every time has one.
_DATES = (Column(type="date"), Column(type="datetime"), Column(type="datetime", time_zone="UTC"))
_CATEGORY = Column(type="category")

# "01" and "1" are two codes, not one number.
_LEADING_ZERO = r"^\s*[+-]?0[0-9]"
_OFFSET = r"([zZ]|[+-][0-9]{2}:?[0-9]{2})\s*$"

_PROBE = 1000


def canonical_distinct(
    raw: Sequence[Mapping[str, Distinct]], tables: Sequence[str], numeric: Collection[Any] = ()
) -> tuple[list[dict[str, Distinct]], tuple[Change, ...]]:
    """Return the values of tables' columns (GT first) in canonical form, each where it was, and the ledger.

    `tables` are the tables' names in the ledger, `numeric` the columns that are numbers whatever zeros they
    begin with. A column that is not in all tables stays as it is.
    """
    canonical = [dict(columns) for columns in raw]
    ledger: list[Change] = []
    for name in names_in_all(raw):
        levels = [arrow_array(of_table[name].values) for of_table in raw]
        codes = [np.append(np.arange(len(of_table)), -1) for of_table in levels]
        encoded = list(map(Encoded, codes, levels))
        counts = [of_table[name].counts for of_table in raw]
        column = infer_column(levels, name in numeric)
        changed, changes = _to_canonical(name, column, encoded, counts, tables)
        ledger += changes
        for i, values in changed.items():
            canonical[i][name] = Distinct(pd.Series(values[:-1]), counts[i])
    return canonical, _in_order_of_tables(ledger, tables)


def canonical_frames(
    raw: Sequence[pd.DataFrame], tables: Sequence[str], numeric: Collection[Any] = ()
) -> tuple[list[pd.DataFrame], tuple[Change, ...]]:
    """Read as `canonical_distinct`, from tables in memory (`sources.read_raw`, or any data frame)."""
    names = [name for name in names_in_all(raw) if any(_holds_text(frame[name]) for frame in raw)]

    def canonical_column(name: Any) -> tuple[dict[int, Any], list[Change]]:
        encoded = [encode(frame[name]) for frame in raw]
        occurring = [of_table.levels.filter(pa.array(of_table.counts[:-1] > 0)) for of_table in encoded]
        uncounted = [None] * len(encoded)
        return _to_canonical(name, infer_column(occurring, name in numeric), encoded, uncounted, tables)

    records = sum(map(len, raw))
    canonical = run_in_threads([partial(canonical_column, name) for name in names], threads_for(records))
    changed = dict(zip(names, (columns for columns, _ in canonical), strict=True))
    frames = []
    for i, frame in enumerate(raw):
        columns = {name: changed.get(name, {}).get(i, frame[name]) for name in frame.columns}
        frames.append(pd.DataFrame(columns, index=frame.index, copy=False))
    return frames, _in_order_of_tables([change for _, changes in canonical for change in changes], tables)


def infer_column(levels: Sequence[Any], as_number: bool = False) -> Column | None:
    """Return the column of a dictionary that describes the levels (Arrow arrays) of all tables.

    The first type as which all levels of all tables can be read: numbers (unless one begins with a zero too
    many), true and false, dates; else a category. None where nothing needs to be read, for no level is text,
    and where text and other values have no type in common: they are not compared at all.
    """
    with_values = [of_table for of_table in levels if len(of_table) > of_table.null_count]
    texts = [of_table for of_table in with_values if is_text(of_table.type)]
    if not texts:
        return None
    for candidate in _candidates(with_values, texts, as_number):
        if all(_readable(candidate, of_table) for of_table in with_values):
            return candidate
    return _CATEGORY if len(texts) == len(with_values) else None


def _candidates(with_values: Sequence[Any], texts: Sequence[Any], as_number: bool) -> list[Column]:
    candidates: list[Column] = []
    if as_number or not any(
        pc.any(pc.match_substring_regex(of_table, _LEADING_ZERO)).as_py() for of_table in texts
    ):
        candidates += _NUMBERS
    # One level written in several ways; other spellings of true and false stay text.
    spellings = {text.strip() for of_table in texts for text in of_table[:_PROBE].to_pylist() if text}
    if len(texts) < len(with_values) or len({text.casefold() for text in spellings}) < len(spellings):
        candidates.append(_BOOLEAN)
    candidates += _DATES[:2]
    typed = [of_table.type for of_table in with_values if not is_text(of_table.type)]
    zoned = all(pa.types.is_timestamp(kind) and kind.tz is not None for kind in typed)
    if zoned and all(pc.all(pc.match_substring_regex(of_table, _OFFSET)).as_py() for of_table in texts):
        candidates.append(_DATES[2])
    return candidates


def _readable(candidate: Column, levels: Any) -> bool:
    """Return whether every level can be read; the first ones mostly tell that not."""
    parts = (levels[:_PROBE], levels) if len(levels) > _PROBE else (levels,)
    return not any(read_levels(candidate, part).unreadable.any() for part in parts)


def _to_canonical(
    name: Any,
    column: Column | None,
    encoded: Sequence[Encoded],
    counts: Sequence[IntArray | None],
    tables: Sequence[str],
) -> tuple[dict[int, Any], list[Change]]:
    """Return the canonical records of a column by the number of the table, without tables that have them."""
    records: dict[int, Any] = {}
    ledger: list[Change] = []
    if column is None:
        return records, ledger
    for i, (of_table, counted) in enumerate(zip(encoded, counts, strict=True)):
        read = RawColumn(of_table, read_levels(column, of_table.levels), counted)
        if column != _CATEGORY or any(changed.any() for changed in read.levels.changed.values()):
            records[i] = canonical_records(read, column)
            ledger += changes_of_column(read, tables[i], name)
    return records, ledger


def _holds_text(series: pd.Series[Any]) -> bool:
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        dtype = dtype.categories.dtype
    if isinstance(dtype, pd.ArrowDtype):
        kind = dtype.pyarrow_dtype
        return is_text(kind.value_type if pa.types.is_dictionary(kind) else kind)
    return isinstance(dtype, pd.StringDtype) or pd.api.types.is_object_dtype(dtype)


def _in_order_of_tables(ledger: Sequence[Change], tables: Sequence[str]) -> tuple[Change, ...]:
    return tuple(sorted(ledger, key=lambda change: list(tables).index(change.table)))


SMALLEST_COUNT = 10

# A category with more levels than this is left without them: they would be many lines to check.
_MOST_LEVELS = 50

# A column is taken for the first of these types as which all its levels can be read.
_CANDIDATES: tuple[Type, ...] = ("boolean", "integer", "number", "date", "datetime")


@dataclass(frozen=True)
class Draft:
    """The columns as far as they may be shown, with notes on what a person has to add or to check."""

    columns: Mapping[str, Column]
    notes: Mapping[str, str]

    def to_yaml(self) -> str:
        """Return the `columns:` of a gate's file, with the notes as comments."""
        lines = ["columns:"]
        for name, column in self.columns.items():
            if name in self.notes:
                lines.append(f"  # {self.notes[name]}")
            content = column.model_dump(mode="json", exclude_defaults=True)
            entry = yaml.safe_dump({name: content}, sort_keys=False, allow_unicode=True, width=100)
            lines += [f"  {line}" for line in entry.splitlines()]
        return "\n".join(lines) + "\n"


def draft(raw: pd.DataFrame, smallest_count: int = SMALLEST_COUNT) -> Draft:
    """Return a first dictionary of a raw table (`sources.read_raw`, or any data frame).

    Types are suggestions. No level is given that fewer than `smallest_count` records have, and a range ends
    at a round number, or year, to which the last round step holds as many records.
    InputError where the column names look like a record.
    """
    if smallest_count < 1:
        raise InputError(f"smallest_count must be 1 or more, not {smallest_count!r}.")
    _check_names(raw)
    columns, notes = {}, {}
    for name in map(str, raw.columns):
        columns[name], note = _draft_column(encode(raw[name]), len(raw), smallest_count)
        if note:
            notes[name] = note
    return Draft(columns, notes)


def _check_names(raw: pd.DataFrame) -> None:
    names = pa.array([str(name).strip() for name in raw.columns], pa.string())
    values = read_levels(Column(type="number"), names).values
    if len(values.drop_null()) or len(set(names.to_pylist())) < len(names) or "" in names.to_pylist():
        raise InputError(
            "The first line of the table does not look like column names: some are numbers, empty or the "
            "same. It may be a record, and is not written: give the table a header."
        )


def _draft_column(encoded: Encoded, records: int, smallest_count: int) -> tuple[Column, str]:
    present = encoded.counts[:-1] > 0
    text = read_levels(Column(type="category"), encoded.levels)
    not_missing = present & ~text.missing
    if not not_missing.any():
        return Column(type="category"), "holds nothing but missing values: set its type"
    kind: Type = "category"
    for candidate in _CANDIDATES:
        if not (read_levels(Column(type=candidate), encoded.levels).unreadable & not_missing).any():
            kind = candidate
            break
    # Amounts and times are often unique without naming anybody by a number of their own.
    may_identify = kind in {"category", "integer"} and records >= smallest_count
    if may_identify and (encoded.counts[:-1][~text.missing] <= 1).all():
        return Column(type="text identifier"), (
            "every record has a value of its own: an identifier? If not, set its type"
        )
    if kind in {"integer", "number", "date", "datetime"}:
        values = read_levels(Column(type=kind), encoded.levels).values
        codes = "missing codes and special values" if kind in {"integer", "number"} else "missing codes"
        unit = find_time_unit(values) if kind == "datetime" else ""
        limits = _draft_range(kind, values, encoded.counts[:-1], smallest_count)
        note = f"check its range, and set its {codes} if it has them"
        return Column(type=kind, unit=unit, range=limits), note
    if kind == "boolean":
        return Column(type=kind), ""
    return _draft_category(encoded, text.values, not_missing, smallest_count)


def _draft_range(
    kind: Type, values: Any, counts: Any, smallest_count: int
) -> tuple[float, ...] | tuple[datetime.date, ...] | None:
    """Return round ends around all values; the last step to each holds at least so many records."""
    of_levels = np.asarray(values.is_valid().to_numpy(zero_copy_only=False)) & (counts > 0)
    records = counts[of_levels]
    if records.sum() < smallest_count:
        return None
    present = values.filter(pa.array(of_levels))
    is_date = kind in {"date", "datetime"}
    numbers = pc.year(present) if is_date else present
    numbers = np.asarray(numbers.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
    high = _round_up(numbers, records, smallest_count, 1.0 if is_date else None)
    low = 0.0 - _round_up(-numbers, records, smallest_count, 1.0 if is_date else None)
    if not is_date:
        return (low, high)
    first, last = max(int(low), datetime.MINYEAR), min(int(high), datetime.MAXYEAR)
    return (datetime.date(first, 1, 1), datetime.date(last, 12, 31))


def _round_up(numbers: Any, records: Any, smallest_count: int, finest: float | None) -> float:
    """Return a round upper end: no number lies above it, and several lie in the last step below it."""
    largest = float(numbers.max())
    step = finest or 10.0 ** math.floor(math.log10(abs(largest) or 1.0))
    while True:
        end = math.ceil(largest / step) * step
        if end == largest and records[numbers == largest].sum() < smallest_count:
            end += step  # few have the largest number itself
        if records[numbers > end - step].sum() >= smallest_count or step > 10 * np.abs(numbers).max():
            return float(end)
        step *= 10


def _draft_category(
    encoded: Encoded, values: Any, not_missing: Any, smallest_count: int
) -> tuple[Column, str]:
    levels = np.asarray(values.to_pandas())[not_missing]
    counts = pd.Series(encoded.counts[:-1][not_missing]).groupby(levels).sum()
    if len(counts) > _MOST_LEVELS:
        return Column(type="category"), f"more than {_MOST_LEVELS} levels: add them if they are known"
    frequent_levels = sorted(counts.index[counts >= smallest_count])
    rare = len(counts) - len(frequent_levels)
    note = f"levels with fewer than {smallest_count} records are not written: add them" if rare else ""
    return Column(type="category", levels=tuple(frequent_levels) or None), note


_FEWEST_OF_UNIT, _MOST_OF_UNIT = 1.3, 100  # records on average
_REPEATED = 0.2  # share of the records
_LASTING = 0.95  # share of the units of several records


def propose_unit(raw: pd.DataFrame, known: Collection[str]) -> str | None:
    """Return the column that seems to say whose record each is, where people have several.

    In at least a fifth of the records all other columns but one, or those that hardly ever change within this
    column if they are half of the others, are as in another record, and this one is as in that, too. Of
    several such columns it is the one with the most values; None if that is `known` to be something else.
    """
    # Equal for equal values of a column, and they can be added up over columns.
    hashes: dict[str, Any] = {
        name: pd.util.hash_pandas_object(
            raw[name].astype(str), index=False, hash_key=f"{place:016}"
        ).to_numpy()
        for place, name in enumerate(raw.columns)
    }
    of_all = np.sum(list(hashes.values()), axis=0, dtype=np.uint64)
    best: tuple[int, str] | None = None
    for name in raw.columns:
        values = raw[name].nunique()
        per_value = len(raw) / max(values, 1)
        fits = _FEWEST_OF_UNIT <= per_value <= _MOST_OF_UNIT and raw[name].notna().all()
        if not fits or (best and values <= best[0]):
            continue
        others = [hashes[other] for other in raw.columns if other != name]
        lasting = [other for other in others if _lasts_within(other, hashes[name])]
        alike = [of_all - hashes[name] - left_out for left_out in (0, *others)]
        if lasting and 2 * len(lasting) >= len(others):
            alike.append(np.sum(lasting, axis=0, dtype=np.uint64))
        if any(_share_told(columns, hashes[name]) > _REPEATED for columns in alike):
            best = (values, name)
    return best[1] if best and best[1] not in known else None


def _lasts_within(column: Any, unit: Any) -> bool:
    """Return whether nearly all units of several records have one value of a column in all of these."""
    of_units = pd.Series(column).groupby(unit).agg(["min", "max", "size"])
    several = of_units[of_units["size"] > 1]
    return float((several["min"] == several["max"]).mean()) >= _LASTING


def _share_told(alike: Any, unit: Any) -> float:
    records = pd.DataFrame({"alike": alike, "unit": unit}).groupby("alike")["unit"]
    told = (records.transform("size") > 1) & (records.transform("nunique") == 1)
    return float(told.mean())
