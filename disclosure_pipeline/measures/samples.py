"""Samples: the chance that none of some records is drawn, and intervals for what was found in one.

SD and GT's other records (those of everybody but one person) are compared at n = min(N_s, N_d - 1) records;
where a person has several records, `own` of them, at n = min(N_s, N_d - own).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.measures.exact import Floats, IntArray

# exp(-750) is less than the smallest float: a probability below it is 0.
_NOTHING = 750.0


def chance_of_one_level(with_level: int, records: int, drawn: IntArray) -> Floats:
    """Return C(with_level, n) / C(records, n) for each n of `drawn`: all n records drawn have the level.

    Multiplied out: the first record drawn has it with chance with_level / records, the next with
    (with_level - 1) / (records - 1), and so on. Unlike a difference of log-gammas this loses no digits,
    and gives the same float on every machine. Over all levels it takes at most `records` steps.
    """
    if with_level == records:
        return np.ones(len(drawn))
    steps = min(int(drawn.max()), with_level)
    if with_level:
        steps = min(steps, math.ceil(_NOTHING / math.log(records / with_level)))
    i = np.arange(steps)
    chance = np.concatenate(([1.0], np.cumprod((with_level - i) / (records - i)), [0.0]))
    return chance[np.minimum(drawn, steps + 1)]


CHANCE_SCALE = 2**30
"""A chance of 1 as an integer: sums of such integers are the same in any order."""


@dataclass(frozen=True)
class Sizes:
    """The number of GT and of SD records, and of the person's own ones, and what follows from them."""

    N_d: int
    N_s: int
    own: int = 1

    def divide(self, records_per_unit: float) -> Sizes:
        """Return about as many people as these are records, one at least where there are records."""
        if records_per_unit == 1:
            return self
        return Sizes(*(max(1, round(n / records_per_unit)) if n else 0 for n in (self.N_d, self.N_s)))

    @property
    def others(self) -> int:
        """The GT records of other people."""
        return self.N_d - self.own

    @property
    def n(self) -> int:
        """At so many records both are compared."""
        return min(self.N_s, self.others)

    @property
    def others_left(self) -> int:
        """The other GT records that are not drawn; where it is 0, P0(m) is 0 for every m but 0."""
        return self.others - self.n

    @property
    def synthetic_left(self) -> int:
        """The SD records that are not drawn; where it is 0, Q0(m) is 0 for every m but 0."""
        return self.N_s - self.n

    @property
    def others_are_drawn(self) -> bool:
        """True if the others' guess is of a draw of them: there are fewer SD records than other records."""
        return self.others_left > 0

    @property
    def synthetic_is_drawn(self) -> bool:
        """True if the guess is of a draw of SD: it has more records than GT."""
        return self.N_s > self.N_d

    @property
    def something_is_drawn(self) -> bool:
        """True if either of the two is."""
        return self.others_are_drawn or self.synthetic_is_drawn

    def p0(self, records: IntArray) -> Floats:
        """Return P0(m) for each m of `records`: of n drawn from the other GT records, none is among m."""
        return chance_of_none_drawn(records, self.others, self.n)

    def q0(self, records: IntArray) -> Floats:
        """Return Q0(m) for each m of `records`: the same of SD records."""
        return chance_of_none_drawn(records, self.N_s, self.n)


def chance_of_none_drawn(records: IntArray, total: int, n: int) -> Floats:
    """Return C(total - m, n) / C(total, n) for each m of `records`: of n drawn none is among those m.

    The same as C(total - n, m) / C(total, m): all of the m are among those left. Exactly 1 where m is 0,
    exactly 0 where fewer than m are left.
    """
    return chance_of_one_level(total - n, total, records) if len(records) else np.empty(0)


def to_integer_chances(chances: Floats) -> IntArray:
    """Return chances in units of 1 / `CHANCE_SCALE`."""
    return np.rint(chances * CHANCE_SCALE).astype(np.int64)


Interval = tuple[float, float]

CONFIDENCE = 0.95

_LARGEST_WEIGHT = 0.75
_MOST_TERMS = 100_000  # of a continued fraction, which ends far earlier


def wilson(part: float, whole: float, confidence: float = CONFIDENCE) -> Interval:
    """Return an interval from 0 to 1 for the share that `part` of `whole` independent records stand for.

    Ties may count half. (0, 1) where there is no record. Source: Wilson 1927, "Probable inference, the law of
    succession, and statistical inference".
    """
    if not whole:
        return 0.0, 1.0
    z2 = NormalDist().inv_cdf((1 + confidence) / 2) ** 2
    share = part / whole
    middle = (share + z2 / (2 * whole)) / (1 + z2 / whole)
    half = math.sqrt(z2 * (share * (1 - share) + z2 / (4 * whole)) / whole) / (1 + z2 / whole)
    return max(0.0, min(middle - half, share)), min(1.0, max(middle + half, share))


