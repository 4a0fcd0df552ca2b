"""Prediction risk is what the slow reference finds, treats every kind of key, and tells nothing of GT."""

import math
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from reference import prediction as reference
from reference.prediction import Record, Value
from support.refusals import refusal
from support.sampling import CI, examples, on_some_days, only_in_ci

import disclosure_pipeline as dp
from disclosure_pipeline.families.learning.outcomes import draw_training_records, make_folds
from disclosure_pipeline.measures import prediction as measures

SECRET = 48151623.42

NUMBERS = (-8, 0, 1, 2, 5)
TEXTS = ("a", "b", "c")
SPECIAL: dict[str, list[float]] = {"n": [-8], "y": [-8]}


@st.composite
def tables(draw: DrawFn) -> tuple[list[Record], list[Record]]:
    """Two tables with a key of text, one of numbers, a target of each, missing values and special ones."""
    pools: dict[str, Sequence[Value]] = {
        "c": (*TEXTS, None),
        "n": (*NUMBERS, None),
        "t": (*TEXTS, None),
        "y": (*NUMBERS, None),
    }
    record = st.fixed_dictionaries({name: st.sampled_from(pool) for name, pool in pools.items()})
    gt = draw(st.lists(record, min_size=2, max_size=9))
    # Copied records make near and equal ones frequent.
    sd = draw(st.lists(st.one_of(record, st.sampled_from(gt)), min_size=1, max_size=14))
    gt += [{"c": "a", "n": 1, "t": "a", "y": 1}, {"c": "a", "n": None, "t": None, "y": 2}]
    return gt, [*sd, {"c": None, "n": 0, "t": "b", "y": 5}]


def frame(records: Sequence[Record]) -> pd.DataFrame:
    actual = pd.DataFrame(list(records), columns=list(records[0]))
    for column in ("n", "y"):
        actual[column] = actual[column].astype("Float64")
    for column in ("c", "t"):
        actual[column] = actual[column].astype(object)
    return actual


def figures(actual: dp.PredictionRisk, synthesis: int = 1) -> dict[str, float]:
    return {str(name): float(column.iloc[synthesis - 1]) for name, column in actual.figures.items()}


def outcomes(actual: dp.PredictionRisk, synthesis: int = 1) -> pd.DataFrame:
    """The records of one synthesis, of the only target."""
    [target] = actual.targets
    frame: Any = actual.records[target, synthesis]
    return frame


def task(actual: dp.PredictionRisk) -> str:
    [name] = actual.fits["task"].unique()
    return str(name)


def assert_close(actual: dict[Any, Any], expected: dict[str, Any]) -> None:
    assert list(actual) == list(expected)
    for name, value in expected.items():
        if value is None:
            assert pd.isna(actual[name]), name
        elif isinstance(value, bool):
            assert actual[name] is value or actual[name] == value, name
        else:
            assert actual[name] == pytest.approx(value, rel=1e-9, abs=1e-9, nan_ok=True), name


# The figures


@examples(15)
@given(tables(), st.sampled_from([0.0, 0.3, 0.61]), st.sampled_from([3, 16]))
def test_classification_is_that_of_the_reference(
    drawn: tuple[list[Record], list[Record]], tau: float, candidates: int
) -> None:
    gt, sd = drawn
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("disclosure_pipeline.families.learning.learners._CANDIDATES", candidates)
        result = dp.prediction_risk(
            frame(gt), frame(sd), ["c", "n"], "t", folds=1000, tau=tau, special_values={"n": SPECIAL["n"]}
        )
    expected_figures, expected_outcomes = reference.classification(
        gt, sd, ["c", "n"], "t", SPECIAL, tau, training_of_same_size(gt, sd)
    )
    assert task(result) == "classification"
    assert_close(figures(result), expected_figures)
    for row, expected in zip(outcomes(result).to_dict("records"), expected_outcomes, strict=True):
        assert_close(row, expected)


def codes(records: Sequence[Record], column: str) -> Any:
    """Any numbers in the order of the values, missing last."""
    values = sorted({record[column] for record in records}, key=reference.order)
    return np.array([values.index(record[column]) for record in records])


