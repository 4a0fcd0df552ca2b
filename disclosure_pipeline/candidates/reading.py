"""Read GT and the tables of a candidate in canonical form with the gate's engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from disclosure_pipeline.candidates.evaluation_records import (
    SketchedTable,
    record_evaluation,
    sketch_candidate,
)
from disclosure_pipeline.candidates.snapshot import Snapshot, list_syntheses
from disclosure_pipeline.candidates.store import GateFolders, StoredFile
from disclosure_pipeline.counting.opening import Engine, OpenedTables, ReadTable, choose_engine, find_engine
from disclosure_pipeline.errors import InputError, StoreError
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.runtime.files import read_json
from disclosure_pipeline.runtime.progress import report_progress
from disclosure_pipeline.tables.additions import (
    A_SYNTHETIC_TABLE,
    GT_IDENTIFIER,
    IDENTIFIER,
    find_additions,
    holds_identifiers,
    list_new_texts,
)
from disclosure_pipeline.tables.alignment import WEIGHTS, find_weight_problem
from disclosure_pipeline.tables.contract import (
    WITHOUT_OWNER,
    CanonicalTable,
    LinkedTable,
    read_canonical,
)
from disclosure_pipeline.tables.dictionary import CATEGORIES, Column, Contract, ContractError, Violation
from disclosure_pipeline.tables.files import fill_in_variables, redact_location
from disclosure_pipeline.tables.grouping import grouping_of
from disclosure_pipeline.tables.messages import GROUND_TRUTH, capitalized, name_events
from disclosure_pipeline.tables.record_hashes import Groups
from disclosure_pipeline.tables.sources import LinkedSource, Location, Source


def choose_engine_for(gate: Gate, locations: Sequence[Location | LinkedSource]) -> Engine:
    """Return the engine of the gate for these tables."""
    if gate.engine != "auto":
        return find_engine(fill_in_variables(gate.engine, "engine"), redact_location(gate.engine))
    if gate.memory_only_features:
        return find_engine("memory", f"memory (needed by {gate.memory_only_features})")
    try:
        return choose_engine(
            "auto", [location for location in locations if not isinstance(location, LinkedSource)]
        )
    except InputError:  # an unreadable file is reported when it is read
        return find_engine("memory")


@dataclass(frozen=True)
class CandidateTables:
    """The tables of a candidate and the engine that measures them.

    `stage` is the folder to read the files from, None for the store; `read` are the tables if the engine has
    already read them.
    """

    snapshot: Snapshot
    engine: Engine
    stage: Path | None = None
    read: Sequence[Any] | None = None

    def locate(self, file: StoredFile, folders: GateFolders) -> Path:
        """Return the path to read a file of the snapshot from."""
        return folders.store.stored_path(file) if self.stage is None else self.stage / file.name


def find_tables(folders: GateFolders, snapshot: Snapshot, stage: Path | None = None) -> CandidateTables:
    """Return the tables of a candidate and the engine for them and GT."""
    stored = [folders.store.stored_path(file) for file in snapshot.files]
    largest: list[Source | LinkedSource] = [folders.ground_truth, *folders.confidential.values()]
    return CandidateTables(snapshot, choose_engine_for(folders.gate, [*largest, *stored]), stage)


def read_ground_truth(folders: GateFolders, engine: Engine, stack: ExitStack) -> tuple[ReadTable, str]:
    """Return GT in canonical form, and its sha256 (of its bytes, or of the rows that a database returned).

    Temporary files are removed when the stack closes. Raise StoreError if GT is missing or changes while it
    is read, ContractError if it breaks its contract.
    """
    gate = folders.gate
    table, digest = _read_source(
        gate, folders.ground_truth, GROUND_TRUTH, engine, stack, gate.unpublished_columns
    )
    if gate.weight is not None:
        with engine.open_read([table]) as opened:
            [column] = opened.code([gate.weight], grouping_of(), report_progress)
        problem = find_weight_problem(column)
        if problem:
            raise ContractError([Violation(GROUND_TRUTH, gate.weight, f"{problem}: {WEIGHTS}")])
    return table, digest


def read_confidential(folders: GateFolders, name: str, engine: Engine, stack: ExitStack) -> tuple[Any, str]:
    """Return a further confidential table and its sha256, as `read_ground_truth` does for GT."""
    gate, source = folders.gate, folders.confidential[name]
    return _read_source(gate, source, name_confidential(name), engine, stack, gate.unit_columns)


def name_confidential(name: str) -> str:
    """Return the name of a further confidential table in messages."""
    return f"the confidential table {name!r}"


def _read_source(
    gate: Gate,
    source: Source | LinkedSource,
    name: str,
    engine: Engine,
    stack: ExitStack,
    unpublished: Mapping[str, Column],
) -> tuple[Any, str]:
    if not source.exists():
        raise StoreError(f"{capitalized(name)} is not at the location in the gate's definition.")
    before = source.sha256()
    if isinstance(source, LinkedSource):
        locations = [source.persons, source.events]
        table: Any = read_linked(gate, locations, (name, name_events(name)), unpublished)
    else:
        needed = dict.fromkeys((*gate.published_columns, *unpublished))
        contract = Contract({**gate.columns, **unpublished}, name, [*needed], only_known=False)
        table = engine.read(source, contract, stack)
    for unit in gate.unit_columns:
        if table.count_levels(unit).sum() < table.records:
            raise ContractError([Violation(name, unit, WITHOUT_OWNER)])
    if source.sha256() != before:
        raise describe_change(name)
    return table, table.sha256 if before is None else before


def describe_change(table: str) -> StoreError:
    """Return the error for a table that changed while it was read."""
    return StoreError(f"{capitalized(table)} changed while it was read: run again.")


def require_unchanged(engine: Engine, source: Source | LinkedSource, digest: str, table: str) -> None:
    """Raise StoreError if a table changed while a database, which reads it in place, measured it."""
    if not engine.gives_records and source.sha256() not in {None, digest}:
        raise describe_change(table)


def read_synthesis(
    folders: GateFolders, candidate: CandidateTables, files: Sequence[StoredFile], stack: ExitStack
) -> Any:
    """Read one synthesis of a candidate in canonical form, with the published columns only.

    Raise ContractError if it breaks its contract or has a column of identifiers.
    """
    gate = folders.gate
    stored = [candidate.locate(file, folders) for file in files]
    names = [name_table(file) for file in files]
    if gate.events is None:
        contract = Contract(gate.columns, names[0], gate.published_columns, only_known=True)
        table: Any = candidate.engine.read(stored[0], contract, stack)
    else:
        table = read_linked(gate, stored, names, only_known=True)
    identifiers = [
        name
        for name in table.columns
        if name in gate.columns and gate.columns[name].type == "text identifier"
    ]
    if identifiers:
        raise ContractError([Violation(names[0], name, IDENTIFIER) for name in identifiers])
    return table.keep_columns(gate.published_columns)


def read_syntheses(folders: GateFolders, candidate: CandidateTables, stack: ExitStack) -> Sequence[Any]:
    """Return the syntheses of a candidate, reading them unless that is done; see `read_synthesis`."""
    if candidate.read is not None:
        return candidate.read
    listed = list_syntheses(folders.gate, candidate.snapshot)
    return [read_synthesis(folders, candidate, files, stack) for files in listed]


def _read_records(folders: GateFolders, candidate: CandidateTables, stack: ExitStack) -> Sequence[Any]:
    """Return the syntheses with their records, reading them again if the engine gives no records."""
    if not candidate.engine.gives_records:
        paths = [candidate.locate(file, folders) for file in candidate.snapshot.files]
        candidate = replace(candidate, engine=choose_engine("auto", paths), read=None)
    return read_syntheses(folders, candidate, stack)


@dataclass(frozen=True)
class StagedTables:
    """The tables of a candidate, read once from their staged copies to be measured and published."""

    candidate: CandidateTables
    tables: Sequence[Any]


def read_staged(folders: GateFolders, snapshot: Snapshot, folder: Path, stack: ExitStack) -> StagedTables:
    """Read the tables of a snapshot from their copies in `folder`; errors as in `read_synthesis`."""
    candidate = find_tables(folders, snapshot, folder)
    tables = _read_records(folders, candidate, stack)
    read = tables if candidate.engine.gives_records else None
    return StagedTables(replace(candidate, read=read), tables)


def name_table(file: StoredFile) -> str:
    """Return the name of a candidate's table in messages."""
    return f"synthetic table {file.name!r}"


