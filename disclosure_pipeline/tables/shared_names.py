"""The columns that several tables share, in one place for all who ask."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any


def names_in_all(tables: Sequence[Collection[Any]]) -> list[Any]:
    """The names that all tables have, in the order of the first.

    >>> names_in_all([("sex", "age", "job"), ("job", "sex")])
    ['sex', 'job']
    """
    first, *others = tables
    return [name for name in first if all(name in table for table in others)]
