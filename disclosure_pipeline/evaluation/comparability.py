"""Comparability of two tables: the values they share, and signs that they are coded differently.

A mismatch makes a leak look safe: where GT says 1 and SD says 1.0, no key of GT is in SD, every risk is 0.
"""

from __future__ import annotations

import math
import sys
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from disclosure_pipeline.counting.opening import OpenedTables
from disclosure_pipeline.errors import ComparabilityWarning
from disclosure_pipeline.evaluation.frames import row_of
from disclosure_pipeline.measures.exact import IntArray, percent
from disclosure_pipeline.measures.resemblance import Overlap, Shared, overlap
from disclosure_pipeline.tables.alignment import Tables
from disclosure_pipeline.tables.levels import CodedColumn, Kind, level_label
from disclosure_pipeline.tables.messages import listed, table_names

Rows = dict[tuple[Any, int], dict[str, Any]]

WHOLE_KEY = "(whole key)"
"""Stands for the combination of all keys in the frame `key_overlap`."""

# Percent of records: below, a user is warned. A policy has bounds of its own.
LOW_OVERLAP, LOW_WHOLE_KEY = 50, 1

# The levels of a column that are looked at to say in what the tables differ.
_MOST_COMPARED = 100_000

# In percentage points: a level that takes the place of missing values is looked for from there on.
_MISSING_GAP = 5
_ABOUT_THAT_SIZE = (0.5, 1.5)  # times the difference of the missing shares

# What is written for a missing value where nothing is declared. Only such a level is named in a warning.
_CODES_FOR_MISSING = {
    *("", "na", "n/a", "nan", "null", "none", "nil", "missing", "unknown", "?", ".", "-", "#n/a", "<na>"),
    *("-1", "-8", "-9", "-88", "-98", "-99", "-998", "-999", "-9999", "99", "999", "9999"),
}

_CONSEQUENCE = "Risks read too low where the tables are not coded alike."


def compare_column(column: CodedColumn, names: Sequence[str]) -> tuple[Rows, list[str]]:
    """One column: how many records have a value that the other table has too, and what is doubtful of it.

    Records whose value is missing take no part: tables that share nothing but gaps share nothing. A doubt
    for each synthesis that shares few values with GT, or writes some otherwise; `names` are the tables'.
    """
    counts_GT, *counts_SD = (table_counts[: column.missing] for table_counts in column.counts)
    rows: Rows = {}
    warnings = []
    for synthesis, counts in enumerate(counts_SD, start=1):
        shares = rows[column.name, synthesis] = row_of(overlap(counts_GT, counts))
        difference = _difference_in_form(column, counts_GT, counts)
        warnings += _overlap_doubts(column.name, shares, difference, names[synthesis])
    return rows, warnings


def whole_key_overlap(shared: Sequence[Shared], N_d: int, N_s: Sequence[int]) -> Rows:
    """Return the overlap of the combination of all keys, by synthesis; a missing value is a level."""
    return {
        (WHOLE_KEY, synthesis): row_of(
            Overlap(percent(records.GT_in_SD, N_d), percent(records.SD_in_GT, N_s[synthesis - 1]))
        )
        for synthesis, records in enumerate(shared, start=1)
    }


def whole_key_doubts(whole_key: Rows, names: Sequence[str]) -> list[str]:
    """Return a doubt for each synthesis that hardly shares the whole key with GT (`whole_key_overlap`)."""
    return [
        f"The whole key is hardly shared. {_shares(shares, names[synthesis])}."
        for (_, synthesis), shares in whole_key.items()
        if not is_shared(shares, LOW_WHOLE_KEY)
    ]


def is_shared(shares: Mapping[str, float], least: float) -> bool:
    """Return whether both shares (percent) are at least so large; NaN, of tables without a value, is not."""
    return all(share >= least for share in shares.values())


def missing_value_doubts(columns: Iterable[CodedColumn], names: Sequence[str]) -> list[str]:
    """Return a doubt for each column and synthesis in which a level seems to stand for GT's missing values.

    Or the other way round: the missing shares differ by more than 5 points, and one table has a level of
    about that size that the other lacks. `columns` are not grouped.
    """
    warnings = []
    for column in columns:
        counts_GT, *counts_SD = column.counts
        for name, counts in zip(names[1:], counts_SD, strict=True):
            missing_GT, missing_SD = (_missing_share(table_counts) for table_counts in (counts_GT, counts))
            if not abs(missing_GT - missing_SD) > _MISSING_GAP:
                continue
            in_SD = missing_GT > missing_SD
            gap = abs(missing_GT - missing_SD)
            code = _level_of_size(counts, counts_GT, gap) if in_SD else _level_of_size(counts_GT, counts, gap)
            if code is None:
                continue
            level = (
                f"a level{_name_of_missing_code(column.levels[code])}" if in_SD else "a level"
            )  # no value of GT
            has, lacks = (name, "GT") if in_SD else ("GT", name)
            warnings.append(
                f"Column {column.name!r}: {missing_GT:.2f} % of the GT records have no value, "
                f"{missing_SD:.2f} % of those of {name}, and {has} has {level} of about that size that "
                f"{lacks} lacks. Does it stand for missing values? {_CONSEQUENCE}"
            )
    return warnings


