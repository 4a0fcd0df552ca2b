"""Risk in the population: GT is a sample, and a record that is unique in it may not be unique there.

A GT record has a weight w, the number of people it represents: by default 1 / pi, with the sampling fraction
pi. Let f GT records, with total weight W, have a key combination. The number F of people who have it is
unknown; F - f is negative binomial with p = f / W, and

    E[1/F | f]  = p ∫₀¹ v^(f-1) / (p + q v) dv,        q = 1 - p

is the individual risk: the chance that a match with a person is right. With u = v / (p + q v), this is the
integral ∫₀¹ p^f u^(f-1) / (1 - q u)^f du of the literature; for f = 1 it is -(p/q) log p. If W is less than
f, the records are taken for the whole population: p = 1, and the risk is 1/f.

DIS is the chance that a match with exactly one GT record is right: f1 / (f1 + Σ (w - 1)), summed over the
records of key combinations that two records have; without weights, f1 pi / (f1 pi + 2 f2 (1 - pi)).

Sources: Skinner & Elliot 2002 (DIS); Benedetti & Franconi 1998, Franconi & Polettini 2004 (individual risk).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from disclosure_pipeline.measures.exact import Floats, IntArray, sum_exactly
from disclosure_pipeline.measures.frequency import first_of_run
from disclosure_pipeline.measures.words import (
    FRANCONI,
    RAAB,
    RECORDS,
    SHARE,
    SKINNER,
    described,
    figure,
    neutral,
    standard_error_of,
)

_SMALLEST_P_OF_SERIES = 0.5  # from here, the terms of a series in q = 1 - p halve
_FEWEST_RECORDS_OF_SERIES = 30  # from here, the same series is short for every p
_TERMS = 60
_NODES = 160
_AT_A_TIME = 20_000  # combinations
_SMALLEST_P = 1e-9
_TWO, _THREE = 2, 3


@dataclass(frozen=True)
class PopulationRisk:
    """Risk by the keys in one synthesis, for an intruder who knows the population."""

    people: float = neutral(
        "people whom the records stand for",
        "The sum of the weights of the confidential records.",
        RECORDS,
    )
    DIS: float = figure(
        "right matches of the confidential table",
        "How often a match of a person with exactly one confidential record is right, for somebody who does "
        "not know who took part: the risk of the confidential table itself.",
        denominator="matches with exactly one record",
        source=SKINNER,
        finding="{value} of the matches with exactly one confidential record are right",
    )
    DIS_se: float = described(standard_error_of("DIS"))
    right_identifications: float = figure(
        "expected right identifications",
        "Replicated uniques that are expected to be identified correctly by somebody who knows the "
        "population, but not who took part.",
        RECORDS,
        source=FRANCONI,
    )
    repU_population: float = figure(
        "replicated uniques, in the population",
        "People who are singled out by their keys in both tables and identified correctly by somebody who "
        "does not know who took part: each counts with the chance that the match is right.",
        source=FRANCONI,
        finding="{value} of the people are identified correctly by somebody who does not know who took part",
    )
    repU_population_se: float = described(standard_error_of("repU_population"))


@dataclass(frozen=True)
class PopulationDisclosure:
    """DiSCO of one target in one synthesis, for an intruder who does not know who took part."""

    DiSCO_population: float = figure(
        "disclosed and correct, in the population",
        "People whose target is disclosed to somebody who does not know who took part: each person whom "
        "DiSCO counts, with the chance that the match is right.",
        source=f"{RAAB}; {FRANCONI}",
        finding="{value} of the people have their {column} disclosed to somebody who does not know who took "
        "part",
    )
    DiSCO_population_se: float = described(standard_error_of("DiSCO_population"))


@dataclass(frozen=True)
class RecordRisk:
    """The risk of each GT record by its keys, one entry per record."""

    records: IntArray = neutral(
        "records with these keys", "Confidential records that have the record's keys.", RECORDS
    )
    people: Floats = neutral(
        "people with these keys",
        "The sum of the weights of the records with the record's keys.",
        RECORDS,
    )
    individual_risk: Floats = figure(
        "individual risk",
        "The chance that a match of the record with a person who has its keys is right.",
        SHARE,
        source=FRANCONI,
    )


def record_risk(q: IntArray, d_q: IntArray, people_q: Floats) -> RecordRisk:
    """Compute the risk of records with these `q`; `d_q`, `people_q`: those of each q and their weight."""
    in_GT = d_q > 0
    risk = np.zeros(len(d_q))
    risk[in_GT] = chance_of_right_match(d_q[in_GT], people_q[in_GT])
    return RecordRisk(d_q[q], people_q[q], risk[q])


def population_risk(
    d_q: IntArray, s_q: IntArray, people_q: Floats, records: int, people: float
) -> PopulationRisk:
    """Compute the figures of the keys; `people_q`: the sum of the weights of the GT records of each q.

    `repU_population_se` covers the uncertainty of F, of which only the distribution is known.

    >>> d, s = np.array([1, 1, 2, 2]), np.array([1, 0, 1, 0])
    >>> risk = population_risk(d, s, np.array([4.0, 4.0, 8.0, 8.0]), 6, 24.0)
    >>> round(risk.DIS, 2), round(risk.right_identifications, 4)
    (14.29, 0.4621)
    """
    replicated = np.flatnonzero((d_q == 1) & (s_q == 1))
    right, error = _expected_right_matches(d_q[replicated], people_q[replicated], np.ones(len(replicated)))
    DIS, DIS_error = _chance_of_lone_match(d_q, people_q, people / records)
    return PopulationRisk(
        people=people,
        DIS=100 * DIS,
        DIS_se=100 * DIS_error,
        right_identifications=right,
        repU_population=100 * right / records,
        repU_population_se=100 * error / records,
    )


def population_disclosure(
    d_q: IntArray, people_q: Floats, disclosed: IntArray, records: int
) -> PopulationDisclosure:
    """Compute from the `disclosed` records, those of each q that DiSCO counts.

    Records of one q are matched with the same people, so they are right or wrong together.
    """
    chosen = np.flatnonzero(disclosed)
    right, error = _expected_right_matches(
        d_q[chosen], people_q[chosen], disclosed[chosen].astype(np.float64)
    )
    return PopulationDisclosure(100 * right / records, 100 * error / records)


def chance_of_right_match(f: IntArray, people: Floats) -> Floats:
    """Return E[1/F | f] for combinations of f GT records with a total weight of `people`.

    >>> chance_of_right_match(np.array([1, 2, 1]), np.array([17.0, 110.0, 1.0])).round(6).tolist()
    [0.177076, 0.017144, 1.0]
    """
    p = np.minimum(1.0, f / people)
    q = 1 - p
    chances = np.empty(len(f))
    by_series = (p >= _SMALLEST_P_OF_SERIES) | (f >= _FEWEST_RECORDS_OF_SERIES)
    chances[by_series] = _by_series(f[by_series], p[by_series])
    chosen = np.flatnonzero(~by_series)
    f, p, q = f[chosen], p[chosen], q[chosen]
    integral = -np.log(p) / q
    by_recursion = p * integral
    for number in range(_TWO, int(f.max(initial=1)) + 1):
        # v^(f-1) / (p + qv) = (v^(f-2) - p v^(f-2) / (p + qv)) / q
        integral = (1 / (number - 1) - p * integral) / q
        here = f == number
        by_recursion[here] = (p * integral)[here]
    chances[chosen] = by_recursion
    return chances


def _by_series(f: IntArray, p: Floats) -> Floats:
    """Return E[1/F | f] = p/f · ₂F₁(1, 1; f + 1; q) as a series in q."""
    q = 1 - p
    term = np.ones(len(f))
    series = term.copy()
    for k in range(1, _TERMS):
        term = term * (k * q / (f + k))
        series += term
    return p / f * series


def spread_of_right_match(f: IntArray, people: Floats) -> Floats:
    """Return the variance of 1/F given f.

    E[1/F²] = (p/f) ∫₀^∞ e^(-z) log(q + p e^(z/f)) / (p + q e^(-z/f)) dz. This is the integral of E[1/F] with
    the additional factor log(1/u) and v = e^(-z/f).
    """
    p = np.minimum(1.0, f / people)
    squares = np.empty(len(f))
    for start in range(0, len(f), _AT_A_TIME):
        part = slice(start, start + _AT_A_TIME)
        squares[part] = _mean_of_squares(f[part].astype(np.float64), p[part])
    return np.maximum(squares - chance_of_right_match(f, people) ** 2, 0)


def _mean_of_squares(f: Floats, p: Floats) -> Floats:
    if not len(f):
        return np.empty(0)
    nodes, weights = _quadrature()
    # The upper limit, where the integrand is negligible; for f = 1 it may rise up to z = f log(1/p).
    reach = (
        np.minimum(f, _TWO) * -np.log(np.maximum(p, _SMALLEST_P))
        + 40
        + 80 * (f > 1) * (f < _FEWEST_RECORDS_OF_SERIES)
    )
    z = nodes[:, None] * reach
    q = 1 - p
    slow = z / f
    integrand = np.exp(-z) * np.log1p(p * np.expm1(slow)) / (p + q * np.exp(-slow))
    of_all: Floats = p / f * reach * (weights @ integrand)
    return of_all


@cache
def _quadrature() -> tuple[Floats, Floats]:
    """Return Gauss-Legendre nodes and weights on 0..1, transformed to be dense near 0."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    x = (nodes + 1) / 2
    return x**2, weights * x


