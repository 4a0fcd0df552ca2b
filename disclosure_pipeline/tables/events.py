"""Persons and their events: two tables joined into one, with a record for each person.

A person's events become a few columns: their number, the first, last and most frequent value of a column, and
all events as a multiset. These depend only on the values, not on the order of the records:

- Events are ordered by their value of the column `order`. Among events with the same one, the smallest value
  is first and the largest last.
- Among several most frequent values, the smallest is taken.
- Missing values, and events without a value in `order`, count only if a person has nothing else.
- Numbers are ordered by size, times by moment, and texts by Unicode code points.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypedDict, get_args

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.tables.canonical import is_text
from disclosure_pipeline.tables.contract import MULTISET, PREFIX, WITHOUT_OWNER
from disclosure_pipeline.tables.dictionary import Column, ContractError, Dictionary, Violation
from disclosure_pipeline.tables.encoding import Encoded, encode, take_levels
from disclosure_pipeline.tables.levels import IntArray, Values, level_label
from disclosure_pipeline.tables.messages import describe_argument, listed
from disclosure_pipeline.tables.missing import Codes
from disclosure_pipeline.tables.record_hashes import without_noise
from disclosure_pipeline.tables.sources import Syntheses, TableSource

Summary = Literal["first", "last", "most_frequent"]
SUMMARIES: tuple[Summary, ...] = get_args(Summary)

COUNT = f"{PREFIX}count"

PERSON_TWICE = "names a person in several records: every person must have one"
OF_NOBODY = "names somebody who is not in the table of persons"


def name_summary(column: str, summary: Summary) -> str:
    """Return the name of the column for a summary of an events' column.

    >>> name_summary("diagnosis", "first")
    'events.diagnosis.first'
    """
    return f"{PREFIX}{column}.{summary}"


def describe_summaries(
    columns: Dictionary, summaries: Mapping[str, Sequence[Summary]], multiset: Sequence[str]
) -> dict[str, Column]:
    """Return the data dictionary of the columns that `Joining` adds to the persons."""
    described = {COUNT: Column(type="integer", published=True, description="Number of events")}
    for name, column_summaries in summaries.items():
        for summary in column_summaries:
            described[name_summary(name, summary)] = columns[name].model_copy(
                update={"published": True, "description": f"{summary.replace('_', ' ').capitalize()} {name}"}
            )
    if multiset:
        described[MULTISET] = Column(
            type="category",
            unknown_levels="keep",
            published=True,
            description=f"All events, in order of their text: {', '.join(multiset)}",
        )
    return described


class _BothEvents(TypedDict):
    ground_truth: TableSource
    synthetic: Syntheses


class Events(_BothEvents, total=False):
    """The events of GT and of its syntheses as `disclosure()` takes them, with the fields of `Joining`."""

    holdout: TableSource
    missing_codes: Codes
    order: str
    summaries: Mapping[str, Sequence[Summary]]
    multiset: Sequence[str]
    length: int


@dataclass(frozen=True)
class Joining:
    """The columns, named `events.…`, that join each person's events to the person's record.

    `unit`: the column of both tables that says whose a record is. `order`: the column of the events, such as
    a date, that orders them. `summaries`: column of the events -> which of a person's values to add.
    `multiset`: columns whose values are all added, as one text in a fixed order, of at most `length` events.

    >>> people = pd.DataFrame({"id": [1, 2, 3], "sex": ["f", "m", "f"]})
    >>> stays = pd.DataFrame({"id": [1, 2, 1], "day": [9, 4, 2], "why": ["flu", "fall", "birth"]})
    >>> joining = Joining("id", "day", {"why": ["first", "last"]}, ["why"])
    >>> joining.join(people, stays, ("people", "stays"))[0].drop(columns="id")
      sex  events.count events.why.first events.why.last   events.multiset
    0   f             2            birth             flu  ["birth", "flu"]
    1   m             1             fall            fall          ["fall"]
    2   f             0              NaN             NaN                []
    """

    unit: str
    order: str | None = None
    summaries: Mapping[str, Sequence[Summary]] = field(default_factory=dict)
    multiset: Sequence[str] = ()
    length: int | None = None

    def check(self, persons: pd.DataFrame, events: pd.DataFrame, names: tuple[str, str]) -> None:
        """Raise InputError if this contradicts itself, or the columns of two tables with these `names`."""
        problem = self.find_problem(events.columns, names[1])
        for name, table in zip(names, (persons, events), strict=True):
            if self.unit not in table.columns:
                problem = f"unit names {describe_argument(self.unit)}, which is not a column of {name}"
        taken = [name for name in map(str, persons.columns) if name.startswith(PREFIX)]
        if taken:
            problem = f"Column {taken[0]!r} of {names[0]} begins with {PREFIX!r}: rename it"
        if problem:
            raise InputError(f"{problem}.")

    def find_problem(self, columns: Collection[str], table: str) -> str:
        """Return a contradiction within this, or with the `columns` of a `table` of events; empty if none."""
        order = [] if self.order is None else [self.order]
        named = {"order": order, "summaries": self.summaries, "multiset": self.multiset}
        for argument, names in named.items():
            for name in names:
                if name not in columns:
                    shown = describe_argument(name)
                    return f"{argument} names {shown}, not a column of {table}, which have {listed(columns)}"
        for name, chosen in self.summaries.items():
            if isinstance(chosen, str) or not chosen or not set(chosen) <= set(SUMMARIES):
                return f"summaries of {name!r} must be some of {listed(SUMMARIES)}"
            if self.order is None and {"first", "last"} & set(chosen):
                return (
                    f"summaries asks for the first or last {name!r}: name the column that orders the events"
                )
            if len(set(chosen)) < len(chosen):
                return f"summaries of {name!r} names one more than once"
        if len(set(self.multiset)) < len(self.multiset):
            return "multiset names a column more than once"
        if self.length is not None and (not self.multiset or self.length < 1):
            return "length needs a multiset, and must be at least 1"
        return ""

    def join(
        self, persons: pd.DataFrame, events: pd.DataFrame, names: tuple[str, str]
    ) -> tuple[pd.DataFrame, IntArray]:
        """Return the persons with the columns from their events, and the position of each event's person.

        `names` are those of the two tables in messages. Raise ContractError if an event belongs to nobody, or
        a person has several records.
        """
        owners = _find_owners(persons[self.unit], events[self.unit], self.unit, names)
        grouped = _Grouped.from_owners(owners, len(persons))
        joined = persons.assign(**{COUNT: grouped.counts})
        ordered = [] if self.order is None else [self.order]
        named = dict.fromkeys([*self.summaries, *self.multiset, *ordered])
        ranks = {name: _Ranks.from_column(events[name]) for name in named}
        for name, chosen in self.summaries.items():
            for summary in chosen:
                if summary == "most_frequent":
                    summarized = grouped.find_most_frequent(ranks[name])
                else:
                    when = ranks[self.order or ""]
                    summarized = grouped.find_extreme(when, ranks[name], last=summary == "last")
                joined[name_summary(name, summary)] = ranks[name].values_of(summarized)
        if self.multiset:
            joined[MULTISET] = grouped.list_all([ranks[name] for name in self.multiset], self.length)
        return joined, owners


def _find_owners(
    person_units: pd.Series[Any], event_units: pd.Series[Any], unit: str, names: tuple[str, str]
) -> IntArray:
    """Return the position of each event's person. Raise ContractError if there is not exactly one."""
    persons, events = encode(person_units), encode(event_units)
    for name, encoded in zip(names, (persons, events), strict=True):
        if len(encoded.codes) and encoded.codes.min() < 0:
            raise ContractError([Violation(name, unit, WITHOUT_OWNER)])
    known = pd.Index(_to_index(persons.levels)).take(persons.codes)
    if not known.is_unique:
        raise ContractError([Violation(names[0], unit, PERSON_TWICE)])
    positions = known.get_indexer(_to_index(events.levels))
    owners = positions[events.codes] if len(events.codes) else np.empty(0, dtype=np.int64)
    if len(owners) and owners.min() < 0:
        raise ContractError([Violation(names[1], unit, OF_NOBODY)])
    return np.asarray(owners, dtype=np.int64)


