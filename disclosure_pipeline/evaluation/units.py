"""People with several records: the figures of a result that other people's records bear on, by units."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.counts import CountRequest, Target, sample_positions
from disclosure_pipeline.counting.opening import OpenedTables
from disclosure_pipeline.evaluation.counts import (
    MeasuringPlan,
    RecordSets,
    combine_columns,
    count_record_sets,
    count_request,
)
from disclosure_pipeline.evaluation.figures import add_beyond_chance, bound_differences
from disclosure_pipeline.evaluation.frames import frame_of, names_of, row_of
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.measures.checks import exclude
from disclosure_pipeline.measures.copies import (
    ENOUGH_RECORDS,
    FoundCopies,
    HitCounts,
    UnitCombinations,
    find_lone_units,
    repeats_beyond_apart,
    unique_hits,
)
from disclosure_pipeline.measures.exact import IntArray, percent
from disclosure_pipeline.measures.frequency import Keys, combine_keys, frequency_tables
from disclosure_pipeline.measures.identity import Uniques
from disclosure_pipeline.measures.people import PeopleCounts
from disclosure_pipeline.measures.resemblance import Shared
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.measures.subgroups import RecordDisclosure
from disclosure_pipeline.measures.survey import HouseholdRisk, household_risk
from disclosure_pipeline.measures.together import TogetherTargetCounts, chance_of_any, square_beyond, together
from disclosure_pipeline.measures.totals import disclosure_tables
from disclosure_pipeline.measures.units import UnitCells, baselines_of_units
from disclosure_pipeline.runtime.progress import OnProgress, ignore_progress
from disclosure_pipeline.tables.alignment import lacks_owners
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
        columns = list(self.columns.values())
        sizes = [int(counts.sum()) for counts in columns[0].counts]
        if max(sizes) <= most:
            return self
        positions = sample_positions(sizes, most, seed)
        drawn = self.unit if positions[0] is None else self.unit[positions[0]]
        return UnitRecords({column.name: column.draw(positions) for column in columns}, drawn)


def read_units(
    opened: OpenedTables,
    plan: MeasuringPlan,
    on_progress: OnProgress,
    columns: Sequence[Any] | None = None,
) -> UnitRecords:
    """Read the codes of all records, and whose each GT record is. InputError where that is not known."""
    names = plan.columns if columns is None else columns
    coded = opened.code([*names, plan.unit], plan.grouping, on_progress)
    most = max(int(counts.sum()) for counts in coded[0].counts)
    *records, owners = opened.code_records(coded, most, 0)
    if owners.counts[0][owners.missing]:
        raise lacks_owners(plan.unit)
    unit = owners.codes[0].astype(np.int64)
    # Engines have their own order of records, and nothing that is drawn may depend on it.
    positions = [
        np.lexsort([owners.codes[table], *(column.codes[table] for column in records)])
        for table in range(len(owners.tables))
    ]
    drawn = {column.name: column.draw(positions) for column in records}
    return UnitRecords(drawn, unit[positions[0]])


MOST_CELLS = 1_000_000_000
"""Values that are looked at, at most, to see whether the records of a table repeat: a minute or less."""

_FEWEST_SETS = 3


def find_repeats(opened: OpenedTables, columns: Sequence[CodedColumn]) -> tuple[float, float]:
    """Return the percent of GT records that equal another one in all of the columns, and of repeats.

    These are in all columns, or in all but one: the largest beyond what columns drawn apart show, see
    `MANY_REPEATS`. Of very large, wide tables only a few columns are left out in turn, those of the most
    levels: what changes from one record of a person to the next is a time, an amount or the like.
    """
    N = int(columns[0].counts[0].sum())
    shares = {
        column.name: (column.counts[0] / column.counts[0].sum())[column.codes[0]]
        for column in opened.code_records(columns, ENOUGH_RECORDS, 0)
    }
    alone = _count_alone(opened, columns, N)
    return percent(N - alone[0][1], N), max(
        repeats_beyond_apart(N - number, [shares[column.name] for column in of_set], N)
        for of_set, number in alone
        if len(of_set) >= len(columns) - 1
    )


def _count_alone(
    opened: OpenedTables, columns: Sequence[CodedColumn], records: int
) -> list[tuple[Sequence[CodedColumn], int]]:
    """Return all columns first, then all but some, each with the number of records that no other equals."""
    if records * len(columns) ** 2 <= MOST_CELLS:
        _, sets = count_record_sets(opened, [], columns, [])
        alone = [found[0].people.alone for found in sets.partial.values()]
        return [(columns, sets.whole[0].people.alone), *zip(sets.columns.values(), alone, strict=True)]
    by_levels = sorted(columns, key=lambda column: -int((column.counts[0] > 0).sum()))
    left_out = by_levels[: max(_FEWEST_SETS, MOST_CELLS // (records * len(columns)))]
    chosen = [columns, *([column for column in columns if column is not one] for one in left_out)]
    counted = opened.count([CountRequest(of_set) for of_set in chosen], ignore_progress)
    return [(of_set, of.keys[0].people.alone) for of_set, of in zip(chosen, counted, strict=True)]


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
            by_name, disclosed = _measure_target(request.keys, target, synthesis, records.unit)
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
    shared: Shared
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


def _measure_target(
    keys: Sequence[CodedColumn], target: Target, synthesis: int, unit: IntArray
) -> tuple[dict[str, float], RecordDisclosure]:
    """Return the figures of `baselines_of_units`, and what each record that is left adds to DiSCO."""
    tables = (0, synthesis)
    q = combine_columns([key.only(tables) for key in keys])
    t = [target.column.codes[table] for table in tables]
    [f] = frequency_tables(q, t, target.column.size)
    position = np.searchsorted(f.q * f.targets + f.t, q.q[0] * f.targets + t[0])
    cells = UnitCells.from_records(f.q[position], position, unit, np.ones(len(unit), dtype=np.int64))
    left = left_s = None
    if target.exclusions:
        key_levels = np.stack([q.level_of(k) for k in range(len(keys))])
        tables_left, _ = exclude(f, disclosure_tables(f), key_levels, target.exclusions)
        left, left_s = tables_left.original.values(), tables_left.synthetic.values()
    disclosed = RecordDisclosure.from_table(f, position, unit)
    if left is not None:
        disclosed = disclosed.only((left > 0)[position])
    return baselines_of_units(f, cells, target.no_guess, left, left_s), disclosed


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
