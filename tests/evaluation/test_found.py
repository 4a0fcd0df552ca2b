"""People found: against records compared one by one, properties, and the leaks that it is for."""

import itertools
import math
from collections.abc import Callable
from dataclasses import astuple, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reference import found as reference
from support.sampling import on_some_days

import disclosure_pipeline as dp
from disclosure_pipeline.counting.memory import box_sets
from disclosure_pipeline.counting.memory.box_sets import BoxSet
from disclosure_pipeline.counting.memory.boxes import Block, BoxColumn, count_in_boxes
from disclosure_pipeline.counting.opening import open_tables, read_shared_columns
from disclosure_pipeline.demo.population import population
from disclosure_pipeline.demo.syntheses import synthesise
from disclosure_pipeline.errors import InputError
from disclosure_pipeline.evaluation import boxed_people, found_pieces
from disclosure_pipeline.evaluation.boxed_people import (
    BoxedPeople,
    BoxedTables,
    MatchCounter,
    count_nearly_whole,
)
from disclosure_pipeline.evaluation.counts import plan_measures
from disclosure_pipeline.evaluation.found import _find_coverage, measure_found_together, prepare_tables
from disclosure_pipeline.evaluation.found_pieces import find_in_pieces
from disclosure_pipeline.evaluation.record_sets import PeopleRecords
from disclosure_pipeline.measures.found import (
    TOLERANCES,
    BoxCounts,
    Found,
    OwnCoverage,
    chance_of_columns,
    detection_limit,
    detection_limit_of_copies,
    find_beyond_fresh,
    found,
)
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.tables.grouping import grouping_of

pytestmark = on_some_days

find: Any = dp.found  # pandas' types of a row are too wide

Counted = tuple[BoxCounts, OwnCoverage | None]


def table(seed: int, records: int) -> pd.DataFrame:
    """A category, a number with few values, and numbers with many, of which some are missing."""
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "town": random.choice(["a", "b", "c"], records),
            "rooms": random.integers(1, 5, records),
            "age": random.integers(0, 60, records),
            "wage": random.choice([np.nan, *np.round(np.exp(np.arange(40) / 9), 2)], records),
        }
    )


def rows(frame: pd.DataFrame) -> list[tuple[object, ...]]:
    return [
        tuple(None if pd.isna(value) else value for value in row) for row in frame.itertuples(index=False)
    ]


def box_columns(gt: pd.DataFrame, sd: pd.DataFrame) -> list[Any]:
    tables = read_shared_columns(gt, sd)
    return tables.code(tables.keys)


def box_tables(gt: pd.DataFrame, sd: pd.DataFrame, unit: Any = None) -> BoxedTables:
    columns = {column.name: column for column in box_columns(gt, sd)}
    owners = np.arange(len(gt)) if unit is None else unit
    return prepare_tables(PeopleRecords(columns, owners, np.ones(len(gt))), [1])


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    units=st.booleans(),
    more=st.integers(-20, 40),
    limit=st.sampled_from([("MOST_RECORDS", 1 << 17), ("MOST_RECORDS", 0), ("_MOST_KEPT", 1)]),
)
def test_boxes_of_all_columns_and_all_but_one_are_counted_record_by_record(
    seed: int, units: bool, more: int, limit: tuple[str, int]
) -> None:
    """Also with records that are sorted for each set, and with room for few columns' bits."""
    gt, sd = table(seed, 60), table(seed + 1, 60 + more)
    sd.iloc[:20] = gt.iloc[:20]
    sd["age"] = sd["age"] + np.where(np.arange(len(sd)) < 40, 0, 0.5)  # whose unit is that of GT
    unit = np.random.default_rng(seed).integers(0, 40, len(gt)) if units else np.arange(len(gt))
    # The records are sorted by value: so that each keeps its unit, the rows are compared in that order.
    tables = box_tables(gt, sd, unit)
    order = np.lexsort([column.codes[0] for column in box_columns(gt, sd)])
    records, owners = rows(gt.iloc[order]), unit[order].tolist()
    people = BoxedPeople(tables, np.arange(len(gt)))
    counters, seen = counters_of(people, len(gt)), dict[object, set[int]]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(box_sets, *limit)
        for place, tolerance in enumerate(TOLERANCES):
            for left_out, counts in count_nearly_whole(people, place, counters).items():
                columns = [k for k in range(4) if k != left_out]
                expected = reference.boxes(records, rows(sd), columns, tolerance, owners, seen)
                others, shown, by_columns, by_values = zip(*expected, strict=True)
                assert counts.others.tolist() == list(others)
                assert counts.shown[counts.others == 0].tolist() == [
                    is_shown for number, is_shown in zip(others, shown, strict=True) if not number
                ]
                assert counts.by_columns == pytest.approx(by_columns)
                assert counts.by_values == pytest.approx(by_values)
                figures = found(counts, tables.sizes)
                assert (figures.shown, figures.expected, figures.found) == pytest.approx(
                    reference.found(expected, len(sd))
                )
                assert find_beyond_fresh(counts, tables.sizes) == figures.found
                [by_bits] = people.count_others([[(k, place) for k in columns]])
                assert by_bits.tolist() == list(others)
            # Sets that begin alike, one after the other: longer ones and shorter ones.
            sets: list[BoxSet] = [[(k, place) for k in range(end)] for end in (2, 4, 1, 2)]
            sets += [[(k, place) for k in range(4) if k != left_out] for left_out in range(4)]
            sets += [[(k, 0) for k in range(4)], *([(2, other), (3, other)] for other in (1, 2, 3))]
            for number, counter in enumerate(people.counters):
                by_sorting = [count_in_boxes(people.boxes, number, of_set).tolist() for of_set in sets]
                counted = counter.count(sets, len(people.people))
                assert [of_set.tolist() for of_set in counted] == by_sorting
                with_one = [[count > 0 for count in counts] for counts in by_sorting]
                assert [of_set.tolist() for of_set in counter.find_shown(sets)] == with_one


