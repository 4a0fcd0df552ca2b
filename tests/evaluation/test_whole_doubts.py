"""A doubt where the table tells no one apart, or where a synthetic table holds people, whatever the keys."""

import re
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner
from support.surveys import panel

import disclosure_pipeline as dp
from disclosure_pipeline.cli.main import main
from disclosure_pipeline.demo.population import population
from disclosure_pipeline.errors import ComparabilityWarning
from disclosure_pipeline.evaluation import whole_doubts

KEYS, TARGETS = ["sex"], ["education", "income"]
PEOPLE = population(2_000)
SAYS_COPIED = r"9\d % of the people are in the synthetic table.*a fresh table would hold [01]\.\d %"
SAYS_ALIKE = "tells no one apart"


def doubts(gt: Any, sd: Any, keys: list[str], **options: Any) -> tuple[str, ...]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dp.disclosure(gt, sd, keys, **options).comparability_doubts


def test_copies_are_noticed_under_coarse_keys() -> None:
    with pytest.warns(ComparabilityWarning, match=SAYS_COPIED):
        result = dp.disclosure(PEOPLE, PEOPLE, KEYS, TARGETS)
    assert result.identity["repU"].item() < 1
    assert len(result.comparability_doubts) == 1


@pytest.mark.parametrize("share", [0.1, 1])
def test_fresh_people_raise_no_doubt(share: float) -> None:
    assert not doubts(PEOPLE, population(round(2_000 * share), 7), KEYS, targets=TARGETS)


def test_a_table_that_tells_no_one_apart() -> None:
    two = PEOPLE[["sex", "worked_abroad"]]
    with pytest.warns(ComparabilityWarning, match=SAYS_ALIKE):
        dp.disclosure(two, population(2_000, 7)[list(two)], ["sex"])


def test_each_synthetic_table_is_named() -> None:
    with pytest.warns(ComparabilityWarning, match="in synthetic table 2,"):
        result = dp.disclosure(PEOPLE, [population(2_000, 7), PEOPLE], KEYS, TARGETS)
    assert len(result.comparability_doubts) == 1


@pytest.mark.parametrize(("engine", "looked_at"), [("memory", True), ("partitioned", False)])
def test_files_are_not_read_once_more_for_it(engine: str, looked_at: bool, tmp_path: Path) -> None:
    gt, sd = tmp_path / "gt.parquet", tmp_path / "sd.parquet"
    for path in (gt, sd):
        PEOPLE.to_parquet(path)
    expected = doubts(PEOPLE, PEOPLE, KEYS) if looked_at else ()
    assert doubts(gt, sd, KEYS, engine=engine) == expected


def test_people_with_several_records_are_found_by_units() -> None:
    """By records nobody of a register whose records stand twice is alone."""
    once = panel(1).iloc[::3]
    gt = pd.concat([once, once], ignore_index=True)
    sd = gt.drop(columns="person")
    keys = ["c0", "c1"]
    [alike] = doubts(sd, sd, keys)
    assert SAYS_ALIKE in alike
    [copied] = doubts(gt, sd, keys, unit="person")
    assert "of the people are in" in copied


def test_columns_that_cannot_be_compared_are_left_out() -> None:
    gt = PEOPLE.assign(number=range(2_000))
    sd = PEOPLE.assign(number=pd.date_range("2020", periods=2_000))
    assert len(doubts(gt, sd, KEYS, targets=[*TARGETS, "health", "age", "region"])) == 1


def test_of_large_tables_a_part_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those who agree in a column: it says nothing of whether others are told apart."""
    monkeypatch.setattr(whole_doubts, "MOST_RECORDS", 1_000)
    [doubt] = doubts(PEOPLE, PEOPLE, KEYS)
    words = re.match(r"(\d+) % of the ([\d,]+) people who agree in (.*?) are in the synthetic table", doubt)
    assert words is not None
    assert int(words[1]) > 90
    assert 100 < int(words[2].replace(",", "")) <= 500
    assert words[3].strip("'") in PEOPLE
    assert not doubts(PEOPLE, population(2_000, 7), KEYS)
    two = PEOPLE[["sex", "worked_abroad"]]
    assert not doubts(two, two, ["sex"])
    empty = PEOPLE.assign(sex=None, region=None)
    assert doubts(empty, empty, ["age"])


@pytest.mark.parametrize("shown", ["table", "html"])
def test_measure_ends_with_a_doubt(shown: str, tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in ("gt.csv", "sd.csv")]
    for path in paths:
        PEOPLE.to_csv(path, index=False)
    arguments = ["measure", *paths, "--key", "sex", "--format", shown]
    ended = CliRunner().invoke(main, arguments)
    assert ended.exit_code == 3
    assert "of the people are in the synthetic table" in ended.output
    assert CliRunner().invoke(main, [*arguments, "--accept-doubts"]).exit_code == 0
