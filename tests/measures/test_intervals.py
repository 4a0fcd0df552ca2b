"""Test intervals against published examples, and their coverage."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import membership as reference
from support.sampling import examples

from disclosure_pipeline.measures import frequency
from disclosure_pipeline.measures.exact import sum_exactly
from disclosure_pipeline.measures.frequency import find_lone_combinations
from disclosure_pipeline.measures.holdout import (
    MembershipClaims,
    area_under_curve,
    claim_by_distance,
    find_ruled_out_epsilon,
    membership,
)
from disclosure_pipeline.measures.samples import clopper_pearson, newcombe, paired_difference, wilson


@pytest.mark.parametrize(
    ("part", "whole", "low", "high"),
    # Newcombe 1998, "Two-sided confidence intervals for the single proportion", table I, method 3.
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_as_published(part: int, whole: int, low: float, high: float) -> None:
    assert wilson(part, whole) == pytest.approx((low, high), abs=6e-5)


@pytest.mark.parametrize(
    ("parts", "low", "high"),
    # Newcombe 1998, "Interval estimation for the difference between independent proportions", table II, 10.
    [((56, 70, 48, 80), 0.0524, 0.3339), ((9, 10, 3, 10), 0.1705, 0.8090), ((0, 10, 0, 10), -0.2775, 0.2775)],
)
def test_newcombe_as_published(parts: tuple[int, int, int, int], low: float, high: float) -> None:
    assert newcombe(*parts) == pytest.approx((low, high), abs=6e-5)


def test_the_interval_of_a_paired_difference() -> None:
    """Agresti and Min's formula by hand: 10.5 and 4.5 of 52 pairs, with half a record more in each cell."""
    low, high = paired_difference(10, 4, 50, 0.95)
    assert (low, high) == pytest.approx((-0.02719, 0.25796), abs=1e-5)
    assert paired_difference(4, 10, 50, 0.95) == pytest.approx((-high, -low), abs=1e-12)
    assert paired_difference(1, 0, 1, 0.95) == pytest.approx((-0.5101, 1), abs=1e-4)
    assert all(map(math.isnan, paired_difference(0, 0, 0, 0.95)))


def test_nothing_is_known_of_no_record() -> None:
    assert wilson(0, 0) == (0, 1)
    assert newcombe(0, 0, 1, 2) == (-1, 1)


@pytest.mark.parametrize("share", [0.02, 0.3, 0.5])
def test_wilson_covers(share: float) -> None:
    parts = np.random.default_rng(0).binomial(200, share, 2000)
    inside = [low <= share <= high for low, high in (wilson(int(part), 200) for part in parts)]
    assert 0.92 <= np.mean(inside) <= 0.985


# Sums that do not depend on the order of the summands


@given(st.lists(st.floats(-1e30, 1e30), max_size=200))
def test_a_sum_is_rounded_once(values: list[float]) -> None:
    assert sum_exactly(np.array(values)) == math.fsum(values)


@pytest.mark.parametrize("records", [1, 1000, 100_000])
def test_many_small_shares_are_added_to_the_last_digit(records: int) -> None:
    shares = np.random.default_rng(records).random((12, records)).prod(axis=0)
    assert sum_exactly(shares) == math.fsum(shares)


@pytest.mark.parametrize("largest", [2**63 - 1, 1 << 10, 1 << 3])
def test_records_that_no_other_equals(monkeypatch: pytest.MonkeyPatch, largest: int) -> None:
    """Try codes with few digits for the columns and the position."""
    monkeypatch.setattr(frequency, "_LARGEST_CODE", largest)
    columns = [np.random.default_rng(k).integers(0, 3, 60) for k in range(4)]
    records = list(zip(*(column.tolist() for column in columns), strict=True))
    lone = [i for i, record in enumerate(records) if records.count(record) == 1]
    assert 0 < len(lone) < len(records)
    found, number = find_lone_combinations(columns, [3, 3, 4, 5], np.arange(60))
    assert sorted(found.tolist()) == lone and set(number.tolist()) == {1}


# Membership: exact intervals, ties, and an ε that is ruled out only if it is false


DISTANCES = st.lists(st.integers(0, 6), min_size=1, max_size=20)


@pytest.mark.parametrize("confidence", [0.95, 0.9999])
@pytest.mark.parametrize(("part", "whole"), [(0, 1), (1, 1), (0, 30), (3, 30), (29, 30), (17, 200)])
def test_the_ends_are_where_the_tails_are(part: int, whole: int, confidence: float) -> None:
    low, high = clopper_pearson(part, whole, confidence)
    tail = (1 - confidence) / 2
    if part:
        assert 1 - reference.at_most(part - 1, whole, low) == pytest.approx(tail)
    if part < whole:
        assert reference.at_most(part, whole, high) == pytest.approx(tail)
    assert (low == 0) == (part == 0) and (high == 1) == (part == whole)


