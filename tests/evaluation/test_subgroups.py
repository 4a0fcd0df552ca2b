"""Subgroups: against the reference, groups too small to be told of, and a group that is copied."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import gates
from support.small_tables import sd2011

import disclosure_pipeline as dp
from disclosure_pipeline.evaluation.exposed_groups import merged_groups


@pytest.mark.parametrize(
    ("records", "merged"),
    [
        ([50, 60, 70], []),
        ([3, 4, 50, 60], [0, 1, 2]),  # 7 together: the next is told with them
        ([6, 7, 50, 60], [0, 1]),
        ([3, 50, 60], [0, 1]),  # one alone would be told by the difference
        ([2, 3], [0, 1]),
        ([5], [0]),
    ],
)
def test_small_groups_are_told_of_together(records: list[int], merged: list[int]) -> None:
    assert sorted(merged_groups(np.array(records), 10).tolist()) == merged


@given(st.lists(st.integers(1, 30), min_size=1, max_size=8))
def test_no_small_group_is_told_of_by_itself(records: list[int]) -> None:
    actual = set(merged_groups(np.array(records), 10).tolist())
    rest = [number for i, number in enumerate(records) if i not in actual]
    assert all(number >= 10 for number in rest)
    assert not actual or len(actual) > 1 or len(records) == 1
    assert not actual or sum(records[i] for i in actual) >= 10 or not rest


def test_tables_of_other_sizes_and_pairs_of_columns() -> None:
    gt, sd = sd2011("ground_truth"), sd2011("synthetic")
    tables = [sd.head(2000), pd.concat([sd, sd2011("synthetic_m5_1")])]
    by = ["sex", "workab"]
    result = dp.subgroups(gt, tables, ["sex", "age", "region", "placesize"], "depress", by=by)
    again = dp.subgroups(
        gt[::-1], [sd[::-1] for sd in tables], ["placesize", "age", "sex", "region"], "depress", by=by
    )
    assert result.equals(again)  # nothing depends on the order of records or keys
    assert result.drop(index="(small groups)", level="group", errors="ignore")["guessed_beyond"].notna().all()
    assert "FEMALE, NO" in result.index.get_level_values("group")
    assert (result.groupby("synthesis")["records"].sum() == len(gt)).all()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"by": "x"}, "by is not in"),
        ({"by": ["sex"] * 3}, "by must be"),
        ({"smallest_count": 0}, "smallest"),
        (
            {"by": "age", "holdout": pd.DataFrame({"sex": ["f"], "ill": ["y"]})},
            "'age' of by is not in the ho",
        ),
        ({"holdout": pd.DataFrame({"sex": ["f"]})}, "'ill' is not in the holdout"),
        ({"exclude": dp.Exclusions(target_levels={"sex": ["f"]})}, "'sex', which is not a target"),
        ({"within": {"ill": 2}}, "only numbers have a band"),
    ],
)
def test_refuses_invalid_arguments(wrong: dict[str, object], words: str) -> None:
    gt = pd.DataFrame({"sex": ["f", "m"], "ill": ["y", "n"], "age": [30, 40]})
    arguments: dict[str, object] = {"by": "sex"} | wrong
    with pytest.raises(dp.InputError, match=words):
        dp.subgroups(gt, gt, ["sex"], "ill", **arguments)  # type: ignore[arg-type]


def test_a_group_that_is_copied_is_told_from_its_holdout() -> None:
    random = np.random.default_rng(5)
    columns: dict[str, Any] = {"sex": ["f", "m"], "age": range(1000), "ill": ["y", "n"]}
    people = pd.DataFrame({name: random.choice(levels, 900) for name, levels in columns.items()})
    gt, fresh, holdout = people[:300], people[300:600], people[600:]
    sd = pd.concat([gt[gt["sex"] == "f"], fresh[fresh["sex"] == "m"]])
    of_groups = dp.subgroups(gt, sd, ["sex", "age"], "ill", by="sex", holdout=holdout).loc["ill"]
    low, high = (of_groups[f"DiSCO_difference_{end}"].droplevel("synthesis") for end in ("low", "high"))
    assert low["f"] > 50 and low["m"] < 0 < high["m"]


@pytest.mark.parametrize("groups", [None, {"age": 4}])
def test_a_holdout_leaves_the_groups_as_they_are(groups: dict[str, int] | None) -> None:
    """Its own levels are no groups, nor do they move the edges of grouped numbers."""
    gt = pd.DataFrame({"age": range(40), "ill": list("yn") * 20})
    older = gt.assign(age=gt["age"] + 500)
    options: dict[str, Any] = {"by": "age", "groups": groups, "smallest_count": 1}
    alone = dp.subgroups(gt, gt.head(30), ["age"], "ill", **options)
    beside = dp.subgroups(gt, gt.head(30), ["age"], "ill", **options, holdout=older)
    pd.testing.assert_frame_equal(pd.DataFrame(beside[list(alone)]), pd.DataFrame(alone))
    assert beside["DiSCO_holdout"].notna().sum() == (0 if groups is None else 1)  # the last is open


WITHOUT = {"work": ["none", gates.CANARIES[0]]}
BANDED = gates.definition()["columns"] | {"income": {"type": "integer", "within": 100}}


@pytest.mark.parametrize("most", [10**6, 60], ids=["all records", "drawn records"])
def test_the_groups_of_a_gate_take_its_exclusions_and_bands(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are those of `subgroups()`; of drawn records, a level that is left out may have been lost."""
    monkeypatch.setattr("disclosure_pipeline.evaluation.exposed_groups.MOST_RECORDS", most)
    gt = gates.ground_truth()
    copied = pd.concat([gt.head(150), gates.honest().head(150)])
    for target, changes, options in (
        ("work", {"exclusions": {"target_levels": WITHOUT}}, {"exclude": dp.Exclusions(WITHOUT)}),
        ("income", {"columns": BANDED}, {"within": {"income": 100}}),
    ):
        bounds = dict.fromkeys(["repU", "DiSCO", *(["DiSCO_within"] if "within" in options else [])], 99)
        gate = gates.gate(targets=[target], policy=bounds, **changes)
        groups = gates.measured(gate, gt, [copied]).subgroups
        assert (groups["records"] >= 10).all()
        if most < len(gt):
            assert groups["records"].max() < most
            continue
        expected = dp.subgroups(gt, copied, ["sex", "age"], target, by="sex", **options)
        actual = pd.DataFrame(groups.loc["sex"]).reset_index("target", drop=True)
        pd.testing.assert_frame_equal(
            actual.sort_index(), pd.DataFrame(expected.loc[target])[list(actual)].sort_index()
        )
        assert ("DiSCO_within" in actual) == ("within" in options)
