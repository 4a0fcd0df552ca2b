"""A draw of records that is the same whoever makes it: by a hash of what a record holds, and its number.

Records that hold the same are numbered among themselves, so neither the order of the records nor how they
are parted by key changes the draw; other levels, or levels that are spelt otherwise, do. The hash takes only
sums, products and remainders that fit 63 bits, so that a database computes the same one.
"""

from __future__ import annotations

import math

import numpy as np

from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.measures.frequency import FrequencyTable
from disclosure_pipeline.measures.samples import Sizes

PRIME = 2**31 - 1
"""Hashes are remainders of this prime; x**5 is one to one among them."""
SEED = 1

_BASE = 1_025_202_362
_AT_A_TIME = 1 << 22  # records


def multiplier(position: int) -> int:
    """What a number is multiplied by in a hash: 0 for a record's number, 1 for its target, then the keys."""
    return pow(_BASE, position + 1, PRIME)


def hash_keys(key_levels: IntArray, seed: int = SEED) -> IntArray:
    """What the codes of its levels add to the hashes of a key combination (shape: keys, q)."""
    sums: IntArray = np.full(key_levels.shape[1], seed, dtype=np.int64)
    for k, levels in enumerate(key_levels):
        sums = sums + _times(levels, 2 + k)
    return sums % PRIME


def _times(numbers: IntArray, position: int) -> IntArray:
    return (numbers.astype(np.int64) + 1) * multiplier(position) % PRIME


def _fifth_power(sums: IntArray) -> IntArray:
    """The hashes, of the sums that belong to a key combination, a target level and a record's number."""
    x = sums % PRIME
    fourth = (x * x % PRIME) ** 2 % PRIME
    return fourth * x % PRIME


def drawn_below(sizes: Sizes) -> int:
    """A record is drawn where its hash is below this: n of all on average.

    Of SD where it has more records than GT, else of GT; only where `sizes.something_is_drawn`.
    """
    of = sizes.N_s if sizes.synthetic_is_drawn else sizes.N_d - 1
    return math.ceil(sizes.n * PRIME / of)


def draw(f: FrequencyTable, sizes: Sizes, hashes: IntArray) -> IntArray:
    """How many records of each cell are drawn, of the larger of both tables.

    `hashes` are those of the key combinations (shape: f.keys), `sizes` of the whole tables.
    """
    counts, below = f.s if sizes.synthetic_is_drawn else f.d, drawn_below(sizes)
    of_cell = hashes[f.q] + _times(f.t, 1)
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
        hit = _fifth_power(np.repeat(of_cell[cells], number) + _times(position, 0)) < below
        drawn[cells] = np.add.reduceat(hit.astype(np.int64), first)
        start = stop
    return drawn
