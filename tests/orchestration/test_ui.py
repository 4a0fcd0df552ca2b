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

from support.paths import ROOT
from support.processes import PATIENCE, Process, running_program
from support.services import free_port

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
    assert assets == {
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
    assert {sensor["name"] for sensor in nodes[0]["sensors"]} == {"survey_arrivals", "survey_failures"}
    assert [schedule["name"] for schedule in nodes[0]["schedules"]] == ["survey_ground_truth_changed"]


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
