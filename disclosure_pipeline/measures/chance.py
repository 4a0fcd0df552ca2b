"""Disclosure by chance alone: the expected DiSCO if the keys told nothing about the target.

This project's own measure. [R section 4] flags one target level that is behind most of DiSCO; this says with
one number how much of DiSCO comes from levels being common.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.measures.exact import Grouped, IntArray, percent
from disclosure_pipeline.measures.frequency import FrequencyTable
from disclosure_pipeline.measures.words import BY_CHANCE, POINTS, figure

Floats = npt.NDArray[np.float64]

# exp(-750) is less than the smallest float: a probability below it is 0.
_NOTHING = 750.0


@dataclass(frozen=True)
class Chance:
    """Percent of all GT records.

    DiSCO_chance is the DiSCO to be expected if the keys told nothing about the target in SD, DiSCO_excess
    what DiSCO is above it: negative where the keys tell less than chance.
    """

    DiSCO_chance: float = figure(
        "DiSCO by chance",
        "This many people could be told their target if the synthetic targets were dealt out at random.",
        high_is="neither",
        beside=BY_CHANCE,
    )
    DiSCO_excess: float = figure(
        "DiSCO beyond chance",
        "This many more people can be told their target than by chance.",
        POINTS,
        finding="the share of people whose {column} is disclosed is {value} higher than by chance",
        subject="people whose {column} is disclosed",
    )


def chance(DiSCO: int, drawn: Grouped, s_t: IntArray, N_d: int, N_s: int) -> Chance:
    """Compute DiSCO by chance of the GT records that the exclusions leave; SD is permuted before them.

    `DiSCO` is a number of records; for the rest see `disclosed_by_chance`.
    """
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
        expected += (by_s_q.sums * all_of_one_level(with_level, N_s, by_s_q.groups)).tolist()
    return math.fsum(expected)  # exact, so that the order of the records makes no difference


def all_of_one_level(with_level: int, records: int, drawn: IntArray) -> Floats:
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
