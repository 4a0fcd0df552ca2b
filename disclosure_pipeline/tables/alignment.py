"""Checks of the tables to measure: their form, columns and values, and the weights of a survey."""

from __future__ import annotations

import math
import operator
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api.types import is_hashable

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.runtime.machine import run_in_threads, threads_for
from disclosure_pipeline.tables.coding import (
    Distinct,
    build_table,
    code_column,
    code_distinct,
    decode_arrow,
    stack_columns,
)
from disclosure_pipeline.tables.encoding import leave_out_missing_level
from disclosure_pipeline.tables.grouping import Grouping
from disclosure_pipeline.tables.levels import (
    CodedColumn,
    IntArray,
    Kind,
    find_common_kind,
    level_label,
    replace_nan,
)
from disclosure_pipeline.tables.messages import (
    GROUND_TRUTH,
    capitalized,
    describe_argument,
    listed,
    names_in_all,
    suggest_names,
    table_names,
)
from disclosure_pipeline.tables.text_forms import describe_number_form

_ARROW_INTERFACE = ("__arrow_c_stream__", "__arrow_c_array__")


def is_frame(table: Any) -> bool:
    """Return whether this is a table in memory: of pandas, or anything with the Arrow interface."""
    if isinstance(table, (pd.Series, pd.Index)):  # newer ones have the Arrow interface too
        return False
    return isinstance(table, pd.DataFrame) or any(hasattr(table, name) for name in _ARROW_INTERFACE)


def holds_values(argument: Any) -> bool:
    """Return whether an argument is a table or column, whose values must not be shown."""
    return is_frame(argument) or isinstance(argument, (pd.Series, np.ndarray))


def is_column(name: Any, columns: Iterable[Any]) -> bool:
    """Return whether an argument, which may be any object, is the name of one of the columns."""
    return is_hashable(name) and name in list(columns)


def as_frames(ground_truth: Any, synthetic: Any) -> tuple[pd.DataFrame, ...]:
    """Return GT and its syntheses (one table, or a sequence of them) as pandas frames.

    Raise InputError as `as_frame` does, and if a table has no records.
    """
    syntheses = [synthetic] if is_frame(synthetic) else synthetic
    if not isinstance(syntheses, Sequence) or isinstance(syntheses, str):
        raise InputError(
            "The synthetic data must be a DataFrame of pandas or Polars, an Arrow table, or a sequence of "
            f"them, not {type(synthetic).__name__}."
        )
    if not len(syntheses):
        raise InputError("The sequence of synthetic tables is empty: give at least one.")
    tables = (ground_truth, *syntheses)
    names = table_names(len(tables))
    return check_frames(tables, names)


def check_frames(tables: Sequence[Any], names: Sequence[str]) -> tuple[pd.DataFrame, ...]:
    """Return tables in memory as pandas frames, labelled as `label_values` does.

    Raise InputError if one is not a frame, or has no records.
    """
    frames = tuple(map(as_frame, tables, names))
    check_not_empty([len(frame) for frame in frames], names)
    return label_values(frames)


def label_values(tables: Sequence[Any]) -> tuple[Any, ...]:
    """Return tables with text for the numbers of each column that has categories of both in some table.

    Statistics packages label some values of a column, and `pandas.read_stata` returns the labels of these and
    the numbers of the others. Only data frames of pandas have such columns; other tables stay unchanged.
    """
    frames = [table for table in tables if isinstance(table, pd.DataFrame)]
    labelled = {
        name for frame in frames for name, dtype in frame.dtypes.items() if _is_partly_labelled(dtype)
    }
    if not labelled:
        return tuple(tables)
    return tuple(
        _label_columns(table, labelled) if isinstance(table, pd.DataFrame) else table for table in tables
    )


def _label_columns(frame: pd.DataFrame, names: Collection[Any]) -> pd.DataFrame:
    columns = {name: _label(frame[name]) if name in names else frame[name] for name in frame}
    return build_table(columns, frame.index)


