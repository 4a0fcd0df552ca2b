"""Print the results of commands as lines, tables, JSON, CSV or HTML, and turn errors into exit codes."""

from __future__ import annotations

import csv
import html
import io
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, get_args

import click

from disclosure_pipeline.errors import (
    DisclosurePipelineError,
    RefusedError,
    UndeterminedError,
    describe_unexpected,
)
from disclosure_pipeline.runtime.progress import show_progress, watch_interrupts
from disclosure_pipeline.tables.messages import escape_unseen, escape_unseen_in_lines

if TYPE_CHECKING:
    from rich.console import Console

    from disclosure_pipeline.candidates.store import GateFolders

P = ParamSpec("P")
T = TypeVar("T")


class ExitCode(IntEnum):
    """The exit codes of every command."""

    APPROVED = 0
    REFUSED = 1
    USAGE = 2
    UNDETERMINED = 3
    CRASHED = 4
    COPIED = 5


MEANINGS = {
    ExitCode.APPROVED: "approved, or done without problems",
    ExitCode.REFUSED: "refused: a clause is broken, or the input is invalid",
    ExitCode.USAGE: "wrong usage of the command",
    ExitCode.UNDETERMINED: "could not be determined, which is never an approval",
    ExitCode.CRASHED: "crashed: the program failed and has decided nothing",
    ExitCode.COPIED: "people were copied into a synthetic table (measure)",
}

EXIT_CODES = "\b\nExit codes:\n" + "\n".join(f"  {code}  {meaning}" for code, meaning in MEANINGS.items())
"""The exit codes in the help of every command."""


def find_exit_code(decision: str | None) -> ExitCode:
    """Return the exit code of a verdict; a missing one counts as undetermined.

    >>> find_exit_code("refused")
    <ExitCode.REFUSED: 1>
    >>> find_exit_code(None)
    <ExitCode.UNDETERMINED: 3>
    """
    codes = {"approved": ExitCode.APPROVED, "refused": ExitCode.REFUSED}
    return codes.get(decision or "", ExitCode.UNDETERMINED)


def make_ending(message: str, code: ExitCode) -> click.ClickException:
    """Return the exception that ends a command with a message and an exit code."""
    exception = click.ClickException(escape_unseen_in_lines(message))
    exception.exit_code = int(code)  # type: ignore[misc]  # click reads it from the instance
    return exception


