"""The cost of a run of the gate: seconds for a small table, and CPU seconds in those of one measurement.

Run with `python benchmarks/gate_run.py`; `--records 4000000 --case "4 keys" --repeats 1` is one of its rows.
A run is the job of a gate in this process, from the files that arrived to the published release. Every work
has a process of its own, and ran once over few records before it is measured. Every run is the first of its
gate: one that has published something compares it with what arrives.
"""

from __future__ import annotations

import argparse
import io
import os
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from data import CASES, DICTIONARY, KEYS, TARGETS, Case, uniform_tables, write, written
from measuring import Measured, Prepare, StoppedError, run, worker

import disclosure_pipeline as dp
from disclosure_pipeline.candidates.store import MARKER
from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.demo.run import GATE as SURVEY
from disclosure_pipeline.demo.run import HONEST, load_keys, make_data
from disclosure_pipeline.evaluation.guards import measure_guards
from disclosure_pipeline.evaluation.record_sets import code_shared_columns, count_record_sets
from disclosure_pipeline.orchestration.component import run_job
from disclosure_pipeline.runtime.progress import ignore_progress
from disclosure_pipeline.tables.grouping import grouping_of

DISCLOSURE, GATE_RUN = "`dp.disclosure` of the files", "a run of the gate"
GUARDS = "the guards alone, once"
SIZES = (4_000_000, 10_000_000)
RUN_CASES = {**CASES, "4 keys, uniform": Case(KEYS, uniform_tables)}
"""Nearly all records of uniform tables are different."""

SMALL = 5_000  # records of the demo's survey, from CSV
CORES = 2
REPEATS = 3  # the first tells the memory, the others the time

# The most that a run may take: in CPU seconds of the measurement with its guards and without, gigabytes over
# it, seconds of a small one.
MOST_TIMES, MOST_TIMES_WITHOUT_GUARDS, MOST_GIGABYTES, MOST_SECONDS = 5, 3, 0.5, 1.5
MEASUREMENTS = 2  # of a run: one for the figures, and one by the release

_FEW = 5_000  # records that are run first, so that no import is timed
_NAME, _CANDIDATE = "benchmark", "benchmarked"


@dataclass(frozen=True)
class GateCost:
    """One measurement, one run of the gate and its guards once, over the same files."""

    case: str
    records: int
    disclosure: Measured
    gate_run: Measured
    guards: Measured

    @property
    def times(self) -> float:
        """CPU seconds of the run in those of the measurement."""
        return self.gate_run.cpu / self.disclosure.cpu

    @property
    def times_without_guards(self) -> float:
        """The same of a run without what its guards take, in both of its measurements."""
        return (self.gate_run.cpu - MEASUREMENTS * self.guards.cpu) / self.disclosure.cpu

    @property
    def gigabytes(self) -> float:
        """How far the run's peak of memory is over that of the measurement."""
        assert self.gate_run.first and self.disclosure.first
        return (self.gate_run.first.peak - self.disclosure.first.peak) / 1e9


def disclosure_of_files(paths: Sequence[Path], keys: Sequence[str], few: Sequence[Path]) -> Callable[[], Any]:
    """One measurement from the files."""

    def work() -> float:
        return float(_disclosure(paths, keys).identity["repU"].iloc[0])

    _disclosure(few, keys)
    return work


def _disclosure(paths: Sequence[Path], keys: Sequence[str]) -> dp.Disclosure:
    ground_truth, synthetic = paths
    return dp.disclosure(ground_truth, synthetic, list(keys), list(TARGETS))


def guards_over_tables(paths: Sequence[Path], keys: Sequence[str], few: Sequence[Path]) -> Callable[[], Any]:
    """The guards of GT and SD, in memory and coded, over the columns that the gate publishes."""
    _guards_over(few, keys)()
    return _guards_over(paths, keys)


def _guards_over(paths: Sequence[Path], keys: Sequence[str]) -> Callable[[], None]:
    names = [*keys, *TARGETS]
    opened = FramesInMemory(tuple(pd.read_parquet(path, columns=names) for path in paths[:2]), "memory")
    columns = code_shared_columns(opened, grouping_of(), ignore_progress)

    def work() -> None:
        records, _ = count_record_sets(opened, columns, TARGETS)
        measure_guards(records)

    return work


