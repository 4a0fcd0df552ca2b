"""Tables in canonical form, if they keep their contract: violations are counts, never values.

pandera checks positions in a column's list of levels, not the levels, so that the text, failure cases and
pickle of its errors hold no value. Even so, its errors do not leave this module.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from disclosure_pipeline.errors import DisclosurePipelineError, write_count
from disclosure_pipeline.runtime.machine import run_in_threads, threads_for
from disclosure_pipeline.tables.canonical import (
    find_conventional_missing,
    is_text,
    mark_leading_zeros,
    mark_texts,
    to_mask,
)
from disclosure_pipeline.tables.coding import Distinct
from disclosure_pipeline.tables.damage import describe_separator, name_separator
from disclosure_pipeline.tables.dictionary import (
    CATEGORIES,
    NUMERIC,
    Column,
    Contract,
    ContractError,
    Violation,
)
from disclosure_pipeline.tables.encoding import (
    Change,
    Encoded,
    RawColumn,
    canonical_records,
    count_levels,
    encode,
    list_changes,
    read_columns,
)
from disclosure_pipeline.tables.levels import IntArray, Mask
from disclosure_pipeline.tables.messages import listed
from disclosure_pipeline.tables.record_hashes import content_sha256, values_sha256
from disclosure_pipeline.tables.sources import Location, read_column_names, read_raw
from disclosure_pipeline.tables.text_forms import describe_number_form

if TYPE_CHECKING:
    from typing_extensions import Self


ALL_MISSING = "holds nothing but missing values"
NOT_THERE = "the column is not in the table"
OTHER_COLUMNS = "(other columns)"
"""Stands for columns that the dictionary does not have: their names may be values, and are not shown."""
_ROW_NUMBERS = {"", "Unnamed: 0", "__index_level_0__"}
"""The names that pandas gives to a column of row numbers."""
NO_COLUMN = "no column of the data dictionary is in the table"
CONTROL_CHARACTER = "holds a control character, such as a line break within a level: remove it"
WITHOUT_OWNER = "lacks a value in some records: it must say whose each record is"
LEADING_ZEROS = (
    "is written with leading zeros, as codes are, which would be published without them: make it a category "
    "or, if it is an amount, say its unit"
)
NO_HEADER = f"{NO_COLUMN}: check that the first line is the header, and the delimiter"


_SET_BY_PANDERA = ("PYARROW_IGNORE_TIMEZONE", "SPARK_LOCAL_IP")


def find_violations(
    columns: Sequence[str],
    records: int,
    read: Mapping[str, RawColumn],
    contract: Contract,
) -> list[Violation]:
    """Return the rules of its contract that a table breaks.

    `columns` names all its columns, `read` has those that the dictionary describes. Every needed column must
    exist and hold a value; values must have the column's type, be among its levels and within its range.
    Checks run even if the environment disables pandera.
    """
    table, dictionary = contract.table, contract.dictionary
    if not records:
        return [Violation(table, "(all)", "the table has no records", 0, 1.0)]
    if not read and len(dictionary):
        # The first line may be a record: it is not shown.
        separator = name_separator(list(columns))
        rule = f"{NO_COLUMN}: {describe_separator(separator)}" if separator else NO_HEADER
        return [Violation(table, "(all)", rule, records, 1.0)]
    rules = {name: _list_rules(dictionary[name], column, contract) for name, column in read.items()}
    broken_records: dict[tuple[str, str], int] = {}
    checked: set[tuple[str, str]] = set()
    counts: dict[str, Any] = {}
    pandera = _import_pandera()

    def check(name: str, rule: str) -> Any:
        def passes(positions: pd.Series[Any]) -> bool:
            if name not in counts:  # once per column, not for each rule
                counts[name] = read[name].count_records(positions.cat.codes.to_numpy())
            breaking = int(counts[name][rules[name][rule]].sum())
            checked.add((name, rule))
            if breaking < records if rule == ALL_MISSING else not breaking:
                return True
            broken_records[(name, rule)] = breaking
            return False

        return pandera.Check(passes, name=rule, ignore_na=False, n_failure_cases=1)

    schema = pandera.DataFrameSchema(
        {
            name: pandera.Column(
                checks=[check(name, rule) for rule in rules.get(name, ())],
                nullable=True,
                required=name in contract.needed,
            )
            for name in dictionary
        },
        strict=contract.only_known,
    )
    missing, undescribed = _run_schema(schema, _positions_of_levels(columns, read))
    column_violations = [Violation(table, name, NOT_THERE, records, 1.0) for name in missing]
    if undescribed:
        # Old versions of pandera report the first of them alone.
        rule = _describe_other_columns([name for name in columns if name not in dictionary])
        column_violations.append(Violation(table, OTHER_COLUMNS, rule, records, 1.0))
    if checked != {(name, rule) for name, column_rules in rules.items() for rule in column_rules}:
        raise DisclosurePipelineError(f"{table}: not every rule of the contract was checked.")
    return column_violations + [
        Violation(table, name, rule, broken, broken / records)
        for (name, rule), broken in broken_records.items()
    ]


def _describe_other_columns(names: Sequence[str]) -> str:
    """Say how many columns the dictionary does not have, without their names."""
    one = len(names) == 1
    rule = f"{write_count(len(names), 'column')} {'is' if one else 'are'} not in the data dictionary"
    if _ROW_NUMBERS.intersection(names):
        numbers = "it holds" if one else "one holds"
        return f"{rule}: {numbers} the row numbers of pandas; write the table without its index"
    return f"{rule}: compare the first line with it"


def _list_rules(column: Column, raw: RawColumn, contract: Contract) -> dict[str, Mask]:
    """Return, for each rule, a mark of the levels that break it, and last of a missing value."""
    levels, written = raw.levels, raw.encoded.levels
    unreadable = written.filter(pa.array(levels.unreadable))
    form = ""
    if column.type in NUMERIC and len(unreadable) and is_text(unreadable.type):
        form = describe_number_form(unreadable.drop_null().to_pylist())
    of_type = f"is not of type {column.type}{': ' if form else ''}{form}"
    rules = {of_type: np.append(levels.unreadable, False)}
    codes = find_conventional_missing(unreadable)
    if codes and column.type != "text identifier":
        rules[f"holds {listed(codes)}, which is no {column.type}: add it to missing_codes"] = np.append(
            levels.unreadable & mark_texts(written, codes), False
        )
    if column.type in NUMERIC and not column.unit and not contract.only_known:
        rules[LEADING_ZEROS] = np.append(mark_leading_zeros(written) & ~levels.missing, False)
    if column.levels is not None:
        rules["is not among the declared levels"] = np.append(levels.unknown, False)
    if column.type in CATEGORIES:
        # Control characters are invisible on pages and terminals, and crash the renderer of charts.
        controls = pc.match_substring_regex(levels.values.cast(pa.string()), r"\p{Cc}")
        rules[CONTROL_CHARACTER] = np.append(to_mask(controls), False)
    if column.range is not None:
        rules["is outside the range"] = np.append(levels.outside, False)
    return rules | {ALL_MISSING: np.append(levels.missing, True)}


def _positions_of_levels(columns: Sequence[str], read: Mapping[str, RawColumn]) -> pd.DataFrame:
    """Return the frame for pandera to check: each position in a column's list of levels, then missing."""
    levels = {name: len(column.encoded.levels) for name, column in read.items()}
    entries = np.arange(max(levels.values()) + 1)
    positions: dict[str, Any] = dict.fromkeys(columns, np.zeros(len(entries), dtype=np.int8))
    for name, number in levels.items():
        codes = np.where(entries < number, entries, -1)
        positions[name] = pd.Categorical.from_codes(codes, categories=pd.RangeIndex(number))
    return pd.DataFrame(positions, copy=False)


