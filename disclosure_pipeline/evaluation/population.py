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

from disclosure_pipeline.counting.counts import Target, sample_positions
from disclosure_pipeline.counting.opening import OpenedTables
from disclosure_pipeline.evaluation.counts import (
    MeasuringPlan,
    RecordSets,
    build_request,
    combine_columns,
    place_records,
)
from disclosure_pipeline.evaluation.figures import add_beyond_chance, add_differences_beyond_chance
from disclosure_pipeline.evaluation.frames import build_frame, list_figures, to_row
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.measures.chance import holds_real_values
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
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.measures.subgroups import RecordDisclosure, count_records_of_unit
from disclosure_pipeline.measures.survey import (
    HouseholdRisk,
    household_risk,
    population_disclosure,
    population_risk,
)
from disclosure_pipeline.measures.together import TogetherTargetCounts, chance_of_any, square_beyond, together
from disclosure_pipeline.measures.totals import APART_SCALE, Uniques, count_hits_apart
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
from disclosure_pipeline.tables.additions import RealValues
from disclosure_pipeline.tables.alignment import level_weights, missing_owners_error
from disclosure_pipeline.tables.levels import CodedColumn


@dataclass(frozen=True)
class UnitRecords:
    """All records in memory: coded columns by name, not grouped, and the `unit` of each GT record."""

    columns: Mapping[Any, CodedColumn]
    unit: IntArray

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

    def draw(self, most: int, seed: int) -> UnitRecords:
        """Draw at most `most` records of each table, as `code_records` does."""
        columns, drawn = _draw(self.columns, most, seed)
        return UnitRecords(columns, self.unit[drawn])


def _draw(
    columns: Mapping[Any, CodedColumn], most: int, seed: int
) -> tuple[Mapping[Any, CodedColumn], IntArray | slice]:
    """Return the columns of at most `most` records of each table, and the positions of those of GT."""
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
    """Read the codes of all records, and the unit of each GT record. InputError if a unit is missing."""
    by_name = _read_records(opened, [*names, plan.unit], plan, on_progress)
    *records, owners = (by_name[name] for name in (*names, plan.unit))
    if owners.counts[0][owners.missing]:
        raise missing_owners_error(plan.unit)
    unit = owners.codes[0].astype(np.int64)
    # Draws must not depend on the order of records, which differs between engines.
    positions = [
        np.lexsort([owners.codes[table], *(column.codes[table] for column in records)])
        for table in range(len(owners.tables))
    ]
    drawn = {column.name: column.draw(positions) for column in records}
    return UnitRecords(drawn, unit[positions[0]])


def measure_by_units(result: Disclosure, records: UnitRecords, plan: MeasuringPlan) -> Disclosure:
    """Return the result with other people's records taken from other units, and with the frame `units`."""
    request = build_request(plan, records.columns)
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
    figures: dict[str, list[float]] = defaultdict(list)
    release = result.together
    for target in request.targets:
        disclosures = []
        for synthesis in range(1, len(q.q)):
            by_name, disclosed = _measure_by_units(request.keys, target, synthesis, records.unit)
            disclosures.append(disclosed)
            for name, figure in by_name.items():
                figures[name].append(figure)
        if len(release):
            by_unit = _measure_together(disclosures, figures["DiSCO_others"][-len(disclosures) :])
            is_other_target = release.index != target.column.name
            release = release.assign(
                **{name: release[name].where(is_other_target, figure) for name, figure in by_unit.items()}
            )
    attribute, cap = add_differences_beyond_chance(
        _update_frame(result.attribute, figures), _update_frame(result.cap, figures), len(result.targets)
    )
    return replace(
        result,
        identity=add_beyond_chance(_update_frame(result.identity, hits), "unique_hits_beyond"),
        attribute=attribute,
        cap=cap,
        units=build_frame(risks, ["synthesis"], list_figures(HouseholdRisk)),
        together=release,
    )


@dataclass(frozen=True)
class UnitWholeCounts:
    """Counts of whole records of one synthesis, like `KeyCounts`, but of units."""

    uniques: Uniques
    shared: SharedCounts
    unique_hits: HitCounts
    people: PeopleCounts


def count_sets_by_unit(sets: RecordSets, records: UnitRecords) -> RecordSets:
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
    places = {name: place for place, name in enumerate(records.columns)}
    by_group = [
        _count_in_levels(column, q.level_of(places[column.name]), q, combinations) for column in sets.groups
    ]
    levels = [
        [[by_synthesis[synthesis] for by_synthesis in by_level] for by_level in by_group]
        for synthesis in range(len(sets.whole))
    ]
    return replace(sets, whole=whole, partial=partial, levels=levels)


