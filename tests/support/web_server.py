"""Dagster's web server, in processes of its own."""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.paths import ROOT
from support.processes import PATIENCE, Process, running_program
from support.services import free_port

_SMALL_GATE = "from support.homes import code_location\n\ndefs = code_location()\n"
DEMO_GATE = "from disclosure_pipeline.definitions import defs as load\n\ndefs = load()\n"


@dataclass(frozen=True)
class Server:
    """Dagster's web server on a port of this machine."""

    port: int

    def post(self, path: str, body: Mapping[str, Any]) -> int:
        """Post JSON to a path; the status of the answer."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as refusal:
            return refusal.code

    def ask(self, query: str, **variables: Any) -> Any:
        """The data that GraphQL answers."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/graphql",
            json.dumps({"query": query, "variables": variables}).encode(),
            {"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                content = json.load(answer)
        except urllib.error.HTTPError as refusal:
            content = json.load(refusal)
        assert "errors" not in content, content["errors"]
        return content["data"]


@contextmanager
def web_server(home: Path, definitions: str = _SMALL_GATE) -> Iterator[Server]:
    """A server for a home on disk, with the small gate (or other `definitions`) as its code location."""
    location = home / "location.py"
    location.write_text(definitions)
    port = free_port()
    folders = [str(ROOT), str(ROOT / "tests")]
    command = [
        *(sys.executable, "-m", "dagster_webserver", "-h", "127.0.0.1", "-p", str(port)),
        *("-f", str(location), "-d", str(home), "--code-server-log-level", "warning"),
    ]
    environment = os.environ | {"DAGSTER_HOME": str(home), "PYTHONPATH": os.pathsep.join(folders)}
    with running_program(command, env=environment, limit=4 * PATIENCE) as process:
        _wait_for(port, process)
        yield Server(port)


def _wait_for(port: int, process: Process) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/server_info", timeout=10):
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("Dagster's web server did not come up")
