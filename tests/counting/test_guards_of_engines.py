"""Every engine finds the same guards, nearest records and drawn records, bit for bit: one body for all."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.engines import ENGINES_AND_WAYS, Databases, in_the_order_of, opened_by
from support.sampling import DATABASES, examples, on_some_days

from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.counting.opening import OpenedTables
from disclosure_pipeline.evaluation import copies, guards
from disclosure_pipeline.evaluation.guards import GuardFrames, measure_guards
from disclosure_pipeline.evaluation.record_sets import count_record_sets
from disclosure_pipeline.runtime.progress import ignore_progress
from disclosure_pipeline.tables.grouping import grouping_of
from disclosure_pipeline.tables.levels import CodedColumn

pytestmark = on_some_days

ENGINES = list(ENGINES_AND_WAYS)
OTHERS = ["files", *DATABASES]
EXAMPLES = {"files": 2, "duckdb": 3}
EXAMPLES_IN_CI = {"files": 12, "duckdb": 8, "postgres": 3}

TARGETS = ["job", "pay"]
RECORDS = st.integers(1, 60)


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


def code_all(opened: OpenedTables) -> list[CodedColumn]:
    return opened.code(list(opened.columns[0]), grouping_of(), ignore_progress)


def measure(opened: OpenedTables) -> GuardFrames:
    columns = code_all(opened)
    records, _ = count_record_sets(opened, columns, TARGETS)
    return measure_guards(records)


def assert_the_same_guards(engine: str, frames: Sequence[pd.DataFrame], databases: Databases) -> GuardFrames:
    with opened_by(engine, frames, databases) as opened:
        results = [measure(opened), *([measure(opened.stack_syntheses())] if len(frames) > 2 else [])]
    in_memory = FramesInMemory(tuple(frames), "memory")
    for result, tables in zip(results, (in_memory, in_memory.stack_syntheses()), strict=False):
        expected = measure(in_the_order_of(engine, tables.frames))
        for name, frame in vars(expected).items():
            pd.testing.assert_frame_equal(vars(result)[name], frame, check_exact=True)
    return results[0]


@pytest.mark.parametrize("engine", OTHERS)
def test_guards_of_random_tables(engine: str, databases: Databases) -> None:
    @examples(EXAMPLES.get(engine, 1), EXAMPLES_IN_CI.get(engine, 1))
    @given(st.integers(0, 10**6), RECORDS, st.lists(RECORDS, min_size=1, max_size=3))
    def check(seed: int, records: int, of_syntheses: list[int]) -> None:
        truth = people(records, seed)
        syntheses = [partly_copied(truth, n, seed + i) for i, n in enumerate(of_syntheses)]
        assert_the_same_guards(engine, [truth, *syntheses], databases)

    check()


@pytest.mark.parametrize("engine", OTHERS)
def test_guards_of_more_combinations_than_a_number_holds(engine: str, databases: Databases) -> None:
    """Codes need several words; those of "all but" one column, too."""
    random = np.random.default_rng(3)
    truth = pd.DataFrame(random.integers(0, 900, (400, 8)), columns=[*"abcdef", *TARGETS])
    synthetic = truth.assign(c=random.integers(0, 900, 400)).head(300)
    measured = assert_the_same_guards(engine, [truth, synthetic, truth], databases)
    assert measured.partial_copies.loc[("all but c", 1), "unique_copies"] == 100
    assert measured.guards["equal_content"].tolist() == [0, 1]


@pytest.mark.parametrize("engine", OTHERS)
def test_guards_where_one_column_is_changed(engine: str, databases: Databases) -> None:
    truth = people(800, 1, levels=400).fillna({"pay": 0})
    changed = truth.assign(pay=truth["pay"] + 1000)
    measured = assert_the_same_guards(engine, [truth, changed], databases)
    assert (measured.guards["unique_copies_beyond"] <= 0).all()
    assert measured.found["found_beyond_chance"]["all but one", 1] > 40


@pytest.mark.parametrize("engine", OTHERS)
def test_guards_of_records_that_are_drawn(
    engine: str, databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "APART_SAMPLE", 150)
    monkeypatch.setattr(guards, "PAIRS_SAMPLE", 100)
    truth = people(400, 7)
    frames = [truth, partly_copied(truth, 500, 8), people(120, 9)]
    assert_the_same_guards(engine, frames, databases)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("most", [7, 10_000])
def test_drawn_records_are_coded_as_if_they_were_alone(engine: str, most: int, databases: Databases) -> None:
    """The same draw again; a table of fewer records is taken whole; databases keep levels that none has."""
    frames = [people(records, records) for records in (300, 50)]
    with opened_by(engine, frames, databases) as opened:
        drawn, again = (opened.code_records(code_all(opened), most, 3) for _ in range(2))
    sample = in_the_order_of(engine, frames).sample(most, 3)
    expected = code_all(FramesInMemory(tuple(sample), "memory"))
    for column, repeated, of_sample in zip(drawn, again, expected, strict=True):
        assert (column.name, column.kind) == (of_sample.name, of_sample.kind)
        for codes, same, in_sample in zip(column.codes, repeated.codes, of_sample.codes, strict=True):
            assert len(codes) == len(in_sample) and codes.tolist() == same.tolist()
            values, of_values = ([*of.levels.tolist(), None] for of in (column, of_sample))
            assert [values[code] for code in codes] == [of_values[code] for code in in_sample]
