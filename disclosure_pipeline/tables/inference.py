"""Inferring the types of columns without a data dictionary, and drafting one."""

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
from pydantic import ValidationError

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.measures.chance import is_like_identifier
from disclosure_pipeline.runtime.machine import run_in_threads, threads_for
from disclosure_pipeline.tables.additions import find_time_unit
from disclosure_pipeline.tables.canonical import (
    Levels,
    find_conventional_missing,
    is_text,
    mark_leading_zeros,
    read_levels,
)
from disclosure_pipeline.tables.coding import Distinct, build_table
from disclosure_pipeline.tables.descriptions import Description
from disclosure_pipeline.tables.dictionary import (
    CATEGORIES,
    DATES,
    NUMERIC,
    Column,
    Type,
    describe_problem,
)
from disclosure_pipeline.tables.encoding import (
    Change,
    Encoded,
    RawColumn,
    canonical_records,
    encode,
    list_changes,
)
from disclosure_pipeline.tables.levels import IntArray
from disclosure_pipeline.tables.messages import listed, names_in_all
from disclosure_pipeline.tables.text_forms import describe_number_form

_NUMBERS = (Column(type="integer"), Column(type="number"))
_BOOLEAN = Column(type="boolean")
# Times are compared as instants if all of them have an offset.
_DATES = (Column(type="date"), Column(type="datetime"), Column(type="datetime", time_zone="UTC"))
_CATEGORY = Column(type="category")

_OFFSET = r"([zZ]|[+-][0-9]{2}:?[0-9]{2})\s*$"

_PROBE = 1000


def canonical_distinct(
    raw: Sequence[Mapping[str, Distinct]], tables: Sequence[str], numeric: Collection[Any] = ()
) -> tuple[list[dict[str, Distinct]], tuple[Change, ...]]:
    """Return the values of columns (GT's table first) in canonical form, in their order, and the ledger.

    `tables` are the tables' names in the ledger; columns of `numeric` are numbers even with leading zeros.
    Columns that some table lacks are returned unchanged.
    """
    canonical = [dict(columns) for columns in raw]
    ledger: list[Change] = []
    for name in names_in_all(raw):
        encoded = [Encoded.from_values(table[name].values, table[name].counts) for table in raw]
        column = infer_column([table.levels for table in encoded], name in numeric)
        changed, changes = _to_canonical(name, column, encoded, tables)
        ledger += changes
        for i, values in changed.items():
            canonical[i][name] = Distinct(pd.Series(values[:-1]), encoded[i].counts)
    return canonical, _in_order_of_tables(ledger, tables)


def canonical_frames(
    raw: Sequence[pd.DataFrame],
    tables: Sequence[str],
    numeric: Collection[Any] = (),
    only: Collection[Any] | None = None,
) -> tuple[list[pd.DataFrame], tuple[Change, ...]]:
    """Read as `canonical_distinct` does, from tables in memory (`sources.read_raw`, or any data frame).

    Columns of GT are read in all tables that have them: a unit and weights are in no synthesis, perhaps in
    a holdout. With `only`, other columns are returned unchanged.
    """
    tables_with = {
        name: [i for i, frame in enumerate(raw) if name in frame.columns]
        for name in raw[0].columns
        if only is None or name in only
    }
    names = [name for name, having in tables_with.items() if any(_holds_text(raw[i][name]) for i in having)]

    def canonical_column(name: Any) -> tuple[dict[int, Any], list[Change]]:
        having = tables_with[name]
        encoded = [encode(raw[i][name]) for i in having]
        occurring = [table.levels.filter(pa.array(table.counts[:-1] > 0)) for table in encoded]
        column = infer_column(occurring, name in numeric)
        canonical, changes = _to_canonical(name, column, encoded, [tables[i] for i in having])
        return {having[place]: records for place, records in canonical.items()}, changes

    records = sum(map(len, raw))
    canonical = run_in_threads([partial(canonical_column, name) for name in names], threads_for(records))
    changed = dict(zip(names, (columns for columns, _ in canonical), strict=True))
    frames = []
    for i, frame in enumerate(raw):
        columns = {name: changed.get(name, {}).get(i, frame[name]) for name in frame.columns}
        frames.append(build_table(columns, frame.index))
    return frames, _in_order_of_tables([change for _, changes in canonical for change in changes], tables)


def infer_column(levels: Sequence[Any], as_number: bool = False) -> Column | None:
    """Return the dictionary's column that describes the levels (Arrow arrays) of all tables.

    Its type is the first that can read all levels of all tables: number (unless one has a leading zero),
    boolean, date, else category. None if no level is text, so that nothing needs to be read, or if text and
    other values have no type in common, so that they are not compared.
    """
    with_values = [table for table in levels if len(table) > table.null_count]
    texts = [table for table in with_values if is_text(table.type)]
    if not texts:
        return None
    for candidate in _list_candidates(with_values, texts, as_number):
        if all(_can_read(candidate, table) for table in with_values):
            return candidate
    return _CATEGORY if len(texts) == len(with_values) else None


