"""Identifiers: columns that tell of a record which one it is. No value of one may be in a synthetic table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from disclosure_pipeline.tables.canonical import to_mask
from disclosure_pipeline.tables.contract import Violation, violation_of_records
from disclosure_pipeline.tables.dictionary import Dictionary
from disclosure_pipeline.tables.distinct import Distinct, code_distinct
from disclosure_pipeline.tables.encoding import encode
from disclosure_pipeline.tables.kinds import Kind
from disclosure_pipeline.tables.levels import CodedColumn
from disclosure_pipeline.tables.messages import table_names

GT_IDENTIFIER = "holds identifiers of the ground truth"

# An identifier is looked for only in tables in which values that are all different mean something.
_FEWEST_RECORDS = 100
_PROBED_RECORDS = 10_000


def shared_identifiers(
    ground_truth: pd.DataFrame, synthetic: pd.DataFrame, dictionary: Dictionary, table: str
) -> list[Violation]:
    """The text identifiers of GT that are in a synthetic table too, both in canonical form."""
    violations = []
    for name, column in dictionary.items():
        if column.type == "text identifier" and name in ground_truth and name in synthetic:
            in_SD, in_GT = (encode(frame[name]) for frame in (synthetic, ground_truth))
            known = pc.is_in(
                in_SD.levels.cast(pa.string()), value_set=in_GT.levels.cast(pa.string()).drop_null()
            )
            records = in_SD.records(to_mask(known))
            if records:
                violations.append(violation_of_records(table, name, GT_IDENTIFIER, records, len(synthetic)))
    return violations


def column_identifies(column: CodedColumn, synthesis: int) -> bool:
    """Whether a column's values are all different in GT, no measurements, and in this SD mostly of GT."""
    d, s = column.counts[0], column.counts[synthesis]
    whole = column.kind is not Kind.NUMBER or column.levels.dtype.kind in "iu"
    if d.sum() < _FEWEST_RECORDS or not whole or d[-1] or d.max() > 1:
        return False
    return bool(2 * int(s[d > 0].sum()) > int(s.sum()))


def identifying_columns(
    columns: Sequence[CodedColumn], tables: Sequence[Mapping[Any, Distinct]]
) -> list[tuple[int, Any]]:
    """The (synthesis, column) of GT's columns whose values tell which record it is.

    `tables` are the values of columns of each table (GT first), `columns` those that are coded already.
    """
    coded = {column.name: column for column in columns}
    names = table_names(len(tables))
    identifying = []
    for synthesis, table in enumerate(tables[1:], start=1):
        for name in (name for name in table if name in tables[0]):
            if name in coded:
                identifies = column_identifies(coded[name], synthesis)
            else:
                both = code_distinct(name, (tables[0][name], table[name]), (names[0], names[synthesis]))
                identifies = column_identifies(both, 1)
            if identifies:
                identifying.append((synthesis, name))
    return identifying


def values_identify(ground_truth: pd.Series[Any], synthetic: pd.Series[Any]) -> bool:
    """As `column_identifies`, of the records of a column that is not coded."""
    dtype = ground_truth.dtype
    values: Any = dtype.categories if isinstance(dtype, pd.CategoricalDtype) else ground_truth
    whole = pd.api.types.is_integer_dtype(values) or not pd.api.types.is_numeric_dtype(values)
    if len(ground_truth) < _FEWEST_RECORDS or not whole:
        return False
    try:
        unique = ground_truth.iloc[:_PROBED_RECORDS].is_unique and ground_truth.is_unique
        return bool(unique and ground_truth.notna().all() and synthetic.isin(ground_truth).mean() > 1 / 2)
    except TypeError:  # values that cannot be compared, in a column that no caller named
        return False
