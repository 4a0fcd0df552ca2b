"""The people who have a sensitive level of a target."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from disclosure_pipeline.evaluation.arguments import find_code
from disclosure_pipeline.evaluation.counts import MeasuringPlan, build_request, combine_columns, place_records
from disclosure_pipeline.evaluation.figures import add_beyond_chance
from disclosure_pipeline.evaluation.frames import to_row
from disclosure_pipeline.evaluation.record_sets import PeopleRecords
from disclosure_pipeline.measures.chance import difference_by_chance
from disclosure_pipeline.measures.contributions import Contributions, tell_level
from disclosure_pipeline.measures.sensitive_levels import LevelClaims, compare_claims
from disclosure_pipeline.tables.levels import name_level

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
