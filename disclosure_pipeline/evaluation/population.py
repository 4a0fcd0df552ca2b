"""The people behind the records: whose each record is, and how many people each one stands for.

Of people with several records other people's are those of other units, and a survey's records have weights.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.counts import Target, sample_positions
from disclosure_pipeline.counting.opening import OpenedTables
from disclosure_pipeline.evaluation.counts import (
    MeasuringPlan,
    RecordSets,
    combine_columns,
    count_request,
    place_records,
)
from disclosure_pipeline.evaluation.figures import add_beyond_chance, bound_differences
from disclosure_pipeline.evaluation.frames import frame_of, names_of, row_of
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.measures.copies import (
    FoundCopies,
    HitCounts,
    UnitCombinations,
    find_lone_units,
    unique_hits,
)
from disclosure_pipeline.measures.exact import Floats, IntArray, sum_exactly
from disclosure_pipeline.measures.frequency import Keys, combine_keys
from disclosure_pipeline.measures.people import PeopleCounts
from disclosure_pipeline.measures.resemblance import SharedCounts
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.measures.subgroups import RecordDisclosure, count_records_of_unit
from disclosure_pipeline.measures.survey import (
    HouseholdRisk,
    household_risk,
    population_disclosure,
    population_risk,
)
from disclosure_pipeline.measures.together import TogetherTargetCounts, chance_of_any, square_beyond, together
from disclosure_pipeline.measures.totals import Uniques
from disclosure_pipeline.measures.units import UnitCells, baselines_of_units
from disclosure_pipeline.measures.weighted import (
    WEIGHTED,
    PlacedWeights,
    weigh_bands,
    weigh_copies,
    weigh_found,
    weigh_guesses,
    weigh_keys,
    weigh_others,
    weigh_target,
)
from disclosure_pipeline.runtime.progress import OnProgress
from disclosure_pipeline.tables.alignment import level_weights, missing_owners_error
from disclosure_pipeline.tables.levels import CodedColumn


@dataclass(frozen=True)
class UnitRecords:
    """All records in memory: the coded columns by name, not grouped, and the `unit` of each GT record."""

    columns: Mapping[Any, CodedColumn]
    unit: IntArray

    @property
    def records_per_unit(self) -> float:
        """The mean number of GT records."""
        return len(self.unit) / len(np.unique(self.unit))

    def find_alone(self, sets: Sequence[Sequence[Any]]) -> list[tuple[IntArray, IntArray]]:
        """Return the GT records whose combination of each set no other unit has, and one of each of these."""
        found = []
        for names in sets:
            columns = [self.columns[name] for name in names]
            q = combine_keys([[column.codes[0]] for column in columns], [column.size for column in columns])
            alone = find_lone_units(q.q[0], self.unit)
            found.append((alone, alone[np.unique(q.q[0][alone], return_index=True)[1]]))
        return found

    def draw(self, most: int, seed: int) -> UnitRecords:
        """Return at most so many records of each table, drawn by the seed, as `code_records` draws them."""
        columns, drawn = _draw(self.columns, most, seed)
        return UnitRecords(columns, self.unit[drawn])


def _draw(
    columns: Mapping[Any, CodedColumn], most: int, seed: int
) -> tuple[Mapping[Any, CodedColumn], IntArray | slice]:
    """Return the columns of at most so many records of each table, and which these are of GT."""
    sizes = [int(counts.sum()) for counts in next(iter(columns.values())).counts]
    if max(sizes) <= most:
        return columns, slice(None)
    positions = sample_positions(sizes, most, seed)
    drawn = {name: column.draw(positions) for name, column in columns.items()}
    return drawn, slice(None) if positions[0] is None else positions[0]


def read_units(
    opened: OpenedTables,
    plan: MeasuringPlan,
    on_progress: OnProgress,
    names: Sequence[Any],
) -> UnitRecords:
    """Read the codes of all records, and whose each GT record is. InputError where that is not known."""
    read = _read_records(opened, [*names, plan.unit], plan, on_progress)
    *records, owners = (read[name] for name in (*names, plan.unit))
    if owners.counts[0][owners.missing]:
        raise missing_owners_error(plan.unit)
    unit = owners.codes[0].astype(np.int64)
    # Engines have their own order of records, and nothing that is drawn may depend on it.
    positions = [
        np.lexsort([owners.codes[table], *(column.codes[table] for column in records)])
        for table in range(len(owners.tables))
    ]
    drawn = {column.name: column.draw(positions) for column in records}
    return UnitRecords(drawn, unit[positions[0]])


def measure_by_units(result: Disclosure, records: UnitRecords, plan: MeasuringPlan) -> Disclosure:
    """Return the result with the figures that others' records bear on, and the frame `units`."""
    request = count_request(plan, records.columns)
    q = combine_columns(request.keys)
    combinations = UnitCombinations.from_records(q.q[0], records.unit, q.size)
    hits: dict[str, list[float]] = defaultdict(list)
    risks = {}
    for synthesis, N_s in enumerate(result.N_s, start=1):
        s_q = q.counts[synthesis]
        for name, figure in row_of(unique_hits(combinations.count_hits(s_q), Sizes(result.N_d, N_s))).items():
            hits[name].append(figure)
        # Records of one unit go together: the units are so many drawings.
        hits["unique_hits_beyond_se"][-1] *= math.sqrt(len(records.unit) / (records.unit.max(initial=0) + 1))
        risks[(synthesis,)] = row_of(household_risk(q.q[0], q.counts[0], s_q, records.unit))
    figures: dict[str, list[float]] = defaultdict(list)
    by_all = result.together
    for target in request.targets:
        of_records = []
        for synthesis in range(1, len(q.q)):
            by_name, disclosed = _measure_by_units(request.keys, target, synthesis, records.unit)
            of_records.append(disclosed)
            for name, figure in by_name.items():
                figures[name].append(figure)
        if len(by_all):
            by_unit = _measure_together(of_records, figures["DiSCO_others"][-len(of_records) :])
            of_others = by_all.index != target.column.name
            by_all = by_all.assign(
                **{name: by_all[name].where(of_others, figure) for name, figure in by_unit.items()}
            )
    attribute, cap = bound_differences(
        _with_figures(result.attribute, figures), _with_figures(result.cap, figures), len(result.targets)
    )
    return replace(
        result,
        identity=add_beyond_chance(_with_figures(result.identity, hits), "unique_hits_beyond"),
        attribute=attribute,
        cap=cap,
        units=frame_of(risks, ["synthesis"], names_of(HouseholdRisk)),
        together=by_all,
    )


