"""Codes that stand for missing values, as a caller names them, and tables without them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.tables.canonical import MISSING_CODE, read_levels
from disclosure_pipeline.tables.coding import Distinct, build_table
from disclosure_pipeline.tables.descriptions import Code
from disclosure_pipeline.tables.dictionary import Column
from disclosure_pipeline.tables.encoding import Change, arrow_array, encode, take_levels
from disclosure_pipeline.tables.levels import Mask
from disclosure_pipeline.tables.messages import describe_argument, suggest_names

Codes = Sequence[Code] | Mapping[Any, Sequence[Code]]


@dataclass(frozen=True)
class MissingCodes:
    """Codes of every column, and further ones by column."""

    everywhere: tuple[Code, ...] = ()
    by_column: Mapping[Any, tuple[Code, ...]] = field(default_factory=dict)

    @classmethod
    def from_argument(cls, codes: Any) -> MissingCodes:
        """Read a list of codes, or a list for each column. Raise InputError if it is neither.

        >>> MissingCodes.from_argument(["NA"]).of("pay"), MissingCodes.from_argument({"pay": [-9]}).of("age")
        (('NA',), ())
        """
        if codes is None:
            return cls()
        if isinstance(codes, Mapping):
            return cls((), {name: _check_codes(of_column) for name, of_column in codes.items()})
        return cls(_check_codes(codes))

    def __bool__(self) -> bool:
        return bool(self.everywhere or any(self.by_column.values()))

    def of(self, column: Hashable) -> tuple[Code, ...]:
        """Return the codes of a column."""
        return (*self.everywhere, *self.by_column.get(column, ()))

    def check_columns(self, columns: Sequence[Any], table: str) -> None:
        """Raise InputError if there are codes for a column that the table lacks."""
        for name in self.by_column:
            if name not in columns:
                raise InputError(
                    f"missing_codes names column {name!r}, which is not in {table}. "
                    f"{suggest_names(name, columns)}"
                )

    def mark(self, column: Hashable, levels: Any) -> Mask:
        """Mark the levels of a column, an Arrow array, that are codes: texts and numbers alike."""
        codes = self.of(column)
        if not codes:
            return np.zeros(len(levels), dtype=bool)
        return read_levels(Column(type="category", missing_codes=codes), levels).changed[MISSING_CODE]


def _check_codes(codes: Any) -> tuple[Code, ...]:
    is_list = isinstance(codes, Sequence) and not isinstance(codes, (str, bytes))
    if not is_list or not all(isinstance(code, (str, Real)) and not isinstance(code, bool) for code in codes):
        raise InputError(
            "missing_codes must be a list of texts or numbers, such as ['NA'], or such a list for each "
            f"column, not {describe_argument(codes)}."
        )
    return tuple(codes)


def blank_frames(
    frames: Sequence[pd.DataFrame], tables: Sequence[str], codes: MissingCodes
) -> tuple[list[pd.DataFrame], list[Any], tuple[Change, ...]]:
    """Return frames without the codes, the columns that had one, and the ledger."""
    codes.check_columns(list(frames[0].columns), tables[0])
    blanked, changed, ledger = [], [], []
    for frame, table in zip(frames, tables, strict=True):
        columns = {name: frame[name] for name in frame.columns}
        for name, column in columns.items():
            encoded = encode(column)
            marked = codes.mark(name, encoded.levels)
            records = int(encoded.counts[:-1][marked].sum())
            if not records:
                continue
            changed.append(name)
            ledger.append(Change(table, name, MISSING_CODE, records))
            columns[name] = _blank(column, encoded.codes, encoded.levels, marked)
        blanked.append(build_table(columns, frame.index))
    return blanked, list(dict.fromkeys(changed)), tuple(ledger)


def _blank(column: pd.Series[Any], codes: npt.NDArray[Any], levels: Any, marked: Mask) -> pd.Series[Any]:
    if column.dtype == object:  # its numbers are numbers again once no text is beside them
        hidden = np.append(marked, False)[codes]
        return column.where(~hidden, None).infer_objects()
    renumbered = np.append(np.where(marked, -1, np.cumsum(~marked) - 1), -1)
    values = take_levels(renumbered[codes], levels.filter(pa.array(~marked)))
    return pd.Series(pd.arrays.ArrowExtensionArray(values), index=column.index, name=column.name)


def blank_distinct(
    name: Hashable, distinct: Sequence[Distinct], tables: Sequence[str], codes: MissingCodes
) -> tuple[list[Distinct], tuple[Change, ...]]:
    """Return a column's values by table with missing in place of the codes, and the ledger."""
    blanked, ledger = [], []
    for of_table, table in zip(distinct, tables, strict=True):
        levels = arrow_array(of_table.values)
        marked = codes.mark(name, levels)
        records = int(of_table.counts[:-1][marked].sum())
        if records:
            ledger.append(Change(table, str(name), MISSING_CODE, records))
            kept = levels.filter(pa.array(~marked)).take(pa.array(np.cumsum(~marked) - 1, mask=marked))
            values = pd.Series(pd.arrays.ArrowExtensionArray(kept), name=name)
            blanked.append(Distinct(values, of_table.counts))
        else:
            blanked.append(of_table)
    return blanked, tuple(ledger)
