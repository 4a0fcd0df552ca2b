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
from disclosure_pipeline.evaluation.arguments import Exclusions, require_names, require_whole_number
from disclosure_pipeline.evaluation.boxed_people import (
    GT,
    SD,
    BoxedPeople,
    BoxedTables,
    MatchCounter,
    count_nearly_whole,
)
from disclosure_pipeline.evaluation.copies import measure_record_sets
from disclosure_pipeline.evaluation.counts import FEWEST_OF_GROUP, MeasuringPlan, WholeRecords
from disclosure_pipeline.evaluation.found_groups import MOST_PEOPLE, find_in_groups
from disclosure_pipeline.evaluation.found_pieces import find_in_pieces
from disclosure_pipeline.evaluation.frames import FiguresFrame, build_frame, to_row
from disclosure_pipeline.evaluation.record_sets import (
    PeopleRecords,
    RecordSets,
    code_shared_columns,
    count_people,
    count_whole_records,
)
from disclosure_pipeline.measures.copies import ALL_COLUMNS
from disclosure_pipeline.measures.exact import IntArray, percent
from disclosure_pipeline.measures.found import (
    ALL_BUT_ONE,
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
from disclosure_pipeline.measures.words import SYNTHETIC, Basis
from disclosure_pipeline.tables.grouping import grouping_of
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

    `compared` are the columns in words, with "{}" for the `names` of some. `basis`: what the figures count,
    GT's records or the synthetic records that copy one person.
    """

    way: str
    figures: Found
    compared: str = ALL_COLUMNS
    names: Sequence[Any] = ()
    tolerance: float = 0.0
    groups: Sequence[Any] = ()
    basis: Basis = "records"

    @property
    def where(self) -> str:
        """By which columns people are found, within which tolerance, in which group; names are quoted."""
        within = f"within {100 * self.tolerance:g} %" if self.tolerance else ""
        columns = self.compared.format(_quote(self.names))
        if self.way in {IN_PIECES, NEARLY_IN_PIECES}:
            return f"with {columns} {within or 'alike'}"
        parts = (
            f"alike in {columns}" if columns != ALL_COLUMNS else "",
            f"with numbers {within}" if within else "",
            f"among those of one group of {_quote(self.groups)}" if self.groups else "",
        )
        return ", ".join(filter(None, parts))

    def describe(self) -> dict[str, Any]:
        """Return columns, tolerance, group and basis as `found()` has them."""
        return {
            "columns": self.compared.format(", ".join(map(str, self.names))),
            "tolerance": self.tolerance,
            "group": ", ".join(map(str, self.groups)),
            "basis": self.basis,
        }


def _quote(names: Sequence[Any]) -> str:
    return " and ".join(filter(None, (", ".join(map(quote_name, names[:-1])), *map(quote_name, names[-1:]))))


def measure_found(
    records: RecordSets, measured: Mapping[tuple[str, int], Mapping[str, float]], plan: WholeRecords
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the people found in each of the `WAYS` in each synthesis, and the detection limits.

    Index (way, synthesis), and synthesis.

    `records` are of all shared columns; `measured`: `measure_record_sets` of them. Nobody is found in a way
    that does not apply to the tables. Without `plan.nearness`, only equal values are looked for and the other
    ways are NaN.
    """
    sample = records.draw(MOST_RECORDS, plan.seed)
    rows, limits = {}, {}
    for synthesis, sizes in enumerate(records.sizes, start=1):
        near = _NOT_LOOKED_FOR
        if plan.nearness:
            near = find_near(sample, [synthesis], plan.keys, seed=plan.seed, fewest=plan.smallest_count)
        otherwise = _NOBODY if plan.nearness else _UNKNOWN
        by_way = dict.fromkeys(WAYS, FoundRow("", otherwise))
        by_way |= {row.way: row for row in (*find_equal(measured, records, synthesis), *near.rows)}
        alone = records.whole[synthesis - 1].people.alone
        equal = read_equal(measured[ALL_COLUMNS, synthesis], alone, sizes.N_d)
        limits[synthesis] = _find_limits(equal, near, sizes, plan.bounds, records.records_per_unit)
        for way, row in by_way.items():
            bounded = {"found_beyond_chance": row.figures.bounded}
            rows[way, synthesis] = {"where": row.where, "basis": row.basis, **to_row(row.figures), **bounded}
    found = build_frame(rows, ["way", "synthesis"])
    return found, pd.DataFrame.from_dict(limits, orient="index").rename_axis(index="synthesis")


_NOBODY = Found(0.0, 0.0, 0.0, 0.0, 0.0, 0)
_UNKNOWN = Found(math.nan, math.nan, math.nan, math.nan, math.nan, 0)


def measure_found_together(opened: OpenedTables, plan: MeasuringPlan) -> pd.DataFrame:
    """Return the people found in one table of all releases: index (way, releases)."""
    records = count_people(opened, code_shared_columns(opened, plan.grouping), plan)
    found_in, _ = measure_found(records, measure_record_sets(records), plan.whole_records or WholeRecords())
    return found_in.rename_axis(index=["way", "releases"])


def measure_detection_limits(opened: OpenedTables, plan: MeasuringPlan) -> dict[str, float]:
    """Return the detection limits of a candidate like the one synthesis, in percent of the people."""
    records = count_whole_records(opened, plan)
    [whole], [sizes] = records.whole, records.sizes
    measured = measure_record_sets(records)
    sample = records.draw(MOST_RECORDS, 0)
    tables = prepare_tables(sample, [1])
    rng = np.random.default_rng([0, 5])
    people = tables.draw_people(PEOPLE, rng, tables.halves)
    near = find_nearly(tables, people, list(sample.columns), rng)
    equal = read_equal(measured[ALL_COLUMNS, 1], whole.people.alone, sizes.N_d)
    bounds = (plan.whole_records or WholeRecords()).bounds
    return _find_limits(equal, near, sizes, bounds, records.records_per_unit)


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
    records: PeopleRecords,
    tables: Sequence[int],
    keys: Sequence[Any],
    *,
    seed: int = 0,
    fewest: int = FEWEST_OF_GROUP,
) -> NearPeople:
    """Find people in the records of some tables, stacked, in the `WAYS` that are not of equality.

    An intruder knows the columns `keys`. The order of the records makes no difference.
    """
    names = list(records.columns)
    boxed_tables = prepare_tables(records, tables)
    rng = np.random.default_rng([seed, 5])
    people = boxed_tables.draw_people(PEOPLE, rng, boxed_tables.halves)
    near = find_nearly(boxed_tables, people, names, rng)
    rows = list(near.rows)
    known = tuple(k for k, name in enumerate(names) if name in keys)
    first = [known, tuple(k for k in range(len(names)) if k not in known)]
    for way, places in (("in pieces", (0,)), ("nearly in pieces", (1, 2, 3))):
        piece = find_in_pieces(boxed_tables, people, first, places, rng)
        if piece is not None:
            by = [names[k] for k in piece.columns]
            rows.append(FoundRow(way, piece.figures, "{}", by, TOLERANCES[piece.place]))
    everybody = boxed_tables.draw_people(MOST_PEOPLE, rng, boxed_tables.whole)
    groups = find_in_groups(boxed_tables, everybody, fewest)
    for way, group in zip(("in a group", "in part of a number"), groups, strict=True):
        if group is not None:
            within = list(dict.fromkeys(names[one.column] for one in group.groups))
            rows.append(FoundRow(way, group.figures, tolerance=TOLERANCES[group.place], groups=within))
    return replace(near, rows=rows)


