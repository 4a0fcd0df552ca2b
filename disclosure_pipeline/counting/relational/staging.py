"""Coded records in a temporary table of the database: all counts and draws are of this one state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from disclosure_pipeline.counting.counts import sample_positions
from disclosure_pipeline.counting.relational.coding import (
    ColumnCodes,
    Digits,
    as_comparable,
    code_records,
    count_by_code,
    lay_out_words,
    number_records,
    word_columns,
)
from disclosure_pipeline.counting.relational.transfer import (
    fetch_integers,
    run_query,
    store_temporarily,
    upload_temporarily,
)
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.measures.exact import IntArray, sum_by_position, total
from disclosure_pipeline.tables.coding import Distinct
from disclosure_pipeline.tables.levels import CodedColumn, StoredColumn


@dataclass(frozen=True)
class ReadTables:
    """Ibis tables in one database, GT first, and the values of their columns.

    `distinct`: for each column the values in each table, as in the database. Messages call the tables by
    `names`. `stacked`: columns have codes for GT and for all syntheses as one table, whose values are those
    of one synthesis after the other. `kept` holds the records coded by all columns.
    """

    tables: Sequence[Any]
    distinct: Mapping[Any, Sequence[Distinct]]
    names: Sequence[str]
    stacked: bool
    kept: KeptRecords


@dataclass
class StagedRecords:
    """Records of some tables by some columns, all of them keys: `rows` (i, q0, …), with their `digits`.

    Tables derived from them stay in the database until the `stack` closes.
    """

    read: ReadTables
    columns: tuple[CodedColumn, ...]
    rows: Any
    digits: tuple[Digits, ...]
    stack: ExitStack
    _numbered: Any = None

    @property
    def numbered(self) -> Any:
        """The rows with their numbers r, numbered once: see `number_records`."""
        if self._numbered is None:
            rows = number_records(self.rows, self.digits, self.stack)
            self._numbered = self.stack.enter_context(store_temporarily(rows))
        return self._numbered

    def are_of(self, read: ReadTables, columns: Sequence[CodedColumn]) -> bool:
        """Return whether these are the records of these tables by these columns."""
        return (
            self.read.stacked is read.stacked
            and [*map(id, self.read.tables)] == [*map(id, read.tables)]
            and [*map(id, self.columns)] == [*map(id, columns)]
        )


@dataclass
class KeptRecords:
    """The records staged last, which stay in the database until others are staged, or until `close`.

    All guards need the same columns of the same tables, which are coded once for them.
    """

    _staged: StagedRecords | None = None

    def stage(self, read: ReadTables, columns: Sequence[CodedColumn]) -> StagedRecords:
        """Return the records of these tables by these columns, coded anew unless they were staged last."""
        if self._staged is None or not self._staged.are_of(read, columns):
            self.close()
            with ExitStack() as stack:
                rows, digits = stack.enter_context(stage_records(read, columns))
                self._staged = StagedRecords(read, tuple(columns), rows, digits, stack.pop_all())
        return self._staged

    def close(self) -> None:
        """Drop the kept tables. Raise InputError if the database fails to."""
        staged, self._staged = self._staged, None
        if staged is not None:
            run_query("The database did not remove its temporary tables", staged.stack.close)


@contextmanager
def stage_records(
    read: ReadTables, keys: Sequence[CodedColumn], targets: Sequence[CodedColumn] = ()
) -> Iterator[tuple[Any, tuple[Digits, ...]]]:
    """Yield the coded records of all tables, and the places of the keys' codes in them.

    For each table, code i of a column is that of value i; its `counts` are the numbers of records. Raise
    InputError if the tables no longer hold the known values and numbers of records.
    """
    columns = [*keys, *targets]
    with ExitStack() as stack:
        coded, digits = code_tables(read, keys, targets, stack)
        records = stack.enter_context(store_temporarily(coded))
        counts = fetch_integers(count_by_code(records, digits, len(targets)))
        shifts = [place.shift for place in digits] + [0] * len(targets)
        check_unchanged(counts, columns, shifts, read.names)
        yield records, digits


def code_tables(
    read: ReadTables, keys: Sequence[CodedColumn], targets: Sequence[CodedColumn], stack: ExitStack
) -> tuple[Any, tuple[Digits, ...]]:
    """Return the expression of the coded records of all tables, and the places of the keys' codes in them.

    Uploaded tables exist until the stack closes.
    """
    import ibis

    columns = [*keys, *targets]
    digits = lay_out_words([key.size for key in keys])
    words = [place.word for place in digits]
    shifts = [place.shift for place in digits] + [0] * len(targets)
    coded = []
    for i, table in enumerate(read.tables):
        uploaded = [
            _upload_codes(read, i, k, column, shift, stack)
            for k, (column, shift) in enumerate(zip(columns, shifts, strict=True))
        ]
        number = min(i, 1) if read.stacked else i
        coded.append(code_records(table, number, uploaded[: len(keys)], words, uploaded[len(keys) :]))
    return ibis.union(*coded), digits


def _upload_codes(
    read: ReadTables, i: int, k: int, column: CodedColumn, shift: int, stack: ExitStack
) -> ColumnCodes:
    """Upload the codes of column k of table i, shifted to their place within a word."""
    table, values = read.tables[i], read.distinct[column.name][i].values
    uploaded = None
    if len(values):
        kind = as_comparable(table[column.name]).type().to_pyarrow()
        codes = _find_codes(read, i, column).astype(np.int64) << shift
        rows = pa.table({f"v{k}": pa.array(values, from_pandas=True).cast(kind), f"m{k}": codes})
        uploaded = stack.enter_context(upload_temporarily(table.get_backend(), rows))
    return ColumnCodes(column.name, uploaded, column.missing << shift, column.size << shift)


def _find_codes(read: ReadTables, i: int, column: CodedColumn) -> IntArray:
    """Return the codes of the values of table i."""
    values = [len(distinct.values) for distinct in read.distinct[column.name]]
    number, before = (1, sum(values[1:i])) if read.stacked and i else (i, 0)
    return column.codes[number][before : before + values[i]]


def check_unchanged(
    rows: Mapping[str, IntArray], columns: Sequence[CodedColumn], shifts: Sequence[int], names: Sequence[str]
) -> None:
    """Raise InputError unless the tables hold the known number of records of each code, and no others.

    `rows` are those of `count_by_code`, with each column's codes shifted by its entry of `shifts`.
    """
    for k, (column, shift) in enumerate(zip(columns, shifts, strict=True)):
        for i, (expected, name) in enumerate(zip(column.counts, names, strict=True)):
            selected = (rows["column"] == k) & (rows["i"] == i)
            codes, records = rows["code"][selected] >> shift, rows["n"][selected]
            counts = sum_by_position(codes, records, column.size + 1)
            if counts[-1] or not np.array_equal(counts[:-1], expected):
                raise InputError(
                    f"Column {column.name!r} of {name} no longer holds the values that were read from it: "
                    "the table changed meanwhile, or the database takes different values for equal. Measure "
                    "a table that nobody writes to, or use the engine memory."
                )


def fetch_codes(read: ReadTables, columns: Sequence[CodedColumn], limit: int, seed: int) -> list[CodedColumn]:
    """Return the columns with the codes of at most `limit` records of each table, drawn by the seed.

    As databases do not order records, these are ordered by their codes: the same tables always give the same
    draw. Raise InputError as `find_in_database` does.
    """
    return run_query("The database did not return records", partial(_fetch_codes, read, columns, limit, seed))


def _fetch_codes(
    read: ReadTables, columns: Sequence[CodedColumn], limit: int, seed: int
) -> list[CodedColumn]:
    N = [total(counts) for counts in columns[0].counts]
    staged = read.kept.stage(read, columns)
    words_by_table = [
        _fetch_words(staged, table, positions)
        for table, positions in enumerate(sample_positions(N, limit, seed))
    ]
    return [
        replace(column, tables=tuple(store_codes(column, words, place) for words in words_by_table))
        for column, place in zip(columns, staged.digits, strict=True)
    ]


def _fetch_words(staged: StagedRecords, table: int, positions: IntArray | None) -> list[IntArray]:
    """Fetch the words of a table's records at these positions (None: all), sorted; an array for each word."""
    names = word_columns(staged.rows)
    if positions is None:
        fetched = fetch_integers(staged.rows.filter(staged.rows["i"] == table).select(names))
    else:
        numbered = staged.numbered
        drawn = pa.table({"r": pa.array(positions, pa.int64())})
        with upload_temporarily(numbered.get_backend(), drawn) as uploaded:
            rows = numbered.filter(numbered["i"] == table)
            fetched = fetch_integers(rows.semi_join(uploaded, "r").select(names))
    order = np.lexsort([fetched[name] for name in reversed(names)])
    return [fetched[name][order] for name in names]


def store_codes(column: CodedColumn, words: Sequence[IntArray], place: Digits) -> StoredColumn:
    """Return a column of records given as words, in which it has this place."""
    codes = (words[place.word] & place.mask) >> place.shift
    counts = np.bincount(codes, minlength=column.size)
    stored = np.where(codes == column.missing, -1, codes).astype(np.min_scalar_type(-column.size))
    return StoredColumn(stored, 0, np.arange(column.size), counts)
