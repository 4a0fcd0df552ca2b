"""Risk in the population: GT is a sample, and a record that is unique in it may not be unique there.

A GT record has a weight w, the number of people it represents: by default 1 / pi, with the sampling fraction
pi. Let f GT records, with total weight W, have a key combination. The number F of people who have it is
unknown; F - f is negative binomial with p = f / W, and

    E[1/F | f]  = p ∫₀¹ v^(f-1) / (p + q v) dv,        q = 1 - p

is the individual risk: the chance that a match with a person is right. With u = v / (p + q v), this is the
integral ∫₀¹ p^f u^(f-1) / (1 - q u)^f du of the literature; for f = 1 it is -(p/q) log p. If W is less than
f, the records are taken for the whole population: p = 1, and the risk is 1/f.

The model gives every lone record of one sampling fraction the same risk, whatever the population is like: in
simulated populations its sums were 0.6 to 2.5 times the truth (Rinott & Shlomo 2006; Skinner & Shlomo 2008).
So what follows from it is shown "if the model holds", without an error, and bounds nothing.

DIS is the chance that a match with exactly one GT record is right: f1 / (f1 + Σ (w - 1)), summed over the
records of key combinations that two records have; without weights, f1 pi / (f1 pi + 2 f2 (1 - pi)). It
follows from no model of the population.

Sources: Skinner & Elliot 2002 (DIS); Benedetti & Franconi 1998, Franconi & Polettini 2004 (individual risk).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.measures.entry import Figure, Place, show_column
from disclosure_pipeline.measures.exact import Floats, IntArray, sum_exactly
from disclosure_pipeline.measures.frequency import first_of_run
from disclosure_pipeline.measures.identity import mark_replicated
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
    words_of_fields,
)

_SMALLEST_P_OF_SERIES = 0.5  # from here, the terms of a series in q = 1 - p halve
_FEWEST_RECORDS_OF_SERIES = 30  # from here, the same series is short for every p
_TERMS = 60
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
        "expected right identifications, if the model holds",
        "Replicated uniques that are expected to be identified correctly by somebody who knows the "
        "population, but not who took part, if the model of how many people have the same keys holds.",
        RECORDS,
        source=FRANCONI,
    )
    repU_population: float = figure(
        "replicated uniques in the population, if the model holds",
        "People who are singled out by their keys in both tables and identified correctly by somebody who "
        "does not know who took part: each counts with the chance that the match is right, if the model of "
        "how many people have the same keys holds.",
        source=FRANCONI,
    )


@dataclass(frozen=True)
class PopulationDisclosure:
    """DiSCO of one target in one synthesis, for an intruder who does not know who took part."""

    DiSCO_population: float = figure(
        "disclosed and correct in the population, if the model holds",
        "People whose target is disclosed to somebody who does not know who took part: each person whom "
        "DiSCO counts, with the chance that the match is right, if the model of how many people have the "
        "same keys holds.",
        source=f"{RAAB}; {FRANCONI}",
    )


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

    >>> d, s = np.array([1, 1, 2, 2]), np.array([1, 0, 1, 0])
    >>> risk = population_risk(d, s, np.array([4.0, 4.0, 8.0, 8.0]), 6, 24.0)
    >>> round(risk.DIS, 2), round(risk.right_identifications, 4)
    (14.29, 0.4621)
    """
    replicated = np.flatnonzero(mark_replicated(d_q, s_q))
    right = _expected_right_matches(d_q[replicated], people_q[replicated], np.ones(len(replicated)))
    DIS, DIS_error = _chance_of_lone_match(d_q, people_q, people / records)
    return PopulationRisk(
        people=people,
        DIS=100 * DIS,
        DIS_se=100 * DIS_error,
        right_identifications=right,
        repU_population=100 * right / records,
    )


def population_disclosure(
    d_q: IntArray, people_q: Floats, disclosed: IntArray, records: int
) -> PopulationDisclosure:
    """Compute from the `disclosed` records, those of each q that DiSCO counts."""
    chosen = np.flatnonzero(disclosed)
    right = _expected_right_matches(d_q[chosen], people_q[chosen], disclosed[chosen].astype(np.float64))
    return PopulationDisclosure(100 * right / records)


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


def _expected_right_matches(f: IntArray, people: Floats, records: Floats) -> float:
    """Return the expected number of right matches of the `records` of each combination."""
    places, number = _number_pairs(f, people)
    return sum_exactly(records * chance_of_right_match(f[places], people[places])[number])


def _number_pairs(f: IntArray, people: Floats) -> tuple[IntArray, IntArray]:
    """Return the first position of each distinct pair (f, people), and the number of each entry's pair."""
    order = np.lexsort((people, f))
    new = first_of_run(f[order]) | first_of_run(people[order])
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


_WORDS = (
    words_of_fields(PopulationRisk) | words_of_fields(HouseholdRisk) | words_of_fields(PopulationDisclosure)
)

FIGURES = (
    Figure(
        "DIS",
        _WORDS["DIS"],
        Place("population", value="DIS", se="DIS_se"),
        "found",
        statistics=("at_most",),
        family="population",
        public="unit",
    ),
    show_column("individual_risk", "units", _WORDS, "found", public="unit"),
    show_column("household_risk", "units", _WORDS, "found", public="unit"),
    show_column("repU_population", "population", _WORDS, "found", public="unit"),
    show_column("DiSCO_population", "population_targets", _WORDS, "learned", "target", public="unit"),
)
