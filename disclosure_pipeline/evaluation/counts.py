"""The plan of what to measure in opened tables, and the counts from which the measures follow."""

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
from disclosure_pipeline.evaluation.arguments import (
    Exclusions,
    check_exclusions,
    check_sensitive,
    code_exclusions,
)
from disclosure_pipeline.evaluation.resemblance import (
    LEAST_SHARED,
    LeastShared,
    find_missing_value_doubts,
)
from disclosure_pipeline.measures.band_places import Band
from disclosure_pipeline.measures.checks import exclude, find_excluded
from disclosure_pipeline.measures.contributions import Rows
from disclosure_pipeline.measures.copies import CopyCounts, WholeRecordCounts, copy_counts
from disclosure_pipeline.measures.exact import IntArray, Mask
from disclosure_pipeline.measures.found import USUAL_BOUNDS
from disclosure_pipeline.measures.frequency import FrequencyTable, Keys, combine_keys, frequency_tables
from disclosure_pipeline.measures.people import PeopleCounts
from disclosure_pipeline.measures.totals import disclosure_tables
from disclosure_pipeline.runtime.progress import OnProgress, ignore_progress
from disclosure_pipeline.tables.alignment import check_names, require_unit, require_weights
from disclosure_pipeline.tables.contract import MULTISET, PREFIX
from disclosure_pipeline.tables.encoding import Change, list_rounding_changes
from disclosure_pipeline.tables.grouping import Grouping
from disclosure_pipeline.tables.levels import CodedColumn, Kind
from disclosure_pipeline.tables.messages import names_in_all, table_names

TARGETS_ALONE = "targets alone"


Thresholds = tuple[float, float]
NO_FLAGS: Thresholds = (math.inf, math.inf)


FEWEST_OF_GROUP = 10
"""The smallest number of people in a group that is measured."""


@dataclass(frozen=True)
class WholeRecords:
    """The plan for figures over all shared columns: copies, relabelling, groups of people.

    Groups of fewer than `smallest_count` people are not measured. `seed` draws the people of whom near copies
    are looked for. `group_columns` are searched for the most exposed groups of people (`special_values`:
    codes of the numeric ones that stay ungrouped); empty to leave that out. `nearness`: whether to look for
    near copies. `keys`: the columns that an intruder knows. `bounds`: the largest shares of people found that
    are allowed, for the detection limits.
    """

    smallest_count: int = FEWEST_OF_GROUP
    seed: int = 0
    group_columns: tuple[Any, ...] = ()
    special_values: Mapping[Any, Sequence[float]] = field(default_factory=dict)
    nearness: bool = True
    keys: tuple[Any, ...] = ()
    bounds: Mapping[str, float] = field(default_factory=lambda: USUAL_BOUNDS)


