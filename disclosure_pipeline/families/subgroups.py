"""`subgroups()`: which groups of people are more exposed."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.counting.opening import check_read_tables, read_frames
from disclosure_pipeline.errors import HoldoutWarning, InputError
from disclosure_pipeline.evaluation.arguments import Exclusions, require_whole_number
from disclosure_pipeline.evaluation.counts import (
    FEWEST_OF_GROUP,
    build_request,
    combine_columns,
    place_records,
    plan_measures,
)
from disclosure_pipeline.evaluation.exposed_groups import measure_groups, number_groups
from disclosure_pipeline.evaluation.frames import FiguresFrame, to_row
from disclosure_pipeline.evaluation.holdout import (
    count_records_per_unit,
    find_holdout_doubts,
    prepare_holdout,
)
from disclosure_pipeline.evaluation.record_sets import PeopleRecords
from disclosure_pipeline.evaluation.resemblance import find_doubts, warn_of_doubts
from disclosure_pipeline.measures.contributions import Contributions
from disclosure_pipeline.measures.exact import Floats, IntArray
from disclosure_pipeline.measures.holdout import compare_with_holdout
from disclosure_pipeline.runtime.progress import ignore_progress
from disclosure_pipeline.tables.alignment import is_column, number_owners, weigh_owners
from disclosure_pipeline.tables.coding import code_column
from disclosure_pipeline.tables.grouping import Edges, grouping_of
from disclosure_pipeline.tables.messages import GROUND_TRUTH, HOLDOUT, describe_argument, suggest_names
from disclosure_pipeline.tables.sources import Columns, Syntheses, TableSource

_MOST_COLUMNS = 2


def subgroups(
    ground_truth: TableSource,
    synthetic: Syntheses,
    keys: Sequence[Hashable],
    targets: Columns,
    *,
    by: Hashable | Sequence[Hashable],
    smallest_count: int = FEWEST_OF_GROUP,
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
    numeric = grouping.numeric if weights is None else [*grouping.numeric, weights]
    frames = read_frames(ground_truth, synthetic, numeric, holdout)
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
    by_columns = [
        measured[name]
        if name in measured
        else code_column(name, [frame[name] for frame in people], (GROUND_TRUTH, HOLDOUT)[: len(people)])
        for name in names
    ]
    (group_of_record, *of_holdout), labels = number_groups(by_columns, smallest)
    owners = number_owners(tables.frames, unit)
    of_GT = PeopleRecords({}, owners, weigh_owners(tables.frames, weights), tuple(plan.bases))
    rows: dict[tuple[int, int, int], dict[str, float]] = {}
    for number, target in enumerate(request.targets):
        for synthesis in range(1, len(tables.frames)):
            added = Contributions(place_records(q, target, synthesis, owners))
            of_groups = measure_groups(added, group_of_record, len(labels), of_GT, with_guesses=True)
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


def _check_by(by: Any, columns: Sequence[Any], table: str) -> list[Any]:
    names = list(by) if isinstance(by, (list, tuple)) else [by]
    if not 1 <= len(names) <= _MOST_COLUMNS:
        raise InputError("by must be one column of the ground truth, or a list of two.")
    for name in names:
        if not is_column(name, columns):
            raise InputError(
                f"Column {describe_argument(name)} of by is not in {table}. {suggest_names(name, columns)}"
            )
    return names


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
