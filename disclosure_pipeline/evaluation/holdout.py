"""A holdout: what SD discloses about people whose records were not used to make it, compared with GT's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.cells import count_tables
from disclosure_pipeline.counting.counts import (
    CountRequest,
    KeyCounts,
    Target,
    TargetCounts,
)
from disclosure_pipeline.counting.memory.nearest_records import ComparedTable, Comparison, nearest_distances
from disclosure_pipeline.counting.opening import OpenedTables
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.evaluation.arguments import code_exclusions
from disclosure_pipeline.evaluation.counts import Counts, MeasuringPlan
from disclosure_pipeline.evaluation.frames import build_frame, list_figures, to_row
from disclosure_pipeline.evaluation.resemblance import WHOLE_KEY, compare_column, find_missing_value_doubts
from disclosure_pipeline.evaluation.result import Disclosure
from disclosure_pipeline.measures import certainty
from disclosure_pipeline.measures.catalogue import OF_TARGETS
from disclosure_pipeline.measures.exact import IntArray, percent
from disclosure_pipeline.measures.holdout import (
    Membership,
    MembershipClaims,
    compare_with_holdout,
    membership,
    shared_records,
)
from disclosure_pipeline.measures.identity import uniqueness_of_draw
from disclosure_pipeline.measures.resemblance import LEAST_SHARED
from disclosure_pipeline.runtime.progress import OnProgress
from disclosure_pipeline.tables.grouping import grouping_of
from disclosure_pipeline.tables.levels import CodedColumn
from disclosure_pipeline.tables.messages import GROUND_TRUTH, HOLDOUT, names_in_all, suggest_names


@dataclass(frozen=True)
class PreparedHoldout:
    """The measured columns of GT, all syntheses and the holdout (the last table), coded over all levels.

    `columns` are not grouped yet. `shared`: warnings of records or people that the holdout shares with GT.
    `claim`: the ε and δ that are claimed for the syntheses.
    """

    opened: OpenedTables
    plan: MeasuringPlan
    columns: Mapping[Any, CodedColumn]
    shared: tuple[str, ...] = ()
    claim: tuple[float, float] | None = None

    @property
    def table(self) -> int:
        """The table number of the holdout."""
        return len(self.opened.columns) - 1

    @property
    def syntheses(self) -> range:
        """The table numbers of the syntheses."""
        return range(1, self.table)

    @property
    def records(self) -> int:
        """The number of records of the holdout."""
        return int(next(iter(self.columns.values())).counts[self.table].sum())

    @cached_property
    def grouped(self) -> dict[Any, CodedColumn]:
        """The columns, grouped by the edges that they have without the holdout."""
        return {name: _group_as_measured(self, column) for name, column in self.columns.items()}

    def build_request(self) -> CountRequest:
        """Return the request for the counts of the holdout beside the syntheses, in the place of GT."""
        plan, tables = self.plan, (self.table, *self.syntheses)
        keys, targets = ([self.grouped[name] for name in names] for names in (plan.keys, plan.targets))
        return CountRequest(
            [key.only(tables) for key in keys],
            [
                Target(
                    target.only(tables),
                    code_exclusions(plan.exclusions, target, keys),
                    plan.two_way[0],
                    plan.certainties,
                )
                for target in targets
            ],
        )


def prepare_holdout(
    opened: OpenedTables,
    plan: MeasuringPlan,
    on_progress: OnProgress,
    claim: tuple[float, float] | None = None,
) -> PreparedHoldout:
    """Code the planned columns. InputError if the holdout lacks one, or its values cannot be compared."""
    holdout_columns = opened.columns[-1]
    for name in plan.columns:
        if name not in holdout_columns:
            raise InputError(f"Column {name!r} is not in {HOLDOUT}. {suggest_names(name, holdout_columns)}")
    columns = opened.code(plan.columns, plan.grouping, on_progress)
    prepared = PreparedHoldout(opened, plan, {column.name: column for column in columns}, claim=claim)
    shared = [*_find_shared_records(prepared, on_progress), *_find_shared_units(prepared, on_progress)]
    return replace(prepared, shared=tuple(shared))


def add_holdout(
    result: Disclosure, prepared: PreparedHoldout, counts: Counts, on_progress: OnProgress
) -> Disclosure:
    """Return the result with the holdout's figures beside GT's, and with doubts about them."""
    doubts = find_holdout_doubts(prepared)
    per_unit = count_records_per_unit(prepared, on_progress)
    frame, holdout_keys = _measure_holdout(prepared, counts, per_unit, on_progress)
    by_keys = list(zip(counts.counts.keys, holdout_keys, strict=True))
    membership, stacked_membership = _measure_membership(prepared, per_unit, by_keys, on_progress)
    return replace(
        result,
        holdout=frame,
        membership=membership,
        stacked=result.stacked and replace(result.stacked, membership=stacked_membership),
        N_holdout=prepared.records,
        warnings=(*result.warnings, *doubts, *prepared.shared),
        comparability_doubts=(*result.comparability_doubts, *doubts),
    )


def _measure_holdout(
    prepared: PreparedHoldout, counts: Counts, per_unit: tuple[float, float], on_progress: OnProgress
) -> tuple[pd.DataFrame, Sequence[KeyCounts]]:
    """Return the frame `holdout`, from the counts of GT and of the holdout, and the holdout's key counts."""
    last = prepared.table
    request = prepared.build_request()
    held = prepared.opened.only((last, *prepared.syntheses))
    [holdout_counts] = count_tables(held, [request], on_progress)
    N_d, *N_s = counts.records
    records = prepared.records
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for j, (keys_GT, keys_holdout) in enumerate(zip(counts.counts.keys, holdout_counts.keys, strict=True)):
        rows |= _compare_keys(j + 1, keys_GT, keys_holdout, (N_d, records, N_s[j]), per_unit)
    for i, target in enumerate(request.targets):
        for j in range(len(N_s)):
            figures = [
                _measure_target(counts.counts.targets[i][j], counts.measured[i], j + 1),
                _measure_target(holdout_counts.targets[i][j], target, j + 1),
            ]
            for measure, figure in figures[0].items():
                row = compare_with_holdout(
                    figure, N_d / per_unit[0], figures[1][measure], records / per_unit[1]
                )
                rows[(target.column.name, j + 1, measure)] = to_row(row)
    return build_frame(rows, ["target", "synthesis", "measure"]), holdout_counts.keys