def _name_syntheses(gate: Gate, snapshot: Snapshot) -> list[str]:
    return [name_table(files[0]) for files in list_syntheses(gate, snapshot)]


@dataclass(frozen=True)
class OpenedCandidate:
    """GT and the tables of a candidate, without and with the gate's holdout, and the claimed (ε, δ)."""

    opened: OpenedTables
    ground_truth: str
    with_holdout: OpenedTables | None
    holdout_digest: str
    claim: tuple[float, float] | None


@contextmanager
def open_candidate(folders: GateFolders, candidate: CandidateTables) -> Iterator[OpenedCandidate]:
    """Open the recorded GT and the tables of a candidate, and record the evaluation.

    Raise StoreError if GT is not the recorded one, RefusedError as `record_evaluation` does, and
    ContractError if a table breaks its contract or holds identifiers of GT.
    """
    gate, snapshot, engine = folders.gate, candidate.snapshot, candidate.engine
    recorded = read_json(folders.store.ground_truth, "ground_truth").get("sha256")
    with ExitStack() as stack:
        ground_truth, digest = read_ground_truth(folders, engine, stack)
        if recorded != digest:
            raise StoreError(
                "The ground truth differs from the recorded one: run ground_truth again, then this step."
            )
        syntheses = read_syntheses(folders, candidate, stack)
        tables = [ground_truth, *syntheses]
        opened = stack.enter_context(engine.open_read(tables))

        def sketch_tables() -> tuple[SketchedTable, ...]:
            records = _read_records(folders, replace(candidate, read=syntheses), stack)
            by_name = dict(zip(_name_syntheses(gate, snapshot), records, strict=True))
            return sketch_candidate(folders.store, gate, by_name, _find_groups(gate, opened))

        violations = _find_additions(folders, snapshot, ground_truth, syntheses)
        # First of all: nobody learns whether a table near to a measured one breaks its contract.
        record_evaluation(folders, snapshot, digest, sketch_tables, is_measured=not violations)
        if violations:
            raise ContractError(violations)
        claim = (snapshot.claims.epsilon, snapshot.claims.delta) if snapshot.claims else None
        with_holdout, holdout_digest = None, ""
        if gate.holdout is not None:
            holdout, holdout_digest = read_confidential(folders, gate.holdout, engine, stack)
            with_holdout = stack.enter_context(engine.open_read([*tables, holdout]))
        yield OpenedCandidate(opened, digest, with_holdout, holdout_digest, claim)
        require_unchanged(engine, folders.ground_truth, digest, GROUND_TRUTH)


