"""How the cost grows with the tables: the table of docs/scale.md.

Run with `python benchmarks/scale.py`; `--largest 100000000` takes an hour, 24 GB of memory and 20 GB of disk.
Without `--output docs/scale.md` it only prints. Every measurement has a process of its own, on two cores,
from Parquet to the result; all engines have to find the same figures. What takes longer than `--minutes` is
stopped. `--engines spark` measures Spark instead, `--engines gate` whole runs of a gate. Tables of more than
100 million records are drawn in a faster way (`data.resampled_tables`), and only `partitioned` measures them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import urlencode

from data import KEY_SETS, TARGETS, Draw, resampled_tables, tables, write, written
from figures import Figures, differences, of_disclosure
from gate_run import gate_over_files
from measuring import run
from peers import duckdb_by_hand

import disclosure_pipeline as dp

CORES = 2
SIZES = (1_000_000, 10_000_000, 100_000_000)
LARGEST = 10_000_000
BY_HAND = "DuckDB by hand"  # queries of our own, for fewer figures
ENGINES = {"memory": "memory", "partitioned": "partitioned", "DuckDB, by Ibis": "duckdb://", BY_HAND: BY_HAND}
PARTITIONS = {1_000_000: (1, 2, 8, 64), 10_000_000: (8,)}  # shuffle partitions of Spark, by records
GATE_SIZES = (10_000_000, 100_000_000)
FASTER_DRAWN = 100_000_000  # records: larger tables are drawn in a faster way
MINUTES = 30  # what takes longer is stopped
WARM_UP = 1_000  # records that are measured first, so that no import is timed
_WATCHED_EVERY = 1  # seconds
_SMALLEST_DISK = 0.1  # gigabytes: less may be anybody's

_SPARK = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "8g",
}


@dataclass(frozen=True)
class Cost:
    """Seconds on the clock and of all cores; the figures.

    `memory`: gigabytes over what was held before; `disk`: of temporary files at their largest. `by_hand` are
    the figures that a peer has, too; None of a gate. `figures` is empty for a peer.
    """

    seconds: float
    cpu: float
    memory: float
    disk: float
    figures: str
    by_hand: Figures | None = None


def measure(small: Sequence[Path], paths: Sequence[Path], keys: Sequence[str], engine: str) -> Cost:
    """Measure tables in this process, and those that it started."""
    if engine == BY_HAND:
        duckdb_by_hand.prepare(small, keys, TARGETS)()
        return _cost(lambda: ("", duckdb_by_hand.prepare(paths, keys, TARGETS)()))
    ask = partial(dp.disclosure, keys=list(keys), targets=list(TARGETS), engine=engine)
    ask(*small)

    def figures() -> tuple[str, Figures]:
        result = ask(*paths)
        text = result.identity.to_csv() + result.attribute.to_csv() + result.cap.to_csv()
        return text, of_disclosure(result)

    return _cost(figures)


def measure_gate(small: Sequence[Path], paths: Sequence[Path], keys: Sequence[str], engine: str) -> Cost:
    """Measure a run of a gate in this process, from the files that arrive to the published release."""
    with tempfile.TemporaryDirectory(dir=paths[0].parent) as home:
        work = gate_over_files(paths, keys, small, Path(home), repeats=1, engine=engine)
        return _cost(lambda: (str(work()), None))


def _cost(work: Callable[[], tuple[str, Figures | None]]) -> Cost:
    held = _peak_of_children()
    with _watched_disk() as disk:
        measurement = run(work)
    return Cost(
        measurement.seconds,
        measurement.cpu,
        (measurement.peak + max(0, _peak_of_children() - held)) / 1e9,
        max(disk) / 1e9,
        *measurement.result,
    )


@contextmanager
def _watched_disk() -> Iterator[list[int]]:
    """Bytes by which the disk of temporary files is fuller than before, again and again during the block."""
    taken, ended = [0], Event()
    free = shutil.disk_usage(tempfile.gettempdir()).free

    def watch() -> None:
        while not ended.wait(_WATCHED_EVERY):
            taken.append(free - shutil.disk_usage(tempfile.gettempdir()).free)

    watcher = Thread(target=watch)
    watcher.start()
    try:
        yield taken
    finally:
        ended.set()
        watcher.join()


def _peak_of_children() -> int:
    """The most resident memory of the processes that this one started: Spark's is one."""
    import psutil

    peak = 0
    for child in psutil.Process().children(recursive=True):
        status = Path(f"/proc/{child.pid}/status").read_text().splitlines()
        peak += sum(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    return peak


def in_fresh_process(work: Callable[..., Any], *arguments: Any, minutes: float = MINUTES) -> Any:
    """Call a function of a module in a new process; raise an error if that is stopped or killed."""
    import psutil

    receiver, sender = get_context("spawn").Pipe(duplex=False)
    process = get_context("spawn").Process(target=_send_result, args=(sender, work, arguments))
    process.start()
    sender.close()
    try:
        if not receiver.poll(60 * minutes):
            return TimeoutError(f"not within {minutes:g} minutes")
        return receiver.recv()
    except EOFError:
        process.join()
        if process.exitcode is not None and process.exitcode >= 0:
            raise
        return MemoryError("out of memory")
    finally:
        if process.is_alive():
            for child in psutil.Process(process.pid).children(recursive=True):
                child.kill()
            process.kill()
        process.join()


def _send_result(sender: Connection, work: Callable[..., Any], arguments: Sequence[Any]) -> None:
    sender.send(work(*arguments))


def spark(partitions: int, folder: Path, master: str = f"local[{CORES}]") -> str:
    """The engine's URL for a session with so many shuffle partitions, by default in one process."""
    options = _SPARK | {
        "spark.sql.shuffle.partitions": str(partitions),
        # Otherwise Spark joins partitions that are small, and the number would say little.
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    return f"pyspark://{master}?{urlencode(options)}"


def compare(
    engines: Mapping[int, Mapping[str, str]],
    cases: Sequence[str],
    folder: Path,
    minutes: float,
    measure: Callable[..., Cost] = measure,
) -> list[list[str]]:
    """A row for each size, case and engine; `engines` are those of each size."""
    rows = []
    small = write(folder, WARM_UP)
    for records, of_size in engines.items():
        draw: Draw = resampled_tables if records > FASTER_DRAWN else tables
        paths = in_fresh_process(written, folder, records, draw)
        for case in cases:
            costs: list[Cost] = []
            for name, engine in of_size.items():
                cost = in_fresh_process(measure, small, paths, KEY_SETS[case], engine, minutes=minutes)
                rows.append([f"{records:,}", case, name, *_cells(cost)])
                print(*rows[-1], sep=", ", flush=True)
                costs += [cost] if isinstance(cost, Cost) else []
            by_hand = [cost.by_hand for cost in costs if cost.by_hand]
            agree = len({cost.figures for cost in costs} - {""}) <= 1
            agree &= not any(differences(by_hand[0], of_other) for of_other in by_hand[1:])
            assert agree, f"the engines do not agree: {records}, {case}"
    return rows


def _cells(cost: Cost | Exception) -> list[str]:
    if isinstance(cost, Exception):
        return [str(cost), "", "", ""]
    disk = f"{cost.disk:.1f}" if cost.disk > _SMALLEST_DISK else ""
    return [f"{cost.seconds:.3g}", f"{cost.cpu:.3g}", f"{cost.memory:.2f}", disk]


def table(first: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    header = [*first, "seconds", "CPU seconds", "peak GB", "disk GB"]
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
    parser.add_argument("--engines", nargs="*", choices=[*ENGINES, "spark", "gate"], default=[*ENGINES])
    parser.add_argument("--cases", nargs="*", choices=[*KEY_SETS], default=[*KEY_SETS])
    parser.add_argument("--smallest", type=int, default=0, help="records of GT and of SD, at least")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="what takes longer is stopped")
    parser.add_argument("--data", type=Path, help="a folder that keeps the tables for the next time")
    parser.add_argument("--output", type=Path, help="the document whose tables are replaced")
    arguments = parser.parse_args()
    # Also of the processes that are started.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    tables_by_marker = {}
    with tempfile.TemporaryDirectory() as name:
        folder = arguments.data or Path(name)

        def rows(
            engines: Mapping[int, Mapping[str, str]], measure: Callable[..., Cost] = measure
        ) -> list[list[str]]:
            wanted = range(arguments.smallest, arguments.largest + 1)
            by_size = {size: of_size for size, of_size in engines.items() if size in wanted}
            return compare(by_size, arguments.cases, folder, arguments.minutes, measure)

        engines = {name: url for name, url in ENGINES.items() if name in arguments.engines}
        if engines:
            of_sizes = dict.fromkeys([*SIZES, arguments.largest], engines)
            tables_by_marker["growth"] = table(["records", "keys", "engine"], rows(of_sizes))
        if "gate" in arguments.engines:
            gates = rows({size: {"partitioned": "partitioned"} for size in GATE_SIZES}, measure_gate)
            tables_by_marker["gate"] = table(["records", "keys", "engine"], gates)
        if "spark" in arguments.engines:
            of_sizes = {
                size: {str(number): spark(number, Path(name)) for number in partitions}
                for size, partitions in PARTITIONS.items()
            }
            tables_by_marker["spark"] = table(["records", "keys", "shuffle partitions"], rows(of_sizes))
    for marker, text in tables_by_marker.items():
        print(f"\n{text}")
        if arguments.output:
            document = arguments.output.read_text(encoding="utf-8")
            arguments.output.write_text(between(document, marker, text), encoding="utf-8")


if __name__ == "__main__":
    main()
