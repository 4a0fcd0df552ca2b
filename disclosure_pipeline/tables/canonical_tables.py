"""Whole tables in canonical form, with the ledger of what was changed for it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from disclosure_pipeline.runtime.machine import run_in_threads, threads_for
from disclosure_pipeline.tables.coding import Distinct
from disclosure_pipeline.tables.contract import ContractError, find_violations
from disclosure_pipeline.tables.dictionary import Dictionary
from disclosure_pipeline.tables.encoding import (
    Change,
    RawColumn,
    canonical_records,
    changes_of_column,
    count_levels,
    encode,
    read_columns,
)
from disclosure_pipeline.tables.levels import IntArray
from disclosure_pipeline.tables.record_hashes import content_sha256, values_sha256
from disclosure_pipeline.tables.sources import Location, columns_of, read_raw

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True)
class CanonicalTable:
    """A table in canonical form, and the ledger of what was changed for it."""

    frame: pd.DataFrame
    ledger: tuple[Change, ...]

    @property
    def records(self) -> int:
        """The number of records."""
        return len(self.frame)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(map(str, self.frame.columns))

    @property
    def values(self) -> Mapping[str, Any]:
        """The distinct values of each column, as Arrow arrays."""
        return {name: encode(self.frame[name]).levels for name in self.columns}

    @property
    def sha256(self) -> str:
        """The hash of its records: see `content_sha256`."""
        return content_sha256(self.frame)

    def count_levels(self, name: str) -> IntArray:
        """Return the number of records with each value of a column, in any order."""
        return count_levels(self.frame[name])

    def keep_columns(self, names: Collection[str]) -> CanonicalTable:
        """Return the table without its other columns."""
        kept = [name for name in self.columns if name in names]
        if len(kept) == len(self.columns):
            return self
        return CanonicalTable(
            self.frame[kept], tuple(change for change in self.ledger if change.column in kept)
        )

    def records_in_order(self, positions: IntArray, at_once: int) -> Iterator[pd.DataFrame]:
        """Yield the records in the order of these positions, so many at once."""
        return (
            self.frame.iloc[positions[start : start + at_once]] for start in range(0, len(positions), at_once)
        )

    def records_from(self, start: int, stop: int) -> pd.DataFrame:
        """Return the records from a position to before another one, or to the last."""
        return self.frame.iloc[start:stop]


PREFIX = "events."
"""What the names of columns begin with that are of events, or derived of them."""
MULTISET = f"{PREFIX}multiset"
"""All of a person's events: it is another one as soon as a single value differs."""


