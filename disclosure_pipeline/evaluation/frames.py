"""Building the frames of a result, and the words for every column of every frame."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.evaluation.frame_columns import COLUMNS
from disclosure_pipeline.measures.words import Words
from disclosure_pipeline.tables.messages import listed

Rows = Mapping[tuple[Any, ...], Mapping[str, Any]]
Column: TypeAlias = "Sequence[Any] | npt.NDArray[Any]"


def build_frame(
    rows: Rows, index: Sequence[str], columns: Sequence[str] | None = None, like: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Return a frame of the rows, indexed by their keys. Built by column: by row takes three times as long.

    `columns`: by default those of the first row. `like`: a frame whose index has the same keys and names, to
    be reused.
    """
    columns = tuple(next(iter(rows.values()), ())) if columns is None else columns
    if not rows:
        return _build_empty_frame(tuple(index), tuple(columns)).copy()
    row_labels = build_index(rows, index) if like is None else like.index.copy()
    return build_frame_by_column(
        {column: [row[column] for row in rows.values()] for column in columns}, row_labels
    )


def build_frame_by_column(figures: Mapping[str, Sequence[Any]], index: pd.Index[Any] | None) -> pd.DataFrame:
    """Return a frame of figures by column, as one array if all have one type, which is much faster.

    >>> build_frame_by_column({"repU": [1.5, 2.0], "keys": ["a", "b"]}, None).dtypes.tolist()
    [dtype('float64'), dtype('O')]
    """
    types = {column: set(map(type, of_column)) for column, of_column in figures.items()}
    if set().union(*types.values()) in ({float}, {int}):
        return pd.DataFrame(np.array(list(figures.values())).T, index=index, columns=list(figures))
    arrays = {
        column: np.array(of_column) if types[column] == {float} else _keep_none(of_column, index)
        for column, of_column in figures.items()
    }
    return pd.DataFrame(arrays, index=index, columns=list(figures))


def build_unindexed_frame(columns: Mapping[str, Column]) -> pd.DataFrame:
    """Return a frame with a default index."""
    if not any(map(len, columns.values())):
        return _build_empty_frame((), tuple(columns)).copy()
    return pd.DataFrame({name: _keep_none(values, None) for name, values in columns.items()})


def _keep_none(values: Column, index: pd.Index[Any] | None) -> Any:
    """Return texts of which some are None as objects: pandas from 3 on would make them NaN."""
    if isinstance(values, np.ndarray) or set(map(type, values)) != {str, type(None)}:
        return values
    return pd.Series(list(values), index=index, dtype=object)


@cache
def _build_empty_frame(index: tuple[str, ...], columns: tuple[str, ...]) -> pd.DataFrame:
    row_labels = build_index((), index) if index else pd.RangeIndex(0)
    return pd.DataFrame(index=row_labels, columns=list(columns), dtype=object)


def build_index(keys: Collection[tuple[Any, ...]], names: Sequence[str]) -> pd.Index[Any]:
    """Return keys of rows as an index with named levels; a level may hold tuples (names of columns)."""
    columns = [[key[k] for key in keys] for k in range(len(names))]
    if len(names) == 1:
        return build_level(columns[0], names[0])
    if not all(len(types) == 1 and types <= {str, int} for types in (set(map(type, c)) for c in columns)):
        return pd.MultiIndex.from_arrays(
            [build_level(c, name) for c, name in zip(columns, names, strict=True)]
        )
    # The same index, built several times faster.
    distinct = [sorted(set(column)) for column in columns]
    places = [{value: place for place, value in enumerate(values)} for values in distinct]
    levels: list[Any] = [build_level(values, name) for values, name in zip(distinct, names, strict=True)]
    return pd.MultiIndex(
        levels=levels,
        codes=[
            [place_of[value] for value in column] for place_of, column in zip(places, columns, strict=True)
        ],
        names=list(names),
        verify_integrity=False,
    )


def build_level(values: Sequence[Any], name: str | None) -> pd.Index[Any]:
    """Return one level of an index; a value may be a tuple (the name of a column)."""
    if values and set(map(type, values)) == {int}:
        return pd.Index(np.array(values), name=name)
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    return pd.Index(objects, name=name, tupleize_cols=False).infer_objects()


def list_names_and_rows(frame: pd.DataFrame) -> tuple[list[str], list[list[Any]]]:
    """Return the names of index levels and columns, and each row's values in this order, as objects.

    Equivalent to `reset_index` and `to_dict`, several times faster. An unnamed index is left out.
    """
    rows: list[list[Any]] = frame.to_numpy(dtype=object).tolist()
    names, labels = list(frame.index.names), frame.index.tolist()
    if names == [None]:
        names = []
    elif len(names) == 1:
        rows = [[label, *row] for label, row in zip(labels, rows, strict=True)]
    else:
        rows = [[*label, *row] for label, row in zip(labels, rows, strict=True)]
    return [str(name) for name in (*names, *frame.columns)], rows


@cache
def list_figures(measures: type) -> tuple[str, ...]:
    """Return the names of the figures of a family, in order."""
    return tuple(field.name for field in fields(measures))


def to_row(measures: Any) -> dict[str, Any]:
    """Return the figures of a family by name, like `asdict` but without copying."""
    family: Any = type(measures)
    return {name: getattr(measures, name) for name in list_figures(family)}


