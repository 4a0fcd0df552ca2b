"""Tables without a dictionary: a column is compared as what it reads as in all tables, or not at all."""

import datetime
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.figures import without_guards

import disclosure_pipeline as dp
from disclosure_pipeline.evaluation.resemblance import WHOLE_KEY
from disclosure_pipeline.tables.additions import holds_identifiers
from disclosure_pipeline.tables.coding import Distinct
from disclosure_pipeline.tables.contract import canonical_table
from disclosure_pipeline.tables.dictionary import Column, Contract
from disclosure_pipeline.tables.inference import canonical_distinct, canonical_frames, infer_column
from disclosure_pipeline.tables.record_hashes import content_sha256

TABLES = ("the ground truth", "the synthetic table")


@pytest.mark.parametrize(
    ("gt", "sd", "inferred"),
    [
        (["3", "4"], ["3.0", "4.0", None], "integer"),
        (["3", "4"], [3, 4], "integer"),
        ([3.0, 4.0], ["3"], "integer"),
        (["3", "4.5"], ["3.0"], "number"),
        (["1e-05"], ["0.00001"], "number"),
        (["+3", "-8"], ["3"], "integer"),
        (["0", "0.5", "-0.0"], ["0"], "number"),
        (["01", "2"], ["1"], "category"),
        (["1"], ["2", "007"], "category"),
        (["3", "NA"], ["3.0"], "category"),
        (["9" * 25], ["9" * 24 + "8"], "category"),
        (["a"], ["b"], "category"),
        (["2024-12-31"], [datetime.date(2024, 12, 31)], "date"),
        (["2024-12-31"], ["2024-12-31 00:00:00"], "datetime"),
        (["2024-12-31T10:00:00"], [datetime.datetime(2024, 12, 31)], "datetime"),
        (["2024-12-31T10:00:00+01:00"], ["2024-12-31T09:00:00Z"], "datetime"),
        (["2024-12-31T10:00:00+01:00"], ["2024-12-31T09:00:00"], "category"),
        (["2024-02-30"], ["2024-02-28"], "category"),
        (["True", "False"], [True, False], "boolean"),
        (["True", "False"], ["true", "false"], "boolean"),
        (["true", "false"], ["true"], "category"),
        (["", "3"], [" 4 "], "integer"),
        ([*map(str, range(5000))], [*map(str, range(5000)), "x"], "category"),
        # Values that need no reading; and those of several types, which are refused when they are compared.
        ([3, 4], [3.0, 4.5], None),
        ([True], [False], None),
        ([3], ["a"], None),
        ([datetime.datetime(2024, 12, 31)], ["2024-12-31T10:00:00+01:00"], None),
        ([None], [None], None),
    ],
)
def test_what_is_inferred(gt: list[Any], sd: list[Any], inferred: str | None) -> None:
    for tables in ((gt, sd), (sd, gt)):
        column = infer_column(tuple(map(pa.array, tables)))
        assert (column and column.type) == inferred


def test_numbers_that_were_asked_for_may_begin_with_a_zero() -> None:
    column = infer_column((pa.array(["01"]), pa.array(["1"])), as_number=True)
    assert column is not None and column.type == "integer"


def test_frames_in_canonical_form() -> None:
    """What is in it already is not copied. A column of GT alone, perhaps its unit, is read, too."""
    gt = pd.DataFrame({"n": ["3", "4", None], "t": [" a", "b", ""], "i": [1, 2, 3], "own": ["1", "2", "3"]})
    sd = pd.DataFrame({"n": ["3.0", "4.0", "4.0"], "t": ["a", "b", "b"], "i": [1.0, 2.0, 3.0]})
    frames, ledger = canonical_frames((gt, sd), TABLES)
    assert as_lists(frames[0]) == {"n": [3, 4, None], "t": ["a", "b", None], "i": [1, 2, 3], "own": [1, 2, 3]}
    assert as_lists(frames[1]) == {"n": [3, 4, 4], "t": ["a", "b", "b"], "i": [1, 2, 3]}
    assert [(change.table, change.column, change.rule, change.records) for change in ledger] == [
        ("the ground truth", "t", "outer blanks removed", 1),
        ("the ground truth", "t", "empty text read as missing", 1),
        ("the synthetic table", "n", "number in another form, read by its value", 3),
    ]
    canonical = pd.DataFrame({"t": pd.Series(["a", "b"], dtype=pd.ArrowDtype(pa.string())), "i": [1, 2]})
    (same, _), ledger = canonical_frames((canonical, canonical), TABLES)
    assert same["t"].dtype == canonical["t"].dtype
    assert np.shares_memory(same["i"].to_numpy(), canonical["i"].to_numpy())
    assert ledger == ()