def count_records_per_unit(prepared: PreparedHoldout, on_progress: OnProgress) -> tuple[float, float]:
    """Return the mean records per unit in GT and in the holdout; 1 where units are unknown."""
    numbers = [1.0, 1.0]
    for place, table in enumerate((0, prepared.table)):
        for unit in {*prepared.plan.unit_columns}.intersection(prepared.opened.columns[table]):
            [column] = prepared.opened.only([table]).code([unit], grouping_of(), on_progress)
            records = column.counts[0]
            units = int((records[: column.missing] > 0).sum()) + int(records[column.missing])
            numbers[place] = int(records.sum()) / max(units, 1)
    return numbers[0], numbers[1]


def find_holdout_doubts(prepared: PreparedHoldout) -> list[str]:
    """Return signs that the holdout is not coded like GT, so that its figures read too low."""
    columns = [column.only((0, prepared.table)) for column in prepared.columns.values()]
    names = (GROUND_TRUTH, HOLDOUT)
    # A holdout is often small and lacks values of GT: the least share of targets, for keys, too.
    least = LEAST_SHARED.target
    grouping = prepared.plan.grouping
    doubts = [
        doubt
        for column in columns
        for doubt in compare_column(column, names, least, grouping.band_of(column))[1]
    ]
    return doubts + find_missing_value_doubts(columns, names)


def _find_shared_records(prepared: PreparedHoldout, on_progress: OnProgress) -> list[str]:
    """Return a warning if the holdout shares more whole records with GT than a fresh sample would."""
    both = prepared.opened.only((0, prepared.table))
    shared = [name for name in names_in_all(both.columns) if name not in prepared.plan.unit_columns]
    try:
        columns = both.code(shared, grouping_of(), on_progress)
    except InputError as error:
        problem = str(error)
    else:
        [counted] = count_tables(both, [CountRequest(columns)], on_progress)
        N_d, records = (int(level_counts.sum()) for level_counts in columns[0].counts)
        return _describe_shared(counted.keys[0], records, N_d)
    return [f"It could not be checked whether {HOLDOUT} shares records with {GROUND_TRUTH}: {problem}"]


