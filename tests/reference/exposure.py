"""Which sets of columns expose whom, set by set and person by person: slow and obvious."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

Row = tuple[Any, ...]


def exposes(person: Row, table: Sequence[Row], keys: Sequence[int], target: int, support: int) -> bool:
    """Return whether enough records share the person's keys, and all of them have the person's target."""
    agreeing = [row for row in table if all(row[k] == person[k] for k in keys)]
    return len(agreeing) >= support and all(row[target] == person[target] for row in agreeing)


def smallest_set(
    person: Row, table: Sequence[Row], columns: Sequence[int], target: int, up_to: int, support: int
) -> int | None:
    """Return the size of the smallest set that exposes the person; None for none."""
    for size in range(1, up_to + 1):
        for keys in combinations(columns, size):
            if target not in keys and exposes(person, table, keys, target, support):
                return size
    return None


def distribution(
    gt: Sequence[Row], sd: Sequence[Row], columns: Sequence[int], target: int, up_to: int, support: int
) -> tuple[list[float], list[float]]:
    """Return percent of GT records by size of the smallest set (1 … up_to, none), by SD and by the others."""
    by_SD, by_others = [0] * (up_to + 1), [0] * (up_to + 1)
    for i, person in enumerate(gt):
        for counts, table in ((by_SD, sd), (by_others, [*gt[:i], *gt[i + 1 :]])):
            size = smallest_set(person, table, columns, target, up_to, support)
            counts[up_to if size is None else size - 1] += 1
    return [100 * n / len(gt) for n in by_SD], [100 * n / len(gt) for n in by_others]


def smallest_support(gt: Sequence[Row], sd: Sequence[Row], keys: Sequence[int], target: int) -> int | None:
    """Return the smallest number of SD records that agree on a disclosed person."""
    supports = [
        sum(all(row[k] == person[k] for k in keys) for row in sd)
        for person in gt
        if exposes(person, sd, keys, target, 1)
    ]
    return min(supports, default=None)
