"""The records counted by all columns that the tables share, and by some: by all but one, and so on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from disclosure_pipeline.counting.counts import DisclosureCounts, KeyCounts
from disclosure_pipeline.counting.memory.opened_frames import FramesInMemory
from disclosure_pipeline.counting.memory.partial_records import count_records
from disclosure_pipeline.counting.memory.whole_records import count_copies, count_whole_records
from disclosure_pipeline.counting.opening import OpenedTables
from disclosure_pipeline.counting.targets import CountRequest
from disclosure_pipeline.evaluation.copies import TARGETS_ALONE
from disclosure_pipeline.measures.copies import HitCounts
from disclosure_pipeline.runtime.progress import OnProgress, ignore_progress
from disclosure_pipeline.tables.grouping import Grouping
from disclosure_pipeline.tables.kinds import Kind
from disclosure_pipeline.tables.levels import CodedColumn
from disclosure_pipeline.tables.messages import names_in_all

WITHOUT_NUMBERS = "all but numbers"
"""Numbers are easily moved, rounded or exchanged together, and a record is found again by the others."""


@dataclass(frozen=True)
class RecordSets:
    """`whole`: the counts of each synthesis by all columns.

    `columns`: label -> a set of columns; `partial`: label -> the hits of each synthesis by these.
    """

    whole: Sequence[KeyCounts]
    columns: Mapping[str, Sequence[CodedColumn]]
    partial: Mapping[str, Sequence[HitCounts]]


def code_shared_columns(
    opened: OpenedTables, grouping: Grouping, on_progress: OnProgress
) -> dict[Any, CodedColumn]:
    """The columns that all tables have, in GT's order, by name: coded, not grouped. InputError as `code`."""
    shared = names_in_all(opened.columns)
    return {column.name: column for column in opened.code(shared, grouping, on_progress)}


def count_record_sets(
    opened: OpenedTables,
    requests: Sequence[CountRequest],
    columns: Sequence[CodedColumn],
    targets: Sequence[Any],
    on_progress: OnProgress = ignore_progress,
) -> tuple[list[DisclosureCounts], RecordSets]:
    """What else is requested, and the record sets, in one pass over the records where they are read.

    `columns` are coded, not grouped.
    """
    sets = _list_sets(columns, targets)
    if isinstance(opened, FramesInMemory) and not opened.in_parts:
        return opened.count(requests, on_progress), _count_in_memory(columns, sets)
    of_sets = [CountRequest(columns), *map(CountRequest, sets.values())]
    counted = opened.count([*requests, *of_sets], on_progress)
    whole, *partial = counted[len(requests) :]
    hits = [[keys.unique_hits for keys in counts.keys] for counts in partial]
    return counted[: len(requests)], RecordSets(whole.keys, sets, dict(zip(sets, hits, strict=True)))


def _list_sets(columns: Sequence[CodedColumn], targets: Sequence[Any]) -> dict[str, Sequence[CodedColumn]]:
    """All columns but one, for each; the targets alone; and, where several hold numbers, all but these."""
    sets = {
        f"all but {left_out.name}": [column for column in columns if column is not left_out]
        for left_out in columns
    }
    sets[TARGETS_ALONE] = [column for column in columns if column.name in targets]
    others = [column for column in columns if column.kind is not Kind.NUMBER]
    if len(columns) - len(others) > 1:
        sets[WITHOUT_NUMBERS] = others
    return {label: of_set for label, of_set in sets.items() if of_set}


def _count_in_memory(columns: Sequence[CodedColumn], sets: Mapping[str, Sequence[CodedColumn]]) -> RecordSets:
    """The records are sorted twice, and once more by each set that leaves out more than one column."""
    if not sets or len(columns) == 1:
        partial = [count_copies(of_set) for of_set in sets.values()]
        whole = count_whole_records(columns)
    else:
        counts = count_records(columns)
        partial = [
            *map(list, counts.without),
            *(count_copies(sets[label]) for label in sets if label in {TARGETS_ALONE, WITHOUT_NUMBERS}),
        ]
        whole = counts.whole
    hits = [[of_synthesis.unique for of_synthesis in of_set] for of_set in partial]
    return RecordSets(whole, sets, dict(zip(sets, hits, strict=True)))
