"""Tables in memory as pandas frames: those of pandas themselves, of Polars, and of Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.tables.messages import capitalized, listed, names_in_all, table_names

_ARROW_INTERFACE = ("__arrow_c_stream__", "__arrow_c_array__")


def is_frame(table: Any) -> bool:
    """Return whether it is a table in memory: pandas, or anything with the Arrow interface."""
    if isinstance(table, (pd.Series, pd.Index)):  # newer ones have the Arrow interface too
        return False
    return isinstance(table, pd.DataFrame) or any(hasattr(table, name) for name in _ARROW_INTERFACE)


def holds_values(argument: Any) -> bool:
    """Return whether an argument is a table or column, whose values must not be shown."""
    return is_frame(argument) or isinstance(argument, (pd.Series, np.ndarray))


def as_frames(ground_truth: Any, synthetic: Any) -> tuple[pd.DataFrame, ...]:
    """Return GT and its syntheses (one table, or a sequence of them) as pandas frames: see `as_frame`.

    InputError where one is no table, has no records, or not every column has a name of its own.
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
    frames = tuple(map(as_frame, tables, names))
    check_not_empty([len(frame) for frame in frames], names)
    return frames


def as_frame(table: Any, name: str) -> pd.DataFrame:
    """Return a table in memory as a pandas frame: pandas' own as it is, others mostly without a copy.

    InputError where it is no table, or not every column has a name of its own. `name` is the table's.
    """
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
    """Raise InputError where a table has no records; `names` are the tables'."""
    for number, name in zip(records, names, strict=True):
        if not number:
            raise InputError(f"{capitalized(name)} has no records: there is nothing to measure.")


def _from_arrow(table: Any, name: str) -> pd.DataFrame:
    import pyarrow as pa  # pandas frames do without it

    try:
        arrow = pa.table(table)
    except (pa.ArrowException, TypeError, ValueError):
        arrow = None  # outside the block: what Arrow says is not carried along
    if arrow is None:
        raise InputError(
            f"{capitalized(name)} must be a DataFrame or a table of Arrow with columns that have names, not "
            f"{type(table).__name__}."
        )
    columns = [_known_to_pandas(column) for column in arrow.columns]
    frames = pa.table(columns, names=arrow.column_names)
    return frames.to_pandas(types_mapper=pd.ArrowDtype)


def _known_to_pandas(column: Any) -> Any:
    """Return a column in types that pandas handles: views of text become text, also in dictionaries."""
    import pyarrow as pa

    if pa.types.is_string_view(column.type):
        return column.cast(pa.large_string())
    if not pa.types.is_dictionary(column.type):
        return column
    values = column.type.value_type
    if pa.types.is_string_view(values):
        values = pa.large_string()
    chunks = [
        pa.DictionaryArray.from_arrays(chunk.indices.cast(pa.int32()), chunk.dictionary.cast(values))
        for chunk in column.chunks
    ]
    return pa.chunked_array(chunks, pa.dictionary(pa.int32(), values))


def stack_frames(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return all records of several tables as one, of the columns that all of them have."""
    shared = names_in_all([list(frame.columns) for frame in frames])
    return pd.DataFrame({name: stack_columns([frame[name] for frame in frames]) for name in shared})


def stack_columns(columns: Sequence[pd.Series[Any]]) -> pd.Series[Any]:
    """Return all values of several columns as one column; categories stay what they are."""
    types = [column.dtype for column in columns]
    if not all(isinstance(dtype, pd.CategoricalDtype) for dtype in types):
        if any(dtype != types[0] for dtype in types):  # one that fits both loses digits, or what is missing
            columns = [column.astype(object) for column in columns]
        dtype = columns[0].dtype
        if isinstance(dtype, np.dtype):  # as pandas does it, without its search for a common type
            return pd.Series(np.concatenate([column.to_numpy() for column in columns]), dtype=dtype)
        return pd.concat(columns, ignore_index=True)
    levels = [column.cat.categories for column in columns]
    if any(part.dtype != levels[0].dtype for part in levels):  # as above
        levels = [part.astype(object) for part in levels]
    categories = levels[0].append(levels[1:]).unique()
    ordered = all(column.cat.ordered for column in columns)
    codes = []
    for column in columns:
        position = np.append(categories.get_indexer(column.cat.categories), -1)
        codes.append(position[column.cat.codes.to_numpy()])
    return pd.Series(pd.Categorical.from_codes(np.concatenate(codes), categories, ordered=ordered))
