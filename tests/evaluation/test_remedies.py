"""Remedies change only what they say, and are measured again."""

from itertools import product
from typing import Any

import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sampling import examples, on_some_days

import disclosure_pipeline as dp
from disclosure_pipeline.families.compared_remedies import BEFORE, RemediedTables, RemedyComparison

pytestmark = [pytest.mark.usefixtures("no_guards"), on_some_days]

LEVELS = ("x", "y", "z", "w", None)
NUMBERS = (-8, 0, 1, 2, 5, 7, 12, None)
TABLE = st.lists(
    st.sampled_from(list(product(LEVELS, NUMBERS, LEVELS, (False, True)))), min_size=1, max_size=12
)
Rows = list[tuple[str | None, int | None, str | None, bool]]
SPECIAL = {"number": [-8]}
NO_COUNT: tuple[Any, ...] = (0, True, 2.5, float("nan"), "3", None)

RECODED: dict[str, Any] = {
    "top_code": dp.Remedy.top_code("number", at=5),
    "bottom_code": dp.Remedy.bottom_code("number", at=2),
    "round_numbers": dp.Remedy.round_numbers("number", to=5),
    "group_numbers": dp.Remedy.group_numbers("number", edges=(0, 5, 10)),
}
# What each makes of the numbers; missing and special values stay.
EXPECTED = {
    "top_code": {7: 5, 12: 5},
    "bottom_code": {0: 2, 1: 2},
    "round_numbers": {1: 0, 2: 0, 7: 5, 12: 10},
    "group_numbers": {1: 0, 2: 0, 7: 5, 12: 10},
}
TAKEN_OUT: dict[str, Any] = {
    "remove_replicated_uniques": dp.Remedy.remove_replicated_uniques(),
    "remove_unique_copies": dp.Remedy.remove_unique_copies(),
}


def frame(rows: Rows) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=["k", "number", "t", "flag"], dtype=object)
    return table.astype({"k": "category", "number": "Int64", "flag": bool})


def listed(table: pd.DataFrame) -> list[tuple[Any, ...]]:
    return [tuple(None if pd.isna(v) else v for v in row) for row in table.itertuples(index=False, name=None)]


def remedied(gt: pd.DataFrame, sd: list[pd.DataFrame], *applied: Any) -> RemedyComparison:
    return dp.compare_remedies(gt, sd, ["k", "number"], "t", list(applied), special_values=SPECIAL)


@examples(8)
@given(TABLE, TABLE, st.sampled_from(list(RECODED)), st.integers(1, 4))
def test_values_are_recoded_merged_and_blanked_and_nothing_else(
    gt: Rows, sd: Rows, name: str, fewest: int
) -> None:
    """Remedies of one call, which measures the tables before them once; each is of the tables as given."""
    applied = [RECODED[name], dp.Remedy.blank_copied_targets()]
    there_is_a_level = any(k is not None for k, *_ in [*gt, *sd])
    if there_is_a_level:
        applied.append(dp.Remedy.merge_small_levels("k", fewest=fewest))
    actual = remedied(frame(gt), [frame(sd)], *applied)
    recoded, blanked, *merged = actual.tables
    assert_numbers_are_recoded(gt, sd, recoded, EXPECTED[name])
    row = actual.figures.loc[repr(RECODED[name])].iloc[0]
    assert row["cells_changed"] == sum(number in EXPECTED[name] for _, number, _, _ in sd)
    assert (row["records"], row["records_lost"]) == (len(sd), 0)
    assert_targets_of_disclosing_copies_are_blanked(gt, sd, blanked)
    assert len(merged) == there_is_a_level
    for after in merged:
        assert_small_levels_are_merged(gt, sd, after, fewest)


def assert_numbers_are_recoded(gt: Rows, sd: Rows, after: RemediedTables, expected: dict[int, int]) -> None:
    for rows, table in ((gt, after.ground_truth), (sd, after.synthetic[0])):
        assert listed(table) == [
            (k, expected.get(number, number) if number is not None else None, t, flag)
            for k, number, t, flag in rows
        ]


def assert_targets_of_disclosing_copies_are_blanked(gt: Rows, sd: Rows, after: RemediedTables) -> None:
    expected = []
    for k, number, t, flag in sd:
        levels = {other[2] for other in sd if other[:2] == (k, number)}
        copied = (k, number, t, flag) in gt
        expected.append((k, number, None if copied and levels == {t} else t, flag))
    assert listed(after.synthetic[0]) == expected
    assert listed(after.ground_truth) == gt


