"""The data dictionary: what each column holds, and how raw values become canonical ones."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, model_validator

from disclosure_pipeline.tables.levels import level_label

Values = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

_INTEGER = r"[+-]?[0-9]{1,18}(\.0*)?"
_NUMBER = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"
_BOOLEANS = {"true": True, "false": False}


class Column(BaseModel):
    """One column of the data dictionary. An empty field is always missing; `missing_codes` are too."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Annotated[
        Literal["category", "integer", "number", "boolean", "date"],
        Field(description="How values are read and compared; dates are written YYYY-MM-DD"),
    ]
    description: str = ""
    levels: Annotated[
        tuple[str, ...] | None, Field(description="Every level that a category may have", min_length=1)
    ] = None
    range: Annotated[
        tuple[float, ...] | None,
        Field(description="Smallest and largest number that may occur", min_length=2, max_length=2),
    ] = None
    missing_codes: Annotated[
        tuple[str | int | float, ...], Field(description="Values that stand for a missing one")
    ] = ()
    special_values: Annotated[
        tuple[int | float, ...],
        Field(
            description="Codes such as -8 (not applicable): no part of range and groups, levels of their own"
        ),
    ] = ()
    groups: Annotated[
        int | None, Field(description="Number of groups that the numbers are put into", ge=2)
    ] = None

    @model_validator(mode="after")
    def _only_what_the_type_has(self) -> Column:
        numeric = self.type in {"integer", "number"}
        for name in ("groups", "range", "special_values"):
            if getattr(self, name) and not numeric:
                raise ValueError(f"{name} is for numbers: a column of type {self.type} has none")
        if self.levels is not None and self.type != "category":
            raise ValueError(f"levels are for a category: a column of type {self.type} has none")
        if self.range is not None and not self.range[0] <= self.range[1]:
            raise ValueError("range must be [smallest, largest]")
        return self


Dictionary = Mapping[str, Column]


def canonical_levels(column: Column, raw: Values) -> tuple[Values, Mask, Mask]:
    """Raw levels (text, or the numbers, dates, … of a typed file) in the column's one form.

    Returns the canonical values, which of them are missing, and which could not be read as the column's
    type; the values of those two are of no meaning.
    """
    text = np.array([level_label(value) for value in raw.tolist()], dtype=object)
    missing = np.isin(text, ["", *(level_label(code) for code in column.missing_codes)])
    values, readable = _READERS[column.type](raw, text)
    return values, missing, ~readable & ~missing


def _read_categories(_raw: Values, text: Values) -> tuple[Values, Mask]:
    return text, np.ones(len(text), dtype=bool)


def _read_integers(_raw: Values, text: Values) -> tuple[Values, Mask]:
    readable = _matches(text, _INTEGER)
    values = np.zeros(len(text), dtype=np.int64)
    values[readable] = [int(value.split(".")[0]) for value in text[readable]]
    return values, readable


def _read_numbers(_raw: Values, text: Values) -> tuple[Values, Mask]:
    readable = _matches(text, _NUMBER)
    values = np.zeros(len(text), dtype=np.float64)
    values[readable] = text[readable].astype(np.float64)
    readable &= np.isfinite(values)
    return values, readable


def _read_booleans(_raw: Values, text: Values) -> tuple[Values, Mask]:
    lower = [value.lower() for value in text]
    return (
        np.array([_BOOLEANS.get(value, False) for value in lower], dtype=bool),
        np.array([value in _BOOLEANS for value in lower], dtype=bool),
    )


def _read_dates(raw: Values, text: Values) -> tuple[Values, Mask]:
    days = [_date(value, written) for value, written in zip(raw.tolist(), text, strict=True)]
    readable = np.array([day is not None for day in days], dtype=bool)
    return np.array([day or datetime.date.min for day in days], dtype="datetime64[s]"), readable


def _date(value: Any, written: str) -> datetime.date | None:
    """A day; a time of day other than midnight is not cut off but refused."""
    if isinstance(value, datetime.datetime):
        midnight = value.tzinfo is None and value.time() == datetime.time()
        return value.date() if midnight else None
    if isinstance(value, datetime.date):
        return value
    try:
        return datetime.datetime.strptime(written, "%Y-%m-%d").date()
    except ValueError:
        return None


def _matches(text: Values, pattern: str) -> Mask:
    return pd.Series(text, dtype=object).str.fullmatch(pattern).to_numpy(dtype=bool)


_READERS = {
    "category": _read_categories,
    "integer": _read_integers,
    "number": _read_numbers,
    "boolean": _read_booleans,
    "date": _read_dates,
}
