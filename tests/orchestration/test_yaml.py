"""The gate's file: what is wrong in it is refused, with the place, by Dagster's own commands too."""

import re
import shutil
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dagster
import pytest
import yaml
from dagster.components.testing import create_defs_folder_sandbox
from pydantic import ValidationError
from support import distributions, gates
from support.distributions import write_project
from support.gates import definition, run_command
from support.paths import ROOT
from support.processes import Finished
from support.sampling import only_in_ci

import disclosure_pipeline as dp
from disclosure_pipeline.definitions import defs as load_definitions
from disclosure_pipeline.demo.run import HONEST, make_data
from disclosure_pipeline.orchestration.component import build_definitions
from disclosure_pipeline.orchestration.gate_file import load_gate, parse_gate, require_as_written
from disclosure_pipeline.policy.reviewed_files import DefinitionError
from disclosure_pipeline.release.keys import SALT, SIGNING_KEY, KeyFiles, keygen

SHIPPED = ROOT / "disclosure_pipeline" / "defs" / "survey" / "defs.yaml"


def dg(*arguments: str, folder: Path, home: Path | None = None) -> Finished:
    if home is None:
        return distributions.run_dg(*arguments, folder=folder)
    files = KeyFiles.in_folder(home / "demo" / "keys")
    keys = {SIGNING_KEY: str(files.signing_key), SALT: str(files.salt)}
    return distributions.run_dg(*arguments, folder=folder, **keys, DAGSTER_HOME=str(home))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write_project(tmp_path, SHIPPED.read_text())
    return tmp_path


def line_of(text: str, start: str) -> int:
    (actual,) = [number for number, line in enumerate(text.splitlines(), 1) if line.strip().startswith(start)]
    return actual


