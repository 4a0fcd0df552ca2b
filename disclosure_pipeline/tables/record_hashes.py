"""Hashes of records and of whole tables in canonical form, and sketches that compare two tables."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from disclosure_pipeline.runtime.progress import report_progress
from disclosure_pipeline.tables.coding import ROUNDING_NOISE, Distinct
from disclosure_pipeline.tables.dictionary import Column, Dictionary
from disclosure_pipeline.tables.encoding import encode
from disclosure_pipeline.tables.levels import IntArray, level_label, look_up

Hashes = npt.NDArray[np.uint64]

MISSING = np.uint64(0x9E3779B97F4A7C15)
"""The hash of a missing value."""

RECORDS_AT_ONCE = 1 << 20
"""The number of records read at a time."""

_RECORDS_IN_CACHE = 1 << 14  # hashes combined at a time: four times as fast as larger batches
_PANDAS_KEY = "0123456789123456"  # the default of pd.util.hash_array, used without a secret
_BITS = 31  # of a float's mantissa: floats with the same are closer than ROUNDING_NOISE


class Records(Protocol):
    """A table in canonical form, whichever engine read it."""

    @property
    def records(self) -> int:
        """The number of records."""

    def records_in_order(self, positions: IntArray, at_once: int) -> Iterator[pd.DataFrame]:
        """Yield the records at these positions, in their order, `at_once` in a frame."""

    def records_from(self, start: int, stop: int) -> pd.DataFrame:
        """Return the records from `start` to before `stop`, or to the last."""


def plain_type(column: Column) -> Any:
    """Return the Arrow type of a column's canonical values.

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
    """Mix numbers so that every bit depends on all bits: the finalizer of SplitMix64 (Steele et al. 2014).

    >>> len(set(mix(np.arange(1000, dtype=np.uint64)).tolist()))
    1000
    """
    mixed = numbers + MISSING
    mixed ^= mixed >> np.uint64(30)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def hash_levels(levels: Any, key: str = _PANDAS_KEY) -> Hashes:
    """Hash each level of an Arrow array, by its value and the key alone.

    `key`: 16 letters, used for the hashes of texts only.

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


@dataclass(frozen=True)
class Groups:
    """The groups of a numeric column: interior edges, and the special values outside the groups."""

    edges: npt.NDArray[np.float64]
    special_values: Sequence[float] = ()


@dataclass(frozen=True)
class ValueHashes:
    """Hashes of some records' values, by column."""

    by_column: Mapping[str, Hashes]

    def combine(self, columns: Sequence[str]) -> Hashes:
        """Return a hash of every record's values in some columns, whatever the order of the columns."""
        left_out = [name for name in self.by_column if name not in columns]
        if len(left_out) >= len(columns):
            return mix(_add(self.by_column, columns))
        return mix(self._total - _add(self.by_column, left_out))

    @cached_property
    def _total(self) -> Hashes:
        return _add(self.by_column, tuple(self.by_column))


def _add(by_column: Mapping[str, Hashes], columns: Sequence[str]) -> Hashes:
    if len(columns) == 1:
        return by_column[columns[0]]
    records = len(next(iter(by_column.values())))
    total = np.zeros(records, dtype=np.uint64)
    for name in columns:
        total += by_column[name]
    return total


def hash_values(
    table: Records,
    columns: Sequence[str],
    dictionary: Dictionary,
    secret: bytes,
    groups: Mapping[str, Groups] | None = None,
) -> Iterator[tuple[ValueHashes, ValueHashes]]:
    """Hash every record's values in some columns, batch by batch in the table's order.

    Yield the hashes of the values, and the hashes with the columns of `groups` grouped. Without the `secret`
    (32 bytes) nobody can tell which values or records have a given hash. Numbers that differ only by rounding
    noise have the same hash.

    >>> from disclosure_pipeline.tables.contract import CanonicalTable
    >>> people = CanonicalTable(pd.DataFrame({"sex": ["f", "m", "f"], "pay": [1.5, 2.5, 1.5 + 1e-15]}), ())
    >>> dictionary = {"sex": Column(type="category"), "pay": Column(type="number")}
    >>> [(values, grouped)] = hash_values(people, ["sex", "pay"], dictionary, bytes(32))
    >>> hashes = values.combine(["sex", "pay"])
    >>> bool(hashes[0] == hashes[2]), bool(hashes[0] == hashes[1])
    (True, False)
    """
    for start in range(0, table.records, RECORDS_AT_ONCE):
        report_progress("Hashing the records", start, table.records)
        batch = table.records_from(start, start + RECORDS_AT_ONCE)
        plain, grouped, codes = {}, {}, {}
        for name in columns:
            encoded = encode(batch[name])
            levels = without_noise(encoded.levels.cast(plain_type(dictionary[name])))
            seed = hashlib.sha256(secret + name.encode()).digest()
            codes[name] = encoded.codes
            plain[name] = _hash_with_key(levels, seed)
            if groups is not None and name in groups:
                grouped[name] = _hash_groups(levels, plain[name], groups[name], seed)
        for first in range(0, len(batch), _RECORDS_IN_CACHE):
            chunk = slice(first, first + _RECORDS_IN_CACHE)
            ungrouped = _look_up(plain, codes, chunk)
            yield ValueHashes(ungrouped), ValueHashes({**ungrouped, **_look_up(grouped, codes, chunk)})


