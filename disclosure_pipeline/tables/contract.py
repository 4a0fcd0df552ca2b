"""The contract of a table, checked with pandera: counts of violations, never a value.

pandera is given positions in the list of a column's levels, not the levels themselves: its errors, whose
text, failure cases and pickle tell what they were given, hold no value. They do not leave this module all
the same.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from disclosure_pipeline.errors import DisclosurePipelineError, InputError
from disclosure_pipeline.parallel import in_threads, threads_for
from disclosure_pipeline.progress import Progress, silent
from disclosure_pipeline.tables.canonical import Levels, Mask, mask, read_levels
from disclosure_pipeline.tables.dictionary import Column, Dictionary
from disclosure_pipeline.tables.distinct import Distinct
from disclosure_pipeline.tables.encoding import Encoded, arrow_array, encode, smallest
from disclosure_pipeline.tables.levels import IntArray
from disclosure_pipeline.tables.sources import Location, columns_of, read_raw
from disclosure_pipeline.tables.streams import Stream, stream

ALL_MISSING = "holds nothing but missing values"
NOT_THERE = "the column is not in the table"
NOT_DESCRIBED = "the column is not in the data dictionary"
GT_IDENTIFIER = "holds identifiers of the ground truth"
NO_HEADER = (
    "no column of the data dictionary is in the table: is its first line the header, is the delimiter right?"
)


_SET_BY_PANDERA = ("PYARROW_IGNORE_TIMEZONE", "SPARK_LOCAL_IP")


@dataclass(frozen=True)
class Violation:
    """A rule that a table breaks: by how many of its records, and what share of them (0 to 1)."""

    table: str
    column: str
    rule: str
    records: int
    share: float

    def __str__(self) -> str:
        return f"{self.table}, column {self.column!r}: {self.rule} ({self.records} records, {self.share:.2%})"


class ContractError(InputError):
    """A table breaks its contract. `violations` says where and how often."""

    def __init__(self, violations: Collection[Violation]) -> None:
        super().__init__("; ".join(map(str, violations)))
        self.violations = tuple(violations)

    def __reduce__(self) -> tuple[type[ContractError], tuple[tuple[Violation, ...]]]:
        return (ContractError, (self.violations,))


@dataclass(frozen=True)
class Change:
    """What was done to bring values of a column into canonical form, and to how many records."""

    table: str
    column: str
    rule: str
    records: int


@dataclass(frozen=True)
class CanonicalTable:
    """A table in canonical form, and the ledger of what was changed for it."""

    frame: pd.DataFrame
    ledger: tuple[Change, ...]


@dataclass(frozen=True)
class CanonicalStream:
    """A table that is read in batches: what is known of it, and the canonical form of each column's values.

    `distinct` has a value for each that was met, which are those of `stream`, in their order.
    """

    stream: Stream
    distinct: Mapping[str, Distinct]
    ledger: tuple[Change, ...]

    def records(self, positions: IntArray, dictionary: Dictionary) -> pd.DataFrame:
        """Some records in canonical form; `positions` ascend. InputError where they cannot be read."""
        raw = self.stream.some(positions)
        read = _read_columns(raw, dictionary)
        return pd.DataFrame({name: _canonical(column, dictionary[name]) for name, column in read.items()})


@dataclass(frozen=True)
class _Read:
    """A column of a raw table: its codes, and its levels as the dictionary reads them.

    Of a table that is read in batches there is a code for each level, and `counts` are the records with
    each; else they are counted.
    """

    encoded: Encoded
    levels: Levels
    counts: IntArray | None = None

    def counted(self, codes: IntArray) -> IntArray:
        """The records with each level and last those that are missing, from the codes as pandera has them."""
        if self.counts is None:
            known = np.may_share_memory(codes, self.encoded.codes)
            return (self.encoded if known else Encoded(codes, self.encoded.levels)).counts
        there = np.zeros(len(self.counts), dtype=bool)
        there[codes] = True  # -1, missing, is the last
        return np.where(there, self.counts, 0)


def canonical_table(
    raw: pd.DataFrame, dictionary: Dictionary, table: str, needed: Collection[str], only_known: bool
) -> CanonicalTable:
    """Check a raw table and bring it into canonical form. ContractError where it breaks the contract.

    Arguments and rules as in `violations`; the frame has the columns that the dictionary describes.
    """
    return _canonical_table(raw, list(raw.columns), dictionary, table, needed, only_known)


def _canonical_table(
    raw: pd.DataFrame,
    names: Sequence[str],
    dictionary: Dictionary,
    table: str,
    needed: Collection[str],
    only_known: bool,
) -> CanonicalTable:
    """As `canonical_table`; `names` are those of all columns of the table, described or not."""
    read = _read_columns(raw, dictionary)
    found = _violations(names, len(raw), read, dictionary, table, needed, only_known)
    if found:
        raise ContractError(found)
    columns = in_threads(
        [partial(_canonical, column, dictionary[name]) for name, column in read.items()],
        threads_for(len(raw)),
    )
    return CanonicalTable(
        pd.DataFrame(dict(zip(read, columns, strict=True)), copy=False),
        tuple(change for name, column in read.items() for change in _changes(column, table, name)),
    )


def violations(
    raw: pd.DataFrame, dictionary: Dictionary, table: str, needed: Collection[str], only_known: bool
) -> list[Violation]:
    """What a raw table (`sources.read_raw`, or any data frame) breaks of the dictionary.

    Every needed column is there and holds a value at all; values are of the column's type, among its
    levels, within its range; with `only_known`, no column is there that the dictionary does not describe.
    Checks run whatever the environment says of pandera.
    """
    read = _read_columns(raw, dictionary)
    return _violations(list(raw.columns), len(raw), read, dictionary, table, needed, only_known)


def read_canonical(
    location: Location, dictionary: Dictionary, table: str, needed: Collection[str], only_known: bool
) -> CanonicalTable:
    """A table read and brought into canonical form. ContractError where it breaks the contract.

    Only columns that the dictionary describes are read; see `violations`.
    """
    names = columns_of(location, table, dictionary) if only_known else ()
    raw = read_raw(location, table, dictionary)
    if not len(raw.columns):  # without a header: any column tells how many records there are
        names = columns_of(location, table)
        raw = read_raw(location, table, names[:1])
    return _canonical_table(raw, names or list(raw.columns), dictionary, table, needed, only_known)


def stream_canonical(
    location: Location,
    dictionary: Dictionary,
    table: str,
    needed: Collection[str],
    only_known: bool,
    progress: Progress = silent,
) -> CanonicalStream:
    """As `read_canonical`, of a table that is read in batches: every rule is about values, not records."""
    names = columns_of(location, table, dictionary)
    described = [name for name in dictionary if name in names]
    opened = stream(location, table, described or names[:1], progress)
    raw = {name: opened.distinct(name) for name in described}
    distinct, ledger = canonical_values(names, opened.records, raw, dictionary, table, needed, only_known)
    return CanonicalStream(opened, distinct, ledger)


def canonical_values(
    columns: Sequence[str],
    records: int,
    raw: Mapping[str, Distinct],
    dictionary: Dictionary,
    table: str,
    needed: Collection[str],
    only_known: bool,
) -> tuple[Mapping[str, Distinct], tuple[Change, ...]]:
    """The values of a table's columns in canonical form, each in its place, and the ledger.

    `columns` are the names of all its columns, `raw` the values of those that the dictionary describes.
    ContractError where the table of so many `records` breaks its contract: see `violations`.
    """
    read = {}
    for name, found in raw.items():
        levels = arrow_array(found.values)
        codes = np.append(np.arange(len(levels)), -1)
        read[name] = _Read(Encoded(codes, levels), read_levels(dictionary[name], levels), found.counts)
    broken = _violations(columns, records, read, dictionary, table, needed, only_known)
    if broken:
        raise ContractError(broken)
    distinct = {
        name: Distinct(pd.Series(_canonical(column, dictionary[name])[:-1]), raw[name].counts)
        for name, column in read.items()
    }
    return distinct, tuple(
        change for name, column in read.items() for change in _changes(column, table, name)
    )


def shared_identifiers(
    ground_truth: pd.DataFrame, synthetic: pd.DataFrame, dictionary: Dictionary, table: str
) -> list[Violation]:
    """The text identifiers of GT that are in a synthetic table too, both in canonical form."""
    found = []
    for name, column in dictionary.items():
        if column.type == "text identifier" and name in ground_truth and name in synthetic:
            here, there = (encode(frame[name]) for frame in (synthetic, ground_truth))
            known = pc.is_in(
                here.levels.cast(pa.string()), value_set=there.levels.cast(pa.string()).drop_null()
            )
            records = here.records(mask(known))
            if records:
                found.append(_violation(table, name, GT_IDENTIFIER, records, len(synthetic)))
    return found


def _read_columns(raw: pd.DataFrame, dictionary: Dictionary) -> dict[str, _Read]:
    def read(name: str) -> _Read:
        encoded = encode(raw[name])
        _ = encoded.counts  # kept, while this is a thread of its own
        return _Read(encoded, read_levels(dictionary[name], encoded.levels))

    names = [name for name in dictionary if name in raw.columns]
    found = in_threads([partial(read, name) for name in names], threads_for(len(raw)))
    return dict(zip(names, found, strict=True))


def _violations(
    columns: Sequence[str],
    records: int,
    read: Mapping[str, _Read],
    dictionary: Dictionary,
    table: str,
    needed: Collection[str],
    only_known: bool,
) -> list[Violation]:
    if not records:
        return [Violation(table, "(all)", "the table has no records", 0, 1.0)]
    if not read and len(dictionary):
        # What stands where names should be may be a record: it is not told.
        return [Violation(table, "(all)", NO_HEADER, records, 1.0)]
    rules = {name: _rules(dictionary[name], column.levels) for name, column in read.items()}
    failed: dict[tuple[str, str], int] = {}
    ran: set[tuple[str, str]] = set()
    schema, positions = _schema(columns, records, read, dictionary, rules, needed, only_known, failed, ran)
    found = [Violation(table, name, rule, records, 1.0) for name, rule in _broken_columns(schema, positions)]
    if ran != {(name, rule) for name, of_column in rules.items() for rule in of_column}:
        raise DisclosurePipelineError(f"{table}: not every rule of the contract was checked.")
    return found + [_violation(table, name, rule, broken, records) for (name, rule), broken in failed.items()]


def _violation(table: str, name: str, rule: str, records: int, of: int) -> Violation:
    return Violation(table, name, rule, records, records / of)


def _rules(column: Column, levels: Levels) -> dict[str, Mask]:
    """Rule -> which levels, and last whether a missing value, break it."""
    rules = {f"is no {column.type}": np.append(levels.unreadable, False)}
    if column.levels is not None:
        rules["is none of the declared levels"] = np.append(levels.unknown, False)
    if column.range is not None:
        rules["is outside the range"] = np.append(levels.outside, False)
    return rules | {ALL_MISSING: np.append(levels.missing, True)}


def _schema(
    columns: Sequence[str],
    of: int,
    read: Mapping[str, _Read],
    dictionary: Dictionary,
    rules: Mapping[str, Mapping[str, Mask]],
    needed: Collection[str],
    only_known: bool,
    failed: dict[tuple[str, str], int],
    ran: set[tuple[str, str]],
) -> tuple[Any, pd.DataFrame]:
    """The schema of a table, and the table as positions in lists of levels, for which it is meant."""
    pandera = _pandera()
    counts: dict[str, Any] = {}

    def check(name: str, rule: str) -> Any:
        breaks = rules[name][rule]
        all_of_them = rule == ALL_MISSING

        def passes(series: pd.Series[Any]) -> bool:
            if name not in counts:  # once per column, whatever the number of its rules
                counts[name] = read[name].counted(series.cat.codes.to_numpy())
            records = int(counts[name][breaks].sum())
            broken = records == of if all_of_them else records > 0
            ran.add((name, rule))
            if broken:
                failed[(name, rule)] = records
            return not broken

        return pandera.Check(passes, name=rule, ignore_na=False, n_failure_cases=1)

    schema = pandera.DataFrameSchema(
        {
            name: pandera.Column(
                checks=[check(name, rule) for rule in rules.get(name, ())],
                nullable=True,
                required=name in needed,
            )
            for name in dictionary
        },
        strict=only_known,
    )
    entries = max(len(column.encoded.codes) for column in read.values())
    positions = {
        name: pd.Categorical.from_codes(
            _filled(read[name].encoded.codes, entries),
            categories=pd.RangeIndex(len(read[name].encoded.levels)),
        )
        if name in read
        else np.zeros(entries, dtype=np.int8)
        for name in columns
    }
    return schema, pd.DataFrame(positions, copy=False)


def _filled(codes: IntArray, entries: int) -> IntArray:
    """Codes as so many entries; those that are too few are filled with missing, which they end with."""
    if len(codes) == entries:
        return codes
    return np.append(codes, np.full(entries - len(codes), -1, dtype=codes.dtype))


def _pandera() -> Any:
    """pandera, without what importing it does to the environment: see `encoding.arrow_array`."""
    before = {name: os.environ.get(name) for name in _SET_BY_PANDERA}
    import pandera.pandas as pandera

    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
    return pandera


def _broken_columns(schema: Any, positions: pd.DataFrame) -> list[tuple[str, str]]:
    """Run the schema; the columns that are missing or too many. What a rule finds, it notes by itself."""
    from pandera.config import ValidationDepth, config_context
    from pandera.errors import SchemaErrors

    told = {"COLUMN_NOT_IN_DATAFRAME": NOT_THERE, "COLUMN_NOT_IN_SCHEMA": NOT_DESCRIBED}
    by_rule = {"CHECK_ERROR", "DATAFRAME_CHECK"}
    try:
        with config_context(validation_enabled=True, validation_depth=ValidationDepth.SCHEMA_AND_DATA):
            schema.validate(positions, lazy=True, inplace=True)
    except SchemaErrors as errors:
        reasons = [(error.reason_code.name, str(error.failure_cases)) for error in errors.schema_errors]
    else:
        return []
    return [(name, told.get(reason, reason)) for reason, name in reasons if reason not in by_rule]


def _canonical(column: _Read, declared: Column) -> Any:
    """The column's records in canonical form: categories, or plain text for identifiers."""
    encoded = column.levels.values.dictionary_encode()
    position = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    levels = encoded.dictionary
    occurs = np.zeros(len(levels) + 1, dtype=bool)
    occurs[position[column.encoded.counts[:-1] > 0]] = True  # -1, missing, is the last
    used = np.flatnonzero(occurs[:-1])
    if declared.type == "ordered category" and declared.level_names is not None:
        order = {name: i for i, name in enumerate(declared.level_names)}
        kept = len(order)  # unknown levels that are kept come last
        used = np.array(
            sorted(used, key=lambda code: order.get(levels[int(code)].as_py(), kept)), dtype=np.int64
        )
    renumber = np.full(len(levels) + 1, -1)
    renumber[used] = np.arange(len(used))
    codes = _looked_up(np.append(renumber[position], -1).astype(smallest(len(used))), column.encoded.codes)
    if declared.type == "text identifier":  # nearly as many levels as records: they stay in Arrow
        indices = pa.array(codes, mask=codes < 0)
        return pd.arrays.ArrowExtensionArray(
            pa.DictionaryArray.from_arrays(indices, levels.take(pa.array(used)))
        )
    categories = pd.Index(levels.take(pa.array(used)).to_pandas())
    return pd.Categorical.from_codes(codes, categories, ordered=declared.type == "ordered category")


def _looked_up(new: IntArray, codes: IntArray) -> IntArray:
    """The new code of each; the same array where every code stays as it is."""
    same = new.dtype == codes.dtype and np.array_equal(new[:-1], np.arange(len(new) - 1))
    return codes if same else new[codes]


def _changes(column: _Read, table: str, name: str) -> list[Change]:
    counts = column.encoded.counts if column.counts is None else column.counts
    counted = {
        rule: int(counts[np.append(where, False)].sum()) for rule, where in column.levels.changed.items()
    }
    return [Change(table, name, rule, records) for rule, records in counted.items() if records]