@dataclass(frozen=True)
class UnitWholeCounts:
    """Whole records of one synthesis, as `KeyCounts` has them, of units."""

    uniques: Uniques
    shared: SharedCounts
    unique_hits: HitCounts
    people: PeopleCounts


def count_sets_by_unit(sets: RecordSets, records: UnitRecords) -> RecordSets:
    """Return the record sets with what is counted of single people counted of units."""
    q, combinations = _combine(records, list(records.columns))
    of_all = _find_copies(q, combinations)
    whole = [
        UnitWholeCounts(
            replace(counts.uniques, in_GT=found.people.alone), counts.shared, found.hits, found.people
        )
        for counts, found in zip(sets.whole, of_all, strict=True)
    ]
    partial = {
        label: _find_copies(*_combine(records, [column.name for column in of_set]))
        for label, of_set in sets.columns.items()
    }
    places = {name: place for place, name in enumerate(records.columns)}
    of_groups = [
        _count_in_levels(column, q.level_of(places[column.name]), q, combinations) for column in sets.groups
    ]
    levels = [
        [[of_level[synthesis] for of_level in of_group] for of_group in of_groups]
        for synthesis in range(len(sets.whole))
    ]
    return replace(sets, whole=whole, partial=partial, levels=levels)


def find_people(records: UnitRecords) -> list[PeopleCounts]:
    """Return the people found in each synthesis, by all columns."""
    return [counts.people for counts in _find_copies(*_combine(records, list(records.columns)))]


def _count_in_levels(
    group: CodedColumn, levels: IntArray, q: Keys, combinations: UnitCombinations
) -> list[list[PeopleCounts]]:
    """Count people among those who have a level of a column, for each of them and each synthesis."""
    used = np.sum(group.counts, axis=0) > 0
    used[group.missing] = True  # it is always there, and the last one
    code = np.cumsum(used) - 1
    assert code[-1] >= levels.max(initial=0), "units are of the same tables"
    by_level = [combinations.count_people_in(s, levels, int(code[-1]) + 1) for s in q.counts[1:]]
    nobody = PeopleCounts(0, 0, 0, 0)
    return [
        [of_synthesis[code[level]] if used[level] else nobody for of_synthesis in by_level]
        for level in range(group.size)
    ]


