"""Labels and missing codes of SPSS and Stata files, as a draft of the dictionary writes them."""

import datetime as dt
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyreadstat
import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from support.gates import run_command

from disclosure_pipeline.tables.canonical import read_levels
from disclosure_pipeline.tables.descriptions import MOST_LABELS, Code, Description
from disclosure_pipeline.tables.dictionary import LONGEST_LABEL
from disclosure_pipeline.tables.encoding import arrow_array
from disclosure_pipeline.tables.inference import Draft, draft
from disclosure_pipeline.tables.sources import read_descriptions, read_raw


def drafted(path: Path, frame: pd.DataFrame, **labels: Any) -> Draft:
    pyreadstat.write_sav(frame, path, **labels)
    return draft(read_raw(path, "T"), descriptions=read_descriptions(path, "T"))


def column(values: Any, tmp_path: Path, **labels: Any) -> dict[str, Any]:
    """Return the entries that are drafted for one column, with its note."""
    by_column = {name: {"a": labels[name]} for name in labels}
    result = drafted(tmp_path / "t.sav", pd.DataFrame({"a": values}), **by_column)
    entries = result.columns["a"].model_dump(mode="json", exclude_defaults=True)
    return entries | {"note": result.notes.get("a", "")}


def test_labels_are_levels(tmp_path: Path) -> None:
    """Also one that no record has, and one of few records: they are the file's codebook."""
    labels = {1: "male", 2: "female", 3: "other", 4: "unknown "}
    entries = column([1, 2] * 20 + [3], tmp_path, variable_value_labels=labels)
    assert entries == {
        "type": "category",
        "levels": [
            {"level": "male", "aliases": ["1"]},
            {"level": "female", "aliases": ["2"]},
            {"level": "other", "aliases": ["3"]},
            {"level": "unknown", "aliases": ["4"]},
        ],
        "note": "",
    }


def test_an_ordinal_column_keeps_its_order(tmp_path: Path) -> None:
    labels = {3: "bad", 1: "good", 2: "fair"}
    entries = column([1, 2, 3] * 20, tmp_path, variable_value_labels=labels, variable_measure="ordinal")
    assert entries["type"] == "ordered category"
    assert [level["level"] for level in entries["levels"]] == ["good", "fair", "bad"]


def test_texts_have_labels_too(tmp_path: Path) -> None:
    entries = column(
        ["f", "m", "x"] * 20,
        tmp_path,
        variable_value_labels={"f": "female", "m": "male", "x": "refused"},
        missing_ranges=["x"],
    )
    assert entries["missing_codes"] == ["x"]
    assert entries["levels"] == [
        {"level": "female", "aliases": ["f"]},
        {"level": "male", "aliases": ["m"]},
    ]


@pytest.mark.parametrize(
    ("labels", "missing", "special", "codes"),
    [
        ({-8: "not asked"}, [], [-8], []),
        ({-8: "not asked", -9: "refused"}, [-9], [-8], [-9]),
        ({-8: "not asked", -9: "refused"}, [{"lo": -9, "hi": -7}], [], [-9, -8, -7]),
        ({-8: "not asked", -9: "refused"}, [{"lo": -1e6, "hi": -8}], [], [-9, -8]),
        ({97: "many"}, [], [97], []),
        ({0: "none", 4: "four or more"}, [], [], []),
        ({0: "none"}, [99], [], [99]),
    ],
)
def test_partly_labelled_columns_are_numbers(
    labels: Any, missing: Any, special: Any, codes: Any, tmp_path: Path
) -> None:
    """The ends of a scale are numbers; codes beyond the others are special values."""
    values = [0, 1, 2, 3, 4] * 20 + [value for value in (-8, -9, 97) if value in labels]
    entries = column(values, tmp_path, variable_value_labels=labels, missing_ranges=missing)
    assert entries["type"] == "integer"
    assert entries.get("special_values", []) == special
    assert sorted(entries.get("missing_codes", [])) == codes
    low, high = entries["range"]
    assert low in {0, -10} and high < 20, "special values do not widen the range"