def as_lists(frame: pd.DataFrame) -> dict[Any, list[Any]]:
    plain = frame.astype(object)
    return plain.where(plain.notna(), None).to_dict("list")


def test_categories_that_no_record_has_decide_nothing() -> None:
    gt = pd.DataFrame({"n": pd.Categorical(["3", "4"], categories=["3", "4", "unused"])})
    sd = pd.DataFrame({"n": ["3.0"]})
    (canonical, _), _ = canonical_frames((gt, sd), TABLES)
    assert canonical["n"].tolist() == [3, 4]


def each_once(values: list[Any]) -> Distinct:
    column = pd.Series(values)
    filled = column.dropna()
    return Distinct(filled, np.array([1] * len(filled) + [len(column) - len(filled)]))


@pytest.mark.parametrize("gt", [["3", "4", None], ["a ", "b", ""], [3, 4, 5]])
def test_distinct_values_become_what_records_become(gt: list[Any]) -> None:
    sd = ["3.0", "x"] if "a " in gt else ["3.0", "4.0"]
    frames, ledger = canonical_frames((pd.DataFrame({"c": gt}), pd.DataFrame({"c": sd})), TABLES)
    raw = [{"c": each_once(values)} for values in (gt, sd)]
    distinct, ledger_of_distinct = canonical_distinct(raw, TABLES)
    assert ledger_of_distinct == ledger
    for frame, columns in zip(frames, distinct, strict=True):
        assert set(frame["c"].dropna()) == set(columns["c"].values.dropna())
        assert columns["c"].records == len(frame)


# Two tables without a dictionary: what they share, what is warned of, and what is never compared


SECRET = "Xylophonist-4711"


DRAWN = np.random.default_rng(1)
GT = pd.DataFrame(
    {
        "sex": DRAWN.choice(["f", "m"], 200),
        "age": DRAWN.integers(20, 60, 200),
        "city": DRAWN.choice(["Łódź", "Kraków"], 200),
        "work": DRAWN.choice(["office", "field"], 200),
    }
)
KEYS = ["sex", "age", "city"]


def row(frame: Any, name: str) -> list[float]:
    figures: list[float] = frame.loc[(name, 1)].tolist()
    return figures


Records = list[tuple[str | None, str | None]]
RECORDS: st.SearchStrategy[Records] = st.lists(
    st.tuples(st.sampled_from(["1", "2", "3", None]), st.sampled_from(["a", "b", None])),
    min_size=1,
    max_size=15,
)


def share(values: Sequence[Any], others: Sequence[Any]) -> float:
    return 100 * sum(value in others for value in values) / len(values) if values else float("nan")