def report_errors(
    code: ExitCode = ExitCode.REFUSED,
    expected: tuple[type[Exception], ...] = (DisclosurePipelineError,),
    *,
    writes_files: bool = True,
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Print expected errors and end the command with `code`; all others count as a crash.

    RefusedError and UndeterminedError have their own codes, and an interrupt counts as undetermined.
    Unexpected errors are printed without their message, which may quote a record. A command that writes no
    files is ended soon after an interrupt even if it does not react (`watch_interrupts`).
    """

    def decorate(command: Callable[P, T]) -> Callable[P, T]:
        @wraps(command)
        def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
            interrupted = None
            try:
                with watch_interrupts(None if writes_files else ExitCode.UNDETERMINED) as interrupted:
                    return command(*args, **kwargs)
            except KeyboardInterrupt:
                ending = make_ending("Interrupted.", ExitCode.UNDETERMINED)
            except SystemExit as exit:  # Dagster reports an interrupted step as a crash
                if not exit.code or not (interrupted and interrupted.is_set()):
                    raise
                ending = make_ending("Interrupted.", ExitCode.UNDETERMINED)
            except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
                raise
            except expected as error:
                ending = make_ending(str(error), _code_of_error(error, code))
            except Exception as error:  # of any library
                ending = make_ending(describe_unexpected(error), ExitCode.CRASHED)
            # Outside the except block, so that the error has no context.
            raise ending

        return wrapped

    return decorate


def _code_of_error(error: Exception, otherwise: ExitCode) -> ExitCode:
    if isinstance(error, RefusedError):
        return ExitCode.REFUSED
    return ExitCode.UNDETERMINED if isinstance(error, UndeterminedError) else otherwise


gate_argument = click.argument("gate", type=click.Path(exists=True, path_type=Path))


def load_with_waivers(gate: Path) -> tuple[Path, GateFolders]:
    """Return the gate's file, and its folders with the waivers beside the file."""
    from disclosure_pipeline.orchestration.gate_file import folders_of, load_gate
    from disclosure_pipeline.policy.gate_template import find_gate_file
    from disclosure_pipeline.policy.reviewed_files import read_waivers

    file = (find_gate_file(gate) or gate) if gate.is_dir() else gate
    return file, folders_of(load_gate(file), read_waivers(file.parent / "waivers"))


Format = Literal["table", "json", "csv", "html"]

# Characters between two columns of a table.
_GAP = 3

# Decimals of a figure in a table; JSON and CSV have all digits.
_DIGITS = 4

_STYLE = (
    "body{font:1rem/1.5 sans-serif;margin:2rem;color:#222;background:#fff}"
    "table{border-collapse:collapse;margin:1rem 0}caption{text-align:left;font-weight:bold}"
    "th,td{border:1px solid #767676;padding:.3rem .6rem;text-align:left;vertical-align:top}"
    "th{background:#12436D;color:#fff}thead{display:table-header-group}"
)


@dataclass(frozen=True)
class Table:
    """Rows of cells by column, with a name for programs, and a title and `headings` for readers."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: Sequence[Mapping[str, Any]]
    headings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """A heading, single facts, and tables; CSV has only the first table, plain text has `lines` instead."""

    heading: str
    facts: Mapping[str, Any]
    tables: tuple[Table, ...]
    lines: Sequence[str] = ()


format_option = click.option(
    "--format",
    "shown_as",
    type=click.Choice(get_args(Format)),
    default=None,
    help="Output format. By default tables on a terminal, and plain lines in a pipe or file.",
)


open_option = click.option("--open", "opens", is_flag=True, help="Open the page of the dossier.")


def point_to_page(folders: GateFolders, page: Path | None, shown_as: Format | None, *, opens: bool) -> None:
    """Print where the page of a dossier is, if there is one and people read the output, and open it."""
    from disclosure_pipeline.candidates.evaluation import link_to_page

    if page is None:
        return
    if shown_as in {None, "table"}:
        echo(f"Page: {link_to_page(folders.gate, folders.store.root, page)}")
    if opens:
        click.launch(page.absolute().as_uri())


def echo(text: object, *, nl: bool = True, err: bool = False) -> None:
    """Print text with invisible and control characters escaped, except line breaks."""
    click.echo(escape_unseen_in_lines(str(text)), nl=nl, err=err)


def choose_format(shown_as: Format | None) -> Format | None:
    """Return the requested format, by default tables on a terminal and None (plain lines) elsewhere."""
    return "table" if shown_as is None and sys.stdout.isatty() else shown_as


def print_report(report: Report, shown_as: Format | None) -> None:
    """Print a report to standard output; None stands for plain lines."""
    writers = {"json": to_json, "csv": to_csv, "html": to_html}
    if shown_as is None:
        for line in (report.heading, *report.lines):
            echo(line)
    elif shown_as == "table":
        _print_tables(report)
    else:
        click.echo(writers[shown_as](report), nl=False)


def _print_tables(report: Report) -> None:
    from rich import box
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False, emoji=False, markup=False)
    console.print(Text(escape_unseen(report.heading), style="bold"))
    for name, fact in report.facts.items():
        console.print(Text(f"{name.replace('_', ' ')}: {format_cell(fact)}"))
    for table in report.tables:
        columns = list(table.columns)
        headings = [escape_unseen(table.headings.get(name, name)) for name in columns]
        cells = [[format_cell(row.get(name)) for name in columns] for row in table.rows]
        widths = _share_width(list(zip(headings, *cells, strict=True)), console.width, cell_len)
        if not cells:
            console.print(Text(f"{escape_unseen(table.title)}: none"))
        elif widths is None:
            _print_row_by_row(console, escape_unseen(table.title), headings, cells)
        else:
            drawn = RichTable(
                title=escape_unseen(table.title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False
            )
            for name, heading, width in zip(columns, headings, widths, strict=True):
                is_numeric = any(isinstance(row.get(name), int | float) for row in table.rows)
                drawn.add_column(heading, justify="right" if is_numeric else "left", width=width)
            for row in cells:
                drawn.add_row(*map(Text, row))
            console.print(drawn)


def _share_width(
    columns: Sequence[Sequence[str]], width: int, measure: Callable[[str], int]
) -> list[int] | None:
    """Return the widths of a table's columns; None if that would break words, which could not be copied."""
    narrowest = [
        max((measure(word) for text in column for word in text.split()), default=0) for column in columns
    ]
    widest = [max(map(measure, column)) for column in columns]
    spare = width - _GAP * len(columns) - sum(narrowest)
    wanted = [wide - narrow for narrow, wide in zip(narrowest, widest, strict=True)]
    if spare < 0:
        return None
    share = min(1.0, spare / max(1, sum(wanted)))
    return [narrow + int(more * share) for narrow, more in zip(narrowest, wanted, strict=True)]


def _print_row_by_row(
    console: Console, title: str, headings: Sequence[str], rows: Iterable[Sequence[str]]
) -> None:
    """Print a table that is too wide for the terminal, with the first cell of each row above the others."""
    from rich.padding import Padding
    from rich.text import Text

    console.print(Text(title))
    for row in rows:
        first, *others = (
            f"{heading} {cell or '-'}".strip() for heading, cell in zip(headings, row, strict=True)
        )
        console.print(Text(f"\n{first}"))
        is_brief = all(len(cell.split()) <= 1 for cell in row[1:])
        for line in ["   ".join(others)] if is_brief else others:
            console.print(Padding(Text(line), (0, 0, 0, 2), expand=False))


def print_sentences(sentences: Iterable[str]) -> None:
    """Print a list of sentences, wrapped to the terminal's width."""
    from rich.console import Console
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False, emoji=False, markup=False)
    for sentence in sentences:
        console.print(Text(f"- {escape_unseen(sentence)}"))