def _expected_right_matches(f: IntArray, people: Floats, records: Floats) -> tuple[float, float]:
    """Return the expected number of right matches of the `records` of each combination, and its error."""
    places, number = _number_pairs(f, people)
    distinct_f, distinct_people = f[places], people[places]
    chances = chance_of_right_match(distinct_f, distinct_people)[number]
    spread = spread_of_right_match(distinct_f, distinct_people)[number]
    return sum_exactly(records * chances), math.sqrt(sum_exactly(records**2 * spread))


def _number_pairs(f: IntArray, people: Floats) -> tuple[IntArray, IntArray]:
    """Return the first position of each distinct pair (f, people), and the number of each entry's pair."""
    order = np.lexsort((people, f))
    new = np.ones(len(f), dtype=bool)
    new[1:] = (f[order][1:] != f[order][:-1]) | (people[order][1:] != people[order][:-1])
    number = np.empty(len(f), dtype=np.int64)
    number[order] = np.cumsum(new) - 1
    return order[new], number


def _chance_of_lone_match(d_q: IntArray, people_q: Floats, weight: float) -> tuple[float, float]:
    """Return DIS as a share of 1, and its standard error by the delta method.

    The f1 lone records of GT are known. Uncertain is the number of other people with their keys: it is
    estimated from the pairs (Poisson), and its spread from the triples, whose 6 (w - 1)² estimate the sum of
    (F - 1)(F - 2) over lone records. DIS is 0 if no GT record is alone. Without pairs, or without lone
    records, the error is that of a single one, of mean weight `weight`.
    """
    alone = int((d_q == 1).sum())
    others = people_q[d_q == _TWO] - _TWO  # for each pair, the people who are not in GT
    rest = max(0.0, sum_exactly(others))
    if not alone + rest:
        return 0.0, 0.0
    squares = sum_exactly(others**2) if len(others) else (_TWO * (weight - 1)) ** 2
    triples = people_q[d_q == _THREE] / _THREE - 1
    of_lone = 6 * sum_exactly(triples**2) + rest - rest**2 / max(alone, 1)
    error = max(alone, 1) * math.sqrt(squares + max(0.0, of_lone)) / (alone + rest) ** 2
    return alone / (alone + rest), min(error, 1.0)


