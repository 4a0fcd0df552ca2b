"""What the page is made of: tables of texts, and charts with a table beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from disclosure_pipeline.evaluation.glossary import LABELS, find_heading, find_words
from disclosure_pipeline.evidence.page.charts import Mark
from disclosure_pipeline.evidence.page.numbers import write_figure
from disclosure_pipeline.tables.messages import capitalized


@dataclass(frozen=True)
class Table:
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
    table: Table


def name_marks(marks: Mapping[str, Mark], frame: str) -> dict[str, Mark]:
    """Column -> mark, of a frame, as what stands in the legend -> mark."""
    return {find_heading(column, frame): mark for column, mark in marks.items()}


def tabulate(caption: str, rows: Iterable[Mapping[str, Any]], columns: Sequence[str], frame: str) -> Table:
    """The columns of some rows of a frame of a dossier; columns that no row has are left out."""
    rows = list(rows)
    columns_with_figures = [name for name in columns if any(row.get(name) is not None for row in rows)]
    return Table(
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
