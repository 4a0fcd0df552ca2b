"""`disclosure_protection()` at 1 million GT and SD records and 4 keys, beside SDMetrics where that finishes.

Run with `python benchmarks/protection.py`. One core; CPU seconds; memory is the peak over what the
frames take.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from measuring import measured

import disclosure_pipeline as dp
from disclosure_pipeline.demo.population import population
from disclosure_pipeline.demo.syntheses import synthesise

RECORDS = 1_000_000
RUNS = 3
METHODS = ["cap", "zero_cap", "generalized_cap"]
PEOPLE = ["sex", "age", "region", "household"]
RANDOM = ["k1", "k2", "k3", "k4"]
TARGETS = ["education", "health"]
PEER_RECORDS = [5_000, 20_000]
PEER_SECONDS = 60  # what would take longer is not run
GROWTH = {"cap": 1, "zero_cap": 1, "generalized_cap": 2}  # its time by the number of records, to what power

Result = TypeVar("Result")


def people(records: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The demo's population and a synthesis: nearly every key combination is found."""
    ground_truth, columns = population(records), [*PEOPLE, *TARGETS]
    return ground_truth[columns], synthesise(ground_truth)[columns]


def random(records: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Keys of 1,000 levels each: nobody is found, and the nearest differ in one to three keys."""

    def table(seed: int) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        columns = {key: rng.integers(0, 1000, records) for key in RANDOM}
        return pd.DataFrame(columns | {target: rng.integers(0, 8, records) for target in TARGETS})

    return table(1), table(2)


def written(tables: tuple[pd.DataFrame, pd.DataFrame], folder: Path, records: int) -> list[Path]:
    """The two tables as files: memory that making them left behind would hide what the measure needs."""
    paths = [folder / f"gt_{records}.parquet", folder / f"sd_{records}.parquet"]
    for table, path in zip(tables, paths, strict=True):
        table.to_parquet(path, index=False)
    return paths


def in_fresh_process(
    paths: list[Path], keys: list[str], method: str
) -> list[tuple[float, float, float, int]]:
    """CPU seconds, megabytes, cap_protection and the number of records matched, of several runs."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    ground_truth, synthetic = (pd.read_parquet(path) for path in paths)
    results: list[dp.DisclosureProtection] = []
    rows = []
    for _ in range(RUNS):
        seconds, megabytes = measured(
            lambda: results.append(dp.disclosure_protection(ground_truth, synthetic, keys, TARGETS, method))
        )
        rows.append((seconds, megabytes, *results[-1].figures[["cap_protection", "matched"]].iloc[0]))
    return rows


def peer(paths: list[Path], keys: list[str], method: str) -> tuple[float, float]:
    """CPU seconds of SDMetrics, and its cap_protection."""
    from sdmetrics.single_table import DisclosureProtection

    warnings.simplefilter("ignore")
    text = [pd.read_parquet(path).astype(str) for path in paths]  # it reads no categories
    start = time.process_time()
    results = DisclosureProtection.compute_breakdown(*text, keys, TARGETS, method)
    return time.process_time() - start, results["cap_protection"]


def alone(work: Callable[..., Result], *arguments: Any) -> Result:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(work, *arguments).result()


def beside_peer(paths: dict[int, list[Path]], keys: list[str], method: str) -> dict[str, str]:
    """For each number of records the seconds of SDMetrics and ours, whose figures have to be the same."""
    cells, seconds, before = {}, 0.0, PEER_RECORDS[0]
    for records in PEER_RECORDS:
        expected = seconds * (records / before) ** GROWTH[method]
        cell = "over a minute"
        if expected < PEER_SECONDS:
            seconds, figure = alone(peer, paths[records], keys, method)
            ours = alone(in_fresh_process, paths[records], keys, method)
            assert np.isclose(ours[0][2], figure, rtol=1e-9, equal_nan=True), (ours, figure)
            cell = f"{seconds:.1f}, ours {statistics.median(run[0] for run in ours):.3f}"
            before = records
        cells[f"SDMetrics s, {records:,}"] = cell
    return cells


def main() -> None:
    rows = []
    for tables, keys in ((people, PEOPLE), (random, RANDOM)):
        with tempfile.TemporaryDirectory() as folder:
            sizes = [RECORDS, *(PEER_RECORDS if tables is people else [])]
            paths = {n: written(tables(n), Path(folder), n) for n in sizes}
            for method in METHODS:
                runs = alone(in_fresh_process, paths[RECORDS], keys, method)
                seconds = [run[0] for run in runs]
                row = {
                    "tables": tables.__name__,
                    "method": method,
                    "matched": f"{runs[0][3]:,}",
                    "CPU s (median)": f"{statistics.median(seconds):.2f}",
                    "CPU s (range)": f"{min(seconds):.2f} to {max(seconds):.2f}",
                    "peak MB": f"{max(run[1] for run in runs):.0f}",
                }
                rows.append(row | (beside_peer(paths, keys, method) if tables is people else {}))
    print(f"{RECORDS:,} GT and SD records, 4 keys, sensitive {TARGETS}; {RUNS} runs each, one core\n")
    print(pd.DataFrame(rows).fillna("").to_string(index=False))


if __name__ == "__main__":
    main()
