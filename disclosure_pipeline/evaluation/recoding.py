"""The recoding of one column in GT and in every synthesis; missing values stay as they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.tables.alignment import Tables
from disclosure_pipeline.tables.coding import code_column
from disclosure_pipeline.tables.kinds import Kind
from disclosure_pipeline.tables.levels import CodedColumn
from disclosure_pipeline.tables.messages import describe_argument, suggest_names


def text_column(tables: Tables, column: Any) -> CodedColumn:
    """The column, coded over all tables. InputError where it does not hold text."""
    coded = _code(tables, column)
    if coded.kind is not Kind.TEXT:
        raise InputError(f"Column {column!r} holds {coded.kind.value}: only levels of text can be merged.")
    return coded


def recode_texts(tables: Tables, column: Any, into: Mapping[str, str]) -> tuple[pd.DataFrame, ...]:
    """Every text that `into` names replaced in each table; the others stay."""
    frames = []
    for frame in tables.frames:
        texts = frame[column]
        new = texts.astype(object).map(lambda level: into.get(level, level), na_action="ignore")
        is_category = isinstance(texts.dtype, pd.CategoricalDtype)
        frames.append(_with_column(frame, column, new.astype("category" if is_category else texts.dtype)))
    return tuple(frames)


def recode_numbers(tables: Tables, column: Any, recode: Callable[[Any], Any]) -> tuple[pd.DataFrame, ...]:
    """Every number recoded but the special values; whole numbers stay whole where they can."""
    coded = _code(tables, column)
    if coded.kind is Kind.EMPTY:
        return tables.frames
    if coded.kind is not Kind.NUMBER:
        raise InputError(f"Column {column!r} holds {coded.kind.value}: only numbers can be recoded so.")
    special = [float(value) for value in tables.grouping.special_values.get(column, ())]
    frames = []
    for frame in tables.frames:
        numbers = pd.to_numeric(frame[column].astype(object)).to_numpy(np.float64, na_value=np.nan)
        ordinary = ~np.isnan(numbers) & ~np.isin(numbers, special)
        new = numbers.copy()
        new[ordinary] = recode(numbers[ordinary])
        if (new[ordinary] == numbers[ordinary]).all():
            frames.append(frame)
            continue
        recoded = pd.Series(new, index=frame.index)
        whole = (new[~np.isnan(new)] % 1 == 0).all()
        if whole and _holds_integers(frame[column]):
            recoded = recoded.astype(frame[column].dtype)
        frames.append(_with_column(frame, column, recoded))
    return tuple(frames)


def require_number(argument: str, value: Any) -> float:
    """The value as a float. InputError, with the name of the argument, unless it is a finite number."""
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise InputError(f"{argument} of a remedy must be a finite number, not {describe_argument(value)}.")
    return float(value)


def _code(tables: Tables, column: Any) -> CodedColumn:
    for frame, name in zip(tables.frames, tables.names, strict=True):
        if column not in frame.columns:
            raise InputError(
                f"Column {describe_argument(column)} of a remedy is not in {name}. "
                f"{suggest_names(column, list(frame.columns))}"
            )
    return code_column(column, [frame[column] for frame in tables.frames], tables.names)


def _with_column(frame: pd.DataFrame, column: Any, values: pd.Series[Any]) -> pd.DataFrame:
    changed = frame.copy(deep=False)
    changed[column] = values
    return changed


def _holds_integers(series: pd.Series[Any]) -> bool:
    return bool(pd.api.types.is_integer_dtype(series.dtype))
