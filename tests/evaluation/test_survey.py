"""A survey with weights: risk in the population, and shares of its people, on every engine."""

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import baselines
from reference import survey as reference
from reference.cap import Record
from support.figures import assert_same, assert_same_frame
from support.sampling import examples
from support.small_tables import KEYS, frame, tables

import disclosure_pipeline as dp
from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.evaluation.frame_columns import COLUMNS
from disclosure_pipeline.evaluation.result import FRAMES, Disclosure

pytestmark = pytest.mark.usefixtures("no_guards")

# From a half to 20 people, in quarters; the first is large enough that no mean is below 1.
WEIGHTS = st.lists(st.integers(2, 80), min_size=12, max_size=12)


def weigh(gt: list[Record], quarters: list[int]) -> list[float]:
    return [40.0, *(number / 4 for number in quarters)][: len(gt)]


def survey(records: int = 1500, seed: int = 5) -> tuple[pd.DataFrame, pd.DataFrame]:
    """People of two strata, of which one was sampled ten times as often, and a copy of most of them."""
    rng = np.random.default_rng(seed)
    gt = pd.DataFrame(
        {
            "region": rng.integers(0, 9, records),
            "age": rng.integers(18, 60, records),
            "sex": rng.choice(["f", "m"], records),
            "income": rng.integers(0, 6, records),
            "weight": np.where(rng.random(records) < 0.5, 5.5, 55) * rng.integers(1, 3, records),
        }
    )
    sd = gt.drop(columns="weight").sample(records - 100, replace=True, random_state=seed)
    return gt, sd.reset_index(drop=True)


def to_row(result: Disclosure, target: str = "t", synthesis: int = 1) -> dict[str, float]:
    [of_keys] = result.population.loc[[synthesis]].to_dict("records")
    [of_target] = result.population_targets.loc[[(target, synthesis)]].to_dict("records")
    return {str(name): figure for name, figure in (of_keys | of_target).items()}


@examples(25)
@given(tables(), tables(), WEIGHTS)
def test_the_frames_hold_the_figures_of_the_reference(
    gt: list[Record], sd: list[Record], quarters: list[int]
) -> None:
    weights = weigh(gt, quarters)
    actual = dp.disclosure(frame(gt).assign(w=weights), frame(sd), KEYS, "t", weights="w")
    row = to_row(actual)
    expected = reference.figures(gt, weights, sd) | reference.weighted(gt, list(map(Fraction, weights)), sd)
    for name, figure in expected.items():
        assert row[name] == pytest.approx(figure, rel=1e-6, abs=2e-6), name
    added = {name for name in row if name.endswith(("_se", "_beyond_weighted_chance"))}
    assert set(row) - set(expected) == added - set(expected)
    assert actual.individual["individual_risk"].tolist() == pytest.approx(reference.risk(gt, weights))
    for name in ("population", "population_targets", "individual"):
        described = {column for column in COLUMNS[name] if not column.startswith("people_copied")}
        assert set(getattr(actual, name)) == described  # copies are a gate's to measure


@examples(15)
@given(tables(), tables(), WEIGHTS, st.lists(st.integers(0, 4), min_size=12, max_size=12))
def test_exclusions_and_units(
    gt: list[Record], sd: list[Record], quarters: list[int], units: list[int]
) -> None:
    """An excluded record adds nothing; other people are those of other units."""
    weights, units = weigh(gt, quarters), units[: len(gt)]
    exclude = dp.Exclusions(target_levels={"t": ["a"]}) if any(t == "a" for _, t in [*gt, *sd]) else None
    kept = [exclude is None or t != "a" for _, t in gt]
    table = frame(gt).assign(w=weights, person=units)
    actual = dp.disclosure(table, frame(sd), KEYS, "t", weights="w", unit="person", exclude=exclude)
    kept_sd = [exclude is None or t != "a" for _, t in sd]
    # Weights in whole numbers, of which a share takes the quotient.
    added = baselines.figures(gt, sd, (None,), kept, kept_sd, units, [int(4 * weight) for weight in weights])
    names = [f"{name}_{ending}" for name in ("DiSCO", "iS", "DCAP") for ending in ("others", "beyond")]
    expected = reference.figures(gt, weights, sd, kept) | {f"{name}_weighted": added[name] for name in names}
    row = to_row(actual)
    assert {name: row[name] for name in expected} == pytest.approx(expected, rel=1e-6, abs=2e-6)


@examples(15)
@given(tables(), tables())
def test_a_sampling_fraction_is_one_weight_of_all(gt: list[Record], sd: list[Record]) -> None:
    weighted = to_row(dp.disclosure(frame(gt).assign(w=7), frame(sd), KEYS, "t", weights="w"))
    by_fraction = to_row(dp.disclosure(frame(gt), frame(sd), KEYS, "t", sampling_fraction=1 / 7))
    expected = {name: figure for name, figure in weighted.items() if "weighted" not in name}
    assert by_fraction == pytest.approx(expected, abs=1e-9)


