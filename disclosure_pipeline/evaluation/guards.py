"""Guards: copies, near copies and renamed values, over all columns whatever a gate's keys are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pandas as pd

from disclosure_pipeline.counting.counts import mark_unguessable
from disclosure_pipeline.counting.memory.nearest_records import DISTANCES, nearest_distances
from disclosure_pipeline.counting.opening import OpenedTables
from disclosure_pipeline.evaluation.copies import ALL_COLUMNS, PARTIAL_COPIES, measure_record_sets
from disclosure_pipeline.evaluation.counts import RecordSets, WholeRecords
from disclosure_pipeline.evaluation.figures import add_beyond_chance
from disclosure_pipeline.evaluation.found import measure_found
from disclosure_pipeline.evaluation.frames import to_row
from disclosure_pipeline.evaluation.nearest import (
    MOST_RECORDS,
    build_nearness_frame,
    draw_comparisons,
    find_near_copies,
    is_diluted,
)
from disclosure_pipeline.evaluation.people import IN_GROUPS, measure_groups
from disclosure_pipeline.evaluation.population import PeopleRecords
from disclosure_pipeline.evaluation.resemblance import find_renumbered, group_numbers, measure_resemblance
from disclosure_pipeline.measures.chance import (
    beyond_chance,
    distance_by_chance,
    guesses_by_chance,
    much_nearer_by_chance,
    nearness_by_chance,
)
from disclosure_pipeline.measures.copies import has_equal_content
from disclosure_pipeline.measures.exact import percent
from disclosure_pipeline.measures.people import repeats
from disclosure_pipeline.measures.resemblance import missing_beyond, relabelling
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.tables.levels import CodedColumn

PAIRS_SAMPLE = 100_000
"""Records of each table that suffice for the distances of pairs of columns."""

_NEARNESS = {"nearer": 50.0, "much_nearer": 0.0}
"""Guard -> its figure for a fresh sample."""

_PLAN = WholeRecords()


@dataclass(frozen=True)
class GuardFigures:
    """The frames of the guards.

    `guards`: index synthesis. The figures of all columns that `copies()` returns. partial_copies_beyond: the
    largest unique_copies_beyond or people_copied_beyond of `partial_copies`, with at most one copy per
    person. nearer, much_nearer: the largest over the distances of `nearest()`; NaN if GT has one record, or
    if they were not measured.
    relabelled, missing_beyond: the largest `looks_renamed` and `missing_beyond` of `columns_apart`. alike:
    percent of the GT records that equal another person's in every column. equal_content: 1 if one table holds
    all records of the other, else 0. TVD_column_beyond, TVD_pair_beyond: the largest TVD minus its expected
    value, over columns and over pairs of columns (of a sample; NaN if there is none), with standard errors.
    group_copied_beyond: people_copied_beyond within the worst level of a column, the largest of
    `columns_apart` (0 for a column without groups). repeated: percent of SD records that equal another;
    repeats: the part beyond a fresh sample (`measures.people`).
    …_by_chance: the largest value by chance alone; …_beyond_chance: what a gate bounds, which is the figure
    if it exceeds that, otherwise its expected value (`measures.chance`).
    `partial_copies`: index (columns, synthesis), the figures of `copies()`. `columns_apart`: index
    (column, synthesis); TVD, TVD_expected, TVD_relabelled, looks_renamed: shares of 1; missing_beyond:
    percentage points. `found`: index (way, synthesis), see `measure_found`.
    """

    guards: pd.DataFrame
    partial_copies: pd.DataFrame
    columns_apart: pd.DataFrame
    found: pd.DataFrame


def measure_guards(
    opened: OpenedTables,
    columns: Sequence[CodedColumn],
    records: RecordSets,
    units: PeopleRecords | None = None,
    plan: WholeRecords = _PLAN,
) -> GuardFigures:
    """Return the guards over `columns`, which are all shared columns: coded, not grouped.

    `records` are the counts over sets of these columns; of units, if `units` says whose each record is.
    """
    copies, partial_copies, found = measure_copies(opened, columns, records, units, plan)
    sizes = _find_sizes(columns)
    per_unit = units.records_per_unit if units else 1
    groups = measure_groups(opened, columns, records, per_unit, plan.smallest_count)
    sample = opened.code_records(columns, PAIRS_SAMPLE, 0)
    apart = _measure_columns(columns, sample, [size.divide(per_unit) for size in sizes]).join(groups)
    apart = apart.fillna(dict.fromkeys(IN_GROUPS, 0.0))  # columns without groups
    largest_apart = apart.groupby(level="synthesis").max()
    rows = []
    for synthesis, (size, counts) in enumerate(zip(sizes, records.whole, strict=True), start=1):
        figures = repeats(records.by_record[synthesis - 1], size, per_unit)
        bounded = beyond_chance(figures.repeats, figures.repeats_by_chance)
        rows.append(
            {
                "relabelled": largest_apart.loc[synthesis, "looks_renamed"],
                "relabelled_beyond_chance": largest_apart.loc[synthesis, "looks_renamed_beyond_chance"],
                "missing_beyond": largest_apart.loc[synthesis, "missing_beyond"],
                "missing_beyond_chance": largest_apart.loc[synthesis, "missing_beyond_chance"],
                **{name: largest_apart.loc[synthesis, name] for name in IN_GROUPS},
                **(to_row(figures) | {"repeats_beyond_chance": bounded}),
                "alike": percent(size.N_d - counts.people.alone, size.N_d),
                "equal_content": float(has_equal_content(counts, size)),
            }
        )
    frame = pd.concat([copies, pd.DataFrame(rows, index=copies.index)], axis=1)
    pairs = measure_resemblance(sample).pairs
    for name, distances in {"TVD_column_beyond": apart, "TVD_pair_beyond": pairs}.items():
        frame[[name, f"{name}_se"]] = _find_farthest(distances, frame.index)
        frame[f"{name}_se"] *= math.sqrt(per_unit)
        frame = add_beyond_chance(frame, name, max(1, len(distances) // len(frame)))
    return GuardFigures(frame, partial_copies, apart, found)


def measure_copies(
    opened: OpenedTables,
    columns: Sequence[CodedColumn],
    records: RecordSets,
    units: PeopleRecords | None = None,
    plan: WholeRecords = _PLAN,
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return the guards of copies and nearness, and the frames `partial_copies` and `found`.

    See `measure_guards`.
    """
    measured = measure_record_sets(opened, columns, records, units)
    index = pd.RangeIndex(1, len(records.whole) + 1, name="synthesis")
    whole = pd.DataFrame([measured[ALL_COLUMNS, synthesis] for synthesis in index], index=index)
    rows = {
        (label, synthesis): measured[label, synthesis] for label in records.partial for synthesis in index
    }
    labels = pd.MultiIndex.from_tuples(list(rows), names=["columns", "synthesis"])
    partial_copies = pd.DataFrame(list(rows.values()), index=labels)
    of_partial = list(PARTIAL_COPIES)
    largest = partial_copies[of_partial].groupby(level="synthesis").max()
    nearness = _measure_nearness(opened, columns, _find_sizes(columns), units, plan)
    shown = [name for name in partial_copies if name not in of_partial and not name.endswith("_once")]
    found = measure_found(opened, columns, measured, records, units, plan)
    return whole.join([largest, nearness]), partial_copies[shown], found


