"""People found in a synthetic table: in one of its groups, and as a doubt of those who have no gate.

A ward that is copied is a small part of a table, so groups are looked at by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.counts import CountRequest
from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.counting.opening import OpenedTables
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.evaluation.catalogue_guards import GUARDS_OF_COMPARABILITY, GUARDS_OF_COPIES
from disclosure_pipeline.evaluation.counts import MeasuringPlan, RecordSets
from disclosure_pipeline.evaluation.frames import row_of
from disclosure_pipeline.evaluation.units import find_people, read_units
from disclosure_pipeline.measures.chance import beyond_chance
from disclosure_pipeline.measures.copies import chances_of_columns_apart
from disclosure_pipeline.measures.exact import IntArray, percent
from disclosure_pipeline.measures.people import found_by_columns_apart, people_copied
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.runtime.progress import OnProgress
from disclosure_pipeline.tables.levels import CodedColumn
from disclosure_pipeline.tables.messages import GROUND_TRUTH, listed, names_in_all, table_names

APART_SAMPLE = 200_000
"""The number of GT records that tell whom columns drawn apart find."""

FEWEST_OF_GROUP = 10
"""The number of people from which on a group is looked at by itself."""

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


MOST_RECORDS = 200_000
"""Whole records of all tables together: so many are counted in a tenth of a second, of more a part."""
_ENOUGH_TO_CHOOSE = 1_000

_BOUNDS = {
    entry.name: entry.bound.default
    for entry in (*GUARDS_OF_COPIES, *GUARDS_OF_COMPARABILITY)
    if entry.bound is not None
}


def find_whole_doubts(opened: OpenedTables, plan: MeasuringPlan, on_progress: OnProgress) -> list[str]:
    """Return what the guards of a gate would say of people found, and of a table that tells no one apart.

    Of tables in memory: files and databases would be read once more for it. Over all columns that the tables
    share, or over those that are planned where others cannot be compared. Of more than `MOST_RECORDS` those
    are looked at that agree in a few columns; they say nothing of whether others are told apart.
    """
    if opened.frames is None:
        return []
    frames, agreeing = _choose_part(opened.frames)
    if agreeing:
        opened = FramesInMemory(frames, opened.engine_description)
    try:
        columns = opened.code(names_in_all(opened.columns), plan.grouping, on_progress)
    except InputError:
        columns = opened.code(plan.columns, plan.grouping, on_progress)
    N_d, *N_s = (int(counts.sum()) for counts in columns[0].counts)
    per_unit = 1.0
    if plan.unit is None:
        [counted] = opened.count([CountRequest(columns)], on_progress)
        people = [keys.people for keys in counted.keys]
    else:
        names = [column.name for column in columns]
        units = read_units(opened.with_columns([plan.unit]), plan, on_progress, names)
        people, per_unit = find_people(units), units.records_per_unit
    rows = []
    for counts, n in zip(people, N_s, strict=True):
        measure = partial(people_copied, counts, Sizes(N_d, n), records_per_unit=per_unit)
        found = measure()
        if _is_beyond(row_of(found)):
            found = measure(apart=find_apart(opened, columns, n))
        alike = 0.0 if agreeing else percent(N_d - counts.alone, N_d)
        rows.append({"alike": alike, **row_of(found)})
    people_are = f"the {N_d:,} people who agree in {listed(agreeing)}" if agreeing else "the people"
    return list(describe_whole_doubts(rows, people_are))


def _choose_part(frames: tuple[pd.DataFrame, ...]) -> tuple[tuple[pd.DataFrame, ...], list[Any]]:
    """Return at most `MOST_RECORDS`, those with one value of some columns, and these columns."""
    agreeing: list[Any] = []
    left = names_in_all([list(frame.columns) for frame in frames])
    while left and sum(map(len, frames)) > MOST_RECORDS:
        wanted = MOST_RECORDS / sum(map(len, frames))
        some = frames[0].iloc[:: max(1, len(frames[0]) // _ENOUGH_TO_CHOOSE)]
        shares = [
            (share, name, value)
            for name in left
            for value, share in some[name].value_counts(normalize=True, sort=False).items()
            if share > 0
        ]
        if not shares:
            break
        fitting = [choice for choice in shares if choice[0] <= wanted]
        _, name, value = (max if fitting else min)(fitting or shares, key=lambda choice: choice[0])
        masks = [frame[name].eq(value).to_numpy(dtype=bool, na_value=False) for frame in frames]
        left.remove(name)
        if all(map(np.any, masks)):
            agreeing.append(name)
            frames = tuple(
                frame.iloc[np.flatnonzero(mask)] for frame, mask in zip(frames, masks, strict=True)
            )
    return frames, agreeing


def describe_whole_doubts(
    rows: Sequence[Mapping[Any, float]], people_are: str = "the people"
) -> Iterator[str]:
    """Yield a sentence for each doubt; `rows`: of each synthesis `alike` and the people found."""
    if rows[0]["alike"] > _BOUNDS["alike"]:
        yield (
            f"There is nothing to measure here, {GROUND_TRUTH} tells no one apart: {rows[0]['alike']:.1f} % "
            "of its records equal another person's in every column, so no copy can be noticed."
        )
    for name, found in zip(table_names(len(rows) + 1)[1:], rows, strict=True):
        if _is_beyond(found):
            yield (
                f"{found['people_copied']:.0f} % of {people_are} are in {name}, with a record that nobody "
                f"else has; a fresh table would hold {found['people_copied_expected']:.1f} %: it copies them."
            )


def _is_beyond(found: Mapping[Any, float]) -> bool:
    beyond, by_chance = found["people_copied_beyond"], found["people_copied_by_chance"]
    return beyond > max(_BOUNDS["people_copied_beyond"], by_chance)
