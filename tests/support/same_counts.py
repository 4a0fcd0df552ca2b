"""Counts that two engines found of the same tables, compared integer by integer."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from disclosure_pipeline.measures.cells import LargeCells


def assert_same_counts(found: Any, expected: Any, where: str = "") -> None:
    """Every integer is the same; large cells come in any order."""
    assert type(found) is type(expected), where
    if isinstance(expected, LargeCells):
        rows = [
            sorted(zip(*each.key_levels.tolist(), each.t.tolist(), each.d.tolist(), strict=True))
            for each in (found, expected)
        ]
        assert rows[0] == rows[1], where
    elif is_dataclass(expected):
        for field in fields(expected):
            assert_same_counts(
                getattr(found, field.name), getattr(expected, field.name), f"{where}.{field.name}"
            )
    elif isinstance(expected, tuple):
        assert len(found) == len(expected), where
        for i, (one, other) in enumerate(zip(found, expected, strict=True)):
            assert_same_counts(one, other, f"{where}[{i}]")
    elif isinstance(expected, np.ndarray):
        np.testing.assert_array_equal(found, expected, where)
    else:
        assert found == expected, where
