"""The tables of a gate in canonical form: in memory, or read in batches where they do not fit into it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.comparison import copies_frame, exact_copies, strange_distinct
from disclosure_pipeline.controls import sample
from disclosure_pipeline.elsewhere import Elsewhere, Here, chosen, count_streams
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.evaluation import (
    bins,
    bins_of,
    code_elsewhere,
    count_elsewhere,
    key_overlap,
    overlap_of,
)
from disclosure_pipeline.exclusions import Exclusions
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.release.in_database import (
    DatabaseTable,
    invented,
    opened_in_database,
    read_in_database,
)
from disclosure_pipeline.result import Disclosure
from disclosure_pipeline.tables.alignment import Grouping
from disclosure_pipeline.tables.contract import (
    CanonicalStream,
    CanonicalTable,
    read_canonical,
    stream_canonical,
)
from disclosure_pipeline.tables.locations import redacted
from disclosure_pipeline.tables.sources import Location

Table = CanonicalTable | CanonicalStream | DatabaseTable
"""GT or a synthesis: all tables of a candidate are of one kind."""


def engine_for(gate: Gate, locations: Sequence[Location]) -> tuple[Here | None, str]:
    """The engine for these tables, None for a database, and how it is told."""
    if gate.in_database:
        return None, redacted(gate.engine)
    if gate.engine == "auto" and gate.only_in_memory:
        return "memory", f"memory (needed by {gate.only_in_memory})"
    try:
        return chosen(gate.engine, locations)
    except InputError:  # of a file that cannot be read: whoever reads it says which one, and why
        return "memory", "memory"


def read(gate: Gate, engine: Here | None, location: Location, table: str, *, only_known: bool) -> Table:
    """A table in canonical form. ContractError where it breaks its contract, InputError as `read_raw`."""
    if engine is None:
        return read_in_database(gate, location, table, only_known=only_known)
    read_by = read_canonical if engine == "memory" else stream_canonical
    return read_by(location, gate.columns, table, gate.measured, only_known)


def records(table: Table) -> int:
    """How many records it has."""
    if isinstance(table, DatabaseTable):
        return table.records
    return len(table.frame) if isinstance(table, CanonicalTable) else table.stream.records


def overlap(gate: Gate, tables: Sequence[Table]) -> pd.DataFrame:
    """What the tables (GT first) share of each key and of the whole key: see `evaluation.key_overlap`."""
    frames, grouping = _frames(tables), _of_keys(gate)
    if frames:
        return key_overlap(frames[0], frames[1:], list(gate.keys), **grouping)
    with _elsewhere(gate, tables) as opened:
        counts = count_elsewhere(opened, gate.keys, (), Grouping(**grouping), Exclusions(), keys_only=True)
    return overlap_of(counts)


def groups(gate: Gate, tables: Sequence[Table]) -> pd.DataFrame:
    """The groups of every grouped column and the records in each: see `evaluation.bins`."""
    frames = _frames(tables)
    if frames:
        return bins(frames[0], frames[1:], list(gate.keys), list(gate.targets), **gate.grouping)
    grouping = Grouping(**gate.grouping)
    names = [name for name in gate.measured if grouping.grouped(name)]
    if not names:
        return bins_of([])
    with _elsewhere(gate, tables) as opened:
        columns = code_elsewhere(opened, names, grouping)
    return bins_of([grouping.apply(column) for column in columns])


def measure(gate: Gate, tables: Sequence[Table], told: str) -> Disclosure:
    """All measures as the gate defines them. `told`: the engine."""
    frames = _frames(tables)
    if frames:
        return gate.measure(frames[0], frames[1:], told)
    others = [table for table in tables if not isinstance(table, CanonicalTable)]
    strange = strange_distinct([table.distinct for table in others])
    with _elsewhere(gate, tables, told) as opened:
        return gate.measure_elsewhere(opened, _of_controls(gate, tables), strange)


def _of_controls(gate: Gate, tables: Sequence[Table]) -> list[pd.DataFrame]:
    """The tables of the controls, in canonical form: records of these, but for those of a database."""
    in_database = [table for table in tables if isinstance(table, DatabaseTable)]
    if in_database:
        return invented(in_database)
    streams = [table for table in tables if isinstance(table, CanonicalStream)]
    numbers = [records(table) for table in streams]
    return [
        table.records(np.arange(number) if some is None else some, gate.columns)
        for table, number, some in zip(streams, numbers, sample(numbers), strict=True)
    ]


def copies(gate: Gate, tables: Sequence[Table]) -> pd.DataFrame:
    """The synthetic records that are exact copies of a GT record: see `comparison.exact_copies`."""
    frames = _frames(tables)
    if frames:
        return exact_copies(frames[0], frames[1:])
    with _elsewhere(gate, tables) as opened:
        common = [name for name in opened.columns[0] if all(name in each for each in opened.columns)]
        counts = count_elsewhere(opened, common, (), Grouping({}, {}, "pooled"), Exclusions(), keys_only=True)
    found = [of_keys.shared.SD_in_GT for of_keys in counts.found.keys]
    return copies_frame(len(common), found, counts.records[1:])


def _frames(tables: Sequence[Table]) -> list[pd.DataFrame]:
    """The tables if they are in memory."""
    return [table.frame for table in tables if isinstance(table, CanonicalTable)]


@contextmanager
def _elsewhere(gate: Gate, tables: Sequence[Table], told: str = "") -> Iterator[Elsewhere]:
    """Tables that are not in memory, to be counted in canonical form. `told`: the engine."""
    in_database = [table for table in tables if isinstance(table, DatabaseTable)]
    if in_database:
        with opened_in_database(gate, in_database) as opened:
            yield opened
        return
    yield elsewhere([table for table in tables if isinstance(table, CanonicalStream)], told)


def elsewhere(tables: Sequence[CanonicalStream], told: str = "partitioned") -> Elsewhere:
    """Tables (GT first) that are read in batches, to be counted in canonical form. `told`: the engine."""
    return Elsewhere(
        told,
        tuple(tuple(table.distinct) for table in tables),
        lambda names, _: {name: [table.distinct[name] for table in tables] for name in names},
        lambda *asked: count_streams([table.stream for table in tables], *asked),
    )


def _of_keys(gate: Gate) -> dict[str, Any]:
    """The grouping of the keys alone."""
    grouping = gate.grouping
    of_keys = {name: number for name, number in grouping["groups"].items() if name in gate.keys}
    edges = grouping["edges"]
    if isinstance(edges, Mapping):
        edges = {name: given for name, given in edges.items() if name in gate.keys}
    return grouping | {"groups": of_keys, "edges": edges}
