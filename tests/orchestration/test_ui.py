"""Dagster's user interface starts with the command that the README names, and shows the gate."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from support import gates
from support.paths import ROOT
from support.processes import PATIENCE, Process, running_program
from support.sampling import only_in_ci
from support.services import free_port

from disclosure_pipeline.definitions import defs as load_definitions

QUERY = """
{
  repositoriesOrError {
    ... on RepositoryConnection {
      nodes { sensors { name } schedules { name } assetNodes { assetKey { path } groupName } }
    }
  }
}
"""


def ask(port: int, query: str) -> Any:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/graphql",
        json.dumps({"query": query}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)["data"]


# What `dg dev` is to show of the gate.
ASSETS = {
    ("survey", name)
    for name in (
        "ground_truth",
        "synthetic",
        "bins",
        "identity_disclosure",
        "attribute_disclosure",
        "dossier",
        "release",
        "candidates",
    )
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


@only_in_ci("starts the user interface, the daemon and the code location")
def test_the_command_of_the_readme_shows_the_gate(tmp_path: Path) -> None:
    assert "make ui" in (ROOT / "README.md").read_text()
    assert "$(BIN)/dg dev" in (ROOT / "Makefile").read_text()
    shutil.copy(ROOT / "dagster_home" / "dagster.yaml", tmp_path)
    port = free_port()
    environment = os.environ | {"DAGSTER_HOME": str(tmp_path), "VIRTUAL_ENV": str(Path(sys.prefix))}
    command: list[str | Path] = [Path(sys.executable).parent / "dg", "dev", "--port", str(port)]
    with running_program(command, cwd=ROOT, env=environment) as server:
        nodes = wait_for_repositories(port, server)
    assets = {tuple(asset["assetKey"]["path"]) for asset in nodes[0]["assetNodes"]}
    assert assets == ASSETS
    assert {sensor["name"] for sensor in nodes[0]["sensors"]} == SENSORS
    assert [schedule["name"] for schedule in nodes[0]["schedules"]] == SCHEDULES


def wait_for_repositories(port: int, server: Process) -> list[dict[str, Any]]:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and server.poll() is None:
        try:
            nodes: list[dict[str, Any]] = ask(port, QUERY)["repositoriesOrError"].get("nodes", [])
        except OSError:
            nodes = []
        if nodes:
            return nodes
        time.sleep(1)
    raise AssertionError("The user interface did not come up with the gate in it")