def clopper_pearson(part: float, whole: float, confidence: float = CONFIDENCE) -> Interval:
    """Return an interval from 0 to 1 for the share of `part` of `whole` records, which is never too narrow.

    (0, 1) where there is no record. Source: Clopper & Pearson 1934, "The use of confidence or fiducial limits
    illustrated in the case of the binomial".

    >>> [round(end, 4) for end in clopper_pearson(5, 100)]
    [0.0164, 0.1128]
    """
    tail = (1 - confidence) / 2
    low = 0.0 if part <= 0 else _beta_quantile(tail, part, whole - part + 1)
    high = 1.0 if part >= whole else _beta_quantile(1 - tail, part + 1, whole - part)
    return low, high


def _beta_quantile(chance: float, a: float, b: float) -> float:
    """Return where the beta distribution has reached a chance, by halving."""
    low, high = 0.0, 1.0
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if beta_up_to(middle, a, b) < chance else (low, middle)
    return middle


def beta_up_to(x: float, a: float, b: float) -> float:
    """Return the chance of a beta variable to be at most x, by its continued fraction.

    Source: Lentz's algorithm, as in Press et al. 2007, "Numerical Recipes", 6.4.

    >>> round(beta_up_to(0.25, 1, 3), 6)
    0.578125
    """
    if not 0 < x < 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - beta_up_to(1 - x, b, a)
    tiny, precise = 1e-300, 1e-15
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or tiny)
    fraction = d
    for m in range(1, _MOST_TERMS):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / (1 + numerator * d or tiny)
            c = 1 + numerator / c or tiny
            fraction *= c * d
        if abs(c * d - 1) < precise:
            break
    logarithm = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(logarithm) * fraction / a


def newcombe(
    part: float, whole: float, other_part: float, other_whole: float, confidence: float = CONFIDENCE
) -> Interval:
    """Return an interval from -1 to 1 for the first of two independent shares less the second.

    Source: Newcombe 1998, "Interval estimation for the difference between independent proportions", method
    10, which combines the Wilson intervals of both.
    """
    if not whole or not other_whole:
        return -1.0, 1.0
    share, other = part / whole, other_part / other_whole
    low, high = wilson(part, whole, confidence)
    other_low, other_high = wilson(other_part, other_whole, confidence)
    difference = share - other
    return (
        difference - math.hypot(share - low, other_high - other),
        difference + math.hypot(high - share, other - other_low),
    )


def paired_difference(only_first: float, only_second: float, pairs: float, confidence: float) -> Interval:
    """Return an interval from -1 to 1 for the difference of two shares of the same records.

    Args:
        only_first: Number of records that are counted by the first share alone.
        only_second: Number of those that are counted by the second alone.
        pairs: Number of records.
        confidence: Such as 0.95; coverage is close to it on average, and no guarantee.

    NaN of no records.

    Source: Agresti & Min 2005, "Simple improved confidence intervals for comparing matched proportions",
    section 3: half a record is added to each cell of the two by two table.
    """
    if not pairs:
        return math.nan, math.nan
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    n, b, c = pairs + 2, only_first + 0.5, only_second + 0.5
    difference = (b - c) / n
    half = z * math.sqrt(b + c - (b - c) ** 2 / n) / n
    return max(-1.0, difference - half), min(1.0, difference + half)


def mean_of_population(
    sample: npt.NDArray[np.float64], population: int, confidence: float = CONFIDENCE
) -> Interval:
    """Return an interval for the mean of a finite population of values from 0 to 1, by some of them.

    Args:
        sample: Values drawn without replacement, in random order (shape: drawn).
        population: Number of values that they were drawn from.
        confidence: The least probability with which the interval holds the mean, whatever the values are.

    The smaller their variance and the larger their share of the population, the narrower; NaN of none.

    Source: Waudby-Smith & Ramdas 2020, "Confidence sequences for sampling without replacement", theorem 3.2
    (empirical Bernstein), with the weights for a fixed number of draws.
    """
    drawn = len(sample)
    if not drawn:
        return math.nan, math.nan
    total = math.fsum(sample.tolist())
    earlier = np.arange(drawn)
    left = population - earlier  # values not drawn yet, before each draw
    sum_before = np.concatenate(([0.0], np.cumsum(sample)[:-1]))
    mean_before = (0.5 + sum_before) / (earlier + 1)
    mean_after = (0.5 + sum_before + sample) / (earlier + 2)
    squares_before = np.concatenate(([0.0], np.cumsum((sample - mean_after) ** 2)[:-1]))
    variance_before = (0.25 + squares_before) / (earlier + 1)
    information = math.log(2 / (1 - confidence))
    weights = np.minimum(np.sqrt(2 * information / (drawn * variance_before)), _LARGEST_WEIGHT)
    whole = float((weights * population / left).sum())
    middle = float((weights * (sample + sum_before / left)).sum()) / whole
    spread = float(((sample - mean_before) ** 2 * (-np.log1p(-weights) - weights)).sum())
    half = (spread + information) / whole
    # What was drawn is known; the rest is from 0 to 1.
    lowest, highest = total / population, (total + population - drawn) / population
    mean = min(max(total / drawn, lowest), highest)
    return min(mean, max(lowest, middle - half)), max(mean, min(highest, middle + half))
