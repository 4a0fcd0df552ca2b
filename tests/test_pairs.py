"""Pairs of tables that others published: those in packages are measured here, the others have a recipe."""

import re
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from pairs import __main__ as pairs
from support.processes import run_program

RECIPES = pairs.read_recipes()


def test_each_recipe_says_where_its_files_are() -> None:
    for pair in RECIPES.values():
        assert (pair.package is None) != (pair.repository is None)
        assert pair.keys and pair.targets and pair.why
        for file in (pair.original, pair.synthetic):
            assert set(file) == {"path", "sha256" if pair.package else "commit"}
            assert pair.package or re.fullmatch("[0-9a-f]{40}", file["commit"])


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


def run_git(folder: Path, *arguments: str) -> str:
    named = ("-c", "user.name=A custodian", "-c", "user.email=custodian@example.org")
    return run_program(["git", "-C", folder, *named, *arguments]).stdout.strip()


def commit(folder: Path, pair: pairs.Pair) -> pairs.Pair:
    """Commit the pair's files to a repository in the folder, and return the pair of that commit."""
    write(folder, pair)
    run_git(folder, "init", "--quiet")
    run_git(folder, "add", ".")
    run_git(folder, "commit", "--quiet", "--allow-empty", "--message", "Add a pair")
    head = run_git(folder, "rev-parse", "HEAD")
    return replace(
        pair, original=pair.original | {"commit": head}, synthetic=pair.synthetic | {"commit": head}
    )


def test_one_line_runs_all_and_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A copy is found where it is expected, and named where it is not."""
    names = ("penguins_bayesian_network", "hepatitis_noise")
    only = {name: commit(tmp_path / str(RECIPES[name].repository), RECIPES[name]) for name in names}
    monkeypatch.setattr(pairs, "read_recipes", lambda: {"adult": RECIPES["adult"]} | only)
    monkeypatch.setattr(sys, "argv", ["pairs", "--files", str(tmp_path)])
    with pytest.raises(SystemExit, match="Not as expected: penguins_bayesian_network"):
        pairs.main()
    printed = capsys.readouterr().out
    assert "adult: left out, statice/anonymeter is not here" in printed
    assert "found, as expected: the original with noise" in printed


def test_files_are_those_of_the_commit_whatever_is_checked_out(tmp_path: Path) -> None:
    pair = commit(tmp_path, RECIPES["hepatitis_noise"])
    committed = pairs.measure(pair, tmp_path)
    for file in (pair.original, pair.synthetic):
        (tmp_path / file["path"]).write_text("another table")
    assert pairs.measure(pair, tmp_path) == committed
    as_expected, text = pairs.measure(RECIPES["hepatitis_noise"], tmp_path)
    assert not as_expected and text.endswith(" is not in this clone")


def test_another_file_of_a_package_is_refused(tmp_path: Path) -> None:
    pair = replace(
        RECIPES["hepatitis_noise"], package="example", original={"path": "a.csv", "sha256": "0" * 64}
    )
    write(tmp_path, pair)
    as_expected, text = pairs.measure(pair, tmp_path)
    assert not as_expected and "a.csv is another file than that of the recipe" in text
    (tmp_path / "a.csv").unlink()
    as_expected, text = pairs.measure(pair, tmp_path)
    assert not as_expected and text == "  a.csv is not in this version of the package"
