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

from disclosure_pipeline.engines import relational_coding as coding
from disclosure_pipeline.engines.connections import (
    asked,
    connected,
    fetched,
    numbers,
    opened_table,
    stored,
    uploaded,
)
from disclosure_pipeline.engines.counted import Counted, OfTarget
from disclosure_pipeline.engines.job import Target
from disclosure_pipeline.engines.relational_coding import Digits, Mapped
from disclosure_pipeline.engines.relational_targets import counted_keys, measure
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.measures.exact import IntArray, total
from disclosure_pipeline.measures.grouped import Grouped
from disclosure_pipeline.progress import Progress, silent
from disclosure_pipeline.tables.alignment import table_names
from disclosure_pipeline.tables.distinct import Distinct
from disclosure_pipeline.tables.levels import CodedColumn

_DONE = "Counting in the database"
_FAILED = "The database did not do what counting needs"


@contextmanager
def open_tables(sources: Sequence[Any], engine: str, names: Sequence[str]) -> Iterator[list[Any]]:
    """Tables of one database, each as `open_table` opens it; what was brought there is gone after the block.

    `engine` is a URL, or "auto" where a table of Ibis says which database it is. `names` are the tables' in
    messages. Raises InputError where there is no such database or table, or there are several databases.
    """
    of_ibis = asked("Databases cannot be used", lambda: _of_ibis(sources))
    if of_ibis and engine != "auto":
        raise InputError("Tables of Ibis are counted in their own database: leave the engine to 'auto'.")
    own = asked("The database of the tables is not known", lambda: [each.get_backend() for each in of_ibis])
    if any(backend is not own[0] for backend in own):
        raise InputError("The tables are in several databases: bring them to one.")
    with ExitStack() as stack:
        backend = own[0] if own else stack.enter_context(connected(engine))
        opened = (opened_table(backend, each, name) for each, name in zip(sources, names, strict=True))
        yield [stack.enter_context(table) for table in opened]


def _of_ibis(sources: Sequence[Any]) -> list[Any]:
    import ibis.expr.types as ir

    return [source for source in sources if isinstance(source, ir.Table)]


def records(table: Any) -> int:
    """The number of records of a table. InputError where the database does not answer."""
    found = asked("The records cannot be counted", lambda: numbers(table.aggregate(n=table.count())))
    return int(found["n"][0])


def distinct(table: Any, column: str, most: int, what: str) -> Distinct:
    """The different values of a column, in the type that the database gives them, and their records.

    NULL and NaN are missing. `what` names the table. Raises InputError where there is no such column, or
    there are more than `most` different values: they are never fetched all, then.
    """
    if column not in table.columns:
        raise InputError(
            f"Column {column!r} is not in {what}. Its columns are {', '.join(map(repr, table.columns))}."
        )

    def answer() -> Any:
        grouped = table.select(value=coding.comparable(table[column])).group_by("value")
        return fetched(grouped.aggregate(n=lambda rows: rows.count()).limit(most + 2))

    found = asked(f"The values of column {column!r} of {what} cannot be fetched", answer)
    here = found.filter(pc.is_valid(found["value"]))
    if len(here) > most:
        raise InputError(
            f"Column {column!r} of {what} has more than {most} different values, too many to align: "
            "group them in the database, leave the column out, or read the table into memory."
        )
    counts = np.asarray(here["n"].cast(pa.int64()))
    missing = total(np.asarray(found["n"].cast(pa.int64()))) - total(counts)
    values = pd.Series(pd.arrays.ArrowExtensionArray(here["value"]), name=column)
    return Distinct(values, np.append(counts, missing))


def count(
    tables: Sequence[Any],
    distincts: Mapping[Any, Sequence[Distinct]],
    keys: Sequence[CodedColumn],
    targets: Sequence[Target],
    done: Progress = silent,
) -> Counted:
    """Count GT (the first table) and all syntheses, tables of Ibis in one database.

    The columns are coded over their different values, `distincts`: for each table, code i of a column is
    that of value i; its `counts` are the numbers of records. `done` is told how far the work is.

    Raises InputError where the tables do not hold what `distincts` says (they changed, or the database does
    not compare values by value), where a number would not fit 64 bits, and where the database fails. Nothing
    is left in the database in any case.
    """
    return asked(_FAILED, partial(_count, tables, distincts, keys, targets, done))


