"""Every set of columns: against the reference, whatever way it is counted."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import baselines
from reference import exposure as reference
from reference.suda import minimal_sample_uniques, suda_score
from support import gates
from support.sampling import examples, some_of
from support.small_tables import sd2011

import disclosure_pipeline as dp
from disclosure_pipeline.analyses import exposure_counts, exposure_search, key_set_tree
from disclosure_pipeline.evaluation import subgroups
from disclosure_pipeline.evaluation.subgroups import INDEX, find_worst_target
from disclosure_pipeline.policy.gate import Gate

COLUMNS = ["a", "b", "c", "t"]
SOME = ("x", "y", "z", None)
TABLE = st.lists(
    st.sampled_from(list(itertools.product(SOME, SOME, ("x", "y"), SOME))), min_size=1, max_size=10
)
Rows = list[tuple[str | None, ...]]

# Every way of counting, on tables of any size.
PATHS: dict[str, dict[Any, dict[str, float]]] = {
    "as it is": {},
    "records dropped": {key_set_tree: {"_WORTH_DROPPING": 1.0, "_SMALL": 0}},
    "parts": {key_set_tree: {"_ENTRIES_AT_A_TIME": 2, "_RECORDS_AT_A_TIME": 3}},
    "parts, cells, records dropped": {
        exposure_counts: {"_ROOMY": 0, "_SMALL_TABLE": 0},
        key_set_tree: {
            "_ENTRIES_AT_A_TIME": 40,
            "_RECORDS_AT_A_TIME": 50,
            "_WORTH_DROPPING": 1.0,
            "_SMALL": 0,
        },
    },
    "cells": {exposure_counts: {"_ROOMY": 0, "_SMALL_TABLE": 0}},
    "cells, records dropped, codes numbered": {
        exposure_counts: {"_ROOMY": 0, "_SMALL_TABLE": 0},
        key_set_tree: {"_WORTH_DROPPING": 1.0, "_SMALL": 0, "_LARGEST": 2},
    },
}


@contextmanager
def by(path: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module, constants in PATHS[path].items():
            for name, value in constants.items():
                patch.setattr(module, name, value)
        yield


def frame(rows: Rows) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=COLUMNS, dtype=object)


def as_records(rows: Rows, keys: tuple[int, ...]) -> list[Any]:
    return [(tuple(row[k] for k in keys), row[3]) for row in rows]


@examples(20)
@given(TABLE, TABLE, st.sampled_from(list(PATHS)), st.integers(1, 2))
def test_the_figures_are_those_of_the_reference(gt: Rows, sd: Rows, path: str, support: int) -> None:
    with by(path):
        result = dp.exposure(frame(gt), [frame(sd), frame(gt)], COLUMNS[:3], "t", up_to=3, support=support)
    figures: Any = result.figures
    smallest_sets: Any = result.smallest_sets
    assert len(figures) == 2 * 7
    for synthesis, table in enumerate([sd, gt], start=1):
        for size in (1, 2, 3):
            for keys in itertools.combinations(range(3), size):
                row = figures.loc[", ".join(COLUMNS[k] for k in keys), "t", synthesis]
                people, others = as_records(gt, keys), as_records(table, keys)
                expected = baselines.figures(people, others)
                for name in ("DiSCO_others", "DiSCO_beyond"):
                    assert row[name] == pytest.approx(expected[name], abs=1e-9), name
                # Chances are rounded to 30 binary digits.
                for name in ("guessed_beyond", "guessed_beyond_se", "DiSCO_beyond_se"):
                    assert row[name] == pytest.approx(expected[name], abs=1e-6), name
                hits, by_others = baselines.unique_hits([q for q, _ in people], [q for q, _ in others])
                assert row["unique_hits_beyond"] == pytest.approx(hits - by_others)
                smallest = reference.smallest_support(gt, table, keys, 3)
                assert (None if pd.isna(row["smallest_support"]) else row["smallest_support"]) == smallest
        distribution = smallest_sets.loc["t", synthesis]
        by_SD, by_others_ = reference.distribution(gt, table, range(3), 3, 3, support)
        assert distribution["exposed"].tolist() == pytest.approx(by_SD)
        assert distribution["exposed_others"].tolist() == pytest.approx(by_others_)


@examples(6)
@given(TABLE, TABLE, st.sampled_from(list(PATHS)))
def test_risks_are_those_of_disclosure_and_a_target_can_be_a_key(gt: Rows, sd: Rows, path: str) -> None:
    tables = frame(gt), frame(sd)
    with by(path):
        result = dp.exposure(*tables, COLUMNS, ["t", "a"], up_to=2)
    results = {
        keys: dp.disclosure(*tables, list(keys), [t for t in ("t", "a") if t not in keys])
        for keys in set(result.key_sets)
    }
    for keys, figures in zip(result.key_sets, result.figures.reset_index().to_dict("records"), strict=True):
        assert figures["target"] not in keys
        one, place = results[keys], (figures["target"], 1)
        assert figures["DiSCO"] == one.attribute["DiSCO"].to_dict()[place]
        assert figures["repU"] == one.identity["repU"].iloc[0]
        assert figures["guessed_beyond"] == one.cap["guessed_beyond"].to_dict()[place]
    assert result.figures["DiSCO_beyond"].is_monotonic_decreasing
    expected = {
        (", ".join(keys), target)
        for size in (1, 2)
        for keys in itertools.combinations(COLUMNS, size)
        for target in ("t", "a")
        if target not in keys
    }
    assert {label[:2] for label in result.figures.index} == expected
    assert (result.smallest_sets.groupby(["target", "synthesis"])["exposed"].sum().round(9) == 100).all()


@pytest.mark.parametrize(("GT", "SD"), some_of([(1500, 1500), (1000, 400), (400, 1000)], 3, part_in_ci=1))
def test_larger_tables_by_every_way(GT: int, SD: int) -> None:
    gt, sd = sd2011("ground_truth").head(GT), sd2011("synthetic").head(SD)
    columns, actual = ["sex", "age", "region", "placesize"], {}
    for path in PATHS:
        with by(path):
            actual[path] = dp.exposure(gt, sd, columns, ["depress", "workab"], up_to=3)
    first = actual.pop("as it is")
    for other in actual.values():
        pd.testing.assert_frame_equal(first.figures.sort_index(), other.figures.sort_index())
        pd.testing.assert_frame_equal(first.smallest_sets, other.smallest_sets)
    for keys, label in zip(first.key_sets, first.figures.index, strict=True):
        one = dp.disclosure(gt, sd, list(keys), label[1])
        assert first.figures.loc[label, "guessed_beyond"] == one.cap["guessed_beyond"].iloc[0]
        assert first.figures.loc[label, "DiSCO"] == one.attribute["DiSCO"].iloc[0]
    assert "key sets" in str(first)


@pytest.mark.parametrize(("columns", "sets"), [("abcdefgh", 255), ("ab", 3), ("a", 1)])
def test_more_than_the_minutes_allow_is_refused(
    columns: str, sets: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    gt = pd.DataFrame(np.random.default_rng(0).integers(0, 3, (200, 9)), columns=list("abcdefght"))
    searched: list[int] = []
    monkeypatch.setattr(exposure_search, "_search_part", lambda *_: searched.append(1))
    with pytest.raises(dp.InputError, match=rf"^{sets} key sets would take about .* minutes"):
        dp.exposure(gt, gt, list(columns), "t", up_to=8, minutes=1e-9)
    assert not searched
    wide = pd.DataFrame(np.zeros((5, 80), dtype=int)).rename(columns=str)  # too many to be listed
    with pytest.raises(dp.InputError, match="minutes"):
        dp.exposure(wide, wide, [str(i) for i in range(79)], "79", up_to=32)


def test_progress_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    gt = pd.DataFrame({"a": [1, 2], "b": [1, 1], "t": ["x", "y"]})
    dp.exposure(gt, gt, ["a", "b"], "t", progress=True)
    assert "Measuring the key sets: 100 %" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"up_to": 0}, "up_to must be"),
        ({"up_to": 33}, "from 1 to 32"),
        ({"support": 0}, "support must be"),
        ({"minutes": 0}, "minutes must be"),
        ({"minutes": float("nan")}, "minutes must be"),
        ({"keys": ["t"]}, "only targets"),
        ({"keys": "a"}, "must be a list"),
        ({"keys": ["a", "x"]}, "is not in"),
        ({"targets": None}, "targets is None"),
        ({"targets": []}, "targets is empty"),
        ({"targets": "x"}, "is not in"),
        ({"groups": {"x": 3}}, "is not in"),
    ],
)
def test_refuses_invalid_arguments(wrong: dict[str, Any], words: str) -> None:
    gt = pd.DataFrame({"a": [1, 2], "b": [1, 1], "t": ["x", "y"]})
    arguments: dict[str, Any] = {"keys": ["a", "b"], "targets": "t"} | wrong
    with pytest.raises(dp.InputError, match=words):
        dp.exposure(gt, gt, **arguments)


# Ten records and their scores, from Benschop, Machingauta & Welch, "Statistical disclosure control: a
# practice guide", table 4.5; four columns, sets of up to three.
TEN = [
    ("urban", "female", "secondary incomplete", "employed"),
    ("urban", "female", "secondary incomplete", "employed"),
    ("urban", "female", "primary incomplete", "non-LF"),
    ("urban", "male", "secondary complete", "employed"),
    ("rural", "female", "secondary complete", "unemployed"),
    ("urban", "male", "secondary complete", "employed"),
    ("urban", "female", "primary complete", "non-LF"),
    ("urban", "male", "post-secondary", "unemployed"),
    ("urban", "female", "secondary incomplete", "non-LF"),
    ("urban", "female", "secondary incomplete", "non-LF"),
]


def test_the_kin_of_exposure_as_published() -> None:
    """SUDA's scores; where SD is GT and every person a level, who is exposed is a sample unique."""
    assert [suda_score(TEN, person, 3) for person in range(10)] == [0, 0, 6, 0, 12, 0, 6, 10, 0, 0]
    smallest = [
        min((len(unique) for unique in minimal_sample_uniques(TEN, person, 3)), default=None)
        for person in range(10)
    ]
    assert smallest == [None, None, 1, None, 1, None, 1, 1, None, None]
    columns = ["residence", "gender", "education", "labour"]
    table = pd.DataFrame(TEN, columns=columns).assign(person=range(10))
    actual = dp.exposure(table, table, columns, "person", up_to=3).smallest_sets["exposed"]
    assert actual.tolist() == [100 * smallest.count(size) / 10 for size in (1, 2, 3, None)]


