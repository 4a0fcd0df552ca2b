"""Check GT and its syntheses as input, the weights of a survey included, then code them column by column."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.runtime.machine import run_in_threads, threads_for
from disclosure_pipeline.tables.coding import code_and_mark, code_column
from disclosure_pipeline.tables.frames import as_frames, check_not_empty, holds_values, stack_columns
from disclosure_pipeline.tables.grouping import Grouping
from disclosure_pipeline.tables.levels import CodedColumn, IntArray, Kind, StoredColumn, common_kind
from disclosure_pipeline.tables.messages import (
    GROUND_TRUTH,
    describe_argument,
    listed,
    names_in_all,
    suggest_names,
    table_names,
)


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
        """Code a column over the levels of all tables, grouped where that was requested."""
        return self.grouping.apply(code_column(column, [frame[column] for frame in self.frames], self.names))

    def code(self, columns: Sequence[Any]) -> list[CodedColumn]:
        """Code several columns, on threads."""
        records = sum(len(frame) for frame in self.frames)
        return run_in_threads([partial(self.coded, column) for column in columns], threads_for(records))


def check_tables(
    ground_truth: pd.DataFrame,
    synthetic: pd.DataFrame | Sequence[pd.DataFrame],
    keys: Sequence[Any],
    targets: Any,
    grouping: Grouping,
) -> Tables:
    """Refuse what cannot be measured, before any work starts. InputError says what, where and what to do."""
    frames = as_frames(ground_truth, synthetic)
    key_names, target_names = check_names([list(frame.columns) for frame in frames], keys, targets, grouping)
    for column in (*key_names, *target_names):
        check_values(column, [frame[column] for frame in frames], grouping, table_names(len(frames)))
    return Tables(frames, key_names, target_names, grouping)


def check_names(
    columns: Sequence[Sequence[Any]], keys: Sequence[Any], targets: Any, grouping: Grouping
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the keys and targets of tables (GT first) with these columns. InputError as `check_tables`."""
    key_names = _check_keys(keys)
    shared = names_in_all(columns)
    target_names = _check_targets(targets, key_names, shared)
    for name in (*key_names, *target_names):
        _check_present(name, columns)
    _check_grouping(grouping, key_names, target_names, columns)
    return key_names, target_names


def require_unit(unit: Any, columns: Sequence[Sequence[Any]]) -> None:
    """Raise InputError unless the unit is a column of GT, the first table, and of no other one."""
    in_GT, *in_SD = columns
    if unit not in in_GT:
        raise InputError(
            f"The unit {describe_argument(unit)} is no column of {GROUND_TRUTH}. {suggest_names(unit, in_GT)}"
        )
    for name, of_table in zip(table_names(len(columns))[1:], in_SD, strict=True):
        if unit in of_table:
            raise InputError(
                f"The unit {describe_argument(unit)} is a column of {name}, too: it says whose record one of "
                f"{GROUND_TRUTH} is, and is never synthesized. Take it out of there."
            )


def lacks_owners(unit: Any) -> InputError:
    """Return the error where GT's records do not all say whose they are."""
    return InputError(
        f"The unit {describe_argument(unit)} has missing values in {GROUND_TRUTH}: give every record an "
        "owner, be it one of its own."
    )


def number_owners(frames: Sequence[pd.DataFrame], unit: Any) -> IntArray:
    """Return a number for the owner of each GT record. InputError where not every one has one."""
    require_unit(unit, [list(frame.columns) for frame in frames])
    owners: IntArray = pd.factorize(frames[0][unit])[0]
    if (owners < 0).any():
        raise lacks_owners(unit)
    return owners


def check_values(
    column: Any, series: Sequence[pd.Series[Any]], grouping: Grouping, names: Sequence[str]
) -> Kind:
    """Return the kind of a column in all tables. InputError if it has several or cannot be grouped as asked.

    Each series holds the records of a table, or each of their values; `names` are the tables'.
    """
    kind = common_kind(column, series, names)
    if grouping.grouped(column) and kind not in {Kind.NUMBER, Kind.EMPTY}:
        raise InputError(f"Column {column!r} holds {kind.value}: only numbers can be grouped.")
    if column in grouping.within and kind not in {Kind.NUMBER, Kind.EMPTY}:
        raise InputError(f"Column {column!r} holds {kind.value}: only numbers have a band.")
    _check_finite(column, grouping, series, names)
    return kind