def find_people(records: UnitRecords) -> list[PeopleCounts]:
    """Count the people found in each synthesis by all columns."""
    return [counts.people for counts in _find_copies(*_combine(records, list(records.columns)))]


def _count_in_levels(
    group: CodedColumn, levels: IntArray, q: Keys, combinations: UnitCombinations
) -> list[list[PeopleCounts]]:
    """Count the people found among those with each level of a column (shape: levels, syntheses)."""
    used = np.sum(group.counts, axis=0) > 0
    used[group.missing] = True  # always there, as the last code
    code = np.cumsum(used) - 1
    assert code[-1] >= levels.max(initial=0), "units are of the same tables"
    by_synthesis = [combinations.count_people_in(s, levels, int(code[-1]) + 1) for s in q.counts[1:]]
    nobody = PeopleCounts(0, 0, 0, 0)
    return [
        [by_level[code[level]] if used[level] else nobody for by_level in by_synthesis]
        for level in range(group.size)
    ]


def find_real_values_by_units(records: UnitRecords) -> dict[Any, list[RealValues]]:
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


def _combine(records: UnitRecords, names: Sequence[Any]) -> tuple[Keys, UnitCombinations]:
    q = combine_columns([records.columns[name] for name in names])
    return q, UnitCombinations.from_records(q.q[0], records.unit, q.size)


def _find_copies(q: Keys, combinations: UnitCombinations) -> list[CopyCounts]:
    return [_count_copies(combinations, s) for s in q.counts[1:]]


def _count_copies(combinations: UnitCombinations, s: IntArray) -> CopyCounts:
    return CopyCounts(
        int(s[combinations.d > 0].sum()), combinations.count_hits(s), combinations.count_people(s)
    )


def _update_frame(frame: pd.DataFrame, figures: Mapping[str, Sequence[float]]) -> pd.DataFrame:
    return frame.assign(**{name: figures[name] for name in frame.columns if name in figures})


def _measure_by_units(
    keys: Sequence[CodedColumn], target: Target, synthesis: int, unit: IntArray
) -> tuple[dict[str, float], RecordDisclosure]:
    """Return the figures of `baselines_of_units`, and the disclosure of each record after exclusions."""
    _, cells, left = place_records(keys, target, synthesis)
    original = left.original.values()
    records = np.ones(len(unit), dtype=np.int64)
    unit_cells = UnitCells.from_records(cells.f.q[cells.position], cells.position, unit, records)
    reduced = (original, left.synthetic.values()) if target.exclusions else ()
    disclosed = RecordDisclosure.from_table(cells.f, cells.position, unit)
    return (
        baselines_of_units(cells.f, unit_cells, target.no_guess, *reduced),
        disclosed.restrict_to((original > 0)[cells.position]),
    )


def _measure_together(
    disclosures: Sequence[RecordDisclosure], DiSCO_others: Sequence[float]
) -> dict[str, float]:
    """Return the figures of `Together` that depend on other people's records."""
    in_order = np.argsort(disclosures[0].q, kind="stable")
    at_n = chance_of_any([disclosed.at_n for disclosed in disclosures])[in_order]
    by_others = chance_of_any([disclosed.by_others for disclosed in disclosures])[in_order]
    N_d = len(in_order)
    squares = square_beyond(disclosures[0].q[in_order], 1, at_n, by_others)
    counts = TogetherTargetCounts(any_at_n=int(at_n.sum()), any_others=int(by_others.sum()), squares=squares)
    figures = to_row(together(counts, N_d, DiSCO_others))
    return {name: figures[name] for name in figures if name.startswith("DiSCO_any")}


@dataclass(frozen=True)
class WeightedRecords:
    """All records in memory: coded columns by name, not grouped; weight and unit of each GT record."""

    columns: Mapping[Any, CodedColumn]
    weight: Floats
    unit: IntArray | None

    def draw(self, most: int, seed: int) -> WeightedRecords:
        """Draw at most `most` records of each table, as `code_records` does."""
        columns, drawn = _draw(self.columns, most, seed)
        return WeightedRecords(columns, self.weight[drawn], None if self.unit is None else self.unit[drawn])


def _read_records(
    opened: OpenedTables, names: Sequence[Any], plan: MeasuringPlan, on_progress: OnProgress
) -> dict[Any, CodedColumn]:
    """Return the codes of all records, by column."""
    coded = opened.code(list(dict.fromkeys(names)), plan.grouping, on_progress)
    most = max(int(counts.sum()) for counts in coded[0].counts)
    return {column.name: column for column in opened.code_records(coded, most, 0)}