def key_overlap(gt: pd.DataFrame, sd: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    with without_guards():
        return dp.disclosure(gt.assign(any=0), sd.assign(any=0), keys, "any").key_overlap


@given(RECORDS, RECORDS)
def test_overlap_is_what_a_count_gives(gt: Records, sd: Records) -> None:
    columns = ["k1", "k2"]
    tables = [pd.DataFrame(records, columns=columns, dtype=object) for records in (gt, sd)]
    result = key_overlap(tables[0], tables[1], columns)
    for i, name in enumerate(columns):
        of_GT, of_SD = ([record[i] for record in records if record[i] is not None] for records in (gt, sd))
        expected = [share(of_GT, of_SD), share(of_SD, of_GT)]
        np.testing.assert_allclose(row(result, name), expected, rtol=1e-12)
    expected = [share(gt, sd), share(sd, gt)]
    np.testing.assert_allclose(row(result, WHOLE_KEY), expected, rtol=1e-12)


def test_targets_are_compared_after_grouping() -> None:
    gt = GT.assign(income=np.arange(200.0))
    sd = gt.assign(income=gt["income"] + 0.5)
    plain = dp.disclosure(gt, sd, KEYS, ["income"])
    assert row(plain.target_overlap, "income") == [0, 0]
    assert any("'income'" in text for text in plain.warnings)
    grouped = dp.disclosure(gt, sd, KEYS, ["income"], groups={"income": 5})
    assert row(grouped.target_overlap, "income") == [100, 100]
    assert grouped.warnings == ()


def test_tables_that_share_nothing_but_gaps_share_nothing() -> None:
    city: list[Any] = [None] * 150 + ["1"] * 50
    gt = GT.assign(city=city)
    sd = gt.assign(city=gt["city"].replace("1", "1.0"))
    result = dp.disclosure(gt, sd, KEYS, "work")
    assert row(result.key_overlap, "city") == [0, 0]
    assert any("'city'" in text and "how a number is written" in text for text in result.warnings)


@pytest.mark.parametrize(
    ("altered", "column", "hint"),
    [
        (GT.assign(sex=GT["sex"].str.upper()), "sex", "upper and lower case"),
        (GT.assign(sex=GT["sex"] + " "), "sex", "outer blanks"),
        (GT.assign(city=GT["city"].str.normalize("NFD")), "city", "Unicode form"),
        (GT.assign(work=GT["work"].str.upper()), "work", "upper and lower case"),
        (GT.assign(age=GT["age"] + 1e-6), "age", ""),
        (GT.assign(city=GT["city"].where(GT.index > 20, GT["city"].str.upper())), "city", "case"),
    ],
)
def test_a_column_that_is_written_otherwise_is_warned_of(
    altered: pd.DataFrame, column: str, hint: str
) -> None:
    actual = [
        text for text in dp.disclosure(GT, [GT, altered], list(KEYS), "work").warnings if repr(column) in text
    ]
    assert len(actual) == 1
    assert "synthetic table 2" in actual[0]
    assert hint in actual[0]


def test_a_warning_tells_no_value() -> None:
    gt = GT.assign(city=SECRET)
    warnings = dp.disclosure(gt, gt.assign(city=SECRET.upper()), KEYS, "work").warnings
    assert warnings
    assert SECRET.casefold() not in "".join(warnings).casefold()


def test_keys_that_are_shared_one_by_one_but_never_together_are_warned_of() -> None:
    gt = pd.DataFrame({"a": list("xy") * 50, "b": list("uv") * 50, "t": 1})
    sd = gt.assign(b=list("vu") * 50)
    warnings = dp.disclosure(gt, sd, ["a", "b"], "t").warnings
    assert len(warnings) == 2
    assert "whole key" in warnings[0] and "tells no one apart" in warnings[1]


@pytest.mark.parametrize(
    ("gt", "sd", "named"),
    [
        ([f"p{i}" for i in range(200)], [f"p{i}" for i in range(200)], True),
        ([f"p{i}" for i in range(200)], [f"q{i}" for i in range(200)], False),
        (np.linspace(1, 2, 200), np.linspace(1, 2, 200), True),
        (np.linspace(1, 2, 200), np.linspace(1.0001, 2.0001, 200), False),
    ],
)
def test_an_identifier_that_comes_back_is_warned_of(gt: Any, sd: Any, named: bool) -> None:
    warnings = dp.disclosure(GT.assign(own=gt), GT.assign(own=sd), KEYS, "work").warnings
    assert ["'own'" in text and "identifier" in text for text in warnings] == [True] * named


@given(
    st.lists(st.sampled_from(["p1", "p2", "p3", None]), min_size=1),
    st.lists(st.sampled_from(["p3", "p4"])),
)
def test_identifiers_that_come_back_are_found(gt: list[str | None], sd: list[str]) -> None:
    assert holds_identifiers(gt, sd) == any(text in gt for text in sd)


@pytest.mark.parametrize(
    "written",
    [
        *("pl-0042-x", " PL-0042-X ", "PL 0042 X", "see PL-0042-X", "PL-0042-X/2"),
        *("P\u200bL-0042-X", "\ufeffPL-0042-X", "\uff30\uff2c-0042-X", "P\u0301L-0042-X"),
        "PL-\u0660\u0660\u0664\u0662-X",
    ],
)
def test_an_identifier_is_found_however_it_is_written(written: str) -> None:
    assert holds_identifiers(["PL-0042-X", None], ["other", written])
    assert not holds_identifiers(["PL-0043-X", None], ["other", written])


def test_a_short_identifier_within_a_longer_text_is_chance() -> None:
    assert not holds_identifiers(["17", "--"], ["1789", "--", ""])


@given(RECORDS, st.randoms())
def test_the_hash_of_a_content_is_that_of_its_records(records: Records, random: Any) -> None:
    frame = pd.DataFrame(records, columns=["a", "b"], dtype="category")
    shuffled = list(records)
    random.shuffle(shuffled)
    other = pd.DataFrame(shuffled, columns=["a", "b"], dtype=object)[["b", "a"]]
    other = other.apply(lambda column: pd.Categorical(column, categories=["b", "a", "3", "2", "1", "0"]))
    assert content_sha256(other) == content_sha256(frame)
    more = pd.concat([frame.astype(object), frame.astype(object).iloc[:1]]).astype("category")
    assert content_sha256(more) != content_sha256(frame)
    assert content_sha256(frame.rename(columns={"a": "c"})) != content_sha256(frame)


@pytest.mark.parametrize(
    ("gt", "sd", "same"),
    [
        (-(2**53) - 1, float(-(2**53)), False),
        (-(2**53), float(-(2**53)), True),
        (2**53 + 1, float(2**53), False),
        (2**53, float(2**53), True),
        (2**63, -(2**63), False),
        (2**63 - 1, -(2**63), False),
        (2**63, 2**63 - 1, False),
        (2**64 - 1, -1, False),
        (2**63, 2**63, True),
        (-(2**63), -(2**63), True),
        (2**64 - 1, 2**64 - 1, True),
    ],
)
@pytest.mark.parametrize("beside", [[], [5]])
def test_whole_numbers_at_the_bounds_of_their_types(
    gt: float, sd: float, same: bool, beside: list[int]
) -> None:
    """Each by itself, and beside a small one: no two that differ are one level."""
    for first, second in ((gt, sd), (sd, gt)):
        tables = [pd.DataFrame({"k": pd.Series([number, *beside])}) for number in (first, second)]
        overlap: Any = key_overlap(tables[0], tables[1], ["k"]).loc[("k", 1)]
        expected = 100 * (same + len(beside)) / (1 + len(beside))
        assert overlap.tolist() == [expected, expected]


@pytest.mark.parametrize("dtype", ["float64", "float32", "Float64", "double[pyarrow]", "object", "category"])
def test_zero_and_minus_zero_are_one_number(dtype: Any) -> None:
    """In one column: of a frame, and of a table in canonical form."""
    tables = [
        pd.DataFrame({"k": pd.Series(zeros).astype(dtype)}) for zeros in ([0.0, -0.0, 2.0], [-0.0, 0.0, 2.0])
    ]
    overlap: Any = key_overlap(tables[0], tables[1], ["k"]).loc[("k", 1)]
    assert overlap.tolist() == [100, 100]
    assert dp.replicated_uniques(tables[0], tables[1], ["k"]).figures["n_replicated"].item() == 1


@pytest.mark.parametrize("zeros", [[0.0, -0.0, 2.0], ["0", "-0", "2"], ["-0.0", "0e3", "2."]])
def test_zero_and_minus_zero_in_canonical_form(zeros: list[Any]) -> None:
    table = canonical_table(
        pd.DataFrame({"k": zeros}), Contract({"k": Column(type="number")}, "T", ["k"], True)
    )
    assert table.frame["k"].tolist() == [0, 0, 2]
    assert len(table.frame["k"].cat.categories) == 2
    assert not np.signbit(table.frame["k"].cat.categories.to_numpy()).any()
