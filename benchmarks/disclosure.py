"""`disclosure()` at 1 million GT and SD records, 4 keys, 5 targets, beside reading the same columns.

Run with `make bench`. One core; CPU seconds; memory is the peak of the process over what the frames take.
"""

from __future__ import annotations

import gc
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet

import disclosure_pipeline as dp
from disclosure_pipeline.demo.population import population
from disclosure_pipeline.demo.syntheses import synthesise

RECORDS = 1_000_000
KEYS = ["sex", "age", "region", "household"]
TARGETS = ["education", "income", "health", "work", "worked_abroad"]
RUNS = 5


def resident(field: str) -> int:
    """Bytes of resident memory of this process: VmRSS now, VmHWM at its peak."""
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


def measured(work: Callable[[], Any]) -> tuple[float, float]:
    """CPU seconds, and megabytes of peak memory over what was there before."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = resident("VmRSS")
    start = time.process_time()
    work()
    seconds = time.process_time() - start
    return seconds, (resident("VmHWM") - before) / 1e6


def in_fresh_process(paths: list[Path]) -> dict[str, list[tuple[float, float]]]:
    """Both works in turn, several times; memory that earlier work left behind would hide their own."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    ground_truth, synthetic = (pd.read_parquet(path) for path in paths)
    reads, computes = [], []
    for _ in range(RUNS):
        computes.append(measured(lambda: dp.disclosure(ground_truth, synthetic, KEYS, TARGETS)))
        reads.append(
            measured(lambda: [pyarrow.parquet.read_table(path, use_threads=False) for path in paths])
        )
    return {"read from Parquet (pyarrow)": reads, "disclosure()": computes}


def main() -> None:
    columns = [*KEYS, *TARGETS]
    ground_truth = population(RECORDS)[columns]
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / "gt.parquet", Path(folder) / "sd.parquet"]
        ground_truth.to_parquet(paths[0], index=False)
        synthesise(ground_truth)[columns].to_parquet(paths[1], index=False)
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            rows = process.submit(in_fresh_process, paths).result()
    table = pd.DataFrame(
        {
            "CPU s (median)": {name: statistics.median(s for s, _ in runs) for name, runs in rows.items()},
            "CPU s (range)": {
                name: f"{min(s for s, _ in runs):.3f} to {max(s for s, _ in runs):.3f}"
                for name, runs in rows.items()
            },
            "peak memory over the frames, MB": {name: max(m for _, m in runs) for name, runs in rows.items()},
        }
    )
    print(f"{RECORDS:,} GT and SD records, keys {KEYS}, targets {TARGETS}; {RUNS} runs in turn, one core\n")
    print(table.to_string(float_format="{:.3f}".format))
    ratio = table["CPU s (median)"].iloc[1] / table["CPU s (median)"].iloc[0]
    print(f"\ndisclosure() takes {ratio:.1f} times the read")


if __name__ == "__main__":
    main()
