"""`make study`: what gates with their defaults make of common synthesizers and of tables that are known.

A part: `make study TABLES=acs12,Chile CANDIDATES=trees_5,fresh`. Your own synthesizer beside the others:
`make study SYNTHESIZER=my.py`, a file with one function, `synthesize(table, seed) -> table`. What is done
lies in build/synthesizers and is not done again, unless that folder is gone.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pandas as pd

from synthesizers import page, results
from synthesizers.candidates import CONTROLS, HERE, SEEDS, SEEDS_OF_FRESH, SYNTHESIZERS
from synthesizers.judging import Judge, finish, take_known_values, write_gate
from synthesizers.public_tables import TABLES

ROOT = Path(__file__).parents[2]
WORK = ROOT / "build" / "synthesizers"
_SECONDS = 180  # of a processor, for one synthetic table
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
# JAX compiles small models again and again: what a good compilation gains is less than it costs.
_COMPILE_FAST = {"XLA_FLAGS": "--xla_backend_optimization_level=0"}


@dataclass(frozen=True)
class Case:
    """A candidate of a table and a seed; `own` is the file of a user's synthesizer."""

    table: str
    candidate: str
    seed: int
    own: Path | None = None

    @property
    def environment(self) -> str | None:
        """Return the environment in which it is made; None if no synthesizer is needed."""
        if self.own is not None:
            return HERE
        return None if self.candidate in CONTROLS else SYNTHESIZERS[self.candidate].environment


@dataclass(frozen=True)
class Place:
    """The folders of everything that is made on the way."""

    work: Path
    environments: Path = WORK / "environments"

    def row(self, case: Case) -> Path:
        return self._folder(case) / f"{case.candidate}-{case.seed}.json"

    def made(self, case: Case) -> Path:
        return self._folder(case) / f"{case.candidate}-{case.seed}.parquet"

    def ground_truth(self, table: str, seed: int) -> Path:
        return self.work / table / f"ground_truth-{seed}.parquet"

    def python(self, environment: str) -> str:
        return str(self.environments / environment / "bin" / "python") if environment else sys.executable

    def _folder(self, case: Case) -> Path:
        if case.own is None:
            return self.work / case.table
        # A synthesizer that was edited is another one.
        folder = self.work / case.table / sha256(case.own.read_bytes()).hexdigest()[:16]
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def list_cases(tables: Sequence[str], candidates: Sequence[str], own: Path | None = None) -> list[Case]:
    """Return the cases of some tables and candidates, small tables first."""
    names = [name for name in (*CONTROLS, *SYNTHESIZERS) if name in candidates] + ([own.stem] if own else [])
    return [
        Case(table, name, seed, own)
        for table in TABLES
        if table in tables
        for name in names
        for seed in (SEEDS_OF_FRESH if name == "fresh" else SEEDS)
    ]


def run(cases: Sequence[Case], place: Place, processes: int) -> Iterator[dict[str, Any]]:
    """Yield a row for each case; those that are there are not made again."""
    waiting = [case for case in cases if not place.row(case).exists()]
    print(f"{len(cases)} candidates, of which {len(cases) - len(waiting)} are done.", flush=True)
    began = time.monotonic()
    with ThreadPoolExecutor(processes) as pool:
        made: dict[str, list[Future[None]]] = {}
        for table in dict.fromkeys(case.table for case in waiting):
            of_table = [case for case in waiting if case.table == table]
            _write_ground_truth(of_table, place)
            environments = dict.fromkeys(
                case.environment for case in of_table if case.environment is not None
            )
            made[table] = [
                pool.submit(_make, [case for case in of_table if case.environment == name], place)
                for name in environments
            ]
        for table, futures in made.items():
            for future in futures:
                future.result()
            _judge([case for case in waiting if case.table == table], place)
            print(f"{table}: {time.monotonic() - began:.0f} s", flush=True)
    for case in cases:
        yield json.loads(place.row(case).read_text(encoding="utf-8"))


def _write_ground_truth(cases: Sequence[Case], place: Place) -> None:
    table = TABLES[cases[0].table]
    whole = table.read()
    for seed in {case.seed for case in cases}:
        path = place.ground_truth(table.name, seed)
        path.parent.mkdir(parents=True, exist_ok=True)
        table.without_unit(table.halve(whole, seed)[0]).to_parquet(path, index=False)


