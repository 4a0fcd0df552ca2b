"""People found in one group, levels that one person has, and records that stand twice."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sampling import examples

from disclosure_pipeline.counting.engines import OpenedTables
from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.counting.partitioned.opened_files import FramesInParts
from disclosure_pipeline.evaluation.copied_groups import FEWEST_OF_GROUP
from disclosure_pipeline.evaluation.counts import count_record_sets
from disclosure_pipeline.evaluation.guards import GuardFigures, measure_guards
from disclosure_pipeline.measures.people import PeopleCounts, people_copied, repeats
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.policy.bounds import DEFAULTS
from disclosure_pipeline.runtime.progress import ignore_progress
from disclosure_pipeline.tables.grouping import grouping_of

ROW = st.tuples(st.sampled_from(["north", "south", None]), st.sampled_from(["x", "y"]), st.integers(0, 4))
ROWS = st.lists(ROW, min_size=1, max_size=30)
COLUMNS = ["ward", "job", "age"]


def measure(tables: Sequence[pd.DataFrame], *, in_parts: bool = False, fewest: int = 10) -> GuardFigures:
    opened: OpenedTables = (FramesInParts if in_parts else FramesInMemory)(tuple(tables), "memory")
    columns = opened.code(list(tables[0].columns), grouping_of(), ignore_progress)
    _, records = count_record_sets(opened, [], columns, [])
    return measure_guards(opened, columns, records, fewest=fewest)


def counted_in_loops(gt: list[Any], sd: list[Any], column: int, level: Any) -> tuple[PeopleCounts, Sizes]:
    d, s = (Counter(row for row in rows if row[column] == level) for rows in (gt, sd))
    counts = PeopleCounts(
        alone=sum(n == 1 for n in d.values()),
        pairs=sum(n == 2 for n in d.values()),
        found=sum(n == 1 and s[row] > 0 for row, n in d.items()),
        alone_in_SD=sum(n == 1 for n in s.values()),
    )
    return counts, Sizes(d.total(), s.total())


@examples(60)
@given(ROWS, ROWS, st.booleans())
def test_the_worst_group_is_that_of_a_count_in_loops(gt: list[Any], sd: list[Any], in_parts: bool) -> None:
    fewest = 2
    groups = [
        (column, level)
        for column in (0, 1)
        for level, people in Counter(row[column] for row in gt).items()
        if people >= fewest
    ]
    found_beyond_fresh = []
    for column, level in groups:
        counts, sizes = counted_in_loops(gt, sd, column, level)
        found_beyond_fresh.append(people_copied(counts, sizes, 0.0, len(groups)).people_copied_beyond)
    tables = [pd.DataFrame(rows, columns=COLUMNS).astype({"ward": object}) for rows in (gt, sd)]
    figures = measure(tables, in_parts=in_parts, fewest=fewest)
    # Of groups this small nothing is beyond chance, so nobody asks what columns drawn apart find in them.
    assert (figures.guards["group_copied_beyond_chance"] == 0).all()
    assert figures.guards["group_copied_beyond"].iloc[0] == pytest.approx(max([0, *found_beyond_fresh]))


def towns(random: np.random.Generator, records: int) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "ward": [f"ward {n}" for n in random.integers(0, 100, records)],
            "job": random.choice(list("abcdef"), records),
            "age": random.integers(18, 95, records),
            "income": random.integers(500, 5_000, records),
            "rooms": random.integers(1, 8, records),
        }
    )


def a_ward_of_copies(seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    random = np.random.default_rng(seed)
    people, fresh = towns(random, 5_000), towns(random, 5_000)
    in_ward = people[people["ward"] == "ward 7"]
    return people, pd.concat([fresh[fresh["ward"] != "ward 7"], in_ward], ignore_index=True)


def test_a_ward_whose_people_are_all_there() -> None:
    """It is one percent of the table."""
    people, table = a_ward_of_copies(1)
    figures = measure([people, table]).guards.to_dict("index")[1]
    assert figures["people_copied_beyond"] < DEFAULTS["people_copied_beyond"]
    assert figures["group_copied_beyond_chance"] > 90
    fresh = measure([people, towns(np.random.default_rng(9), 5_000)]).guards.to_dict("index")[1]
    assert fresh["group_copied_beyond_chance"] == 0


def test_engines_agree_on_groups() -> None:
    tables = a_ward_of_copies(2)
    in_memory, in_parts = (measure(tables, in_parts=in_parts) for in_parts in (False, True))
    pd.testing.assert_frame_equal(in_memory.columns_apart, in_parts.columns_apart, check_exact=True)
    pd.testing.assert_frame_equal(in_memory.guards, in_parts.guards, check_exact=True)


def test_columns_drawn_apart_within_a_group_pass() -> None:
    """Few columns find people who are alone, as they do in the whole table."""
    random = np.random.default_rng(3)
    people = pd.DataFrame(
        {"ward": random.choice(["a", "b"], 400, p=[0.9, 0.1]), "age": random.permutation(400)}
    )
    in_b = people["ward"] == "b"
    apart = people.copy()
    for rows in (np.flatnonzero(in_b), np.flatnonzero(~in_b)):
        apart.loc[rows, "age"] = random.choice(people["age"].to_numpy()[rows], len(rows))
    assert measure([people, apart]).guards["group_copied_beyond_chance"].iloc[0] <= 0


def test_a_column_that_tells_who_somebody_is() -> None:
    """A free text that six in ten have to themselves, in another order: no record is a copy."""
    random = np.random.default_rng(4)
    people = towns(random, 1_000)
    people["remark"] = [f"remark {n}" if n < 600 else f"common {n % 20}" for n in range(1_000)]
    table = towns(random, 1_000).assign(remark=random.permutation(people["remark"]))
    figures = measure([people, table])
    assert figures.partial_copies["people_copied_beyond_chance"].loc[("remark alone", 1)] > 20
    assert figures.guards["partial_copies_beyond_chance"].iloc[0] > DEFAULTS["partial_copies_beyond"]
    drawn = table.assign(remark=random.choice(people["remark"], 1_000))
    figures = measure([people, drawn])
    assert figures.partial_copies["people_copied_beyond_chance"].loc[("remark alone", 1)] <= 0


@examples(40)
@given(ROWS, ROWS)
def test_repeats_are_those_of_a_count_in_loops(gt: list[Any], sd: list[Any]) -> None:
    numbers = Counter(sd)
    tables = [pd.DataFrame(rows, columns=COLUMNS).astype({"ward": object}) for rows in (gt, sd)]
    figures = measure(tables).guards.to_dict("index")[1]
    twice = sum(numbers[row] > 1 for row in sd)
    assert figures["repeated"] == pytest.approx(100 * twice / len(sd))
    assert figures["repeats"] == pytest.approx(figures["repeated"] - figures["repeats_expected"])


@pytest.mark.parametrize("times", [1, 3, 20])
@pytest.mark.parametrize("ages", [80, 3])
def test_fresh_tables_repeat_no_more_than_is_expected(times: int, ages: int) -> None:
    """Of people who are nearly all different, and of people who are often the same."""
    for seed in range(10):
        random = np.random.default_rng([seed, times, ages])
        people, table = (
            towns(random, n).assign(age=random.integers(0, ages, n), income=0) for n in (500, 500 * times)
        )
        figures = measure([people, table]).guards.to_dict("index")[1]
        assert figures["repeats_beyond_chance"] <= 0
        assert figures["repeats"] < 20


def test_decoys_that_stand_twice() -> None:
    """Whoever takes out what stands twice is left with the confidential records."""
    random = np.random.default_rng(5)
    people, decoys = towns(random, 500), towns(random, 2_000)
    table = pd.concat([people, decoys, decoys], ignore_index=True)
    figures = measure([people, table]).guards.to_dict("index")[1]
    assert figures["repeats_beyond_chance"] > 60
    assert measure([people, decoys]).guards["repeats_beyond_chance"].iloc[0] <= 0


def test_repeats_of_tables_where_nobody_is_alone() -> None:
    figures = repeats(PeopleCounts(alone=0, pairs=5, found=0, alone_in_SD=0), Sizes(10, 10))
    assert (figures.repeated, figures.repeats_expected, figures.repeats) == (100, 100, 0)


def test_levels_of_few_people_are_no_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    people, table = a_ward_of_copies(1)
    size = int((people["ward"] == "ward 7").sum())
    assert measure([people, table], fewest=size).guards["group_copied_beyond"].iloc[0] > 90
    job = measure([people, table], fewest=size + 100).columns_apart["group_copied_beyond"]
    assert job.loc[("ward", 1)] == 0
    assert FEWEST_OF_GROUP == 10
