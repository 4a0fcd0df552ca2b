"""docs/benchmarks.md, and what README.md takes from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import gate_run
import starting
from data import KEY_SETS
from measuring import FEW, LONG, OFTEN, SECONDS, Measured
from results import GATE, ONE_CORE, OURS, PROTECTION, READ, Comparison, Results

_BEGIN, _END = "<!-- benchmarks -->", "<!-- /benchmarks -->"
_IMAGE = "images/benchmarks.svg"

# The most that ours may take: times the CPU seconds of the read (in the order of the cases), gigabytes,
# times the seconds of the read from Parquet in canonical form.
_MEANT_FOR = 10_000_000
_TIMES = (4, 4, 4)
_GIGABYTES = 1
_TIMES_GATE = 8


def write(results: Results, folder: Path) -> None:
    """The document and its picture; what stands behind the document's marker stays."""
    import chart  # with Altair, which every process that measures would import too

    (folder / _IMAGE).parent.mkdir(parents=True, exist_ok=True)
    chart.draw(results, folder / _IMAGE)
    file = folder / "benchmarks.md"
    _, _, behind = (file.read_text(encoding="utf-8") if file.exists() else "").partition(f"{_END}\n")
    file.write_text(f"{document(results)}\n{_END}\n{behind}", encoding="utf-8")


def document(results: Results) -> str:
    return "\n\n".join(_lines(results)) + "\n"


def in_readme(readme: str, results: Results) -> str:
    """The text with the short table between its markers."""
    before, rest = readme.split(_BEGIN)
    _, after = rest.split(_END)
    return f"{before}{_BEGIN}\n{summary(results)}\n{_END}{after}"


def summary(results: Results) -> str:
    """The largest tables of the first case that the gate ran over, in one sentence."""
    of = next(of for of in results.largest if of.case in KEY_SETS)
    ours, pandas = of.works[OURS], of.works["pandas by hand"]
    runs = [run for run in results.gate_runs if (run.case, run.records) == (of.case, of.records)]
    of_gate = "".join(
        f", a run of the gate to the published release {_seconds(run.gate_run)} s" for run in runs
    )
    cores = results.machine["Cores"].split(" ")[0]
    by_hand = f"{_seconds(pandas)}{' s' if pandas.runs else ''}"
    return (
        f"GT and SD of {of.records:,} records each, 5 targets, {of.case}, {cores} cores: `dp.disclosure` "
        f"takes {_seconds(ours)} s and {_peak(ours)} GB{of_gate}, pandas by hand {by_hand}."
    )


_KEPT = "kept"

_HOW = """\
GT is the demo's population, SD its honest synthesis, {records:,} records each. In the uniform case all
levels of a column are equally frequent. There are five targets with 2 to 25 levels, some of them missing.
Everybody starts from tables in memory, in the form that suits the library, and computes identity, attribute
and CAP disclosure; before anything is timed, all results are compared with ours and found equal.
`dp.disclosure` also computes baselines, overlaps and checks.

“Efficiency” is the time on one core in percent of the time on all of them, times their number.

Each contestant runs in its own process. The first run gives the peak of memory beyond the tables; then all
take turns, {often} times ({few} where a run takes over {long} s), and are stopped after {most} s. Figures
are medians; CPU seconds add up all threads."""

_SDMETRICS = """\
SDMetrics measures CAP protection of one target, here with 4 keys and {records:,} records;
`dp.disclosure_protection` is the same measure and gives the same figure to 1e-9. `dp.disclosure` computes
all measures of five targets."""

_GATE_RUN = """\
From the files that arrive to the published release: a run measures twice, runs its guards and controls, and
writes the dossier and the release. “Times” compares CPU seconds with those of one `dp.disclosure` of the
same files."""

_STARTING = """\
Programs over the demo's gate of {records:,} records, installed with the extra `ui` alone: CPU seconds of all
their processes, or seconds on the clock; the least of {often} times, a launched run once."""


