"""The words for every column of every frame that the library returns, found by frame and column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.evaluation.catalogue import COLUMNS
from disclosure_pipeline.measures.words import Words
from disclosure_pipeline.tables.messages import listed


@dataclass(frozen=True)
class Label:
    """A column that names rows, and holds no figures: its heading, and what it says."""

    heading: str
    sentence: str


LABELS: Mapping[str, Label] = {
    "measure": Label("figure", "The figure that the row is about."),
    "syntheses": Label("tables", "How many synthetic tables there are."),
    "synthesis": Label("table", "The number of the synthetic table, from 1."),
    "target": Label("target", "The column that an intruder wants to learn."),
    "key": Label("key", "A column that an intruder knows; (whole key) are all of them combined."),
    "keys": Label("keys", "The columns that an intruder knows."),
    "table": Label("table", "Which table the row is about."),
    "confidential": Label("confidential table", "The further confidential table that the row is about."),
    "certainty": Label("certainty", "The share of records with the same keys that have to agree."),
    "column": Label("column", "The column that the row is about."),
    "column_1": Label("first column", "The first column of the pair."),
    "column_2": Label("second column", "The second column of the pair."),
    "columns": Label("columns", "The columns that are compared."),
    "distance": Label("distance", "How records are compared: by ranks, by values, or by columns."),
    "group": Label("group", "The group of people that the row is about."),
    "level": Label("value", "The value, or the group of values, that the row is about."),
    "planted": Label("planted", "Which copies of people were planted into a table."),
    "remedy": Label("remedy", "What was done to the synthetic table."),
    "share": Label("% of people", "Percent of the people whose records were planted."),
    "rule": Label("what was done", "What was changed in the table to compare it."),
}
"""The columns of an index."""


FRAMES = COLUMNS
"""Frame, or the function that returns it, -> column -> its words."""


def find_words(column: str, frame: str | None = None) -> Words | None:
    """Return the words for a column of a frame; without a frame, those of the first frame that has it.

    None where there are none. A column of one synthesis, such as "CAP_1", has the words of "CAP".

    Example:
        >>> find_words("repU").title
        'replicated uniques'
    """
    frames = FRAMES.values() if frame is None else [FRAMES.get(frame, {})]
    return next((words[column] for words in frames if column in words), None)


def describe_column(column: str, frame: str | None = None) -> str:
    """Return what a column says, figure or label, as one line; empty where nothing is known of it."""
    words = find_words(column, frame)
    if words is not None:
        return words.description
    return LABELS[column].sentence if column in LABELS else ""


def find_heading(column: str, frame: str) -> str:
    """Return a column's heading, or its name where nothing is known of it.

    Example:
        >>> find_heading("DiSCO_others", "attribute")
        "other people's records"
    """
    words = FRAMES[frame].get(column)
    if words is not None:
        return words.legend
    return LABELS[column].heading if column in LABELS else column


def explain(measure: str) -> str:
    """Return all words for a measure, as lines. InputError where no frame has it.

    Example:
        >>> print(explain("iS"))
        iS: found in the synthetic table
        This many people have a combination of keys that some synthetic record has.
        Unit: % of the confidential records.
        It is no risk by itself.
        Source: Raab, Nowok & Dibben 2024, arXiv:2406.16826.
    """
    words = find_words(measure) if isinstance(measure, str) else None
    if words is None:
        known = sorted({name for frame in FRAMES.values() for name in frame})
        close = get_close_matches(str(measure), known, n=3)
        hint = f"Did you mean {listed(close)}?" if close else "docs/measures.md defines all of them."
        raise InputError(f"There is no measure {measure!r}. {hint}")
    return words.explain(measure)
