"""Disclosure over releases: what a candidate adds to the published tables of the same ground truth.

Whoever holds several releases lays them side by side. Two things are counted over all of them: the people who
are found in any, and the records that the candidate shares with an earlier one, of which a fresh draw would
share few. Both are `measures.people`: a record that is copied twice is found in one table by the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.counts import CountRequest
from disclosure_pipeline.counting.opening import OpenedTables
from disclosure_pipeline.evaluation.copied_people import find_apart
from disclosure_pipeline.evaluation.counts import (
    NO_FLAGS,
    Counts,
    MeasuringPlan,
    code_shared_columns,
    count_request,
)
from disclosure_pipeline.evaluation.figures import figures
from disclosure_pipeline.evaluation.frames import frame_of, names_of, row_of
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.evaluation.units import UnitRecords, find_people, measure_by_units, read_units
from disclosure_pipeline.measures.chance import beyond_chance
from disclosure_pipeline.measures.people import people_copied
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.measures.together import (
    PEOPLE_IN_RELEASES,
    SHARED_WITH_RELEASES,
    Together,
    find_chance_of_any,
)
from disclosure_pipeline.runtime.progress import OnProgress, ignore_progress
from disclosure_pipeline.tables.grouping import grouping_of

MOST_STEPS = 6
"""The most steps at which the sum over the releases is shown: each counts their tables again."""


def measure_releases(
    opened: OpenedTables,
    plan: MeasuringPlan,
    files: Sequence[int],
    on_progress: OnProgress = ignore_progress,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return what a candidate is beside all that is out: how the sums grew, and what is shared.

    `opened`: GT, then the tables of each release in the order of their publication, those of the candidate
    last; `files`: how many each of them has; two releases at least. `over_releases`: index releases, how many
    of them count; people found in them, repU_any, and in the last row what the candidate shares with the
    others. `released_targets`: index (target, releases), what they disclose together, see `Together`.
    """
    ends, steps = list(accumulate(files)), choose_steps(len(files))
    together, of_keys = measure_together(opened, plan, [ends[step - 1] for step in steps], on_progress)
    rows = {}
    for step in steps:
        tables = opened.only(range(ends[step - 1] + 1)).stacked()
        rows[step] = _find_copied(tables, plan, PEOPLE_IN_RELEASES, on_progress)
        rows[step]["repU_any"] = of_keys[ends[step - 1]]
    frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis(index="releases")
    shared = _find_shared(opened, plan, ends, on_progress)
    numbers = dict(zip([ends[step - 1] for step in steps], steps, strict=True))
    frame = frame.join(pd.DataFrame([shared], index=frame.index[-1:])).assign(releases_gone=0)
    return frame, together.rename(index=numbers, level="tables").rename_axis(index=_OF_TARGETS)


_OF_TARGETS = ["target", "releases"]


def _find_shared(
    opened: OpenedTables, plan: MeasuringPlan, ends: Sequence[int], on_progress: OnProgress
) -> dict[str, float]:
    """Return what a table of the candidate shares with a release, or with all of them: the worst of these."""
    *starts, start, end = [1, *(last + 1 for last in ends)]
    earlier = [range(first, last + 1) for first, last in zip(starts, ends[:-1], strict=True)]
    earlier += [range(1, start)] if len(earlier) > 1 else []
    comparisons = len(earlier) * (end - start)
    of_SD = replace(plan, unit=None)  # nobody says whose its records are
    shared = [
        _find_copied(
            opened.only([table, *tables]).stacked(), of_SD, SHARED_WITH_RELEASES, on_progress, comparisons
        )
        for table in range(start, end)
        for tables in earlier
    ]
    bounded, beyond = f"{SHARED_WITH_RELEASES}_beyond_chance", f"{SHARED_WITH_RELEASES}_beyond"
    return max(shared, key=lambda figures: (figures[bounded], figures[beyond]))


