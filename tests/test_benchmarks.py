"""The benchmarks compare like with like, and write what they found."""

import os
import re
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from pathlib import Path

import gate_run
import measuring
import numpy as np
import pandas as pd
import pytest
import report
import starting
from data import CASES, KEY_SETS, KEYS, TARGETS, tables
from figures import ATTRIBUTE, CAP, IDENTITY, Figures, differences
from measuring import Measured, Run
from peers import ours, protection
from results import GATE, ONE_CORE, OURS, PEERS, READ, Comparison, Results
from support.paths import ROOT
from support.processes import PATIENCE, run_program
from support.sampling import on_some_days, only_in_ci

from disclosure_pipeline.release.keys import SALT, SIGNING_KEY

RECORDS = 1000


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Tables with gaps in keys and targets, with few postcodes, so that many keys are in both."""
    random = np.random.default_rng(1)
    folder = tmp_path_factory.mktemp("tables")
    actual = []
    for name, table in zip(("gt", "sd"), tables(RECORDS, 1), strict=True):
        table["postcode"] = table["postcode"] % 7
        for column in ("sex", "age", "household", "postcode", "work", "worked_abroad"):
            table[column] = table[column].convert_dtypes().mask(random.random(len(table)) < 1 / 10)
        table["region"] = pd.Categorical(table["region"].astype(object), sorted(set(table["region"])))
        table.to_parquet(folder / f"{name}.parquet", index=False)
        actual.append(folder / f"{name}.parquet")
    return actual


@pytest.fixture(scope="module")
def expected(paths: list[Path]) -> Callable[[str], Figures]:
    """The figures of a case."""
    return cache(lambda case: ours.from_frames(paths, CASES[case].keys, TARGETS)())


@on_some_days
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("peer", ["pandas_by_hand", "polars_by_hand", "duckdb_by_hand", "gate"])
def test_peers_compute_what_ours_computes(
    peer: str, case: str, paths: list[Path], expected: Callable[[str], Figures]
) -> None:
    prepare = ours.through_the_gate if peer == "gate" else import_module(f"peers.{peer}").prepare
    work = prepare(paths, CASES[case].keys, TARGETS)
    assert not differences(expected(case), work())
    assert not differences(expected(case), work())  # nothing of the first run is left


@pytest.mark.parametrize("case", CASES)
def test_the_figures_tell_something(case: str, expected: Callable[[str], Figures]) -> None:
    """Every measure is there, and none is the same for all tables."""
    figures = expected(case)
    assert set(figures.counts) == {*IDENTITY, *(f"{name}[{t}]" for name in ATTRIBUTE for t in TARGETS)}
    assert set(figures.percent) == {f"{name}[{t}]" for name in CAP for t in TARGETS}
    assert all(0 < count < RECORDS for count in figures.counts.values())
    assert all(np.isfinite(percent) and percent for percent in figures.percent.values())


@pytest.mark.filterwarnings("ignore")  # of SDMetrics
def test_sdmetrics_computes_what_ours_computes(paths: list[Path]) -> None:
    arguments = (paths, KEYS, ("health",))
    figure = protection.ours(*arguments)()
    assert 0 < figure < 1
    assert protection.sdmetrics(*arguments)() == pytest.approx(figure, abs=1e-9)


def test_differences_are_found() -> None:
    one = Figures({"UiO": 3}, {"DCAP[work]": 12.5, "TCAP[work]": float("nan")})
    assert not differences(one, one)
    assert differences(one, Figures({"UiO": 4}, one.percent)) == ["UiO"]
    assert differences(one, Figures(one.counts, {**one.percent, "DCAP[work]": 12.5 + 1e-7})) == ["DCAP[work]"]
    assert differences(one, Figures({}, {"DCAP[work]": 12.5})) == ["TCAP[work]", "UiO"]


@only_in_ci("measures every work of every case", days=3)
def test_the_small_run_writes_a_whole_document(tmp_path: Path) -> None:
    kept = {path: path.read_text() for path in (ROOT / "README.md", ROOT / "docs" / "benchmarks.md")}
    command = [sys.executable, str(ROOT / "benchmarks" / "run.py")]
    ran = run_program([*command, "--records", "2000", "--output", tmp_path], limit=2 * PATIENCE)
    assert ran.returncode == 0, ran.stderr
    text = (tmp_path / "benchmarks.md").read_text()
    assert "\n## Limits\n" in text and str(ROOT) not in text
    for case in CASES:
        assert text.count(f"\n## {case}, 2,000 records\n") == 1
    for name in (READ, OURS, ONE_CORE, GATE, *PEERS):
        rows = re.findall(rf"^\| {re.escape(name)} \|(.*)\|$", text, re.MULTILINE)
        assert len(rows) == len(CASES)
        for row in rows:
            seconds, cpu, times, peak, efficiency = map(str.strip, row.split("|"))
            assert min(float(seconds), float(cpu), float(times)) > 0 and float(peak) >= 0
            assert bool(efficiency) == (name == OURS)
    assert (tmp_path / "images" / "benchmarks.svg").read_text().startswith("<svg")
    assert {path: path.read_text() for path in kept} == kept


def test_what_stands_behind_the_document_stays(tmp_path: Path) -> None:
    (tmp_path / "benchmarks.md").write_text("# Old\n\n<!-- /benchmarks -->\n\nBy hand.\n")
    for behind in ("\nBy hand.\n", ""):
        report.write(_results(), tmp_path)
        text = (tmp_path / "benchmarks.md").read_text()
        assert text == f"{report.document(_results())}\n<!-- /benchmarks -->\n{behind}"
        (tmp_path / "benchmarks.md").unlink()


def test_a_work_that_takes_too_long_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    with measuring.worker(partial(partial, time.sleep, 60)) as worker:
        worker.answer()
        monkeypatch.setattr(measuring, "SECONDS", 0.1)
        with pytest.raises(measuring.StoppedError, match=r"over 0\.1 s"):
            worker.ask(measuring.run)


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (partial(signal.raise_signal, signal.SIGKILL), "out of memory"),
        (partial(os._exit, 1), "crashed"),
        (partial(int, "x"), "failed: ValueError"),
    ],
)
def test_a_work_that_ends_otherwise_is_told(end: Callable[[], object], message: str) -> None:
    works: dict[str, tuple[measuring.Prepare, tuple[()]]] = {
        "it": (partial(partial, end), ()),
        "other": (partial(partial, int, "1"), ()),
    }
    actual = measuring.in_turn(works, lambda results: None)
    assert actual["it"].failed == message
    assert not actual["it"].runs
    assert len(actual["other"].runs) == measuring.OFTEN


@on_some_days
def test_a_run_of_the_gate_measures_what_a_measurement_does(
    paths: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in (SIGNING_KEY, SALT):  # the gate's keys are set, and are no other test's
        monkeypatch.setenv(variable, "")
    expected = gate_run.disclosure_of_files(paths, KEYS, paths)()
    assert 0 < expected < 100
    run = gate_run.gate_over_files(paths, KEYS, paths, tmp_path, repeats=2)
    assert [run(), run()] == [expected, expected]
    assert {place.parent.name for place in tmp_path.glob("*/releases")} == {"few", "0", "1"}
    gate_run.guards_over_tables(paths, KEYS, paths)()


def test_starts_are_measured() -> None:
    """A program that only prints; what a gate's programs take is for the benchmark itself."""
    cpu, seconds, printed = starting._run(dict(os.environ), sys.executable, "-c", "print(7)")
    assert 0 < cpu < 60 and 0 < seconds < 60 and printed == "7\n"


