"""Mistakes of a newcomer: each message names the line, and what to write instead."""

from pathlib import Path

import pytest
from support.gates import run_command

from disclosure_pipeline.demo.population import population
from disclosure_pipeline.demo.syntheses import synthesise
from disclosure_pipeline.orchestration.gate_file import HOME
from disclosure_pipeline.release.keys import SALT, SIGNING_KEY

KEYS = ["sex", "age", "region"]

# In a gate's file: what stands there, what the newcomer writes, and what the message says after the place.
MISTAKES = [
    ("keys: [sex,", "keys: [sx,", "keys: 'sx' is not described under columns. Did you mean 'sex'?"),
    ("    DiSCO:", "    Disco:", "policy.Disco: a policy has no such figure. Did you mean 'DiSCO'?"),
    (
        "      beyond: 3 # people",
        "      targets: {incme: {beyond: 2}} # people",
        "policy.DiSCO.targets.incme: 'incme' is no target. Did you mean 'income'?",
    ),
    ("health: {type:", "health: {tpye:", "columns.health.tpye: there is no such entry. Did you mean 'type'?"),
]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (HOME, SIGNING_KEY, SALT):
        monkeypatch.delenv(name, raising=False)
    survey = population(600)
    survey.to_csv(tmp_path / "survey.csv", index=False)
    synthesise(survey).to_csv(tmp_path / "honest.csv", index=False)
    tables = ("--table", tmp_path / "honest.csv", "--ground-truth", tmp_path / "survey.csv")
    keys = [part for key in KEYS for part in ("--key", key)]
    folder = tmp_path / "project"
    made = run_command("init", folder, "--name", "survey", *tables, *keys, "--special", "income=-8")
    assert made.exit_code == 0, made.output
    for line in (folder / ".env").read_text(encoding="utf-8").splitlines():
        monkeypatch.setenv(*line.split("=", 1))
    return folder


def test_a_mistake_in_the_file_is_named_with_its_line_and_remedy(project: Path) -> None:
    file = project / "gates/defs/survey/defs.yaml"
    text = file.read_text(encoding="utf-8")
    for old, new, message in MISTAKES:
        assert text.count(old) == 1
        file.write_text(text.replace(old, new), encoding="utf-8")
        checked = run_command("check", file)
        line = text.partition(old)[0].count("\n") + 1
        assert checked.exit_code == 1
        assert f"{file}:{line}: {message}" in checked.stderr
        assert "unique_copies" not in checked.stderr and ".." not in checked.stderr
