"""Every figure of the library is the very float of the plain reference, and the reference is right."""

import math
import random
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from reference import disclosure as reference
from reference.cap import percent
from reference.disclosure import Record, Row
from support.sampling import examples
from support.strategies import Case, cases, measured

import disclosure_pipeline as dp

pytestmark = pytest.mark.usefixtures("no_guards")

ONE_WAY = [
    *("target", "synthesis", "level", "level_records", "pct_level_all", "total_disclosive"),
    *("n_level_disclosive", "pct_level_disclosive"),
]
TWO_WAY = [
    *("target", "synthesis", "target_level", "key", "key_level", "npairs"),
    *("key_target_total", "key_total", "pct_target_key_level"),
]


BY_TARGET = ["target", "synthesis"]
INDEXES = {
    "identity": ["synthesis"],
    **dict.fromkeys(("attribute", "cap", "identity_after_exclusions"), BY_TARGET),
    "excluded": [*BY_TARGET, "table"],
}


def same(actual: object, expected: object) -> bool:
    """Equal without any tolerance; not-a-number equals itself, and only a missing level is None."""
    if isinstance(expected, float) and math.isnan(expected):
        return isinstance(actual, float) and math.isnan(actual)
    return actual is expected if expected is None else actual == expected


def assert_same_row(actual: Row, expected: Row, where: object) -> None:
    assert list(actual) == list(expected)
    wrong = {name: (actual[name], value) for name, value in expected.items() if not same(actual[name], value)}
    assert not wrong, f"{where}: {{figure: (library, reference)}} = {wrong}"


def assert_those_of_the_reference(result: dp.Disclosure, expected: reference.Result) -> None:
    """Compare the rows of all frames, in their order; a frame may have more columns."""
    for name, index in INDEXES.items():
        frame, rows = result.frame(name), getattr(expected, name)
        assert list(frame.index.names) == index
        assert list(frame.index) == list(rows)
        for at, row in zip(rows, frame.to_dict("records"), strict=True):
            assert_same_row({name: row[name] for name in map(str, row) if name in rows[at]}, rows[at], at)
    one_way = result.one_way.to_dict("records")
    # Of several levels that tie, any one may be flagged, but not two.
    assert [place_of(row) for row in one_way] == list(dict.fromkeys(map(place_of, expected.one_way)))
    flagged = [(*place_of(row), row["level"]) for row in one_way]
    tied = [row for row in expected.one_way if (*place_of(row), row["level"]) in flagged]
    assert_same_flags(result.one_way, tied, ONE_WAY)
    assert_same_flags(result.two_way, expected.two_way, TWO_WAY)


def place_of(row: Row | dict[Hashable, Any]) -> tuple[Any, ...]:
    return row["target"], row["synthesis"]


def assert_same_flags(frame: pd.DataFrame, expected: Sequence[Row], columns: Sequence[str]) -> None:
    def about(row: Row) -> str:
        named = ("target", "synthesis", "level", "target_level", "key", "key_level")
        return repr([(name, row[name]) for name in named if name in row])

    assert list(frame.columns) == list(columns)
    rows = [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]
    pairs = zip(sorted(rows, key=about), sorted(expected, key=about), strict=True)
    for actual, flag in pairs:
        assert_same_row(actual, flag, about(flag))


@examples(20)
@given(cases())
def test_every_frame_equals_the_reference(case: Case) -> None:
    expected = reference.disclosure(
        case.ground_truth,
        case.synthetics,
        case.keys,
        case.targets,
        groups=case.groups,
        special_values=case.special_values,
        edges=case.edges,
        exclusions=case.exclusions,
        one_way_thresholds=case.one_way,
        two_way_thresholds=case.two_way,
    )
    assert_those_of_the_reference(measured(case), expected)


@pytest.mark.parametrize("count_over", [None, 5, 40])
def test_a_larger_table_equals_the_reference(count_over: int | None) -> None:
    """Sums of shares with many different denominators are rounded once, too."""
    chance = random.Random(count_over)

    def draw_table(size: int) -> list[Record]:
        return [
            {
                "age": int(chance.paretovariate(0.5)) % 97,
                "region": chance.choice("xyz"),
                "income": int(chance.expovariate(0.3)),
                "owner": chance.random() < 1 / 8,
            }
            for _ in range(size)
        ]

    gt, sd = draw_table(5000), draw_table(5678)
    keys, targets = ["age", "region"], ["income", "owner"]
    exclude = dp.Exclusions(count_over=count_over)
    result = dp.disclosure(pd.DataFrame(gt), pd.DataFrame(sd), keys, targets, exclude=exclude)
    expected = reference.disclosure(
        gt, [sd], keys, targets, exclusions=reference.Exclusions(count_over=count_over)
    )
    assert_those_of_the_reference(result, expected)


