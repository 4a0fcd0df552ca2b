"""The rows and figures of a table that an expectation is held against, read so that a doubt is an error."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.evaluation.disclosure import disclosure
from disclosure_pipeline.evaluation.result import Disclosure


class NoFigureError(Exception):
    """Why a table has no figure: names that the expectation was given, and counts; no cell of the table."""


def select_rows(table: pd.DataFrame, where: Mapping[str, str | None], syntheses: int) -> pd.DataFrame:
    """The rows where each column of `where` has its value (None: missing), exactly one for each synthesis.

    NoFigureError where there are others.
    """
    if table.empty:
        raise NoFigureError("the table is empty")
    selected = np.ones(len(table), dtype=bool)
    for name, value in where.items():
        column = _read_column(table, name)
        matches = column.isna() if value is None else column == value
        selected &= matches.to_numpy(dtype=bool, na_value=False)
    rows = table[selected]
    numbers = _read_column(rows, "synthesis")
    if not pd.api.types.is_integer_dtype(numbers):
        raise NoFigureError(f"column 'synthesis' is of type {numbers.dtype}: expected whole numbers")
    if sorted(numbers) != list(range(1, syntheses + 1)):
        raise NoFigureError(
            f"there are {len(rows)} rows{_describe_condition(where)}: expected one each for 1 to {syntheses}"
        )
    return rows


def _describe_condition(where: Mapping[str, str | None]) -> str:
    conditions = [f"{name} {'missing' if value is None else repr(value)}" for name, value in where.items()]
    return f" with {' and '.join(conditions)}" if conditions else ""


def _read_column(table: pd.DataFrame, name: str) -> pd.Series[Any]:
    columns = table.columns.tolist()
    positions = [i for i, column in enumerate(columns) if column == name and isinstance(column, str)]
    if len(positions) != 1:
        raise NoFigureError(f"the table has {len(positions)} columns {name!r}: expected 1")
    return table.iloc[:, positions[0]]


def read_figures(rows: pd.DataFrame, measure: str) -> list[float]:
    """The figures of a measure. NoFigureError where they are no numbers, or one is missing or infinite."""
    column = _read_column(rows, measure)
    if not (pd.api.types.is_float_dtype(column) or pd.api.types.is_integer_dtype(column)):
        raise NoFigureError(f"column {measure!r} is of type {column.dtype}: expected numbers")
    figures = [float(figure) for figure in column.to_numpy(dtype=float, na_value=math.nan)]
    doubtful = sum(not math.isfinite(figure) for figure in figures)
    if doubtful:
        raise NoFigureError(f"{doubtful} of {len(figures)} figures of {measure} are missing or infinite")
    return figures


def measure_stacked(
    table: pd.DataFrame, source_column: str, sources: tuple[str, str], keys: Sequence[str], target: str | None
) -> Disclosure:
    """What `disclosure()` finds of GT and SD, stacked in one table.

    `sources`: the values of `source_column` for GT and for SD; without a `target` only identity is measured.
    NoFigureError where a record is of neither or both, or the two tables look incomparable.
    """
    source = _read_column(table, source_column)
    is_ground_truth, is_synthetic = (
        (source == value).to_numpy(dtype=bool, na_value=False) for value in sources
    )
    unassigned = int((is_ground_truth == is_synthetic).sum())
    if unassigned:
        raise NoFigureError(f"{unassigned} records are not of exactly one of GT and SD")
    if target is None:  # a constant stands for the target that is not looked at
        target, table = source_column, table.assign(**{source_column: ""})
    table = table.loc[:, table.columns.isin([*keys, target])]
    result = disclosure(table[is_ground_truth], table[is_synthetic], keys, target)
    if result.warnings:
        raise NoFigureError(
            "GT and SD share too little or look differently coded, and a risk would read too low: "
            "disclosure() tells what is doubtful"
        )
    return result
