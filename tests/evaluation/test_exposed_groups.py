"""Who bears a candidate's disclosure: the figures of `subgroups()`, for each column that has few levels."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from support import gates
from support.small_tables import sd2011

import disclosure_pipeline as dp
from disclosure_pipeline.evaluation import subgroups
from disclosure_pipeline.evaluation.subgroups import INDEX, find_worst_target
from disclosure_pipeline.policy.gate import Gate

KEYS, TARGETS = ["sex", "age", "region", "placesize"], ["depress", "ls", "marital"]
FIGURES = ["records", "DiSCO", "DiSCO_low", "DiSCO_high", "DiSCO_others", "DiSCO_beyond"]
FIGURES += ["DiSCO_beyond_se", "lift"]


def survey(**changes: Any) -> Gate:
    """A gate for the example data."""
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
