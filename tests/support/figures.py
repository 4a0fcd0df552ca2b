"""Every figure of a result, to be compared to the last bit."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest

import disclosure_pipeline as dp
from disclosure_pipeline.evaluation import disclosure

FRAMES = (
    *("identity", "attribute", "cap", "identity_after_exclusions", "one_way", "two_way"),
    *("certainty", "excluded", "key_overlap", "target_overlap", "together", "together_identity"),
    *("bands", "band_certainty"),
)


def assert_same_frame(actual: pd.DataFrame, expected: pd.DataFrame) -> None:
    """The same figures with the same labels, of the same types."""
    if not consists_of_the_same_bytes(actual, expected):
        pd.testing.assert_frame_equal(actual, expected, check_exact=True)


def consists_of_the_same_bytes(actual: pd.DataFrame, expected: pd.DataFrame) -> bool:
    """Return whether numbers and labels are identical; pandas takes a millisecond for that."""
    return (
        all(isinstance(dtype, np.dtype) for dtype in expected.dtypes)
        and (expected.empty or all(dtype.kind in "iufb" for dtype in expected.dtypes))
        and actual.dtypes.tolist() == expected.dtypes.tolist()
        and actual.columns.identical(expected.columns)
        and actual.index.identical(expected.index)
        and types_of(actual.index) == types_of(expected.index)
        and all(actual[name].to_numpy().tobytes() == expected[name].to_numpy().tobytes() for name in expected)
    )


def types_of(index: pd.Index) -> list[object]:
    """The types of the levels of an index."""
    return [level.dtype for level in index.levels] if isinstance(index, pd.MultiIndex) else [index.dtype]


def list_warnings(result: dp.Disclosure) -> list[str]:
    """Return what every engine warns of: whole records are looked at in memory alone."""
    of_whole_records = ("people were copied", "tells no one apart")
    return [text for text in result.warnings if not any(words in text for words in of_whole_records)]


def assert_same(actual: dp.Disclosure, expected: dp.Disclosure) -> None:
    """Every figure is the very same float."""
    for name in (*FRAMES, "population", "population_targets"):
        assert_same_frame(getattr(actual, name), getattr(expected, name))
    assert list_warnings(actual) == list_warnings(expected)
    assert (actual.stacked is None) == (expected.stacked is None)
    if actual.stacked and expected.stacked:
        assert_same(actual.stacked, expected.stacked)


@contextmanager
def without_guards() -> Iterator[None]:
    """Let `dp.disclosure` look for no copies, which takes most of its time: other figures are the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disclosure, "MOST_CELLS", -1)
        yield
