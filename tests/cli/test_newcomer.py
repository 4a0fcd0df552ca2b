"""The scripted newcomer: from an empty folder to a verified release, with five mistakes on the way.

Each message names the line, or the file and column, and what to write instead.
"""

import shutil
from pathlib import Path

import pandas as pd
import pytest
from click.testing import Result
from support.gates import run_command
from support.sampling import on_some_days

from disclosure_pipeline.demo.population import population
from disclosure_pipeline.demo.syntheses import leak, synthesise
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
    honest = synthesise(survey)
    survey.to_csv(tmp_path / "survey.csv", index=False)
    renamed = honest.rename(columns={"sex": "gender"})
    for name, table in {"honest": honest, "leaky": leak(honest, survey), "renamed": renamed}.items():
        (tmp_path / name).mkdir()
        table.to_csv(tmp_path / name / "table.csv", index=False)
    tables = ("--table", tmp_path / "honest/table.csv", "--ground-truth", tmp_path / "survey.csv")
    keys = [part for key in KEYS for part in ("--key", key)]
    folder = tmp_path / "project"
    succeed("init", folder, "--name", "survey", *tables, *keys, "--special", "income=-8")
    for line in (folder / ".env").read_text(encoding="utf-8").splitlines():
        monkeypatch.setenv(*line.split("=", 1))
    return folder


def succeed(*arguments: object) -> Result:
    ran = run_command(*arguments)
    assert ran.exit_code == 0, ran.output
    return ran


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


@on_some_days
def test_from_an_empty_folder_to_a_verified_release(project: Path, tmp_path: Path) -> None:
    gate = project / "gates/defs/survey"
    succeed("check", gate)
    assert "\npolicy:\n" in succeed("policy", "draft", gate).stdout

    mistaken = run_command("evaluate", gate, tmp_path / "renamed")
    assert mistaken.exit_code == 1 and "nothing was measured" in mistaken.stdout
    assert "'table.csv', column 'sex': the column is not in the table" in mistaken.stdout
    refused = run_command("evaluate", gate, tmp_path / "leaky")
    reasons = [line for line in refused.stdout.splitlines() if line.startswith("- ")]
    assert refused.exit_code == 1 and len(reasons) == len(set(reasons))
    assert "in the synthetic table" in reasons[0], "copies come before what they cause"
    succeed("evaluate", gate, tmp_path / "honest")

    incoming = shutil.copytree(tmp_path / "honest", project / "home/survey/incoming/first")
    (incoming / "_SUCCESS").touch()
    release = project / "home/survey/releases/survey/first"
    assert f"Published in {release}" in succeed("run", gate, "first").stdout
    key = project / "home/keys/public-key.pem"
    assert "\nApproved: " in succeed("verify", release, "--key", key).stdout
    published = pd.read_parquet(release / "synthetic.parquet")
    published.iloc[1:].to_parquet(release / "synthetic.parquet")
    assert run_command("verify", release, "--key", key).exit_code == 1
