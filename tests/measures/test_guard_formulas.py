"""Formulas of the guards against their definitions, record by record."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sampling import examples

from disclosure_pipeline.measures.copies import (
    WholeRecordCounts,
    chances_of_columns_apart,
    has_equal_content,
    hits_of_columns_apart,
)
from disclosure_pipeline.measures.people import found_by_columns_apart
from disclosure_pipeline.measures.resemblance import relabelling
from disclosure_pipeline.measures.samples import Sizes

RECORDS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=30)


@examples(50)
@given(RECORDS)
def test_columns_drawn_apart(records: list[tuple[int, int]]) -> None:
    columns = [np.array(column) for column in zip(*records, strict=True)]
    chances, of_second = chances_of_columns_apart(columns, [4, 5], [[0, 1], [1]])
    np.testing.assert_array_equal(of_second, chances_of_columns_apart(columns[1:], [5], [[0]])[0])
    often = Counter(records)
    shares = [Counter(column) for column in zip(*records, strict=True)]
    expected = [
        math.prod(shares[i][level] / len(records) for i, level in enumerate(record))
        for record, number in often.items()
        if number == 1
    ]
    assert hits_of_columns_apart(chances) == pytest.approx(100 * sum(expected))
    found = sum(1 - math.exp(-7 * chance) for chance in expected)
    assert found_by_columns_apart(chances, 7, len(records)) == pytest.approx(100 * found / len(records))


def test_renamed_levels() -> None:
    """Far as they are, near once matched; missing is never taken for a level."""
    renamed = relabelling(np.array([700, 200, 100, 0]), np.array([100, 700, 200, 0]))
    assert pytest.approx(0.6) == renamed.TVD
    assert renamed.TVD_relabelled == 0
    assert renamed.looks_renamed == renamed.TVD - renamed.TVD_expected
    assert relabelling(np.array([700, 200, 100, 0]), np.array([300, 350, 350, 0])).looks_renamed == 0
    assert relabelling(np.array([700, 0, 300]), np.array([300, 0, 700])).looks_renamed == 0
    assert relabelling(np.array([70, 30, 0]), np.array([70, 30, 0])).looks_renamed == 0


def counts(d: list[int], s: list[int]) -> WholeRecordCounts:
    from disclosure_pipeline.counting.counts import count_keys

    return count_keys(np.array(d), np.array(s))


@pytest.mark.parametrize(
    ("d", "s", "equal"),
    [
        ([1] * 50, [1] * 50, True),
        ([1] * 50, [1] * 20 + [0] * 30, True),
        ([1] * 50, [1] * 5 + [0] * 45, False),  # a fresh sample of five could do that
        ([1] * 50 + [0] * 50, [1] * 100, True),
        ([1] * 50, [1] * 49 + [0], True),
        ([1] * 50 + [0], [1] * 49 + [0, 1], False),
        ([25, 25], [20, 30], False),  # few columns: everybody has these values
    ],
)
def test_equal_content(d: list[int], s: list[int], equal: bool) -> None:
    assert has_equal_content(counts(d, s), Sizes(sum(d), sum(s))) is equal