def format_cell(value: Any) -> str:
    """Return a cell for readers: numbers with at most four decimals, "" for missing ones.

    >>> format_cell(8.0), format_cell(1 / 3), format_cell(None), format_cell(True)
    ('8', '0.3333', '', 'yes')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.{_DIGITS}f}".rstrip("0").rstrip(".") if math.isfinite(value) else str(value)
    if isinstance(value, list | tuple):
        return ", ".join(map(format_cell, value))
    return escape_unseen(str(value))


def to_json(report: Report) -> str:
    """Return the report as a JSON object with its facts and a list per table; missing numbers are null."""
    tables = {
        table.name: [{name: _to_plain(row.get(name)) for name in table.columns} for row in table.rows]
        for table in report.tables
    }
    facts = {name: _to_plain(fact) for name, fact in report.facts.items()}
    content = {"heading": report.heading, **facts, **tables}
    written = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    return escape_unseen_in_lines(written) + "\n"


def to_csv(report: Report) -> str:
    """Return the first table of a report as CSV, with a header; missing cells are empty."""
    table = report.tables[0]
    rows = [[_to_plain(row.get(name)) for name in table.columns] for row in table.rows]
    return "".join(map(_to_line, [table.columns, *rows]))


def _to_line(cells: Sequence[Any]) -> str:
    """Return a line of CSV. The writer ends it with CR LF, since only then does it quote carriage returns."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\r\n").writerow(["" if cell is None else cell for cell in cells])
    return file.getvalue().removesuffix("\r\n") + "\n"


def to_html(report: Report) -> str:
    """Return the report as one HTML page without scripts or external resources."""
    heading = html.escape(escape_unseen(report.heading))
    facts = "".join(
        f"<li>{html.escape(name.replace('_', ' '))}: {html.escape(format_cell(fact))}</li>"
        for name, fact in report.facts.items()
    )
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{heading}</title><style>{_STYLE}</style></head><body><main><h1>{heading}</h1>"
        f"{f'<ul>{facts}</ul>' if facts else ''}{''.join(map(_to_html_table, report.tables))}"
        "</main></body></html>\n"
    )


def _to_html_table(table: Table) -> str:
    head = "".join(
        f'<th scope="col">{html.escape(escape_unseen(table.headings.get(name, name)))}</th>'
        for name in table.columns
    )
    body = "".join(
        "<tr>"
        + "".join(f"<td>{html.escape(format_cell(row.get(name)))}</td>" for name in table.columns)
        + "</tr>"
        for row in table.rows
    )
    caption = html.escape(escape_unseen(table.title))
    return f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _to_plain(value: Any) -> Any:
    """Return a value that JSON can represent: NumPy numbers as Python's, non-finite ones as None."""
    if isinstance(value, list | tuple):
        return [_to_plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value)


@contextmanager
def show_step(text: str) -> Iterator[Callable[[str], object]]:
    """Show the current step on a terminal (standard error) while the block runs.

    The block gets a function that changes the text.
    """
    if not sys.stderr.isatty():
        yield lambda _text: None
        return
    with show_progress() as on_progress:
        on_progress(text, 0, 0)
        yield lambda text: on_progress(text, 0, 0)
