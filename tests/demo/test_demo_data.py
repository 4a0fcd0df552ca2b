"""The example data of the demo: what it holds, and that one synthesis is honest and the other leaks."""

import re
from pathlib import Path

import dagster as dg
import numpy as np
import pandas as pd
import pytest
from support import gates
from support.paths import ROOT
from support.sampling import on_some_days

from disclosure_pipeline.demo.population import HEALTH, NO_OWN_INCOME, population
from disclosure_pipeline.demo.run import HONEST, RAISED, SALARIES, load_keys, make_data
from disclosure_pipeline.demo.syntheses import leak, synthesise
from disclosure_pipeline.evaluation.long_table import view_frame
from disclosure_pipeline.orchestration.component import build_definitions, run_job
from disclosure_pipeline.orchestration.gate_file import load_gate
from disclosure_pipeline.policy.reviewed_files import read_key_file
from disclosure_pipeline.release.verifying import verify
from disclosure_pipeline.runtime.files import read_json

COLUMNS = ["sex", "age", "region", "household", "education", "income", "health", "work", "worked_abroad"]
CATEGORIES = ["sex", "region", "household", "education", "health", "work", "worked_abroad"]


@pytest.fixture(scope="module")
def ground_truth() -> pd.DataFrame:
    return population()


@pytest.fixture(scope="module")
def honest(ground_truth: pd.DataFrame) -> pd.DataFrame:
    return synthesise(ground_truth)


def records(table: pd.DataFrame) -> list[tuple[str, ...]]:
    return list(table[COLUMNS].astype(str).itertuples(index=False, name=None))


def copied(table: pd.DataFrame, ground_truth: pd.DataFrame) -> float:
    """The share of the records that are those of the ground truth."""
    theirs = set(records(ground_truth))
    return float(np.mean([record in theirs for record in records(table)]))


@pytest.mark.parametrize("records", [0, 1, 2, 7, 1000])
@pytest.mark.parametrize("postcodes", [False, True])
def test_every_table_has_the_asked_size_and_the_same_columns_and_types(records: int, postcodes: bool) -> None:
    gt = population(records, 3, postcodes=postcodes)
    sd = synthesise(gt, 4)
    assert list(gt.columns) == COLUMNS + ["postcode"] * postcodes
    for table in (gt, sd, leak(sd, gt, 0.5, 5)):
        assert len(table) == records
        pd.testing.assert_series_equal(table.dtypes, gt.dtypes)
        pd.testing.assert_index_equal(table.index, pd.RangeIndex(records))


def test_types_are_small() -> None:
    gt = population(10, postcodes=True)
    assert all(isinstance(gt[name].dtype, pd.CategoricalDtype) for name in CATEGORIES)
    assert [str(gt[name].dtype) for name in ("age", "income", "postcode")] == ["int16", "Int32", "int32"]
    assert list(gt["health"].cat.categories) == list(HEALTH)
    assert gt["health"].cat.ordered
    assert gt["education"].cat.ordered
    assert not gt["work"].cat.ordered


def test_a_seed_gives_the_same_tables_and_another_one_others() -> None:
    gt, again = population(500, 1, postcodes=True), population(500, 1, postcodes=True)
    pd.testing.assert_frame_equal(gt, again)
    pd.testing.assert_frame_equal(gt.drop(columns="postcode"), population(500, 1))
    sd = synthesise(gt, 2)
    pd.testing.assert_frame_equal(sd, synthesise(again, 2))
    pd.testing.assert_frame_equal(leak(sd, gt, seed=3), leak(sd, gt, seed=3))
    assert not gt.equals(population(500, 2, postcodes=True))
    assert not sd.equals(synthesise(gt, 3))
    assert not leak(sd, gt, seed=3).equals(leak(sd, gt, seed=4))


def test_one_seed_for_all_steps_does_not_tie_the_synthesis_to_the_records() -> None:
    gt = population(2000, 7)
    assert (gt["age"] == synthesise(gt, 7)["age"]).mean() < 0.03


def test_the_inputs_stay_as_they_are() -> None:
    gt = population(300)
    sd = synthesise(gt)
    gt_before, sd_before = gt.copy(), sd.copy()
    leak(sd, gt)
    synthesise(gt)
    pd.testing.assert_frame_equal(gt, gt_before)
    pd.testing.assert_frame_equal(sd, sd_before)


def test_every_postcode_lies_in_one_region() -> None:
    gt = population(60_000, postcodes=True)
    together = pd.concat([gt, synthesise(gt)])
    assert together.groupby("postcode")["region"].nunique().max() == 1
    assert gt["postcode"].between(10_000, 29_999).all()
    assert gt["postcode"].nunique() > 18_000