def measure_together(
    opened: OpenedTables,
    plan: MeasuringPlan,
    numbers: Sequence[int],
    on_progress: OnProgress = ignore_progress,
) -> tuple[pd.DataFrame, dict[int, float]]:
    """Return what the first tables disclose as one release, for each number of them; and their repU_any.

    Index (target, tables). All tables are grouped alike, so that more of them never disclose fewer people.
    """
    columns = opened.code(plan.columns, plan.grouping, on_progress)
    grouped = {column.name: plan.grouping.apply(column) for column in columns}
    units = None
    if plan.unit is not None:
        units = read_units(opened.with_columns([plan.unit]), plan, on_progress)
    of_release = replace(
        plan,
        grouping=grouping_of(),
        attribution=False,
        chance=False,
        together=True,
        weights=None,
        sampling_fraction=None,
        whole_records=None,
        one_way=NO_FLAGS,
        two_way=NO_FLAGS,
    )
    frames, of_keys = {}, {}
    for number in numbers:
        tables = range(number + 1)
        some = {name: column.only(tables) for name, column in grouped.items()}
        request = count_request(of_release, some)
        [counts] = opened.only(tables).count([request], on_progress)
        of_tables = Counts(
            keys=request.keys,
            targets=[target.column for target in request.targets],
            counts=counts,
            records=tuple(int(of_table.sum()) for of_table in request.keys[0].counts),
            bands=tuple(target.band for target in request.targets),
        )
        result = figures(of_tables, of_release)
        if units is not None:
            of_units = {name: plan.grouping.apply(column) for name, column in units.columns.items()}
            some = {name: column.only(tables) for name, column in of_units.items()}
            result = measure_by_units(result, UnitRecords(some, units.unit), of_release)
        frames[number] = result.together
        of_keys[number] = result.together_identity["repU_any"].item()
    return pd.concat(frames, names=["tables"]).swaplevel(), of_keys


def choose_steps(releases: int) -> list[int]:
    """Return after how many releases the sum is counted: the last two, and some before.

    >>> choose_steps(1), choose_steps(4), choose_steps(30)
    ([1], [1, 2, 3, 4], [1, 8, 15, 22, 29, 30])
    """
    before = np.linspace(1, max(releases - 1, 1), MOST_STEPS - 1).round().astype(int).tolist()
    return sorted({*before, releases} & set(range(1, releases + 1)))


def add_first_release(result: Disclosure) -> Disclosure:
    """Return the same where nothing is published yet: what all files of the candidate are by themselves."""
    [of_all] = (result.stacked or result).guards.to_dict("records")
    people = {str(name): figure for name, figure in of_all.items() if str(name).startswith(_COPIED)}
    nothing = dict.fromkeys(people, 0.0)
    identity = result.together_identity["repU_any"] if len(result.together) else result.identity["repU"]
    row = {
        **_rename(people, PEOPLE_IN_RELEASES),
        "repU_any": float(identity.item()),
        **_rename(nothing, SHARED_WITH_RELEASES),
        "releases_gone": 0,
    }
    together = result.together if len(result.together) else _describe_one(result)
    index = pd.MultiIndex.from_product([together.index, [1]], names=_OF_TARGETS)
    return replace(
        result,
        over_releases=pd.DataFrame([row], index=pd.RangeIndex(1, 2, name="releases")),
        released_targets=together.set_axis(index),
    )


def _describe_one(result: Disclosure) -> pd.DataFrame:
    rows = {}
    for target in result.targets:
        of_target = result.attribute.xs(target, level="target").iloc[0]
        others, error = of_target["DiSCO_others"], of_target["DiSCO_beyond_se"]
        rows[(target,)] = row_of(
            Together(
                any=of_target["DiSCO"],
                agreed=0.0,
                DiSCO_any_others=others,
                DiSCO_any_beyond=of_target["DiSCO_beyond"],
                DiSCO_any_beyond_se=error,
                DiSCO_any_fresh=others,
                DiSCO_any_by_chance=find_chance_of_any(0.0, error, len(result.targets)),
                DiSCO_any_beyond_chance=of_target["DiSCO_beyond_chance"],
            )
        )
    return frame_of(rows, ["target"], names_of(Together))


def _find_copied(
    opened: OpenedTables, plan: MeasuringPlan, name: str, on_progress: OnProgress, comparisons: int = 1
) -> dict[str, float]:
    """Measure the records of the first table that the other one holds, in all columns that both have."""
    columns = code_shared_columns(opened, plan.grouping, on_progress)
    sizes = Sizes(*(int(counts.sum()) for counts in columns[0].counts))
    per_unit = 1.0
    if plan.unit is None:
        [counted] = opened.count([CountRequest(columns)], on_progress)
        [people] = [keys.people for keys in counted.keys]
    else:
        names = [column.name for column in columns]
        units = read_units(opened.with_columns([plan.unit]), plan, on_progress, names)
        [people], per_unit = find_people(units), units.records_per_unit
    apart = find_apart(opened, columns, sizes.N_s)
    found = people_copied(people, sizes, apart, comparisons, per_unit)
    bounded = beyond_chance(found.people_copied_beyond, found.people_copied_by_chance)
    return _rename(row_of(found) | {f"{_COPIED}_beyond_chance": bounded}, name)


_COPIED = "people_copied"


def _rename(figures: Mapping[str, float], name: str) -> dict[str, float]:
    return {figure.replace(_COPIED, name): value for figure, value in figures.items()}
