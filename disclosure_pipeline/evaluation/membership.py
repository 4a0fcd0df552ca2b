"""Who took part: the attackers of `measures.membership` on GT's records and those of a holdout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.counts import CountRequest, KeyCounts
from disclosure_pipeline.counting.engines import OpenedTables
from disclosure_pipeline.counting.memory.nearest_records import (
    ComparedTable,
    Comparison,
    nearest_distances,
)
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.evaluation.counts import MeasuringPlan
from disclosure_pipeline.evaluation.frames import frame_of, names_of, row_of
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.measures.membership import Found, Membership, membership
from disclosure_pipeline.runtime.progress import OnProgress
from disclosure_pipeline.tables.grouping import grouping_of
from disclosure_pipeline.tables.levels import CodedColumn, StoredColumn
from disclosure_pipeline.tables.messages import names_in_all

MOST_PERSONS = 10_000
"""Records of GT, and of the holdout, whose nearest SD record is looked for at most."""

MOST_RECORDS = 400_000
"""Records of SD, at most, that are looked at."""


def measure_membership(
    opened: OpenedTables,
    plan: MeasuringPlan,
    by_keys: Sequence[tuple[KeyCounts, KeyCounts]],
    per_unit: tuple[float, float],
    claim: tuple[float, float] | None,
    on_progress: OnProgress,
) -> pd.DataFrame:
    """Return the frame `membership`, index synthesis.

    `opened`: the holdout last. `by_keys`: what was counted of the keys of GT and of the holdout, of each
    synthesis; `per_unit`: how many records a unit has in both. Empty where the columns that all tables have
    cannot be compared.
    """
    last = len(opened.columns) - 1
    shared = [name for name in names_in_all(opened.columns) if name != plan.unit]
    opened = opened.only(range(last + 1))  # columns that were coded before stay as they are
    try:
        columns = opened.code(shared, grouping_of(), on_progress)
    except InputError:  # which the holdout's warnings say
        return pd.DataFrame()
    by_records = [_count_found(opened, columns, table, on_progress) for table in (0, last)]
    drawn = opened.code_records(columns, MOST_RECORDS, 0)
    sizes = [int(columns[0].counts[table].sum()) for table in (0, last)]
    rows = {}
    for synthesis, of_keys in enumerate(by_keys, start=1):
        keys = [counts.shared.GT_in_SD for counts in of_keys]
        records = [found[synthesis - 1] for found in by_records]
        distances = _find_distances(drawn, synthesis, last)
        rows[(synthesis,)] = row_of(
            membership(
                Found(keys[0], sizes[0], keys[1], sizes[1]),
                Found(records[0], sizes[0], records[1], sizes[1]),
                *distances,
                per_unit,
                claim,
            )
        )
    return frame_of(rows, ["synthesis"], names_of(Membership))


def _count_found(
    opened: OpenedTables, columns: Sequence[CodedColumn], table: int, on_progress: OnProgress
) -> list[int]:
    """Return how many records of a table are in each synthesis, by all columns."""
    tables = (table, *range(1, len(opened.columns) - 1))
    request = CountRequest([column.only(tables) for column in columns])
    [counted] = opened.only(tables).count([request], on_progress)
    return [counts.shared.GT_in_SD for counts in counted.keys]


def _find_distances(columns: Sequence[CodedColumn], synthesis: int, last: int) -> tuple[IntArray, IntArray]:
    """Return how far GT and holdout records are from the nearest SD record: all by the same ranks."""
    rng = np.random.default_rng(0)
    persons = []
    for table in (0, last):
        # Engines have their own order of records, and nothing that is drawn may depend on it.
        order = np.lexsort([column.codes[table] for column in columns])
        persons.append(
            order if len(order) <= MOST_PERSONS else rng.choice(order, MOST_PERSONS, replace=False)
        )
    both = [_join(column, persons, synthesis, last) for column in columns]
    number = len(persons[0]) + len(persons[1])
    records = ComparedTable(1, np.ones(len(columns[0].codes[synthesis]), dtype=bool))
    comparison = Comparison(np.arange(number), (records,), (np.full(number, -1),))
    [distances] = nearest_distances(both, comparison)
    return distances[0, : len(persons[0])], distances[0, len(persons[0]) :]


def _join(column: CodedColumn, persons: Sequence[IntArray], synthesis: int, last: int) -> CodedColumn:
    """Return the column of persons of GT and the holdout, one after the other, and of a synthesis."""
    codes = np.concatenate([column.codes[table][of] for table, of in zip((0, last), persons, strict=True)])
    codes = codes.astype(np.int64)
    counts = np.bincount(codes, minlength=column.size)
    stored = StoredColumn(codes, 0, np.arange(column.size), counts)
    return replace(column, tables=(stored, column.tables[synthesis]))
