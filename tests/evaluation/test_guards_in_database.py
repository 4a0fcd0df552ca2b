"""The guards of tables in a database are those of the same tables in memory, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sampling import examples, some_of

from disclosure_pipeline.counting.engines import OpenedTables
from disclosure_pipeline.counting.memory import nearest_records
from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.counting.relational import nearest
from disclosure_pipeline.counting.relational.coding import lay_out_words
from disclosure_pipeline.counting.relational.opened_database import DatabaseTables, open_in_database
from disclosure_pipeline.counting.relational.transfer import borrow_table
from disclosure_pipeline.evaluation import guards
from disclosure_pipeline.evaluation.counts import count_record_sets
from disclosure_pipeline.evaluation.guards import GuardFigures, measure_guards
from disclosure_pipeline.evaluation.nearest import draw_comparisons
from disclosure_pipeline.runtime.progress import ignore_progress
from disclosure_pipeline.tables.grouping import grouping_of

EXAMPLES = {"duckdb": 3, "postgres": 1}
EXAMPLES_IN_CI = {"duckdb": 40, "pyspark": 2, "postgres": 8}
TARGETS = ["job", "pay"]


def people(records: int, seed: int, levels: int = 6) -> pd.DataFrame:
    """Text, numbers and truth values, some missing; few enough for some equal records."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": pd.array(random.integers(0, levels, records), dtype="Int64"),
            "job": random.choice(np.array(["a", "b", "c", None], dtype=object), records),
            "pay": random.integers(0, 2 * levels, records) / 4,
            "own": random.choice(np.array([True, False]), records),
        }
    )
    frame.loc[random.random(records) < 0.1, "age"] = pd.NA
    frame.loc[random.random(records) < 0.1, "pay"] = np.nan
    return frame