def training_of_same_size(gt: Sequence[Record], sd: Sequence[Record]) -> tuple[list[int], list[list[int]]]:
    """The SD records, and for each GT record the GT records, that `gain_over_GT` learns from."""
    folds = make_folds(codes(gt, "t"), 1000, 0, np.arange(len(gt)))
    synthetic, drawn = draw_training_records([codes(sd, column) for column in ("c", "n", "t")], folds, 0)
    of_record = {int(i): fold.training.tolist() for fold in drawn for i in fold.held_out}
    return synthetic.tolist(), [of_record[i] for i in range(len(gt))]


@pytest.mark.parametrize("far", [1e6, 1e12, 1e14])
def test_one_number_far_from_all_others_hides_no_neighbours(far: float) -> None:
    """All others are then so near to each other that the search alone cannot tell them apart."""
    age = np.random.default_rng(0).permutation(300).astype(float)
    table = pd.DataFrame({"age": age, "job": np.where(age // 10 % 2 == 0, "cook", "smith"), "pay": age})
    table.loc[0, "age"] = far
    predicted = dp.prediction_risk(table, table, ["age"], ["job", "pay"], epsilon=50).figures
    accuracy, close = predicted["accuracy_SD"]["job"], predicted["RAPID"]["pay"]
    assert accuracy.item() > 99
    assert close.item() > 98


@examples(15)
@given(tables(), st.sampled_from([7.0, 33.0]))
def test_regression_is_that_of_the_reference(
    drawn: tuple[list[Record], list[Record]], epsilon: float
) -> None:
    gt, sd = drawn
    result = dp.prediction_risk(
        frame(gt), frame(sd), ["c", "n"], "y", folds=1000, epsilon=epsilon, special_values=SPECIAL
    )
    expected_figures, expected_outcomes = reference.regression(gt, sd, ["c", "n"], "y", SPECIAL, epsilon)
    assert task(result) == "regression"
    assert result.fits["N_scored"].tolist() == [sum(record["y"] not in (None, -8) for record in gt)]
    assert result.fits["N_fitted"].tolist() == [sum(record["y"] not in (None, -8) for record in sd)]
    assert_close(figures(result), expected_figures)
    for row, expected in zip(outcomes(result).to_dict("records"), expected_outcomes, strict=True):
        assert_close(row, expected)


@examples(15)
@given(tables(), st.randoms(use_true_random=False), st.sampled_from(["t", "y"]))
def test_the_order_of_the_synthetic_records_does_not_matter(
    drawn: tuple[list[Record], list[Record]], random: Any, target: str
) -> None:
    gt, sd = drawn
    shuffled = list(sd)
    random.shuffle(shuffled)
    one = dp.prediction_risk(frame(gt), frame(sd), ["c", "n"], target)
    other = dp.prediction_risk(frame(gt), frame(shuffled), ["c", "n"], target)
    pd.testing.assert_frame_equal(one.figures, other.figures, check_exact=True)
    pd.testing.assert_frame_equal(outcomes(one), outcomes(other), check_exact=True)


def people(n: int, seed: int) -> pd.DataFrame:
    """Made-up records; `height` has no two equal values, `job` and `pay` depend on the keys and on luck."""
    rng = np.random.default_rng(seed)
    height = rng.normal(170, 10, n)
    age = rng.integers(18, 90, n)
    region = rng.choice(["north", "south", "west"], n)
    pay = 1000 + 20.0 * age + 5 * (height - 170) + 300 * (region == "west") + rng.normal(0, 100, n)
    job = np.where(age > 66, "retired", np.where(pay + rng.normal(0, 200, n) > 2000, "clerk", "smith"))
    return pd.DataFrame({"height": height, "age": age, "region": region, "job": job, "pay": pay})


KEYS = ["height", "age", "region"]


def test_without_ties_it_is_the_learner_of_scikit_learn() -> None:
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

    gt, sd = people(300, 1), people(250, 2)
    ours = dp.prediction_risk(gt, sd, KEYS, "job")
    theirs = dp.prediction_risk(gt, sd, KEYS, "job", KNeighborsClassifier(n_neighbors=3))
    pd.testing.assert_frame_equal(outcomes(ours), outcomes(theirs))
    numbers = dp.prediction_risk(gt, sd, KEYS, "pay")
    regressor = dp.prediction_risk(gt, sd, KEYS, "pay", KNeighborsRegressor(n_neighbors=3))
    pd.testing.assert_frame_equal(outcomes(numbers), outcomes(regressor))
    assert theirs.learner == "KNeighborsClassifier"


@only_in_ci("boosted trees of wide tables")
def test_boosted_trees_take_every_kind_of_key() -> None:
    gt, sd = people(600, 5), people(600, 6)
    for table in (gt, sd):
        table.loc[table.index[::7], "age"] = np.nan
        table.loc[table.index[::5], "region"] = None
        table["many"] = [f"level {i}" for i in range(len(table))]  # more than they take as categories
    keys = [*KEYS, "many"]
    job = dp.prediction_risk(gt, sd, keys, "job", "boosted_trees", special_values={"age": [18]})
    row = figures(job)
    assert row["gain_over_naive"] > 10
    pay = figures(dp.prediction_risk(gt, sd, keys, "pay", "boosted_trees"))
    assert pay["mse_SD"] < pay["mse_naive"] / 2


def test_a_wide_matrix_is_sparse_and_gives_the_same_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    gt, sd = people(60, 7), people(60, 8)
    plain = [dp.prediction_risk(gt, sd, ["region", "age"], target).figures for target in ("job", "pay")]
    monkeypatch.setattr("disclosure_pipeline.families.learning.features._WIDEST_DENSE", 1)
    monkeypatch.setattr("disclosure_pipeline.families.learning.learners._CHUNK", 20)
    for expected, target in zip(plain, ("job", "pay"), strict=True):
        actual = dp.prediction_risk(gt, sd, ["region", "age"], target).figures
        pd.testing.assert_frame_equal(actual, expected)


# The statistics alone


def test_the_examples_of_the_rapid_manuscript() -> None:
    # 100 records, 60 of them "healthy" (level 0); three of these with confidences 0.70, 0.85 and 0.55.
    level = np.repeat([0, 1], [60, 40])
    confidence = np.concatenate([[0.70, 0.85, 0.55], np.zeros(97)])
    r = measures.normalised_confidence(confidence, level)[:3]
    assert r == pytest.approx([0.25, 0.625, -0.125])
    assert (r > 0.3).tolist() == [False, True, False]
    true = np.array([50_000.0, 35_000.0, 80_000.0])
    predicted = np.array([47_000.0, 39_000.0, 90_000.0])
    assert measures.relative_errors(true, predicted) == pytest.approx([6, 11.43, 12.5], abs=0.01)
    assert measures.within(true, predicted, 10).tolist() == [True, False, False]


def test_relative_error_of_a_true_value_of_zero() -> None:
    true, predicted = np.array([0.0, 0.0, -2.0]), np.array([0.0, 1e-9, -1.0])
    assert measures.relative_errors(true, predicted).tolist() == [0.0, math.inf, 50.0]
    assert measures.within(true, predicted, 10).tolist() == [True, False, False]
    assert measures.within(true, predicted, 10, absolute_epsilon=0.5).tolist() == [True, True, False]


def alike(correct: Any, r: Any) -> measures.Outcomes:
    return measures.Outcomes(correct, correct, correct, correct, correct, correct, r, r)


def test_a_record_counts_only_strictly_beyond_a_limit() -> None:
    true, predicted = np.array([10.0, 10.0]), np.array([11.0, 10.9])
    assert measures.within(true, predicted, 10).tolist() == [False, True]
    assert measures.within(true, predicted, 1, absolute_epsilon=1).tolist() == [False, True]
    r = np.array([0.5, 0.25])
    right = np.ones(2, dtype=bool)
    assert measures.classification(alike(right, r), tau=0.25).RAPID == 50


def test_a_figure_without_data_is_nan() -> None:
    nothing = np.zeros(0)
    actual = measures.regression(nothing, nothing, nothing, nothing, 0.0, 10)
    assert all(math.isnan(value) for value in asdict(actual).values())
    none = np.zeros(0, dtype=bool)
    assert all(
        math.isnan(value) for value in asdict(measures.classification(alike(none, nothing), 0.3)).values()
    )
    r = np.array([0.9, math.nan, 0.9])
    figures = measures.classification(alike(np.ones(3, dtype=bool), r), 0.3)
    assert math.isnan(figures.RAPID)
    known = np.array([1.0])
    far = measures.regression(known, np.array([math.nan]), known, known, 1.0, 10)
    assert math.isnan(far.mse_SD)
    assert math.isnan(far.RAPID)


def test_sums_do_not_depend_on_the_order_and_may_be_infinite() -> None:
    far = np.full(3, 1.3e154)
    actual = measures.regression(np.zeros(3), far, np.full(3, 1e200), far, 0.0, 10)
    assert actual.mse_SD == actual.mse_GT == math.inf
    values = np.array([1e16, 1.0, -1e16, 1.0])
    assert measures.mean(values) == measures.mean(values[[0, 2, 1, 3]]) == 0.5


# Out of fold


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_nobody_is_predicted_by_their_own_records(task: Any) -> None:
    """Twelve records each, of people whose key and answer nobody shares."""
    random = np.random.default_rng(1)
    people = pd.DataFrame({"person": range(40), "age": random.normal(50, 9, 40), "income": random.random(40)})
    visits = pd.concat([people] * 12, ignore_index=True)
    synthetic = visits.drop(columns="person")
    arguments = (visits, synthetic, ["age"], "income", "nearest_neighbours")
    apart, together = (dp.prediction_risk(*arguments, task=task, unit=unit) for unit in ("person", None))
    name = {"classification": "accuracy_GT", "regression": "mse_GT"}[task]
    found, by_themselves = (result.figures[name].item() for result in (apart, together))
    assert (found, by_themselves) == (0, 100) if task == "classification" else found > 0.01 > by_themselves


@pytest.mark.parametrize(
    ("person", "expected"), [(["a", None, "b"], "person"), (["a", "a", "a"], "one unit")]
)
def test_a_unit_that_tells_nobody_apart(person: list[str | None], expected: str) -> None:
    gt = pd.DataFrame({"person": person, "age": [1, 2, 3], "ill": ["y", "n", "y"]})
    with pytest.raises(dp.InputError, match=expected):
        dp.prediction_risk(gt, gt.drop(columns="person"), ["age"], "ill", unit="person")
    with pytest.raises(dp.InputError, match="person"):
        dp.prediction_risk(gt, gt, ["age"], "ill", unit="person")


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6)), min_size=2, max_size=40),
    st.integers(2, 12),
    st.integers(0, 5),
    st.booleans(),
)
def test_every_record_is_predicted_once_and_never_by_its_unit(
    records: list[tuple[int, int]], folds: int, seed: int, with_units: bool
) -> None:
    levels, unit = (np.array(column) for column in zip(*records, strict=True))
    whose = unit if with_units else np.arange(len(levels))
    parts = make_folds(levels, folds, seed, whose)
    assert sorted(np.concatenate([fold.held_out for fold in parts])) == list(range(len(levels)))
    assert len(parts) == min(folds, len(set(whose.tolist())))
    for fold in parts:
        assert sorted([*fold.held_out, *fold.training]) == list(range(len(levels)))
        assert not set(whose[fold.held_out].tolist()) & set(whose[fold.training].tolist())
    if not with_units:
        for level in (*range(4), None):
            sizes = [np.sum((levels[fold.held_out] == level) | (level is None)) for fold in parts]
            assert max(sizes) - min(sizes) <= 1


