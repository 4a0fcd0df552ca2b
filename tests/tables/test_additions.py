"""Additions that a synthetic table may not make to the ground truth, column by column."""

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disclosure_pipeline.tables.additions import (
    A_LEVEL,
    FAR_OUTSIDE,
    FINER_NUMBERS,
    FINER_TIMES,
    FORMULA,
    LONGER_TEXT,
    MORE_DECIMALS,
    NAMES_PEOPLE,
    UNKNOWN_LEVEL,
    count_digits,
    find_additions,
    find_naming_columns,
)
from disclosure_pipeline.tables.dictionary import Column


def rules(column: Column, in_GT: list[Any], in_SD: list[Any], *, refuse: bool = True) -> list[str]:
    tables = [{"x": pa.array(values)} for values in (in_GT, in_SD)]
    additions = find_additions(tables[0], {"SD": tables[1]}, {"x": column}, refuse_formulas=refuse)
    assert all(violation.records is None and "4711" not in str(violation) for violation in additions)
    return [violation.rule for violation in additions]


CATEGORY = Column(type="category")
KEPT = Column(type="category", unknown_levels="keep")
INTEGER, DATETIME = Column(type="integer"), Column(type="datetime")
IN_INDIA = Column(type="datetime", time_zone="Asia/Kolkata")  # UTC and 5:30 hours
DAY, A_DAY = datetime.datetime(2024, 5, 1), datetime.timedelta(days=1)


def time(hour: int, minute: int, second: int = 0, microsecond: int = 0) -> datetime.datetime:
    return DAY.replace(hour=hour, minute=minute, second=second, microsecond=microsecond)


@pytest.mark.parametrize(
    ("column", "in_GT", "in_SD", "expected"),
    [
        (CATEGORY, ["a", "b"], ["b"], []),
        (CATEGORY, ["a", "b"], ["b", None], []),
        (CATEGORY, ["a", "b"], ["A"], [UNKNOWN_LEVEL.format(A_LEVEL)]),
        (CATEGORY, ["ab"], ["4711"], [UNKNOWN_LEVEL.format(A_LEVEL), LONGER_TEXT]),
        (CATEGORY, ["north"], ["nroth", "sout"], [UNKNOWN_LEVEL.format("'nroth', 'sout', which")]),
        (KEPT, ["abcd"], ["4711"], []),
        (KEPT, ["abc"], ["4711"], [LONGER_TEXT]),
        (KEPT, ["abcde"], ["=4711"], [FORMULA]),
        (KEPT, ["abcde"], ["\uff1d4711"], [FORMULA]),
        (KEPT, ["-8", "abcd"], ["-9", "+1,5", "a=b"], []),
        (Column(type="category", levels=("a", "long")), ["a"], ["long"], []),
        (Column(type="number"), [0.25, 1.0], [0.75, 1.5], []),
        (Column(type="number"), [0.25, 1.0], [0.125], [MORE_DECIMALS]),
        (Column(type="number"), [0.12, 0.034], [0.0056, 0.123], []),
        (Column(type="number"), [0.12, 0.034], [0.1234], [MORE_DECIMALS]),
        (Column(type="number", decimals=1), [0.25], [0.25], [MORE_DECIMALS]),
        (Column(type="number", decimals=3), [0.0, 0.5], [0.125], []),
        (Column(type="number"), [0.1 + 0.2, 1.0], [1 / 3], []),
        (INTEGER, [1, 3], [2], []),
        (INTEGER, [100, 2_000], [150], [FINER_NUMBERS]),
        (INTEGER, [100, 2_000], [21_000, 1_400, None], []),
        (INTEGER, [105, 2_000], [151], []),
        (INTEGER, [100, 2_000], [4512081234], [FINER_NUMBERS, FAR_OUTSIDE]),
        (INTEGER, [1, 90], [-890], [FAR_OUTSIDE]),
        (INTEGER, [1, 90], [-889, 980], []),
        (INTEGER, [7], [8], []),
        (INTEGER, [7], [18], [FAR_OUTSIDE]),
        (Column(type="number"), [7.5], [7.6], [FAR_OUTSIDE]),
        (INTEGER, [None], [8], [FAR_OUTSIDE]),
        (Column(type="integer", special_values=(-8,)), [100, 900, -8], [-8, 1_700, 0], []),
        (Column(type="integer", special_values=(99_999,)), [1, 99_999], [4_711], [FAR_OUTSIDE]),
        (Column(type="integer", range=(0, 10**6)), [1, 90], [4_711], []),
        (Column(type="number"), [0.5, 1.0], [4711.5], [FAR_OUTSIDE]),
        (DATETIME, [time(8, 30), time(9, 45)], [time(8, 15)], []),
        (DATETIME, [time(8, 30), time(9, 45)], [time(8, 30, 1)], [FINER_TIMES]),
        (DATETIME, [time(8, 30, 5), time(9, 45)], [time(8, 30, 5, 4711)], [FINER_TIMES]),
        (IN_INDIA, [time(18, 30), None], [time(18, 30)], []),
        (IN_INDIA, [time(18, 30), time(18, 30) - 9 * A_DAY], [time(8, 30)], [FINER_TIMES]),
        (IN_INDIA.model_copy(update={"unit": "day"}), [time(18, 30), time(18, 15)], [time(18, 30)], []),
        (
            IN_INDIA.model_copy(update={"unit": "hour"}),
            [time(18, 30), time(18, 15)],
            [time(18, 0)],
            [FINER_TIMES],
        ),
        (DATETIME, [time(8, 30), time(9, 0)], [time(14, 1)], [FAR_OUTSIDE]),
        (Column(type="date"), [DAY, DAY.replace(day=2)], [DAY.replace(day=13)], [FAR_OUTSIDE]),
        (Column(type="date"), [DAY, DAY.replace(day=2)], [DAY.replace(day=12)], []),
    ],
)
def test_what_is_added_is_found(
    column: Column, in_GT: list[Any], in_SD: list[Any], expected: list[str]
) -> None:
    assert rules(column, in_GT, in_SD) == expected


