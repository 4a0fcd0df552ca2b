"""The engine for tables in a database: it counts them where they are, and only sums come back.

Alignment, canonical form and groups are worked out in Python over the distinct values of the columns; the
database only replaces values by codes. The coded records are written once to a temporary table, compared with
the known counts of the columns, and then counted, so that all figures are of one state of the tables.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import or_
from typing import Any

import numpy as np
import pyarrow as pa

from disclosure_pipeline.counting.counts import (
    CountRequest,
    DisclosureCounts,
    KeyCounts,
    Target,
    TargetCounts,
    count_keys,
    count_target,
    gather_columns,
)
from disclosure_pipeline.counting.relational import cells
from disclosure_pipeline.counting.relational.cells import fetch_cells
from disclosure_pipeline.counting.relational.coding import (
    Digits,
    levels_of,
)
from disclosure_pipeline.counting.relational.staging import ReadTables, stage_all, stage_records
from disclosure_pipeline.counting.relational.transfer import (
    SPARK,
    fetch_integers,
    run_query,
    spark_session,
    store_temporarily,
    upload_temporarily,
)
from disclosure_pipeline.counting.relational.workers import count_in_workers, have_this_package
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.measures.checks import sum_by_pair
from disclosure_pipeline.measures.exact import Grouped, total
from disclosure_pipeline.measures.frequency import FrequencyTable
from disclosure_pipeline.measures.together import (
    TogetherCounts,
    TogetherTargetCounts,
    count_together,
)
from disclosure_pipeline.runtime.progress import OnProgress, ignore_progress
from disclosure_pipeline.tables.levels import CodedColumn

_STEP = "Counting in the database"
_ACTION = "The database could not count the tables"
_TWO = 2  # tables: GT and one synthesis


def count_in_database(
    read: ReadTables, requests: Sequence[CountRequest], on_progress: OnProgress = ignore_progress
) -> list[DisclosureCounts]:
    """Count GT (the first table) and all syntheses for each request.

    Raise InputError if the tables do not hold the known values (they changed, or the database takes different
    values for equal), if a number may not fit 64 bits, or if the database fails. Nothing is ever left in the
    database.
    """
    without_targets = [
        request for request in requests if not (request.targets or request.together or request.apart)
    ]
    counted = {
        id(request): run_query(_ACTION, partial(_count, read, request, on_progress))
        for request in requests
        if all(request is not other for other in without_targets)
    }
    if without_targets:
        counts = run_query(_ACTION, partial(_count_keys_only, read, without_targets, on_progress))
        counted |= dict(zip(map(id, without_targets), counts, strict=True))
    return [counted[id(request)] for request in requests]


def _count(read: ReadTables, request: CountRequest, on_progress: OnProgress) -> DisclosureCounts:
    backend = read.tables[0].get_backend()
    if backend.name == SPARK and have_this_package(spark_session(backend)):
        return count_in_workers(read, request, partial(on_progress, _STEP))
    keys, targets = request.keys, request.targets
    columns = {id(target.column): target.column for target in targets}  # each once
    place = {column: k for k, column in enumerate(columns)}
    target_counts: list[tuple[TargetCounts, ...]] = []
    pairs: list[tuple[Grouped, ...]] = []
    together: list[TogetherTargetCounts] = []
    steps = 2 + len(targets)
    with ExitStack() as stack:
        records, digits = stack.enter_context(stage_records(read, keys, list(columns.values())))
        on_progress(_STEP, 1, steps)
        N = [total(counts) for counts in keys[0].counts]
        rows, key_counts = count_key_combinations(records, digits, N, stack)
        in_both = [counts.uniques.in_both for counts in key_counts]
        unique_in_any = fetch_unique_in_any(rows.keys, in_both) if request.together else 0
        if request.apart:
            hits_apart = fetch_hits_apart(rows.keys, digits, keys)
            key_counts = tuple(map(_add_hits_apart, key_counts, hits_apart))
        on_progress(_STEP, 2, steps)
        for step, target in enumerate(targets, start=3):
            counts_of_target, pairs_of_target, together_of_target = count_target_levels(
                rows, place[id(target.column)], target, together=request.together
            )
            target_counts.append(counts_of_target)
            pairs.append(pairs_of_target)
            together.append(together_of_target)
            on_progress(_STEP, step, steps)
    return DisclosureCounts(
        key_counts,
        tuple(target_counts),
        tuple(pairs),
        TogetherCounts(unique_in_any, tuple(together)) if request.together else None,
    )


def _count_keys_only(
    read: ReadTables, requests: Sequence[CountRequest], on_progress: OnProgress
) -> list[DisclosureCounts]:
    """Count for requests without targets: code and count the records by all columns once, then merge keys."""
    columns = gather_columns(requests)
    N = [total(counts) for counts in columns[0].counts]
    counts: list[DisclosureCounts] = []
    with (
        stage_all(read, columns) as staged,
        store_temporarily(cells.count_key_combinations(staged.rows, len(N))) as keys,
    ):
        for step, request in enumerate(requests, start=1):
            requested = set(map(id, request.keys))
            places = zip(staged.digits, columns, strict=True)
            kept = [place for place, column in places if id(column) in requested]
            counted_keys = keys if len(kept) == len(columns) else cells.merge_keys(keys, kept, len(N))
            needs_no_table = counted_keys is keys or len(N) == _TWO
            with nullcontext(counted_keys) if needs_no_table else store_temporarily(counted_keys) as merged:
                counts.append(DisclosureCounts(fetch_key_counts(merged, N)[0], (), ()))
            on_progress(_STEP, step, len(requests))
    return counts


_SEVERAL = 2  # syntheses


def fetch_unique_in_any(keys: Any, in_both: Sequence[int]) -> int:
    """Count the key combinations of one GT record and of one record of at least one synthesis.

    `in_both` are the numbers for each synthesis: if at most one has any, the database is not queried.
    """
    if np.count_nonzero(in_both) < _SEVERAL:
        return sum(in_both)
    in_any = reduce(or_, [keys[f"k{i}"] == 1 for i in range(1, len(in_both) + 1)])
    replicated = keys.filter(keys["k0"] == 1, in_any)
    return int(fetch_integers(replicated.aggregate(n=replicated.count()))["n"][0])


def _add_hits_apart(counts: KeyCounts, hits: int) -> KeyCounts:
    return replace(counts, hits_apart=hits)


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

    @property
    def syntheses(self) -> range:
        """The numbers of the syntheses, from 1 on."""
        return range(1, len(self.N))


def count_key_combinations(
    records: Any, digits: Sequence[Digits], N: Sequence[int], stack: ExitStack
) -> tuple[CodedRecords, tuple[KeyCounts, ...]]:
    """Return the records to count targets from, and the counts of the keys in each synthesis.

    The stack drops the temporary tables. Raise InputError if sums of squares may not fit 64 bits.
    """
    keys = stack.enter_context(store_temporarily(cells.count_key_combinations(records, len(N))))
    key_counts, largest = fetch_key_counts(keys, N)
    shared, lone = records, [0] * len(N)
    # Records with a key combination of their own, often most, are counted without their targets.
    unique = key_counts[0].uniques.in_GT + sum(counts.uniques.in_SD for counts in key_counts)
    if 2 * unique > sum(N):
        lone_keys = fetch_integers(cells.count_lone_keys(keys, len(N)))
        lone_records = [int(lone_keys[f"n{i}"][0]) for i in range(len(N))]
        if 2 * sum(lone_records) > sum(N):
            some = cells.records_with_shared_keys(records, keys, len(N))
            shared, lone = stack.enter_context(store_temporarily(some)), lone_records
    return CodedRecords(records, shared, keys, tuple(digits), tuple(N), largest, tuple(lone)), key_counts


def fetch_key_counts(keys: Any, N: Sequence[int]) -> tuple[tuple[KeyCounts, ...], tuple[int, ...]]:
    """Return the key counts of each synthesis, and the most records of each table with one key combination.

    `keys` are those of `cells.count_key_combinations`, of tables with N records. Raise InputError if sums of
    squares may not fit 64 bits.
    """
    key_counts, largest = [], [0] * len(N)
    for synthesis in range(1, len(N)):
        sizes = fetch_integers(cells.count_keys_by_size(keys, synthesis))
        key_counts.append(count_keys(sizes["d_q"], sizes["s_q"], sizes["keys"]))
        largest[0], largest[synthesis] = int(sizes["d_q"].max()), int(sizes["s_q"].max())
    # Sums of d², s² and d·s over keys are at most N times the most records with one key combination.
    if max(N) * max(largest) > _LARGEST:
        raise InputError(
            "Too many records have the same key combination: sums of squares do not fit 64 bits. Name more "
            "keys."
        )
    return tuple(key_counts), tuple(largest)


def count_target_levels(
    rows: CodedRecords, k: int, target: Target, *, together: bool
) -> tuple[tuple[TargetCounts, ...], tuple[Grouped, ...], TogetherTargetCounts]:
    """Count a target in each synthesis, and its `pairs_of_key` if there are large cells.

    Its codes are those of target k of the records. `together`: also count what all syntheses disclose.
    """
    counted = rows.records if target.exclusions else rows.shared
    with store_temporarily(cells.count_cells(counted, k, len(rows.N))) as target_cells:
        lone = (0,) * len(rows.N) if counted is rows.records else rows.lone

        def fetch(tables: Sequence[int]) -> list[FrequencyTable]:
            by_table = ([rows.largest[i] for i in tables], [lone[i] for i in tables])
            return fetch_cells(target_cells, tables, target, rows.digits, *by_table)

        nothing = (Grouped.empty(),) * len(rows.digits)
        target_counts = tuple(count_target(fetch((0, i))[0], nothing, target, i) for i in rows.syntheses)
        together_counts = TogetherTargetCounts()
        if together:
            every = fetch(range(len(rows.N)))
            together_counts = count_together(every, target.exclusions, target.all_sizes)
        if all(counts.totals.largest <= target.list_cells_above for counts in target_counts):
            return target_counts, (), together_counts
        large = _fetch_large_cells(rows, target_cells, target)
        target_counts = tuple(
            replace(counts, large_pairs=listed) for counts, listed in zip(target_counts, large, strict=True)
        )
        all_cells = target_cells if counted is rows.records else cells.records_as_cells(rows.records, k)
        return target_counts, _fetch_pairs(all_cells, rows.digits, target.column.size), together_counts


def _fetch_large_cells(rows: CodedRecords, target_cells: Any, target: Target) -> list[tuple[Grouped, ...]]:
    """Fetch the records of the DiSCO cells to list, for each synthesis: see `TargetCounts`."""
    left = target_cells
    if target.exclusions:
        left = cells.cells_left(target_cells, target.exclusions, rows.digits)
    above = math.floor(target.list_cells_above)
    large = fetch_integers(cells.list_large_cells(left, rows.keys, len(rows.N), above))
    levels = levels_of([large[name] for name in large if name.startswith("q")], rows.digits)
    return [
        sum_by_pair(levels[:, where], large["t"][where], large["d"][where], target.column.size)
        for i in rows.syntheses
        for where in [large[f"x{i}"] == 1]
    ]


def _fetch_pairs(target_cells: Any, digits: Sequence[Digits], targets: int) -> tuple[Grouped, ...]:
    pairs = fetch_integers(cells.count_pairs(target_cells, digits))
    return tuple(
        Grouped.sum_by_group(
            (pairs["code"][where] >> key_digits.shift) * targets + pairs["t"][where], pairs["n"][where]
        )
        for k, key_digits in enumerate(digits)
        for where in [pairs["key"] == k]
    )
