"""The data dictionary: what it declares, what its declarations make of values, and its first draft."""

import json
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from support.gates import run_command
from support.paths import PACKAGE

from disclosure_pipeline.errors import DisclosurePipelineError, InputError
from disclosure_pipeline.tables.canonical import Levels, read_levels
from disclosure_pipeline.tables.contract import CanonicalTable, canonical_table
from disclosure_pipeline.tables.dictionary import Column, Contract, ContractError
from disclosure_pipeline.tables.encoding import arrow_array
from disclosure_pipeline.tables.inference import draft

UNREADABLE = object()


def column(type_: str, **declared: Any) -> Column:
    return Column.model_validate({"type": type_, **declared})


def read(declared: Column, raw: Any) -> Levels:
    return read_levels(declared, raw if isinstance(raw, pa.Array) else arrow_array(raw))


def make_canonical(data: Any, **columns: Column) -> CanonicalTable:
    return canonical_table(pd.DataFrame(data), Contract(columns, "T", (), True))


def values(declared: Column, raw: Any) -> list[Any]:
    """Return canonical values: None for missing ones, UNREADABLE for those not of the type."""
    actual = read(declared, raw)
    return [
        UNREADABLE if unreadable else value
        for value, unreadable in zip(actual.values.to_pylist(), actual.unreadable, strict=True)
    ]


SEX: dict[str, Any] = {
    "levels": [
        {"level": "male", "label": "Male", "aliases": ["m", "1"]},
        {"level": "female", "aliases": ["f"]},
    ]
}
IN_NANOSECONDS = np.array(["2024-05-01T00:00:00.000000001", "2024-05-01"], "datetime64[ns]")


