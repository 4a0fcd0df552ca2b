"""GT, and all its syntheses as one table, counted in their database."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from disclosure_pipeline.counting.relational.counted_tables import CountedTables
from disclosure_pipeline.counting.relational.staging import KeptRecords, ReadTables
from disclosure_pipeline.runtime.progress import OnProgress, ignore_progress
from disclosure_pipeline.tables.alignment import Distinct, code_distinct_columns, stack_distinct
from disclosure_pipeline.tables.frames import stack_frames
from disclosure_pipeline.tables.grouping import Grouping
from disclosure_pipeline.tables.identifiers import identifying_columns
from disclosure_pipeline.tables.levels import CodedColumn
from disclosure_pipeline.tables.messages import table_names
from disclosure_pipeline.tables.raw_columns import Change

_STACKED = 2  # tables: GT, and all syntheses as one

Values = Mapping[str, Sequence[Distinct]]


@dataclass(frozen=True)
class StackedDatabaseTables(CountedTables):
    """Two tables, as `opening.OpenedTables`: the records of all syntheses are stacked once they are coded.

    `opened` are GT and each synthesis, `raw` their values as the database has them. `known` gives the values
    of some columns as they are compared, `draw` some records of each table; `kept` is that of the tables.
    """

    opened: Sequence[Any]
    columns: tuple[tuple[str, ...], ...]
    engine_description: str
    ledger: tuple[Change, ...]
    raw: Values
    known: Callable[[Sequence[str], OnProgress], Values]
    draw: Callable[[int, int], list[pd.DataFrame]]
    kept: KeptRecords

    def code(
        self, columns: Sequence[Any], grouping: Grouping, on_progress: OnProgress = ignore_progress
    ) -> list[CodedColumn]:
        """Columns as codes over the levels of all tables, not grouped yet: a code for each value."""
        known = self.known(columns, on_progress)
        distinct = {name: _stack(known[name]) for name in columns}
        return code_distinct_columns(distinct, grouping, table_names(_STACKED))

    @property
    def _read(self) -> ReadTables:
        return ReadTables(self.opened, self.raw, table_names(_STACKED), stacked=True, kept=self.kept)

    def identifiers(self, columns: Sequence[CodedColumn]) -> list[tuple[int, Any]]:
        """The (synthesis, column) of GT's columns whose values tell which record it is."""
        stacked = {name: _stack(of_tables) for name, of_tables in self.raw.items()}
        tables = [{name: of_tables[i] for name, of_tables in stacked.items()} for i in range(2)]
        return identifying_columns(columns, tables)

    def stacked(self) -> StackedDatabaseTables:
        """The same: there is one synthetic table."""
        return self

    def sample(self, most: int, seed: int) -> list[pd.DataFrame]:
        """Invented tables: see `DatabaseTables`; at most so many records of each."""
        ground_truth, *syntheses = self.draw(most, seed)
        return [ground_truth, stack_frames(syntheses).head(most)]


def _stack(tables: Sequence[Distinct]) -> list[Distinct]:
    """The values of a column of GT and of all syntheses as one table."""
    return [tables[0], stack_distinct(tables[1:])]
