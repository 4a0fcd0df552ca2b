"""What exclusions leave, where a database lists cells."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any

from disclosure_pipeline.counting.relational.coding import Digits, as_int64, int64
from disclosure_pipeline.measures.exclusions import CodedExclusions


def cells_left(cells: Any, exclusions: CodedExclusions, digits: Sequence[Digits]) -> Any:
    """The cells that GT has and whose GT records are not excluded."""
    t, d = as_int64(cells["t"]), as_int64(cells["n0"])
    excluded = [t == int64(level) for level in exclusions.target_levels]
    if exclusions.missing_target is not None:
        excluded.append(t == int64(exclusions.missing_target))
    excluded += [_has_level(cells, digits[k], level) for k, level in exclusions.missing_keys]
    excluded += [
        _has_level(cells, digits[k], level) & (t == int64(target_level))
        for k, level, target_level in exclusions.pairs
    ]
    if exclusions.count_over is not None:
        excluded.append(d > int64(exclusions.count_over))
    return cells.filter(d > 0, ~reduce(or_, excluded))


def _has_level(cells: Any, digits: Digits, level: int) -> Any:
    return (cells[f"q{digits.word}"] & int64(digits.mask)) == int64(level << digits.shift)