def _is_partly_labelled(dtype: Any) -> bool:
    if not isinstance(dtype, pd.CategoricalDtype) or not pd.api.types.is_object_dtype(dtype.categories.dtype):
        return False
    are_text = [isinstance(category, str) for category in dtype.categories]
    are_numbers = [
        isinstance(category, Real) and not isinstance(category, (bool, np.bool_))
        for category in dtype.categories
    ]
    return any(are_text) and any(are_numbers) and all(map(operator.or_, are_text, are_numbers))


def _label(series: pd.Series[Any]) -> pd.Series[Any]:
    """Return the values as text if they are numbers, or text and numbers; others unchanged."""
    if not _is_partly_labelled(series.dtype) and (
        not pd.api.types.is_numeric_dtype(series.dtype) or pd.api.types.is_bool_dtype(series.dtype)
    ):
        return series
    codes, values = pd.factorize(replace_nan(series))
    labels = np.array([*map(level_label, values), None], dtype=object)
    return pd.Series(labels[codes], index=series.index, name=series.name)


def as_frame(table: Any, name: str) -> pd.DataFrame:
    """Return a table in memory as a pandas frame. Raise InputError if it is none, or columns share a name."""
    if not is_frame(table):
        raise InputError(
            f"{capitalized(name)} must be a DataFrame of pandas or Polars, or an Arrow table, not "
            f"{type(table).__name__}."
        )
    frame = table if isinstance(table, pd.DataFrame) else _from_arrow(table, name)
    if frame.columns.nlevels > 1:
        raise InputError(f"{capitalized(name)} has column names of several levels: give it plain ones.")
    duplicates = frame.columns[frame.columns.duplicated()].unique().tolist()
    if duplicates:
        raise InputError(
            f"{capitalized(name)} has several columns named {listed(duplicates)}: every name must be unique."
        )
    return frame


def check_not_empty(records: Sequence[int], names: Sequence[str]) -> None:
    """Raise InputError if a table has no records; `names` are those of the tables."""
    for number, name in zip(records, names, strict=True):
        if not number:
            raise InputError(f"{capitalized(name)} has no records: there is nothing to measure.")


def _from_arrow(table: Any, name: str) -> pd.DataFrame:
    import pyarrow as pa  # pandas frames do without it

    try:
        arrow = pa.table(table)
    except (pa.ArrowException, TypeError, ValueError):
        arrow = None  # raised below, so that Arrow's message is not the context
    if arrow is None:
        raise InputError(
            f"{capitalized(name)} must be a DataFrame, or an Arrow table with named columns, not "
            f"{type(table).__name__}."
        )
    columns = [_convert_for_pandas(column) for column in arrow.columns]
    frames = pa.table(columns, names=arrow.column_names)
    return frames.to_pandas(types_mapper=pd.ArrowDtype)


def _convert_for_pandas(column: Any) -> Any:
    """Return a column in types that pandas handles: string views become strings, even in dictionaries."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        return _copy_string_views(column)
    column = leave_out_missing_level(column)
    values = column.type.value_type
    if pa.types.is_string_view(values):
        values = pa.large_string()
    chunks = [
        pa.DictionaryArray.from_arrays(chunk.indices.cast(pa.int32()), _copy_string_views(chunk.dictionary))
        for chunk in column.chunks
    ]
    return pa.chunked_array(chunks, pa.dictionary(pa.int32(), values))


def _copy_string_views(texts: Any) -> Any:
    import pyarrow as pa

    if not pa.types.is_string_view(texts.type):
        return texts
    try:
        return texts.cast(pa.large_string())
    except pa.ArrowNotImplementedError:  # older releases of Arrow
        return pa.array(texts.to_pylist(), pa.large_string())


def stack_frames(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return all records of several tables as one table; only columns that all of them have."""
    shared = names_in_all([list(frame.columns) for frame in frames])
    return build_table({name: stack_columns([frame[name] for frame in frames]) for name in shared})