def _check_keys(keys: Sequence[Any]) -> tuple[Any, ...]:
    if isinstance(keys, str):
        raise InputError(f"keys must be a list of column names, not {keys!r}: write [{keys!r}].")
    if not isinstance(keys, Iterable) or holds_values(keys):
        raise InputError(f"keys must be a list of column names, not {describe_argument(keys)}.")
    names = tuple(keys)
    if not names:
        raise InputError("keys is empty: name at least one column that an intruder may know.")
    repeated = [name for i, name in enumerate(names) if name in names[:i]]
    if repeated:
        raise InputError(f"keys names {listed(repeated)} more than once.")
    return names


def _check_targets(targets: Any, keys: tuple[Any, ...], shared: list[Any]) -> tuple[Any, ...]:
    if targets is None:
        names = tuple(column for column in shared if column not in keys)
        if not names:
            raise InputError("No column but the keys is in all tables: there is no target to measure.")
        return names
    if holds_values(targets):
        raise InputError(f"targets must be column names, not {describe_argument(targets)}.")
    names = (targets,) if isinstance(targets, str) or not isinstance(targets, Iterable) else tuple(targets)
    repeated = [name for i, name in enumerate(names) if name in names[:i]]
    if repeated:
        raise InputError(f"targets names {listed(repeated)} more than once.")
    keys_as_targets = [name for name in names if name in keys]
    if keys_as_targets:
        raise InputError(
            f"{listed(keys_as_targets)} cannot be a key and a target at once: whoever knows it learns "
            "nothing."
        )
    return names


def _check_present(column: Any, columns: Sequence[Sequence[Any]]) -> None:
    for of_table, name in zip(columns, table_names(len(columns)), strict=True):
        if not isinstance(column, Hashable) or column not in of_table:
            raise InputError(f"Column {column!r} is not in {name}. {suggest_names(column, of_table)}")


def _check_grouping(
    grouping: Grouping, keys: tuple[Any, ...], targets: tuple[Any, ...], known: Sequence[Sequence[Any]]
) -> None:
    for argument, columns in (("groups", grouping.groups), ("edges", grouping.explicit)):
        for column in columns:
            _check_present(column, known)
            if column not in keys and column not in targets:
                raise InputError(f"{argument} names column {column!r}, which is neither a key nor a target.")
    for column in (*grouping.special_values, *grouping.within):
        _check_present(column, known)
    for column in grouping.within:
        if column not in targets:
            raise InputError(f"within names column {column!r}, which is no target.")


def _check_finite(
    column: Any, grouping: Grouping, tables: Sequence[pd.Series[Any]], names: Sequence[str]
) -> None:
    """Refuse infinite values, which have no quantile and no width; as special values they are levels."""
    if column not in grouping.groups:
        return
    special = {float(value) for value in grouping.special_values.get(column, ())}
    allowed = special & {math.inf, -math.inf}
    for series, name in zip(tables, names, strict=True):
        levels = series.cat.categories if isinstance(series.dtype, pd.CategoricalDtype) else series
        numbers = pd.to_numeric(pd.Series(levels).dropna(), errors="coerce").to_numpy(np.float64, na_value=0)
        infinite = numbers[np.isinf(numbers)]
        if not set(np.unique(infinite).tolist()) <= allowed:
            raise InputError(
                f"Column {column!r} of {name} holds infinite values and cannot be grouped: make them special "
                "values."
            )


@dataclass(frozen=True)
class Distinct:
    """The values of one column of one table, and the number of records with each.

    `values` may repeat, as where one is an alias of another, and may hold a missing one. `counts` has an
    entry for each, and last the number of records without a value.
    """

    values: pd.Series[Any]
    counts: IntArray

    @property
    def records(self) -> int:
        """The number of records of the table."""
        return int(self.counts.sum())

    def take(self, numbers: IntArray) -> Any:
        """Return the values at these positions as an array, missing for -1."""
        with_missing = pd.concat([self.values, pd.Series([None], dtype=self.values.dtype)], ignore_index=True)
        return with_missing.array.take(numbers)


def stack_distinct(tables: Sequence[Distinct]) -> Distinct:
    """Stack the values of a column of several tables, one table after the other."""
    counts = [table.counts[:-1] for table in tables]
    missing = sum(int(table.counts[-1]) for table in tables)
    values = stack_columns([table.values for table in tables])
    return Distinct(values, np.append(np.concatenate(counts), missing))


