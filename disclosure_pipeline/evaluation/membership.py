"""Membership: the attackers of `measures.membership` on GT's records and those of a holdout."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.counts import CountRequest, KeyCounts
from disclosure_pipeline.counting.engines import OpenedTables
from disclosure_pipeline.counting.memory.nearest_records import ComparedTable, Comparison, nearest_distances
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.evaluation.counts import MeasuringPlan
from disclosure_pipeline.evaluation.frames import frame_of, names_of, row_of
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.measures.membership import Found, Membership, membership
from disclosure_pipeline.runtime.progress import OnProgress
from disclosure_pipeline.tables.grouping import grouping_of
from disclosure_pipeline.tables.levels import CodedColumn, StoredColumn
from disclosure_pipeline.tables.messages import names_in_all

MOST_PERSONS = 5_000
"""Records of GT, and of the holdout, whose nearest SD record is looked for at most."""

MOST_RECORDS = 200_000
"""Records of SD, at most, that are looked at."""


@dataclass(frozen=True)
class Attacked:
    """GT, its syntheses and last a holdout; how many records a unit has in GT and in the holdout.

    `group`: how a column of keys is grouped, as it is measured. `claim`: ε and δ, as they are claimed.
    """

    opened: OpenedTables
    plan: MeasuringPlan
    group: Callable[[CodedColumn], CodedColumn]
    per_unit: tuple[float, float]
    claim: tuple[float, float] | None

    @property
    def last(self) -> int:
        """The number of the holdout."""
        return len(self.opened.columns) - 1

    @property
    def syntheses(self) -> range:
        """The numbers of the syntheses."""
        return range(1, self.last)


def measure_membership(
    attacked: Attacked, by_keys: Sequence[tuple[KeyCounts, KeyCounts]], on_progress: OnProgress
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the frame `membership`, index synthesis, and that of several syntheses as one table.

    `by_keys`: what was counted of the keys of GT and of the holdout, of each synthesis. Both are empty where
    the columns that all tables have cannot be compared.
    """
    plan, last = attacked.plan, attacked.last
    shared = [name for name in names_in_all(attacked.opened.columns) if name != plan.unit]
    opened = attacked.opened.only(range(last + 1))  # columns that were coded before stay as they are
    try:
        columns = opened.code(shared, grouping_of(), on_progress)
    except InputError:  # which the holdout's warnings say
        return pd.DataFrame(), pd.DataFrame()
    found = []
    for table in (0, last):
        tables = (table, *attacked.syntheses)
        of_tables = [column.only(tables) for column in columns]
        found.append(_count_found(opened.only(tables), of_tables, on_progress))
    drawn = opened.code_records(columns, MOST_RECORDS, 0)
    sizes = tuple(int(columns[0].counts[table].sum()) for table in (0, last))
    persons = _draw_persons(drawn, last)
    rows = {
        (synthesis,): _measure(
            attacked,
            sizes,
            [counts.shared.GT_in_SD for counts in of_keys],
            [of_table[synthesis - 1] for of_table in found],
            _find_distances(drawn, persons, [synthesis]),
        )
        for synthesis, of_keys in enumerate(by_keys, start=1)
    }
    stacked: dict[tuple[int], dict[str, float]] = {}
    if len(by_keys) > 1:
        distances = _find_distances(drawn, persons, attacked.syntheses)
        of_keys, of_records = _count_in_stack(attacked, shared, on_progress)
        stacked[(1,)] = _measure(attacked, sizes, of_keys, of_records, distances)
    return (
        frame_of(rows, ["synthesis"], names_of(Membership)),
        frame_of(stacked, ["synthesis"], names_of(Membership)),
    )


def _measure(
    attacked: Attacked,
    sizes: Sequence[int],
    by_keys: Sequence[int],
    by_records: Sequence[int],
    distances: tuple[IntArray, IntArray],
) -> dict[str, float]:
    """Return the figures of GT and holdout records that are found so."""
    of_keys, of_records = (Found(found[0], sizes[0], found[1], sizes[1]) for found in (by_keys, by_records))
    return row_of(membership(of_keys, of_records, *distances, attacked.per_unit, attacked.claim))


def _count_in_stack(
    attacked: Attacked, shared: Sequence[Any], on_progress: OnProgress
) -> tuple[list[int], list[int]]:
    """Return how many records of GT and of the holdout any synthesis has, by the keys and by all columns."""
    by_keys, by_records = [], []
    for table in (0, attacked.last):
        pair = attacked.opened.only((table, *attacked.syntheses)).stacked()
        keys = pair.code(attacked.plan.keys, attacked.plan.grouping, on_progress)
        by_keys += _count_found(pair, [attacked.group(key) for key in keys], on_progress)
        by_records += _count_found(pair, pair.code(shared, grouping_of(), on_progress), on_progress)
    return by_keys, by_records


def _count_found(opened: OpenedTables, columns: Sequence[CodedColumn], on_progress: OnProgress) -> list[int]:
    """Return how many records of the first table are in each of the others, by these columns."""
    [counted] = opened.count([CountRequest(columns)], on_progress)
    return [counts.shared.GT_in_SD for counts in counted.keys]


def _draw_persons(columns: Sequence[CodedColumn], last: int) -> dict[int, IntArray]:
    """Return the places of records of GT and of the holdout."""
    rng = np.random.default_rng(0)
    persons = {}
    for table in (0, last):
        # Engines have their own order of records, and nothing that is drawn may depend on it.
        order = np.lexsort([column.codes[table] for column in columns])
        drawn = order if len(order) <= MOST_PERSONS else rng.choice(order, MOST_PERSONS, replace=False)
        persons[table] = drawn
    return persons


def _find_distances(
    columns: Sequence[CodedColumn], persons: Mapping[int, IntArray], syntheses: Sequence[int]
) -> tuple[IntArray, IntArray]:
    """Return how far GT and holdout records are from the nearest one of the syntheses, by the same ranks."""
    everybody = dict.fromkeys(syntheses, slice(None))
    both = [replace(column, tables=(_join(column, persons), _join(column, everybody))) for column in columns]
    members, others = map(len, persons.values())
    number = members + others
    records = ComparedTable(1, np.ones(len(both[0].codes[1]), dtype=bool))
    comparison = Comparison(np.arange(number), (records,), (np.full(number, -1),))
    [distances] = nearest_distances(both, comparison)
    return distances[0, :members], distances[0, members:]


def _join(column: CodedColumn, records: Mapping[int, Any]) -> StoredColumn:
    """Return the column of these records of some tables, one table after the other."""
    codes = np.concatenate([column.codes[table][of_table] for table, of_table in records.items()])
    codes = codes.astype(np.int64)
    return StoredColumn(codes, 0, np.arange(column.size), np.bincount(codes, minlength=column.size))
