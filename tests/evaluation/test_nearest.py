"""Nearness: against the reference, a fresh sample, near copies, and the blocks of large tables."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import nearest as reference

import disclosure_pipeline as dp
from disclosure_pipeline.counting.memory import nearest_records
from disclosure_pipeline.evaluation import nearest as evaluation_nearest
from disclosure_pipeline.measures.nearest import nearness

Row = tuple[object, ...]
COLUMNS = ["town", "age", "income"]
ORDERED = (False, True, True)
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", None]),
        st.sampled_from([18, 19, 40, None]),
        st.sampled_from([0.5, 2.25, 100.0, math.inf, -math.inf]),
    ),
    min_size=3,
    max_size=9,
)


def frame(rows: list[Row]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=COLUMNS).astype({"age": "Int64"})


def population(rng: np.random.Generator, records: int) -> pd.DataFrame:
    """Three towns, ages, and two numbers that depend on them."""
    age = rng.integers(18, 90, records)
    return pd.DataFrame(
        {
            "town": rng.choice(["a", "b", "c"], records, p=[0.6, 0.3, 0.1]),
            "age": age,
            "income": (age * 10 + rng.normal(0, 50, records)).round(),
            "job": rng.integers(0, 20, records).astype(str),
            "rooms": rng.integers(1, 6, records),
        }
    )


@given(ROWS, ROWS)
def test_the_share_is_that_of_the_reference(gt: list[Row], sd: list[Row]) -> None:
    sd = (sd * len(gt))[: len(gt) - 1]
    nearest = dp.nearest(frame(gt), frame(sd)).loc[1]
    assert list(nearest.index) == ["ranks", "values", "columns"]
    for (_, measured), expected in zip(nearest.iterrows(), reference.nearness(gt, sd, ORDERED), strict=True):
        assert measured["nearer"] == pytest.approx(100 * float(expected.nearer), rel=1e-12)
        assert measured["much_nearer"] == pytest.approx(100 * float(expected.much_nearer), rel=1e-12)
        assert abs(measured["much_nearer"]) <= measured["much_nearer_either_way"]
        assert measured["records"] == len(gt)
        assert measured["nearer_low"] <= measured["nearer"] <= measured["nearer_high"]


@pytest.mark.parametrize("records", [500, 1200, 3000])
@pytest.mark.parametrize("all_pairs", [True, False])
def test_a_fresh_sample_is_nearer_to_half(
    monkeypatch: pytest.MonkeyPatch, records: int, all_pairs: bool
) -> None:
    """Tables of fewer, as many and more records are compared with all records, or with those of a block."""
    if not all_pairs:
        monkeypatch.setattr(nearest_records, "_MOST_PAIRS", 0)
    rng = np.random.default_rng(records)
    gt, fresh = population(rng, 1200), population(rng, records)
    nearest = dp.nearest(gt, fresh)
    assert nearest["nearer"].tolist() == pytest.approx([50] * 3, abs=5)
    assert nearest["much_nearer"].tolist() == pytest.approx([0] * 3, abs=8)


@pytest.mark.parametrize("most_candidates", [4_000, 2])
def test_near_copies_are_seen_in_blocks_of_columns(
    monkeypatch: pytest.MonkeyPatch, most_candidates: int
) -> None:
    """One column is changed in every record, and one more in one of them, whose income nobody else has.

    Where there is one block of all columns, only whole copies are seen.
    """
    monkeypatch.setattr(nearest_records, "_MOST_PAIRS", 0)
    monkeypatch.setattr(nearest_records, "_MOST_CANDIDATES", most_candidates)
    gt = population(np.random.default_rng(5), 1500)
    moved = gt.assign(age=gt["age"] + 1, income=gt["income"].where(gt.index > 0, -1))
    nearest = dp.nearest(gt, [moved, gt], seed=3)["nearer"]
    assert nearest.loc[1, "ranks"] > 97 or most_candidates == 2
    assert nearest.loc[2, "ranks"] > 97


@pytest.mark.parametrize("lowest_digits", [1 << 20, 1 << 4])
def test_blocks_give_what_all_pairs_give_where_somebody_agrees(
    monkeypatch: pytest.MonkeyPatch, lowest_digits: int
) -> None:
    """A block of one column each: whoever shares anything is looked at, and nobody else."""
    gt = population(np.random.default_rng(6), 400)
    sd = gt.assign(age=gt["age"] + 1)
    everybody = dp.nearest(gt, sd)
    monkeypatch.setattr(nearest_records, "_MOST_PAIRS", 0)
    monkeypatch.setattr(nearest_records, "_MOST_BLOCKS", 5)
    monkeypatch.setattr(nearest_records, "_LOWEST_DIGITS", lowest_digits)
    assert dp.nearest(gt, sd).equals(everybody)


def test_permuted_rows_and_seeds() -> None:
    gt = population(np.random.default_rng(7), 300)
    sd = population(np.random.default_rng(8), 299)
    first = dp.nearest(gt, sd)
    assert dp.nearest(gt.sample(frac=1, random_state=1), sd.sample(frac=1, random_state=2)).equals(first)
    fewer = [dp.nearest(gt, sd, sample=50, seed=seed)["nearer"].iloc[0] for seed in (1, 1, 2)]
    assert fewer[0] == fewer[1] != fewer[2]


def test_exchanging_the_tables_changes_the_sign() -> None:
    """Whoever is compared with SD and with others is compared with others and with SD."""
    to_SD, to_others = np.array([0, 3, 4, 6, 7, 1]), np.array([0, 6, 2, 12, 4, 4])
    there, back = nearness(to_SD, to_others), nearness(to_others, to_SD)
    assert there.much_nearer == -back.much_nearer == pytest.approx(100 * (3 - 1) / 6)
    assert there.nearer == pytest.approx(100 - back.nearer)
    assert there.much_nearer_either_way == back.much_nearer_either_way == pytest.approx(100 * 4 / 6)


def heaped(rng: np.random.Generator, records: int) -> pd.DataFrame:
    """Most work 40 hours, have no gain from capital, and weigh something of their own."""
    return pd.DataFrame(
        {
            "job": rng.integers(0, 12, records).astype(str),
            "region": rng.integers(0, 9, records).astype(str),
            "age": rng.integers(17, 90, records),
            "hours": np.where(rng.random(records) < 0.6, 40, rng.integers(5, 80, records)),
            "gain": np.where(rng.random(records) < 0.92, 0, rng.integers(1, 99_999, records)),
            "weight": rng.integers(12_000, 1_500_000, records),
        }
    )


def test_numbers_that_heap_hide_no_small_steps() -> None:
    """One hour off 40 is a large part of all ranks."""
    rng = np.random.default_rng(4)
    gt = heaped(rng, 3000)
    moved = gt.assign(
        age=gt["age"] + rng.choice([-1, 1], len(gt)),
        hours=gt["hours"] + rng.choice([-1, 1], len(gt)),
        weight=gt["weight"] + 1,
    )
    nearest = dp.nearest(gt, moved)
    assert nearest["much_nearer"].max() > 80
    assert nearest["nearer"].max() > 95
    assert dp.nearest(gt, heaped(rng, 3000))["much_nearer"].abs().max() < 6


def test_all_of_a_small_table_are_looked_at_and_a_sample_of_a_larger_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gt = population(np.random.default_rng(9), 300)
    assert dp.nearest(gt, gt)["records"].tolist() == [300] * 3
    monkeypatch.setattr(evaluation_nearest, "EVERYBODY", 299)
    monkeypatch.setattr(evaluation_nearest, "SAMPLE", 100)
    assert dp.nearest(gt, gt)["records"].tolist() == [100] * 3


@pytest.mark.parametrize("wrong", [{"sample": 0}, {"sample": True}, {"seed": -1}, {"sample": 1.5}])
def test_refuses_invalid_arguments(wrong: dict[str, int]) -> None:
    gt = frame([("a", 18, 0.5), ("b", 19, 0.5)])
    with pytest.raises(dp.InputError, match=next(iter(wrong))):
        dp.nearest(gt, gt, **wrong)


def test_one_record_has_no_others() -> None:
    gt = frame([("a", 18, 0.5)])
    with pytest.raises(dp.InputError, match="a single record"):
        dp.nearest(gt, gt)
