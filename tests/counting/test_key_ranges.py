"""Records dealt into ranges of key combinations, and each range sorted: against a sort of whole numbers."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from disclosure_pipeline.counting.memory.packing import KeyRanges, sort_by_key


@given(st.lists(st.integers(0, 2**60), max_size=40), st.integers(0, 20))
@example([], 3)
@example([2**60, 0, 2**32, 2**16, 2**48 + 1, 2**48], 0)
@example([2**59 + 7, 2**59 + 1, 2**59 + 7, 2**59], 2)
def test_sorted_by_key(numbers: list[int], key_bit: int) -> None:
    """Records with one key keep their order, however many digits the keys have."""
    records = np.array(numbers, dtype=np.uint64)
    actual = sort_by_key(records, key_bit)
    assert actual.tolist() == sorted(numbers, key=lambda number: number >> key_bit)
    assert actual.dtype == np.uint64


@pytest.mark.parametrize("bits", [9, 16, 30, 60])
@pytest.mark.parametrize("size", [1, 7, 256])
@pytest.mark.parametrize("skewed", [False, True])
def test_ranges_hold_all_records_of_their_keys(bits: int, size: int, skewed: bool) -> None:
    """Also of those keys that the sample does not reach; ranges of even keys have about as many records."""
    rng, key_bit = np.random.default_rng(bits), 3
    records = rng.integers(0, 1 << bits, 20_000, dtype=np.uint64)
    if skewed:
        records[: len(records) * 3 // 4] >>= np.uint64(bits // 2)
    sample = np.sort(records[::2])[:-100]
    ranges = KeyRanges.from_sample(sample, size, key_bit, bits)
    block = ranges.arrange(records)
    assert sorted(block.records.tolist()) == sorted(records.tolist())
    assert len(block.bounds) == size + 1
    assert (block.bounds[0], block.bounds[-1]) == (0, len(records))
    parts = [block.records[start:end] for start, end in pairwise(block.bounds)]
    keys = [part >> np.uint64(key_bit) for part in parts if len(part)]
    assert all(below.max() < above.min() for below, above in pairwise(keys))
    if bits > 12 and not skewed:
        assert max(map(len, parts)) < 2 * len(records) / size + 200
