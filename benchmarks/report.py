"""docs/benchmarks.md, and what README.md takes from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import gate_run
from data import KEY_SETS, TARGETS
from measuring import FEW, LONG, OFTEN, SECONDS, Measured
from profiling import Place
from results import GATE, OURS, PEERS, PROTECTION, READ, SDMETRICS, Comparison, Results

_BEGIN, _END = "<!-- benchmarks -->", "<!-- /benchmarks -->"
_PLACES = 10
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
    """The largest tables in a few lines, of the cases over which the gate ran."""
    records = results.largest[0].records
    runs = {run.case: run for run in results.gate_runs if run.records == records}
    cases = [of for of in results.largest if of.case in KEY_SETS]
    columns = [(of, unit) for of in cases for unit in (_seconds, _peak)]
    rows = [[name, *(unit(of.works[name]) for of, unit in columns)] for name in (READ, OURS, *PEERS)]
    if runs:
        gate_row = [unit(runs[of.case].gate_run) if of.case in runs else "" for of, unit in columns]
        rows.insert(2, [f"{gate_run.GATE_RUN}, to the published release", *gate_row])
    headings = ["", *(f"{of.case}: {unit}" for of in cases for unit in ("seconds", "peak GB"))]
    times = [f"{of.times:.1f} ({of.case})" for of in runs.values() if of.disclosure.runs]
    sentences = []
    if times:
        sentences.append(
            f"A run of the gate takes {' and '.join(times)} times the CPU seconds of one `dp.disclosure` "
            "of the same files."
        )
    finished = [of for of in results.protection if of.works[SDMETRICS].runs]
    if finished:
        of = finished[-1]
        sentences.append(
            f"SDMetrics takes {_seconds(of.works[SDMETRICS])} s for the CAP protection of one target among "
            f"{of.records:,} records, `dp.disclosure_protection` {_seconds(of.works[PROTECTION])} s."
        )
    paragraphs = [
        f"GT and SD of {records:,} records each, 5 targets, {results.machine['Cores'].split(' ')[0]} cores:",
        _table(headings, rows),
        " ".join(sentences),
    ]
    return "\n\n".join(filter(None, paragraphs))


_HOW = """\
GT is the demo's population, SD its honest synthesis; in the uniform case every level of a column is as
frequent as any other, and a key combination has 1.5 records on average at 10 million. Targets: {targets};
2 to 25 levels, some missing.
Everybody starts from tables in memory in the form that suits the library (categories, enumerations, integers)
and computes identity, attribute and CAP disclosure from joint counts: a row for each combination of keys and
target level that occurs, added up by key. Ours also computes chance, overlap, guesses of the most frequent
level, the least possible CAP, and the one-way and two-way checks. Before anything was timed, the counts of
all were equal to ours, and the rest to 1e-9.