def counters_of(people: BoxedPeople, records: int) -> list[MatchCounter]:
    return [MatchCounter(people.find_matches(number, people.tables.halves), records) for number in (0, 1)]


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), data=st.data())
def test_any_two_halves_of_the_columns_find_the_same(seed: int, data: st.DataObject) -> None:
    gt, sd = table(seed, 60), table(seed + 1, 60)
    sd.iloc[:20] = gt.iloc[:20]
    people = BoxedPeople(box_tables(gt, sd), np.arange(len(gt)))
    columns = people.tables.columns
    first = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True))
    drawn = [Block(columns, first), Block(columns, [k for k in range(4) if k not in first])]

    def list_matches(halves: list[Block]) -> list[tuple[int, ...]]:
        matches = people.find_matches(1, halves)
        return sorted(zip(matches.person, matches.record, *matches.nearness.T, strict=True))

    assert list_matches(drawn) == list_matches(people.tables.halves)


def test_neither_half_of_the_columns_is_coarse() -> None:
    random = np.random.default_rng(0)
    numbers = {"postcode": 900, "region": 30, "job": 20, "age": 25, "sex": 2, "flag": 2}
    gt = pd.DataFrame({name: random.integers(0, number, 2000) for name, number in numbers.items()})
    gt = gt.astype({name: str for name in gt if name != "age"})
    tables = box_tables(gt, gt)
    dealt = [{tables.columns[k].name for k in half.places} for half in tables.halves]
    assert dealt == [{"postcode", "sex", "flag"}, {"region", "job", "age"}]  # 3,600 and 600 values and ages


def test_fewer_people_are_drawn_where_each_is_compared_with_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boxed_people, "MOST_CANDIDATES", 100_000)
    tables = box_tables(table(1, 2000), table(2, 2000))
    # Few records are near a person in all columns, many in half of them.
    of_blocks = {"whole": tables.whole, "halves": tables.halves}
    drawn = {
        name: len(tables.draw_people(1500, np.random.default_rng(0), blocks))
        for name, blocks in of_blocks.items()
    }
    assert 200 < drawn["halves"] < drawn["whole"] == 1500


def count_whole(gt: pd.DataFrame, sd: pd.DataFrame, *places: int) -> tuple[list[BoxCounts], Sizes]:
    """Count the boxes of all columns with some tolerances, by their places."""
    tables = box_tables(gt, sd)
    people = BoxedPeople(tables, np.arange(len(gt)))
    counters = counters_of(people, len(gt))
    return [count_nearly_whole(people, place, counters)[None] for place in places], tables.sizes


