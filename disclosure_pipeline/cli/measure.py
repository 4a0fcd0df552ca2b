"""`measure`: print what synthetic tables in files disclose."""

from __future__ import annotations

import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from disclosure_pipeline.cli.printing import (
    EXIT_CODES,
    ExitCode,
    Format,
    Report,
    Table,
    choose_format,
    echo,
    format_option,
    print_report,
    report_errors,
)
from disclosure_pipeline.counting.engines import list_engines
from disclosure_pipeline.errors import ComparabilityWarning, CopiesWarning, write_count
from disclosure_pipeline.runtime.progress import ignore_progress, show_progress

if TYPE_CHECKING:
    import pandas as pd

    from disclosure_pipeline.evaluation.result import Disclosure
    from disclosure_pipeline.tables.grouping import Grouping
    from disclosure_pipeline.tables.missing import Codes
    from disclosure_pipeline.tables.sources import FileSource

_FRAMES = (
    *("identity", "together_identity", "units", "attribute", "together"),
    *("bands", "cap", "key_overlap", "target_overlap", "guards", "partial_copies", "found"),
)
_COLUMNS = (
    *("frame", "synthesis", "target", "key", "columns", "way", "where", "basis"),
    *("measure", "name", "value", "unit", "meaning"),
)
_SHOWN = ("Dorig", "DiSCO", "DiSCO_at_n", "DiSCO_others", "DiSCO_beyond", "DiSCO_beyond_se")


def report_figures(result: Disclosure, shown_as: Format) -> Report:
    """Return the result of `disclosure()` as a report: summary tables, or one row per figure for programs."""
    copies = result.copies
    facts: dict[str, Any] = {
        "copies": list(copies.sentences),
        "not_examined": list(copies.not_examined),
        "keys": list(map(str, result.keys)),
        "targets": list(map(str, result.targets)),
        "records_of_the_ground_truth": result.N_d,
        "records_of_the_synthetic_tables": list(result.N_s),
        "engine": result.engine,
        "warnings": list(result.warnings),
    }
    heading = copies.headline or f"Disclosure from the keys {', '.join(map(str, result.keys))}"
    if shown_as != "table":
        return Report(heading, facts, (Table("figures", "Figures", _COLUMNS, list(_list_figures(result))),))
    facts.pop("engine")
    facts = {name: fact for name, fact in facts.items() if fact != []}
    identity = result.identity.reset_index()
    summary = result.summary().reset_index()
    means = f"means over the {len(result.N_s)} tables, " if len(result.N_s) > 1 else ""
    together = result.together.reset_index()
    bands = result.list_bands().reset_index()
    tables = (
        _to_table("identity", "Identity disclosure: percent of the records", identity),
        _to_table("attribute", f"Attribute disclosure: {means}percent of the records", summary),
        *([_to_table("bands", "Amounts disclosed within a band", bands)] if len(bands) else []),
        *([_to_table("together", "If all of them are published", together)] if len(together) else []),
        Table(
            "meanings", "What the figures mean", ("figure", "name", "meaning", "unit"), _list_meanings(result)
        ),
    )
    return Report(heading, facts, tables)


def _to_table(name: str, title: str, frame: pd.DataFrame) -> Table:
    rows = [{str(column): value for column, value in row.items()} for row in frame.to_dict("records")]
    return Table(name, title, tuple(map(str, frame.columns)), rows)


def _list_meanings(result: Disclosure) -> list[dict[str, Any]]:
    from disclosure_pipeline.evaluation.frames import find_words

    names = [("identity", str(name)) for name in result.identity.columns]
    names += [("attribute", name) for name in _SHOWN if name in result.attribute.columns]
    return [
        {
            "figure": name,
            "name": words.title,
            "meaning": words.sentence,
            "unit": words.unit_and_denominator,
        }
        for frame, name in names
        if (words := find_words(name, frame)) is not None
    ]


