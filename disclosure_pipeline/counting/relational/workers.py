"""Counting in the Python processes of Spark's executors, where these have this package.

Spark codes the records and brings those of a part together, once; each part is then counted as in memory, for
all targets, and only integers come back.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
import pyarrow as pa

from disclosure_pipeline.counting.counts import CountRequest, DisclosureCounts, columns_of_requests
from disclosure_pipeline.counting.memory.radix import Codes, Limits
from disclosure_pipeline.counting.partitioned.record_parts import PartCounter, PartSums, Records, RunningSum
from disclosure_pipeline.counting.relational.coding import Digits
from disclosure_pipeline.counting.relational.staging import ReadTables, check_unchanged, code_tables
from disclosure_pipeline.counting.relational.transfer import as_spark_frame, read_integers
from disclosure_pipeline.measures.exact import Grouped, IntArray
from disclosure_pipeline.tables.levels import CodedColumn, StoredColumn

_PACKAGE = "disclosure-pipeline"
_STEPS = 3
_PARTS = 2  # of each partition: Spark spreads them by a hash, the more of them the more evenly
_RECORDS = 1 << 20  # that a worker brings into the order of their parts at a time
_CHUNK = 1 << 17  # bytes: Spark sends 10,000 rows to a worker at a time, and no more than 2 GB


@dataclass(frozen=True)
class Worker:
    """Work on batches of rows, of which a worker has those of a partition.

    `digits` are the places of the columns' codes within the words of a coded record. Records are put in so
    many `parts` by their keys.
    """

    counter: PartCounter
    digits: tuple[Digits, ...]
    parts: int

    def pack(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Bring coded records into parts: rows (part, i, records), each with many records of table i."""
        tables, dtype = len(self.counter.tables), self.counter.dtype
        most = _CHUNK // dtype.itemsize
        for rows in _join_batches(batches):
            words = [rows.column(f"q{word}").to_numpy() for word in range(self.digits[-1].word + 1)]
            records = np.empty(len(rows), dtype=dtype)
            for number, place in enumerate(self.digits):
                records[f"{number}"] = (words[place.word] & place.mask) >> place.shift
            part = self.counter.find_parts(partial(self._codes_of, records), self.parts)
            group = part.astype(np.int64) * tables + rows.column("i").to_numpy()
            order = np.argsort(group.astype(np.min_scalar_type(self.parts * tables)), kind="stable")
            records = records[order]
            ends = np.cumsum(np.bincount(group, minlength=self.parts * tables))
            chunks = [
                (*divmod(number, tables), records[start : min(start + most, end)].tobytes())
                for number, (first, end) in enumerate(zip(np.append(0, ends[:-1]), ends, strict=True))
                for start in range(first, end, most)
            ]
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array(column, kind)
                    for column, kind in zip(zip(*chunks, strict=True), _CHUNKS.types, strict=True)
                ],
                schema=_CHUNKS,
            )

    def count_codes(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Count the records of each table with each code of a column: rows (column, i, code, n)."""
        counts: list[list[IntArray]] = [
            [np.zeros(column.size + 1, dtype=np.int64) for column in self.counter.columns]
            for _ in self.counter.tables
        ]
        for tables in self._read(batches):
            for of_table, records in zip(counts, tables, strict=True):
                for number, of_column in enumerate(of_table):
                    np.add(of_column, np.bincount(records[f"{number}"], minlength=len(of_column)), of_column)
        for i, of_table in enumerate(counts):
            for number, of_column in enumerate(of_table):
                code = np.flatnonzero(of_column)
                yield _rows(column=number, i=i, code=code, n=of_column[code])

    def count(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Count each part for the request: rows (counts), of bytes."""
        limits = replace(Limits(), threads=0)
        for tables in self._read(batches):
            [counted] = self.counter.count(tables, limits)
            yield pa.record_batch({"counts": pa.array([pickle.dumps(counted)], pa.binary())})

    def count_pairs(self, targets: Sequence[int], batches: Iterable[Any]) -> Iterator[Any]:
        """Count the pairs of some targets and each key in all parts: rows (target, key, pair, n)."""
        [request] = self.counter.requests
        columns = [request.targets[t].column for t in targets]
        sums = RunningSum()
        for of_GT, *_ in self._read(batches):
            sums.add(self.counter.pairs_of_key(of_GT, request.keys, columns))
        by_target = sums.result() if sums.waiting else ()  # a partition may have no part
        for t, by_key in zip(targets, by_target, strict=False):
            for k, pairs in enumerate(by_key):
                yield _rows(target=t, key=k, pair=pairs.groups, n=pairs.sums)

    def _codes_of(self, records: Records, column: CodedColumn) -> Codes:
        return records[self.counter.field(column)]

    def _read(self, batches: Iterable[Any]) -> Iterator[list[Records]]:
        """Yield the records of each table in a part; the rows of a part come one after the other."""
        dtype, part = self.counter.dtype, None
        chunks: list[list[Records]] = []
        for batch in batches:
            for number, i, packed in zip(*map(batch.column, _CHUNKS.names), strict=True):
                if number != part:
                    if chunks:
                        yield [np.concatenate(of_table) for of_table in chunks]
                    part, chunks = number, [[np.empty(0, dtype=dtype)] for _ in self.counter.tables]
                chunks[i.as_py()].append(np.frombuffer(packed.as_buffer(), dtype=dtype))
        if chunks:
            yield [np.concatenate(of_table) for of_table in chunks]


_CHUNKS = pa.schema({"part": pa.int32(), "i": pa.int16(), "records": pa.binary()})


def _join_batches(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield tables of many records, made of the batches."""
    waiting: list[Any] = []
    records = 0
    for batch in batches:
        waiting.append(batch)
        records += len(batch)
        if records >= _RECORDS:
            yield pa.Table.from_batches(waiting)
            waiting, records = [], 0
    if records:
        yield pa.Table.from_batches(waiting)


def _rows(*, n: IntArray, **columns: IntArray | int) -> Any:
    """Return rows of integers, of which a single one stands in all of them."""
    spread = {name: np.broadcast_to(column, len(n)) for name, column in columns.items()}
    return pa.record_batch(
        {name: pa.array(column, pa.int64()) for name, column in (spread | {"n": n}).items()}
    )


def _tell_version(batches: Iterable[Any]) -> Iterator[Any]:
    for batch in batches:
        yield pa.record_batch({"version": [version(_PACKAGE)] * len(batch)})


def have_this_package(session: Any) -> bool:
    """Return whether the executors of a Spark session can import this package, in this version."""
    answers = session.range(1).mapInArrow(_tell_version, "version string")
    try:
        return bool(answers.toArrow().column("version").to_pylist() == [version(_PACKAGE)])
    except Exception:  # they have another Python, or none
        return False


def count_in_workers(
    read: ReadTables, request: CountRequest, on_progress: Callable[[int, int], None]
) -> DisclosureCounts:
    """Return the counts that a request with targets asks for. InputError as `count_in_database`."""
    columns = columns_of_requests([request])
    counter = PartCounter.of_requests([_without_values(request)], len(request.keys[0].counts))
    with ExitStack() as stack:
        rows, digits = code_tables(read, columns, (), stack)
        coded = as_spark_frame(rows)
        partitions = int(coded.sparkSession.conf.get("spark.sql.shuffle.partitions"))
        worker = Worker(counter, digits, _PARTS * partitions)
        packed = coded.mapInArrow(worker.pack, "part int, i short, records binary")
        parts = packed.repartition(partitions, "part").sortWithinPartitions("part").persist()
        stack.callback(parts.unpersist)
        counts_of_codes = _add_up(parts, worker.count_codes, ("column", "i", "code"))
        check_unchanged(counts_of_codes, columns, [0] * len(columns), read.names)
        on_progress(1, _STEPS)
        counted = parts.mapInArrow(worker.count, "counts binary").toArrow().column("counts")
        on_progress(2, _STEPS)
        sums = PartSums(request)
        for of_part in counted:
            sums.add(pickle.loads(of_part.as_py()))  # which this session's own executors made
        counts = sums.counts(partial(_count_pairs, parts, worker))
        on_progress(_STEPS, _STEPS)
        return counts


def _count_pairs(parts: Any, worker: Worker, targets: Sequence[int]) -> list[tuple[Grouped, ...]]:
    rows = _add_up(parts, partial(worker.count_pairs, targets), ("target", "key", "pair"))
    [request] = worker.counter.requests
    return [
        tuple(
            Grouped.sum_by_group(rows["pair"][is_of_both], rows["n"][is_of_both])
            for k in range(len(request.keys))
            for is_of_both in [(rows["target"] == t) & (rows["key"] == k)]
        )
        for t in targets
    ]


def _add_up(
    parts: Any, work: Callable[[Iterable[Any]], Iterator[Any]], groups: Sequence[str]
) -> Mapping[str, IntArray]:
    """Return the sums of n, by group, of the rows that the work makes of the parts."""
    counted = parts.mapInArrow(work, ", ".join(f"{name} long" for name in (*groups, "n")))
    return read_integers(counted.groupBy(*groups).sum("n").withColumnRenamed("sum(n)", "n").toArrow())


def _without_values(request: CountRequest) -> CountRequest:
    """Return the request over columns that know how many levels they have, but not which."""
    columns = {id(column): _without_levels(column) for column in request.columns}
    targets = [replace(target, column=columns[id(target.column)]) for target in request.targets]
    return replace(request, keys=[columns[id(key)] for key in request.keys], targets=targets)


def _without_levels(column: CodedColumn) -> CodedColumn:
    no_record, codes = np.empty(0, dtype=np.int8), np.arange(column.size)
    tables = tuple(StoredColumn(no_record, 0, codes, counts) for counts in column.counts)
    return replace(column, tables=tables, levels=np.zeros(column.missing, dtype=np.bool_))
