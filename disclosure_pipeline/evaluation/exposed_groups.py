"""`subgroups()`: which groups of people are more exposed; and the people who have a sensitive level."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.counts import Target
from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.counting.opening import check_read_tables, read_frames
from disclosure_pipeline.errors import HoldoutWarning, InputError
from disclosure_pipeline.evaluation.arguments import (
    Exclusions,
    code_exclusions,
    drop_unknown_levels,
    find_code,
    require_whole_number,
)
from disclosure_pipeline.evaluation.counts import (
    MeasuringPlan,
    build_request,
    combine_columns,
    place_records,
    plan_measures,
)
from disclosure_pipeline.evaluation.figures import add_beyond_chance
from disclosure_pipeline.evaluation.frames import FiguresFrame, list_figures, to_row
from disclosure_pipeline.evaluation.holdout import (
    count_records_per_unit,
    find_holdout_doubts,
    prepare_holdout,
)
from disclosure_pipeline.evaluation.record_sets import PeopleRecords, RecordSets
from disclosure_pipeline.evaluation.resemblance import find_doubts, warn_of_doubts
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.measures.bands import Bands
from disclosure_pipeline.measures.chance import difference_by_chance
from disclosure_pipeline.measures.contributions import (
    BAND_FIGURES,
    GROUP_FIGURES,
    Contributions,
    name_estimates,
    tell_level,
)
from disclosure_pipeline.measures.exact import Floats, IntArray, sum_exactly
from disclosure_pipeline.measures.exposed_groups import LevelClaims, Subgroup, compare_claims
from disclosure_pipeline.measures.holdout import compare_with_holdout
from disclosure_pipeline.measures.samples import wilson
from disclosure_pipeline.runtime.progress import ignore_progress
from disclosure_pipeline.tables.alignment import (
    holds_values,
    number_owners,
    weigh_owners,
)
from disclosure_pipeline.tables.coding import code_column
from disclosure_pipeline.tables.grouping import Edges, Grouping, grouping_of
from disclosure_pipeline.tables.levels import CodedColumn, Kind, name_level
from disclosure_pipeline.tables.messages import GROUND_TRUTH, HOLDOUT, describe_argument, suggest_names
from disclosure_pipeline.tables.sources import Columns, Syntheses, TableSource

SMALLEST_COUNT = 10
OTHERS = "(small groups)"
MISSING = "(missing)"
_MOST_COLUMNS = 2


def subgroups(
    ground_truth: TableSource,
    synthetic: Syntheses,
    keys: Sequence[Hashable],
    targets: Columns,
    *,
    by: Hashable | Sequence[Hashable],
    smallest_count: int = SMALLEST_COUNT,
    unit: Hashable | None = None,
    weights: Hashable | None = None,
    groups: Mapping[Any, int] | None = None,
    special_values: Mapping[Any, Sequence[float]] | None = None,
    edges: Edges = "pooled",
    within: Mapping[Any, float | Fraction | Mapping[str, float]] | None = None,
    exclude: Exclusions | None = None,
    holdout: TableSource | None = None,
) -> pd.DataFrame:
    """Measure how exposed each group of GT records is, compared with other people's records.

    Args:
        ground_truth: The confidential table, given as in `disclosure()` and read into memory.
        synthetic: The synthetic table, or a sequence of them.
        keys: The columns an intruder knows.
        targets: The column or columns an intruder wants to learn.
        by: The column of GT whose levels are the groups, or a list of two columns; SD need not have them.
        smallest_count: Groups of fewer records are merged, together with one more group if the rest would
            otherwise be disclosed as the difference to the total.
        unit: The column of GT that says whose record each is, where people have several: see `disclosure()`.
        weights: The column of GT that says how many people each record stands for: see `disclosure()`.
        groups: As in `disclosure()`.
        special_values: As in `disclosure()`.
        edges: As in `disclosure()`.
        within: As in `disclosure()`.
        exclude: As in `disclosure()`; excluded records stay in their groups, and count as not disclosed.
        holdout: Confidential records that were not used to make SD, with all these columns: see
            `disclosure()`.

    Returns:
        Index (target, group, synthesis), the largest groups first; a group by two columns is "level, level".
        `records`: the group's GT records. Percent of them: DiSCO with its Wilson interval (DiSCO_low,
        DiSCO_high) and DiSCO_others. Percentage points: DiSCO_beyond and guessed_beyond, with standard errors
        `…_beyond_se`. lift: the group's share of the exposed GT records divided by its share of GT, with
        lift_low and lift_high. Targets with a band also have the figures of `Disclosure.bands`. With weights
        there are the people of each group and, in percent of them, weighted DiSCO, DiSCO_others and
        DiSCO_beyond, and figures within bands. With a holdout, DiSCO_holdout is in percent of the group's
        holdout records, and DiSCO_difference the percentage points between them and GT's, with Newcombe's
        interval (…_low, …_high); missing where a group has no holdout records.

    Warns:
        HoldoutWarning: The holdout shares records or people with GT.

    Raises:
        InputError: As in `disclosure()`; or `by` names more than two columns, or one that GT or the holdout
            lacks.

    Example:
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> gt = pd.DataFrame({"age": list(range(20)) * 2, "sex": ["f"] * 20 + ["m"] * 20})
        >>> gt["ill"] = ["y", "n"] * 20
        >>> sd = gt.assign(ill=["y", "n"] * 10 + ["n", "y"] * 10)
        >>> dp.subgroups(gt, sd, ["age", "sex"], "ill", by="sex")[["records", "DiSCO", "lift"]]
                                records  DiSCO  lift
        target group synthesis
        ill    f     1               20  100.0   2.0
               m     1               20    0.0   0.0

    Source: this project's own.
    """
    smallest = require_whole_number("smallest_count", smallest_count, 1)
    grouping = grouping_of(groups, special_values, edges, within)
    frames = read_frames(ground_truth, synthetic, grouping.numeric, holdout)
    tables = check_read_tables(frames if holdout is None else frames[:-1], keys, targets, grouping)
    names, people = _check_by(by, list(frames[0].columns), GROUND_TRUTH), [frames[0]]
    opened = FramesInMemory(tables.frames, "")
    plan = plan_measures(opened, tables.keys, tables.targets, grouping, exclude, unit, weights)
    request = build_request(plan, {column.name: column for column in opened.code(plan.columns, grouping)})
    warn_of_doubts(find_doubts(tables, request.columns))
    q, measured = combine_columns(request.keys), {column.name: column.only([0]) for column in request.columns}
    if holdout is not None:
        people.append(frames[-1])
        _check_by(by, list(people[-1].columns), HOLDOUT)
        with_holdout = FramesInMemory(frames, "", names=(*tables.names, HOLDOUT))
        prepared = prepare_holdout(with_holdout, plan, ignore_progress)
        warn_of_doubts(find_holdout_doubts(prepared))
        warn_of_doubts(prepared.shared, HoldoutWarning)
        per_unit, held = count_records_per_unit(prepared, ignore_progress), prepared.build_request()
        q_held, nobody = combine_columns(held.keys), np.arange(prepared.records)
        measured = {name: column.only([0, prepared.table]) for name, column in prepared.grouped.items()}
    (group_of_record, *of_holdout), labels = _group_records(names, people, measured, smallest)
    owners = number_owners(tables.frames, unit)
    of_GT = PeopleRecords({}, owners, weigh_owners(tables.frames, weights), tuple(plan.bases))
    rows: dict[tuple[int, int, int], dict[str, float]] = {}
    for number, target in enumerate(request.targets):
        for synthesis in range(1, len(tables.frames)):
            added = Contributions(place_records(q, target, synthesis, owners))
            of_groups = _measure_groups(added, group_of_record, len(labels), of_GT, with_guesses=True)
            if holdout is not None:  # whose its records are makes no difference to DiSCO
                of_others = Contributions(place_records(q_held, held.targets[number], synthesis, nobody))
                told = of_others.add("DiSCO")
                of_groups = _compare_with_holdout(of_groups, told, of_holdout[0], per_unit)
            rows |= {(number, group, synthesis): row for group, row in enumerate(of_groups)}
    order = sorted(rows, key=lambda label: (label[0], -rows[label]["records"], label))
    index = pd.MultiIndex.from_tuples(
        [(tables.targets[number], labels[group], synthesis) for number, group, synthesis in order],
        names=["target", "group", "synthesis"],
    )
    return FiguresFrame([rows[label] for label in order], index=index)


def _measure_groups(
    added: Contributions,
    group_of_record: IntArray,
    groups: int,
    people: PeopleRecords,
    *,
    with_guesses: bool = False,
) -> list[dict[str, float]]:
    """Return the figures of `Subgroup` and `Bands` for each group, and with weights those of its people."""
    everybody = int(added.add("DiSCO").sum())
    of_people = [*GROUP_FIGURES, *(() if added.rows.band is None else BAND_FIGURES)]
    figures = [*of_people, *(["guessed_beyond"] if with_guesses else [])]
    rows, in_order = [], np.argsort(group_of_record, kind="stable")
    ends = np.searchsorted(group_of_record[in_order], np.arange(groups + 1))
    for first, end in pairwise(ends.tolist()):
        members = in_order[first:end]
        estimates, exposed = added.estimate(figures, members=members), int(added.add("DiSCO")[members].sum())
        row = _measure_exposure(len(members), exposed, everybody, len(in_order)) | name_estimates(estimates)
        row = {name: row[name] for name in (*list_figures(Subgroup), *list_figures(Bands)) if name in row}
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


def _check_by(by: Any, columns: Sequence[Any], table: str) -> list[Any]:
    names = list(by) if isinstance(by, (list, tuple)) else [by]
    if not 1 <= len(names) <= _MOST_COLUMNS:
        raise InputError("by must be one column of the ground truth, or a list of two.")
    for name in names:
        if holds_values(name) or name not in columns:
            raise InputError(
                f"Column {describe_argument(name)} of by is not in {table}. {suggest_names(name, columns)}"
            )
    return names


def _group_records(
    names: Sequence[Any],
    people: Sequence[pd.DataFrame],
    measured: Mapping[Any, CodedColumn],
    smallest: int,
) -> tuple[list[IntArray], list[str]]:
    """Return the group of each record of GT, and perhaps of the holdout, and the labels of the groups.

    Small groups are merged into the last. Records with a level that GT lacks are in no group: -1.
    """
    tables = (GROUND_TRUTH, HOLDOUT)[: len(people)]
    columns = [
        measured[name] if name in measured else code_column(name, [frame[name] for frame in people], tables)
        for name in names
    ]
    combined = combine_columns(columns)
    held = np.flatnonzero(combined.counts[0])
    level_labels = [
        [column.label(int(code)) or MISSING for code in combined.level_of(k)[held]]
        for k, column in enumerate(columns)
    ]
    labels = [", ".join(labels_of_group) for labels_of_group in zip(*level_labels, strict=True)]
    group = np.full(combined.size, -1)
    group[held], names_of_groups = merge_small_groups(combined.counts[0][held], labels, smallest)
    return [group[q] for q in combined.q], names_of_groups


def _compare_with_holdout(
    of_groups: Sequence[Mapping[str, float]],
    told: Floats,
    group_of_record: IntArray,
    per_unit: tuple[float, float],
) -> list[dict[str, float]]:
    """Return the figures of the groups beside those of their holdout records, by what DiSCO adds of each."""
    compared = []
    for group, row in enumerate(of_groups):
        of_group = told[group_of_record == group]
        figures = dict.fromkeys(_COMPARED.values(), math.nan)
        if len(of_group):
            units = row["records"] / per_unit[0], len(of_group) / per_unit[1]
            beside = to_row(compare_with_holdout(row["DiSCO"], units[0], 100 * of_group.mean(), units[1]))
            figures = {column: beside[name] for name, column in _COMPARED.items()}
        compared.append({**row, **figures})
    return compared


_COMPARED = {"holdout": "DiSCO_holdout"} | {
    name: f"DiSCO_{name}" for name in ("difference", "difference_low", "difference_high")
}


def merge_small_groups(records: IntArray, labels: Sequence[str], smallest: int) -> tuple[IntArray, list[str]]:
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

INDEX = ["column", "group", "target", "synthesis"]


def measure_worst_groups(
    people: PeopleRecords | RecordSets,
    columns: Mapping[Any, CodedColumn],
    plan: MeasuringPlan,
    result: Disclosure,
) -> pd.DataFrame:
    """Return `measure_exposed_groups` of the most disclosed target, by columns of the plan with few levels.

    `columns`: those of all records, not grouped, as `people` may be drawn from these. Empty if no target has
    a figure.
    """
    worst, whole = find_worst_target(result.attribute), plan.whole_records
    if worst is None or whole is None:
        return pd.DataFrame()
    drawn = people.draw(MOST_RECORDS, 0)
    by_name = {name: plan.grouping.apply(column, columns[name]) for name, column in drawn.columns.items()}
    keys, column = [by_name[name] for name in plan.keys], by_name[worst]
    exclusions = code_exclusions(drop_unknown_levels(plan.exclusions, by_name), column, keys)
    group_columns = [by_name[name] for name in whole.group_columns if name in by_name and name != worst]
    return measure_exposed_groups(
        keys,
        Target(column, exclusions, math.inf, band=plan.grouping.band_of(column)),
        choose_group_columns(group_columns, whole.special_values),
        whole.smallest_count,
        drawn,
    )


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


def measure_exposed_groups(
    keys: Sequence[CodedColumn],
    target: Target,
    by: Sequence[CodedColumn],
    smallest_count: int,
    people: PeopleRecords,
) -> pd.DataFrame:
    """Measure DiSCO of one target for each level of the columns `by`: `subgroups()` without guesses.

    Index (column, group, target, synthesis). Levels of fewer GT records than `smallest_count` are merged; a
    merged group that is still smaller is left out. If records were drawn, all figures are of these.
    """
    q = combine_columns(keys)
    members = [_number_groups(column, smallest_count) for column in by]
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for synthesis in range(1, len(q.q)):
        added = Contributions(place_records(q, target, synthesis, people.unit))
        for column, (group_of_record, labels) in zip(by, members, strict=True):
            figures = _measure_groups(added, group_of_record, len(labels), people)
            for label, of_group in zip(labels, figures, strict=True):
                rows[column.name, label, target.column.name, synthesis] = of_group
    shown = {label: row for label, row in rows.items() if row["records"] >= smallest_count}
    if not shown:
        return pd.DataFrame()
    return pd.DataFrame(list(shown.values()), index=pd.MultiIndex.from_tuples(list(shown), names=INDEX))


def _number_groups(column: CodedColumn, smallest_count: int) -> tuple[Any, list[str]]:
    """Return the group of each GT record and the labels of the groups, without levels that nobody has."""
    records = column.counts[0]
    occurring = np.flatnonzero(records)
    labels = [column.label(int(code)) or MISSING for code in occurring]
    number, names = merge_small_groups(records[occurring], labels, smallest_count)
    group_of_level = np.zeros(column.size, dtype=np.int64)
    group_of_level[occurring] = number
    return group_of_level[column.codes[0]], names


_DISCLOSED = ("Dorig", "DiSCO", "DiSCO_chance", "DiSCO_at_n", "DiSCO_others", "DiSCO_beyond")
_NAMED = ("named", "named_at_n", "named_others", "named_beyond")
_WEIGHED = [name for name in (*_DISCLOSED, *_NAMED) if not name.endswith("_at_n")]


def measure_levels(records: PeopleRecords, plan: MeasuringPlan) -> pd.DataFrame:
    """Return the frame `sensitive`: the figures of the people with each sensitive level, as of any group.

    Index (level, synthesis). Guesses are by the keys alone: the level that most people have is no guess. In a
    gate, all figures but `records` are NaN if fewer people have a level than it may report on. InputError if
    a level occurs in no table; in a gate, which declares its levels, nobody may have one.
    """
    comparisons = sum(map(len, plan.sensitive.values()))
    if not comparisons:
        return pd.DataFrame()
    request = build_request(plan, records.columns)
    q = combine_columns(request.keys)
    rows: dict[tuple[str, int], dict[str, float]] = {}
    for target in request.targets:
        for level in plan.sensitive.get(target.column.name, ()):
            code = target.column.find(level)
            if plan.whole_records is None:
                find_code(target.column, level, "sensitive_levels")
            for synthesis in range(1, len(q.q)):
                added = Contributions(place_records(q, target, synthesis, records.unit))
                figures = _measure_level(added, code, records, plan, comparisons)
                rows[name_level(target.column.name, level), synthesis] = figures
    differences = [f"{name}_beyond{basis}" for basis in ("", *records.bases) for name in ("guessed", "DiSCO")]
    needed = [*differences, *(f"{name}_se" for name in differences), "right_beyond_chance"]
    index = pd.MultiIndex.from_tuples(list(rows), names=["level", "synthesis"])
    frame = pd.DataFrame(list(rows.values()), index=index)
    frame = frame.reindex(columns=list(dict.fromkeys([*frame.columns, *needed])))
    by_chance = [difference_by_chance(error, comparisons) for error in frame["guessed_beyond_se"]]
    frame = frame.assign(guessed_by_chance=by_chance)
    for name in differences:
        frame = add_beyond_chance(frame, name, comparisons)
    return frame


def _measure_level(
    added: Contributions, code: int | None, records: PeopleRecords, plan: MeasuringPlan, comparisons: int
) -> dict[str, float]:
    rows = added.rows
    has_level = rows.is_left & (rows.t == code)
    fewest = 1 if plan.whole_records is None else plan.whole_records.smallest_count
    people = int(has_level.sum())
    if code is None or people < fewest:
        return {"records": math.nan}
    members = np.flatnonzero(has_level)
    estimates = added.estimate((*_DISCLOSED, *_NAMED), members=members)
    of_level = {name: estimate.value for name, estimate in estimates.items()}
    of_level |= {f"{name}_beyond_se": estimates[f"{name}_beyond"].error for name in ("DiSCO", "named")}
    of_level |= records.weigh(added, _WEIGHED, members)
    by_SD, by_others = (LevelClaims.add_up(told, rows.t == code, rows.q) for told in tell_level(rows, code))
    right = compare_claims(by_SD, by_others, people, len(rows), comparisons)
    return {
        "records": people,
        **{name.replace("named", "guessed", 1): figure for name, figure in of_level.items()},
        **to_row(right),
        "right_beyond_chance": right.bounded,
    }
