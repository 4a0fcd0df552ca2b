"""Risk in the population: GT is a sample of it, and who is alone in the sample need not be alone there.

Every GT record has a weight w: the number of people that it stands for. Without weights it is 1 / pi, the
inverse of the sampling fraction. For a key combination that f GT records have, whose weights add up to W, the
number F of people who have it is unknown: F - f is negative binomial with p = f / W, and

    E[1/F | f]  = p ∫₀¹ v^(f-1) / (p + q v) dv,        q = 1 - p

is the chance that a match of it with a person is right: the individual risk. With u = v / (p + q v) this is
the integral ∫₀¹ p^f u^(f-1) / (1 - q u)^f du of the literature; for f = 1 it is -(p/q) log p. A record of
weights that add up to less than f counts as a whole population: p = 1, and the risk is 1/f.

DIS is the chance that a match of somebody with exactly one GT record is right: f1 / (f1 + Σ (w - 1)) over the
records of the key combinations of two, and f1 pi / (f1 pi + 2 f2 (1 - pi)) without weights.

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

_EVEN = 0.5  # from this p on, a series in q = 1 - p halves its terms
_MANY = 30  # from so many records on, the same series is short for every p
_TERMS = 60
_NODES = 160
_PART = 20_000  # combinations whose spread is computed at a time
_FEWEST = 1e-9
_TWO, _THREE = 2, 3


@dataclass(frozen=True)
class PopulationRisk:
    """Risk by the keys in one synthesis: what a match means for somebody who knows the population."""

    people: float = neutral(
        "people whom the records stand for",
        "The weights of the confidential records add up to this many people.",
        RECORDS,
    )
    DIS: float = figure(
        "right matches of the confidential table",
        "This often a match of somebody with exactly one confidential record is right, by somebody who "
        "does not know who took part: what it would be of the confidential table itself.",
        denominator="matches with exactly one record",
        source=SKINNER,
        finding="{value} of the matches with exactly one confidential record are right",
    )
    DIS_se: float = described(standard_error_of("DIS"))
    right_identifications: float = figure(
        "expected right identifications",
        "This many of the replicated uniques are expected to be named rightly by somebody who knows the "
        "population, but not who took part.",
        RECORDS,
        source=FRANCONI,
    )
    repU_population: float = figure(
        "replicated uniques, in the population",
        "This many people are singled out by their keys in both tables and named rightly by somebody who "
        "does not know who took part: each counts with the chance that the match is right.",
        source=FRANCONI,
        finding="{value} of the people are named rightly by somebody who does not know who took part",
    )
    repU_population_se: float = described(standard_error_of("repU_population"))


@dataclass(frozen=True)
class PopulationDisclosure:
    """DiSCO of one target in one synthesis for somebody who does not know who took part."""

    DiSCO_population: float = figure(
        "disclosed and correct, in the population",
        "This many people can be told their target by somebody who does not know who took part: each "
        "whom DiSCO counts, with the chance that the match is right.",
        source=f"{RAAB}; {FRANCONI}",
        finding="{value} of the people can be told their {column} by somebody who does not know who took "
        "part",
    )
    DiSCO_population_se: float = described(standard_error_of("DiSCO_population"))


@dataclass(frozen=True)
class RecordRisk:
    """The risk of each GT record by its keys; an entry per record."""

    records: IntArray = neutral(
        "records with these keys", "This many confidential records have the record's keys.", RECORDS
    )
    people: Floats = neutral(
        "people with these keys",
        "The weights of the records with the record's keys add up to this many people.",
        RECORDS,
    )
    individual_risk: Floats = figure(
        "individual risk",
        "The chance that a match of the record with a person who has its keys is right.",
        SHARE,
        source=FRANCONI,
    )


def record_risk(q: IntArray, d_q: IntArray, people_q: Floats) -> RecordRisk:
    """Return the risk of GT records of these `q`, from the GT records of each q and their added weights."""
    in_GT = d_q > 0
    risk = np.zeros(len(d_q))
    risk[in_GT] = chance_of_right_match(d_q[in_GT], people_q[in_GT])
    return RecordRisk(d_q[q], people_q[q], risk[q])


def population_risk(
    d_q: IntArray, s_q: IntArray, people_q: Floats, records: int, people: float
) -> PopulationRisk:
    """Return the figures of the keys; `people_q` are the weights of the GT records of each q, added up.

    `repU_population_se` is how far the sum may be off from what it is in the population, of which each F_k is
    known no better than by its distribution.

    >>> d, s = np.array([1, 1, 2, 2]), np.array([1, 0, 1, 0])
    >>> risk = population_risk(d, s, np.array([4.0, 4.0, 8.0, 8.0]), 6, 24.0)
    >>> round(risk.DIS, 2), round(risk.right_identifications, 4)
    (14.29, 0.4621)
    """
    replicated = np.flatnonzero((d_q == 1) & (s_q == 1))
    right, error = _add_up(d_q[replicated], people_q[replicated], np.ones(len(replicated)))
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
    """Return DiSCO in the population, of `disclosed` GT records of each q that DiSCO counts.

    Records of one q are matched with the same people, so that they are right or wrong together.
    """
    chosen = np.flatnonzero(disclosed)
    right, error = _add_up(d_q[chosen], people_q[chosen], disclosed[chosen].astype(np.float64))
    return PopulationDisclosure(100 * right / records, 100 * error / records)


def chance_of_right_match(f: IntArray, people: Floats) -> Floats:
    """Return E[1/F | f] of key combinations with so many GT records, whose weights add up to `people`.

    >>> chance_of_right_match(np.array([1, 2, 1]), np.array([17.0, 110.0, 1.0])).round(6).tolist()
    [0.177076, 0.017144, 1.0]
    """
    p = np.minimum(1.0, f / people)
    q = 1 - p
    chances = np.empty(len(f))
    by_series = (p >= _EVEN) | (f >= _MANY)
    chances[by_series] = _by_series(f[by_series], p[by_series])
    chosen = np.flatnonzero(~by_series)
    f, p, q = f[chosen], p[chosen], q[chosen]
    integral = -np.log(p) / q
    found = p * integral
    for number in range(_TWO, int(f.max(initial=1)) + 1):
        # v^(f-1) / (p + qv) = (v^(f-2) - p v^(f-2) / (p + qv)) / q
        integral = (1 / (number - 1) - p * integral) / q
        here = f == number
        found[here] = (p * integral)[here]
    chances[chosen] = found
    return chances


def _by_series(f: IntArray, p: Floats) -> Floats:
    """Return p/f · ₂F₁(1, 1; f + 1; q), the same integral in powers of q."""
    q = 1 - p
    term = np.ones(len(f))
    series = term.copy()
    for k in range(1, _TERMS):
        term = term * (k * q / (f + k))
        series += term
    return p / f * series


def spread_of_right_match(f: IntArray, people: Floats) -> Floats:
    """Return the variance of 1/F given f.

    E[1/F²] = (p/f) ∫₀^∞ e^(-z) log(q + p e^(z/f)) / (p + q e^(-z/f)) dz, which is E[1/F] with the logarithm
    of 1/u before its integrand, and v = e^(-z/f).
    """
    p = np.minimum(1.0, f / people)
    squares = np.empty(len(f))
    for start in range(0, len(f), _PART):
        part = slice(start, start + _PART)
        squares[part] = _mean_of_squares(f[part].astype(np.float64), p[part])
    return np.maximum(squares - chance_of_right_match(f, people) ** 2, 0)


def _mean_of_squares(f: Floats, p: Floats) -> Floats:
    if not len(f):
        return np.empty(0)
    nodes, weights = _quadrature()
    # Up to where the integrand has fallen to nothing: up to z = f log(1/p) it may rise, for f = 1.
    reach = np.minimum(f, _TWO) * -np.log(np.maximum(p, _FEWEST)) + 40 + 80 * (f > 1) * (f < _MANY)
    z = nodes[:, None] * reach
    q = 1 - p
    slow = z / f
    integrand = np.exp(-z) * np.log1p(p * np.expm1(slow)) / (p + q * np.exp(-slow))
    of_all: Floats = p / f * reach * (weights @ integrand)
    return of_all


@cache
def _quadrature() -> tuple[Floats, Floats]:
    """Return the nodes and weights of Gauss and Legendre from 0 to 1, close together near 0."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    x = (nodes + 1) / 2
    return x**2, weights * x


