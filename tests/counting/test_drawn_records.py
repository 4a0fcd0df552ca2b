"""Coded records of which some are drawn, against the same records coded by themselves."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from disclosure_pipeline.counting.counts import sample_positions
from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.tables.grouping import grouping_of


@pytest.mark.parametrize("most", [1, 7, 60, 10_000])
def test_drawn_records_are_coded_as_if_they_were_alone(most: int) -> None:
    """Levels that none of them has are left out; a table of fewer records is taken whole."""
    rng = np.random.default_rng(most)
    frames = tuple(
        pd.DataFrame(
            {
                "number": rng.integers(-5, 30, records),
                "share": rng.choice([0.5, 2.0, np.nan], records),
                "town": pd.Categorical(rng.choice(list("abcdef"), records), list("xfedcba")),
                "text": rng.choice(np.array(["p", "q", None], dtype=object), records),
                "gap": np.full(records, np.nan),
            }
        )
        for records in (300, 50, 70_000)
    )
    opened = FramesInMemory(frames, "")
    columns = list(opened.code(list(frames[0]), grouping_of()))
    drawn = opened.code_records(columns, most, 3)
    anew = FramesInMemory(tuple(opened.sample(most, 3)), "").code(list(frames[0]), grouping_of())
    assert [len(codes) for codes in drawn[0].codes] == [min(most, len(frame)) for frame in frames]
    for column, expected in zip(drawn, anew, strict=True):
        assert (column.name, column.kind) == (expected.name, expected.kind)
        assert column.levels.tolist() == expected.levels.tolist()
        for name in ("codes", "counts"):
            pairs = zip(getattr(column, name), getattr(expected, name), strict=True)
            assert all(of_column.tolist() == of_expected.tolist() for of_column, of_expected in pairs)


def test_nobody_changes_what_was_drawn() -> None:
    """The positions are drawn once for several measures of the same tables."""
    [positions] = sample_positions([100], 10, 0)
    assert positions is not None
    with pytest.raises(ValueError, match="read-only"):
        positions[0] = 5