def _find_shared_units(prepared: PreparedHoldout, on_progress: OnProgress) -> list[str]:
    both, doubts = prepared.opened.only((0, prepared.table)), list[str]()
    for unit in {*prepared.plan.unit_columns}.intersection(*both.columns):
        [column] = both.code([unit], grouping_of(), on_progress)
        in_GT, in_holdout = (counts[: column.missing] for counts in column.counts)
        if shared := percent(int(in_holdout[in_GT > 0].sum()), prepared.records):
            doubts.append(
                f"The holdout shares people with the ground truth: {shared:.2f} % of its records are of "
                "units that have records there. A holdout must not contain people whose records were used "
                "to make the synthetic table: remove them from it."
            )
    return doubts


def _describe_shared(counts: KeyCounts, records: int, N_d: int) -> list[str]:
    hits = counts.unique_hits
    shared = shared_records(
        counts.shared.SD_in_GT, hits.hits, records, N_d - counts.count("UiO"), hits.pairs, N_d
    )
    if not shared.beyond:
        return []
    return [
        f"The holdout shares records with the ground truth: {shared.copies:.2f} % of its records equal a GT "
        f"record ({shared.copies_others:.2f} % in a fresh sample), "
        f"{shared.unique_copies:.2f} % equal one that is unique in GT "
        f"({shared.unique_copies_others:.2f} %). A holdout must not contain records that were used to make "
        "the synthetic table: remove them from it."
    ]


def _group_as_measured(prepared: PreparedHoldout, column: CodedColumn) -> CodedColumn:
    """Return a column grouped by the edges that it has without the holdout."""
    grouping = prepared.plan.grouping
    if not grouping.groups_column(column.name):
        return column
    edges = grouping.find_edges(prepared.columns[column.name].only(range(prepared.table)))
    return grouping.group_by(column, edges)


def _compare_keys(
    synthesis: int,
    keys_GT: KeyCounts,
    keys_holdout: KeyCounts,
    sizes: tuple[int, int, int],
    per_unit: tuple[float, float],
) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Compare repU and unique_hits, at the smaller of the sizes of GT and the holdout."""
    N_d, records, N_s = sizes
    n = min(N_d, records)
    repU_GT, hits_GT = uniqueness_of_draw(keys_GT.matched, N_d, n, N_s)
    repU, hits = uniqueness_of_draw(keys_holdout.matched, records, n, N_s)
    units = (N_d / per_unit[0], records / per_unit[1])
    units_SD = N_s / max(per_unit)  # SD has no units: assume as many records per unit as elsewhere
    return {
        (WHOLE_KEY, synthesis, "repU"): to_row(compare_with_holdout(repU_GT, units[0], repU, units[1])),
        (WHOLE_KEY, synthesis, "unique_hits"): to_row(
            compare_with_holdout(hits_GT, units_SD, hits, units_SD)
        ),
    }


def _measure_target(counts: TargetCounts, target: Target, synthesis: int) -> dict[str, float]:
    values, _ = counts.measure(OF_TARGETS, counts.added, target, synthesis)
    figures = {name: values[name] for name in ("iS", "DiSCO", "DCAP", "guessed")}
    for c, sums in zip(target.certainties, counts.certain, strict=True):
        at_c = certainty.figures_at(c)
        values, _ = counts.measure(at_c, sums[: len(at_c)], target, synthesis)
        figures |= {f"{name} at {float(c)}": value for name, value in values.items()}
    return figures


MOST_PERSONS = 10_000
"""The most records of GT, and of the holdout, for which the nearest SD record is searched."""

MOST_RECORDS = 200_000
"""The most records of each table among which they are drawn and the nearest are searched."""


def _measure_membership(
    prepared: PreparedHoldout,
    per_unit: tuple[float, float],
    by_keys: Sequence[tuple[KeyCounts, KeyCounts]],
    on_progress: OnProgress,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the frame `membership`, and the same for several syntheses stacked as one table.

    `by_keys`: for each synthesis, the key counts of GT and of the holdout. Both frames are empty if the
    columns that all tables have cannot be compared.
    """
    last = prepared.table
    shared = names_in_all(prepared.opened.columns)
    opened = prepared.opened.only(range(last + 1))  # keeps the columns that are already coded
    try:
        columns = opened.code(shared, grouping_of(), on_progress)
    except InputError:  # reported in the holdout's warnings
        return pd.DataFrame(), pd.DataFrame()
    found = []
    for table in (0, last):
        tables = (table, *prepared.syntheses)
        columns_of_tables = [column.only(tables) for column in columns]
        found.append(_count_found(opened.only(tables), columns_of_tables, on_progress))
    drawn = opened.code_records(columns, MOST_RECORDS, 0)
    sizes = tuple(int(columns[0].counts[table].sum()) for table in (0, last))
    persons = _draw_persons(drawn, last)

    def attack(by_keys: Sequence[int], by_records: Sequence[int], syntheses: Sequence[int]) -> dict[str, Any]:
        keys, records = (
            MembershipClaims(pair[0], sizes[0], pair[1], sizes[1]) for pair in (by_keys, by_records)
        )
        distances = _find_distances(drawn, persons, syntheses)
        return to_row(membership(keys, records, *distances, per_unit, prepared.claim))

    rows = {
        (synthesis,): attack(
            [counts.shared.GT_in_SD for counts in key_counts],
            [numbers[synthesis - 1] for numbers in found],
            [synthesis],
        )
        for synthesis, key_counts in enumerate(by_keys, start=1)
    }
    stacked = {}
    if len(by_keys) > 1:
        stacked[(1,)] = attack(*_count_in_stack(prepared, shared, on_progress), prepared.syntheses)
    return (
        build_frame(rows, ["synthesis"]),
        build_frame(stacked, ["synthesis"], list_figures(Membership)),
    )