@pytest.mark.parametrize(
    ("column", "records", "is_refused"),
    [
        (CATEGORY, [1] * 6 + [2, 3], True),
        (CATEGORY, [1] * 5 + [2, 3], False),
        (KEPT, [1] * 6 + [2, 3], True),
        (DATETIME, [1] * 6 + [2, 3], True),
        (Column(type="date"), [1] * 6, False),
        (INTEGER, [1] * 6, False),
        (Column(type="category", levels=("a", "b")), [1, 1], False),
        (CATEGORY, [1], False),
        (CATEGORY, [], False),
    ],
)
def test_columns_that_name_people(column: Column, records: list[int], is_refused: bool) -> None:
    """Over half of the records have a value of their own: none is published that is as good as a name."""
    found = find_naming_columns({"x": column}, ["x"], lambda _: np.array(records, dtype=np.int64), "GT")
    assert [violation.rule for violation in found] == [NAMES_PEOPLE] * is_refused
    assert not find_naming_columns({"x": column}, [], lambda _: np.array(records), "GT")


@pytest.mark.parametrize(
    "level",
    ["Kowalska", " kowalska", "Jan Kowalska", "4711", "1,5", "\u202ex", "x" * 50],
)
def test_a_level_that_may_be_a_value_of_the_ground_truth_is_not_shown(level: str) -> None:
    """Of whatever column: the columns of a synthetic table may be in the wrong order."""
    in_GT = {"x": pa.array(["a" * 60, "b"]), "name": pa.array(["Kowalska"]), "income": pa.array([4711.0])}
    columns = dict.fromkeys(in_GT, CATEGORY)
    additions = find_additions(in_GT, {"SD": {"x": pa.array([level])}}, columns, refuse_formulas=False)
    assert [violation.rule for violation in additions] == [UNKNOWN_LEVEL.format(A_LEVEL)]


def test_formulas_that_are_quoted_are_no_violation() -> None:
    assert rules(KEPT, ["abcde"], ["=4711"], refuse=False) == []


@given(st.integers(-(10**12), 10**12), st.integers(0, 9))
def test_decimals_are_those_of_the_shortest_text(whole: int, decimals: int) -> None:
    number = float(Decimal(whole).scaleb(-decimals))
    written = Decimal(repr(number)).normalize().as_tuple().exponent
    assert isinstance(written, int)
    assert list(count_digits(pa.array([number]))) == [max(0, -written)]
