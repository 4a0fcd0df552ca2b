"""Frames of a result, from rows by their index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd


def frame_of(
    rows: Mapping[tuple[Any, ...], Mapping[str, Any]], index: list[str], columns: list[str]
) -> pd.DataFrame:
    """A frame with the rows' keys as its index, column by column: row by row takes three times as long."""
    levels = [_level([key[k] for key in rows], name) for k, name in enumerate(index)]
    figures = {column: [row[column] for row in rows.values()] for column in columns}
    return pd.DataFrame(
        figures,
        index=levels[0] if len(levels) == 1 else pd.MultiIndex.from_arrays(levels),
        columns=columns,
        dtype=None if rows else object,
    )


def _level(values: Sequence[Any], name: str) -> pd.Index[Any]:
    """One level of an index; a value may be a tuple, which is the name of a column."""
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    return pd.Index(objects, name=name, tupleize_cols=False).infer_objects()


def names_of(measures: type) -> list[str]:
    """The names of a family's measures, in their order."""
    return [field.name for field in fields(measures)]
