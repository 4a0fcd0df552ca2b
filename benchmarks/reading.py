"""Reading, contract, canonical form and alignment of 10 million records with 9 columns.

Run with `python benchmarks/reading.py`. Every step in a process of its own, two cores; memory is the peak of
the whole process, what the step starts from included.
"""

from __future__ import annotations

import os
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
import pyarrow.csv
import pyarrow.parquet
import yaml
from measuring import resident

import disclosure_pipeline as dp
from disclosure_pipeline.demo.population import population
from disclosure_pipeline.tables.contract import canonical_table, find_violations
from disclosure_pipeline.tables.dictionary import Column, Contract
from disclosure_pipeline.tables.encoding import read_columns
from disclosure_pipeline.tables.sources import read_raw

RECORDS = 10_000_000
CHUNK = 500_000
CORES = 2
GATE = Path(dp.__file__).parent / "defs" / "survey" / "defs.yaml"


def survey() -> dict[str, Column]:
    """The data dictionary of the demo, which is the table's."""
    columns = yaml.safe_load(GATE.read_text())["attributes"]["columns"]
    return {name: Column.model_validate(declared) for name, declared in columns.items()}


def write(folder: Path, seed: int) -> None:
    """The same table as CSV and as Parquet, and a column of numbers that are nearly all different."""
    random = np.random.default_rng(seed)
    people = population(CHUNK, seed)[list(survey())]
    schema = pa.Schema.from_pandas(people, preserve_index=False)
    numbers = pa.schema([("number", pa.float64())])
    with (
        pa.parquet.ParquetWriter(folder / f"{seed}.parquet", schema) as parquet,
        pa.csv.CSVWriter(folder / f"{seed}.csv", plain(pa.Table.from_pandas(people)).schema) as csv,
        pa.parquet.ParquetWriter(folder / f"number-{seed}.parquet", numbers) as number,
    ):
        for _ in range(RECORDS // CHUNK):
            part = pa.Table.from_pandas(people.sample(CHUNK, random_state=random), preserve_index=False)
            parquet.write_table(part.cast(schema))
            csv.write_table(plain(part))
            number.write_table(pa.table({"number": random.normal(size=CHUNK)}))


def plain(table: Any) -> Any:
    """Dictionaries as text, which is all that CSV has."""
    columns = [
        column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
        for column in table.columns
    ]
    names = [name for name in table.column_names if not name.startswith("__")]
    return pa.table(dict(zip(table.column_names, columns, strict=True))).select(names)


def timed(work: Callable[[], Any]) -> tuple[float, float, float]:
    """Seconds, CPU seconds, and gigabytes of peak memory."""
    start, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - start, time.process_time() - cpu, resident("VmHWM") / 1e9


def reading(path: Path) -> tuple[float, float, float]:
    return timed(lambda: read_raw(path, "T"))


def contract(path: Path, column: Column | None = None) -> tuple[float, float, float]:
    """With a column given, every column is declared so: then every record breaks the contract."""
    raw = read_raw(path, "T")
    dictionary = {name: column or declared for name, declared in survey().items()}
    read = read_columns(raw.head(1000), dictionary)
    find_violations(list(raw.columns), 1000, read, Contract(dictionary, "T", (), True))  # imports pandera

    def check() -> None:
        read = read_columns(raw, dictionary)
        find_violations(list(raw.columns), len(raw), read, Contract(dictionary, "T", list(dictionary), True))

    return timed(check)


def canonical(path: Path) -> tuple[float, float, float]:
    """Contract and canonical form of a survey, or of a column of numbers."""
    raw = read_raw(path, "T")
    dictionary = {"number": Column(type="number")} if "number" in raw.columns else survey()
    canonical_table(raw.head(1000), Contract(dictionary, "T", (), only_known=True))  # imports pandera
    return timed(lambda: canonical_table(raw, Contract(dictionary, "T", list(dictionary), only_known=True)))


def alignment(paths: list[Path], what: str) -> tuple[float, float, float]:
    dictionary = survey()
    gt, sd = (
        canonical_table(read_raw(path, "T"), Contract(dictionary, "T", (), True)).frame for path in paths
    )
    if what == "copies":
        return timed(lambda: dp.copies(gt, sd))
    return timed(lambda: dp.replicated_uniques(gt, sd, ["sex", "age", "region", "household"]))


def main() -> None:
    rows = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for seed in (1, 2):
            in_fresh_process(write, folder, seed)
        parquet = [folder / f"{seed}.parquet" for seed in (1, 2)]
        steps: dict[str, tuple[Any, ...]] = {
            "read CSV": (reading, folder / "1.csv"),
            "read Parquet": (reading, parquet[0]),
            "read Parquet, one column of different numbers": (reading, folder / "number-1.parquet"),
            "contract": (contract, parquet[0]),
            "contract, every record failing": (contract, parquet[0], Column(type="date")),
            "contract and canonical form": (canonical, parquet[0]),
            "the same, from CSV": (canonical, folder / "1.csv"),
            "the same, one column of different numbers": (canonical, folder / "number-1.parquet"),
            "uniques of two tables": (alignment, parquet, "uniques"),
            "exact copies of two tables": (alignment, parquet, "copies"),
        }
        for step, (work, *arguments) in steps.items():
            rows[step] = in_fresh_process(work, *arguments)
    print(f"{RECORDS:,} records, 9 columns\n")
    table = pd.DataFrame(rows, index=["seconds", "CPU seconds", "peak GB"]).T
    print(table.to_string(float_format="{:.2f}".format))


def in_fresh_process(work: Callable[..., Any], *arguments: Any) -> Any:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=two_cores) as process:
        return process.submit(work, *arguments).result()


def two_cores() -> None:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])


if __name__ == "__main__":
    main()
