"""Copies, whole and in part: against the reference, the check values, and disguises that equality misses."""

import warnings
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from disguises.simulated import POPULATIONS
from hypothesis import given
from hypothesis import strategies as st
from reference import copies as reference
from support.same_counts import assert_same_counts
from support.sampling import examples, on_some_days, some_of
from support.small_tables import sd2011

import disclosure_pipeline as dp
from disclosure_pipeline.counting.cells import count_tables
from disclosure_pipeline.counting.counts import CountRequest, DisclosureCounts, select_copies
from disclosure_pipeline.counting.memory import engine, partial_records
from disclosure_pipeline.counting.memory.engine import FramesInMemory
from disclosure_pipeline.counting.memory.radix import Limits
from disclosure_pipeline.counting.opening import link_tables, read_shared_columns
from disclosure_pipeline.evaluation.counts import WholeRecords, plan_measures
from disclosure_pipeline.evaluation.disclosure import measure
from disclosure_pipeline.evaluation.guards import measure_guards
from disclosure_pipeline.evaluation.record_sets import count_record_sets
from disclosure_pipeline.runtime.progress import ignore_progress
from disclosure_pipeline.tables.grouping import grouping_of
from disclosure_pipeline.tables.levels import CodedColumn

ROW = st.sampled_from(list(product(["a", "b", None], [1, 2, 30], [False, True])))
COLUMNS = ["text", "number", "flag"]