@pytest.mark.parametrize(
    ("declared", "raw", "expected"),
    [
        (column("category"), [" M", "M ", "\u00a0M", "M"], ["M"] * 4),
        (column("category"), ["e\u0301", "\u00e9"], ["\u00e9", "\u00e9"]),
        *((column("category"), texts, texts) for texts in
          (["01", "1", "1e5", "NA", "nan", "1.0"], ["None", "null", "true", "-"])),
        (column("category"), ["", "  ", None], [None, None, None]),
        (column("category"), [1, 2], ["1", "2"]),
        (column("category"), [1.0, 2.5, float("nan")], ["1", "2.5", None]),
        (column("category", missing_codes=["NA", -9]), ["NA", "-9", "na"], [None, None, "na"]),
        (column("category", **SEX), ["m", "male", "1", "f ", None], ["male"] * 3 + ["female", None]),
        (column("text identifier"), ["a-1", " a-2"], ["a-1", "a-2"]),
        (column("integer"), ["34", "034", "+34", "34.0", "34.", "-0"], [34, 34, 34, 34, 34, 0]),
        (column("integer"), ["34.5", "1e2", "0x10", "1_0", "", "٣"], [UNREADABLE] * 4 + [None, UNREADABLE]),
        (column("integer"), [34.0, 34.5, float("inf")], [34, UNREADABLE, UNREADABLE]),
        (column("integer"), [2.0**53 - 1, 2.0**53], [2**53 - 1, UNREADABLE]),
        (column("integer"), ["9007199254740993"], [9007199254740993]),
        (column("integer"), [True], [UNREADABLE]),
        (column("integer"), [Decimal("3.00"), Decimal("3.50")], [3, UNREADABLE]),
        (column("integer"), pa.array([2**63], pa.uint64()), [UNREADABLE]),
        (column("integer", missing_codes=[-8]), ["-8", "-8.0", "-08", "8"], [None, None, None, 8]),
        (column("integer", missing_codes=[-8]), [20.0, float("nan"), -8.0], [20, None, None]),
        (column("integer", missing_codes=["refused", -9, -99]), ["1", "-9", "-99"], [1, None, None]),
        (column("integer", missing_codes=["?"]), ["?", "1"], [None, 1]),
        *((column("integer", missing_codes=[code]), pa.array([code, 1]), [None, 1])
          for code in (9999999999999999, 2**63 - 1, -(2**63))),
        (column("number"), ["1", "1.0", "1e0", "+1.", "0.10", ".1", "-2.50", "1E2"],
         [1, 1, 1, 1, 0.1, 0.1, -2.5, 100]),
        (column("number"), ["nan", "inf", "1,5", "1 000", "-"], [UNREADABLE] * 5),
        (column("number"), ["1e400", "1e-400", "0e0"], [UNREADABLE, UNREADABLE, 0.0]),
        (column("number"), ["9007199254740993", "9007199254740991"], [UNREADABLE, 2.0**53 - 1]),
        (column("number"), [2**53 + 1, 2**53 - 1], [UNREADABLE, 2.0**53 - 1]),
        (column("number"), [Decimal("0.10"), Decimal("0.30")], [0.1, 0.3]),
        (column("number", missing_codes=[-9]), [-9.0, 9.0], [None, 9.0]),
        (column("number", missing_codes=["refused", -9]), ["0.5", "-9", "-9.0", "-09", "refused"],
         [0.5, None, None, None, None]),
        (column("boolean"), ["true", "True", "TRUE", "false", "False", "FALSE", "yes", "1"],
         [True, True, True, False, False, False, UNREADABLE, UNREADABLE]),
        (column("boolean"), [True, False], [True, False]),
        (column("boolean"), [1, 0], [UNREADABLE, UNREADABLE]),
        (column("boolean", true_values=["T", 1], false_values=["F", 0]), ["T", "1", "F", "true"],
         [True, True, False, UNREADABLE]),
        (column("boolean", true_values=["T", 1], false_values=["F", 0]), [1.0, 0.0], [True, False]),
        (column("date"), ["2024-02-29", "2023-02-29", "0000-01-01", "9999-12-31", "31.12.2024"],
         [datetime(2024, 2, 29), UNREADABLE, UNREADABLE, datetime(9999, 12, 31), UNREADABLE]),
        (column("date"), ["1900-02-29", "2000-02-29", "2024-00-10", "2024-13-01", "2024-04-31"],
         [UNREADABLE, datetime(2000, 2, 29), UNREADABLE, UNREADABLE, UNREADABLE]),
        (column("date", date_format="%d.%m.%Y"), ["31.12.2024", "31.12.9999", "2024-12-31", "30.02.2024"],
         [datetime(2024, 12, 31), datetime(9999, 12, 31), UNREADABLE, UNREADABLE]),
        (column("date"), [date(2024, 5, 1)], [datetime(2024, 5, 1)]),
        (column("date"), [datetime(2024, 5, 1), datetime(2024, 5, 1, 12)],
         [datetime(2024, 5, 1), UNREADABLE]),
        (column("date", missing_codes=["9999-99-99"]), ["9999-99-99"], [None]),
        (column("datetime"), ["2024-05-01T12:30", "2024-05-01 12:30:00", "2024-05-01", "2024-05-01 24:00"],
         [datetime(2024, 5, 1, 12, 30), datetime(2024, 5, 1, 12, 30), datetime(2024, 5, 1), UNREADABLE]),
        (column("datetime"), pa.array(IN_NANOSECONDS), [UNREADABLE, datetime(2024, 5, 1)]),
        (column("datetime"), ["2024-05-01T12:30Z"], [UNREADABLE]),
        (column("datetime"), ["2024-05-01T12:30:00.1234567"], [UNREADABLE]),
        (column("datetime", time_zone="Europe/Warsaw"), ["2024-05-01T12:30", "2024-05-01T10:30Z",
                                                         "2024-05-01T12:30+02:00"],
         [datetime(2024, 5, 1, 10, 30)] * 3),
        # An hour that the zone never has, and one that it has twice.
        (column("datetime", time_zone="Europe/Warsaw"), ["2024-03-31T02:30", "2024-10-27T02:30"],
         [UNREADABLE, UNREADABLE]),
        (column("datetime"), [datetime(2024, 5, 1, tzinfo=timezone.utc)], [UNREADABLE]),
        (column("datetime", time_zone="UTC"), [datetime(2024, 5, 1, 2, tzinfo=timezone(timedelta(hours=2)))],
         [datetime(2024, 5, 1)]),
        (column("datetime", date_format="%d/%m/%Y %H:%M"), ["01/05/2024 12:30", "05/31/2024 12:30"],
         [datetime(2024, 5, 1, 12, 30), UNREADABLE]),
        (column("datetime", date_format="%Y-%m-%d %H:%M%z", time_zone="UTC"),
         ["2024-05-01 12:30+0200", "9999-12-31 23:59+0000", "9999-12-31 23:59-0500", "0001-01-01 00:00+0100"],
         [datetime(2024, 5, 1, 10, 30), datetime(9999, 12, 31, 23, 59), UNREADABLE, UNREADABLE]),
    ],
)  # fmt: skip
def test_values_are_read_as_declared(declared: Column, raw: Any, expected: list[Any]) -> None:
    assert values(declared, raw) == expected