def _list_candidates(with_values: Sequence[Any], texts: Sequence[Any], as_number: bool) -> list[Column]:
    candidates: list[Column] = []
    if as_number or not any(mark_leading_zeros(table).any() for table in texts):
        candidates += _NUMBERS
    # Only if a level is written in several ways; otherwise spellings of true and false stay text.
    spellings = {text.strip() for table in texts for text in table[:_PROBE].to_pylist() if text}
    if len(texts) < len(with_values) or len({text.casefold() for text in spellings}) < len(spellings):
        candidates.append(_BOOLEAN)
    candidates += _DATES[:2]
    typed = [table.type for table in with_values if not is_text(table.type)]
    zoned = all(pa.types.is_timestamp(kind) and kind.tz is not None for kind in typed)
    if zoned and all(pc.all(pc.match_substring_regex(table, _OFFSET)).as_py() for table in texts):
        candidates.append(_DATES[2])
    return candidates


def _can_read(candidate: Column, levels: Any) -> bool:
    """Return whether every level can be read; the first ones are usually enough to see that they cannot."""
    parts = (levels[:_PROBE], levels) if len(levels) > _PROBE else (levels,)
    return not any(read_levels(candidate, part).unreadable.any() for part in parts)


def _to_canonical(
    name: Any,
    column: Column | None,
    encoded: Sequence[Encoded],
    tables: Sequence[str],
) -> tuple[dict[int, Any], list[Change]]:
    """Return a column's canonical records by number of the table, without tables that already have them."""
    records: dict[int, Any] = {}
    ledger: list[Change] = []
    if column is None:
        return records, ledger
    for i, table in enumerate(encoded):
        read = RawColumn.read(table, column)
        if column != _CATEGORY or any(changed.any() for changed in read.levels.changed.values()):
            records[i] = canonical_records(read, column)
            ledger += list_changes(read, tables[i], name)
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

# The levels of larger categories are not drafted: they would be too many lines to check.
_MOST_LEVELS = 50

# A column gets the first of these types that can read all its levels.
_CANDIDATES: tuple[Type, ...] = ("boolean", "integer", "number", "date", "datetime")


@dataclass(frozen=True)
class Draft:
    """The columns, as far as they may be shown, with notes on what a person must add or check."""

    columns: Mapping[str, Column]
    notes: Mapping[str, str]

    def to_yaml(self) -> str:
        """Return the `columns:` section of a gate's file, with the notes as comments."""
        lines = ["columns:"]
        for name, column in self.columns.items():
            if name in self.notes:
                lines.append(f"  # {self.notes[name]}")
            content = column.model_dump(mode="json", exclude_defaults=True)
            if column.type == "integer" and column.range is not None:
                content["range"] = [int(end) for end in content["range"]]
            entry = yaml.safe_dump({name: content}, sort_keys=False, allow_unicode=True, width=100)
            lines += [f"  {line}" for line in entry.splitlines()]
        return "\n".join(lines) + "\n"


def draft(
    raw: pd.DataFrame,
    smallest_count: int = SMALLEST_COUNT,
    numeric: Collection[str] = (),
    descriptions: Mapping[str, Description] | None = None,
) -> Draft:
    """Draft a dictionary for a raw table (`sources.read_raw`, or any data frame).

    Types are suggestions; columns of `numeric` are numbers even with leading zeros. The texts that programs
    write for missing values become missing codes. Levels with fewer than `smallest_count` records are left
    out. A range ends at a round number or year, such that at least `smallest_count` records lie in the last
    round step before it. Entries of `descriptions` are taken as they are, and a note says where the values
    contradict them. Raise InputError if the column names look like a record, or a description is impossible.
    """
    if smallest_count < 1:
        raise InputError(f"smallest_count must be 1 or more, not {smallest_count!r}.")
    _check_names(raw)
    columns, notes = {}, {}
    for name in map(str, raw.columns):
        described = (descriptions or {}).get(name, Description())
        entries, note = _draft_column(name, encode(raw[name]), smallest_count, name in numeric, described)
        columns[name] = make_column(name, entries)
        if note:
            notes[name] = note
    return Draft(columns, notes)


def make_column(name: str, entries: Mapping[str, Any]) -> Column:
    """Return the dictionary's column with these entries. Raise InputError if they do not fit together."""
    try:
        return Column.model_validate(dict(entries))
    except ValidationError as error:
        problems = "; ".join(map(describe_problem, error.errors(include_input=False)))
    raise InputError(f"Column {name!r}: {problems}.")


