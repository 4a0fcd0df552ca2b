"""Coded columns joined to key combinations, and to cells of a key combination and a target level."""

from __future__ import annotations

from collections.abc import Sequence

from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.measures.frequency import Keys, combine_keys
from disclosure_pipeline.measures.individual import combine_cells
from disclosure_pipeline.tables.levels import CodedColumn


def combine_columns(columns: Sequence[CodedColumn], sample: IntArray | None = None) -> Keys:
    """The combination of the columns in each record of all tables; of GT only the records of `sample`."""
    codes = [column.codes for column in columns]
    if sample is not None:
        codes = [(codes_of_GT[sample], *others) for codes_of_GT, *others in codes]
    return combine_keys(codes, [column.size for column in columns])


def combine_keys_and_cells(columns: Sequence[CodedColumn]) -> tuple[Keys, Keys]:
    """Of the keys and a target after them: the key combination of each record, and that with its target."""
    *key_columns, target = columns
    keys = combine_columns(key_columns)
    return keys, combine_cells(keys, target.codes, target.size)
