"""What chance adds to the figures of the guards: formulas, limits, and how often honest samples exceed it."""

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sampling import examples

from disclosure_pipeline.measures.copies import HitCounts, hit_counts, unique_hits
from disclosure_pipeline.measures.guard_chance import (
    beyond_chance,
    distance_by_chance,
    guesses_by_chance,
    hits_by_chance,
    nearness_by_chance,
)
from disclosure_pipeline.measures.people import ONCE_IN
from disclosure_pipeline.measures.resemblance import resemblance
from disclosure_pipeline.measures.samples import Sizes

Z = NormalDist().inv_cdf(1 - 1 / ONCE_IN)


def test_what_is_within_chance_is_as_expected() -> None:
    assert beyond_chance(3.0, 3.0) == 0
    assert beyond_chance(3.0, 2.9) == 3
    assert beyond_chance(-1.0, 5.0) == -1
    assert beyond_chance(60.0, 65.0, 50) == 50
    assert beyond_chance(40.0, 65.0, 50) == 40


@pytest.mark.parametrize(("figure", "by_chance"), [(math.nan, 3.0), (3.0, math.nan), (math.nan, math.nan)])
def test_no_figure_is_no_chance(figure: float, by_chance: float) -> None:
    """Without a figure nothing is bounded; without what chance adds the figure is bounded as it is."""
    assert beyond_chance(figure, by_chance) is figure


def test_hits_by_hand() -> None:
    """Arcsines of roots of both shares, apart by z standard errors; 3/8 and 3/4 as Anscombe has them."""
    actual = hits_by_chance(HitCounts(0, pairs=4, triples=2), Sizes(1000, 500), apart=0)
    expected = math.asin(math.sqrt(8.75 / 1000))
    error = math.sqrt(1 / (4 * 500 + 2) + (1 + 1.5 * 2 / 4) / (2 * 1000))
    share = math.sin(expected + Z * error) ** 2
    assert actual == pytest.approx(100 * (share * 500.75 - 0.375) / 500)
    apart = math.asin(math.sqrt(0.2)) + Z * math.sqrt(1 / (4 * 500 + 2))
    of_apart = hits_by_chance(HitCounts(0, pairs=4, triples=2), Sizes(1000, 500), apart=20)
    assert of_apart == pytest.approx(100 * (math.sin(apart) ** 2 * 500.75 - 0.375) / 500)


@examples(50)
@given(
    st.integers(1, 5000),
    st.integers(1, 5000),
    st.integers(0, 400),
    st.integers(0, 200),
    st.floats(0, 100),
    st.integers(1, 30),
)
def test_limits_of_hits(N_d: int, N_s: int, pairs: int, triples: int, apart: float, sets: int) -> None:
    """Never below what is expected, nor above all; more sets or fewer records leave more to chance."""
    pairs, triples = min(pairs, N_d // 4), min(triples, N_d // 6)
    counts, sizes = HitCounts(0, pairs, triples), Sizes(N_d, N_s)
    actual = hits_by_chance(counts, sizes, apart, sets)
    assert max(apart, 200 * pairs / N_d) <= actual + 1e-9
    assert actual <= 100 + 1e-9
    assert actual <= hits_by_chance(counts, sizes, apart, sets + 1) + 1e-9
    assert hits_by_chance(counts, Sizes(N_d, 4 * N_s), apart, sets) <= actual + 1e-9


@pytest.mark.parametrize("records", [3, 20, 200])
def test_a_few_verbatim_records_are_beyond_chance(records: int) -> None:
    """Where other people's records hardly ever show a unique one."""
    assert hits_by_chance(HitCounts(records, 5, 0), Sizes(2000, records), apart=0.1) < 100


def fresh_pairs(N: int, cells: int, skewed: float, samples: int) -> float:
    """How often, among samples of a population, more SD records hit a single GT record than chance allows."""
    rng = np.random.default_rng([N, cells])
    shares = np.arange(1.0, cells + 1) ** -skewed
    population = rng.multinomial(N, shares / shares.sum(), size=(samples, 2))
    beyond = 0
    for d, s in population:
        counts, sizes = hit_counts(d, s), Sizes(N, N)
        by_chance = hits_by_chance(counts, sizes, apart=0)
        beyond += unique_hits(counts, sizes).unique_hits > by_chance
    return beyond / samples


@pytest.mark.parametrize(
    ("N", "cells", "skewed"), [(100, 400, 0.0), (100, 100, 1.0), (300, 2000, 1.0), (300, 90, 0.0)]
)
def test_fresh_samples_are_hardly_ever_beyond_chance(N: int, cells: int, skewed: float) -> None:
    """Once in 10,000; among 2,000 at most once, be the combinations about as frequent or not at all."""
    assert fresh_pairs(N, cells, skewed, 2_000) <= 1 / 2_000


def test_the_variance_of_what_other_people_show() -> None:
    """(4 f2 + 6 f3) / N² is the mean square of 2 f2 / N less the true chance of a hit."""
    rng = np.random.default_rng(3)
    shares = rng.dirichlet(np.full(300, 0.5))
    d = rng.multinomial(400, shares, size=4_000)
    true = (shares * (d == 1)).sum(axis=1)
    pairs, triples = (d == 2).sum(axis=1), (d == 3).sum(axis=1)
    squares = (2 * pairs / 400 - true) ** 2
    assert squares.mean() == pytest.approx(((4 * pairs + 6 * triples) / 400**2).mean(), rel=0.1)


def test_guesses() -> None:
    """Independent guesses, and the most frequent level where the others' records tell it no more."""
    error = 100 * Z * math.sqrt((0.3 * 0.75 + 0.25 * 0.7) / 400)
    assert guesses_by_chance(30, 25, 20, Sizes(1000, 400)) == pytest.approx(error)
    assert guesses_by_chance(30, 25, 45, Sizes(1000, 400)) == pytest.approx(20 + error)
    assert guesses_by_chance(30, 25, 20, Sizes(1000, 4000)) < error
    assert guesses_by_chance(30, 25, 20, Sizes(1000, 400), comparisons=5) > error


def test_nearness() -> None:
    assert nearness_by_chance(2000, Sizes(5000, 5000)) == pytest.approx(
        50 + 50 * Z * math.sqrt(1 / 4999 + 1 / 2000)
    )
    assert nearness_by_chance(100, Sizes(100, 3)) == 100
    assert nearness_by_chance(2000, Sizes(5000, 5000)) < 56


@pytest.mark.parametrize(("N_d", "N_s"), [(100, 10), (300, 300)])
def test_distances_of_fresh_samples_are_within_chance(N_d: int, N_s: int) -> None:
    rng = np.random.default_rng(5)
    shares = [0.4, 0.3, 0.2, 0.1]
    limit = distance_by_chance(Sizes(N_d, N_s))
    assert limit == pytest.approx(math.sqrt(math.log(ONCE_IN) / 2 * (1 / N_d + 1 / N_s)))
    for _ in range(500):
        distances = resemblance(rng.multinomial(N_d, shares), rng.multinomial(N_s, shares))
        assert distances.TVD - distances.TVD_expected <= limit
