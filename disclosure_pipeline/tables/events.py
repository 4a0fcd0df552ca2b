"""Persons and their events: two tables joined into one, with a record for each person.

A person's events become a few columns: how many there are, the first and the last value of a column, the most
frequent one, and all of them as a multiset. What stands in them follows from the values alone, in whatever
order the events are:

- An event is before another if its value of the column `order` is smaller. Of events with the same one the
  smallest value is first, and the largest last.
- Of several values that are most frequent it is the smallest one.
- A missing value, and an event without a value in `order`, count only where a person has nothing else.
- Numbers are smaller by size, times by moment, texts by their letters' numbers in Unicode.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypedDict, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.tables.contract import MULTISET, PREFIX, WITHOUT_OWNER
from disclosure_pipeline.tables.dictionary import Column, ContractError, Dictionary, Violation
from disclosure_pipeline.tables.encoding import encode
from disclosure_pipeline.tables.levels import IntArray, level_label
from disclosure_pipeline.tables.messages import describe_argument, listed
from disclosure_pipeline.tables.record_hashes import without_noise
from disclosure_pipeline.tables.sources import Syntheses, TableSource

Summary = Literal["first", "last", "most_frequent"]
SUMMARIES: tuple[Summary, ...] = get_args(Summary)

COUNT = f"{PREFIX}count"

PERSON_TWICE = "names a person in several records: every person has one"
OF_NOBODY = "names somebody whom the table of persons lacks"

Values = npt.NDArray[Any]


def name_summary(column: str, summary: Summary) -> str:
    """Return the name of the column that a summary of an events' column becomes.

    >>> name_summary("diagnosis", "first")
    'events.diagnosis.first'
    """
    return f"{PREFIX}{column}.{summary}"


def describe_summaries(
    columns: Dictionary, summaries: Mapping[str, Sequence[Summary]], multiset: Sequence[str]
) -> dict[str, Column]:
    """Return the data dictionary of what `Joining` adds to the persons."""
    described = {COUNT: Column(type="integer", published=True, description="Number of events")}
    for name, of_column in summaries.items():
        for summary in of_column:
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

    order: str
    summaries: Mapping[str, Sequence[Summary]]
    multiset: Sequence[str]
    length: int


@dataclass(frozen=True)
class Joining:
    """The columns, named `events.…`, by which each person's events are joined to the person's record.

    `unit`: the column of both tables that says whose a record is. `order`: the column of the events, such as
    a date, that says which is first and which last. `summaries`: of a column of the events, which of a
    person's values are added. `multiset`: columns of which all values are added, as one text in a fixed
    order, of at most `length` events.

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
        """Raise InputError unless this fits the columns of two tables of these `names`, and itself."""
        problem = self.find_problem(events.columns, names[1])
        for name, table in zip(names, (persons, events), strict=True):
            if self.unit not in table.columns:
                problem = f"unit names {describe_argument(self.unit)}, which is no column of {name}"
        taken = [name for name in map(str, persons.columns) if name.startswith(PREFIX)]
        if taken:
            problem = f"Column {taken[0]!r} of {names[0]} begins with {PREFIX!r}: rename it"
        if problem:
            raise InputError(f"{problem}.")

    def find_problem(self, columns: Collection[str], table: str) -> str:
        """Return what contradicts itself, or the `columns` of a `table` of events; empty if nothing does."""
        order = [] if self.order is None else [self.order]
        named = {"order": order, "summaries": self.summaries, "multiset": self.multiset}
        for argument, names in named.items():
            for name in names:
                if name not in columns:
                    shown = describe_argument(name)
                    return f"{argument} names {shown}, no column of {table}, which have {listed(columns)}"
        for name, of_column in self.summaries.items():
            if isinstance(of_column, str) or not of_column or not set(of_column) <= set(SUMMARIES):
                return f"summaries of {name!r} must be some of {listed(SUMMARIES)}"
            if order == [] and {"first", "last"} & set(of_column):
                return f"summaries asks for the first or last {name!r}: name the column that tells, as order"
            if len(set(of_column)) < len(of_column):
                return f"summaries of {name!r} names one more than once"
        if len(set(self.multiset)) < len(self.multiset):
            return "multiset names a column more than once"
        if self.length is not None and (not self.multiset or self.length < 1):
            return "length is of the multiset, and at least 1"
        return ""

    def join(
        self, persons: pd.DataFrame, events: pd.DataFrame, names: tuple[str, str]
    ) -> tuple[pd.DataFrame, IntArray]:
        """Return the persons with what their events add, and of each event the position of its person.

        `names`: of the two tables in messages. ContractError where an event is of nobody, or a person is in
        several records.
        """
        owners = _find_owners(persons[self.unit], events[self.unit], self.unit, names)
        grouped = _Grouped.of(owners, len(persons))
        joined = persons.assign(**{COUNT: grouped.counts})
        ordered = [] if self.order is None else [self.order]
        named = dict.fromkeys([*self.summaries, *self.multiset, *ordered])
        ranks = {name: _Ranks.of(events[name]) for name in named}
        for name, of_column in self.summaries.items():
            for summary in of_column:
                if summary == "most_frequent":
                    found = grouped.find_most_frequent(ranks[name])
                else:
                    when = ranks[self.order or ""]
                    found = grouped.find_extreme(when, ranks[name], last=summary == "last")
                joined[name_summary(name, summary)] = ranks[name].values_of(found)
        if self.multiset:
            joined[MULTISET] = grouped.list_all([ranks[name] for name in self.multiset], self.length)
        return joined, owners


