"""Hashes of records in canonical form: they depend on the values alone, not on the engine or the order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from disclosure_pipeline.tables.dictionary import Column, Dictionary
from disclosure_pipeline.tables.encoding import encode
from disclosure_pipeline.tables.levels import IntArray
from disclosure_pipeline.tables.rounding import ROUNDING_NOISE

Hashes = npt.NDArray[np.uint64]

MISSING = np.uint64(0x9E3779B97F4A7C15)
"""What stands for the hash of a missing value."""

RECORDS_AT_ONCE = 1 << 20
"""So many records are read at once."""

_PANDAS_KEY = "0123456789123456"  # of pd.util.hash_array, where there is no secret
_BITS = 31  # of a float's mantissa: floats that fall together are closer than ROUNDING_NOISE


class Records(Protocol):
    """A table in canonical form, whichever engine read it."""

    @property
    def records(self) -> int:
        """How many records it has."""

    def some_records(self, positions: IntArray) -> pd.DataFrame:
        """Some records, by their positions and in the order of these."""


def plain_type(column: Column) -> Any:
    """The Arrow type of a column's canonical values.

    >>> plain_type(Column(type="integer"))
    DataType(int64)
    """
    if column.type == "datetime":
        return pa.timestamp("us", None if column.time_zone is None else "UTC")
    return {
        "integer": pa.int64(),
        "number": pa.float64(),
        "boolean": pa.bool_(),
        "date": pa.date32(),
    }.get(column.type, pa.string())


def mix(numbers: Hashes) -> Hashes:
    """Every bit depends on every bit: the finalizer of SplitMix64 (Steele, Lea and Flood 2014).

    >>> len(set(mix(np.arange(1000, dtype=np.uint64)).tolist()))
    1000
    """
    mixed = numbers + MISSING
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def hash_levels(levels: Any, key: str = _PANDAS_KEY) -> Hashes:
    """A hash of each level of an Arrow array, which depends on nothing but its value and the key.

    `key`: 16 letters that decide the hashes of texts.

    >>> hash_levels(pa.array(["a", "b"])).tolist() == hash_levels(pa.array(["a", "b"])).tolist()
    True
    """
    if pa.types.is_string(levels.type):
        texts = np.array(levels.to_pylist(), dtype=object)
        return pd.util.hash_array(texts, hash_key=key, categorize=False)
    if pa.types.is_floating(levels.type):
        return mix(levels.to_numpy(zero_copy_only=False).view(np.uint64))
    whole = levels.cast(pa.int32()) if pa.types.is_date32(levels.type) else levels
    numbers = whole.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return mix(numbers.astype(np.int64).view(np.uint64))


def hash_records(
    table: Records, columns: tuple[str, ...], dictionary: Dictionary, secret: bytes
) -> Iterator[Hashes]:
    """A hash of every record's values in some columns, batch by batch in the table's order.

    Without the `secret` (32 bytes) nobody can tell which records have the same hash. Numbers that differ by
    rounding noise only have the same one.

    >>> from disclosure_pipeline.tables.canonical_tables import CanonicalTable
    >>> people = CanonicalTable(pd.DataFrame({"sex": ["f", "m", "f"], "pay": [1.5, 2.5, 1.5 + 1e-15]}), ())
    >>> dictionary = {"sex": Column(type="category"), "pay": Column(type="number")}
    >>> [hashes] = hash_records(people, ("sex", "pay"), dictionary, bytes(32))
    >>> bool(hashes[0] == hashes[2]), bool(hashes[0] == hashes[1])
    (True, False)
    """
    seeds = {name: hashlib.sha256(secret + name.encode()).digest() for name in sorted(columns)}
    for start in range(0, table.records, RECORDS_AT_ONCE):
        batch = table.some_records(np.arange(start, min(start + RECORDS_AT_ONCE, table.records)))
        hashes = np.zeros(len(batch), dtype=np.uint64)
        for name, seed in seeds.items():
            encoded = encode(batch[name])
            levels = _without_noise(encoded.levels.cast(plain_type(dictionary[name])))
            of_levels = np.append(hash_levels(levels, seed.hex()[:16]).astype(np.uint64), MISSING)
            number = np.uint64(int.from_bytes(seed[8:16], "little"))
            hashes = mix(hashes + mix(of_levels ^ number)[encoded.codes])
        yield hashes


def _without_noise(levels: Any) -> Any:
    """Numbers brought together that differ by rounding noise: nearly whole ones are made whole."""
    if not pa.types.is_floating(levels.type):
        return levels
    numbers = levels.to_numpy(zero_copy_only=False)
    whole = np.rint(numbers)
    mantissa, exponent = np.frexp(numbers)
    coarse = np.ldexp(np.rint(np.ldexp(mantissa, _BITS)), exponent - _BITS)
    with np.errstate(invalid="ignore"):  # of what is not finite
        nearly_whole = np.abs(numbers - whole) <= ROUNDING_NOISE * np.abs(numbers)
    return pa.array(np.where(nearly_whole, whole, coarse) + 0.0)
