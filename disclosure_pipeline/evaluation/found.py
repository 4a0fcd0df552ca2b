"""`found()`: the people whom a synthetic record shows, in every way in which it may be a copy."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.memory.boxes import BoxColumn, Boxes, find_matches
from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.counting.opening import OpenedTables, read_shared_columns
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.evaluation.arguments import Exclusions, require_whole_number
from disclosure_pipeline.evaluation.boxed_people import (
    GT,
    SD,
    BoxedPeople,
    BoxedTables,
    MatchCounter,
    count_nearly_whole,
)
from disclosure_pipeline.evaluation.copies import ALL_COLUMNS, measure_record_sets
from disclosure_pipeline.evaluation.counts import (
    FEWEST_OF_GROUP,
    MeasuringPlan,
    RecordSets,
    WholeRecords,
    code_shared_columns,
    count_record_sets,
)
from disclosure_pipeline.evaluation.found_groups import MOST_PEOPLE, find_in_groups
from disclosure_pipeline.evaluation.found_pieces import find_in_pieces
from disclosure_pipeline.evaluation.frames import FiguresFrame, build_frame, list_figures, to_row
from disclosure_pipeline.evaluation.population import PeopleRecords, count_sets_by_unit, read_records
from disclosure_pipeline.measures.exact import IntArray, percent, total
from disclosure_pipeline.measures.found import (
    ALL_BUT_ONE,
    BY_RECORDS,
    IN_PIECES,
    NEARLY,
    NEARLY_IN_PIECES,
    TOLERANCES,
    WAYS,
    WHOLE,
    Found,
    OwnCoverage,
    detection_limit,
    detection_limit_of_copies,
)
from disclosure_pipeline.measures.found import found as compare
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.runtime.progress import ignore_progress
from disclosure_pipeline.tables.alignment import number_owners, require_unit
from disclosure_pipeline.tables.grouping import grouping_of
from disclosure_pipeline.tables.levels import CodedColumn
from disclosure_pipeline.tables.messages import quote_name, suggest_names
from disclosure_pipeline.tables.sources import Syntheses, TableSource

PEOPLE = 2_000
"""The most GT records of which a near copy is looked for."""

ALL_TABLES = "all"

MOST_RECORDS = 400_000
"""The most records of each table among which copies are looked for, other than equal ones."""


@dataclass(frozen=True)
class FoundRow:
    """People found in one way: by which columns, within which tolerance, in which group; with the figures.

    `compared` are the columns in words, with "{}" for the `names` of some.
    """

    way: str
    figures: Found
    compared: str = ALL_COLUMNS
    names: Sequence[Any] = ()
    tolerance: float = 0.0
    groups: Sequence[Any] = ()
    is_by_records: bool = False

    @property
    def where(self) -> str:
        """By which columns people are found, within which tolerance, in which group; names are quoted."""
        within = f"within {100 * self.tolerance:g} %" if self.tolerance else ""
        columns = self.compared.format(_quote(self.names))
        if self.way in {IN_PIECES, NEARLY_IN_PIECES}:
            return f"with {columns} {within or 'alike'}"
        parts = (
            BY_RECORDS if self.is_by_records else "",
            f"alike in {columns}" if columns != ALL_COLUMNS else "",
            f"with numbers {within}" if within else "",
            f"among those of one group of {_quote(self.groups)}" if self.groups else "",
        )
        return ", ".join(filter(None, parts))

    def describe(self) -> dict[str, Any]:
        """Return columns, tolerance and group as `found()` has them."""
        return {
            "columns": self.compared.format(", ".join(map(str, self.names))),
            "tolerance": self.tolerance,
            "group": ", ".join(map(str, self.groups)),
        }


def _quote(names: Sequence[Any]) -> str:
    return " and ".join(filter(None, (", ".join(map(quote_name, names[:-1])), *map(quote_name, names[-1:]))))


def measure_found(
    opened: OpenedTables,
    columns: Sequence[CodedColumn],
    measured: Mapping[tuple[str, int], Mapping[str, float]],
    records: RecordSets,
    units: PeopleRecords | None,
    plan: WholeRecords,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the people found in each of the `WAYS` in each synthesis, and the detection limits.

    Index (way, synthesis), and synthesis.

    `columns` are all shared columns, not grouped; `measured`: `measure_record_sets` of their `records`.
    Nobody is found in a way that does not apply to the tables. Without `plan.nearness`, only equal values
    are looked for and the other ways are NaN.
    """
    if units is not None:
        coded, unit = list(units.columns.values()), units.unit
    else:
        coded, unit = list(opened.code_records(columns, MOST_RECORDS, plan.seed)), None
    N_d, *N_s = (total(counts) for counts in columns[0].counts)
    rows, limits = {}, {}
    for synthesis in range(1, len(N_s) + 1):
        near = _NOT_LOOKED_FOR
        if plan.nearness:
            near = find_near(
                coded, [synthesis], plan.keys, unit=unit, seed=plan.seed, fewest=plan.smallest_count
            )
        otherwise = _NOBODY if plan.nearness else _UNKNOWN
        by_way = dict.fromkeys(WAYS, FoundRow("", otherwise))
        by_way |= {row.way: row for row in (*find_equal(measured, records, synthesis, N_d), *near.rows)}
        equal = read_equal(measured[ALL_COLUMNS, synthesis], records.whole[synthesis - 1].people.alone, N_d)
        per_unit = units.records_per_unit if units else 1.0
        limits[synthesis] = _find_limits(equal, near, Sizes(N_d, N_s[synthesis - 1]), plan.bounds, per_unit)
        for way, row in by_way.items():
            bounded = {"found_beyond_chance": row.figures.bounded}
            rows[way, synthesis] = {"where": row.where, **to_row(row.figures), **bounded}
    found = build_frame(rows, ["way", "synthesis"], ["where", *list_figures(Found), "found_beyond_chance"])
    return found, pd.DataFrame.from_dict(limits, orient="index").rename_axis(index="synthesis")


