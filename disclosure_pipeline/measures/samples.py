"""Sampling: the chance that a draw misses given records, and confidence intervals.

SD and the other GT records (all but those of one person) are compared at n = min(N_s, N_d - own) records;
`own` is the number of the person's records, by default 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations_with_replacement
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import pandas as pd

from disclosure_pipeline.measures.exact import Floats, IntArray

# exp(-750) is below the smallest float.
_ZERO_EXPONENT = 750.0


def chance_of_one_level(with_level: int, records: int, drawn: IntArray) -> Floats:
    """Return C(with_level, n) / C(records, n), the chance that all n records of a draw have a level.

    `drawn` holds the n. The quotient is multiplied out: with_level / records for the first record,
    (with_level - 1) / (records - 1) for the second, and so on. Unlike a difference of log-gammas, this loses
    no digits and gives the same float on every machine. Over all levels it takes at most `records` steps.
    """
    if with_level == records:
        return np.ones(len(drawn))
    steps = min(int(drawn.max()), with_level)
    if with_level:
        steps = min(steps, math.ceil(_ZERO_EXPONENT / math.log(records / with_level)))
    i = np.arange(steps)
    chance = np.concatenate(([1.0], np.cumprod((with_level - i) / (records - i)), [0.0]))
    return chance[np.minimum(drawn, steps + 1)]


CHANCE_SCALE = 2**30
"""Chances are rounded to integers in units of 1 / `CHANCE_SCALE`, whose sums are the same in any order."""

_HALF = 15  # bits of the halves of a fraction in units of 1 / `CHANCE_SCALE`


@dataclass(frozen=True)
class Sizes:
    """The numbers of GT records, of SD records, and of the person's own records."""

    N_d: int
    N_s: int
    own: int = 1

    def divide(self, records_per_unit: float) -> Sizes:
        """Return the sizes in people: records divided by `records_per_unit`, at least 1 if there are any."""
        return Sizes(*(max(1, round(n / records_per_unit)) if n else 0 for n in (self.N_d, self.N_s)))

    @property
    def others(self) -> int:
        """The number of GT records of other people."""
        return self.N_d - self.own

    @property
    def n(self) -> int:
        """The number of records at which SD and the others are compared."""
        return min(self.N_s, self.others)

    @property
    def others_left(self) -> int:
        """The number of other GT records that are not drawn; if it is 0, P0(m) is 0 for m > 0."""
        return self.others - self.n

    @property
    def synthetic_left(self) -> int:
        """The number of SD records that are not drawn; if it is 0, Q0(m) is 0 for m > 0."""
        return self.N_s - self.n

    @property
    def synthetic_is_drawn(self) -> bool:
        """True if the guess from SD uses a draw of it: SD has more records than GT."""
        return self.N_s > self.N_d

    def p0(self, records: IntArray) -> Floats:
        """Return P0(m), the chance that n drawn other GT records contain none of m, for m in `records`."""
        return chance_of_none_drawn(records, self.others, self.n)

    def q0(self, records: IntArray) -> Floats:
        """Return Q0(m), the chance that n drawn SD records contain none of m, for m in `records`."""
        return chance_of_none_drawn(records, self.N_s, self.n)


def average_records_per_unit(unit: IntArray) -> float:
    """Return the mean number of records of a unit, given whose each record is."""
    return len(unit) / max(len(pd.unique(unit)), 1)


def chance_of_none_drawn(records: IntArray, total: int, n: int) -> Floats:
    """Return C(total - m, n) / C(total, n), the chance that a draw of n contains none of m given records.

    `records` holds the m. Equal to C(total - n, m) / C(total, m): all m are among those not drawn. Exactly 1
    for m = 0, and exactly 0 if fewer than m are not drawn.
    """
    return chance_of_one_level(total - n, total, records) if len(records) else np.empty(0)


def to_integer_chances(chances: Floats) -> IntArray:
    """Return chances in units of 1 / `CHANCE_SCALE`."""
    return np.rint(chances * CHANCE_SCALE).astype(np.int64)


def sum_of_squares(x: IntArray, keys: IntArray | int = 1) -> int:
    """Return the sum of x², in units of 1 / `CHANCE_SCALE`² for x in units of 1 / `CHANCE_SCALE`.

    An entry can stand for several `keys`. Up to 10^9 records, the sums of the parts of x fit into 64 bits.
    """
    whole, fraction = x >> 2 * _HALF, x & (CHANCE_SCALE - 1)
    parts = [whole, fraction >> _HALF, fraction & ((1 << _HALF) - 1)]
    return sum(
        (2 - (i == j)) * int((parts[i] * parts[j] * keys).sum()) << _HALF * (4 - i - j)
        for i, j in combinations_with_replacement(range(3), 2)
    )


def standard_error(squares: float, N_d: int) -> float:
    """Return the standard error of a difference that is a sum over q, in percent of the GT records.

    100 · sqrt(sum of x_q²) / N_d, with x_q the records that q adds to the difference (`squares`: their sum),
    and at least one record. For a fresh sample, x_q is 0 on average and both SD and GT are random, so the
    squares hold the variance of both.
    """
    return 100 * max(math.sqrt(squares) / CHANCE_SCALE, 1) / N_d


Interval = tuple[float, float]

CONFIDENCE = 0.95

_LARGEST_WEIGHT = 0.75


def wilson(part: float, whole: float, confidence: float = CONFIDENCE) -> Interval:
    """Return Wilson's interval for the share `part` / `whole` of independent records, within 0 and 1.

    Ties may count half. (0, 1) without records. Source: Wilson 1927, "Probable inference, the law of
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
    """Return the exact, conservative interval for the share `part` / `whole` of records, within 0 and 1.

    (0, 1) without records. Source: Clopper & Pearson 1934, "The use of confidence or fiducial limits
    illustrated in the case of the binomial".

    >>> [round(end, 4) for end in clopper_pearson(5, 100)]
    [0.0164, 0.1128]
    """
    from scipy.special import betainccinv, betaincinv  # slow to import, for a few figures

    tail = (1 - confidence) / 2
    low = 0.0 if part <= 0 else float(betaincinv(part, whole - part + 1, tail))
    high = 1.0 if part >= whole else float(betainccinv(part + 1, whole - part, tail))
    return low, high


def newcombe(
    part: float, whole: float, other_part: float, other_whole: float, confidence: float = CONFIDENCE
) -> Interval:
    """Return Newcombe's interval for the difference of two independent shares, within -1 and 1.

    Source: Newcombe 1998, "Interval estimation for the difference between independent proportions", method
    10, which combines the Wilson intervals of both shares.
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
    """Return an interval for the difference of two shares of the same records, within -1 and 1.

    Args:
        only_first: Number of records that only the first share counts.
        only_second: Number of records that only the second share counts.
        pairs: Number of records.
        confidence: Nominal coverage, such as 0.95, which is reached on average.

    NaN without records.

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
    """Return an interval for the mean of a finite population of values from 0 to 1.

    Args:
        sample: Values drawn without replacement, in random order (shape: drawn).
        population: Number of values that they were drawn from.
        confidence: Guaranteed coverage, whatever the values are.

    NaN without values. The interval narrows with a smaller variance and a larger sample.

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
    # The drawn values are known; the others lie between 0 and 1.
    lowest, highest = total / population, (total + population - drawn) / population
    mean = min(max(total / drawn, lowest), highest)
    return min(mean, max(lowest, middle - half)), max(mean, min(highest, middle + half))
