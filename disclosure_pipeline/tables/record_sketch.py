"""A sketch of a table's records: small, and enough to tell that two tables differ in many records.

Every record falls into one of 4,096 buckets by a hash with a secret key; a bucket holds the number of its
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
from disclosure_pipeline.tables.record_hashes import Hashes, Records, hash_records, mix

_BITS = 12
BUCKETS = 1 << _BITS
"""How many buckets a sketch has."""

_ONE_EACH = 2  # records: one that only the first table has, and one that only the second has


@dataclass(frozen=True)
class RecordSketch:
    """For each bucket the number of records, and the sum of their hashes modulo 2^64."""

    counts: npt.NDArray[np.int64]
    sums: Hashes

    @property
    def records(self) -> int:
        """How many records the table has."""
        return int(self.counts.sum())


def sketch_records(
    table: Records, columns: Sequence[str], dictionary: Dictionary, secret: bytes
) -> RecordSketch:
    """The sketch of some columns of a table in canonical form, in whatever order its records are.

    >>> import pandas as pd
    >>> from disclosure_pipeline.tables.canonical_tables import CanonicalTable
    >>> from disclosure_pipeline.tables.dictionary import Column
    >>> people = CanonicalTable(pd.DataFrame({"sex": ["f", "m", "f"]}), ())
    >>> sketch_records(people, ["sex"], {"sex": Column(type="category")}, bytes(32)).records
    3
    """
    counts, sums = np.zeros(BUCKETS, dtype=np.int64), np.zeros(BUCKETS, dtype=np.uint64)
    for hashes in hash_records(table, tuple(columns), dictionary, secret):
        buckets = (hashes >> np.uint64(64 - _BITS)).astype(np.intp)
        counts += np.bincount(buckets, minlength=BUCKETS)
        # Odd, so that a bucket with one record more of the same is never without a difference.
        np.add.at(sums, buckets, mix(hashes) | np.uint64(1))
    return RecordSketch(counts, sums)


def stack_sketches(sketches: Sequence[RecordSketch]) -> RecordSketch:
    """The sketch of several tables as one.

    >>> one = RecordSketch(np.ones(BUCKETS, dtype=np.int64), np.ones(BUCKETS, dtype=np.uint64))
    >>> stack_sketches([one, one]).records
    8192
    """
    return RecordSketch(
        np.sum([sketch.counts for sketch in sketches], axis=0),
        np.sum([sketch.sums for sketch in sketches], axis=0, dtype=np.uint64),
    )


def least_difference(one: RecordSketch, other: RecordSketch) -> int:
    """In how many records two tables differ at least; 0 where they hold the same records.

    The difference is the larger of two numbers: of the records that only the one has, and of those that only
    the other has; a record that was changed counts once. The bound is the difference itself unless records
    that differ share a bucket, and then below it. Tables that differ by chance share a hash of 64 bits with
    a secret key, which nobody can bring about.

    >>> counts, sums = np.zeros(BUCKETS, dtype=np.int64), np.zeros(BUCKETS, dtype=np.uint64)
    >>> other_sums = sums.copy()
    >>> other_sums[:3] = 1  # in three buckets one record is another one
    >>> least_difference(RecordSketch(counts, sums), RecordSketch(counts, other_sums))
    3
    """
    more = np.abs(one.counts - other.counts)
    exchanged = (more == 0) & (one.sums != other.sums)
    in_one_alone = int(more.sum()) + _ONE_EACH * int(exchanged.sum())
    return (in_one_alone + abs(one.records - other.records)) // 2


def to_record(sketch: RecordSketch) -> dict[str, str]:
    """A sketch as JSON has it."""
    return {"counts": _pack(sketch.counts.astype("<i8")), "sums": _pack(sketch.sums.astype("<u8"))}


def from_record(record: Mapping[str, Any]) -> RecordSketch:
    """The sketch of a record. ValueError, KeyError or TypeError where it is damaged.

    >>> sketch = RecordSketch(np.arange(BUCKETS), np.ones(BUCKETS, dtype=np.uint64))
    >>> least_difference(from_record(to_record(sketch)), sketch)
    0
    """
    sketch = RecordSketch(_unpack(record["counts"], "<i8"), _unpack(record["sums"], "<u8"))
    if len(sketch.counts) != BUCKETS or len(sketch.sums) != BUCKETS or sketch.counts.min() < 0:
        raise ValueError("no sketch of records")
    return sketch


def _pack(numbers: npt.NDArray[Any]) -> str:
    return base64.b64encode(zlib.compress(numbers.tobytes(), 1)).decode()


def _unpack(text: str, dtype: str) -> Any:
    try:
        return np.frombuffer(zlib.decompress(base64.b64decode(text, validate=True)), dtype=dtype)
    except zlib.error:
        raise ValueError("no sketch of records") from None
