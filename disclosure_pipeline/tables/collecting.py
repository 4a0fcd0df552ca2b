"""Batches of a table, encoded as they arrive: at no time are all values of a column there as they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.runtime.threads import map_in_threads, run_in_threads, threads_for
from disclosure_pipeline.tables.encoding import arrow_codes, encode_arrow, encode_by_range


def collect(names: Sequence[str], batches: Iterable[Any], table: str) -> pd.DataFrame:
    """The record batches (or tables) of these columns as one frame of dictionary-encoded Arrow columns.

    InputError where a column holds values of several kinds, or of one that cannot be compared.
    """
    chunks: dict[str, list[Any]] = {name: [] for name in names}

    def encode(batch: Any) -> list[list[Any]]:
        return [_encode_chunks(batch.column(name), name, table) for name in names]

    for chunks_of_batch in map_in_threads(batches, encode, 1):  # while the next batch is read
        for name, parts in zip(names, chunks_of_batch, strict=True):
            chunks[name] += parts
    records = sum(map(len, next(iter(chunks.values()), [])))
    columns = run_in_threads(
        [partial(_join_chunks, chunks_of_column, name, table) for name, chunks_of_column in chunks.items()],
        threads_for(records),
    )
    return pd.DataFrame(dict(zip(chunks, columns, strict=True)), copy=False)


def _encode_chunks(column: Any, name: str, table: str) -> list[Any]:
    """The chunks of a column, each with its own dictionary."""
    parts = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    try:
        return [part if pa.types.is_dictionary(part.type) else _dictionary_encode(part) for part in parts]
    except pa.ArrowException:
        kind = column.type
    raise InputError(
        f"{table}: column {name!r} is of type {kind}, whose values cannot be compared: expected numbers, "
        "text, true/false or dates."
    )


def _dictionary_encode(part: Any) -> Any:
    encoded = encode_by_range(part)
    if encoded is None:
        return part.dictionary_encode()
    codes, levels = encoded
    return pa.DictionaryArray.from_arrays(arrow_codes(codes), levels)


def _join_chunks(chunks: list[Any], name: str, table: str) -> Any:
    if not chunks:
        return pd.arrays.ArrowExtensionArray(pa.array([], pa.dictionary(pa.int8(), pa.string())))
    kinds = [chunk.type.value_type for chunk in chunks]
    if all(map(pa.types.is_null, kinds)):
        chunks = [pa.nulls(sum(map(len, chunks)), pa.string()).dictionary_encode()]
    elif any(kind != kinds[0] for kind in kinds):
        chunks = _cast_to_one_type(chunks, kinds, name, table)
    index = pa.int32()
    encoded = encode_arrow(
        pa.chunked_array([chunk.cast(pa.dictionary(index, chunk.type.value_type)) for chunk in chunks])
    )
    chunks.clear()
    absent = encoded.codes < 0
    if pa.types.is_floating(encoded.levels.type):  # not a number is no number
        nan = encoded.levels.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
        absent |= np.append(nan, True)[encoded.codes]
    indices = pa.array(encoded.codes, mask=absent) if absent.any() else pa.array(encoded.codes)
    return pd.arrays.ArrowExtensionArray(pa.DictionaryArray.from_arrays(indices, encoded.levels))


def _cast_to_one_type(chunks: Sequence[Any], kinds: Sequence[Any], name: str, table: str) -> list[Any]:
    """The chunks with levels of one type that holds all of them exactly."""
    try:
        [common] = pa.unify_schemas(
            [pa.schema([("levels", kind)]) for kind in kinds], promote_options="permissive"
        ).types
        return [
            pa.DictionaryArray.from_arrays(chunk.indices, chunk.dictionary.cast(common)) for chunk in chunks
        ]
    except pa.ArrowException:
        pass
    raise InputError(f"{table}: column {name!r} holds values of several kinds: give it one type.")