def _find_sizes(columns: Sequence[CodedColumn]) -> list[Sizes]:
    N_d, *N_s = (int(counts.sum()) for counts in columns[0].counts)
    return [Sizes(N_d, n) for n in N_s]


def bound_guesses(
    guesses: pd.DataFrame, targets: Sequence[CodedColumn], sizes: Sequence[Sizes]
) -> pd.DataFrame:
    """Return the guesses of each target, with what chance gives and what is beyond it."""
    rows = {}
    for target in targets:
        records = target.counts[0]
        most_frequent = 100 * int(records[~mark_unguessable(target)].max(initial=0)) / int(records.sum())
        for synthesis, size in enumerate(sizes, start=1):
            figures = guesses.loc[(target.name, synthesis)]
            others, beyond = float(figures["guessed_others"]), float(figures["guessed_beyond"])
            by_chance = guesses_by_chance(others + beyond, others, most_frequent, size, len(targets))
            rows[target.name, synthesis] = {
                **figures,
                "guessed_by_chance": by_chance,
                "guessed_beyond_chance": beyond_chance(beyond, by_chance),
            }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(index=guesses.index.names)


def _measure_columns(
    columns: Sequence[CodedColumn], sample: Sequence[CodedColumn], sizes: Sequence[Sizes]
) -> pd.DataFrame:
    rows = {}
    renumbered = find_renumbered(sample)
    for column in columns:
        grouped = group_numbers(column)
        for synthesis, counts in enumerate(grouped.counts[1:], start=1):
            figures = relabelling(grouped.counts[0], counts)
            renamed = renumbered.get((column.name, synthesis), figures.looks_renamed)
            by_chance = distance_by_chance(sizes[synthesis - 1], len(columns))
            missing = missing_beyond(column.counts[0], column.counts[synthesis])
            missing_by_chance = 100 * distance_by_chance(sizes[synthesis - 1], len(columns))
            rows[column.name, synthesis] = to_row(figures) | {
                "looks_renamed": renamed,
                "looks_renamed_by_chance": by_chance,
                "looks_renamed_beyond_chance": beyond_chance(renamed, by_chance),
                "missing_beyond": missing,
                "missing_by_chance": missing_by_chance,
                "missing_beyond_chance": beyond_chance(missing, missing_by_chance),
            }
    index = pd.MultiIndex.from_tuples(list(rows), names=["column", "synthesis"])
    return pd.DataFrame(list(rows.values()), index=index)


