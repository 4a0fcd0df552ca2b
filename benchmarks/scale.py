"""How the cost grows with the tables: the table of docs/scale.md.

Run with `python benchmarks/scale.py`; `--largest 100000000` takes an hour, 24 GB of memory and 20 GB of disk.
Without `--output docs/scale.md` it only prints. Every measurement has a process of its own, on two cores,
from Parquet to the result; all engines have to find the same figures.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from data import CASES, TARGETS, write
from measuring import run

import disclosure_pipeline as dp

CORES = 2
SIZES = (100_000, 1_000_000, 10_000_000, 100_000_000)
LARGEST = 10_000_000
ENGINES = {"memory": "memory", "partitioned": "partitioned", "duckdb": "duckdb://"}
PARTITIONS = (1, 2, 8, 64, 200)
SPARK_SIZES = (1_000_000, 10_000_000)
WARM_UP = 1_000  # records that are measured first, so that no import is timed

_SPARK = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "8g",
}


@dataclass(frozen=True)
class Cost:
    """Seconds on the clock and of all cores; gigabytes of memory over what was held before; the figures."""

    seconds: float
    cpu: float
    gigabytes: float
    figures: str


def measure(small: Sequence[Path], paths: Sequence[Path], keys: Sequence[str], engine: str) -> Cost:
    """Measure tables in this process, and those that it started."""
    ask = partial(dp.disclosure, keys=list(keys), targets=list(TARGETS), engine=engine)
    ask(*small)
    cpu_before, held = _of_children()
    found = run(lambda: ask(*paths))
    cpu, peak = _of_children()
    result = found.result
    return Cost(
        found.seconds,
        found.cpu + cpu - cpu_before,
        (found.peak + max(0, peak - held)) / 1e9,
        result.identity.to_csv() + result.attribute.to_csv() + result.attribution.to_csv(),
    )


def _of_children() -> tuple[float, int]:
    """CPU seconds and the most resident memory of the processes that this one started: Spark's is one."""
    import psutil

    cpu, peak = 0.0, 0
    for child in psutil.Process().children(recursive=True):
        times = child.cpu_times()
        cpu += times.user + times.system
        status = Path(f"/proc/{child.pid}/status").read_text().splitlines()
        peak += sum(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    return cpu, peak


def in_fresh_process(work: Callable[..., Any], *arguments: Any) -> Any:
    """What a function of a module returns in a new process; None where that was killed."""
    try:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            return process.submit(work, *arguments).result()
    except BrokenProcessPool:
        return None


def spark(partitions: int, folder: Path) -> str:
    """The engine's URL for a local session with so many shuffle partitions."""
    options = _SPARK | {
        "spark.sql.shuffle.partitions": str(partitions),
        # Otherwise Spark joins partitions that are small, and the number would say little.
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    return f"pyspark://local[{CORES}]?{urlencode(options)}"


def compare(
    sizes: Sequence[int], cases: Sequence[str], engines: dict[str, str], folder: Path
) -> list[list[str]]:
    """A row for each size, case and engine."""
    rows = []
    small = write(folder, WARM_UP)
    for records in sizes:
        paths = [folder / f"{name}_{records}.parquet" for name in ("gt", "sd")]
        if not all(path.exists() for path in paths):
            paths = in_fresh_process(write, folder, records)
        for case in cases:
            found: dict[str, str] = {}
            for name, engine in engines.items():
                print(f"{records:,} records, {case}, {name}", flush=True)
                cost = in_fresh_process(measure, small, paths, CASES[case], engine)
                rows.append([f"{records:,}", case, name, *_shown(cost)])
                found |= {name: cost.figures} if cost else {}
            assert len(set(found.values())) <= 1, f"the engines do not agree: {records}, {case}"
    return rows


def _shown(cost: Cost | None) -> list[str]:
    if cost is None:
        return ["out of memory", "", ""]
    return [f"{cost.seconds:.3g}", f"{cost.cpu:.3g}", f"{cost.gigabytes:.2f}"]


def table(first: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    header = [*first, "seconds", "CPU seconds", "peak GB"]
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def between(text: str, marker: str, new: str) -> str:
    """The text with what stands between two markers replaced."""
    begin, end = f"<!-- {marker} -->", f"<!-- /{marker} -->"
    before, rest = text.split(begin)
    _, after = rest.split(end)
    return f"{before}{begin}\n{new}\n{end}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=LARGEST, help="records of GT and of SD, at most")
    parser.add_argument("--engines", nargs="*", choices=[*ENGINES, "spark"], default=[*ENGINES])
    parser.add_argument("--data", type=Path, help="a folder that keeps the tables for the next time")
    parser.add_argument("--output", type=Path, help="the document whose tables are replaced")
    arguments = parser.parse_args()
    # Also of the processes that are started.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = arguments.data or Path(name)
        engines = {name: url for name, url in ENGINES.items() if name in arguments.engines}
        if engines:
            sizes = [size for size in SIZES if size <= arguments.largest] or [arguments.largest]
            rows = compare(sizes, list(CASES), engines, folder)
            found["growth"] = table(["records", "keys", "engine"], rows)
        if "spark" in arguments.engines:
            sizes = [size for size in SPARK_SIZES if size <= arguments.largest] or [arguments.largest]
            by_partitions = {str(number): spark(number, Path(name)) for number in PARTITIONS}
            rows = compare(sizes, list(CASES), by_partitions, folder)
            found["spark"] = table(["records", "keys", "shuffle partitions"], rows)
    for marker, text in found.items():
        print(f"\n{text}")
        if arguments.output:
            document = arguments.output.read_text(encoding="utf-8")
            arguments.output.write_text(between(document, marker, text), encoding="utf-8")


if __name__ == "__main__":
    main()
