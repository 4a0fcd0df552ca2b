"""The example data of the demo: what it holds, and that one synthesis is honest and the other leaks."""

import re
from pathlib import Path

import dagster as dg
import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from support import gates
from support.paths import ROOT
from support.sampling import on_some_days

from disclosure_pipeline.demo.population import HEALTH, NO_OWN_INCOME, REGION, WORK, population
from disclosure_pipeline.demo.run import HONEST, RAISED, SALARIES, load_keys, make_data
from disclosure_pipeline.demo.syntheses import leak, synthesise
from disclosure_pipeline.evaluation.long_table import view_frame
from disclosure_pipeline.orchestration.component import build_definitions, run_job
from disclosure_pipeline.orchestration.gate_file import load_gate
from disclosure_pipeline.policy.reviewed_files import read_key_file
from disclosure_pipeline.release.verifying import verify
from disclosure_pipeline.runtime.files import read_json

KEYS = ["sex", "age", "region", "household"]
COLUMNS = [*KEYS, "education", "income", "health", "work", "worked_abroad"]
CATEGORIES = ["sex", "region", "household", "education", "health", "work", "worked_abroad"]


@pytest.fixture(scope="module")
def ground_truth() -> pd.DataFrame:
    return population()


@pytest.fixture(scope="module")
def honest(ground_truth: pd.DataFrame) -> pd.DataFrame:
    return synthesise(ground_truth)


@pytest.fixture(scope="module")
def leaky(ground_truth: pd.DataFrame, honest: pd.DataFrame) -> pd.DataFrame:
    return leak(honest, ground_truth)


def combination(columns: list[str], *tables: pd.DataFrame) -> list[npt.NDArray[np.int64]]:
    """Number the combinations of values in all tables together; missing is a value."""
    every = pd.concat([table[columns] for table in tables], ignore_index=True)
    number = every.groupby(columns, dropna=False, observed=True).ngroup().to_numpy()
    return np.split(number, np.cumsum([len(table) for table in tables])[:-1])


def copied(table: pd.DataFrame, ground_truth: pd.DataFrame) -> float:
    ours, theirs = combination(COLUMNS, table, ground_truth)
    return float(np.isin(ours, theirs).mean())


def replicated_uniques(synthetic: pd.DataFrame, ground_truth: pd.DataFrame) -> float:
    """RepU: percent of GT records unique in GT and found as a unique record of SD."""
    s, d = combination(KEYS, synthetic, ground_truth)
    size = max(s.max(), d.max()) + 1
    both = (np.bincount(d, minlength=size) == 1) & (np.bincount(s, minlength=size) == 1)
    return 100 * float(both.sum()) / len(ground_truth)


def disclosive_and_correct(target: str, synthetic: pd.DataFrame, ground_truth: pd.DataFrame) -> float:
    """DiSCO: percent of GT records whose key has one target level only in SD, which is their own."""
    s, d = combination(KEYS, synthetic, ground_truth)
    s_t, d_t = combination([target], synthetic, ground_truth)
    levels = pd.Series(s_t).groupby(s).agg(["min", "max"]).reindex(d)
    return 100 * float(((levels["min"] == d_t) & (levels["max"] == d_t)).mean())


def same_in_rows(one: pd.Series, other: pd.Series) -> npt.NDArray[np.bool_]:
    return ((one == other) | (one.isna() & other.isna())).fillna(False).to_numpy(dtype=bool)


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


def test_every_level_occurs_and_regions_are_uneven(ground_truth: pd.DataFrame) -> None:
    for name in CATEGORIES:
        assert ground_truth[name].value_counts().min() > 0, name
    shares = ground_truth["region"].value_counts(normalize=True)
    assert len(shares) == len(REGION) == 16
    assert shares.max() > 0.25
    assert shares.min() < 0.02


