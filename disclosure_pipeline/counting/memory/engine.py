"""The engine `memory`: pandas frames, whose records are counted part by part, in threads."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pandas as pd

from disclosure_pipeline.counting.cells import CellParts
from disclosure_pipeline.counting.counts import CountRequest, sample_positions
from disclosure_pipeline.counting.memory import cell_tables
from disclosure_pipeline.counting.memory.packing import Packing, table_bits, targets_packed_together
from disclosure_pipeline.counting.memory.partial_records import find_records
from disclosure_pipeline.counting.memory.radix import Job, Limits, build_radix, gains_by_loops
from disclosure_pipeline.counting.memory.sorting import find_sorted_cells
from disclosure_pipeline.counting.opening import Engine
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.runtime.machine import run_in_threads, threads_for
from disclosure_pipeline.runtime.progress import OnProgress, ignore_progress
from disclosure_pipeline.tables.additions import RealValues, find_real_values_in, may_have_own_values
from disclosure_pipeline.tables.alignment import (
    as_frame,
    check_frames,
    check_values,
    is_frame,
    stack_frames,
)
from disclosure_pipeline.tables.coding import code_column, code_stored, store_column
from disclosure_pipeline.tables.contract import CanonicalTable, read_canonical
from disclosure_pipeline.tables.dictionary import Contract
from disclosure_pipeline.tables.encoding import Change
from disclosure_pipeline.tables.grouping import Grouping, grouping_of
from disclosure_pipeline.tables.inference import canonical_frames
from disclosure_pipeline.tables.levels import CodedColumn, count_codes
from disclosure_pipeline.tables.messages import table_names
from disclosure_pipeline.tables.missing import MissingCodes, blank_frames
from disclosure_pipeline.tables.sources import Location, is_location, read_raw


@dataclass
class MemoryEngine(Engine):
    """The engine for tables that fit into memory: see `opening.Engine`."""

    name: str = "memory"
    description: str = "memory"
    holds_frames: bool = True
    gives_records: bool = True

    @contextmanager
    def open(
        self,
        tables: Sequence[Any],
        names: Sequence[str],
        numeric: Collection[Any] = (),
        missing: MissingCodes | None = None,
    ) -> Iterator[FramesInMemory]:
        """Open frames as they are, or read files; with files, column types are inferred for all tables."""
        frames = [
            read_raw(table, name) if is_location(table) else table
            for table, name in zip(tables, names, strict=True)
        ]
        ledger: tuple[Change, ...] = ()
        from_files = any(map(is_location, tables))
        if missing:
            frames, ledger = read_without_codes(frames, names, numeric, missing, from_files=from_files)
        elif from_files and all(map(is_frame, frames)):
            frames, ledger = canonical_frames([*map(as_frame, frames, names)], names, numeric)
        yield FramesInMemory(check_frames(frames, names), self.description, ledger, tuple(names))

    def read(self, location: Location, contract: Contract, stack: ExitStack) -> CanonicalTable:
        """Read a table in canonical form: see `read_canonical`."""
        return read_canonical(location, contract)

    @contextmanager
    def open_read(self, tables: Sequence[CanonicalTable]) -> Iterator[FramesInMemory]:
        """Open tables that were read in canonical form."""
        ledger = tuple(change for table in tables for change in table.ledger)
        yield FramesInMemory(tuple(table.frame for table in tables), self.description, ledger)


def read_without_codes(
    tables: Sequence[Any],
    names: Sequence[str],
    numeric: Collection[Any],
    missing: MissingCodes,
    *,
    from_files: bool,
) -> tuple[list[pd.DataFrame], tuple[Change, ...]]:
    """Return frames without codes of missing values; types are inferred `from_files`, or where a code was."""
    blanked, changed, ledger = blank_frames([*map(as_frame, tables, names)], names, missing)
    frames, further = canonical_frames(blanked, names, numeric, None if from_files else changed)
    return frames, (*ledger, *further)


@dataclass(frozen=True)
class FramesInMemory:
    """GT (first) and its syntheses as frames: see `opening.OpenedTables`.

    Messages call the tables by `names`, by default GT and its syntheses.
    """

    frames: tuple[pd.DataFrame, ...]
    engine_description: str
    ledger: tuple[Change, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[tuple[Any, ...], ...]:
        """The names of each table's columns."""
        return tuple(tuple(frame.columns) for frame in self.frames)

    @property
    def records(self) -> tuple[int, ...]:
        """The number of records of each table."""
        return tuple(len(frame) for frame in self.frames)

    def code(
        self, columns: Sequence[Any], grouping: Grouping, on_progress: OnProgress = ignore_progress
    ) -> list[CodedColumn]:
        """Return columns as a code for each record, over the levels of all tables, not grouped yet."""
        series = {name: [frame[name] for frame in self.frames] for name in columns}
        names = self.names or table_names(len(self.frames))
        kinds = {name: check_values(name, series[name], grouping, names) for name in columns}
        records, count = sum(self.records), count_codes
        if gains_by_loops(records):
            on_progress("Loading or compiling the loops", 0, 0)
            from disclosure_pipeline.counting.memory import loops

            count = loops.count_codes
        storing = [partial(store_column, one, count) for name in columns for one in series[name]]
        stored = iter(run_in_threads(storing, threads_for(records)))
        coding = [
            partial(code_stored, name, kinds[name], [next(stored) for _ in self.frames]) for name in columns
        ]
        return run_in_threads(coding, threads_for(records))

    def leaves_out_each(self, request: CountRequest) -> bool:
        """Return True: each key is left out in one pass."""
        return True

    def find_cells(
        self, requests: Sequence[CountRequest], on_progress: OnProgress = ignore_progress
    ) -> CellParts:
        """Yield the cells of columns coded here, grouped or not: see `OpenedTables`."""
        for number, request in enumerate(requests):
            yield from find_in_memory(request, Limits(), on_progress, number)

    def find_real_values(self, columns: Sequence[CodedColumn]) -> list[RealValues]:
        """Return the columns like identifiers of which SD has GT's values, of all columns, coded or not."""
        names = self.names or table_names(len(self.frames))
        return find_real_values_in(columns, self.frames, names, may_have_own_values, _code_if_comparable)

    def only(self, tables: Sequence[int]) -> FramesInMemory:
        """Return some of the tables, by number and in this order."""
        names = self.names or table_names(len(self.frames))
        chosen = tuple(names[i] for i in tables)
        ledger = tuple(change for change in self.ledger if change.table in chosen)
        return replace(self, frames=tuple(self.frames[i] for i in tables), names=chosen, ledger=ledger)

    def stack_syntheses(self) -> FramesInMemory:
        """Return GT and, as a second table, all syntheses stacked; only columns that all tables have."""
        ground_truth, *syntheses = self.frames
        return replace(self, frames=(ground_truth, stack_frames(syntheses)), names=())

    def with_columns(self, names: Sequence[Any]) -> FramesInMemory:
        """Return the tables with these GT columns added, empty in SD."""
        ground_truth, *syntheses = self.frames
        return replace(self, frames=(ground_truth, *(_add_empty(frame, names) for frame in syntheses)))

    def code_records(self, columns: Sequence[CodedColumn], limit: int, seed: int) -> Sequence[CodedColumn]:
        """Return columns with the codes of at most `limit` records of each table, drawn by the seed."""
        if max(self.records) <= limit:
            return columns
        positions = sample_positions(self.records, limit, seed)
        return [column.draw(positions) for column in columns]

    def sample(self, limit: int, seed: int) -> list[pd.DataFrame]:
        """Draw at most `limit` records of each table, in their order."""
        return [
            frame if positions is None else frame.iloc[positions]
            for frame, positions in zip(self.frames, sample_positions(self.records, limit, seed), strict=True)
        ]