def _count_in_stack(
    prepared: PreparedHoldout, shared: Sequence[Any], on_progress: OnProgress
) -> tuple[list[int], list[int]]:
    """Count the records of GT and of the holdout that any synthesis has, by the keys and by all columns."""
    by_keys, by_records = [], []
    for table in (0, prepared.table):
        pair = prepared.opened.only((table, *prepared.syntheses)).stack_syntheses()
        keys = pair.code(prepared.plan.keys, prepared.plan.grouping, on_progress)
        by_keys += _count_found(pair, [_group_as_measured(prepared, key) for key in keys], on_progress)
        by_records += _count_found(pair, pair.code(shared, grouping_of(), on_progress), on_progress)
    return by_keys, by_records


def _count_found(opened: OpenedTables, columns: Sequence[CodedColumn], on_progress: OnProgress) -> list[int]:
    """Count the records of the first table that are in each of the others, by these columns."""
    [counted] = count_tables(opened, [CountRequest(columns)], on_progress)
    return [counts.shared.GT_in_SD for counts in counted.keys]


def _draw_persons(columns: Sequence[CodedColumn], last: int) -> dict[int, IntArray]:
    rng = np.random.default_rng(0)
    persons = {}
    for table in (0, last):
        # Draws must not depend on the order of records, which differs between engines.
        order = np.lexsort([column.codes[table] for column in columns])
        is_small = len(order) <= MOST_PERSONS
        persons[table] = order if is_small else rng.choice(order, MOST_PERSONS, replace=False)
    return persons


def _find_distances(
    columns: Sequence[CodedColumn], persons: Mapping[int, IntArray], syntheses: Sequence[int]
) -> tuple[IntArray, IntArray]:
    """Return the distances of GT and of holdout records to the nearest record of the syntheses, by ranks."""
    everybody = dict.fromkeys(syntheses, slice(None))
    both = [replace(column, tables=(column.join(persons), column.join(everybody))) for column in columns]
    members, others = map(len, persons.values())
    number = members + others
    records = ComparedTable(1, np.ones(len(both[0].codes[1]), dtype=bool), np.full(number, -1))
    [distances] = nearest_distances(both, Comparison(np.arange(number), (records,)))
    return distances[0, :members], distances[0, members:]
