"""Key combinations as one number each: the levels of the keys are its digits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.tables.levels import CodedColumn

Codes = npt.NDArray[Any]
Reader = Callable[[slice], Codes]

_CHUNK = 1 << 16  # records at a time: they fit the cache


@dataclass(frozen=True)
class Numbered:
    """The combinations of some columns that occur in any table, numbered: `codes[i]` of table i's records.

    `found` holds the code in `of` that each number stands for.
    """

    codes: tuple[Codes, ...]
    found: Codes
    of: Radix

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.found)

    def reader(self, table: int, values: Codes) -> Reader:
        """For some records of a table their entry of `values` (shape: size)."""
        return lambda records: values[self.codes[table][records]]


@dataclass(frozen=True)
class Radix:
    """Columns as the digits of one code, the first one the highest; each digit has a column's `size`."""

    columns: tuple[CodedColumn | Numbered, ...]

    @cached_property
    def size(self) -> int:
        """One more than the largest code."""
        return prod(column.size for column in self.columns)

    @property
    def width(self) -> int:
        """The number of columns, those that are numbered together one by one."""
        return sum(column.of.width if isinstance(column, Numbered) else 1 for column in self.columns)

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """What each digit counts."""
        return tuple(prod(column.size for column in self.columns[k + 1 :]) for k in range(len(self.columns)))

    def readers(self, table: int, unit: int, dtype: npt.DTypeLike) -> list[Reader]:
        """Functions from some records of a table to codes in units of `unit`; their sum is the code."""
        return [
            column.reader(table, np.arange(column.size, dtype=dtype) * np.array(weight * unit, dtype=dtype))
            for column, weight in zip(self.columns, self.weights, strict=True)
        ]

    def levels_of(self, codes: Codes) -> IntArray:
        """The digits of some codes: the level of each column (shape: columns, codes)."""
        digits: list[IntArray] = []
        for column in reversed(self.columns):
            above = codes // codes.dtype.type(column.size)  # by one number this is fast, divmod is not
            digit = (codes - above * codes.dtype.type(column.size)).astype(np.int64)
            digits[:0] = column.of.levels_of(column.found[digit]) if isinstance(column, Numbered) else [digit]
            codes = above
        return np.array(digits)


def add(readers: Sequence[Reader], records: slice, out: Codes) -> None:
    """The sum of what the readers find for some records."""
    for start in range(0, len(out), _CHUNK):
        some = slice(records.start + start, min(records.start + start + _CHUNK, records.stop))
        codes = readers[0](some)
        for reader in readers[1:]:
            codes += reader(some)
        out[start : start + _CHUNK] = codes


def radix(columns: Sequence[CodedColumn], records: Sequence[int], limit: int) -> Radix:
    """The columns as digits of a code of at most `limit` (or of the number of records, if that is larger).

    Where the product of their sizes is larger, those so far are numbered first, so any number of columns
    and of levels works. `records` is the number of records of each table.
    """
    digits: list[CodedColumn | Numbered] = []
    for column in columns:
        if digits and Radix((*digits, column)).size > limit:
            digits = [_numbered(Radix(tuple(digits)), records)]
        digits.append(column)
    if Radix(tuple(digits)).size > limit:
        digits = [_numbered(Radix(tuple(digits)), records)]
    return Radix(tuple(digits))


def _numbered(of: Radix, records: Sequence[int]) -> Numbered:
    codes = [np.empty(number, dtype=np.int64) for number in records]
    for table, out in enumerate(codes):
        add(of.readers(table, 1, np.int64), slice(0, len(out)), out)
    numbers, found = pd.factorize(np.concatenate(codes))
    return Numbered(tuple(np.split(numbers, np.cumsum(records)[:-1])), found, of)
