"""Parts of the page: tables of texts, and charts with a table beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from disclosure_pipeline.evaluation.glossary import LABELS, find_heading, find_words
from disclosure_pipeline.evidence.page.charts import Mark
from disclosure_pipeline.measures.words import COUNT, PERCENT, POINTS, RECORDS, SHARE, Words
from disclosure_pipeline.policy.clauses import words_of
from disclosure_pipeline.tables.messages import capitalized

# Endings of measures that share their words with another one.
_KINDS = ("weighted", "after_exclusions", "excess")
MISSING = "\N{EN DASH}"

_SUFFIXES: Mapping[str, str] = {
    PERCENT: " %",
    POINTS: " points",
    RECORDS: "",
    COUNT: "",
    SHARE: "",
    "standard errors": " standard errors",
}


def write_figure(value: Any, words: Words | None) -> str:
    """Return a figure with its unit; a dash where it is missing.

    Example:
        >>> write_figure(10.123, Words("a", "b"))
        '10.1 %'
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return MISSING if value is None else str(value)
    unit = words.unit if words else ""
    if unit in {PERCENT, POINTS}:
        return f"{value:.1f}{_SUFFIXES[unit]}"
    if unit in {RECORDS, COUNT} and float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:.3g}{_SUFFIXES.get(unit, '')}"


def write_bound(clause: Mapping[str, Any], words: Words) -> str:
    """Return the bound of a clause, such as "at most 8.0 %"."""
    if clause["limit"] is None:
        return MISSING
    side = "at least" if clause["at_least"] else "at most"
    bound = f"{side} {write_figure(clause['limit'], words)}"
    if clause["share_of"]:
        bound += f" ({clause['bound']:g} of {clause['share_of']})"
    return bound if clause["loosened_from"] is None else f"{bound}, loosened from {clause['loosened_from']:g}"


def write_subject(clause: Mapping[str, Any]) -> str:
    """Return the people or records that a clause is about: its name beside a mark, and in a headline.

    Example:
        >>> write_subject({"measure": "repU", "column": None, "share_of": "UiO", "over": "worst"})
        'people singled out in both tables (of UiO)'
    """
    words = words_of(clause["measure"])
    column = clause["column"]
    if words.subject:
        # The name of a column may hold braces of its own.
        subject = (column or "keys").join(words.subject.split("{column}"))
        column = None if "{column}" in words.subject else column
    else:
        subject = words.title.removesuffix(": where beyond chance")
    kinds = [kind.replace("_", " ") for kind in _KINDS if clause["measure"].endswith(f"_{kind}")]
    notes = [column, *kinds, clause["share_of"] and f"of {clause['share_of']}"]
    notes.append("mean" if clause["over"] == "mean" else None)
    noted = ", ".join(note for note in notes if note)
    return f"{subject} ({noted})" if noted else subject


def require_words(name: str, frame: str) -> Words:
    """Return the words for a column of a frame; every frame of a dossier has them."""
    words = find_words(name, frame)
    assert words is not None, f"no words for {frame}.{name}"
    return words


@dataclass(frozen=True)
class PageTable:
    """A table of texts; the first cell of a row is its heading."""

    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Figure:
    """A chart as SVG, whose title is its finding, with the same figures as a table."""

    title: str
    svg: str
    description: str
    table: PageTable


def name_marks(marks: Mapping[str, Mark], frame: str) -> dict[str, Mark]:
    """Column -> mark, of a frame, as what stands in the legend -> mark."""
    return {find_heading(column, frame): mark for column, mark in marks.items()}


def tabulate(
    caption: str, rows: Iterable[Mapping[str, Any]], columns: Sequence[str], frame: str
) -> PageTable:
    """Return the columns of some rows of a frame of a dossier; columns that no row has are left out."""
    rows = list(rows)
    columns_with_figures = [name for name in columns if any(row.get(name) is not None for row in rows)]
    return PageTable(
        caption,
        tuple(capitalized(find_heading(name, frame)) for name in columns_with_figures),
        tuple(
            tuple(
                write_figure(row.get(name), None if name in LABELS else find_words(name, frame))
                for name in columns_with_figures
            )
            for row in rows
        ),
    )
