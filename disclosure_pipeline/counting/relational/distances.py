"""The distances of some GT records to the nearest of many in a database.

From small tables all records to be compared are fetched; from large ones only the combinations that agree
with a person in a block of columns, one record of each. The distances are the same as in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from disclosure_pipeline.counting.memory.nearest_records import (
    DISTANCES,
    NOBODY,
    ColumnDistances,
    ComparedTable,
    Comparison,
    form_blocks,
    measure_columns,
    nearest_of_all,
    nearest_of_candidates,
)
from disclosure_pipeline.counting.relational.coding import Digits, as_int64, count_rows, int64, word_columns
from disclosure_pipeline.counting.relational.staging import ReadTables, stage_all, store_codes
from disclosure_pipeline.counting.relational.transfer import fetch_integers, run_query, upload_temporarily
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.tables.levels import CodedColumn

_FETCHED = 1 << 20  # combinations at a time, about

Words = Sequence[IntArray]


def fetch_nearest(
    read: ReadTables, columns: Sequence[CodedColumn], comparisons: Iterable[Comparison]
) -> list[list[IntArray]]:
    """Return the result of `nearest_distances` for each comparison; `columns` are coded, not grouped.

    Records are numbered in the order of their codes. Raise InputError as `count_in_database` does.
    """
    return run_query(
        "The database did not return the nearest records", partial(_fetch_all, read, columns, comparisons)
    )


def _fetch_all(
    read: ReadTables, columns: Sequence[CodedColumn], comparisons: Iterable[Comparison]
) -> list[list[IntArray]]:
    with stage_all(read, columns) as staged:
        records = _NumberedRecords(staged.numbered, staged.columns, staged.digits)
        return [records.nearest(comparison) for comparison in comparisons]


@dataclass(frozen=True)
class _NumberedRecords:
    """Coded `rows` (i, r, q0, …), r being a number within the table; the columns' places are `digits`."""

    rows: Any
    columns: tuple[CodedColumn, ...]
    digits: tuple[Digits, ...]

    def nearest(self, comparison: Comparison) -> list[IntArray]:
        """Return the distance of each person to the nearest record of each table."""
        numbers = comparison.numbers
        distances = measure_columns(self.columns, numbers)
        persons = self._fetch(0, comparison.persons)
        tables = zip(comparison.tables, comparison.left_out, strict=True)
        if comparison.compares_all_pairs:
            return [self._nearest_of_all(distances, persons, table, own) for table, own in tables]
        expected: dict[tuple[int, ...], float] = {}

        def expect_candidates(block: Sequence[CodedColumn]) -> float:
            """Ask the database once for each block."""
            places = tuple(map(self._place, block))
            if places not in expected:
                expected[places] = self._expect_candidates(numbers, block)
            return expected[places]

        blocks = form_blocks(self.columns, comparison.tables, expect_candidates)
        return [
            self._nearest_in_blocks(distances, blocks, persons, table, own, expect_candidates)
            for table, own in tables
        ]

    def _nearest_of_all(
        self, distances: Sequence[ColumnDistances], persons: Words, table: ComparedTable, left_out: IntArray
    ) -> IntArray:
        positions = np.flatnonzero(table.counted)
        own = np.where(left_out < 0, -1, np.searchsorted(positions, left_out))
        fetched = self._fetch(table.table, positions)
        return nearest_of_all(self._between(distances, persons, fetched), *_everybody(persons, fetched), own)

    def _nearest_in_blocks(
        self,
        distances: Sequence[ColumnDistances],
        blocks: Sequence[Sequence[CodedColumn]],
        persons: Words,
        table: ComparedTable,
        left_out: IntArray,
        expect_candidates: Callable[[Sequence[CodedColumn]], float],
    ) -> IntArray:
        nearest = np.full((len(DISTANCES), len(left_out)), NOBODY)
        with self._counted(table) as rows:
            for block in blocks:
                step = max(1, int(_FETCHED / max(1.0, expect_candidates(block))))
                for start in range(0, len(left_out), step):
                    part = slice(start, start + step)
                    part_words = [words[part] for words in persons]
                    fetched, lone, number = self._fetch_candidates(rows, block, part_words)
                    if not len(lone):
                        continue
                    between = self._between(distances, part_words, fetched)
                    agreeing = [between[self._place(column)].column for column in block]
                    own = _find_lone(lone, number, left_out[part])
                    in_block = nearest_of_candidates(
                        between, [agreeing], *_everybody(part_words, fetched), own
                    )
                    nearest[:, part] = np.minimum(nearest[:, part], in_block)
        return nearest

    def _place(self, column: CodedColumn) -> int:
        return next(k for k, other in enumerate(self.columns) if other is column)

    def _between(
        self, distances: Sequence[ColumnDistances], persons: Words, fetched: Words
    ) -> list[ColumnDistances]:
        """Return the columns' distances between persons (table 0) and the fetched records (table 1)."""
        return [
            replace(
                column_distances,
                column=replace(
                    column, tables=tuple(store_codes(column, words, place) for words in (persons, fetched))
                ),
            )
            for column_distances, column, place in zip(distances, self.columns, self.digits, strict=True)
        ]

    def _fetch(self, table: int, positions: IntArray) -> Words:
        """Return the words of the records with these numbers, which ascend."""
        rows = self.rows.filter(self.rows["i"] == table)
        with _uploaded(rows, {"r": positions}) as wanted:
            fetched = fetch_integers(rows.semi_join(wanted, "r").select("r", *word_columns(rows)))
        order = np.argsort(fetched["r"])
        return [fetched[name][order] for name in word_columns(rows)]

    @contextmanager
    def _counted(self, table: ComparedTable) -> Iterator[Any]:
        """Yield the rows of a table that count."""
        rows = self.rows.filter(self.rows["i"] == table.table)
        is_minority = 2 * int(table.counted.sum()) <= len(table.counted)
        numbers = np.flatnonzero(table.counted if is_minority else ~table.counted)
        if not len(numbers):
            yield rows
            return
        with _uploaded(rows, {"r": numbers}) as uploaded:
            yield rows.semi_join(uploaded, "r") if is_minority else rows.anti_join(uploaded, "r")

    def _masked(self, block: Sequence[CodedColumn]) -> dict[int, int]:
        """Return the mask of a block's digits in each word that has any."""
        masks: dict[int, int] = {}
        for column in block:
            place = self.digits[self._place(column)]
            masks[place.word] = masks.get(place.word, 0) | place.mask
        return masks

    def _expect_candidates(self, numbers: Sequence[int], block: Sequence[CodedColumn]) -> float:
        """Return the average number of these tables' records that agree with one of them in a block."""
        masks = self._masked(block)
        rows = self.rows.filter(self.rows["i"].isin(numbers))
        codes = rows.select(**{f"m{word}": rows[f"q{word}"] & int64(mask) for word, mask in masks.items()})
        counts = codes.group_by([f"m{word}" for word in masks]).aggregate(n=count_rows)
        pairs = as_int64((counts["n"] * (counts["n"] - 1)).sum())
        fetched = fetch_integers(counts.aggregate(pairs=pairs, records=as_int64(counts["n"].sum())))
        records = int(fetched["records"][0])
        return int(fetched["pairs"][0]) / max(1, records * (records - 1)) * records

    def _fetch_candidates(
        self, rows: Any, block: Sequence[CodedColumn], persons: Words
    ) -> tuple[Words, IntArray, IntArray]:
        """Fetch the combinations that agree with a person in a block, and each one's records and lowest r."""
        masks = self._masked(block)
        names = [f"m{word}" for word in masks]
        codes = np.unique(np.column_stack([persons[word] & mask for word, mask in masks.items()]), axis=0)
        masked = rows.mutate(**{f"m{word}": rows[f"q{word}"] & int64(mask) for word, mask in masks.items()})
        with _uploaded(rows, dict(zip(names, codes.T, strict=True))) as wanted:
            agreeing = masked.semi_join(wanted, names)
            combinations = agreeing.group_by(word_columns(rows)).aggregate(
                n=count_rows, r=as_int64(agreeing["r"].min())
            )
            fetched = fetch_integers(combinations)
        return [fetched[name] for name in word_columns(rows)], fetched["n"], fetched["r"]


def _everybody(persons: Words, fetched: Words) -> tuple[IntArray, ComparedTable]:
    """Return the positions of all persons, and all fetched records as the table to compare with."""
    return np.arange(len(persons[0])), ComparedTable(1, np.ones(len(fetched[0]), dtype=bool))


def _find_lone(records: IntArray, number: IntArray, wanted: IntArray) -> IntArray:
    """Return, for each record of `wanted`, the place of the combination that it alone has, or -1."""
    lone = np.flatnonzero(records == 1)
    if not len(lone):
        return np.full(len(wanted), -1)
    lone = lone[np.argsort(number[lone])]
    place = np.minimum(np.searchsorted(number[lone], wanted), len(lone) - 1)
    return np.where(number[lone[place]] == wanted, lone[place], -1)


@contextmanager
def _uploaded(rows: Any, arrays: dict[str, IntArray]) -> Iterator[Any]:
    columns = {name: pa.array(np.ascontiguousarray(array), pa.int64()) for name, array in arrays.items()}
    with upload_temporarily(rows.get_backend(), pa.table(columns)) as uploaded:
        yield uploaded
