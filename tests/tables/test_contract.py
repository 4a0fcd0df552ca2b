"""Files are read as their contract says, or refused with counts and without any of their values."""

import gc
import os
import sys
import textwrap
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support.processes import run_program
from support.refusals import refusal

from disclosure_pipeline.tables.contract import CONTROL_CHARACTER, read_canonical
from disclosure_pipeline.tables.dictionary import Column, Contract, ContractError, Violation

TABLE = "the ground truth"
# Values that no message may hold. The first ones are broken values, the others stand next to them.
CANARIES = ("Quetzalcoatl", "48151623", "42.108", "Kwisatz", "1887-03-04")


def contract(only_known: bool = True, /, **declared: Mapping[str, Any]) -> Contract:
    columns = {name: Column.model_validate(column) for name, column in declared.items()}
    return Contract(columns, TABLE, list(declared), only_known)


def test_no_record_stays_in_memory_once_a_table_is_done_with(tmp_path: Path) -> None:
    """The frames that pandera checks must not wait for the garbage collector."""
    records = 12_347  # no other table of this process has as many
    path = tmp_path / "table.parquet"
    pd.DataFrame({"a": ["x", "y", "z"] * 4115 + ["x", "y"]}).to_parquet(path)

    def frames() -> int:
        return sum(isinstance(o, pd.DataFrame) and len(o) == records for o in gc.get_objects())

    gc.disable()
    try:
        table = read_canonical(path, contract(a={"type": "category"}))
        assert len(table.frame) == records and frames() == 1
        del table
        assert frames() == 0
    finally:
        gc.enable()


@pytest.fixture
def csv(tmp_path: Path) -> Callable[[str], Path]:
    def write(content: str) -> Path:
        path = tmp_path / "table.csv"
        path.write_text(textwrap.dedent(content), encoding="utf-8")
        return path

    return write


def broken(path: Path, **declared: Mapping[str, Any]) -> dict[tuple[str, str], int]:
    """Return the violations of a file: (column, rule) -> records."""
    error = refusal(partial(read_canonical, path, contract(**declared)), *CANARIES)
    assert isinstance(error, ContractError)
    assert all(violation.table == TABLE for violation in error.violations)
    return {(violation.column, violation.rule): violation.records or 0 for violation in error.violations}


LEVELS = {"type": "category", "levels": ["x", "y"], "missing_codes": ["?"]}
RANGE = {"type": "integer", "range": [0, 100], "special_values": [-8], "missing_codes": [-9]}


@pytest.mark.parametrize(
    ("declared", "good", "fields", "rule"),
    [
        (
            {"type": "integer"},
            "3",
            ["3.5", "1e5", "x", "0x1", "1_000", "1;5", "--1", "inf", "nan"],
            "is not of type integer",
        ),
        (
            {"type": "number"},
            "1",
            ['"1,5"', "inf", "nan", "NaN", "1e999", "x", "1_0"],
            "is not of type number",
        ),
        ({"type": "boolean"}, "true", ["1", "0", "yes", "t"], "is not of type boolean"),
        (
            {"type": "date"},
            "2020-02-29",
            ["2021-02-29", "29.02.2020", "2020-02-29 10:00", "x"],
            "is not of type date",
        ),
        (LEVELS, "x\n?", ["Quetzalcoatl", "X", "Quetzalcoatl"], "is not among the declared levels"),
        (RANGE, "0\n-8\n-9", ["-1", "101", "48151623"], "is outside the range"),
        ({"type": "category"}, "x\t\ny z", ["x\x1b[2Jy", "x\x00y", "x\x85y", '"x\ny"'], CONTROL_CHARACTER),
    ],
)
def test_every_value_that_breaks_a_rule_is_counted(
    csv: Any, declared: Any, good: str, fields: list[str], rule: str
) -> None:
    counted = broken(csv("\n".join(["a", good, *fields, ""])), a=declared)
    hinted = {("a", broken_rule) for _, broken_rule in counted if "add it to missing_codes" in broken_rule}
    assert counted == {("a", rule): len(fields)} | {hint: counted[hint] for hint in hinted}
    assert len(hinted) == ("nan" in fields)