def prepare_tables(records: PeopleRecords, tables: Sequence[int]) -> BoxedTables:
    """Sort GT's and the stacked tables' records by value, as draws must not depend on their order."""
    columns = records.columns.values()
    boxes = [BoxColumn.from_coded(column).select([[0], tables], [None, None]) for column in columns]
    orders = [np.lexsort([column.codes[table] for column in boxes]) for table in (GT, SD)]
    in_order = [column.select([[GT], [SD]], orders) for column in boxes]
    return BoxedTables(in_order, records.unit[orders[GT]])


def find_equal(
    measured: Mapping[tuple[str, int], Mapping[str, float]], records: RecordSets, synthesis: int
) -> list[FoundRow]:
    """Return the people found by all columns, and by smaller sets of them, in a synthesis.

    Everybody is looked at: `people_copied`, or where it is more, `unique_copies`, in percent of SD's records.
    `measured`: `measure_record_sets` of `records`.
    """
    N_d = records.sizes[0].N_d
    alone = {ALL_COLUMNS: records.whole[synthesis - 1].people.alone}
    alone |= {label: counts[synthesis - 1].people.alone for label, counts in records.partial.items()}
    names = {column.name for of_set in records.sets.values() for column in of_set}
    forms = {form.format(name): (form, (name,)) for name in names for form in ("all but {}", "{} alone")}
    in_each_way: dict[str, list[FoundRow]] = {}
    for label, number in alone.items():
        of_set = measured[label, synthesis]
        way, end = (WHOLE, "") if label == ALL_COLUMNS else (ALL_BUT_ONE, "_once")
        of_people, of_records = read_equal(of_set, number, N_d, end)
        rows = in_each_way.setdefault(way, [])
        compared, named = forms.get(label, (label, ()))
        rows.append(FoundRow(way, of_people, compared, named))
        rows.append(FoundRow(way, of_records, compared, named, basis=SYNTHETIC))
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
    counters = [MatchCounter(boxed.find_matches(table, tables.halves), len(people)) for table in (GT, SD)]
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
    boxes = Boxes.around(tables.columns, drawn, SD)
    counter = MatchCounter(find_matches(boxes, SD, tables.halves), len(drawn))
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
        `expected` would be; where `basis` is "synthetic records", the last two are percent of the synthetic
        records that show one person. `found`: the difference in percent of the people or of SD's records,
        whichever are fewer, high is a risk; `found_by_chance`: the largest by chance; `found_beyond_chance`:
        `found` where it exceeds that, otherwise at most 0. `people`: records looked at. A way that does not
        apply to the tables is left out.

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
    known = require_names("keys", keys)
    for key in known:
        if key not in tables.keys:
            raise InputError(f"Key {key!r} is not in all tables. {suggest_names(key, tables.keys)}")
    opened = FramesInMemory(tables.frames, "")
    numbers = list(range(1, len(tables.frames)))
    by_file = _count_shared(opened, unit)
    sample = by_file.draw(max(opened.records), 0)
    stacks = [(str(n), [n], equal) for n, equal in zip(numbers, _find_equal(by_file), strict=True)]
    if len(numbers) > 1:
        [equal] = _find_equal(_count_shared(opened.stack_syntheses(), unit))
        stacks.append((ALL_TABLES, numbers, equal))
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for table, stacked, equal in stacks:
        near = find_near(sample, stacked, known, seed=seed, fewest=smallest_count)
        rows |= {
            (table, row.way): {
                **row.describe(),
                **to_row(row.figures),
                "found_beyond_chance": row.figures.bounded,
            }
            for row in (*equal, *near.rows)
        }
    return FiguresFrame(build_frame(rows, ["table", "way"]))


def _count_shared(opened: OpenedTables, unit: Hashable | None) -> RecordSets:
    plan = MeasuringPlan((), (), grouping_of(), Exclusions(), unit=unit)
    return count_people(opened, code_shared_columns(opened, plan.grouping), plan)


def _find_equal(records: RecordSets) -> list[list[FoundRow]]:
    measured = measure_record_sets(records)
    return [find_equal(measured, records, synthesis) for synthesis in range(1, len(records.whole) + 1)]