def _add_up(f: IntArray, people: Floats, records: Floats) -> tuple[float, float]:
    """Return how many records are expected to be matched rightly, and the standard error of that."""
    places, number = _distinct(f, people)
    distinct_f, distinct_people = f[places], people[places]
    chances = chance_of_right_match(distinct_f, distinct_people)[number]
    spread = spread_of_right_match(distinct_f, distinct_people)[number]
    return sum_exactly(records * chances), math.sqrt(sum_exactly(records**2 * spread))


def _distinct(f: IntArray, people: Floats) -> tuple[IntArray, IntArray]:
    """Return where each pair of both stands first, and the number of each one's pair."""
    order = np.lexsort((people, f))
    new = np.ones(len(f), dtype=bool)
    new[1:] = (f[order][1:] != f[order][:-1]) | (people[order][1:] != people[order][:-1])
    number = np.empty(len(f), dtype=np.int64)
    number[order] = np.cumsum(new) - 1
    return order[new], number


def _chance_of_lone_match(d_q: IntArray, people_q: Floats, weight: float) -> tuple[float, float]:
    """Return DIS as a share of 1, and its standard error by the delta method.

    Both DIS and what it estimates have f1 of GT; the error is that of the other people with the keys of lone
    records. The pairs are an estimate of them (Poisson), the triples give their spread: 6 (w - 1)² of each
    is the sum of (F - 1)(F - 2) of lone records on average. 0 where no GT record is alone: nobody is matched
    with exactly one. Where there is no pair, or no lone record, the error is that of one, of mean `weight`.
    """
    alone = int((d_q == 1).sum())
    others = people_q[d_q == _TWO] - _TWO  # people who are not in GT, for each pair
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
    """The risk of single records, in percent of them, and of whole units, in percent of these."""

    units: int = neutral(
        "units", "The confidential records are of this many units, such as households or patients.", RECORDS
    )
    individual_risk: float = figure(
        "individual risk",
        "This often a record whose keys are in the synthetic table is named rightly, by somebody who "
        "knows everybody's keys.",
        source=FRANCONI,
    )
    household_risk: float = figure(
        "household risk",
        "This many units have a record that is named rightly.",
        denominator="units",
        source=FRANCONI,
    )


def household_risk(q: IntArray, d_q: IntArray, s_q: IntArray, unit: IntArray) -> HouseholdRisk:
    """Return the risk of GT's records and of its units.

    The risk of a record is 1 / d_q where SD has its q, else 0: the chance that who finds it there, and knows
    the people with these keys, names the right one. A household is found if one of its records is:
    1 - prod(1 - r).

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
