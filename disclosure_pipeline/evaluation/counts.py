"""The plan of what to measure in opened tables, and the counts from which the measures follow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from disclosure_pipeline.counting.counts import CountRequest, DisclosureCounts, Target
from disclosure_pipeline.counting.opening import OpenedTables
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.evaluation.arguments import (
    Exclusions,
    check_exclusions,
    check_sensitive,
    code_exclusions,
)
from disclosure_pipeline.evaluation.resemblance import find_missing_value_doubts
from disclosure_pipeline.measures.checks import exclude, find_excluded
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.measures.found import USUAL_BOUNDS
from disclosure_pipeline.measures.frequency import FrequencyTable, Keys, Rows, combine_keys, frequency_tables
from disclosure_pipeline.measures.resemblance import LEAST_SHARED, LeastShared
from disclosure_pipeline.measures.words import WEIGHTED
from disclosure_pipeline.tables.alignment import check_names, require_unit, require_weights
from disclosure_pipeline.tables.coding import list_rounding_changes
from disclosure_pipeline.tables.encoding import Change
from disclosure_pipeline.tables.grouping import Grouping
from disclosure_pipeline.tables.levels import CodedColumn
from disclosure_pipeline.tables.messages import table_names

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
    levels to measure by themselves. `individual`: whether to list the risk of each record of a sample: a
    value per person, which no gate measures and nothing stores.
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
    individual: bool = False

    @property
    def columns(self) -> tuple[Any, ...]:
        """The measured columns: keys, then targets."""
        return (*self.keys, *self.targets)

    @property
    def is_of_sample(self) -> bool:
        """True if GT is known to be a sample of a population."""
        return self.weights is not None or self.sampling_fraction is not None

    @property
    def unit_columns(self) -> tuple[Any, ...]:
        """The column that says whose record each is; empty if nobody has several."""
        return () if self.unit is None else (self.unit,)

    @property
    def bases(self) -> dict[str, Any]:
        """The column of weights, by the ending of the figures of people."""
        return {} if self.weights is None else {WEIGHTED: self.weights}

    @property
    def needs_records(self) -> bool:
        """True if there are figures to which each record adds by its own unit, weight or level."""
        return self.unit is not None or self.is_of_sample or bool(self.sensitive)

    @property
    def of_units(self) -> MeasuringPlan:
        """The plan without the figures of a population, and of sensitive levels."""
        return replace(self, weights=None, sampling_fraction=None, sensitive={})


@dataclass(frozen=True)
class Counts:
    """The counted columns, grouped; their counts; and the number of records of each table (GT first).

    `missing_value_doubts`: warnings of levels that seem to stand for missing values.
    `engine_description`, `ledger`: see `OpenedTables`; the ledger includes removed rounding noise.
    """

    keys: Sequence[CodedColumn]
    measured: Sequence[Target]
    counts: DisclosureCounts
    records: tuple[int, ...]
    missing_value_doubts: Sequence[str] = ()
    engine_description: str = ""
    ledger: tuple[Change, ...] = ()

    @property
    def targets(self) -> list[CodedColumn]:
        """The columns of the targets."""
        return [target.column for target in self.measured]

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
        measured=request.targets,
        counts=counts,
        records=tuple(int(of_table.sum()) for of_table in request.keys[0].counts),
        missing_value_doubts=find_missing_value_doubts(
            [column for column in columns if column.name in measured], names
        ),
        engine_description=opened.engine_description,
        ledger=(*opened.ledger, *list_rounding_changes(columns, names)),
    )


def require_targets(targets: Any) -> None:
    """Raise InputError if `targets` is an empty list, with which nothing would be measured."""
    if isinstance(targets, Sequence) and not isinstance(targets, str) and not len(targets):
        raise InputError("targets is empty: name at least one column, or pass None for all but the keys.")


def combine_columns(columns: Sequence[CodedColumn], sample: IntArray | None = None) -> Keys:
    """Combine the columns of each record of all tables; `sample` selects records of GT."""
    codes = [column.codes for column in columns]
    if sample is not None:
        codes = [(codes_of_GT[sample], *others) for codes_of_GT, *others in codes]
    return combine_keys(codes, [column.size for column in columns])


def find_cells(
    q: Keys, t: Sequence[IntArray], levels: int, synthesis: int
) -> tuple[FrequencyTable, IntArray]:
    """Return the cells of GT and one synthesis, and the position of each GT record among them."""
    [f] = frequency_tables(replace(q, q=(q.q[0], q.q[synthesis])), (t[0], t[synthesis]), levels)
    return f, f.find_cell(q.q[0], t[0])


def place_records(q: Keys, target: Target, synthesis: int, unit: IntArray) -> Rows:
    """Place the records of GT beside a synthesis; `q` combines the keys of all tables."""
    f, position = find_cells(q, target.column.codes, target.column.size, synthesis)
    rows = Rows(
        f,
        position,
        unit,
        no_guess=target.no_guess,
        band=target.band,
        certainties=target.certainties,
    )
    if not target.exclusions:
        return rows
    excluded = find_excluded(target.exclusions, f.t, lambda k: q.level_of(k)[f.q])
    left, left_s = exclude(replace(f, excluded=excluded), target.exclusions)
    return replace(rows, d_left=left, s_left=left_s)
