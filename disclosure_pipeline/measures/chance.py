"""Chance: the DiSCO that chance alone would give, and how far chance alone takes the guards' figures.

This project's own. [R section 4] flags one target level that accounts for most of DiSCO; DiSCO by chance
states in one number how much of DiSCO comes from levels being common.

A guard compares a share of a sample with its expected value. A perfectly safe table exceeds that half of the
time, and a small table by more. So a figure counts only if a safe table reaches it less than once in
`ONCE_IN` tables. Then all of it counts, because whole records may have leaked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.measures.copies import CopyCounts, HitCounts
from disclosure_pipeline.measures.entry import show_column
from disclosure_pipeline.measures.exact import Grouped, IntArray, percent
from disclosure_pipeline.measures.frequency import FrequencyTable
from disclosure_pipeline.measures.people import ONCE_IN, people_copied
from disclosure_pipeline.measures.samples import Sizes, chance_of_one_level
from disclosure_pipeline.measures.words import BY_CHANCE, neutral, points, words_of_fields


@dataclass(frozen=True)
class Chance:
    """Percent of all GT records.

    DiSCO_chance: the expected DiSCO if SD's target values are permuted at random. DiSCO_excess: DiSCO minus
    DiSCO_chance, negative if the keys say less about the target than chance.
    """

    DiSCO_chance: float = neutral(
        "DiSCO by chance",
        "People whose target would be disclosed if the synthetic targets were permuted at random.",
        beside=BY_CHANCE,
    )
    DiSCO_excess: float = points(
        "DiSCO beyond chance",
        "How many more people have their target disclosed than by chance.",
        finding="the table gives away the {column} of {more} people in 100 than chance would",
        subject="people whose {column} is disclosed",
    )


def chance(DiSCO: int, drawn: Grouped, s_t: IntArray, N_d: int, N_s: int) -> Chance:
    """Compute from the GT records that the exclusions leave; see `disclosed_by_chance` for `drawn`, `s_t`."""
    by_chance = 100 * disclosed_by_chance(drawn, s_t, N_s) / N_d
    return Chance(by_chance, percent(DiSCO, N_d) - by_chance)


def disclosed_by_chance(drawn: Grouped, s_t: IntArray, N_s: int) -> float:
    """Return the expected number of GT records in DiSCO if SD's target values are permuted.

        sum of  d_tq * C(s_t, s_q) / C(N_s, s_q)  over the q with s_q > 0

    `drawn` holds the d_tq, added up by s_q * targets + t; `s_t` are the SD records by target level. The
    quotient is the chance that s_q records drawn from SD all have level t.
    """
    s_q, t = np.divmod(drawn.groups, len(s_t))
    expected = []
    possible = np.flatnonzero(s_q <= s_t[t])
    by_level = possible[np.argsort(s_t[t[possible]], kind="stable")]
    levels, first = np.unique(s_t[t[by_level]], return_index=True)
    for with_level, selected in zip(levels.tolist(), np.split(by_level, first)[1:], strict=True):
        by_s_q = Grouped.sum_by_group(s_q[selected], drawn.sums[selected])
        expected += (by_s_q.sums * chance_of_one_level(with_level, N_s, by_s_q.groups)).tolist()
    return math.fsum(expected)


@dataclass(frozen=True)
class PermutedDCAP:
    """The mean and variance of DCAP over all permutations of SD's target values, in GT records.

    largest: the largest a(q, t) = d_tq / s_q, what one SD record of q with level t adds.
    """

    mean: float
    variance: float
    largest: float


_ROUNDING = 1e-9  # a smaller difference, in records or as a share, comes from rounding


def permuted_DCAP(f: FrequencyTable) -> PermutedDCAP:  # noqa: N802 (a name of the field)
    """Compute from all cells of a target; a q that SD does not have contributes nothing."""
    in_both = np.flatnonzero((f.s_q > 0) & (f.d > 0))
    s_t = f.per_target(f.s).astype(np.float64)
    d, s_q, t, q = f.d[in_both], f.s_q[in_both].astype(np.float64), f.t[in_both], f.q[in_both]
    a, N = d / s_q, f.N_s
    mean = math.fsum(s_t[t] * d) / N
    a_q = np.bincount(q, weights=s_t[t] * a, minlength=f.keys)  # N times a(q, .)
    a_t = np.bincount(t, weights=d, minlength=f.targets)  # N times a(., t)
    size_of_q = np.zeros(f.keys)
    size_of_q[q] = s_q
    raw = math.fsum(s_q * s_t[t] * a**2)
    between = math.fsum(size_of_q * a_q**2) / N + math.fsum(s_t * a_t**2) / N
    squares = raw - between + mean**2
    variance = squares / max(N - 1, 1) if squares > _ROUNDING * raw else 0.0
    return PermutedDCAP(mean, variance, float(a.max(initial=0.0)))


def standard_errors(difference: float, variance: float, largest: float) -> float:
    """Return how many standard errors a sum of terms of at most `largest` is from its mean.

    This is the z of Bernstein's inequality, which solves difference = z · error + z² · largest / 3: a sum is
    farther away with a chance of about exp(-z²/2), however skewed its terms are. Infinite if the sum differs
    from its mean although its variance is 0.
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