@pytest.mark.parametrize("share", [0.004, 0.03, 0.4])
def test_the_interval_covers_as_often_as_it_says(share: float) -> None:
    whole = 300
    intervals = [clopper_pearson(part, whole) for part in range(whole + 1)]
    chances = [reference.at_most(part, whole, share) for part in range(whole + 1)]
    exactly = np.diff([0.0, *chances])
    covered = sum(
        chance for chance, (low, high) in zip(exactly, intervals, strict=True) if low <= share <= high
    )
    assert 0.95 <= covered < 0.995


@examples(40)
@given(DISTANCES, DISTANCES, st.sampled_from([Fraction(1, 100), Fraction(1, 10), Fraction(1, 2)]))
def test_distances_beside_the_reference(members: list[int], others: list[int], rate: Fraction) -> None:
    found = claim_by_distance(np.array(members), np.array(others), float(rate))
    expected = reference.found_at(members, others, rate)
    assert found.claimed_members / found.members == pytest.approx(float(expected))
    assert found.claimed_others / found.others == pytest.approx(float(rate))
    area, error = area_under_curve(np.array(members), np.array(others))
    assert area == pytest.approx(float(reference.nearer(members, others)))
    assert error > 0


def test_the_error_of_an_area() -> None:
    """Compare with the spread over samples from two populations of distances."""
    rng = np.random.default_rng(2)
    drawn = [area_under_curve(rng.poisson(3.0, 300), rng.poisson(3.5, 200)) for _ in range(400)]
    areas, errors = np.array(drawn).T
    assert areas.std() == pytest.approx(errors.mean(), rel=0.1)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_randomised_response_keeps_its_epsilon(epsilon: float) -> None:
    """Each answer is true with e^ε / (1 + e^ε): an ε close to that is ruled out, never a larger one."""
    rng = np.random.default_rng(4)
    truly = math.exp(epsilon) / (1 + math.exp(epsilon))
    ruled_out = []
    for _ in range(60):
        listed, others = rng.binomial(20_000, truly), rng.binomial(20_000, 1 - truly)
        ruled_out.append(find_ruled_out_epsilon(MembershipClaims(listed, 20_000, others, 20_000), 0.0))
    assert max(ruled_out) < epsilon
    assert np.mean(ruled_out) > 0.8 * epsilon


def test_delta_is_taken_off() -> None:
    found = MembershipClaims(9_000, 10_000, 100, 10_000)
    assert (
        find_ruled_out_epsilon(found, 0.5)
        < find_ruled_out_epsilon(found, 1e-6)
        <= find_ruled_out_epsilon(found, 0.0)
    )
    assert find_ruled_out_epsilon(found, 0.95) == 0
    assert find_ruled_out_epsilon(found, 0.0, attackers=4) < find_ruled_out_epsilon(found, 0.0)
    assert find_ruled_out_epsilon(MembershipClaims(0, 100, 0, 100), 0.0) == 0


def test_a_claim_that_is_ruled_out() -> None:
    rng = np.random.default_rng(1)
    near, far = np.zeros(3_000, dtype=int), rng.integers(1, 9, 3_000)
    found = MembershipClaims(2_900, 3_000, 30, 3_000)
    for claim, beyond in ((None, 0), ((9.0, 0.0), 0), ((1.0, 1e-6), None)):
        figures = membership(found, found, near, far, claim=claim)
        assert figures.epsilon_ruled_out > 3
        if beyond is None:
            assert figures.epsilon_beyond_claim == pytest.approx(figures.epsilon_ruled_out - 1)
        else:
            assert figures.epsilon_beyond_claim == beyond
        assert math.isnan(figures.epsilon_claimed) == (claim is None)


def test_people_with_several_records_are_counted_once() -> None:
    rng = np.random.default_rng(1)
    distances = rng.integers(0, 9, 400), rng.integers(0, 9, 400)
    found = MembershipClaims(200, 400, 100, 400)
    by_record, by_person = (membership(found, found, *distances, of) for of in ((1, 1), (4, 4)))
    assert by_person.advantage_keys == by_record.advantage_keys == 25
    assert by_person.advantage_keys_low < by_record.advantage_keys_low
    assert by_person.epsilon_ruled_out < by_record.epsilon_ruled_out
    assert by_person.AUC_se == pytest.approx(2 * by_record.AUC_se)