@dataclass(frozen=True)
class Tables:
    """GT (first) and its syntheses, checked: all have every key and target, each of one kind."""

    frames: tuple[pd.DataFrame, ...]
    keys: tuple[Any, ...]
    targets: tuple[Any, ...]
    grouping: Grouping

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tables in messages."""
        return table_names(len(self.frames))

    def code_column(self, column: Any) -> CodedColumn:
        """Code a column over the levels of all tables, grouped if that is requested."""
        return self.grouping.apply(code_column(column, [frame[column] for frame in self.frames], self.names))

    def code(self, columns: Sequence[Any]) -> list[CodedColumn]:
        """Code several columns, in threads."""
        records = sum(len(frame) for frame in self.frames)
        return run_in_threads([partial(self.code_column, column) for column in columns], threads_for(records))


def check_tables(
    ground_truth: pd.DataFrame,
    synthetic: pd.DataFrame | Sequence[pd.DataFrame],
    keys: Sequence[Any],
    targets: Any,
    grouping: Grouping,
) -> Tables:
    """Check everything before work starts. Raise InputError if the tables cannot be measured as requested."""
    frames = as_frames(ground_truth, synthetic)
    key_names, target_names = check_names([list(frame.columns) for frame in frames], keys, targets, grouping)
    for column in (*key_names, *target_names):
        check_values(column, [frame[column] for frame in frames], grouping, table_names(len(frames)))
    return Tables(frames, key_names, target_names, grouping)


def check_names(
    columns: Sequence[Sequence[Any]], keys: Sequence[Any], targets: Any, grouping: Grouping
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the keys and targets of tables (GT first) with these columns, or raise InputError."""
    key_names = _check_keys(keys)
    shared = names_in_all(columns)
    target_names = _check_targets(targets, key_names, shared)
    for name in (*key_names, *target_names):
        _check_present(name, columns)
    _check_grouping(grouping, key_names, target_names, columns)
    return key_names, target_names


def require_unit(unit: Any, columns: Sequence[Sequence[Any]]) -> None:
    """Raise InputError unless the unit is a column of GT, the first table, and of no other table."""
    in_GT, *in_SD = columns
    if not is_column(unit, in_GT):
        raise InputError(
            f"The unit {describe_argument(unit)} is not a column of {GROUND_TRUTH}. "
            f"{suggest_names(unit, in_GT)}"
        )
    for name, table_columns in zip(table_names(len(columns))[1:], in_SD, strict=True):
        if unit in table_columns:
            raise InputError(
                f"The unit {describe_argument(unit)} is also a column of {name}: it says whose record each "
                f"one of {GROUND_TRUTH} is, and is never synthesized. Remove it from {name}."
            )


def missing_owners_error(unit: Any) -> InputError:
    """Return the error for GT records that do not say whose they are."""
    return InputError(
        f"The unit {describe_argument(unit)} has missing values in {GROUND_TRUTH}: give every record an "
        "owner, if need be its own."
    )


def number_owners(frames: Sequence[pd.DataFrame], unit: Any) -> IntArray:
    """Return a number for the owner of each GT record; without a unit, each is another person's.

    Raise InputError if a record has none.
    """
    if unit is None:
        return np.arange(len(frames[0]))
    require_unit(unit, [list(frame.columns) for frame in frames])
    owners: IntArray = pd.factorize(replace_nan(decode_arrow(frames[0][unit])))[0]
    if (owners < 0).any():
        raise missing_owners_error(unit)
    return owners


def check_values(
    column: Any,
    series: Sequence[pd.Series[Any]],
    grouping: Grouping,
    names: Sequence[str],
    counts: Sequence[IntArray] | None = None,
) -> Kind:
    """Return the kind of a column in all tables. Raise InputError if it has several, or cannot be grouped.

    Each series holds a table's records or, with `counts`, its distinct values; `names` are those of the
    tables.
    """
    if column in grouping.numeric:
        _refuse_missing_texts(column, series, names, counts)
    kind = find_common_kind(column, series, names)
    needed = {"can be grouped": grouping.groups_column(column), "have a band": column in grouping.within}
    for purpose, is_needed in needed.items():
        if is_needed and kind not in {Kind.NUMBER, Kind.EMPTY}:
            form = _describe_number_form(series, names) if kind is Kind.TEXT else ""
            raise InputError(f"Column {column!r} holds {kind.value}: only numbers {purpose}{form}.")
    return kind