def assert_small_levels_are_merged(gt: Rows, sd: Rows, after: RemediedTables, fewest: int) -> None:
    levels = [row[0] for row in gt]
    for rows, table in ((gt, after.ground_truth), (sd, after.synthetic[0])):
        assert listed(table) == [
            (k if k is None or levels.count(k) >= fewest else "(other)", *rest) for k, *rest in rows
        ]
    assert after.synthetic[0]["k"].dtype == "category"


def test_missing_targets_of_polars_stay_missing() -> None:
    """Arrow dictionaries are filled where pandas masks one."""
    values = {"k": [*"abcde"], "t": ["x", None, "y", "z", None]}
    sd = pl.DataFrame(values, schema={"k": pl.String, "t": pl.Categorical})
    blanked = dp.compare_remedies(sd.head(1), sd, ["k"], "t", [dp.Remedy.blank_copied_targets()])
    assert listed(blanked.tables[0].synthetic[0]) == [
        *zip("abcde", [None, None, "y", "z", None], strict=True)
    ]
    assert blanked.figures["cells_changed"].to_list() == [0, 1]


@examples(10)
@given(TABLE, TABLE, st.sampled_from(list(TAKEN_OUT)))
def test_records_are_taken_out_and_nothing_else(gt: Rows, sd: Rows, name: str) -> None:
    def goes(row: tuple[Any, ...]) -> bool:
        if name == "remove_unique_copies":
            return gt.count(row) == 1
        keys = [[(k, number) for k, number, _, _ in table] for table in (gt, sd)]
        return all(table.count(row[:2]) == 1 for table in keys)

    left = [row for row in sd if not goes(row)]
    if not left:
        with pytest.raises(dp.InputError, match="leaves no record"):
            remedied(frame(gt), [frame(sd)], TAKEN_OUT[name])
        return
    actual = remedied(frame(gt), [frame(sd), frame(sd)], TAKEN_OUT[name])
    [after] = actual.tables
    assert listed(after.ground_truth) == gt
    assert [listed(table) for table in after.synthetic] == [left, left]
    row = actual.figures.loc[repr(TAKEN_OUT[name])].iloc[0]
    assert (row["records"], row["records_lost"], row["cells_changed"]) == (len(left), len(sd) - len(left), 0)
    assert row["unique_copies" if name == "remove_unique_copies" else "repU"] == 0


ALL = [
    *RECODED.values(),
    *TAKEN_OUT.values(),
    dp.Remedy.blank_copied_targets(),
    dp.Remedy.merge_levels("k", into={"x": "v", "y": "v"}),
    dp.Remedy.merge_small_levels("k", fewest=3),
    (dp.Remedy.top_code("number", at=5), dp.Remedy.merge_levels("k", into={"x": "v", "y": "v"})),
]


@examples(8)
@given(TABLE, TABLE, st.sampled_from(ALL), st.booleans())
def test_risk_is_that_of_disclosure_on_the_changed_tables(gt: Rows, sd: Rows, one: Any, twice: bool) -> None:
    sd = [*sd, ("w", 3, "y", True), ("w", 3, "z", False)]  # never all taken out
    gt = [*gt, ("x", 1, "y", True)]
    tables = [frame(sd)] * (2 if twice else 1)
    given_GT, given_SD = frame(gt), frame(sd)
    asked: Any = {"keys": ["k", "number"], "targets": ["t", "flag"], "special_values": SPECIAL}
    actual = dp.compare_remedies(given_GT, tables, remedies=[one], **asked)
    assert len(actual.figures) == 4 * len(tables)
    [after] = actual.tables
    assert tables[0].equals(given_SD)
    assert given_GT.equals(frame(gt))
    label = actual.figures.index.get_level_values("remedy").drop_duplicates()[1]
    for remedy, people, synthetic in (
        (BEFORE, given_GT, tables),
        (label, after.ground_truth, list(after.synthetic)),
    ):
        risk = dp.disclosure(people, synthetic, **asked)
        copied = dp.copies(people, synthetic).xs("all columns", level="columns")
        apart = dp.resemblance(given_GT, synthetic).pairs.groupby("synthesis")
        distances = {"TVD_mean": apart["TVD"].mean(), "TVD_largest": apart["TVD"].max()}
        of_synthesis = risk.identity.join(copied).assign(**distances, S_pMSE_mean=apart["S_pMSE"].mean())
        expected = risk.attribute.join(risk.cap).join(of_synthesis, on="synthesis")
        rows: Any = actual.figures.loc[remedy]
        compared = [name for name in rows if name not in ("records", "records_lost", "cells_changed")]
        pd.testing.assert_frame_equal(rows[compared], expected[compared])


