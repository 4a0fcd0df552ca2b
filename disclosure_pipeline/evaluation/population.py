"""The people behind the records: whose each record is (units), and how many people it stands for (weights).

Where people have several records, other people's records are those of other units.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.counts import CountRequest, sample_positions
from disclosure_pipeline.counting.opening import OpenedTables
from disclosure_pipeline.evaluation.counts import (
    MeasuringPlan,
    RecordCells,
    RecordSets,
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
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.measures.chance import holds_real_values
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
    CopyCounts,
    HitCounts,
    UnitCombinations,
    find_lone_units,
    unique_hits,
)
from disclosure_pipeline.measures.exact import Floats, IntArray, percent, sum_exactly
from disclosure_pipeline.measures.frequency import Keys, combine_keys
from disclosure_pipeline.measures.people import PeopleCounts
from disclosure_pipeline.measures.resemblance import SharedCounts
from disclosure_pipeline.measures.samples import Sizes, to_integer_chances
from disclosure_pipeline.measures.survey import (
    HouseholdRisk,
    household_risk,
    population_disclosure,
    population_risk,
)
from disclosure_pipeline.measures.together import TogetherTargetCounts, chance_of_any, square_beyond, together
from disclosure_pipeline.measures.totals import APART_SCALE, Uniques, count_hits_apart
from disclosure_pipeline.measures.words import WEIGHTED
from disclosure_pipeline.runtime.progress import OnProgress
from disclosure_pipeline.tables.additions import RealValues
from disclosure_pipeline.tables.alignment import level_weights, missing_owners_error
from disclosure_pipeline.tables.levels import CodedColumn

_PARTS = ("_others", "_beyond")


@dataclass(frozen=True)
class PeopleRecords:
    """All records in memory: coded columns by name, not grouped; the unit and weight of each GT record."""

    columns: Mapping[Any, CodedColumn]
    unit: IntArray
    weight: Floats

    @property
    def records_per_unit(self) -> float:
        """The mean number of GT records of a unit."""
        return len(self.unit) / len(np.unique(self.unit))

    def find_alone(self, sets: Sequence[Sequence[Any]]) -> list[tuple[IntArray, IntArray]]:
        """Return the GT records whose combination of a set no other unit has, and one per combination."""
        records = []
        for names in sets:
            columns = [self.columns[name] for name in names]
            q = combine_keys([[column.codes[0]] for column in columns], [column.size for column in columns])
            alone = find_lone_units(q.q[0], self.unit)
            records.append((alone, alone[np.unique(q.q[0][alone], return_index=True)[1]]))
        return records

    def draw(self, most: int, seed: int) -> PeopleRecords:
        """Draw at most `most` records of each table, as `code_records` does."""
        sizes = [int(counts.sum()) for counts in next(iter(self.columns.values())).counts]
        if max(sizes) <= most:
            return self
        positions = sample_positions(sizes, most, seed)
        drawn = {name: column.draw(positions) for name, column in self.columns.items()}
        of_GT = slice(None) if positions[0] is None else positions[0]
        return PeopleRecords(drawn, self.unit[of_GT], self.weight[of_GT])


def read_records(
    opened: OpenedTables, plan: MeasuringPlan, on_progress: OnProgress, names: Sequence[Any]
) -> PeopleRecords:
    """Read the codes of all records, and the unit and weight of each. InputError if a unit is missing."""
    extra = list_unshared_columns(plan)
    coded = opened.code(list(dict.fromkeys([*names, *extra])), plan.grouping, on_progress)
    most = max(int(counts.sum()) for counts in coded[0].counts)
    by_name = {column.name: column for column in opened.code_records(coded, most, 0)}
    # Draws and sums must not depend on the order of records, which differs between engines.
    of_tables = [
        np.lexsort([by_name[name].codes[table] for name in dict.fromkeys((*extra, *names))])
        for table in range(len(opened.columns))
    ]
    in_order = {name: by_name[name].draw(of_tables) for name in names}
    N_d, order = len(of_tables[0]), of_tables[0]
    unit = np.arange(N_d)
    if plan.unit is not None:
        owners = by_name[plan.unit]
        if owners.counts[0][owners.missing]:
            raise missing_owners_error(plan.unit)
        unit = owners.codes[0].astype(np.int64)[order]
    return PeopleRecords(in_order, unit, find_weights(by_name, plan, N_d)[order])


def find_weights(columns: Mapping[Any, CodedColumn], plan: MeasuringPlan, records: int) -> Floats:
    """Return the weight of each GT record, from the planned column or the sampling fraction."""
    if plan.weights is None:
        return np.full(records, 1 / (plan.sampling_fraction or 1))
    return level_weights(columns[plan.weights])[columns[plan.weights].codes[0]]


def list_unshared_columns(plan: MeasuringPlan) -> list[Any]:
    """Return the planned columns that only GT has: unit and weights."""
    return [name for name in (plan.unit, plan.weights) if name is not None]


def measure_records(result: Disclosure, records: PeopleRecords, plan: MeasuringPlan) -> Disclosure:
    """Return the result with the frames that need each record's unit or weight.

    With a unit, other people's records are those of other units, and there is the frame `units`. Of a sample,
    there are the frames `population` and `population_targets`.
    """
    request = build_request(plan, records.columns)
    # If nobody has two records, the result is of units already, in integers.
    is_by_unit = plan.unit is not None and records.records_per_unit > 1
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
    return figures | (_weigh(added, TARGET_FIGURES, records) if plan.weights is not None else {})


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


@dataclass(frozen=True)
class UnitWholeCounts:
    """Counts of whole records of one synthesis, like `KeyCounts`, but of units."""

    uniques: Uniques
    shared: SharedCounts
    unique_hits: HitCounts
    people: PeopleCounts


def count_sets_by_unit(sets: RecordSets, records: PeopleRecords) -> RecordSets:
    """Return the record sets with people counted as units."""
    q, combinations = _combine(records, list(records.columns))
    copies = _find_copies(q, combinations)
    whole = [
        UnitWholeCounts(
            replace(counts.uniques, in_GT=copied.people.alone), counts.shared, copied.unique, copied.people
        )
        for counts, copied in zip(sets.whole, copies, strict=True)
    ]
    partial = {
        label: _find_copies(*_combine(records, [column.name for column in column_set]))
        for label, column_set in sets.columns.items()
    }
    return replace(sets, whole=whole, partial=partial)


def find_people(records: PeopleRecords) -> list[PeopleCounts]:
    """Count the people found in each synthesis by all columns."""
    return [counts.people for counts in _find_copies(*_combine(records, list(records.columns)))]


def find_real_values_by_units(records: PeopleRecords) -> dict[Any, list[RealValues]]:
    """Return the real values of each column that is like an identifier of units: see `find_real_values`.

    A value that a unit has several times is its own as long as no other unit has it.
    """
    found = {}
    comparisons = sum(len(column.tables) - 1 for column in records.columns.values())
    for name, column in records.columns.items():
        held = column.codes[0] != column.missing
        combinations = UnitCombinations.from_records(
            column.codes[0][held].astype(np.int64), records.unit[held], column.missing
        )
        alone, N_d = combinations.units == 1, len(records.unit)
        found[name] = [
            RealValues(
                synthesis,
                name,
                percent(int(combinations.d[alone].sum()), N_d),
                percent(int(counts[:-1][alone].sum()), int(counts.sum())),
            )
            for synthesis, counts in enumerate(column.counts[1:], start=1)
            if holds_real_values(
                _count_copies(combinations, counts[:-1]),
                Sizes(N_d, int(counts.sum())),
                comparisons,
                records.records_per_unit,
            )
        ]
    return found


def _combine(records: PeopleRecords, names: Sequence[Any]) -> tuple[Keys, UnitCombinations]:
    q = combine_columns([records.columns[name] for name in names])
    return q, UnitCombinations.from_records(q.q[0], records.unit, q.size)


def _find_copies(q: Keys, combinations: UnitCombinations) -> list[CopyCounts]:
    return [_count_copies(combinations, s) for s in q.counts[1:]]


def _count_copies(combinations: UnitCombinations, s: IntArray) -> CopyCounts:
    return CopyCounts(
        int(s[combinations.d > 0].sum()), combinations.count_hits(s), combinations.count_people(s)
    )


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
