"""The columns of a raw table as codes over distinct levels, and their canonical form.

All later steps work on the levels alone, so that no value is read twice.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.runtime.machine import map_in_threads, run_in_threads, threads_for
from disclosure_pipeline.tables.canonical import Levels, read_levels
from disclosure_pipeline.tables.dictionary import Column, Dictionary
from disclosure_pipeline.tables.levels import (
    IntArray,
    count_codes,
    is_missing,
    level_label,
    replace_nan,
    widen_column,
    widen_floats,
    widen_number,
)

_LARGEST = 2**63


@dataclass(frozen=True)
class Encoded:
    """One column: `codes` (an entry per record, -1: missing) are positions in `levels`, an Arrow array.

    Some levels may occur in no record, and levels may be equal. With `known_counts` there is a code for each
    level instead.
    """

    codes: IntArray
    levels: Any
    known_counts: IntArray | None = None

    @classmethod
    def from_values(cls, values: Any, counts: IntArray) -> Encoded:
        """Return a column of these values; `counts` are the records with each, and last with missing."""
        levels = arrow_array(values)
        return cls(np.append(np.arange(len(levels)), -1), levels, counts)

    @cached_property
    def counts(self) -> IntArray:
        """The number of records with each level, and last with missing."""
        if self.known_counts is not None:
            return self.known_counts
        return count_codes(self.codes, 0, len(self.levels) + 1)


def count_levels(column: Encoded) -> IntArray:
    """Count the records with each value that occurs, without missing, in any order.

    >>> count_levels(encode(pd.Series(["a", "b", "a", None]))).tolist()
    [2, 1]
    """
    codes, levels = pd.factorize(column.levels.to_pandas(types_mapper=pd.ArrowDtype))
    sums = np.zeros(len(levels) + 1, dtype=np.int64)  # the last one is for missing, -1
    np.add.at(sums, codes, column.counts[:-1])
    return sums[:-1][sums[:-1] > 0]


def encode(column: pd.Series[Any]) -> Encoded:
    """Encode a column of any dtype. Categories and dictionaries keep their codes; no text is compared.

    Floats are widened as by `widen_floats`.
    """
    column = widen_column(column)
    if isinstance(column.dtype, pd.CategoricalDtype):
        return Encoded(column.cat.codes.to_numpy(), _to_levels(column.cat.categories))
    if isinstance(column.dtype, pd.ArrowDtype):
        return encode_arrow(pa.chunked_array(column.array.__arrow_array__()))
    codes, values = pd.factorize(replace_nan(column))
    return Encoded(codes.astype(smallest_code_type(len(values))), _to_levels(values))


def encode_arrow(column: Any) -> Encoded:
    """Encode a chunked Arrow array, whose chunks may have different dictionaries; NaN is missing."""
    if pa.types.is_float16(column.type):  # of which older releases of Arrow make no dictionary
        column = pa.chunked_array(map(widen_arrow, column.chunks), pa.float64())
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    column = leave_out_missing_level(column).unify_dictionaries()
    if not column.num_chunks:
        return Encoded(np.empty(0, dtype=np.int8), widen_arrow(pa.array([], column.type.value_type)))
    levels = widen_arrow(column.chunk(0).dictionary)
    if column.num_chunks == 1 and not column.null_count:
        only = column.chunk(0).indices.to_numpy().astype(smallest_code_type(len(levels)), copy=False)
        return Encoded(_without_nan(only, levels), levels)
    # Codes are converted to the smallest type chunk by chunk, so that memory never holds all of them twice.
    codes = np.empty(len(column), dtype=smallest_code_type(len(levels)))
    start = 0
    for chunk in column.chunks:
        indices = chunk.indices.cast(pa.from_numpy_dtype(codes.dtype), safe=False)  # fewer bytes to fill
        codes[start : start + len(chunk)] = indices.fill_null(-1).to_numpy(zero_copy_only=False)
        start += len(chunk)
    return Encoded(_without_nan(codes, levels), levels)


def _without_nan(codes: IntArray, levels: Any) -> IntArray:
    """Return codes with -1 for NaN."""
    if not pa.types.is_floating(levels.type):
        return codes
    is_nan = levels.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
    return np.where(np.append(is_nan, True)[codes], codes.dtype.type(-1), codes) if is_nan.any() else codes


def leave_out_missing_level(column: Any) -> Any:
    """Return a chunked dictionary array without missing among its levels: Arrow unifies no others.

    >>> encoded = pa.chunked_array([pa.array(["f", None]).dictionary_encode(null_encoding="encode")])
    >>> [each.chunk(0).dictionary.to_pylist() for each in (encoded, leave_out_missing_level(encoded))]
    [['f', None], ['f']]
    """
    if not any(chunk.dictionary.null_count for chunk in column.chunks):
        return column
    return column.cast(column.type.value_type).dictionary_encode()


def encode_by_range(array: Any) -> tuple[IntArray, Any] | None:
    """Encode integers by their distance from the lowest, which is faster than looking them up.

    Return None if they lie too far apart. Some levels may occur in no record.
    """
    if not pa.types.is_integer(array.type) or len(array) == array.null_count:
        return None
    extremes = pc.min_max(array)
    lowest, highest = extremes["min"].as_py(), extremes["max"].as_py()
    if highest - lowest >= len(array) or highest >= _LARGEST:
        return None
    values = (array.fill_null(lowest) if array.null_count else array).to_numpy(zero_copy_only=False)
    codes = (values.astype(np.int64) - lowest).astype(smallest_code_type(highest - lowest + 1))
    if array.null_count:
        codes[array.is_null().to_numpy(zero_copy_only=False)] = -1
    return codes, pa.array(np.arange(lowest, highest + 1), array.type)


def smallest_code_type(levels: int) -> np.dtype[Any]:
    """Return the smallest integer type that holds codes below `levels`, and -1."""
    return np.dtype(np.min_scalar_type(-levels - 1))


def arrow_codes(codes: IntArray) -> Any:
    """Return codes as an Arrow array with null for -1.

    >>> arrow_codes(np.array([1, -1])).to_pylist()
    [1, None]
    """
    return pa.array(codes, mask=codes < 0 if codes.min(initial=0) < 0 else None)


def take_levels(codes: IntArray, levels: Any) -> Any:
    """Return the levels that codes stand for as an Arrow dictionary array, with null for -1.

    >>> take_levels(np.array([1, -1, 0]), pa.array(["f", "m"])).to_pylist()
    ['m', None, 'f']
    """
    # No code is out of range: looking for one takes as long as the rest.
    return pa.DictionaryArray.from_arrays(arrow_codes(codes), levels, safe=False)


def widen_arrow(array: Any) -> Any:
    """Return an Arrow array with its floats widened as by `widen_floats`; others are returned unchanged.

    >>> widen_arrow(pa.array([172.3, None], pa.float32())).to_pylist()
    [172.3, None]
    """
    if not (pa.types.is_float16(array.type) or pa.types.is_float32(array.type)):
        return array
    values = widen_floats(array.to_numpy(zero_copy_only=False).astype(array.type.to_pandas_dtype()))
    return pa.array(values, mask=array.is_null().to_numpy(zero_copy_only=False))


def arrow_array(values: Any) -> Any:
    """Return the values as an Arrow array of one type; times with an offset are converted to UTC.

    Floats are widened as by `widen_floats`.

    pyarrow would drop offsets if the environment has PYARROW_IGNORE_TIMEZONE, which importing pandera or
    pyspark sets. Raise pyarrow's errors if the values have no common type.
    """
    array = pa.array(values, from_pandas=True)
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    typed = getattr(getattr(values, "dtype", None), "kind", "O") != "O"
    if pa.types.is_floating(array.type) and not typed:
        return pa.array([widen_number(value) for value in values], pa.float64(), from_pandas=True)
    if typed or not pa.types.is_timestamp(array.type):
        return widen_arrow(array)
    times = [value for value in values if isinstance(value, datetime.datetime) and not pd.isna(value)]
    zoned = {value.tzinfo is not None for value in times}
    if len(zoned) > 1:
        raise TypeError("times with and without an offset")
    if zoned != {True}:
        return array
    utc = [
        None if pd.isna(time) else time.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        for time in values
    ]
    return pa.array(utc, pa.timestamp("us")).cast(pa.int64()).cast(pa.timestamp("us", "UTC"))


def _to_levels(values: Any) -> Any:
    try:
        levels = arrow_array(values)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        # Values of several kinds are compared as text.
        labels = [None if is_missing(value) else level_label(value) for value in values]
        return pa.array(labels, pa.string())
    return levels.dictionary_decode() if pa.types.is_dictionary(levels.type) else levels


def collect(names: Sequence[str], batches: Iterable[Any], table: str) -> pd.DataFrame:
    """Collect record batches (or tables) into one frame of dictionary-encoded Arrow columns.

    Raise InputError if a column holds values of several kinds, or of one that cannot be compared.
    """
    chunks: dict[str, list[Any]] = {name: [] for name in names}

    def encode(batch: Any) -> list[list[Any]]:
        return [
            [_encode_part(part, name, table) for part in getattr(column, "chunks", [column])]
            for name in names
            for column in [batch.column(name)]
        ]

    for batch_chunks in map_in_threads(batches, encode, 1):  # while the next batch is read
        for name, parts in zip(names, batch_chunks, strict=True):
            chunks[name] += parts
    records = sum(map(len, next(iter(chunks.values()), [])))
    columns = run_in_threads(
        [partial(_join_chunks, column_chunks, name, table) for name, column_chunks in chunks.items()],
        threads_for(records),
    )
    return pd.DataFrame(dict(zip(chunks, columns, strict=True)), copy=False)


def _encode_part(part: Any, name: str, table: str) -> Any:
    encoded = encode_by_range(part)
    if encoded is None:
        return dictionary_encode(part, name, table)
    codes, levels = encoded
    return take_levels(codes, levels)


def dictionary_encode(array: Any, name: str, table: str) -> Any:
    """Return an Arrow array with its values in a dictionary. Raise InputError if they cannot be compared."""
    try:
        array = widen_arrow(array) if pa.types.is_float16(array.type) else array  # see `encode_arrow`
        encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
        levels = encoded.dictionary
        widened = widen_arrow(levels)
        return encoded if widened is levels else pa.DictionaryArray.from_arrays(encoded.indices, widened)
    except pa.ArrowException:
        pass
    raise InputError(
        f"{table}: column {name!r} is of type {array.type}, whose values cannot be compared: expected "
        "numbers, text, true/false or dates."
    )


def _join_chunks(chunks: list[Any], name: str, table: str) -> Any:
    if not chunks:
        return pd.arrays.ArrowExtensionArray(pa.array([], pa.dictionary(pa.int8(), pa.string())))
    kinds = [chunk.type.value_type for chunk in chunks]
    if all(map(pa.types.is_null, kinds)):
        chunks = [pa.nulls(sum(map(len, chunks)), pa.string()).dictionary_encode()]
    elif any(kind != kinds[0] for kind in kinds):
        levels = cast_to_one_type([chunk.dictionary for chunk in chunks], name, table)
        chunks = [
            pa.DictionaryArray.from_arrays(chunk.indices, chunk_levels)
            for chunk, chunk_levels in zip(chunks, levels, strict=True)
        ]
    index = pa.int32()
    encoded = encode_arrow(
        pa.chunked_array([chunk.cast(pa.dictionary(index, chunk.type.value_type)) for chunk in chunks])
    )
    chunks.clear()
    return pd.arrays.ArrowExtensionArray(take_levels(encoded.codes, encoded.levels))


def cast_to_one_type(arrays: Sequence[Any], name: str, table: str) -> list[Any]:
    """Return Arrow arrays in one type that holds all values exactly. Raise InputError if there is none."""
    try:
        [common] = pa.unify_schemas(
            [pa.schema([("values", array.type)]) for array in arrays], promote_options="permissive"
        ).types
        return [array.cast(common) for array in arrays]
    except pa.ArrowException:
        pass
    raise InputError(f"{table}: column {name!r} holds values of several kinds: give it one type.")


@dataclass(frozen=True)
class Change:
    """A rule that brought values of a column to canonical form, and the number of records it changed."""

    table: str
    column: str
    rule: str
    records: int


@dataclass(frozen=True)
class RawColumn:
    """A column of a raw table: its codes, and its levels as the dictionary reads them."""

    encoded: Encoded
    levels: Levels

    @classmethod
    def read(cls, encoded: Encoded, column: Column) -> RawColumn:
        """Read the levels as the dictionary's column declares them."""
        return cls(encoded, read_levels(column, encoded.levels))

    def count_records(self, codes: IntArray) -> IntArray:
        """Count the records with each of the levels at `codes`, and last with missing, -1; others count 0."""
        occurs = np.zeros(len(self.encoded.counts), dtype=bool)
        occurs[codes] = True
        return np.where(occurs, self.encoded.counts, 0)


