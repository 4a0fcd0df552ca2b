"""Printed results: tables that fit, JSON and CSV with all digits, and a page without requests."""

import contextlib
import csv
import io
import json
import math
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import example, given
from hypothesis import strategies as st

from disclosure_pipeline.cli.printing import (
    ExitCode,
    Report,
    Table,
    find_exit_code,
    format_cell,
    print_report,
    print_sentences,
    report_errors,
    to_csv,
    to_html,
    to_json,
)
from disclosure_pipeline.errors import DisclosurePipelineError, RefusedError, UndeterminedError

SECRET = "Xylophonist-4711"


def table(*rows: dict[str, Any], columns: tuple[str, ...] = ("clause", "value")) -> Report:
    return Report("A heading", {"gate": "small", "ready": True}, (Table("rows", "The rows", columns, rows),))


LONG = table(
    {"clause": "a_clause_with_a_very_long_name[and_a_column_that_is_long_too]" * 3, "value": 1 / 3},
    {"clause": "words " * 60, "value": None},
)


@pytest.mark.parametrize("width", [None, 40, 80, 200])
def test_tables_fit_the_terminal(width: int | None, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """And nothing is cut: long cells go on in the next line. A pipe has 80 columns, and no colours."""
    monkeypatch.delenv("COLUMNS", raising=False)
    if width:
        monkeypatch.setenv("COLUMNS", str(width))
    print_report(LONG, "table")
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= (width or 80)
    letters = "".join(shown.split())
    assert letters.count("words") == 60 and "0.3333" in letters and not {"…", "\x1b"} & set(letters)


def test_readers_see_headings_and_programs_names(capsys: Any) -> None:
    report = Report(
        "A heading", {}, (Table("rows", "The rows", ("own",), [{"own": 1}], {"own": "by itself"}),)
    )
    assert "by itself" in to_html(report) and "own" not in to_html(report)
    assert "own" in to_json(report) and to_csv(report) == "own\n1\n"
    print_report(report, "table")
    shown = capsys.readouterr().out
    assert "by itself" in shown and "own" not in shown


names = st.text(st.sampled_from("ab_[]-9é"), min_size=1, max_size=40)


@given(st.lists(st.tuples(names, names, names), min_size=1, max_size=3), st.sampled_from([80, 200]))
@example([("conditional-model", "DiSCO[worked_abroad] beyond 2.2 <= 3", "2026-11-24 23:10 UTC")], 80)
@example([("a" * 40, "b" * 40, "c" * 40)], 80)
@example([("a-long-name-of-a-model", "word " * 30, "2026-11-24")], 60)
def test_no_name_or_heading_is_broken_or_cut(rows: list[tuple[str, str, str]], width: int) -> None:
    columns = ("candidate", "worst clause", "published")
    cells = [dict(zip(columns, row, strict=True)) for row in rows]
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        patch.setenv("COLUMNS", str(width))
        print_report(table(*cells, columns=columns), "table")
    shown = printed.getvalue()
    assert max(map(len, shown.splitlines())) <= width
    for row in (columns, *rows):
        assert {word for cell in row for word in cell.split()} <= set(shown.split())


@pytest.mark.parametrize("width", [40, 80, 200])
def test_sentences_fit_the_terminal(width: int, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    print_sentences(["word " * 60 + "[bold]end", "another"])
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= width
    assert " ".join(shown.split()) == "- " + "word " * 60 + "[bold]end - another"


def test_what_looks_like_markup_is_printed_as_it_is(capsys: Any) -> None:
    print_report(table({"clause": "DiSCO[income] [bold]x[/bold] :warning:", "value": 1}), "table")
    assert "DiSCO[income] [bold]x[/bold] :warning:" in capsys.readouterr().out


cells = st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.floats(), st.text(max_size=9))


@given(st.lists(st.fixed_dictionaries({"clause": st.text(max_size=5), "value": cells}), max_size=4))
@example([{"clause": "", "value": "\r0"}])
def test_json_and_csv_hold_every_row(rows: list[dict[str, Any]]) -> None:
    """A number that is not finite is null, and empty in CSV; every other one keeps all its digits."""
    report = table(*rows)
    read = json.loads(to_json(report), parse_constant=pytest.fail)
    assert read["gate"] == "small" and read["ready"] is True
    for row, shown in zip(rows, read["rows"], strict=True):
        value = row["value"]
        is_finite = not isinstance(value, float) or math.isfinite(value)
        assert shown == {"clause": row["clause"], "value": value if is_finite else None}
    header, *lines = list(csv.reader(io.StringIO(to_csv(report), newline="")))
    assert header == ["clause", "value"]
    assert len(lines) == len(rows)
    for row, line in zip(rows, lines, strict=True):
        if isinstance(row["value"], float) and math.isfinite(row["value"]):
            assert float(line[1]) == row["value"]


def test_numbers_of_numpy_are_numbers() -> None:
    read = json.loads(to_json(table({"clause": "c", "value": np.float64(0.1)}, {"value": np.int64(3)})))
    assert [row["value"] for row in read["rows"]] == [0.1, 3]


def test_a_page_asks_nobody_and_escapes_what_it_shows() -> None:
    page = to_html(table({"clause": "<script>alert(1)</script>", "value": "a & b"}))
    assert "<script" not in page and "&lt;script&gt;" in page and "a &amp; b" in page
    assert "default-src 'none'" in page and "http://" not in page and "https://" not in page
    assert '<html lang="en">' in page and '<th scope="col">' in page and "<caption>" in page


@pytest.mark.parametrize(
    ("value", "shown"),
    [(float("nan"), ""), (0.00001, "0"), ([1, "a"], "1, a")],
)
def test_cells(value: Any, shown: str) -> None:
    """Others are in the function's examples."""
    assert format_cell(value) == shown


def failing(error: BaseException, otherwise: ExitCode = ExitCode.REFUSED) -> Any:
    @click.command()
    @report_errors(otherwise)
    def command() -> None:
        raise error

    return CliRunner().invoke(command)


@pytest.mark.parametrize(
    ("error", "otherwise", "code"),
    [
        (DisclosurePipelineError("ours"), ExitCode.REFUSED, 1),
        (DisclosurePipelineError("ours"), ExitCode.UNDETERMINED, 3),
        (RefusedError("ours"), ExitCode.REFUSED, 1),
        (RefusedError("ours"), ExitCode.UNDETERMINED, 1),
        (UndeterminedError("ours"), ExitCode.REFUSED, 3),
        (click.UsageError("ours"), ExitCode.REFUSED, 2),
    ],
)
def test_errors_of_ours_are_told(error: Exception, otherwise: ExitCode, code: int) -> None:
    ran = failing(error, otherwise)
    assert ran.exit_code == code
    assert "ours" in ran.stderr
    assert isinstance(ran.exception, SystemExit)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (KeyError(SECRET), ""),
        (ValueError(SECRET), ""),
        (RecursionError(SECRET), ""),
        (OSError(SECRET), ""),
        (OSError(5, SECRET), " (Input/output error)"),
        (OSError(28, SECRET, SECRET), " (No space left on device)"),
        (OSError(902104357, SECRET), ""),  # no number of the system's: it could be an amount
    ],
)
def test_a_crash_is_told_without_its_message(error: Exception, reason: str) -> None:
    """It may quote a record; what the system says of a full disk cannot."""
    ran = failing(error)
    assert ran.exit_code == 4 and "902104357" not in ran.output
    assert f"Unexpected {type(error).__name__}{reason} at " in ran.stderr and "test_printing.py" in ran.stderr
    assert SECRET not in ran.output
    assert ran.exception is not None and SECRET not in repr(ran.exception.__context__)


@pytest.mark.parametrize(
    ("decision", "code"), [("approved", 0), ("refused", 1), ("undetermined", 3), (None, 3), ("x", 3)]
)
def test_only_an_approval_ends_with_0(decision: str | None, code: int) -> None:
    assert find_exit_code(decision) == code
