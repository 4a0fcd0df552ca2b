"""A candidate measured as its gate defines: one coding of the columns, one pass over the records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.candidates.reading import (
    Engine,
    OpenedCandidate,
    choose_engine_for,
    read_ground_truth,
)
from disclosure_pipeline.candidates.store import GateFolders
from disclosure_pipeline.counting.memory.opened_frames import FramesInMemory
from disclosure_pipeline.counting.opening import OpenedTables, SeparableTables, open_canonical
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.evaluation.controls import SAMPLE, controls, halve_units
from disclosure_pipeline.evaluation.copies import copies_frame
from disclosure_pipeline.evaluation.counts import code_shared_columns, count_record_sets, plan_measures
from disclosure_pipeline.evaluation.figures import bins_of, figures
from disclosure_pipeline.evaluation.guards import (
    bound_guesses,
    measure_copies,
    measure_guards,
)
from disclosure_pipeline.evaluation.holdout import add_holdout, find_shared_records, prepare_holdout
from disclosure_pipeline.evaluation.prediction import prediction_frame
from disclosure_pipeline.evaluation.protection import protection_frame
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.evaluation.subgroups import measure_worst_groups
from disclosure_pipeline.evaluation.units import (
    UnitRecords,
    count_sets_by_unit,
    find_repeats,
    measure_by_units,
    read_units,
)
from disclosure_pipeline.evaluation.whole_tables import count_whole_tables
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.runtime.progress import ignore_progress
from disclosure_pipeline.tables.alignment import check_tables, require_unit
from disclosure_pipeline.tables.levels import CodedColumn
from disclosure_pipeline.tables.raw_columns import Change

# Of a guard, so it is there in every gate, whether the family that it stands with is on or not.
_GUESSED = ["guessed", "guessed_others", "guessed_beyond"]


@dataclass(frozen=True)
class Measured:
    """The figures of a candidate, its exact copies of GT records, and the groups of its numbers.

    `groups`: the levels of every grouped column and the records in each, as `bins` gives them. `ledger`: what
    was changed to compare the tables; `confidential`: the sha256 of each further confidential table that
    the figures are of, too.
    """

    result: Disclosure
    copies: pd.DataFrame
    groups: pd.DataFrame
    ledger: tuple[Change, ...]
    confidential: Mapping[str, str] = field(default_factory=dict)


def measure_candidate(gate: Gate, candidate: OpenedCandidate, engine: str, seed: int) -> Measured:
    """Measure GT and a candidate, as `measure_tables`, and of the gate's holdout."""
    measured = measure_tables(gate, candidate.opened, engine, candidate.with_holdout, seed)
    known = {} if gate.holdout is None else {gate.holdout: candidate.holdout_digest}
    return replace(measured, confidential=known)


def measure_tables(
    gate: Gate,
    opened: SeparableTables,
    engine: str,
    with_holdout: SeparableTables | None = None,
    seed: int = 0,
) -> Measured:
    """Measure GT and a candidate, in canonical form. InputError as `disclosure()`.

    Several syntheses are measured each, and as one table. `engine`: who counts the controls: "memory",
    "partitioned" or the URL of a database. `with_holdout`: the same tables, and last a holdout.
    `seed` draws who is compared with whom: one that nobody who makes a candidate knows.
    """
    open_units: Callable[[], Any] | None = None
    if gate.unit is not None:
        require_unit(gate.unit, opened.columns)
        open_units = cache(partial(opened.with_unit, gate.unit))
    measured = _measure(gate, opened, open_units, seed, by_group=True, with_holdout=with_holdout)
    result = measured.result
    sample = (open_units() if open_units else opened).sample(SAMPLE, 0)
    control_identity, control_attribute = controls(
        sample, gate.keys, gate.targets, gate.grouping, engine, 0, gate.unit
    )
    frames = {
        **result.further,
        **_measure_families(gate, opened),
        "control_identity": control_identity,
        "control_attribute": control_attribute,
    }
    stacked = None
    if len(result.N_s) > 1:
        units_of_all = (lambda: open_units().stacked()) if open_units else None
        stacked = _measure(gate, opened.stacked(), units_of_all, seed, by_group=False).result
    return replace(measured, result=replace(result, further=frames, stacked=stacked))


