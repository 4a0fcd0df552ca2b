"""Infinite numbers are levels of their own, in the outermost groups, infinitely far away; or are refused."""

import math
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.figures import without_guards
from support.sampling import on_some_days

import disclosure_pipeline as dp
from disclosure_pipeline.counting.memory import nearest_records
from disclosure_pipeline.evaluation.resemblance import group_numbers
from disclosure_pipeline.tables.coding import code_column
from disclosure_pipeline.tables.grouping import grouping_of

POOLS = {
    "some infinite": [math.inf, -math.inf, 1.5, -2.0, 0.0, 3.0, math.nan],
    "nothing else": [math.inf],
    "both ends": [math.inf, -math.inf, math.nan],
    "the largest floats": [1e308, -1e308, 1.7e308, 0.0, 5e-324, math.inf],
}
FINITE = [1.0, 2.0, 5.5, 7.25]
SHARED = ["sex", "x", "y", "t"]
INFINITE = {"x": [math.inf, -math.inf]}
REMEDIES = [
    dp.Remedy.top_code("x", at=2),
    dp.Remedy.bottom_code("x", at=-1),
    dp.Remedy.round_numbers("x", to=5),
    dp.Remedy.round_numbers("x", to=0.001),
    dp.Remedy.group_numbers("x", edges=(-2, 0, 2)),
    dp.Remedy.blank_copied_targets(),
]
disclose = partial(dp.disclosure, keys=["sex", "x"], targets=["t", "y"])

MEASURED: dict[str, Callable[[pd.DataFrame, pd.DataFrame], Any]] = {
    "disclosure": lambda gt, sd: disclose(gt[SHARED], [sd, sd], certainty=(0.8,)),
    "disclosure in parts": lambda gt, sd: disclose(gt[SHARED], sd, engine="partitioned"),
    "disclosure beside a holdout": lambda gt, sd: disclose(gt[SHARED], sd, holdout=sd),
    "disclosure by person": lambda gt, sd: disclose(gt.drop(columns="weight"), sd, unit="person"),
    "disclosure with weights": lambda gt, sd: disclose(gt.drop(columns="person"), sd, weights="weight"),
    "quantile groups": lambda gt, sd: disclose(gt[SHARED], sd, groups={"x": 3, "y": 4}),
    "groups of equal width": lambda gt, sd: disclose(gt[SHARED], sd, groups={"x": 3}, edges="equal_width"),
    "groups of GT": lambda gt, sd: disclose(gt[SHARED], sd, groups={"x": 3}, edges="ground_truth"),
    "groups and special values": lambda gt, sd: disclose(
        gt[SHARED], sd, groups={"x": 3}, special_values=INFINITE
    ),
    "given edges": lambda gt, sd: disclose(gt[SHARED], sd, edges={"x": [-2, 0, 2]}),
    "bands and special values": lambda gt, sd: dp.disclosure(
        gt[SHARED], sd, ["sex"], ["x"], within={"x": 0.1}, special_values=INFINITE
    ),
    "compare_remedies": lambda gt, sd: dp.compare_remedies(gt[SHARED], sd, ["sex", "x"], "t", REMEDIES),
    "copies": lambda gt, sd: dp.copies(gt.drop(columns="weight"), sd, unit="person"),
    "disclosure_of_key_sets": lambda gt, sd: dp.disclosure_of_key_sets(
        gt[SHARED], sd, [["sex"], ["x", "y"]], ["t"]
    ),
    "disclosure_protection": lambda gt, sd: dp.disclosure_protection(gt[SHARED], sd, ["sex", "x"], ["t"]),
    "individual_attribution": lambda gt, sd: dp.individual_attribution(gt[SHARED], sd, ["sex", "x"], ["y"]),
    "found": lambda gt, sd: dp.found(gt[SHARED], [sd, sd]),
    "nearest": lambda gt, sd: dp.nearest(gt[SHARED], [sd, sd]),
    "replicated_uniques": lambda gt, sd: dp.replicated_uniques(gt[SHARED], sd, ["sex", "x"]),
    "resemblance": lambda gt, sd: dp.resemblance(gt[SHARED], [sd, sd]),
    "subgroups": lambda gt, sd: dp.subgroups(gt[SHARED], sd, ["sex"], ["t"], by="x"),
}
REFUSED: dict[str, Callable[[pd.DataFrame, pd.DataFrame], Any]] = {
    "bands": lambda gt, sd: dp.disclosure(gt[SHARED], sd, ["sex"], ["x"], within={"x": 2}),
    "bins of equal width": lambda gt, sd: dp.disclosure_protection(
        gt[SHARED], sd, ["sex", "x"], ["t"], continuous=["x"]
    ),
    "a learned key": lambda gt, sd: dp.prediction_risk(gt[SHARED], sd, ["sex", "x"], ["t"]),
    "a learned target": lambda gt, sd: dp.prediction_risk(gt[SHARED], sd, ["sex"], ["x"], task="regression"),
}


