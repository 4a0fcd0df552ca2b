"""`disclosure()` at 10 million GT and SD records, beside reading the same columns from Parquet with pyarrow.

Run with `python benchmarks/kernel.py` (a number of records can be given). Two cores, 5 targets, all measures.
Three works in turn, several times, in one process: the read; the measures, from frames of categories and
integers that are there; and the whole way from the files, through reader, contract and canonical form.
Seconds are medians. The peak of memory is that of a process of its own, over the frames.
"""

from __future__ import annotations

import gc
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
from disclosure import resident

import disclosure_pipeline as dp
from disclosure_pipeline.tables.contract import canonical_table, read_canonical
from disclosure_pipeline.tables.dictionary import Column

RECORDS = 10_000_000
CHUNK = 1_000_000
RUNS = 5
CORES = 2
TARGETS = {"abroad": 2, "health": 5, "work": 7, "education": 12, "income": 25}
CASES = {
    "4 keys": ["sex", "age", "region", "household"],
    "4 keys and a postcode": ["sex", "age", "region", "household", "postcode"],
    "age and postcode": ["age", "postcode"],
}
INTEGERS = ("age", "postcode")


def write(path: Path, records: int, seed: int) -> None:
    """A table of text in dictionaries and of integers; targets depend on the keys."""
    random = np.random.default_rng(seed)
    writer = None
    for start in range(0, records, CHUNK):
        table = pa.table(some(random, min(CHUNK, records - start)))
        writer = writer or pa.parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def some(random: np.random.Generator, records: int) -> dict[str, Any]:
    """Some records: the lower levels of a column are the more frequent ones."""

    def skewed(levels: int) -> Any:
        weights = 1 / (np.arange(levels) + levels / 2)
        return random.choice(levels, records, p=weights / weights.sum())

    keys = {"sex": skewed(2), "age": skewed(98), "region": skewed(16), "household": skewed(6)}
    codes = keys | {"postcode": 10_000 + random.integers(0, 20_000, records)}
    for target, levels in TARGETS.items():
        of_key = (keys["age"] // 10 + 3 * keys["region"] + keys["household"]) % levels
        codes[target] = np.where(random.random(records) < 1 / 2, of_key, skewed(levels))
    return {
        name: pa.array(code.astype(np.int32))
        if name in INTEGERS
        else pa.DictionaryArray.from_arrays(
            pa.array(code.astype(np.int8), mask=(name == "income") & (random.random(records) < 1 / 50)),
            [f"{name} {level}" for level in range(TARGETS.get(name, 16))],
        )
        for name, code in codes.items()
    }


def works_of(paths: list[Path], keys: list[str]) -> dict[str, Callable[[], Any]]:
    """What is measured of one case; the frames are there already."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    columns = [*keys, *TARGETS]
    types = {name: "integer" if name in INTEGERS else "category" for name in columns}
    dictionary = {name: Column.model_validate({"type": kind}) for name, kind in types.items()}
    gt, sd = (pd.read_parquet(path, columns=columns) for path in paths)

    def through_the_gate() -> dp.Disclosure:
        tables = [read_canonical(path, dictionary, "T", columns, False).frame for path in paths]
        return dp.disclosure(tables[0], tables[1], keys, list(TARGETS))

    canonical_table(gt.head(1000), dictionary, "T", columns, False)  # imports what the contract needs
    dp.disclosure(gt.head(1000), sd.head(1000), keys, list(TARGETS))
    return {
        "read": lambda: [pyarrow.parquet.read_table(path, columns=columns) for path in paths],
        "from frames": lambda: dp.disclosure(gt, sd, keys, list(TARGETS)),
        "from Parquet": through_the_gate,
    }


def times(paths: list[Path], keys: list[str]) -> tuple[dict[str, list[tuple[float, float]]], float]:
    """Seconds and CPU seconds of each work, several times in turn; and the UiO of the tables."""
    works = works_of(paths, keys)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    for _ in range(RUNS):
        for name, work in works.items():
            gc.collect()
            start, cpu = time.perf_counter(), time.process_time()
            work()
            found[name].append((time.perf_counter() - start, time.process_time() - cpu))
    return found, works["from frames"]().identity["UiO"].iloc[0]


def peak(paths: list[Path], keys: list[str], work: str) -> float:
    """Gigabytes over what the process held before, which are the frames; nothing else ran in it."""
    works = works_of(paths, keys)
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = resident("VmRSS")
    works[work]()
    return (resident("VmHWM") - before) / 1e9


def in_fresh_process(work: Callable[..., Any], *arguments: Any) -> Any:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(work, *arguments).result()


def main() -> None:
    records = int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / "gt.parquet", Path(folder) / "sd.parquet"]
        for seed, path in enumerate(paths):
            write(path, records, seed)
        for case, keys in CASES.items():
            found, unique = in_fresh_process(times, paths, keys)
            print(f"{case}: {unique:.0f} % of the GT records are unique")
            read = statistics.median(seconds for seconds, _ in found["read"])
            for name, runs in found.items():
                rows.append(
                    {
                        "case": case,
                        "work": name,
                        "seconds": statistics.median(seconds for seconds, _ in runs),
                        "range": f"{min(runs)[0]:.2f} to {max(runs)[0]:.2f}",
                        "CPU seconds": statistics.median(cpu for _, cpu in runs),
                        "times the read": statistics.median(seconds for seconds, _ in runs) / read,
                        "peak GB": in_fresh_process(peak, paths, keys, name),
                    }
                )
    print(f"\n{records:,} GT and SD records, 5 targets; {RUNS} runs in turn, {CORES} cores\n")
    print(pd.DataFrame(rows).to_string(index=False, float_format="{:.2f}".format))


if __name__ == "__main__":
    main()