def code_distinct(column: Any, tables: Sequence[Distinct], names: Sequence[str]) -> CodedColumn:
    """Code a column of GT (first) and of the syntheses as `code_column` does, from its values alone.

    `codes[i]` are the codes of the values of table i instead of its records, and last that of missing;
    `counts` are the numbers of records. `names` are the tables' in messages.
    """
    values = [table.values for table in tables]
    coded, differs = code_and_mark(column, common_kind(column, values, names), values)
    weighted = [
        _weight_by_counts(codes, table.counts, coded.size)
        for codes, table in zip(coded.codes, tables, strict=True)
    ]
    if differs is not None:
        rounded = [
            stored.look_up(by_position) for stored, by_position in zip(coded.tables, differs, strict=True)
        ]
        weighted = [
            replace(stored, rounded=int(table.counts[:-1][differing].sum()))
            for stored, table, differing in zip(weighted, tables, rounded, strict=True)
        ]
    return replace(coded, tables=tuple(weighted))


def code_distinct_columns(
    distinct: Mapping[Any, Sequence[Distinct]], grouping: Grouping, names: Sequence[str]
) -> list[CodedColumn]:
    """Code columns over their values, not grouped yet. InputError as `check_tables`.

    `names` are the tables' in messages.
    """
    if not distinct:
        return []
    check_not_empty([table.records for table in next(iter(distinct.values()))], names)
    for name, tables in distinct.items():
        check_values(name, [table.values for table in tables], grouping, names)
    return [code_distinct(name, tables, names) for name, tables in distinct.items()]


def _weight_by_counts(codes: IntArray, counts: IntArray, size: int) -> StoredColumn:
    codes_and_missing = np.append(codes, size - 1).astype(np.int64)
    records = np.zeros(size, dtype=np.int64)
    np.add.at(records, codes_and_missing, counts)
    return StoredColumn(codes_and_missing, 0, np.arange(size), records)


WEIGHTS = "weights must say of each record how many people it stands for"


def require_weights(weights: Any, in_GT: Sequence[Any], measured: Collection[Any], unit: Any) -> None:
    """Raise InputError unless the weights are a column of GT that is neither measured nor the unit."""
    if weights not in in_GT:
        raise InputError(
            f"The weights {describe_argument(weights)} are no column of {GROUND_TRUTH}. "
            f"{suggest_names(weights, in_GT)}"
        )
    if weights in measured or weights == unit:
        role = "unit" if weights == unit else "key or target"
        raise InputError(
            f"The weights {describe_argument(weights)} are a {role}, too: they say how many people a record "
            "stands for, and nothing else."
        )


def require_sampling_fraction(fraction: Any) -> float:
    """Return the fraction as a float. InputError unless it is above 0 and at most 1."""
    is_number = isinstance(fraction, (int, float)) and not isinstance(fraction, bool)
    if not is_number or not 0 < fraction <= 1:
        raise InputError(
            f"sampling_fraction must be a share above 0 and at most 1, not {describe_argument(fraction)}."
        )
    return float(fraction)


def find_weight_problem(column: CodedColumn) -> str:
    """Return what is wrong with the values of a column of weights in GT; empty where they can be used."""
    counts = column.counts[0]
    if counts[column.missing]:
        return "lacks a value in some records"
    if column.kind is not Kind.NUMBER:
        return f"holds {column.kind.value}, not numbers"
    occurring = counts[:-1] > 0
    values = level_weights(column)[:-1][occurring]
    if not np.isfinite(values).all():
        return "holds infinite values"
    if (values <= 0).any():
        return "holds values of 0 or below"
    if math.fsum((values * counts[:-1][occurring]).tolist()) < counts.sum():
        return "is below 1 on average: records would stand for fewer people than there are"
    return ""


def refuse_weights(column: CodedColumn) -> None:
    """Raise InputError where the weights of GT cannot be used; no value of them is told."""
    problem = find_weight_problem(column)
    if problem:
        raise InputError(f"Column {describe_argument(column.name)} of {GROUND_TRUTH} {problem}: {WEIGHTS}.")


def level_weights(column: CodedColumn) -> npt.NDArray[np.float64]:
    """Return the weight of each code; that of missing is not a number."""
    levels = [math.nan if level is None else float(level) for level in column.levels]
    return np.array([*levels, math.nan])
