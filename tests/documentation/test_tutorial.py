"""The tutorial as a new user follows it: from a wheel, in a project that Dagster's own generator made."""

import re
import shlex
import tarfile
import time
import zipfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from support import distributions
from support.paths import ROOT
from support.processes import PATIENCE, run_program, running_program
from support.sampling import only_in_ci
from support.services import free_port

pytestmark = only_in_ci("builds, installs and runs a whole project")

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Reader:
    def __init__(self, folder: Path, variables: Mapping[str, str], stack: ExitStack) -> None:
        self.folder = folder
        self.variables = dict(variables)
        self.stack = stack
        self._state = folder / ".shell"

    def console(self, text: str) -> None:
        for line in text.splitlines():
            command = line.removeprefix("$ ")
            if command == "dg dev":
                program = [*shlex.split(command), "--port", str(free_port())]
                self.stack.enter_context(running_program(program, cwd=self.folder, env=self.variables))
            elif command.startswith("pip install '"):
                continue  # the wheel is installed already, and all that it needs
            else:
                self.run(command, patient=command.startswith("ls "))

    def run(self, command: str, patient: bool = False) -> None:
        """Run a command; a patient reader looks again until what they wait for is there."""
        script = f"{command} && {{ pwd; env -0; }} > {self._state}"
        limit = time.monotonic() + PATIENCE
        while True:
            ran = run_program(["bash", "-c", script], cwd=self.folder, env=self.variables)
            if ran.returncode == 0 or not patient or time.monotonic() > limit:
                break
            time.sleep(1)
        assert ran.returncode == 0, f"{command}\n{ran.stdout}\n{ran.stderr}"
        folder, variables = self._state.read_text().split("\n", 1)
        self.folder = Path(folder)
        self.variables = dict(line.split("=", 1) for line in variables.split("\0") if line)

    def write(self, text: str) -> None:
        """A file, whose name its first line tells."""
        path = self.folder / text.splitlines()[0].removeprefix("# ")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def test_the_tutorial_from_two_files_to_a_verified_release(installed: Path, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    folder = tmp_path / "work"
    folder.mkdir()
    with ExitStack() as stack:
        reader = Reader(folder, distributions.variables(installed), stack)
        for block in _BLOCK.finditer(page):
            language, text = block[1], block[2]
            if language == "console":
                reader.console(text)
            elif language == "yaml":
                reader.write(text)
            elif language == "python":
                (reader.folder / ".block.py").write_text(text)
                reader.run("python .block.py")
    release = folder / "project/home/survey/releases/survey/first"
    published = {"dossier.html", "statement.dsse.json", "synthetic.parquet"}
    assert {path.name for path in release.iterdir()} == published


def test_a_wheel_from_the_source_distribution_is_the_same(wheel: Path, tmp_path: Path) -> None:
    """And both hold the marker of types, the demo's gate and the licence, and no test."""
    archive = distributions.build("sdist", tmp_path)
    with tarfile.open(archive) as content:
        content.extractall(tmp_path / "unpacked", filter="data")
    [source] = (tmp_path / "unpacked").iterdir()
    again = distributions.build_from(source, "wheel", tmp_path / "again")
    files = [zipfile.ZipFile(path).namelist() for path in (wheel, again)]
    assert sorted(files[0]) == sorted(files[1])
    assert {"disclosure_pipeline/py.typed", "disclosure_pipeline/defs/survey/defs.yaml"} <= set(files[0])
    assert not [name for name in files[0] if name.startswith(("tests", "docs"))]
    assert [name for name in files[0] if name.endswith("licenses/LICENSE")]
    environment = distributions.environment(tmp_path / "environment")
    distributions.install(environment, again)
    command: list[str | Path] = [environment / "bin" / "disclosure-pipeline", "--version"]
    ran = run_program(command, env=distributions.variables(environment), cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "0.1.0" in ran.stdout
