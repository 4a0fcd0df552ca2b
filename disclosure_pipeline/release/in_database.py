"""The tables of a gate where a database counts them: their values come here, their records stay there."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.controls import LARGEST_GROUND_TRUTH
from disclosure_pipeline.elsewhere import Elsewhere, relational_tables
from disclosure_pipeline.policy.gate import Gate
from disclosure_pipeline.tables.contract import Change, canonical_values
from disclosure_pipeline.tables.distinct import Distinct
from disclosure_pipeline.tables.levels import level_label
from disclosure_pipeline.tables.locations import filled
from disclosure_pipeline.tables.sources import FileSource, Location, read_raw


@dataclass(frozen=True)
class DatabaseTable:
    """A table of `records` that a database reads at `location`; the values of its described columns.

    `raw` are those that the database has, `distinct` their canonical form, each in its place.
    """

    location: Any
    records: int
    raw: Mapping[str, Distinct]
    distinct: Mapping[str, Distinct]
    ledger: tuple[Change, ...]


def read_in_database(gate: Gate, location: Location, table: str, *, only_known: bool) -> DatabaseTable:
    """Ask for the values of a table. ContractError where it breaks its contract, InputError as `read_raw`."""
    location = _readable(location, table)
    with relational_tables([location], filled(gate.engine, "engine"), [table]) as opened:
        [columns] = opened.columns
        described = [name for name in gate.columns if name in columns]
        found = opened.distinct(described or columns[:1], lambda *_: None)
    values = {name: of_table for name, [of_table] in found.items()}
    records = next(iter(values.values())).records
    raw = {name: values[name] for name in described}
    distinct, ledger = canonical_values(columns, records, raw, gate.columns, table, gate.measured, only_known)
    return DatabaseTable(location, records, raw, distinct, ledger)


def _readable(location: Location, table: str) -> Any:
    """The location as a database takes it: a file that is not Parquet is read, and brought there."""
    if isinstance(location, FileSource):
        location = filled(location.path, table)
    if isinstance(location, (str, Path)) and not str(location).endswith(".parquet"):
        return read_raw(location, table)
    return Path(location) if isinstance(location, str) else location


@contextmanager
def opened_in_database(gate: Gate, tables: Sequence[DatabaseTable]) -> Iterator[Elsewhere]:
    """The tables (GT first), to be counted in canonical form."""
    with relational_tables([table.location for table in tables], filled(gate.engine, "engine")) as raw:
        names = [name for name in tables[0].raw if all(name in table.raw for table in tables)]
        known = {name: [table.raw[name] for table in tables] for name in names}
        canonical = {name: [table.distinct[name] for table in tables] for name in names}
        yield Elsewhere(
            raw.told,
            tuple(tuple(table.distinct) for table in tables),
            lambda wanted, _: {name: canonical[name] for name in wanted},
            lambda keys, targets, progress: raw.count_known(known, keys, targets, progress),
        )


def values_sha256(table: DatabaseTable) -> str:
    """Of the canonical values of every column, and of the records with each.

    It tells that a column changed, not that records changed within equal columns: what was measured is
    measured again before a release.
    """
    digest = hashlib.sha256()
    for name in sorted(table.distinct):
        column = table.distinct[name]
        counted: dict[str, int] = {}
        for value, records in zip([*column.values, None], column.counts.tolist(), strict=True):
            label = "-" if value is None or pd.isna(value) else f"={level_label(value)}"
            counted[label] = counted.get(label, 0) + records
        digest.update(repr((name, sorted(counted.items()))).encode())
    return digest.hexdigest()


def invented(tables: Sequence[DatabaseTable], seed: int = 0) -> list[pd.DataFrame]:
    """Tables for the controls, as no record leaves the database: each column drawn by itself from its values.

    As many records as the tables have, but at most 100,000.
    """
    frames = []
    for number, table in enumerate(tables):
        rng = np.random.default_rng([seed, number])
        records = min(table.records, LARGEST_GROUND_TRUTH)
        frames.append(
            pd.DataFrame(
                {name: _drawn(column, records, rng) for name, column in table.distinct.items()}, copy=False
            )
        )
    return frames


def _drawn(column: Distinct, records: int, rng: np.random.Generator) -> Any:
    place = rng.choice(len(column.counts), records, p=column.counts / column.counts.sum())
    values = pd.concat([column.values, pd.Series([None], dtype=column.values.dtype)], ignore_index=True)
    return values.array.take(place)
