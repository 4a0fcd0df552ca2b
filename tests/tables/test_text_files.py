"""Text files that are not written as most are: declared, or guessed by the command line."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from support.gates import run_command
from support.refusals import refusal

import disclosure_pipeline as dp
from disclosure_pipeline.policy.gate_template import read_gate
from disclosure_pipeline.tables import text_files
from disclosure_pipeline.tables.contract import read_canonical
from disclosure_pipeline.tables.dictionary import Column, Contract, ContractError
from disclosure_pipeline.tables.sources import FileSource, read_raw

pytestmark = pytest.mark.usefixtures("no_guards")

SECRET = "Quetzalcoatl"


def read(path: Path, text: str | bytes, **form: Any) -> list[Any]:
    """Return the values of the column `a` of a file."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return list(read_raw(FileSource(path=str(path), **form), "T")["a"].tolist())


@pytest.mark.parametrize(
    ("decimal", "thousands", "written", "expected"),
    [
        (",", ".", ["1.234,5", "-12.345.678", "7", "0,5", "999"], ["1234.5", "-12345678", "7", "0.5", "999"]),
        (".", ",", ["1,234.5", "+12,345,678", "7", "0.5", "999"], ["1234.5", "+12345678", "7", "0.5", "999"]),
        (",", " ", ["1 234,5", "12 345", "2,5e3", "7"], ["1234.5", "12345", "2.5e3", "7"]),
        (",", "\u202f", ["1\u202f234,5", "7"], ["1234.5", "7"]),
        (None, "'", ["1'234.5", "7"], ["1234.5", "7"]),
        (",", None, ["1,5", "-,5", "+2,25e3", " 3,0 "], ["1.5", "-.5", "+2.25e3", " 3.0 "]),
        (",", None, texts := ["1,5 or 3", "a,b", "1,2,3", "7", "05.04.2020", "2020-01-02"], texts),
        (",", ".", ["05.04.2020", "31.12.2020"], ["05.04.2020", "31.12.2020"]),
        (",", ".", ["a 1.234", "b", "1.2.3"], ["a 1.234", "b", "1.2.3"]),
    ],
)
def test_numbers_are_read_as_declared_and_other_texts_stay(
    decimal: Any, thousands: Any, written: list[str], expected: list[str], tmp_path: Path
) -> None:
    form = {"delimiter": ";", "decimal": decimal, "thousands": thousands}
    text = "a;b\n" + "".join(f"{value};x\n" for value in written)
    assert read(tmp_path / "t.csv", text, **form) == expected


@pytest.mark.parametrize(
    ("thousands", "written"),
    [
        *((".", ["1.234", other]) for other in ("12.5", "0.123")),
        *((",", ["1,234", "12,5"]), (" ", ["1 234", "1 23"])),
        *((None, ["1,5", "2.5"]), (None, ["1.234,56"]), (None, ["1.234.567"]), (None, ["999,50", "1.234"])),
    ],
)
@pytest.mark.parametrize("between", [1, 5_000])  # far apart: in different batches
def test_numbers_in_two_forms_are_refused(
    thousands: Any, written: list[str], between: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_files, "_BLOCK", 1 << 12)
    form = {"delimiter": ";", "decimal": "." if thousands == "," else ",", "thousands": thousands}
    first, *rest = written
    text = "a;b\n" + "".join(f"{value};x\n" for value in [first, *["7"] * between, *rest])
    message = str(refusal(lambda: read(tmp_path / "t.csv", text, **form), *written))
    mark = f"in which {thousands!r} separates thousands" if thousands else "with a decimal comma"
    assert message.startswith(f"T: column 'a' has numbers {mark}, and")