def _look_up(
    level_hashes: Mapping[str, Hashes], codes: Mapping[str, IntArray], records: slice
) -> dict[str, Hashes]:
    return {name: look_up(hashes, codes[name][records]) for name, hashes in level_hashes.items()}


def _hash_with_key(levels: Any, seed: bytes) -> Hashes:
    """Return a hash of each level, and last of a missing value."""
    hashes = np.append(hash_levels(levels, seed.hex()[:16]).astype(np.uint64), MISSING)
    first, second = (np.uint64(int.from_bytes(seed[at : at + 8], "little")) for at in (8, 16))
    return mix(mix(hashes ^ first) + second)


def _hash_groups(levels: Any, hashes: Hashes, groups: Groups, seed: bytes) -> Hashes:
    """Return hashes of numbers that are equal within a group; special values and missing keep their own."""
    numbers = levels.to_numpy(zero_copy_only=False).astype(np.float64)
    special = np.append(np.isin(numbers, list(groups.special_values)), True)
    group = pa.array(np.searchsorted(groups.edges, numbers, side="right").astype(np.int64))
    return np.where(special, hashes, _hash_with_key(group, hashlib.sha256(seed + b"groups").digest()))


def without_noise(levels: Any) -> Any:
    """Round numbers, so that those that differ by rounding noise become equal and nearly whole ones whole."""
    if not pa.types.is_floating(levels.type):
        return levels
    numbers = levels.to_numpy(zero_copy_only=False)
    whole = np.rint(numbers)
    mantissa, exponent = np.frexp(numbers)
    coarse = np.ldexp(np.rint(np.ldexp(mantissa, _BITS)), exponent - _BITS)
    with np.errstate(invalid="ignore"):  # infinite numbers
        nearly_whole = np.abs(numbers - whole) <= ROUNDING_NOISE * np.abs(numbers)
    return pa.array(np.where(nearly_whole, whole, coarse) + 0.0)


def content_sha256(frame: pd.DataFrame) -> str:
    """Hash the names and the records of a table in canonical form.

    Tables with the same records have the same hash, whatever the order of records and columns and whatever
    unused categories they have. Each record has a hash of 64 bits: enough to detect changes, not attacks.
    """
    columns = sorted(frame.columns)
    digest = hashlib.sha256(repr((columns, len(frame))).encode())
    if columns:
        records = pd.util.hash_pandas_object(frame[columns], index=False).to_numpy()
        digest.update(np.sort(records).astype("<u8").tobytes())
    return digest.hexdigest()


def values_sha256(columns: Mapping[str, Distinct]) -> str:
    """Hash the canonical values of every column, with the number of records of each.

    It detects changes of columns, but not changes of records that leave all columns' counts the same; a
    release notices these when it measures again.
    """
    digest = hashlib.sha256()
    for name in sorted(columns):
        column = columns[name]
        records_of: dict[str, int] = {}
        for value, records in zip([*column.values, None], column.counts.tolist(), strict=True):
            label = "-" if value is None or pd.isna(value) else f"={level_label(value)}"
            records_of[label] = records_of.get(label, 0) + records
        digest.update(repr((name, sorted(records_of.items()))).encode())
    return digest.hexdigest()


_ONE_EACH = 2  # records: one that only the first table has, and one that only the second has


@dataclass(frozen=True)
class Part:
    """Some columns of a table to sketch, with their numbers grouped or not.

    `bits`: the sketch has 2^bits buckets; it cannot show differences much larger than that.
    """

    columns: tuple[str, ...]
    in_groups: bool = False
    bits: int = 12


@dataclass(frozen=True)
class RecordSketch:
    """The number of records in each bucket, and the sum of their hashes modulo 2^64."""

    counts: npt.NDArray[np.int64]
    sums: Hashes

    @property
    def records(self) -> int:
        """The number of records."""
        return int(self.counts.sum())


