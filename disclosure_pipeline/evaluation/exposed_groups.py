"""Who bears what a candidate gives away: the groups of people by each column with few levels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.opening import OpenedTables
from disclosure_pipeline.evaluation.key_combinations import combine_columns
from disclosure_pipeline.evaluation.record_cells import RecordCells
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.evaluation.subgroups import MISSING, merge_small_groups
from disclosure_pipeline.measures.subgroups import RecordDisclosure
from disclosure_pipeline.tables.grouping import Grouping
from disclosure_pipeline.tables.kinds import Kind
from disclosure_pipeline.tables.levels import CodedColumn

MOST_LEVELS = 20
"""A column of more levels parts people into groups that are too many to read, unless it holds numbers."""

GROUPS_OF_NUMBERS = 5
MOST_RECORDS = 200_000
"""Of larger tables so many records of each are drawn: enough to see which group bears most."""

INDEX = ["column", "group", "target", "synthesis"]


def measure_worst_groups(
    opened: OpenedTables,
    columns: Mapping[Any, CodedColumn],
    by: Iterable[Any],
    result: Disclosure,
    grouping: Grouping,
    special_values: Mapping[Any, Sequence[float]],
    smallest_count: int,
) -> pd.DataFrame:
    """`measure_exposed_groups` of the target that most is disclosed of, by the columns with few levels.

    `columns`: of `opened`, by name, coded, not grouped; `by`: names; `special_values`: codes that no group of
    numbers takes in. Empty where no target has a figure.
    """
    worst = find_worst_target(result.attribute)
    if worst is None:
        return pd.DataFrame()
    drawn = opened.code_records(list(columns.values()), MOST_RECORDS, 0)
    by_name = {column.name: grouping.apply(column) for column in drawn}
    parting = [by_name[name] for name in by if name in by_name and name != worst]
    return measure_exposed_groups(
        [by_name[name] for name in result.keys],
        by_name[worst],
        choose_group_columns(parting, special_values),
        smallest_count,
    )


def find_worst_target(attribute: pd.DataFrame) -> Any:
    """The target that most is disclosed of beyond other people's records; None where none has a figure.

    `attribute`: index (target, synthesis), as `disclosure()` has it.
    """
    beyond = attribute["DiSCO_beyond"].groupby(level="target", sort=False).max().dropna()
    return None if beyond.empty else beyond.idxmax()


def choose_group_columns(
    columns: Iterable[CodedColumn], special_values: Mapping[Any, Sequence[float]]
) -> list[CodedColumn]:
    """The columns that part people into few groups: with few levels, or numbers, which are grouped."""
    chosen = []
    for column in columns:
        parting = column
        if column.size > MOST_LEVELS and column.kind is Kind.NUMBER:
            grouping = Grouping({column.name: GROUPS_OF_NUMBERS}, special_values, "pooled", hides_edges=True)
            parting = grouping.apply(column)
        if parting.size <= MOST_LEVELS:
            chosen.append(parting)
    return chosen


def measure_exposed_groups(
    keys: Sequence[CodedColumn], target: CodedColumn, by: Sequence[CodedColumn], smallest_count: int
) -> pd.DataFrame:
    """DiSCO of one target for each level of the columns `by`: see `subgroups()`, without its guesses.

    Index (column, group, target, synthesis). Levels of fewer GT records than `smallest_count` are one group;
    a group that has fewer all the same is left out. Where records were drawn, all is of these alone.
    """
    q = combine_columns(keys)
    members = [_number_groups(column, smallest_count) for column in by]
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for synthesis in range(1, len(target.tables)):
        cells = RecordCells.from_keys(q, target.codes, target.size, synthesis)
        disclosed = RecordDisclosure.from_table(cells.f, cells.position)
        for column, (group_of_record, labels) in zip(by, members, strict=True):
            figures = disclosed.of_groups(group_of_record, len(labels))
            for label, of_group in zip(labels, figures, strict=True):
                rows[column.name, label, target.name, synthesis] = of_group
    shown = {label: row for label, row in rows.items() if row["records"] >= smallest_count}
    if not shown:
        return pd.DataFrame()
    return pd.DataFrame(list(shown.values()), index=pd.MultiIndex.from_tuples(list(shown), names=INDEX))


def _number_groups(column: CodedColumn, smallest_count: int) -> tuple[Any, list[str]]:
    """The group of each GT record, and the labels of the groups; a level that nobody has is none."""
    records = column.counts[0]
    occurring = np.flatnonzero(records)
    labels = [column.label(int(code)) or MISSING for code in occurring]
    number, names = merge_small_groups(records[occurring], labels, smallest_count)
    group_of_level = np.zeros(column.size, dtype=np.int64)
    group_of_level[occurring] = number
    return group_of_level[column.codes[0]], names
