"""What a synthetic table may not add to the ground truth, column by column."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disclosure_pipeline.tables.contract import (
    FORMULA,
    LONGER_TEXT,
    MORE_DECIMALS,
    UNKNOWN_LEVEL,
    count_decimals,
    find_additions,
)
from disclosure_pipeline.tables.dictionary import Column


def rules(column: Column, in_GT: list[Any], in_SD: list[Any], *, refuse: bool = True) -> list[str]:
    tables = [{"x": pa.array(values)} for values in (in_GT, in_SD)]
    additions = find_additions(tables[0], {"SD": tables[1]}, {"x": column}, refuse_formulas=refuse)
    assert all(violation.records is None and "4711" not in str(violation) for violation in additions)
    return [violation.rule for violation in additions]


CATEGORY = Column(type="category")
KEPT = Column(type="category", unknown_levels="keep")


@pytest.mark.parametrize(
    ("column", "in_GT", "in_SD", "expected"),
    [
        (CATEGORY, ["a", "b"], ["b"], []),
        (CATEGORY, ["a", "b"], ["b", None], []),
        (CATEGORY, ["a", "b"], ["A"], [UNKNOWN_LEVEL]),
        (CATEGORY, ["ab"], ["4711"], [UNKNOWN_LEVEL, LONGER_TEXT]),
        (KEPT, ["abcd"], ["4711"], []),
        (KEPT, ["abc"], ["4711"], [LONGER_TEXT]),
        (KEPT, ["abcde"], ["=4711"], [FORMULA]),
        (KEPT, ["abcde"], ["\uff1d4711"], [FORMULA]),
        (KEPT, ["-8", "abcd"], ["-9", "+1,5", "a=b"], []),
        (Column(type="category", levels=("a", "long")), ["a"], ["long"], []),
        (Column(type="number"), [0.25, 1.0], [0.75, 3.5], []),
        (Column(type="number"), [0.25, 1.0], [0.125], [MORE_DECIMALS]),
        (Column(type="number", decimals=1), [0.25], [0.25], [MORE_DECIMALS]),
        (Column(type="number", decimals=3), [0.5], [0.125], []),
        (Column(type="number"), [0.1 + 0.2], [1 / 3], []),
        (Column(type="integer"), [1], [2], []),
    ],
)
def test_what_is_added_is_found(
    column: Column,
    in_GT: list[Any],
    in_SD: list[Any],
    expected: list[str],
) -> None:
    assert rules(column, in_GT, in_SD) == expected


def test_formulas_that_are_quoted_are_no_violation() -> None:
    assert rules(KEPT, ["abcde"], ["=4711"], refuse=False) == []


@given(st.integers(-(10**12), 10**12), st.integers(0, 9))
def test_decimals_are_those_of_the_shortest_text(whole: int, decimals: int) -> None:
    number = float(Decimal(whole).scaleb(-decimals))
    written = Decimal(repr(number)).normalize().as_tuple().exponent
    assert isinstance(written, int)
    assert count_decimals(pa.array([number])) == max(0, -written)
