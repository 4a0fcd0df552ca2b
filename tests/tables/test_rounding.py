"""Floats that differ by rounding noise are one level, and the ledger says of how many records."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from disclosure_pipeline.tables.alignment import Distinct, code_distinct
from disclosure_pipeline.tables.coding import ROUNDING_NOISE, code_column, first_of_runs

TABLES = ("the ground truth", "the synthetic table")


def slowly(levels: list[float]) -> list[bool]:
    begins: list[bool] = []
    first, has_whole = math.nan, False
    for level in levels:
        whole = level.is_integer() if math.isfinite(level) else False
        near = math.isfinite(level) and math.isfinite(first) and level <= first + abs(first) * ROUNDING_NOISE
        if near and not (whole and has_whole):
            begins.append(False)
            has_whole = has_whole or whole
        else:
            begins.append(True)
            first, has_whole = level, whole
    return begins


VALUES = st.lists(
    st.tuples(
        st.sampled_from(
            [0.0, 1.0, 0.3, -7.5, 1e9, 1e9 + 1, 1e9 + 2, -(1e9), 1e300, 1e-320, math.inf, -math.inf]
        ),
        st.integers(-30, 30),
    ),
    max_size=60,
)


@given(VALUES)
@example([(1.0, noise) for noise in range(30)])
@example([(1e9, 0), (1e9 + 1, 0), (1e9 + 2, 0)])
def test_runs_are_those_that_are_found_one_by_one(values: list[tuple[float, int]]) -> None:
    noisy = {value * (1 + (0 if math.isinf(value) else noise) * 1e-10) for value, noise in values}
    levels = sorted(noisy - {math.nan})
    first = first_of_runs(np.array(levels, dtype=np.float64))
    assert (first is None) == all(slowly(levels))
    if first is not None:
        assert first.tolist() == slowly(levels)


@given(st.lists(st.floats(allow_nan=False), unique=True))
def test_no_run_is_wider_than_the_noise(values: list[float]) -> None:
    levels = np.sort(np.array(values, dtype=np.float64))
    first = first_of_runs(levels)
    assert (np.ones(len(levels), dtype=bool) if first is None else first).tolist() == slowly(levels.tolist())


def test_a_sum_is_the_number_that_it_stands_for() -> None:
    gt, sd = pd.Series([0.3, 0.5, None, 0.1 + 0.2]), pd.Series([0.1 + 0.2, 0.1 + 0.2, 0.7])
    column = code_column("x", (gt, sd), TABLES)
    assert column.levels.tolist() == [0.3, 0.5, 0.7]
    assert [codes.tolist() for codes in column.codes] == [[0, 1, 3, 0], [0, 0, 2]]
    assert [table.rounded for table in column.tables] == [1, 2]


def test_of_distinct_values_the_records_are_counted() -> None:
    tables = [
        Distinct(pd.Series([0.3, 0.5, 0.1 + 0.2]), np.array([5, 1, 2, 4])),
        Distinct(pd.Series([0.1 + 0.2, 0.7]), np.array([10, 1, 0])),
    ]
    column = code_distinct("x", tables, TABLES)
    assert column.levels.tolist() == [0.3, 0.5, 0.7]
    assert [counts.tolist() for counts in column.counts] == [[7, 1, 0, 4], [10, 0, 1, 0]]
    assert [table.rounded for table in column.tables] == [2, 10]


@pytest.mark.parametrize(
    "values",
    [
        [1_000_000_001, 1_000_000_002],
        [1_000_000_001.0, 1_000_000_002.0],
        [2**53, 2**53 - 1],
        [float(2**53), float(2**53 - 1)],
        [1.0, 1.00000001],
        [0.0, 1e-300],
    ],
)
def test_what_is_no_noise(values: list[float]) -> None:
    column = code_column("x", (pd.Series(values), pd.Series(values)), TABLES)
    assert len(column.levels) == len(values)
    assert [table.rounded for table in column.tables] == [0, 0]
