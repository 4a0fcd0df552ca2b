"""Frames of a result, from rows by their index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

Rows = Mapping[tuple[Any, ...], Mapping[str, Any]]


def frame_of(
    rows: Rows, index: Sequence[str], columns: Sequence[str], like: pd.DataFrame | None = None
) -> pd.DataFrame:
    """A frame with the rows' keys as its index, column by column: row by row takes three times as long.

    `like`: a frame with the very same keys and names of the index, which is then not made again.
    """
    if not rows:
        return _empty_frame(tuple(index), tuple(columns)).copy()
    row_labels = _index_of(rows, index) if like is None else like.index.copy()
    figures = {column: [row[column] for row in rows.values()] for column in columns}
    if all(type(figure) is float for column_figures in figures.values() for figure in column_figures):
        return pd.DataFrame(np.array(list(figures.values())).T, index=row_labels, columns=list(columns))
    return pd.DataFrame(figures, index=row_labels)


def list_of(columns: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    """A frame of rows that nothing names."""
    if not any(columns.values()):
        return _empty_frame((), tuple(columns)).copy()
    return pd.DataFrame(columns)


@cache
def _empty_frame(index: tuple[str, ...], columns: tuple[str, ...]) -> pd.DataFrame:
    """A frame without rows; to be copied."""
    row_labels = _index_of({}, index) if index else pd.RangeIndex(0)
    return pd.DataFrame(index=row_labels, columns=list(columns), dtype=object)


def _index_of(rows: Rows, names: Sequence[str]) -> pd.Index[Any]:
    """The rows' keys as an index with these names of its levels."""
    columns = [[key[k] for key in rows] for k in range(len(names))]
    if len(names) == 1:
        return _level(columns[0], names[0])
    if not all(len(types) == 1 and types <= {str, int} for types in (set(map(type, c)) for c in columns)):
        return pd.MultiIndex.from_arrays([_level(c, name) for c, name in zip(columns, names, strict=True)])
    # The same index, made several times faster.
    distinct = [sorted(set(column)) for column in columns]
    places = [{value: place for place, value in enumerate(values)} for values in distinct]
    levels: list[Any] = [_level(values, name) for values, name in zip(distinct, names, strict=True)]
    return pd.MultiIndex(
        levels=levels,
        codes=[
            [place_of[value] for value in column] for place_of, column in zip(places, columns, strict=True)
        ],
        names=list(names),
        verify_integrity=False,
    )


def _level(values: Sequence[Any], name: str) -> pd.Index[Any]:
    """One level of an index; a value may be a tuple, which is the name of a column."""
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    return pd.Index(objects, name=name, tupleize_cols=False).infer_objects()


def names_of(measures: type) -> list[str]:
    """The names of a family's measures, in their order."""
    return [field.name for field in fields(measures)]


def row_of(measures: Any) -> dict[str, Any]:
    """The figures of one family by their names: as `asdict`, which copies what cannot change."""
    return {name: getattr(measures, name) for name in names_of(type(measures))}
