"""The syntheses of a candidate as one table: the same codes as those of the concatenated frames."""

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.counting.memory.whole_records import count_copies
from disclosure_pipeline.evaluation.copies import copy_figures
from disclosure_pipeline.tables.grouping import grouping_of

COLUMNS = ["text", "number", "flag"]
ROWS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c", None]), st.sampled_from([-3, 4, 500, None]), st.booleans()),
    min_size=1,
    max_size=9,
)


def frame(rows: list[tuple[object, ...]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=COLUMNS).astype({"number": "Int64"})


@given(ROWS, st.lists(ROWS, min_size=1, max_size=4))
def test_stacked_columns_are_those_of_the_concatenated_frames(
    gt: list[tuple[object, ...]], syntheses: list[list[tuple[object, ...]]]
) -> None:
    frames = [frame(rows) for rows in syntheses]
    tables = FramesInMemory((frame(gt), *frames), "")
    concatenated = FramesInMemory((frame(gt), pd.concat(frames, ignore_index=True)), "")
    stacked = tables.stacked().code(COLUMNS, grouping_of())
    expected = concatenated.code(COLUMNS, grouping_of())
    for column, other in zip(stacked, expected, strict=True):
        assert column.name == other.name
        assert column.levels.tolist() == other.levels.tolist()
        for mine, theirs in zip((*column.codes, *column.counts), (*other.codes, *other.counts), strict=True):
            assert np.array_equal(mine, theirs)
    assert copy_figures(stacked, count_copies(stacked)) == copy_figures(expected, count_copies(expected))