def _make(cases: Sequence[Case], place: Place) -> None:
    """Make the synthetic tables of one ground truth and environment that are not made yet, in a process."""
    jobs = [
        {
            "candidate": case.candidate,
            "ground_truth": str(place.ground_truth(case.table, case.seed)),
            "seed": case.seed,
            "output": str(place.made(case)),
            "seconds": _SECONDS,
            "own": None if case.own is None else str(case.own.resolve()),
        }
        for case in cases
        if not place.made(case).exists()
    ]
    if not jobs:
        return
    environment = {**os.environ, **dict.fromkeys(_ONE_THREAD, "1"), **_COMPILE_FAST}
    environment["PYTHONPATH"] = str(Path(__file__).parents[1])
    name = cases[0].environment or HERE
    with (place.work / cases[0].table / f"output-{name or 'here'}.txt").open("a") as printed:
        subprocess.run(
            [place.python(name), "-m", "synthesizers.generate"],
            input="\n".join(map(json.dumps, jobs)),
            env=environment,
            stdout=printed,
            stderr=printed,
            text=True,
            check=False,
        )


def _judge(cases: Sequence[Case], place: Place) -> None:
    """Write the rows of candidates of one table."""
    table = TABLES[cases[0].table]
    whole = table.read()
    gate = write_gate(table, whole)
    for seed in dict.fromkeys(case.seed for case in cases):
        ground_truth, fresh = table.halve(whole, seed)
        known, judge = table.without_unit(ground_truth), Judge(gate, ground_truth)
        for case in (case for case in cases if case.seed == seed):
            row = {"table": case.table, "candidate": case.candidate, "seed": seed}
            try:
                if case.environment is None:
                    made = CONTROLS[case.candidate](known, fresh, seed)
                else:
                    made = take_known_values(pd.read_parquet(place.made(case)), known)
                row |= judge.decide(finish(made, known)).to_row()
            except Exception as error:  # one candidate that cannot be made or read does not end a study
                print(f"{case.table}, {case.candidate}, {seed}: {type(error).__name__}", flush=True)
                with (place.work / case.table / "output-judging.txt").open("a") as printed:
                    traceback.print_exc(file=printed)
                row["decision"] = results.FAILED
            place.row(case).write_text(json.dumps(row), encoding="utf-8")


def install(names: Iterable[str], place: Place) -> Iterator[str]:
    """Make the environments that are not there yet, and yield those that could be made."""
    for name in names:
        folder = place.environments / name
        ready = folder / "ready"
        lock = Path(__file__).parent / "environments" / f"{name}.lock"
        if not ready.exists():
            print(f"Installing {lock.relative_to(ROOT)}", flush=True)
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
            pip = [place.python(name), "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
            if subprocess.run([*pip, "-r", str(lock)], check=False).returncode:
                print(f"{name} could not be installed: what needs it is left out.", flush=True)
                continue
            ready.touch()
        yield name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--candidates", default=",".join((*CONTROLS, *SYNTHESIZERS)))
    parser.add_argument("--own", type=Path, help="a file with a function synthesize(table, seed)")
    parser.add_argument("--work", type=Path, default=WORK, help="the folder of what is done")
    parser.add_argument("--output", type=Path, help="the table of results; by default that of the repository")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    own: Path | None = arguments.own
    chosen = [] if own else arguments.candidates.split(",")
    tables = arguments.tables.split(",")
    unknown = {*chosen, *tables} - {*CONTROLS, *SYNTHESIZERS, *TABLES}
    if unknown:
        raise SystemExit(f"Nothing is called {', '.join(sorted(unknown))}.")
    if own is not None and (own.stem in {*CONTROLS, *SYNTHESIZERS} or not own.is_file()):
        raise SystemExit(f"{own} is no file, or another candidate is called {own.stem}.")
    place = Place(arguments.work)
    needed = {SYNTHESIZERS[name].environment for name in chosen if name in SYNTHESIZERS} - {HERE}
    there = {HERE, *install(sorted(needed), place)}
    possible = [name for name in chosen if name in CONTROLS or SYNTHESIZERS[name].environment in there]
    rows = list(run(list_cases(tables, possible, own), place, arguments.processes))
    if own is None:
        results.write(rows, arguments.output or results.TABLE)
        return
    output = arguments.output or place.work / f"{own.stem}.tsv"
    results.write(rows, output)
    print(page.compare(results.read(), results.read(output)))


if __name__ == "__main__":
    main()
