"""A sketch of a table's records: small, and enough to tell that two tables differ in many records.

Every record falls into one of some buckets by a hash with a secret key; a bucket holds the number of its
records and the sum of their hashes. Where a bucket of two tables differs, at least one record of it does, so
that the buckets that differ bound the difference of the tables from below, whatever the hashes are. No value
can be read from a sketch.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.tables.dictionary import Dictionary
from disclosure_pipeline.tables.record_hashes import Groups, Hashes, Records, hash_values

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
        """How many records the table has."""
        return int(self.counts.sum())


def sketch_parts(
    table: Records,
    parts: Sequence[Part],
    dictionary: Dictionary,
    secret: bytes,
    groups: Mapping[str, Groups] | None = None,
) -> tuple[RecordSketch, ...]:
    """The sketch of each part of a table in canonical form, in whatever order its records are.

    >>> import pandas as pd
    >>> from disclosure_pipeline.tables.canonical_tables import CanonicalTable
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
    """The sketch of several tables as one.

    >>> one = RecordSketch(np.ones(512, dtype=np.int64), np.ones(512, dtype=np.uint64))
    >>> stack_sketches([one, one]).records
    1024
    """
    return RecordSketch(
        np.sum([sketch.counts for sketch in sketches], axis=0),
        np.sum([sketch.sums for sketch in sketches], axis=0, dtype=np.uint64),
    )


def least_difference(sketch: RecordSketch, other: RecordSketch) -> int:
    """In how many records two tables differ at least; 0 where they hold the same records.

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
    """A sketch as JSON has it."""
    return {"counts": _pack(sketch.counts.astype("<i8")), "sums": _pack(sketch.sums.astype("<u8"))}


def from_record(record: Mapping[str, Any]) -> RecordSketch:
    """The sketch of a record. ValueError, KeyError or TypeError where it is damaged.

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
