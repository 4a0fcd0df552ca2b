"""The way of a new user: from an empty folder to a release that anybody verifies, by commands alone.

The package is installed from its wheel: nothing of the checkout runs.
"""

import shutil
import time
from pathlib import Path

import numpy as np
import yaml
from support import distributions
from support.processes import Finished, run_program
from support.sampling import only_in_ci
from support.surveys import leaked, silc

pytestmark = only_in_ci("runs a whole project by commands alone", days=3)  # the tutorial does each day

SURVEY = "survey of living conditions"
# Seconds for the whole way. The machine alone takes a quarter of it, where nobody else uses it.
LONGEST = 600


def write_tables(folder: Path) -> None:
    """A survey of households, whose regions were sampled by different shares; two candidates."""
    for name, table in {"confidential": silc(1), "invented": silc(9, households=60)}.items():
        weight = np.where(table["region"] == 0, 40.5, 200.25)
        table.assign(weight=weight).to_csv(folder / f"{name}.csv", index=False)
    honest = silc(2).drop(columns="household")
    for name, table in {"honest": honest, "leaky": leaked(SURVEY, 0.3)}.items():
        (folder / name).mkdir()
        table.to_csv(folder / name / "table.csv", index=False)


def test_from_an_empty_folder_to_a_verified_release(installed: Path, tmp_path: Path) -> None:
    """In one process each, as a shell runs them: what README and tutorial say, and nothing else."""
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
    columns = [part for key in ("region", "size", "age") for part in ("--key", key)]
    columns += ["--target", "education", "--target", "income"]
    tables = ("--table", "invented.csv", "--ground-truth", "confidential.csv")
    call("init", home, "--name", "survey", *tables, *columns)
    environment |= dict(line.split("=", 1) for line in (home / ".env").read_text().splitlines())
    gate = home / "gates" / "defs" / "survey"
    call("check", gate)
    drafted = yaml.safe_load(call("policy", "draft", gate).stdout)
    definition = yaml.safe_load((gate / "defs.yaml").read_text())
    assert definition["attributes"]["unit"] == "household", "as init proposes"
    weights = {"weight": "weight", "people": "weighted"}
    definition["attributes"] |= {"policy": drafted["policy"], "power_seconds": 1, **weights}
    (gate / "defs.yaml").write_text(yaml.safe_dump(definition, sort_keys=False))
    call("check", gate)
    released = "  5 of 7 columns are measured and released; left out: sex, weight\n"
    assert call("evaluate", gate, "honest").stdout.startswith(f"honest: approved\n{released}Page: ")
    refused = call("evaluate", gate, "leaky", expected=1).stdout
    assert refused.startswith(f"leaky: refused\n{released}- 30.6 % of the people are in the synthetic table")
    incoming = home / "home" / "survey" / "incoming"
    for candidate in ("honest", "leaky"):
        shutil.copytree(tmp_path / candidate, incoming / candidate)
        (incoming / candidate / "_SUCCESS").touch()
    assert call("run", gate, "honest").stdout.startswith("honest: approved\nPublished in ")
    assert "30.6 % of the people are in the synthetic table" in call("run", gate, "leaky", expected=1).stdout
    stands = call("status", gate).stdout
    assert "honest: published\n" in stands and "leaky: refused\n" in stands
    call("report", gate, "leaky", "--format", "html", "--output", tmp_path / "leaky.html", expected=1)
    release, key = home / "home/survey/releases/survey/honest", home / "home/keys/public-key.pem"
    verified = call("verify", release, "--key", key).stdout
    assert "\nApproved: " in verified
    # A second allows too few tries on a slow machine, which is then said.
    power = verified.partition("\nPower: ")[2].partition("\n")[0]
    assert power.startswith(("This gate ", "The copies that this gate would notice")), verified
    (release / "synthetic.parquet").write_bytes(b"")
    call("verify", release, "--key", key, expected=1)
    assert time.monotonic() - began < LONGEST