@dataclass(frozen=True)
class MeasuringPlan:
    """The figures to measure, and the columns to measure.

    `one_way`, `two_way`: thresholds of the checks. `certainties`: shares at which an intruder acts. `unit`:
    the GT column that says whose record each is. `weights`: the GT column that says how many people each
    stands for; without it, each stands for 1 / `sampling_fraction`. `least_shared`: the shares of values
    below which there is a doubt. `real_values`: columns whose real values may be in SD though they are like
    identifiers. `attribution`, `chance`: whether to measure these families. `together`: whether several
    syntheses are one release. `whole_records`: None to measure keys and targets only. `sensitive`: target ->
    levels to measure by themselves.
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
    least_shared: LeastShared = LEAST_SHARED
    real_values: frozenset[Any] = frozenset()
    attribution: bool = True
    chance: bool = True
    together: bool = False
    whole_records: WholeRecords | None = None
    sensitive: Mapping[Any, Sequence[Any]] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[Any, ...]:
        """The measured columns: keys, then targets."""
        return (*self.keys, *self.targets)

    @property
    def is_of_sample(self) -> bool:
        """True if GT is known to be a sample of a population."""
        return self.weights is not None or self.sampling_fraction is not None


@dataclass(frozen=True)
class Counts:
    """The counted columns, grouped; their counts; and the number of records of each table (GT first).

    `missing_value_doubts`: warnings of levels that seem to stand for missing values.
    `engine_description`, `ledger`: see `OpenedTables`; the ledger includes removed rounding noise.
    """

    keys: Sequence[CodedColumn]
    targets: Sequence[CodedColumn]
    counts: DisclosureCounts
    records: tuple[int, ...]
    missing_value_doubts: Sequence[str] = ()
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
    """Return a plan that fits the columns of the tables. InputError as in `disclosure()`.

    Empty `targets` measure the keys only; `options` are further fields of the plan.
    """
    if unit is not None:
        require_unit(unit, opened.columns)
    key_names, target_names = check_names(opened.columns, keys, targets, grouping)
    exclusions = Exclusions() if exclusions is None else exclusions
    check_exclusions(exclusions, key_names, target_names)
    check_sensitive(options.get("sensitive", {}), target_names, exclusions)
    if weights is not None:
        require_weights(weights, opened.columns[0], {*key_names, *target_names}, unit)
    return MeasuringPlan(key_names, target_names, grouping, exclusions, unit=unit, weights=weights, **options)


def build_request(plan: MeasuringPlan, columns: Mapping[Any, CodedColumn]) -> CountRequest:
    """Return the request for the counts of a plan, from `columns` that are not grouped yet.

    InputError if an exclusion names a level that does not exist.
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
        apart=True,
    )


def build_counts(
    opened: OpenedTables, request: CountRequest, counts: DisclosureCounts, columns: Sequence[CodedColumn]
) -> Counts:
    """Return the counts with their columns; `columns` are all coded columns, not grouped."""
    measured = {column.name for column in request.columns}
    names = table_names(len(columns[0].tables))
    return Counts(
        keys=request.keys,
        targets=[target.column for target in request.targets],
        counts=counts,
        records=tuple(int(of_table.sum()) for of_table in request.keys[0].counts),
        missing_value_doubts=find_missing_value_doubts(
            [column for column in columns if column.name in measured], names
        ),
        engine_description=opened.engine_description,
        ledger=(*opened.ledger, *list_rounding_changes(columns, names)),
        certainties=request.targets[0].certainties if request.targets else (),
        bands=tuple(target.band for target in request.targets),
    )


def require_targets(targets: Any) -> None:
    """Raise InputError if `targets` is an empty list, with which nothing would be measured."""
    if isinstance(targets, Sequence) and not isinstance(targets, str) and not len(targets):
        raise InputError("targets is empty: name at least one column, or pass None for all but the keys.")


WITHOUT_NUMBERS = "all but numbers"
"""Numbers are easily shifted, rounded or swapped; the other columns still find the record."""

EVENTS_ALONE, SUMMARIES_ALONE = "the events alone", "the events' summaries alone"
"""Events identify a person whatever the rest of the record says.

A multiset differs as soon as one value is changed; most of the summaries do not.
"""


@dataclass(frozen=True)
class RecordSets:
    """Counts of whole records, and of records reduced to a set of columns.

    `whole`: by all columns, for each synthesis. `columns`: label -> a set of columns; `partial`: label -> the
    copies in each synthesis by that set. `by_record`: as `whole`, but always counting records, also where
    people have several.
    """

    whole: Sequence[WholeRecordCounts]
    columns: Mapping[str, Sequence[CodedColumn]]
    partial: Mapping[str, Sequence[CopyCounts]]
    by_record: Sequence[PeopleCounts]


def code_shared_columns(
    opened: OpenedTables, grouping: Grouping, on_progress: OnProgress
) -> list[CodedColumn]:
    """Code the columns that all tables have, ungrouped, in GT's order. InputError as `code`."""
    return opened.code(names_in_all(opened.columns), grouping, on_progress)


