"""Measure a candidate as its gate defines, and record the figures for later steps.

A record is only used if GT, candidate and definition are unchanged. A release does not use it: it measures
again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from disclosure_pipeline.candidates.evaluation_records import draw_seed
from disclosure_pipeline.candidates.reading import (
    OpenedCandidate,
    choose_engine_for,
    read_ground_truth,
)
from disclosure_pipeline.candidates.snapshot import Snapshot
from disclosure_pipeline.candidates.store import GateFolders
from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.counting.opening import Engine, OpenedTables, ReadTable
from disclosure_pipeline.errors import InputError, StoreError, write_count
from disclosure_pipeline.evaluation.controls import SAMPLE, controls, draw_half
from disclosure_pipeline.evaluation.copies import find_repeats
from disclosure_pipeline.evaluation.counts import (
    MeasuringPlan,
    WholeRecords,
    plan_measures,
)
from disclosure_pipeline.evaluation.disclosure import measure
from disclosure_pipeline.evaluation.found import MOST_RECORDS, measure_detection_limits
from disclosure_pipeline.evaluation.frames import frame_from_record
from disclosure_pipeline.evaluation.guards import measure_copies
from disclosure_pipeline.evaluation.holdout import prepare_holdout
from disclosure_pipeline.evaluation.long_table import CONFIDENTIAL
from disclosure_pipeline.evaluation.record_sets import (
    code_shared_columns,
    count_people,
    find_real_values,
    read_records,
)
from disclosure_pipeline.evaluation.releases import add_first_release
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.evidence.dossier import withhold_rare_levels
from disclosure_pipeline.families.prediction import measure_prediction
from disclosure_pipeline.families.protection import measure_protection
from disclosure_pipeline.measures.found import USUAL_BOUNDS
from disclosure_pipeline.measures.resemblance import LeastShared
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.runtime.files import read_json, write_json
from disclosure_pipeline.runtime.progress import report_progress
from disclosure_pipeline.tables.alignment import check_tables, number_owners


@dataclass(frozen=True)
class Measured:
    """The figures of a candidate, and the hashes of the confidential tables and releases compared with it."""

    result: Disclosure
    confidential: Mapping[str, str] = field(default_factory=dict)
    releases: str | None = None  # empty: nothing was released; None: not compared yet


def measure_candidate(folders: GateFolders, candidate: OpenedCandidate, engine: Engine) -> Measured:
    """Measure an opened candidate with the gate's holdout; see `measure_tables`."""
    gate, seed, claim = folders.gate, draw_seed(folders.store), candidate.claim
    result = measure_tables(gate, candidate.opened, engine.name, candidate.with_holdout, seed, claim)
    return Measured(result, {} if gate.holdout is None else {gate.holdout: candidate.holdout_digest})


def measure_tables(
    gate: Gate,
    opened: OpenedTables,
    engine: str,
    with_holdout: OpenedTables | None = None,
    seed: int = 0,
    claim: tuple[float, float] | None = None,
) -> Disclosure:
    """Measure GT and a candidate in canonical form, each synthesis and all of them as one table.

    `engine` counts the controls: "memory", "partitioned" or the URL of a database. `with_holdout` are the
    same tables followed by the holdout. `seed` draws the people to compare and must be secret from whoever
    makes the candidate. `claim` is the candidate's (ε, δ). Raise InputError as `disclosure()` does.
    """
    plan = plan_gate(gate, opened, seed, by_group=True)
    holdout = None if with_holdout is None else prepare_holdout(with_holdout, plan, report_progress, claim)
    result = measure(opened, plan, report_progress, holdout)
    sample = _draw_samples(gate, opened, SAMPLE)
    identity, attribute = controls(sample, gate.keys, gate.targets, gate.grouping, engine, 0, gate.unit)
    result = replace(result, control_identity=identity, control_attribute=attribute)
    return _add_families(gate, opened, result)


def measure_without_controls(gate: Gate, opened: OpenedTables) -> Disclosure:
    """Return the figures of one synthesis for all clauses except the controls."""
    return _add_families(gate, opened, measure(opened, plan_gate(gate, opened, 0, by_group=False)))


