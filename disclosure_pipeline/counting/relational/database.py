"""The engine for tables in a database: it counts them where they are, and only sums come back.

Everything that follows from the values of a column (alignment, canonical form, groups) is done in Python,
over the different values of the columns; here a raw value is only replaced by its code. The coded records
are written once to a temporary table of the database, compared with what was known of the columns, and then
counted: all figures are of that one state of the tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from disclosure_pipeline.counting.counts import DisclosureCounts, TargetCounts
from disclosure_pipeline.counting.relational.cells import count_key_combinations as count_all_keys
from disclosure_pipeline.counting.relational.cells import merge_keys
from disclosure_pipeline.counting.relational.coding import as_comparable
from disclosure_pipeline.counting.relational.staging import ReadTables, stage_all, stage_records
from disclosure_pipeline.counting.relational.target_counts import (
    count_key_combinations,
    count_target_levels,
    fetch_key_counts,
    fetch_levels,
    fetch_unique_in_any,
)
from disclosure_pipeline.counting.relational.transfer import (
    borrow_table,
    fetch_rows,
    open_connection,
    run_query,
    store_temporarily,
)
from disclosure_pipeline.counting.targets import CountRequest, columns_of_requests
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.measures.exact import Grouped, total
from disclosure_pipeline.measures.together import TogetherCounts
from disclosure_pipeline.runtime.progress import OnProgress, ignore_progress
from disclosure_pipeline.tables.alignment import Distinct

_STEP = "Counting in the database"
_ACTION = "The database did not do what counting needs"
_TWO = 2  # tables: GT and one synthesis


@contextmanager
def open_database_tables(sources: Sequence[Any], engine: str, names: Sequence[str]) -> Iterator[list[Any]]:
    """Tables of one database, each as `open_table` opens it; what was brought there is gone after the block.

    `engine` is a URL, or "auto" where a table of Ibis says which database it is. `names` are the tables' in
    messages. Raises InputError where there is no such database or table, or there are several databases.
    """
    ibis_tables = run_query("Databases cannot be used", lambda: _tables_of_ibis(sources))
    if ibis_tables and engine != "auto":
        raise InputError("Tables of Ibis are counted in their own database: leave the engine to 'auto'.")
    backends = run_query(
        "The database of the tables is not known", lambda: [table.get_backend() for table in ibis_tables]
    )
    if any(backend is not backends[0] for backend in backends):
        raise InputError("The tables are in several databases: bring them to one.")
    with ExitStack() as stack:
        backend = backends[0] if backends else stack.enter_context(open_connection(engine))
        borrowed = (borrow_table(backend, source, name) for source, name in zip(sources, names, strict=True))
        yield [stack.enter_context(table) for table in borrowed]


def _tables_of_ibis(sources: Sequence[Any]) -> list[Any]:
    import ibis.expr.types as ir

    return [source for source in sources if isinstance(source, ir.Table)]


def fetch_distinct(table: Any, column: str, most: int, table_name: str) -> Distinct:
    """Return the different values of a column, ascending, as the database types them, and their records.

    NULL and NaN are missing. Raises InputError where there is no such column, or there are more than `most`
    different values: they are never fetched all, then.
    """
    if column not in table.columns:
        raise InputError(
            f"Column {column!r} is not in {table_name}. "
            f"Its columns are {', '.join(map(repr, table.columns))}."
        )

    def fetch_values() -> Any:
        grouped = table.group_by(value=as_comparable(table[column]))
        return fetch_rows(grouped.aggregate(n=table.count()).limit(most + 2))

    rows = run_query(f"The values of column {column!r} of {table_name} cannot be fetched", fetch_values)
    present = rows.filter(pc.is_valid(rows["value"]))
    if len(present) > most:
        raise InputError(
            f"Column {column!r} of {table_name} has more than {most} different values, too many to align: "
            "group them in the database, leave the column out, or read the table into memory."
        )
    present = present.sort_by("value")  # a database has no order: what is drawn from them would change
    counts = np.asarray(present["n"].cast(pa.int64()))
    missing = total(np.asarray(rows["n"].cast(pa.int64()))) - total(counts)
    values = pd.Series(pd.arrays.ArrowExtensionArray(present["value"]), name=column)
    return Distinct(values, np.append(counts, missing))


def count_in_database(
    read: ReadTables, requests: Sequence[CountRequest], on_progress: OnProgress = ignore_progress
) -> list[DisclosureCounts]:
    """Return the counts of GT (the first table) and all syntheses, request by request.

    Raises InputError where the tables do not hold what is known of them (they changed, or the database does
    not compare values by value), where a number would not fit 64 bits, and where the database fails. Nothing
    is left in the database in any case.
    """
    sets = [request for request in requests if not request.targets and not request.together]
    counted = {
        id(request): run_query(_ACTION, partial(_count, read, request, on_progress))
        for request in requests
        if not any(request is of_set for of_set in sets)
    }
    counts_of_sets = run_query(_ACTION, partial(_count_sets, read, sets, on_progress)) if sets else []
    counted |= dict(zip(map(id, sets), counts_of_sets, strict=True))
    return [counted[id(request)] for request in requests]


def _count(read: ReadTables, request: CountRequest, on_progress: OnProgress) -> DisclosureCounts:
    keys, targets = request.keys, request.targets
    columns = {id(target.column): target.column for target in targets}  # of several targets once
    place = {column: k for k, column in enumerate(columns)}
    target_counts: list[tuple[TargetCounts, ...]] = []
    pairs: list[tuple[Grouped, ...]] = []
    together: list[tuple[int, int]] = []
    steps = 2 + len(targets)
    with ExitStack() as stack:
        records, digits = stack.enter_context(stage_records(read, keys, list(columns.values())))
        on_progress(_STEP, 1, steps)
        N = [total(counts) for counts in keys[0].counts]
        rows, key_counts = count_key_combinations(records, digits, N, stack)
        in_both = [of_synthesis.uniques.in_both for of_synthesis in key_counts]
        unique_in_any = fetch_unique_in_any(rows.keys, in_both) if request.together else 0
        on_progress(_STEP, 2, steps)
        for step, target in enumerate(targets, start=3):
            counts_of_target, pairs_of_target, by_all = count_target_levels(
                rows, place[id(target.column)], target, together=request.together
            )
            target_counts.append(counts_of_target)
            pairs.append(pairs_of_target)
            together.append(by_all)
            on_progress(_STEP, step, steps)
    return DisclosureCounts(
        key_counts,
        tuple(target_counts),
        tuple(pairs),
        TogetherCounts.from_pairs(unique_in_any, together) if request.together else None,
    )


def _count_sets(
    read: ReadTables, requests: Sequence[CountRequest], on_progress: OnProgress
) -> list[DisclosureCounts]:
    """Requests without targets: the records are coded and counted by all columns once, then by some."""
    columns = columns_of_requests(requests)
    N = [total(counts) for counts in columns[0].counts]
    counts: list[DisclosureCounts] = []
    place_of = {id(column): place for place, column in enumerate(columns)}
    with stage_all(read, columns) as staged, store_temporarily(count_all_keys(staged.rows, len(N))) as keys:
        for step, request in enumerate(requests, start=1):
            of_request = set(map(id, request.keys))
            places = zip(staged.digits, columns, strict=True)
            kept = [place for place, column in places if id(column) in of_request]
            counted_keys = keys if len(kept) == len(columns) else merge_keys(keys, kept, len(N))
            needs_no_table = counted_keys is keys or len(N) == _TWO
            with nullcontext(counted_keys) if needs_no_table else store_temporarily(counted_keys) as merged:
                by_level = [staged.digits[place_of[id(request.keys[k])]] for k in request.by_level]
                levels = fetch_levels(merged, by_level, len(N)) if by_level else ()
                counts.append(DisclosureCounts(fetch_key_counts(merged, N)[0], (), (), levels=levels))
            on_progress(_STEP, step, len(requests))
    return counts
