"""What is counted and fetched of tables in a database, stacked or not."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from disclosure_pipeline.counting.counts import DisclosureCounts
from disclosure_pipeline.counting.memory.nearest_records import Draw
from disclosure_pipeline.counting.relational.engine import count_in_database
from disclosure_pipeline.counting.relational.nearest import fetch_nearest
from disclosure_pipeline.counting.relational.records import fetch_codes
from disclosure_pipeline.counting.relational.staging import ReadTables
from disclosure_pipeline.counting.targets import CountRequest
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.runtime.progress import OnProgress, ignore_progress
from disclosure_pipeline.tables.levels import CodedColumn


class CountedTables(ABC):
    """The part of `opening.OpenedTables` that needs the records, which are counted where they are."""

    @property
    @abstractmethod
    def _read(self) -> ReadTables:
        """The tables, and what is known of their values."""

    def count(
        self, requests: Sequence[CountRequest], on_progress: OnProgress = ignore_progress
    ) -> list[DisclosureCounts]:
        """Count the records by coded columns, request by request."""
        return count_in_database(self._read, requests, on_progress)

    def code_records(self, columns: Sequence[CodedColumn], most: int, seed: int) -> Sequence[CodedColumn]:
        """Coded columns with a code for each of at most so many records of each table, drawn by the seed."""
        return fetch_codes(self._read, columns, most, seed)

    def find_nearest(self, columns: Sequence[CodedColumn], draw: Draw) -> list[list[IntArray]]:
        """The distances of GT records to the nearest ones, for each comparison that is drawn."""
        return fetch_nearest(self._read, columns, draw(columns))
