"""Tables without a dictionary: a column is compared as what it reads as in all tables, or not at all."""

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from disclosure_pipeline.tables.alignment import Distinct
from disclosure_pipeline.tables.inference import canonical_distinct, canonical_frames, infer_column

TABLES = ("the ground truth", "the synthetic table")


def arrow(values: list[Any]) -> Any:
    return pa.array(values)


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
    ],
)
def test_what_is_inferred(gt: list[Any], sd: list[Any], inferred: str) -> None:
    for levels in ((arrow(gt), arrow(sd)), (arrow(sd), arrow(gt))):
        column = infer_column(levels)
        assert column is not None
        assert column.type == inferred


@pytest.mark.parametrize(
    ("gt", "sd"),
    [
        ([3, 4], [3.0, 4.5]),
        ([True], [False]),
        ([3], ["a"]),
        ([datetime.datetime(2024, 12, 31)], ["2024-12-31T10:00:00+01:00"]),
        ([None], [None]),
    ],
)
def test_what_stays_as_it_is(gt: list[Any], sd: list[Any]) -> None:
    """Values that need no reading; and those of several types, which are refused when they are compared."""
    assert infer_column((arrow(gt), arrow(sd))) is None


def test_numbers_that_were_asked_for_may_begin_with_a_zero() -> None:
    column = infer_column((arrow(["01"]), arrow(["1"])), as_number=True)
    assert column is not None
    assert column.type == "integer"


def test_one_value_among_many_that_is_no_number() -> None:
    column = infer_column((arrow([str(i) for i in range(5000)]), arrow([*map(str, range(5000)), "x"])))
    assert column is not None
    assert column.type == "category"


def test_frames_in_canonical_form() -> None:
    gt = pd.DataFrame({"n": ["3", "4", None], "t": [" a", "b", ""], "i": [1, 2, 3], "only": ["1", "2", "3"]})
    sd = pd.DataFrame({"n": ["3.0", "4.0", "4.0"], "t": ["a", "b", "b"], "i": [1.0, 2.0, 3.0]})
    (canonical_gt, canonical_sd), ledger = canonical_frames((gt, sd), TABLES)
    assert canonical_gt["n"].tolist()[:2] == [3, 4]
    assert canonical_gt["n"].isna().tolist() == [False, False, True]
    assert canonical_sd["n"].tolist() == [3, 4, 4]
    assert canonical_gt["t"].tolist()[:2] == ["a", "b"]
    assert canonical_gt["t"].isna().tolist() == [False, False, True]
    for name in ("i", "only"):
        assert canonical_gt[name].tolist() == gt[name].tolist()
    assert [(change.table, change.column, change.rule, change.records) for change in ledger] == [
        ("the ground truth", "t", "outer blanks removed", 1),
        ("the ground truth", "t", "empty text read as missing", 1),
        ("the synthetic table", "n", "number in another form, read by its value", 3),
    ]


def test_what_is_in_canonical_form_is_not_copied() -> None:
    gt = pd.DataFrame({"t": pd.Series(["a", "b"], dtype=pd.ArrowDtype(pa.string())), "i": [1, 2]})
    (canonical, _), ledger = canonical_frames((gt, gt), TABLES)
    assert canonical["t"].dtype == gt["t"].dtype
    assert np.shares_memory(canonical["i"].to_numpy(), gt["i"].to_numpy())
    assert ledger == ()


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