def _describe_number_form(series: Sequence[pd.Series[Any]], names: Sequence[str]) -> str:
    """Say in which tables numbers were read as text because of their commas; otherwise empty."""
    described: dict[str, list[str]] = {}
    for values, name in zip(series, names, strict=True):
        is_category = isinstance(values.dtype, pd.CategoricalDtype)
        levels = values.cat.categories if is_category else values.dropna().unique()
        form = describe_number_form(map(str, levels))
        described.setdefault(form, []).append(name)
    described.pop("", None)
    return "".join(f". In {' and '.join(tables)} {form}" for form, tables in described.items())


def _refuse_missing_texts(
    column: Any, series: Sequence[pd.Series[Any]], names: Sequence[str], counts: Sequence[IntArray] | None
) -> None:
    """Raise InputError if texts that mean missing are what keeps a column from being numbers."""
    from disclosure_pipeline.tables.canonical import find_conventional_missing, mark_texts, read_levels
    from disclosure_pipeline.tables.dictionary import Column
    from disclosure_pipeline.tables.encoding import encode

    for number, (values, name) in enumerate(zip(series, names, strict=True)):
        if pd.api.types.is_numeric_dtype(values.dtype):
            continue
        encoded = encode(values)
        codes = find_conventional_missing(encoded.levels)
        if not codes:
            continue
        others = read_levels(Column(type="number", missing_codes=codes), encoded.levels)
        if others.unreadable.any():
            continue
        held = np.append(mark_texts(encoded.levels, codes), False)[encoded.codes]
        records = int(held.sum() if counts is None else counts[number][:-1][held].sum())
        if records:
            options = " ".join(f"--missing {code}" for code in codes)
            raise InputError(
                f"Column {column!r} of {name} holds the text {listed(codes)} in {records:,} "
                f"{'record' if records == 1 else 'records'} besides numbers: if it means missing, say "
                f"{options} (missing_codes={list(codes)!r})."
            )


def _check_keys(keys: Sequence[Any]) -> tuple[Any, ...]:
    if isinstance(keys, str):
        raise InputError(f"keys must be a list of column names, not {keys!r}: write [{keys!r}].")
    if not isinstance(keys, Iterable) or holds_values(keys):
        raise InputError(f"keys must be a list of column names, not {describe_argument(keys)}.")
    names = tuple(keys)
    if not names:
        raise InputError("keys is empty: name at least one column that an intruder may know.")
    repeated = [name for i, name in enumerate(names) if name in names[:i]]
    if repeated:
        raise InputError(f"keys names {listed(repeated)} more than once.")
    return names


def _check_targets(targets: Any, keys: tuple[Any, ...], shared: list[Any]) -> tuple[Any, ...]:
    if targets is None:
        names = tuple(column for column in shared if column not in keys)
        if not names:
            raise InputError("No column but the keys is in all tables: there is no target to measure.")
        return names
    if holds_values(targets):
        raise InputError(f"targets must be column names, not {describe_argument(targets)}.")
    names = (targets,) if isinstance(targets, str) or not isinstance(targets, Iterable) else tuple(targets)
    repeated = [name for i, name in enumerate(names) if name in names[:i]]
    if repeated:
        raise InputError(f"targets names {listed(repeated)} more than once.")
    keys_as_targets = [name for name in names if name in keys]
    if keys_as_targets:
        raise InputError(
            f"{listed(keys_as_targets)} cannot be a key and a target at once: whoever knows it learns "
            "nothing new."
        )
    return names


def _check_present(column: Any, columns: Sequence[Sequence[Any]]) -> None:
    for table_columns, name in zip(columns, table_names(len(columns)), strict=True):
        if not isinstance(column, Hashable) or column not in table_columns:
            raise InputError(f"Column {column!r} is not in {name}. {suggest_names(column, table_columns)}")