def test_weights_of_many_people_add_up_to_all_of_them() -> None:
    """The integers that guesses are weighted by are rounded: the shares are of what they add up to."""
    gt = pd.DataFrame({"key": np.arange(300_000) % 1000, "t": np.arange(300_000) % 1000})
    result = dp.disclosure(gt.assign(w=1.5), gt, ["key"], "t", weights="w", within={"t": 0})
    row = to_row(result)
    assert row["guessed_others_weighted"] == pytest.approx(100, abs=1e-9)
    assert result.bands["guessed_within_weighted"].item() == pytest.approx(100, abs=1e-9)


def test_a_census_has_the_risk_of_its_records() -> None:
    gt, sd = survey()
    result = dp.disclosure(gt, sd, ["region", "age"], "income", sampling_fraction=1)
    assert result.population["repU_population"].item() == pytest.approx(result.identity["repU"].item())
    assert result.population["DIS"].item() == 100
    assert result.individual["individual_risk"].max() == 1


def test_weights_in_both_tables_are_no_target() -> None:
    """A gate may publish them: they are then in SD, too."""
    gt, sd = survey()
    both = sd.assign(weight=10.0)
    for engine in ("memory", "partitioned"):
        result = dp.disclosure(gt, both, ["region"], "income", weights="weight", engine=engine)
        assert result.population["people"].item() == pytest.approx(gt["weight"].sum())


@pytest.mark.parametrize("engine", ["memory", "partitioned"])
def test_weights_of_text_files_are_numbers(engine: str, tmp_path: Path) -> None:
    """They are in no synthesis, and a unit is in the holdout alone besides."""
    gt, sd = (table.head(300) for table in survey())
    gt = gt.assign(person=np.arange(300) // 2)
    others = gt.assign(person=gt["person"] + 1000, age=gt["age"].to_numpy()[::-1])
    files = {"gt": gt, "sd": sd, "others": others}
    for name, table in files.items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)

    def ask(tables: list[Any], **options: Any) -> Disclosure:
        told = {"unit": "person", "weights": "weight", "holdout": tables[2]}
        return dp.disclosure(tables[0], tables[1], ["region"], "income", **told, **options)

    paths = [tmp_path / f"{name}.csv" for name in files]
    assert_same(ask(paths, engine=engine), expected := ask([*files.values()]))
    assert not expected.population_targets.empty


def test_weights_are_refused_before_records_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FramesInMemory, "find_cells", lambda *_: pytest.fail("counted"))
    gt, sd = survey()
    with pytest.raises(InputError, match="0 or below"):
        dp.disclosure(gt.assign(weight=0), sd, ["region"], "income", weights="weight")
    with pytest.raises(InputError, match="missing values"):
        dp.disclosure(gt.assign(person=None), sd, ["region"], "income", unit="person")


BAD: dict[str, tuple[Callable[[pd.DataFrame], pd.DataFrame], str]] = {
    "missing": (lambda gt: gt.assign(weight=gt["weight"].where(gt.index != 3)), "lacks a value"),
    "nothing": (lambda gt: gt.assign(weight=np.nan), "lacks a value"),
    "negative": (lambda gt: gt.assign(weight=gt["weight"].where(gt.index != 3, -4321)), "0 or below"),
    "zero": (lambda gt: gt.assign(weight=gt["weight"].where(gt.index != 3, 0)), "0 or below"),
    "infinite": (lambda gt: gt.assign(weight=gt["weight"].where(gt.index != 3, np.inf)), "infinite"),
    "below 1": (lambda gt: gt.assign(weight=0.4321), "below 1 on average"),
    "text": (lambda gt: gt.assign(weight="4321"), "holds text"),
}


@pytest.mark.parametrize("engine", ["memory", "partitioned", "duckdb://"])
@pytest.mark.parametrize("name", BAD)
def test_weights_that_cannot_be_used_are_refused(name: str, engine: str, tmp_path: Path) -> None:
    change, problem = BAD[name]
    gt, sd = survey(200)
    gt = change(gt)
    if name == "text" and engine == "partitioned":
        gt["weight"] = "w4321"  # a file says nothing of types
    tables: list[Any] = [gt, sd]
    if engine != "memory":
        tables = [tmp_path / f"{number}.parquet" for number in range(2)]
        for table, path in zip((gt, sd), tables, strict=True):
            table.to_parquet(path)
    with pytest.raises(dp.InputError, match=problem) as refused:
        dp.disclosure(tables[0], tables[1], ["region"], "income", weights="weight", engine=engine)
    assert "4321" not in str(refused.value)
    if engine == "memory":
        with pytest.raises(dp.InputError, match=problem):
            dp.subgroups(gt, sd, ["region"], "income", by="sex", weights="weight")