# In sample, and of equal size


@given(gt=st.integers(2, 40), sd=st.integers(1, 60), folds=st.integers(2, 12), seed=st.integers(0, 3))
def test_both_tables_are_learned_from_in_equal_numbers(gt: int, sd: int, folds: int, seed: int) -> None:
    parts = make_folds(np.zeros(gt, dtype=np.int64), folds, seed, np.arange(gt))
    synthetic, drawn = draw_training_records([np.arange(sd)[::-1] % 7, np.arange(sd)], parts, seed)
    from_SD = len(set(synthetic.tolist()))
    for fold, used in zip(parts, drawn, strict=True):
        assert used.held_out.tolist() == fold.held_out.tolist()
        assert set(used.training.tolist()) <= set(fold.training.tolist())
        assert len(set(used.training.tolist())) == len(used.training)
        assert abs(len(used.training) - from_SD) <= 1
    assert from_SD == sd or all(used is fold for fold, used in zip(parts, drawn, strict=True))


def test_more_records_of_an_honest_table_are_no_leak_and_copied_ones_are() -> None:
    rows, leaky_rows = [], []
    for seed in range(4):
        gt, sd = patchwork(300, 100 + seed), patchwork(2700, 200 + seed)
        rows.append(figures(dp.prediction_risk(gt, sd, ["age", "size"], "job")))
        copied = pd.concat([gt.iloc[:150], sd.iloc[:150]])
        leaky_rows.append(figures(dp.prediction_risk(gt, copied, ["age", "size"], "job")))
    honest, leaky = pd.DataFrame(rows), pd.DataFrame(leaky_rows)
    assert (honest["accuracy_SD"] - honest["accuracy_GT"] > 8).all()  # nine times as many records
    assert abs(honest["gain_over_GT"].mean()) < 3
    assert leaky["gain_over_GT"].mean() > honest["gain_over_GT"].mean() + 3
    for table in (honest, leaky):
        assert (table["gain_over_GT_low"] < table["gain_over_GT"]).all()
        assert (table["gain_over_GT"] < table["gain_over_GT_high"]).all()


