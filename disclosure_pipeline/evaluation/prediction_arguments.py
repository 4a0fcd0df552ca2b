"""What `prediction_risk()` refuses before any work starts, and whether it predicts levels or numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pandas as pd

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.evaluation.learning.learners import Task
from disclosure_pipeline.tables.alignment import Tables
from disclosure_pipeline.tables.kinds import Kind
from disclosure_pipeline.tables.levels import CodedColumn

_TASKS = ("classification", "regression")
_FEWEST_FOLDS = 2
_LARGEST_SEED = 2**32 - 1


@dataclass(frozen=True)
class Options:
    """How the targets are predicted, and from when on a record counts: see `prediction_risk()`."""

    folds: int = 5
    tau: float = 0.3
    epsilon: float = 10
    absolute_epsilon: float | None = None
    seed: int = 0

    def check(self) -> None:
        """InputError where one is out of range."""
        if not _is_whole(self.folds) or self.folds < _FEWEST_FOLDS:
            raise InputError(f"folds must be a whole number from 2 on, not {_describe_value(self.folds)}.")
        if not _is_number(self.tau) or not 0 <= self.tau < 1:
            raise InputError(f"tau must be a number from 0 to less than 1, not {_describe_value(self.tau)}.")
        if not _is_positive(self.epsilon):
            raise InputError(
                f"epsilon must be a number above 0 (percent), not {_describe_value(self.epsilon)}."
            )
        if self.absolute_epsilon is not None and not _is_positive(self.absolute_epsilon):
            raise InputError(
                "absolute_epsilon must be a number above 0, in the target's unit, "
                f"not {_describe_value(self.absolute_epsilon)}."
            )
        if not _is_whole(self.seed) or not 0 <= self.seed <= _LARGEST_SEED:
            raise InputError(
                f"seed must be a whole number from 0 to {_LARGEST_SEED}, not {_describe_value(self.seed)}."
            )


def check_task(task: Any) -> None:
    """InputError where there is no such task."""
    if task is not None and not (isinstance(task, str) and task in _TASKS):
        raise InputError(f"task must be 'classification', 'regression' or None, not {_describe_value(task)}.")


def choose_task(column: CodedColumn, tables: Tables, task: Task | None) -> Task:
    """Numbers are numbers, everything else is levels, unless the user says otherwise and it can be done."""
    if column.kind is Kind.EMPTY:
        raise InputError(
            f"Column {column.name!r} holds nothing but missing values: there is nothing to learn."
        )
    if task == "regression" and column.kind is not Kind.NUMBER:
        grouped = tables.grouping.grouped(column.name)
        reason = "is grouped" if grouped else f"holds {column.kind.value}"
        raise InputError(f"task='regression' needs numbers, and the target {column.name!r} {reason}.")
    if task is not None:
        return task
    if column.kind in {Kind.DATE, Kind.ZONED_DATE, Kind.DURATION}:
        raise InputError(
            f"The target {column.name!r} holds {column.kind.value}: turn it into numbers (of days, say) in "
            "all tables, or set task='classification', where each is a level."
        )
    is_numeric = column.kind is Kind.NUMBER and not is_category(column.name, tables)
    return "regression" if is_numeric else "classification"


def is_category(column: Any, tables: Tables) -> bool:
    """Whether some table calls the column a category, whatever its levels are."""
    return any(_has_category_type(frame[column].dtype) for frame in tables.frames)


def _has_category_type(dtype: Any) -> bool:
    if isinstance(dtype, pd.ArrowDtype):
        import pyarrow as pa  # slow, and only frames with Arrow columns need it

        return bool(pa.types.is_dictionary(dtype.pyarrow_dtype))
    return isinstance(dtype, pd.CategoricalDtype)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_positive(value: Any) -> bool:
    return _is_number(value) and 0 < value < math.inf


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _describe_value(value: Any) -> str:
    """A plain value as it is, of anything else its type: it could be a column of GT."""
    return repr(value) if isinstance(value, (int, float, str)) else f"a {type(value).__name__}"
