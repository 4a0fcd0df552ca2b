"""Accepted and refused values of the arguments `groups`, `special_values` and `edges`."""

import math
import re
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from support.gates import run_command

import disclosure_pipeline as dp
from disclosure_pipeline.cli.printing import ExitCode, Report, Table, make_ending, print_report, to_html
from disclosure_pipeline.evaluation.plots.drawing import convert
from disclosure_pipeline.evidence.dossier import to_markdown_table
from disclosure_pipeline.evidence.page.rendering import render_result
from disclosure_pipeline.tables.grouping import Grouping, grouping_of
from disclosure_pipeline.tables.messages import escape_markdown, escape_unseen


def test_nothing_is_grouped_without_arguments() -> None:
    assert grouping_of() == grouping_of(None, None) == grouping_of({}, {}) == Grouping({}, {}, "pooled")


def test_arguments_become_a_grouping() -> None:
    grouping = grouping_of({"n": np.int64(3)}, {"n": [-8, np.inf]}, {"m": [0, 1, 2]})
    assert grouping == Grouping({"n": 3}, {"n": (-8, math.inf)}, {"m": [0, 1, 2]})
    assert grouping.groups_column("n") and grouping.groups_column("m") and not grouping.groups_column("o")
    assert grouping_of(special_values={"n": np.array([-8.0])}).special_values == {"n": (-8.0,)}


# Letters that cannot be seen are shown as escapes; names format nothing


UNSEEN = "pay\u202eyap\u200b\x1b[31m"
SHOWN = r"pay\u202eyap\u200b\u001b[31m"


@given(st.text())
def test_every_letter_of_an_escaped_text_is_seen(text: str) -> None:
    assert escape_unseen(text).isprintable()


@given(st.text(st.characters(categories=("L", "N", "P", "S")), min_size=1))
def test_markdown_shows_a_name_letter_by_letter(name: str) -> None:
    cell = to_markdown_table([{"name": name, "after": 1}], {"name": "name", "after": "after"})
    [_, _, shown, *rest] = [
        token for token in MarkdownIt().enable("table").parse(cell) if token.type == "inline"
    ]
    assert [token.type for token in shown.children or ()] in ([], ["text"])
    assert shown.content and "".join(token.content for token in shown.children or ()) == name
    assert [token.content for token in rest] == ["1"]


@pytest.mark.parametrize(
    "name",
    ["*age*", "_age_", "`age`", "[age](to)", "<b>age</b>", "a|b", "~~age~~", "https://age.org", "&lt;"],
)
def test_signs_of_markdown_are_escaped(name: str) -> None:
    rendered = MarkdownIt("gfm-like", {"linkify": False}).render(escape_markdown(name))
    assert re.fullmatch(r"<p>[^<]+</p>\n", rendered)
    assert not re.search(r"(?<!\\)https?://", escape_markdown(name))
    for plain in ("DiSCO[net_income]", "age 50+", "Größe"):  # these format nothing
        assert escape_markdown(plain) == plain


def test_a_page_and_a_printed_result_escape_unseen_letters() -> None:
    table = pd.DataFrame({UNSEEN: list("aabbccdd") * 10, "job": list("xxyyxxyz") * 10})
    result = dp.disclosure(table, table, [UNSEEN], "job")
    for text in (str(result), render_result(result)):
        assert text.replace("\n", "").isprintable()
    assert SHOWN in render_result(result)


def test_a_chart_escapes_unseen_letters() -> None:
    people = {"field": "people", "type": "nominal"}
    data = {"values": [{"people": UNSEEN}]}
    drawn = convert({"data": data, "mark": "point", "title": UNSEEN, "encoding": {"x": people}})
    assert drawn.count(SHOWN) >= 2  # in the title and beside the axis
    assert drawn.replace("\n", "").isprintable()


@pytest.mark.parametrize("shown_as", ["table", "json", "html"])
def test_a_report_escapes_unseen_letters(shown_as: Any, capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("clauses", UNSEEN, ("clause",), [{"clause": UNSEEN}])
    print_report(Report(UNSEEN, {"gate": UNSEEN}, (table,)), shown_as)
    printed = capsys.readouterr().out
    # Control codes that style a terminal are not there in a pipe.
    assert printed.replace("\n", "").isprintable()
    assert r"\u202e" in printed
    assert r"\u202e" in to_html(Report(UNSEEN, {}, ()))


def test_an_error_escapes_unseen_letters() -> None:
    error = make_ending(f"Column {UNSEEN} is not there.\nIts columns are …", ExitCode.REFUSED)
    assert isinstance(error, click.ClickException)
    assert error.message == f"Column {SHOWN} is not there.\nIts columns are …"


def test_printed_columns_of_a_file_are_escaped_and_a_drafted_dictionary_is_not(tmp_path: Path) -> None:
    """An escape in the dictionary would be another level."""
    path = tmp_path / "table.csv"
    pd.DataFrame({"age\u202e": ["young", "old"] * 20, "job": ["a\u200b", "b"] * 20}).to_csv(path, index=False)
    printed = run_command("measure", path, path, "--key", "age\u202e", "--target", "job").output
    assert printed.replace("\n", "").isprintable() and r"age\u202e" in printed
    drafted = run_command("dictionary", "draft", "--synthetic", path).stdout
    assert yaml.safe_load(drafted)["columns"]["job"]["levels"] == ["a\u200b", "b"]


@pytest.mark.parametrize("options", [{"groups": {"n": 2}}, {"within": {"n": 0.5}}])
def test_special_values_are_found_among_numbers_of_several_types(options: dict[str, Any]) -> None:
    """Where one table has integers and another fractions, these are compared as decimals."""
    gt = pd.DataFrame({"k": [1, 1, 2, 2, 3, 3], "n": [0.1, 0.1, -8.0, -0.5, 2.0, 7.0]})
    whole = pd.DataFrame({"k": [1, 2, 3], "n": pd.array([-8, 2, 7], dtype="Int64")})
    fractions = pd.DataFrame({"k": [1, 2, 3], "n": [0.1, -8.0, 2.5]})
    special = {"n": [-8, 0.1]}
    given = dp.disclosure(gt, [whole, fractions], ["k"], "n", special_values=special, **options)
    floats = [whole.astype(float), fractions]
    expected = dp.disclosure(gt, floats, ["k"], "n", special_values=special, **options)
    for actual, alike in ((given, expected), (given.stacked, expected.stacked)):
        assert actual is not None and alike is not None
        pd.testing.assert_frame_equal(actual.attribute, alike.attribute, check_exact=True)
    assert expected.attribute["DiSCO"].sum() > 0
