"""The gate's file: what is wrong in it is refused, with the place, by Dagster's own commands too."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError
from support import gates
from support.gates import definition
from support.paths import ROOT
from support.processes import Finished, run_program

SHIPPED = ROOT / "disclosure_pipeline" / "defs" / "survey" / "defs.yaml"


def dg(*arguments: str, folder: Path) -> Finished:
    """Dagster's command in the root of a project."""
    environment = os.environ | {"VIRTUAL_ENV": sys.prefix, "COLUMNS": "200"}
    return run_program([Path(sys.executable).parent / "dg", *arguments], cwd=folder, env=environment)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of somebody else, with one gate: a copy of the shipped one."""
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "custodian"\nversion = "0"\n'
        '[tool.dg]\ndirectory_type = "project"\n[tool.dg.project]\nroot_module = "custodian"\n'
    )
    package = tmp_path / "custodian"
    (package / "defs" / "survey").mkdir(parents=True)
    (package / "__init__.py").touch()
    shutil.copy(ROOT / "disclosure_pipeline" / "definitions.py", package)
    shutil.copy(SHIPPED, package / "defs" / "survey")
    return tmp_path


def line_of(text: str, start: str) -> int:
    """The number of the line that starts so."""
    (found,) = [number for number, line in enumerate(text.splitlines(), 1) if line.strip().startswith(start)]
    return found


# Dagster's commands


def test_the_shipped_gate_is_valid() -> None:
    """`dg check defs` runs `dg check yaml` first."""
    checked = dg("check", "defs", folder=ROOT)
    told = checked.stdout + checked.stderr
    assert checked.returncode == 0, told
    assert "All component YAML validated successfully" in told
    assert "All definitions loaded successfully" in told


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
    told = checked.stdout + checked.stderr
    for name in ("colour: red", "repU:", "age:"):
        assert f"defs.yaml:{line_of(text, name)}" in told
    for name in ("colour", "eight", "rnge"):
        assert name in told


def test_check_defs_refuses_a_policy_with_an_open_end(project: Path) -> None:
    """It is valid as a file; what it means is not."""
    file = project / "custodian" / "defs" / "survey" / "defs.yaml"
    content = yaml.safe_load(file.read_text())
    del content["attributes"]["policy"]["repU"]
    file.write_text(yaml.safe_dump(content))
    checked = dg("check", "defs", folder=project)
    assert checked.returncode != 0
    told = checked.stdout + checked.stderr
    assert "no bound on repU" in told
    assert "defs.yaml" in told


# Through the component


def test_the_shipped_gate_is_the_one_of_the_demo() -> None:
    gate = gates.resolve(yaml.safe_load(SHIPPED.read_text())["attributes"]).gate
    assert gate.name == "survey"
    bounded = {(clause.measure, clause.column) for clause in gate.clauses()}
    assert {("repU", None), *(("DiSCO", target) for target in gate.targets)} <= bounded


@pytest.mark.parametrize(
    ("changes", "where", "said"),
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
    changes: Mapping[str, Any], where: str, said: str
) -> None:
    text = yaml.safe_dump(definition(**changes), sort_keys=False)
    with pytest.raises(ValidationError) as caught:
        gates.resolve(definition(**changes))
    assert said in str(caught.value)
    assert f"<string>:{line_of(text, where)}" in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"targets": ["work", "sex"]}, "sex cannot be a key and a target"),
        ({"targets": ["work", "wealth"]}, "wealth"),
        ({"policy": {"repU": 5}}, "no bound on DiSCO of work, DiSCO of income"),
        ({"policy": {"repU": 5, "DiSCO": 5, "disco": 5}}, "'disco' is no measure"),
        ({"edges": {"income": [0, 1, 2]}}, "income has both groups and explicit edges"),
        ({"exclusions": {"missing_keys": ["work"]}}, "work"),
    ],
)
def test_a_contradiction_is_refused(changes: Mapping[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match="<string>:") as caught:
        gates.resolve(definition(**changes))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "name", ["ground_truth", "incoming", "store", "releases", "trusted_keys", "columns", "keys", "policy"]
)
def test_what_is_needed_has_no_default(name: str) -> None:
    with pytest.raises(ValidationError, match=name):
        gates.resolve(definition(**{name: None}))


def test_paths_may_be_templates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_FOLDER", "/somewhere")
    gate = gates.resolve(definition(store="{{ env.SOME_FOLDER }}/store")).gate
    assert gate.store == "/somewhere/store"


def test_a_template_without_a_value_is_refused() -> None:
    with pytest.raises(ValidationError, match="store"):
        gates.resolve(definition(store="{{ env.NOT_SET_ANYWHERE }}"))


def test_the_policy_is_no_template(monkeypatch: pytest.MonkeyPatch) -> None:
    """What decides is in the file: an environment cannot change it."""
    monkeypatch.setenv("BOUND", "99")
    with pytest.raises(ValidationError, match="repU"):
        gates.resolve(definition(policy={"repU": "{{ env.BOUND }}", "DiSCO": 5}))
    columns = definition()["columns"] | {"sex": {"type": "category", "levels": ["{{ env.BOUND }}", "m"]}}
    gate = gates.resolve(definition(columns=columns)).gate
    assert "{{ env.BOUND }}" in str(gate.columns["sex"].levels)


def test_a_relative_path_needs_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    from disclosure_pipeline.errors import DisclosurePipelineError
    from disclosure_pipeline.orchestration.folders import folders_of

    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    gate = gates.resolve(definition()).gate
    with pytest.raises(DisclosurePipelineError, match="DAGSTER_HOME"):
        folders_of(gate)
