"""Figures, printed results and evidence of the demo, as they were when they were last meant to change.

No figure may change by accident, and nobody's program that reads a dossier may break by accident. After a
change that is meant, make the files anew, read the difference, and say in CHANGELOG.md what it is:

    PYTHONPATH=.:tests python tests/golden/test_golden.py
"""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from support import gates
from support.figures import FRAMES
from support.paths import PACKAGE
from support.sampling import DATABASES, on_some_days, some_of

import disclosure_pipeline as dp
from disclosure_pipeline.demo.population import population
from disclosure_pipeline.demo.run import HONEST, LEAKY
from disclosure_pipeline.demo.syntheses import leak, synthesise
from disclosure_pipeline.evidence.page.rendering import make_publishable

FOLDER = Path(__file__).parent
FIGURES, PRINTED, GATE = "demo_figures.json", "demo_printed.txt", "demo_gate.txt"
SHIPPED = PACKAGE / "defs" / "survey" / "defs.yaml"

Tables = Mapping[str, Any]


# Figures, of every engine


@cache
def demo_tables() -> dict[str, pd.DataFrame]:
    """The demo's ground truth and candidates, and other people of the same country."""
    people = population()
    honest = synthesise(people)
    return {"gt": people, "honest": honest, "leaky": leak(honest, people), "holdout": population(2500, 7)}


def measure(tables: Tables, engine: str = "auto", *, both: bool = True) -> dict[str, dp.Disclosure]:
    """Measure the honest synthesis as the demo's gate does, and both together with every option."""
    definition = yaml.safe_load(SHIPPED.read_text(encoding="utf-8"))["attributes"]
    options: dict[str, Any] = {"groups": {"income": 20}, "special_values": {"income": [-8]}, "engine": engine}
    options |= {"keys": definition["keys"], "targets": definition["targets"]}
    results = {"honest": dp.disclosure(tables["gt"], tables["honest"], **options)}
    if both:
        options |= {"exclude": dp.Exclusions(count_over=10, missing_targets=True), "certainty": (0.8, 1)}
        syntheses = [tables["leaky"], tables["honest"]]
        results["both"] = dp.disclosure(tables["gt"], syntheses, holdout=tables["holdout"], **options)
    return results


@cache
def measure_in_memory() -> dict[str, dp.Disclosure]:
    return measure(demo_tables(), "memory")


def list_figures(results: Mapping[str, dp.Disclosure]) -> dict[str, Any]:
    """Every frame of the results as JSON has it: floats in full, null for what is missing."""
    listed = {}
    for name, result in results.items():
        for frame_name in (*FRAMES, "holdout"):
            frame = getattr(result, frame_name)
            rows = frame.reset_index() if frame.index.names != [None] else frame
            cells = rows.astype(object).where(rows.notna(), None).to_numpy().tolist()
            listed[f"{name}.{frame_name}"] = {"columns": list(map(str, rows.columns)), "rows": cells}
    return listed


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    figures: dict[str, Any] = json.loads((FOLDER / FIGURES).read_text(encoding="utf-8"))
    assert sum(len(frame["rows"]) for frame in figures.values()) > 100
    return figures