# Who bears a candidate's disclosure: the figures of `subgroups()`, for each column that has few levels


KEYS, TARGETS = ["sex", "age", "region", "placesize"], ["depress", "ls", "marital"]
FIGURES = ["records", "DiSCO", "DiSCO_low", "DiSCO_high", "DiSCO_others", "DiSCO_beyond"]
FIGURES += ["DiSCO_beyond_se", "lift"]


def survey(**changes: Any) -> Gate:
    number = {"type": "integer"}
    of_columns = {name: {"type": "category"} for name in [*KEYS, *TARGETS, "workab"]}
    columns = {
        **of_columns,
        "age": number,
        "depress": number,
        "workab": {"type": "category", "published": True},
    }
    policy = {"repU": {"at_most": 8}, "DiSCO": {"at_most": 12}}
    definition = {"columns": columns, "keys": KEYS, "targets": TARGETS, "policy": policy}
    return Gate.model_validate(gates.definition(**definition, **changes))


def table(name: str) -> pd.DataFrame:
    return sd2011(name)[[*KEYS, *TARGETS, "workab"]]


@pytest.fixture(scope="module")
def measured() -> pd.DataFrame:
    syntheses = [table("synthetic"), table("synthetic_m5_1").head(3000)]
    return gates.measured(survey(), table("ground_truth"), syntheses).frame("subgroups")