def partly_copied(truth: pd.DataFrame, records: int, seed: int) -> pd.DataFrame:
    """Others' records, some of the truth's own, and some of these with one column changed."""
    copied = truth.sample(min(len(truth), records // 2 + 1), random_state=seed)
    near = copied.assign(pay=copied["pay"] + 0.25)
    everything = pd.concat([people(records, seed + 1), copied, near], ignore_index=True)
    return everything.sample(records, random_state=seed)


def in_order_of_codes(opened: FramesInMemory) -> FramesInMemory:
    """The same tables with their records in the order that those of a database are taken in."""
    names = list(opened.columns[0])
    columns = opened.code(names, grouping_of())
    words = lay_out_words([column.size for column in columns])
    significance = sorted(range(len(columns)), key=lambda k: (-words[k].word, words[k].shift))
    orders = [
        np.lexsort([columns[k].codes[table] for k in significance]) for table in range(len(opened.frames))
    ]
    frames = tuple(frame.iloc[order] for frame, order in zip(opened.frames, orders, strict=True))
    return FramesInMemory(frames, "memory")


def measure(opened: OpenedTables) -> GuardFigures:
    columns = opened.code(list(opened.columns[0]), grouping_of(), ignore_progress)
    _, records = count_record_sets(opened, [], columns, TARGETS)
    return measure_guards(opened, columns, records)


@contextmanager
def opened_in(backend: Any, frames: Sequence[pd.DataFrame]) -> Iterator[DatabaseTables]:
    """The frames as tables of the database, which has nothing else afterwards."""
    before = set(backend.list_tables())
    with ExitStack() as stack:
        tables = [stack.enter_context(borrow_table(backend, frame, "the table")) for frame in frames]
        with open_in_database(tables, "auto") as opened:
            yield opened
    assert set(backend.list_tables()) == before


def assert_the_same_guards(backend: Any, frames: Sequence[pd.DataFrame]) -> GuardFigures:
    in_memory = FramesInMemory(tuple(frames), "memory")
    with opened_in(backend, frames) as opened:
        measured = measure(opened)
        results_and_tables = [(measured, in_memory)]
        if len(frames) > 2:  # one synthesis is never stacked
            results_and_tables.append((measure(opened.stacked()), in_memory.stacked()))
    for result, tables in results_and_tables:
        expected = measure(in_order_of_codes(tables))
        for name, frame in vars(expected).items():
            pd.testing.assert_frame_equal(vars(result)[name], frame, check_exact=True)
    return measured


SIZES = st.integers(1, 60)


def test_random_tables(database: Any) -> None:
    @examples(EXAMPLES.get(database.name, 1), EXAMPLES_IN_CI[database.name])
    @given(st.integers(0, 10**6), SIZES, st.lists(SIZES, min_size=1, max_size=3))
    def check(seed: int, records: int, of_syntheses: list[int]) -> None:
        truth = people(records, seed)
        syntheses = [partly_copied(truth, n, seed + i) for i, n in enumerate(of_syntheses)]
        assert_the_same_guards(database, [truth, *syntheses])

    check()


def test_columns_of_more_combinations_than_a_number_holds(database: Any) -> None:
    """They need several words; "all but" one of them, too."""
    random = np.random.default_rng(3)
    truth = pd.DataFrame(random.integers(0, 900, (400, 8)), columns=[*"abcdef", *TARGETS])
    synthetic = truth.assign(c=random.integers(0, 900, 400)).head(300)
    measured = assert_the_same_guards(database, [truth, synthetic, truth])
    assert measured.partial_copies.loc[("all but c", 1), "unique_copies"] == 100
    assert measured.guards["equal_content"].tolist() == [0, 1]


def test_one_column_is_changed_in_every_record(database: Any) -> None:
    truth = people(800, 1, levels=400).fillna({"pay": 0})
    figures = assert_the_same_guards(database, [truth, truth.assign(pay=truth["pay"] + 1000)]).guards
    assert (figures["unique_copies_beyond"] <= 0).all()
    assert (figures["partial_copies_beyond_chance"] > 40).all()


def test_a_sample_of_large_tables(database: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawn as in memory, of records in the order of their codes."""
    monkeypatch.setattr(guards, "APART_SAMPLE", 150)
    monkeypatch.setattr(guards, "PAIRS_SAMPLE", 100)
    truth = people(400, 7)
    assert_the_same_guards(database, [truth, partly_copied(truth, 500, 8), people(120, 9)])


def measure_nearest(opened: OpenedTables) -> list[list[list[list[int]]]]:
    columns = opened.code(list(opened.columns[0]), grouping_of(), ignore_progress)
    distances = opened.find_nearest(columns, partial(draw_comparisons, sample=200), 0)
    return [[to_table.tolist() for to_table in of_synthesis] for of_synthesis in distances]


@pytest.mark.parametrize(("levels", "most_candidates"), some_of([(3, 0), (40, 10), (40, 150)], part=3))
def test_the_nearest_records_of_large_tables(
    database: Any, levels: int, most_candidates: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one block of columns or several; SD is smaller than GT, as large, and larger."""
    monkeypatch.setattr(nearest_records, "_MOST_PAIRS", 0)
    monkeypatch.setattr(nearest_records, "_MOST_CANDIDATES", most_candidates)
    monkeypatch.setattr(nearest, "_FETCHED", 6000)
    truth = people(300, 11, levels)
    frames = [truth, *(partly_copied(truth, n, 12) for n in (90, 299, 700))]
    with opened_in(database, frames) as opened:
        distances, of_stacked = measure_nearest(opened), measure_nearest(opened.stacked())
    in_memory = FramesInMemory(tuple(frames), "memory")
    assert distances == measure_nearest(in_order_of_codes(in_memory))
    assert of_stacked == measure_nearest(in_order_of_codes(in_memory.stacked()))
    assert len({distance for to_SD, _ in distances for distance in to_SD[0]}) > 1


def test_nearest_records_of_columns_in_several_words(database: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest_records, "_MOST_PAIRS", 0)
    random = np.random.default_rng(3)
    truth = pd.DataFrame(random.integers(0, 900, (400, 9)), columns=[*"abcdefg", *TARGETS])
    changed = truth.assign(c=random.integers(0, 900, 400), g=0)
    with opened_in(database, [truth, changed]) as opened:
        distances = measure_nearest(opened)
    assert distances == measure_nearest(in_order_of_codes(FramesInMemory((truth, changed), "memory")))
    [[to_SD, to_others]] = distances
    assert sum(map(int.__lt__, to_SD[0], to_others[0])) >= 199