def measure_without_controls(gate: Gate, opened: SeparableTables) -> Disclosure:
    """Return the figures that every clause but those of the controls is about, of one synthesis."""
    open_units: Callable[[], Any] | None = None
    if gate.unit is not None:
        open_units = cache(partial(opened.with_unit, gate.unit))
    result = _measure(gate, opened, open_units, 0, by_group=False).result
    return replace(result, further={**result.further, **_measure_families(gate, opened)})


def measure_against(gate: Gate, opened: OpenedTables, seed: int) -> pd.DataFrame:
    """Copies of the records of a further confidential table, which is opened in GT's place; by synthesis."""
    columns = list(code_shared_columns(opened, gate.grouping, ignore_progress).values())
    _, records = count_record_sets(opened, [], columns, gate.targets)
    return measure_copies(opened, columns, records, seed=seed)[0]


def measure_repeats(gate: Gate, opened: OpenedTables) -> tuple[float, float]:
    """Return `find_repeats` of GT, opened as its own synthesis."""
    return find_repeats(opened, list(code_shared_columns(opened, gate.grouping, ignore_progress).values()))


def _measure(
    gate: Gate,
    opened: OpenedTables,
    open_units: Callable[[], OpenedTables] | None,
    seed: int,
    *,
    by_group: bool,
    with_holdout: SeparableTables | None = None,
) -> Measured:
    """Return what is measured of each table in the same way, be it a file or all of them as one.

    `open_units`: opens the same tables with whose the records are, where the gate has a unit.
    """
    grouping = gate.grouping
    plan = plan_measures(
        opened, gate.keys, gate.targets, grouping, gate.exclusions.as_exclusions(), gate.two_way[0]
    )
    counted = count_whole_tables(opened, plan, ignore_progress)
    columns, counts, records = counted.columns, counted.counts, counted.records
    result = figures(
        counts,
        (gate.one_way[0], gate.one_way[1]),
        (gate.two_way[0], gate.two_way[1]),
        with_cap=gate.measures.attribution,
        with_chance=gate.measures.chance,
    )
    units = None
    if open_units:
        units = read_units(open_units(), plan, gate.unit, ignore_progress, list(columns))
        result = measure_by_units(result, units, plan)
        records = count_sets_by_unit(records, units)
    per_unit = units.records_per_unit if units else 1
    sizes = [Sizes(result.N_d, N_s).divide(per_unit) for N_s in result.N_s]
    fewest = gate.policy.smallest_count
    guards = measure_guards(opened, list(columns.values()), records, units, seed, fewest)
    frames = {
        "doubts": _find_doubts(result),
        "warnings": _count_warnings(result),
        "guessed": bound_guesses(result.cap[_GUESSED], counts.targets, sizes),
        "subgroups": _measure_groups(gate, opened, columns, result, units) if by_group else pd.DataFrame(),
        **guards.frames,
    }
    cap = result.cap if gate.measures.attribution else result.cap.head(0)
    result = replace(result, cap=cap, further=frames)
    if with_holdout is not None:
        prepared = prepare_holdout(with_holdout, plan, ignore_progress)
        shared_records = find_shared_records(prepared, ignore_progress)
        result = add_holdout(result, prepared, counts, shared_records, ignore_progress)
    return Measured(
        result,
        copies_frame(len(columns), [keys.shared.SD_in_GT for keys in records.whole], counts.records[1:]),
        bins_of([column for column in counted.request.columns if grouping.grouped(column.name)]),
        counts.ledger,
    )


def _find_doubts(result: Disclosure) -> pd.DataFrame:
    """Index (target, synthesis); `excluded`: percent of the GT records that the exclusions take."""
    of_GT = result.excluded.xs("original", level="table")
    return pd.DataFrame({"excluded": 100 * (1 - of_GT["remaining"] / result.N_d)})


def _count_warnings(result: Disclosure) -> pd.DataFrame:
    """Return the number of warnings about the tables, beside each synthesis: not every warning names one."""
    syntheses = pd.RangeIndex(1, len(result.N_s) + 1, name="synthesis")
    return pd.DataFrame({"warnings": len(result.warnings)}, index=syntheses)


