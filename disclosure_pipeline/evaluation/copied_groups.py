"""People found in one group: a ward that is copied is a small part of a table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.engines import OpenedTables
from disclosure_pipeline.evaluation.counts import RecordSets
from disclosure_pipeline.measures.copies import chances_of_columns_apart
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.measures.guard_chance import beyond_chance
from disclosure_pipeline.measures.people import found_by_columns_apart, people_copied
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.tables.levels import CodedColumn

APART_SAMPLE = 200_000
"""The number of GT records that tell whom columns drawn apart find."""

FEWEST_OF_GROUP = 10
"""A group of so many people is looked at by itself."""

IN_GROUPS = ("group_copied_beyond", "group_copied_by_chance", "group_copied_beyond_chance")


def measure_groups(
    opened: OpenedTables,
    columns: Sequence[CodedColumn],
    records: RecordSets,
    records_per_unit: float,
    fewest: int,
) -> pd.DataFrame:
    """Measure the people found in each group of at least so many, of a column the group that is worst.

    Both tables are cut to a level of the column. What columns drawn apart within it would find is looked at
    where more is found than in a fresh sample.
    """
    comparisons = sum(int((column.counts[0] >= fewest).sum()) for column in records.groups)
    sample = cache(partial(opened.code_records, columns, APART_SAMPLE, 0))
    rows = {}
    for synthesis, by_column in enumerate(records.levels, start=1):
        for column, of_levels in zip(records.groups, by_column, strict=True):
            worst = dict.fromkeys(IN_GROUPS, 0.0)
            for level in np.flatnonzero(column.counts[0] >= fewest).tolist():
                sizes = Sizes(int(column.counts[0][level]), int(column.counts[synthesis][level]))
                measure = partial(
                    people_copied,
                    of_levels[level],
                    sizes,
                    comparisons=comparisons,
                    records_per_unit=records_per_unit,
                )
                figures = measure()
                if figures.people_copied_beyond > figures.people_copied_by_chance:
                    place = next(k for k, other in enumerate(columns) if other is column)
                    value = None if level == column.missing else column.levels[level]
                    figures = measure(apart=_find_apart_in_group(sample(), place, value, sizes.N_s))
                beyond, by_chance = figures.people_copied_beyond, figures.people_copied_by_chance
                bounded = beyond_chance(beyond, by_chance)
                if (bounded, beyond) > (worst["group_copied_beyond_chance"], worst["group_copied_beyond"]):
                    worst = dict(zip(IN_GROUPS, (beyond, by_chance, bounded), strict=True))
            rows[column.name, synthesis] = worst
    index = pd.MultiIndex.from_tuples(list(rows), names=["column", "synthesis"])
    return pd.DataFrame(list(rows.values()), index=index, columns=list(IN_GROUPS), dtype=float)


def find_apart(opened: OpenedTables, columns: Sequence[CodedColumn], N_s: int) -> float:
    """Return the percent of the GT records that N_s records with columns drawn apart find."""
    sample = opened.code_records(columns, APART_SAMPLE, 0)
    return _find_apart(sample, [column.codes[0] for column in sample], N_s)


def _find_apart_in_group(sample: Sequence[CodedColumn], place: int, value: Any, N_s: int) -> float:
    """Return the percent of those with a value that N_s records with columns drawn apart among them find."""
    in_group = np.flatnonzero(sample[place].codes[0] == sample[place].find(value))
    if not len(in_group):
        return 0.0
    return _find_apart(sample, [column.codes[0][in_group] for column in sample], N_s)


def _find_apart(sample: Sequence[CodedColumn], codes: Sequence[IntArray], N_s: int) -> float:
    [chances] = chances_of_columns_apart(codes, [column.size for column in sample], [range(len(sample))])
    return found_by_columns_apart(chances, N_s, len(codes[0]))