def _to_index(levels: Any) -> pd.Index[Any]:
    return pd.Index(levels.to_pandas())


def write_ids(tables: Sequence[pd.DataFrame], unit: Any) -> list[pd.DataFrame]:
    """Return tables read from files with text for the ids of all of them if those of some are text.

    Codes such as 0012 are text, but the ids of a table are numbers if none of them needs to be text.
    """
    ids = [encode(table[unit]) if unit in table.columns else None for table in tables]
    are_text = [is_text(column.levels.type) for column in ids if column is not None]
    if all(are_text) or not any(are_text):
        return list(tables)
    return [
        table if column is None or is_text(column.levels.type) else _write_as_text(table, unit, column)
        for table, column in zip(tables, ids, strict=True)
    ]


def _write_as_text(table: pd.DataFrame, unit: Any, ids: Encoded) -> pd.DataFrame:
    labels = [None if level is None else level_label(level) for level in ids.levels.to_pylist()]
    texts = take_levels(ids.codes, pa.array(labels, pa.string()))
    return table.assign(**{unit: pd.arrays.ArrowExtensionArray(texts)})


@dataclass(frozen=True)
class _Ranks:
    """A column of the events: the `ranks` of their values by size, and the distinct values in that order.

    Missing has the rank after the last. `places`: the position of each value among the column's levels, which
    is kept if they are `ordered`.
    """

    ranks: Values
    values: Any
    places: IntArray
    ordered: bool

    @classmethod
    def from_column(cls, column: pd.Series[Any]) -> _Ranks:
        encoded = encode(column)
        distinct = encoded.levels.dictionary_encode()
        values = distinct.dictionary
        order = pc.array_sort_indices(values).to_numpy() if len(values) else np.empty(0, dtype=np.int64)
        rank = np.empty(len(values) + 1, dtype=np.int64)
        rank[order], rank[-1] = np.arange(len(values)), len(values)
        position = np.append(
            distinct.indices.fill_null(len(values)).to_numpy(zero_copy_only=False), len(values)
        )
        ordered = isinstance(column.dtype, pd.CategoricalDtype) and bool(column.dtype.ordered)
        return cls(rank[position[encoded.codes]], values.take(pa.array(order)), order, ordered)

    @property
    def missing(self) -> int:
        return len(self.values)

    def values_of(self, ranks: Values) -> Any:
        """Return a column with the values of some ranks; the rank of missing, and -1, become missing."""
        occurs = np.zeros(self.missing + 2, dtype=bool)
        occurs[ranks] = True
        used = np.flatnonzero(occurs[: self.missing])
        if self.ordered:
            used = used[np.argsort(self.places[used])]
        renumber = np.full(self.missing + 2, -1)
        renumber[used] = np.arange(len(used))
        categories = _to_index(self.values.take(pa.array(used)))
        return pd.Categorical.from_codes(renumber[ranks], categories, ordered=self.ordered)

    @cached_property
    def texts(self) -> Any:
        """The text of each rank in a multiset, as in JSON; numbers without rounding noise."""
        is_decimal = pa.types.is_decimal(self.values.type)
        values = self.values.cast(pa.float64()) if is_decimal else self.values
        kind = values.type
        if pa.types.is_floating(kind):
            written = [
                level_label(value) if value.is_integer() else f"{value:.9g}"
                for value in without_noise(values).to_pylist()
            ]
        else:
            labels = map(level_label, values.to_pylist())
            written = [
                label if pa.types.is_integer(kind) else json.dumps(label, ensure_ascii=False)
                for label in labels
            ]
        return pa.array([*written, "null"], pa.string())