def _find_farthest(distances: pd.DataFrame, syntheses: pd.Index[int]) -> npt.NDArray[np.float64]:
    """Return each synthesis' largest TVD minus its expected value, with its error; NaN without distances."""
    if distances.empty:
        return np.full((len(syntheses), 2), math.nan)
    beyond = (distances["TVD"] - distances["TVD_expected"]).rename("beyond")
    farthest = pd.concat([beyond, distances["TVD_se"]], axis=1).sort_values("beyond", kind="stable")
    return farthest.groupby(level="synthesis").last().reindex(syntheses).to_numpy()


def _measure_nearness(
    opened: OpenedTables,
    columns: Sequence[CodedColumn],
    sizes: Sequence[Sizes],
    units: PeopleRecords | None,
    plan: WholeRecords,
) -> pd.DataFrame:
    seed = plan.seed
    names = [f"{name}{suffix}" for name in _NEARNESS for suffix in ("", "_by_chance", "_beyond_chance")]
    has_no_others = int(columns[0].counts[0].sum()) == 1 or (units and len(np.unique(units.unit)) == 1)
    if has_no_others or not plan.nearness:
        index = pd.RangeIndex(1, len(sizes) + 1, name="synthesis")
        return pd.DataFrame(math.nan, index=index, columns=names)
    per_unit = units.records_per_unit if units else 1
    if units and per_unit > 1:
        coded = list(units.columns.values())
        drawn = draw_comparisons(coded, seed, plan.sample, units.unit)
        distances = [nearest_distances(coded, comparison) for comparison in drawn]
    else:
        distances = opened.find_nearest(columns, partial(draw_comparisons, sample=plan.sample), seed)
    nearness = build_nearness_frame(distances)
    for index in nearness.index:
        figures, size = nearness.loc[index], sizes[index[0] - 1].divide(per_unit)
        persons = max(1, round(figures["records"] / per_unit))
        either_way = float(figures["much_nearer_either_way"])
        limits = {
            "nearer": nearness_by_chance(persons, size, len(DISTANCES)),
            "much_nearer": much_nearer_by_chance(either_way, persons, size, len(DISTANCES)),
        }
        for name, limit in limits.items():
            nearness.loc[index, f"{name}_by_chance"] = limit
            bounded = beyond_chance(float(figures[name]), limit, _NEARNESS[name])
            nearness.loc[index, f"{name}_beyond_chance"] = bounded
    largest = [
        nearness.sort_values([f"{name}_beyond_chance", name])
        .groupby(level="synthesis")
        .tail(1)
        .droplevel("distance")
        .filter(regex=f"^{name}(_by|_beyond|$)")
        for name in _NEARNESS
    ]
    frame = pd.concat(largest, axis=1)[names]
    if any(is_diluted(columns, synthesis) for synthesis in frame.index):
        drawn_columns = (
            list(units.columns.values()) if units else opened.code_records(columns, MOST_RECORDS, seed)
        )
        for synthesis in frame.index:
            if is_diluted(columns, synthesis):
                points, by_chance = find_near_copies(
                    drawn_columns, synthesis, seed, units.unit if units else None
                )
                bounded = beyond_chance(points, by_chance)
                if bounded > frame.loc[synthesis, "much_nearer_beyond_chance"]:
                    replaced = ["much_nearer", "much_nearer_by_chance", "much_nearer_beyond_chance"]
                    frame.loc[synthesis, replaced] = [points, by_chance, bounded]
    return frame
