"""A first data dictionary from a table, for a person to complete: it shows no value that few records have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import yaml

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.tables.canonical import read_levels
from disclosure_pipeline.tables.dictionary import Column, Type
from disclosure_pipeline.tables.encoding import Encoded, encode

SMALLEST_COUNT = 10

# A category with more levels than this is left without them: they would be many lines to check.
_MOST_LEVELS = 50

# What a column is taken for: the first type as which all of its levels can be read.
_CANDIDATES: tuple[Type, ...] = ("boolean", "integer", "number", "date", "datetime")


@dataclass(frozen=True)
class Draft:
    """The columns as far as they may be shown, and for each what a person has to add or to look at."""

    columns: Mapping[str, Column]
    notes: Mapping[str, str]

    def to_yaml(self) -> str:
        """The `columns:` of a gate's file, with the notes as comments."""
        lines = ["columns:"]
        for name, column in self.columns.items():
            if name in self.notes:
                lines.append(f"  # {self.notes[name]}")
            content = column.model_dump(mode="json", exclude_defaults=True)
            entry = yaml.safe_dump({name: content}, sort_keys=False, allow_unicode=True, width=100)
            lines += [f"  {line}" for line in entry.splitlines()]
        return "\n".join(lines) + "\n"


def draft(raw: pd.DataFrame, smallest_count: int = SMALLEST_COUNT) -> Draft:
    """A first dictionary of a raw table (`sources.read_raw`, or any data frame).

    Types are suggestions. No range is given, and no level that fewer than `smallest_count` records have.
    InputError where what stands in the place of column names looks like a record.
    """
    if smallest_count < 1:
        raise InputError(f"smallest_count must be 1 or more, not {smallest_count!r}.")
    _check_names(raw)
    columns, notes = {}, {}
    for name in map(str, raw.columns):
        columns[name], note = _draft_column(encode(raw[name]), len(raw), smallest_count)
        if note:
            notes[name] = note
    return Draft(columns, notes)


def _check_names(raw: pd.DataFrame) -> None:
    names = pa.array([str(name).strip() for name in raw.columns], pa.string())
    values = read_levels(Column(type="number"), names).values
    if len(values.drop_null()) or len(set(names.to_pylist())) < len(names) or "" in names.to_pylist():
        raise InputError(
            "The first line of the table does not look like column names: some are numbers, empty or the "
            "same. It may be a record, and is not written: give the table a header."
        )


def _draft_column(encoded: Encoded, records: int, smallest_count: int) -> tuple[Column, str]:
    present = encoded.counts[:-1] > 0
    text = read_levels(Column(type="category"), encoded.levels)
    not_missing = present & ~text.missing
    if not not_missing.any():
        return Column(type="category"), "holds nothing but missing values: set its type"
    kind = _infer_type(encoded, not_missing)
    # Amounts and times are often unique without naming anybody by a number of their own.
    may_identify = kind in {"category", "integer"}
    if may_identify and records >= smallest_count and _is_unique(encoded, text.missing):
        return Column(type="text identifier"), (
            "every record has a value of its own: an identifier? If not, set its type"
        )
    if kind in {"integer", "number"}:
        return Column(type=kind), "set its range, and missing codes and special values if it has them"
    if kind in {"date", "datetime"}:
        return Column(type=kind), "set its range, and its missing codes if it has them"
    if kind == "boolean":
        return Column(type=kind), ""
    return _draft_category(encoded, text.values, not_missing, smallest_count)


def _infer_type(encoded: Encoded, not_missing: Any) -> Type:
    for candidate in _CANDIDATES:
        read = read_levels(Column(type=candidate), encoded.levels)
        if not (read.unreadable & not_missing).any():
            return candidate
    return "category"


def _is_unique(encoded: Encoded, missing: Any) -> bool:
    return bool((encoded.counts[:-1][~missing] <= 1).all())


def _draft_category(
    encoded: Encoded, values: Any, not_missing: Any, smallest_count: int
) -> tuple[Column, str]:
    """A category with its frequent levels, counted as they are without outer blanks."""
    levels = np.asarray(values.to_pandas())[not_missing]
    counts = pd.Series(encoded.counts[:-1][not_missing]).groupby(levels).sum()
    if len(counts) > _MOST_LEVELS:
        return Column(type="category"), f"more than {_MOST_LEVELS} levels: add them if they are known"
    frequent_levels = sorted(counts.index[counts >= smallest_count])
    rare = len(counts) - len(frequent_levels)
    note = f"levels with fewer than {smallest_count} records are not written: add them" if rare else ""
    return Column(type="category", levels=tuple(frequent_levels) or None), note