def _list_figures(result: Disclosure) -> Iterator[dict[str, Any]]:
    from disclosure_pipeline.evaluation.frame_columns import COLUMNS
    from disclosure_pipeline.evaluation.long_table import list_entries, view_frame
    from disclosure_pipeline.evidence.dossier import collect_figures
    from disclosure_pipeline.evidence.page.rendering import SMALLEST_COUNT
    from disclosure_pipeline.measures.copies import ALL_COLUMNS

    figures = collect_figures(result, SMALLEST_COUNT, list_entries())
    for frame in _FRAMES:
        for row in view_frame(figures, frame):
            if row.get("columns") == ALL_COLUMNS:  # its figures are those of guards
                continue
            place = {label: row[label] for label in _COLUMNS if label in row}
            for measure, words in COLUMNS[frame].items():
                if measure in row:
                    yield {
                        "frame": frame,
                        **place,
                        "measure": measure,
                        "name": words.title,
                        "value": row[measure],
                        "unit": words.unit_and_denominator,
                        "meaning": words.sentence,
                    }


_TAB = "\t"


def _read_delimiter(_context: click.Context, _option: click.Parameter, text: str | None) -> str | None:
    delimiter = _TAB if text in {"tab", "\\t"} else text
    if delimiter is not None and len(delimiter) != 1:
        raise click.BadParameter("expected one character, such as ';', or tab")
    return delimiter


_FORM_OPTIONS = {
    "delimiter": click.option(
        "--delimiter", callback=_read_delimiter, help="The separator of fields in CSV files, such as ';'."
    ),
    "decimal": click.option(
        "--decimal", type=click.Choice([".", ","]), help="The decimal mark of numbers in CSV files."
    ),
    "thousands": click.option(
        "--thousands", help="What separates thousands in numbers of CSV files, such as '.'."
    ),
    "encoding": click.option("--encoding", help="The encoding of text, such as cp1252; by default UTF-8."),
    "quote": click.option("--quote", help="What quotes fields in CSV files; '' if nothing does."),
    "sheet": click.option("--sheet", help="The sheet of a workbook; by default its only one."),
}


