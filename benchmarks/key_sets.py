"""`disclosure_of_key_sets()`: all 220 sets of 3 of 12 keys, 12 targets, a million GT and SD records.

Run with `python benchmarks/key_sets.py` (a number of records can be given). Two cores. The peak of memory is
that of the first call, over the frames.
"""

from __future__ import annotations

import gc
import itertools
import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from measuring import resident

import disclosure_pipeline as dp

RECORDS = 1_000_000
RUNS = 3
CORES = 2
LEVELS = (2, 2, 3, 5, 6, 8, 12, 16, 25, 40, 73, 100)
KEYS = [f"key {levels} {i}" for i, levels in enumerate(LEVELS)]
TARGETS = [f"target {levels} {i}" for i, levels in enumerate(LEVELS)]


def table(records: int, seed: int) -> pd.DataFrame:
    """The lower levels of a column are the more frequent ones; targets depend on the keys."""
    random = np.random.default_rng(seed)

    def skewed(levels: int) -> Any:
        weights = 1 / (np.arange(levels) + levels / 2)
        return random.choice(levels, records, p=weights / weights.sum())

    keys = dict(zip(KEYS, map(skewed, LEVELS), strict=True))
    codes = dict(keys)
    for i, (name, levels) in enumerate(zip(TARGETS, LEVELS, strict=True)):
        of_keys = (keys[KEYS[i]] + 3 * keys[KEYS[(i + 5) % 12]]) % levels
        codes[name] = np.where(random.random(records) < 1 / 2, of_keys, skewed(levels))
    return pd.DataFrame(
        {name: pd.Series(code).map("level {}".format).astype("category") for name, code in codes.items()}
    )


def timed(work: Callable[[], Any]) -> tuple[float, float]:
    """Seconds and CPU seconds."""
    gc.collect()
    start, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - start, time.process_time() - cpu


def main() -> None:
    records = int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    gt, sd = table(records, 1), table(records, 2)
    key_sets = list(itertools.combinations(KEYS, 3))
    cases = {"12 keys, 12 other targets": TARGETS, "12 columns, keys and targets": KEYS}
    dp.disclosure_of_key_sets(gt.head(1000), sd.head(1000), key_sets[:2], TARGETS)
    rows = []
    for case, targets in cases.items():
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
        before = resident("VmRSS")
        work = partial(dp.disclosure_of_key_sets, gt, sd, key_sets, targets)
        runs = [timed(work) for _ in range(RUNS)]
        rows.append(row(case, len(key_sets), runs))
        rows[0].setdefault("peak GB", (resident("VmHWM") - before) / 1e9)  # later ones use what it let go of
    print(f"{records:,} GT and SD records; {RUNS} runs, {CORES} cores\n")
    print(pd.DataFrame(rows).to_string(index=False, float_format="{:.2f}".format))


def row(case: str, sets: int, runs: list[tuple[float, float]]) -> dict[str, Any]:
    seconds = [wall for wall, _ in runs]
    return {
        "case": case,
        "key sets": sets,
        "seconds": statistics.median(seconds),
        "range": f"{min(seconds):.2f} to {max(seconds):.2f}",
        "CPU seconds": statistics.median(cpu for _, cpu in runs),
        "seconds a set": statistics.median(seconds) / sets,
    }


if __name__ == "__main__":
    main()
