"""The levels of a numeric target in the band around each of them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.measures.exact import IntArray, Mask


@dataclass(frozen=True)
class Band:
    """The levels of a target that lie in the band of each level, by place.

    order: the code at each place: special values, ascending `amounts`, special values, missing.
    low, high: for each place, the first place within its band, and the place after the last.
    reach: for each place, the place after the last level that fits into one band with it.
    low, high and reach ascend.
    numbers: the amounts as ascending integers, in units of their own.
    width: twice the distance from an amount to the ends of its band in these units; None for a `share` of it.
    """

    order: IntArray
    low: IntArray
    high: IntArray
    reach: IntArray
    amounts: range
    numbers: npt.NDArray[Any]
    width: int | None
    share: Fraction

    @cached_property
    def place(self) -> IntArray:
        """The place of each code."""
        return np.argsort(self.order)

    @cached_property
    def is_ordered(self) -> bool:
        """True if places equal codes: no special value lies among the amounts."""
        return not (np.diff(self.order) < 0).any()

    def is_amount(self, place: IntArray) -> Mask:
        """Mark the places of amounts."""
        return (place >= self.amounts.start) & (place < self.amounts.stop)

    @property
    def size(self) -> int:
        """The number of places."""
        return len(self.order)

    @property
    def missing(self) -> int:
        """The place of missing values."""
        return self.size - 1

    def around(self, first: IntArray, last: IntArray) -> tuple[IntArray, IntArray]:
        """Return the places whose band holds the centre of two amounts that fit into one band.

        As the first place, and the place after the last. The centre lies halfway between the amounts or, for
        a share w, halfway between (1 - w) of the larger and (1 + w) of the smaller one without their signs.
        All amounts between the two hold it in their bands.
        """
        start = self.amounts.start
        smaller, larger = self.numbers[first - start], self.numbers[last - start]
        if self.width is not None:
            lowest = -((self.width - smaller - larger) // 2)
            highest = (self.width + smaller + larger) // 2
        else:
            a, b = self.share.numerator, self.share.denominator
            negative = larger < 0
            near, far = np.where(negative, -larger, smaller), np.where(negative, -smaller, larger)
            centre = far * (b - a) + near * (b + a)
            nearest, farthest = -(-centre // (2 * (b + a))), centre // (2 * (b - a))
            lowest = np.where(negative, -farthest, nearest)
            highest = np.where(negative, -nearest, farthest)
        return (
            start + np.searchsorted(self.numbers, lowest, side="left"),
            start + np.searchsorted(self.numbers, highest, side="right"),
        )