def frame(rows: list[tuple[object, ...]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=COLUMNS)


def whole(copies: pd.DataFrame) -> pd.DataFrame:
    figures = copies.xs("all columns", level="columns")
    assert isinstance(figures, pd.DataFrame)
    return figures


def partial(copies: pd.DataFrame) -> pd.DataFrame:
    """The figures of all other sets of columns."""
    return copies.drop(index="all columns", level="columns")


@pytest.mark.parametrize("at_a_time", [1, 3, 1 << 20])
@examples(8)
@given(gt=st.lists(ROW, min_size=1, max_size=15), sd=st.lists(ROW, min_size=1, max_size=15))
def test_copies_are_those_of_the_reference(
    at_a_time: int, gt: list[tuple[object, ...]], sd: list[tuple[object, ...]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "Limits", lambda: Limits(part=at_a_time))
        result = whole(dp.copies(frame(gt), [frame(sd), frame(gt)]))
        parts = partial(dp.copies(frame(gt), frame(sd), targets=["flag", "text"]))
    expected = reference.copies(gt, sd)
    assert result.loc[1, list(expected)].to_dict() == pytest.approx(expected, rel=1e-13, abs=1e-13)
    assert result["copies"].iloc[1] == 100
    sets: dict[str, tuple[int, ...]]
    sets = {"all but text": (1, 2), "all but number": (0, 2), "all but flag": (0, 1), "targets alone": (0, 2)}
    if any([row[0] for row in gt].count(level) == 1 for level in ("a", "b")):
        sets["text alone"] = (0,)
    assert sorted(parts.index) == sorted((1, label) for label in sets)
    for label, places in sets.items():
        of_set = [[tuple(row[i] for i in places) for row in table] for table in (gt, sd)]
        expected = reference.copies(*of_set)
        assert parts.xs(1).loc[label, list(expected)].to_dict() == pytest.approx(
            expected, rel=1e-13, abs=1e-13
        )


def measure_as_gate(
    people: pd.DataFrame, tables: list[pd.DataFrame], unit: str | None, keys: list[str], targets: list[str]
) -> dp.Disclosure:
    opened = FramesInMemory((people, *tables), "memory")
    options: Any = {"unit": unit, "together": True, "whole_records": WholeRecords()}
    return measure(opened, plan_measures(opened, keys, targets, grouping_of(), **options))


@pytest.mark.parametrize("unit", [None, "person"])
@examples(6)
@given(
    gt=st.lists(ROW, min_size=2, max_size=15),
    syntheses=st.lists(st.lists(ROW, min_size=1, max_size=15), min_size=1, max_size=2),
    owners=st.lists(st.integers(0, 5), min_size=15, max_size=15),
)
def test_the_gate_has_the_same_figures(
    unit: str | None,
    gt: list[tuple[object, ...]],
    syntheses: list[list[tuple[object, ...]]],
    owners: list[int],
) -> None:
    """Every figure of copies that both have, by the same name: of records, and of people with several."""
    people, tables = frame(gt), list(map(frame, syntheses))
    if unit:
        people[unit] = owners[: len(gt)]
    result = measure_as_gate(people, tables, unit, ["text"], ["flag"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        copies = dp.copies(people, tables, ["flag"], unit=unit)
    of_sets = result.partial_copies.swaplevel()
    shown = set(whole(copies).columns) & set(result.guards.columns)
    assert shown == set(copies.columns) == set(of_sets.columns)
    assert {"unique_copies_apart", "unique_copies_by_chance", "people_copied_beyond_chance"} <= shown
    assert sorted(of_sets.index) == sorted(partial(copies).index)
    pd.testing.assert_frame_equal(
        whole(copies), result.guards[list(copies.columns)], check_exact=True, check_index_type=False
    )
    pd.testing.assert_frame_equal(
        partial(copies).sort_index(), of_sets[list(copies.columns)].sort_index(), check_exact=True
    )


def test_events_are_compared_as_the_gate_compares_them() -> None:
    """The sets of the events alone, too."""
    gt, sd = (
        pd.DataFrame({"person": range(40), "age": np.arange(40) // k, "sex": np.arange(40) % k})
        for k in (2, 3)
    )
    events = [table.loc[table.index % 3 > 0, ["person"]].assign(code=table["age"] % 7) for table in (gt, sd)]
    told: Any = {"ground_truth": events[0], "synthetic": events[1]}
    copies = dp.copies(gt, sd, ["sex"], unit="person", events=told)
    linked = link_tables(gt, sd, "person", told)
    result = measure_as_gate(linked.ground_truth, linked.synthetic, "person", ["age"], ["sex"])
    of_sets = result.partial_copies.swaplevel()
    assert "the events alone" in of_sets.index.get_level_values("columns")
    pd.testing.assert_frame_equal(
        partial(copies).sort_index(), of_sets[list(copies.columns)].sort_index(), check_exact=True
    )


@pytest.mark.parametrize(("at_a_time", "levels"), some_of(product([1, 50, 1 << 17], [2, 4, 40])))
def test_without_a_column_the_counts_are_those_of_the_others(
    monkeypatch: pytest.MonkeyPatch, levels: int, at_a_time: int
) -> None:
    """However the records are cut; levels of very different frequency."""
    monkeypatch.setattr(engine, "Limits", lambda: Limits(part=at_a_time))
    rng = np.random.default_rng(levels)
    gt, *syntheses = (
        pd.DataFrame(
            {f"c{k}": rng.geometric(0.4, records) % (levels + k) for k in range(5)}
            | {"gaps": rng.choice([1.5, 2, np.nan], records), "none": np.full(records, np.nan)}
        )
        for records in (150, 100, 200)
    )
    tables = read_shared_columns(gt, syntheses)
    columns = tables.code(tables.keys)

    def count(some: Sequence[CodedColumn], *, without_each: bool = False) -> DisclosureCounts:
        request = CountRequest(some, without_each=without_each)
        [counted] = count_tables(FramesInMemory(tables.frames, "memory"), [request])
        return counted

    counts = count(columns, without_each=True)
    for left_out, column_counts in zip(columns, counts.without, strict=True):
        others = [column for column in columns if column is not left_out]
        assert list(column_counts) == list(map(select_copies, count(others).keys))
    assert_same_counts(counts.keys, count(columns).keys)
    # More combinations than a code has: those that occur are numbered.
    monkeypatch.setattr(partial_records, "LARGEST", 1 << 12)
    for most_lower in (1, 8, 1 << 6):
        monkeypatch.setattr(partial_records, "_MOST_LOWER", most_lower)
        assert_same_counts(count(columns, without_each=True), counts)
    monkeypatch.setattr(engine, "Limits", lambda: Limits(table=0))
    assert_same_counts(counts.keys, count(columns).keys)


def test_many_columns() -> None:
    """More combinations than 64 binary digits tell apart; a column that one table has alone is none."""
    rng = np.random.default_rng(1)
    gt = pd.DataFrame(rng.integers(0, 1000, (200, 12)))
    copied = gt.sample(50, random_state=1)
    changed = copied.assign(**{"3": copied[3] + 1000}).drop(columns=3).rename(columns={"3": 3})
    result = dp.copies(gt, [copied.assign(other=1), changed])["unique_copies"]
    assert result.loc[1].tolist() == [100] * 13
    assert result.loc[2].drop("all columns").tolist() == [0] * 3 + [100] + [0] * 8
    assert result.loc[2, "all columns"] == 0


@pytest.mark.parametrize(
    ("synthesis", "unique_copies", "largest"),
    [("synthetic", 2.5, 4.7), ("synthesizers/arf_2", 0.36, 0.3), ("synthesizers/ctgan", 0.00, -0.1)],
)
def test_the_example_data(synthesis: str, unique_copies: float, largest: float) -> None:
    """unique_copies (others 0.64), and the largest `_beyond` of the partial copies."""
    gt, sd = sd2011("ground_truth"), sd2011(synthesis)
    figures = dp.copies(gt, sd, ["depress", "income", "ls", "marital", "workab"])
    copies = whole(figures).loc[1]
    assert copies["unique_copies"] == pytest.approx(unique_copies, abs=0.05)
    assert round(copies["unique_copies_others"], 2) == 0.64
    parts = partial(figures).loc[1]
    assert parts["unique_copies_beyond"].max() == pytest.approx(largest, abs=0.05)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: dp.copies(pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]})), "No column"),
        (lambda: dp.copies(frame([("a", 1, True)]), frame([("a", 1, True)]), ["x"]), "Target 'x'"),
        (lambda: dp.copies(frame([("a", 1, True)]), frame([("a", 1, True)]), []), "targets is empty"),
        (lambda: dp.copies(frame([]), frame([("a", 1, True)])), "no records"),
    ],
)
def test_refuses_tables_that_cannot_be_compared(call: Callable[[], object], words: str) -> None:
    with pytest.raises(dp.InputError, match=words):
        call()


