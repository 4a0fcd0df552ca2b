"""How often a record whose values are drawn column by column has a combination that one GT record has.

This project's own. A new person brings values that nobody had, such as an income to the last digit; what many
synthesizers make takes every single value from GT, and ties them together anew. Where few columns are
compared, or one of them nearly names the person, that alone hits unique records, and tells nothing of them
that their values do not. So unique copies count only beyond that, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.measures.frequency import combine_keys


def hits_of_columns_apart(codes: Sequence[IntArray], sizes: Sequence[int]) -> float:
    """Percent of records with columns drawn apart from GT's that hit a combination of a single GT record.

    `codes`: of each column the level of every GT record, below its entry of `sizes`.
    """
    records = len(codes[0])
    q = combine_keys([[column] for column in codes], list(sizes)).q[0]
    alone = np.flatnonzero(np.bincount(q)[q] == 1)
    chance = np.ones(len(alone))
    for column, size in zip(codes, sizes, strict=True):
        share = np.bincount(column, minlength=size) / records
        chance *= share[column[alone]]
    return 100 * math.fsum(chance)  # the same in any order of the records
