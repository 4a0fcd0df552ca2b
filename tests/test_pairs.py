"""Pairs of tables that others published: those in packages are measured here, the others have a recipe."""

import re
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from pairs import __main__ as pairs

RECIPES = pairs.read_recipes()


def test_each_recipe_says_where_its_files_are() -> None:
    for pair in RECIPES.values():
        assert (pair.package is None) != (pair.repository is None)
        assert pair.package or re.fullmatch("[0-9a-f]{40}", pair.commit or "")
        assert pair.keys and pair.targets and pair.why
        if pair.package:
            assert {"path", "sha256"} == set(pair.original) == set(pair.synthetic)


@pytest.mark.parametrize("name", [name for name, pair in RECIPES.items() if pair.package])
def test_pairs_in_packages_are_as_expected(name: str) -> None:
    pair = RECIPES[name]
    pytest.importorskip(str(pair.package))
    folder = pair.folder(None)
    assert folder is not None
    as_expected, text = pairs.measure(pair, folder)
    assert as_expected, text
    assert "No copied people were found" in text


def write(folder: Path, pair: pairs.Pair) -> None:
    table = pd.DataFrame({name: range(40) for name in (*pair.keys, *pair.targets)})
    for file in (pair.original, pair.synthetic):
        (folder / file["path"]).parent.mkdir(parents=True, exist_ok=True)
        table.to_csv(folder / file["path"], index=False)


def test_one_line_runs_all_and_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A copy is found where it is expected, and named where it is not."""
    for name in ("penguins_bayesian_network", "hepatitis_noise"):
        write(tmp_path / str(RECIPES[name].repository), RECIPES[name])
    only = {name: RECIPES[name] for name in ("adult", "penguins_bayesian_network", "hepatitis_noise")}
    monkeypatch.setattr(pairs, "read_recipes", lambda: only)
    monkeypatch.setattr(sys, "argv", ["pairs", "--files", str(tmp_path)])
    with pytest.raises(SystemExit, match="Not as expected: penguins_bayesian_network"):
        pairs.main()
    printed = capsys.readouterr().out
    assert "adult: left out, statice/anonymeter is not here" in printed
    assert "found, as expected: the original with noise" in printed
    assert printed.count("write it into the recipe") == 4


def test_another_file_is_refused(tmp_path: Path) -> None:
    pair = replace(RECIPES["hepatitis_noise"], original={"path": "a.csv", "sha256": "0" * 64})
    write(tmp_path, pair)
    as_expected, text = pairs.measure(pair, tmp_path)
    assert not as_expected and "a.csv is another file than that of the recipe" in text
    (tmp_path / "a.csv").unlink()
    as_expected, text = pairs.measure(pair, tmp_path)
    assert not as_expected and text == "  a.csv is not in this version of the repository"
