"""Counts become percentages here: integers until the last division, whatever the order of the records."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.measures.grouped import Grouped

IntArray = npt.NDArray[np.integer]
Mask = npt.NDArray[np.bool_]

# Quotients are added up as multiples of 2**-160. An error in the 160th bit cannot reach the 53rd, so the
# sum is rounded once, when it becomes a float.
ONE = 2**160


def percent(part: int | np.integer, whole: int | np.integer) -> float:
    """100 * part / whole, rounded once; NaN where `whole` is 0, so that nothing passes a bound by it."""
    return 100 * int(part) / int(whole) if whole else math.nan


def total(counts: IntArray, where: Mask | None = None) -> int:
    """Sum of `counts`, or of those where the mask holds, as a Python integer."""
    picked = counts if where is None else counts[where]
    return int(picked.sum(dtype=np.int64))


def percent_of_quotients(numerators: IntArray, denominators: IntArray, whole: int) -> float:
    """100 * sum(numerators / denominators) / whole, rounded once; NaN where `whole` is 0.

    Entries whose denominator is 0 must have a numerator of 0: they contribute nothing.
    """
    return percent(sum_of_quotients(numerators, denominators), whole * ONE)


def sum_of_quotients(numerators: IntArray, denominators: IntArray) -> int:
    """sum(numerators / denominators) in units of 1 / `ONE`; too small by less than a unit a denominator.

    Numerators that share a denominator are added as integers first, so that the order of the records
    makes no difference. Entries whose denominator is 0 must have a numerator of 0.
    """
    grouped = Grouped.sum_by_group(denominators, numerators)
    return sum(
        int(numerator) * ONE // int(denominator)
        for numerator, denominator in zip(grouped.sums, grouped.groups, strict=True)
    )


def sum_exactly(values: npt.NDArray[np.float64]) -> float:
    """The sum of finite numbers, rounded once, so that their order makes no difference.

    As `math.fsum`, but many at a time. Source: Rump, Ogita and Oishi 2008, "Accurate floating-point
    summation part I", algorithm 3.2.

    >>> sum_exactly(np.array([1e16, 1.0, 1.0]))
    1.0000000000000002e+16
    """
    parts = []
    while largest := float(np.abs(values).max(initial=0)):
        # The upper digits of all values are multiples of one number, and their sum is exact.
        unit = 2.0 ** (math.frexp(largest)[1] + len(values).bit_length() + 1)
        upper = (values + unit) - unit
        parts.append(float(upper.sum()))
        values = values - upper
    return math.fsum(parts)