@given(st.integers(-(10**17), 10**17), st.sampled_from(["{}", "{}.0", "{}.", " {} ", "{}.000"]))
def test_an_integer_is_its_value_however_it_is_written(number: int, form: str) -> None:
    assert values(column("integer"), [form.format(number)]) == [number]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_survives_being_written(number: float) -> None:
    as_text, typed = values(column("number"), [repr(number)]), values(column("number"), [number])
    assert as_text in (typed, [UNREADABLE])
    assert typed == [number]
    assert (as_text == [UNREADABLE]) is ("." not in repr(number) and "e" not in repr(number))


@given(st.dates())
def test_a_day_survives_being_written(day: date) -> None:
    midnight = datetime(day.year, day.month, day.day)
    assert values(column("date"), [day.isoformat()]) == [midnight]
    assert values(column("date"), [day]) == [midnight]
    text = f"{day.day:02}.{day.month:02}.{day.year:04}"
    assert values(column("date", date_format="%d.%m.%Y"), [text]) == [midnight]


def test_an_unknown_level_is_refused_unless_the_column_says_otherwise() -> None:
    raw = pd.DataFrame({"sex": ["m", "f", "x", "x"]})
    with pytest.raises(ContractError) as refused:
        canonical_table(raw, Contract({"sex": column("category", **SEX)}, "T", ["sex"], only_known=True))
    assert [(v.rule, v.records) for v in refused.value.violations] == [
        ("is not among the declared levels", 2)
    ]
    kept = make_canonical(raw, sex=column("category", **SEX, unknown_levels="keep"))
    assert list(kept.frame["sex"]) == ["male", "female", "x", "x"]
    assert ("unknown level kept", 2) in [(change.rule, change.records) for change in kept.ledger]
    mapped = make_canonical(raw, sex=column("category", **SEX, unknown_levels={"map_to": "female"}))
    assert list(mapped.frame["sex"]) == ["male", "female", "female", "female"]
    assert ("unknown level mapped", 2) in [(change.rule, change.records) for change in mapped.ledger]


def test_an_ordered_category_keeps_the_order_of_its_levels() -> None:
    declared = column("ordered category", levels=["low", "middle", "high"], unknown_levels="keep")
    frame = make_canonical({"x": ["high", "?", "low"]}, x=declared).frame
    assert list(frame["x"].cat.categories) == ["low", "high", "?"]
    assert frame["x"].cat.ordered


