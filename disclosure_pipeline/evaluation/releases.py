"""People found over several releases, and the records that releases share.

Whoever holds several releases can compare them: counted over all of them are the people found in any, and the
records that the candidate shares with an earlier release, which are few in a fresh draw. Both are figures of
`measures.people`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.cells import count_tables
from disclosure_pipeline.counting.opening import OpenedTables
from disclosure_pipeline.evaluation.copies import APART_SAMPLE, ColumnsApart
from disclosure_pipeline.evaluation.counts import NO_FLAGS, Counts, MeasuringPlan, build_request
from disclosure_pipeline.evaluation.figures import build_disclosure, compare_records
from disclosure_pipeline.evaluation.frames import build_frame, list_figures, to_row
from disclosure_pipeline.evaluation.people import measure_people
from disclosure_pipeline.evaluation.record_sets import count_whole_records, draw_records, read_records
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.measures.chance import beyond_chance, difference_by_chance
from disclosure_pipeline.measures.people import people_copied
from disclosure_pipeline.measures.together import PEOPLE_IN_RELEASES, SHARED_WITH_RELEASES, Together
from disclosure_pipeline.runtime.progress import ignore_progress
from disclosure_pipeline.tables.grouping import grouping_of

MOST_STEPS = 6
"""The most numbers of releases to measure together: each counts the tables again."""


def measure_releases(
    opened: OpenedTables,
    plan: MeasuringPlan,
    files: Sequence[int],
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the frames `over_releases` and `released_targets` of a candidate and all earlier releases.

    `opened`: GT, then the tables of at least two releases in the order of publication, the candidate last;
    `files`: the number of tables of each release. `over_releases`: index releases, the number of releases
    measured together; people found in them, repU_any, and in the last row the records that the candidate
    shares with the others. `released_targets`: index (target, releases), see `Together`.
    """
    ends, steps = list(accumulate(files)), choose_steps(len(files))
    together, repU_any = measure_together(opened, plan, [ends[step - 1] for step in steps])
    rows = {}
    for step in steps:
        tables = opened.only(range(ends[step - 1] + 1)).stack_syntheses()
        rows[step] = _find_copied(tables, plan, PEOPLE_IN_RELEASES)
        rows[step]["repU_any"] = repU_any[ends[step - 1]]
    frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis(index="releases")
    shared = _find_shared(opened, plan, ends)
    numbers = dict(zip([ends[step - 1] for step in steps], steps, strict=True))
    frame = frame.join(pd.DataFrame([shared], index=frame.index[-1:])).assign(releases_gone=0)
    return frame, together.rename(index=numbers, level="tables").rename_axis(index=_TARGETS_INDEX)


_TARGETS_INDEX = ["target", "releases"]


def _find_shared(opened: OpenedTables, plan: MeasuringPlan, ends: Sequence[int]) -> dict[str, float]:
    """Return the records that a table of the candidate shares with a release or all releases: the worst."""
    *starts, start, end = [1, *(last + 1 for last in ends)]
    earlier = [range(first, last + 1) for first, last in zip(starts, ends[:-1], strict=True)]
    earlier += [range(1, start)] if len(earlier) > 1 else []
    comparisons = len(earlier) * (end - start)
    plan = replace(plan, unit=None)  # synthetic records belong to nobody
    shared = []
    for table in range(start, end):
        for tables in earlier:
            pair = opened.only([table, *tables]).stack_syntheses()
            shared.append(_find_copied(pair, plan, SHARED_WITH_RELEASES, comparisons))
    bounded, beyond = f"{SHARED_WITH_RELEASES}_beyond_chance", f"{SHARED_WITH_RELEASES}_beyond"
    return max(shared, key=lambda figures: (figures[bounded], figures[beyond]))


