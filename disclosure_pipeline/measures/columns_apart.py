"""How often a record whose values are drawn column by column has a combination that one GT record has.

This project's own. A new person brings values that nobody had, such as an income to the last digit; what many
synthesizers make takes every single value from GT, and ties them together anew. Where few columns are
compared, or one of them nearly names the person, that alone hits unique records, and tells nothing of them
that their values do not. So unique copies count only beyond that, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from disclosure_pipeline.measures.exact import IntArray, sum_exactly
from disclosure_pipeline.measures.frequency import find_lone_records


def hits_of_columns_apart(
    codes: Sequence[IntArray], sizes: Sequence[int], sets: Sequence[Sequence[int]]
) -> list[float]:
    """Percent of records with columns drawn apart from GT's that hit a combination of a single GT record.

    For each set of columns, by their places. `codes`: of each column the level of every GT record, below its
    entry of `sizes`.

    >>> hits_of_columns_apart([np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1])], [2, 2], [[0, 1], [1]])
    [50.0, 25.0]
    """
    shares = [
        (np.bincount(column, minlength=size) / len(column))[column]
        for column, size in zip(codes, sizes, strict=True)
    ]
    return [
        _hits([codes[k] for k in places], [sizes[k] for k in places], [shares[k] for k in places])
        for places in sets
    ]


def _hits(codes: Sequence[IntArray], sizes: Sequence[int], shares: Sequence[np.ndarray]) -> float:
    """`shares`: of each column the share of the records that have the level of this record."""
    chance = reduce(np.multiply, shares)
    return 100 * sum_exactly(chance[find_lone_records(codes, sizes)])
