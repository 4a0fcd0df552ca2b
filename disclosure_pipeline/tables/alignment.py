"""GT and its syntheses side by side: checked as input, then coded column by column."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.runtime.threads import run_in_threads, threads_for
from disclosure_pipeline.tables.coding import code_column
from disclosure_pipeline.tables.frames import as_frames, holds_values
from disclosure_pipeline.tables.grouping import Grouping
from disclosure_pipeline.tables.kinds import Kind, common_kind
from disclosure_pipeline.tables.levels import CodedColumn
from disclosure_pipeline.tables.messages import describe_argument, listed, suggest_names, table_names
from disclosure_pipeline.tables.shared_names import names_in_all


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
        """A column as integer codes over the levels of all tables, grouped where that was requested."""
        return self.grouping.apply(code_column(column, [frame[column] for frame in self.frames], self.names))

    def code(self, columns: Sequence[Any]) -> list[CodedColumn]:
        """Several columns coded, on threads."""
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
    """The keys and targets of tables (GT first) with these columns. InputError as `check_tables`."""
    key_names = _check_keys(keys)
    shared = names_in_all(columns)
    target_names = _check_targets(targets, key_names, shared)
    for name in (*key_names, *target_names):
        _check_present(name, columns)
    _check_grouping(grouping, key_names, target_names, columns)
    return key_names, target_names


def check_values(
    column: Any, series: Sequence[pd.Series[Any]], grouping: Grouping, names: Sequence[str]
) -> Kind:
    """The one kind that a column is of in all tables, if it can be grouped where that is requested.

    Each series holds the records of a table, or each of their values; `names` are the tables'. InputError
    otherwise.
    """
    kind = common_kind(column, series, names)
    if grouping.grouped(column) and kind not in {Kind.NUMBER, Kind.EMPTY}:
        raise InputError(f"Column {column!r} holds {kind.value}: only numbers can be grouped.")
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
    for column in grouping.special_values:
        _check_present(column, known)


def _check_finite(
    column: Any, grouping: Grouping, tables: Sequence[pd.Series[Any]], names: Sequence[str]
) -> None:
    """Infinite values have no quantile and no width; as special values they are levels of their own."""
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
