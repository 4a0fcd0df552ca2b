"""The engine for tables in a database: it counts them where they are, and only sums come back.

Alignment, canonical form and groups are worked out in Python over the distinct values of the columns; the
database only replaces values by codes. The coded records are written once to a temporary table, compared with
the known counts of the columns, and then counted, so that all figures are of one state of the tables.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from disclosure_pipeline.counting.cells import CellParts, Cells, Counted, Found, Parts
from disclosure_pipeline.counting.counts import CountRequest, Target, gather_columns
from disclosure_pipeline.counting.relational import cells
from disclosure_pipeline.counting.relational.cells import fetch_cells
from disclosure_pipeline.counting.relational.coding import Digits, levels_of
from disclosure_pipeline.counting.relational.staging import ReadTables, stage_records
from disclosure_pipeline.counting.relational.transfer import (
    SPARK,
    fetch_integers,
    run_queries,
    run_query,
    spark_session,
    store_temporarily,
    upload_temporarily,
)
from disclosure_pipeline.counting.relational.workers import find_in_workers, have_this_package
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.measures.exact import Grouped, IntArray, total
from disclosure_pipeline.runtime.progress import OnProgress, ignore_progress
from disclosure_pipeline.tables.levels import CodedColumn

_STEP = "Counting in the database"
_ACTION = "The database could not count the tables"


def find_in_database(
    read: ReadTables, requests: Sequence[CountRequest], on_progress: OnProgress = ignore_progress
) -> CellParts:
    """Yield the cells of GT (the first table) and all syntheses for each request.

    Raise InputError if the tables do not hold the known values (they changed, or the database takes different
    values for equal), if a number may not fit 64 bits, or if the database fails. Nothing is ever left in the
    database once the generator is closed.
    """
    without_targets = {
        number: request
        for number, request in enumerate(requests)
        if not (request.targets or request.together or request.apart)
    }
    for number, request in enumerate(requests):
        if number not in without_targets:
            yield from run_queries(_ACTION, _find(read, number, request, on_progress))
    if without_targets:
        yield from run_queries(_ACTION, _find_keys_only(read, without_targets, on_progress))


def _find(read: ReadTables, number: int, request: CountRequest, on_progress: OnProgress) -> CellParts:
    backend = read.tables[0].get_backend()
    if backend.name == SPARK and have_this_package(spark_session(backend)):
        yield from find_in_workers(read, number, request, partial(on_progress, _STEP))
        return
    keys, targets = request.keys, request.targets
    columns = {id(target.column): target.column for target in targets}  # each once
    place = {column: k for k, column in enumerate(columns)}
    steps = 2 + len(targets)
    with ExitStack() as stack:
        records, digits = stack.enter_context(stage_records(read, keys, list(columns.values())))
        on_progress(_STEP, 1, steps)
        N = [total(counts) for counts in keys[0].counts]
        rows, found = count_key_combinations(records, digits, N, stack)
        yield _collect(number, found)
        if request.apart:
            yield _collect(number, Counted.apart(fetch_hits_apart(rows.keys, digits, keys)))
        on_progress(_STEP, 2, steps)
        for i, target in enumerate(targets):
            yield from _find_target(rows, place[id(target.column)], number, i, request)
            on_progress(_STEP, 3 + i, steps)


def _collect(number: int, found: Found) -> Parts:
    """Return a single part, already found."""
    return Parts([lambda: [(number, found)]])


def _find_keys_only(
    read: ReadTables, requests: Mapping[int, CountRequest], on_progress: OnProgress
) -> CellParts:
    """Yield the keys of requests without targets: records are coded and counted by all columns once."""
    columns = gather_columns([*requests.values()])
    N = [total(counts) for counts in columns[0].counts]
    staged = read.kept.stage(read, columns)
    with store_temporarily(cells.count_key_combinations(staged.rows, len(N))) as keys:
        for step, (number, request) in enumerate(requests.items(), start=1):
            requested = set(map(id, request.keys))
            places = zip(staged.digits, columns, strict=True)
            kept = [place for place, column in places if id(column) in requested]
            counted_keys = keys if len(kept) == len(columns) else cells.merge_keys(keys, kept, len(N))
            yield _collect(number, fetch_keys(counted_keys, N))
            on_progress(_STEP, step, len(requests))


def fetch_hits_apart(keys: Any, digits: Sequence[Digits], columns: Sequence[CodedColumn]) -> list[int]:
    """Count the hits of keys drawn apart in each synthesis: see `totals.count_hits_apart`."""
    if len(columns) == 1:
        return [0] * (len(columns[0].tables) - 1)
    backend, N = keys.get_backend(), [total(counts) for counts in columns[0].counts]
    with ExitStack() as stack:
        levels = []
        in_order = sorted(zip(columns, digits, strict=True), key=lambda key: key[0].name)
        for column, place in in_order:
            code = np.flatnonzero(np.any(column.counts[1:], axis=0))
            of_key = {"code": pa.array(code << place.shift, pa.int64())}
            of_key |= {f"s{i}": pa.array(column.counts[i][code], pa.int64()) for i in range(1, len(N))}
            levels.append(stack.enter_context(upload_temporarily(backend, pa.table(of_key))))
        fetched = fetch_integers(cells.add_up_hits_apart(keys, levels, [place for _, place in in_order], N))
    return [int(fetched[f"x{i}"][0]) for i in range(1, len(N))]


_LARGEST = 2**63 - 1


@dataclass(frozen=True)
class CodedRecords:
    """Coded records in a database.

    `keys` are the key combinations with each table's number of records. `N` are the records of each table,
    `largest` the most of them with one key combination. `shared` are the records whose key combination
    another record has too, `lone` the numbers of the others by table; if few are lone, `shared` are all
    `records`.
    """

    records: Any
    shared: Any
    keys: Any
    digits: tuple[Digits, ...]
    N: tuple[int, ...]
    largest: tuple[int, ...]
    lone: tuple[int, ...]


def count_key_combinations(
    records: Any, digits: Sequence[Digits], N: Sequence[int], stack: ExitStack
) -> tuple[CodedRecords, Cells]:
    """Return the records to count targets from, and the cells of the keys: see `fetch_keys`.

    The stack drops the temporary tables. Raise InputError if sums of squares may not fit 64 bits.
    """
    keys = stack.enter_context(store_temporarily(cells.count_key_combinations(records, len(N))))
    found = fetch_keys(keys, N)
    is_lone = np.sum(found.counts, axis=0) == 1
    lone = [int((is_lone & (of_table == 1)) @ found.n) for of_table in found.counts]
    shared = records
    # Records with a key combination of their own, often most, are counted without their targets.
    if 2 * sum(lone) > sum(N):
        some = cells.records_with_shared_keys(records, keys, len(N))
        shared = stack.enter_context(store_temporarily(some))
    else:
        lone = [0] * len(N)
    largest = tuple(int(of_table.max()) for of_table in found.counts)
    return CodedRecords(records, shared, keys, tuple(digits), tuple(N), largest, tuple(lone)), found


def fetch_keys(keys: Any, N: Sequence[int]) -> Cells:
    """Return the cells of key combinations, those with as many records of each table as one.

    `keys` are those of `cells.count_key_combinations`, of tables with N records. Raise InputError if sums of
    squares may not fit 64 bits.
    """
    sizes = fetch_integers(cells.count_keys_by_size(keys, len(N)))
    by_table = [sizes[f"k{i}"] for i in range(len(N))]
    # Sums of d², s² and d·s over keys are at most N times the most records with one key combination.
    if max(N) * max(int(of_table.max()) for of_table in by_table) > _LARGEST:
        raise InputError(
            "Too many records have the same key combination: sums of squares do not fit 64 bits. Name more "
            "keys."
        )
    return Cells.of_keys(by_table, n=sizes["keys"])


def _find_target(rows: CodedRecords, k: int, number: int, i: int, request: CountRequest) -> CellParts:
    """Yield the cells of target i of the request, whose codes are those of target k of the records."""
    target = request.targets[i]
    counted = rows.records if target.exclusions else rows.shared
    with store_temporarily(cells.count_cells(counted, k, len(rows.N))) as target_cells:
        lone = (0,) * len(rows.N) if counted is rows.records else rows.lone

        def find_large(synthesis: int) -> tuple[IntArray, IntArray, IntArray]:
            return _fetch_large_cells(rows, target_cells, target, synthesis)

        def fetch(syntheses: Sequence[int], *, each: bool) -> tuple[int, Cells]:
            tables = (0, *syntheses)
            largest = [rows.largest[j] for j in tables]
            found = fetch_cells(target_cells, tables, target, rows.digits, largest, i)
            alone = np.array([lone[j] for j in tables])
            return number, replace(found, alone=alone, find_large=find_large, each=each)

        def find_pairs(_: object) -> list[tuple[Grouped, ...]]:
            all_cells = target_cells if counted is rows.records else cells.records_as_cells(rows.records, k)
            fetch_pairs = partial(_fetch_pairs, all_cells, rows.digits, target.column.size)
            return [run_query(_ACTION, fetch_pairs)]

        finds = [partial(fetch, [j], each=True) for j in request.syntheses]
        if request.together and len(request.syntheses) > 1:
            finds.append(partial(fetch, request.syntheses, each=False))
        found = (run_query(_ACTION, find) for find in finds)
        yield Parts([lambda: found], [(number, i)], find_pairs)


def _fetch_large_cells(
    rows: CodedRecords, target_cells: Any, target: Target, synthesis: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Fetch the DiSCO cells of a synthesis to list: the level of each key, t and d."""
    left = target_cells
    if target.exclusions:
        left = cells.cells_left(target_cells, target.exclusions, rows.digits)
    above = math.floor(target.list_cells_above)
    large = fetch_integers(cells.list_large_cells(left, rows.keys, synthesis, above))
    levels = levels_of([large[name] for name in large if name.startswith("q")], rows.digits)
    return levels, large["t"], large["d"]


def _fetch_pairs(target_cells: Any, digits: Sequence[Digits], targets: int) -> tuple[Grouped, ...]:
    pairs = fetch_integers(cells.count_pairs(target_cells, digits))
    return tuple(
        Grouped.sum_by_group(
            (pairs["code"][where] >> key_digits.shift) * targets + pairs["t"][where], pairs["n"][where]
        )
        for k, key_digits in enumerate(digits)
        for where in [pairs["key"] == k]
    )