def test_work_can_often_be_inferred(ground_truth: pd.DataFrame, honest: pd.DataFrame) -> None:
    for table in (ground_truth, honest):
        work, age = table["work"], table["age"]
        assert (work[age >= 70] == "retired").mean() > 0.9
        assert (work[age <= 18] == "student").mean() > 0.7
        assert (work[age.between(19, 55)] == "retired").mean() < 0.02
        assert best_guess(table, "work") > 0.65


def test_health_and_income_can_hardly_be_inferred(ground_truth: pd.DataFrame, honest: pd.DataFrame) -> None:
    for table in (ground_truth, honest):
        assert best_guess(table, "health") < 0.55
        message = table[table["income"].gt(0).fillna(False)]
        assert best_guess(message.assign(group=pd.qcut(message["income"].astype(float), 5)), "group") < 0.45


def best_guess(table: pd.DataFrame, target: str) -> float:
    """Share guessed right by who knows sex, household and decade, and guesses the commonest level."""
    known = [table["sex"], table["household"], table["age"] // 10]
    commonest = table.groupby(known, observed=True)[target].agg(lambda column: column.value_counts().iloc[0])
    return float(commonest.sum()) / len(table)


def test_work_abroad_is_rare_and_depends_on_the_region() -> None:
    large = population(50_000)
    yes = large["worked_abroad"] == "yes"
    by_region = yes.groupby(large["region"], observed=True).mean()
    assert 0.04 < yes.mean() < 0.15
    assert by_region["Border Hills"] > 2 * by_region["Great Plain"]


def test_the_synthesis_resembles_the_ground_truth(ground_truth: pd.DataFrame, honest: pd.DataFrame) -> None:
    for name in CATEGORIES:
        gt, sd = (t[name].value_counts(normalize=True, sort=False) for t in (ground_truth, honest))
        assert (gt - sd).abs().sum() / 2 < 0.05, name
    for name, within in (("age", 1.0), ("income", 120.0)):
        gt_mean, sd_mean = (float(t[name][t[name] > 0].mean()) for t in (ground_truth, honest))
        assert gt_mean == pytest.approx(sd_mean, abs=within), name
    # Dependences are kept as well: among the employed, education tells income.
    for table in (ground_truth, honest):
        employed = table[(table["work"] == WORK[0]) & table["income"].gt(0).fillna(False)]
        mean = employed["income"].astype(float).groupby(employed["education"], observed=True).mean()
        assert mean["master or more"] > 1.5 * mean["primary or less"]


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
    untouched = np.logical_and.reduce([same_in_rows(table[name], sd[name]) for name in COLUMNS])
    assert untouched.sum() == pytest.approx(1000 - replaced, abs=10)  # a copy may equal what it replaces
    assert copied(table, gt) >= share


def test_the_leak_takes_records_again_only_when_there_are_too_few() -> None:
    gt = population(200, 1)
    assert combination(COLUMNS, leak(synthesise(gt), gt, 1.0))[0].max() == combination(COLUMNS, gt)[0].max()
    assert copied(leak(population(500, 2), gt, 0.9), gt) >= 0.9


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_an_impossible_size_or_share_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match="records"):
        population(-1)
    gt = population(10)
    with pytest.raises(ValueError, match="share"):
        leak(gt, gt, share)


def test_only_the_leak_is_beyond_what_a_policy_would_allow(
    ground_truth: pd.DataFrame, honest: pd.DataFrame, leaky: pd.DataFrame
) -> None:
    assert 25 < replicated_uniques(ground_truth, ground_truth) < 45  # repU of GT with itself is UiO
    assert replicated_uniques(honest, ground_truth) < 7
    assert replicated_uniques(leaky, ground_truth) > 9
    bounds = {"education": (8, 12), "health": (9, 13), "work": (29, 32.5), "worked_abroad": (50, 53)}
    for target, (low, high) in bounds.items():
        assert disclosive_and_correct(target, honest, ground_truth) < low, target
        assert disclosive_and_correct(target, leaky, ground_truth) > high, target


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