def patchwork(n: int, seed: int) -> pd.DataFrame:
    """Two keys in patches of one target level each, so that more records to learn from tell more."""
    rng = np.random.default_rng(seed)
    age, size = rng.integers(18, 80, n), rng.integers(0, 60, n)
    level = np.where(rng.random(n) < 0.2, rng.integers(0, 3, n), (age // 12 + size // 12) % 3)
    return pd.DataFrame({"age": age, "size": size, "job": np.array(["no", "yes", "maybe"])[level]})


# Kinds of columns


def test_numbers_are_predicted_as_numbers_unless_they_are_levels() -> None:
    gt, sd = people(150, 9), people(150, 10)
    for table in (gt, sd):
        table["pay"] = table["pay"].round().astype(int)
    assert task(dp.prediction_risk(gt, sd, KEYS, "pay")) == "regression"
    # As levels hardly one is hit exactly, and the target looks safe.
    levels = dp.prediction_risk(gt, sd, KEYS, "pay", task="classification")
    assert figures(levels)["accuracy_SD"] < 5
    assert figures(dp.prediction_risk(gt, sd, KEYS, "pay", epsilon=20))["RAPID"] > 75
    grouped = dp.prediction_risk(gt, sd, KEYS, "pay", groups={"pay": 4})
    assert task(grouped) == "classification"
    assert figures(grouped)["accuracy_SD"] > 40
    category = dp.prediction_risk(gt.astype({"pay": "category"}), sd, KEYS, "pay")
    assert task(category) == "classification"
    arrow = gt.assign(pay=gt["pay"].astype(str).astype("category").astype("category"))
    texts = sd.assign(pay=sd["pay"].astype(str))
    assert task(dp.prediction_risk(arrow, texts, KEYS, "pay")) == "classification"
    gt, sd = (table.assign(old=table["age"] > 50) for table in (gt, sd))
    assert task(dp.prediction_risk(gt, sd, KEYS, "old")) == "classification"


@pytest.mark.parametrize("unit", ["D", "s", "ns"])
def test_dates_lie_on_a_line(unit: str) -> None:
    days = np.arange(0, 3000, 10)
    born = np.datetime64("1970-01-01") + days.astype("timedelta64[D]")
    gt = pd.DataFrame({"born": pd.to_datetime(born), "t": np.where(days < 1500, "old", "young")})
    sd = gt.assign(born=gt["born"] + pd.Timedelta(days=3))
    if unit != "D":
        gt["born"] = gt["born"].astype(f"datetime64[{unit}]")
    gt.loc[3, "born"] = pd.NaT
    row = figures(dp.prediction_risk(gt, sd, ["born"], "t"))
    assert row["accuracy_SD"] > 98
    with pytest.raises(dp.InputError, match="holds dates"):
        dp.prediction_risk(sd, gt, ["t"], "born")
    assert task(dp.prediction_risk(sd, gt, ["t"], "born", task="classification")) == "classification"
    as_objects = gt.assign(born=gt["born"].astype("datetime64[s]").dt.date)
    assert figures(dp.prediction_risk(as_objects, sd, ["born"], "t"))["accuracy_SD"] > 98


def test_keys_of_one_value_of_several_types_are_the_same() -> None:
    gt, sd = people(80, 11), people(80, 12)
    plain = dp.prediction_risk(gt, sd, ["age", "region"], "job").figures
    typed = gt.astype({"age": "Int64", "region": "string"})
    other = sd.astype({"age": "float64", "region": "category"})
    pd.testing.assert_frame_equal(dp.prediction_risk(typed, other, ["age", "region"], "job").figures, plain)


@pytest.mark.parametrize("learner", [None, "boosted_trees"])
def test_levels_of_one_table_only_and_missing_keys_are_no_obstacle(learner: str | None) -> None:
    gt = pd.DataFrame(
        {
            "a": ["x", "only in GT", None, "x", "y", "y"],
            "b": [1.0, np.nan, 3.0, np.inf, 2.0, 1.0],
            "empty": [None] * 6,
            "one": [7] * 6,
            "t": ["s", "only in GT", "s", "u", None, "u"],
            "n": [1, 2, None, 4, 5, 6],
        }
    )
    sd = pd.DataFrame(
        {
            "a": ["only in SD", "x", None, "y"],
            "b": [np.nan, 9e9, 1.0, -1.0],
            "empty": [np.nan] * 4,
            "one": [7, 8, 7, 7],
            "t": ["s", "only in SD", "s", "u"],
            "n": [0.5, 1e12, 3, np.nan],
        }
    )
    keys = ["a", "b", "empty", "one"]
    special = {"b": [math.inf]}
    levels = dp.prediction_risk(gt, sd, keys, "t", learner, special_values=special)
    assert np.isfinite(levels.figures.to_numpy()).all()
    assert outcomes(levels).loc[1, "confidence_SD"] == 0
    numbers = dp.prediction_risk(gt, sd, keys, "n", learner, special_values=special)
    assert np.isfinite(numbers.figures.to_numpy()).all()
    assert numbers.fits[["N_scored", "N_fitted"]].to_numpy().tolist() == [[5, 3]]
    assert outcomes(numbers).isna().all(axis=1).tolist() == [False, False, True, False, False, False]


def test_a_table_with_one_level_is_predicted_without_a_learner() -> None:
    gt = pd.DataFrame({"k": list("aabb"), "t": ["x", "y", "x", "y"]})
    sd = gt.assign(t="x")
    row = figures(dp.prediction_risk(gt, sd, ["k"], "t", "boosted_trees"))
    assert row["accuracy_SD"] == row["accuracy_naive"] == 50
    assert row["RAPID"] == 50  # certain of a level that half of them have
    same = dp.prediction_risk(sd, gt, ["k"], "t")
    assert math.isnan(figures(same)["RAPID"])
    assert outcomes(same)["at_risk"].isna().all()


def test_names_of_columns_may_be_anything() -> None:
    gt = pd.DataFrame({("a", 1): list("aabb"), 2: ["x", "y", "x", "y"], "at_risk": [1, 2, 3, 4]})
    gt.columns = pd.Index([("a", 1), 2, "at_risk"], tupleize_cols=False)
    assert dp.prediction_risk(gt, gt, [("a", 1), "at_risk"], 2).targets == (2,)
    amounts = gt.assign(pay=[1.0, 2.0, 4.0, 8.0]).set_axis([2, 3, 4, ("pay", 1)], axis=1)
    risk = dp.prediction_risk(amounts, amounts, [2, 3], [("pay", 1), 4])
    assert risk.figures.index.names == ["target", "synthesis"]
    assert risk.figures.index.to_list() == [(("pay", 1), 1), (4, 1)]
    assert risk.plot(("pay", 1)).to_dict()


# Several syntheses, order, determinism


def test_a_row_for_each_synthesis_is_that_of_the_synthesis_alone() -> None:
    from sklearn.ensemble import RandomForestClassifier

    gt = people(120, 13)
    syntheses = [people(100, 14), people(150, 15).assign(region="east"), gt]
    forest = RandomForestClassifier(n_estimators=5)
    learned: list[tuple[str, Any]] = [("job", None), ("pay", None)]
    if CI:
        learned += [("job", "boosted_trees"), ("job", forest)]
    for target, learner in learned:
        together = dp.prediction_risk(gt, syntheses, KEYS, target, learner)
        assert list(together.figures.index) == [(target, 1), (target, 2), (target, 3)]
        assert together.figures.index.names == ["target", "synthesis"]
        assert together.N_s == (100, 150, 120)
        for i, synthesis in enumerate(syntheses, start=1):
            alone = dp.prediction_risk(gt, synthesis, KEYS, target, learner)
            assert figures(together, i) == figures(alone)
            pd.testing.assert_frame_equal(outcomes(together, i), outcomes(alone))


def test_outcomes_are_in_the_order_of_the_ground_truth_and_hold_no_value_of_it() -> None:
    gt, sd = people(90, 16), people(90, 17)
    gt.index = pd.Index([f"row {i % 45}" for i in range(90)], name="person")
    for target in ("job", "pay"):
        records = outcomes(dp.prediction_risk(gt, sd, KEYS, target))
        assert records.index.equals(gt.index)
        assert not set(records.columns) & set(gt.columns)
        assert all(pd.api.types.is_numeric_dtype(dtype) for dtype in records.dtypes)


@on_some_days
@pytest.mark.parametrize("learner", [None, "boosted_trees", "forest"])
def test_the_same_seed_gives_the_same_figures(learner: Any) -> None:
    from sklearn.ensemble import RandomForestClassifier

    learner = RandomForestClassifier(n_estimators=5) if learner == "forest" else learner
    gt, sd = people(120, 18), people(120, 19)
    first = dp.prediction_risk(gt, sd, KEYS, "job", learner, seed=7)
    again = dp.prediction_risk(gt, sd, KEYS, "job", learner, seed=7)
    pd.testing.assert_frame_equal(outcomes(first), outcomes(again), check_exact=True)
    other = dp.prediction_risk(gt, sd, KEYS, "job", learner, seed=8)
    assert not outcomes(first).equals(outcomes(other))


def test_the_learner_and_the_tables_given_stay_as_they_are() -> None:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    gt, sd = people(60, 20), people(60, 21)
    before = (gt.copy(), sd.copy())
    forest = make_pipeline(StandardScaler(), RandomForestClassifier(n_estimators=3))
    result = dp.prediction_risk(gt, sd, KEYS, "job", forest)
    assert result.learner == "Pipeline"
    assert forest.get_params()["randomforestclassifier__random_state"] is None
    assert not hasattr(forest[-1], "classes_")
    pd.testing.assert_frame_equal(gt, before[0])
    pd.testing.assert_frame_equal(sd, before[1])
    pd.testing.assert_frame_equal(outcomes(result), outcomes(dp.prediction_risk(gt, sd, KEYS, "job", forest)))


def test_a_learner_without_confidences_has_no_rapid() -> None:
    from sklearn.svm import LinearSVC

    gt, sd = people(100, 22), people(100, 23)
    result = dp.prediction_risk(gt, sd, KEYS, "job", LinearSVC())
    row = figures(result)
    assert row["accuracy_SD"] > 0
    assert math.isnan(row["RAPID"])
    assert math.isnan(row["RAPID_GT"])
    assert outcomes(result)["at_risk"].isna().all()


def test_it_prints_itself() -> None:
    gt, sd = people(50, 26), people(50, 27)
    text = str(dp.prediction_risk(gt, sd, KEYS, "job"))
    assert text.startswith(
        "Prediction risk from the keys height, age, region\nLearner nearest_neighbours, 50 "
    )
    assert "accuracy_SD" in text
    pay = dp.prediction_risk(gt, sd, KEYS, "pay")
    assert repr(pay) == str(pay)


# Refusals


def wrong(**changes: Any) -> dict[str, Any]:
    gt = pd.DataFrame({"k": list("aabbc"), "t": list("xyxyx"), "n": [1, 2, 3, 4, SECRET]})
    return {"ground_truth": gt, "synthetic": gt, "keys": ["k"], "targets": "t"} | changes


GT = wrong()["ground_truth"]
OUT_OF_RANGE: dict[str, Sequence[Any]] = {
    "folds": (1, True, 2.0),
    "seed": (-1, 2**32),
    "tau": (1, math.nan, "0.3"),
    "epsilon": (0, math.inf, math.nan),
    "absolute_epsilon": (0, math.nan),
}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (wrong(targets=[None]), "Column None is not in the ground truth"),
        (wrong(ground_truth=GT.iloc[:1]), "single record"),
        (wrong(synthetic=GT.assign(t=1)), "They share no level"),
        (wrong(synthetic=GT.assign(t=None), ground_truth=GT.assign(t=None)), "only missing values"),
        (wrong(task="clustering"), "task must be"),
        (wrong(task=GT), "task must be .* not DataFrame"),
        (wrong(seed=GT["n"]), "seed must be .* not Series"),
        (wrong(learner=GT), "not DataFrame"),
        (wrong(task="regression"), "needs numbers, and the target 't' holds text"),
        (wrong(targets="n", task="regression", groups={"n": 2}), "'n' is grouped"),
        *(
            (wrong(**{option: value}), f"{option} must be")
            for option, values in OUT_OF_RANGE.items()
            for value in values
        ),
        (wrong(learner="forest"), "'nearest_neighbours', 'boosted_trees' or a scikit-learn estimator"),
        (wrong(learner=3), "learner must be a scikit-learn estimator"),
        (wrong(targets="n", synthetic=GT.assign(n=math.nan)), "has 0 numbers in the synthetic table"),
        (
            wrong(targets="n", ground_truth=GT.assign(n=[1, None, None, None, None])),
            "has 1 number in the ground truth",
        ),
        (wrong(targets="n", special_values={"n": [1, 2, 3, 4, SECRET]}), "has 0 numbers in the ground truth"),
        *(
            (wrong(**role, synthetic=GT.assign(n=[number] * 5)), "infinite values")
            for role in ({"targets": "n"}, {"keys": ["n"]})
            for number in (math.inf, -math.inf, 1e200, Decimal("1e400"))
        ),
    ],
)
def test_refuses_arguments_that_cannot_be_measured(arguments: dict[str, Any], message: str) -> None:
    assert re.search(message, str(refusal(lambda: dp.prediction_risk(**arguments), str(SECRET))))


