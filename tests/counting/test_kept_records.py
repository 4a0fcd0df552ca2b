"""Records are coded and numbered once in a database for all that is asked of them, and do not stay there."""

from contextlib import ExitStack
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from support.engines import list_what_is_there
from support.sampling import some_of

import disclosure_pipeline as dp
from disclosure_pipeline.counting.relational import coding, staging
from disclosure_pipeline.counting.relational.coding import lay_out_words
from disclosure_pipeline.counting.relational.opened_database import DatabaseTables, open_in_database
from disclosure_pipeline.counting.relational.transfer import borrow_table, fetch_integers
from disclosure_pipeline.evaluation.counts import count_record_sets
from disclosure_pipeline.evaluation.nearest import draw_comparisons
from disclosure_pipeline.tables.grouping import grouping_of

STEPS = ("stage_records", "_check_unchanged", "number_records", "afterwards")


def people(seed: int) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    return pd.DataFrame({"a": random.integers(0, 9, 80), "b": random.integers(0, 4, 80)})


def look_at_all_columns(opened: DatabaseTables) -> None:
    """What the guards ask, one after the other."""
    columns = opened.code(["a", "b"], grouping_of())
    for tables in (opened, opened.stacked()):
        columns = tables.code(["a", "b"], grouping_of())
        count_record_sets(tables, [], columns, ["b"])
        for most in (1000, 20, 30):
            tables.code_records(columns, most, 0)
        tables.find_nearest(columns, draw_comparisons, 0)


def test_they_are_coded_and_numbered_once(database: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for each file by itself, and once for all of them as one table."""
    calls: list[str] = []

    def note_calls(name: str) -> None:
        function = getattr(staging, name)

        def noted(*args: Any) -> Any:
            calls.append(name)
            return function(*args)

        monkeypatch.setattr(staging, name, noted)

    note_calls("stage_records")
    note_calls("number_records")
    before = list_what_is_there(database)
    with ExitStack() as stack:
        tables = [stack.enter_context(borrow_table(database, people(seed), "it")) for seed in range(3)]
        with open_in_database(tables, "auto") as opened:
            look_at_all_columns(opened)
    assert calls == ["stage_records", "number_records"] * 2
    assert list_what_is_there(database) == before


@pytest.mark.parametrize("step", some_of(STEPS, part=2))
def test_nothing_stays_after_an_error(database: Any, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it happens; and what is asked next is answered all the same."""

    def fail(*_: Any) -> None:
        raise dp.InputError("on purpose")

    before = list_what_is_there(database)
    with ExitStack() as stack:
        tables = [stack.enter_context(borrow_table(database, people(seed), "it")) for seed in range(2)]
        borrowed = list_what_is_there(database)
        with monkeypatch.context() as patch, pytest.raises(dp.InputError, match="on purpose"):  # noqa: SIM117
            with open_in_database(tables, "auto") as opened:
                if step == "afterwards":
                    look_at_all_columns(opened)
                    fail()
                patch.setattr(staging, step, fail)
                look_at_all_columns(opened)
        assert list_what_is_there(database) == borrowed
        with open_in_database(tables, "auto") as opened:
            look_at_all_columns(opened)
    assert list_what_is_there(database) == before


@pytest.mark.parametrize("bits", some_of([0, 1, 5, 12, 63], part=2))
def test_they_are_numbered_in_the_order_of_their_codes(
    database: Any, bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In however many ranges; most records have the same code in the first column."""
    monkeypatch.setattr(coding, "_RANGE_BITS", bits)
    random = np.random.default_rng(bits)
    digits = lay_out_words([1000, 900, 2**40, 7])
    first = np.where(random.random(700) < 0.9, 3, random.integers(0, 1000, 700))
    codes = [first, *(random.integers(0, size, 700) for size in (900, 2**40, 7))]
    words = np.zeros((2, 700), dtype=np.int64)
    for code, place in zip(codes, digits, strict=True):
        words[place.word] += code << place.shift
    records = {"i": random.integers(0, 3, 700).astype(np.int16), "q0": words[0], "q1": words[1]}
    with ExitStack() as stack:
        rows = stack.enter_context(borrow_table(database, pa.table(records), "it"))
        numbered = fetch_integers(coding.number_records(rows, digits, stack))
    assert len(numbered["r"]) == 700
    for table in range(3):
        of_table = {name: values[numbered["i"] == table] for name, values in numbered.items()}
        order = np.lexsort([of_table["q1"], of_table["q0"]])
        assert of_table["r"][order].tolist() == list(range(len(order)))