def _missing_share(counts: IntArray) -> float:
    """Percent of the records whose value is missing; its code is the last one."""
    return percent(int(counts[-1]), int(counts.sum()))


def _level_of_size(counts: IntArray, other_counts: IntArray, gap: float) -> int | None:
    """Return the most frequent level that the other table lacks, if its share is about the gap."""
    counts_if_new = np.where(other_counts[:-1] == 0, counts[:-1], 0)
    if not len(counts_if_new):
        return None
    code = int(counts_if_new.argmax())
    low, high = (times * gap for times in _ABOUT_THAT_SIZE)
    return code if low <= percent(int(counts_if_new[code]), int(counts.sum())) <= high else None


def _name_of_missing_code(level: Any) -> str:
    """Return a usual code for missing values in quotes, after a blank; nothing for every other level."""
    label = level_label(level)
    return f" {label!r}" if label.strip().casefold() in _CODES_FOR_MISSING else ""


def _overlap_doubts(name: Any, shares: Mapping[str, float], difference: str, table: str) -> list[str]:
    if not is_shared(shares, LOW_OVERLAP):
        hint = f"Some differ only by {difference}. " if difference else ""
        return [
            f"Column {name!r}: the tables share few values. {_shares(shares, table)}. {hint}{_CONSEQUENCE}"
        ]
    if difference:
        return [f"Column {name!r}: values of {table} differ from GT's only by {difference}. {_CONSEQUENCE}"]
    return []


def _shares(shares: Mapping[str, float], table: str) -> str:
    if math.isnan(shares["GT_in_SD"]):
        return "No GT record has a value"
    if math.isnan(shares["SD_in_GT"]):
        return f"No record of {table} has a value"
    return (
        f"{shares['GT_in_SD']:.2f} % of the GT records have a value that is in {table}, "
        f"{shares['SD_in_GT']:.2f} % the other way round"
    )


def _difference_in_form(column: CodedColumn, counts_GT: IntArray, counts_SD: IntArray) -> str:
    """In what values that GT does not have differ from values of GT, if they agree otherwise."""
    if column.kind is not Kind.TEXT:
        return ""
    only_SD = column.levels[(counts_SD > 0) & (counts_GT == 0)]
    if not len(only_SD):
        return ""
    in_GT = column.levels[counts_GT > 0]
    texts_GT, texts_SD = ([str(level) for level in levels[:_MOST_COMPARED]] for levels in (in_GT, only_SD))
    for difference, normalise in _NORMAL_FORMS.items():
        if {normalise(text) for text in texts_GT} & {normalise(text) for text in texts_SD}:
            return difference
    return ""


def _as_number(text: str) -> str:
    try:
        return repr(float(text))
    except ValueError:
        return text


_NORMAL_FORMS: Mapping[str, Callable[[str], str]] = {
    "outer blanks": str.strip,
    "the form of Unicode": lambda text: unicodedata.normalize("NFC", text),
    "upper and lower case": str.casefold,
    "how a number is written": _as_number,
    "blanks, case and form of Unicode": lambda text: unicodedata.normalize("NFC", text.strip()).casefold(),
}


def identifier_warnings(opened: OpenedTables, columns: Sequence[CodedColumn]) -> list[str]:
    """Warnings of columns that GT lacks, and of those that identify every record."""
    columns_GT, *columns_SD = opened.columns
    names = table_names(len(opened.columns))
    identifiers = opened.identifiers(columns)
    warnings = []
    for synthesis, (columns_of_table, name) in enumerate(zip(columns_SD, names[1:], strict=True), start=1):
        warnings += _warn_of_more_columns(columns_GT, columns_of_table, name)
        warnings += [_warn_of_identifier(column, name) for table, column in identifiers if table == synthesis]
    return warnings


def _warn_of_more_columns(columns_GT: Sequence[Any], columns: Sequence[Any], table: str) -> list[str]:
    more = [column for column in columns if column not in columns_GT]
    return [f"GT lacks columns that {table} has, {listed(more)}: they are not measured."] if more else []


def _warn_of_identifier(column: Any, table: str) -> str:
    return (
        f"Column {column!r} has a value of its own for every GT record, and most of its values in {table} "
        "are of GT: is it an identifier? Then it must not be in a synthetic table."
    )


_PACKAGE = __name__.partition(".")[0]


def find_doubts(tables: Tables, columns: Sequence[CodedColumn]) -> list[str]:
    """Return what says of these columns, as they are grouped, that the tables may not be coded alike."""
    doubts = [doubt for column in columns for doubt in compare_column(column, tables.names)[1]]
    ungrouped = [column for column in columns if not tables.grouping.grouped(column.name)]
    return doubts + missing_value_doubts(ungrouped, tables.names)


def warn_of_doubts(doubts: Iterable[str]) -> None:
    """Return a `ComparabilityWarning` of each, at the line that called the library."""
    level = _level_of_caller()
    for doubt in doubts:
        warnings.warn(doubt, ComparabilityWarning, stacklevel=level)


def _level_of_caller() -> int:
    """Return how far above `warn_of_doubts` the first line stands that is none of this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _is_own(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    return level


def _is_own(module: str) -> bool:
    return module == _PACKAGE or module.startswith(f"{_PACKAGE}.")