@pytest.mark.parametrize(
    ("learner", "target", "message"),
    [
        ("the class alone", "t", "learner must be a scikit-learn estimator"),
        ("regression", "t", "does not fit the target, which needs classification"),
        ("classification", "n", "does not fit the target, which needs regression"),
    ],
)
def test_a_learner_of_another_task_is_refused(learner: str, target: str, message: str) -> None:
    from sklearn.linear_model import LinearRegression
    from sklearn.neighbors import KNeighborsClassifier

    learners = {
        "the class alone": KNeighborsClassifier,
        "regression": LinearRegression(),
        "classification": KNeighborsClassifier(),
    }
    arguments = wrong(targets=target, learner=learners[learner])
    assert message in str(refusal(lambda: dp.prediction_risk(**arguments), str(SECRET)))


def estimator(fit: Callable[[Any], object] = len, **methods: Callable[[Any], Any]) -> Any:
    """Return a learner of scikit-learn's that has these methods."""
    from sklearn.base import BaseEstimator

    def learn(learner: Any, X: Any, y: Any) -> Any:
        fit([X, y])
        return learner

    own = {name: lambda _, X, method=method: method(X) for name, method in methods.items()}
    return type("Estimator", (BaseEstimator,), {"fit": learn, **own})()


def zeros(X: Any) -> Any:
    return np.zeros(len(X))