def _count(
    tables: Sequence[Any],
    distincts: Mapping[Any, Sequence[Distinct]],
    keys: Sequence[CodedColumn],
    targets: Sequence[Target],
    done: Progress,
) -> Counted:
    columns = [*keys, *(target.column for target in targets)]
    digits = coding.layout([key.size for key in keys])
    found: list[tuple[OfTarget, ...]] = []
    pairs: list[tuple[Grouped, ...]] = []
    with ExitStack() as stack:
        coded = [_coded(table, i, distincts, columns, digits, stack) for i, table in enumerate(tables)]
        records = stack.enter_context(stored(_together(coded)))
        _check(records, columns, digits)
        done(_DONE, 1, 2 + len(targets))
        N = [total(counts) for counts in keys[0].counts]
        rows, of_keys = counted_keys(records, digits, N, stack)
        done(_DONE, 2, 2 + len(targets))
        for k, target in enumerate(targets):
            of_target, of_pairs = measure(rows, k, target)
            found.append(of_target)
            pairs.append(of_pairs)
            done(_DONE, 3 + k, 2 + len(targets))
    return Counted(of_keys, tuple(found), tuple(pairs))


def _together(tables: Sequence[Any]) -> Any:
    import ibis

    return ibis.union(*tables)


def _coded(
    table: Any,
    i: int,
    distincts: Mapping[Any, Sequence[Distinct]],
    columns: Sequence[CodedColumn],
    digits: Sequence[Digits],
    stack: ExitStack,
) -> Any:
    """The coded records of a table; what is uploaded for them is there as long as the stack."""
    shifts = [each.shift for each in digits] + [0] * (len(columns) - len(digits))
    mapped = [
        _mapped(table, column, column.codes[i], distincts[column.name][i], shift, stack)
        for column, shift in zip(columns, shifts, strict=True)
    ]
    words = [each.word for each in digits]
    return coding.coded(table, i, mapped[: len(words)], words, mapped[len(words) :])


def _mapped(
    table: Any, column: CodedColumn, codes: IntArray, distinct: Distinct, shift: int, stack: ExitStack
) -> Mapped:
    """How a column of a table is coded; keys have their place within a word, `shift` bits from its end."""
    uploads = None
    if len(distinct.values):
        kind = coding.comparable(table[column.name]).type().to_pyarrow()
        values = pa.array(distinct.values, from_pandas=True).cast(kind)
        data = pa.table({"value": values, "code": codes[: len(values)].astype(np.int64) << shift})
        uploads = stack.enter_context(uploaded(table.get_backend(), data))
    return Mapped(column.name, uploads, column.missing << shift, column.size << shift)


def _check(rows: Any, columns: Sequence[CodedColumn], digits: Sequence[Digits]) -> None:
    """Whether the tables hold what is known of their columns: the records of each code, and no others."""
    found = numbers(coding.by_code(rows, digits, len(columns) - len(digits)))
    for k, column in enumerate(columns):
        shift = digits[k].shift if k < len(digits) else 0
        for i, (expected, name) in enumerate(
            zip(column.counts, table_names(len(column.counts)), strict=True)
        ):
            here = (found["column"] == k) & (found["i"] == i)
            counts = np.zeros(column.size + 1, dtype=np.int64)
            np.add.at(counts, found["code"][here] >> shift, found["n"][here])
            if counts[-1] or not np.array_equal(counts[:-1], expected):
                raise InputError(
                    f"Column {column.name!r} of {name} does not hold the values that were read of it before: "
                    "the table changed meanwhile, or the database takes different values for equal. Measure "
                    "a table that nobody writes to, or with the engine memory."
                )
