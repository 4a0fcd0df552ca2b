"""`copies()` and `replicated_uniques()`: SD records that equal a GT record, or identify one person."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from disclosure_pipeline.counting.cells import count_tables
from disclosure_pipeline.counting.counts import CountRequest, select_copies
from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.counting.opening import OpenedTables, link_tables, read_frames, read_shared_columns
from disclosure_pipeline.errors import InputError, UnitWarning
from disclosure_pipeline.evaluation.arguments import Exclusions
from disclosure_pipeline.evaluation.counts import MeasuringPlan, combine_columns
from disclosure_pipeline.evaluation.frames import FiguresFrame, build_frame, format_frame, to_row
from disclosure_pipeline.evaluation.record_sets import (
    PeopleRecords,
    RecordSets,
    count_people,
    count_record_sets,
    draw_records,
)
from disclosure_pipeline.evaluation.resemblance import find_doubts, warn_of_doubts
from disclosure_pipeline.measures.chance import beyond_chance, hits_by_chance
from disclosure_pipeline.measures.copies import (
    ALL_COLUMNS,
    ENOUGH_RECORDS,
    MANY_REPEATS,
    CopyCounts,
    chances_of_independent_columns,
    hits_of_independent_columns,
    repeats_beyond_independence,
)
from disclosure_pipeline.measures.copies import copies as copies_of
from disclosure_pipeline.measures.exact import Floats, IntArray, percent
from disclosure_pipeline.measures.identity import mark_unique_records
from disclosure_pipeline.measures.people import found_by_independent_columns, people_copied
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.tables.alignment import check_tables
from disclosure_pipeline.tables.events import Events
from disclosure_pipeline.tables.grouping import Edges, grouping_of
from disclosure_pipeline.tables.levels import CodedColumn
from disclosure_pipeline.tables.messages import GROUND_TRUTH
from disclosure_pipeline.tables.sources import Columns, Syntheses, TableSource

APART_SAMPLE = 200_000
"""The number of GT records that suffice to estimate whom independently drawn columns find."""


def copies(
    ground_truth: TableSource,
    synthetic: Syntheses,
    targets: Columns = None,
    *,
    unit: Hashable = None,
    events: Events | None = None,
) -> pd.DataFrame:
    """Count SD records that copy a GT record, exactly or nearly, and compare with a fresh sample.

    Args:
        ground_truth: The confidential table, given as in `disclosure()` and read into memory.
        synthetic: The synthetic table, or a sequence of them.
        targets: The column or columns to compare without the others as well.
        unit: The column of GT that says whose record each is, where people have several: see `disclosure()`.
        events: A second table of events of each person: see `disclosure()`.

    Returns:
        Index (synthesis, columns), where `columns` is "all columns", "all but …" for each column that all
        tables have, "targets alone", "all but numbers" if there are several numbers, and "… alone" for each
        text or date that some GT record has by itself: a near copy is found where the changed column is left
        out. These are the sets, and the figures, of a gate. Percent of SD records: `copies` equal a GT
        record; `unique_copies` equal a GT record that is unique in GT. `copies_others`: percent of
        the GT records that equal another one; `unique_copies_others`: percent of new records of the
        same population that would equal exactly one GT record (Good-Turing); `unique_copies_apart`:
        the same of records whose columns are drawn independently from GT's. Percent of GT records,
        which honest records among copies cannot dilute: `people_copied` are unique in GT and occur in
        SD; `people_copied_expected` would occur in a fresh table of the same size, or in
        independently drawn columns. `…_beyond`: the differences, from the larger of both, in
        percentage points, high is a risk; `…_beyond_se`: their standard errors; `…_by_chance`: the
        largest difference by chance; `…_beyond_chance`: the difference where it exceeds that. Missing
        values equal each other.

    Warns:
        UnitWarning: Records of GT repeat, and no unit was given.

    Raises:
        InputError: No column is in all tables, one has no common kind of value, a target is not in all, or
            the unit is in a synthetic table or lacks values.

    Example:
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> gt = pd.DataFrame({"age": [30, 30, 41, 52], "town": ["a", "a", "b", "c"]})
        >>> sd = pd.DataFrame({"age": [30, 41, 60, 61], "town": ["a", "b", "b", "c"]})
        >>> dp.copies(gt, sd)[["copies", "copies_others", "unique_copies", "people_copied"]]
                                copies  copies_others  unique_copies  people_copied
        synthesis columns
        1         all columns     50.0           50.0           25.0           25.0
                  all but age    100.0           50.0           75.0           50.0
                  all but town    50.0           50.0           25.0           25.0
                  town alone     100.0           50.0           75.0           50.0

    Source: this project's own; Good 1953, "The population frequencies of species and the estimation of
    population parameters".
    """
    if events is not None:
        linked = link_tables(ground_truth, synthetic, unit, events)
        ground_truth, synthetic = linked.ground_truth, linked.synthetic
    tables = read_shared_columns(ground_truth, synthetic)
    columns = tables.code(tables.keys)
    names = [column.name for column in columns]
    target_names = () if targets is None else tuple(_check_targets(targets, names))
    plan = MeasuringPlan((), target_names, grouping_of(), Exclusions(), unit=unit)
    records = count_people(FramesInMemory(tables.frames, ""), columns, plan)
    if unit is None:
        _warn_of_repeats(records)
    measured = measure_record_sets(records)
    without = [f"all but {name}" for name in names]
    in_order = [ALL_COLUMNS, *without, *records.partial]
    rows = {
        (synthesis, label): measured[label, synthesis]
        for synthesis in range(1, len(tables.frames))
        for label in dict.fromkeys(in_order)
        if (label, synthesis) in measured
    }
    return FiguresFrame(build_frame(rows, ["synthesis", "columns"]))


@dataclass(frozen=True)
class ColumnsApart:
    """The chances that a record of independently drawn columns hits a combination that one person has.

    `held`: that person's GT records with the combination. `records`: the GT records that were looked at.
    """

    chances: npt.NDArray[np.float64]
    held: IntArray
    records: int

    @classmethod
    def from_sample(
        cls, sample: PeopleRecords, sets: Sequence[Sequence[CodedColumn]]
    ) -> Iterator[ColumnsApart]:
        """Yield the chances for each set of columns."""
        columns, places = list(sample.columns.values()), {name: k for k, name in enumerate(sample.columns)}
        chances = chances_of_independent_columns(
            [column.codes[0] for column in columns],
            [column.size for column in columns],
            [[places[column.name] for column in of_set] for of_set in sets],
            sample.unit,
        )
        return (cls(*of_set, len(sample.unit)) for of_set in chances)

    def find_shown(self, N_s: int) -> float:
        """Return the percent of GT records that N_s such records show."""
        return found_by_independent_columns(np.repeat(self.chances, self.held), N_s, self.records)


OF_RECORDS = (
    *("unique_copies", "unique_copies_others", "unique_copies_apart"),
    *("unique_copies_beyond", "unique_copies_by_chance"),
)
"""The figures of records that copy one person."""


def measure_record_sets(records: RecordSets) -> dict[tuple[str, int], dict[str, float]]:
    """Return the figures of copies by set of columns, `ALL_COLUMNS` or a label of `partial`, and synthesis.

    Of the partial sets, for which the worst counts, also `OF_RECORDS` with at most one copy per person, as
    `…_once`.
    """
    per_unit = records.records_per_unit
    sets = [records.columns, *(records.sets[label] for label in records.partial)]
    apart_by_set = ColumnsApart.from_sample(records.draw(APART_SAMPLE, 0), sets)
    whole = next(apart_by_set)
    figures = {}
    for synthesis, (sizes, counts) in enumerate(zip(records.sizes, records.whole, strict=True), start=1):
        figures[ALL_COLUMNS, synthesis] = measure_copies(counts, sizes, whole, per_unit)
    for (label, by_synthesis), apart in zip(records.partial.items(), apart_by_set, strict=True):
        for synthesis, (sizes, counts) in enumerate(zip(records.sizes, by_synthesis, strict=True), start=1):
            options = (sizes, apart, per_unit, len(records.partial))
            found = measure_copies(counts, *options)
            # An honest model whose records repeat each other hits the same person many times.
            once = measure_copies(replace(counts, unique=counts.hit_once()), *options)
            figures[label, synthesis] = found | {f"{name}_once": once[name] for name in OF_RECORDS}
    return figures


def measure_whole_copies(opened: OpenedTables, columns: Sequence[CodedColumn]) -> list[dict[str, float]]:
    """Return the figures of copies by all columns for each synthesis of tables in memory."""
    N_d, *N_s = (int(counts.sum()) for counts in columns[0].counts)
    [apart] = ColumnsApart.from_sample(draw_records(opened, columns, APART_SAMPLE, 0), [columns])
    [counted] = count_tables(opened, [CountRequest(columns)])
    of_keys = zip(N_s, counted.keys, strict=True)
    return [measure_copies(select_copies(counts), Sizes(N_d, n), apart) for n, counts in of_keys]


def measure_copies(
    counts: CopyCounts,
    sizes: Sizes,
    columns_apart: ColumnsApart,
    records_per_unit: float = 1,
    comparisons: int = 1,
) -> dict[str, float]:
    """Return the figures of copies by one set of columns in one synthesis: of records and of people.

    `comparisons`: number of sets, of which the worst counts.
    """
    found_apart = columns_apart.find_shown(sizes.N_s)
    people = people_copied(
        counts.people, sizes, found_apart, comparisons, records_per_unit, counts.unique.triples
    )
    hits, apart = counts.unique, hits_of_independent_columns(columns_apart.chances)
    of_records = copies_of(counts, sizes, apart, records_per_unit)
    most = hits_by_chance(hits, sizes, apart, comparisons, records_per_unit)
    by_chance = most - max(of_records.unique_copies_others, apart)
    return {
        **to_row(of_records),
        "unique_copies_by_chance": by_chance,
        "unique_copies_beyond_chance": beyond_chance(of_records.unique_copies_beyond, by_chance),
        **to_row(people),
        "people_copied_beyond_chance": beyond_chance(
            people.people_copied_beyond, people.people_copied_by_chance
        ),
    }


def _warn_of_repeats(records: RecordSets) -> None:
    """Warn if more records repeat than by chance, in all columns or in all but one."""
    columns = records.columns
    N = len(columns[0].tables[0].stored)
    shares = {
        column.name: (column.counts[0] / N)[column.tables[0].codes(slice(0, ENOUGH_RECORDS))]
        for column in columns
    }
    nearly_whole = [
        (records.sets[label], counts[0].people.alone)
        for label, counts in records.partial.items()
        if len(records.sets[label]) == len(columns) - 1
    ]
    repeats = _find_most_repeats([(columns, records.whole[0].people.alone), *nearly_whole], shares, N)
    if repeats > MANY_REPEATS:
        warnings.warn(
            f"{repeats:.0f} % of the records of {GROUND_TRUTH}, beyond chance, equal another record in all "
            "columns or all but one. If people have several records, pass the column that says whose each "
            "is as unit: otherwise they count as other people's.",
            UnitWarning,
            stacklevel=3,
        )


MOST_CELLS = 1_000_000_000
"""The most values compared to find out whether records repeat: a minute or less."""

_FEWEST_SETS = 3


def find_repeats(opened: OpenedTables, columns: Sequence[CodedColumn]) -> tuple[float, float]:
    """Return the percent of GT records that equal another in all columns, and the percent of repeats.

    Repeats equal another record in all columns or all but one, beyond what independently drawn columns
    show; see `MANY_REPEATS`. In very large, wide tables only the columns with the most levels are left out
    in turn: what changes between a person's records is a time, an amount or the like.
    """
    N = int(columns[0].counts[0].sum())
    shares = {
        column.name: (column.counts[0] / column.counts[0].sum())[column.codes[0]]
        for column in opened.code_records(columns, ENOUGH_RECORDS, 0)
    }
    alone = _count_alone(opened, columns, N)
    nearly_whole = [entry for entry in alone if len(entry[0]) >= len(columns) - 1]
    return percent(N - alone[0][1], N), _find_most_repeats(nearly_whole, shares, N)


def _find_most_repeats(
    alone: Iterable[tuple[Sequence[CodedColumn], int]], shares: Mapping[Any, Floats], records: int
) -> float:
    """Return the largest repeats beyond chance (`repeats_beyond_independence`) of these sets of columns."""
    return max(
        repeats_beyond_independence(records - number, [shares[column.name] for column in column_set], records)
        for column_set, number in alone
    )


def _count_alone(
    opened: OpenedTables, columns: Sequence[CodedColumn], records: int
) -> list[tuple[Sequence[CodedColumn], int]]:
    """Return sets of columns, all of them first, each with the number of records that are unique in it."""
    if records * len(columns) ** 2 <= MOST_CELLS:
        of_all, _ = count_record_sets(opened, columns)
        alone = [counts[0].people.alone for counts in of_all.partial.values()]
        return [(columns, of_all.whole[0].people.alone), *zip(of_all.sets.values(), alone, strict=True)]
    by_levels = sorted(columns, key=lambda column: -int((column.counts[0] > 0).sum()))
    left_out = by_levels[: max(_FEWEST_SETS, MOST_CELLS // (records * len(columns)))]
    chosen = [columns, *([column for column in columns if column is not other] for other in left_out)]
    counted = count_tables(opened, [CountRequest(column_set) for column_set in chosen])
    return [
        (column_set, counts.keys[0].people.alone) for column_set, counts in zip(chosen, counted, strict=True)
    ]


def _check_targets(targets: Any, shared: Sequence[Any]) -> list[Any]:
    is_one_name = isinstance(targets, str) or not isinstance(targets, Iterable)
    names = [targets] if is_one_name else list(targets)
    for name in names:
        if name not in shared:
            raise InputError(f"Target {name!r} is not in all tables.")
    if not names:
        raise InputError("targets is empty: name at least one column, or leave the argument out.")
    return names


Which = Literal["replicated", "in_original"]


@dataclass(frozen=True, repr=False, eq=False)
class ReplicatedUniques:
    """The synthetic records whose key combination is unique in their table.

    `replicated`: those that are also unique in GT; `in_original`: those that occur in GT, unique or not. Both
    have a mask over the records of each synthesis. `figures`: index synthesis; n_replicated and
    n_in_original, numbers of records; pct_replicated and pct_in_original, percent of the SD records.
    """

    keys: tuple[Any, ...]
    replicated: tuple[npt.NDArray[np.bool_], ...]
    in_original: tuple[npt.NDArray[np.bool_], ...]
    figures: pd.DataFrame
    _syntheses: tuple[pd.DataFrame, ...]

    def remove(self, which: Which = "replicated") -> tuple[pd.DataFrame, ...]:
        """Return each synthesis without its records of this kind, as a pandas frame with its index.

        For a Polars table, use `table.filter(~uniques.replicated[0])`.
        """
        if which not in {"replicated", "in_original"}:
            raise InputError(f"which must be 'replicated' or 'in_original', not {which!r}.")
        masks = self.replicated if which == "replicated" else self.in_original
        return tuple(frame.loc[~mask].copy() for frame, mask in zip(self._syntheses, masks, strict=True))

    def __str__(self) -> str:
        return (
            f"Records that are unique in the keys {', '.join(map(str, self.keys))}\n\n"
            f"{format_frame(self.figures)}"
        )

    __repr__ = __str__


def replicated_uniques(
    ground_truth: TableSource,
    synthetic: Syntheses,
    keys: Sequence[Hashable],
    *,
    groups: Mapping[Any, int] | None = None,
    special_values: Mapping[Any, Sequence[float]] | None = None,
    edges: Edges = "pooled",
) -> ReplicatedUniques:
    """Find the synthetic records that identify one person.

    Arguments and errors as in `disclosure()`; the tables are read into memory.

    Example:
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> patients = pd.DataFrame({"sex": ["f", "f", "m", "m"], "age": [30, 40, 50, 50]})
        >>> synthetic = pd.DataFrame({"sex": ["f", "m", "m"], "age": [30, 50, 60]})
        >>> uniques = dp.replicated_uniques(patients, synthetic, ["sex", "age"])
        >>> uniques.replicated[0].tolist(), uniques.in_original[0].tolist()
        ([True, False, False], [True, True, False])
        >>> [without] = uniques.remove()
        >>> without
          sex  age
        1   m   50
        2   m   60

    Source: synthpop `replicated.uniques`.
    """
    grouping = grouping_of(groups, special_values, edges)
    frames = read_frames(ground_truth, synthetic, grouping.numeric)
    tables = check_tables(frames[0], frames[1:], keys, (), grouping)
    key_columns = tables.code(tables.keys)
    warn_of_doubts(find_doubts(tables, key_columns))
    q = combine_columns(key_columns)
    syntheses = tables.frames[1:]
    replicated, in_original = zip(
        *(mark_unique_records(q, i + 1) for i in range(len(syntheses))), strict=True
    )
    figures: dict[str, list[float]] = {}
    for name, masks in (("replicated", replicated), ("in_original", in_original)):
        numbers = [int(mask.sum()) for mask in masks]
        figures[f"n_{name}"] = list(numbers)
        figures[f"pct_{name}"] = [percent(n, len(mask)) for n, mask in zip(numbers, masks, strict=True)]
    index = pd.RangeIndex(1, len(syntheses) + 1, name="synthesis")
    return ReplicatedUniques(
        tables.keys, replicated, in_original, pd.DataFrame(figures, index=index), syntheses
    )
