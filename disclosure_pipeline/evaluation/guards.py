"""Guards: copies and renamed values, over all columns whatever a gate's keys are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from disclosure_pipeline.evaluation.copies import measure_record_sets
from disclosure_pipeline.evaluation.counts import Counts, WholeRecords
from disclosure_pipeline.evaluation.figures import add_beyond_chance
from disclosure_pipeline.evaluation.found import measure_found
from disclosure_pipeline.evaluation.frames import build_frame, to_row
from disclosure_pipeline.evaluation.record_sets import RecordSets
from disclosure_pipeline.evaluation.resemblance import find_renumbered, group_numbers, measure_resemblance
from disclosure_pipeline.measures.chance import beyond_chance, distance_by_chance, guesses_by_chance
from disclosure_pipeline.measures.copies import ALL_COLUMNS, has_equal_content
from disclosure_pipeline.measures.exact import percent
from disclosure_pipeline.measures.people import repeats
from disclosure_pipeline.measures.resemblance import missing_beyond, relabelling
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.tables.levels import CodedColumn

PAIRS_SAMPLE = 100_000
"""Records of each table that suffice for the distances of pairs of columns."""

_PLAN = WholeRecords()


@dataclass(frozen=True)
class GuardFrames:
    """The frames of the guards, as a result has them.

    `guards`: index synthesis. The figures of all columns that `copies()` returns. relabelled, missing_beyond:
    the largest `looks_renamed` and `missing_beyond` of `columns_apart`. alike: percent of the GT records that
    equal another person's in every column. equal_content: 1 if one table holds all records of the other, else
    0. TVD_column_beyond, TVD_pair_beyond: the largest TVD minus its expected value, over columns and over
    pairs of columns (of a sample; NaN if there is none), with standard errors. repeated: percent of SD
    records that equal another; repeats: the part beyond a fresh sample (`measures.people`).
    …_by_chance: the largest value by chance alone; …_beyond_chance: what a gate bounds, which is the figure
    if it exceeds that, otherwise its expected value (`measures.chance`).
    `partial_copies`: index (columns, synthesis), the figures of `copies()`. `columns_apart`: index
    (column, synthesis); TVD, TVD_expected, TVD_relabelled, looks_renamed: shares of 1; missing_beyond:
    percentage points. `found`: index (way, synthesis), see `measure_found`.
    """

    guards: pd.DataFrame
    partial_copies: pd.DataFrame
    found: pd.DataFrame
    columns_apart: pd.DataFrame = field(default_factory=pd.DataFrame)


def measure_guards(records: RecordSets, plan: WholeRecords = _PLAN) -> GuardFrames:
    """Return the guards over all shared columns, from the counts of their sets."""
    copies = measure_copies(records, plan)
    sizes, per_unit = records.sizes, records.records_per_unit
    sample = records.opened.code_records(records.columns, PAIRS_SAMPLE, 0)
    apart = _measure_columns(records.columns, sample, [size.divide(per_unit) for size in sizes])
    largest_apart = apart.groupby(level="synthesis").max()
    rows = []
    for synthesis, (size, keys) in enumerate(zip(sizes, records.keys, strict=True), start=1):
        figures = repeats(keys.people, size, per_unit)
        bounded = beyond_chance(figures.repeats, figures.repeats_by_chance)
        rows.append(
            {
                "relabelled": largest_apart.loc[synthesis, "looks_renamed"],
                "relabelled_beyond_chance": largest_apart.loc[synthesis, "looks_renamed_beyond_chance"],
                "missing_beyond": largest_apart.loc[synthesis, "missing_beyond"],
                "missing_beyond_chance": largest_apart.loc[synthesis, "missing_beyond_chance"],
                **(to_row(figures) | {"repeats_beyond_chance": bounded}),
            }
        )
    frame = pd.concat([copies.guards, pd.DataFrame(rows, index=copies.guards.index)], axis=1)
    pairs = measure_resemblance(sample).pairs
    for name, distances in {"TVD_column_beyond": apart, "TVD_pair_beyond": pairs}.items():
        frame[[name, f"{name}_se"]] = _find_farthest(distances, frame.index)
        frame[f"{name}_se"] *= math.sqrt(per_unit)
        frame = add_beyond_chance(frame, name, max(1, len(distances) // len(frame)))
    return replace(copies, guards=frame, columns_apart=apart)


def measure_copies(records: RecordSets, plan: WholeRecords) -> GuardFrames:
    """Return the guards that need no distances of columns: see `GuardFrames`."""
    measured = measure_record_sets(records)
    index = pd.RangeIndex(1, len(records.whole) + 1, name="synthesis")
    whole = pd.DataFrame([measured[ALL_COLUMNS, synthesis] for synthesis in index], index=index)
    rows = {
        (label, synthesis): {name: measured[label, synthesis][name] for name in whole}
        for label in records.partial
        for synthesis in index
    }
    found, limits = measure_found(records, measured, plan)
    N_d = records.sizes[0].N_d
    alike = [percent(N_d - counts.people.alone, N_d) for counts in records.whole]
    equal = [
        float(has_equal_content(counts, keys.shared.GT_in_SD, size))
        for counts, keys, size in zip(records.whole, records.keys, records.sizes, strict=True)
    ]
    guards = whole.join(limits).assign(alike=alike, equal_content=equal)
    return GuardFrames(guards, build_frame(rows, ["columns", "synthesis"]), found)


def bound_guesses(guesses: pd.DataFrame, counts: Counts, sizes: Sequence[Sizes]) -> pd.DataFrame:
    """Return the guesses of each target, with what chance gives and what is beyond it."""
    rows = {}
    for target, of_target in zip(counts.measured, counts.counts.targets, strict=True):
        for synthesis, (counted, size) in enumerate(zip(of_target, sizes, strict=True), start=1):
            people = counted.count_people(target)[~target.no_guess]
            most_frequent = percent(people.max(initial=0), counts.records[0])
            figures = guesses.loc[(target.column.name, synthesis)]
            others, beyond = float(figures["guessed_others"]), float(figures["guessed_beyond"])
            by_chance = guesses_by_chance(others + beyond, others, most_frequent, size, len(counts.measured))
            rows[target.column.name, synthesis] = {
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
    return build_frame(rows, ["column", "synthesis"])


def _find_farthest(distances: pd.DataFrame, syntheses: pd.Index[int]) -> npt.NDArray[np.float64]:
    """Return each synthesis' largest TVD minus its expected value, with its error; NaN without distances."""
    if distances.empty:
        return np.full((len(syntheses), 2), math.nan)
    beyond = (distances["TVD"] - distances["TVD_expected"]).rename("beyond")
    farthest = pd.concat([beyond, distances["TVD_se"]], axis=1).sort_values("beyond", kind="stable")
    return farthest.groupby(level="synthesis").last().reindex(syntheses).to_numpy()