def gate_over_files(
    paths: Sequence[Path],
    keys: Sequence[str],
    few: Sequence[Path],
    folder: Path,
    repeats: int,
    engine: str | None = None,
) -> Callable[[], Any]:
    """A run of a gate over GT and SD that ends in a release."""
    _prepare_gate(few, keys, folder / "few", engine)()
    return _in_turn([_prepare_gate(paths, keys, folder / f"{number}", engine) for number in range(repeats)])


def survey_gate(folder: Path, records: int, repeats: int) -> Callable[[], Any]:
    """A run of the demo's gate over the demo's tables."""
    import dagster as dg

    from disclosure_pipeline.definitions import defs

    warnings.simplefilter("ignore")  # Dagster warns of its own previews

    def prepare(home: Path) -> Callable[[], float]:
        make_data(home / "demo", records, seed=0)
        incoming = home / "demo" / "incoming"
        source = incoming / HONEST / "synthetic.csv"

        def enter() -> None:
            os.environ["DAGSTER_HOME"] = str(home)
            load_keys(home / "demo" / "keys")

        enter()
        run = _run_of_gate(defs(), SURVEY, source, incoming, dg.DagsterInstance.ephemeral())

        def work() -> float:
            enter()
            return run()

        return work

    prepare(folder / "first")()
    return _in_turn([prepare(folder / f"{number}") for number in range(repeats)])


def _in_turn(runs: Sequence[Callable[[], float]]) -> Callable[[], float]:
    remaining = iter(runs)

    def run_next() -> float:
        return next(remaining)()

    return run_next


def _prepare_gate(
    paths: Sequence[Path], keys: Sequence[str], folder: Path, engine: str | None
) -> Callable[[], float]:
    import dagster as dg
    from dagster.components.testing import create_defs_folder_sandbox

    ground_truth, synthetic = paths
    load_keys(folder / "keys")
    attributes = {
        "name": _NAME,
        "ground_truth": str(ground_truth),
        **{name: str(folder / name) for name in ("incoming", "store", "releases")},
        "trusted_keys": str(folder / "keys" / "public-key.pem"),
        "columns": {name: {"type": column.type} for name, column in DICTIONARY.items()},
        "keys": list(keys),
        "targets": list(TARGETS),
        "warnings": "warn",  # of whole keys that are hardly shared, as those with a postcode are
        "policy": {
            **{"repU": 100, "DiSCO": 100, "detection_limit": 99},  # the tables are coarse
            **{"key_overlap": 1, "whole_key_overlap": 0},
        },
        "power_seconds": 0,
        **({"engine": engine} if engine else {}),
    }
    body = {"type": "disclosure_pipeline.DisclosureGate", "attributes": attributes}
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()), create_defs_folder_sandbox() as sandbox:
        warnings.simplefilter("ignore")  # Dagster warns of its own previews
        place = sandbox.scaffold_component(dp.DisclosureGate)
        (place / "defs.yaml").write_text(yaml.safe_dump(body, sort_keys=False))
        with sandbox.load_component_and_build_defs(place) as (_, defs):
            run = _run_of_gate(defs, _NAME, synthetic, folder / "incoming", dg.DagsterInstance.ephemeral())

    def work() -> float:
        load_keys(folder / "keys")
        return run()

    return work


def _run_of_gate(defs: Any, gate: str, source: Path, incoming: Path, instance: Any) -> Callable[[], float]:
    """GT is recorded now; what is returned runs the gate once over a candidate."""
    assert run_job(defs, f"{gate}_ground_truth", instance).success

    def work() -> float:
        folder = incoming / _CANDIDATE
        folder.mkdir(parents=True)
        (folder / source.name).hardlink_to(source)
        (folder / MARKER).touch()
        instance.add_dynamic_partitions(f"{gate}_candidates", [_CANDIDATE])
        ran = run_job(defs, f"{gate}_gate", instance, _CANDIDATE)
        assert ran.success, sorted(ran.get_failed_step_keys())
        made = ran.asset_materializations_for_node(f"{gate}__disclosure")
        repU: Any = made[0].metadata["repU"].value
        return float(repU)

    return work