def _import_pandera() -> Any:
    """Import pandera, and undo its changes to the environment: see `encoding.arrow_array`."""
    before = {name: os.environ.get(name) for name in _SET_BY_PANDERA}
    import pandera.pandas as pandera

    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
    return pandera


def _run_schema(schema: Any, positions: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Run the schema, whose checks count violations themselves; return missing and undescribed columns.

    Raise DisclosurePipelineError if it reports anything else.
    """
    from pandera.config import ValidationDepth, config_context
    from pandera.errors import SchemaErrors

    names: dict[str, list[str]] = {"COLUMN_NOT_IN_DATAFRAME": [], "COLUMN_NOT_IN_SCHEMA": []}
    by_rule = {"CHECK_ERROR", "DATAFRAME_CHECK"}
    try:
        with config_context(validation_enabled=True, validation_depth=ValidationDepth.SCHEMA_AND_DATA):
            schema.validate(positions, lazy=True, inplace=True)
    except SchemaErrors as errors:
        reasons = [(error.reason_code.name, str(error.failure_cases)) for error in errors.schema_errors]
    else:
        reasons = []
    finally:
        # The frame and pandera's accessor refer to each other: this frees the records without a collection.
        vars(positions).pop("pandera", None)
    for reason, name in reasons:
        if reason in names:
            names[reason].append(name)
        elif reason not in by_rule:
            raise DisclosurePipelineError(f"The contract was not checked: pandera reports {reason}.")
    missing, undescribed = names.values()
    return missing, undescribed


@dataclass(frozen=True)
class CanonicalTable:
    """A table in canonical form, and the ledger of the changes made for it."""

    frame: pd.DataFrame
    ledger: tuple[Change, ...]

    @property
    def records(self) -> int:
        """The number of records."""
        return len(self.frame)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(map(str, self.frame.columns))

    @property
    def values(self) -> Mapping[str, Any]:
        """The distinct values of each column, as Arrow arrays."""
        return {name: encode(self.frame[name]).levels for name in self.columns}

    @property
    def sha256(self) -> str:
        """The hash of the records: see `content_sha256`."""
        return content_sha256(self.frame)

    def count_levels(self, name: str) -> IntArray:
        """Count the records with each value of a column, in any order."""
        return count_levels(encode(self.frame[name]))

    def keep_columns(self, names: Collection[str]) -> CanonicalTable:
        """Return the table reduced to these columns."""
        kept = [name for name in self.columns if name in names]
        if len(kept) == len(self.columns):
            return self
        return CanonicalTable(
            self.frame[kept], tuple(change for change in self.ledger if change.column in kept)
        )

    def records_in_order(self, positions: IntArray, at_once: int) -> Iterator[pd.DataFrame]:
        """Yield the records at these positions, in their order, `at_once` in a frame."""
        return (
            self.frame.iloc[positions[start : start + at_once]] for start in range(0, len(positions), at_once)
        )

    def records_from(self, start: int, stop: int) -> pd.DataFrame:
        """Return the records from `start` to before `stop`, or to the last."""
        return self.frame.iloc[start:stop]


PREFIX = "events."
"""The prefix of the events' columns, and of columns derived from events."""
MULTISET = f"{PREFIX}multiset"
"""The column with all of a person's events: a single different value makes a different multiset."""


@dataclass(frozen=True)
class LinkedTable(CanonicalTable):
    """Persons in canonical form with columns derived from their events, and the `events` themselves.

    `unit`: the column of the events that says whose each is; `owners`: the position of each event's person.
    """

    events: CanonicalTable
    unit: str
    owners: IntArray

    @property
    def events_columns(self) -> tuple[str, ...]:
        """The columns of the events, without their unit."""
        return tuple(name for name in self.events.columns if name != self.unit)

    @property
    def values(self) -> Mapping[str, Any]:
        """The distinct values of the persons' columns, and of the events' as `events.…`; none derived."""
        person_columns = [name for name in self.columns if not name.startswith(PREFIX)]
        event_values = self.events.keep_columns(self.events_columns).values
        return {name: encode(self.frame[name]).levels for name in person_columns} | {
            f"{PREFIX}{name}": levels for name, levels in event_values.items()
        }

    @property
    def sha256(self) -> str:
        """The hash of both tables: see `content_sha256`. The unit counts only if the persons have it."""
        hashed_columns = self.events.columns if self.unit in self.columns else self.events_columns
        both = content_sha256(self.frame) + self.events.keep_columns(hashed_columns).sha256
        return hashlib.sha256(both.encode()).hexdigest()

    def count_levels(self, name: str) -> IntArray:
        """Count the persons with each value of a column of `values`, in any order."""
        event_column = name.removeprefix(PREFIX)
        if event_column == name:
            return count_levels(encode(self.frame[name]))
        codes = encode(self.events.frame[event_column]).codes.astype(np.int64)
        levels = int(codes.max(initial=0)) + 1
        pairs = pd.unique(self.owners[codes >= 0] * levels + codes[codes >= 0])
        counts = np.bincount(pairs % levels)
        return counts[counts > 0]

    def keep_columns(self, names: Collection[str]) -> LinkedTable:
        """Return the persons reduced to these columns, with all events."""
        return replace(self, frame=self.frame[[name for name in self.columns if name in names]])


@dataclass(frozen=True)
class TableOfValues:
    """A table as the values of its columns alone; the `ledger` lists the changes made to them."""

    records: int
    distinct: Mapping[str, Distinct]
    ledger: tuple[Change, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.distinct)

    @property
    def values(self) -> Mapping[str, Any]:
        """The distinct values of each column, as Arrow arrays."""
        return {name: encode(distinct.values).levels for name, distinct in self.distinct.items()}

    @property
    def sha256(self) -> str:
        """The hash of the values: see `values_sha256`."""
        return values_sha256(self.distinct)

    def count_levels(self, name: str) -> IntArray:
        """Count the records with each value of a column, in any order."""
        return count_levels(Encoded.from_values(self.distinct[name].values, self.distinct[name].counts))

    def keep_columns(self, names: Collection[str]) -> Self:
        """Return the table reduced to these columns."""
        return replace(
            self,
            distinct={name: self.distinct[name] for name in self.distinct if name in names},
            ledger=tuple(change for change in self.ledger if change.column in names),
        )


def canonical_table(raw: pd.DataFrame, contract: Contract, names: Sequence[str] = ()) -> CanonicalTable:
    """Check a raw table and bring it to canonical form. Raise ContractError if it breaks the contract.

    `names` are those of all its columns, if `raw` has only those that the dictionary describes.
    """
    read = read_columns(raw, contract.dictionary)
    columns, ledger = _to_canonical(names or list(raw.columns), len(raw), read, contract)
    return CanonicalTable(pd.DataFrame(columns, copy=False), ledger)


def _to_canonical(
    columns: Sequence[str], records: int, read: Mapping[str, RawColumn], contract: Contract
) -> tuple[dict[str, Any], tuple[Change, ...]]:
    violations = find_violations(columns, records, read, contract)
    if violations:
        raise ContractError(violations)
    values = run_in_threads(
        [partial(canonical_records, column, contract.dictionary[name]) for name, column in read.items()],
        threads_for(max(len(column.encoded.codes) for column in read.values())),
    )
    ledger = [
        change for name, column in read.items() for change in list_changes(column, contract.table, name)
    ]
    return dict(zip(read, values, strict=True)), tuple(ledger)


def read_canonical(location: Location, contract: Contract) -> CanonicalTable:
    """Read the columns that the dictionary describes in canonical form: see `canonical_table`."""
    table, dictionary = contract.table, contract.dictionary
    names = read_column_names(location, table, dictionary) if contract.only_known else ()
    raw = read_raw(location, table, dictionary)
    if not len(raw.columns):  # perhaps no header: read one column to count the records
        names = read_column_names(location, table, dictionary)
        raw = read_raw(location, table, names[:1])
    return canonical_table(raw, contract, names)


def canonical_values(
    columns: Sequence[str], records: int, raw: Mapping[str, Distinct], contract: Contract
) -> tuple[Mapping[str, Distinct], tuple[Change, ...]]:
    """Return the values of a table's columns in canonical form, in their order, and the ledger.

    `columns` are the names of all its columns, `raw` the values of those that the dictionary describes.
    Raise ContractError if the table, which has `records` records, breaks its contract.
    """
    read = {
        name: RawColumn.read(Encoded.from_values(table.values, table.counts), contract.dictionary[name])
        for name, table in raw.items()
    }
    canonical, ledger = _to_canonical(columns, records, read, contract)
    return {
        name: Distinct(pd.Series(values[:-1]), raw[name].counts) for name, values in canonical.items()
    }, ledger