@pytest.fixture
def furnished(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    make_data(home / "demo", 50, 1)
    keygen(home / "demo" / "keys")
    return home


@only_in_ci("starts Dagster's command")
def test_the_shipped_gate_is_valid(furnished: Path) -> None:
    """`dg check defs` runs `dg check yaml` first."""
    checked = dg("check", "defs", folder=ROOT, home=furnished)
    output = checked.stdout + checked.stderr
    assert checked.returncode == 0, output
    assert "All component YAML validated successfully" in output
    assert "All definitions loaded successfully" in output


@only_in_ci("starts Dagster's command")
def test_check_defs_tells_what_is_not_there(project: Path, furnished: Path) -> None:
    """The ground truth, the private key, the salt, the public keys: in one line, with their places."""
    shutil.rmtree(furnished / "demo" / "keys")
    (furnished / "demo" / "ground_truth.csv").unlink()
    checked = dg("check", "defs", folder=project, home=furnished)
    assert checked.returncode != 0
    file = project / "custodian" / "defs" / "survey" / "defs.yaml"
    (line,) = {line for line in (checked.stdout + checked.stderr).splitlines() if "does not exist" in line}
    for name in ("ground_truth", "trusted_keys"):
        assert f"{file}:{line_of(file.read_text(), f'{name}:')}: {name}: " in line
    for message in ("the ground truth does not exist", "signing-key.pem", "public-key.pem", "salt"):
        assert message in line


@only_in_ci("launches a run", days=2)
def test_a_run_is_launched_for_a_candidate_that_no_sensor_has_seen(furnished: Path) -> None:
    launch = ("launch", "--job", "survey_gate", "--partition")
    launched = dg(*launch, HONEST, folder=ROOT, home=furnished)
    assert "RUN_START" in launched.stderr and "Could not find a partition" not in launched.stderr
    assert (furnished / "demo" / "store" / "survey" / "candidates" / HONEST / "snapshot.json").is_file()
    for arguments in (launch, ("launch", "--assets", "group:survey", "--partition")):
        missing = dg(*arguments, "missing", folder=ROOT, home=furnished)
        assert missing.returncode != 0
        last = missing.stderr.strip().splitlines()[-1]
        assert "put its tables into a folder of that name there, then add an empty file _SUCCESS" in last
        assert f"Complete are: {HONEST}" in last


@pytest.mark.parametrize(
    ("old", "new", "place", "message"),
    [
        ("repU:\n", "repU: 99\n    repU:\n", "repU:\n", "'repU' is given twice"),
        ("at_most: 8", "at_most: 0100", "at_most: 0100", "0100 is a number in another notation"),
    ],
)
def test_what_dagster_lets_pass_is_refused_at_load(old: str, new: str, place: str, message: str) -> None:
    text = SHIPPED.read_text()
    assert old in text
    text = text.replace(old, new, 1)
    with gates.quiet(), create_defs_folder_sandbox() as sandbox:
        path = sandbox.scaffold_component(dp.DisclosureGate)
        (path / "defs.yaml").write_text(text)
        with pytest.raises(Exception) as caught, sandbox.load_component_and_build_defs(path):
            pass
    line = text[: text.rindex(place)].count("\n") + 1
    every = [str(caught.value), str(caught.value.__cause__)]
    assert any(f"defs.yaml:{line}:" in error and message in error for error in every), every


def test_a_file_that_changed_after_it_was_read_is_refused(tmp_path: Path) -> None:
    gate = gates.resolve(yaml.safe_load(SHIPPED.read_text())["attributes"]).gate
    file = tmp_path / "defs.yaml"
    file.write_text(SHIPPED.read_text())
    require_as_written(gate, file, 0)
    file.write_text(SHIPPED.read_text().replace("at_most: 8", "at_most: 80"))
    with pytest.raises(DefinitionError, match="read differently"):
        require_as_written(gate, file, 0)
    with pytest.raises(DefinitionError, match="read differently"):
        require_as_written(gate, file, 1)


def test_the_effective_clauses_stand_on_the_dossier(small_gate: dagster.Definitions) -> None:
    metadata = small_gate.resolve_assets_def(dagster.AssetKey(["small", "dossier"])).metadata_by_key
    (of_dossier,) = metadata.values()
    shown = of_dossier["effective_clauses"].value
    assert "- repU is at most 0.6 of UiO (worst synthesis): refuses" in shown
    assert "- controls is at most 0 (worst synthesis): nothing is determined without it" in shown


def test_check_lists_the_clauses_in_force(furnished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gates.with_keys(furnished / "demo", monkeypatch)
    monkeypatch.setenv("DAGSTER_HOME", str(furnished))
    for path in (SHIPPED, SHIPPED.parent):
        brief = run_command("check", path)
        assert brief.exit_code == 0, brief.output
        assert brief.stdout.startswith("Gate survey is ready for a candidate\n")
        assert "    DiSCO:\n      beyond: 3 # points more" in brief.stdout
        assert "refuses" not in brief.stdout
        shown = run_command("check", path, "--all")
        gate = gates.resolve(yaml.safe_load(SHIPPED.read_text())["attributes"]).gate
        assert f"  policy digest {gate.policy_digest()}\n" in shown.stdout
        assert shown.stdout.count(" (worst synthesis): ") == len(gate.clauses())
        assert "  DiSCO of income is at most 3 beyond (worst synthesis): refuses\n" in shown.stdout


def test_check_tells_what_is_not_there(furnished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And that the gate's key is none of those that it believes."""
    gates.with_keys(furnished / "other", monkeypatch)
    monkeypatch.setenv("DAGSTER_HOME", str(furnished))
    (furnished / "demo" / "ground_truth.csv").unlink()
    shown = run_command("check", SHIPPED)
    assert shown.exit_code == 1
    assert shown.stdout.startswith("Gate survey is not ready: ")
    assert "    repU:\n      at_most: 8\n" in shown.stdout
    text = SHIPPED.read_text()
    for name, message in (
        ("ground_truth", "does not exist"),
        ("trusted_keys", "do not include the gate's key"),
    ):
        (line,) = [line for line in shown.stderr.splitlines() if f"{name}: " in line]
        assert f"{SHIPPED}:{line_of(text, f'{name}:')}: {name}: " in line
        assert message in line


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("at_most: 8", "at_most: 08", "number"),
        ("type: disclosure", "type: other.Gate  # disclosure", "it holds 0 gates"),
        ("demo/incoming", '"{{ env.NOT_SET_ANYWHERE }}/incoming"', "a template in its paths has no value"),
    ],
)
def test_check_refuses_with_the_place(old: str, new: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "defs.yaml"
    file.write_text(SHIPPED.read_text().replace(old, new, 1))
    shown = run_command("check", file)
    assert shown.exit_code == 1
    assert message in shown.output and f"{file}:" in shown.output


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("  owners:", "  ownrs:", "ownrs: there is no such entry. Did you mean 'owners'?"),
        ("range:", "rnge:", "columns.age.rnge: there is no such entry. Did you mean 'range'?"),
        ("at_most: 8", "at_mots: 8", "policy.repU.at_mots: there is no such entry. Did you mean 'at_most'"),
        ("keys: [sex", "keys: [sx", "keys: 'sx' is not described under columns. Did you mean 'sex'?"),
        ("targets: [ed", "targets: [edd", "'edducation' is not described under columns. Did you mean 'educ"),
        ("    repU:", "    repu:", "policy.repu: a policy has no such figure. Did you mean 'repU'?"),
        ("    repU:", "    warns: [repU]\n    repU:", "policy.warns: a policy has no such figure."),
        ("  policy:", "  edges: {incme: [0, 1]}\n  policy:", "nor a target. Did you mean 'income'?"),
    ],
)
def test_a_misspelt_name_is_placed_in_its_line_with_one_that_resembles_it(
    old: str, new: str, problem: str, tmp_path: Path
) -> None:
    text = SHIPPED.read_text()
    place = text.index(old)
    assert_refused_in_line(text[:place].count("\n") + 1, text.replace(old, new, 1), problem, tmp_path)