def measure_together(
    opened: OpenedTables, plan: MeasuringPlan, numbers: Sequence[int]
) -> tuple[pd.DataFrame, dict[int, float]]:
    """Return what the first `numbers[i]` tables disclose as one release, and their repU_any by number.

    Index (target, tables). All tables are grouped alike, so more tables never disclose fewer people.
    """
    columns = opened.code(plan.columns, plan.grouping, ignore_progress)
    grouped = {column.name: plan.grouping.apply(column) for column in columns}
    release_plan = replace(
        plan,
        grouping=grouping_of(),
        attribution=False,
        chance=False,
        together=True,
        weights=None,
        sampling_fraction=None,
        sensitive={},
        whole_records=None,
        one_way=NO_FLAGS,
        two_way=NO_FLAGS,
    )
    units = read_records(opened, release_plan, ignore_progress, plan.columns)
    frames, repU_any = {}, {}
    for number in numbers:
        tables = range(number + 1)
        first_tables = {name: column.only(tables) for name, column in grouped.items()}
        request = build_request(release_plan, first_tables)
        [counts] = count_tables(opened.only(tables), [request])
        counts_with_columns = Counts(
            keys=request.keys,
            measured=request.targets,
            counts=counts,
            records=tuple(int(level_counts.sum()) for level_counts in request.keys[0].counts),
        )
        if units:
            of_tables = {
                name: plan.grouping.apply(column).only(tables) for name, column in units.columns.items()
            }
            people = replace(units, columns=of_tables)
            others, _ = measure_people(people, counts_with_columns, release_plan)
        else:
            others = compare_records(counts_with_columns)
        result = build_disclosure(counts_with_columns, release_plan, others)
        frames[number] = result.together
        repU_any[number] = result.together_identity["repU_any"].item()
    return pd.concat(frames, names=["tables"]).swaplevel(), repU_any


def choose_steps(releases: int) -> list[int]:
    """Return the numbers of releases to measure together: the last two, and some before.

    >>> choose_steps(1), choose_steps(4), choose_steps(30)
    ([1], [1, 2, 3, 4], [1, 8, 15, 22, 29, 30])
    """
    before = np.linspace(1, max(releases - 1, 1), MOST_STEPS - 1).round().astype(int).tolist()
    return sorted({*before, releases} & set(range(1, releases + 1)))


def add_first_release(result: Disclosure) -> Disclosure:
    """Return the result with the frames of `measure_releases` for a candidate without earlier releases."""
    [guards] = (result.stacked or result).guards.to_dict("records")
    people = {str(name): figure for name, figure in guards.items() if str(name).startswith(_COPIED)}
    nothing = dict.fromkeys(people, 0.0)
    found = (result.stacked or result).found.droplevel("synthesis")
    identity = result.together_identity["repU_any"] if len(result.together) else result.identity["repU"]
    row = {
        **_rename(people, PEOPLE_IN_RELEASES),
        "repU_any": float(identity.item()),
        **_rename(nothing, SHARED_WITH_RELEASES),
        "releases_gone": 0,
    }
    together = result.together if len(result.together) else _measure_single_table(result)
    index = pd.MultiIndex.from_product([together.index, [1]], names=_TARGETS_INDEX)
    return replace(
        result,
        over_releases=pd.DataFrame([row], index=pd.RangeIndex(1, 2, name="releases")),
        released_targets=together.set_axis(index),
        released_found=pd.concat({1: found}, names=["releases"]).swaplevel(),
    )


def _measure_single_table(result: Disclosure) -> pd.DataFrame:
    rows = {}
    for target in result.targets:
        figures = result.attribute.xs(target, level="target").iloc[0]
        others, error = figures["DiSCO_others"], figures["DiSCO_beyond_se"]
        rows[(target,)] = to_row(
            Together(
                any=figures["DiSCO"],
                agreed=0.0,
                DiSCO_any_others=others,
                DiSCO_any_beyond=figures["DiSCO_beyond"],
                DiSCO_any_beyond_se=error,
                DiSCO_any_by_chance=difference_by_chance(error, len(result.targets)),
                DiSCO_any_beyond_chance=figures["DiSCO_beyond_chance"],
            )
        )
    return build_frame(rows, ["target"], list_figures(Together))


def _find_copied(
    opened: OpenedTables, plan: MeasuringPlan, name: str, comparisons: int = 1
) -> dict[str, float]:
    """Measure the records of the first table that the other one holds, by all shared columns."""
    records = count_whole_records(opened, plan)
    columns, [sizes], [counts] = records.columns, records.sizes, records.whole
    [apart] = ColumnsApart.from_sample(draw_records(opened, columns, APART_SAMPLE, 0), [columns])
    shown = apart.find_shown(sizes.N_s)
    figures = people_copied(counts.people, sizes, shown, comparisons, records.records_per_unit)
    bounded = beyond_chance(figures.people_copied_beyond, figures.people_copied_by_chance)
    return _rename(to_row(figures) | {f"{_COPIED}_beyond_chance": bounded}, name)


_COPIED = "people_copied"


def _rename(figures: Mapping[str, float], name: str) -> dict[str, float]:
    return {figure.replace(_COPIED, name): value for figure, value in figures.items()}
