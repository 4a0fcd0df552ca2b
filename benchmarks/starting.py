"""The cost of starting: CPU seconds of commands over a small gate, and seconds of a launched run.

Run with `python benchmarks/starting.py`, after `make build/ui/ready-ui`. The programs start in an environment
with the extra `ui` alone: pandera also imports Spark and Hypothesis where they are installed, as they are for
the tests.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

from disclosure_pipeline.demo.run import HONEST, LEAKY, load_keys, make_data

RECORDS = 5_000
OFTEN = 3
_ROOT = Path(__file__).parents[1]
_ENVIRONMENT = _ROOT / "build" / "ui"
_GATE = _ROOT / "disclosure_pipeline" / "defs" / "survey"
_IMPORT = (
    "import pandas, time; before = time.process_time(); import disclosure_pipeline as dp; dp.disclosure; "
    "print(time.process_time() - before)"
)


@dataclass(frozen=True)
class Start:
    """The least that a program took of several times, in CPU seconds or seconds on the clock (`unit`)."""

    name: str
    seconds: float
    unit: str
    most: float


def measure_starts(folder: Path, installed: Path = _ENVIRONMENT) -> Iterator[Start]:
    """Start each program as `installed` there; the demo's data go into the folder."""
    environment, programs = _prepare(folder) | {"VIRTUAL_ENV": str(installed)}, installed / "bin"
    command = str(programs / "disclosure-pipeline")

    def cpu(*arguments: str | Path) -> float:
        return min(_run(environment, *arguments)[0] for _ in range(OFTEN))

    yield Start("`disclosure-pipeline --help`", cpu(command, "--help"), "CPU s", 0.3)
    imports = (_run(environment, programs / "python", "-c", _IMPORT)[2] for _ in range(OFTEN))
    yield Start("`import disclosure_pipeline`, pandas being there", min(map(float, imports)), "CPU s", 0.4)
    yield Start("`check`", cpu(command, "check", _GATE), "CPU s", 1.5)
    draft = cpu(command, "policy", "draft", _GATE)
    yield Start("`policy draft`, up to its bounds", draft, "CPU s", 1.5)
    launch = (str(programs / "dg"), "launch", "--job")
    _run(environment, *launch, "survey_ground_truth")
    for candidate, outcome in ((HONEST, "approved"), (LEAKY, "refused")):
        partition = ("survey_gate", "--partition", candidate)
        seconds = _run(environment, *launch, *partition, check=candidate == HONEST)[1]
        assert (folder / "demo" / "releases" / "survey" / candidate).is_dir() == (candidate == HONEST)
        yield Start(f"`dg launch` of a candidate that is {outcome}", seconds, "s", 8)


def _prepare(folder: Path) -> dict[str, str]:
    make_data(folder / "demo", RECORDS, seed=0)
    load_keys(folder / "demo" / "keys")
    (folder / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    # Images of containers set it: every import would compile.
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "DAGSTER_HOME": str(folder)}


def _run(
    environment: Mapping[str, str], *command: str | Path, check: bool = True
) -> tuple[float, float, str]:
    """Return CPU seconds with all processes that were waited for, seconds, and what was printed."""
    start, before = time.perf_counter(), getrusage(RUSAGE_CHILDREN)
    ran = subprocess.run(
        list(map(str, command)), cwd=_ROOT, env=dict(environment), capture_output=True, text=True, check=check
    )
    seconds, after = time.perf_counter() - start, getrusage(RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, seconds, ran.stdout


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for start in measure_starts(Path(folder)):
            print(f"{start.name}: {start.seconds:.2f} {start.unit} (at most {start.most})", flush=True)


if __name__ == "__main__":
    main()
