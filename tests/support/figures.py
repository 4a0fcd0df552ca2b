"""Every figure of a result, to be compared to the last bit."""

import pandas as pd

import disclosure_pipeline as dp

FRAMES = (
    *("identity", "attribute", "cap", "identity_after_exclusions", "one_way", "two_way"),
    *("certainty", "excluded", "key_overlap", "target_overlap", "together", "together_identity"),
)


def assert_same(found: dp.Disclosure, expected: dp.Disclosure) -> None:
    """Every figure is the very same float."""
    for name in FRAMES:
        pd.testing.assert_frame_equal(getattr(found, name), getattr(expected, name), check_exact=True)
    assert found.warnings == expected.warnings
    assert (found.stacked is None) == (expected.stacked is None)
    if found.stacked and expected.stacked:
        assert_same(found.stacked, expected.stacked)
