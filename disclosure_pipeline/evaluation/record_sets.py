"""Counts of records, and of people, by all columns and by sets of them; and the records in memory.

Where people have several records, other people's records are those of other units. Without a unit, every
record is a person's only one, and an engine counts without giving its records away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from disclosure_pipeline.counting.cells import count_tables
from disclosure_pipeline.counting.counts import (
    CountRequest,
    DisclosureCounts,
    KeyCounts,
    sample_positions,
    select_copies,
)
from disclosure_pipeline.counting.opening import OpenedTables
from disclosure_pipeline.evaluation.counts import MeasuringPlan, combine_columns
from disclosure_pipeline.measures.contributions import Contributions, name_estimates
from disclosure_pipeline.measures.copies import Combinations, CopyCounts
from disclosure_pipeline.measures.exact import Floats, IntArray, total
from disclosure_pipeline.measures.samples import Sizes, average_records_per_unit
from disclosure_pipeline.runtime.progress import OnProgress, ignore_progress
from disclosure_pipeline.tables import additions
from disclosure_pipeline.tables.alignment import missing_owners_error, require_unit, weigh_records
from disclosure_pipeline.tables.contract import MULTISET, PREFIX
from disclosure_pipeline.tables.grouping import Grouping
from disclosure_pipeline.tables.levels import CodedColumn, Kind
from disclosure_pipeline.tables.messages import names_in_all

TARGETS_ALONE = "targets alone"

WITHOUT_NUMBERS = "all but numbers"
"""Numbers are easily shifted, rounded or swapped; the other columns still find the record."""

EVENTS_ALONE, SUMMARIES_ALONE = "the events alone", "the events' summaries alone"
"""Events identify a person whatever the rest of the record says.

A multiset differs as soon as one value is changed; most of the summaries do not.
"""


@dataclass(frozen=True)
class PeopleRecords:
    """Records in memory: coded columns by name, not grouped; the unit and weight of each GT record.

    `bases`: the endings of figures of people, which are asked for if the weights are a column of GT.
    `places`: where in GT each record is, if all are read in another order.
    """

    columns: Mapping[Any, CodedColumn]
    unit: IntArray
    weight: Floats
    bases: tuple[str, ...] = ()
    places: IntArray | None = None

    @cached_property
    def records_per_unit(self) -> float:
        """The mean number of GT records of a unit."""
        return average_records_per_unit(self.unit)

    def draw(self, most: int, seed: int) -> PeopleRecords:
        """Draw at most `most` records of each table, as `code_records` does."""
        sizes = [int(counts.sum()) for counts in next(iter(self.columns.values())).counts]
        if max(sizes) <= most:
            return self
        positions = sample_positions(sizes, most, seed)
        drawn = {name: column.draw(positions) for name, column in self.columns.items()}
        of_GT = slice(None) if positions[0] is None else positions[0]
        return replace(self, columns=drawn, unit=self.unit[of_GT], weight=self.weight[of_GT], places=None)

    def stack(self) -> PeopleRecords:
        """Return GT's records and, as a second table, those of all syntheses."""
        columns = dict[Any, CodedColumn]()
        for name, column in self.columns.items():
            syntheses = dict.fromkeys(range(1, len(column.tables)), slice(None))
            columns[name] = replace(column, tables=(column.tables[0], column.join(syntheses)))
        order = _order_records([*columns.values()])
        return replace(self, columns={name: column.draw(order) for name, column in columns.items()})

    def weigh(
        self, added: Contributions, figures: Iterable[str], members: IntArray | None = None
    ) -> dict[str, float]:
        """Return the figures of the people of all GT records, or of some `members`, by each basis."""
        weighted = dict[str, float]()
        for basis in self.bases:
            weighted |= name_estimates(added.estimate(figures, self.weight, members), basis)
        return weighted


