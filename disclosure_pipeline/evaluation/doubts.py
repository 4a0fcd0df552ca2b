"""What is doubtful of tables that a function of the library is given, raised as warnings of Python."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Sequence

from disclosure_pipeline.errors import ComparabilityWarning
from disclosure_pipeline.evaluation.comparability import compare_column, missing_value_doubts
from disclosure_pipeline.tables.alignment import Tables
from disclosure_pipeline.tables.levels import CodedColumn

_PACKAGE = __name__.partition(".")[0]


def find_doubts(tables: Tables, columns: Sequence[CodedColumn]) -> list[str]:
    """What says of these columns, as they are grouped, that the tables may not be coded alike."""
    doubts = [doubt for column in columns for doubt in compare_column(column, tables.names)[1]]
    ungrouped = [column for column in columns if not tables.grouping.grouped(column.name)]
    return doubts + missing_value_doubts(ungrouped, tables.names)


def warn_of_doubts(doubts: Iterable[str]) -> None:
    """A `ComparabilityWarning` of each, at the line that called the library."""
    level = _level_of_caller()
    for doubt in doubts:
        warnings.warn(doubt, ComparabilityWarning, stacklevel=level)


def _level_of_caller() -> int:
    """How far above `warn_of_doubts` the first line stands that is none of this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _is_own(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    return level


def _is_own(module: str) -> bool:
    return module == _PACKAGE or module.startswith(f"{_PACKAGE}.")
