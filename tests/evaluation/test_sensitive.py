"""Sensitive levels: against the reference, by every engine, and where figures of all people hide a leak."""

import math
import warnings
from itertools import cycle, islice
from operator import mul
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from reference import baselines, sensitive
from reference.cap import Record
from support import gates
from support.sampling import examples, on_some_days
from support.small_tables import KEYS, frame, tables

import disclosure_pipeline as dp
from disclosure_pipeline.candidates.measuring import measure_without_controls
from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.measures.sensitive_levels import LevelClaims, compare_claims
from disclosure_pipeline.policy.verdict import Judgement, judge

pytestmark = pytest.mark.usefixtures("no_guards")

CAUSES = ["cancer", "heart", "other"]


def measured(gt: pd.DataFrame, sd: Any, **options: Any) -> dict[str, float]:
    """Return the figures of the people with the level a."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = dp.disclosure(gt, sd, KEYS, "t", sensitive_levels={"t": ["a"]}, **options)
    [row] = result.sensitive.to_dict("records")
    return {str(name): float(figure) for name, figure in row.items()}


@examples(24)
@given(tables(), tables(most=20), st.none() | st.lists(st.integers(0, 3), min_size=14, max_size=14))
def test_the_figures_are_those_of_the_reference(
    gt: list[Record], sd: list[Record], units: list[int] | None
) -> None:
    """Other people are those of other units."""
    gt = [*gt, (("1", "1"), "a"), (("1", "1"), "b")]
    units = units and units[: len(gt)]
    row = (
        measured(frame(gt).assign(unit=units), frame(sd), unit="unit")
        if units
        else measured(frame(gt), frame(sd))
    )
    with_level = [t == "a" for _, t in gt]
    people = sum(with_level)
    assert row["records"] == people
    of_level = baselines.figures(gt, sd, kept_gt=with_level, units=units)
    for name in ("DiSCO_at_n", "DiSCO_others", "DiSCO_beyond", "DiSCO_beyond_se"):
        assert row[name] == pytest.approx(len(gt) / people * of_level[name], abs=1e-5), name
    by_SD, by_others = sensitive.claims(gt, sd, "a", units)
    assert row["told"] == pytest.approx(float(100 * sum(by_SD) / len(gt)), abs=1e-6)
    right, right_others = (
        float(100 * sum(map(mul, chances, with_level)) / sum(chances)) if sum(chances) else 0
        for chances in (by_SD, by_others)
    )
    assert row["right"] == pytest.approx(right, abs=1e-4)
    assert row["right_others"] == pytest.approx(max(100 * people / len(gt), right_others), abs=1e-4)


@examples(12)
@given(tables(most=20), st.integers(0, 1))
def test_who_has_a_level_is_guessed_from_the_keys_alone(gt: list[Record], fewer: int) -> None:
    """The most frequent level of all is no guess, also where it is the sensitive one."""
    gt = [*gt, (("1", "1"), "a"), (("2", "1"), "a")]
    sd = list(islice(cycle(gt[::-1][: max(1, len(gt) // 2)]), len(gt) - fewer))
    row = measured(frame(gt), frame(sd))
    by_SD, by_others = sensitive.told_by_guess(gt, sd, "a")
    people = sum(t == "a" for _, t in gt)
    assert row["guessed"] == pytest.approx(float(100 * by_SD / people))
    assert row["guessed_others"] == pytest.approx(float(100 * by_others / people))


@examples(12)
@given(tables(most=30), tables(most=30))
def test_equal_weights_change_nothing(gt: list[Record], sd: list[Record]) -> None:
    table = frame([*gt, (("1", "1"), "a"), (("1", "1"), "b")])
    plain = measured(table, frame(sd))
    weighed = measured(table.assign(w=2.0), frame(sd), weights="w")
    for name in ("Dorig", "DiSCO", "DiSCO_others", "DiSCO_beyond", "guessed", "guessed_beyond"):
        assert weighed[f"{name}_weighted"] == pytest.approx(plain[name]), name


@on_some_days
@pytest.mark.parametrize("engine", ["partitioned", "duckdb://"])
def test_every_engine_gives_the_same(engine: str) -> None:
    gt, sd = died(1), died(2)
    options: dict[str, Any] = {"sensitive_levels": {"cause": ["cancer", "none"]}}
    arguments = (gt, [sd, gt], ["age", "sex", "region"], "cause")
    expected = dp.disclosure(*arguments, **options)
    result = dp.disclosure(*arguments, **options, engine=engine)
    assert expected.stacked is not None and result.stacked is not None
    assert len(expected.sensitive) == 4
    pd.testing.assert_frame_equal(result.sensitive, expected.sensitive, check_exact=True)
    pd.testing.assert_frame_equal(result.stacked.sensitive, expected.stacked.sensitive, check_exact=True)


def died(seed: int, records: int = 4000) -> pd.DataFrame:
    """People of whom 72 % live, and the others died of one of three causes."""
    rng = np.random.default_rng(seed)
    causes = rng.choice(CAUSES, records)
    return pd.DataFrame(
        {
            "age": rng.integers(0, 80, records),
            "sex": rng.choice(["f", "m"], records),
            "region": rng.integers(0, 16, records),
            "income": rng.integers(0, 500, records),
            "cause": np.where(rng.random(records) < 0.72, "none", causes),
        }
    )


COLUMNS: dict[str, Any] = {
    "age": {"type": "integer"},
    "sex": {"type": "category"},
    "region": {"type": "integer"},
    "income": {"type": "integer"},
    "cause": {"type": "category", "sensitive": CAUSES},
}
SENSITIVE: dict[str, Any] = {
    "columns": COLUMNS,
    "keys": ["age", "sex", "region"],
    "targets": ["cause"],
    "policy": {"unique_hits": {"beyond": 99}, "DiSCO": {"beyond": 3}},
}


def judged(*tables: pd.DataFrame, **changes: Any) -> dict[str, Judgement]:
    """Return the judgements on sensitive levels, and of all people."""
    gate = gates.gate(**SENSITIVE | changes)
    result = gates.measured(gate, died(1), list(tables))
    return {judgement.clause.name: judgement for judgement in judge(gate.clauses(), result)}


@pytest.fixture(scope="module")
def leak() -> pd.DataFrame:
    """A fresh table with 30 % of those who died."""
    gt, sd = died(1), died(2)
    dead = gt[gt["cause"] != "none"]
    copied = dead.sample(frac=0.3, random_state=1)
    return pd.concat([copied, sd.iloc[len(copied) :]], ignore_index=True)


@on_some_days
def test_a_level_is_refused_where_guesses_of_everybody_show_nothing(leak: pd.DataFrame) -> None:
    honest, leaking = judged(died(2)), judged(leak)
    assert leaking["guessed[cause] beyond"].value == 0
    for figure in ("told", "right", "told_by_guess"):
        of_causes = [f"{figure}[cause: {cause}] beyond" for cause in CAUSES]
        assert {honest[name].outcome for name in of_causes} == {"kept"}, figure
        if figure != "right":
            assert "exceeded" in {leaking[name].outcome for name in of_causes}, figure
    row = leaking["told_by_guess[cause: cancer] beyond"].row
    assert row is not None and row.beyond_chance > 10 > row.others


def test_clauses_take_the_bounds_of_their_target() -> None:
    policy = {"unique_hits": {"beyond": 9}, "DiSCO": {"at_most": 40, "beyond": 3}, "guessed": {"beyond": 4}}
    gate = gates.gate(**SENSITIVE | {"policy": policy})
    bounds = {
        (clause.figure, clause.statistic): clause.bound
        for clause in gate.clauses()
        if clause.about == ("cause: heart",)
    }
    assert bounds == {
        ("told", "at_most"): 40,
        ("told", "beyond"): 3,
        ("right", "beyond"): 3,
        ("told_by_guess", "beyond"): 4,
    }


def test_a_level_of_few_people_is_not_determined() -> None:
    table = died(2)
    columns = COLUMNS | {"cause": {"type": "category", "sensitive": ["plague"]}}
    gate = gates.gate(**SENSITIVE | {"columns": columns})
    [clause] = [clause for clause in gate.clauses() if clause.figure == "told"]
    gt = died(1)
    for people in (0, 9, 10):
        gt.loc[: people - 1, "cause"] = "plague"
        result = measure_without_controls(gate, FramesInMemory((gt, table), "memory"))
        [told] = judge([clause], result)
        assert told.outcome == ("kept" if people == 10 else "undetermined")
        if people < 10:
            assert 'fewer people have "cause: plague"' in told.note
            assert result.sensitive.isna().all(axis=None)


def test_a_table_that_tells_nobody_is_right_about_nobody() -> None:
    right = compare_claims(LevelClaims(0, 0, 0), LevelClaims(5, 1, 5), 10, 100)
    assert (right.told, right.right, right.right_beyond, right.bounded) == (0, 0, 0, 0)
    assert right.right_others == 20


@pytest.mark.parametrize(("told", "is_chance"), [(1, True), (3, True), (20, False)])
def test_few_right_claims_are_chance(told: int, is_chance: bool) -> None:
    right = compare_claims(LevelClaims(told, told, told), LevelClaims(0, 0, 0), 100, 1000)
    assert right.right_beyond == 90
    assert math.isclose(right.bounded, 0 if is_chance else 90)


def declare(column: str = "cause", **changes: Any) -> dict[str, Any]:
    return {"columns": COLUMNS | {column: {"type": "category"} | changes}}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (declare(levels=["none", "heart"], sensitive=["hart"]), "'hart', which is not a level. Did you mean"),
        (declare(sensitive=["heart", "heart"]), "more than once"),
        (declare(sensitive=[True]), "write it in quotes"),
        (declare(type="boolean", sensitive=["true"]), "true and false, without quotes"),
        (declare(type="integer", sensitive=["3"]), "are for a category or boolean"),
        (declare(sensitive="heart"), "tuple"),
        (declare("sex", sensitive=["f"]), "sex has sensitive levels"),
        ({"exclusions": {"target_levels": {"cause": ["heart"]}}}, "both name heart"),
    ],
)
def test_a_gate_refuses_levels_that_a_target_cannot_have(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        gates.gate(**SENSITIVE | changes)


@pytest.mark.parametrize(
    ("levels", "problem"),
    [
        ({"sex": ["f"]}, "which is not a target"),
        ({"cause": "heart"}, "list of at least one level"),
        ({"cause": []}, "list of at least one level"),
        ({"cause": ["heart", "heart"]}, "more than once"),
        ({"cause": ["hart"]}, "occurs in no table"),
        ({"cause": ["other"]}, "both name 'other'"),
        (["heart"], "mapping"),
    ],
)
def test_the_library_refuses_levels_that_do_not_exist_or_are_excluded(levels: Any, problem: str) -> None:
    options: dict[str, Any] = {"exclude": dp.Exclusions(target_levels={"cause": ["other"]})}
    with pytest.raises(dp.InputError, match=problem):
        dp.disclosure(died(1, 50), died(2, 50), ["age", "sex"], "cause", sensitive_levels=levels, **options)
