"""Counts of two engines of the same tables, compared integer by integer."""

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def assert_same_counts(counts: Any, expected: Any, where: str = "") -> None:
    """Every integer is the same."""
    assert type(counts) is type(expected), where
    if is_dataclass(expected):
        for field in fields(expected):
            assert_same_counts(
                getattr(counts, field.name), getattr(expected, field.name), f"{where}.{field.name}"
            )
    elif isinstance(expected, tuple):
        assert len(counts) == len(expected), where
        for i, (item, expected_item) in enumerate(zip(counts, expected, strict=True)):
            assert_same_counts(item, expected_item, f"{where}[{i}]")
    elif isinstance(expected, np.ndarray):
        np.testing.assert_array_equal(counts, expected, where)
    else:
        assert counts == expected, where