def _combine(records: UnitRecords, names: Sequence[Any]) -> tuple[Keys, UnitCombinations]:
    q = combine_columns([records.columns[name] for name in names])
    return q, UnitCombinations.from_records(q.q[0], records.unit, q.size)


def _find_copies(q: Keys, combinations: UnitCombinations) -> list[FoundCopies]:
    return [FoundCopies(combinations.count_hits(s), combinations.count_people(s)) for s in q.counts[1:]]


def _with_figures(frame: pd.DataFrame, figures: Mapping[str, Sequence[float]]) -> pd.DataFrame:
    return frame.assign(**{name: figures[name] for name in frame.columns if name in figures})


def _measure_by_units(
    keys: Sequence[CodedColumn], target: Target, synthesis: int, unit: IntArray
) -> tuple[dict[str, float], RecordDisclosure]:
    """Return the figures of `baselines_of_units`, and what each record that is left adds to DiSCO."""
    _, cells, left = place_records(keys, target, synthesis)
    original = left.original.values()
    records = np.ones(len(unit), dtype=np.int64)
    of_units = UnitCells.from_records(cells.f.q[cells.position], cells.position, unit, records)
    reduced = (original, left.synthetic.values()) if target.exclusions else ()
    disclosed = RecordDisclosure.from_table(cells.f, cells.position, unit)
    return (
        baselines_of_units(cells.f, of_units, target.no_guess, *reduced),
        disclosed.restrict_to((original > 0)[cells.position]),
    )


def _measure_together(
    of_records: Sequence[RecordDisclosure], DiSCO_others: Sequence[float]
) -> dict[str, float]:
    """Return the figures of `Together` that other people's records bear on."""
    in_order = np.argsort(of_records[0].q, kind="stable")
    at_n, by_others = (
        chance_of_any(chances)[in_order]
        for chances in ([found.at_n for found in of_records], [found.by_others for found in of_records])
    )
    N_d = len(in_order)
    squares = square_beyond(of_records[0].q[in_order], 1, at_n, by_others)
    counts = TogetherTargetCounts(any_at_n=int(at_n.sum()), any_others=int(by_others.sum()), squares=squares)
    figures = row_of(together(counts, N_d, DiSCO_others))
    return {name: figures[name] for name in figures if name.startswith("DiSCO_any")}


@dataclass(frozen=True)
class WeightedRecords:
    """All records in memory: the coded columns by name, not grouped; of each GT record weight and unit."""

    columns: Mapping[Any, CodedColumn]
    weight: Floats
    unit: IntArray | None

    def draw(self, most: int, seed: int) -> WeightedRecords:
        """Return at most so many records of each table, drawn by the seed, as `code_records` draws them."""
        columns, drawn = _draw(self.columns, most, seed)
        return WeightedRecords(columns, self.weight[drawn], None if self.unit is None else self.unit[drawn])


def _read_records(
    opened: OpenedTables, names: Sequence[Any], plan: MeasuringPlan, on_progress: OnProgress
) -> dict[Any, CodedColumn]:
    """Return the codes of all records, by the names of the columns."""
    coded = opened.code(list(dict.fromkeys(names)), plan.grouping, on_progress)
    most = max(int(counts.sum()) for counts in coded[0].counts)
    return {column.name: column for column in opened.code_records(coded, most, 0)}


def read_weights(
    opened: OpenedTables, plan: MeasuringPlan, on_progress: OnProgress, names: Sequence[Any]
) -> WeightedRecords:
    """Read the codes of all records, and the weight of each GT record."""
    extra = list_unshared_columns(plan)
    by_name = _read_records(opened, [*names, *extra], plan, on_progress)
    # Engines have their own order of records, and no sum may depend on it.
    order = np.lexsort([by_name[name].codes[0] for name in (*extra, *names)])
    drawn = {name: by_name[name].draw([order, *[None] * (len(by_name[name].tables) - 1)]) for name in names}
    weight = find_weights(by_name, plan, len(order))[order]
    unit = None if plan.unit is None else by_name[plan.unit].codes[0].astype(np.int64)[order]
    return WeightedRecords(drawn, weight, unit)


def find_weights(columns: Mapping[Any, CodedColumn], plan: MeasuringPlan, records: int) -> Floats:
    """Return the weight of each GT record: as planned, by a column, or all alike."""
    if plan.weights is None:
        return np.full(records, 1 / (plan.sampling_fraction or 1))
    return level_weights(columns[plan.weights])[columns[plan.weights].codes[0]]


