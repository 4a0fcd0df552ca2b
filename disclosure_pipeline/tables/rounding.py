"""Floats that differ by rounding noise only, such as 0.1 + 0.2 and 0.3: they are one level."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

ROUNDING_NOISE = 1e-9
"""Relative to the smaller of two floats, in the order of numbers: closer ones are the same level."""

ROUNDING = "number that differs by rounding noise only, read as the same"
"""The rule of the ledger."""

Values = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]


def first_of_runs(levels: npt.NDArray[np.float64]) -> Mask | None:
    """Which of the levels (distinct floats, ascending) begin a run of equal ones; None where all of them do.

    A run holds the floats within `ROUNDING_NOISE` of its first, so that no chain of neighbours grows beyond
    that. No run holds two whole numbers: 1000000001.0 and 1000000002.0 are two identifiers, not noise.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        reach = levels + np.abs(levels) * ROUNDING_NOISE
        close = levels[1:] <= reach[:-1]
    close &= np.isfinite(levels[1:]) & np.isfinite(levels[:-1])
    if not close.any():
        return None
    chained = np.flatnonzero(close)  # the neighbour after each is close to it
    whole = levels == np.floor(levels)
    ends = np.minimum(
        np.searchsorted(levels, reach[chained], side="right"), _second_whole(whole, chained, len(levels))
    )
    begins = np.zeros(len(chained), dtype=bool)
    following = np.searchsorted(chained, ends)  # the first chained level behind the run of each
    run = 0
    while run < len(chained):
        begins[run] = True
        run = int(following[run])
    depth = np.zeros(len(levels) + 1, dtype=np.int8)  # runs do not overlap
    depth[chained[begins] + 1] += 1
    np.subtract.at(depth, ends[begins], 1)
    first = np.cumsum(depth[:-1], dtype=np.int8) == 0
    return None if first.all() else first


def _second_whole(whole: Mask, chained: npt.NDArray[np.intp], none: int) -> npt.NDArray[np.intp]:
    """For each of the chained levels the position of the second whole number from it on, or `none`."""
    positions = np.append(np.flatnonzero(whole), [none, none])
    return positions[np.searchsorted(positions[:-2], chained, side="left") + 1]