def test_not_a_number_is_missing() -> None:
    """A masked column can tell it from missing and holds it after a division; it is missing all the same."""
    values = pd.arrays.FloatingArray(np.array([1.0, math.nan, math.nan]), np.zeros(3, dtype=bool))
    plain = pd.DataFrame({"age": [1.0, math.nan, math.nan], "job": ["COOK", "COOK", "NURSE"]})
    other = plain.assign(age=pd.Series(values))
    for gt, sd in [(plain, other), (other, plain)]:
        identity = dp.disclosure(gt, sd, keys=["age"], targets=["job"]).identity.loc[
            1, ["UiO", "UiS", "UiOiS", "repU"]
        ]
        assert identity.nunique() == 1
        assert identity["repU"] == percent(1, 3)


@examples(20)
@given(cases())
def test_replicated_uniques_equal_the_reference(case: Case) -> None:
    """Masks, counts and percentages, and what is left when either kind is removed; of each synthesis."""
    gt = case.ground_truth_frame
    groups = {name: n for name, n in case.groups.items() if name in case.keys}
    edges = case.edges
    if not isinstance(edges, str):
        edges = {name: list(values) for name, values in edges.items() if name in case.keys}
    special_values = {name: codes for name, codes in case.special_values.items() if name in case.keys}
    options: dict[str, Any] = {"groups": groups, "special_values": special_values, "edges": edges}
    if len(case.synthetics) > 1 and edges != "ground_truth":
        options |= {"groups": {}, "edges": "pooled"}  # the reference pools GT and one synthesis
    uniques = dp.replicated_uniques(gt, case.synthetic_frames, case.keys, **options)
    for i, (synthetic, sd) in enumerate(zip(case.synthetics, case.synthetic_frames, strict=True)):
        expected = reference.replicated_uniques(case.ground_truth, synthetic, case.keys, **options)
        row = uniques.figures.loc[i + 1]
        for which, is_unique in expected.items():
            mask = getattr(uniques, which)[i]
            assert isinstance(mask, np.ndarray)
            assert mask.dtype == bool
            assert mask.tolist() == is_unique
            assert row[f"n_{which}"] == sum(is_unique)
            assert row[f"pct_{which}"] == percent(sum(is_unique), len(synthetic))
        pd.testing.assert_frame_equal(uniques.remove()[i], sd[~uniques.replicated[i]])
        pd.testing.assert_frame_equal(uniques.remove("in_original")[i], sd[~uniques.in_original[i]])


# The reference itself, held to figures that can be worked out by hand


def village() -> tuple[list[Record], list[Record]]:
    """Ten people and a synthetic version, small enough to count on paper."""
    gt: list[Record] = [
        {"age": 18, "sex": "F", "job": "COOK"},  # (18, F): unique, and unique in SD with the same job
        {"age": 18, "sex": "M", "job": "COOK"},  # (18, M): unique, twice in SD, always NURSE
        {"age": 30, "sex": "F", "job": "COOK"},  # (30, F): three people, two jobs; in SD always COOK
        {"age": 30, "sex": "F", "job": "COOK"},
        {"age": 30, "sex": "F", "job": "NURSE"},
        {"age": 30, "sex": "M", "job": "NURSE"},  # (30, M): two people, one job; in SD two jobs
        {"age": 30, "sex": "M", "job": "NURSE"},
        {"age": 70, "sex": "F", "job": None},  # (70, F): two people without a job; not in SD
        {"age": 70, "sex": "F", "job": None},
        {"age": None, "sex": "M", "job": "COOK"},  # (missing, M): unique; once in SD, as COOK
    ]
    sd: list[Record] = [
        {"age": 18.0, "sex": "F", "job": "COOK"},
        {"age": 18.0, "sex": "M", "job": "NURSE"},
        {"age": 18.0, "sex": "M", "job": "NURSE"},
        {"age": 30.0, "sex": "F", "job": "COOK"},
        {"age": 30.0, "sex": "M", "job": "NURSE"},
        {"age": 30.0, "sex": "M", "job": "COOK"},
        {"age": None, "sex": "M", "job": "COOK"},
        {"age": 99.0, "sex": "M", "job": "COOK"},
    ]
    return gt, sd