def frame_to_record(frame: pd.DataFrame) -> dict[str, Any]:
    """Return a frame as plain JSON, which `frame_from_record` reads."""
    index = [] if frame.index.names == [None] else list(frame.index.names)
    names, rows = list_names_and_rows(frame)
    columns = [[_encode(row[place]) for row in rows] for place in range(len(names))]
    return {"index": index, "columns": dict(zip(names, columns, strict=True))}


def frame_from_record(record: Mapping[str, Any]) -> pd.DataFrame:
    """Read the output of `frame_to_record`. Errors as in `Disclosure.from_record`."""
    columns = {name: [_decode(value) for value in values] for name, values in record["columns"].items()}
    names = record["index"]
    labels = [columns.pop(name) for name in names]
    index = None
    if names:
        index = (
            pd.MultiIndex.from_arrays(labels, names=names)
            if len(names) > 1
            else pd.Index(labels[0], name=names[0])
        )
    return build_frame_by_column(columns, index)


def _encode(value: Any) -> Any:
    """Return a figure for JSON, which cannot represent infinity and NaN."""
    return {"float": repr(value)} if isinstance(value, float) and not math.isfinite(value) else value


def _decode(value: Any) -> Any:
    return float(value["float"]) if isinstance(value, dict) else value


_RECORDS = ["target", "synthesis", "figure"]


def join_records(parts: Mapping[tuple[Any, int], pd.DataFrame], index: pd.Index[Any]) -> pd.DataFrame:
    """Return figures of GT's records side by side, by target and synthesis, with GT's index."""
    frame = pd.concat(list(parts.values()), axis=1)
    labels = [(*label, figure) for label, part in parts.items() for figure in part]
    columns = list(zip(*labels, strict=True))
    levels = [list(dict.fromkeys(column)) for column in columns]  # in order of appearance: fast look-ups
    named: list[Any] = [build_level(level, name) for level, name in zip(levels, _RECORDS, strict=True)]
    frame.columns = pd.MultiIndex(
        levels=named,
        codes=[
            [level.index(label) for label in column] for level, column in zip(levels, columns, strict=True)
        ],
        names=_RECORDS,
    )
    return frame.set_axis(index, axis=0)


def format_frame(frame: pd.DataFrame) -> str:
    """Return a frame as text 80 characters wide, with all its columns, in blocks below each other."""
    return frame.to_string(float_format="{:.2f}".format, line_width=80)


class FiguresFrame(pd.DataFrame):
    """A frame that prints all its columns; selections from it are ordinary frames."""

    def __repr__(self) -> str:
        return format_frame(self)

    def _repr_html_(self) -> str:
        return self.to_html(float_format="{:.2f}".format)


@dataclass(frozen=True)
class Label:
    """The words for a column that names rows: its heading, and a sentence."""

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
    "certainty": Label("certainty", "The share of records with the same keys that must agree."),
    "column": Label("column", "The column that the row is about."),
    "column_1": Label("first column", "The first column of the pair."),
    "column_2": Label("second column", "The second column of the pair."),
    "columns": Label("columns", "The columns that are compared."),
    "distance": Label("distance", "How records are compared: by ranks, by values, or by columns."),
    "group": Label("group", "The group of people that the row is about."),
    "level": Label("value", "The value, or the group of values, that the row is about."),
    "planted": Label("planted", "The kind of copies that were planted in a table."),
    "basis": Label("counted by", "Each record once, the people it represents, or synthetic records."),
    "where": Label("found by", "By which columns, how nearly, and among whom people are found."),
    "way": Label("way", "How people are found: by which columns, how nearly, and among whom."),
    "remedy": Label("remedy", "What was done to the synthetic table."),
    "share": Label("% of people", "Percent of the people whose records were planted."),
    "rule": Label("what was done", "What was changed in the table to compare it."),
}
"""The words for the levels of an index."""


def find_words(column: str, frame: str | None = None) -> Words | None:
    """Return the words for a column of a frame, or of the first frame that has it; None if there are none.

    Example:
        >>> find_words("repU").title
        'replicated uniques'
    """
    frames = COLUMNS.values() if frame is None else [COLUMNS.get(frame, {})]
    return next((words[column] for words in frames if column in words), None)


def describe_column(column: str, frame: str | None = None) -> str:
    """Return the description of a column, figure or label, as one line; empty if it is unknown."""
    words = find_words(column, frame)
    if words is not None:
        return words.description
    return LABELS[column].sentence if column in LABELS else ""


def find_heading(column: str, frame: str) -> str:
    """Return a column's heading, or its name if it has none.

    Example:
        >>> find_heading("DiSCO_others", "attribute")
        "other people's records"
    """
    words = COLUMNS[frame].get(column)
    if words is not None:
        return words.legend
    return LABELS[column].heading if column in LABELS else column


def explain(measure: str) -> str:
    """Return all words for a measure, as lines. InputError if no frame has it.

    Example:
        >>> print(explain("iS"))
        iS: found in the synthetic table
        People whose combination of keys some synthetic record has.
        Unit: % of the confidential records.
        It is not a risk in itself.
        Source: Raab, Nowok & Dibben 2024, arXiv:2406.16826.
    """
    words = find_words(measure) if isinstance(measure, str) else None
    if words is None:
        known = sorted({name for frame in COLUMNS.values() for name in frame})
        close = get_close_matches(str(measure), known, n=3)
        hint = f"Did you mean {listed(close)}?" if close else "docs/measures.md defines all of them."
        raise InputError(f"There is no measure {measure!r}. {hint}")
    return words.explain(measure)