def _find_groups(gate: Gate, opened: OpenedTables) -> dict[str, Groups]:
    """Return the groups of numbers with which these tables are measured."""
    names = [name for name in gate.measured_columns if gate.grouping.groups_column(name)]
    return {
        column.name: Groups(gate.grouping.find_edges(column), gate.columns[column.name].special_values)
        for column in opened.code(names, gate.grouping, report_progress)
    }


def _find_additions(
    folders: GateFolders, snapshot: Snapshot, ground_truth: Any, syntheses: Sequence[Any]
) -> list[Violation]:
    """Find levels, decimals, longer text and formulas that GT does not have, and identifiers of GT."""
    gate = folders.gate
    in_GT = ground_truth.values
    names = _name_syntheses(gate, snapshot)
    in_SD = {name: table.values for name, table in zip(names, syntheses, strict=True)}
    dictionary = gate.arriving_columns
    violations = find_additions(
        in_GT,
        in_SD,
        dictionary,
        refuse_formulas=gate.formulas == "refuse",
        show_levels=not gate.confidential,
    )
    identifiers = [
        name
        for name in in_GT
        if name == gate.unit or (name in dictionary and dictionary[name].type == "text identifier")
    ]
    if identifiers and holds_identifiers(
        chain.from_iterable(in_GT[name].to_pylist() for name in identifiers),
        [
            text
            for columns in in_SD.values()
            for name, values in columns.items()
            if dictionary[name].type in CATEGORIES
            for text in list_new_texts(in_GT[name], values)
        ],
    ):
        violations.append(Violation(A_SYNTHETIC_TABLE, "(any)", GT_IDENTIFIER))
    return violations


def read_linked(
    gate: Gate,
    locations: Sequence[Location],
    names: Sequence[str],
    unpublished: Mapping[str, Column] | None = None,
    *,
    only_known: bool = False,
) -> LinkedTable:
    """Read a table of persons and a table of their events in canonical form, and join them.

    `names` are those of both tables in messages. Raise ContractError if one breaks its contract, an event
    belongs to nobody, or a person has several records.
    """
    if gate.events is None or gate.unit is None:
        raise InputError(f"The gate's definition does not describe {names[1]}.")
    further = gate.unit_columns | dict(unpublished or {})
    person_columns, event_columns = (
        gate.person_columns | further,
        {**gate.events.columns, **gate.unit_columns},
    )
    needed = [name for name in person_columns if name in gate.published_columns or name in further]
    read: list[CanonicalTable] = []
    violations: list[Violation] = []
    contracts = (
        Contract(person_columns, names[0], needed, only_known),
        Contract(event_columns, names[1], [*event_columns], only_known),
    )
    for location, contract in zip(locations, contracts, strict=True):
        try:
            read.append(read_canonical(location, contract))
        except ContractError as broken:
            violations += broken.violations
    if violations:
        raise ContractError(violations)
    persons, events = read
    joining = gate.events.to_joining(gate.unit)
    frame, owners = joining.join(persons.frame, events.frame, (names[0], names[1]))
    return LinkedTable(frame, (*persons.ledger, *events.ledger), events, gate.unit, owners)
