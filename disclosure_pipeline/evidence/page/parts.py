"""What the page is made of: tables of texts, and charts with a table beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from disclosure_pipeline.evaluation.glossary import find_words
from disclosure_pipeline.evidence.page.numbers import write_figure

_LABELS = {"synthesis": "Table", "target": "Target", "key": "Key", "columns": "Columns", "column": "Column"}


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


def tabulate(
    caption: str,
    rows: Iterable[Mapping[str, Any]],
    columns: Sequence[str],
    frame: str,
    *,
    headings: Mapping[str, str] | None = None,
) -> Table:
    """The columns of some rows of a frame of a dossier; columns that no row has are left out."""
    rows = list(rows)
    columns_with_figures = [name for name in columns if any(row.get(name) is not None for row in rows)]
    named = headings or {}
    return Table(
        caption,
        tuple(named.get(name, _LABELS.get(name, name)) for name in columns_with_figures),
        tuple(
            tuple(
                write_figure(row.get(name), None if name in _LABELS else find_words(name, frame))
                for name in columns_with_figures
            )
            for row in rows
        ),
    )