def sketch_parts(
    table: Records,
    parts: Sequence[Part],
    dictionary: Dictionary,
    secret: bytes,
    groups: Mapping[str, Groups] | None = None,
) -> tuple[RecordSketch, ...]:
    """Sketch each part of a table in canonical form, whatever the order of its records.

    >>> import pandas as pd
    >>> from disclosure_pipeline.tables.contract import CanonicalTable
    >>> from disclosure_pipeline.tables.dictionary import Column
    >>> people = CanonicalTable(pd.DataFrame({"sex": ["f", "m", "f"]}), ())
    >>> [sketch] = sketch_parts(people, [Part(("sex",))], {"sex": Column(type="category")}, bytes(32))
    >>> sketch.records, len(sketch.counts)
    (3, 4096)
    """
    sketches = tuple(
        RecordSketch(np.zeros(1 << part.bits, dtype=np.int64), np.zeros(1 << part.bits, dtype=np.uint64))
        for part in parts
    )
    columns = list(dict.fromkeys(name for part in parts for name in part.columns))
    for plain, grouped in hash_values(table, columns, dictionary, secret, groups):
        for part, sketch in zip(parts, sketches, strict=True):
            hashes = (grouped if part.in_groups else plain).combine(part.columns)
            buckets = (hashes >> np.uint64(64 - part.bits)).view(np.int64)
            sketch.counts[:] += np.bincount(buckets, minlength=len(sketch.counts))
            # Hashes are odd, so that one more record always changes the sum of a bucket.
            np.add.at(sketch.sums, buckets, hashes | np.uint64(1))
    return sketches


def stack_sketches(sketches: Sequence[RecordSketch]) -> RecordSketch:
    """Return the sketch of several tables as one.

    >>> one = RecordSketch(np.ones(512, dtype=np.int64), np.ones(512, dtype=np.uint64))
    >>> stack_sketches([one, one]).records
    1024
    """
    return RecordSketch(
        np.sum([sketch.counts for sketch in sketches], axis=0),
        np.sum([sketch.sums for sketch in sketches], axis=0, dtype=np.uint64),
    )


def bound_difference(sketch: RecordSketch, other: RecordSketch) -> int:
    """Return a lower bound of the number of records in which two tables differ; 0 if they hold the same.

    The difference is the larger of two numbers: the records that only `sketch` has, and those that only
    `other` has; a changed record counts once. The bound is exact unless differing records share a bucket;
    then it is lower. Different records with the same hash of 64 bits are missed; as the key is secret, nobody
    can cause that.

    >>> counts, sums = np.zeros(512, dtype=np.int64), np.zeros(512, dtype=np.uint64)
    >>> other_sums = sums.copy()
    >>> other_sums[:3] = 1  # in three buckets one record is another one
    >>> bound_difference(RecordSketch(counts, sums), RecordSketch(counts, other_sums))
    3
    """
    more = np.abs(sketch.counts - other.counts)
    exchanged = (more == 0) & (sketch.sums != other.sums)
    in_one_alone = int(more.sum()) + _ONE_EACH * int(exchanged.sum())
    return (in_one_alone + abs(sketch.records - other.records)) // 2


def to_record(sketch: RecordSketch) -> dict[str, str]:
    """Return a sketch as data for JSON."""
    return {"counts": _pack(sketch.counts.astype("<i8")), "sums": _pack(sketch.sums.astype("<u8"))}


def from_record(record: Mapping[str, Any]) -> RecordSketch:
    """Return the sketch of a record. Raise ValueError, KeyError or TypeError if it is damaged.

    >>> sketch = RecordSketch(np.arange(512), np.ones(512, dtype=np.uint64))
    >>> bound_difference(from_record(to_record(sketch)), sketch)
    0
    """
    sketch = RecordSketch(_unpack(record["counts"], "<i8"), _unpack(record["sums"], "<u8"))
    if not len(sketch.counts) or len(sketch.counts) != len(sketch.sums) or sketch.counts.min() < 0:
        raise ValueError("no sketch of records")
    return sketch


def _pack(numbers: npt.NDArray[Any]) -> str:
    return base64.b64encode(zlib.compress(numbers.tobytes(), 1)).decode()


def _unpack(text: str, dtype: str) -> Any:
    try:
        return np.frombuffer(zlib.decompress(base64.b64decode(text, validate=True)), dtype=dtype)
    except zlib.error:
        raise ValueError("no sketch of records") from None