@given(
    numbers=st.lists(st.integers(-(10**12), 10**12) | st.decimals(-(10**9), 10**9, places=2), min_size=1),
    marks=st.sampled_from([(",", "."), (".", ","), (",", " "), (".", "'"), (",", "\u00a0")]),
)
def test_any_numbers(
    numbers: list[Any], marks: tuple[Any, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    decimal, thousands = marks
    swapped = [f"{number:,}".translate(str.maketrans({",": thousands, ".": decimal})) for number in numbers]
    text = "a;b\n" + "".join(f"{value};x\n" for value in swapped)
    values = read(
        tmp_path_factory.mktemp("t") / "t.csv", text, delimiter=";", decimal=decimal, thousands=thousands
    )
    assert [float(value) for value in values] == [float(number) for number in numbers]


@pytest.mark.parametrize("encoding", ["latin-1", "cp1250", "utf-16", "utf-16-le", "utf-8"])
def test_an_encoding_is_declared(encoding: str, tmp_path: Path) -> None:
    towns = ["Łódź", "Köln"] if encoding != "latin-1" else ["Málaga", "Köln"]
    content = ("a,b\n" + "".join(f"{town},{i}\n" for i, town in enumerate(towns))).encode(encoding)
    assert read(tmp_path / "t.csv", content, encoding=encoding) == towns


def test_another_encoding_than_declared(tmp_path: Path) -> None:
    text = f"a,b\n{SECRET},1\n\x81,2\n"
    for content, form, said in (
        (text.encode("utf-16"), {}, "it is UTF-16; save it as UTF-8, or give the source's encoding"),
        (text.encode("latin-1"), {"encoding": "cp1252"}, "of another encoding: line 3 is not cp1252"),
    ):
        assert said in str(refusal(lambda: read(tmp_path / "t.csv", content, **form), SECRET))  # noqa: B023


@pytest.mark.parametrize(
    ("quote", "text", "expected"),
    [
        ("'", "a,b\n'x,y',1\n", ["x,y"]),
        ("", 'a,b\n5" pipe,1\n"x,2\n', ['5" pipe', '"x']),
        (None, 'a,b\n"x,y",1\n', ["x,y"]),
    ],
)
def test_quotes(quote: Any, text: str, expected: list[str], tmp_path: Path) -> None:
    assert read(tmp_path / "t.csv", text, quote=quote) == expected


@pytest.mark.parametrize(
    "form",
    [
        {"decimal": ",", "thousands": ","},
        {"decimal": "x"},
        {"thousands": "."},
        {"thousands": "_"},
        {"encoding": "klingon"},
        {"delimiter": '"'},
        {"delimiter": "§"},
        {"quote": ","},
        {"quote": "''"},
        {"sheet": ""},
    ],
)
def test_what_no_file_has(form: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        FileSource(path="t.csv", **form)


def people(seed: int) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "sex": random.choice(["f", "m"], 300),
            "age": random.integers(18, 60, 300),
            "pay": np.round(random.lognormal(8, 0.5, 300), 2),
        }
    )


Sources = tuple[FileSource, FileSource]


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    """GT and SD as R's write.csv2 and Excel write them in most of Europe, declared as such."""
    paths = [tmp_path / "gt.csv", tmp_path / "synthetic.csv"]
    for seed, path in enumerate(paths, start=1):
        noted = people(seed).assign(note=np.resize(["a, b", "c", "1,2 or 3"], 300))
        noted.to_csv(path, index=False, sep=";", decimal=",")
    gt, sd = (FileSource(path=str(path), delimiter=";", decimal=",") for path in paths)
    return gt, sd


def undeclared(source: FileSource) -> FileSource:
    return source.model_copy(update={"decimal": None})


@pytest.mark.parametrize("engine", ["memory", "partitioned"])
@pytest.mark.parametrize("how", [{"groups": {"pay": 10}}, {"within": {"pay": 0.1}}, {}])
def test_figures_of_decimal_commas_are_those_of_points(
    sources: Sources, engine: str, how: dict[str, Any]
) -> None:
    keys, targets = ["sex", "age"], ["pay", "note"]
    gt, sd = (pd.read_csv(source.path, sep=";", decimal=",") for source in sources)
    expected = dp.disclosure(gt, sd, keys, targets, **how)
    actual = dp.disclosure(*sources, keys, targets, engine=engine, **how)
    for name in ("attribute", "identity", "target_overlap", "bands"):
        pd.testing.assert_frame_equal(actual.frame(name), expected.frame(name))
    if how:
        one, other = map(undeclared, sources)
        message = str(refusal(lambda: dp.disclosure(one, other, keys, ["pay"], engine=engine, **how)))
        both = "In the ground truth and the synthetic table its numbers have a decimal comma"
        assert both in message and "declare the source's decimal: ','" in message


def test_one_table_with_commas_and_one_with_points(sources: Sources, tmp_path: Path) -> None:
    people(1).to_csv(tmp_path / "points.csv", index=False, sep=";")
    points = FileSource(path=str(tmp_path / "points.csv"), delimiter=";")
    doubts = dp.disclosure(undeclared(sources[0]), points, ["sex"], ["pay"]).comparability_doubts
    assert any("Some differ only by a decimal comma" in doubt for doubt in doubts)
    declared = dp.disclosure(sources[0], points, ["sex"], ["pay"])
    assert not any("'pay'" in doubt for doubt in declared.comparability_doubts)
    expected = dp.disclosure(people(1), people(1), ["sex"], ["pay"])
    pd.testing.assert_frame_equal(declared.attribute, expected.attribute)


def test_a_dictionary_says_of_the_type_that_numbers_have_a_decimal_comma(sources: Sources) -> None:
    def read_number(source: FileSource, name: str) -> pd.DataFrame:
        return read_canonical(source, Contract({name: Column(type="number")}, "T", [name], False)).frame

    assert not read_number(sources[0], "pay").empty
    with pytest.raises(ContractError, match="is not of type number: its numbers have a decimal comma"):
        read_number(undeclared(sources[0]), "pay")
    with pytest.raises(ContractError) as broken:
        read_number(undeclared(sources[0]), "note")
    assert "comma" not in str(broken.value)


def test_what_the_command_line_declares(sources: Sources) -> None:
    paths = [source.path for source in sources]
    for delimiter, decimal, code, said in (
        (",", ",", 1, "--delimiter"),
        (";", ".", 1, "decimal comma"),
        (";", ",", 0, ""),
        ("ab", ",", 2, ""),
    ):
        declared = ("--delimiter", delimiter, "--decimal", decimal)
        shown = run_command("measure", *paths, *MEASURE, *declared)
        assert shown.exit_code == code and said in shown.stderr
    draft = ("dictionary", "draft", paths[0], "--confidential")
    drafted = run_command(*draft, "--decimal", ".").stdout
    assert "# its numbers have a decimal comma" in drafted and str(people(1)["pay"][0]) not in drafted
    drafted = run_command(*draft, "--delimiter", ";", "--decimal", ",").stdout
    assert "pay:\n    type: number\n" in drafted


MEASURE = ("--key", "sex", "--key", "age", "--target", "pay", "--groups", "pay=5", "--format", "csv")


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({"sep": ";", "decimal": ","}, "--delimiter ';' --decimal ,"),
        ({"sep": ";"}, "--delimiter ';'"),
        ({"sep": "\t"}, "--delimiter tab"),
        ({"sep": "|", "decimal": ","}, "--delimiter '|' --decimal ,"),
        ({"encoding": "utf-16"}, "--encoding utf-16"),
        ({"sep": ";", "decimal": ",", "encoding": "utf-16"}, "--delimiter ';' --decimal , --encoding utf-16"),
        ({}, ""),
    ],
)
def test_what_the_first_lines_show_is_read_and_said(
    written: dict[str, str], said: str, tmp_path: Path
) -> None:
    shown = measure_written(tmp_path, **written)
    assert shown.stdout == measured_plainly()
    sentence = f"gt.csv is read with {said}, as its first lines show."
    assert (sentence in shown.stderr) == bool(said) == ("is read with" in shown.stderr)
    drafted = run_command("dictionary", "draft", tmp_path / "gt.csv", "--synthetic").stdout
    assert "type: number" in drafted and "type: integer" in drafted


