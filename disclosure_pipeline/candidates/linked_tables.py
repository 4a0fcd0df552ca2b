"""Persons and their events: which files of a candidate belong together, and two tables read as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from disclosure_pipeline.candidates.files import StoreError
from disclosure_pipeline.candidates.store import Snapshot, StoredFile
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.tables.canonical_tables import CanonicalTable, LinkedTable, read_canonical
from disclosure_pipeline.tables.contract import ContractError, Violation
from disclosure_pipeline.tables.dictionary import Column
from disclosure_pipeline.tables.files import suffix_of
from disclosure_pipeline.tables.sources import Location

LINKED = ("persons", "events")
"""What the names of a candidate's files begin with, where people have events."""


def list_syntheses(gate: Gate, snapshot: Snapshot) -> list[tuple[StoredFile, ...]]:
    """Return the files of each synthesis: one; where people have events two, of which the second holds these.

    StoreError where a file is called otherwise, or came without the other one.
    """
    if gate.events is None:
        return [(file,) for file in snapshot.files]
    halves: dict[str, dict[str, StoredFile]] = {}
    for file in snapshot.files:
        stem = file.name.removesuffix(suffix_of(file.name) or "")
        kind = next((kind for kind in LINKED if stem.startswith(kind)), "")
        of_synthesis = halves.setdefault(stem.removeprefix(kind), {})
        if not kind or kind in of_synthesis:
            raise StoreError(
                f"Candidate {snapshot.candidate!r} holds {file.name!r}: its files are called persons and "
                "events, or persons_2 and events_2 and so on, each once."
            )
        of_synthesis[kind] = file
    for of_synthesis in halves.values():
        if len(of_synthesis) < len(LINKED):
            [file] = of_synthesis.values()
            raise StoreError(
                f"Candidate {snapshot.candidate!r} holds {file.name!r} alone: persons and events come "
                "together, and their names end alike."
            )
    return [tuple(of_synthesis[kind] for kind in LINKED) for of_synthesis in halves.values()]


def read_linked(
    gate: Gate,
    locations: Sequence[Location],
    names: Sequence[str],
    unpublished: Mapping[str, Column] | None = None,
    *,
    only_known: bool = False,
) -> LinkedTable:
    """Read a table of persons and one of their events in canonical form, and join them.

    `names`: of both, in messages. ContractError where one breaks its contract, an event is of nobody, or a
    person is in several records.
    """
    if gate.events is None or gate.unit is None:
        raise InputError(f"{names[1]} are not described by the gate.")
    of_unit = {gate.unit: Column(type="category")}
    further = of_unit | dict(unpublished or {})
    of_persons, of_events = gate.of_persons | further, {**gate.events.columns, **of_unit}
    needed = [name for name in of_persons if name in gate.published or name in further]
    read: list[CanonicalTable] = []
    violations: list[Violation] = []
    for arguments in zip(locations, (of_persons, of_events), names, (needed, [*of_events]), strict=True):
        try:
            read.append(read_canonical(*arguments, only_known))
        except ContractError as broken:
            violations += broken.violations
    if violations:
        raise ContractError(violations)
    persons, events = read
    joining = gate.events.joining(gate.unit)
    frame, owners = joining.join(persons.frame, events.frame, (names[0], names[1]))
    return LinkedTable(frame, (*persons.ledger, *events.ledger), events, gate.unit, owners)
