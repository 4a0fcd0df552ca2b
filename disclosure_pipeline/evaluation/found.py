"""`found()`: the people whom a synthetic record shows, in every way in which it may be a copy."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
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
    code_shared_columns,
    count_record_sets,
)
from disclosure_pipeline.evaluation.found_groups import MOST_PEOPLE, find_in_groups
from disclosure_pipeline.evaluation.found_pieces import find_in_pieces
from disclosure_pipeline.evaluation.frames import FiguresFrame, build_frame, list_figures, to_row
from disclosure_pipeline.evaluation.population import PeopleRecords, count_sets_by_unit, read_records
from disclosure_pipeline.measures.exact import IntArray, percent, total
from disclosure_pipeline.measures.found import TOLERANCES, Found, OwnCoverage
from disclosure_pipeline.measures.found import found as compare
from disclosure_pipeline.runtime.progress import ignore_progress
from disclosure_pipeline.tables.alignment import number_owners, require_unit
from disclosure_pipeline.tables.grouping import grouping_of
from disclosure_pipeline.tables.levels import CodedColumn
from disclosure_pipeline.tables.messages import suggest_names
from disclosure_pipeline.tables.sources import Syntheses, TableSource

PEOPLE = 2_000
"""The most GT records of which a near copy is looked for."""

ALL_TABLES = "all"

WAYS = (
    "whole",
    "all but one",
    "nearly",
    "in pieces",
    "nearly in pieces",
    "in a group",
    "in part of a number",
)
"""The ways in which people may be found."""


@dataclass(frozen=True)
class FoundRow:
    """People found in one way: by which columns, within which tolerance, in which group; with the figures."""

    way: str
    columns: str
    tolerance: float
    group: str
    figures: Found


def measure_found(
    columns: Sequence[CodedColumn],
    tables: Sequence[int],
    keys: Sequence[Any],
    *,
    unit: IntArray | None = None,
    seed: int = 0,
    fewest: int = FEWEST_OF_GROUP,
) -> list[FoundRow]:
    """Return the people found in the records of some tables, stacked, in each of the `WAYS`.

    `columns` have codes for single records, and are not grouped; of the columns, those of `keys` are known to
    an intruder. The order of the records makes no difference.
    """
    boxed_tables = prepare_tables(columns, tables, unit)
    names = [column.name for column in columns]
    rng = np.random.default_rng([seed, 5])
    people = boxed_tables.draw_people(PEOPLE, rng)
    rows = list(_find_nearly(boxed_tables, people, names, rng))
    known = tuple(k for k, name in enumerate(names) if name in keys)
    first = [known, tuple(k for k in range(len(names)) if k not in known)]
    for way, places in (("in pieces", (0,)), ("nearly in pieces", (1, 2, 3))):
        piece = find_in_pieces(boxed_tables, people, first, places, rng)
        if piece is not None:
            by = ", ".join(str(names[k]) for k in piece.columns)
            rows.append(FoundRow(way, by, TOLERANCES[piece.place], "", piece.figures))
    everybody = boxed_tables.draw_people(MOST_PEOPLE, rng)
    groups = find_in_groups(boxed_tables, everybody, fewest)
    for way, group in zip(("in a group", "in part of a number"), groups, strict=True):
        if group is not None:
            where = ", ".join(dict.fromkeys(str(names[one.column]) for one in group.groups))
            rows.append(FoundRow(way, ALL_COLUMNS, TOLERANCES[group.place], where, group.figures))
    return rows


def prepare_tables(
    columns: Sequence[CodedColumn], tables: Sequence[int], unit: IntArray | None
) -> BoxedTables:
    """Sort GT's and the stacked tables' records by value, as draws must not depend on their order."""
    boxes = [BoxColumn.from_coded(column).select([[0], tables], [None, None]) for column in columns]
    orders = [np.lexsort([column.codes[table] for column in boxes]) for table in (GT, SD)]
    in_order = [column.select([[GT], [SD]], orders) for column in boxes]
    return BoxedTables(in_order, None if unit is None else unit[orders[GT]])


def find_equal(
    opened: OpenedTables,
    columns: Sequence[CodedColumn],
    records: RecordSets,
    units: PeopleRecords | None = None,
) -> list[list[FoundRow]]:
    """Return the people found by all columns, and by all but one, for each synthesis: `people_copied`.

    Everybody is looked at. `records` are counts of units if `units` says whose each record is.
    """
    measured = measure_record_sets(opened, columns, records, units)
    N_d = total(columns[0].counts[0])
    rows = []
    for synthesis, keys in enumerate(records.whole, start=1):
        alone = {ALL_COLUMNS: keys.people.alone}
        alone |= {label: counts[synthesis - 1].people.alone for label, counts in records.partial.items()}
        in_each_way: dict[str, list[FoundRow]] = {}
        for label, number in alone.items():
            of_set = measured[label, synthesis]
            figures = Found(
                percent(number, N_d),
                of_set["people_copied"],
                of_set["people_copied_expected"],
                of_set["people_copied_beyond"],
                of_set["people_copied_by_chance"],
                N_d,
            )
            way = "whole" if label == ALL_COLUMNS else "all but one"
            in_each_way.setdefault(way, []).append(FoundRow(way, label, 0.0, "", figures))
        rows.append([_find_worst(of_way) for of_way in in_each_way.values()])
    return rows


def _find_worst(rows: Iterable[FoundRow]) -> FoundRow:
    return max(rows, key=lambda row: row.figures.rank())


def _find_nearly(
    tables: BoxedTables, people: IntArray, names: Sequence[Any], rng: np.random.Generator
) -> Iterator[FoundRow]:
    """Yield the people found by all columns, or all but one, within a tolerance: the worst."""
    if not any(column.is_number for column in tables.columns):
        return
    boxed = BoxedPeople(tables, people)
    counters = [MatchCounter(boxed.find_matches(table, 1), len(people)) for table in (GT, SD)]
    coverage = _find_coverage(tables, len(people), rng)
    sizes, per_unit = tables.sizes, tables.records_per_unit
    rows = []
    for place in range(1, len(TOLERANCES)):
        counted = count_nearly_whole(boxed, place, counters)
        for left_out, counts in counted.items():
            covered = coverage.get((place, left_out))
            figures = compare(counts, sizes, covered, len(counted), per_unit)
            label = ALL_COLUMNS if left_out is None else f"all but {names[left_out]}"
            rows.append(FoundRow("nearly", label, TOLERANCES[place], "", figures))
    yield _find_worst(rows)


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
            "columns": row.columns,
            "tolerance": row.tolerance,
            "group": row.group,
            **to_row(row.figures),
            "found_beyond_chance": row.figures.bounded,
        }
        for of_equal, (table, stacked) in zip(equal, stacks.items(), strict=True)
        for row in (
            *of_equal,
            *measure_found(columns, stacked, keys, unit=owners, seed=seed, fewest=smallest_count),
        )
    }
    described = ["columns", "tolerance", "group", *list_figures(Found), "found_beyond_chance"]
    return FiguresFrame(build_frame(rows, ["table", "way"], described))


def _find_equal(
    opened: OpenedTables, columns: Sequence[CodedColumn], unit: Hashable | None
) -> list[list[FoundRow]]:
    names = [column.name for column in columns]
    _, records = count_record_sets(opened, [], columns, [])
    if unit is None:
        return find_equal(opened, columns, records)
    require_unit(unit, opened.columns)
    plan = MeasuringPlan((), (), grouping_of(), Exclusions(), unit=unit)
    units = read_records(opened.with_columns([unit]), plan, ignore_progress, names)
    return find_equal(opened, columns, count_sets_by_unit(records, units), units)
