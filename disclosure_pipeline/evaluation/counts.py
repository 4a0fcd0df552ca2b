"""The plan of what to count in opened tables, and the counts that the measures are made of."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from disclosure_pipeline.counting.counts import CountRequest, DisclosureCounts, Target, select_copies
from disclosure_pipeline.counting.opening import OpenedTables
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.evaluation.arguments import Exclusions, check_exclusions, code_exclusions
from disclosure_pipeline.evaluation.resemblance import identifier_warnings, missing_value_doubts
from disclosure_pipeline.measures.band_counts import Band
from disclosure_pipeline.measures.checks import exclude
from disclosure_pipeline.measures.copies import FoundCopies, WholeRecordCounts, copy_counts
from disclosure_pipeline.measures.exact import IntArray, Mask
from disclosure_pipeline.measures.frequency import FrequencyTable, Keys, combine_keys, frequency_tables
from disclosure_pipeline.measures.people import PeopleCounts
from disclosure_pipeline.measures.totals import DisclosureTables, disclosure_tables
from disclosure_pipeline.runtime.progress import OnProgress, ignore_progress
from disclosure_pipeline.tables.alignment import check_names, require_unit, require_weights
from disclosure_pipeline.tables.contract import MULTISET, PREFIX
from disclosure_pipeline.tables.encoding import Change, list_rounding_changes
from disclosure_pipeline.tables.grouping import Grouping
from disclosure_pipeline.tables.levels import ORDERED_KINDS, CodedColumn, Kind
from disclosure_pipeline.tables.messages import names_in_all, table_names

TARGETS_ALONE = "targets alone"


Thresholds = tuple[float, float]
NO_FLAGS: Thresholds = (math.inf, math.inf)


@dataclass(frozen=True)
class WholeRecords:
    """The plan for all columns that the tables share: copies, nearness, relabelling, groups of people.

    Groups of fewer than `smallest_count` people are not looked at. `seed` draws who is compared with whom.
    `group_columns`: those by whose levels people are grouped to see who bears most of what is disclosed, with
    the `special_values` of numbers among them; empty leaves that out.
    """

    smallest_count: int
    seed: int = 0
    group_columns: tuple[Any, ...] = ()
    special_values: Mapping[Any, Sequence[float]] = field(default_factory=dict)


@dataclass(frozen=True)
class MeasuringPlan:
    """The figures to measure, and the columns to measure them of.

    `one_way`, `two_way`: when the checks flag a level, or a pair of levels. `certainties`: of an intruder who
    acts on less than certainty. `unit`: the column of GT that says whose record each is. `weights`: that
    which says how many people each stands for; or 1 / `sampling_fraction` all of them. `attribution`,
    `chance`: whether these families are measured. `together`: whether several syntheses are one release, so
    that what all of them disclose counts. `whole_records` is None where only keys and targets are measured.
    """

    keys: tuple[Any, ...]
    targets: tuple[Any, ...]
    grouping: Grouping
    exclusions: Exclusions
    one_way: Thresholds = NO_FLAGS
    two_way: Thresholds = NO_FLAGS
    certainties: tuple[Fraction, ...] = ()
    unit: Any = None
    weights: Any = None
    sampling_fraction: float | None = None
    attribution: bool = True
    chance: bool = True
    together: bool = False
    whole_records: WholeRecords | None = None

    @property
    def columns(self) -> tuple[Any, ...]:
        """The columns that are measured: keys, then targets."""
        return (*self.keys, *self.targets)

    @property
    def is_of_sample(self) -> bool:
        """True if GT is known to be a sample of a population."""
        return self.weights is not None or self.sampling_fraction is not None


@dataclass(frozen=True)
class Counts:
    """The columns that were counted, grouped; the counts; the number of records of each table (GT first).

    `missing_value_doubts`: of levels that seem to stand for missing values. `identifier_warnings`: of columns
    that are in one table alone, or number the records; not looked for where only the keys are counted.
    `engine_description`, `ledger`: see `OpenedTables`; the ledger also has what was rounding noise.
    """

    keys: Sequence[CodedColumn]
    targets: Sequence[CodedColumn]
    counts: DisclosureCounts
    records: tuple[int, ...]
    missing_value_doubts: Sequence[str] = ()
    identifier_warnings: Sequence[str] = ()
    engine_description: str = ""
    ledger: tuple[Change, ...] = ()
    certainties: tuple[Fraction, ...] = ()
    bands: tuple[Band | None, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The tables' names in messages."""
        return table_names(len(self.records))


