"""The files of `deployment/`: systemd takes the units, whose commands do what docs/how_to/deploy.md says."""

import configparser
import os
import re
import shlex
import shutil
import sys
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from support import gates
from support.browser import Server
from support.gates import GATE
from support.paths import DOCS, ROOT
from support.processes import PATIENCE, run_program, running_program, wait_until
from support.sampling import only_in_ci
from support.services import free_port

from disclosure_pipeline.orchestration.gate_file import set_up_project
from disclosure_pipeline.release.keys import SALT, SIGNING_KEY, keygen

FOLDER = ROOT / "deployment"
UNITS = sorted(path.name for path in FOLDER.iterdir() if path.suffix in {".service", ".timer"})
SERVICES = [name for name in UNITS if name.endswith(".service")]


def read_unit(name: str) -> configparser.ConfigParser:
    unit = configparser.ConfigParser(interpolation=None, delimiters="=", strict=True)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string((FOLDER / name).read_text(encoding="utf-8"))
    return unit


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd")
def test_systemd_takes_the_units(tmp_path: Path) -> None:
    programs = Path(sys.executable).parent
    for name in UNITS:
        text = (FOLDER / name).read_text(encoding="utf-8").replace("/srv/gates/.venv/bin", str(programs))
        (tmp_path / name).write_text(text)
    verified = run_program(["systemd-analyze", "verify", *(tmp_path / name for name in UNITS)], cwd=tmp_path)
    assert (verified.returncode, verified.stdout + verified.stderr) == (0, "")
    (tmp_path / SERVICES[0]).write_text("[Service]\nExecStart=relative\n")
    broken = run_program(["systemd-analyze", "verify", tmp_path / SERVICES[0]], cwd=tmp_path)
    assert broken.returncode != 0


def test_the_key_is_with_the_daemon_alone() -> None:
    named = [name for name in SERVICES if "EnvironmentFile" in read_unit(name)["Service"]]
    assert named == ["gates-daemon.service"]
    web = read_unit("gates-web.service")["Service"]
    assert {"-/etc/gates", "-/srv/confidential"} <= set(web["InaccessiblePaths"].split())
    assert "--read-only" in web["ExecStart"] and "127.0.0.1" in web["ExecStart"]
    page = (DOCS / "how_to" / "deploy.md").read_text(encoding="utf-8")
    assert SIGNING_KEY in page and SALT in page
    assert all(name.split(".")[0] in page for name in ("gates-daemon.service", "gates-web.service"))


def test_the_image_runs_what_the_unit_runs() -> None:
    text = (FOLDER / "Containerfile").read_text(encoding="utf-8")
    [command] = re.findall(r"^CMD (\[.*\])$", text, re.MULTILINE)
    daemon = shlex.split(read_unit("gates-daemon.service")["Service"]["ExecStart"])
    assert yaml.safe_load(command) == [Path(daemon[0]).name, *daemon[1:]]
    [copied] = re.findall(r"^COPY (.*) /build/$", text, re.MULTILINE)
    assert copied.split() == ["requirements-ui.lock", "dist/*.whl"]
    assert (ROOT / "requirements-ui.lock").is_file()
    assert "hatchling build -d dist" in (ROOT / "Makefile").read_text()