_NOBODY = Found(0.0, 0.0, 0.0, 0.0, 0.0, 0)
_UNKNOWN = Found(math.nan, math.nan, math.nan, math.nan, math.nan, 0)


def measure_found_together(opened: OpenedTables, plan: MeasuringPlan) -> pd.DataFrame:
    """Return the people found in one table of all releases: index (way, releases)."""
    columns, records, units = _count_sets(opened, plan)
    measured = measure_record_sets(opened, columns, records, units)
    whole = plan.whole_records or WholeRecords()
    found_in, _ = measure_found(opened, columns, measured, records, units, whole)
    return found_in.rename_axis(index=["way", "releases"])


def measure_detection_limits(opened: OpenedTables, plan: MeasuringPlan) -> dict[str, float]:
    """Return the detection limits of a candidate like the one synthesis, in percent of the people."""
    columns, records, units = _count_sets(opened, plan)
    [whole], bounds = records.whole, (plan.whole_records or WholeRecords()).bounds
    measured = measure_record_sets(opened, columns, replace(records, partial={}), units)
    coded = list(units.columns.values()) if units else list(opened.code_records(columns, MOST_RECORDS, 0))
    tables = prepare_tables(coded, [1], units.unit if units else None)
    rng = np.random.default_rng([0, 5])
    near = find_nearly(tables, tables.draw_people(PEOPLE, rng), [column.name for column in columns], rng)
    sizes = Sizes(*(total(counts) for counts in columns[0].counts))
    equal = read_equal(measured[ALL_COLUMNS, 1], whole.people.alone, sizes.N_d)
    return _find_limits(equal, near, sizes, bounds, units.records_per_unit if units else 1.0)


def _count_sets(
    opened: OpenedTables, plan: MeasuringPlan
) -> tuple[Sequence[CodedColumn], RecordSets, PeopleRecords | None]:
    columns = code_shared_columns(opened, plan.grouping, ignore_progress)
    _, records = count_record_sets(opened, [], columns, plan.targets)
    units = None
    if plan.unit is not None:
        names = [column.name for column in columns]
        of_unit = replace(plan, weights=None)
        units = read_records(opened.with_columns([plan.unit]), of_unit, ignore_progress, names)
        records = count_sets_by_unit(records, units)
    return columns, records, units