def read_records(
    opened: OpenedTables, plan: MeasuringPlan, on_progress: OnProgress, names: Sequence[Any]
) -> PeopleRecords | None:
    """Read the codes of all records, and the unit and weight of each; None if the plan needs none of them.

    Raise InputError if the unit is in a synthetic table or lacks values, or if a weight cannot be used.
    """
    if not plan.needs_records:
        return None
    for name in plan.unit_columns:
        require_unit(name, opened.columns)
    extra = (*plan.unit_columns, *plan.bases.values())  # only GT has them
    widened = opened.with_columns(extra)
    coded = widened.code(list(dict.fromkeys([*names, *extra])), plan.grouping, on_progress)
    most = max(int(counts.sum()) for counts in coded[0].counts)
    by_name = {column.name: column for column in widened.code_records(coded, most, 0)}
    order = _order_records([by_name[name] for name in dict.fromkeys((*extra, *names))])
    columns, [places, *_] = {name: by_name[name].draw(order) for name in names}, order
    unit, weight = np.arange(len(places)), np.full(len(places), 1 / (plan.sampling_fraction or 1))
    for owners in (by_name[name] for name in plan.unit_columns):
        if owners.counts[0][owners.missing]:
            raise missing_owners_error(owners.name)
        unit = owners.codes[0].astype(np.int64)[places]
    for name in plan.bases.values():
        weight = weigh_records(by_name[name])[places]
    return PeopleRecords(columns, unit, weight, tuple(plan.bases), places)


def _order_records(columns: Sequence[CodedColumn]) -> list[IntArray]:
    """Return an order of each table's records in which draws and sums are the same from every engine."""
    codes_of_tables = zip(*(column.codes for column in columns), strict=True)
    return [np.lexsort(codes) for codes in codes_of_tables]


def draw_records(opened: OpenedTables, columns: Sequence[CodedColumn], most: int, seed: int) -> PeopleRecords:
    """Return the codes of at most `most` records of each table; every GT record is another person's."""
    drawn = opened.code_records(columns, most, seed)
    N_d = total(drawn[0].counts[0])
    return PeopleRecords({column.name: column for column in drawn}, np.arange(N_d), np.ones(N_d))


@dataclass(frozen=True)
class RecordSets:
    """Counts of whole records of the `opened` tables, and of records reduced to a set of the `columns`.

    `keys`: counts of records by all columns, for each synthesis; `whole`: copies of people by all columns;
    `draw(most, seed)`: the codes of at most so many records of each table. `sets`: label -> a set of columns;
    `partial`: label -> copies of people by that set. `records_per_unit`: the mean number of GT records of a
    person.
    """

    opened: OpenedTables
    columns: Sequence[CodedColumn]
    keys: Sequence[KeyCounts]
    whole: Sequence[CopyCounts]
    draw: Callable[[int, int], PeopleRecords]
    sets: Mapping[str, Sequence[CodedColumn]] = field(default_factory=dict)
    partial: Mapping[str, Sequence[CopyCounts]] = field(default_factory=dict)
    records_per_unit: float = 1.0

    @property
    def sizes(self) -> list[Sizes]:
        """The numbers of records of GT and each synthesis."""
        N_d, *N_s = (total(counts) for counts in self.columns[0].counts)
        return [Sizes(N_d, n) for n in N_s]

    def count_people(self, plan: MeasuringPlan, on_progress: OnProgress = ignore_progress) -> RecordSets:
        """Return the counts of people, who are units if the plan has a unit. InputError as `count_people`."""
        names = [column.name for column in self.columns]
        return self.count_units(read_records(self.opened, plan.of_units, on_progress, names))

    def count_units(self, people: PeopleRecords | None) -> RecordSets:
        """Return the counts with people counted as units; `people` have all columns."""
        if people is None or people.records_per_unit == 1:  # an engine has counted the same
            return self
        return replace(
            self,
            whole=_count_units(people, self.columns),
            draw=people.draw,
            partial={label: _count_units(people, columns) for label, columns in self.sets.items()},
            records_per_unit=people.records_per_unit,
        )


def code_shared_columns(
    opened: OpenedTables, grouping: Grouping, on_progress: OnProgress = ignore_progress
) -> list[CodedColumn]:
    """Code the columns that all tables have, ungrouped, in GT's order. InputError as `code`."""
    return opened.code(names_in_all(opened.columns), grouping, on_progress)