def test_reference_on_a_table_counted_by_hand() -> None:
    """Every share is a number of people out of ten, or of synthetic people out of eight."""
    gt, sd = village()
    result = reference.disclosure(gt, [sd], ["age", "sex"], ["job"])
    assert result.identity[1] == {"UiO": 30.0, "UiS": 50.0, "UiOiS": 30.0, "repU": 20.0}
    assert result.attribute["job", 1] == {
        "Dorig": 70.0,
        "Dsyn": 75.0,
        "iS": 80.0,
        "DiS": 60.0,
        "DiSCO": 40.0,
        "DiSDiO": 20.0,
        "max_denom": 2,
        "mean_denom": 4 / 3,
    }
    # baseCAPd: 5 cooks, 3 nurses, 2 without. CAPd: 2/3 for two and 1/3 for one of (30, F), 1 for the rest.
    # DCAP: 1 for the four of DiSCO, 1/2 for the two of (30, M).
    assert result.cap["job", 1] == {
        "baseCAPd": 38.0,
        "CAPd": 260 / 3,
        "CAPs": 87.5,
        "DCAP": 50.0,
        "TCAP": 50.0,
    }


def test_reference_exclusions_on_a_table_counted_by_hand() -> None:
    """Each step takes its people out of each table, and no step those of an earlier one."""
    gt, sd = village()
    exclusions = reference.Exclusions(
        missing_targets=True,
        missing_keys=["age"],
        pairs=[reference.Pair("age", 18, "job", "COOK")],
        count_over=1,
    )
    result = reference.disclosure(gt, [sd], ["age", "sex"], ["job"], exclusions=exclusions)
    at = ("job", 1)
    assert list(result.excluded["job", 1, "original"].values()) == [0, 2, 1, 2, 4, 1]
    assert list(result.excluded["job", 1, "synthetic"].values()) == [0, 0, 1, 1, 2, 4]
    assert list(result.excluded["job", 1, "DiSCO"].values()) == [0, 0, 1, 1, 2, 0]
    # One nurse of (30, F) is left; in SD there are one COOK of (30, F), two of (30, M) and one of (99, M).
    assert result.identity_after_exclusions[at] == {"UiO": 10.0, "UiS": 25.0, "UiOiS": 10.0, "repU": 10.0}
    assert result.attribute[at]["iS"] == 100 * 1 / 10
    assert result.attribute[at]["max_denom"] == 0
    assert math.isnan(float(str(result.attribute[at]["mean_denom"])))
    assert result.cap[at] == {"baseCAPd": 38.0, "CAPd": 10.0, "CAPs": 37.5, "DCAP": 0.0, "TCAP": 0.0}


@pytest.mark.parametrize(
    ("edges", "groups", "levels"),
    [
        # Quartiles of 0..8 are 2, 4 and 6.
        (
            "pooled",
            {"x": 4},
            {0.0: "(-inf, 2)", 2.0: "[2, 4)", 5.0: "[4, 6)", 6.0: "[6, inf)", 8.0: "[6, inf)"},
        ),
        ("equal_width", {"x": 5}, {0.0: "(-inf, 1.6)", 2.0: "[1.6, 3.2)", 8.0: "[6.4, inf)"}),
        ({"x": [1, 3, 5]}, {}, {0.0: "(-inf, 3)", 3.0: "[3, inf)", 8.0: "[3, inf)"}),
    ],
)
def test_reference_groups(edges: reference.Edges, groups: dict[str, int], levels: dict[float, str]) -> None:
    """Groups closed on the left; special and missing values stay levels of their own."""
    records: list[Record] = [{"x": x} for x in [*range(9), -8, None]]
    [actual, _] = reference.all_leveled(records, [], ["x"], groups, {"x": [-8]}, edges)
    assert [actual[int(x)]["x"] for x in levels] == list(levels.values())
    assert [record["x"] for record in actual[9:]] == ["-8", None]


def test_reference_falls_back_to_equal_width() -> None:
    """Quantiles that leave fewer than three groups are replaced by equal widths over the same range."""
    records: list[Record] = [{"x": x} for x in [0] * 20 + [5, 10]]
    [actual, _] = reference.all_leveled(records, [], ["x"], {"x": 4}, {}, "pooled")
    assert {record["x"] for record in actual} == {"(-inf, 2.5)", "[5, 7.5)", "[7.5, inf)"}