NOT_DECLARED = "not in the data dictionary: compare the first line with it"
CATEGORY = {"type": "category"}
# A file, what is declared of its columns, and the violations.
BROKEN: dict[str, tuple[str, dict[str, Any], dict[tuple[str, str], int]]] = {
    "several": (
        """\
        sex,age,income,extra
        Kwisatz,20,1,x
        Quetzalcoatl,x,42.108,x
        m,48151623,,x
        m,Quetzalcoatl,1887-03-04,x
        """,
        {
            "sex": {"type": "category", "levels": ["m"]},
            "age": {"type": "integer", "range": [0, 99]},
            "income": {"type": "integer"},
            "work": CATEGORY,
        },
        {
            ("sex", "is not among the declared levels"): 2,
            ("age", "is not of type integer"): 2,
            ("age", "is outside the range"): 1,
            ("income", "is not of type integer"): 2,
            ("work", "the column is not in the table"): 4,
            ("(other columns)", f"1 column is {NOT_DECLARED}"): 4,
        },
    ),
    # A model may have written records of the ground truth there.
    "columns that are not declared": (
        ",".join(["sex", *(f"Kwisatz-{number}" for number in range(300))]) + "\n" + ",".join("m" * 301),
        {"sex": CATEGORY},
        {("(other columns)", f"300 columns are {NOT_DECLARED}"): 1},
    ),
    "row numbers of pandas": (
        ",sex\n0,m\n1,m\n",
        {"sex": CATEGORY},
        {
            (
                "(other columns)",
                "1 column is not in the data dictionary: it holds the row numbers of pandas; "
                "write the table without its index",
            ): 2
        },
    ),
    # One forgotten in a table would share nothing with the other, so that no risk would be seen.
    "missing values alone": (
        "a,b\n,1\n?,2\n",
        {"a": {"type": "category", "missing_codes": ["?"]}, "b": {"type": "integer"}},
        {("a", "holds nothing but missing values"): 2},
    ),
    "many values": (
        "\n".join(["a", *(f"Quetzalcoatl {number}" for number in range(20_000))]),
        {"a": {"type": "integer"}},
        {("a", "is not of type integer"): 20_000},
    ),
    "no records": ("a\n", {"a": CATEGORY}, {("(all)", "the table has no records"): 0}),
}


@pytest.mark.parametrize("what", BROKEN)
def test_every_violation_is_counted_and_no_value_is_named(what: str, csv: Any) -> None:
    content, declared, expected = BROKEN[what]
    assert broken(csv(content), **declared) == expected


def test_shares_are_of_all_records() -> None:
    violation = Violation(TABLE, "age", "is not of type integer", 1, 0.25)
    assert str(violation) == "the ground truth, column 'age': is not of type integer (1 record, 25.00%)"


def test_ignores_undeclared_columns_of_gt_alone(csv: Any) -> None:
    """A candidate must not have them, as they would be published."""
    path = csv("a,name\nx,Quetzalcoatl\n")
    assert list(read_canonical(path, contract(False, a=CATEGORY)).frame) == ["a"]
    assert broken(path, a=CATEGORY) == {("(other columns)", f"1 column is {NOT_DECLARED}"): 1}


CHECK = """
import os, sys
from pathlib import Path
before = dict(os.environ)
from disclosure_pipeline.tables.contract import read_canonical
from disclosure_pipeline.tables.dictionary import Column, Contract, ContractError
try:
    read_canonical(Path(sys.argv[1]), Contract({"a": Column(type="integer")}, "the table", ["a"], True))
except ContractError as error:
    print([(violation.rule, violation.records) for violation in error.violations])
assert dict(os.environ) == before, set(os.environ) - set(before)
"""


def test_the_environment_neither_stops_the_checks_nor_is_changed(csv: Any) -> None:
    """The variables would switch off pandera's own validation."""
    path = csv("a\n1\nx\n")
    switched_off = {"PANDERA_VALIDATION_ENABLED": "False", "PANDERA_VALIDATION_DEPTH": "SCHEMA_ONLY"}
    unset = {"PYARROW_IGNORE_TIMEZONE", "SPARK_LOCAL_IP"}
    environment = {name: value for name, value in os.environ.items() if name not in unset} | switched_off
    environment["NPY_DISABLE_CPU_FEATURES"] = ""  # what the package says to NumPy is another test's
    ran = run_program([sys.executable, "-c", CHECK, path], env=environment)
    assert (ran.returncode, ran.stdout.strip()) == (0, "[('is not of type integer', 1)]"), ran.stderr


def test_another_delimiter_is_refused_without_the_header(csv: Any) -> None:
    """The first line may be a record instead of names."""
    broken(csv("Quetzalcoatl;48151623\nKwisatz;1\n"), a=CATEGORY)