def measure_written(folder: Path, **written: Any) -> Result:
    paths = [folder / "gt.csv", folder / "sd.csv"]
    for seed, path in enumerate(paths):
        people(seed).to_csv(path, index=False, **written)
    return run_command("measure", *paths, *MEASURE)


@cache
def measured_plainly() -> str:
    with TemporaryDirectory() as folder:
        return measure_written(Path(folder)).stdout


@pytest.mark.parametrize(
    "text",
    [
        "a;b|c\n1;2|3\n",  # two marks fit
        "a;b\n1;2\n3;4;5\n",  # not every line
        "a;b,c\n1;2,3\n",  # as well with commas
        "a;b\n",  # one line alone
        "a\n1\n",
    ],
)
def test_what_is_not_clear_is_not_guessed(text: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text)
    source = FileSource(path=str(tmp_path / "t.csv"))
    assert source.guess_undeclared() == source


@pytest.mark.parametrize(
    ("values", "decimal"),
    [
        (["1,5", "2"], ","),
        (["1,5", "2.5"], None),
        (["1,250", "2,500"], None),  # thousands, or three decimals
        (["1,5", "a"], None),
        (["1", "2"], None),
    ],
)
def test_when_a_decimal_comma_is_clear(values: list[str], decimal: str | None, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a;b\n" + "".join(f"{value};x\n" for value in values))
    assert FileSource(path=str(tmp_path / "t.csv")).guess_undeclared().decimal == decimal
    declared = FileSource(path=str(tmp_path / "t.csv"), delimiter=";", decimal=".")
    assert declared.guess_undeclared() == declared


def test_the_library_does_not_guess(tmp_path: Path) -> None:
    people(1).to_csv(tmp_path / "t.csv", index=False, sep=";")
    refusal(lambda: dp.disclosure(tmp_path / "t.csv", tmp_path / "t.csv", ["sex"], ["pay"]))


def test_options_that_contradict_each_other(tmp_path: Path) -> None:
    people(1).to_csv(tmp_path / "t.csv", index=False)
    shown = run_command("dictionary", "draft", tmp_path / "t.csv", "--synthetic", "--thousands", ".")
    assert shown.exit_code == 2
    assert "decimal and thousands are the same mark: set both" in shown.stderr


def test_a_new_gate_reads_what_was_declared(tmp_path: Path) -> None:
    people(1).to_csv(tmp_path / "invented.csv", index=False, sep=";", decimal=",")
    own = {"path": "/confidential/gt.csv", "delimiter": ";", "decimal": ",", "encoding": "cp1252"}
    run_command(
        *("init", tmp_path / "project", "--name", "pay", "--table", tmp_path / "invented.csv"),
        *("--ground-truth", own["path"], "--key", "sex"),
        *("--delimiter", ";", "--decimal", ",", "--encoding", "cp1252"),
    )
    gate = read_gate(tmp_path / "project" / "gates" / "defs" / "pay")
    assert gate.columns["pay"].type == "number"
    assert gate.ground_truth == FileSource.model_validate(own)