def read_weights(
    opened: OpenedTables, plan: MeasuringPlan, on_progress: OnProgress, names: Sequence[Any]
) -> WeightedRecords:
    """Read the codes of all records, and the weight of each GT record."""
    extra = list_unshared_columns(plan)
    by_name = _read_records(opened, [*names, *extra], plan, on_progress)
    # Sums must not depend on the order of records, which differs between engines.
    order = np.lexsort([by_name[name].codes[0] for name in (*extra, *names)])
    drawn = {name: by_name[name].draw([order, *[None] * (len(by_name[name].tables) - 1)]) for name in names}
    weight = find_weights(by_name, plan, len(order))[order]
    unit = None if plan.unit is None else by_name[plan.unit].codes[0].astype(np.int64)[order]
    return WeightedRecords(drawn, weight, unit)


def find_weights(columns: Mapping[Any, CodedColumn], plan: MeasuringPlan, records: int) -> Floats:
    """Return the weight of each GT record, from the planned column or the sampling fraction."""
    if plan.weights is None:
        return np.full(records, 1 / (plan.sampling_fraction or 1))
    return level_weights(columns[plan.weights])[columns[plan.weights].codes[0]]


def list_unshared_columns(plan: MeasuringPlan) -> list[Any]:
    """Return the planned columns that only GT has: weights and unit."""
    return [name for name in (plan.weights, plan.unit) if name is not None]


def measure_population(result: Disclosure, records: WeightedRecords, plan: MeasuringPlan) -> Disclosure:
    """Return the result with the frames `population` and `population_targets`."""
    request = build_request(plan, records.columns)
    q = combine_columns(request.keys)
    weights = PlacedWeights.add_up(records.weight, q.q[0], q.size)
    people = sum_exactly(records.weight)
    key_rows, target_rows, band_rows = {}, {}, {}
    for synthesis in range(1, len(q.q)):
        counts = q.counts[0], q.counts[synthesis]
        risk = population_risk(*counts, weights.people, len(records.weight), people)
        key_rows[(synthesis,)] = to_row(risk)
        if plan.weights is not None:
            key_rows[(synthesis,)] |= weigh_keys(*counts, weights)
    for target in request.targets:
        for synthesis in range(1, len(q.q)):
            figures, band_figures = _measure_target(request.keys, target, synthesis, records, plan)
            target_rows[(target.column.name, synthesis)] = figures
            if band_figures:
                band_rows[(target.column.name, synthesis)] = band_figures
    banded = result.bands.index.get_level_values("target").nunique() if band_rows else 0
    return replace(
        result,
        population=build_frame(key_rows, ["synthesis"], list(next(iter(key_rows.values())))),
        population_targets=_frame_weighted(target_rows, len(request.targets)),
        bands=result.bands.join(_frame_weighted(band_rows, banded)) if band_rows else result.bands,
    )


def _frame_weighted(rows: Mapping[tuple[Any, int], dict[str, float]], comparisons: int) -> pd.DataFrame:
    """Return the rows as a frame, with the parts of differences that are beyond chance."""
    columns = list(next(iter(rows.values()), ()))
    frame = build_frame(rows, ["target", "synthesis"], columns)
    for name in columns:
        if name.endswith(f"_beyond{WEIGHTED}"):
            frame = add_beyond_chance(frame, name, comparisons)
    return frame


def weigh_people_copied(result: Disclosure, records: WeightedRecords) -> pd.DataFrame:
    """Return the frame `population` with weighted shares of people copied; `records` have all columns."""
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
    """Return the figures after exclusions: in the population and weighted; and those of the target's band."""
    q, cells, left = place_records(keys, target, synthesis)
    people_q = PlacedWeights.add_up(records.weight, q.q[0], q.size).people
    disclosed_q = cells.f.per_key(left.DiSCO.values())
    figures = to_row(population_disclosure(q.counts[0], people_q, disclosed_q, len(records.weight)))
    if plan.weights is None:
        return figures, {}
    cell_weights = PlacedWeights.add_up(records.weight, cells.position, len(cells.f.q))
    is_left = (left.original.values() > 0)[cells.position]
    disclosed = RecordDisclosure.from_table(cells.f, cells.position, records.unit).restrict_to(is_left)
    found = weigh_found(cells.f, left, cells.position, records.unit, records.weight)
    figures |= weigh_target(cells.f, left, target.no_guess, cell_weights) | found
    figures |= weigh_others(disclosed, records.weight)
    figures |= weigh_guesses(cells.f, cells.position, records.unit, is_left, target.no_guess, records.weight)
    banded = {}
    if target.band is not None:
        by_others = found[f"iS_others{WEIGHTED}"]
        banded = weigh_bands(cells.f, target.band, cells.position, is_left, records.weight, by_others)
    return figures, banded
