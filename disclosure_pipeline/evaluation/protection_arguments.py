"""What `disclosure_protection()` and its estimate refuse before any work starts."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.measures.protection import METHODS
from disclosure_pipeline.tables.alignment import Tables, check_tables
from disclosure_pipeline.tables.grouping import grouping_of
from disclosure_pipeline.tables.levels import CodedColumn
from disclosure_pipeline.tables.messages import listed

_MOST_BINS = 1_000_000


def check_arguments(
    ground_truth: Any, synthetic: Any, keys: Any, sensitive: Any, method: Any, continuous: Any, bins: Any
) -> tuple[Tables, tuple[Any, ...]]:
    """The tables, and the columns to put into bins. InputError says what is wrong."""
    check_method(method)
    sensitive_names = _check_sensitive(sensitive)
    if not isinstance(keys, str) and isinstance(keys, Iterable):
        keys = list(keys)
        in_both = [name for name in sensitive_names if name in keys]
        if in_both:
            raise InputError(
                f"{listed(in_both)} cannot be a key and sensitive at once: whoever knows it learns nothing."
            )
    tables = check_tables(ground_truth, synthetic, keys, sensitive_names, grouping_of())
    continuous_names = _check_continuous(() if continuous is None else continuous, tables)
    _check_whole_number("bins", bins, 1, _MOST_BINS)
    return tables, continuous_names


def check_method(method: Any) -> None:
    """InputError where there is no such method."""
    if method not in METHODS:
        close = difflib.get_close_matches(str(method).lower(), METHODS, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise InputError(f"method must be one of {listed(METHODS)}, not {method!r}.{hint}")


def check_sampling(records: Any, seed: Any, confidence: Any) -> None:
    """InputError where an option of the estimate is out of range."""
    _check_whole_number("records", records, 1)
    _check_whole_number("seed", seed, 0)
    if isinstance(confidence, bool) or not isinstance(confidence, (int, float)) or not 0 < confidence < 1:
        raise InputError(f"confidence must be a number between 0 and 1, such as 0.95, not {confidence!r}.")


def check_not_all_missing(column: CodedColumn, table_names: Sequence[str]) -> None:
    """InputError where a column has no value at all in some table."""
    for counts, name in zip(column.counts, table_names, strict=True):
        if not counts[: column.missing].any():
            raise InputError(
                f"Column {column.name!r} of {name} holds nothing but missing values: nothing can be found or "
                "guessed by it, which would look like protection. Leave it out, or read it again."
            )


def _check_sensitive(sensitive: Any) -> tuple[Any, ...]:
    is_one_name = isinstance(sensitive, str) or not isinstance(sensitive, Iterable)
    names = () if sensitive is None else (sensitive,) if is_one_name else tuple(sensitive)
    if not names:
        raise InputError("sensitive is empty: name at least one column that an intruder may want to learn.")
    _check_no_duplicates("sensitive", names)
    return names


def _check_continuous(continuous: Any, tables: Tables) -> tuple[Any, ...]:
    if isinstance(continuous, str) or not isinstance(continuous, Iterable):
        raise InputError(
            f"continuous must be a list of column names, not {continuous!r}: write [{continuous!r}]."
        )
    names, measured = tuple(continuous), (*tables.keys, *tables.targets)
    _check_no_duplicates("continuous", names)
    for name in names:
        if name not in measured:
            close = difflib.get_close_matches(str(name), [str(column) for column in measured], n=3)
            hint = f"Did you mean {listed(close)}?" if close else f"These are {listed(measured)}."
            raise InputError(f"continuous names {name!r}, which is neither a key nor sensitive. {hint}")
    return names


def _check_no_duplicates(argument: str, names: Sequence[Any]) -> None:
    duplicates = [name for i, name in enumerate(names) if name in names[:i]]
    if duplicates:
        raise InputError(f"{argument} names {listed(duplicates)} more than once.")


def _check_whole_number(argument: str, number: Any, lowest: int, highest: int | None = None) -> None:
    is_whole = isinstance(number, int) and not isinstance(number, bool)
    if not is_whole or number < lowest or (highest is not None and number > highest):
        most = "on" if highest is None else f"to {highest:,}"
        raise InputError(f"{argument} must be a whole number from {lowest} {most}, not {number!r}.")
