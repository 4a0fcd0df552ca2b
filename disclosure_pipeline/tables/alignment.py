"""GT and its syntheses side by side: checked as input, then coded column by column."""

from __future__ import annotations

import difflib
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.parallel import in_threads, threads_for
from disclosure_pipeline.tables.grouping import Edges, Floats, explicit_edges, group, interior_edges
from disclosure_pipeline.tables.levels import GROUND_TRUTH, CodedColumn, Kind, code_column, common_kind

_FEWEST_GROUPS = 2
_WITH_ONE_SYNTHESIS = 2
# What holds values, and is no list of names.
COLUMNS = (pd.Series, pd.DataFrame, np.ndarray)
_EDGE_RULES = ("pooled", "ground_truth", "equal_width")


@dataclass(frozen=True)
class Grouping:
    """How numeric columns are grouped: see `disclosure()` for the meaning of the three."""

    groups: Mapping[Any, int]
    special_values: Mapping[Any, Sequence[float]]
    edges: Edges

    def grouped(self, column: Any) -> bool:
        """Whether the column is asked to be grouped at all."""
        return column in self.groups or (isinstance(self.edges, Mapping) and column in self.edges)

    def apply(self, column: CodedColumn) -> CodedColumn:
        """The column, grouped if that was asked."""
        if not self.grouped(column.name):
            return column
        return group(column, self.edges_of(column), self.special_values.get(column.name, ()))

    def edges_of(self, column: CodedColumn) -> Floats:
        """The interior edges of a column that is grouped."""
        rule = self.edges
        if isinstance(rule, Mapping):
            if column.name in rule:
                return explicit_edges(column.name, rule[column.name])
            rule = "pooled"
        special = self.special_values.get(column.name, ())
        return interior_edges(column, self.groups[column.name], special, rule)


@dataclass(frozen=True)
class Tables:
    """GT (first) and its syntheses, checked: every key and target is there, and of one kind in all."""

    frames: tuple[pd.DataFrame, ...]
    keys: tuple[Any, ...]
    targets: tuple[Any, ...]
    grouping: Grouping

    @property
    def names(self) -> tuple[str, ...]:
        """The tables' names in messages."""
        return table_names(len(self.frames))

    def coded(self, column: Any) -> CodedColumn:
        """A column as integer codes over the levels of all tables, grouped if that was asked."""
        return self.grouping.apply(code_column(column, [frame[column] for frame in self.frames], self.names))

    def code(self, columns: Sequence[Any]) -> list[CodedColumn]:
        """Several columns coded, on threads."""
        records = sum(len(frame) for frame in self.frames)
        return in_threads([partial(self.coded, column) for column in columns], threads_for(records))


def table_names(tables: int) -> tuple[str, ...]:
    """What messages call the tables: GT, then "the synthetic table" or "synthetic table 1", 2 and so on."""
    if tables == _WITH_ONE_SYNTHESIS:
        return (GROUND_TRUTH, "the synthetic table")
    return (GROUND_TRUTH, *(f"synthetic table {i}" for i in range(1, tables)))


def check_tables(
    ground_truth: pd.DataFrame,
    synthetic: pd.DataFrame | Sequence[pd.DataFrame],
    keys: Sequence[Any],
    targets: Any,
    grouping: Grouping,
) -> Tables:
    """Refuse what cannot be measured, before any work starts. InputError says what, where and what to do."""
    frames = _check_frames(ground_truth, synthetic)
    key_names, target_names = check_names([list(frame.columns) for frame in frames], keys, targets, grouping)
    for column in (*key_names, *target_names):
        check_values(column, [frame[column] for frame in frames], grouping)
    return Tables(frames, key_names, target_names, grouping)