def test_gate_runs_starts_and_what_did_not_finish_are_shown() -> None:
    costs = [gate_run.GateCost(case, 10, _measured(5), _measured(30), _measured(10)) for case in KEY_SETS]
    starts = [starting.Start("`check`", 1.0, "CPU s", 1.5), starting.Start("`dg launch`", 9.0, "s", 8)]
    results = replace(_results(), gate_runs=costs, small_gate_run=_measured(1), starts=starts)
    document, summary = report.document(results), report.summary(results)
    assert "| pandas by hand | over 300 s |" in document and " limits. All are kept but:\n" in document
    assert document.count(" | 5 | 1.00 | 30 | 1.00 | 30 | 6.00 |") == len(costs)
    assert "| 6.00 times | 5 times |\n" in document
    assert "| `check` | 1.00 CPU s | 1.5 CPU s |\n| `dg launch` | 9.00 s | 8 s |" in document
    assert "| starting | `dg launch` | 9.00 s | 8 s |" in document
    # Only what is not kept stands among the limits. Both measurements have them: what is left of 30 is 10.
    limits = [row[-3:] for row in report._gate_targets(costs, results.small_gate_run)]
    assert limits.count(["2.00 times", "3 times", "kept"]) == len(costs)
    assert ["1.00 s", "1.5 s", "kept"] in limits
    assert "2.00 times" not in document and "| starting | `check`" not in document
    # In the README only of the largest tables, and nothing that is only read as a gate reads.
    assert "takes 5 s and 1.00 GB, a run of the gate to the published release 30 s, pandas" in summary
    assert GATE not in summary and "uniform" not in summary
    smaller = [replace(cost, records=5) for cost in costs]
    assert "gate" not in report.summary(replace(results, gate_runs=smaller))
    readme = report.in_readme("before\n<!-- benchmarks -->\nold\n<!-- /benchmarks -->\nafter\n", _results())
    assert readme.startswith("before\n<!-- benchmarks -->\nGT and SD of 10 records")
    assert readme.endswith("\n<!-- /benchmarks -->\nafter\n") and "old" not in readme
    assert "pandas by hand over 300 s." in readme


@only_in_ci("launches runs", days=2)
def test_every_program_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (SIGNING_KEY, SALT):
        monkeypatch.setenv(variable, "")
    monkeypatch.setattr(starting, "OFTEN", 1)
    starts = list(starting.measure_starts(tmp_path, Path(sys.prefix)))
    assert len(starts) == 6 and all(start.seconds > 0 for start in starts)


def _results() -> Results:
    """Build the results of a read that takes 1 s and of others that take 5; one did not finish."""
    works = {name: _measured(1 if name == READ else 5) for name in (READ, OURS, ONE_CORE, GATE, *PEERS)}
    works["pandas by hand"] = Measured(failed="over 300 s")
    cases = [Comparison(case, 10, works) for case in CASES]
    return Results("2024-01-31", {"Cores": "2"}, cases, [])


def _measured(seconds: float) -> Measured:
    run = Run(seconds, seconds, 10**9, None)
    return Measured(run, [run])


@on_some_days
def test_reading_files_of_statistics_packages_is_measured() -> None:
    """Each reader reads every record of each file, in a process that can import what it needs."""
    script = ROOT / "benchmarks" / "reading_statistics.py"
    ran = run_program([sys.executable, script, "--records", str(RECORDS), "--readers", "here,pyreadstat"])
    assert ran.returncode == 0, ran.stderr
    rows = [line.split() for line in ran.stdout.splitlines()[1:]]
    assert [row[-4] for row in rows] == ["here", "pyreadstat", "here", "pyreadstat"]
    assert all(float(number.replace(",", "")) >= 0 for row in rows for number in row[-3:])