def beyond_chance(figure: float, by_chance: float, expected: float = 0.0) -> float:
    """Return the figure to be bounded: `figure` if it exceeds `by_chance`, otherwise at most `expected`.

    >>> beyond_chance(3.1, 4.2), beyond_chance(5.0, 4.2), beyond_chance(-0.7, 4.2)
    (0.0, 5.0, -0.7)
    """
    return min(figure, expected) if figure <= by_chance else figure


def difference_beyond_chance(figure: float, error: float, comparisons: int = 1) -> float:
    """Return the difference to be bounded: `figure` if beyond `difference_by_chance`, otherwise at most 0.

    NaN, which passes no bound, if the standard error is not finite. `comparisons`: number of targets.

    >>> [difference_beyond_chance(*pair) for pair in [(4.0, 1.5), (6.0, 1.5), (-2.0, 1.5), (0.0, math.inf)]]
    [0.0, 6.0, -2.0, nan]
    """
    if not math.isfinite(error):
        return math.nan
    return beyond_chance(figure, difference_by_chance(error, comparisons))


def difference_by_chance(error: float, comparisons: int = 1) -> float:
    """Return the difference that chance alone exceeds once in `ONCE_IN` tables, for a normal error."""
    return NormalDist().inv_cdf(1 - 1 / (ONCE_IN * max(comparisons, 1))) * error


def errors_of_largest(comparisons: int) -> float:
    """Return the z that the largest of several differences exceeds as rarely as a single one exceeds 2.

    >>> [round(errors_of_largest(number), 2) for number in (1, 5, 20)]
    [2.0, 2.61, 3.05]

    Source: Bonferroni, for normal errors.
    """
    return NormalDist().inv_cdf(1 - NormalDist().cdf(-2) / max(comparisons, 1))


def hits_by_chance(
    counts: HitCounts,
    sizes: Sizes,
    independent: float,
    comparisons: int = 1,
    records_per_unit: float = 1,
) -> float:
    """Return the percent of hits on lone GT records that chance alone exceeds once in `ONCE_IN` tables.

    `independent`: percent that hit one if columns are drawn independently. `comparisons`: number of sets of
    columns, of which the worst counts. `records_per_unit`: records per person, which reduces the number of
    independent people.

    For new people the expected share is estimated: p = 2 f2 / N_d with variance (4 f2 + 6 f3) / N_d², where
    f2 and f3 combinations have two and three GT records. For independent columns it is known. The observed
    share has variance p (1 - p) / N_s. Both are compared as arcsines of square roots, whose variances do not
    depend on p: 1 / (4 N_s + 2) and (1 + 1.5 f3 / f2) / (2 N_d). The larger limit is returned, at least the
    expected share.

    >>> round(hits_by_chance(HitCounts(hits=9, pairs=1, triples=0), Sizes(300, 300), independent=0.1), 2)
    7.63

    Source: Good 1953, "The population frequencies of species and the estimation of population parameters",
    for p and, by the same argument, its variance; Anscombe 1948, "The transformation of Poisson, binomial and
    negative-binomial data", for arcsines; Bonferroni for the comparisons.
    """
    z, sizes = NormalDist().inv_cdf(1 - 1 / (ONCE_IN * comparisons)), sizes.divide(records_per_unit)
    pairs, triples = counts.pairs / records_per_unit, counts.triples / records_per_unit
    variance_SD = 0.5 / (sizes.N_s + 0.5)  # twice the variance of its arcsine
    variance_GT = (1 + 1.5 * triples / max(pairs, 1)) / sizes.N_d
    new_people = (2 * pairs + 3 / 4) / sizes.N_d
    return max(
        _limit(new_people, z * math.sqrt((variance_SD + variance_GT) / 2), sizes.N_s),
        _limit(independent / 100, z * math.sqrt(variance_SD / 2), sizes.N_s),
    )


NEARLY_ALL = 0.9
"""The share of GT records with a value of their own from which on a column is like an identifier."""

FEWEST_IDENTIFIED = 100
"""The fewest GT records of such a column: in a smaller table, values may all be different by chance."""


def is_like_identifier(alone: int, records: int) -> bool:
    """Return whether nearly all GT records have a value of a column that no other person's record has.

    A missing value is nobody's own, so amounts with gaps are not like an identifier.

    >>> is_like_identifier(148, 215), is_like_identifier(1498, 1500), is_like_identifier(20, 20)
    (False, True, False)
    """
    return records >= FEWEST_IDENTIFIED and alone >= NEARLY_ALL * records