def read_columns(raw: pd.DataFrame, dictionary: Dictionary) -> dict[str, RawColumn]:
    """Read the columns of a raw table that the dictionary describes, in threads."""

    def read(name: str) -> RawColumn:
        encoded = encode(raw[name])
        _ = encoded.counts  # computed here, in a thread, and cached
        return RawColumn.read(encoded, dictionary[name])

    names = [name for name in dictionary if name in raw.columns]
    columns = run_in_threads([partial(read, name) for name in names], threads_for(len(raw)))
    return dict(zip(names, columns, strict=True))


def canonical_records(column: RawColumn, declared: Column) -> Any:
    """Return the column's records in canonical form: categories, or Arrow text for identifiers."""
    encoded = column.levels.values.dictionary_encode()
    position = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    levels = encoded.dictionary
    occurs = np.zeros(len(levels) + 1, dtype=bool)
    occurs[position[column.encoded.counts[:-1] > 0]] = True  # the last entry is for missing, -1
    used = np.flatnonzero(occurs[:-1])
    if declared.type == "ordered category" and declared.level_names is not None:
        order = {name: i for i, name in enumerate(declared.level_names)}
        kept = len(order)  # unknown levels, if kept, come last
        used = np.array(
            sorted(used, key=lambda code: order.get(levels[int(code)].as_py(), kept)), dtype=np.int64
        )
    renumber = np.full(len(levels) + 1, -1)
    renumber[used] = np.arange(len(used))
    codes = column.encoded.codes
    new_codes = np.append(renumber[position], -1).astype(smallest_code_type(len(used)))
    if new_codes.dtype != codes.dtype or not np.array_equal(new_codes[:-1], np.arange(len(new_codes) - 1)):
        codes = new_codes[codes]
    if declared.type == "text identifier":  # with nearly as many levels as records, Arrow is faster
        return pd.arrays.ArrowExtensionArray(take_levels(codes, levels.take(pa.array(used))))
    categories = pd.Index(levels.take(pa.array(used)).to_pandas())
    return pd.Categorical.from_codes(codes, categories, ordered=declared.type == "ordered category")


def list_changes(column: RawColumn, table: str, name: str) -> list[Change]:
    """Return an entry for each rule that changed records of a column."""
    counts = column.encoded.counts[:-1]
    counted = {rule: int(counts[where].sum()) for rule, where in column.levels.changed.items()}
    return [Change(table, name, rule, records) for rule, records in counted.items() if records]