def _check_grouping(
    grouping: Grouping, keys: tuple[Any, ...], targets: tuple[Any, ...], known: Sequence[Sequence[Any]]
) -> None:
    named: dict[str, Collection[Any]] = {
        "groups": grouping.groups,
        "edges": grouping.explicit,
        "special_values": grouping.special_values,
    }
    for argument, columns in named.items():
        for column in columns:
            _check_present(column, known)
            if column not in keys and column not in targets:
                raise InputError(f"{argument} names column {column!r}, which is neither a key nor a target.")
    for column in grouping.within:
        _check_present(column, known)
        if column not in targets:
            raise InputError(f"within names column {column!r}, which is not a target.")


def code_distinct_columns(
    distinct: Mapping[Any, Sequence[Distinct]], grouping: Grouping, names: Sequence[str]
) -> list[CodedColumn]:
    """Code columns by their distinct values, not grouped yet. Raise InputError as `check_tables` does."""
    if not distinct:
        return []
    check_not_empty([table.records for table in next(iter(distinct.values()))], names)
    for name, tables in distinct.items():
        values, counts = ([getattr(table, part) for table in tables] for part in ("values", "counts"))
        check_values(name, values, grouping, names, counts)
    return [code_distinct(name, tables, names) for name, tables in distinct.items()]


WEIGHTS = "weights must say how many people each record stands for"


def require_weights(weights: Any, in_GT: Sequence[Any], measured: Collection[Any], unit: Any) -> None:
    """Raise InputError unless the weights are a column of GT that is neither measured nor the unit."""
    if not is_column(weights, in_GT):
        raise InputError(
            f"The weights {describe_argument(weights)} are not a column of {GROUND_TRUTH}. "
            f"{suggest_names(weights, in_GT)}"
        )
    if weights in measured or weights == unit:
        role = "unit" if weights == unit else "key or target"
        raise InputError(
            f"The weights {describe_argument(weights)} are also a {role}: a column of weights can be nothing "
            "else."
        )


def require_sampling_fraction(fraction: Any) -> float:
    """Return the fraction as a float. Raise InputError unless it is above 0 and at most 1."""
    is_number = isinstance(fraction, (int, float)) and not isinstance(fraction, bool)
    if not is_number or not 0 < fraction <= 1:
        raise InputError(
            f"sampling_fraction must be a share above 0 and at most 1, not {describe_argument(fraction)}."
        )
    return float(fraction)


def find_weight_problem(column: CodedColumn) -> str:
    """Return the problem with GT's values of a column of weights; empty if there is none."""
    counts = column.counts[0]
    if counts[column.missing]:
        return "lacks a value in some records"
    if column.kind is not Kind.NUMBER:
        return f"holds {column.kind.value}, not numbers"
    occurring = counts[:-1] > 0
    values = _weigh_levels(column)[:-1][occurring]
    if not np.isfinite(values).all():
        return "holds infinite values"
    if (values <= 0).any():
        return "holds values of 0 or below"
    if math.fsum((values * counts[:-1][occurring]).tolist()) < counts.sum():
        return "is below 1 on average: records would stand for fewer people than there are"
    return ""


def weigh_records(column: CodedColumn) -> npt.NDArray[np.float64]:
    """Return the weight of each GT record. InputError, without showing a value, if one is unusable."""
    problem = find_weight_problem(column)
    if problem:
        raise InputError(f"Column {describe_argument(column.name)} of {GROUND_TRUTH} {problem}: {WEIGHTS}.")
    return _weigh_levels(column)[column.codes[0]]


def weigh_owners(frames: Sequence[pd.DataFrame], weights: Any) -> npt.NDArray[np.float64]:
    """Return the people that each GT record stands for: 1 without weights. InputError as `weigh_records`."""
    if weights is None:
        return np.ones(len(frames[0]))
    return weigh_records(code_column(weights, [frames[0][weights]], [GROUND_TRUTH]))


def _weigh_levels(column: CodedColumn) -> npt.NDArray[np.float64]:
    """Return the weight of each code, NaN for missing."""
    levels = [math.nan if level is None else float(level) for level in column.levels]
    return np.array([*levels, math.nan])