@dataclass
class Machine:
    """Folders that stand for those of the units."""

    root: Path
    port: int

    @property
    def home(self) -> Path:
        return self.root / "srv/gates/home"

    def place(self, text: str) -> str:
        text = text.replace("/srv/gates/.venv/bin", str(Path(sys.executable).parent)).replace(
            "3000", str(self.port)
        )
        for folder in ("/srv/gates", "/etc/gates", "/var/backups/gates"):
            text = text.replace(folder, f"{self.root}{folder}")
        return text.replace("%%", "%")

    def read(self, name: str, command: str = "ExecStart") -> tuple[list[str], dict[str, str]]:
        """Return a command of a service, and its environment."""
        service = read_unit(name)["Service"]
        variables = dict([self.place(service["Environment"]).split("=", 1)])
        if "EnvironmentFile" in service:
            lines = Path(self.place(service["EnvironmentFile"])).read_text().splitlines()
            variables |= dict(line.split("=", 1) for line in lines)
        inherited = {name: value for name, value in os.environ.items() if name not in {SIGNING_KEY, SALT}}
        return shlex.split(self.place(service[command])), inherited | variables

    @contextmanager
    def running(self, name: str) -> Iterator[None]:
        command, variables = self.read(name)
        folder = self.place(read_unit(name)["Service"]["WorkingDirectory"])
        with running_program(command, cwd=folder, env=variables):
            yield


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path, free_port())
    for folder in ("srv/gates", "etc/gates", "var/backups/gates"):
        (tmp_path / folder).mkdir(parents=True)
    definitions = set_up_project(tmp_path / "srv/gates")
    at = {name: f"small/{name}" for name in ("incoming", "store", "releases")}
    public_key = str(tmp_path / "etc/gates/keys/public-key.pem")
    definitions.mkdir()
    gates.write_definition(definitions / GATE, gates.definition(**at, trusted_keys=public_key))
    for name in at.values():
        (machine.home / name).mkdir(parents=True)
    shutil.copy(ROOT / "dagster_home" / "dagster.yaml", machine.home)
    (machine.home / "ground_truth.csv").write_text(gates.ground_truth().to_csv(index=False))
    keygen(tmp_path / "etc/gates/keys")
    page = (DOCS / "how_to" / "deploy.md").read_text(encoding="utf-8")
    lines = re.findall(rf"^(?:{SIGNING_KEY}|{SALT})=.*$", page, re.MULTILINE)
    (tmp_path / "etc/gates/signing").write_text(machine.place("\n".join(lines)))
    return machine


@only_in_ci("a daemon and a web server", days=2)
def test_the_commands_of_the_units_publish_show_and_keep(machine: Machine) -> None:
    """A daemon goes from the ground truth to the release of a synthesis: nobody starts anything.

    By the asset of docs/how_to/synthesizer.md.
    """
    page = (DOCS / "how_to" / "synthesizer.md").read_text(encoding="utf-8")
    [code] = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    gates.honest().to_csv(machine.root / "model.csv", index=False)
    for old, new in {
        "home/survey/": "home/small/",
        '["survey", "ground_truth"]': '["small", "ground_truth"]',
        "raise NotImplementedError": f"return pd.read_csv({str(machine.root / 'model.csv')!r})",
        "DefaultSensorStatus.RUNNING": "DefaultSensorStatus.RUNNING, minimum_interval_seconds=1",
    }.items():
        assert code.count(old) == 1
        code = code.replace(old, new)
    defs = machine.root / "srv/gates/gates/defs"
    (defs / "model.py").write_text(code)
    definition = yaml.safe_load((defs / GATE / "defs.yaml").read_text())
    [named] = re.findall(r"^```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    definition["attributes"] |= yaml.safe_load(named)
    (defs / GATE / "defs.yaml").write_text(yaml.safe_dump(definition))
    releases = machine.home / "small/releases" / GATE
    server = Server(machine.port)
    with ExitStack() as stack:  # as systemd starts them: both at the same moment
        before = [
            machine.read(name, "ExecStartPre") for name in ("gates-daemon.service", "gates-web.service")
        ]
        started = [
            stack.enter_context(running_program(command, env=variables)) for command, variables in before
        ]
        assert [process.wait(PATIENCE) for process in started] == [0, 0]
        assert run_program(before[0][0], env=before[0][1]).returncode == 0
    with machine.running("gates-daemon.service"), machine.running("gates-web.service"):
        wait_until(server.answers, "the web server did not come up")
        forged = {"asset_key": ["small", "release"], "partition": "forged"}
        assert server.post("/report_asset_materialization/", forged) >= 400
        wait_until(lambda: any(releases.glob("*/statement.dsse.json")), "the daemon published nothing")
    assert SIGNING_KEY not in machine.read("gates-web.service")[1]
    [released] = releases.iterdir()
    candidate, public_key = released.name, machine.root / "etc/gates/keys/public-key.pem"
    assert gates.stated(released, public_key).candidate == candidate

    command, variables = machine.read("gates-backup.service")
    kept = run_program(command, env=variables, cwd=machine.home)
    assert kept.returncode == 0, kept.stderr
    [archive] = (machine.root / "var/backups/gates").iterdir()
    assert re.fullmatch(r"gates-\d{4}-\d\d-\d\d\.tar\.gz", archive.name)
    restored = machine.root / "restored"
    with tarfile.open(archive) as content:
        content.extractall(restored, filter="data")
    assert gates.stated(restored / "small/releases" / GATE / candidate, public_key).candidate == candidate
    assert (restored / "small/store" / GATE / "candidates" / candidate / "dossier.json").is_file()
