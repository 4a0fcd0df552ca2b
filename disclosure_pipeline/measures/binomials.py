"""The chances of how many records are drawn, where each is drawn by itself with the same chance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.measures.chance import Floats
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.measures.frequency import run_lengths

# By Bernstein's inequality a binomial is farther from its mean than so much in less than one of 10^9 draws.
_DEVIATIONS = 7
_RECORDS = 15


def lowest(records: IntArray, chance: float) -> IntArray:
    """Hardly ever fewer of so many records are drawn."""
    return np.maximum(np.floor(records * chance - _reach(records, chance)), 0).astype(np.int64)


def highest(records: IntArray, chance: float) -> IntArray:
    """Hardly ever more of so many records are drawn."""
    reached = np.ceil(records * chance + _reach(records, chance)).astype(np.int64)
    return np.minimum(reached, records).astype(np.int64)


def _reach(records: IntArray, chance: float) -> Floats:
    reach: Floats = _DEVIATIONS * np.sqrt(records * (chance * (1 - chance))) + _RECORDS
    return reach


@dataclass(frozen=True)
class Binomials:
    """For each of some numbers of `records`, which ascend, the chances from its `lowest` to its `highest`.

    Each has an entry before its lowest and one after its highest. `exactly` and `fewer`: the chance that so
    many records are drawn, and that fewer are.
    """

    records: IntArray
    low: IntArray
    first: IntArray
    exactly: Floats
    fewer: Floats

    @classmethod
    def tabulate(cls, records: IntArray, chance: float) -> Binomials:
        """For numbers of records that ascend, and a chance above 0 and below 1."""
        low, high = lowest(records, chance), highest(records, chance)
        lengths = high - low + 3
        exactly, fewer = np.zeros(int(lengths.sum())), np.zeros(int(lengths.sum()))
        first = np.cumsum(lengths) - lengths
        for number, start, end, at in zip(
            *(numbers.tolist() for numbers in (records, low, high, first)), strict=True
        ):
            chances = _chances(number, start, end, chance)
            stop = at + len(chances) + 1
            exactly[at + 1 : stop] = chances
            fewer[at + 2 : stop + 1] = np.cumsum(chances)
            fewer[stop] = 1
        return cls(records, low, first, exactly, fewer)

    def chances(self, records: IntArray, j: IntArray) -> tuple[Floats, Floats]:
        """That exactly j, and that fewer of so many records are drawn (shape: records, j)."""
        position = np.searchsorted(self.records, records)
        length = run_lengths(self.first, len(self.exactly))[position]
        within = np.clip(j - self.low[position][:, None] + 1, 0, length[:, None] - 1)
        at = self.first[position][:, None] + within
        return self.exactly[at], self.fewer[at]


def _chances(records: int, low: int, high: int, chance: float) -> Floats:
    """From the most likely number by ratios of neighbours, so that no digits are lost to large factors."""
    odds = chance / (1 - chance)
    likely = min(max(int((records + 1) * chance), low), high)
    up, down = np.arange(likely, high), np.arange(likely, low, -1)
    above = np.cumprod((records - up) / (up + 1) * odds)
    below = np.cumprod(down / (records - down + 1) / odds)
    relative = np.concatenate((below[::-1], [1.0], above))
    chances: Floats = relative / np.cumsum(relative)[-1]
    return chances
