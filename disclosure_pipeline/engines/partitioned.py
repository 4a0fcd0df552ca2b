"""The engine for tables that do not fit into memory: it reads them batch by batch.

Where the table of all cells is small, cells are counted as the batches come. Else the records are put aside
in parts by key, and each part is counted as if it were the whole table: everything is a sum over keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.engines import counting, memory
from disclosure_pipeline.engines.counted import Counted
from disclosure_pipeline.engines.job import Job, Limits, Target
from disclosure_pipeline.engines.radix import Numbered, Radix
from disclosure_pipeline.engines.spill import Records, Spill, spill
from disclosure_pipeline.measures.adding import add_up
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.measures.grouped import Grouped
from disclosure_pipeline.parallel import each_in_threads, threads_for
from disclosure_pipeline.tables.levels import CodedColumn, Stored

Codes = npt.NDArray[Any]

_MIX = np.uint64(0x9E3779B97F4A7C15)  # spreads neighbouring codes over all parts
_HALF = np.uint64(32)


@dataclass(frozen=True)
class Batches:
    """The records of some tables (GT first), which can be read any number of times.

    `records`: how many each table has. `read` gives the batches of a table, `code` the codes of the columns
    (keys, then targets) in a batch of a table; only that is done on threads.
    """

    records: tuple[int, ...]
    read: Callable[[int], Iterable[Any]]
    code: Callable[[int, Any], Sequence[Codes]]

    @property
    def tables(self) -> range:
        """The numbers of the tables."""
        return range(len(self.records))


def in_memory(columns: Sequence[CodedColumn], block: int = 1 << 20) -> Batches:
    """The batches of columns that are in memory."""
    records = tuple(len(table.stored) for table in columns[0].tables)
    readers = [
        [column.reader(table, np.arange(column.size)) for column in columns] for table in range(len(records))
    ]
    return Batches(
        records,
        lambda table: (slice(start, start + block) for start in range(0, records[table], block)),
        lambda table, some: [reader(some) for reader in readers[table]],
    )


def count(
    keys: Sequence[CodedColumn],
    targets: Sequence[Target],
    batches: Batches,
    done: Callable[[str, int, int], None] = lambda what, done, of: None,
    limits: Limits | None = None,
) -> Counted:
    """Count GT and all syntheses: what `memory.count` finds of the same columns.

    `counts` of the columns are those of the tables. InputError where the disk has no room; errors of the
    batches come through.
    """
    limits = limits or Limits()
    of_keys = Radix(tuple(keys))
    largest = max((target.column.size for target in targets), default=1)
    if of_keys.size * largest <= min(limits.table, sum(batches.records)):
        return _counted(of_keys, targets, batches, done, limits)
    columns = [*keys, *(target.column for target in targets)]
    dtype = np.dtype([(f"{i}", np.min_scalar_type(column.size - 1)) for i, column in enumerate(columns)])
    parts = max(1, -(-sum(batches.records) // limits.aside))
    with spill(dtype, sum(batches.records)) as aside:
        _put_aside(keys, batches, aside, parts, done, limits)
        return _measured(keys, targets, batches, aside, parts, done, limits)


def _threads(batches: Batches, limits: Limits) -> int:
    return threads_for(sum(batches.records)) if limits.threads is None else limits.threads


# Cells are counted as the batches come.


def _counted(
    keys: Radix,
    targets: Sequence[Target],
    batches: Batches,
    done: Callable[[str, int, int], None],
    limits: Limits,
) -> Counted:
    q = [np.zeros(keys.size, dtype=np.int64) for _ in batches.tables]
    cells = [
        [np.zeros(keys.size * target.column.size, dtype=np.int64) for _ in batches.tables]
        for target in targets
    ]
    sizes = [target.column.size for target in targets]
    seen = 0
    for table in batches.tables:
        work = partial(_count_batch, keys, sizes, batches, table)
        for records, found in each_in_threads(batches.read(table), work, _threads(batches, limits)):
            for sums, of_batch in zip([q, *cells], found, strict=True):
                sums[table] += of_batch
            seen += records
            done("Counting", seen, sum(batches.records))
    job = Job(keys, tuple(targets), batches.records, limits, done)
    numbered = Numbered((), np.arange(keys.size), keys)
    of_targets, pairs = counting.measure_cells(job, numbered, q, targets, cells)
    return Counted(counting.measure_keys(job, q), tuple(of_targets), tuple(pairs))


def _count_batch(
    keys: Radix, sizes: Sequence[int], batches: Batches, table: int, batch: Any
) -> tuple[int, list[Codes]]:
    """The records of a batch; those with each key combination, and those in each cell of each target."""
    codes = batches.code(table, batch)
    width = len(keys.columns)
    q = np.zeros(len(codes[0]), dtype=np.int64)
    for of_key, weight in zip(codes[:width], keys.weights, strict=True):
        q += of_key.astype(np.int64) * weight
    found = [np.bincount(q, minlength=keys.size)]
    for t, size in zip(codes[width:], sizes, strict=True):
        found.append(np.bincount(q * size + t, minlength=keys.size * size))
    return len(q), found


# Records are put aside in parts, and each part is counted by itself.


def _put_aside(
    keys: Sequence[CodedColumn],
    batches: Batches,
    aside: Spill,
    parts: int,
    done: Callable[[str, int, int], None],
    limits: Limits,
) -> None:
    seen = 0
    for table in batches.tables:
        work = partial(_put_batch_aside, len(keys), batches, aside, parts, table)
        for records in each_in_threads(batches.read(table), work, _threads(batches, limits)):
            seen += records
            done("Parting the records", seen, sum(batches.records))


def _put_batch_aside(keys: int, batches: Batches, aside: Spill, parts: int, table: int, batch: Any) -> int:
    codes = batches.code(table, batch)
    part = _part(codes[:keys], parts)
    order = np.argsort(part, kind="stable")
    records = np.empty(len(order), dtype=aside.dtype)
    for name, of_column in zip(aside.dtype.names or (), codes, strict=True):
        records[name] = of_column
    records = records[order]
    ends = np.cumsum(np.bincount(part, minlength=parts))
    for i, (start, end) in enumerate(zip(np.append(0, ends[:-1]), ends, strict=True)):
        if end > start:
            aside.add((i, table), records[start:end])
    return len(order)


def _part(keys: Sequence[Codes], parts: int) -> IntArray:
    """The part of each record: one and the same for all that have the same keys."""
    mixed = np.zeros(len(keys[0]), dtype=np.uint64)
    for codes in keys:
        mixed += codes.astype(np.uint64)
        mixed *= _MIX
        mixed ^= mixed >> _HALF
    mixed *= _MIX
    return (((mixed >> _HALF) * np.uint64(parts)) >> _HALF).astype(np.min_scalar_type(parts - 1))


def _measured(
    keys: Sequence[CodedColumn],
    targets: Sequence[Target],
    batches: Batches,
    aside: Spill,
    parts: int,
    done: Callable[[str, int, int], None],
    limits: Limits,
) -> Counted:
    threads = _threads(batches, limits)
    of_keys: dict[int, list[Any]] = {}
    of_targets: dict[tuple[int, int], list[Any]] = {}
    work = partial(_measure_part, keys, targets, batches, aside, replace(limits, threads=0))
    for number, found in enumerate(each_in_threads(range(parts), work, threads), start=1):
        for syntheses, counted in found:
            for at, j in enumerate(syntheses):
                of_keys.setdefault(j, []).append(counted.keys[at])
                for i, of_target in enumerate(counted.targets):
                    of_targets.setdefault((i, j), []).append(of_target[at])
        done("Measuring", number, parts)
    sums = tuple(tuple(add_up(of_targets[i, j]) for j in batches.tables[1:]) for i in range(len(targets)))
    large = [i for i, of_target in enumerate(sums) if any(len(each.large.t) for each in of_target)]
    pairs = _pairs_of_key(keys, targets, large, aside, parts, threads)
    return Counted(
        tuple(add_up(of_keys[j]) for j in batches.tables[1:]),
        sums,
        tuple(pairs.get(i, ()) for i in range(len(targets))),
    )


def _measure_part(
    keys: Sequence[CodedColumn],
    targets: Sequence[Target],
    batches: Batches,
    aside: Spill,
    limits: Limits,
    part: int,
) -> list[tuple[list[int], Counted]]:
    """What is counted in a part, for some syntheses at a time; none of it for those with no record there."""
    records = [aside.read((part, table)) for table in batches.tables]
    there = [j for j in batches.tables[1:] if len(records[0]) or len(records[j])]
    # With GT every synthesis can be measured; without it only those that have records.
    together = [there] if len(records[0]) else [[j] for j in there]
    found = []
    for syntheses in together:
        tables = (0, *syntheses)

        def of_part(column: CodedColumn, name: str, tables: Sequence[int] = tables) -> CodedColumn:
            return replace(column, tables=tuple(_stored(column, records[j][name], j) for j in tables))

        if not syntheses:
            continue
        names = aside.dtype.names or ()
        some_keys = [of_part(key, name) for key, name in zip(keys, names[: len(keys)], strict=True)]
        some_targets = [
            replace(target, column=of_part(target.column, name))
            for target, name in zip(targets, names[len(keys) :], strict=True)
        ]
        found.append((syntheses, memory.count(some_keys, some_targets, limits=limits)))
    return found


def _stored(column: CodedColumn, codes: Records, table: int) -> Stored:
    """Some records of a table; `counts` stay those of all, which say what levels there are."""
    return Stored(np.ascontiguousarray(codes), 0, np.arange(column.size), column.counts[table])


def _pairs_of_key(
    keys: Sequence[CodedColumn],
    targets: Sequence[Target],
    wanted: Sequence[int],
    aside: Spill,
    parts: int,
    threads: int,
) -> dict[int, tuple[Grouped, ...]]:
    """The GT records by level of each key * size of the target + target level, of the wanted targets."""
    if not wanted:
        return {}

    def of_part(part: int) -> list[list[Grouped]]:
        records = aside.read((part, 0))
        ones = np.ones(len(records), dtype=np.int64)
        levels = [records[f"{k}"].astype(np.int64) for k in range(len(keys))]
        found = []
        for i in wanted:
            t, size = records[f"{len(keys) + i}"].astype(np.int64), targets[i].column.size
            found.append([Grouped.of(of_key * size + t, ones) for of_key in levels])
        return found

    sums: list[list[list[Grouped]]] = [[[] for _ in keys] for _ in wanted]
    for found in each_in_threads(range(parts), of_part, threads):
        for of_target, new in zip(sums, found, strict=True):
            for of_key, grouped in zip(of_target, new, strict=True):
                of_key.append(grouped)
    return {
        i: tuple(Grouped.joined(of_key) for of_key in of_target)
        for i, of_target in zip(wanted, sums, strict=True)
    }