def test_numbers_with_decimals(tmp_path: Path) -> None:
    values = [0.5, 1.25, 2.0, -8] * 20
    entries = column(values, tmp_path, variable_value_labels={-8: "not asked"})
    assert entries["type"] == "number" and entries["special_values"] == [-8]


@pytest.mark.parametrize("suffix", [".sav", ".dta"])
@pytest.mark.parametrize(
    ("written", "label", "description"),
    [
        ("Sex of the respondent ", "Sex of the respondent", ""),
        (long := "x" * (LONGEST_LABEL + 1), "", long),
        ("x" * LONGEST_LABEL, "x" * LONGEST_LABEL, ""),
        ("SEX", "", ""),  # the column's own name
        (" ", "", ""),
        (None, "", ""),
        ("born", "", "born"),  # the name of another column
        ("Day of birth", "", "Day of birth"),  # the label of another column
    ],
)
def test_a_label_of_a_variable(
    written: str | None, label: str, description: str, suffix: str, tmp_path: Path
) -> None:
    frame = pd.DataFrame({"sex": [1, 2] * 20, "born": [dt.date(2000, 1, 1), dt.date(2001, 2, 3)] * 20})
    path = tmp_path / f"t{suffix}"
    write: Any = {".sav": pyreadstat.write_sav, ".dta": pyreadstat.write_dta}[suffix]
    write(frame, path, column_labels={"sex": written, "born": "day of birth"})
    columns = draft(read_raw(path, "T"), descriptions=read_descriptions(path, "T")).columns
    assert (columns["sex"].label, columns["sex"].description) == (label, description)
    alone = written != "Day of birth"
    assert columns["born"].type == "date"
    assert (columns["born"].label or columns["born"].description) == "day of birth"
    assert bool(columns["born"].label) == alone


MANY = {code: f"place {code}" for code in range(MOST_LABELS + 1)}
THEMSELVES = ": its levels are the values themselves"
MANY_LABELS = f"more than {MOST_LABELS} values have labels{THEMSELVES}"
MANY_LABELS += "; has more than 50 levels: add them if they are known"


@pytest.mark.parametrize(
    ("values", "labels", "levels", "note"),
    [
        *(
            ([1, 2, 3], labels, ["1", "2", "3"], why + THEMSELVES)
            for labels, why in (
                ({1: "yes", 2: "no", 3: "no"}, "several values have the label 'no'"),
                ({1: "yes", 2: "no", 3: " no"}, "several values have the label 'no'"),
                ({1: "2", 2: "1", 3: "x"}, "the label '2', '1' is also a value"),
                ({1: "yes", 2: "no", 3: " "}, "a value has an empty label"),
            )
        ),
        (["f", "m", "zz"], {"f": "F", "m": "M"}, ["f", "m", "zz"], "some values have no label" + THEMSELVES),
        ([*MANY], MANY, [], MANY_LABELS),
        ([np.nan], {1: "yes", 2: "no"}, ["yes", "no"], ""),
    ],
)
def test_labels_that_are_no_levels(
    values: list[Any], labels: Any, levels: list[str], note: str, tmp_path: Path
) -> None:
    """No two values become one."""
    result = drafted(
        tmp_path / "t.sav", pd.DataFrame({"a": values * 20}), variable_value_labels={"a": labels}
    )
    entries = result.columns["a"].model_dump(exclude_defaults=True)
    assert entries["type"] == "category"
    assert list(result.columns["a"].level_names or ()) == levels
    assert result.notes.get("a", "") == note
    assert not note or "aliases" not in str(entries)


def test_letters_of_stata_have_no_level(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1, "a", 2, "b"] * 20})
    labels: Any = {"a": {1: "yes", 2: "no", "a": "refused"}}
    path = tmp_path / "t.dta"
    pyreadstat.write_dta(frame, path, missing_user_values={"a": ["a", "b"]}, variable_value_labels=labels)
    result = draft(read_raw(path, "T"), descriptions=read_descriptions(path, "T"))
    assert result.columns["a"].level_names == ("yes", "no")


