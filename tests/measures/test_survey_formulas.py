"""Test the risk in the population against closed forms, published figures and known populations."""

import math

import numpy as np
import pytest
from reference import survey as reference
from support.sampling import some_of

from disclosure_pipeline.measures.exact import Floats, IntArray
from disclosure_pipeline.measures.survey import (
    chance_of_right_match,
    population_disclosure,
    population_risk,
    record_risk,
)


def test_closed_forms_of_the_literature() -> None:
    """Compare with Benedetti & Franconi's forms for 1 to 3 records, at p where these lose no digits."""
    for p in (0.002, 0.05, 0.3, 0.49, 0.51, 0.8):
        q = 1 - p
        expected = [
            -(p / q) * math.log(p),
            p / q**2 * (p * math.log(p) + q),
            p / (2 * q**3) * (q * (1 - 3 * p) - 2 * p**2 * math.log(p)),
        ]
        f = np.array([1, 2, 3])
        assert chance_of_right_match(f, f / p) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("weight", [1.0000001, 1.3, 1.99, 2.01, 12, 400])
def test_the_integral_of_the_literature(weight: float) -> None:
    """Compare with ∫₀¹ p^f u^(f-1) / (1 - q u)^f du by Gauss-Legendre quadrature."""
    p = 1 / weight
    x, at = np.polynomial.legendre.leggauss(400)
    # 1 - u = e^y, because the integrand is large only within about p of u = 1.
    low = math.log(1e-13 * p)
    y = low * (1 - x) / 2
    rest = np.exp(y)
    records = np.array([1, 2, 4, 7, 29, 30, 31, 250])
    f = records[:, np.newaxis]
    logarithm = f * math.log(p) + (f - 1) * np.log1p(-rest) - f * np.log(p + (1 - p) * rest) + y
    integrals = -low / 2 * (np.exp(logarithm) @ at)
    assert chance_of_right_match(records, records * weight) == pytest.approx(integrals, rel=1e-7)


@pytest.mark.parametrize("weight", [1.0, 1.1, 1.9, 2.2, 9, 60])
def test_every_number_of_people_that_is_possible(weight: float) -> None:
    records = np.array([1, 2, 3, 5, 29, 30, 90])
    expected = [reference.right(f, f * weight) for f in records.tolist()]
    assert chance_of_right_match(records, records * weight) == pytest.approx(expected, rel=1e-10)


def test_published_figures_of_sdcmicro() -> None:
    """Compare with fk, Fk and rk of sdcMicro for its data `francdat`, keys 2, 4, 5 and 6, with weights."""
    keys = [(1, 2, 5, 1), (1, 2, 1, 1), (1, 2, 1, 1), (3, 3, 1, 5), (4, 3, 1, 4), (4, 3, 1, 1), (6, 2, 1, 5)]
    keys.append(keys[0])
    weights = np.array([18, 45.5, 39, 17, 541, 8, 5, 92])
    q = np.array([sorted(set(keys)).index(key) for key in keys])
    risk = record_risk(q, np.bincount(q), np.bincount(q, weights=weights).astype(np.float64))
    assert risk.records.tolist() == [2, 2, 2, 1, 1, 1, 1, 2]
    assert risk.people.tolist() == [110, 84.5, 84.5, 17, 541, 8, 5, 110]
    assert risk.individual_risk.round(8).tolist() == [
        *(0.01714426, 0.02204233, 0.02204233, 0.17707583),
        *(0.01165448, 0.29706308, 0.40235948, 0.01714426),
    ]


def test_a_census_is_its_population() -> None:
    d, s = np.array([1, 1, 2, 3]), np.array([1, 0, 2, 1])
    risk = population_risk(d, s, d.astype(float), 7, 7.0)
    assert (risk.DIS, risk.repU_population, risk.right_identifications) == (100, 100 / 7, 1)
    told = population_disclosure(d, d.astype(float), np.array([1, 0, 1, 3]), 7)
    assert told.DiSCO_population == pytest.approx(100 * (1 + 1 / 2 + 1) / 7)


def test_without_a_lone_record_nobody_is_matched_with_one() -> None:
    nobody = population_risk(np.array([3, 4]), np.array([1, 1]), np.array([30.0, 40.0]), 7, 70.0)
    assert (nobody.DIS, nobody.DIS_se, nobody.repU_population) == (0, 0, 0)
    pairs = population_risk(np.array([2]), np.array([1]), np.array([20.0]), 2, 20.0)
    assert pairs.DIS == 0 and pairs.DIS_se > 0
    alone = population_risk(np.array([1]), np.array([1]), np.array([10.0]), 1, 10.0)
    assert alone.DIS == 100 and alone.DIS_se > 0