def test_one_column_has_no_near_copies() -> None:
    one = pd.DataFrame({"a": [1, 2]})
    assert dp.copies(one, one).index.tolist() == [(1, "all columns")]


# Near copies among many more records than GT has: found at full size, by any order of the records


def near_table(name: str, times: int, share: float, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """People, and fresh ones many times as many, among whom a share is copied with every number moved."""
    people = POPULATIONS[name].draw(500, seed)
    table, rng = POPULATIONS[name].draw(500 * times, 1_000 + seed), np.random.default_rng(seed)
    near = people.sample(frac=share, random_state=seed)
    for column in near.columns[[pd.api.types.is_integer_dtype(kind) for kind in near.dtypes]]:
        near[column] += rng.choice([-1, 1], len(near))
    return people, pd.concat([table, near], ignore_index=True)


CASES = [(name, times) for name in ("survey", "census", "measurements") for times in (3, 10, 60)]


@on_some_days
@pytest.mark.parametrize(("name", "times"), some_of(CASES, 3))
def test_near_copies_are_found_among_many_records(name: str, times: int) -> None:
    for share in (0.0, 0.95):
        tables = near_table(name, times, share, 1)
        opened = FramesInMemory(tables, "memory")
        columns = opened.code(list(tables[0]), grouping_of(), ignore_progress)
        records, _ = count_record_sets(opened, columns)
        found = measure_guards(records).found
        assert (found["found_beyond_chance"]["nearly", 1] > 10) == (share > 0)