def sort_in_use() -> Callable[[], str]:
    """Name what NumPy sorts without in a process that measures: see `machine.avoid_slow_sort`."""
    switched_off = os.environ.get("NPY_DISABLE_CPU_FEATURES", "nothing")
    return lambda: f"NumPy sorts with all that the processor has but {switched_off}"


def cost(case: str, records: int, folder: Path, repeats: int = REPEATS) -> GateCost:
    """One measurement and a run of the gate over the same files, which are written into the folder."""
    keys, draw = RUN_CASES[case].keys, RUN_CASES[case].draw
    paths = written(folder, records, draw)
    (folder / "few").mkdir(exist_ok=True)
    few = write(folder / "few", _FEW, draw)
    with tempfile.TemporaryDirectory(dir=folder) as home:
        works: Mapping[str, tuple[Prepare, Sequence[Any]]] = {
            DISCLOSURE: (disclosure_of_files, (paths, keys, few)),
            GATE_RUN: (gate_over_files, (paths, keys, few, Path(home), repeats)),
            GUARDS: (guards_over_tables, (paths, keys, few)),
        }
        costs_by_name = {name: _repeated(*work, repeats=repeats) for name, work in works.items()}
    first = [costs_by_name[name].first for name in (DISCLOSURE, GATE_RUN)]
    assert len({of.result for of in first if of}) <= 1, "the gate and the measurement do not agree"
    return GateCost(case, records, *(costs_by_name[name] for name in (DISCLOSURE, GATE_RUN, GUARDS)))


def small_cost(folder: Path, records: int = SMALL, repeats: int = 2 * REPEATS) -> Measured:
    """A run of the demo's gate in a process that ran it before."""
    with tempfile.TemporaryDirectory(dir=folder) as home:
        return _repeated(survey_gate, (Path(home), records, repeats), repeats=repeats)


def _repeated(prepare: Prepare, arguments: Sequence[Any], repeats: int) -> Measured:
    """A work in a process of its own: the first run tells the memory; the times are of all, or the others."""
    measured = Measured()
    with worker(prepare, *arguments) as process:
        try:
            process.answer()
            runs = [process.ask(run) for _ in range(repeats)]
        except StoppedError as reason:
            measured.failed = str(reason)
            return measured
    measured.first = runs[0]
    measured.runs = runs[1:] or runs
    return measured


def table(costs: Sequence[GateCost]) -> str:
    """The costs as a markdown table."""
    header = ["records", "keys", f"{DISCLOSURE}: CPU seconds", "peak GB"]
    header += [f"{GATE_RUN}: CPU seconds", "peak GB", "seconds", "times"]
    rows = [header, ["---"] * len(header)]
    for of in costs:
        row = [f"{of.records:,}", of.case]
        for measured in (of.disclosure, of.gate_run):
            if measured.failed or not measured.first:
                row += [measured.failed, ""]
            else:
                row += [f"{measured.cpu:.3g}", f"{measured.first.peak / 1e9:.2f}"]
        runs = of.disclosure.runs and of.gate_run.runs
        rows.append(row + ([f"{of.gate_run.seconds:.3g}", f"{of.times:.2f}"] if runs else ["", ""]))
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, nargs="*", default=SIZES, help="of GT and of SD")
    parser.add_argument("--case", choices=RUN_CASES, nargs="*", default=list(RUN_CASES), help="the keys")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--data", type=Path, help="a folder that keeps the tables for the next time")
    arguments = parser.parse_args()
    # Also of the processes that are started.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    with tempfile.TemporaryDirectory() as name:
        folder = arguments.data or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        with worker(sort_in_use) as process:
            process.answer()
            print(process.ask(run).result, flush=True)
        small = small_cost(folder)
        print(f"{SMALL:,} records: {small.seconds:.2f} s, {small.cpu:.2f} CPU s", flush=True)
        for records in arguments.records:
            for case in arguments.case:
                print(table([cost(case, records, folder, arguments.repeats)]), flush=True)


if __name__ == "__main__":
    main()
