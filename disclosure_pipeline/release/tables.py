"""The tables of a gate in canonical form: in memory, or read in batches where they do not fit into it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.comparison import copies_frame, exact_copies
from disclosure_pipeline.controls import sample
from disclosure_pipeline.elsewhere import Elsewhere, Here, chosen, count_streams
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
from disclosure_pipeline.result import Disclosure
from disclosure_pipeline.tables.alignment import Grouping
from disclosure_pipeline.tables.contract import (
    CanonicalStream,
    CanonicalTable,
    read_canonical,
    stream_canonical,
)
from disclosure_pipeline.tables.sources import Location

Table = CanonicalTable | CanonicalStream
"""GT or a synthesis: all tables of a candidate are of one of both."""


def engine_for(gate: Gate, locations: Sequence[Location]) -> tuple[Here, str]:
    """The engine for these tables, and how it is told."""
    if gate.engine == "auto" and gate.only_in_memory:
        return "memory", f"memory (needed by {gate.only_in_memory})"
    return chosen(gate.engine, locations)


def read(gate: Gate, engine: Here, location: Location, table: str, *, only_known: bool) -> Table:
    """A table in canonical form. ContractError where it breaks its contract, InputError as `read_raw`."""
    read_by = read_canonical if engine == "memory" else stream_canonical
    return read_by(location, gate.columns, table, gate.measured, only_known)


def records(table: Table) -> int:
    """How many records it has."""
    return len(table.frame) if isinstance(table, CanonicalTable) else table.stream.records


def overlap(gate: Gate, tables: Sequence[Table]) -> pd.DataFrame:
    """What the tables (GT first) share of each key and of the whole key: see `evaluation.key_overlap`."""
    frames, streams = _parted(tables)
    grouping = _of_keys(gate)
    if frames:
        return key_overlap(frames[0], frames[1:], list(gate.keys), **grouping)
    counts = count_elsewhere(
        _elsewhere(streams), gate.keys, (), Grouping(**grouping), Exclusions(), keys_only=True
    )
    return overlap_of(counts)


def groups(gate: Gate, tables: Sequence[Table]) -> pd.DataFrame:
    """The groups of every grouped column and the records in each: see `evaluation.bins`."""
    frames, streams = _parted(tables)
    if frames:
        return bins(frames[0], frames[1:], list(gate.keys), list(gate.targets), **gate.grouping)
    grouping = Grouping(**gate.grouping)
    names = [name for name in gate.measured if grouping.grouped(name)]
    if not names:
        return bins_of([])
    columns = code_elsewhere(_elsewhere(streams), names, grouping)
    return bins_of([grouping.apply(column) for column in columns])


def measure(gate: Gate, tables: Sequence[Table], told: str) -> Disclosure:
    """All measures as the gate defines them. `told`: the engine."""
    frames, streams = _parted(tables)
    if frames:
        return gate.measure(frames[0], frames[1:], told)
    numbers = [records(table) for table in streams]
    samples = [
        table.records(np.arange(number) if some is None else some, gate.columns)
        for table, number, some in zip(streams, numbers, sample(numbers), strict=True)
    ]
    return gate.measure_elsewhere(_elsewhere(streams, told), samples)


def copies(tables: Sequence[Table]) -> pd.DataFrame:
    """The synthetic records that are exact copies of a GT record: see `comparison.exact_copies`."""
    frames, streams = _parted(tables)
    if frames:
        return exact_copies(frames[0], frames[1:])
    common = [name for name in streams[0].distinct if all(name in table.distinct for table in streams)]
    counts = count_elsewhere(
        _elsewhere(streams), common, (), Grouping({}, {}, "pooled"), Exclusions(), keys_only=True
    )
    found = [of_keys.shared.SD_in_GT for of_keys in counts.found.keys]
    return copies_frame(len(common), found, counts.records[1:])


def _parted(tables: Sequence[Table]) -> tuple[list[pd.DataFrame], list[CanonicalStream]]:
    """The frames if the tables are in memory, else the streams."""
    frames = [table.frame for table in tables if isinstance(table, CanonicalTable)]
    streams = [table for table in tables if isinstance(table, CanonicalStream)]
    assert not (frames and streams)
    return frames, streams


def _elsewhere(tables: Sequence[CanonicalStream], told: str = "partitioned") -> Elsewhere:
    return Elsewhere(
        told,
        tuple(tuple(table.distinct) for table in tables),
        lambda names, _: {name: [table.distinct[name] for table in tables] for name in names},
        lambda *asked: count_streams([table.stream for table in tables], *asked),
        lambda _: None,
    )


def _of_keys(gate: Gate) -> dict[str, Any]:
    """The grouping of the keys alone."""
    grouping = gate.grouping
    of_keys = {name: number for name, number in grouping["groups"].items() if name in gate.keys}
    edges = grouping["edges"]
    if isinstance(edges, Mapping):
        edges = {name: given for name, given in edges.items() if name in gate.keys}
    return grouping | {"groups": of_keys, "edges": edges}