def assert_refused_in_line(number: int, text: str, problem: str, folder: Path) -> None:
    file = folder / "defs.yaml"
    with pytest.raises(DefinitionError) as caught:
        parse_gate(text, file)
    (message,) = re.split(r"; (?=[\w.]+: )", str(caught.value))
    assert message.startswith(f"{file}:{number}: ") and problem in message


@pytest.mark.parametrize(
    ("figure", "wrong", "problem"),
    [
        ("repeats:\n  at_most: 10\n", "  beyond: 3", "repeats is bounded by at_most, not by beyond"),
        ("repeats:\n", "  at_most: 500", "the bound of repeats is 500: it must be at least 0"),
        ("repeats:\n  at_most: 10\n", "  targets: {work: 10}", "repeats is not measured by target"),
        (
            "shared_with_releases:\n  beyond: 1\n",
            "  worst: 2",
            "shared_with_releases has worst without over: mean",
        ),
        ("DCAP:\n  at_most: 5\n", "  over: mean", "only the mean of DCAP is bounded"),
        ("DCAP:\n  at_most: 5\n", "  chance: 0", "chance of DCAP applies to"),
        ("DCAP:\n  at_most: 5\n  targets:\n    work:\n", "      at_least: 5", "not by at_least"),
        ("DCAP:\n  at_most: 5\n  targets:\n", "    work: 101", "DCAP is never above 100"),
        ("DCAP:\n  at_most: 5\n  targets:\n", "    wrk: 5", "'wrk' is no target. Did you mean 'work'?"),
        ("DCAP:\n  at_most: 5\n  targets:\n    work:\n", "      at_most: five", "a valid number"),
        ("found:\n  in_a_group:\n", "    at_most: 5", "found is bounded by beyond, not by at_most"),
        ("found:\n", "  in_a_group: 100", "the bound of found is 100: it must be at least 0"),
    ],
)
def test_a_word_of_the_wrong_kind_is_placed_in_its_own_line(
    figure: str, wrong: str, problem: str, tmp_path: Path
) -> None:
    text = SHIPPED.read_text() + textwrap.indent(f"{figure}{wrong}", "    ")
    assert_refused_in_line(text.count("\n") + 1, text, problem, tmp_path)


@only_in_ci("starts Dagster's command")
def test_check_yaml_tells_the_place(project: Path) -> None:
    file = project / "custodian" / "defs" / "survey" / "defs.yaml"
    text = file.read_text()
    for old, new in (
        ("  owners:", "  colour: red\n  owners:"),
        ("at_most: 8", "at_most: eight"),
        ("range: [16, 97]", "rnge: [16, 97]"),
    ):
        assert old in text
        text = text.replace(old, new, 1)
    file.write_text(text)
    checked = dg("check", "yaml", folder=project)
    assert checked.returncode != 0
    output = checked.stdout + checked.stderr
    for name in ("colour: red", "repU:", "age:"):
        assert f"defs.yaml:{line_of(text, name)}" in output
    for name in ("colour", "eight", "rnge"):
        assert name in output