def test_values_are_those_of_a_survey(ground_truth: pd.DataFrame, honest: pd.DataFrame) -> None:
    for table in (ground_truth, honest):
        assert table["age"].between(16, 97).all()
        assert table["health"].isna().mean() == pytest.approx(0.01, abs=0.005)
        income = table["income"]
        assert income.isna().mean() == pytest.approx(0.07, abs=0.02)
        assert (income == NO_OWN_INCOME).mean() == pytest.approx(0.09, abs=0.03)
        amounts = income[income.notna() & (income != NO_OWN_INCOME)]
        assert amounts.min() > 0
        assert (amounts % 10 == 0).all()
        assert (amounts % 100 == 0).mean() > 0.5
        assert not table[[name for name in COLUMNS if name not in ("income", "health")]].isna().any(axis=None)


def test_the_synthesis_holds_no_more_copies_than_chance_and_no_extreme_income(
    ground_truth: pd.DataFrame, honest: pd.DataFrame
) -> None:
    by_chance = copied(population(seed=77), ground_truth)
    assert copied(honest, ground_truth) < by_chance + 0.006
    assert honest["income"].max() < ground_truth["income"].max()


@pytest.mark.parametrize(
    ("share", "replaced"), [(0.0, 0), (0.1, 100), (0.3, 300), (0.9995, 1000), (1.0, 1000)]
)
def test_the_leak_replaces_the_share_and_leaves_the_rest(share: float, replaced: int) -> None:
    gt = population(1000, 1)
    sd = synthesise(gt)
    table = leak(sd, gt, share)
    untouched = sum(one == other for one, other in zip(records(table), records(sd), strict=True))
    assert untouched == pytest.approx(1000 - replaced, abs=10)  # a copy may equal what it replaces
    assert copied(table, gt) >= share


def test_the_leak_takes_records_again_only_when_there_are_too_few() -> None:
    gt = population(200, 1)
    assert set(records(leak(synthesise(gt), gt, 1.0))) == set(records(gt))
    assert copied(leak(population(500, 2), gt, 0.9), gt) >= 0.9


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_an_impossible_size_or_share_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match="records"):
        population(-1)
    gt = population(10)
    with pytest.raises(ValueError, match="share"):
        leak(gt, gt, share)


# The second gate of the demo: weights and a band, from the files that arrive to the release


DEFINITION = ROOT / "disclosure_pipeline" / "defs" / SALARIES / "defs.yaml"


@on_some_days
def test_copies_with_raised_incomes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    make_data(tmp_path / "demo", records=100, seed=0)
    load_keys(tmp_path / "demo" / "keys")
    gate = build_definitions(load_gate(DEFINITION))
    evidence = tmp_path / "demo" / "store" / SALARIES / "candidates"
    with gates.quiet(), dg.DagsterInstance.ephemeral() as instance:
        assert run_job(gate, f"{SALARIES}_ground_truth", instance).success
        for candidate in (HONEST, RAISED):
            instance.add_dynamic_partitions(f"{SALARIES}_candidates", [candidate])
            run_job(gate, f"{SALARIES}_gate", instance, candidate)
    honest, raised = (read_json(evidence / name / "dossier.json", "the test") for name in (HONEST, RAISED))
    assert (honest["decision"], raised["decision"]) == ("approved", "refused")
    outcomes = {clause["name"]: clause["outcome"] for clause in raised["clauses"]}
    assert outcomes["DiSCO_within[income] beyond"] == outcomes["guessed_within[income] beyond"] == "exceeded"
    by_weight = {clause["name"] for clause in raised["clauses"] if clause["by_weight"]}
    assert {"repU", "DiSCO_within[income]"} <= by_weight
    exact = view_frame(raised["figures"], "attribute")[0]
    assert exact["DiSCO_beyond"] < 5
    assert view_frame(raised["figures"], "bands")[0]["DiSCO_within_beyond"] > 20
    page = (evidence / RAISED / "dossier.html").read_text(encoding="utf-8")
    assert re.search(r"Table 1 shows the income of [\d.]+ % of the people to within 5 %", page)
    published = tmp_path / "demo" / "releases" / SALARIES / HONEST
    verify(published, read_key_file(tmp_path / "demo" / "keys" / "public-key.pem"))
    assert "weight" not in (published / "synthetic.parquet").read_bytes().decode("latin-1")


@pytest.mark.parametrize("option", ["--seed", "--records"])
def test_what_no_table_is_made_of_is_a_wrong_usage(option: str, tmp_path: Path) -> None:
    shown = gates.run_command("demo", option, "-1", "--home", tmp_path / "home")
    assert shown.exit_code == 2 and "-1 is not in the range" in shown.stderr
    assert not (tmp_path / "home").exists()
