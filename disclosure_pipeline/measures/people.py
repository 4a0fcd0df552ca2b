"""People found in what is published: the share of GT's records that SD holds, at SD's full size.

This project's own. Guards that count SD's records are diluted by honest ones; here every person counts once,
however many records are published beside theirs. A fresh table of as many records finds some people, too; two
bounds of how many are known without a holdout, and the smaller one is expected. Columns drawn apart are the
safest table there can be, so what they find is expected at least.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.measures.exact import Grouped, IntArray, percent, sum_exactly
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.measures.words import (
    BEYOND_FRESH_SAMPLE,
    BY_CHANCE,
    BY_FRESH_SAMPLE,
    BY_SYNTHETIC,
    GOOD,
    POINTS,
    SYNTHETIC,
    described,
    figure,
    neutral,
    points,
    standard_error_of,
)

ONCE_IN = 10_000
"""One table in so many, as safe as a table can be, has a figure that counts as beyond chance."""


@dataclass(frozen=True)
class PeopleCounts:
    """Integers over the combinations of some columns.

    alone: GT records whose combination no other one has (f1). pairs: combinations of exactly two (f2). found:
    those of `alone` whose combination is in SD. alone_in_SD: SD records whose combination no other one has.
    """

    alone: int
    pairs: float
    found: int
    alone_in_SD: int

    def divide(self, records_per_unit: float) -> PeopleCounts:
        """Return about as many counts of people as these are of records."""
        if records_per_unit == 1:
            return self
        alone, found, alone_in_SD = (
            round(records / records_per_unit) for records in (self.alone, self.found, self.alone_in_SD)
        )
        return PeopleCounts(alone, self.pairs / records_per_unit, found, alone_in_SD)

    @classmethod
    def from_combinations(cls, d: IntArray, s: IntArray, single: tuple[int, int] = (0, 0)) -> PeopleCounts:
        """Count from the number of GT and of SD records with each combination.

        `single`: further combinations that one record has in both tables together: one of GT, one of SD.
        """
        alone = d == 1
        return cls(
            int(np.count_nonzero(alone)) + single[0],
            int(np.count_nonzero(d == 2)),  # noqa: PLR2004 (a pair)
            int(np.count_nonzero(alone & (s > 0))),
            int(np.count_nonzero(s == 1)) + single[1],
        )


@dataclass(frozen=True)
class LevelCounts:
    """Integers over the combinations of some columns, by the level of one of them.

    repeated: GT records whose combination another one has. pairs: combinations of exactly two GT records.
    found: GT records that are alone with a combination which SD has. repeated_in_SD: SD records whose
    combination another one has.
    """

    repeated: Grouped
    pairs: Grouped
    found: Grouped
    repeated_in_SD: Grouped

    @classmethod
    def from_combinations(cls, levels: IntArray, d: IntArray, s: IntArray) -> LevelCounts:
        """Count from each combination's level; those of one record in both tables may be left out."""
        return cls(
            Grouped.sum_by_group(levels, d * (d > 1)),
            Grouped.sum_by_group(levels, (d == 2).astype(np.int64)),  # noqa: PLR2004 (a pair)
            Grouped.sum_by_group(levels, ((d == 1) & (s > 0)).astype(np.int64)),
            Grouped.sum_by_group(levels, s * (s > 1)),
        )

    def people(self, GT: IntArray, SD: IntArray) -> list[PeopleCounts]:
        """Return the counts of each level, of which both tables have so many records."""
        alone = GT - self.repeated.by_position(len(GT))
        alone_in_SD = SD - self.repeated_in_SD.by_position(len(SD))
        pairs, found = self.pairs.by_position(len(GT)), self.found.by_position(len(GT))
        return [PeopleCounts(*map(int, row)) for row in zip(alone, pairs, found, alone_in_SD, strict=True)]