def test_refuses_a_column_that_holds_no_weights() -> None:
    gt, sd = survey(200)
    wrong: Any
    for wrong, problem in (
        ({"weights": "wieght"}, "not a column of the ground truth"),
        ({"weights": gt["weight"]}, "Series are not a column of the ground truth"),
        *(({"weights": name}, "a key or target") for name in ("region", "income")),
        ({"weights": "weight", "unit": "weight"}, "a unit"),
        ({"weights": "weight", "sampling_fraction": 0.1}, "both given"),
        *(({"sampling_fraction": no_share}, "above 0") for no_share in (0, float("nan"), True, "0.1")),
        ({"sampling_fraction": 1.5}, "at most 1"),
    ):
        with pytest.raises(dp.InputError, match=problem):
            dp.disclosure(gt, sd, ["region"], "income", **wrong)


def test_the_risk_of_a_person_is_in_nothing_that_is_kept() -> None:
    gt, sd = survey(300)
    result = dp.disclosure(gt, sd, ["region", "age"], "income", weights="weight")
    assert "individual" not in FRAMES
    assert "individual" not in json.dumps(result.to_record())
    kept = Disclosure.from_record(json.loads(json.dumps(result.to_record())))
    assert kept.individual.empty
    for name in ("population", "population_targets"):
        pd.testing.assert_frame_equal(kept.frame(name), result.frame(name))
    shown = {name: f"{result.population[name].item():.2f} %" for name in ("DIS", "repU_population")}
    line = f"In the population: DIS {shown['DIS']}; repU {shown['repU_population']}, if the model holds"
    assert line in str(result)
    assert "In the population" not in str(
        kept.__class__.from_record(dp.disclosure(gt, sd, ["age"], "income").to_record())
    )


def test_weighted_shares_are_those_of_the_population() -> None:
    """Samples of two strata, of which one is sampled ten times as often: shares and errors are right."""
    rng = np.random.default_rng(11)
    size = 10_000
    people = pd.DataFrame({"rich": rng.random(size) < 0.2, "region": rng.integers(0, 30, size)})
    people["income"] = np.where(people["rich"], rng.integers(3, 6, size), rng.integers(0, 4, size))
    # SD tells the income of every region alike: so much is known of everybody, whoever is sampled.
    sd = pd.DataFrame({"region": range(30), "income": [number % 6 for number in range(30)]})
    told = (people["income"] == people["region"] % 6).mean()
    fraction = np.where(people["rich"], 0.2, 0.02)
    off, naive = [], []
    for _ in range(40):
        drawn = rng.random(size) < fraction
        gt = people[drawn].drop(columns="rich").assign(weight=1 / fraction[drawn])
        row = to_row(dp.disclosure(gt, sd, ["region"], "income", weights="weight"), "income")
        off.append((row["DiSCO_weighted"] / 100 - told) / (row["DiSCO_weighted_se"] / 100))
        naive.append(row["iS_weighted"])
    assert abs(np.mean(off)) < 0.4
    assert 0.75 < np.std(off) < 1.25
    assert np.mean(np.abs(off) < 1.96) >= 0.86
    assert set(naive) == {100.0}


def test_groups_have_their_people() -> None:
    gt, sd = survey()
    groups = dp.subgroups(gt, sd, ["region", "age"], "income", by="sex", weights="weight")
    whole = dp.disclosure(gt, sd, ["region", "age"], "income", weights="weight")
    assert groups["people"].sum() == pytest.approx(gt["weight"].sum())
    share = groups["people"] / groups["people"].sum()
    for name in ("DiSCO", "DiSCO_others", "DiSCO_beyond"):
        of_all = whole.population_targets[f"{name}_weighted"].item()
        assert (groups[f"{name}_weighted"] * share).sum() == pytest.approx(of_all)
        assert (groups[f"{name}_weighted_se"] > 0).all()
    assert not [name for name in dp.subgroups(gt, sd, ["age"], "income", by="sex") if "weighted" in str(name)]


def test_groups_by_weights_of_text_files(tmp_path: Path) -> None:
    gt, sd = survey(300)
    for name, table in (("gt", gt), ("sd", sd)):
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    told: Any = {"by": "sex", "weights": "weight"}
    of_files = dp.subgroups(tmp_path / "gt.csv", tmp_path / "sd.csv", ["region"], "income", **told)
    assert_same_frame(of_files, dp.subgroups(gt, sd, ["region"], "income", **told))
