"""All but the figures of one table: what stands beside them, and every other function; 10 million records.

Run with `python benchmarks/beside.py`. Each in a process of its own, two cores; CPU seconds, seconds on the
clock, and the peak of memory with the frames.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pandas as pd
from data import TARGETS, tables

import disclosure_pipeline as dp
from disclosure_pipeline.counting.opening import open_tables
from disclosure_pipeline.evaluation.counts import plan_measures
from disclosure_pipeline.evaluation.releases import measure_releases
from disclosure_pipeline.tables.grouping import grouping_of

RECORDS = 10_000_000


def count_releases(ground_truth: pd.DataFrame, released: Sequence[pd.DataFrame]) -> object:
    """As a gate counts the last of them beside the others."""
    with open_tables(ground_truth, released, "memory") as opened:
        plan = plan_measures(opened, KEYS, list(TARGETS), grouping_of())
        return measure_releases(opened, plan, [1] * len(released))


KEYS = ["sex", "age", "region", "household"]
WORKS: dict[str, tuple[Callable[[pd.DataFrame, pd.DataFrame], object], int]] = {
    # name: the call, and the part of the records that it is measured with
    "copies": (dp.copies, 1),
    "nearest": (dp.nearest, 1),
    "resemblance": (dp.resemblance, 10),
    "subgroups": (lambda gt, sd: dp.subgroups(gt, sd, KEYS, "health", by="region"), 10),
    "disclosure": (lambda gt, sd: dp.disclosure(gt, sd, KEYS, list(TARGETS)), 1),
    "certainty": (lambda gt, sd: dp.disclosure(gt, sd, KEYS, list(TARGETS), certainty=(0.9, 1)), 1),
    "holdout": (lambda gt, sd: dp.disclosure(gt, sd, KEYS, list(TARGETS), holdout=sd.tail(len(sd) // 10)), 1),
    "weights": (
        lambda gt, sd: dp.disclosure(gt.assign(weight=20.0), sd, KEYS, list(TARGETS), weights="weight"),
        1,
    ),
    "together, stacked": (lambda gt, sd: dp.disclosure(gt, [sd, sd, sd], KEYS, list(TARGETS)), 1),
    "releases": (lambda gt, sd: count_releases(gt, [sd, sd, sd]), 1),
    "remedy": (
        lambda gt, sd: dp.compare_remedies(gt, sd, KEYS, list(TARGETS), [dp.Remedy.remove_unique_copies()]),
        10,
    ),
}


def measure(name: str, records: int) -> tuple[int, int, float, float, float]:
    """Records, columns, CPU seconds, seconds, and megabytes at the peak."""
    call, part = WORKS[name]
    ground_truth, synthetic = tables(records // part)
    began, cpu = time.perf_counter(), time.process_time()
    call(ground_truth, synthetic)
    cpu, clock = time.process_time() - cpu, time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return len(ground_truth), len(ground_truth.columns), cpu, clock, peak


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--only", choices=list(WORKS))
    options = parser.parse_args()
    for name in [options.only] if options.only else list(WORKS):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            records, columns, cpu, clock, peak = process.submit(measure, name, options.records).result()
        size = f"{records:>12,} records {columns:>3} columns"
        print(f"{name:16}{size} {cpu:8.2f} CPU s {clock:8.2f} s {peak:8.0f} MB")


if __name__ == "__main__":
    main()