def count_record_sets(
    opened: OpenedTables,
    requests: Sequence[CountRequest],
    columns: Sequence[CodedColumn],
    targets: Sequence[Any],
    on_progress: OnProgress = ignore_progress,
) -> tuple[list[DisclosureCounts], RecordSets]:
    """Return the counts of the requests and of the record sets, in one pass; `columns` are not grouped."""
    sets = _list_sets(columns, targets)
    left_out = len(columns) if len(columns) > 1 else 0  # `without_each` counts the sets that lack a column
    set_requests = map(CountRequest, list(sets.values())[left_out:])
    whole_request = CountRequest(columns, without_each=True)
    counted = opened.count([*requests, whole_request, *set_requests], on_progress)
    whole, *others = counted[len(requests) :]
    copies = [*whole.without, *(list(map(select_copies, counts.keys)) for counts in others)]
    people = [keys.people for keys in whole.keys]
    records = RecordSets(whole.keys, sets, dict(zip(sets, copies, strict=True)), people)
    return counted[: len(requests)], _add_single_columns(records, columns)


def _list_sets(columns: Sequence[CodedColumn], targets: Sequence[Any]) -> dict[str, Sequence[CodedColumn]]:
    """Return the sets of columns in which near copies are looked for, by label."""
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
    return {label: column_set for label, column_set in sets.items() if column_set}


_NAMING_KINDS = {Kind.TEXT, Kind.DATE, Kind.ZONED_DATE}


def _add_single_columns(records: RecordSets, columns: Sequence[CodedColumn]) -> RecordSets:
    """Add each column of text or dates in which some GT record has a level of its own, as a set."""
    alone = {
        f"{column.name} alone": column
        for column in columns
        if column.kind in _NAMING_KINDS and (column.counts[0][:-1] == 1).any() and len(columns) > 1
    }
    copies = {
        label: [copy_counts(column.counts[0], s) for s in column.counts[1:]]
        for label, column in alone.items()
    }
    sets = {label: [column] for label, column in alone.items()}
    return replace(records, columns={**sets, **records.columns}, partial={**copies, **records.partial})


def combine_columns(columns: Sequence[CodedColumn], sample: IntArray | None = None) -> Keys:
    """Combine the columns of each record of all tables; `sample` selects records of GT."""
    codes = [column.codes for column in columns]
    if sample is not None:
        codes = [(codes_of_GT[sample], *others) for codes_of_GT, *others in codes]
    return combine_keys(codes, [column.size for column in columns])


@dataclass(frozen=True)
class RecordCells:
    """The cells of GT and one synthesis, and the `position` of each GT record among them."""

    f: FrequencyTable
    position: IntArray

    @classmethod
    def from_keys(cls, q: Keys, t: Sequence[IntArray], levels: int, synthesis: int) -> RecordCells:
        """Place all records of GT and of the synthesis in cells."""
        [f] = frequency_tables(replace(q, q=(q.q[0], q.q[synthesis])), (t[0], t[synthesis]), levels)
        return cls(f, np.searchsorted(f.q * levels + f.t, q.q[0] * levels + t[0]))

    def count(self, members: Mask) -> IntArray:
        """Count the members of a group in each cell (`members`: a mask over all GT records)."""
        return np.bincount(self.position[members], minlength=len(self.f.q))


def place_records(q: Keys, target: Target, synthesis: int, unit: IntArray | None = None) -> Rows:
    """Place the records of GT beside a synthesis; `q` combines the keys of all tables."""
    cells = RecordCells.from_keys(q, target.column.codes, target.column.size, synthesis)
    rows = Rows(
        cells.f,
        cells.position,
        unit,
        no_guess=target.no_guess,
        band=target.band,
        certainties=target.certainties,
    )
    if not target.exclusions:
        return rows
    excluded = find_excluded(target.exclusions, cells.f.t, lambda k: q.level_of(k)[cells.f.q])
    tables = disclosure_tables(cells.f)
    left, _ = exclude(replace(cells.f, excluded=excluded), tables, target.exclusions)
    return replace(rows, d_left=left.original.values(), s_left=left.synthetic.values())
