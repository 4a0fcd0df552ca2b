"""Metadata of SDV, table schemas of Frictionless and schemas of pandera: read, written, and read again."""

import contextlib
import datetime
import json
from pathlib import Path
from typing import Any, get_args

import pandas as pd
import pandera.pandas as pa
import pyreadstat
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support import gates
from support.gates import run_command
from support.refusals import refusal
from support.services import absent

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.tables.contract import canonical_table
from disclosure_pipeline.tables.descriptions import Description
from disclosure_pipeline.tables.dictionary import Column, Contract, Level
from disclosure_pipeline.tables.inference import draft
from disclosure_pipeline.tables.schemas import SchemaFormat, list_left_out, read_schema, write_schema

KINDS: tuple[SchemaFormat, ...] = get_args(SchemaFormat)
RECORDS = 40

TABLE = pd.DataFrame(
    {
        "person": [f"p{number:03}" for number in range(RECORDS)],
        "sex": ["1", "2"] * (RECORDS // 2),
        "grade": ["low", "high"] * (RECORDS // 2),
        "age": list(range(20, 20 + RECORDS)),
        "pay": [number + 0.5 for number in range(RECORDS)],
        "works": ["yes", "no"] * (RECORDS // 2),
        "born": ["31.12.1999", "01.02.2001"] * (RECORDS // 2),
        "seen": ["2024-01-31T10:00:00", "2024-02-29T23:59:59"] * (RECORDS // 2),
    }
)
COLUMNS = {
    "person": Column(type="text identifier", description="number of the person"),
    "sex": Column(
        type="category", levels=(Level(level="male", aliases=("1",)), Level(level="female", aliases=("2",)))
    ),
    "grade": Column(type="ordered category", levels=("low", "high"), missing_codes=("NA", -9)),
    "age": Column(type="integer", range=(0.0, 120.0)),
    "pay": Column(type="number", range=(0.0, 99.5), groups=5),
    "works": Column(type="boolean", true_values=("yes",), false_values=("no",)),
    "born": Column(type="date", date_format="%d.%m.%Y"),
    "seen": Column(type="datetime"),
}


def described(
    content: Any, tmp_path: Path, names: Any = ("a",), suffix: str = "json"
) -> dict[str, Description]:
    path = tmp_path / f"schema.{suffix}"
    path.write_text(json.dumps(content) if suffix == "json" else yaml.safe_dump(content))
    return read_schema(path, names)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_is_read_again(kind: SchemaFormat, tmp_path: Path) -> None:
    """But for the entries that are named as left out."""
    text = write_schema(COLUMNS, "people", kind)
    path = tmp_path / ("schema.yaml" if kind == "pandera" else "schema.json")
    path.write_text(text)
    again = draft(TABLE, descriptions=read_schema(path, list(TABLE.columns))).columns
    left_out = {tuple(entry.split(".")) for entry in list_left_out(COLUMNS, text)}
    for name, column in COLUMNS.items():
        if (name, "aliases") in left_out:
            assert again[name].level_names == column.level_names
            continue
        kept = again[name].model_dump(exclude_defaults=True)
        for entry, value in column.model_dump(exclude_defaults=True).items():
            assert kept.get(entry) == value or (name, entry) in left_out
    assert ("pay", "groups") in left_out and ("pay", "type") not in left_out
    if kind == "frictionless":
        assert left_out == {("pay", "groups")}


def import_pandera_io() -> Any:
    """Return the module, which in earlier versions of pandera needs more packages."""
    try:
        from pandera.io import pandas_io
    except ImportError:
        absent("what pandera.io needs")
    return pandas_io


def test_pandera_accepts_canonical_tables(tmp_path: Path) -> None:
    """And refuses a level that there is not, an identifier twice, and a number out of range."""
    read: Any = import_pandera_io().from_yaml
    schema = read(write_schema(COLUMNS, "people", "pandera"))
    contract = Contract(COLUMNS, "T", tuple(COLUMNS), only_known=True)
    coded = canonical_table(TABLE, contract).frame
    canonical = pd.DataFrame({name: coded[name].tolist() for name in coded})
    canonical.loc[0, "sex"] = None
    validated = schema.validate(canonical)
    assert validated["sex"].isna().sum() == 1
    for name, value in (("sex", "1"), ("person", "p001"), ("age", 121)):
        with pytest.raises(pa.errors.SchemaError):
            schema.validate(canonical.assign(**{name: canonical[name].where(canonical.index > 0, value)}))


@pytest.mark.parametrize("as_json", [False, True])
def test_schemas_that_pandera_wrote(as_json: bool, tmp_path: Path) -> None:
    import_pandera_io()
    schema = pa.DataFrameSchema(
        {
            "a": pa.Column(int, pa.Check.in_range(0, 10), description="years"),
            "b": pa.Column("category", pa.Check.isin(["x", "y"]), nullable=True),
            "c": pa.Column("datetime64[ns]"),
            "d": pa.Column(str, unique=True),
            "e": pa.Column(float, [pa.Check.ge(0), pa.Check.le(5)]),
            "f": pa.Column(bool),
            "g": pa.Column(),
        }
    )
    path = tmp_path / ("s.json" if as_json else "s.yaml")
    path.write_text(str(schema.to_json() if as_json else schema.to_yaml()))
    found = read_schema(path, list("abcdefg"))
    assert found["a"] == Description({"description": "years", "range": [0, 10]}, types=("integer",))
    assert found["b"] == Description({"levels": ["x", "y"]}, types=("category",))
    assert found["c"].types == ("datetime", "date") and found["d"].types == ("text identifier",)
    assert found["e"].entries == {"range": [0, 5]} and found["e"].types == ("number",)
    assert found["f"].types == ("boolean",) and found["g"] == Description()


@pytest.mark.parametrize(
    "checks",
    [
        {"checks": {"in_range": {"min_value": 0, "max_value": 10}}},
        {"checks": [{"min_value": 0, "max_value": 10, "options": {"check_name": "in_range"}}]},
        {"in_range": {"min_value": 0, "max_value": 10}},
        {"checks": {"greater_than_or_equal_to": 0, "less_than_or_equal_to": {"value": 10}}},
    ],
)
def test_checks_as_releases_of_pandera_write_them(checks: Any, tmp_path: Path) -> None:
    content = {"schema_type": "dataframe", "columns": {"a": {"dtype": "int64", **checks}}}
    assert described(content, tmp_path, suffix="yaml")["a"].entries == {"range": [0, 10]}


@pytest.mark.parametrize(
    ("column", "types", "entries"),
    [
        ({"sdtype": "numerical", "computer_representation": "Int64"}, ("integer",), {}),
        ({"sdtype": "numerical", "computer_representation": "Float"}, ("number",), {}),
        ({"sdtype": "numerical"}, ("number", "integer"), {}),
        ({"sdtype": "numerical", "decimal_places": 0, "range_min": -8, "range_max": 99}, ("integer",), {}),
        ({"sdtype": "numerical", "decimal_places": 2}, ("number",), {}),
        ({"sdtype": "categorical"}, ("category",), {}),
        ({"sdtype": "categorical", "range_values": ["1", "2"]}, ("category",), {}),
        ({"sdtype": "ordinal", "range_values": ["a", "b"]}, ("ordered category",), {"levels": ["a", "b"]}),
        ({"sdtype": "categorical", "order": [1, 2]}, ("ordered category",), {"levels": ["1", "2"]}),
        ({"sdtype": "boolean"}, ("boolean",), {}),
        ({"sdtype": "id", "regex_format": "[0-9]+"}, ("text identifier",), {}),
        ({"sdtype": "datetime", "datetime_format": "%Y-%m-%d"}, ("date",), {}),
        ({"sdtype": "datetime", "datetime_format": "%d.%m.%y"}, ("date",), {"date_format": "%d.%m.%y"}),
        ({"sdtype": "datetime", "datetime_format": "%d %H:%M"}, ("datetime",), {"date_format": "%d %H:%M"}),
        ({"sdtype": "datetime"}, ("date", "datetime"), {}),
        ({"sdtype": "unknown", "pii": False}, (), {}),
    ],
)
@pytest.mark.parametrize("with_tables", [False, True])
def test_types_of_sdv(column: Any, types: Any, entries: Any, with_tables: bool, tmp_path: Path) -> None:
    content: Any = {"columns": {"a": column}}
    found = described({"tables": {"t": content}} if with_tables else content, tmp_path)["a"]
    assert found == Description(entries, types=types)


def test_keys_and_personal_data_of_sdv(tmp_path: Path) -> None:
    columns = {
        "a": {"sdtype": "numerical"},
        "b": {"sdtype": "email", "pii": True},
        "c": {"sdtype": "id"},
        "d": {"sdtype": "categorical"},
    }
    found = described({"columns": columns, "primary_key": "a", "sequence_key": "d"}, tmp_path, list("abcd"))
    in_list = described({"columns": columns, "primary_key": ["a"]}, tmp_path, list("abcd"))
    assert in_list["a"].types == found["a"].types == found["c"].types == ("text identifier",)
    assert found["b"].notes == ("personal data, as its description says: leave it unpublished",)
    assert "the gate's unit" in found["d"].notes[0]
    table = pd.DataFrame({"a": range(40), "b": [f"{n}@x.org" for n in range(40)], "c": range(40), "d": 1})
    drafted = draft(table, descriptions=found)
    assert drafted.columns["b"].type == "text identifier"
    assert drafted.notes["b"].startswith("personal data") and "as an identifier does" in drafted.notes["b"]


def test_one_of_several_tables_is_that_with_the_columns(tmp_path: Path) -> None:
    tables: Any = {
        "people": {"columns": {"a": {"sdtype": "id"}}},
        "stays": {"columns": {"a": {"sdtype": "id"}, "b": {"sdtype": "boolean"}}},
    }
    assert set(described({"tables": tables}, tmp_path, ("b", "a"))) == {"a", "b"}
    with pytest.raises(InputError, match="describes 2 tables, 0 of them with the columns of this one"):
        described({"tables": tables}, tmp_path, ("c",))


DAY = datetime.date(2000, 1, 1)
UNIQUE, LEVELS = {"unique": True}, {"enum": ["x", "y"]}
ORDERED = Description({"levels": ["x", "y"]}, is_ordered=True, types=("ordered category",))
CODES = ["", "-9", {"value": "NA", "label": "none"}]


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ({"type": "string"}, Description(types=("category",))),
        ({"type": "year"}, Description(types=("integer",))),
        ({"type": "any"}, Description()),
        ({"type": "string", "title": "A"}, Description({"description": "A"}, types=("category",))),
        ({"type": "string", "constraints": UNIQUE}, Description(types=("text identifier",))),
        ({"type": "string", "constraints": LEVELS}, Description({"levels": ["x", "y"]}, types=("category",))),
        ({"type": "string", "categories": ["x", "y"], "categoriesOrdered": True}, ORDERED),
        (
            {"type": "integer", "categories": [{"value": 1, "label": "yes"}]},
            Description({}, {1: "yes"}, types=("category",)),
        ),
        (
            {"type": "date", "format": "%d.%m.%Y", "constraints": {"minimum": str(DAY), "maximum": str(DAY)}},
            Description({"date_format": "%d.%m.%Y", "range": [DAY, DAY]}, types=("date",)),
        ),
        ({"type": "datetime", "format": "default"}, Description(types=("datetime",))),
        ({"type": "integer", "constraints": {"minimum": 0}}, Description(types=("integer",))),
        (
            {"type": "number", "missingValues": CODES},
            Description({"missing_codes": [-9, "NA"]}, types=("number",)),
        ),
    ],
)
@pytest.mark.parametrize("whole", ["schema", "resource", "package"])
def test_fields_of_frictionless(field: Any, expected: Description, whole: str, tmp_path: Path) -> None:
    content: Any = {"fields": [{"name": "a", **field}]}
    content = {"name": "t", "schema": content} if whole != "schema" else content
    content = {"resources": [content]} if whole == "package" else content
    assert described(content, tmp_path)["a"] == expected


def test_a_primary_key_of_frictionless(tmp_path: Path) -> None:
    fields = [{"name": "a", "type": "integer"}, {"name": "b", "type": "string"}]
    found = described({"fields": fields, "primaryKey": "a", "missingValues": ["x"]}, tmp_path, ("a", "b"))
    assert found["a"].types == ("text identifier",) and found["b"].entries == {"missing_codes": ["x"]}


@pytest.mark.parametrize(
    ("values", "content", "note"),
    [
        (["x", "y"], {"sdtype": "numerical"}, "it has values that are no number"),
        (["1", "2"], {"sdtype": "boolean"}, "it has values that are no boolean"),
        (["a", "a"], {"sdtype": "id"}, "it has values that repeat"),
        (["a", "b"], {"sdtype": "categorical", "order": ["a"]}, "it has values that are none of its levels"),
        (["a", "b"], {"sdtype": "categorical", "order": ["a", "b", "c"]}, None),
        (["1", "2"], {"sdtype": "categorical"}, None),
        (["01", "02"], {"sdtype": "numerical"}, None),
    ],
)
def test_contradictions_are_told(values: Any, content: Any, note: str | None, tmp_path: Path) -> None:
    """The description is written all the same."""
    found = described({"columns": {"a": content}}, tmp_path)
    drafted = draft(pd.DataFrame({"a": values * 20}), descriptions=found)
    assert drafted.columns["a"].type in found["a"].types
    assert ("contradicts its description: " in drafted.notes.get("a", "")) == (note is not None)
    assert (note or "") in drafted.notes.get("a", "")


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("s.json", b"{", "cannot be read (JSONDecodeError)"),
        ("s.yaml", b"a: [", "cannot be read (ParserError)"),
        ("s.json", b"\xff\xfe", "cannot be read (UnicodeDecodeError)"),
        ("s.json", b"[" * 100_000, "cannot be read (RecursionError)"),
        ("s.yaml", b"Quetzalcoatl", "describes no table"),
        *(
            ("s.json", content, "describes no table")
            for content in (
                b"[]",
                b'{"columns": {"a": {"type": "x"}}}',
                b'{"columns": ["a"]}',
                b'{"fields": []}',
            )
        ),
    ],
)
def test_other_files_are_refused(name: str, content: bytes, problem: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    message = str(refusal(lambda: read_schema(tmp_path / name, ["a"]), "Quetzalcoatl"))
    assert problem in message and "metadata of SDV" in message


PARTS = ["a", "value", "label", "min_value", "max_value"]
anything = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.sampled_from(["a", "", "%Y", "id"]),
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(st.sampled_from(PARTS), parts, max_size=3),
    max_leaves=8,
)
NAMES = [
    "sdtype",
    "pii",
    "order",
    "datetime_format",
    "type",
    "format",
    "constraints",
    "categories",
    "title",
    "categoriesOrdered",
    "missingValues",
    "trueValues",
    "dtype",
    "checks",
    "isin",
    "in_range",
    "unique",
]
KINDS_OF_VALUES = ["integer", "numerical", "boolean", "date", "int64", "categorical", "string", "number"]
bounds = st.fixed_dictionaries({"minimum": anything, "maximum": anything, "enum": anything})
entries = st.dictionaries(
    st.sampled_from(NAMES), anything | st.sampled_from(KINDS_OF_VALUES) | bounds, max_size=6
)


@given(
    column=entries,
    table=st.dictionaries(st.sampled_from(["primaryKey", "missingValues", "primary_key"]), anything),
)
def test_any_schema_is_read_or_refused(
    column: dict[str, Any], table: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """With a sentence, never with an error of Python."""
    path = tmp_path_factory.mktemp("any") / "s.json"
    contents: list[Any] = [
        {"columns": {"a": {"sdtype": "id", **column}}},
        {"fields": [{**column, "name": "a"}]},
        {"columns": {"a": column}, "schema_type": "dataframe"},
    ]
    for content in contents:
        path.write_text(json.dumps({**table, **content}))
        with contextlib.suppress(InputError):
            draft(pd.DataFrame({"a": ["x", "y"] * 20}), descriptions=read_schema(path, ["a"]))


def test_the_commands(tmp_path: Path) -> None:
    TABLE.to_csv(tmp_path / "t.csv", index=False)
    definition = gates.definition(
        columns={
            name: column.model_dump(mode="json", exclude_defaults=True) for name, column in COLUMNS.items()
        },
        keys=["sex"],
        targets=["pay"],
        policy={"repU": 8, "DiSCO": 12},
    )
    gate = gates.write_definition(tmp_path / "gate", definition)
    for kind in KINDS:
        path = tmp_path / ("s.yaml" if kind == "pandera" else "s.json")
        exported = run_command("dictionary", "export", gate, "--to", kind)
        assert exported.exit_code == 0 and "pay.groups" in exported.stderr
        path.write_text(exported.stdout)
        drafted = run_command("dictionary", "draft", tmp_path / "t.csv", "--synthetic", "--from", path)
        assert drafted.exit_code == 0 and drafted.stderr == ""
        assert yaml.safe_load(drafted.stdout)["columns"]["person"]["type"] == "text identifier"


def test_labels_from_another_file(tmp_path: Path) -> None:
    """The table of a synthesizer, which knows no labels, and the file of SPSS that has them."""
    labels: Any = {"sex": {1: "male", 2: "female"}, "kids": {-8: "not asked"}}
    frame = pd.DataFrame({"sex": [1, 2], "kids": [0, -8], "more": [1, 2]})
    pyreadstat.write_sav(frame, tmp_path / "t.sav", variable_value_labels=labels)
    table = pd.DataFrame({"sex": [1, 2] * 20, "kids": [0, 1, 2, -8] * 10, "own": list("xy") * 20})
    table.to_csv(tmp_path / "t.csv", index=False)
    draft_of = ("dictionary", "draft", tmp_path / "t.csv", "--synthetic", "--from")
    drafted = run_command(*draft_of, tmp_path / "t.sav")
    columns = yaml.safe_load(drafted.stdout)["columns"]
    assert columns["sex"]["levels"][0] == {"level": "male", "aliases": ["1"]}
    assert columns["kids"] == {"type": "integer", "range": [0, 2], "special_values": [-8]}
    assert drafted.stderr == (
        "t.sav also describes 'more', which the table lacks.\nt.sav does not describe 'own'.\n"
    )
    refused = run_command(*draft_of, tmp_path / "t.csv")
    assert refused.exit_code == 1 and "t.csv says nothing of its columns" in refused.stderr