def _find_owners(
    of_persons: pd.Series[Any], of_events: pd.Series[Any], unit: str, names: tuple[str, str]
) -> IntArray:
    """Return of each event the position of its person; ContractError where that cannot be told."""
    persons, events = encode(of_persons), encode(of_events)
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


@dataclass(frozen=True)
class _Ranks:
    """A column of the events: the `ranks` of their values by size, and the distinct values in that order.

    A missing value has the rank after the last. `places`: where each value stands among the column's levels,
    which is their order if they are `ordered`.
    """

    ranks: Values
    values: Any
    places: IntArray
    ordered: bool

    @classmethod
    def of(cls, column: pd.Series[Any]) -> _Ranks:
        encoded = encode(column)
        distinct = encoded.levels.dictionary_encode()
        values = distinct.dictionary
        order = pc.array_sort_indices(values).to_numpy() if len(values) else np.empty(0, dtype=np.int64)
        rank = np.empty(len(values) + 1, dtype=np.int64)
        rank[order], rank[-1] = np.arange(len(values)), len(values)
        of_level = np.append(
            distinct.indices.fill_null(len(values)).to_numpy(zero_copy_only=False), len(values)
        )
        ordered = isinstance(column.dtype, pd.CategoricalDtype) and bool(column.dtype.ordered)
        return cls(rank[of_level[encoded.codes]], values.take(pa.array(order)), order, ordered)

    @property
    def missing(self) -> int:
        return len(self.values)

    def values_of(self, ranks: Values) -> Any:
        """Return a column with the values of some ranks; that of missing, and -1, are missing."""
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
        """The text of each rank in a multiset, as JSON writes it; numbers without rounding noise."""
        values, kind = self.values, self.values.type
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
    """Events by person: `order` of the events so that those of a person stand together; `counts` of each.

    `owners` are in that order. `some`: the persons with an event, and where their first one stands.
    """

    order: IntArray
    owners: Values
    counts: Values
    some: Values
    starts: Values

    @classmethod
    def of(cls, owners: Values, persons: int) -> _Grouped:
        order = np.argsort(owners, kind="stable")
        counts = np.bincount(owners, minlength=persons)
        some = np.flatnonzero(counts)
        return cls(order, owners[order], counts, some, (np.cumsum(counts) - counts)[some])

    def find_extreme(self, when: _Ranks, column: _Ranks, *, last: bool) -> Values:
        """Return the rank of each person's first value, or of the last one."""
        found = np.full(len(self.counts), -1, dtype=np.int64)
        if not len(self.some):
            return found
        size, (moment, value) = column.missing + 1, (of.ranks[self.order] for of in (when, column))
        if last:  # what is missing is not after all others, but before them
            moment = np.where(moment == when.missing, 0, moment + 1)
            value = np.where(value == column.missing, 0, value + 1)
            found[self.some] = np.maximum.reduceat(moment * size + value, self.starts) % size - 1
        else:
            found[self.some] = np.minimum.reduceat(moment * size + value, self.starts) % size
        return found

    def find_most_frequent(self, column: _Ranks) -> Values:
        """Return the rank of each person's most frequent value."""
        found = np.full(len(self.counts), -1, dtype=np.int64)
        ranks, size = column.ranks[self.order], column.missing
        there = ranks < size
        keys = self.owners[there] * size + ranks[there]
        if not len(keys):
            return found
        keys.sort()
        first = _starts_of_runs(keys)
        times = np.diff(np.append(first, len(keys)))
        owners, ranks = np.divmod(keys[first], size)
        starts = _starts_of_runs(owners)
        best = np.maximum.reduceat(times * size + (size - 1 - ranks), starts)
        found[owners[starts]] = size - 1 - best % size
        return found

    def list_all(self, columns: Sequence[_Ranks], length: int | None) -> Any:
        """Return each person's events as one text, in order of their own."""
        numbers = np.zeros(len(self.order), dtype=np.int64)
        for column in columns:  # as small as they can be before the next column, so that none overflows
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
