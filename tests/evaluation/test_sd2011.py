"""The example of Raab, Nowok & Dibben (2024): 5,000 records of Social Diagnosis 2011 and syntheses of them.

`expected.json` holds what synthpop 1.9-2 computes from these tables, as the paper prints it. Its TCAP after
exclusions can exceed 100 % and is the only figure that is not followed.
"""

import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import pandas as pd
import pytest
from reference import disclosure as reference
from reference.disclosure import Record, Row
from support.paths import SD2011
from support.strategies import library_exclusions

import disclosure_pipeline as dp

pytestmark = pytest.mark.skipif(
    not (SD2011 / "expected.json").exists(),
    reason=f"the example data are not there: {SD2011} has no expected.json",
)

TARGETS = ("depress", "income", "ls", "marital", "workab")
CASES = (
    *(f"section2_{target}" for target in TARGETS),
    *(f"denom1_{target}" for target in TARGETS),
    "section3_m5_depress",
)
EXCLUDED = {
    "target_levels": "excluded target",
    "missing_target": "missing target",
    "missing_key": "missing in  keys",
    "pairs": "set to exclude",
    "count_over": "over denom_lim",
    "remaining": "remaining",
}
ONE_WAY = {
    "level": "Level",
    "level_records": "All",
    "pct_level_all": "PctLevelAll",
    "total_disclosive": "totalDisclosive",
    "n_level_disclosive": "nLevelDis",
    "pct_level_disclosive": "PctLevelDis",
}
TWO_WAY = {
    "key": "key",
    "npairs": "npairs",
    "key_target_total": "key_target_total",
    "key_total": "key_total",
    "pct_target_key_level": "PctTargetKeyLevel",
}

Case = Mapping[str, Any]


@cache
def expected() -> Mapping[str, Case]:
    """Every case with its figures."""
    actual: Mapping[str, Case] = json.loads((SD2011 / "expected.json").read_text(encoding="utf-8"))
    return actual


@cache
def frame(name: str) -> pd.DataFrame:
    """A table, in which only an empty field is a missing value."""
    return pd.read_csv(SD2011 / name, keep_default_na=False, na_values=[""])


@cache
def records(name: str) -> list[Record]:
    """The same table as records."""
    table = frame(name).astype(object)
    return [
        {str(column): None if pd.isna(value) else value for column, value in row.items()}
        for row in table.to_dict("records")
    ]


def options_of(case: Case) -> tuple[list[str], dict[str, Any], reference.Exclusions]:
    """The synthetic tables, groups and special values, and exclusions of a case."""
    names = case["synthetic"]
    groups = {case["target"]: case["ngroups_target"]} if case.get("ngroups_target") else {}
    used = (*case["keys"], case["target"])
    special_values = {column: [code] for column, code in case.get("cont_na", {}).items() if column in used}
    limit = case["denom_lim"] if case.get("exclude_ov_denom_lim") else None
    options = {"groups": groups, "special_values": special_values}
    return [names] if isinstance(names, str) else names, options, reference.Exclusions(count_over=limit)


def rows_of(table: pd.DataFrame) -> list[Row]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def by_index(table: pd.DataFrame) -> dict[Any, Row]:
    return dict(zip(table.index, rows_of(table), strict=True))


def by_library(case: Case) -> reference.Result:
    names, options, exclusions = options_of(case)
    gt, *syntheses = map(frame, ("ground_truth.csv", *names))
    exclude = library_exclusions(exclusions)
    result = dp.disclosure(gt, syntheses, case["keys"], case["target"], exclude=exclude, **options)
    return reference.Result(
        identity=by_index(result.identity),
        attribute=by_index(result.attribute),
        cap=by_index(result.cap),
        identity_after_exclusions=by_index(result.identity_after_exclusions),
        one_way=rows_of(result.one_way),
        two_way=rows_of(result.two_way),
        excluded=by_index(result.excluded),
    )


def by_reference(case: Case) -> reference.Result:
    names, options, exclusions = options_of(case)
    gt, *syntheses = map(records, ("ground_truth.csv", *names))
    return reference.disclosure(
        gt, syntheses, case["keys"], [case["target"]], exclusions=exclusions, **options
    )


def assert_figures(actual: Row, wanted: Row, names: Mapping[str, str] | None = None) -> None:
    """Every figure that is wanted is found, under its own name or by another."""
    names = names or {name: name for name in wanted}
    figures = {name: actual[name] for name in names}
    assert figures == pytest.approx({name: wanted[theirs] for name, theirs in names.items()}, rel=1e-9)


def assert_flags(actual: list[Row], wanted: list[Row] | None, names: Mapping[str, str]) -> None:
    """The same flags, in the same order."""
    assert len(actual) == len(wanted or [])
    for row, wanted_row in zip(actual, wanted or [], strict=True):
        texts = [name for name in names if isinstance(row[name], str)]
        assert [row[name] for name in texts] == [wanted_row[names[name]] for name in texts]
        numbers = {name: theirs for name, theirs in names.items() if name not in texts}
        assert_figures(row, wanted_row, numbers)


def test_every_case_is_known() -> None:
    """No case is left out."""
    assert set(expected()) == set(CASES)


@pytest.mark.parametrize("compute", [by_library, by_reference])
@pytest.mark.parametrize("name", CASES)
def test_figures(name: str, compute: Callable[[Case], reference.Result]) -> None:
    """Every figure of the file, for every case and every synthesis."""
    case = expected()[name]
    wanted = case["expected"]
    actual = compute(case)
    assert set(wanted) == {"ident", "attrib", "allCAPs", "check_1way", "check_2way", "Nexclusions"}
    for synthesis, identity in enumerate(wanted["ident"], start=1):
        at = (case["target"], synthesis)
        place = synthesis - 1
        assert_figures(actual.identity_after_exclusions[at], identity)
        if "denom_lim" not in case:
            assert_figures(actual.identity[synthesis], identity)
        assert_figures(actual.attribute[at], wanted["attrib"][place])
        caps = dict(wanted["allCAPs"][place])
        if "denom_lim" in case:
            attribute = wanted["attrib"][place]
            caps["TCAP"] = 100 * attribute["DiSCO"] / attribute["iS"]
        assert_figures(actual.cap[at], caps)
        for row in wanted["Nexclusions"][place]:
            assert_figures(actual.excluded[case["target"], synthesis, row["_row"]], row, EXCLUDED)
        one_way = [row for row in actual.one_way if row["synthesis"] == synthesis]
        assert_flags(one_way, wanted["check_1way"][place], ONE_WAY)
        two_way = [row for row in actual.two_way if row["synthesis"] == synthesis]
        assert_two_way(two_way, wanted["check_2way"][place])


def assert_two_way(actual: list[Row], wanted: list[Row] | None) -> None:
    """The same pairs with the same figures, in any order."""

    def pair(row: Row) -> str:
        return f"{row['key']}: {row['target_level']}|{row['key_level']}"

    def wanted_pair(row: Row) -> str:
        return f"{row['key']}: {row['target_key_levs']}"

    actual = sorted(actual, key=pair)
    wanted = sorted(wanted or [], key=wanted_pair)
    assert [pair(row) for row in actual] == [wanted_pair(row) for row in wanted]
    assert_flags(actual, wanted, TWO_WAY)
