"""Which records are drawn where a sample of a table is enough."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from disclosure_pipeline.measures.exact import IntArray


def sample_positions(records: Sequence[int], most: int, seed: int) -> list[IntArray | None]:
    """Of tables of so many `records` the positions of at most so many, ascending; None for all of them."""
    drawn: list[IntArray | None] = []
    for table, number in enumerate(records):
        rng = np.random.default_rng([seed, table])
        drawn.append(None if number <= most else np.sort(rng.choice(number, most, replace=False)))
    return drawn
