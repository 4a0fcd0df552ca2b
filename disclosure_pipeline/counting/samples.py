"""Which records are drawn where a sample of a table is enough."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from disclosure_pipeline.measures.exact import IntArray


def sample_positions(records: Sequence[int], most: int, seed: int) -> list[IntArray | None]:
    """Of tables of so many `records` the positions of at most so many, ascending; None for all of them."""
    return [
        None if number <= most else _draw_positions(number, most, seed, table)
        for table, number in enumerate(records)
    ]


@lru_cache(maxsize=8)  # each measure of a table draws the same ones, which takes as long as to count them
def _draw_positions(records: int, most: int, seed: int, table: int) -> IntArray:
    drawn: IntArray = np.sort(np.random.default_rng([seed, table]).choice(records, most, replace=False))
    drawn.flags.writeable = False
    return drawn
