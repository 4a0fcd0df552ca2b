"""What is a code, a number or missing: leading zeros, and the texts that programs write for no value."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.engines import ENGINES_AND_WAYS, Databases, given_to
from support.gates import run_command

import disclosure_pipeline as dp
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.policy.gate_template import describe_table
from disclosure_pipeline.tables.contract import LEADING_ZEROS, read_canonical
from disclosure_pipeline.tables.dictionary import Column, Contract, ContractError
from disclosure_pipeline.tables.inference import draft

pytestmark = pytest.mark.usefixtures("no_guards")

ZIPS = ["00501", "01010", "02134", "10001", "90210"]
ICD = ["038.1", "007.1", "250.0", "401.9", "038.2"]
DAYS = ["05112025", "17032024", "01012023", "11122024", "24062023"]


def codes(records: int = 100) -> pd.DataFrame:
    columns = {"zip": ZIPS, "icd": ICD, "born": DAYS, "age": ["7", "18", "30", "45", "0"]}
    return pd.DataFrame({name: values * (records // 5) for name, values in columns.items()})


def test_codes_with_leading_zeros_are_drafted_as_categories() -> None:
    drafted = {name: column.type for name, column in draft(codes()).columns.items()}
    assert drafted == {**dict.fromkeys(("zip", "icd", "born"), "category"), "age": "integer"}
    one = codes().assign(zip=["501"] * 99 + ["00501"])
    assert draft(one).columns["zip"].type == "category"
    share = pd.DataFrame({"share": ["0.5", "-0.25", "0"] * 20})
    assert draft(share).columns["share"].type == "number"


def test_a_new_gate_keeps_codes_and_takes_what_is_asked_to_be_grouped_for_a_number() -> None:
    schema = describe_table(codes(), ["zip"], ["icd", "born"])
    assert {schema.columns[name].type for name in ("zip", "icd", "born")} == {"category"}
    grouped = describe_table(codes(), ["zip"], ["born"], {"born": 3})
    assert (grouped.columns["born"].type, grouped.columns["born"].groups) == ("integer", 3)


def read(path: Path, only_known: bool = False, **column: Any) -> Any:
    contract = Contract({"zip": Column(**column)}, "the ground truth", ["zip"], only_known)
    return read_canonical(path, contract)


@pytest.mark.parametrize("kind", ["integer", "number"])
def test_a_ground_truth_of_codes_is_refused_as_numbers(kind: Any, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    codes()[["zip"]].to_csv(path, index=False)
    with pytest.raises(ContractError) as caught:
        read(path, type=kind)
    [violation] = caught.value.violations
    assert (violation.column, violation.rule, violation.records) == ("zip", LEADING_ZEROS, 60)
    assert not any(zip in str(caught.value) for zip in ZIPS)
    # An amount has a unit; SD may write numbers as it likes.
    assert read(path, type=kind, unit="EUR").frame["zip"].cat.categories.min() == 501
    assert read(path, only_known=True, type=kind).frame["zip"].cat.categories.min() == 501
    assert read(path, type="category").frame["zip"].cat.categories.min() == "00501"


def amounts(seed: int, records: int = 300) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "sex": random.choice(["f", "m"], records),
            "pay": np.round(random.lognormal(10, 0.5, records), 2),
            "ill": random.choice(["y", "n"], records),
        }
    )
    frame.loc[random.random(records) < 0.15, "pay"] = np.nan
    frame.loc[random.random(records) < 0.1, "ill"] = None
    return frame


def in_text(frame: pd.DataFrame, code: str = "NA") -> pd.DataFrame:
    """As R writes the frame, with every value as text."""
    return frame.astype(object).map(lambda value: code if pd.isna(value) else str(value))


@pytest.mark.parametrize("code", ["NA", "NaN", "NULL", "."])
def test_conventional_missing_codes_are_drafted(code: str) -> None:
    columns = draft(in_text(amounts(1), code)).columns
    assert (columns["pay"].type, columns["pay"].missing_codes) == ("number", (code,))
    assert (columns["ill"].type, columns["ill"].missing_codes) == ("category", (code,))
    assert columns["ill"].level_names == ("n", "y")
    assert columns["sex"].missing_codes == ()
    assert f"reads '{code}' as missing" in draft(in_text(amounts(1), code)).to_yaml()
    schema = describe_table(in_text(amounts(1), code), ["sex"], ["pay", "ill"])
    assert (schema.columns["pay"].missing_codes, schema.columns["pay"].groups) == ((code,), 20)
    assert f"reads '{code}' as missing" in schema.notes["pay"] and "'" + code in schema.notes["ill"]


def test_other_texts_are_no_missing_codes() -> None:
    columns = draft(in_text(amounts(1), "refused")).columns
    assert (columns["pay"].type, columns["pay"].missing_codes) == ("category", ())


def test_amounts_with_gaps_are_no_identifier() -> None:
    """79 of 215 have no salary, and those who have one have one of their own."""
    salary = pd.DataFrame({"salary": [*range(20_000, 20_136), *[None] * 79], "id": range(215)})
    columns = draft(salary.astype("Int64")).columns
    assert (columns["salary"].type, columns["id"].type) == ("integer", "text identifier")
    schema = describe_table(salary.astype("Int64").assign(sex="f"), ["sex"], [])
    assert (schema.targets, schema.columns["salary"].groups) == (("salary",), 20)


@cache
def measured_with_gaps() -> dp.Disclosure:
    return dp.disclosure(amounts(1), amounts(2), ["sex"], groups={"pay": 10})


@pytest.mark.parametrize("written", ["text", "mixed", "categories", "arrow"])
@pytest.mark.parametrize("engine", list(ENGINES_AND_WAYS))
def test_every_engine_reads_missing_codes(engine: str, written: str, databases: Databases) -> None:
    plain = (amounts(1), amounts(2))
    if engine in {"files", *set(ENGINES_AND_WAYS) - {"memory", "toy", "partitioned"}} and written != "text":
        pytest.skip("files and databases have typed columns")
    convert: Callable[[pd.DataFrame], pd.DataFrame] = {
        "text": lambda frame: frame.astype(str),
        "mixed": lambda frame: frame.assign(pay=frame["pay"].map(lambda x: x if x == "NA" else float(x))),
        "categories": lambda frame: frame.astype("category"),
        "arrow": lambda frame: frame.convert_dtypes(dtype_backend="pyarrow"),
    }[written]
    coded = [convert(in_text(frame)) for frame in plain]
    options: dict[str, Any] = {"groups": {"pay": 10}}
    with given_to(engine, next(iter(ENGINES_AND_WAYS[engine])), coded, databases) as (tables, name):
        expected = measured_with_gaps()
        for codes in (["NA"], {"pay": ["NA"], "ill": ["NA"]}):
            result = dp.disclosure(tables[0], tables[1], ["sex"], missing_codes=codes, engine=name, **options)
            for frame in ("identity", "attribute", "key_overlap", "target_overlap", "cap"):
                pd.testing.assert_frame_equal(result.frame(frame), expected.frame(frame))
        changed = {(c.table, c.column): c.records for c in result.ledger if "missing code" in c.rule}
        assert changed["the ground truth", "pay"] == plain[0]["pay"].isna().sum()
        with pytest.raises(InputError, match=r"'pay' of the ground truth holds the text 'NA' in \d+ records"):
            dp.disclosure(tables[0], tables[1], ["sex"], engine=name, **options)
        with pytest.raises(InputError, match="'pey', which is not in the ground truth"):
            dp.disclosure(tables[0], tables[1], ["sex"], engine=name, missing_codes={"pey": ["NA"]})


def test_numbers_are_missing_codes_too() -> None:
    plain = (amounts(1), amounts(2))
    coded = tuple(frame.assign(pay=frame["pay"].fillna(-9)) for frame in plain)
    result = dp.disclosure(coded[0], coded[1], ["sex"], "pay", groups={"pay": 5}, missing_codes={"pay": [-9]})
    expected = dp.disclosure(plain[0], plain[1], ["sex"], "pay", groups={"pay": 5})
    pd.testing.assert_frame_equal(result.attribute, expected.attribute)


@pytest.mark.parametrize("wrong", ["NA", 5, [True], {"pay": "NA"}])
def test_missing_codes_are_lists(wrong: Any) -> None:
    with pytest.raises(InputError, match="missing_codes must be a list"):
        dp.disclosure(amounts(1), amounts(2), ["sex"], missing_codes=wrong)


def test_events_have_missing_codes_of_their_own() -> None:
    """As if their values were missing; codes of the persons change no column that is made of events."""
    persons, stays = [amounts(seed) for seed in (1, 2)], []
    persons = [table.assign(id=[f"p{number}" for number in table.index]) for table in persons]
    for seed, table in enumerate(persons):
        drawn = np.random.default_rng(seed).choice(["flu", "fall", None], 2 * len(table))  # type: ignore[arg-type]
        stays.append(pd.DataFrame({"id": table["id"].to_numpy().repeat(2), "why": drawn}))
    how: Any = {"summaries": {"why": ["most_frequent"]}, "multiset": ["why"]}
    arguments: Any = {"unit": "id", "groups": {"pay": 5}}
    names = ["pay", "events.why.most_frequent", "events.multiset", "events.count"]
    given: Any = {"ground_truth": stays[0], "synthetic": stays[1], **how}
    plain = dp.disclosure(*(persons[0], persons[1], ["sex"], names), **arguments, events=given)
    coded_persons = [table.assign(pay=table["pay"].fillna(2)) for table in persons]
    coded = [table.fillna("?") for table in stays]
    given |= {"ground_truth": coded[0], "synthetic": coded[1], "missing_codes": {"why": ["?"]}}
    result = dp.disclosure(
        *(coded_persons[0], coded_persons[1], ["sex"], names), **arguments, missing_codes=[2], events=given
    )
    pd.testing.assert_frame_equal(result.attribute, plain.attribute)
    changed = {(change.table, change.column): change.records for change in result.ledger}
    assert changed["the events of the ground truth", "why"] == stays[0]["why"].isna().sum()
    assert changed["the ground truth", "pay"] == persons[0]["pay"].isna().sum()


def test_measure_is_told_missing_codes(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("gt.csv", "sd.csv")]
    for path, seed in zip(files, (1, 2), strict=True):
        in_text(amounts(seed)).to_csv(path, index=False)
    command = ("measure", *files, "--key", "sex", "--target", "pay", "--groups", "pay=10")
    refused = run_command(*command)
    assert refused.exit_code == 1 and "--missing NA" in refused.stderr
    missing = int(amounts(1)["pay"].isna().sum())
    assert f"'pay' of the ground truth holds the text 'NA' in {missing} records" in refused.stderr
    for option, form in (("NA", "csv"), ("pay=NA", "csv"), ("NA", "html")):
        told = run_command(*command, "--missing", option, "--format", form)
        assert told.exit_code == 0, told.output
        assert ("<html" in told.output) == (form == "html")
    assert run_command(*command, "--missing", "pay=NA", "--missing", "NULL").exit_code == 2


def test_the_contract_names_a_missing_code(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    pd.DataFrame({"zip": ["1", "NA", "x", "NA"]}).to_csv(path, index=False)
    with pytest.raises(ContractError) as caught:
        read(path, type="integer")
    counted = {violation.rule: violation.records for violation in caught.value.violations}
    assert counted == {
        "is not of type integer": 3,
        "holds 'NA', which is no integer: add it to missing_codes": 2,
    }
