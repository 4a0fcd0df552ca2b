"""`measure --unit`: the figures of the library, and the page."""

import json
from pathlib import Path

import pytest
from support.gates import run_command
from support.surveys import silc

import disclosure_pipeline as dp

KEYS = ["region", "size", "age"]


@pytest.fixture
def tables(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "gt.parquet", tmp_path / "sd.parquet"]
    silc(1).to_parquet(paths[0])
    silc(2).drop(columns="household").to_parquet(paths[1])
    return paths


def run(tables: list[Path], *options: str) -> str:
    keys = [part for key in KEYS for part in ("--key", key)]
    ran = run_command("measure", *tables, *keys, "--target", "income", *options)
    assert ran.exit_code == 0, ran.output
    return ran.stdout


def test_the_figures_are_those_of_the_library(tables: list[Path]) -> None:
    rows = json.loads(run(tables, "--unit", "household", "--format", "json"))["figures"]
    figures = {(row["frame"], row["measure"]): row["value"] for row in rows}
    result = dp.disclosure(tables[0], tables[1], KEYS, "income", unit="household")
    assert figures["units", "units"] == 900
    assert figures["units", "household_risk"] == pytest.approx(result.units["household_risk"].item())
    assert figures["attribute", "DiSCO_others"] == pytest.approx(result.attribute["DiSCO_others"].item())
    without = json.loads(run(tables, "--format", "json"))["figures"]
    assert "units" not in {row["frame"] for row in without}


def test_the_page_counts_people_of_a_unit_that_is_there(tables: list[Path]) -> None:
    assert "% of their units." in run(tables, "--unit", "household", "--format", "html")
    assert "% of their units." not in run(tables, "--format", "html")
    ran = run_command("measure", *tables, "--key", "age", "--unit", "person")
    assert ran.exit_code != 0
    assert "not a column of the ground truth" in ran.stderr
