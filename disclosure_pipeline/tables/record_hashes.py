"""Hashes of records and of whole tables in canonical form, and sketches that tell two tables apart."""

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
"""The number of records that are read at once."""

_RECORDS_IN_CACHE = 1 << 14  # whose hashes are combined in many ways: four times as fast as more of them
_PANDAS_KEY = "0123456789123456"  # of pd.util.hash_array, where there is no secret
_BITS = 31  # of a float's mantissa: floats that fall together are closer than ROUNDING_NOISE


class Records(Protocol):
    """A table in canonical form, whichever engine read it."""

    @property
    def records(self) -> int:
        """The number of records."""

    def records_in_order(self, positions: IntArray, at_once: int) -> Iterator[pd.DataFrame]:
        """Yield the records in the order of these positions, so many at once."""

    def records_from(self, start: int, stop: int) -> pd.DataFrame:
        """Return the records from a position to before another one, or to the last."""


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
    """Mix numbers so that every bit depends on every bit: the finalizer of SplitMix64 (Steele et al. 2014).

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
    """Return a hash of each level of an Arrow array, which depends on nothing but its value and the key.

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


@dataclass(frozen=True)
class Groups:
    """The groups of a column of numbers: interior edges, and the special values beside the groups."""

    edges: npt.NDArray[np.float64]
    special_values: Sequence[float] = ()


@dataclass(frozen=True)
class ValueHashes:
    """Hashes of some records' values, by the column."""

    by_column: Mapping[str, Hashes]

    def combine(self, columns: Sequence[str]) -> Hashes:
        """Return a hash of every record's values in some columns, in whatever order these are named."""
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

    The first are of the values as they are, the second of numbers grouped where `groups` says so. Without the
    `secret` (32 bytes) nobody can tell which values, or records, have the same hash. Numbers that differ by
    rounding noise only have the same one.

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
            as_they_are = _look_up(plain, codes, chunk)
            yield ValueHashes(as_they_are), ValueHashes({**as_they_are, **_look_up(grouped, codes, chunk)})


def _look_up(
    of_levels: Mapping[str, Hashes], codes: Mapping[str, IntArray], records: slice
) -> dict[str, Hashes]:
    return {name: look_up(hashes, codes[name][records]) for name, hashes in of_levels.items()}


def _hash_with_key(levels: Any, seed: bytes) -> Hashes:
    """Return a hash of each level, and last that of a missing value."""
    of_levels = np.append(hash_levels(levels, seed.hex()[:16]).astype(np.uint64), MISSING)
    first, second = (np.uint64(int.from_bytes(seed[at : at + 8], "little")) for at in (8, 16))
    return mix(mix(of_levels ^ first) + second)


def _hash_groups(levels: Any, hashes: Hashes, groups: Groups, seed: bytes) -> Hashes:
    """Return the hashes of numbers, equal within a group; special values and missing keep their own."""
    numbers = levels.to_numpy(zero_copy_only=False).astype(np.float64)
    special = np.append(np.isin(numbers, list(groups.special_values)), True)
    group = pa.array(np.searchsorted(groups.edges, numbers, side="right").astype(np.int64))
    return np.where(special, hashes, _hash_with_key(group, hashlib.sha256(seed + b"groups").digest()))


def without_noise(levels: Any) -> Any:
    """Bring numbers together that differ by rounding noise; nearly whole ones become whole."""
    if not pa.types.is_floating(levels.type):
        return levels
    numbers = levels.to_numpy(zero_copy_only=False)
    whole = np.rint(numbers)
    mantissa, exponent = np.frexp(numbers)
    coarse = np.ldexp(np.rint(np.ldexp(mantissa, _BITS)), exponent - _BITS)
    with np.errstate(invalid="ignore"):  # of what is not finite
        nearly_whole = np.abs(numbers - whole) <= ROUNDING_NOISE * np.abs(numbers)
    return pa.array(np.where(nearly_whole, whole, coarse) + 0.0)


def content_sha256(frame: pd.DataFrame) -> str:
    """Hash the names and the records of a table in canonical form.

    Two tables with the same records have the same hash, whatever the order of records and columns and
    whatever the categories that do not occur. It tells two contents apart, not two opponents: records are
    hashed with 64 bits each.
    """
    columns = sorted(frame.columns)
    digest = hashlib.sha256(repr((columns, len(frame))).encode())
    if columns:
        records = pd.util.hash_pandas_object(frame[columns], index=False).to_numpy()
        digest.update(np.sort(records).astype("<u8").tobytes())
    return digest.hexdigest()


def values_sha256(columns: Mapping[str, Distinct]) -> str:
    """Hash the canonical values of every column, and the numbers of records with each.

    It tells that a column changed, not that records changed within equal columns: what was measured is
    measured again before a release.
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
    """Some columns of a table, whose numbers are grouped or not, and how they are sketched.

    `bits`: the sketch has 2^bits buckets, and bounds no difference that is much larger than their number.
    """

    columns: tuple[str, ...]
    in_groups: bool = False
    bits: int = 12


@dataclass(frozen=True)
class RecordSketch:
    """For each bucket the number of records, and the sum of their hashes modulo 2^64."""

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
    """Return the sketch of each part of a table in canonical form, in whatever order its records are.

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
            # Odd, so that a bucket with one record more of the same is never without a difference.
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


def least_difference(sketch: RecordSketch, other: RecordSketch) -> int:
    """Return in how many records two tables differ at least; 0 where they hold the same records.

    The difference is the larger of two numbers: of the records that only `sketch` has, and of those that only
    `other` has; a record that was changed counts once. The bound is the difference itself unless records
    that differ share a bucket, and then below it. Tables that differ by chance share a hash of 64 bits with
    a secret key, which nobody can bring about.

    >>> counts, sums = np.zeros(512, dtype=np.int64), np.zeros(512, dtype=np.uint64)
    >>> other_sums = sums.copy()
    >>> other_sums[:3] = 1  # in three buckets one record is another one
    >>> least_difference(RecordSketch(counts, sums), RecordSketch(counts, other_sums))
    3
    """
    more = np.abs(sketch.counts - other.counts)
    exchanged = (more == 0) & (sketch.sums != other.sums)
    in_one_alone = int(more.sum()) + _ONE_EACH * int(exchanged.sum())
    return (in_one_alone + abs(sketch.records - other.records)) // 2


def to_record(sketch: RecordSketch) -> dict[str, str]:
    """Return a sketch as plain data for JSON."""
    return {"counts": _pack(sketch.counts.astype("<i8")), "sums": _pack(sketch.sums.astype("<u8"))}


def from_record(record: Mapping[str, Any]) -> RecordSketch:
    """Return the sketch of a record. ValueError, KeyError or TypeError where it is damaged.

    >>> sketch = RecordSketch(np.arange(512), np.ones(512, dtype=np.uint64))
    >>> least_difference(from_record(to_record(sketch)), sketch)
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
