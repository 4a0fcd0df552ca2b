"""The figures of people: by the units whose each record is, and in the population that GT is a sample of.

Where people have several records, other people's records are those of other units.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.counts import CountRequest
from disclosure_pipeline.evaluation.counts import (
    Counts,
    MeasuringPlan,
    build_request,
    combine_columns,
    find_cells,
    place_records,
)
from disclosure_pipeline.evaluation.figures import (
    BESIDE_OTHERS,
    BesideOthers,
    add_beyond_chance,
    compare_records,
    measure_hits,
)
from disclosure_pipeline.evaluation.frames import build_frame, to_row
from disclosure_pipeline.evaluation.record_sets import PeopleRecords
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.evaluation.sensitive_levels import measure_levels
from disclosure_pipeline.measures import bands
from disclosure_pipeline.measures.contributions import (
    BAND_FIGURES,
    COPY_FIGURES,
    KEY_FIGURES,
    TARGET_FIGURES,
    Contributions,
    Estimate,
    inflate_variance,
    name_estimates,
)
from disclosure_pipeline.measures.copies import Combinations
from disclosure_pipeline.measures.exact import Floats, IntArray, sum_exactly
from disclosure_pipeline.measures.frequency import Keys, Rows, first_of_run
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.measures.survey import (
    household_risk,
    population_disclosure,
    population_risk,
)
from disclosure_pipeline.measures.together import TogetherChances, TogetherTargetCounts
from disclosure_pipeline.measures.totals import APART_SCALE, count_hits_apart
from disclosure_pipeline.measures.words import WEIGHTED

_OF_ATTRIBUTION = ("CAPd", "DCAP")


def measure_people(
    people: PeopleRecords, counts: Counts, plan: MeasuringPlan
) -> tuple[BesideOthers, dict[str, Any]]:
    """Return the figures beside those of other people, and frames that need each record's unit or weight.

    Other people's records are those of other units. If nobody has two, these are all other records, and the
    figures follow from what an engine counted.
    """
    by_record = compare_records(counts)
    request, is_by_unit = build_request(plan, people.columns), people.records_per_unit > 1
    compared, within, certain, of_population, weighted_bands = (dict[Any, Any]() for _ in range(5))
    together = dict[Any, TogetherTargetCounts]()
    q = combine_columns(request.keys)
    for target in request.targets if is_by_unit or plan.is_of_sample else ():
        chances = []
        for synthesis in range(1, len(q.q)):
            place = (target.column.name, synthesis)
            added = Contributions(place_records(q, target, synthesis, people.unit))
            if is_by_unit:
                compared[place] = _estimate(added, BESIDE_OTHERS)
                if target.band:
                    within[place] = _estimate(added, bands.WORDS)
                    certain |= {(*place, float(c)): _estimate_at(c, added) for c in target.certainties}
                chances.append([added.add(f"DiSCO{part}") for part in ("_at_n", "_others")])
            if plan.is_of_sample:
                of_population[place] = _measure_in_population(added, people, plan)
                if target.band:
                    weighted_bands[place] = people.weigh(added, BAND_FIGURES)
        if chances and target.column.name in by_record.together:
            counted = by_record.together[target.column.name]
            together[target.column.name] = _count_together(q.q[0], chances, counted)
    hits, frames = by_record.hits, {"sensitive": measure_levels(people, plan)}
    if plan.unit is not None:
        hits, frames["units"] = _measure_keys_by_unit(q, people, request)
    if plan.is_of_sample:
        frames["population"] = _measure_population(people, q)
        frames["population_targets"] = _frame_weighted(of_population, len(request.targets))
    others = BesideOthers(hits, compared, within, certain, together) if is_by_unit else by_record
    with_bands = len({target for target, _ in weighted_bands})
    return replace(others, weighted_bands=_frame_weighted(weighted_bands, with_bands)), frames


def _estimate(added: Contributions, columns: Iterable[str]) -> dict[str, float]:
    """Return estimates, and errors of differences, by their columns."""
    names = [name for name in columns if not name.endswith("_se")]
    estimates = name_estimates(added.estimate(names))
    return {name: estimates[name] for name in columns}


def _estimate_at(c: Fraction, added: Contributions) -> dict[str, float]:
    """Return the figures within a band at a certainty."""
    at_c = {name: _name_at(name, c) for name in bands.WORDS_AT_CERTAINTY if name != "precision"}
    estimates = _estimate(added, at_c.values())
    figures = {name: estimates[of_c] for name, of_c in at_c.items()}
    claimed, right = (figures[name] for name in ("DiS_within", "DiSCO_within"))
    return figures | {"precision": 100 * right / claimed if claimed else math.nan}


def _name_at(name: str, c: Fraction) -> str:
    """Return the name of a figure, or of what compares it, at a certainty.

    >>> _name_at("DiSCO_within_others", Fraction(1, 2))
    'DiSCO_within at 1/2_others'
    """
    figure, within, part = name.partition("_within")
    return f"{figure}{within} at {c}{part}"


def _measure_keys_by_unit(
    q: Keys, records: PeopleRecords, request: CountRequest
) -> tuple[dict[int, dict[str, float]], pd.DataFrame]:
    """Return the figures of `UniqueHits` by synthesis, and the frame `units`."""
    combinations = Combinations.of_units(q.q[0], records.unit, q.size)
    alone = combinations.units == 1
    key_levels = [q.level_of(k)[alone] for k in range(len(request.keys))]
    hits, risks = {}, {}
    for synthesis in range(1, len(q.q)):
        s_q = q.counts[synthesis]
        apart = 100 * count_hits_apart(key_levels, request.shares_apart[synthesis - 1]) / APART_SCALE
        sizes = Sizes(len(records.unit), len(q.q[synthesis]))
        counted = combinations.count_hits(s_q)
        hits[synthesis] = measure_hits(counted, sizes, apart, records.records_per_unit)
        risks[(synthesis,)] = to_row(household_risk(q.q[0], q.counts[0], s_q, records.unit))
    return hits, build_frame(risks, ["synthesis"])


def _measure_in_population(
    added: Contributions, records: PeopleRecords, plan: MeasuringPlan
) -> dict[str, float]:
    """Return the figures of a target in the population, and the weighted ones."""
    rows = added.rows
    people_q = np.bincount(rows.q, weights=records.weight, minlength=rows.f.keys)
    disclosed_q = np.bincount(rows.q, weights=added.add("DiSCO"), minlength=rows.f.keys).astype(np.int64)
    d_q = np.bincount(rows.q, minlength=rows.f.keys)
    figures = to_row(population_disclosure(d_q, people_q.astype(np.float64), disclosed_q, len(rows)))
    weighed = [name for name in TARGET_FIGURES if plan.attribution or not name.startswith(_OF_ATTRIBUTION)]
    return figures | records.weigh(added, weighed)


def _measure_population(records: PeopleRecords, q: Keys) -> pd.DataFrame:
    people_q = np.bincount(q.q[0], weights=records.weight, minlength=q.size).astype(np.float64)
    people, N_d = sum_exactly(records.weight), len(records.weight)
    rows = {}
    for synthesis in range(1, len(q.q)):
        risk = population_risk(q.counts[0], q.counts[synthesis], people_q, N_d, people)
        weighted = records.weigh(_place_keys(q, synthesis, records.unit), KEY_FIGURES)
        rows[(synthesis,)] = to_row(risk) | weighted
    return build_frame(rows, ["synthesis"])


def _place_keys(q: Keys, synthesis: int, unit: IntArray) -> Contributions:
    """Return what the records add to figures of their keys alone."""
    nothing = [np.zeros_like(codes) for codes in q.q]
    f, position = find_cells(q, nothing, 1, synthesis)
    return Contributions(Rows(f, position, unit))


def _frame_weighted(rows: Mapping[tuple[Any, int], dict[str, float]], comparisons: int) -> pd.DataFrame:
    """Return the rows as a frame, with the parts of differences that are beyond chance."""
    frame = build_frame(rows, ["target", "synthesis"])
    for name in map(str, frame):
        if name.endswith(f"_beyond{WEIGHTED}"):
            frame = add_beyond_chance(frame, name, comparisons)
    return frame


def weigh_people_copied(result: Disclosure, records: PeopleRecords) -> pd.DataFrame:
    """Return the frame `population` with weighted shares of people copied; `records` have all columns.

    A fresh table finds everybody whom no other unit equals with the same chance.
    """
    population = result.population
    for basis in records.bases:
        q, rows = combine_columns(list(records.columns.values())), []
        inflated = math.sqrt(inflate_variance(records.weight))
        for synthesis, guards in enumerate(result.guards.to_dict("records"), start=1):
            added = _place_keys(q, synthesis, records.unit)
            copied, alone = (
                added.estimate([name], records.weight)[name] for name in ("people_copied", "alone")
            )
            chance = guards["people_copied_expected"] / (100 * max(float(added.add("alone").mean()), 1e-300))
            expected = Estimate(chance * alone.value, chance * alone.error)
            beyond = Estimate(copied.value - expected.value, guards["people_copied_beyond_se"] * inflated)
            estimates = dict(zip(COPY_FIGURES, (copied, expected, beyond), strict=True))
            rows.append(name_estimates(estimates, basis))
        population = population.join(pd.DataFrame(rows, index=population.index))
        population = add_beyond_chance(population, f"people_copied_beyond{basis}")
    return population


def _count_together(
    q: IntArray, chances: Sequence[Sequence[Floats]], counted: TogetherTargetCounts
) -> TogetherTargetCounts:
    """Return the counts with those at n records of each synthesis, and of as many draws of other people's.

    `chances`: what each record adds to DiSCO at n records of each synthesis, and by the others.
    """
    combined = TogetherChances.combine(*zip(*chances, strict=True))
    in_order = np.argsort(q, kind="stable")
    first = np.flatnonzero(first_of_run(q[in_order]))
    return replace(
        counted,
        any_at_n=int(combined.at_n.sum()),
        any_others=int(combined.by_others.sum()),
        **combined.square(lambda of_records: np.add.reduceat(of_records[in_order], first)),
    )