@dataclass(frozen=True)
class PeopleCopied:
    """Percent of GT records; `beyond` in percentage points.

    `by_chance`: how far chance alone takes `beyond` in tables of these sizes, once in `ONCE_IN`.
    """

    people_copied: float = figure(
        "people found",
        "These people's records, which no other person has, are in the synthetic table.",
        source=GOOD,
        finding="{value} of the people are in the synthetic table, with a record that nobody else has",
        beside=BY_SYNTHETIC,
    )
    people_copied_expected: float = neutral(
        "people found in a fresh sample",
        "These people would be found in equally many records of other people, or in columns drawn apart.",
        source=GOOD,
        beside=BY_FRESH_SAMPLE,
    )
    people_copied_beyond: float = points(
        "people found beyond a fresh sample",
        "This many more people are found in the synthetic table than in equally many fresh records.",
        source=GOOD,
        finding="the share of people whose record is repeated is {value} higher than in a fresh sample",
        beside=BEYOND_FRESH_SAMPLE,
        subject="people whose record is repeated",
    )
    people_copied_beyond_se: float = described(standard_error_of("people_copied_beyond"))
    people_copied_by_chance: float = neutral(
        "people found beyond a fresh sample: by chance",
        "Chance alone takes the figure this far in honest tables of this size, once in 10,000.",
        POINTS,
        source=GOOD,
        beside=BY_CHANCE,
    )


def people_copied(
    counts: PeopleCounts,
    sizes: Sizes,
    apart: float = 0.0,
    comparisons: int = 1,
    records_per_unit: float = 1,
    triples: float = 0.0,
) -> PeopleCopied:
    """Return the people who are found in SD, beside those that a fresh table of N_s records would find.

    `apart`: percent of the GT records that columns drawn apart would find (`found_by_independent_columns`).
    `comparisons`: how many sets of columns, or groups, are looked at, of which the worst counts.
    `records_per_unit`: where people have several records, chance has that many fewer to play with.
    `triples`: combinations of exactly three people (f3), which only the standard error looks at.

    A fresh table finds at most (f1/N)(1 - exp(-N_s · 2 f2 / (N f1))): Good and Turing's mean chance of those
    combinations, and Jensen's inequality. Were SD fresh, it would find at most (f1/N)(1 - S1/N_s) of them,
    Good and Turing's coverage of SD itself.

    >>> people_copied(PeopleCounts(alone=900, pairs=20, found=310, alone_in_SD=950), Sizes(1000, 1000))
    ... # doctest: +ELLIPSIS
    PeopleCopied(people_copied=31.0, people_copied_expected=3.91..., people_copied_beyond=27.08..., ...)

    Source: Good 1953, "The population frequencies of species and the estimation of population parameters".
    """
    by_fresh = 100 * counts.alone / sizes.N_d * min(_fresh_shares(counts, sizes))
    expected = max(by_fresh, apart)
    found = percent(counts.found, sizes.N_d)
    of_units, size_in_units = counts.divide(records_per_unit), sizes.divide(records_per_unit)
    most = _most_found(of_units, size_in_units, apart, 1 / (ONCE_IN * max(comparisons, 1)))
    most = min(round(most * records_per_unit), counts.alone)
    by_chance = max(100 * most / sizes.N_d - expected, 0.0)
    variance = _variance_of_found(counts, sizes, apart, triples) * records_per_unit
    error = 100 * max(math.sqrt(variance), 1) / max(sizes.N_d, 1)
    return PeopleCopied(found, expected, found - expected, error, by_chance)


def _variance_of_found(counts: PeopleCounts, sizes: Sizes, apart: float, triples: float) -> float:
    """Return the variance of the people found, and of how many are expected, by the bound that counts.

    Good's estimate 2 f2/N of the chance of a hit has the variance (4 f2 + 6 f3)/N², his coverage of SD at
    most (S1 (1 - S1/N_s) + N_s - S1)/N_s² (Esty 1983, with at most (N_s - S1)/2 pairs). One pair is taken for
    none, and the larger of those found and those expected for their mean.
    """
    N_d, N_s, alone = sizes.N_d, sizes.N_s, counts.alone
    if not alone or not N_s:
        return 0.0
    by_GT, by_SD = _fresh_shares(counts, sizes)
    of_apart = apart * N_d / (100 * alone)
    found = min(max(counts.found / alone, min(by_GT, by_SD), of_apart), 1.0)
    variance = alone * found * (1 - found)
    if of_apart > min(by_GT, by_SD):
        return variance
    if by_GT <= by_SD:
        return variance + (N_s * (1 - by_GT) / N_d) ** 2 * (4 * max(counts.pairs, 1) + 6 * triples)
    single = min(counts.alone_in_SD, N_s - 2)
    return variance + (alone / N_s) ** 2 * (single * (1 - single / N_s) + N_s - single)


