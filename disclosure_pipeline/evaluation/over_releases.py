"""What a candidate adds to the tables of the same ground truth that are out already.

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
from disclosure_pipeline.counting.engines import OpenedTables
from disclosure_pipeline.evaluation.copied_groups import find_apart
from disclosure_pipeline.evaluation.counts import MeasuringPlan, code_shared_columns
from disclosure_pipeline.evaluation.frames import row_of
from disclosure_pipeline.evaluation.units import find_people, read_units
from disclosure_pipeline.measures.guard_chance import beyond_chance
from disclosure_pipeline.measures.people import people_copied
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.measures.together import PEOPLE_IN_RELEASES, SHARED_WITH_RELEASES
from disclosure_pipeline.runtime.progress import OnProgress, ignore_progress

MOST_STEPS = 6
"""The sum over the releases is shown after so many of them: each step counts their tables again."""


def measure_releases(
    opened: OpenedTables,
    plan: MeasuringPlan,
    files: Sequence[int],
    on_progress: OnProgress = ignore_progress,
) -> pd.DataFrame:
    """Return the people found in the first releases, in more of them, and in all; what the last one shares.

    `opened`: GT, then the tables of each release in the order of their publication, those of the candidate
    last; `files`: how many each release has. Index releases: how many of them count.
    """
    ends = list(accumulate(files))
    rows = {
        step: _find_copied(
            opened.only(range(ends[step - 1] + 1)).stacked(), plan, PEOPLE_IN_RELEASES, on_progress
        )
        for step in choose_steps(len(files))
    }
    frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis(index="releases")
    *starts, start, end = [1, *(last + 1 for last in ends)]
    # Beside each release, and beside all of them: two that share much are lost among many that share little.
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
    worst = max(
        shared,
        key=lambda row: (row[f"{SHARED_WITH_RELEASES}_beyond_chance"], row[f"{SHARED_WITH_RELEASES}_beyond"]),
    )
    of_candidate = pd.DataFrame([worst], index=frame.index[-1:])
    return frame.join(of_candidate)


def choose_steps(releases: int) -> list[int]:
    """Return after how many releases the sum is counted: the last two, and some before.

    >>> choose_steps(1), choose_steps(4), choose_steps(30)
    ([1], [1, 2, 3, 4], [1, 8, 15, 22, 29, 30])
    """
    before = np.linspace(1, max(releases - 1, 1), MOST_STEPS - 1).round().astype(int).tolist()
    return sorted({*before, releases} & set(range(1, releases + 1)))


def find_first_release(guards: pd.DataFrame) -> pd.DataFrame:
    """Return the same frame where nothing is published yet, from the guards of all files as one table."""
    [of_all] = guards.to_dict("records")
    people = {str(name): figure for name, figure in of_all.items() if str(name).startswith(_COPIED)}
    nothing = dict.fromkeys(people, 0.0)
    row = {"releases_gone": 0} | _rename(people, PEOPLE_IN_RELEASES) | _rename(nothing, SHARED_WITH_RELEASES)
    return pd.DataFrame([row], index=pd.RangeIndex(1, 2, name="releases"))


def _find_copied(
    opened: OpenedTables, plan: MeasuringPlan, name: str, on_progress: OnProgress, comparisons: int = 1
) -> dict[str, float]:
    """Measure the records of the first table that the other one holds, in all columns that both have."""
    columns = list(code_shared_columns(opened, plan.grouping, on_progress).values())
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