def test_other_files_have_no_descriptions(tmp_path: Path) -> None:
    frame = pd.DataFrame({"A": [1, 2]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert read_descriptions(tmp_path / "t.csv", "T") == {}
    pyreadstat.write_xport(frame, tmp_path / "t.xpt", column_labels={"A": "a label"})
    assert read_descriptions(tmp_path / "t.xpt", "T")["A"].entries == {"label": "a label"}


def test_a_schema_is_completed_by_what_the_table_says_itself(tmp_path: Path) -> None:
    """SDV knows no labels, and calls a column that has some numbers."""
    labels: Any = {"sex": {1: "male", 2: "female"}, "kids": {-8: "not asked"}}
    frame = pd.DataFrame({"sex": [1, 2, 2, 1] * 20, "kids": [0, 1, 2, -8] * 20})
    names: Any = {"sex": "sex of the person", "kids": "number of children"}
    pyreadstat.write_sav(frame, tmp_path / "t.sav", column_labels=names, variable_value_labels=labels)
    arguments = ("dictionary", "draft", tmp_path / "t.sav", "--confidential")

    def drafted(**types: str) -> str:
        columns = {name: {"sdtype": kind} for name, kind in types.items()}
        (tmp_path / "t.json").write_text(json.dumps({"tables": {"t": {"columns": columns}}}))
        return run_command(*arguments, "--from", tmp_path / "t.json").stdout

    alone = run_command(*arguments).stdout
    assert drafted(sex="categorical", kids="numerical") == alone
    columns = yaml.safe_load(alone)["columns"]
    assert columns["sex"]["levels"][0] == {"level": "male", "aliases": ["1"]}
    assert columns["kids"]["special_values"] == [-8]
    columns = yaml.safe_load(drafted(sex="id"))["columns"]
    assert columns["sex"] == {"type": "text identifier", "label": "sex of the person"}


def test_labels_of_texts_say_nothing_of_numbers(tmp_path: Path) -> None:
    """The file with the labels is of another wave, in which the column was coded by letters."""
    labels: Any = {"sex": {"F": "female", "M": "male", "9": "not asked"}}
    pyreadstat.write_sav(pd.DataFrame({"sex": ["F", "M"]}), tmp_path / "t.sav", variable_value_labels=labels)
    pd.DataFrame({"sex": [1, 2, 2, 9] * 20}).to_csv(tmp_path / "t.csv", index=False)
    ran = run_command("dictionary", "draft", tmp_path / "t.csv", "--synthetic", "--from", tmp_path / "t.sav")
    assert ran.exit_code == 0, ran.output
    sex = yaml.safe_load(ran.stdout)["columns"]["sex"]
    assert (sex["type"], sex["special_values"]) == ("integer", [9])
    assert "labels of texts are left out" in ran.stdout


codes = st.integers(-3, 12)
texts = st.sampled_from(["yes", "no", "1", "2", " no ", "", "é", "e\u0301"])


@given(st.dictionaries(codes, texts, max_size=8), st.lists(codes, min_size=1, max_size=12), st.lists(codes))
@example({2: "1"}, [0, 2], [0, 1])
@example({2: "1"}, [0], [0, 1])
@example({0: "yes", 2: "yes", 3: "1"}, [1], [])
@example({0: "1"}, [0, 1], [])
def test_no_two_values_become_one(labels: dict[Code, str], values: list[int], missing: list[int]) -> None:
    """However the labels are, each value is read, and by itself, unless it is missing."""
    described = Description({"missing_codes": tuple(dict.fromkeys(missing))}, labels)
    result = draft(pd.DataFrame({"a": values * 10}), descriptions={"a": described}).columns["a"]
    distinct = sorted(set(values))
    read = read_levels(result, arrow_array(distinct))
    assert read.missing.tolist() == [value in missing for value in distinct]
    assert not read.unreadable.any() and not read.unknown.any() and not read.outside.any()
    kept = [value for value in read.values.to_pylist() if value is not None]
    assert len(kept) == len(set(kept)) == len(set(values) - set(missing))
