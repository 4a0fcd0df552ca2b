"""Counting in the Python processes of Spark's executors that have this package.

Spark codes the records and brings those of a part together once. Each part is then counted as in memory, for
all targets, and only integers come back.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from disclosure_pipeline.counting.cells import CellParts, Counted, Parts
from disclosure_pipeline.counting.counts import CountRequest, gather_columns
from disclosure_pipeline.counting.memory.radix import Limits
from disclosure_pipeline.counting.partitioned.record_parts import PartCounter, Records, deal_records
from disclosure_pipeline.counting.relational.coding import Digits
from disclosure_pipeline.counting.relational.staging import ReadTables, check_unchanged, code_tables
from disclosure_pipeline.counting.relational.transfer import as_spark_frame, read_integers
from disclosure_pipeline.measures.exact import Grouped, IntArray
from disclosure_pipeline.tables.levels import CodedColumn, StoredColumn

_PACKAGE = "disclosure-pipeline"
_STEPS = 3
_PARTS = 2  # for each partition: Spark spreads more of them more evenly by a hash
_RECORDS = 1 << 20  # that a worker sorts by part at a time
_CHUNK = 1 << 17  # bytes of a row: Spark sends 10,000 rows to a worker at a time, and at most 2 GB


@dataclass(frozen=True)
class Worker:
    """The tasks of a worker, which takes the rows of a partition in batches.

    `digits` are the places of the columns' codes in the words of a coded record. `parts` is the number of
    parts that records are divided into by their keys.
    """

    counter: PartCounter
    digits: tuple[Digits, ...]
    parts: int

    def pack(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Divide coded records into parts: rows (part, i, records), each with many records of table i."""
        tables, dtype = len(self.counter.tables), self.counter.dtype
        most = _CHUNK // dtype.itemsize
        for rows in _join_batches(batches):
            words = [rows.column(f"q{word}").to_numpy() for word in range(self.digits[-1].word + 1)]
            records = np.empty(len(rows), dtype=dtype)
            for number, place in enumerate(self.digits):
                records[f"{number}"] = (words[place.word] & place.mask) >> place.shift
            part = self.counter.find_parts(records, self.parts)
            group = part.astype(np.int64) * tables + rows.column("i").to_numpy()
            narrow = group.astype(np.min_scalar_type(self.parts * tables))
            chunks = [
                (*divmod(number, tables), of_group[start : start + most].tobytes())
                for number, of_group in deal_records(records, narrow)
                for start in range(0, len(of_group), most)
            ]
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array(column, kind)
                    for column, kind in zip(zip(*chunks, strict=True), _CHUNKS.types, strict=True)
                ],
                schema=_CHUNKS,
            )

    def count_codes(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Count each table's records with each code of a column: rows (column, i, code, n)."""
        counts: list[list[IntArray]] = [
            [np.zeros(column.size + 1, dtype=np.int64) for column in self.counter.columns]
            for _ in self.counter.tables
        ]
        for tables in self._read(batches):
            for table_counts, records in zip(counts, tables, strict=True):
                for number, sums in enumerate(table_counts):
                    np.add(sums, np.bincount(records[f"{number}"], minlength=len(sums)), sums)
        for i, table_counts in enumerate(counts):
            for number, sums in enumerate(table_counts):
                code = np.flatnonzero(sums)
                yield _rows(column=number, i=i, code=code, n=sums[code])

    def count(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Count each part for the request: rows (counts), pickled."""
        limits = replace(Limits(), threads=0)
        for tables in self._read(batches):
            found = self.counter.find_cells(tables, limits)
            counted = [of_cells for _, cells in found for of_cells in cells.count(self.counter.first)]
            yield pa.record_batch({"counts": pa.array([pickle.dumps(counted)], pa.binary())})

    def count_pairs(self, listed: Sequence[tuple[int, int]], batches: Iterable[Any]) -> Iterator[Any]:
        """Count the pairs of these targets and each key in all parts: rows (target, key, pair, n)."""
        for GT_records, *_ in self._read(batches):
            for (_, t), by_key in zip(listed, self.counter.count_pairs(GT_records, listed), strict=True):
                for k, pairs in enumerate(by_key):
                    yield _rows(target=t, key=k, pair=pairs.groups, n=pairs.sums)

    def _read(self, batches: Iterable[Any]) -> Iterator[list[Records]]:
        """Yield each table's records in a part; the rows of a part are adjacent."""
        dtype = self.counter.dtype
        rows = (row for batch in batches for row in zip(*map(batch.column, _CHUNKS.names), strict=True))
        for _, chunks_of_part in groupby(rows, key=itemgetter(0)):
            chunks = [[np.empty(0, dtype=dtype)] for _ in self.counter.tables]
            for _, i, packed in chunks_of_part:
                chunks[i.as_py()].append(np.frombuffer(packed.as_buffer(), dtype=dtype))
            yield [np.concatenate(table_chunks) for table_chunks in chunks]


_CHUNKS = pa.schema({"part": pa.int32(), "i": pa.int16(), "records": pa.binary()})


def _join_batches(batches: Iterable[Any]) -> Iterator[Any]:
    """Join batches to tables of many records."""
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
    """Return rows of integers; a single integer is repeated in all rows."""
    spread = {name: np.broadcast_to(column, len(n)) for name, column in columns.items()}
    return pa.record_batch(
        {name: pa.array(column, pa.int64()) for name, column in (spread | {"n": n}).items()}
    )


def _tell_version(batches: Iterable[Any]) -> Iterator[Any]:
    for batch in batches:
        yield pa.record_batch({"version": [version(_PACKAGE)] * len(batch)})


def have_this_package(session: Any) -> bool:
    """Return whether the executors of a Spark session can import this version of the package."""
    answers = session.range(1).mapInArrow(_tell_version, "version string")
    try:
        return bool(answers.toArrow().column("version").to_pylist() == [version(_PACKAGE)])
    except Exception:  # they have another Python, or no package
        return False


def find_in_workers(
    read: ReadTables, number: int, request: CountRequest, on_progress: Callable[[int, int], None]
) -> CellParts:
    """Yield the counts of a request with targets, by number. Raise InputError as `find_in_database` does."""
    columns = gather_columns([request])
    counter = PartCounter({number: _without_values(request)}, range(len(request.keys[0].counts)))
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

        def read_counts() -> Iterator[tuple[int, Counted]]:
            for part_counts in counted:
                # Pickled by this session's own executors.
                yield number, Counted(pickle.loads(part_counts.as_py()))

        complete = [(number, i) for i in range(len(request.targets))]
        yield Parts([read_counts], complete, partial(_find_pairs, parts, worker))
        on_progress(_STEPS, _STEPS)


def _find_pairs(parts: Any, worker: Worker, listed: Sequence[tuple[int, int]]) -> list[tuple[Grouped, ...]]:
    rows = _add_up(parts, partial(worker.count_pairs, listed), ("target", "key", "pair"))
    return [
        tuple(
            Grouped.sum_by_group(rows["pair"][selected], rows["n"][selected])
            for k in range(len(worker.counter.first.keys))
            for selected in [(rows["target"] == t) & (rows["key"] == k)]
        )
        for _, t in listed
    ]


def _add_up(
    parts: Any, work: Callable[[Iterable[Any]], Iterator[Any]], groups: Sequence[str]
) -> Mapping[str, IntArray]:
    """Run the work on the parts, and add up n of the rows that it returns, by group."""
    counted = parts.mapInArrow(work, ", ".join(f"{name} long" for name in (*groups, "n")))
    return read_integers(counted.groupBy(*groups).sum("n").withColumnRenamed("sum(n)", "n").toArrow())


def _without_values(request: CountRequest) -> CountRequest:
    """Return the request over columns that have numbers of levels, but no values."""
    columns = {id(column): _without_levels(column) for column in request.columns}
    targets = [replace(target, column=columns[id(target.column)]) for target in request.targets]
    return replace(request, keys=[columns[id(key)] for key in request.keys], targets=targets)


def _without_levels(column: CodedColumn) -> CodedColumn:
    no_record, codes = np.empty(0, dtype=np.int8), np.arange(column.size)
    tables = tuple(StoredColumn(no_record, 0, codes, counts) for counts in column.counts)
    return replace(column, tables=tables, levels=np.zeros(column.missing, dtype=np.bool_))