def table(seed: int, values: list[float], records: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "sex": rng.choice([*"fm"], records),
            "x": rng.choice(np.array(values), records),
            "y": rng.choice(np.array(values), records),
            "t": rng.choice([*"abc"], records),
            "person": np.arange(records) // 2,
            "weight": rng.integers(1, 5, records),
        }
    )


def pairs() -> list[tuple[pd.DataFrame, pd.DataFrame]]:
    """Tables with infinite numbers in both, in SD alone, and in GT alone."""
    both = [(values, values) for values in POOLS.values()]
    some = POOLS["some infinite"]
    return [
        (table(1, in_GT), table(2, in_SD)[SHARED]) for in_GT, in_SD in (*both, (FINITE, some), (some, FINITE))
    ]


@pytest.fixture(autouse=True)
def no_warning_of_numpy() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", RuntimeWarning)
        yield


# Of these records copies are looked for in another case already.
WITHOUT_COPIES = ("disclosure beside a holdout", "compare_remedies")


@on_some_days
@pytest.mark.parametrize("name", MEASURED)
def test_infinite_numbers_are_measured_without_a_warning(name: str) -> None:
    with without_guards() if name in WITHOUT_COPIES else nullcontext():
        for gt, sd in pairs():
            assert str(MEASURED[name](gt, sd))


@pytest.mark.parametrize("name", REFUSED)
def test_infinite_numbers_without_a_meaning_are_refused(name: str) -> None:
    for gt, sd in pairs():
        with pytest.raises(dp.InputError, match=r"'x'.* holds infinite values.*\bmissing|special values"):
            REFUSED[name](gt, sd)


@pytest.mark.parametrize("edges", ["pooled", "equal_width", "ground_truth"])
def test_they_are_in_the_outermost_groups(edges: Any) -> None:
    """Whose edges are those of the finite numbers."""
    rng = np.random.default_rng(1)
    finite = [pd.Series(rng.normal(0, 10, 200).round(1)) for _ in range(2)]
    both = [pd.concat([of, pd.Series([math.inf, -math.inf, math.inf])], ignore_index=True) for of in finite]
    grouping = grouping_of({"x": 4}, None, edges)
    expected, grouped = (grouping.apply(code_column("x", tables, ["GT", "SD"])) for tables in (finite, both))
    assert grouped.levels.tolist() == expected.levels.tolist() and len(expected.levels) == 4
    for codes, expected_codes in zip(grouped.codes, expected.codes, strict=True):
        assert codes.tolist() == [*expected_codes.tolist(), 3, 0, 3]
    assert group_numbers(code_column("x", both, ["GT", "SD"])).size == 6


def test_groups_of_the_largest_floats_have_finite_edges() -> None:
    column = code_column("x", [pd.Series([-1.5e308, 0.0, 1.5e308])], ["GT"])
    edges = grouping_of({"x": 3}, None, "equal_width").find_edges(column)
    assert edges == pytest.approx([-0.5e308, 0.5e308])


def test_the_largest_floats_keep_their_distances() -> None:
    numbers = pd.Series([-1.5e308, -0.5e308, 0.5e308, 1.5e308] * 5)
    small = numbers / 1e308
    [expected], [column] = (
        nearest_records.measure_columns([code_column("x", [of, of], ["GT", "SD"])], [0, 1])
        for of in (small, numbers)
    )
    assert column.values.tolist() == expected.values.tolist() and len(set(column.values.tolist())) == 5


def test_rounding_leaves_them_as_they_are() -> None:
    gt = pd.DataFrame({"x": [math.inf, -math.inf, 1e308, 12.0], "t": [*"abab"]})
    [rounded] = (
        dp.compare_remedies(gt, gt, ["x"], "t", [dp.Remedy.round_numbers("x", to=0.001)]).tables[0].synthetic
    )
    assert rounded["x"].tolist() == [math.inf, -math.inf, 1e308, 12.0]