@dataclass(frozen=True)
class HouseholdRisk:
    """The risk of records, in percent of the records, and of units, in percent of the units."""

    units: int = neutral(
        "units", "The number of units, such as households or patients, that the records belong to.", RECORDS
    )
    individual_risk: float = figure(
        "individual risk",
        "Records that are identified correctly by somebody who knows everybody's keys.",
        source=FRANCONI,
    )
    household_risk: float = figure(
        "household risk",
        "Units with a record that is identified correctly.",
        denominator="units",
        source=FRANCONI,
    )


def household_risk(q: IntArray, d_q: IntArray, s_q: IntArray, unit: IntArray) -> HouseholdRisk:
    """Compute the risk of GT's records and units.

    The risk r of a record is 1 / d_q if SD has its q, else 0: the chance that an intruder who knows the
    people with these keys identifies the right one. That of a household is 1 - prod(1 - r).

    >>> q, unit = np.array([0, 1, 1, 2]), np.array([0, 0, 1, 2])
    >>> household_risk(q, np.array([1, 2, 1]), np.array([0, 3, 0]), unit).individual_risk
    25.0

    Source: Franconi & Polettini 2004, "Individual risk estimation in mu-Argus: a review".
    """
    risk = ((s_q > 0) / np.maximum(d_q, 1))[q]
    order = np.lexsort((risk, unit))
    first = np.flatnonzero(first_of_run(unit[order]))
    unfound = np.multiply.reduceat(1 - risk[order], first)
    return HouseholdRisk(
        len(first),
        100 * math.fsum(risk.tolist()) / len(q),
        100 * math.fsum((1 - unfound).tolist()) / len(first),
    )
