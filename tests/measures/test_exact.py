"""Sums that do not depend on the order of what is added."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disclosure_pipeline.measures import frequency
from disclosure_pipeline.measures.exact import sum_exactly
from disclosure_pipeline.measures.frequency import find_lone_records


@given(st.lists(st.floats(-1e30, 1e30), max_size=200))
def test_a_sum_is_rounded_once(values: list[float]) -> None:
    """From the smallest numbers that there are on."""
    assert sum_exactly(np.array(values)) == math.fsum(values)


@pytest.mark.parametrize("records", [1, 1000, 100_000])
def test_many_small_shares_are_added_to_the_last_digit(records: int) -> None:
    shares = np.random.default_rng(records).random((12, records)).prod(axis=0)
    assert sum_exactly(shares) == math.fsum(shares)


@pytest.mark.parametrize("largest", [2**63 - 1, 1 << 10, 1 << 3])
def test_records_that_no_other_equals(monkeypatch: pytest.MonkeyPatch, largest: int) -> None:
    """However few digits a code has for the columns and the position."""
    monkeypatch.setattr(frequency, "_LARGEST_CODE", largest)
    columns = [np.random.default_rng(k).integers(0, 3, 60) for k in range(4)]
    records = list(zip(*(column.tolist() for column in columns), strict=True))
    lone = [i for i, record in enumerate(records) if records.count(record) == 1]
    assert 0 < len(lone) < len(records)
    assert sorted(find_lone_records(columns, [3, 3, 4, 5]).tolist()) == lone