def plan_measures(
    opened: OpenedTables,
    keys: Sequence[Any],
    targets: Any,
    grouping: Grouping,
    exclusions: Exclusions | None = None,
    unit: Any = None,
    weights: Any = None,
    **options: Any,
) -> MeasuringPlan:
    """Return the plan, once it is sure that it fits the tables' columns. InputError as `disclosure()`.

    `targets` is empty where only the keys are asked for; `options` are further fields of the plan.
    """
    if unit is not None:
        require_unit(unit, opened.columns)
    key_names, target_names = check_names(opened.columns, keys, targets, grouping)
    left_out = Exclusions() if exclusions is None else exclusions
    check_exclusions(left_out, key_names, target_names)
    if unit is not None and grouping.within:
        raise InputError(
            f"within of {', '.join(map(str, grouping.within))} and a unit cannot be combined: leave-one-out "
            "figures within a band are of single records. Group these targets, or leave the unit out."
        )
    if weights is not None:
        require_weights(weights, opened.columns[0], {*key_names, *target_names}, unit)
    return MeasuringPlan(key_names, target_names, grouping, left_out, unit=unit, weights=weights, **options)


def count_request(plan: MeasuringPlan, columns: Mapping[Any, CodedColumn]) -> CountRequest:
    """Return what has to be counted, of `columns` that are not grouped yet.

    InputError where an exclusion names a level that does not exist.
    """
    keys = [plan.grouping.apply(columns[name]) for name in plan.keys]
    targets = [plan.grouping.apply(columns[name]) for name in plan.targets]
    return CountRequest(
        keys,
        [
            Target(
                target,
                code_exclusions(plan.exclusions, target, keys),
                plan.two_way[0],
                plan.certainties,
                plan.grouping.band_of(target),
            )
            for target in targets
        ],
        plan.together,
    )


def counts_for(
    opened: OpenedTables, request: CountRequest, counts: DisclosureCounts, columns: Sequence[CodedColumn]
) -> Counts:
    """Return the counts beside their columns; `columns` are those that were coded, not grouped."""
    measured = {column.name for column in request.columns}
    names = table_names(len(columns[0].tables))
    return Counts(
        keys=request.keys,
        targets=[target.column for target in request.targets],
        counts=counts,
        records=tuple(int(of_table.sum()) for of_table in request.keys[0].counts),
        missing_value_doubts=missing_value_doubts(
            [column for column in columns if column.name in measured], names
        ),
        identifier_warnings=identifier_warnings(opened, columns) if request.targets else [],
        engine_description=opened.engine_description,
        ledger=(*opened.ledger, *list_rounding_changes(columns, names)),
        certainties=request.targets[0].certainties if request.targets else (),
        bands=tuple(target.band for target in request.targets),
    )


def require_targets(targets: Any) -> None:
    """Raise InputError where the targets are an empty list: nothing would be measured."""
    if isinstance(targets, Sequence) and not isinstance(targets, str) and not len(targets):
        raise InputError("targets is empty: name at least one column, or pass None for all that are no keys.")


WITHOUT_NUMBERS = "all but numbers"
"""Numbers are easily moved, rounded or exchanged together, and a record is found again by the others."""

EVENTS_ALONE, SUMMARIES_ALONE = "the events alone", "the events' summaries alone"
"""Events tell who somebody is, whatever the record of the person says.

A multiset is another one as soon as one value is changed; most of the summaries are not.
"""


@dataclass(frozen=True)
class RecordSets:
    """`whole`: the counts of each synthesis by all columns.

    `columns`: label -> a set of columns; `partial`: label -> the copies of each synthesis by these. `groups`:
    the columns by whose levels people are counted; `levels`: of each synthesis, column and level.
    `of_records`: of each synthesis by all columns, whoever they belong to.
    """

    whole: Sequence[WholeRecordCounts]
    columns: Mapping[str, Sequence[CodedColumn]]
    partial: Mapping[str, Sequence[FoundCopies]]
    groups: Sequence[CodedColumn]
    levels: Sequence[Sequence[Sequence[PeopleCounts]]]
    of_records: Sequence[PeopleCounts]


def code_shared_columns(
    opened: OpenedTables, grouping: Grouping, on_progress: OnProgress
) -> list[CodedColumn]:
    """Code the columns that all tables have, in GT's order; they are not grouped. InputError as `code`."""
    return opened.code(names_in_all(opened.columns), grouping, on_progress)