def fail(given: Any) -> Any:
    raise ValueError(f"cannot digest {SECRET} {given!r}")


def warn(_: Any) -> None:
    warnings.warn(f"do not like {SECRET}", stacklevel=1)


BAD_LEARNERS: dict[str, dict[str, Any]] = {
    "fit": {"predict": zeros, "fit": fail},
    "predict": {"predict": fail},
    "NaN": {"predict": lambda X: np.full(len(X), np.nan)},
    "short": {"predict": lambda _: np.zeros(1)},
    "text": {"predict": lambda X: np.array([str(SECRET)] * len(X))},
}


@pytest.mark.parametrize("way", BAD_LEARNERS)
@pytest.mark.parametrize("target", ["t", "n"])
def test_the_error_of_a_learner_tells_no_value(way: str, target: str) -> None:
    arguments = wrong(targets=target, learner=estimator(**BAD_LEARNERS[way]))
    assert "learner Estimator" in str(refusal(lambda: dp.prediction_risk(**arguments), str(SECRET)))


def test_confidences_that_are_none_are_refused() -> None:
    unsure = estimator(predict=zeros, predict_proba=lambda X: np.full((len(X), 2), math.nan))
    with pytest.raises(dp.InputError, match="one finite confidence per level"):
        dp.prediction_risk(**wrong(learner=unsure))


def test_a_warning_of_a_learner_does_not_get_out() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dp.prediction_risk(**wrong(targets="n", learner=estimator(warn, predict=zeros)))
    assert not caught


def test_without_scikit_learn_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(dp.DisclosurePipelineError, match=r"disclosure-pipeline\[prediction\]") as failure:
        dp.prediction_risk(**wrong())
    assert failure.value.__context__ is None
