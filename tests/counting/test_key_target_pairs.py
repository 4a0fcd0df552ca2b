"""The GT records of each pair of a key's level and a target's level: against pairs that Python counts."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disclosure_pipeline.counting.counts import Target
from disclosure_pipeline.counting.memory import packing as engine
from disclosure_pipeline.counting.memory.packing import pack
from disclosure_pipeline.counting.memory.radix import Job, Limits, radix
from disclosure_pipeline.measures.exclusions import CodedExclusions
from disclosure_pipeline.runtime.progress import ignore_progress
from disclosure_pipeline.tables.coding import code_column

KEYS, TARGETS = ("a", "b", "c"), ("t", "u", "v", "w")
# Levels of the keys, and of the targets: of 1 to 5 binary digits with the one for missing.
SIZES = dict(zip((*KEYS, *TARGETS), (40, 3, 2, 3, 20, 1, 6), strict=True))


@given(
    st.integers(0, 2**32),
    st.lists(st.sampled_from(range(len(TARGETS))), min_size=1, unique=True).map(sorted),
    st.sampled_from([0, 300, 1 << 20]),  # cells of a table
    st.sampled_from([1, 60, 1 << 20]),  # records of a part
    st.sampled_from([1, 100, 1 << 15]),  # cells of targets that are counted together
    st.sampled_from([1, 8, 1 << 10]),  # combinations of keys that are
)
def test_pairs_of_some_targets(
    seed: int, listed: list[int], table: int, part: int, cells: int, combinations: int
) -> None:
    random = np.random.default_rng(seed)
    frames = [
        pd.DataFrame({name: random.integers(0, size, records) for name, size in SIZES.items()})
        for records in (200, 90)
    ]
    columns = {name: code_column(name, [frame[name] for frame in frames], ["GT", "SD"]) for name in SIZES}
    records = tuple(map(len, frames))
    targets = [Target(columns[name], CodedExclusions(), 0) for name in TARGETS]
    keys = radix([columns[name] for name in KEYS], records, 1 << 40)
    job = Job(keys, tuple(targets), records, Limits(table=table, part=part, threads=0), ignore_progress)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "_CHUNK", 70)
        patch.setattr(engine, "_MOST_CELLS", cells)
        patch.setattr(engine, "_MOST_COMBINATIONS", combinations)
        pairs = engine.pairs_of_key(job, pack(job, targets), listed)
    for of_keys, i in zip(pairs, listed, strict=True):
        target = columns[TARGETS[i]]
        for of_key, name in zip(of_keys, KEYS, strict=True):
            codes = columns[name].codes[0].astype(int) * target.size + target.codes[0]
            assert dict(zip(of_key.groups.tolist(), of_key.sums.tolist(), strict=True)) == Counter(
                codes.tolist()
            )