def _lines(results: Results) -> Iterator[str]:
    largest = results.largest
    yield "# Benchmarks"
    machine = "; ".join(f"{name}: {value}" for name, value in results.machine.items())
    yield f"Written by `make bench` on {results.day}. {machine}."
    yield f"![Seconds of ours, the peers and the read]({_IMAGE})"
    yield _HOW.format(records=largest[0].records, often=OFTEN, few=FEW, long=LONG, most=SECONDS)
    for of in largest:
        yield f"## {of.case}, {of.records:,} records"
        yield f"{of.unique_keys:.1f} % of the keys in GT are unique: {of.unique:.2f} % of the records."
        yield _comparison(of, READ)
    if results.protection:
        yield "## SDMetrics"
        yield _SDMETRICS.format(records=results.protection[-1].records)
        yield _comparison(results.protection[-1], PROTECTION)
    if results.gate_runs:
        yield "## A run of the gate"
        yield _GATE_RUN
        yield gate_run.table(results.gate_runs)
    if results.starts:
        yield "## Starting"
        yield _STARTING.format(records=starting.RECORDS, often=starting.OFTEN)
        yield _table(
            ["", "seconds", "at most"],
            [[of.name, f"{of.seconds:.2f} {of.unit}", f"{of.most} {of.unit}"] for of in results.starts],
        )
    yield "## Limits"
    rows = [
        *_targets(largest),
        *_gate_targets(results.gate_runs, results.small_gate_run),
        *(_target("starting", of.name, of.seconds, of.unit, of.most) for of in results.starts),
    ]
    broken = [row[:-1] for row in rows if row[-1] != _KEPT]
    held = f"For {_MEANT_FOR:,} records on two cores `make bench` holds {len(rows)} limits"
    yield f"{held}. All are kept{' but:' if broken else '.'}"
    if broken:
        yield _table(["case", "figure", "measured", "at most"], broken)


def _targets(cases: Sequence[Comparison]) -> Iterator[list[str]]:
    for i, of in enumerate(cases):
        ours = of.works[OURS]
        through = "from Parquet / read"
        figures = [
            (
                f"CPU time of {OURS} / read",
                of.cpu_ratio(OURS),
                "times",
                _TIMES[i],
            ),
            (f"peak memory of {OURS}", _gigabytes(ours), "GB", _GIGABYTES),
            (through, of.ratio(GATE), "times", _TIMES_GATE),
        ]
        for what, figure, unit, most in figures:
            yield _target(of.case, what, figure, unit, most)


def _gate_targets(costs: Sequence[gate_run.GateCost], small: Measured | None) -> Iterator[list[str]]:
    for cost in costs:
        if not (cost.gate_run.runs and cost.disclosure.runs and cost.guards.runs):
            continue
        case, name = f"{cost.case}, {cost.records:,} records", "CPU time / measurement"
        yield _target(case, name, cost.times, "times", gate_run.MOST_TIMES)
        most = gate_run.MOST_TIMES_WITHOUT_GUARDS
        yield _target(case, f"{name}, without the guards", cost.times_without_guards, "times", most)
        yield _target(case, "peak memory beyond it", cost.gigabytes, "GB", gate_run.MOST_GIGABYTES)
    if small and small.runs:
        case = f"the demo's gate, {gate_run.SMALL:,} records"
        yield _target(case, "seconds, once the process is up", small.seconds, "s", gate_run.MOST_SECONDS)


def _target(case: str, name: str, figure: float, unit: str, most: float) -> list[str]:
    return [case, name, f"{figure:.2f} {unit}", f"{most} {unit}", _KEPT if figure <= most else "not kept"]


def _comparison(of: Comparison, base: str) -> str:
    rows = []
    for name, measured in of.works.items():
        if not measured.runs:
            rows.append([name, measured.failed, "", "", _peak(measured), *([""] if base == READ else [])])
            continue
        times = measured.seconds / of.works[base].seconds
        rows.append(
            [
                name,
                _seconds(measured) + (f" ({measured.failed} at last)" if measured.failed else ""),
                f"{measured.cpu:.3g}",
                f"{times:.3g}" if times < 1000 else f"{times:,.0f}",
                _peak(measured),
                *(
                    [f"{of.efficiency:.0f} %" if name == OURS and of.works[ONE_CORE].runs else ""]
                    if base == READ
                    else []
                ),
            ]
        )
    if base == READ:
        return _table(["", "seconds", "CPU seconds", "times the read", "peak GB", "efficiency"], rows)
    return _table(["", "seconds", "CPU seconds", f"times {base}", "peak GB"], rows)


def _seconds(of: Measured) -> str:
    return f"{of.seconds:.3g}" if of.runs else of.failed


def _gigabytes(of: Measured) -> float:
    return of.first.peak / 1e9 if of.first else float("nan")


def _peak(of: Measured) -> str:
    if not of.first:
        return ""
    gigabytes = _gigabytes(of)
    return f"{gigabytes:.2f}" if gigabytes >= 0.01 else f"{gigabytes:.4f}"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cells = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in cells)