Every work has a process of its own. Its first run gives the peak of resident memory over what the process
held before, which are the tables. Then all run in turn, {often} times ({few} where a run takes over
{long} s); what takes over {most} s is stopped. Medians and ranges; CPU seconds are those of all threads."""

_SDMETRICS = """\
SDMetrics measures CAP protection only: of one target here, with 4 keys, by `DisclosureProtection` with the
method `cap`. `dp.disclosure_protection` is the same measure, and its figure was equal to 1e-9;
`dp.disclosure` computes all measures of five targets. Sizes at which SDMetrics would take over a minute are
not run."""

_GATE_RUN = """\
The job of a gate in this process, from the files that arrived to the published release: snapshot, contract,
overlaps, groups, all measures, controls, dossier, and everything once more before it is signed. Each work has
a process of its own and ran once over few records before; the first run tells the peak of memory, the others
the time. Every run gets a new file of the same records. Times: CPU seconds in those of one `dp.disclosure` of
the same files. A run measures twice, with its guards (copies, near copies, nearness, resemblance); what these
take by themselves is measured, too, over tables that are in memory and coded."""

_PROFILE = """\
Ours was run once more while its threads were looked at every 2 ms. A share is that of the moments at which a
thread worked in a function of the package, or in what NumPy or pandas did for it; waiting is left out. The
line is the one of the function at which it was met most often. Shares add up over threads: a function on one
thread keeps the clock running longer than its share tells."""


def _lines(results: Results) -> Iterator[str]:
    largest = results.largest
    yield "# Benchmarks"
    yield f"Written by `make bench` on {results.day}."
    yield _table(["", ""], [[name, value] for name, value in results.machine.items()])
    yield f"![Seconds of ours, the peers and the read]({_IMAGE})"
    yield "## The targets"
    yield f"They are meant for {_MEANT_FOR:,} records on two cores; these are {largest[0].records:,}."
    yield _table(["case", "figure", "measured", "at most", ""], list(_targets(largest)))
    yield "## Ours, the peers and the read"
    targets = ", ".join(f"`{target}`" for target in TARGETS)
    yield _HOW.format(targets=targets, often=OFTEN, few=FEW, long=LONG, most=SECONDS)
    for of in results.cases:
        yield f"### {of.case}, {of.records:,} records"
        yield (
            f"Of the key combinations in GT, {of.unique_keys:.1f} % are unique, which are {of.unique:.2f} % "
            "of its records."
        )
        yield _comparison(of, READ)
    if results.protection:
        yield "## SDMetrics"
        yield _SDMETRICS
    for of in results.protection:
        yield f"### {of.records:,} records"
        yield _comparison(of, PROTECTION)
    if results.gate_runs:
        yield "## A run of the gate"
        yield _GATE_RUN
        yield gate_run.table(results.gate_runs)
        yield _table(["case", "figure", "measured", "at most", ""], list(_gate_targets(results)))
    yield "## What takes the remaining time"
    yield _PROFILE
    for case, places in results.profiles.items():
        yield f"### {case}, {largest[0].records:,} records"
        yield _table(["share", "function", "line"], list(_shares(places)))


def _targets(cases: Sequence[Comparison]) -> Iterator[list[str]]:
    for i, of in enumerate(cases):
        ours = of.works[OURS]
        through = "from Parquet, through reader, contract and canonical form / read"
        figures = [
            (
                f"CPU seconds of {OURS} from frames / those of the read",
                of.cpu_ratio(OURS),
                "times",
                _TIMES[i],
            ),
            (f"peak memory of {OURS} over the frames", _gigabytes(ours), "GB", _GIGABYTES),
            (through, of.ratio(GATE), "times", _TIMES_GATE),
        ]
        for what, figure, unit, most in figures:
            kept = "kept" if figure <= most else "**not kept**"
            yield [of.case, what, f"{figure:.2f} {unit}", f"{most} {unit}", kept]


def _gate_targets(results: Results) -> Iterator[list[str]]:
    for cost in results.gate_runs:
        if not (cost.gate_run.runs and cost.disclosure.runs and cost.guards.runs):
            continue
        case, name = f"{cost.case}, {cost.records:,} records", "CPU seconds / those of the measurement"
        yield _target(case, name, cost.times, "times", gate_run.MOST_TIMES)
        most = gate_run.MOST_TIMES_WITHOUT_GUARDS
        yield _target(case, f"{name}, without the guards", cost.times_without_guards, "times", most)
        yield _target(case, "peak memory over its", cost.gigabytes, "GB", gate_run.MOST_GIGABYTES)
    small = results.small_gate_run
    if small and small.runs:
        case = f"the demo's gate, {gate_run.SMALL:,} records"
        yield _target(case, "seconds, once the process is up", small.seconds, "s", gate_run.MOST_SECONDS)


def _target(case: str, name: str, figure: float, unit: str, most: float) -> list[str]:
    kept = "kept" if figure <= most else "**not kept**"
    return [case, name, f"{figure:.2f} {unit}", f"{most} {unit}", kept]


def _comparison(of: Comparison, base: str) -> str:
    rows = []
    for name, measured in of.works.items():
        if not measured.runs:
            rows.append([name, measured.failed, "", "", "", _peak(measured)])
            continue
        runs = [run.seconds for run in measured.runs]
        times = measured.seconds / of.works[base].seconds
        rows.append(
            [
                name,
                _seconds(measured) + (f" ({measured.failed} at last)" if measured.failed else ""),
                f"{min(runs):.3g} to {max(runs):.3g}",
                f"{measured.cpu:.3g}",
                f"{times:.3g}" if times < 1000 else f"{times:,.0f}",
                _peak(measured),
            ]
        )
    header = "times the read" if base == READ else f"times {base}"
    return _table(["", "seconds", "range", "CPU seconds", header, "peak GB"], rows)


def _shares(places: Sequence[Place]) -> Iterator[list[str]]:
    for place in places[:_PLACES]:
        line = place.line.replace("|", "\\|")
        yield [f"{100 * place.share:.0f} %", f"`{place.module}`: `{place.function}`", f"`{line}`"]
    rest = sum(place.share for place in places[_PLACES:])
    yield [f"{100 * rest:.0f} %", f"{max(0, len(places) - _PLACES)} others", ""]


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
