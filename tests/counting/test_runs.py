"""Runs of equal values, and columns as one number: against what plain Python says of the same values."""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disclosure_pipeline.counting.memory import radix
from disclosure_pipeline.counting.memory.sorting import Runs
from disclosure_pipeline.tables.coding import code_column


@given(st.lists(st.integers(0, 12), min_size=1, max_size=40).map(sorted), st.sampled_from([1, 5, 7]))
def test_runs_of_every_length(values: list[int], most: int) -> None:
    runs = Runs.from_ascending(np.array(values), most)
    lengths = {value: len(list(run)) for value, run in groupby(values)}
    for n in range(1, most + 1):
        assert runs.of_length(n).tolist() == [values.index(value) for value in lengths if lengths[value] == n]
    longer = [place for place, value in enumerate(values) if lengths[value] > most]
    assert runs.places_of_longer().tolist() == longer


@given(
    st.lists(st.lists(st.integers(0, 30), min_size=5, max_size=5), min_size=2, max_size=30),
    st.sampled_from([4, 10, 63]),
    st.sampled_from([8, 64]),
)
def test_a_code_for_every_combination(rows: list[list[int]], bits: int, sorted_together: int) -> None:
    """Equal where all columns are equal, and nowhere else; and the levels can be told from it.

    Columns are numbered together where the limit is low, by sorting numbers or their places.
    """
    frame = np.array(rows)
    tables = [frame, frame[: len(frame) // 2 + 1]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(radix, "_BITS", sorted_together)
        columns = [
            code_column(name, [pd.Series(table[:, name]) for table in tables], ["GT", "SD"])
            for name in range(frame.shape[1])
        ]
        code = radix.radix(columns, [len(table) for table in tables], 1 << bits)
    assert code.size <= max(1 << bits, sum(map(len, tables)))
    for i, table in enumerate(tables):
        codes = np.empty(len(table), dtype=np.uint64)
        radix.add(code.readers(i, 1, np.uint64), slice(0, len(table)), codes)
        np.testing.assert_array_equal(code.levels_of(codes), [column.codes[i] for column in columns])
        assert int(codes.max()) < code.size