@dataclass(frozen=True)
class _Grouped:
    """Events by person: their `order` by person, and the `counts` of each person.

    `owners` are in that order. `some`: the persons with events; `starts`: the position of their first one.
    """

    order: IntArray
    owners: Values
    counts: Values
    some: Values
    starts: Values

    @classmethod
    def from_owners(cls, owners: Values, persons: int) -> _Grouped:
        order = np.argsort(owners, kind="stable")
        counts = np.bincount(owners, minlength=persons)
        some = np.flatnonzero(counts)
        return cls(order, owners[order], counts, some, (np.cumsum(counts) - counts)[some])

    def find_extreme(self, when: _Ranks, column: _Ranks, *, last: bool) -> Values:
        """Return the rank of each person's first or last value, -1 without events."""
        extreme = np.full(len(self.counts), -1, dtype=np.int64)
        if not len(self.some):
            return extreme
        size, moment, value = column.missing + 1, when.ranks[self.order], column.ranks[self.order]
        if last:  # missing comes first, so that it is taken only if there is nothing else
            moment = np.where(moment == when.missing, 0, moment + 1)
            value = np.where(value == column.missing, 0, value + 1)
            extreme[self.some] = np.maximum.reduceat(moment * size + value, self.starts) % size - 1
        else:
            extreme[self.some] = np.minimum.reduceat(moment * size + value, self.starts) % size
        return extreme

    def find_most_frequent(self, column: _Ranks) -> Values:
        """Return the rank of each person's most frequent value, -1 without one."""
        most_frequent = np.full(len(self.counts), -1, dtype=np.int64)
        ranks, size = column.ranks[self.order], column.missing
        present = ranks < size
        keys = self.owners[present] * size + ranks[present]
        if not len(keys):
            return most_frequent
        keys.sort()
        first = _starts_of_runs(keys)
        times = np.diff(np.append(first, len(keys)))
        owners, ranks = np.divmod(keys[first], size)
        starts = _starts_of_runs(owners)
        best = np.maximum.reduceat(times * size + (size - 1 - ranks), starts)
        most_frequent[owners[starts]] = size - 1 - best % size
        return most_frequent

    def list_all(self, columns: Sequence[_Ranks], length: int | None) -> Any:
        """Return each person's events as one text, ordered by their own texts."""
        numbers = np.zeros(len(self.order), dtype=np.int64)
        for column in columns:  # renumbered for each column, so that none overflows
            numbers = pd.factorize(numbers * (column.missing + 1) + column.ranks)[0].astype(np.int64)
        first = np.empty(int(numbers.max(initial=-1)) + 1, dtype=np.int64)
        first[numbers[::-1]] = np.arange(len(numbers))[::-1]  # an event with each number
        texts = [column.texts.take(pa.array(column.ranks[first])) for column in columns]
        events = (
            texts[0]
            if len(texts) == 1
            else pc.binary_join_element_wise("[", pc.binary_join_element_wise(*texts, ", "), "]", "")
        )
        order = pc.array_sort_indices(events).to_numpy()
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        keys = self.owners * max(1, len(order)) + rank[numbers[self.order]]
        keys.sort()
        counts = self.counts
        if length is not None:
            start = np.repeat(self.starts, counts[self.some])
            keys = keys[np.arange(len(keys)) - start < length]
            counts = np.minimum(counts, length)
        listed = events.take(pa.array(order)).take(pa.array(keys % max(1, len(order))))
        offsets = pa.array(np.append(0, np.cumsum(counts)), pa.int64())
        lists = pa.LargeListArray.from_arrays(offsets, listed.cast(pa.large_string()))
        comma, left, right, nothing = (pa.scalar(text, pa.large_string()) for text in (", ", "[", "]", ""))
        joined = pc.binary_join(lists, comma)
        written = pc.binary_join_element_wise(left, joined, right, nothing).dictionary_encode()
        return pd.Categorical.from_codes(written.indices.to_numpy(), _to_index(written.dictionary))


def _starts_of_runs(ascending: Values) -> Values:
    return np.flatnonzero(np.append(True, ascending[1:] != ascending[:-1]))
