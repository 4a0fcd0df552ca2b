"""Groups of people: how exposed each is, and which are most."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.counts import Target
from disclosure_pipeline.evaluation.arguments import code_exclusions, drop_unknown_levels
from disclosure_pipeline.evaluation.counts import MeasuringPlan, combine_columns, place_records
from disclosure_pipeline.evaluation.frames import build_frame, list_figures
from disclosure_pipeline.evaluation.record_sets import PeopleRecords, RecordSets
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.measures import bands
from disclosure_pipeline.measures.contributions import (
    BAND_FIGURES,
    GROUP_FIGURES,
    Contributions,
    name_estimates,
)
from disclosure_pipeline.measures.exact import IntArray, sum_exactly
from disclosure_pipeline.measures.exposed_groups import Subgroup
from disclosure_pipeline.measures.samples import wilson
from disclosure_pipeline.tables.grouping import Grouping
from disclosure_pipeline.tables.levels import CodedColumn, Kind

OTHERS = "(small groups)"
MISSING = "(missing)"


def measure_groups(
    added: Contributions,
    group_of_record: IntArray,
    groups: int,
    people: PeopleRecords,
    *,
    with_guesses: bool = False,
) -> list[dict[str, float]]:
    """Return the figures of `Subgroup` and `bands` for each group, and with weights those of its people."""
    everybody = int(added.add("DiSCO").sum())
    of_people = [*GROUP_FIGURES, *(() if added.rows.band is None else BAND_FIGURES)]
    figures = [*of_people, *(["guessed_beyond"] if with_guesses else [])]
    rows, in_order = [], np.argsort(group_of_record, kind="stable")
    ends = np.searchsorted(group_of_record[in_order], np.arange(groups + 1))
    for first, end in pairwise(ends.tolist()):
        members = in_order[first:end]
        estimates, exposed = added.estimate(figures, members=members), int(added.add("DiSCO")[members].sum())
        row = _measure_exposure(len(members), exposed, everybody, len(in_order)) | name_estimates(estimates)
        row = {name: row[name] for name in (*list_figures(Subgroup), *bands.WORDS) if name in row}
        if weighted := people.weigh(added, of_people, members):
            row |= {"people": sum_exactly(people.weight[members]), **weighted}
        rows.append(row)
    return rows


def _measure_exposure(records: int, exposed: int, everybody: int, N_d: int) -> dict[str, float]:
    """Return a group's number of records, and what follows from how many of them DiSCO counts (`exposed`).

    `everybody`: the number of all records that DiSCO counts.
    """
    low, high = wilson(exposed, records)
    share = records / N_d
    ends = [end / share for end in wilson(exposed, everybody)] if everybody else [math.nan, math.nan]
    return {
        "records": records,
        "DiSCO_low": 100 * low,
        "DiSCO_high": 100 * high,
        "lift": exposed / everybody / share if everybody else math.nan,
        "lift_low": ends[0],
        "lift_high": ends[1],
    }


def number_groups(columns: Sequence[CodedColumn], smallest: int) -> tuple[list[IntArray], list[str]]:
    """Return the group of each record of the columns' tables, by their levels together, and all labels.

    Small groups are merged into the last. Records with a level that GT lacks are in no group: -1.
    """
    combined = combine_columns(columns)
    held = np.flatnonzero(combined.counts[0])
    level_labels = [
        [label or MISSING for label in column.label_each(combined.level_of(k)[held])]
        for k, column in enumerate(columns)
    ]
    labels = [", ".join(labels_of_group) for labels_of_group in zip(*level_labels, strict=True)]
    group = np.full(combined.size, -1)
    group[held], names = _merge_small_groups(combined.counts[0][held], labels, smallest)
    return [group[q] for q in combined.q], names


def _merge_small_groups(
    records: IntArray, labels: Sequence[str], smallest: int
) -> tuple[IntArray, list[str]]:
    """Return the group of each level and the labels of the groups; small ones are merged into the last."""
    merged = set(merged_groups(records, smallest).tolist())
    kept = [level for level in range(len(records)) if level not in merged]
    number = np.full(len(records), len(kept))
    number[kept] = np.arange(len(kept))
    return number, [labels[level] for level in kept] + ([OTHERS] if merged else [])


def merged_groups(records: IntArray, smallest: int) -> IntArray:
    """Return the positions of the groups to be reported together: those with fewer than `smallest` records.

    If that is a single group, or they have fewer records in total, their figures could be obtained as the
    difference to the whole; then the next larger groups are added.
    """
    order = np.argsort(records, kind="stable")
    number = int((records < smallest).sum())
    if not number:
        return order[:0]
    up_to = np.cumsum(records[order])
    while number < len(order) and (number < _FEWEST_MERGED or up_to[number - 1] < smallest):
        number += 1
    return order[:number]


_FEWEST_MERGED = 2

MOST_LEVELS = 20
"""Columns with more levels make too many groups to read, unless they hold numbers."""

GROUPS_OF_NUMBERS = 5
MOST_RECORDS = 200_000
"""The number of records drawn from larger tables: enough to find the most exposed group."""


def measure_worst_groups(
    people: PeopleRecords | RecordSets,
    columns: Mapping[Any, CodedColumn],
    plan: MeasuringPlan,
    result: Disclosure,
) -> pd.DataFrame:
    """Measure DiSCO of the most disclosed target by columns of the plan with few levels.

    As `subgroups()` does, without guesses: index (column, group, target, synthesis). `columns`: those of all
    records, not grouped, as `people` may be drawn from these: then all figures are of these. Levels of fewer
    GT records than the smallest count are merged; a merged group that is still smaller is left out. Empty if
    no target has a figure.
    """
    worst, whole = find_worst_target(result.attribute), plan.whole_records
    if worst is None or whole is None:
        return pd.DataFrame()
    drawn = people.draw(MOST_RECORDS, 0)
    by_name = {name: plan.grouping.apply(column, columns[name]) for name, column in drawn.columns.items()}
    keys, column = [by_name[name] for name in plan.keys], by_name[worst]
    exclusions = code_exclusions(drop_unknown_levels(plan.exclusions, by_name), column, keys)
    target = Target(column, exclusions, math.inf, band=plan.grouping.band_of(column))
    group_columns = [by_name[name] for name in whole.group_columns if name in by_name and name != worst]
    by = choose_group_columns(group_columns, whole.special_values)
    members = [number_groups([column.only([0])], whole.smallest_count) for column in by]
    q = combine_columns(keys)
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for synthesis in range(1, len(q.q)):
        added = Contributions(place_records(q, target, synthesis, drawn.unit))
        for group_column, ([group_of_record], labels) in zip(by, members, strict=True):
            figures = measure_groups(added, group_of_record, len(labels), drawn)
            for label, of_group in zip(labels, figures, strict=True):
                rows[group_column.name, label, worst, synthesis] = of_group
    shown = {label: row for label, row in rows.items() if row["records"] >= whole.smallest_count}
    return build_frame(shown, ["column", "group", "target", "synthesis"]) if shown else pd.DataFrame()


def find_worst_target(attribute: pd.DataFrame) -> Any:
    """Return the target with the largest DiSCO_beyond; None if no target has a figure."""
    beyond = attribute["DiSCO_beyond"].groupby(level="target", sort=False).max().dropna()
    return None if beyond.empty else beyond.idxmax()


def choose_group_columns(
    columns: Iterable[CodedColumn], special_values: Mapping[Any, Sequence[float]]
) -> list[CodedColumn]:
    """Return the columns with few levels, and the columns of numbers, which are grouped."""
    chosen = []
    for column in columns:
        grouped = column
        if column.size > MOST_LEVELS and column.kind is Kind.NUMBER:
            grouping = Grouping({column.name: GROUPS_OF_NUMBERS}, special_values, "pooled", hides_edges=True)
            grouped = grouping.apply(column)
        if grouped.size <= MOST_LEVELS:
            chosen.append(grouped)
    return chosen
