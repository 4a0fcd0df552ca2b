"""The demo from an installed wheel, in somebody else's project: it touches nothing but its own folder."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import gates
from support.distributions import write_project
from support.gates import contents
from support.paths import PACKAGE
from support.processes import Finished, run_program
from support.sampling import only_in_ci

from disclosure_pipeline.demo.run import HONEST, LEAKY


@pytest.fixture
def project() -> Iterator[Path]:
    with gates.quick_folder() as folder:
        defs = (PACKAGE / "defs" / "survey" / "defs.yaml").read_text()
        write_project(folder, defs.replace("at_most: 8", "at_most: 0.01"))
        home = folder / "home"
        (home / "demo" / "store" / "survey").mkdir(parents=True)
        (home / "demo" / "store" / "survey" / "ground_truth.json").write_text('{"sha256": "real"}')
        (home / "demo" / "ground_truth.csv").write_text("real,records\n")
        (home / "dagster.yaml").touch()
        yield folder


def run(installed: Path, project: Path, *arguments: str) -> Finished:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"DAGSTER_HOME": str(project / "home"), "PYTHONDONTWRITEBYTECODE": "1"}
    program = (
        "import disclosure_pipeline, sys; print(disclosure_pipeline.__file__, file=sys.stderr); "
        "from disclosure_pipeline.cli.main import main; main()"
    )
    return run_program(
        [installed / "bin" / "python", "-c", program, *arguments], cwd=project, env=environment
    )


@only_in_ci("installs the package and runs the whole demo", days=3)
def test_it_loads_its_own_gate_and_touches_nothing_else(installed: Path, project: Path) -> None:
    before = contents(project)
    ran = run(installed, project, "demo", "--records", "5000")
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.splitlines()[0].startswith(str(installed))
    # By the bounds of the package's own gate: that of the project approves nothing.
    assert {f"{HONEST}: approved", f"{LEAKY}: refused"} <= set(ran.stdout.splitlines())
    after = contents(project)
    assert {name: after.get(name) for name in before} == before
    new = {Path(name).parts[0] for name in after.keys() - before.keys()}
    assert new == {"disclosure-pipeline-demo"}
    # Nor does it write where something lies that it did not make.
    for folder in ("home", "custodian"):
        refused = run(installed, project, "demo", "--home", folder)
        assert refused.returncode == 1
        assert "which the demo did not make" in refused.stderr
    assert contents(project) == after
