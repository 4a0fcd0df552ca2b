"""A survey: the figures of a result for the population that its records stand for, by their weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.counts import Target, sample_positions
from disclosure_pipeline.counting.opening import OpenedTables
from disclosure_pipeline.evaluation.counts import MeasuringPlan, RecordCells, combine_columns, count_request
from disclosure_pipeline.evaluation.figures import add_beyond_chance
from disclosure_pipeline.evaluation.frames import frame_of, row_of
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.measures.checks import exclude
from disclosure_pipeline.measures.exact import Floats, IntArray, sum_exactly
from disclosure_pipeline.measures.subgroups import RecordDisclosure, count_alike
from disclosure_pipeline.measures.survey import population_disclosure, population_risk, record_risk
from disclosure_pipeline.measures.totals import disclosure_tables
from disclosure_pipeline.measures.weighted import (
    ENDING,
    PlacedWeights,
    weigh_bands,
    weigh_copies,
    weigh_found,
    weigh_guesses,
    weigh_keys,
    weigh_others,
    weigh_target,
)
from disclosure_pipeline.runtime.progress import OnProgress, ignore_progress
from disclosure_pipeline.tables.alignment import level_weights, refuse_weights
from disclosure_pipeline.tables.grouping import grouping_of
from disclosure_pipeline.tables.levels import CodedColumn


@dataclass(frozen=True)
class WeightedRecords:
    """All records in memory: the coded columns by name, not grouped; of each GT record weight and unit."""

    columns: Mapping[Any, CodedColumn]
    weight: Floats
    unit: IntArray | None

    def draw(self, most: int, seed: int) -> WeightedRecords:
        """Return at most so many records of each table, drawn by the seed, as `code_records` draws them."""
        columns = list(self.columns.values())
        sizes = [int(counts.sum()) for counts in columns[0].counts]
        positions = sample_positions(sizes, most, seed)
        drawn = slice(None) if positions[0] is None else positions[0]
        unit = None if self.unit is None else self.unit[drawn]
        return WeightedRecords(
            {column.name: column.draw(positions) for column in columns}, self.weight[drawn], unit
        )


def check_weights(opened: OpenedTables, weights: Any, on_progress: OnProgress) -> None:
    """Raise InputError where this column has no weights; no value of it is told."""
    [column] = opened.only([0]).code([weights], grouping_of(), on_progress)
    refuse_weights(column)


def read_weights(
    opened: OpenedTables, plan: MeasuringPlan, on_progress: OnProgress, columns: Sequence[Any] | None = None
) -> WeightedRecords:
    """Read the codes of all records, and the weight of each GT record."""
    names = list(plan.columns if columns is None else columns)
    extra = list_unshared_columns(plan)
    coded = opened.code([*names, *(name for name in extra if name not in names)], plan.grouping, on_progress)
    most = max(int(counts.sum()) for counts in coded[0].counts)
    by_name = {column.name: column for column in opened.code_records(coded, most, 0)}
    # Engines have their own order of records, and no sum may depend on it.
    order = np.lexsort([by_name[name].codes[0] for name in (*extra, *names)])
    drawn = {name: by_name[name].draw([order, *[None] * (len(by_name[name].tables) - 1)]) for name in names}
    weight = np.full(len(order), 1 / (plan.sampling_fraction or 1))
    if plan.weights is not None:
        weight = level_weights(by_name[plan.weights])[by_name[plan.weights].codes[0]][order]
    unit = None if plan.unit is None else by_name[plan.unit].codes[0].astype(np.int64)[order]
    return WeightedRecords(drawn, weight, unit)


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
            figures, banded = _measure_target(request.keys, target, synthesis, records, plan)
            of_targets[(target.column.name, synthesis)] = figures
            if banded:
                of_bands[(target.column.name, synthesis)] = banded
    frame = frame_of(of_targets, ["target", "synthesis"], list(next(iter(of_targets.values()), ())))
    for name in [name for name in map(str, frame) if name.endswith(f"_beyond{ENDING}")]:
        frame = add_beyond_chance(frame, name, len(request.targets))
    return replace(
        result,
        population=frame_of(of_keys, ["synthesis"], list(next(iter(of_keys.values())))),
        population_targets=frame,
        bands=_add_weighted(result.bands, of_bands) if of_bands else result.bands,
    )


def _add_weighted(bands: pd.DataFrame, rows: Mapping[tuple[Any, int], dict[str, float]]) -> pd.DataFrame:
    frame = frame_of(rows, ["target", "synthesis"], list(next(iter(rows.values()))))
    comparisons = bands.index.get_level_values("target").nunique()
    for name in [name for name in map(str, frame) if name.endswith(f"_beyond{ENDING}")]:
        frame = add_beyond_chance(frame, name, comparisons)
    return bands.join(frame)


def weigh_people_copied(result: Disclosure, records: WeightedRecords) -> pd.DataFrame:
    """Return the frame `population` with the shares of people copied; `records` are of all columns."""
    q = combine_columns(list(records.columns.values()))
    own = np.ones_like(q.q[0]) if records.unit is None else count_alike(records.unit, q.q[0])
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
    return add_beyond_chance(population, f"people_copied_beyond{ENDING}")


def _measure_target(
    keys: Sequence[CodedColumn],
    target: Target,
    synthesis: int,
    records: WeightedRecords,
    plan: MeasuringPlan,
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the figures of what the exclusions leave: in the population, weighted, and last of a band."""
    tables = (0, synthesis)
    q = combine_columns([key.only(tables) for key in keys])
    t = [target.column.codes[table] for table in tables]
    cells = RecordCells.from_keys(q, t, target.column.size, 1)
    left = disclosure_tables(cells.f)
    if target.exclusions:
        key_levels = np.stack([q.level_of(k) for k in range(len(keys))])
        left, _ = exclude(cells.f, left, key_levels, target.exclusions)
    people_q = PlacedWeights.add_up(records.weight, q.q[0], q.size).people
    disclosed_q = cells.f.per_key(left.DiSCO.values())
    figures = row_of(population_disclosure(q.counts[0], people_q, disclosed_q, len(records.weight)))
    if plan.weights is None:
        return figures, {}
    of_cells = PlacedWeights.add_up(records.weight, cells.position, len(cells.f.q))
    is_left = (left.original.values() > 0)[cells.position]
    disclosed = RecordDisclosure.from_table(cells.f, cells.position, records.unit).only(is_left)
    found = weigh_found(cells.f, left, cells.position, records.unit, records.weight)
    figures |= weigh_target(cells.f, left, target.no_guess, of_cells) | found
    figures |= weigh_others(disclosed, records.weight)
    figures |= weigh_guesses(cells.f, cells.position, records.unit, is_left, target.no_guess, records.weight)
    banded = {}
    if target.band is not None:
        by_others = found[f"iS_others{ENDING}"]
        banded = weigh_bands(cells.f, target.band, cells.position, is_left, records.weight, by_others)
    return figures, banded


def find_individual_risk(opened: OpenedTables, plan: MeasuringPlan) -> pd.DataFrame:
    """Return the risk of each GT record, whoever has a synthetic table; empty unless frames are in memory.

    A value per person: of no gate, and in nothing that is kept.
    """
    if opened.frames is None:
        return pd.DataFrame()
    extra = [] if plan.weights is None else [plan.weights]
    names = [*plan.keys, *extra]
    coded = {
        column.name: column
        for column in opened.with_columns(extra).code(names, plan.grouping, ignore_progress)
    }
    keys = [plan.grouping.apply(coded[name]) for name in plan.keys]
    q = combine_columns(keys)
    weight = np.full(len(q.q[0]), 1 / (plan.sampling_fraction or 1))
    if plan.weights is not None:
        weight = level_weights(coded[plan.weights])[coded[plan.weights].codes[0]]
    people_q = PlacedWeights.add_up(weight, q.q[0], q.size).people
    return pd.DataFrame(row_of(record_risk(q.q[0], q.counts[0], people_q)), index=opened.frames[0].index)