def _code_if_comparable(
    name: Any, columns: tuple[pd.Series[Any], pd.Series[Any]], names: tuple[str, str]
) -> CodedColumn | None:
    try:
        return code_column(name, columns, names)
    except InputError:
        return None


def _add_empty(frame: pd.DataFrame, names: Sequence[Any]) -> pd.DataFrame:
    widened = frame.copy(deep=False)
    for name in names:
        widened[name] = pd.Series(None, index=frame.index, dtype=object)
    return widened


def code_sample(frames: Sequence[pd.DataFrame], columns: Sequence[CodedColumn]) -> list[CodedColumn]:
    """Code these columns of a sample anew, over the levels that it has."""
    return FramesInMemory(tuple(frames), "").code([column.name for column in columns], grouping_of())


def find_in_memory(
    request: CountRequest, limits: Limits, on_progress: OnProgress = ignore_progress, number: int = 0
) -> CellParts:
    """Yield the cells of GT and all syntheses, the tables of the request's columns."""
    if request.left_out:
        yield from find_records(request.keys, request.syntheses, limits, number=number)
        return
    targets, records = request.targets, tuple(len(table.stored) for table in request.keys[0].tables)
    widest = max((target.bits for target in targets), default=0)
    # The code of the keys leaves room for the table, and for the widest target.
    radix = build_radix(request.keys, records, 1 << max(0, limits.bits - table_bits(len(records)) - widest))
    job = Job(request, radix, records, limits, on_progress, number)
    largest_table = min(limits.table, sum(records))  # entries: a larger one is slower than sorting
    small = [i for i, target in enumerate(targets) if radix.size * target.column.size <= largest_table]
    to_sort = [i for i in range(len(targets)) if i not in small]
    has_keys = bool(small) or (not targets and radix.size <= largest_table)
    if job.gains_by_loops if has_keys and not to_sort else job.is_compiled:
        job.report("Loading or compiling the loops")(0, 0)
    if has_keys:
        codes, counts = cell_tables.code_keys(job)
        yield cell_tables.find_keys(job, counts)
        yield from cell_tables.find_in_tables(job, codes, small)
    groups = list(targets_packed_together(job, to_sort))
    for group in groups or ([] if has_keys else [[]]):
        packed = tuple(targets[i] for i in group)
        if job.is_compiled:
            from disclosure_pipeline.counting.memory.scanning import find_scanned_cells

            yield from find_scanned_cells(job, Packing(radix, packed), group, with_keys=not has_keys)
        if not job.is_compiled or (request.together and len(request.syntheses) > 1):
            packing = Packing(radix, packed, len(records))
            yield find_sorted_cells(job, packing, group, each=not job.is_compiled, with_keys=not has_keys)
        has_keys = True