def _measure_groups(
    gate: Gate,
    opened: OpenedTables,
    columns: Mapping[Any, CodedColumn],
    result: Disclosure,
    units: UnitRecords | None,
) -> pd.DataFrame:
    """Measure who bears most of what is disclosed. `columns`: not grouped."""
    special_values = {name: gate.columns[name].special_values for name in columns}
    return measure_worst_groups(
        opened,
        columns,
        gate.published,
        result,
        gate.grouping,
        special_values,
        gate.policy.smallest_count,
        units,
    )


def _measure_families(gate: Gate, opened: OpenedTables) -> dict[str, pd.DataFrame]:
    """Measure the families that need tables in memory; a gate with them has no other engine."""
    if opened.frames is None:
        return {}
    ground_truth, *syntheses = opened.frames
    tables = check_tables(ground_truth, syntheses, gate.keys, gate.targets, gate.grouping)
    frames = {}
    if gate.measures.methods:
        frames["protection"] = protection_frame(tables, gate.measures.methods)
    if gate.measures.learner:
        frames["prediction"] = prediction_frame(tables, gate.measures.learner, gate.tasks)
    return frames


DRAWS = 5
# Records of which the halves are drawn: of more the chance is smaller, so that a bound is wide enough.
_LARGEST = 50_000
_FEWEST = 20


@dataclass(frozen=True)
class GroundTruthBaselines:
    """`own`: GT as its own synthesis. `halves`: one half of GT as the synthesis of the other, a draw each."""

    own: Disclosure
    halves: tuple[Disclosure, ...]


def measure_baselines(folders: GateFolders) -> GroundTruthBaselines:
    """Measure GT by itself, and halves of it (of at most 50,000 records), drawn by fixed seeds.

    InputError where a database counts, for its records stay there, and for fewer than 20 records;
    StoreError or ContractError where GT is not there or breaks its contract.
    """
    gate = folders.gate
    # What only candidates need is left out: it takes long, and no bound is drafted from it.
    faster_gate = gate.model_copy(
        update={"measures": gate.measures.model_copy(update={"protection": False, "prediction": False})}
    )
    with _open_with_itself(folders) as (opened, engine, _):
        own = measure_tables(faster_gate, opened, engine.name).result
        records = _sample(gate, opened, _LARGEST)
    pairs = [split(records, gate.unit, np.random.default_rng(seed)) for seed in range(DRAWS)]
    halves = tuple(
        measure_tables(faster_gate, FramesInMemory(pair, "memory"), "memory").result for pair in pairs
    )
    return GroundTruthBaselines(replace(own, engine=engine.description), halves)


def sample_ground_truth(folders: GateFolders, most: int) -> tuple[pd.DataFrame, str]:
    """Return at most so many records of GT, with their unit, and its hash. Errors: `measure_baselines`."""
    with _open_with_itself(folders) as (opened, _, digest):
        return _sample(folders.gate, opened, most), digest


@contextmanager
def _open_with_itself(folders: GateFolders) -> Iterator[tuple[SeparableTables, Engine, str]]:
    """Open GT as its own synthesis; last its hash."""
    gate = folders.gate
    if gate.in_database:
        raise InputError(
            "Records that a database counts stay there, so no halves of them can be drawn: try a gate with "
            "engine: memory on an extract of the ground truth."
        )
    with ExitStack() as stack:
        engine = choose_engine_for(gate, [folders.ground_truth])
        table, digest = read_ground_truth(folders, engine, stack)
        if table.records < _FEWEST:
            raise InputError(f"The ground truth has {table.records} records: too few to draw halves of it.")
        published = table.keep_columns(gate.published)
        with_unit = table.keep_columns((*gate.published, gate.unit or ""))
        opened = stack.enter_context(open_canonical([with_unit, published], engine.name, engine.description))
        yield opened, engine, digest


def _sample(gate: Gate, opened: SeparableTables, most: int) -> pd.DataFrame:
    return (opened.with_unit(gate.unit) if gate.unit else opened).sample(most, 0)[0]


def split(
    records: pd.DataFrame, unit: str | None, rng: np.random.Generator
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return random halves of the records, the second without its unit; a unit is in one of them whole."""
    if unit is not None:
        first, second = halve_units(records, unit, rng)
        return first, second.drop(columns=unit)
    order = rng.permutation(len(records))
    middle = len(records) // 2
    return records.iloc[np.sort(order[:middle])], records.iloc[np.sort(order[middle : 2 * middle])]
