"""The command line: measuring files, and the demo."""

import re
from collections.abc import Callable
from pathlib import Path

import gates
import pandas as pd
import pytest
from click.testing import CliRunner, Result

import disclosure_pipeline as dp
from disclosure_pipeline.cli import main
from disclosure_pipeline.demo.run import HONEST, LEAKY


def run(*arguments: str | Path) -> Result:
    """The command line in this process."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def tables(tmp_path: Path) -> Callable[..., list[Path]]:
    """Writes GT and syntheses as CSV or Parquet."""

    def write(*syntheses: pd.DataFrame, suffix: str = ".csv") -> list[Path]:
        paths = []
        for number, table in enumerate((gates.ground_truth(), *syntheses)):
            path = tmp_path / f"table{number}{suffix}"
            table.to_csv(path, index=False) if suffix == ".csv" else table.to_parquet(path)
            paths.append(path)
        return paths

    return write


OPTIONS = ("--key", "sex", "--key", "age", "--groups", "income=5", "--special", "income=-8")


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_measure_prints_what_the_library_finds(tables: Callable[..., list[Path]], suffix: str) -> None:
    syntheses = [gates.honest(1), gates.ground_truth()]
    shown = run("measure", *tables(*syntheses, suffix=suffix), *OPTIONS)
    assert shown.exit_code == 0, shown.output
    found = dp.disclosure(
        gates.ground_truth().astype({"age": str}),
        [table.astype({"age": str}) for table in syntheses],
        ["sex", "age"],
        groups={"income": 5},
        special_values={"income": [-8]},
    )
    assert shown.stdout == f"{found}\n"


def test_measure_one_target(tables: Callable[..., list[Path]]) -> None:
    shown = run("measure", *tables(gates.honest()), *OPTIONS[:4], "--target", "work")
    assert shown.exit_code == 0
    assert "work" in shown.stdout and "income" not in shown.stdout


def test_measure_says_where_tables_share_few_values(tables: Callable[..., list[Path]]) -> None:
    """A risk near 0 may mean that they are not coded alike."""
    shown = run("measure", *tables(gates.honest().assign(sex=["female", "male"] * 149)), *OPTIONS)
    assert shown.exit_code == 0
    assert "share few values" in shown.stderr and "sex" in shown.stderr
    assert "share few values" not in run("measure", *tables(gates.honest()), *OPTIONS).stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "--key"),
        (("--key", "sx"), "Did you mean 'sex'?"),
        (("--key", "sex", "--key", "sex"), "more than once"),
        (("--key", "sex", "--target", "sex"), "key and a target"),
        (("--key", "sex", "--groups", "income"), "COLUMN=NUMBER"),
        (("--key", "sex", "--groups", "income=many"), "COLUMN=NUMBER"),
        (("--key", "sex", "--groups", "income=2.7"), "2.7"),
        (("--key", "sex", "--groups", "income=nan"), "nan"),
        (("--key", "sex", "--groups", "income=inf"), "inf"),
        (("--key", "sex", "--groups", "income=1"), "from 2 on"),
        (("--key", "sex", "--groups", "work=3"), "'work'"),
        (("--key", "sex", "--special", "income=none"), "COLUMN=NUMBER"),
    ],
)
def test_measure_refuses(tables: Callable[..., list[Path]], options: tuple[str, ...], said: str) -> None:
    """With a message, not with a traceback, and without a value of the tables."""
    shown = run("measure", *tables(gates.honest()), *options)
    assert shown.exit_code != 0
    assert isinstance(shown.exception, SystemExit)
    assert said in shown.output
    assert not [canary for canary in gates.CANARIES if canary in shown.output]


def test_measure_refuses_damaged_files(tables: Callable[..., list[Path]], tmp_path: Path) -> None:
    (path, good) = tables(gates.honest())
    for content in (b"", b"sex,age\nf\n", b"\xff\xfe", b"sex,age,work,income\n"):
        (tmp_path / "damaged.csv").write_bytes(content)
        for files in ((path, tmp_path / "damaged.csv"), (tmp_path / "damaged.csv", good)):
            shown = run("measure", *files, *OPTIONS)
            assert shown.exit_code == 1
            assert isinstance(shown.exception, SystemExit)
    assert run("measure", path, tmp_path / "missing.csv", *OPTIONS).exit_code == 2
    assert run("measure", path, *OPTIONS).exit_code == 2


def test_the_demo_shows_both_verdicts(demo: tuple[Path, str]) -> None:
    home, shown = demo
    assert re.search(rf"^{HONEST} +approved +[0-9.]+%  -$", shown, re.MULTILINE)
    assert re.search(rf"^{LEAKY} +refused +[0-9.]+%  .*repU .* > ", shown, re.MULTILINE)
    assert f"{HONEST}: published in {home / 'demo/releases/survey' / HONEST}" in shown
    assert f"{LEAKY}: not published" in shown
    assert "make ui" in shown


def test_the_demo_can_be_run_twice(demo: tuple[Path, str]) -> None:
    """The second time it finds the same, and what it published stays as it is."""
    home, shown = demo
    folder = home / "demo/releases/survey" / HONEST
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}
    again = gates.run_cli("demo", home=home)
    assert again.returncode == 0, again.stderr
    assert again.stdout == shown
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()} == before
    assert [path.name for path in folder.parent.iterdir()] == [HONEST]


def test_the_demo_says_when_a_run_ends_before_its_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a message; and no verdict of an earlier run is taken for the new one."""
    monkeypatch.setenv("DAGSTER_HOME", "restored after the test")
    monkeypatch.setattr("disclosure_pipeline.demo.run.leak", lambda honest, _: honest.drop(columns="age"))
    with gates.quick_folder() as home, gates.quiet():
        shown = run("demo", "--records", "200", "--home", home)
    assert shown.exit_code == 1
    assert isinstance(shown.exception, SystemExit)
    assert "survey__synthetic" in shown.output