def count_record_sets(
    opened: OpenedTables,
    requests: Sequence[CountRequest],
    columns: Sequence[CodedColumn],
    targets: Sequence[Any],
    on_progress: OnProgress = ignore_progress,
) -> tuple[list[DisclosureCounts], RecordSets]:
    """Return what else is requested, and the record sets, in one pass; `columns` are not grouped."""
    sets = _list_sets(columns, targets)
    by_level = tuple(k for k, column in enumerate(columns) if column.kind not in ORDERED_KINDS)
    left_out = len(columns) if len(columns) > 1 else 0  # the first sets lack a column each
    of_sets = map(CountRequest, list(sets.values())[left_out:])
    of_records = CountRequest(columns, by_level=by_level, without_each=True)
    counted = opened.count([*requests, of_records, *of_sets], on_progress)
    whole, *others = counted[len(requests) :]
    found = [*whole.without, *(list(map(select_copies, counts.keys)) for counts in others)]
    groups = [columns[k] for k in by_level]
    levels = [
        [
            counts.people(column.counts[0], column.counts[synthesis])
            for column, counts in zip(groups, of_synthesis, strict=True)
        ]
        for synthesis, of_synthesis in enumerate(whole.levels, start=1)
    ]
    people = [keys.people for keys in whole.keys]
    partial_copies = dict(zip(sets, found, strict=True))
    records = RecordSets(whole.keys, sets, partial_copies, groups, levels, people)
    return counted[: len(requests)], _add_single_columns(records, columns)


def _list_sets(columns: Sequence[CodedColumn], targets: Sequence[Any]) -> dict[str, Sequence[CodedColumn]]:
    """Return all columns but each one; the targets; all but numbers, if there are several; the events."""
    sets = {
        f"all but {left_out.name}": [column for column in columns if column is not left_out]
        for left_out in columns
    }
    sets[TARGETS_ALONE] = [column for column in columns if column.name in targets]
    others = [column for column in columns if column.kind is not Kind.NUMBER]
    if len(columns) - len(others) > 1:
        sets[WITHOUT_NUMBERS] = others
    events = [column for column in columns if str(column.name).startswith(PREFIX)]
    sets[EVENTS_ALONE] = events
    if MULTISET in [column.name for column in events]:
        sets[SUMMARIES_ALONE] = [column for column in events if column.name != MULTISET]
    return {label: of_set for label, of_set in sets.items() if of_set}


_WRITTEN = {Kind.TEXT, Kind.DATE, Kind.ZONED_DATE}


def _add_single_columns(records: RecordSets, columns: Sequence[CodedColumn]) -> RecordSets:
    """Add the sets of a single column in which somebody has a level of text, or a date, to himself."""
    alone = {
        f"{column.name} alone": column
        for column in columns
        if column.kind in _WRITTEN and (column.counts[0][:-1] == 1).any() and len(columns) > 1
    }
    found = {
        label: [copy_counts(column.counts[0], s).as_found() for s in column.counts[1:]]
        for label, column in alone.items()
    }
    sets = {label: [column] for label, column in alone.items()}
    return replace(records, columns={**sets, **records.columns}, partial={**found, **records.partial})


def combine_columns(columns: Sequence[CodedColumn], sample: IntArray | None = None) -> Keys:
    """Combine the columns of each record of all tables; of GT only the records of `sample`."""
    codes = [column.codes for column in columns]
    if sample is not None:
        codes = [(codes_of_GT[sample], *others) for codes_of_GT, *others in codes]
    return combine_keys(codes, [column.size for column in columns])


@dataclass(frozen=True)
class RecordCells:
    """The cells of GT and one synthesis; `position` of each GT record in them."""

    f: FrequencyTable
    position: IntArray

    @classmethod
    def from_keys(cls, q: Keys, t: Sequence[IntArray], levels: int, synthesis: int) -> RecordCells:
        """Place all records of GT and of the synthesis."""
        tables = (0, synthesis)
        t_of = [t[table] for table in tables]
        keys = combine_keys([[q.q[table] for table in tables]], [q.size])
        [f] = frequency_tables(keys, t_of, levels)
        return cls(f, np.searchsorted(f.q * levels + f.t, keys.q[0] * levels + t_of[0]))

    def count(self, members: Mask) -> IntArray:
        """Return the members of a group (shape: all GT records) in each cell."""
        return np.bincount(self.position[members], minlength=len(self.f.q))


def place_records(
    keys: Sequence[CodedColumn], target: Target, synthesis: int
) -> tuple[Keys, RecordCells, DisclosureTables]:
    """Return the key combinations and cells of GT and a synthesis, and what the exclusions leave of these."""
    tables = (0, synthesis)
    q = combine_columns([key.only(tables) for key in keys])
    t = [target.column.codes[table] for table in tables]
    cells = RecordCells.from_keys(q, t, target.column.size, 1)
    left = disclosure_tables(cells.f)
    if target.exclusions:
        key_levels = np.stack([q.level_of(k) for k in range(len(keys))])
        left, _ = exclude(cells.f, left, key_levels, target.exclusions)
    return q, cells, left