def assert_figures(actual: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """The very same numbers: JSON writes as many digits as a float has."""
    assert list(actual) == list(expected)
    for name, frame in expected.items():
        assert json.loads(json.dumps(actual[name])) == frame, name


@pytest.mark.parametrize("engine", ["memory", "partitioned"])
def test_the_figures_are_the_same_here(engine: str, expected: dict[str, Any]) -> None:
    results = measure_in_memory() if engine == "memory" else measure(demo_tables(), engine)
    assert_figures(list_figures(results), expected)


@on_some_days
@pytest.mark.parametrize("database", some_of(DATABASES, 2, part_in_ci=1), indirect=True)
def test_the_figures_are_the_same_in_a_database(
    database: Any, expected: dict[str, Any], tmp_path: Path
) -> None:
    """The ground truth lies there, the other tables are brought beside it. Spark is slow: it has one."""
    gt, is_spark = demo_tables()["gt"], database.name == "pyspark"
    if is_spark:  # Ibis brings it no integers beside missing values
        gt.to_parquet(tmp_path / "gt.parquet", index=False)
        table = database.read_parquet(tmp_path / "gt.parquet", table_name="golden")
        expected = {name: frame for name, frame in expected.items() if name.startswith("honest.")}
    else:
        table = database.create_table(
            "golden", gt.astype(dict.fromkeys(gt.select_dtypes("category"), object))
        )
    try:
        assert_figures(list_figures(measure({**demo_tables(), "gt": table}, both=not is_spark)), expected)
    finally:
        (database.drop_view if is_spark else database.drop_table)("golden")


# Printed results, evidence, names


def print_results() -> str:
    """Both results as they print."""
    return "\n\n".join(map(str, measure_in_memory().values())) + "\n"


def list_names(content: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every name in a structure of JSON by its path, and the type of its value."""
    if isinstance(content, dict):
        for name, value in content.items():
            yield from list_names(value, f"{path}.{name}" if path else name)
    elif isinstance(content, list):
        for value in content or [None]:
            yield from list_names(value, f"{path}[]")
    else:
        types = {bool: "true or false", int: "number", float: "number", str: "text"}
        yield path, types.get(type(content), "null")


def describe_structure(content: Any) -> list[str]:
    """A line for each name in a structure of JSON: its path and the types of its values."""
    types: dict[str, set[str]] = {}
    for path, kind in list_names(content):
        types.setdefault(path, set()).add(kind)
    return [f"{path}: {', '.join(sorted(kinds))}" for path, kinds in types.items()]


def describe_evidence(home: Path, candidate: str) -> str:
    """The clauses of a dossier with the figures of both editions, and the names in each."""
    internal = gates.read_json(home / "demo/store/survey/candidates" / candidate / "dossier.json")
    public = make_publishable(internal)
    clauses = [
        f"{clause['name']}: {clause['outcome']}, {clause['value']!r} of {clause['limit']!r}, "
        f"public {rounded['value']!r} of {rounded['limit']!r}"
        for clause, rounded in zip(internal["clauses"], public["clauses"], strict=True)
    ]
    sections = {
        f"{candidate}: {internal['decision']}": clauses,
        "The dossier": describe_structure(internal),
        "The edition for publication": describe_structure(public),
    }
    return "\n".join("\n".join([f"# {heading}", *lines, ""]) for heading, lines in sections.items())


def describe_gate() -> str:
    """The names in Dagster that runs, alerts and other assets refer to."""
    definitions = gates.load(yaml.safe_load(SHIPPED.read_text(encoding="utf-8"))["attributes"])
    graph, repository = definitions.resolve_asset_graph(), definitions.get_repository_def()
    names = [
        *(f"asset {key.to_user_string()}" for key in graph.get_all_asset_keys()),
        *(f"check {key.asset_key.to_user_string()}:{key.name}" for key in graph.asset_check_keys),
        *(f"job {job.name}" for job in repository.get_all_jobs() if not job.name.startswith("__")),
        *(f"sensor {sensor.name}" for sensor in repository.sensor_defs),
        *(f"schedule {schedule.name}" for schedule in repository.schedule_defs),
    ]
    return "".join(f"{name}\n" for name in sorted(names))


def test_the_results_print_the_same() -> None:
    assert print_results() == (FOLDER / PRINTED).read_text(encoding="utf-8")


@pytest.mark.parametrize("candidate", [HONEST, LEAKY])
def test_the_evidence_has_the_same_names(demo: tuple[Path, str], candidate: str) -> None:
    assert describe_evidence(demo[0], candidate) == (FOLDER / f"{candidate}.txt").read_text(encoding="utf-8")


def test_assets_and_checks_have_the_same_names() -> None:
    assert describe_gate() == (FOLDER / GATE).read_text(encoding="utf-8")


def write_anew() -> None:
    """Write every file of this folder that the tests of this module read."""
    figures = [
        f"{json.dumps(name)}: {{\n"
        f'"columns": {json.dumps(frame["columns"])},\n'
        '"rows": [\n' + ",\n".join(map(json.dumps, frame["rows"])) + "\n]}"
        for name, frame in list_figures(measure_in_memory()).items()
    ]
    texts = {FIGURES: "{\n" + ",\n".join(figures) + "\n}\n", PRINTED: print_results(), GATE: describe_gate()}
    with gates.quick_folder() as home:
        gates.run_demo(home)
        texts |= {f"{candidate}.txt": describe_evidence(home, candidate) for candidate in (HONEST, LEAKY)}
    for name, text in texts.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_anew()
