"""Coded records that are fetched from a database, some of each table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from disclosure_pipeline.counting.relational.coding import Digits, word_columns
from disclosure_pipeline.counting.relational.connections import run_query
from disclosure_pipeline.counting.relational.staging import ReadTables, StagedRecords, stage_all
from disclosure_pipeline.counting.relational.transfer import fetch_integers, upload_temporarily
from disclosure_pipeline.counting.samples import sample_positions
from disclosure_pipeline.measures.exact import IntArray, total
from disclosure_pipeline.tables.levels import CodedColumn, StoredColumn


def fetch_codes(read: ReadTables, columns: Sequence[CodedColumn], most: int, seed: int) -> list[CodedColumn]:
    """The columns with a code for each of at most so many records of each table, drawn by the seed.

    A database has no order of records. They are taken in that of their codes, so that the same tables always
    give the same draw. InputError as `count_in_database`.
    """
    return run_query("The database did not give records", partial(_fetch_codes, read, columns, most, seed))


def _fetch_codes(read: ReadTables, columns: Sequence[CodedColumn], most: int, seed: int) -> list[CodedColumn]:
    N = [total(counts) for counts in columns[0].counts]
    with stage_all(read, columns) as staged:
        words = [
            _fetch_words(staged, table, positions)
            for table, positions in enumerate(sample_positions(N, most, seed))
        ]
    return [
        replace(column, tables=tuple(store_codes(column, of_table, place) for of_table in words))
        for column, place in zip(columns, staged.digits, strict=True)
    ]


def _fetch_words(staged: StagedRecords, table: int, positions: IntArray | None) -> list[IntArray]:
    """The key combinations of some records of a table (None: of all), in order; an array a word."""
    names = word_columns(staged.rows)
    if positions is None:
        fetched = fetch_integers(staged.rows.filter(staged.rows["i"] == table).select(names))
    else:
        numbered = staged.numbered
        drawn = pa.table({"r": pa.array(positions, pa.int64())})
        with upload_temporarily(numbered.get_backend(), drawn) as uploaded:
            of_table = numbered.filter(numbered["i"] == table)
            fetched = fetch_integers(of_table.semi_join(uploaded, "r").select(names))
    order = np.lexsort([fetched[name] for name in reversed(names)])
    return [fetched[name][order] for name in names]


def store_codes(column: CodedColumn, words: Sequence[IntArray], place: Digits) -> StoredColumn:
    """The codes of a column whose place in the words of some records this is."""
    codes = (words[place.word] & place.mask) >> place.shift
    counts = np.bincount(codes, minlength=column.size)
    stored = codes.astype(np.min_scalar_type(-column.size))
    return StoredColumn(stored, 0, np.arange(column.size), counts)