def _check_names(raw: pd.DataFrame) -> None:
    names = pa.array([str(name).strip() for name in raw.columns], pa.string())
    values = read_levels(Column(type="number"), names).values
    if len(values.drop_null()) or len(set(names.to_pylist())) < len(names) or "" in names.to_pylist():
        raise InputError(
            "The first line of the table does not look like column names: some are numbers, empty or the "
            "same. As it may be a record, it is not shown: give the table a header."
        )


def _draft_column(
    name: str, encoded: Encoded, smallest_count: int, is_number: bool, described: Description
) -> tuple[dict[str, Any], str]:
    records = len(encoded.codes)
    present = encoded.counts[:-1] > 0
    conventional = find_conventional_missing(encoded.levels.filter(pa.array(present)))
    codes = tuple(dict.fromkeys((*described.missing_codes, *conventional)))
    text = read_levels(Column(type="category", missing_codes=codes), encoded.levels)
    not_missing = present & ~text.missing
    levels = encoded.levels.filter(pa.array(not_missing)).to_pylist()
    kind = _find_type(encoded.levels, not_missing, is_number)
    labelled, notes = described.apply_labels(levels, kind in NUMERIC)
    given = {**described.entries, "missing_codes": codes}
    if described.types:
        given["type"] = kind if kind in described.types else described.types[0]
    given |= labelled
    notes = [*described.notes, *notes]
    if conventional:
        notes.append(
            f"reads {listed(conventional)} as missing: remove it from missing_codes if it is a value"
        )
    if "type" in given:
        column = make_column(name, given)
        read = read_levels(column, encoded.levels)
        notes += _list_contradictions(column, read, encoded.counts[:-1] * not_missing)
        kind = column.type
    elif not levels:
        return {"type": kind, **given}, "; ".join([*notes, "holds nothing but missing values: set its type"])
    elif kind == "category" and (form := describe_number_form(map(str, levels))):
        return {"type": kind, **given}, "; ".join([*notes, form])
    counts = encoded.counts[:-1][not_missing]
    # Amounts and times are often unique without being identifiers, which are never missing.
    may_identify = kind in {"category", "integer"} and records >= smallest_count and counts.sum() == records
    if "type" not in given and may_identify and (counts <= 1).all():
        notes.append("every record has its own value, as an identifier does: if it is none, set its type")
        return {**given, "type": "text identifier"}, "; ".join(notes)
    drafted: dict[str, Any] = {"type": kind}
    if kind in {*NUMERIC, *DATES}:
        drafted["unit"], drafted["range"] = _draft_unit_and_range(kind, given, encoded, smallest_count)
        if "range" not in given:
            further = "further " if codes else ""
            names = "missing codes and special values" if kind in NUMERIC else "missing codes"
            notes.append(f"check its range, and set its {further}{names} if it has them")
        if may_identify and is_like_identifier(int((counts == 1).sum()), records):
            notes.append("nearly every record has its own value: an identifier is of type text identifier")
    elif kind in CATEGORIES and not given.get("levels") and levels:
        drafted["levels"], note = _draft_levels(encoded, text.values, not_missing, smallest_count)
        notes += [note] if note else []
    return {**drafted, **given}, "; ".join(notes)


def _find_type(levels: Any, not_missing: Any, is_number: bool) -> Type:
    """Return the first type that reads all levels; not a number, unless asked for, if any begins with 0."""
    if not not_missing.any():
        return "category"
    is_code = not is_number and (mark_leading_zeros(levels) & not_missing).any()
    for candidate in _CANDIDATES:
        unreadable = read_levels(Column(type=candidate), levels).unreadable & not_missing
        if not unreadable.any() and not (is_code and candidate in NUMERIC):
            return candidate
    return "category"


def _draft_unit_and_range(
    kind: Type, given: Mapping[str, Any], encoded: Encoded, smallest_count: int
) -> tuple[str, tuple[float, ...] | tuple[datetime.date, ...] | None]:
    """Return the unit of times, and the range without special values."""
    form = {part: given[part] for part in ("missing_codes", "date_format", "time_zone") if part in given}
    values = read_levels(Column(type=kind, **form), encoded.levels).values
    unit = find_time_unit(values) if kind == "datetime" else ""
    if special := list(map(float, given.get("special_values", ()))):
        is_special = pc.is_in(values.cast(pa.float64(), safe=False), pa.array(special))
        values = pc.if_else(is_special, pa.scalar(None, values.type), values)
    return unit, _draft_range(kind, values, encoded.counts[:-1], smallest_count)