def _most_found(counts: PeopleCounts, sizes: Sizes, apart: float, level: float) -> int:
    """Return how many people chance alone lets a table find, which is as safe as a table can be.

    Pairs of GT records, or of SD records, tell how likely people are to be found, and are counted by chance,
    too. That they are so few and the found so many is as likely as both probabilities multiplied, at most:
    the product of two is below c with chance c (1 - ln c).
    """
    if not counts.alone or not sizes.N_s:
        return 0
    of_both = level / 2 / (1 - math.log(level / 2)) / 2  # of two bounds, the smaller one counts
    per_pair = 2 * sizes.N_s / (sizes.N_d * counts.alone)
    by_GT = _most_beside(
        counts.pairs, lambda pairs: -counts.alone * math.expm1(-per_pair * pairs), counts.alone, of_both
    )
    by_SD = _most_beside(
        (sizes.N_s - counts.alone_in_SD) // 2,
        lambda pairs: counts.alone * min(2 * pairs / sizes.N_s, 1.0),
        counts.alone,
        of_both,
    )
    z = NormalDist().inv_cdf(1 - level)
    return min(max(min(by_GT, by_SD), _highest_count(apart * sizes.N_d / 100, z)), counts.alone)


def _most_beside(pairs: float, mean_found: Callable[[float], float], alone: int, level: float) -> int:
    """Return the largest number that is found beside so few `pairs` more often than `level`.

    `mean_found` gives the mean of what is found from the mean of the pairs; both are Poisson variables.
    """
    highest = _highest_mean(pairs, NormalDist().inv_cdf(1 - level))
    means = [pairs + (highest - pairs) * step / _STEPS for step in range(_STEPS + 1)]
    most = 0
    for mean in means[::_COARSE] + means:  # the best of some is hardly surpassed, and is asked for first
        few, found = _at_most(pairs, mean), mean_found(mean)
        low, high = most, alone + 1  # found with at least that chance; with less, if there were so many
        step = 1
        while high - low > 1:
            middle = min(low + step, (low + high) // 2)
            if few * _at_least(middle, found) >= level:
                low, step = middle, 2 * step
            else:
                high, step = middle, alone
        most = low
    return most


_STEPS, _COARSE = 48, 8


def _at_most(count: float, mean: float) -> float:
    """Return the chance that a Poisson variable is at most that (Wilson & Hilferty 1931)."""
    return 1 - _at_least(count + 1, mean)


def _at_least(count: float, mean: float) -> float:
    """Return the chance that a Poisson variable is at least that, which is above 0."""
    z = 3 * math.sqrt(count) * ((mean / count) ** (1 / 3) - 1 + 1 / (9 * count))
    return math.erfc(-z / math.sqrt(2)) / 2


def _fresh_shares(counts: PeopleCounts, sizes: Sizes) -> tuple[float, float]:
    """Return the shares of those alone that a fresh table finds at most, by GT's coverage and by SD's own."""
    if not counts.alone or not sizes.N_s:
        return 0.0, 0.0
    by_coverage_of_GT = 0.0 - math.expm1(-sizes.N_s * 2 * counts.pairs / (sizes.N_d * counts.alone))
    return by_coverage_of_GT, 1 - counts.alone_in_SD / sizes.N_s


@dataclass(frozen=True)
class Repeats:
    """`repeated` and `expected`: percent of SD records; `repeats` their difference in percentage points.

    `by_chance`: how far chance alone takes `repeats` in tables of these sizes, once in `ONCE_IN`.
    """

    repeated: float = figure(
        "records that stand twice",
        "This many synthetic records equal another synthetic record in every column.",
        denominator=SYNTHETIC,
    )
    repeats_expected: float = neutral(
        "records that stand twice in a fresh sample",
        "This many records of a fresh sample of that size would equal another one of it, at most.",
        denominator="records of a fresh sample",
        source=GOOD,
    )
    repeats: float = points(
        "records that stand twice, beyond a fresh sample",
        "This many more synthetic records equal another one than in a fresh sample of that size: whoever "
        "takes them out again may be left with the confidential ones.",
        source=GOOD,
        finding="the share of repeated records is {value} higher than in a fresh sample",
    )
    repeats_by_chance: float = neutral(
        "records that stand twice, beyond a fresh sample: by chance",
        "Chance alone takes the figure this far in honest tables of this size, once in 10,000.",
        POINTS,
        source=GOOD,
    )


def repeats(counts: PeopleCounts, sizes: Sizes, records_per_unit: float = 1) -> Repeats:
    """Return the SD records that equal another one, beside those of a fresh table of N_s records.

    A new record is one that several GT records have with chance 1 - f1/N, and is repeated at most. Otherwise
    the mean chance of its combination is that of those which one GT record has, or less: 2 f2 / (N f1), so it
    is repeated with chance 1 - exp(-N_s · 2 f2 / (N f1)) at most. Counts are of records, where people have
    several, too: nobody says whose SD's are, and a person's records may equal one another in a fresh table as
    in GT. By `records_per_unit` chance has fewer to play with.

    >>> repeats(PeopleCounts(alone=900, pairs=20, found=0, alone_in_SD=50), Sizes(1000, 1000)).repeats > 80
    True

    Source: this project's own, by Good 1953 and Jensen's inequality.
    """
    z = NormalDist().inv_cdf(1 - 1 / ONCE_IN)
    expected = _repeated(counts.alone, counts.pairs, sizes)
    of_units, in_units = counts.divide(records_per_unit), sizes.divide(records_per_unit)
    highest = _repeated(_lowest_mean(of_units.alone, z), _highest_mean(of_units.pairs, z), in_units)
    repeated = percent(sizes.N_s - counts.alone_in_SD, sizes.N_s)
    most = 2 * _highest_count(highest * in_units.N_s / 200, z)  # they come in twos
    by_chance = min(100 * most / in_units.N_s, 100.0) - expected if sizes.N_s else math.nan
    return Repeats(repeated, expected, repeated - expected, max(by_chance, 0.0))


def _repeated(alone: float, pairs: float, sizes: Sizes) -> float:
    if not alone:
        return 100.0
    share = alone / sizes.N_d
    return 100 * (1 - share * math.exp(-sizes.N_s * 2 * pairs / (sizes.N_d * alone)))


def found_by_independent_columns(chances: npt.NDArray[np.float64], N_s: int, records: int) -> float:
    """Return the percent of GT records that N_s records with columns drawn apart find.

    `chances`: see `copies.chances_of_independent_columns`; they are of so many GT `records`.

    >>> round(found_by_independent_columns(np.array([0.375, 0.125]), N_s=4, records=4), 1)
    29.3
    """
    return 100 * sum_exactly(-np.expm1(-N_s * chances)) / records


def _highest_mean(count: float, z: float) -> float:
    """Return the mean of a Poisson variable that is so small only by chance (Wilson & Hilferty 1931)."""
    n = count + 1
    return n * (1 - 1 / (9 * n) + z / (3 * math.sqrt(n))) ** 3


def _lowest_mean(count: int, z: float) -> float:
    """Return the mean of a Poisson variable that is so large only by chance."""
    return count * max(1 - 1 / (9 * count) - z / (3 * math.sqrt(count)), 0.0) ** 3 if count else 0.0


def _highest_count(mean: float, z: float) -> int:
    """Return how large a Poisson variable gets by chance (Anscombe 1948)."""
    return math.ceil((math.sqrt(mean + 3 / 8) + z / 2) ** 2 - 3 / 8)
