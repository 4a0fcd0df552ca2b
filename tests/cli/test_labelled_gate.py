"""A gate over files of SPSS and Stata, from `init` to a verified release, without typing a column's type."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyreadstat
import pytest
from support.gates import run_command
from support.sampling import only_in_ci, some_of

from disclosure_pipeline.orchestration.gate_file import HOME, load_gate
from disclosure_pipeline.release.keys import SALT, SIGNING_KEY

LABELS: Any = {
    "sex": {1: "male", 2: "female"},
    "kids": {-8: "not asked", -9: "refused"},
    "health": {1: "good", 2: "fair", 3: "bad", 4: "very bad"},
}
WORDS = {"sex": "Sex", "age": "age in years", "kids": None, "health": "state of health"}


def survey(seed: int, records: int = 1500) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "sex": random.choice([1, 2], records),
            "age": random.integers(18, 60, records),
            "kids": random.choice([0, 1, 2, 3, -8, -9], records, p=[0.4, 0.2, 0.15, 0.1, 0.1, 0.05]),
            "health": random.choice([1, 2, 3], records, p=[0.6, 0.3, 0.1]),
        }
    )


def write(frame: pd.DataFrame, path: Path) -> None:
    if path.suffix == ".sav":
        options: Any = {"missing_ranges": {"kids": [-9]}, "variable_measure": {"health": "ordinal"}}
        pyreadstat.write_sav(frame, path, column_labels=WORDS, variable_value_labels=LABELS, **options)
    else:
        pyreadstat.write_dta(frame, path, column_labels=WORDS, variable_value_labels=LABELS)


@only_in_ci("a project from a file with labels", days=2)
@pytest.mark.parametrize("suffix", some_of([".sav", ".dta"], 2, part_in_ci=2))
def test_from_init_to_a_verified_release(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (HOME, SIGNING_KEY, SALT):
        monkeypatch.delenv(name, raising=False)
    gt, synthetic = tmp_path / f"gt{suffix}", tmp_path / f"synthetic{suffix}"
    write(survey(1), gt)
    write(survey(2), synthetic)
    project = tmp_path / "project"
    tables = ("--table", synthetic, "--ground-truth", gt)

    def call(*arguments: object, expected: int = 0) -> str:
        ran = run_command(*arguments)
        assert ran.exit_code == expected, ran.output
        return ran.stdout

    call("init", project, "--name", "survey", *tables, "--key", "sex", "--key", "age")
    for line in (project / ".env").read_text().splitlines():
        monkeypatch.setenv(*line.split("=", 1))
    gate = project / "gates" / "defs" / "survey"
    columns = load_gate(gate).columns
    assert load_gate(gate).labels == {"age": "age in years", "health": "state of health"}
    assert columns["sex"].aliases == {"1": "male", "2": "female"}
    of_spss = suffix == ".sav"
    assert columns["health"].type == ("ordered category" if of_spss else "category")
    assert set(columns["kids"].special_values) == ({-8} if of_spss else {-8, -9})
    assert columns["kids"].missing_codes == ((-9,) if of_spss else ())
    file = gate / "defs.yaml"  # four coarse columns can hide many people, which is accepted here
    text = file.read_text().replace("      at_most: 10 #", "      at_most: 60 #")
    file.write_text(text.replace("attributes:\n", "attributes:\n  power_seconds: 1\n"))
    call("check", gate)
    incoming = project / "home" / "survey" / "incoming"
    for candidate, table in (("honest", synthetic), ("copy", gt)):
        folder = incoming / candidate
        folder.mkdir()
        shutil.copy(table, folder)
        (folder / "_SUCCESS").touch()
    call("run", gate, "copy", expected=1)
    assert call("run", gate, "honest").startswith("honest: approved\nPublished in ")
    release = project / "home" / "survey" / "releases" / "survey" / "honest"
    call("verify", release, "--key", project / "home" / "keys" / "public-key.pem")
    assert "state of health" in (release / "dossier.html").read_text()
    published = pd.read_parquet(release / "synthetic.parquet")
    expected = survey(2)
    assert sorted(published["sex"]) == sorted(expected["sex"].map(LABELS["sex"]))
    assert set(published["health"]) == {"good", "fair", "bad"}
    if of_spss:
        assert published["kids"].isna().sum() == (expected["kids"] == -9).sum()
