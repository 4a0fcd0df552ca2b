"""`exposure()`: all 6,195 sets of up to 4 of 20 columns, 5 targets, a million GT and SD records.

Run with `python benchmarks/exposure.py` (a number of records can be given, and a share of the sets). Two
cores. To be true to the real work in less time, a seeded share of the subtrees can be measured; the seconds
of all are then those of a set times their number. Beside it, for a few of the sets, `disclosure()` one by
one: the ratio is of CPU seconds of one process, which another load of the machine does not change much.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import statistics
import time

import numpy as np
import numpy.typing as npt
import pandas as pd

import disclosure_pipeline as dp
from disclosure_pipeline.analyses.exposure import _prepare
from disclosure_pipeline.analyses.exposure_search import _list_parts, _search_part, estimate_seconds
from disclosure_pipeline.tables.alignment import check_tables
from disclosure_pipeline.tables.grouping import grouping_of

RECORDS = 1_000_000
CORES = 2
LEVELS = (2, 2, 2, 3, 3, 4, 5, 5, 6, 7, 8, 9, 10, 12, 16, 20, 25, 40, 73, 100)
TARGET_LEVELS = (2, 3, 5, 10, 20)
COLUMNS = [f"column {levels} {i}" for i, levels in enumerate(LEVELS)]
TARGETS = [f"target {levels}" for levels in TARGET_LEVELS]
ONE_BY_ONE = 5


def table(records: int, seed: int) -> pd.DataFrame:
    """The lower levels of a column are the more frequent ones; targets depend on the columns."""
    draw = np.random.default_rng(seed)

    def skewed(levels: int) -> npt.NDArray[np.int64]:
        weights = 1 / (np.arange(levels) + levels / 2)
        return draw.choice(levels, records, p=weights / weights.sum())

    columns = dict(zip(COLUMNS, map(skewed, LEVELS), strict=True))
    for i, (name, levels) in enumerate(zip(TARGETS, TARGET_LEVELS, strict=True)):
        of_columns = (columns[COLUMNS[3 * i]] + 3 * columns[COLUMNS[19 - i]]) % levels
        columns[name] = np.where(draw.random(records) < 1 / 2, of_columns, skewed(levels))
    return pd.DataFrame(columns)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("records", type=int, nargs="?", default=RECORDS)
    parser.add_argument("--share", type=float, default=1.0, help="of the subtrees, drawn with a seed")
    arguments = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    gt, sd = table(arguments.records, 1), table(arguments.records, 2)
    if arguments.share == 1:
        wall, cpu = time.perf_counter(), time.process_time()
        dp.exposure(gt, sd, COLUMNS, TARGETS, up_to=4, minutes=60, progress=True)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        sets = 6195
    else:
        tables = check_tables(gt, sd, COLUMNS, TARGETS, grouping_of())
        search, _ = _prepare(tables, tuple(COLUMNS), tuple(TARGETS), 4, 1)
        print(f"estimated: {estimate_seconds(search):.0f} s")
        parts = list(_list_parts(search))
        some = random.Random(1).sample(parts, max(1, round(arguments.share * len(parts))))
        wall, cpu, sets = time.perf_counter(), time.process_time(), 0
        for part in some:
            figures, _ = _search_part(search, part)
            sets += len(figures)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    several = random.Random(2).sample(list(itertools.combinations(COLUMNS, 4)), ONE_BY_ONE)
    seconds = []
    for keys in several:
        begun = time.process_time()
        dp.disclosure(gt, sd, list(keys), TARGETS)
        seconds.append(time.process_time() - begun)
    print(f"{arguments.records:,} GT and SD records, {sets:,} sets, {len(TARGETS)} targets, {CORES} cores")
    print(f"{wall:.1f} s, {cpu:.1f} CPU seconds, {1000 * cpu / sets:.1f} ms of CPU a set")
    print(f"all 6,195 sets: {6195 * cpu / sets:.0f} CPU seconds")
    print(f"disclosure(), one set: {1000 * statistics.median(seconds):.0f} ms of CPU")


if __name__ == "__main__":
    main()