@dataclass(frozen=True)
class NearPeople:
    """The people found in the `WAYS` that are not of equality.

    others: by person looked at, the number of other people with equal values in all columns. nearly: the
    figures of all columns within the smallest tolerance, and the number of other people there; None without
    numbers.
    """

    rows: list[FoundRow]
    others: IntArray
    nearly: tuple[Found, IntArray] | None


_NOT_LOOKED_FOR = NearPeople([], np.empty(0, dtype=np.int64), None)


def _find_limits(
    equal: tuple[Found, Found],
    near: NearPeople,
    sizes: Sizes,
    bounds: Mapping[str, float],
    records_per_unit: float,
) -> dict[str, float]:
    """Return the detection limits of people who are shown unchanged, or within the smallest tolerance."""
    limit = detection_limit_of_copies(*equal, near.others, sizes, bounds[WHOLE], records_per_unit)
    nearly = limit
    if near.nearly is not None:
        nearly = detection_limit(*near.nearly, sizes, bounds[NEARLY], records_per_unit)
    return {"detection_limit": limit, "detection_limit_nearly": nearly}


def find_near(
    columns: Sequence[CodedColumn],
    tables: Sequence[int],
    keys: Sequence[Any],
    *,
    unit: IntArray | None = None,
    seed: int = 0,
    fewest: int = FEWEST_OF_GROUP,
) -> NearPeople:
    """Find people in the records of some tables, stacked, in the `WAYS` that are not of equality.

    `columns` have codes for single records, and are not grouped; of the columns, those of `keys` are known to
    an intruder. The order of the records makes no difference.
    """
    boxed_tables = prepare_tables(columns, tables, unit)
    names = [column.name for column in columns]
    rng = np.random.default_rng([seed, 5])
    people = boxed_tables.draw_people(PEOPLE, rng)
    near = find_nearly(boxed_tables, people, names, rng)
    rows = list(near.rows)
    known = tuple(k for k, name in enumerate(names) if name in keys)
    first = [known, tuple(k for k in range(len(names)) if k not in known)]
    for way, places in (("in pieces", (0,)), ("nearly in pieces", (1, 2, 3))):
        piece = find_in_pieces(boxed_tables, people, first, places, rng)
        if piece is not None:
            by = [names[k] for k in piece.columns]
            rows.append(FoundRow(way, piece.figures, "{}", by, TOLERANCES[piece.place]))
    everybody = boxed_tables.draw_people(MOST_PEOPLE, rng)
    groups = find_in_groups(boxed_tables, everybody, fewest)
    for way, group in zip(("in a group", "in part of a number"), groups, strict=True):
        if group is not None:
            within = list(dict.fromkeys(names[one.column] for one in group.groups))
            rows.append(FoundRow(way, group.figures, tolerance=TOLERANCES[group.place], groups=within))
    return replace(near, rows=rows)


def prepare_tables(
    columns: Sequence[CodedColumn], tables: Sequence[int], unit: IntArray | None
) -> BoxedTables:
    """Sort GT's and the stacked tables' records by value, as draws must not depend on their order."""
    boxes = [BoxColumn.from_coded(column).select([[0], tables], [None, None]) for column in columns]
    orders = [np.lexsort([column.codes[table] for column in boxes]) for table in (GT, SD)]
    in_order = [column.select([[GT], [SD]], orders) for column in boxes]
    return BoxedTables(in_order, None if unit is None else unit[orders[GT]])


def find_equal(
    measured: Mapping[tuple[str, int], Mapping[str, float]], records: RecordSets, synthesis: int, N_d: int
) -> list[FoundRow]:
    """Return the people found by all columns, and by smaller sets of them, in a synthesis.

    Everybody is looked at: `people_copied`, or where it is more, `unique_copies`, in percent of SD's records.
    `measured`: `measure_record_sets` of `records`.
    """
    alone = {ALL_COLUMNS: records.whole[synthesis - 1].people.alone}
    alone |= {label: counts[synthesis - 1].people.alone for label, counts in records.partial.items()}
    names = {column.name for column_set in records.columns.values() for column in column_set}
    forms = {form.format(name): (form, (name,)) for name in names for form in ("all but {}", "{} alone")}
    in_each_way: dict[str, list[FoundRow]] = {}
    for label, number in alone.items():
        of_set = measured[label, synthesis]
        way, end = (WHOLE, "") if label == ALL_COLUMNS else (ALL_BUT_ONE, "_once")
        of_people, of_records = read_equal(of_set, number, N_d, end)
        rows = in_each_way.setdefault(way, [])
        compared, named = forms.get(label, (label, ()))
        rows.append(FoundRow(way, of_people, compared, named))
        rows.append(FoundRow(way, of_records, compared, named, is_by_records=True))
    return [_find_worst(of_way) for of_way in in_each_way.values()]


