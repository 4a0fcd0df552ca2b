"""A draw of records that is the same whoever makes it: by a hash of what a record holds, and its number.

Records that hold the same are numbered among themselves, so neither the order of the records nor how they
are parted by key changes the draw; other levels, or levels that are spelt otherwise, do.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.measures.frequency import FrequencyTable

Hashes = npt.NDArray[np.uint64]

# SplitMix64 (Steele, Lea & Flood 2014, "Fast splittable pseudorandom number generators").
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_RANGE = 2**64
_AT_A_TIME = 1 << 22  # records


def hash_keys(key_levels: IntArray, seed: int = 0) -> Hashes:
    """A hash of each key combination, from the codes of its levels (shape: keys, q)."""
    hashes = np.full(key_levels.shape[1], seed, dtype=np.uint64)
    for levels in key_levels:
        hashes = _mix(hashes, levels)
    return hashes


def draw(f: FrequencyTable, counts: IntArray, hashes: Hashes, n: int, of: int) -> IntArray:
    """How many of the records `counts` of each cell are drawn, each with chance n / of; n of all on average.

    `hashes` are those of the key combinations (shape: f.keys).
    """
    if n >= of:
        return counts
    threshold = np.uint64(n * _RANGE // of)
    of_cell = _mix(hashes[f.q], f.t)
    drawn = np.zeros(len(counts), dtype=np.int64)
    occupied = np.flatnonzero(counts)
    ends = np.cumsum(counts[occupied])
    start = 0
    while start < len(occupied):
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + _AT_A_TIME)))
        cells = occupied[start:stop]
        number = counts[cells]
        first = np.cumsum(number) - number
        position = np.arange(int(number.sum())) - np.repeat(first, number)
        hit = _mix(np.repeat(of_cell[cells], number), position) < threshold
        drawn[cells] = np.add.reduceat(hit.astype(np.int64), first)
        start = stop
    return drawn


def _mix(hashes: Hashes, numbers: IntArray) -> Hashes:
    """The hashes after so many steps more, mixed."""
    with np.errstate(over="ignore"):
        z = hashes + (numbers.astype(np.uint64) + np.uint64(1)) * _STEP
        z = (z ^ (z >> np.uint64(30))) * _FIRST
        z = (z ^ (z >> np.uint64(27))) * _SECOND
        return z ^ (z >> np.uint64(31))
