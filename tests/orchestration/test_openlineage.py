"""A run of a gate as events of OpenLineage, which dagster-openlineage makes of Dagster's own."""

import json
import re
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from support import gates
from support.gates import COPY, GATE, HONEST
from support.paths import ROOT
from support.sampling import on_some_days

pytestmark = pytest.mark.usefixtures("remembered_results")


def sensor_of_the_page() -> dg.SensorDefinition:
    [code] = re.findall("```python\n(.*?)```", (ROOT / "docs/how_to/lineage.md").read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    [sensor] = [value for value in names.values() if isinstance(value, dg.SensorDefinition)]
    return sensor


def tail(sensor: dg.SensorDefinition, instance: dg.DagsterInstance) -> None:
    """Run the sensor until it finds no new event."""
    cursors: list[str | None] = [None]
    while cursors[-1:] != cursors[-2:-1]:
        with dg.build_sensor_context(instance=instance, cursor=cursors[-1]) as context:
            sensor.evaluate_tick(context)
            cursors.append(context.cursor)


# The sensor's module reads the environment once, when it is first imported: this is the only test of it.
@on_some_days
def test_events_hold_columns_and_verdicts_and_no_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "events.jsonl"
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "file")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__LOG_FILE_PATH", str(log))
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__APPEND", "true")
    sensor = sensor_of_the_page()
    with gates.home_in_memory(tmp_path, gates.load(gates.definition()), monkeypatch) as home:
        home.prepare({HONEST: gates.honest(), COPY: gates.ground_truth()})
        runs = {candidate: home.run_gate(candidate) for candidate in (HONEST, COPY)}
        assert [run.success for run in runs.values()] == [True, False]
        tail(sensor, home.instance)
    text = log.read_text()
    assert not [canary for canary in gates.CANARIES if canary in text]
    events = [json.loads(line) for line in text.splitlines()]
    for run in runs.values():
        told = [event for event in events if event["run"]["runId"] == run.run_id]
        assertions = {
            (dataset["name"], assertion["assertion"]): assertion
            for event in told
            for dataset in event["inputs"]
            for assertion in dataset["inputFacets"].get("dataQualityAssertions", {}).get("assertions", [])
        }
        evaluated = {
            ("/".join(check.asset_key.path), check.check_name): check
            for check in run.get_asset_check_evaluations()
        }
        assert assertions.keys() == evaluated.keys()
        for name, check in evaluated.items():
            is_warning = check.severity == dg.AssetCheckSeverity.WARN
            assert assertions[name]["success"] == (check.passed or is_warning), name
        columns = {name[1]: assertion.get("column") for name, assertion in assertions.items()}
        assert columns["found_repU"] is None and columns["key_overlap"] in {"sex", "age"}
        worst = str(evaluated[f"{GATE}/attribute_risk", "learned_DiSCO"].metadata["worst_clause"].value)
        assert worst == f"DiSCO[{columns['learned_DiSCO']}]"
        [schema] = [
            dataset["facets"]["schema"]
            for event in told
            for dataset in event["outputs"]
            if dataset["name"] == f"{GATE}/synthetic" and "schema" in dataset["facets"]
        ]
        assert {field["name"]: field["type"] for field in schema["fields"]} == {
            name: column["type"] for name, column in gates.definition()["columns"].items()
        }
    assert not assertions[f"{GATE}/dossier", "within_policy"]["success"]
