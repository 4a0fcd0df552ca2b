"""Minimal sample uniques and SUDA's scores, set by set: uniqueness in a single table."""

from collections.abc import Sequence
from itertools import combinations
from math import prod
from typing import Any

Row = tuple[Any, ...]


def minimal_sample_uniques(table: Sequence[Row], person: int, most: int) -> list[tuple[int, ...]]:
    """Return the minimal sets of up to `most` columns in which nobody else agrees with the record."""
    minimal: list[tuple[int, ...]] = []
    for size in range(1, most + 1):
        for columns in combinations(range(len(table[person])), size):
            own = [table[person][k] for k in columns]
            unique = sum([row[k] for k in columns] == own for row in table) == 1
            if unique and not any(set(smaller) <= set(columns) for smaller in minimal):
                minimal.append(columns)
    return minimal


def suda_score(table: Sequence[Row], person: int, most: int) -> int:
    """Return the sum over them of the product of (columns - i) for i from their size up to `most`."""
    columns = len(table[person])
    return sum(
        prod(columns - i for i in range(len(unique), most + 1))
        for unique in minimal_sample_uniques(table, person, most)
    )