def measure_without_guards(gate: Gate, opened: OpenedTables) -> Disclosure:
    """Return only the figures that depend on keys and targets alone, in a fraction of the time."""
    return measure(opened, replace(plan_gate(gate, opened, 0, by_group=False), whole_records=None))


def plan_gate(gate: Gate, opened: OpenedTables, seed: int, *, by_group: bool) -> MeasuringPlan:
    """Return the plan of a gate; with `by_group`, also the groups with the highest disclosure."""
    whole_records = WholeRecords(
        gate.policy.smallest_count,
        seed,
        gate.published_columns if by_group else (),
        {name: column.special_values for name, column in gate.columns.items()},
        keys=tuple(gate.keys),
        bounds=_find_bounds(gate),
    )
    return plan_measures(
        opened,
        gate.keys,
        gate.targets,
        gate.grouping,
        gate.exclusions.to_exclusions(),
        gate.unit,
        gate.weight,
        sampling_fraction=gate.sampling_fraction,
        least_shared=LeastShared(0, 0, 0),  # clauses bound the shares, and a policy may lower them
        real_values=gate.keeping_real_values,
        one_way=gate.one_way,
        two_way=gate.two_way,
        attribution=gate.measures.attribution,
        chance=gate.measures.chance,
        together=True,
        sensitive=gate.sensitive,
        whole_records=whole_records,
    )


def _find_bounds(gate: Gate) -> dict[str, float]:
    return {way: gate.policy.find_bound("found", way) for way in USUAL_BOUNDS}