def _draft_range(
    kind: Type, values: Any, counts: Any, smallest_count: int
) -> tuple[float, ...] | tuple[datetime.date, ...] | None:
    """Return round ends around all values, each with `smallest_count` records in the last step before it."""
    occurring = np.asarray(values.is_valid().to_numpy(zero_copy_only=False)) & (counts > 0)
    records = counts[occurring]
    if records.sum() < smallest_count:
        return None
    present = values.filter(pa.array(occurring))
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
    """Return a round upper end: no number is above it, and enough records are in the last step below it."""
    largest = float(numbers.max())
    step = finest or 10.0 ** math.floor(math.log10(abs(largest) or 1.0))
    while True:
        end = max(largest, float(f"{math.ceil(largest / step) * step:.12g}"))  # 0.7, not 0.7000000000000001
        if end == largest and records[numbers == largest].sum() < smallest_count:
            end += step  # too few records have the largest number
        if records[numbers > end - step].sum() >= smallest_count or step > 10 * np.abs(numbers).max():
            return float(end)
        step *= 10


def _draft_levels(
    encoded: Encoded, values: Any, not_missing: Any, smallest_count: int
) -> tuple[tuple[str, ...] | None, str]:
    levels = np.asarray(values.to_pandas())[not_missing]
    counts = pd.Series(encoded.counts[:-1][not_missing]).groupby(levels).sum()
    if len(counts) > _MOST_LEVELS:
        return None, f"has more than {_MOST_LEVELS} levels: add them if they are known"
    frequent_levels = sorted(counts.index[counts >= smallest_count])
    rare = len(counts) - len(frequent_levels)
    note = f"levels with fewer than {smallest_count} records are not written: add them" if rare else ""
    return tuple(frequent_levels) or None, note


def _list_contradictions(column: Column, read: Levels, counts: IntArray) -> list[str]:
    """Return a note on each entry of a description that some values do not have."""
    problems = {
        f"values that are no {column.type}": read.unreadable,
        "values that are none of its levels": read.unknown,
        "values outside its range": read.outside,
        "values that repeat": (counts > 1) & (column.type == "text identifier"),
    }
    return [
        f"contradicts its description: it has {problem}"
        for problem, where in problems.items()
        if counts[where].any()
    ]


_FEWEST_UNITS = 20
_FEWEST_OF_UNIT, _MOST_OF_UNIT = 1.3, 100  # records on average
_REPEATED = 0.2  # share of the records
_LASTING = 0.95  # share of the units that have several records


def propose_unit(raw: pd.DataFrame, known: Collection[str]) -> str | None:
    """Return the column that seems to say whose each record is, in a table with several records a person.

    More than a fifth of the records agree with others in the other columns, and always in this one, too. The
    other columns are all but at most one, or those that hardly ever change within this column, if they are at
    least half. Among several such columns it is the one with the most values; None if that one is `known` to
    be something else.
    """
    # Hashes are equal for equal values of a column, and can be added up over columns.
    hashes: dict[str, Any] = {
        name: _hash_records(encode(raw[name]), f"{place:016}") for place, name in enumerate(raw.columns)
    }
    total = np.sum(list(hashes.values()), axis=0, dtype=np.uint64)
    values = {name: raw[name].nunique() for name in raw.columns}
    for name in sorted(values, key=lambda name: values[name], reverse=True):
        per_value = len(raw) / max(values[name], 1)
        fits = _FEWEST_OF_UNIT <= per_value <= _MOST_OF_UNIT and raw[name].notna().all()
        if not fits or values[name] < _FEWEST_UNITS:
            continue
        others = [hashes[other] for other in raw.columns if other != name]
        lasting = [other for other in others if _lasts_within(other, hashes[name])]
        alike = [total - hashes[name] - left_out for left_out in (0, *others)]
        if lasting and 2 * len(lasting) >= len(others):
            alike.append(np.sum(lasting, axis=0, dtype=np.uint64))
        if any(_share_determined(columns, hashes[name]) > _REPEATED for columns in alike):
            return None if name in known else name
    return None


def _hash_records(column: Encoded, key: str) -> Any:
    """Return a hash of each record's value, for the key of a column."""
    codes = np.arange(len(column.counts)).astype(str).astype(object)
    return pd.util.hash_array(codes, hash_key=key, categorize=False)[column.codes]


def _lasts_within(column: Any, unit: Any) -> bool:
    """Return whether nearly all units with several records have the same value of a column in all of them."""
    by_unit = pd.Series(column).groupby(unit).agg(["min", "max", "size"])
    several = by_unit[by_unit["size"] > 1]
    return float((several["min"] == several["max"]).mean()) >= _LASTING


def _share_determined(alike: Any, unit: Any) -> float:
    """Return the share of records that agree with another one in `alike`, all of these with one unit."""
    records = pd.DataFrame({"alike": alike, "unit": unit}).groupby("alike")["unit"]
    determined = (records.transform("size") > 1) & (records.transform("nunique") == 1)
    return float(determined.mean())