def form_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add options that say how files are written; the command gets them as one argument, `form`."""

    @wraps(command)
    def with_form(**options: Any) -> Any:
        form = {name: options.pop(name) for name in _FORM_OPTIONS}
        return command(**options, form={name: value for name, value in form.items() if value is not None})

    for add_option in reversed(_FORM_OPTIONS.values()):
        with_form = add_option(with_form)
    return with_form


def as_source(path: Path, form: Mapping[str, Any]) -> FileSource:
    """Return the source of a file. Print what is not declared, but shown by its first lines."""
    from pydantic import ValidationError

    from disclosure_pipeline.tables.sources import FileSource

    try:
        declared = FileSource(path=str(path), **form)
    except ValidationError as error:
        problems = "; ".join(str(problem["msg"]) for problem in error.errors(include_input=False))
        raise click.UsageError(f"{path}: {problems}.") from None
    source = declared.guess_undeclared()
    guessed = [
        f"--{name} {'tab' if value == _TAB else shlex.quote(value)}"
        for name in _FORM_OPTIONS
        if (value := getattr(source, name)) != getattr(declared, name)
    ]
    if guessed:
        echo(f"{path.name} is read with {' '.join(guessed)}, as its first lines show.", err=True)
    return source


@click.command(epilog=EXIT_CODES, short_help="Measure what synthetic tables disclose of the ground truth.")
@click.argument("ground_truth", type=click.Path(exists=True, path_type=Path))
@click.argument("synthetic", type=click.Path(exists=True, path_type=Path), nargs=-1, required=True)
@click.option(
    "--key", "keys", multiple=True, required=True, help="A column an intruder knows; repeat for more."
)
@click.option("--target", "targets", multiple=True, help="A column to protect; by default all but the keys.")
@click.option("--groups", multiple=True, metavar="COLUMN=N", help="Put a numeric column into N groups.")
@click.option(
    "--within",
    multiple=True,
    metavar="COLUMN=SIZE",
    help="Band around a numeric target that counts as disclosed: a share if below 1, otherwise an amount.",
)
@click.option(
    "--special", multiple=True, metavar="COLUMN=CODE", help="A numeric code that is a level of its own."
)
@click.option(
    "--missing",
    multiple=True,
    metavar="[COLUMN=]CODE",
    help="A text or number that means missing, such as NA, in every column or in one; repeat for more.",
)
@form_options
@click.option("--unit", help="The column that identifies whose record it is, if people have several.")
@click.option(
    "--engine",
    type=click.Choice(["auto", *list_engines()]),
    default="auto",
    show_default=True,
    help="The engine that counts; no figure depends on it. partitioned is for tables that do not fit into "
    "memory; auto chooses by table size and free memory.",
)
@click.option(
    "--accept-doubts",
    is_flag=True,
    help="Exit with 0 even if the figures may be too low, unless people were copied.",
)
@format_option
@click.option("--progress/--no-progress", default=None, help="Show progress; by default only on a terminal.")
@report_errors(writes_files=False)
def measure(
    ground_truth: Path,
    synthetic: tuple[Path, ...],
    keys: tuple[str, ...],
    targets: tuple[str, ...],
    groups: tuple[str, ...],
    within: tuple[str, ...],
    special: tuple[str, ...],
    missing: tuple[str, ...],
    unit: str | None,
    engine: str,
    accept_doubts: bool,
    shown_as: Format | None,
    progress: bool | None,
    form: dict[str, Any],
) -> None:
    """Print what one or more SYNTHETIC tables disclose of the GROUND_TRUTH.

    Tables are files (CSV, Parquet, Arrow, SPSS, Stata, SAS, Excel) or folders of Parquet files.

    json and csv have every figure with all digits, its unit and its meaning; html is a page with charts and
    explanations, including near copies and the groups of people with the highest risk in tables of any size.
    The exit code is 5 if people were copied, and otherwise 3 if the tables may be coded differently or
    distinguish nobody, so that risks are underestimated; the first lines say why. Copies are looked for in
    tables in memory that are not too large; if they were not, the output says so.
    """
    from disclosure_pipeline.evaluation.disclosure import disclosure
    from disclosure_pipeline.tables.grouping import grouping_of

    bands = dict(map(_parse_number, within))
    grouping = grouping_of(dict(map(parse_whole_number, groups)), parse_codes(special), within=bands)
    codes = parse_missing(missing)
    sources = [as_source(path, form) for path in synthetic]
    ground_truth_source = as_source(ground_truth, form)
    show = sys.stderr.isatty() if progress is None else progress
    chosen = choose_format(shown_as)
    if chosen == "html":
        files, columns = (ground_truth_source, sources), (keys, targets)
        result = _measure_for_page(*files, *columns, grouping, codes, unit, engine, show)
    else:
        with warnings.catch_warnings():
            for shown in (ComparabilityWarning, CopiesWarning):  # in the result
                warnings.simplefilter("ignore", shown)
            result = disclosure(
                ground_truth_source,
                sources,
                list(keys),
                list(targets) or None,
                groups=grouping.groups,
                special_values=grouping.special_values,
                within=bands,
                missing_codes=codes,
                unit=unit,
                engine=engine,
                progress=show,
            )
    _print_result(result, chosen)
    echo(f"Engine: {result.engine}", err=True)
    for change in result.ledger:
        records = f"{write_count(change.records, 'record')} of {change.table}"
        echo(f"Changed: column {change.column!r}, {records}: {change.rule}", err=True)
    copies = result.copies
    for sentence in copies.not_examined:
        echo(sentence, err=True)
    if copies.findings:
        echo(f"People were copied: {copies.headline}.", err=True)
        sys.exit(ExitCode.COPIED)
    if result.comparability_doubts and not accept_doubts:
        echo(
            "The figures may be too low: see the warnings. Use --accept-doubts if that is acceptable.",
            err=True,
        )
        sys.exit(ExitCode.UNDETERMINED)


def _measure_for_page(
    ground_truth: FileSource,
    synthetic: Sequence[FileSource],
    keys: Sequence[str],
    targets: Sequence[str],
    grouping: Grouping,
    codes: Codes,
    unit: str | None,
    engine: str,
    show: bool,
) -> Disclosure:
    """Return all figures that the page shows, opening the tables only once."""
    from disclosure_pipeline.counting.opening import open_tables
    from disclosure_pipeline.evaluation.copies_found import describe_alike
    from disclosure_pipeline.evaluation.counts import WholeRecords, plan_measures
    from disclosure_pipeline.evaluation.disclosure import ONE_WAY, TWO_WAY, measure
    from disclosure_pipeline.evidence.page.rendering import SMALLEST_COUNT
    from disclosure_pipeline.tables.messages import names_in_all
    from disclosure_pipeline.tables.missing import MissingCodes

    with (
        show_progress() if show else nullcontext(ignore_progress) as on_progress,
        open_tables(
            ground_truth, list(synthetic), engine, grouping.numeric, missing=MissingCodes.from_argument(codes)
        ) as opened,
    ):
        shared = tuple(names_in_all(opened.columns))
        plan = plan_measures(
            opened,
            list(keys),
            list(targets) or None,
            grouping,
            unit=unit,
            one_way=ONE_WAY,
            two_way=TWO_WAY,
            together=True,
            whole_records=WholeRecords(SMALLEST_COUNT, 0, shared, grouping.special_values),
        )
        result = measure(opened, plan, on_progress)
        return result.with_doubts(describe_alike(result.guards))


def _print_result(result: Disclosure, shown_as: Format | None) -> None:
    if shown_as is None:
        echo(result)
    elif shown_as == "html":
        from disclosure_pipeline.evidence.page.rendering import render_result

        echo(render_result(result))
    else:
        print_report(report_figures(result, shown_as), shown_as)


def _parse_number(text: str) -> tuple[str, float]:
    column, _, number = text.partition("=")
    try:
        return column, float(number)
    except ValueError:
        raise click.UsageError(f"{text!r}: expected COLUMN=NUMBER, such as income=20.") from None


def parse_whole_number(text: str) -> tuple[str, int]:
    """Return the column and number of a text such as "income=20". Raise UsageError if it is invalid.

    >>> parse_whole_number("income=20")
    ('income', 20)
    """
    column, number = _parse_number(text)
    if not number.is_integer():
        raise click.UsageError(f"{text!r}: expected COLUMN=NUMBER, a whole number such as income=20.")
    return column, int(number)


def parse_codes(special: tuple[str, ...]) -> dict[str, list[float]]:
    """Return the codes of each column. Raise UsageError for a text that is not "COLUMN=NUMBER".

    >>> parse_codes(("income=-8", "income=-9"))
    {'income': [-8.0, -9.0]}
    """
    codes: dict[str, list[float]] = {}
    for column, code in map(_parse_number, special):
        codes.setdefault(column, []).append(code)
    return codes


def parse_missing(missing: tuple[str, ...]) -> Codes:
    """Return the codes of every column, or those of each column if each text is "COLUMN=CODE".

    Raise UsageError if texts of both kinds are mixed.

    >>> parse_missing(("NA", ".")), parse_missing(("pay=NA", "pay=-9"))
    (['NA', '.'], {'pay': ['NA', '-9']})
    """
    if not any("=" in text for text in missing):
        return list(missing)
    by_column: dict[str, list[str]] = {}
    for text in missing:
        column, equals, code = text.rpartition("=")
        if not equals:
            raise click.UsageError(f"{text!r}: expected COLUMN=CODE, as the other codes are of one column.")
        by_column.setdefault(column, []).append(code)
    return by_column