@pytest.mark.parametrize(
    ("changes", "where", "message"),
    [
        ({"colour": "red"}, "colour: red", "colour"),
        ({"policy": {"repU": True, "DiSCO": 5}}, "repU: true", "policy.repU"),
        ({"policy": {"repU": {"at_mots": 5}, "DiSCO": 5}}, "repU:", "at_mots"),
        ({"columns": {"sex": {"type": "categorical"}}}, "type: categorical", "columns.sex.type"),
        ({"columns": {"sex": {"type": "category", "unknown": 1}}}, "unknown: 1", "columns.sex.unknown"),
        ({"keys": "sex"}, "keys: sex", "keys"),
        ({"exclusions": {"missing_target": True}}, "missing_target: true", "exclusions.missing_target"),
        ({"ground_truth": 3}, "ground_truth: 3", "ground_truth"),
    ],
)
def test_an_attribute_that_is_not_known_is_refused_with_its_place(
    changes: Mapping[str, Any], where: str, message: str
) -> None:
    text = yaml.safe_dump(definition(**changes), sort_keys=False)
    with pytest.raises(ValidationError) as caught:
        gates.resolve(definition(**changes))
    assert message in str(caught.value)
    assert f"<string>:{line_of(text, where)}" in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"targets": ["work", "sex"]}, "sex cannot be both a key and a target"),
        ({"policy": {"repU": 5}}, "set a bound on DiSCO of work, DiSCO of income, as no value is safe"),
        ({"edges": {"income": [0, 1, 2]}}, "income has both groups and explicit edges"),
        ({"exclusions": {"missing_keys": ["work"]}}, "work"),
        # What is needed has no default.
        *(({name: None}, name) for name in ("ground_truth", "incoming", "store", "releases")),
        *(({name: None}, name) for name in ("trusted_keys", "columns", "keys", "policy")),
    ],
)
def test_what_contradicts_itself_or_lacks_something_is_refused(
    changes: Mapping[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError, match="<string>:") as caught:
        gates.resolve(definition(**changes))
    assert message in str(caught.value)


def test_paths_may_be_templates(monkeypatch: pytest.MonkeyPatch) -> None:
    """But not one without a value: Dagster would go on with the path None/store."""
    monkeypatch.setenv("SOME_FOLDER", "/somewhere")
    gate = gates.resolve(definition(store="{{ env.SOME_FOLDER }}/store")).gate
    assert gate.store == "/somewhere/store"
    for store in ("{{ env.NOT_SET_ANYWHERE }}", "{{ env.NOT_SET_ANYWHERE }}/store"):
        with pytest.raises(ValidationError, match="store"):
            gates.resolve(definition(store=store))


def test_a_definition_is_the_same_with_a_template_and_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its digest is signed: a default must not be 80 for one reader and 80.0 for another."""
    monkeypatch.setenv("SOME_FOLDER", "/somewhere")
    plain, templated = (
        load_gate(gates.write_definition(tmp_path / "gate", definition(store=store)))
        for store in ("/somewhere/store", "{{ env.SOME_FOLDER }}/store")
    )
    assert repr(plain) == repr(templated)
    assert plain.policy_digest() == templated.policy_digest()


def test_the_policy_is_no_template(monkeypatch: pytest.MonkeyPatch) -> None:
    """The policy is in the file: an environment cannot change it."""
    monkeypatch.setenv("BOUND", "99")
    with pytest.raises(ValidationError, match="repU"):
        gates.resolve(definition(policy={"repU": "{{ env.BOUND }}", "DiSCO": 5}))
    columns = definition()["columns"] | {"sex": {"type": "category", "levels": ["{{ env.BOUND }}", "m"]}}
    gate = gates.resolve(definition(columns=columns)).gate
    assert "{{ env.BOUND }}" in str(gate.columns["sex"].levels)


def test_a_relative_path_needs_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    from disclosure_pipeline.errors import DisclosurePipelineError
    from disclosure_pipeline.orchestration.gate_file import folders_of

    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    gate = gates.resolve(definition()).gate
    with pytest.raises(DisclosurePipelineError, match="DAGSTER_HOME"):
        folders_of(gate)


# The code location that `dg dev` shows; what its pages show is in test_ui_pages.py


GATES = ("salaries", "survey")
OF_GATE = ("ground_truth", "synthetic", "bins", "dossier", "release", "candidates")
ASSETS = {(gate, name) for gate in GATES for name in (*OF_GATE, "identity_risk", "attribute_risk")}
SENSORS = {f"{gate}_{kind}" for gate in GATES for kind in ("arrivals", "failures")}
SCHEDULES = {f"{gate}_ground_truth_changed" for gate in GATES}


def test_the_code_location_has_the_gate() -> None:
    assert "make ui" in (ROOT / "README.md").read_text()
    assert "$(BIN)/dg dev" in (ROOT / "Makefile").read_text()
    with gates.quiet():
        repository = load_definitions().get_repository_def()
    assert {tuple(key.path) for key in repository.asset_graph.get_all_asset_keys()} == ASSETS
    assert {sensor.name for sensor in repository.sensor_defs} == SENSORS
    assert {schedule.name for schedule in repository.schedule_defs} == SCHEDULES


def test_definitions_are_loaded_once_a_process() -> None:
    """Dagster asks for them six times to launch one run."""
    with gates.quiet():
        assert load_definitions() is load_definitions()


def test_the_schedule_is_a_setting() -> None:
    definitions = build_definitions(gates.gate(schedule="0 6 * * 1"))
    schedule: Any = definitions.resolve_schedule_def(f"{gates.GATE}_ground_truth_changed")
    assert schedule.cron_schedule == "0 6 * * 1"
    with pytest.raises(ValidationError, match="schedule"):
        gates.gate(schedule="every Monday")
