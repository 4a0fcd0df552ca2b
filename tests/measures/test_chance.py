"""Test DiSCO by chance against every permutation, the formula, and the example data."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import cap as reference
from reference.cap import Record
from support.small_tables import sd2011, tables

import disclosure_pipeline as dp
from disclosure_pipeline.measures.samples import chance_of_one_level

KEYS_2011 = ["sex", "age", "region", "placesize"]


@given(tables(), tables(most=5), st.data())
def test_the_formula_is_the_mean_over_every_permutation(
    gt: list[Record], sd: list[Record], data: st.DataObject
) -> None:
    """The formula holds exactly, in fractions, for any choice of GT records."""
    kept = data.draw(st.lists(st.booleans(), min_size=len(gt), max_size=len(gt)))
    assert reference.disco_chance(gt, sd, kept) == reference.disco_of_all_permutations(gt, sd, kept)


# The chance that records drawn at random all have one level


@given(st.integers(1, 60), st.data())
def test_all_of_one_level(records: int, data: st.DataObject) -> None:
    with_level = data.draw(st.integers(0, records))
    drawn = data.draw(st.lists(st.integers(0, records), min_size=1))
    expected = [Fraction(math.comb(with_level, n), math.comb(records, n)) for n in drawn]
    assert chance_of_one_level(with_level, records, np.array(drawn)) == pytest.approx(
        [float(chance) for chance in expected], rel=1e-13
    )


@pytest.mark.parametrize(
    ("with_level", "records", "drawn"),
    [(9_999_990, 10_000_000, 100_000), (5_000_000, 10_000_000, 500), (700, 1000, 300), (3, 10_000_000, 3)],
)
def test_all_of_one_level_of_many_records(with_level: int, records: int, drawn: int) -> None:
    exact = Fraction(1)
    for i in range(drawn):
        exact *= Fraction(with_level - i, records - i)
        if i % 50 == 0:  # exact enough
            exact = Fraction(round(exact * 2**2000), 2**2000)
    [actual] = chance_of_one_level(with_level, records, np.array([drawn]))
    assert actual == pytest.approx(float(exact), rel=1e-10)


def test_a_chance_too_small_for_a_float_is_0() -> None:
    chances = chance_of_one_level(1_000_000, 10_000_000, np.array([1, 300, 400, 999_999, 1_000_001]))
    assert chances[0] == 0.1
    assert 0 < chances[1] < 1e-299
    assert chances[2:].tolist() == [0, 0, 0]


# The example data


@pytest.mark.parametrize(
    ("target", "chance", "permuted", "deviation"),
    [("marital", 18.19, 18.14, 0.45), ("workab", 45.11, 45.06, 0.40), ("ls", 10.61, 10.81, 0.31)],
)
def test_the_example_data(target: str, chance: float, permuted: float, deviation: float) -> None:
    """`permuted` and `deviation` are the mean and standard deviation of 30 permutations made elsewhere."""
    attribute = dp.disclosure(sd2011("ground_truth"), sd2011("synthetic"), KEYS_2011, target).attribute.iloc[
        0
    ]
    assert round(attribute["DiSCO_chance"], 2) == chance
    assert attribute["DiSCO_chance"] == pytest.approx(permuted, abs=deviation)
    assert attribute["DiSCO_excess"] == attribute["DiSCO"] - attribute["DiSCO_chance"]