def check_names(
    columns: Sequence[Sequence[Any]], keys: Sequence[Any], targets: Any, grouping: Grouping
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The keys and targets of tables (GT first) with these columns. InputError as `check_tables`."""
    key_names = _check_keys(keys)
    shared = [name for name in columns[0] if all(name in of_table for of_table in columns)]
    target_names = _check_targets(targets, key_names, shared)
    for name in (*key_names, *target_names):
        _check_present(name, columns)
    _check_grouping(grouping, key_names, target_names, columns)
    return key_names, target_names


def check_values(column: Any, series: Sequence[pd.Series[Any]], grouping: Grouping) -> None:
    """That a column is of one kind in all tables, and can be grouped if that is asked. InputError if not.

    Each series holds the records of a table, or each of their values.
    """
    kind = common_kind(column, series, table_names(len(series)))
    if grouping.grouped(column) and kind not in {Kind.NUMBER, Kind.EMPTY}:
        raise InputError(f"Column {column!r} holds {kind.value}: only numbers can be grouped.")
    _check_finite(column, grouping, series)


def _check_frames(
    ground_truth: pd.DataFrame, synthetic: pd.DataFrame | Sequence[pd.DataFrame]
) -> tuple[pd.DataFrame, ...]:
    syntheses = [synthetic] if isinstance(synthetic, pd.DataFrame) else synthetic
    if not isinstance(syntheses, Sequence) or isinstance(syntheses, str):
        raise InputError(
            f"The synthetic data must be a DataFrame or a sequence of them, not {type(synthetic).__name__}."
        )
    if not len(syntheses):
        raise InputError("The sequence of synthetic tables is empty: give at least one.")
    frames = (ground_truth, *syntheses)
    for frame, name in zip(frames, table_names(len(frames)), strict=True):
        if not isinstance(frame, pd.DataFrame):
            raise InputError(f"{_capital(name)} must be a pandas DataFrame, not {type(frame).__name__}.")
        if frame.columns.nlevels > 1:
            raise InputError(f"{_capital(name)} has column names of several levels: give it plain ones.")
        twice = frame.columns[frame.columns.duplicated()].unique().tolist()
        if twice:
            raise InputError(
                f"{_capital(name)} has several columns named {_listed(twice)}: every name must be unique."
            )
    check_not_empty([len(frame) for frame in frames])
    return frames


def check_not_empty(records: Sequence[int]) -> None:
    """InputError where a table has no records."""
    for number, name in zip(records, table_names(len(records)), strict=True):
        if not number:
            raise InputError(f"{_capital(name)} has no records: there is nothing to measure.")


def _check_keys(keys: Sequence[Any]) -> tuple[Any, ...]:
    if isinstance(keys, str):
        raise InputError(f"keys must be a list of column names, not {keys!r}: write [{keys!r}].")
    if not isinstance(keys, Iterable) or isinstance(keys, COLUMNS):
        raise InputError(f"keys must be a list of column names, not {told(keys)}.")
    names = tuple(keys)
    if not names:
        raise InputError("keys is empty: name at least one column that an intruder may know.")
    twice = [name for i, name in enumerate(names) if name in names[:i]]
    if twice:
        raise InputError(f"keys names {_listed(twice)} more than once.")
    return names


def _check_targets(targets: Any, keys: tuple[Any, ...], shared: list[Any]) -> tuple[Any, ...]:
    if targets is None:
        names = tuple(column for column in shared if column not in keys)
        if not names:
            raise InputError("No column but the keys is in all tables: there is no target to measure.")
        return names
    if isinstance(targets, COLUMNS):
        raise InputError(f"targets must be column names, not {told(targets)}.")
    names = (targets,) if isinstance(targets, str) or not isinstance(targets, Iterable) else tuple(targets)
    twice = [name for i, name in enumerate(names) if name in names[:i]]
    if twice:
        raise InputError(f"targets names {_listed(twice)} more than once.")
    both = [name for name in names if name in keys]
    if both:
        raise InputError(
            f"{_listed(both)} cannot be a key and a target at once: whoever knows it learns nothing."
        )
    return names


def _check_present(column: Any, columns: Sequence[Sequence[Any]]) -> None:
    for of_table, name in zip(columns, table_names(len(columns)), strict=True):
        if not isinstance(column, Hashable) or column not in of_table:
            raise InputError(f"Column {column!r} is not in {name}. {_did_you_mean(column, of_table)}")


def _check_grouping(
    grouping: Grouping, keys: tuple[Any, ...], targets: tuple[Any, ...], known: Sequence[Sequence[Any]]
) -> None:
    edges = grouping.edges
    if not isinstance(edges, Mapping) and not (isinstance(edges, str) and edges in _EDGE_RULES):
        raise InputError(
            f"edges must be one of {_listed(_EDGE_RULES)} or a mapping from column to edges, "
            f"not {told(edges)}."
        )
    explicit = edges if isinstance(edges, Mapping) else {}
    for what, columns in (("groups", grouping.groups), ("edges", explicit)):
        for column in columns:
            _check_present(column, known)
            if column not in keys and column not in targets:
                raise InputError(f"{what} names column {column!r}, which is neither a key nor a target.")
    for column in grouping.special_values:
        _check_present(column, known)
    for column, groups in grouping.groups.items():
        whole = isinstance(groups, Integral) and not isinstance(groups, bool)
        if not whole or groups < _FEWEST_GROUPS:
            raise InputError(
                f"groups of column {column!r} must be a whole number from 2 on, not {told(groups)}."
            )
        if column in explicit:
            raise InputError(
                f"Column {column!r} is in groups and in edges: give it a number of groups or explicit edges."
            )
    for column in explicit:
        explicit_edges(column, explicit[column])


def _check_finite(column: Any, grouping: Grouping, tables: Sequence[pd.Series[Any]]) -> None:
    """Infinite values have no quantile and no width; as special values they are levels of their own."""
    if column not in grouping.groups:
        return
    special = {float(value) for value in grouping.special_values.get(column, ())}
    allowed = special & {math.inf, -math.inf}
    for series, name in zip(tables, table_names(len(tables)), strict=True):
        levels = series.cat.categories if isinstance(series.dtype, pd.CategoricalDtype) else series
        numbers = pd.to_numeric(pd.Series(levels).dropna(), errors="coerce").to_numpy(np.float64, na_value=0)
        infinite = numbers[np.isinf(numbers)]
        if not set(np.unique(infinite).tolist()) <= allowed:
            raise InputError(
                f"Column {column!r} of {name} holds infinite values and cannot be grouped: make them special "
                "values."
            )


def told(argument: Any) -> str:
    """An argument as a message may show it: anything but text and numbers may hold values of a table."""
    return repr(argument) if isinstance(argument, (str, int, float, Real)) else type(argument).__name__


def _did_you_mean(name: Any, known: Iterable[Any]) -> str:
    columns = [str(column) for column in known]
    close = difflib.get_close_matches(str(name), columns, n=3)
    return f"Did you mean {_listed(close)}?" if close else f"Its columns are {_listed(columns)}."


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(repr(name) for name in names)


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
