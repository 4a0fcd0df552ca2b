"""The cost of looking for copied people: `dp.disclosure` with the guards of copies, and without them.

Run with `python benchmarks/copied_people.py`. Each figure is the quickest of five runs in one process, on two
cores, from tables in memory: three keys and all other columns as targets. CPU seconds add up all threads. The
tables have numbers of 70 and of thousands of levels, and texts of 8, all of them drawn independently.
"""

from __future__ import annotations

import os
import warnings
from functools import partial

import numpy as np
import pandas as pd
from measuring import run
from scale import CORES

import disclosure_pipeline as dp
from disclosure_pipeline.errors import ComparabilityWarning
from disclosure_pipeline.evaluation import disclosure

SIZES = ((300, 4), (1_000, 5), (2_000, 10), (20_000, 10), (200_000, 10), (1_000_000, 6), (3_000_000, 8))
TEXTS = list("abcdefgh")


def draw(records: int, columns: int, seed: int) -> pd.DataFrame:
    """Draw a table."""
    rng = np.random.default_rng(seed)
    kinds = (
        lambda: rng.integers(0, 70, records),
        lambda: rng.choice(TEXTS, records),
        lambda: np.round(rng.lognormal(7, 1, records)),
    )
    return pd.DataFrame({f"c{place}": kinds[place % len(kinds)]() for place in range(columns)})


def main() -> None:
    """Print a row a size: CPU seconds without and with the guards, and how many times that is."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    warnings.simplefilter("ignore", ComparabilityWarning)  # amounts of few records are seldom shared
    limit = disclosure.MOST_CELLS
    for records, columns in SIZES:
        gt, sd = (draw(records, columns, seed) for seed in (1, 2))
        work = partial(dp.disclosure, gt, sd, ["c0", "c1", "c2"], groups={"c2": 10})
        costs = []
        for most in (0, limit):
            disclosure.MOST_CELLS = most
            costs.append(min(run(work).cpu for _ in range(5)))
        without, found = costs
        shown = (f"{without:.3f}", f"{found:.3f}", f"{found / without:.1f}")
        print(f"{records:,} records, {columns} columns", *shown, sep=" | ", flush=True)


if __name__ == "__main__":
    main()
