"""The figures of people: by the units whose each record is, and in the population that GT is a sample of.

Where people have several records, other people's records are those of other units.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.counts import CountRequest
from disclosure_pipeline.evaluation.counts import (
    MeasuringPlan,
    RecordCells,
    build_request,
    combine_columns,
    place_records,
)
from disclosure_pipeline.evaluation.figures import (
    add_beyond_chance,
    add_differences_beyond_chance,
    bound_bands,
)
from disclosure_pipeline.evaluation.frames import build_frame, list_figures, to_row
from disclosure_pipeline.evaluation.record_sets import PeopleRecords
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.measures.contributions import (
    BAND_FIGURES,
    BESIDE_OTHERS,
    COPY_FIGURES,
    KEY_FIGURES,
    TARGET_FIGURES,
    Contributions,
    Estimate,
    Rows,
    inflate_variance,
    name_estimates,
)
from disclosure_pipeline.measures.copies import (
    UnitCombinations,
    unique_hits,
)
from disclosure_pipeline.measures.exact import Floats, IntArray, sum_exactly
from disclosure_pipeline.measures.frequency import Keys
from disclosure_pipeline.measures.samples import Sizes, to_integer_chances
from disclosure_pipeline.measures.survey import (
    HouseholdRisk,
    household_risk,
    population_disclosure,
    population_risk,
)
from disclosure_pipeline.measures.together import TogetherTargetCounts, chance_of_any, square_beyond, together
from disclosure_pipeline.measures.totals import APART_SCALE, count_hits_apart
from disclosure_pipeline.measures.words import WEIGHTED

_PARTS = ("_others", "_beyond")
_OF_ATTRIBUTION = ("CAPd", "DCAP")


def measure_records(result: Disclosure, records: PeopleRecords, plan: MeasuringPlan) -> Disclosure:
    """Return the result with the frames that need each record's unit or weight.

    With a unit, other people's records are those of other units, and there is the frame `units`. Of a sample,
    there are the frames `population` and `population_targets`.
    """
    request = build_request(plan, records.columns)
    # If nobody has two records, the result is of units already, in integers.
    is_by_unit = records.records_per_unit > 1
    if plan.unit is not None:
        result = _measure_keys_by_unit(result, records, request)
    by_unit, in_bands, certain = (defaultdict[str, list[float]](list) for _ in range(3))
    target_rows, band_rows = {}, {}
    release = result.together
    q = combine_columns(request.keys)
    for target in request.targets:
        chances = []
        for synthesis in range(1, len(q.q)):
            place = (target.column.name, synthesis)
            added = Contributions(place_records(q, target, synthesis, records.unit))
            if is_by_unit:
                _append(by_unit, added.estimate(BESIDE_OTHERS))
                if target.band is not None:
                    _append(in_bands, added.estimate(BAND_FIGURES))
                    for c in target.certainties:
                        names = {f"DiSCO_within{part}": f"DiSCO_within at {c}{part}" for part in _PARTS}
                        estimates = added.estimate(names.values())
                        _append(certain, {name: estimates[of_c] for name, of_c in names.items()})
                chances.append([added.add(f"DiSCO{part}") for part in ("_at_n", "_others")])
            if plan.is_of_sample:
                target_rows[place] = _measure_in_population(added, records, plan)
            if plan.weights is not None and target.band is not None:
                band_rows[place] = _weigh(added, BAND_FIGURES, records)
        if len(release) and is_by_unit:
            DiSCO_others = by_unit["DiSCO_others"][-len(chances) :]
            of_release = _measure_together(q.q[0], chances, DiSCO_others)
            others = release.index != target.column.name
            release = release.assign(
                **{name: release[name].where(others, figure) for name, figure in of_release.items()}
            )
    result = replace(result, together=release)
    if is_by_unit:
        attribute, cap = add_differences_beyond_chance(
            _update_frame(result.attribute, by_unit), _update_frame(result.cap, by_unit), len(result.targets)
        )
        result = replace(
            result,
            attribute=attribute,
            cap=cap,
            bands=bound_bands(_update_frame(result.bands, in_bands)),
            band_certainty=_update_frame(result.band_certainty, certain),
        )
    if plan.is_of_sample:
        result = _add_population(result, records, plan, q, target_rows)
    if band_rows:
        banded = result.bands.index.get_level_values("target").nunique()
        result = replace(result, bands=result.bands.join(_frame_weighted(band_rows, banded)))
    return result


def _measure_keys_by_unit(result: Disclosure, records: PeopleRecords, request: CountRequest) -> Disclosure:
    q = combine_columns(request.keys)
    combinations = UnitCombinations.from_records(q.q[0], records.unit, q.size)
    alone = combinations.units == 1
    key_levels = [q.level_of(k)[alone] for k in range(len(request.keys))]
    hits: dict[str, list[float]] = defaultdict(list)
    risks = {}
    for synthesis, N_s in enumerate(result.N_s, start=1):
        s_q = q.counts[synthesis]
        apart = 100 * count_hits_apart(key_levels, request.shares_apart[synthesis - 1]) / APART_SCALE
        counted = unique_hits(combinations.count_hits(s_q), Sizes(result.N_d, N_s), apart)
        for name, figure in to_row(counted).items():
            hits[name].append(figure)
        # Records of one unit are not independent: only units are.
        hits["unique_hits_beyond_se"][-1] *= math.sqrt(len(records.unit) / (records.unit.max(initial=0) + 1))
        risks[(synthesis,)] = to_row(household_risk(q.q[0], q.counts[0], s_q, records.unit))
    identity = add_beyond_chance(_update_frame(result.identity, hits), "unique_hits_beyond")
    return replace(
        result, identity=identity, units=build_frame(risks, ["synthesis"], list_figures(HouseholdRisk))
    )


def _weigh(added: Contributions, figures: Sequence[str], records: PeopleRecords) -> dict[str, float]:
    return name_estimates(added.estimate(figures, records.weight), WEIGHTED)


def _measure_in_population(
    added: Contributions, records: PeopleRecords, plan: MeasuringPlan
) -> dict[str, float]:
    """Return the figures of a target in the population, and the weighted ones."""
    rows = added.rows
    people_q = np.bincount(rows.q, weights=records.weight, minlength=rows.f.keys)
    disclosed_q = np.bincount(rows.q, weights=added.add("DiSCO"), minlength=rows.f.keys).astype(np.int64)
    d_q = np.bincount(rows.q, minlength=rows.f.keys)
    figures = to_row(population_disclosure(d_q, people_q.astype(np.float64), disclosed_q, len(rows)))
    if plan.weights is None:
        return figures
    weighed = [name for name in TARGET_FIGURES if plan.attribution or not name.startswith(_OF_ATTRIBUTION)]
    return figures | _weigh(added, weighed, records)


def _add_population(
    result: Disclosure, records: PeopleRecords, plan: MeasuringPlan, q: Keys, target_rows: Mapping[Any, Any]
) -> Disclosure:
    people_q = np.bincount(q.q[0], weights=records.weight, minlength=q.size).astype(np.float64)
    people, N_d = sum_exactly(records.weight), len(records.weight)
    rows = {}
    for synthesis in range(1, len(q.q)):
        rows[(synthesis,)] = to_row(population_risk(q.counts[0], q.counts[synthesis], people_q, N_d, people))
        if plan.weights is not None:
            rows[(synthesis,)] |= _weigh(_place_keys(q, synthesis, records.unit), KEY_FIGURES, records)
    return replace(
        result,
        population=build_frame(rows, ["synthesis"], list(next(iter(rows.values())))),
        population_targets=_frame_weighted(target_rows, len(result.targets)),
    )


def _place_keys(q: Keys, synthesis: int, unit: IntArray) -> Contributions:
    """Return what the records add to figures of their keys alone."""
    nothing = [np.zeros_like(codes) for codes in q.q]
    cells = RecordCells.from_keys(q, nothing, 1, synthesis)
    return Contributions(Rows(cells.f, cells.position, unit))


def _frame_weighted(rows: Mapping[tuple[Any, int], dict[str, float]], comparisons: int) -> pd.DataFrame:
    """Return the rows as a frame, with the parts of differences that are beyond chance."""
    columns = list(next(iter(rows.values()), ()))
    frame = build_frame(rows, ["target", "synthesis"], columns)
    for name in columns:
        if name.endswith(f"_beyond{WEIGHTED}"):
            frame = add_beyond_chance(frame, name, comparisons)
    return frame


def weigh_people_copied(result: Disclosure, records: PeopleRecords) -> pd.DataFrame:
    """Return the frame `population` with weighted shares of people copied; `records` have all columns.

    A fresh table finds everybody whom no other unit equals with the same chance.
    """
    q, rows = combine_columns(list(records.columns.values())), []
    inflated = math.sqrt(inflate_variance(records.weight))
    for synthesis in range(1, len(q.q)):
        added = _place_keys(q, synthesis, records.unit)
        guards = result.guards.loc[synthesis]
        alone = added.estimate(["alone"], records.weight)["alone"]
        copied = added.estimate(["people_copied"], records.weight)["people_copied"]
        chance = guards["people_copied_expected"] / (100 * max(float(added.add("alone").mean()), 1e-300))
        expected = Estimate(chance * alone.value, chance * alone.error)
        beyond = Estimate(copied.value - expected.value, guards["people_copied_beyond_se"] * inflated)
        estimates = dict(zip(COPY_FIGURES, (copied, expected, beyond), strict=True))
        rows.append(name_estimates(estimates, WEIGHTED))
    population = result.population.join(pd.DataFrame(rows, index=result.population.index))
    return add_beyond_chance(population, f"people_copied_beyond{WEIGHTED}")


def _append(columns: dict[str, list[float]], estimates: Mapping[str, Estimate]) -> None:
    for name, figure in name_estimates(estimates).items():
        columns[name].append(figure)


def _update_frame(frame: pd.DataFrame, figures: Mapping[str, Sequence[float]]) -> pd.DataFrame:
    return frame.assign(**{name: figures[name] for name in frame.columns if name in figures})


def _measure_together(
    q: IntArray, chances: Sequence[Sequence[Floats]], DiSCO_others: Sequence[float]
) -> dict[str, float]:
    """Return the figures of `Together` that depend on other people's records.

    `chances`: what each record adds to DiSCO at n records of each synthesis, and by the others.
    """
    in_order = np.argsort(q, kind="stable")
    at_n, by_others = (
        chance_of_any([to_integer_chances(of_table) for of_table in side])[in_order]
        for side in zip(*chances, strict=True)
    )
    squares = square_beyond(q[in_order], 1, at_n, by_others)
    counts = TogetherTargetCounts(any_at_n=int(at_n.sum()), any_others=int(by_others.sum()), squares=squares)
    figures = to_row(together(counts, len(q), DiSCO_others))
    return {name: figures[name] for name in figures if name.startswith("DiSCO_any")}