@dataclass(frozen=True)
class LinkedTable(CanonicalTable):
    """Persons in canonical form with what is derived of their events, which are here as they are, too.

    `unit`: the column of the events that says whose each is; `owners`: the position of that person.
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
        """The distinct values of the persons' columns, and of the events', named `events.…`: none derived."""
        of_persons = [name for name in self.columns if not name.startswith(PREFIX)]
        of_events = self.events.keep_columns(self.events_columns).values
        return {name: encode(self.frame[name]).levels for name in of_persons} | {
            f"{PREFIX}{name}": levels for name, levels in of_events.items()
        }

    @property
    def sha256(self) -> str:
        """The hash of both tables: see `content_sha256`. Without the unit its values do not matter."""
        named = self.events.columns if self.unit in self.columns else self.events_columns
        of_both = content_sha256(self.frame) + self.events.keep_columns(named).sha256
        return hashlib.sha256(of_both.encode()).hexdigest()

    def count_levels(self, name: str) -> IntArray:
        """Return the number of persons with each value of a column of `values`, in any order."""
        of_events = name.removeprefix(PREFIX)
        if of_events == name:
            return count_levels(self.frame[name])
        codes = encode(self.events.frame[of_events]).codes.astype(np.int64)
        levels = int(codes.max(initial=0)) + 1
        pairs = pd.unique(self.owners[codes >= 0] * levels + codes[codes >= 0])
        counts = np.bincount(pairs % levels)
        return counts[counts > 0]

    def keep_columns(self, names: Collection[str]) -> LinkedTable:
        """Return the table without its other columns; all of the events."""
        return replace(self, frame=self.frame[[name for name in self.columns if name in names]])


@dataclass(frozen=True)
class TableOfValues:
    """A table of which only the values of each column are here, as they are or in canonical form.

    The `ledger` says what was changed for it.
    """

    records: int
    distinct: Mapping[str, Distinct]
    ledger: tuple[Change, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(self.distinct)

    @property
    def values(self) -> Mapping[str, Any]:
        """The distinct values of each column, as Arrow arrays."""
        return {name: encode(distinct.values).levels for name, distinct in self.distinct.items()}

    @property
    def sha256(self) -> str:
        """The hash of its values: see `values_sha256`."""
        return values_sha256(self.distinct)

    def count_levels(self, name: str) -> IntArray:
        """Return the number of records with each value of a column, in any order."""
        return count_levels(self.distinct[name].values, self.distinct[name].counts)

    def keep_columns(self, names: Collection[str]) -> Self:
        """Return the table without its other columns."""
        return replace(
            self,
            distinct={name: self.distinct[name] for name in self.distinct if name in names},
            ledger=tuple(change for change in self.ledger if change.column in names),
        )


def canonical_table(
    raw: pd.DataFrame,
    dictionary: Dictionary,
    table: str,
    needed: Collection[str],
    only_known: bool,
    names: Sequence[str] = (),
) -> CanonicalTable:
    """Check a raw table and bring it into canonical form. ContractError where it breaks the contract.

    Rules as in `find_violations`; the frame has the columns that the dictionary describes. `names`: those of
    all columns, described or not, where `raw` has only some of them.
    """
    read = read_columns(raw, dictionary)
    columns, ledger = _to_canonical(
        names or list(raw.columns), len(raw), read, dictionary, table, needed, only_known
    )
    return CanonicalTable(pd.DataFrame(columns, copy=False), ledger)


def _to_canonical(
    columns: Sequence[str],
    records: int,
    read: Mapping[str, RawColumn],
    dictionary: Dictionary,
    table: str,
    needed: Collection[str],
    only_known: bool,
) -> tuple[dict[str, Any], tuple[Change, ...]]:
    violations = find_violations(columns, records, read, dictionary, table, needed, only_known)
    if violations:
        raise ContractError(violations)
    values = run_in_threads(
        [partial(canonical_records, column, dictionary[name]) for name, column in read.items()],
        threads_for(max(len(column.encoded.codes) for column in read.values())),
    )
    ledger = (change for name, column in read.items() for change in changes_of_column(column, table, name))
    return dict(zip(read, values, strict=True)), tuple(ledger)


def read_canonical(
    location: Location, dictionary: Dictionary, table: str, needed: Collection[str], only_known: bool
) -> CanonicalTable:
    """Return a table read and brought into canonical form. ContractError where it breaks the contract.

    Only columns that the dictionary describes are read; see `find_violations`.
    """
    names = columns_of(location, table, dictionary) if only_known else ()
    raw = read_raw(location, table, dictionary)
    if not len(raw.columns):  # without a header: any column tells how many records there are
        names = columns_of(location, table, dictionary)
        raw = read_raw(location, table, names[:1])
    return canonical_table(raw, dictionary, table, needed, only_known, names)


def canonical_values(
    columns: Sequence[str],
    records: int,
    raw: Mapping[str, Distinct],
    dictionary: Dictionary,
    table: str,
    needed: Collection[str],
    only_known: bool,
) -> tuple[Mapping[str, Distinct], tuple[Change, ...]]:
    """Return the values of a table's columns in canonical form, each where it was, and the ledger.

    `columns` are the names of all its columns, `raw` the values of those that the dictionary describes.
    ContractError where the table of so many `records` breaks its contract: see `find_violations`.
    """
    read = {
        name: RawColumn.from_values(distinct.values, distinct.counts, dictionary[name])
        for name, distinct in raw.items()
    }
    canonical, ledger = _to_canonical(columns, records, read, dictionary, table, needed, only_known)
    return {
        name: Distinct(pd.Series(values[:-1]), raw[name].counts) for name, values in canonical.items()
    }, ledger
