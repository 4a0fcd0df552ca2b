"""Dagster finds the gate by the command that the README names.

That `dg dev` starts a user interface, the tutorial shows; what its pages show, the tests of its pages.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

from support import gates
from support.paths import ROOT
from support.processes import run_program
from support.sampling import only_in_ci

from disclosure_pipeline.definitions import defs as load_definitions

# What `dg dev` is to show of the gate.
ASSETS = {
    *(("survey", name) for name in ("ground_truth", "synthetic", "bins", "dossier", "release", "candidates")),
    *(("survey", name) for name in ("identity_disclosure", "attribute_disclosure")),
}
SENSORS = {"survey_arrivals", "survey_failures"}
SCHEDULES = ["survey_ground_truth_changed"]


def test_the_code_location_has_the_gate() -> None:
    """What the user interface is given to show."""
    with gates.quiet():
        repository = load_definitions().get_repository_def()
    assert {tuple(key.path) for key in repository.asset_graph.get_all_asset_keys()} == ASSETS
    assert {sensor.name for sensor in repository.sensor_defs} == SENSORS
    assert [schedule.name for schedule in repository.schedule_defs] == SCHEDULES


def test_the_page_of_an_asset_has_a_dozen_checks_at_most() -> None:
    """Those that the policy bounds are named so and described in plain words."""
    with gates.quiet():
        graph = load_definitions().get_repository_def().asset_graph
    checks: dict[str, dict[str, str]] = {}
    for key in graph.asset_check_keys:
        description = graph.get_check_spec(key).description
        checks.setdefault(key.asset_key.path[-1], {})[key.name] = description or ""
    assert {"synthetic", "identity_disclosure", "attribute_disclosure", "dossier"} <= set(checks)
    assert all(len(of_asset) <= 12 and all(of_asset.values()) for of_asset in checks.values())
    assert "people" in checks["identity_disclosure"]["bound_repU"]


@only_in_ci("starts Dagster's command")
def test_the_command_of_the_readme_shows_the_gate(tmp_path: Path) -> None:
    assert "make ui" in (ROOT / "README.md").read_text()
    assert "$(BIN)/dg dev" in (ROOT / "Makefile").read_text()
    shutil.copy(ROOT / "dagster_home" / "dagster.yaml", tmp_path)
    environment = os.environ | {"DAGSTER_HOME": str(tmp_path), "VIRTUAL_ENV": str(Path(sys.prefix))}
    command: list[str | Path] = [Path(sys.executable).parent / "dg", "list", "defs", "--json"]
    ran = run_program(command, cwd=ROOT, env=environment)
    assert ran.returncode == 0, ran.stderr
    listed = json.loads(ran.stdout)
    assert {tuple(asset["asset_key_parts"]) for asset in listed["assets"]} == ASSETS
    assert {sensor["name"] for sensor in listed["sensors"]} == SENSORS
    assert [schedule["name"] for schedule in listed["schedules"]] == SCHEDULES
