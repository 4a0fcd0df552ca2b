"""People copied: the share of GT's lone records that SD holds, at SD's full size.

This project's own. Guards that count SD's records are diluted by honest records; here every person counts
once, however many other records are published. A fresh table of equal size finds some people, too. Without a
holdout, two upper bounds of their number are known, and the smaller one is expected. Independently drawn
columns are the safest possible table, so at least what they find is expected.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.measures.entry import Default, Figure, Place
from disclosure_pipeline.measures.exact import Floats, percent, sum_exactly
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.measures.words import (
    BEYOND_FRESH_SAMPLE,
    BY_CHANCE,
    BY_FRESH_SAMPLE,
    BY_SYNTHETIC,
    GOOD,
    SYNTHETIC,
    Words,
    by_chance_of,
    described,
    figure,
    neutral,
    points,
    standard_error_of,
    words_of_fields,
)

ONCE_IN = 10_000
"""One in this many perfectly safe tables has a figure that counts as beyond chance."""


@dataclass(frozen=True)
class PeopleCounts:
    """Integers over the combinations of some columns.

    alone: GT records whose combination no other GT record has (f1). pairs: combinations of exactly two GT
    records (f2). found: records of `alone` whose combination is in SD. alone_in_SD: SD records whose
    combination no other SD record has (S1).
    """

    alone: int
    pairs: float
    found: int
    alone_in_SD: int

    def divide(self, records_per_unit: float) -> PeopleCounts:
        """Return the counts in people: records divided by `records_per_unit`."""
        alone, found, alone_in_SD = (
            round(records / records_per_unit) for records in (self.alone, self.found, self.alone_in_SD)
        )
        return PeopleCounts(alone, self.pairs / records_per_unit, found, alone_in_SD)


@dataclass(frozen=True)
class PeopleCopied:
    """Percent of GT records; `beyond` in percentage points.

    people_copied_by_chance: the `beyond` that chance alone exceeds once in `ONCE_IN` safe tables.
    """

    people_copied: float = figure(
        "people found",
        "People whose record, which no other person has, is in the synthetic table.",
        source=GOOD,
        finding="{value} of the people are in the synthetic table, unchanged, with a record that nobody else "
        "has",
        subject="people in the synthetic table, unchanged",
        beside=BY_SYNTHETIC,
    )
    people_copied_expected: float = neutral(
        "people found in a fresh sample",
        "People who would be found in equally many records of other people, or in independently drawn "
        "columns.",
        source=GOOD,
        finding="with as many records of other people it would be {value}",
        beside=BY_FRESH_SAMPLE,
    )
    people_copied_beyond: float = points(
        "people found beyond a fresh sample",
        "How many more people are found in the synthetic table than in equally many fresh records.",
        source=GOOD,
        finding="{more} people in 100 are in the synthetic table, unchanged, than would be in as many "
        "records of other people",
        beside=BEYOND_FRESH_SAMPLE,
        subject="people in the synthetic table, unchanged",
    )
    people_copied_beyond_se: float = described(standard_error_of("people_copied_beyond"))
    people_copied_by_chance: float = described(
        by_chance_of("people found beyond a fresh sample", source=GOOD, beside=BY_CHANCE)
    )


def people_copied(
    counts: PeopleCounts,
    sizes: Sizes,
    independent: float = 0.0,
    comparisons: int = 1,
    records_per_unit: float = 1,
    triples: float = 0.0,
) -> PeopleCopied:
    """Compare the people found in SD with those that a fresh table of N_s records would find.

    Args:
        counts: Counts over whole records, or over the combinations of some columns.
        sizes: Numbers of records.
        independent: Percent of the GT records found by `found_by_independent_columns`.
        comparisons: Number of sets of columns, or of groups, of which the worst counts.
        records_per_unit: Records per person, which reduces the number of independent people.
        triples: Combinations of exactly three people (f3), for the standard error.

    A fresh table finds at most the share (f1/N)(1 - exp(-N_s · 2 f2 / (N f1))) of the people, by the
    Good-Turing mean chance of the f1 combinations and Jensen's inequality. A fresh SD also finds at most
    (f1/N)(1 - S1/N_s), by its own Good-Turing coverage.

    >>> people_copied(PeopleCounts(alone=900, pairs=20, found=310, alone_in_SD=950), Sizes(1000, 1000))
    ... # doctest: +ELLIPSIS
    PeopleCopied(people_copied=31.0, people_copied_expected=3.91..., people_copied_beyond=27.08..., ...)

    Source: Good 1953, "The population frequencies of species and the estimation of population parameters".
    """
    by_fresh = 100 * counts.alone / sizes.N_d * min(_fresh_shares(counts, sizes))
    expected = max(by_fresh, independent)
    found = percent(counts.found, sizes.N_d)
    of_units, size_in_units = counts.divide(records_per_unit), sizes.divide(records_per_unit)
    most = _most_found(of_units, size_in_units, independent, 1 / (ONCE_IN * max(comparisons, 1)))
    most = min(round(most * records_per_unit), counts.alone)
    by_chance = max(100 * most / sizes.N_d - expected, 0.0)
    variance = _variance_of_found(counts, sizes, independent, triples) * records_per_unit
    error = 100 * max(math.sqrt(variance), 1) / max(sizes.N_d, 1)
    return PeopleCopied(found, expected, found - expected, error, by_chance)


def _variance_of_found(counts: PeopleCounts, sizes: Sizes, independent: float, triples: float) -> float:
    """Return the variance of the people found minus those expected by the smaller bound.

    Good's estimate 2 f2/N of the chance of a hit has the variance (4 f2 + 6 f3)/N². The coverage of SD has at
    most (S1 (1 - S1/N_s) + N_s - S1)/N_s² (Esty 1983, with at most (N_s - S1)/2 pairs). Without pairs, one is
    assumed; the mean is the larger of those found and those expected.
    """
    N_d, N_s, alone = sizes.N_d, sizes.N_s, counts.alone
    if not alone or not N_s:
        return 0.0
    by_GT, by_SD = _fresh_shares(counts, sizes)
    by_independent = independent * N_d / (100 * alone)
    found = min(max(counts.found / alone, min(by_GT, by_SD), by_independent), 1.0)
    variance = alone * found * (1 - found)
    if by_independent > min(by_GT, by_SD):
        return variance
    if by_GT <= by_SD:
        return variance + (N_s * (1 - by_GT) / N_d) ** 2 * (4 * max(counts.pairs, 1) + 6 * triples)
    single = min(counts.alone_in_SD, N_s - 2)
    return variance + (alone / N_s) ** 2 * (single * (1 - single / N_s) + N_s - single)


def _most_found(counts: PeopleCounts, sizes: Sizes, independent: float, level: float) -> int:
    """Return the number of people that a safe table finds with probability `level` by chance alone.

    The chance to be found is estimated from pairs of GT records, or of SD records, whose number is random,
    too. So few pairs and so many people found are together at most as likely as the product of both
    probabilities, and the product of two uniform variables is below c with probability c (1 - ln c).
    """
    if not counts.alone or not sizes.N_s:
        return 0
    of_both = level / 2 / (1 - math.log(level / 2)) / 2  # of two bounds, the smaller one is used
    per_pair = 2 * sizes.N_s / (sizes.N_d * counts.alone)
    by_GT = most_found_given_pairs(
        counts.pairs, lambda pairs: -counts.alone * np.expm1(-per_pair * pairs), counts.alone, of_both
    )
    by_SD = most_found_given_pairs(
        (sizes.N_s - counts.alone_in_SD) // 2,
        lambda pairs: counts.alone * np.minimum(2 * pairs / sizes.N_s, 1.0),
        counts.alone,
        of_both,
    )
    by_columns = highest_count(independent * sizes.N_d / 100, level)
    return min(max(min(by_GT, by_SD), by_columns), counts.alone)


def most_found_given_pairs(
    pairs: float, mean_found: Callable[[Floats], Floats], alone: int, level: float
) -> int:
    """Return the largest number found that, with at most `pairs` pairs, has a joint probability of `level`.

    Both numbers are Poisson variables; `mean_found` maps means of the pairs to those of the number found.
    """
    from scipy.special import gammainc, gammaincc  # chances of a Poisson variable

    means = pairs + (highest_mean(pairs, level) - pairs) * _TRIED
    few, found = gammaincc(pairs + 1, means), mean_found(means)
    low, high, step = 0, alone + 1, 1  # low is probable enough, high is not
    while high - low > 1:
        middle = min(low + step, (low + high) // 2)
        if (few * gammainc(middle, found) >= level).any():
            low, step = middle, 2 * step
        else:
            high, step = middle, alone
    return low


_TRIED = np.linspace(0, 1, 49)  # means, from the pairs that were counted to the highest possible


def _fresh_shares(counts: PeopleCounts, sizes: Sizes) -> tuple[float, float]:
    """Return upper bounds of the share of lone people found by a fresh table: from GT, and from SD."""
    if not counts.alone or not sizes.N_s:
        return 0.0, 0.0
    by_coverage_of_GT = 0.0 - math.expm1(-sizes.N_s * 2 * counts.pairs / (sizes.N_d * counts.alone))
    return by_coverage_of_GT, 1 - counts.alone_in_SD / sizes.N_s


@dataclass(frozen=True)
class Repeats:
    """Percent of SD records; `repeats` in percentage points.

    repeats_by_chance: the `repeats` that chance alone exceeds once in `ONCE_IN` safe tables of these sizes.
    """

    repeated: float = figure(
        "repeated records",
        "Synthetic records that equal another synthetic record in every column.",
        denominator=SYNTHETIC,
    )
    repeats_expected: float = neutral(
        "repeated records in a fresh sample",
        "Records of a fresh sample of that size that would equal another one of it, at most.",
        denominator="records of a fresh sample",
        source=GOOD,
    )
    repeats: float = points(
        "repeated records beyond a fresh sample",
        "How many more synthetic records equal another one than in a fresh sample of that size: whoever "
        "removes them may be left with the confidential records.",
        source=GOOD,
        finding="{more} synthetic records in 100 repeat another one than records of other people would",
        subject="synthetic records that repeat another one",
    )
    repeats_by_chance: float = described(by_chance_of("repeated records beyond a fresh sample", source=GOOD))


def repeats(counts: PeopleCounts, sizes: Sizes, records_per_unit: float = 1) -> Repeats:
    """Compare the SD records that equal another one with those of a fresh table of N_s records.

    A new record has a combination of several GT records with chance 1 - f1/N; all of these may repeat.
    Otherwise the mean chance of its combination is at most that of the lone GT records', 2 f2 / (N f1), so it
    repeats with chance at most 1 - exp(-N_s · 2 f2 / (N f1)). The counts are of records even if people have
    several, because SD's records name no person; `records_per_unit` then reduces the number of independent
    people.

    >>> repeats(PeopleCounts(alone=900, pairs=20, found=0, alone_in_SD=50), Sizes(1000, 1000)).repeats > 80
    True

    Source: this project's own, by Good 1953 and Jensen's inequality.
    """
    level = 1 / ONCE_IN
    expected = _repeated(counts.alone, counts.pairs, sizes)
    of_units, in_units = counts.divide(records_per_unit), sizes.divide(records_per_unit)
    highest = _repeated(_lowest_mean(of_units.alone, level), highest_mean(of_units.pairs, level), in_units)
    repeated = percent(sizes.N_s - counts.alone_in_SD, sizes.N_s)
    most = 2 * highest_count(highest * in_units.N_s / 200, level)  # repeated records come in pairs
    by_chance = min(100 * most / in_units.N_s, 100.0) - expected if sizes.N_s else math.nan
    return Repeats(repeated, expected, repeated - expected, max(by_chance, 0.0))


def _repeated(alone: float, pairs: float, sizes: Sizes) -> float:
    if not alone:
        return 100.0
    share = alone / sizes.N_d
    return 100 * (1 - share * math.exp(-sizes.N_s * 2 * pairs / (sizes.N_d * alone)))


def found_by_independent_columns(chances: npt.NDArray[np.float64], N_s: int, records: int) -> float:
    """Return the percent of GT records that N_s records with independently drawn columns find.

    `chances`: those of `copies.chances_of_independent_columns`, computed from `records` GT records.

    >>> round(found_by_independent_columns(np.array([0.375, 0.125]), N_s=4, records=4), 1)
    29.3
    """
    return 100 * sum_exactly(-np.expm1(-N_s * chances)) / records


def highest_mean(count: float, level: float) -> float:
    """Return the upper limit of the mean of a Poisson variable, from its value (Garwood 1936)."""
    from scipy.special import gammainccinv  # slow to import, for a few figures

    return float(gammainccinv(count + 1, level))


def _lowest_mean(count: float, level: float) -> float:
    """Return the lower limit of the mean of a Poisson variable, from its value (Garwood 1936)."""
    from scipy.special import gammaincinv

    return float(gammaincinv(count, level)) if count else 0.0


def highest_count(mean: float, level: float) -> int:
    """Return the smallest number that a Poisson variable exceeds with at most the chance `level`."""
    from scipy.special import gammainc, pdtrik

    if not mean:
        return 0
    count = math.ceil(pdtrik(1 - level, mean))
    while gammainc(count + 1, mean) > level:  # the inverse has fewer digits
        count += 1
    return count


_WORDS = words_of_fields(Repeats)

FIGURES = (
    Figure(
        "repeats",
        _WORDS["repeats"],
        Place(
            "guards", value="repeats", by_chance="repeats_by_chance", beyond_chance="repeats_beyond_chance"
        ),
        "trusted",
        statistics=("at_most",),
        is_doubt=True,
        default=Default(
            "at_most",
            20,
            "Percentage points of the SD records that equal another SD record, beyond the most that a fresh "
            "sample shows. Beyond this, a candidate cannot be judged",
        ),
        public="unit",
    ),
    Figure(
        "alike",
        Words(
            "people whom the table does not tell apart",
            "This many confidential records equal another person's in every column: nothing can be "
            "measured for these people, because a copy of them cannot be noticed.",
            finding="for {value} of the people the record equals another person's in every column",
        ),
        Place("guards", value="alike"),
        "trusted",
        statistics=("at_most",),
        is_doubt=True,
        shown_with="repeats",
        meaning="the table tells no one apart, so nothing can be measured of it",
        default=Default(
            "at_most",
            97.5,
            "Percent of the GT records that equal another person's in every column. Beyond this, even a copy "
            "of GT would be within the bound of found, whole, so a candidate cannot be judged",
            below=101,
        ),
        public="unit",
    ),
)