def test_a_copy_shows_everybody_who_is_alone() -> None:
    gt = table(1, 200)
    figures = find(gt, gt).loc["1"]
    assert figures["shown"].tolist() == figures["alone"].tolist()
    assert figures.loc["nearly", "found_beyond_chance"] > 80


def test_the_order_of_records_and_columns_changes_nothing() -> None:
    gt, sd = population(300), synthesise(population(300), 1)
    shuffled = (frame.sample(frac=1, random_state=number) for number, frame in enumerate((gt, sd)))
    pd.testing.assert_frame_equal(find(*shuffled), find(gt, sd))


@pytest.mark.parametrize("times", [0.3, 1, 3])
def test_fresh_people_show_about_as_many_as_expected(times: float) -> None:
    differences = []
    for seed in range(12):
        both, sizes = count_whole(population(500, seed), population(round(500 * times), seed + 50), 1, 3)
        for counts in both:
            by_others = replace(counts, by_columns=np.zeros(500), by_values=np.zeros(500))
            differences.append(found(by_others, sizes).found)
    assert abs(np.mean(differences)) < 4 * np.std(differences) / np.sqrt(len(differences)) + 0.2


BLOCK = ["age", "region", "education", "income"]
LEAKS: dict[str, tuple[str, Any]] = {
    "everybody moved": ("nearly", lambda gt, sd: gt.assign(income=gt["income"] + 1, age=gt["age"] + 1)),
    "a fifth moved": (
        "nearly",
        lambda gt, sd: pd.concat([gt.assign(age=gt["age"] + 1).head(len(gt) // 5), sd[len(gt) // 5 :]]),
    ),
    "two blocks": (
        "in pieces",
        lambda gt, sd: gt.assign(**gt[BLOCK].sample(frac=1, random_state=1).reset_index(drop=True)),
    ),
    "the richest": (
        "in part of a number",
        lambda gt, sd: pd.concat([gt.nlargest(len(gt) // 20, "income"), sd[len(gt) // 20 :]]),
    ),
    "one region": (
        "in a group",
        lambda gt, sd: pd.concat([gt[of_most(gt, gt)], sd[~of_most(gt, sd)]]),
    ),
}
BOUNDS = {"nearly": 10, "in pieces": 30, "nearly in pieces": 15, "in a group": 10, "in part of a number": 30}


def of_most(gt: pd.DataFrame, table: pd.DataFrame) -> pd.Series:
    """Return who lives in the region that has the most people."""
    return table["region"] == gt["region"].mode()[0]


@pytest.mark.parametrize("leak", LEAKS)
def test_leaks_are_found(leak: str) -> None:
    gt = population(1000)
    way, make = LEAKS[leak]
    assert find(gt, make(gt, synthesise(gt, 1))).loc[("1", way), "found_beyond_chance"] > BOUNDS[way]


def test_sets_of_large_tables_are_chosen_on_some_records_and_read_on_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (box_sets, found_pieces):
        monkeypatch.setattr(module, "MOST_RECORDS", 700)
    gt = population(1000)
    _, make = LEAKS["two blocks"]
    in_pieces = find(gt, make(gt, synthesise(gt, 1))).loc[("1", "in pieces")]
    assert in_pieces["found_beyond_chance"] > BOUNDS["in pieces"]
    monkeypatch.undo()
    columns = in_pieces["columns"].split(", ")
    alike = gt.groupby(columns, dropna=False, observed=True)[columns[0]].transform("size")
    alone = 100 * (alike == 1).mean()
    assert in_pieces["alone"] == pytest.approx(alone, abs=3)  # among all records, of half of the people


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    more=st.sampled_from([-20, 0, 40]),
    places=st.sampled_from([(0,), (1, 2, 3)]),
    copied=st.sampled_from([0, 3, 4]),
    apart=st.booleans(),
)
def test_the_set_that_shows_most_of_one_half_is_read_on_the_other(
    seed: int, more: int, places: tuple[int, ...], copied: int, apart: bool
) -> None:
    """Of all sets. Where SD is larger by half, its own coverage is looked at, for which all are drawn.

    `copied` columns of 20 records are those of GT; in the others each age stands `apart`.
    """
    gt, sd = table(seed, 60), table(seed + 1, 60 + more)
    sd.iloc[:20, :copied] = gt.iloc[:20, :copied]
    if apart:
        sd["age"] += 100 * np.maximum(np.arange(len(sd)) - 19, 0)
    tables, seen = box_tables(gt, sd), dict[object, set[int]]()
    records = rows(gt.iloc[np.lexsort([column.codes[0] for column in box_columns(gt, sd)])])

    def count(
        columns: tuple[int, ...], place: int, people: list[int]
    ) -> tuple[BoxCounts, OwnCoverage | None]:
        tolerance = TOLERANCES[place]
        boxes = reference.boxes(records, rows(sd), columns, tolerance, range(60), seen, people)
        covered = reference.coverage(records, rows(sd), columns, tolerance) if more > 30 else None
        counts = BoxCounts(*map(np.array, zip(*boxes, strict=True)))
        return counts, None if covered is None else OwnCoverage(covered, len(sd))

    mixed = np.random.default_rng(seed).permutation(60).tolist()
    every = [columns for size in (2, 3, 4) for columns in itertools.combinations(range(4), size)]
    figures = {}
    for columns, place in itertools.product(every, places):
        counts, coverage = count(columns, place, mixed[:30])
        if (counts.others == 0).sum() >= 2 and (columns != (0, 1) or not place):
            figures[columns, place] = find_beyond_fresh(counts, tables.sizes, coverage)
    piece = find_in_pieces(tables, np.arange(60), [], places, np.random.default_rng(seed))
    assert (piece is None) == (max(figures.values(), default=0) <= 0)
    if piece is not None:
        assert figures[piece.columns, piece.place] == pytest.approx(max(figures.values()))
        counts, coverage = count(piece.columns, piece.place, mixed[30:])
        assert astuple(piece.figures) == pytest.approx(astuple(found(counts, tables.sizes, coverage)))


def test_the_coverage_of_synthetic_records_is_counted_record_by_record() -> None:
    gt, sd = table(1, 60), table(2, 100)
    sd.iloc[:9] = sd.iloc[9:18]
    coverage = _find_coverage(box_tables(gt, sd), 100, np.random.default_rng(0))
    assert len(coverage) == 3 * 5
    for (place, left_out), covered in coverage.items():
        columns = [k for k in range(4) if k != left_out]
        repeated = reference.coverage(rows(gt), rows(sd), columns, TOLERANCES[place])
        assert covered == OwnCoverage(repeated, 100)


@pytest.mark.parametrize("seed", range(3))
def test_honest_tables_are_within_the_bounds(seed: int) -> None:
    gt = population(1000, seed)
    honest = [synthesise(gt, seed), population(1000, seed + 100)]
    beyond = find(gt, honest)["found_beyond_chance"].xs("1", level="table")
    assert all(beyond[way] <= bound for way, bound in BOUNDS.items() if way in beyond)


def test_records_of_ones_own_unit_are_no_other_people() -> None:
    gt = population(100)
    twice = pd.concat([gt.assign(person=range(100))] * 2)
    by_units = find(twice, gt, unit="person")
    assert by_units.loc[("1", "nearly"), "alone"] > 90
    assert find(twice.drop(columns="person"), gt).loc[("1", "nearly"), "alone"] == 0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        *(({"keys": keys}, "must be a list") for keys in ("age", None, 3)),
        ({"keys": ["age", "age"]}, "more than once"),
        ({"keys": ["agee"]}, "'agee' is not in all tables"),
        ({"smallest_count": 0}, "smallest_count"),
        ({"seed": -1}, "seed"),
    ],
)
def test_wrong_arguments_are_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        find(population(50), population(50), **wrong)


SECONDS = {"days": 86_400, "hours": 3_600}


@pytest.mark.parametrize(
    "kind", ["whole numbers", "hundredths", "twelve values", "days", "hours", "durations"]
)
def test_who_is_near_in_each_unit_in_fractions(kind: str) -> None:
    """Of dates, which have no zero, the size is the width of their middle nine tenths."""
    number = np.random.default_rng(1).integers(1, 900 if kind == "hundredths" else 90, 600)
    if kind == "twelve values":
        number = number % 12
    time = pd.to_timedelta(number * SECONDS.get(kind, 1), "s")
    stored = {"hundredths": number / 100, "durations": time}
    frame = pd.DataFrame(
        {"x": pd.Timestamp("2000-01-01") + time if kind in SECONDS else stored.get(kind, number)}
    )
    [column] = map(BoxColumn.from_coded, box_columns(frame, frame))
    values: list[int] = number.tolist()
    width, unit = sorted(values)[569] - sorted(values)[29], int(kind != "hundredths")
    for tolerance in TOLERANCES:
        low, high = column.find_windows(column.codes[0], tolerance)
        for place, value in enumerate(values):
            size = Fraction(width) if kind in SECONDS else max(Fraction(value), Fraction(width, 10))
            most = max(math.floor(Fraction(str(tolerance)) * size), unit)
            if kind == "twelve values" or not tolerance:
                most = 0
            near = column.codes[0][abs(number - value) <= most]
            assert (low[place], high[place]) == (near.min(), near.max())


def test_dates_are_near_in_their_own_unit() -> None:
    days = np.random.default_rng(1).integers(0, 4000, (200, 2))
    gt = pd.DataFrame(
        {name: pd.Timestamp("2000-01-01") + pd.to_timedelta(days[:, k], "D") for k, name in enumerate("ab")}
    )
    moved = gt + pd.Timedelta(1, "D")
    assert find(gt, moved).loc[("1", "nearly"), "found_beyond_chance"] > 60
    assert find(gt, gt + pd.Timedelta(1, "h")).loc[("1", "whole"), "shown"] == 0


def test_the_chance_of_permuted_columns_is_that_of_permutations() -> None:
    random = np.random.default_rng(1)
    columns = random.integers(0, 3, (4, 50))
    hits = [
        (np.array([random.permutation(column) for column in columns]) == 0).all(axis=0).any()
        for _ in range(4000)
    ]
    [chance] = chance_of_columns((columns == 0).sum(axis=1, keepdims=True).astype(float), 50)
    assert chance == pytest.approx(np.mean(hits), abs=0.05)


@pytest.mark.parametrize(("records", "columns"), [(200, None), (800, 6)])
def test_the_detection_limit_is_that_of_simulation(records: int, columns: int | None) -> None:
    """At the limit 19 of 20 tables are refused, at three fifths of it few."""

    def measure(gt: pd.DataFrame, sd: pd.DataFrame) -> tuple[BoxCounts, Found, Sizes]:
        [counts], sizes = count_whole(gt, sd, 1)
        return counts, found(counts, sizes), sizes

    def draw(seed: int) -> pd.DataFrame:
        return population(records, seed).iloc[:, :columns]

    measured = [measure(draw(seed), draw(seed + 1)) for seed in (1, 3, 5)]
    limits = [detection_limit(figures, counts.others, sizes, 10) for counts, figures, sizes in measured]
    figures = measured[0][1]
    limit = float(np.mean(limits))
    refused = {}
    for times in (0.6, 1.2):
        share = times * limit / (figures.alone - figures.expected)
        copied = min(round(share * records), records)
        refused[times] = 0
        for seed in range(30):
            gt, fresh = draw(seed), draw(seed + 500)
            mixed = pd.concat([gt.sample(copied, random_state=seed), fresh[copied:]])
            of_table = measure(gt, mixed)[1]
            refused[times] += of_table.found > max(10, of_table.found_by_chance)
    assert refused[1.2] >= 28
    assert refused[0.6] <= 15


# Few people and many, most of them alone.
OTHERS = st.tuples(st.integers(0, 400), st.lists(st.integers(0, 14), min_size=1, max_size=40)).map(
    lambda of: [0] * of[0] + of[1]
)


@settings(max_examples=60, deadline=None)
@given(
    others=OTHERS,
    chances=st.sampled_from([0, 0.01, 0.2]),
    t=st.sampled_from([0.2, 1, 3]),
    times=st.sampled_from([1, 5]),
    covered=st.sampled_from([None, (1, 400), (20, 40)]),
    comparisons=st.sampled_from([1, 30]),
    unit=st.sampled_from([1, 2.5]),
)
def test_the_people_found_by_chance_by_loops(
    others: list[int],
    chances: float,
    t: float,
    times: int,
    covered: tuple[int, int] | None,
    comparisons: int,
    unit: float,
) -> None:
    people = [(number, False, 0.0 if number else chances, 0.0) for number in others]
    counts = BoxCounts(*map(np.array, zip(*people, strict=True)))
    sizes = Sizes(times * len(others), max(round(t * times * len(others)), 1))
    coverage = None if covered is None else OwnCoverage(*covered)
    actual = found(counts, sizes, coverage, comparisons, unit).found_by_chance
    level = 1 / (10_000 * comparisons)
    expected = reference.found_by_chance(people, sizes.N_d, sizes.N_s, level, covered, unit)
    assert actual == pytest.approx(expected)


@settings(max_examples=60, deadline=None)
@given(
    others=OTHERS,
    expected=st.floats(0, 40),
    by_chance=st.floats(0, 40),
    bound=st.sampled_from([0.5, 2.5, 10]),
    t=st.sampled_from([0.2, 1, 3]),
    times=st.sampled_from([1, 5]),
    unit=st.sampled_from([1, 2.5]),
)
@example(others=[0, 0, 1, 1, 2, 2, 2], expected=0.0, by_chance=0.0, bound=0.5, t=1, times=1, unit=1)
def test_the_detection_limit_by_loops(
    others: list[int], expected: float, by_chance: float, bound: float, t: float, times: int, unit: float
) -> None:
    N_d = times * len(others)
    sizes = Sizes(N_d, max(round(t * N_d), 1))
    alone = 100 * others.count(0) / len(others)
    drawn = Found(alone, 0, expected, 0, by_chance, len(others))
    allowed = min(sizes.N_s / N_d, 1) * max(bound, by_chance) / 100
    limit = detection_limit(drawn, np.array(others), sizes, bound, unit)
    of_people = reference.detection_limit(others, expected / 100, allowed, N_d, sizes.N_s, len(others), unit)
    assert limit == pytest.approx(100 * of_people)
    assert limit <= alone
    everybody = replace(drawn, people=N_d)
    of_copies = detection_limit_of_copies(everybody, everybody, np.array(others), sizes, bound, unit)
    allowed = max(bound, by_chance) / 100
    of_people = reference.detection_limit(others, expected / 100, allowed, N_d, sizes.N_s, N_d, unit)
    hit = others.count(1) / len(others)
    if alone / 100 > hit:
        three = others.count(2) / len(others)
        variance = hit * (1 - hit) / sizes.N_s + 2 * (max(hit, 2 / N_d) + three) / N_d
        copies = max(expected / 100 - hit, 0) + allowed + 1.6448536269514722 * math.sqrt(variance * unit)
        shown = copies / (alone / 100 - hit) * sizes.N_s / N_d
        fresh = reference.fresh_share(others, sizes.N_s / N_d)
        of_people = min(of_people, shown * (alone / 100 - fresh))
    assert of_copies == pytest.approx(100 * of_people)


@pytest.mark.parametrize("of", [detection_limit, partial(detection_limit_of_copies, Found(0, 0, 0, 0, 0, 9))])
def test_a_limit_of_nobody_or_of_no_figure_is_not_determined(of: Callable[..., float]) -> None:
    figures, nobody = Found(50.0, 0.0, 0.0, 0.0, 0.0, 10), np.empty(0, dtype=int)
    some = np.zeros(10, dtype=int)
    assert math.isnan(of(figures, nobody, Sizes(10, 10), 10))
    assert math.isnan(of(figures, some, Sizes(10, 0), 10))
    assert math.isnan(of(replace(figures, expected=math.nan), some, Sizes(10, 10), 10))


def test_nobody_can_be_shown_where_nobody_is_alone() -> None:
    nothing = np.zeros(10)
    counts = BoxCounts(np.full(10, 9), np.ones(10, dtype=bool), nothing, nothing)
    figures = found(counts, Sizes(10, 10))
    assert detection_limit(figures, counts.others, Sizes(10, 10), 10) == 0
    assert detection_limit_of_copies(figures, figures, counts.others, Sizes(10, 10), 10) == 0


def test_people_found_in_releases_are_counted_by_unit_in_a_survey_with_weights() -> None:
    people = population(300, seed=1)
    gt = people.assign(person=np.arange(300) // 2, weight=1.0 + np.arange(300) % 3)
    with open_tables(gt, [people.head(100), people.tail(100)], "memory") as opened:
        keys = ["sex", "age"]
        weighted = plan_measures(opened, keys, ["income"], grouping_of(), unit="person", weights="weight")
        plain = plan_measures(opened, keys, ["income"], grouping_of(), unit="person")
        found = [measure_found_together(opened.stack_syntheses(), plan) for plan in (weighted, plain)]
    pd.testing.assert_frame_equal(found[0], found[1])
    assert (found[0]["shown"].xs("whole", level="way") > 60).all()