LARGEST = 600


def population(rng: np.random.Generator, keys: int) -> IntArray:
    """Draw F of each key combination with probability proportional to 1/F, the prior of the model."""
    chances = 1 / np.arange(1, LARGEST)
    return rng.choice(np.arange(1, LARGEST), keys, p=chances / chances.sum())


@pytest.mark.parametrize("fractions", some_of([[0.05], [0.3], [0.02, 0.2]], 3, part_in_ci=1))
def test_populations_that_follow_the_model(fractions: list[float]) -> None:
    """Sums of risks and DIS are right on average, and the error of DIS matches its spread."""
    rng = np.random.default_rng(7)
    names = ("DIS", "repU", "DiSCO")
    estimated, true, errors = [], [], []
    for _ in range(200):
        F = population(rng, 12_000)
        fraction = rng.choice(fractions, len(F))  # of the region, say, which is one of the keys
        f = rng.binomial(F, fraction)
        F, f, people = F[f > 0], f[f > 0], (f / fraction)[f > 0]
        s, N = rng.poisson(f), int(f.sum())
        told = np.where(rng.random(len(f)) < 0.3, rng.binomial(f, 0.7), 0)
        risk = population_risk(f, s, people, N, float(people.sum()))
        disclosure = population_disclosure(f, people, told, N)
        estimated.append((risk.DIS, risk.repU_population, disclosure.DiSCO_population))
        errors.append(risk.DIS_se)
        lone = f == 1
        found = (1 / F)[lone & (s == 1)].sum()
        true.append((100 * lone.sum() / F[lone].sum(), 100 * found / N, 100 * (told / F).sum() / N))
    for k, name in enumerate(names):
        assert np.mean(estimated, axis=0)[k] == pytest.approx(np.mean(true, axis=0)[k], rel=0.03), name
    off = (np.array(estimated) - np.array(true))[:, 0] / np.array(errors)
    assert_errors_match(off)


def assert_errors_match(off: Floats) -> None:
    """Compare differences from the truth, in standard errors, with those of a normal distribution."""
    assert abs(off.mean()) < 0.3
    assert 0.8 < off.std() < 1.3
    assert np.mean(np.abs(off) < 1.96) > 0.88


@pytest.mark.parametrize(("mean", "spread", "right"), [(3.0, 0.3, 1.6), (1.0, 2.5, 0.5)])
def test_populations_that_do_not_follow_the_model(mean: float, spread: float, right: float) -> None:
    """DIS is right for people spread over their keys as log-normal numbers are, the model's sums are not."""
    rng = np.random.default_rng(5)
    estimated, true, errors = [], [], []
    for _ in range(200):
        F = np.maximum(1, rng.lognormal(mean, spread, 4000)).astype(np.int64)
        f = rng.binomial(F, 0.02)
        F, f = F[f > 0], f[f > 0]
        risk = population_risk(f, np.ones_like(f), f / 0.02, int(f.sum()), float(f.sum() / 0.02))
        lone = f == 1
        estimated.append((risk.DIS, risk.right_identifications))
        errors.append(risk.DIS_se)
        true.append((100 * lone.sum() / F[lone].sum(), (1 / F)[lone].sum()))
    ratios = np.mean(estimated, axis=0) / np.mean(true, axis=0)
    assert ratios == pytest.approx([1, right], rel=0.1)
    assert_errors_match((np.array(estimated) - np.array(true))[:, 0] / np.array(errors))


def test_weights_that_differ_among_people_with_the_same_keys_read_high() -> None:
    """People who are drawn more often are more often alone, and represent fewer people than the others."""
    rng = np.random.default_rng(3)
    F = population(rng, 200_000)
    often = rng.binomial(F, 0.5)
    drawn = rng.binomial(often, 0.2), rng.binomial(F - often, 0.02)
    f, people = drawn[0] + drawn[1], drawn[0] / 0.2 + drawn[1] / 0.02
    lone = f == 1
    risk = population_risk(f[lone], f[lone], people[lone], int(lone.sum()), float(people[lone].sum()))
    assert risk.right_identifications > 1.3 * (1 / F[lone]).sum()
