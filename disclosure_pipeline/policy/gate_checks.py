"""Checks that the parts of a gate's definition fit together, before anything is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from disclosure_pipeline.counting.opening import find_engine
from disclosure_pipeline.evaluation.arguments import check_exclusions
from disclosure_pipeline.policy.registry import JUDGED
from disclosure_pipeline.tables.canonical_tables import PREFIX
from disclosure_pipeline.tables.dictionary import NUMERIC
from disclosure_pipeline.tables.files import redact_location, refuse_password
from disclosure_pipeline.tables.grouping import explicit_edges
from disclosure_pipeline.tables.sources import DuckDBSource, FileSource, Source, SqlSource

if TYPE_CHECKING:
    from disclosure_pipeline.policy.gate import Gate

_NAME = re.compile(r"[a-z][a-z0-9_]{0,49}")


def check_definition(gate: Gate) -> None:
    """Raise ValueError where columns, exclusions, engine or tables contradict each other."""
    _check_columns(gate)
    _check_population(gate)
    _check_edges(gate)
    _check_bands(gate)
    check_exclusions(gate.exclusions.as_exclusions(), gate.keys, gate.targets)
    if gate.synthetic_asset and gate.synthesis_asset is not None:
        raise ValueError(
            "synthesis_asset hands over tables, synthetic_asset names a folder with them: give one of the two"
        )
    _check_engine(gate)
    _check_confidential(gate)


def _check_columns(gate: Gate) -> None:
    for role, names in (("keys", gate.keys), ("targets", gate.targets)):
        unknown = [name for name in names if name not in gate.columns]
        if unknown:
            raise ValueError(f"{role} names {', '.join(unknown)}, which columns does not describe")
        if len(set(names)) < len(names):
            raise ValueError(f"{role} names a column more than once")
    in_both = [name for name in gate.keys if name in gate.targets]
    if in_both:
        raise ValueError(f"{', '.join(in_both)} cannot be a key and a target at once")
    if gate.unit in gate.columns:
        raise ValueError(
            f"unit names {gate.unit}, which columns describes, too: take it out there, for it is compared as "
            "text, and never published"
        )
    identifiers = [name for name in gate.measured if gate.columns[name].type == "text identifier"]
    if identifiers:
        raise ValueError(f"{', '.join(identifiers)} is a text identifier: it can be no key and no target")


def check_events(gate: Gate) -> None:
    """Raise ValueError where a second table does not fit to the first one."""
    if gate.events is None:
        return
    if gate.unit is None:
        raise ValueError("events needs unit: the column of both tables that says whose a record is")
    if gate.unit in gate.events.columns:
        raise ValueError(f"unit names {gate.unit}, which events.columns describes, too: take it out there")
    if gate.confidential:
        raise ValueError("confidential names further tables, and these have no events: give one of the two")
    derived = gate.events.derived
    taken = [
        name
        for name, column in gate.columns.items()
        if name.startswith(PREFIX) and derived.get(name) != column
    ]
    if taken:
        raise ValueError(f"columns describes {', '.join(taken)}: such names are those of what events make")


def _check_edges(gate: Gate) -> None:
    if not isinstance(gate.edges, Mapping):
        return
    grouped = [name for name in gate.edges if name in gate.groups]
    if grouped:
        raise ValueError(f"{', '.join(grouped)} has both groups and explicit edges: give one of them")
    unknown = [name for name in gate.edges if name not in gate.keys and name not in gate.targets]
    if unknown:
        raise ValueError(f"edges names {', '.join(unknown)}, which is neither a key nor a target")
    for name, edges in gate.edges.items():
        if gate.columns[name].type not in NUMERIC:
            raise ValueError(f"edges are for numbers: {name} is of type {gate.columns[name].type}")
        explicit_edges(name, edges)


def _check_bands(gate: Gate) -> None:
    for name, column in gate.columns.items():
        if column.within is None:
            continue
        if name not in gate.targets:
            raise ValueError(f"column {name} has within, which is for targets")
        if gate.grouping.grouped(name):
            raise ValueError(f"column {name} has within, and groups or edges: a band needs none, give one")
        if gate.unit is not None:
            raise ValueError(
                f"column {name} has within, which cannot be combined with unit: group it instead"
            )


def _check_engine(gate: Gate) -> None:
    if gate.in_database:
        refuse_password(gate.engine)
        _check_database(gate.engine, gate.ground_truth, "ground_truth")
        for name, source in gate.confidential.items():
            _check_database(gate.engine, source, f"confidential.{name}")
    if gate.engine != "auto" and gate.only_in_memory and not find_engine(gate.engine).holds_frames:
        shown = redact_location(gate.engine)
        raise ValueError(f"engine {shown} cannot do {gate.only_in_memory}: use memory or auto")


def _check_confidential(gate: Gate) -> None:
    for name in gate.confidential:
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"confidential names a table {name!r}: expected are lower-case letters, digits and _, from a "
                "letter on"
            )
        if name in gate.columns:
            raise ValueError(f"confidential names a table {name!r}, as a column is: give it another name")
    if gate.holdout is not None and gate.holdout not in gate.confidential:
        raise ValueError(
            f"holdout names {gate.holdout!r}, which is none of the confidential tables: list it there, "
            "so that no candidate holds copies of its records"
        )


def _check_database(engine: str, source: str | Source, name: str) -> None:
    # A confidential table is never copied.
    kind, _, location = engine.partition("?")[0].partition("://")
    if isinstance(source, (SqlSource, DuckDBSource)):
        if source.table is None:
            raise ValueError(f"engine counts a table, not a query: make a view of {name} and name that")
        of_source = source.url.partition("://")[2] if isinstance(source, SqlSource) else f"/{source.duckdb}"
        if of_source != location:
            raise ValueError(f"engine must be the database that {name} is in: the same after ://")
        return
    path = source.path if isinstance(source, FileSource) else source
    if kind not in {"duckdb", "pyspark"} or not path.endswith(".parquet"):
        raise ValueError(
            f"engine cannot read {name} in place: give a table of that database, or Parquet to "
            "DuckDB or Spark"
        )


def _check_population(gate: Gate) -> None:
    name = gate.weight
    if name is not None and gate.sampling_fraction is not None:
        raise ValueError("weight and sampling_fraction are both given: weight says all that is needed")
    if name is not None and name in (*gate.keys, *gate.targets, gate.unit):
        raise ValueError(f"weight names {name}, which is a key, a target or the unit, too")
    if name is not None and name in gate.columns and gate.columns[name].type not in NUMERIC:
        raise ValueError(
            f"weight names {name}, which is of type {gate.columns[name].type}: it must be a number"
        )
    if name is None and gate.people == "weighted":
        raise ValueError(
            "people: weighted needs weight: which column says how many people a record stands for"
        )
    for measure in gate.policy.bounds:
        entry = JUDGED.get(measure)
        if entry is not None and entry.family == "membership" and gate.holdout is None:
            raise ValueError(f"policy bounds {measure}, which is measured with a holdout alone: give it")
        if entry is None or entry.family != "population":
            continue
        if name is None and (gate.sampling_fraction is None or measure.endswith("_weighted")):
            needed = "weight" if measure.endswith("_weighted") else "weight or sampling_fraction"
            raise ValueError(f"policy bounds {measure}, which is measured with {needed} alone: give it")
