"""Coded columns joined to key combinations, and to cells of a key combination and a target level."""

from __future__ import annotations

from collections.abc import Sequence

from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.measures.frequency import Keys, combine_keys
from disclosure_pipeline.measures.individual import combine_cells
from disclosure_pipeline.tables.alignment import Tables
from disclosure_pipeline.tables.levels import CodedColumn


def combine_columns(columns: Sequence[CodedColumn], sample: IntArray | None = None) -> Keys:
    """The combination of the columns in each record of all tables; of GT only the records of `sample`."""
    codes = [column.codes for column in columns]
    if sample is not None:
        codes = [(codes_of_GT[sample], *others) for codes_of_GT, *others in codes]
    return combine_keys(codes, [column.size for column in columns])


def combine_keys_and_cells(tables: Tables) -> tuple[Keys, Keys]:
    """The key combination of each record, and its cell: its key combination with its level of the target."""
    keys = combine_columns(tables.code(tables.keys))
    [target] = tables.code(tables.targets)
    return keys, combine_cells(keys, target.codes, target.size)
