"""The way of a new user: from an empty folder to a release that anybody verifies, by commands alone.

The package is installed from its wheel: nothing of the checkout runs.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import yaml
from support import distributions
from support.processes import Finished, run_program
from support.sampling import only_in_ci

from disclosure_pipeline.demo.population import population
from disclosure_pipeline.demo.syntheses import leak, synthesise

pytestmark = only_in_ci("builds, installs and runs a whole project")

RECORDS = 2000
# Seconds for the whole way. The machine alone takes a quarter of it, where nobody else uses it.
LONGEST = 600

# What Dagster's daemon does for every candidate, in one process: for the days on which nobody waits for it.
RUN_JOBS = """
import sys
import dagster as dg
from gates.definitions import defs
from pathlib import Path

definitions = defs()
definitions = definitions() if callable(definitions) else definitions
with dg.DagsterInstance.get() as instance:
    silent = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    def run(job, key=None):
        resolved = definitions.resolve_job_def(job)
        return resolved.execute_in_process(
            instance=instance, partition_key=key, raise_on_error=False, run_config=silent
        ).success
    assert run("survey_ground_truth")
    for candidate in sys.argv[1:]:
        instance.add_dynamic_partitions("survey_candidates", [candidate])
        print(candidate, run("survey_gate", candidate))
"""


def write_tables(folder: Path) -> None:
    people = population(RECORDS, 1)
    honest = synthesise(people)
    people.to_csv(folder / "confidential.csv", index=False)
    population(40, 2).to_csv(folder / "invented.csv", index=False)
    for name, table in {"honest": honest, "leaky": leak(honest, people)}.items():
        (folder / name).mkdir()
        table.to_csv(folder / name / "table.csv", index=False)


def test_from_an_empty_folder_to_a_verified_release(installed: Path, tmp_path: Path) -> None:
    """In one process each, as a shell runs them; the runs by Dagster's own means."""
    write_tables(tmp_path)
    home = tmp_path / "project"
    environment = {
        name: value
        for name, value in distributions.variables(installed, PYTHONPATH=str(home)).items()
        if not name.startswith(("DAGSTER", "DISCLOSURE"))
    }
    python = installed / "bin" / "python"
    where = "import disclosure_pipeline; print(disclosure_pipeline.__file__)"
    actual = run_program([python, "-c", where], cwd=tmp_path, env=environment).stdout
    assert actual.startswith(str(installed))

    def call(*arguments: str | Path, expected: int = 0) -> Finished:
        program = installed / "bin" / "disclosure-pipeline"
        ran = run_program([program, *arguments], cwd=tmp_path, env=environment)
        assert ran.returncode == expected, (arguments, ran.stdout, ran.stderr)
        return ran

    began = time.monotonic()
    keys = [argument for key in ("sex", "age", "region", "household") for argument in ("--key", key)]
    ground_truth = ("--ground-truth", "confidential.csv", "--special", "income=-8")
    call("init", home, "--name", "survey", "--table", "invented.csv", *ground_truth, *keys)
    environment |= dict(line.split("=", 1) for line in (home / ".env").read_text().splitlines())
    gate = home / "gates" / "defs" / "survey"
    call("check", gate)
    drafted = yaml.safe_load(call("policy", "draft", gate, "--seconds", "0").stdout)
    definition = yaml.safe_load((gate / "defs.yaml").read_text())
    definition["attributes"] |= {"policy": drafted["policy"], "power_seconds": 1}
    (gate / "defs.yaml").write_text(yaml.safe_dump(definition, sort_keys=False))
    call("check", gate)
    columns = "  9 of 9 columns are measured and released\n"
    assert call("evaluate", gate, "honest").stdout == f"honest: approved\n{columns}"
    refused = call("evaluate", gate, "leaky", expected=1).stdout
    assert refused.startswith(f"leaky: refused\n{columns}- ")
    incoming = home / "home" / "survey" / "incoming"
    for candidate in ("honest", "leaky"):
        shutil.copytree(tmp_path / candidate, incoming / candidate)
        (incoming / candidate / "_SUCCESS").touch()
    runs = run_program([python, "-c", RUN_JOBS, "honest", "leaky"], cwd=home, env=environment)
    assert runs.stdout.splitlines()[-2:] == ["honest True", "leaky False"], runs.stderr[-2000:]
    stands = call("status", gate).stdout
    assert "honest: published\n" in stands and "leaky: refused\n" in stands
    call("report", gate, "leaky", "--format", "html", "--output", tmp_path / "leaky.html", expected=1)
    release, key = home / "home/survey/releases/survey/honest", home / "home/keys/public-key.pem"
    verified = call("verify", release, "--key", key).stdout
    assert verified.startswith("Approved: ")
    assert "\nPower: This gate " in verified
    (release / "synthetic.parquet").write_bytes(b"")
    call("verify", release, "--key", key, expected=1)
    assert time.monotonic() - began < LONGEST