def holds_real_values(
    counts: CopyCounts, sizes: Sizes, comparisons: int = 1, records_per_unit: float = 1
) -> bool:
    """Return whether SD has more of the values that only one person has than fresh records would.

    `counts` are over the values of one column that is like an identifier; no other column has real values.
    `comparisons`: number of columns that are looked at. Amounts that are drawn anew coincide with GT's as
    rarely as GT's among each other (see `people_copied` and `hits_by_chance`: each may be exceeded in half
    of the tables that chance alone refuses). Identifiers never coincide, so that row numbers are real ones.

    >>> from disclosure_pipeline.measures.people import PeopleCounts
    >>> def found(people, pairs, hits):
    ...     return CopyCounts(hits, HitCounts(hits, pairs, 0), PeopleCounts(people, pairs, hits, 990))
    >>> holds_real_values(found(1000, 0, 50), Sizes(1000, 1000))
    True
    >>> holds_real_values(found(960, 20, 50), Sizes(1000, 1000))
    False
    >>> holds_real_values(found(850, 0, 850), Sizes(1000, 1000))
    False
    """
    if not is_like_identifier(counts.people.alone, sizes.N_d):
        return False
    tries = 2 * comparisons
    copied = people_copied(counts.people, sizes, 0.0, tries, records_per_unit)
    once = counts.hit_once()
    most_hits = hits_by_chance(once, sizes, 0.0, tries, records_per_unit)
    has_more_hits = percent(once.hits, sizes.N_s) > most_hits
    return has_more_hits or copied.people_copied_beyond > copied.people_copied_by_chance


def guesses_by_chance(
    guessed: float, guessed_others: float, most_frequent: float, sizes: Sizes, comparisons: int = 1
) -> float:
    """Return the guessed_beyond, in percentage points, that chance alone exceeds once in `ONCE_IN` tables.

    `guessed`, `guessed_others` (at n records) and `most_frequent` (records with the most frequent target
    level, of those that the exclusions leave) are in percent of GT records. `comparisons`: number of targets.

    Guessing the most frequent level is always allowed. The others' records may not reveal it: if two levels
    are about equally frequent, leaving a person out makes the other level the mode. Beyond that,
    from n records at most n groups of people can be guessed differently, each with the variance
    g (1 - g') + g' (1 - g) of the two shares (McNemar 1947).

    >>> round(guesses_by_chance(30.0, 28.0, 25.0, Sizes(1000, 1000)), 1)
    7.6

    Source: this project's own.
    """
    z = NormalDist().inv_cdf(1 - 1 / (ONCE_IN * comparisons))
    right, right_others = guessed / 100, guessed_others / 100
    error = math.sqrt((right * (1 - right_others) + right_others * (1 - right)) / max(sizes.n, 1))
    return max(0.0, most_frequent - guessed_others) + 100 * z * error


def distance_by_chance(sizes: Sizes, comparisons: int = 1) -> float:
    """Return the TVD minus the expected one (a share of 1) that chance exceeds once in `ONCE_IN` tables.

    One record changes TVD by at most 1 / N_s or 1 / N_d. `comparisons`: number of columns.

    >>> round(distance_by_chance(Sizes(1000, 1000)), 3)
    0.096

    Source: McDiarmid 1989, "On the method of bounded differences".
    """
    return math.sqrt(math.log(ONCE_IN * comparisons) / 2 * (1 / sizes.N_d + 1 / sizes.N_s))


def _limit(expected: float, further: float, records: int) -> float:
    """Return, in percent, the share that is `further` than `expected` on the scale of arcsines of roots."""
    angle = math.asin(math.sqrt(min(expected, 1.0))) + further
    share = math.sin(min(angle, math.pi / 2)) ** 2
    hits = share * (records + 3 / 4) - 3 / 8
    return 100 * min(max(hits / records, expected), 1.0)


_LARGEST_CHANCE_OF_ONE = float(np.exp(-1))  # that a Poisson variable equals 1
_RATES = np.geomspace(0.01, 6, 80)


def bound_chance_of_nearness(counts: IntArray, difference: int) -> float:
    """Bound the probability that a newly drawn table differs from a table in at most `difference` records.

    `counts` are the table's records by combination of values; several combinations may be counted together.
    The new table has as many records from the same distribution. The difference of a count is that of two
    Poisson variables, whose most probable value is 0; a combination of one record recurs with the Good-Turing
    estimate plus one standard deviation. The probability that the absolute differences add up to at most
    2 · `difference` is bounded as in Chernoff (1952). The most frequent combination is left out because its
    count follows from the others.

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
    # An upper bound of exp(-2v) I0(2v), the probability that two Poisson variables of mean v are equal.
    equal = np.where(
        has_one_other,
        coverage * _LARGEST_CHANCE_OF_ONE,
        (1 + 1 / (8 * variance)) / np.sqrt(4 * np.pi * variance),
    )
    # An upper bound of the mean of exp(-rate |X|), if no value of X is more probable than 0.
    means = np.minimum(equal / np.tanh(_RATES[:, np.newaxis] / 2), 1)
    exponents = 2 * difference * _RATES + np.log(means).sum(axis=1)
    return float(np.exp(min(0.0, float(exponents.min()))))


_WORDS = words_of_fields(Chance)

FIGURES = (show_column("DiSCO_excess", "attribute", _WORDS, "learned", "target", public="unit"),)
