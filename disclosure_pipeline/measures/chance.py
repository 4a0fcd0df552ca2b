"""Chance alone: the DiSCO of keys that tell nothing, and how far the guards' figures go by it.

This project's own. [R section 4] flags one target level that is behind most of DiSCO; DiSCO by chance says
with one number how much of it comes from levels being common.

Each guard is a share of a sample, held against what is to be expected of it. A table that is as safe as it
can be exceeds that half of the time, by the more the smaller it is. So a figure counts only where it is
beyond what such a table shows once in `ONCE_IN` tables; then it counts as a whole, since what is suspected is
a leak of a whole record and not of a fraction of one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.measures.copies import HitCounts
from disclosure_pipeline.measures.exact import Grouped, IntArray, percent
from disclosure_pipeline.measures.frequency import FrequencyTable
from disclosure_pipeline.measures.guesses import error_of_guesses
from disclosure_pipeline.measures.people import ONCE_IN
from disclosure_pipeline.measures.samples import Sizes, chance_of_one_level
from disclosure_pipeline.measures.words import BY_CHANCE, neutral, points


@dataclass(frozen=True)
class Chance:
    """Percent of all GT records.

    DiSCO_chance is the DiSCO to be expected if the keys told nothing about the target in SD, DiSCO_excess
    what DiSCO is above it: negative where the keys tell less than chance.
    """

    DiSCO_chance: float = neutral(
        "DiSCO by chance",
        "This many people could be told their target if the synthetic targets were dealt out at random.",
        beside=BY_CHANCE,
    )
    DiSCO_excess: float = points(
        "DiSCO beyond chance",
        "This many more people can be told their target than by chance.",
        finding="the share of people whose {column} is disclosed is {value} higher than by chance",
        subject="people whose {column} is disclosed",
    )


def chance(DiSCO: int, drawn: Grouped, s_t: IntArray, N_d: int, N_s: int) -> Chance:
    """Compute DiSCO by chance of the GT records that the exclusions leave; SD is permuted before them."""
    by_chance = 100 * disclosed_by_chance(drawn, s_t, N_s) / N_d
    return Chance(by_chance, percent(DiSCO, N_d) - by_chance)


def disclosed_by_chance(drawn: Grouped, s_t: IntArray, N_s: int) -> float:
    """Return the expected GT records in DiSCO when SD's target values are permuted.

    `drawn` are the GT records to be counted whose q is in SD, by s_q * targets + t; `s_t` is the number of
    SD records with each target level (shape: targets):

        sum over s_q and t of  records * C(s_t, s_q) / C(N_s, s_q)

    C(s_t, s_q) / C(N_s, s_q) is the chance that s_q records drawn from SD all have level t. It depends on
    s_t and s_q only, so it is computed once for each pair of them that occurs.
    """
    s_q, t = np.divmod(drawn.groups, len(s_t))
    expected = []
    possible = np.flatnonzero(s_q <= s_t[t])
    by_level = possible[np.argsort(s_t[t[possible]], kind="stable")]
    levels, first = np.unique(s_t[t[by_level]], return_index=True)
    for with_level, selected in zip(levels.tolist(), np.split(by_level, first)[1:], strict=True):
        by_s_q = Grouped.sum_by_group(s_q[selected], drawn.sums[selected])
        expected += (by_s_q.sums * chance_of_one_level(with_level, N_s, by_s_q.groups)).tolist()
    return math.fsum(expected)  # exact, so that the order of the records makes no difference


@dataclass(frozen=True)
class PermutedDCAP:
    """In GT records: the mean of DCAP over all permutations, its variance, and the largest a(q, t)."""

    mean: float
    variance: float
    largest: float


# Sums of floats: less than this, in records or of what was added up, is rounding.
_ROUNDING = 1e-9


def permuted_DCAP(f: FrequencyTable) -> PermutedDCAP:  # noqa: N802 (a name of the field)
    """Compute the expected DCAP from all cells of a target; q that SD does not have contribute nothing."""
    in_both = np.flatnonzero((f.s_q > 0) & (f.d > 0))
    s_t = f.per_target(f.s).astype(np.float64)
    d, s_q, t, q = f.d[in_both], f.s_q[in_both].astype(np.float64), f.t[in_both], f.q[in_both]
    a, N = d / s_q, f.N_s
    mean = math.fsum(s_t[t] * d) / N
    of_q = np.bincount(q, weights=s_t[t] * a, minlength=f.keys)  # N times a(q, .)
    of_t = np.bincount(t, weights=d, minlength=f.targets)  # N times a(., t)
    size_of_q = np.zeros(f.keys)
    size_of_q[q] = s_q
    raw = math.fsum(s_q * s_t[t] * a**2)
    between = math.fsum(size_of_q * of_q**2) / N + math.fsum(s_t * of_t**2) / N
    squares = raw - between + mean**2
    variance = squares / max(N - 1, 1) if squares > _ROUNDING * raw else 0.0
    return PermutedDCAP(mean, variance, float(a.max(initial=0.0)))


def standard_errors(difference: float, variance: float, largest: float) -> float:
    """Return how far a sum of terms of at most `largest` is from its mean: the z of Bernstein's inequality.

    z solves difference = z error + z² largest / 3: standard errors where it is small, and fewer where single
    terms are large, so that a sum is farther away with a chance of about exp(-z²/2), however skewed they are.
    Infinite where the sum cannot differ from its mean, and does.
    """
    difference = abs(difference)
    if difference <= _ROUNDING:
        return 0.0
    if variance == 0:
        return math.inf
    error, skew = math.sqrt(variance), largest / 3
    if skew == 0:
        return difference / error
    return (math.sqrt(variance + 4 * skew * difference) - error) / (2 * skew)


_TWO_ERRORS = 2.0
_HALF_OF_THREE_QUARTERS, _THREE_QUARTERS, _HALF = 3 / 8, 3 / 4, 1 / 2


def beyond_chance(figure: float, by_chance: float, expected: float = 0.0) -> float:
    """Return what is bounded: a figure that goes further than chance, otherwise what is expected, or less.

    >>> beyond_chance(3.1, 4.2), beyond_chance(5.0, 4.2), beyond_chance(-0.7, 4.2)
    (0.0, 5.0, -0.7)
    """
    return min(figure, expected) if figure <= by_chance else figure


def difference_beyond_chance(figure: float, error: float, comparisons: int = 1) -> float:
    """Return what is bounded of a difference from others, whose standard error is known.

    It counts where it is as many errors away from 0 as once in `ONCE_IN` tables by chance, if errors are
    normal. NaN where the error is not finite, so that nothing is kept by it. `comparisons`: the number of
    targets.

    >>> [difference_beyond_chance(*pair) for pair in [(4.0, 1.5), (6.0, 1.5), (-2.0, 1.5), (0.0, math.inf)]]
    [0.0, 6.0, -2.0, nan]
    """
    if not math.isfinite(error):
        return math.nan
    return beyond_chance(figure, difference_by_chance(error, comparisons))


def difference_by_chance(error: float, comparisons: int = 1) -> float:
    """Return how far chance alone takes a difference of this standard error, once in `ONCE_IN` tables."""
    return NormalDist().inv_cdf(1 - 1 / (ONCE_IN * max(comparisons, 1))) * error


def errors_of_largest(comparisons: int) -> float:
    """Return how many standard errors the largest of several differences is from 0 as seldom as one is two.

    >>> [round(errors_of_largest(number), 2) for number in (1, 5, 20)]
    [2.0, 2.61, 3.05]

    Source: Bonferroni, for normal errors.
    """
    return NormalDist().inv_cdf(1 - NormalDist().cdf(-_TWO_ERRORS) / max(comparisons, 1))


def hits_by_chance(counts: HitCounts, sizes: Sizes, apart: float, comparisons: int = 1) -> float:
    """Return the percent of SD records that chance alone lets hit a lone GT record, at most.

    `apart`: percent that hit one if columns are drawn apart. `comparisons`: so many sets of columns are
    looked at, of which the worst counts.

    Of new people the share is estimated, p = 2 f2 / N_d, with the variance (4 f2 + 6 f3) / N_d²: f2, f3 are
    the combinations that two and three GT records have. Of columns drawn apart it is known. The observed
    share varies by p (1 - p) / N_s. Both are compared as arcsines of roots, whose variance does not depend on
    p: 1 / (4 N_s + 2), and (1 + 1.5 f3 / f2) / (2 N_d). The larger of both limits is returned; it is never
    below what is expected.

    >>> round(hits_by_chance(HitCounts(hits=9, pairs=1, triples=0), Sizes(300, 300), apart=0.1), 2)
    7.63

    Source: Good 1953, "The population frequencies of species and the estimation of population parameters",
    for p and, by the same argument, its variance; Anscombe 1948, "The transformation of Poisson, binomial and
    negative-binomial data", for arcsines; Bonferroni for the comparisons.
    """
    z = NormalDist().inv_cdf(1 - 1 / (ONCE_IN * comparisons))
    of_SD = _HALF / (sizes.N_s + _HALF)  # twice the variance of its arcsine
    of_GT = (1 + 1.5 * counts.triples / max(counts.pairs, 1)) / sizes.N_d
    new_people = (2 * counts.pairs + _THREE_QUARTERS) / sizes.N_d
    return max(
        _limit(new_people, z * math.sqrt((of_SD + of_GT) / 2), sizes.N_s),
        _limit(apart / 100, z * math.sqrt(of_SD / 2), sizes.N_s),
    )


def guesses_by_chance(
    guessed: float, guessed_others: float, most_frequent: float, sizes: Sizes, comparisons: int = 1
) -> float:
    """Return the points by which chance alone lets more be guessed than from other people, at most.

    `guessed`, `guessed_others`, at n records, and `most_frequent`, those that have the most frequent level of
    the target: percent of GT records. `comparisons`: the number of targets.

    Guessing the most frequent level of all is not held against a table, though the others' records tell it
    no more where two levels are about as frequent: each person that is left out decides between them then.
    Beyond that, see `error_of_guesses`.

    >>> round(guesses_by_chance(30.0, 28.0, 25.0, Sizes(1000, 1000)), 1)
    7.6

    Source: this project's own.
    """
    z = NormalDist().inv_cdf(1 - 1 / (ONCE_IN * comparisons))
    error = error_of_guesses(guessed / 100, guessed_others / 100, sizes.n)
    return max(0.0, most_frequent - guessed_others) + 100 * z * error


def nearness_by_chance(persons: int, sizes: Sizes, comparisons: int = 1) -> float:
    """Return the percent of GT records that chance alone lets be nearer to SD than to others, at most.

    50, and what the labels of the 2 n records that persons are compared with add by chance. Each is the
    nearest of some persons; the numbers of these differ about as much as they are large, which makes
    1 / (4 n), and 1 / (4 persons) for the persons drawn. `comparisons`: the number of distances.

    >>> round(nearness_by_chance(100, Sizes(100, 100)), 1)
    76.4

    Source: this project's own.
    """
    return min(100.0, 50 + much_nearer_by_chance(100.0, persons, sizes, comparisons) / 2)


def much_nearer_by_chance(either_way: float, persons: int, sizes: Sizes, comparisons: int = 1) -> float:
    """Return the points by which chance alone makes SD much nearer than others to more people, at most.

    As `nearness_by_chance`: `either_way` percent of the persons have a sign that the labels decide, and one
    more, so that nobody is certain.

    >>> round(much_nearer_by_chance(20.0, 100, Sizes(100, 100)), 1)
    24.2

    Source: this project's own.
    """
    z = NormalDist().inv_cdf(1 - 1 / (ONCE_IN * comparisons))
    share = min(either_way / 100 + 1 / persons, 1.0)
    return 100 * z * math.sqrt(share * (1 / max(sizes.n, 1) + 1 / persons))


def distance_by_chance(sizes: Sizes, comparisons: int = 1) -> float:
    """Return how far (a share of 1) chance alone takes a column's TVD over the expected one, at most.

    One record changes TVD by 1 / N_s, or 1 / N_d, at most. `comparisons`: the number of columns.

    >>> round(distance_by_chance(Sizes(1000, 1000)), 3)
    0.096

    Source: McDiarmid 1989, "On the method of bounded differences".
    """
    return math.sqrt(math.log(ONCE_IN * comparisons) / 2 * (1 / sizes.N_d + 1 / sizes.N_s))


def _limit(expected: float, further: float, records: int) -> float:
    """Return the percent that is `further` than an expected share, both as arcsines of roots."""
    angle = math.asin(math.sqrt(min(expected, 1.0))) + further
    share = math.sin(min(angle, math.pi / 2)) ** 2
    hits = share * (records + _THREE_QUARTERS) - _HALF_OF_THREE_QUARTERS
    return 100 * min(max(hits / records, expected), 1.0)


_OF_ONE = float(np.exp(-1))  # at most so often does a Poisson variable equal 1
_RATES = np.geomspace(0.01, 6, 80)


def bound_chance_of_nearness(counts: IntArray, difference: int) -> float:
    """Bound the probability that a table drawn anew differs in no more records than that.

    `counts` are the numbers of a table's records with each combination of values, or with several that are
    counted together. The other table has as many records of the same distribution; the difference of a count
    is that of two Poisson variables, whose most probable value is 0, and a combination of one record comes
    back as often as Good and Turing estimate, plus one deviation of that. The probability that the absolute
    differences sum up to no more than 2 x `difference` is bounded as Chernoff (1952) does. The most frequent
    combination is left out, for its count follows from the others.

    >>> round(bound_chance_of_nearness(np.array([1000, 1000]), 7), 2)
    0.96
    >>> bound_chance_of_nearness(np.full(100, 20), 7) < 1e-30
    True
    """
    sorted_counts = np.sort(counts[counts > 0])
    records = float(sorted_counts.sum())
    others: npt.NDArray[np.float64] = sorted_counts[:-1].astype(np.float64)
    if not len(others):
        return 1.0
    has_one_other = others == 1
    coverage = min(1.0, (records - float(has_one_other.sum()) + np.sqrt(records)) / records)
    variance = others * (1 - others / records)
    # Above exp(-2v) I0(2v), the probability that two Poisson variables of mean v are equal.
    equal = np.where(
        has_one_other, coverage * _OF_ONE, (1 + 1 / (8 * variance)) / np.sqrt(4 * np.pi * variance)
    )
    # The mean of exp(-rate |X|), where no value of X is more probable than 0.
    means = np.minimum(equal / np.tanh(_RATES[:, np.newaxis] / 2), 1)
    exponents = 2 * difference * _RATES + np.log(means).sum(axis=1)
    return float(np.exp(min(0.0, float(exponents.min()))))