def measure_confidential(gate: Gate, opened: OpenedTables, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the copies of a further confidential table, opened in place of GT, by synthesis.

    And the people of it who are found, by way and synthesis.

    Repeats within a synthesis are not measured: their expected number follows from GT.
    """
    plan = plan_measures(opened, gate.keys, gate.targets, gate.grouping, unit=gate.unit)
    columns = code_shared_columns(opened, gate.grouping, report_progress)
    records = count_people(opened, columns, plan, report_progress)
    plan_of_guards = WholeRecords(
        gate.policy.smallest_count, seed, keys=tuple(gate.keys), bounds=_find_bounds(gate)
    )
    copies = measure_copies(records, plan_of_guards)
    return copies.guards, copies.found


def measure_repeats(gate: Gate, opened: OpenedTables) -> tuple[float, float]:
    """Return `find_repeats` of GT opened as its own synthesis."""
    return find_repeats(opened, code_shared_columns(opened, gate.grouping, report_progress))


def find_like_identifiers(gate: Gate, opened: OpenedTables) -> list[str]:
    """Return the columns like identifiers whose real values may not be published; `opened` is GT twice."""
    columns = code_shared_columns(opened, gate.grouping, report_progress)
    plan = plan_measures(opened, gate.keys, gate.targets, gate.grouping, unit=gate.unit)
    names = [column.name for column in columns]
    found = find_real_values(opened, columns, read_records(opened, plan, report_progress, names))
    return [values.column for values in found if values.column not in gate.keeping_real_values]


def _add_families(gate: Gate, opened: OpenedTables, result: Disclosure) -> Disclosure:
    """Add a first release, and the families that need tables in memory, which a gate with them always has."""
    result = add_first_release(result)
    if opened.frames is None:
        return result
    ground_truth, *syntheses = opened.frames
    tables = check_tables(ground_truth, syntheses, gate.keys, gate.targets, gate.grouping)
    if gate.measures.methods:
        result = replace(result, protection=measure_protection(tables, gate.measures.methods))
    if gate.measures.learner:
        owners = number_owners(opened.frames, gate.unit)
        predicted = measure_prediction(tables, gate.measures.learner, gate.tasks, owners)
        result = replace(result, prediction=predicted)
    return result


WITHOUT_POPULATION: dict[str, Any] = {"weight": None, "sampling_fraction": None, "people": "counted"}
"""Changes of a gate that turn off population figures, which halves of GT cannot estimate."""

DRAWS = 5
# Halves are drawn from at most this many records: with more, chance is smaller and the bound still holds.
_LARGEST = 50_000
_FEWEST = 20


@dataclass(frozen=True)
class GroundTruthBaselines:
    """The figures of GT as its own synthesis, and of random halves of GT as each other's synthesis.

    limits: the detection limits, in percent of the people.
    """

    own: Disclosure
    halves: tuple[Disclosure, ...]
    limits: Mapping[str, float]


def measure_baselines(folders: GateFolders, synthetic_records: int | None = None) -> GroundTruthBaselines:
    """Measure GT as its own synthesis, and random halves of at most 50,000 of its records.

    With `synthetic_records`, the half that plays the synthesis is scaled to their share of GT's records.
    Raise InputError if the engine is a database or GT has fewer than 20 records, StoreError or ContractError
    if GT is missing or breaks its contract.
    """
    gate = folders.gate
    # Guards take long, and no bound is drafted from them.
    without_population = gate.model_copy(update=WITHOUT_POPULATION)
    with _open_to_halve(folders) as (opened, engine, _):
        own = measure_without_guards(without_population, opened)
        records = _draw_samples(gate, opened, _LARGEST)[0]
        of_GT = 1.0 if synthetic_records is None else synthetic_records / own.N_d
        limits = measure_limits(gate, opened, of_GT)
    pairs = [split_records(records, gate.unit, np.random.default_rng(seed)) for seed in range(DRAWS)]
    share = min(1.0, of_GT)
    if share < 1:
        pairs = [
            (known, fresh.sample(max(1, round(share * len(fresh))), random_state=seed))
            for seed, (known, fresh) in enumerate(pairs)
        ]
    halves = tuple(
        measure_without_guards(without_population, FramesInMemory(pair, "memory")) for pair in pairs
    )
    return GroundTruthBaselines(replace(own, engine=engine.description), halves, limits)


def measure_limits(gate: Gate, opened: OpenedTables, share: float = 1.0) -> dict[str, float]:
    """Return the detection limits of a gate, in percent of the people, from GT opened as its own synthesis.

    Of candidates with this share of GT's records; at most 400,000 records of each are looked at.
    """
    known = _draw_samples(gate, opened, MOST_RECORDS)[0]
    number = max(1, round(share * len(known)))
    drawn = known if share == 1 else known.sample(number, replace=share > 1, random_state=0)
    tables = FramesInMemory((known, drawn[list(gate.published_columns)]), "memory")
    plan = plan_gate(gate.model_copy(update=WITHOUT_POPULATION), tables, 0, by_group=False)
    return measure_detection_limits(tables, plan)


def sample_ground_truth(folders: GateFolders, most: int) -> tuple[pd.DataFrame, str]:
    """Return at most `most` records of GT, with their unit, and GT's sha256. Errors: `measure_baselines`."""
    with _open_to_halve(folders) as (opened, _, digest):
        return _draw_samples(folders.gate, opened, most)[0], digest


@contextmanager
def _open_to_halve(folders: GateFolders) -> Iterator[tuple[OpenedTables, Engine, str]]:
    if folders.gate.counts_in_database:
        raise InputError(
            "No halves can be drawn from records that stay in a database: use a gate with engine: memory on "
            "an extract of the ground truth."
        )
    with open_with_itself(folders) as (opened, engine, table, digest):
        if table.records < _FEWEST:
            raise InputError(
                f"The ground truth has {write_count(table.records, 'record')}: at least {_FEWEST} are "
                "needed to draw halves."
            )
        yield opened, engine, digest


@contextmanager
def open_with_itself(folders: GateFolders) -> Iterator[tuple[OpenedTables, Engine, ReadTable, str]]:
    """Open GT as its own synthesis; return also the engine, GT and its sha256."""
    gate = folders.gate
    with ExitStack() as stack:
        engine = choose_engine_for(gate, [folders.ground_truth])
        table, digest = read_ground_truth(folders, engine, stack)
        published = table.keep_columns(gate.published_columns)
        with_unit = table.keep_columns((*gate.published_columns, *gate.unit_columns))
        opened = stack.enter_context(engine.open_read([with_unit, published]))
        yield opened, engine, table, digest


def _draw_samples(gate: Gate, opened: OpenedTables, most: int) -> list[pd.DataFrame]:
    return (opened.with_columns([gate.unit]) if gate.unit else opened).sample(most, 0)


def split_records(
    records: pd.DataFrame, unit: str | None, rng: np.random.Generator
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return random halves of the records, the second without the unit column; no unit is in both halves."""
    if unit is not None:
        in_first = draw_half(number_owners([records], unit), rng)
        return records[in_first], records[~in_first].drop(columns=unit)
    order = rng.permutation(len(records))
    middle = len(records) // 2
    return records.iloc[np.sort(order[:middle])], records.iloc[np.sort(order[middle : 2 * middle])]


_Part = TypeVar("_Part")

_FILE = "measured.json"


def record_measured(folders: GateFolders, snapshot: Snapshot, ground_truth: str, measured: Measured) -> None:
    """Record the figures of a candidate and GT (by its sha256), without levels of few records."""
    measured = drop_rare_levels(measured, folders.gate.policy.smallest_count)
    content = {
        **_identify_inputs(folders, snapshot, ground_truth),
        "result": measured.result.to_record(),
        "confidential": dict(measured.confidential),
        "releases": measured.releases,
    }
    write_json(folders.store.candidate_folder(snapshot.candidate) / _FILE, content)


def read_measured(folders: GateFolders, snapshot: Snapshot, ground_truth: str) -> Measured | None:
    """Return the figures recorded for this GT, candidate and definition, or None."""
    return _read_record(
        folders,
        snapshot,
        ground_truth,
        lambda content: Measured(
            Disclosure.from_record(content["result"]), content["confidential"], content["releases"]
        ),
    )


def read_groups(folders: GateFolders, snapshot: Snapshot, ground_truth: str) -> pd.DataFrame | None:
    """Return only the groups of numbers from the record; see `read_measured`."""
    return _read_record(
        folders,
        snapshot,
        ground_truth,
        lambda content: frame_from_record(content["result"]["frames"]["groups"]),
    )


def _read_record(
    folders: GateFolders, snapshot: Snapshot, ground_truth: str, rebuild: Callable[[Mapping[str, Any]], _Part]
) -> _Part | None:
    """Return the record converted by `rebuild`; None if it is of other inputs, or damaged."""
    try:
        content = read_json(folders.store.candidate_folder(snapshot.candidate) / _FILE, "synthetic")
        expected = _identify_inputs(folders, snapshot, ground_truth)
        if {name: content.get(name) for name in expected} != expected:
            return None
        # A table in a database has no sha256 before it is read: measure again.
        compared = bool(content["result"]["frames"][CONFIDENTIAL]["columns"])
        names = [name for name in folders.confidential if compared or name == folders.gate.holdout]
        if content["confidential"] != {name: folders.confidential[name].sha256() for name in names}:
            return None
        return rebuild(content)
    except (StoreError, KeyError, TypeError, ValueError, AttributeError):
        return None


def drop_rare_levels(measured: Measured, smallest_count: int) -> Measured:
    """Return the figures without names of levels, and groups, of fewer than `smallest_count` GT records."""
    return replace(measured, result=_drop_rare_levels_in(measured.result, smallest_count))


def _drop_rare_levels_in(result: Disclosure, smallest_count: int) -> Disclosure:
    groups = result.groups[result.groups["GT"] >= smallest_count].reset_index(drop=True)
    stacked = None if result.stacked is None else _drop_rare_levels_in(result.stacked, smallest_count)
    return replace(withhold_rare_levels(result, smallest_count), groups=groups, stacked=stacked)


def _identify_inputs(folders: GateFolders, snapshot: Snapshot, ground_truth: str) -> dict[str, str]:
    """Return the GT, candidate, definition, holdout and version that the figures depend on."""
    return {
        "ground_truth": ground_truth,
        "snapshot": snapshot.sha256,
        "policy_digest": folders.gate.policy_digest(),
        "holdout": folders.gate.holdout or "",
        "measured_by": version("disclosure-pipeline"),
    }
