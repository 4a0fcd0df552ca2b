"""Tables that are data frames, opened to be counted in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any

import pandas as pd

from disclosure_pipeline.counting.counts import DisclosureCounts
from disclosure_pipeline.counting.memory.engine import count_in_memory
from disclosure_pipeline.counting.memory.nearest_records import Draw, nearest_distances
from disclosure_pipeline.counting.memory.radix import Limits
from disclosure_pipeline.counting.memory.whole_records import count_whole_records
from disclosure_pipeline.counting.partitioned.batches import batches_in_memory
from disclosure_pipeline.counting.partitioned.engine import count_in_parts
from disclosure_pipeline.counting.targets import CountRequest, columns_of_requests, sample_positions
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.runtime.machine import run_in_threads, threads_for
from disclosure_pipeline.runtime.progress import OnProgress, ignore_progress
from disclosure_pipeline.tables.additions import values_identify
from disclosure_pipeline.tables.alignment import check_values
from disclosure_pipeline.tables.coding import code_column_of_kind
from disclosure_pipeline.tables.encoding import Change
from disclosure_pipeline.tables.frames import stack_frames
from disclosure_pipeline.tables.grouping import Grouping, grouping_of
from disclosure_pipeline.tables.levels import CodedColumn
from disclosure_pipeline.tables.messages import table_names


@dataclass(frozen=True)
class FramesInMemory:
    """GT (first) and its syntheses as frames: see `opening.OpenedTables`.

    `in_parts`: whether records are counted in parts, which wait on the disk, to need less memory. `names`
    are the tables' in messages; by default of GT and its syntheses.
    """

    frames: tuple[pd.DataFrame, ...]
    engine_description: str
    in_parts: bool = False
    ledger: tuple[Change, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[tuple[Any, ...], ...]:
        """The names of each table's columns."""
        return tuple(tuple(frame.columns) for frame in self.frames)

    @property
    def sorts_whole_records(self) -> bool:
        """True if all codes may be in memory at once."""
        return not self.in_parts

    @property
    def records(self) -> tuple[int, ...]:
        """The number of records of each table."""
        return tuple(len(frame) for frame in self.frames)

    def code(
        self, columns: Sequence[Any], grouping: Grouping, on_progress: OnProgress = ignore_progress
    ) -> list[CodedColumn]:
        """Columns as codes over the levels of all tables, not grouped yet: a code for each record."""
        series = {name: [frame[name] for frame in self.frames] for name in columns}
        names = self.names or table_names(len(self.frames))
        kinds = {name: check_values(name, series[name], grouping, names) for name in columns}
        coding = [partial(code_column_of_kind, name, kinds[name], series[name]) for name in columns]
        return run_in_threads(coding, threads_for(sum(self.records)))

    def count(
        self, requests: Sequence[CountRequest], on_progress: OnProgress = ignore_progress
    ) -> list[DisclosureCounts]:
        """Count the records by columns that were coded here, grouped or not."""
        if self.in_parts:
            return count_in_parts(requests, batches_in_memory(columns_of_requests(requests)), on_progress)
        return [_count(request, on_progress) for request in requests]

    def identifiers(self, columns: Sequence[CodedColumn]) -> list[tuple[int, Any]]:
        """Return the (synthesis, column) of columns, coded or not, whose values tell which record it is."""
        ground_truth, *syntheses = self.frames
        return [
            (synthesis, column)
            for synthesis, frame in enumerate(syntheses, start=1)
            for column in frame.columns
            if column in ground_truth.columns and values_identify(ground_truth[column], frame[column])
        ]

    def only(self, tables: Sequence[int]) -> FramesInMemory:
        """Return some of the tables, in this order."""
        names = self.names or table_names(len(self.frames))
        chosen = tuple(names[i] for i in tables)
        ledger = tuple(change for change in self.ledger if change.table in chosen)
        return replace(self, frames=tuple(self.frames[i] for i in tables), names=chosen, ledger=ledger)

    def stacked(self) -> FramesInMemory:
        """GT, and all the syntheses as one table, of the columns that all of them have."""
        ground_truth, *syntheses = self.frames
        return replace(self, frames=(ground_truth, stack_frames(syntheses)), names=())

    def with_unit(self, unit: Any) -> FramesInMemory:
        """Return the tables with GT's column `unit`, empty in SD."""
        ground_truth, *syntheses = self.frames
        return replace(self, frames=(ground_truth, *(_add_empty(frame, unit) for frame in syntheses)))

    def code_records(self, columns: Sequence[CodedColumn], most: int, seed: int) -> Sequence[CodedColumn]:
        """Coded columns with a code for each of at most so many records of each table, drawn by the seed."""
        if max(self.records) <= most:
            return columns
        positions = sample_positions(self.records, most, seed)
        return [column.draw(positions) for column in columns]

    def find_nearest(self, columns: Sequence[CodedColumn], draw: Draw, seed: int) -> list[list[IntArray]]:
        """Return the distances of GT records to the nearest ones, for each comparison that is drawn."""
        return [nearest_distances(columns, comparison) for comparison in draw(columns, seed)]

    def sample(self, most: int, seed: int) -> list[pd.DataFrame]:
        """At most so many records of each table, drawn by the seed, in their order."""
        return [
            frame if positions is None else frame.iloc[positions]
            for frame, positions in zip(self.frames, sample_positions(self.records, most, seed), strict=True)
        ]


def _add_empty(frame: pd.DataFrame, name: Any) -> pd.DataFrame:
    widened = frame.copy(deep=False)
    widened[name] = pd.Series(None, index=frame.index, dtype=object)
    return widened


def code_drawn(frames: Sequence[pd.DataFrame], columns: Sequence[CodedColumn]) -> list[CodedColumn]:
    """These columns of records that were drawn, coded anew over their levels."""
    return FramesInMemory(tuple(frames), "").code([column.name for column in columns], grouping_of())


def _count(request: CountRequest, on_progress: OnProgress) -> DisclosureCounts:
    """Return what is asked for; where it is no target, many combinations are sorted in one go."""
    is_small = prod(column.size for column in request.keys) <= Limits().table
    if request.targets or (is_small and not request.by_level):
        return count_in_memory(request.keys, request.targets, on_progress, together=request.together)
    return count_whole_records(request.keys, request.by_level)
