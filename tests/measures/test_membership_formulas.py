"""Membership: exact intervals, ties, and an ε that is ruled out only where it is false."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import membership as reference
from support.sampling import examples

from disclosure_pipeline.measures.intervals import clopper_pearson
from disclosure_pipeline.measures.membership import (
    Found,
    find_by_distance,
    membership,
    nearer_of_pairs,
    rule_out,
)

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
    found = find_by_distance(np.array(members), np.array(others), float(rate))
    expected = reference.found_at(members, others, rate)
    assert found.members / found.of_members == pytest.approx(float(expected))
    assert found.others / found.of_others == pytest.approx(float(rate))
    area, error = nearer_of_pairs(np.array(members), np.array(others))
    assert area == pytest.approx(float(reference.nearer(members, others)))
    assert error > 0


def test_the_error_of_an_area() -> None:
    """Over samples of two populations of known distances."""
    rng = np.random.default_rng(2)
    drawn = [nearer_of_pairs(rng.poisson(3.0, 300), rng.poisson(3.5, 200)) for _ in range(400)]
    areas, errors = np.array(drawn).T
    assert areas.std() == pytest.approx(errors.mean(), rel=0.1)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_randomised_response_keeps_its_epsilon(epsilon: float) -> None:
    """Each is listed truly with e^ε / (1 + e^ε): nearly that ε is ruled out, and never a larger one."""
    rng = np.random.default_rng(4)
    truly = math.exp(epsilon) / (1 + math.exp(epsilon))
    ruled_out = []
    for _ in range(200):
        listed, others = rng.binomial(20_000, truly), rng.binomial(20_000, 1 - truly)
        ruled_out.append(rule_out(Found(listed, 20_000, others, 20_000), 0.0))
    assert max(ruled_out) < epsilon
    assert np.mean(ruled_out) > 0.8 * epsilon


def test_delta_is_taken_off() -> None:
    found = Found(9_000, 10_000, 100, 10_000)
    assert rule_out(found, 0.5) < rule_out(found, 1e-6) <= rule_out(found, 0.0)
    assert rule_out(found, 0.95) == 0
    assert rule_out(found, 0.0, attackers=4) < rule_out(found, 0.0)
    assert rule_out(Found(0, 100, 0, 100), 0.0) == 0


def test_a_claim_that_is_ruled_out() -> None:
    rng = np.random.default_rng(1)
    near, far = np.zeros(3_000, dtype=int), rng.integers(1, 9, 3_000)
    found = Found(2_900, 3_000, 30, 3_000)
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
    found = Found(200, 400, 100, 400)
    by_record, by_person = (membership(found, found, *distances, of) for of in ((1, 1), (4, 4)))
    assert by_person.advantage_keys == by_record.advantage_keys == 25
    assert by_person.advantage_keys_low < by_record.advantage_keys_low
    assert by_person.epsilon_ruled_out < by_record.epsilon_ruled_out
    assert by_person.AUC_se == pytest.approx(2 * by_record.AUC_se)
