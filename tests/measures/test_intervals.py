"""Intervals: published examples, and that they cover what they should."""

import numpy as np
import pytest

from disclosure_pipeline.measures.intervals import newcombe, wilson


@pytest.mark.parametrize(
    ("part", "whole", "low", "high"),
    # Newcombe 1998, "Two-sided confidence intervals for the single proportion", table I, method 3.
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_as_published(part: int, whole: int, low: float, high: float) -> None:
    assert wilson(part, whole) == pytest.approx((low, high), abs=6e-5)


@pytest.mark.parametrize(
    ("parts", "low", "high"),
    # Newcombe 1998, "Interval estimation for the difference between independent proportions", table II, 10.
    [((56, 70, 48, 80), 0.0524, 0.3339), ((9, 10, 3, 10), 0.1705, 0.8090), ((0, 10, 0, 10), -0.2775, 0.2775)],
)
def test_newcombe_as_published(parts: tuple[int, int, int, int], low: float, high: float) -> None:
    assert newcombe(*parts) == pytest.approx((low, high), abs=6e-5)


def test_nothing_is_known_of_no_record() -> None:
    assert wilson(0, 0) == (0, 1)
    assert newcombe(0, 0, 1, 2) == (-1, 1)


@pytest.mark.parametrize("share", [0.02, 0.3, 0.5])
def test_wilson_covers(share: float) -> None:
    parts = np.random.default_rng(0).binomial(200, share, 2000)
    inside = [low <= share <= high for low, high in (wilson(int(part), 200) for part in parts)]
    assert 0.92 <= np.mean(inside) <= 0.985