def test_the_ledger_counts_the_records_that_each_rule_changed() -> None:
    raw = pd.DataFrame(
        {
            "sex": ["m", " m", "male", "e\u0301", "f"],
            "age": ["34.0", "34", "-8", "", "035"],
            "seen": ["2024-05-01T12:30Z", "2024-05-01T12:30", None, None, None],
            "ok": ["yes", "true", "no", "true", "yes"],
        }
    )
    dictionary = {
        "sex": column("category", **SEX, unknown_levels="keep"),
        "age": column("integer", missing_codes=[-8]),
        "seen": column("datetime", time_zone="Europe/Warsaw"),
        "ok": column("boolean", true_values=["true", "yes"], false_values=["no"]),
    }
    ledger = make_canonical(raw, **dictionary).ledger
    assert {(change.column, change.rule): change.records for change in ledger} == {
        ("sex", "outer blanks removed"): 1,
        ("sex", "brought to Unicode form NFC"): 1,
        ("sex", "alias replaced by its level"): 3,
        ("sex", "unknown level kept"): 1,
        ("age", "number in another form, read by its value"): 2,
        ("age", "missing code read as missing"): 1,
        ("age", "empty text read as missing"): 1,
        ("seen", "time brought to UTC"): 2,
        ("ok", "other spelling of true or false"): 2,
    }
    same = pd.DataFrame({"a": ["x", "y"], "n": [1, 2], "f": [0.5, 1.5], "d": ["2024-01-01", "2024-01-02"]})
    declared = {"a": column("category"), "n": column("integer"), "f": column("number"), "d": column("date")}
    assert make_canonical(same, **declared).ledger == ()