def read_equal(of_set: Mapping[str, float], alone: int, N_d: int, end: str = "") -> tuple[Found, Found]:
    """Return the figures of people, and of records that show one person, by a set of columns."""
    of_people = Found(
        percent(alone, N_d),
        of_set["people_copied"],
        of_set["people_copied_expected"],
        of_set["people_copied_beyond"],
        of_set["people_copied_by_chance"],
        N_d,
    )
    of_records = Found(
        percent(alone, N_d),
        of_set[f"unique_copies{end}"],
        max(of_set[f"unique_copies_others{end}"], of_set[f"unique_copies_apart{end}"]),
        of_set[f"unique_copies_beyond{end}"],
        of_set[f"unique_copies_by_chance{end}"],
        N_d,
    )
    return of_people, of_records


def _find_worst(rows: Iterable[FoundRow]) -> FoundRow:
    return max(rows, key=lambda row: row.figures.rank())


def find_nearly(
    tables: BoxedTables, people: IntArray, names: Sequence[Any], rng: np.random.Generator
) -> NearPeople:
    """Find people by all columns, or all but one, within a tolerance: the row is that of the worst."""
    boxed = BoxedPeople(tables, people)
    counters = [MatchCounter(boxed.find_matches(table, 1), len(people)) for table in (GT, SD)]
    others, within = (counters[GT].count(place)[0] for place in (0, 1))
    if not any(column.is_number for column in tables.columns):
        return NearPeople([], others, None)
    coverage = _find_coverage(tables, len(people), rng)
    sizes, per_unit = tables.sizes, tables.records_per_unit
    rows = []
    for place in range(1, len(TOLERANCES)):
        counted = count_nearly_whole(boxed, place, counters)
        for left_out, counts in counted.items():
            covered = coverage.get((place, left_out))
            figures = compare(counts, sizes, covered, len(counted), per_unit)
            row = FoundRow(NEARLY, figures, tolerance=TOLERANCES[place])
            if left_out is not None:
                row = replace(row, compared="all but {}", names=(names[left_out],))
            rows.append(row)
    return NearPeople([_find_worst(rows)], others, (rows[0].figures, within))


def _find_coverage(
    tables: BoxedTables, records: int, rng: np.random.Generator
) -> dict[tuple[int, int | None], OwnCoverage]:
    """Return SD's own coverage by all columns, and by all but each, where SD is larger than GT."""
    if not tables.is_diluted:
        return {}
    drawn = np.sort(rng.permutation(tables.sizes.N_s)[:records])
    counter = MatchCounter(find_matches(Boxes.around(tables.columns, drawn, SD), SD, 1), len(drawn))
    coverage: dict[tuple[int, int | None], OwnCoverage] = {}
    for place in range(1, len(TOLERANCES)):
        whole, but = counter.count(place)
        for left_out, near in [(None, whole), *enumerate(but)]:
            coverage[place, left_out] = OwnCoverage(int(np.count_nonzero(near > 1)), len(drawn))
    return coverage