def count_people(
    opened: OpenedTables,
    columns: Sequence[CodedColumn],
    plan: MeasuringPlan,
    on_progress: OnProgress = ignore_progress,
) -> RecordSets:
    """Count the people by all `columns`, which are not grouped, and by sets of them.

    Raise InputError if the planned unit is in a synthetic table or lacks values.
    """
    records, _ = count_record_sets(opened, columns, plan.targets, on_progress)
    return records.count_people(plan, on_progress)


def count_whole_records(opened: OpenedTables, plan: MeasuringPlan) -> RecordSets:
    """Count the people by all shared columns together, as `count_people` does."""
    columns = code_shared_columns(opened, plan.grouping)
    [counted] = count_tables(opened, [CountRequest(columns)])
    draw = partial(draw_records, opened, columns)
    records = RecordSets(opened, columns, counted.keys, [*map(select_copies, counted.keys)], draw)
    return records.count_people(plan)


def count_record_sets(
    opened: OpenedTables,
    columns: Sequence[CodedColumn],
    targets: Sequence[Any] = (),
    on_progress: OnProgress = ignore_progress,
    requests: Sequence[CountRequest] = (),
) -> tuple[RecordSets, list[DisclosureCounts]]:
    """Return the counts of the records and of the requests, in one pass; `columns` are not grouped."""
    sets = _list_sets(columns, targets)
    left_out = len(columns) if len(columns) > 1 else 0  # `without_each` counts the sets that lack a column
    set_requests = map(CountRequest, list(sets.values())[left_out:])
    whole_request = CountRequest(columns, without_each=True)
    counted = count_tables(opened, [*requests, whole_request, *set_requests], on_progress)
    whole, *others = counted[len(requests) :]
    of_all, *copies = ([*map(select_copies, counts.keys)] for counts in (whole, *others))
    by_label = dict(zip(sets, [*whole.without, *copies], strict=True))
    draw = partial(draw_records, opened, columns)
    records = RecordSets(opened, columns, whole.keys, of_all, draw, sets, by_label)
    return _add_single_columns(records), counted[: len(requests)]


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


def _add_single_columns(records: RecordSets) -> RecordSets:
    """Add each column of text or dates in which some GT record has a level of its own, as a set."""
    columns = records.columns
    alone = {
        f"{column.name} alone": column
        for column in columns
        if column.kind in _NAMING_KINDS and (column.counts[0][:-1] == 1).any() and len(columns) > 1
    }
    copies = {
        label: [Combinations.of_records(column.counts[0]).count_copies(s) for s in column.counts[1:]]
        for label, column in alone.items()
    }
    sets = {label: [column] for label, column in alone.items()}
    return replace(records, sets={**sets, **records.sets}, partial={**copies, **records.partial})


def find_real_values(
    opened: OpenedTables, columns: Sequence[CodedColumn], people: PeopleRecords | None
) -> list[additions.RealValues]:
    """Return the columns like identifiers of which SD has GT's values: see `OpenedTables.find_real_values`.

    `people`: all records, where people have several. A value that a unit has several times is its own as long
    as no other unit has it.
    """
    found = opened.find_real_values(columns)
    if people is None or people.records_per_unit == 1:
        return found
    by_unit = [values for values in found if values.column not in people.columns]
    comparisons = sum(len(column.tables) - 1 for column in people.columns.values())
    for column in people.columns.values():
        held = column.codes[0] != column.missing
        values = Combinations.of_units(
            column.codes[0][held].astype(np.int64), people.unit[held], column.missing
        )
        of_syntheses = (
            additions.find_real_values(column, synthesis, comparisons, values, people.records_per_unit)
            for synthesis in range(1, len(column.tables))
        )
        by_unit += [found for found in of_syntheses if found]
    return by_unit


def _count_units(people: PeopleRecords, columns: Sequence[CodedColumn]) -> list[CopyCounts]:
    q = combine_columns([people.columns[column.name] for column in columns])
    combinations = Combinations.of_units(q.q[0], people.unit, q.size)
    return [combinations.count_copies(s) for s in q.counts[1:]]
