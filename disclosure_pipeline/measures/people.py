"""How many people are found in what is published: the share of GT's records that SD holds, at SD's full size.

This project's own. Guards that count SD's records are diluted by honest ones; here every person counts once,
however many records are published beside theirs. A fresh table of as many records finds some people, too; two
bounds of how many are known without a holdout, and the smaller one is expected. Columns drawn apart are the
safest table there can be, so what they find is expected at least.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Annotated

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.measures.exact import IntArray, percent, sum_exactly
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.measures.words import (
    BEYOND_FRESH_SAMPLE,
    BY_CHANCE,
    BY_FRESH_SAMPLE,
    BY_SYNTHETIC,
    GOOD,
    POINTS,
    Words,
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
class PeopleCopied:
    """Percent of GT records; `beyond` in percentage points.

    `by_chance`: how far chance alone takes `beyond` in tables of these sizes, once in `ONCE_IN`.
    """

    people_copied: Annotated[
        float,
        Words(
            "people found",
            "These people's records, which no other person has, are in the synthetic table.",
            source=GOOD,
            finding="{value} of the people are in the synthetic table, with a record that nobody else has",
            beside=BY_SYNTHETIC,
        ),
    ]
    people_copied_expected: Annotated[
        float,
        Words(
            "people found in a fresh sample",
            "These people would be found in equally many records of other people, or in columns drawn apart.",
            high_is="neither",
            source=GOOD,
            beside=BY_FRESH_SAMPLE,
        ),
    ]
    people_copied_beyond: Annotated[
        float,
        Words(
            "people found beyond a fresh sample",
            "This many more people are found in the synthetic table than in equally many fresh records.",
            POINTS,
            "",
            source=GOOD,
            finding="{value} more of the people are found than in a fresh sample",
            beside=BEYOND_FRESH_SAMPLE,
        ),
    ]
    people_copied_by_chance: Annotated[
        float,
        Words(
            "people found beyond a fresh sample: by chance",
            "Chance alone takes the figure this far in honest tables of this size, once in 10,000.",
            POINTS,
            "",
            "neither",
            GOOD,
            beside=BY_CHANCE,
        ),
    ]


def people_copied(
    counts: PeopleCounts,
    sizes: Sizes,
    apart: float = 0.0,
    comparisons: int = 1,
    records_per_unit: float = 1,
) -> PeopleCopied:
    """Return the people who are found in SD, beside those that a fresh table of N_s records would find.

    `apart`: percent of the GT records that columns drawn apart would find (`found_by_columns_apart`).
    `comparisons`: how many sets of columns, or groups, are looked at, of which the worst counts.
    `records_per_unit`: where people have several records, chance has that many fewer to play with.

    A fresh table finds at most (f1/N)(1 - exp(-N_s · 2 f2 / (N f1))): Good and Turing's mean chance of those
    combinations, and Jensen's inequality. Were SD fresh, it would find at most (f1/N)(1 - S1/N_s) of them,
    Good and Turing's coverage of SD itself.

    >>> people_copied(PeopleCounts(alone=900, pairs=20, found=310, alone_in_SD=950), Sizes(1000, 1000))
    ... # doctest: +ELLIPSIS
    PeopleCopied(people_copied=31.0, people_copied_expected=3.91..., people_copied_beyond=27.08..., ...)

    Source: Good 1953, "The population frequencies of species and the estimation of population parameters".
    """
    z = NormalDist().inv_cdf(1 - 1 / (ONCE_IN * max(comparisons, 1)))
    expected = max(_fresh(counts.alone, counts.pairs, counts.alone_in_SD, sizes), apart)
    highest = max(
        _fresh(
            counts.alone,
            _highest_mean(counts.pairs / records_per_unit, z) * records_per_unit,
            _lowest_mean(counts.alone_in_SD / records_per_unit, z) * records_per_unit,
            sizes,
        ),
        apart,
    )
    found = percent(counts.found, sizes.N_d)
    units = highest * sizes.N_d / 100 / records_per_unit
    most = min(_highest_count(units, z) * records_per_unit, counts.alone)
    by_chance = max(100 * most / sizes.N_d - expected, 0.0)
    return PeopleCopied(found, expected, found - expected, by_chance)


def _fresh(alone: int, pairs: float, alone_in_SD: float, sizes: Sizes) -> float:
    """Percent of GT records that a fresh table finds at most: the smaller of both bounds."""
    if not alone or not sizes.N_s:
        return 0.0
    by_coverage_of_GT = 0.0 - math.expm1(-sizes.N_s * 2 * pairs / (sizes.N_d * alone))
    by_coverage_of_SD = 1 - alone_in_SD / sizes.N_s
    return 100 * alone / sizes.N_d * min(by_coverage_of_GT, by_coverage_of_SD)


def found_by_columns_apart(chances: npt.NDArray[np.float64], N_s: int, records: int) -> float:
    """Return the percent of GT records that N_s records with columns drawn apart find.

    `chances`: see `copies.chances_of_columns_apart`; they are of so many GT `records`.

    >>> round(found_by_columns_apart(np.array([0.375, 0.125]), N_s=4, records=4), 1)
    29.3
    """
    return 100 * sum_exactly(-np.expm1(-N_s * chances)) / records


def _highest_mean(count: float, z: float) -> float:
    """Give the mean of a Poisson variable that is so small only by chance (Wilson & Hilferty 1931)."""
    n = count + 1
    return n * (1 - 1 / (9 * n) + z / (3 * math.sqrt(n))) ** 3


def _lowest_mean(count: float, z: float) -> float:
    """Give the mean of a Poisson variable that is so large only by chance."""
    return count * max(1 - 1 / (9 * count) - z / (3 * math.sqrt(count)), 0.0) ** 3 if count else 0.0


def _highest_count(mean: float, z: float) -> int:
    """Tell how large a Poisson variable gets by chance (Anscombe 1948)."""
    return math.ceil((math.sqrt(mean + 3 / 8) + z / 2) ** 2 - 3 / 8)