@pytest.mark.parametrize(
    ("declared", "raw", "outside"),
    [
        (column("integer", range=[0, 120], special_values=[-8]), ["0", "120", "-8", "-1", "121", None],
         [False, False, False, True, True, False]),
        (column("number", range=[0, 1]), [0.0, 1.0, 1.0000001], [False, False, True]),
        (column("date", range=["1900-01-01", "2024-12-31"]), ["1900-01-01", "2025-01-01", "1899-12-31"],
         [False, True, True]),
        (column("datetime", range=["2024-01-01", "2024-12-31"]), ["2024-12-31T23:59", "2025-01-01T00:00"],
         [False, True]),
        (column("datetime", range=["2024-01-01", "2024-12-31"], time_zone="Europe/Warsaw"),
         ["2023-12-31T23:59", "2024-01-01T00:00", "2024-12-31T23:59", "2025-01-01T00:00", "2024-12-31T23:30Z",
          None], [True, False, False, True, True, False]),
    ],
)  # fmt: skip
def test_finds_values_outside_the_range(declared: Column, raw: list[Any], outside: list[bool]) -> None:
    assert list(read(declared, raw).outside) == outside


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        ({"type": "text"}, "type"),
        ({"type": "category", "level": ["a"]}, "level"),
        ({"type": "category", "range": [0, 1]}, "range is for numbers"),
        ({"type": "integer", "levels": ["1"]}, "levels are for a category"),
        ({"type": "integer", "range": ["2024-01-01", "2024-12-31"]}, "must be two numbers"),
        ({"type": "date", "range": [0, 1]}, "must be two days"),
        ({"type": "integer", "range": [2, 1]}, "smallest, largest"),
        ({"type": "integer", "range": [float("nan"), 1]}, "smallest, largest"),
        ({"type": "ordered category"}, "needs its levels"),
        ({"type": "category", "levels": ["a", "a"]}, "more than once"),
        ({"type": "category", "levels": ["a", {"level": "b", "aliases": ["a"]}]}, "more than once"),
        ({"type": "category", "levels": ["a "]}, "blank"),
        ({"type": "category", "levels": ["a"], "missing_codes": ["a"]}, "level and a missing code"),
        ({"type": "category", "levels": ["9"], "missing_codes": [9.0]}, "level and a missing code"),
        ({"type": "category", "unknown_levels": {"map_to": "a"}}, "declare levels"),
        ({"type": "integer", "unknown_levels": "keep"}, "is for a category"),
        ({"type": "integer", "decimals": 2}, "decimals are for numbers with decimals"),
        ({"type": "number", "decimals": -1}, "decimals"),
        ({"type": "text identifier", "published": True}, "never published"),
        ({"type": "category", "levels": ["a"], "unknown_levels": {"map_to": "b"}}, "is not a level"),
        ({"type": "boolean", "true_values": ["y"], "false_values": ["y"]}, "true and false at once"),
        ({"type": "boolean", "true_values": []}, "at least one spelling each"),
        ({"type": "boolean", "missing_codes": ["false"]}, "false and a missing code"),
        ({"type": "boolean", "true_values": [1], "false_values": [0], "missing_codes": [0]}, "missing code"),
        ({"type": "datetime", "time_zone": "Mars/Olympus"}, "not a time zone"),
        ({"type": "date", "time_zone": "UTC"}, "time_zone is for a datetime"),
        ({"type": "date", "date_format": "DD.MM.YYYY"}, "not a format"),
        ({"type": "date", "date_format": "%-d.%m.%Y"}, "not a format"),
        ({"type": "date", "date_format": "%d.%m.%Y %"}, "not a format"),
        ({"type": "date", "date_format": "%Y %Y"}, "not a format"),
        ({"type": "date", "date_format": "%G-%V"}, "not a format"),
        ({"type": "category", "unit": "EUR"}, "unit is for numbers"),
        ({"type": "category", "levels": [True, False]}, "string"),
    ],
)
def test_a_contradiction_in_the_dictionary_is_refused(declared: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        Column.model_validate(declared)


SECRET = "the-only-one-of-its-kind"


def example() -> pd.DataFrame:
    n = 200
    return pd.DataFrame(
        {
            "region": [SECRET, "rare"] + ["north", "south"] * (n // 2 - 1),
            "age": [97_531] + list(range(20, 60)) * 4 + [33] * (n - 161),
            "weight": [12345.678] + [0.5, 1.5] * (n // 2 - 1) + [2.5],
            "born": ["1871-03-17"] + ["1980-01-01", "1990-01-01"] * (n // 2 - 1) + ["1980-01-01"],
            "member": ["true", "false"] * (n // 2),
            "person": [f"{SECRET}-{i}" for i in range(n)],
            "town": [f"{SECRET}-{i % 60}" for i in range(n)],
            "nothing": [None] * n,
        }
    )


def test_a_draft_reveals_no_value_that_few_records_have() -> None:
    drafted = draft(example())
    assert {name: declared.type for name, declared in drafted.columns.items()} == {
        **{"region": "category", "age": "integer", "weight": "number", "born": "date", "member": "boolean"},
        **{"person": "text identifier", "town": "category", "nothing": "category"},
    }
    assert drafted.columns["region"].level_names == ("north", "south")
    text = drafted.to_yaml()
    for secret in (SECRET, "rare", "97531", "12345", "1871", "20", "59"):
        assert secret not in text.replace("fewer", "")
    assert "fewer than 10 records are not written" in text
    ranges = {name: declared.range for name, declared in drafted.columns.items() if declared.range}
    assert ranges["age"] == (0, 100_000)
    assert ranges["weight"] == (0.5, 100_000)  # half of the records have the smallest one
    assert ranges["born"] == (date(1000, 1, 1), date(1990, 12, 31))


def test_a_drafted_range_is_written_as_people_write_it() -> None:
    columns = {"age": [18, 67] * 20, "share": [0.12, 0.65] * 20, "day": [pd.Timestamp("2024-05-06")] * 40}
    written = yaml.safe_load(draft(pd.DataFrame(columns)).to_yaml())["columns"]
    assert [str(written[name]["range"]) for name in ("age", "share")] == ["[10, 70]", "[0.1, 0.7]"]
    assert written["day"]["range"] == ["2024-01-01", "2024-12-31"]


NUMBERS = st.lists(st.integers(-5_000, 5_000), min_size=1, max_size=40)


@given(NUMBERS, st.integers(1, 12))
def test_a_drafted_range_holds_all_numbers_and_ends_at_none_that_few_have(
    numbers: list[int], smallest: int
) -> None:
    numbers *= 2  # no identifiers
    declared = draft(pd.DataFrame({"x": numbers, "y": ["a"] * len(numbers)}), smallest).columns["x"].range
    if declared is None:
        assert len(numbers) < smallest
        return
    low, high = declared
    assert low <= min(numbers) and max(numbers) <= high  # type: ignore[operator]
    for end in (low, high):
        assert numbers.count(end) == 0 or numbers.count(end) >= smallest  # type: ignore[arg-type]


@given(st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=1, max_size=60), st.integers(1, 20))
def test_a_level_is_drafted_only_from_enough_records(records: list[str], smallest: int) -> None:
    records *= 2  # no identifiers
    drafted = draft(pd.DataFrame({"x": records}), smallest).columns["x"]
    assert {*(drafted.level_names or ())} == {x for x in records if records.count(x) >= smallest}


def test_a_written_draft_can_be_read_as_a_dictionary() -> None:
    drafted = draft(example())
    columns = yaml.safe_load(drafted.to_yaml())["columns"]
    assert {name: Column.model_validate(declared) for name, declared in columns.items()} == drafted.columns


@pytest.mark.parametrize("names", [["a", "23"], ["a", " "], ["a", "1.5e3"]])
def test_a_record_in_the_place_of_the_header_is_not_written(names: list[str]) -> None:
    with pytest.raises(InputError, match="header") as refused:
        draft(pd.DataFrame([["x", "y"]], columns=names))
    assert "23" not in str(refused.value)


@pytest.mark.parametrize(
    ("options", "exit_code", "shown"),
    [
        ([], 2, "--confidential"),
        (["--confidential"], 0, "region"),
        (["--confidential", "--smallest-count", 1], 2, "smallest-count"),
        (["--synthetic", "--smallest-count", 1], 0, "rare"),
    ],
)
def test_no_draft_is_made_from_a_confidential_table_without_asking(
    options: list[object], exit_code: int, shown: str, tmp_path: Path
) -> None:
    example().to_csv(tmp_path / "table.csv", index=False)
    ran = run_command("dictionary", "draft", *options, tmp_path / "table.csv")
    assert ran.exit_code == exit_code and shown in ran.output + ran.stderr
    assert SECRET not in ran.output or "--synthetic" in options


def test_the_schema_checks_the_file_of_a_gate() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(run_command("dictionary", "schema").output)
    jsonschema.Draft202012Validator.check_schema(schema)
    content = yaml.safe_load((PACKAGE / "defs" / "survey" / "defs.yaml").read_text())
    jsonschema.validate(content, schema)
    content["attributes"]["columns"]["age"]["rnage"] = [0, 1]
    with pytest.raises(jsonschema.ValidationError, match="rnage"):
        jsonschema.validate(content, schema)


@pytest.mark.parametrize("ignore", ["1", None])
def test_an_offset_counts_whatever_the_environment_says(
    ignore: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # pyarrow drops offsets while this is set, and importing pandera sets it.
    monkeypatch.setenv("PYARROW_IGNORE_TIMEZONE", ignore or "")
    if ignore is None:
        monkeypatch.delenv("PYARROW_IGNORE_TIMEZONE")
    time = datetime(2024, 5, 1, 2, tzinfo=timezone(timedelta(hours=2)))
    for raw in (pd.Series([time, None], dtype=object), pd.Series(pd.Categorical([time, None]))):
        frame = make_canonical({"x": raw}, x=column("datetime", time_zone="UTC")).frame
        assert list(frame["x"].dropna()) == [datetime(2024, 5, 1)]


def test_a_table_is_refused_if_a_rule_was_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("disclosure_pipeline.tables.contract._run_schema", lambda schema, frame: ([], []))
    with pytest.raises(DisclosurePipelineError, match="not every rule"):
        make_canonical({"age": ["1"]}, age=column("integer"))
