"""The engine for tables in a database: it counts them where they are, and only sums come back.

Everything that follows from the values of a column (alignment, canonical form, groups) is done in Python,
over the different values of the columns; here a raw value is only replaced by its code. The coded records
are written once to a temporary table of the database, compared with what was known of the columns, and then
counted: all figures are of that one state of the tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from disclosure_pipeline.counting.counts import DisclosureCounts, TargetCounts
from disclosure_pipeline.counting.relational.coding import (
    ColumnCodes,
    Digits,
    as_comparable,
    code_records,
    count_by_code,
    lay_out_words,
)
from disclosure_pipeline.counting.relational.connections import open_connection, run_query
from disclosure_pipeline.counting.relational.targets import count_key_combinations, count_target_levels
from disclosure_pipeline.counting.relational.together import fetch_unique_in_any
from disclosure_pipeline.counting.relational.transfer import (
    borrow_table,
    fetch_integers,
    fetch_rows,
    store_temporarily,
    upload_temporarily,
)
from disclosure_pipeline.counting.targets import CountRequest
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.measures.exact import IntArray, total
from disclosure_pipeline.measures.grouped import Grouped
from disclosure_pipeline.measures.together import TogetherCounts
from disclosure_pipeline.runtime.progress import OnProgress, ignore_progress
from disclosure_pipeline.tables.distinct import Distinct
from disclosure_pipeline.tables.levels import CodedColumn
from disclosure_pipeline.tables.messages import table_names

_STEP = "Counting in the database"


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


def count_table_records(table: Any) -> int:
    """The number of records of a table. InputError where the database does not answer."""
    counts = run_query(
        "The records cannot be counted", lambda: fetch_integers(table.aggregate(n=table.count()))
    )
    return int(counts["n"][0])


def fetch_distinct(table: Any, column: str, most: int, table_name: str) -> Distinct:
    """The different values of a column, in the type that the database gives them, and their records.

    NULL and NaN are missing. Raises InputError where there is no such column, or there are more than `most`
    different values: they are never fetched all, then.
    """
    if column not in table.columns:
        raise InputError(
            f"Column {column!r} is not in {table_name}. "
            f"Its columns are {', '.join(map(repr, table.columns))}."
        )

    def fetch_values() -> Any:
        grouped = table.select(value=as_comparable(table[column])).group_by("value")
        return fetch_rows(grouped.aggregate(n=lambda rows: rows.count()).limit(most + 2))

    rows = run_query(f"The values of column {column!r} of {table_name} cannot be fetched", fetch_values)
    present = rows.filter(pc.is_valid(rows["value"]))
    if len(present) > most:
        raise InputError(
            f"Column {column!r} of {table_name} has more than {most} different values, too many to align: "
            "group them in the database, leave the column out, or read the table into memory."
        )
    counts = np.asarray(present["n"].cast(pa.int64()))
    missing = total(np.asarray(rows["n"].cast(pa.int64()))) - total(counts)
    values = pd.Series(pd.arrays.ArrowExtensionArray(present["value"]), name=column)
    return Distinct(values, np.append(counts, missing))


def count_in_database(
    tables: Sequence[Any],
    distinct: Mapping[Any, Sequence[Distinct]],
    request: CountRequest,
    on_progress: OnProgress = ignore_progress,
    *,
    names: Sequence[str] = (),
    stacked: bool = False,
) -> DisclosureCounts:
    """The counts of GT (the first table) and all syntheses, tables of Ibis in one database.

    The columns are coded over their `distinct` values: for each table, code i of a column is that of value i;
    its `counts` are the numbers of records; `names` are the tables' in messages. `stacked`: the columns are
    of GT and of all syntheses as one table, whose values are those of one synthesis after the other.

    Raises InputError where the tables do not hold what `distinct` says (they changed, or the database does
    not compare values by value), where a number would not fit 64 bits, and where the database fails. Nothing
    is left in the database in any case.
    """
    action = "The database did not do what counting needs"
    names = names or table_names(len(request.keys[0].counts))
    return run_query(action, partial(_count, tables, distinct, request, on_progress, names, stacked))


def _count(
    tables: Sequence[Any],
    distinct: Mapping[Any, Sequence[Distinct]],
    request: CountRequest,
    on_progress: OnProgress,
    names: Sequence[str],
    stacked: bool,
) -> DisclosureCounts:
    keys, targets, columns = request.keys, request.targets, request.columns
    digits = lay_out_words([key.size for key in keys])
    target_counts: list[tuple[TargetCounts, ...]] = []
    pairs: list[tuple[Grouped, ...]] = []
    together: list[tuple[int, int]] = []
    steps = 2 + len(targets)
    with ExitStack() as stack:
        coded = []
        for i, table in enumerate(tables):
            values = [distinct[column.name][i] for column in columns]
            if stacked:
                codes = [_codes_within_stack(column, distinct[column.name], i) for column in columns]
            else:
                codes = [column.codes[i] for column in columns]
            number = min(i, 1) if stacked else i
            coded.append(_code_table(table, number, columns, codes, values, digits, stack))
        records = stack.enter_context(store_temporarily(_stack_tables(coded)))
        _check_unchanged(records, columns, digits, names)
        on_progress(_STEP, 1, steps)
        N = [total(counts) for counts in keys[0].counts]
        rows, key_counts = count_key_combinations(records, digits, N, stack)
        unique_in_any = fetch_unique_in_any(rows.keys, len(N)) if request.together else 0
        on_progress(_STEP, 2, steps)
        for k, target in enumerate(targets):
            counts_of_target, pairs_of_target, by_all = count_target_levels(
                rows, k, target, together=request.together
            )
            target_counts.append(counts_of_target)
            pairs.append(pairs_of_target)
            together.append(by_all)
            on_progress(_STEP, 3 + k, steps)
    return DisclosureCounts(
        key_counts,
        tuple(target_counts),
        tuple(pairs),
        TogetherCounts.of(unique_in_any, together) if request.together else None,
    )


def _stack_tables(tables: Sequence[Any]) -> Any:
    import ibis

    return ibis.union(*tables)


def _codes_within_stack(column: CodedColumn, tables: Sequence[Distinct], table: int) -> IntArray:
    """The codes of the values of one table, of a column whose second table are all the syntheses."""
    if not table:
        return column.codes[0]
    ends = np.cumsum([len(distinct.values) for distinct in tables[1 : table + 1]])
    return column.codes[1][ends[-1] - len(tables[table].values) : ends[-1]]


def _code_table(
    table: Any,
    number: int,
    columns: Sequence[CodedColumn],
    codes: Sequence[IntArray],
    values: Sequence[Distinct],
    digits: Sequence[Digits],
    stack: ExitStack,
) -> Any:
    """The coded records of a table; what is uploaded for them is there as long as the stack.

    `codes` and `values` are those of the table, by column.
    """
    shifts = [key_digits.shift for key_digits in digits] + [0] * (len(columns) - len(digits))
    uploaded = [
        _upload_codes(table, *of_column, stack)
        for of_column in zip(columns, codes, values, shifts, strict=True)
    ]
    words = [key_digits.word for key_digits in digits]
    return code_records(table, number, uploaded[: len(words)], words, uploaded[len(words) :])


def _upload_codes(
    table: Any, column: CodedColumn, codes: IntArray, distinct: Distinct, shift: int, stack: ExitStack
) -> ColumnCodes:
    """The codes of a column of a table, shifted by so many bits to their place within a word."""
    uploaded = None
    if len(distinct.values):
        kind = as_comparable(table[column.name]).type().to_pyarrow()
        values = pa.array(distinct.values, from_pandas=True).cast(kind)
        rows = pa.table({"value": values, "code": codes[: len(values)].astype(np.int64) << shift})
        uploaded = stack.enter_context(upload_temporarily(table.get_backend(), rows))
    return ColumnCodes(column.name, uploaded, column.missing << shift, column.size << shift)


def _check_unchanged(
    records: Any, columns: Sequence[CodedColumn], digits: Sequence[Digits], names: Sequence[str]
) -> None:
    """InputError unless the tables hold the records of each code that are known, and no others."""
    rows = fetch_integers(count_by_code(records, digits, len(columns) - len(digits)))
    for k, column in enumerate(columns):
        shift = digits[k].shift if k < len(digits) else 0
        for i, (expected, name) in enumerate(zip(column.counts, names, strict=True)):
            is_of_column = (rows["column"] == k) & (rows["i"] == i)
            counts = np.zeros(column.size + 1, dtype=np.int64)
            np.add.at(counts, rows["code"][is_of_column] >> shift, rows["n"][is_of_column])
            if counts[-1] or not np.array_equal(counts[:-1], expected):
                raise InputError(
                    f"Column {column.name!r} of {name} does not hold the values that were read of it before: "
                    "the table changed meanwhile, or the database takes different values for equal. Measure "
                    "a table that nobody writes to, or with the engine memory."
                )