def list_unshared_columns(plan: MeasuringPlan) -> list[Any]:
    """Return the columns of GT alone that a plan with weights reads."""
    return [name for name in (plan.weights, plan.unit) if name is not None]


def measure_population(result: Disclosure, records: WeightedRecords, plan: MeasuringPlan) -> Disclosure:
    """Return the result with the frames `population` and `population_targets`."""
    request = count_request(plan, records.columns)
    q = combine_columns(request.keys)
    weights = PlacedWeights.add_up(records.weight, q.q[0], q.size)
    people = sum_exactly(records.weight)
    of_keys, of_targets, of_bands = {}, {}, {}
    for synthesis in range(1, len(q.q)):
        counts = q.counts[0], q.counts[synthesis]
        of_keys[(synthesis,)] = row_of(population_risk(*counts, weights.people, len(records.weight), people))
        if plan.weights is not None:
            of_keys[(synthesis,)] |= weigh_keys(*counts, weights)
    for target in request.targets:
        for synthesis in range(1, len(q.q)):
            figures, of_band = _measure_target(request.keys, target, synthesis, records, plan)
            of_targets[(target.column.name, synthesis)] = figures
            if of_band:
                of_bands[(target.column.name, synthesis)] = of_band
    banded = result.bands.index.get_level_values("target").nunique() if of_bands else 0
    return replace(
        result,
        population=frame_of(of_keys, ["synthesis"], list(next(iter(of_keys.values())))),
        population_targets=_bound_weighted(of_targets, len(request.targets)),
        bands=result.bands.join(_bound_weighted(of_bands, banded)) if of_bands else result.bands,
    )


def _bound_weighted(rows: Mapping[tuple[Any, int], dict[str, float]], comparisons: int) -> pd.DataFrame:
    """Return the frame, with what of the differences from others is beyond chance."""
    frame = frame_of(rows, ["target", "synthesis"], list(next(iter(rows.values()), ())))
    for name in [name for name in map(str, frame) if name.endswith(f"_beyond{WEIGHTED}")]:
        frame = add_beyond_chance(frame, name, comparisons)
    return frame


def weigh_people_copied(result: Disclosure, records: WeightedRecords) -> pd.DataFrame:
    """Return the frame `population` with the shares of people copied; `records` are of all columns."""
    q = combine_columns(list(records.columns.values()))
    own = np.ones_like(q.q[0]) if records.unit is None else count_records_of_unit(records.unit, q.q[0])
    alone = q.counts[0][q.q[0]] == own
    rows = [
        weigh_copies(
            alone,
            alone & (q.counts[synthesis][q.q[0]] > 0),
            float(result.guards["people_copied_expected"][synthesis]),
            float(result.guards["people_copied_beyond_se"][synthesis]),
            records.weight,
        )
        for synthesis in range(1, len(q.q))
    ]
    population = result.population.join(pd.DataFrame(rows, index=result.population.index))
    return add_beyond_chance(population, f"people_copied_beyond{WEIGHTED}")


def _measure_target(
    keys: Sequence[CodedColumn],
    target: Target,
    synthesis: int,
    records: WeightedRecords,
    plan: MeasuringPlan,
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the figures of what the exclusions leave: in the population, weighted, and last of a band."""
    q, cells, left = place_records(keys, target, synthesis)
    people_q = PlacedWeights.add_up(records.weight, q.q[0], q.size).people
    disclosed_q = cells.f.per_key(left.DiSCO.values())
    figures = row_of(population_disclosure(q.counts[0], people_q, disclosed_q, len(records.weight)))
    if plan.weights is None:
        return figures, {}
    of_cells = PlacedWeights.add_up(records.weight, cells.position, len(cells.f.q))
    is_left = (left.original.values() > 0)[cells.position]
    disclosed = RecordDisclosure.from_table(cells.f, cells.position, records.unit).restrict_to(is_left)
    found = weigh_found(cells.f, left, cells.position, records.unit, records.weight)
    figures |= weigh_target(cells.f, left, target.no_guess, of_cells) | found
    figures |= weigh_others(disclosed, records.weight)
    figures |= weigh_guesses(cells.f, cells.position, records.unit, is_left, target.no_guess, records.weight)
    banded = {}
    if target.band is not None:
        by_others = found[f"iS_others{WEIGHTED}"]
        banded = weigh_bands(cells.f, target.band, cells.position, is_left, records.weight, by_others)
    return figures, banded