def test_each_group_has_the_figures_of_subgroups(measured: pd.DataFrame) -> None:
    assert list(measured.index.names) == INDEX
    [target] = measured.index.unique("target")
    looked_at = 0
    for column in ("sex", "placesize", "workab"):
        syntheses = [table("synthetic"), table("synthetic_m5_1").head(3000)]
        expected = dp.subgroups(table("ground_truth"), syntheses, KEYS, target, by=column).loc[target]
        groups = measured.xs((column, target), level=("column", "target"))
        assert set(groups.index) == set(expected.index)
        for label, row in groups.iterrows():
            figures = [float(expected.loc[label, name]) for name in FIGURES]
            assert [row[name] for name in FIGURES] == pytest.approx(figures, abs=1e-6)
            looked_at += 1
    assert looked_at > 15


def test_numbers_are_grouped_and_everybody_is_in_one_group_of_each_column(measured: pd.DataFrame) -> None:
    columns = set(measured.index.unique("column"))
    assert {"sex", "age", "region", "placesize", "workab"} <= columns
    assert not columns & set(measured.index.unique("target"))
    ages = measured.xs("age", level="column").index.unique("group")
    assert len(ages) == subgroups.GROUPS_OF_NUMBERS and all("~" in label for label in ages)
    records = measured["records"].groupby(level=["column", "synthesis"]).sum()
    assert (records == 5000).all()


def test_levels_of_few_people_are_not_named() -> None:
    gt = table("ground_truth").assign(workab=["rare"] * 3 + ["other"] * 4 + ["most"] * 4993)
    actual = gates.measured(survey(), gt, [table("synthetic").assign(workab="made up")]).frame("subgroups")
    groups = actual.xs("workab", level="column")
    assert groups["records"].to_dict() == {("(small groups)", *label[1:]): 5000 for label in groups.index}


def test_larger_tables_are_drawn_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subgroups, "MOST_RECORDS", 1000)
    actual = gates.measured(survey(), table("ground_truth"), [table("synthetic")]).frame("subgroups")
    assert actual["records"].groupby(level="column").sum().unique().tolist() == [1000]


def test_without_a_figure_no_target_is_the_worst() -> None:
    index = pd.MultiIndex.from_product([["a", "b"], [1]], names=["target", "synthesis"])
    assert find_worst_target(pd.DataFrame({"DiSCO_beyond": [np.nan, np.nan]}, index=index)) is None
    assert find_worst_target(pd.DataFrame({"DiSCO_beyond": [np.nan, -1.0]}, index=index)) == "b"