def test_smoothing_replaces_numbers_by_the_mean_of_their_neighbours() -> None:
    """In SD alone, as a loop over the sorted numbers gives them; missing and special values stay."""
    numbers = [7, 1, None, 12, 3, -8, 100, 4]
    gt = frame([("x", number, "y", True) for number in numbers])
    remedy = dp.Remedy.smooth_numbers("number", over=3)
    compared = dp.compare_remedies(gt, gt, ["k", "number"], "t", [remedy], special_values={"number": [-8]})
    [table] = compared.tables
    pd.testing.assert_frame_equal(table.ground_truth, gt)
    # Sorted: 1, 3, 4 | 7, 12, 100, whose means are 2.67 and 39.67: whole numbers stay whole.
    assert table.synthetic[0]["number"].tolist() == [40, 3, pd.NA, 40, 3, -8, 40, 3]
    fractions = gt.assign(number=gt["number"].astype("Float64") + 0.5)
    compared = dp.compare_remedies(
        fractions, fractions, ["k"], "t", [dp.Remedy.smooth_numbers("number", over=2)]
    )
    smoothed = compared.tables[0].synthetic[0]["number"].dropna()
    assert smoothed.sum() == pytest.approx(fractions["number"].dropna().sum())


@pytest.mark.parametrize("of_type", ["int8", "Int8", "int8[pyarrow]", "int64", "Int64", "int64[pyarrow]"])
def test_integers_keep_their_digits_and_do_not_wrap_around(of_type: Any) -> None:
    """Beyond 2^53 floats lack digits, and 200 is larger than any integer of 8 bits."""
    largest = 2**63 - 1 if "64" in of_type else 127
    gt = pd.DataFrame({"number": pd.array([largest, 101, 3, 120], dtype=of_type), "t": list("xyzx")})
    remedies = [
        dp.Remedy.bottom_code("number", at=110),
        dp.Remedy.group_numbers("number", edges=(200, 2**70)),
    ]
    coded, grouped = dp.compare_remedies(gt, gt, ["number"], "t", remedies).tables
    for low, high in (coded.ground_truth, grouped.ground_truth), (coded.synthetic[0], grouped.synthetic[0]):
        assert low["number"].tolist() == [largest, 110, 110, 120]
        assert high["number"].tolist() == [200] * 4


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ([], "at least one remedy"),
        ("top_code", "must be a list"),
        ([dp.Remedy.top_code], "must contain remedies"),
        (["top_code"], "must contain remedies"),
        ([dp.Remedy.top_code("k", at=3)], "this remedy needs numbers"),
        ([dp.Remedy.top_code("number", at=float("nan"))], "finite number"),
        ([dp.Remedy.top_code("number", at=10**400)], "finite number"),
        ([dp.Remedy.top_code("x", at=3)], "of a remedy is not in"),
        ([dp.Remedy.top_code(["number"], at=3)], "Column list of a remedy is not in"),  # type: ignore[arg-type]
        ([dp.Remedy.round_numbers("number", to=0)], "above 0"),
        ([dp.Remedy.smooth_numbers("number", over=1)], "whole number of at least 2"),
        ([dp.Remedy.smooth_numbers("k", over=5)], "this remedy needs numbers"),
        ([dp.Remedy.group_numbers("number", edges=(3, 3))], "ascending"),
        ([dp.Remedy.group_numbers("number", edges=())], "ascending"),
        ([dp.Remedy.group_numbers("number", edges=5)], "list of ascending numbers"),  # type: ignore[arg-type]
        ([dp.Remedy.group_numbers("number", edges="35")], "list of ascending"),  # type: ignore[arg-type]
        ([dp.Remedy.merge_levels("text", into=["a"])], "map a level"),  # type: ignore[arg-type]
        ([dp.Remedy.merge_levels("number", into={"x": "y"})], "only levels of text"),
        ([dp.Remedy.merge_small_levels("number", fewest=3)], "only levels of text"),
        *(([dp.Remedy.merge_small_levels("k", fewest=few)], "fewest must be a whole") for few in NO_COUNT),
        ([dp.Remedy.round_numbers("number", to=1)] * 2, "more than once"),
    ],
)
def test_refuses_invalid_arguments(wrong: Any, words: str) -> None:
    gt = frame([("x", 1, "y", True), ("y", 2, "x", False)])
    with pytest.raises(dp.InputError, match=words):
        dp.compare_remedies(gt, gt, ["k", "number"], "t", wrong)


def test_numbers_that_are_multiples_already_are_not_rounded_again() -> None:
    tenths = pd.DataFrame({"x": [0.1, 0.3, 0.6, 0.7, -0.3], "t": list("abcab")})
    compared = dp.compare_remedies(tenths, tenths, ["x"], "t", [dp.Remedy.round_numbers("x", to=0.1)])
    assert compared.figures["cells_changed"].tolist() == [0, 0]
    assert compared.tables[0].synthetic[0]["x"].tolist() == tenths["x"].tolist()
