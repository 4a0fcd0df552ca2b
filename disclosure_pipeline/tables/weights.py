"""The weights of a survey: which column of GT may hold them, and which values."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.tables.levels import CodedColumn, Kind
from disclosure_pipeline.tables.messages import GROUND_TRUTH, describe_argument, suggest_names

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