def found(
    ground_truth: TableSource,
    synthetic: Syntheses,
    keys: Sequence[Hashable] = (),
    *,
    unit: Hashable | None = None,
    seed: int = 0,
    smallest_count: int = FEWEST_OF_GROUP,
) -> pd.DataFrame:
    """Find the people whom nobody else stands near, and whom a synthetic record shows.

    A record shows a person if it has the same categories and, within a tolerance, the same numbers. What
    counts is how many more people are shown than by as many other people's records, by SD with its columns
    permuted, or by SD with one number kept and the rest drawn from people with nearly the same number.

    Args:
        ground_truth: The confidential table, given as in `disclosure()` and read into memory.
        synthetic: The synthetic table, or a sequence of them, which are also looked at as one table.
        keys: The columns that an intruder may know, to be looked at by themselves, and without the others.
        unit: The column of GT that says whose record each is, where people have several: see `disclosure()`.
        seed: The seed of all draws.
        smallest_count: The fewest people of a group.

    Returns:
        Index (table, way); the table is the number of a synthesis, or "all" for all of them stacked. For each
        way the worst: "whole" and "all but one" column, compared for equality; "nearly", all columns or all
        but one within 1, 3 or 10 %; "in pieces" and "nearly in pieces", the set of columns that shows most,
        chosen on one half of the people and read on the other; "in a group", the level of a category, and "in
        part of a number", a tenth or tail of its range, also within another group. `columns`, `tolerance`
        and `group` say which. Percent of the people: `alone` have nobody near, `shown` are shown as well,
        `expected` would be. `found`: the difference in percent of the people or of SD's records, whichever
        are fewer, high is a risk; `found_by_chance`: the largest by chance; `found_beyond_chance`: `found`
        where it exceeds that, otherwise at most 0. `people`: records looked at. A way that does not apply to
        the tables is left out.

    Raises:
        InputError: No column is in all tables, a column has values of different kinds, a key is not in all
            tables, or the unit is in a synthetic table or lacks values.

    Example:
        >>> import numpy as np
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> ages = np.random.default_rng(1).integers(18, 90, (300, 3))
        >>> gt = pd.DataFrame(ages, columns=["a", "b", "c"])
        >>> dp.found(gt, gt + 1).loc["1", "shown"].round(1).loc[["whole", "nearly"]].to_dict()
        {'whole': 0.0, 'nearly': 97.3}

    Source: this project's own; Good & Toulmin 1956; Efron & Thisted 1976.
    """
    require_whole_number("seed", seed, 0)
    require_whole_number("smallest_count", smallest_count, 1)
    tables = read_shared_columns(ground_truth, synthetic)
    columns = tables.code(tables.keys)
    names = [column.name for column in columns]
    if isinstance(keys, str):
        raise InputError(f"keys must be a list of column names, not {keys!r}: write [{keys!r}].")
    for key in keys:
        if key not in names:
            raise InputError(f"Key {key!r} is not in all tables. {suggest_names(key, names)}")
    owners = None if unit is None else number_owners(tables.frames, unit)
    numbers = range(1, len(tables.frames))
    opened: OpenedTables = FramesInMemory(tables.frames, "")
    equal = _find_equal(opened, columns, unit)
    stacks = {str(number): [number] for number in numbers}
    if len(stacks) > 1:
        stacks[ALL_TABLES] = list(numbers)
        opened = opened.stack_syntheses()
        equal += _find_equal(opened, code_shared_columns(opened, grouping_of(), ignore_progress), unit)
    rows = {
        (table, row.way): {
            **row.describe(),
            **to_row(row.figures),
            "found_beyond_chance": row.figures.bounded,
        }
        for of_equal, (table, stacked) in zip(equal, stacks.items(), strict=True)
        for row in (
            *of_equal,
            *find_near(columns, stacked, keys, unit=owners, seed=seed, fewest=smallest_count).rows,
        )
    }
    described = ["columns", "tolerance", "group", *list_figures(Found), "found_beyond_chance"]
    return FiguresFrame(build_frame(rows, ["table", "way"], described))


def _find_equal(
    opened: OpenedTables, columns: Sequence[CodedColumn], unit: Hashable | None
) -> list[list[FoundRow]]:
    names = [column.name for column in columns]
    _, records = count_record_sets(opened, [], columns, [])
    units = None
    if unit is not None:
        require_unit(unit, opened.columns)
        plan = MeasuringPlan((), (), grouping_of(), Exclusions(), unit=unit)
        units = read_records(opened.with_columns([unit]), plan, ignore_progress, names)
        records = count_sets_by_unit(records, units)
    measured = measure_record_sets(opened, columns, records, units)
    N_d, *N_s = (total(counts) for counts in columns[0].counts)
    return [find_equal(measured, records, synthesis, N_d) for synthesis in range(1, len(N_s) + 1)]
