"""Codes are counted as the table stores them, whatever the type."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disclosure_pipeline.tables import levels


@given(st.lists(st.integers(-128, 127), min_size=1, max_size=50), st.sampled_from(["i1", "i2", "i8"]))
def test_whole_numbers_from_the_lowest_on(values: list[int], dtype: str) -> None:
    lowest, entries = min(values), max(values) - min(values) + 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(levels, "_CHUNK_OF_BYTES", 4)
        patch.setattr(levels, "_MANY", 0)
        counts = levels.count_codes(np.array(values, dtype=dtype), lowest, entries)
    expected = [values.count(lowest + i) for i in range(entries - 1)]
    if lowest:  # from 0 on, -1 would be missing
        assert counts.tolist() == [*expected, 0]


@given(st.lists(st.integers(-1, 126), min_size=1, max_size=50), st.sampled_from(["i1", "i2", "i8"]))
def test_codes_with_missing_ones(codes: list[int], dtype: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(levels, "_MANY", 0)
        counts = levels.count_codes(np.array(codes, dtype=dtype), 0, 128)
    assert counts.tolist() == [codes.count(i) for i in range(127)] + [codes.count(-1)]


def test_all_values_of_a_byte() -> None:
    counts = levels.count_codes(np.arange(256, dtype=np.uint8).repeat(257), 0, 257)
    assert counts.tolist() == [257] * 256 + [0]
