"""The strict reader accepts only YAML that all readers understand alike; errors name the place."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from support.sampling import examples

from disclosure_pipeline.policy import reviewed_files
from disclosure_pipeline.policy.reviewed_files import (
    DefinitionError,
    read_definition,
    read_documents,
    read_file,
)


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("a: 1\nb: -2\nc: 0", {"a": 1, "b": -2, "c": 0}),
        (
            "a: 0.5\nb: .5\nc: 5.\nd: -0.25\ne: 1.5e+3",
            {"a": 0.5, "b": 0.5, "c": 5.0, "d": -0.25, "e": 1500.0},
        ),
        ("a: true\nb: False\nc: ~\nd:\ne: null", {"a": True, "b": False, "c": None, "d": None, "e": None}),
        ("a: 'no'\nb: \"0100\"\nc: |\n  yes", {"a": "no", "b": "0100", "c": "yes"}),
        ("a: 2026-12-31\nb: 2026-12-31T23:59:59Z", {"a": "2026-12-31", "b": "2026-12-31T23:59:59Z"}),
        ("a: m-1\nb: https://x.org/y\nc: 3 persons", {"a": "m-1", "b": "https://x.org/y", "c": "3 persons"}),
        ("", None),
        ("# nothing", None),
    ],
)
def test_reads_unambiguous_yaml(text: str, content: Any) -> None:
    assert read_definition(text, "f") == content


SCALARS = {
    "octal": ["0100", "00", "-017"],
    "sexagesimal": ["1:30", "1:30.5"],
    "with _": ["1_000", "1_0.5"],
    "binary": ["0b11", "0x1F"],
    "number to some readers": ["0o17", "089", "1e5", "1.5e3"],
    "tag": ["!!int '3'", "!!python/name:os.system"],
    "special meaning in YAML": ["="],
    "aliases": ["*nowhere"],
}


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("a: 1\nb: 2\na: 3", "3:1", "'a' is given twice, first in line 1"),
        ("p: {x: 1, 'x': 2}", "1:11", "given twice"),
        ("<<: {a: 1}\nb: 1", "1:1", "merge keys"),
        ("y:\n  <<: {a: 1}", "2:3", "merge keys"),
        ("- &x [1]\n- *x", "1:3", "aliases (*) are not allowed"),
        ("- [1]\n- *x", "2:3", "aliases (*) are not allowed"),
        *((f"a: {text}", "1:4", message) for message, texts in SCALARS.items() for text in texts),
        ("a: [1, 190:20:30]", "1:8", "sexagesimal"),
        *((f"a:\n  - {word}", "2:5", "boolean to some") for word in ("yes", "No", "NO", "on", "OFF")),
        ("no: 1", "1:1", "boolean to some"),
        ("1: a", "1:1", "name 1 is not read as text"),
        ("true: a", "1:1", "is not read as text"),
        ("2026-01-01: a", "1:1", "is not read as text"),
        ("? [a]\n: b", "1:3", "must be text"),
        ("[" * 102 + "]" * 102, "1:102", "nested too deeply"),
        ("a: {b", "1:6", "not valid YAML"),
        ("a: b: c", "1:5", "not valid YAML"),
    ],
)
def test_refuses_ambiguous_yaml_with_its_place(text: str, place: str, message: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        read_definition(text, "gate.yaml")
    assert str(refused.value).startswith(f"gate.yaml:{place}: ")
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_refuses_more_values_than_a_definition_has(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reviewed_files._MOST_NODES == 100_000
    monkeypatch.setattr(reviewed_files, "_MOST_NODES", 1000)
    assert len(read_definition("- 1\n" * 999, "f")) == 999
    with pytest.raises(DefinitionError, match=r"^f:1000:3: it has more than 1,000 values"):
        read_definition("- 1\n" * 1001, "f")


@pytest.mark.parametrize("text", ["[" * 100_000, "a: " + "[" * 200 + "]" * 200])
def test_refuses_deep_nesting(text: str) -> None:
    with pytest.raises(DefinitionError):
        read_definition(text, "f")


def test_refuses_a_second_document_where_one_is_expected() -> None:
    with pytest.raises(DefinitionError, match="2 documents"):
        read_definition("a: 1\n---\na: 2", "f")
    assert [document.content for document in read_documents("a: 1\n---\na: 2", "f")] == [{"a": 1}, {"a": 2}]


def test_records_the_place_of_every_entry() -> None:
    (document,) = read_documents("a: 1\nb:\n  c:\n    - x\n    - y: 2", "f")
    assert document.places == {
        (): (1, 1),
        ("a",): (1, 1),
        ("b",): (2, 1),
        ("b", "c"): (3, 3),
        ("b", "c", 0): (4, 7),
        ("b", "c", 1): (5, 7),
        ("b", "c", 1, "y"): (5, 7),
    }


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"\xff\xfe\x00", "not UTF-8 text"), (b"x" * (1 << 21), "too large for a definition")],
)
def test_refuses_a_file_that_is_no_definition(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "defs.yaml"
    path.write_bytes(content)
    with pytest.raises(DefinitionError, match=message):
        read_file(path)
    with pytest.raises(DefinitionError, match="cannot be read"):
        read_file(tmp_path)


_SCALARS = st.one_of(
    st.text(max_size=8),
    st.sampled_from(["yes", "NO", "0100", "1:30", "089", "1e5", "1_000", "<<", "=", "~", "null", "5."]),
    st.integers(-1000, 1000),
    st.booleans(),
    st.none(),
)
_CONTENTS = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)


@given(content=_CONTENTS)
@examples(100)
def test_reads_the_same_as_dagsters_reader_or_refuses(content: Any) -> None:
    text = yaml.safe_dump(content, allow_unicode=True)
    try:
        definition = read_definition(text, "f")
    except DefinitionError:
        return
    assert definition == yaml.safe_load(text)


@given(content=_CONTENTS)
@examples(100)
def test_accepts_quoted_text(content: Any) -> None:
    text = yaml.safe_dump(content, allow_unicode=True, default_style='"')
    try:
        definition = read_definition(text, "f")
    except DefinitionError as refused:
        assert "tag" in str(refused) and "!!" in text  # quoted numbers are written with one
        return
    assert definition == content
