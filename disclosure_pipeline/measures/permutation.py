"""DCAP of a synthesis whose target is permuted: what to expect, and how far a figure is from it.

This project's own, for the controls. With SD's target values permuted over its records, DCAP is a sum over SD
records of a(q, t) = d_tq / s_q, each record keeping its q and getting the t of another one. Its mean and its
variance over all permutations are exact (Hoeffding 1951, "A combinatorial central limit theorem"):

    mean     = sum of s_q s_t a(q, t) / N_s
    variance = sum of s_q s_t (a(q, t) - a(q, .) - a(., t) + a(., .))² / (N_s - 1)

where a dot is the mean over the records of SD.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.measures.frequency import FrequencyTable


@dataclass(frozen=True)
class PermutedDCAP:
    """In GT records: the mean of DCAP over all permutations, its variance, and the largest a(q, t)."""

    mean: float
    variance: float
    largest: float


# Sums of floats: less than this, in records or of what was added up, is rounding.
_ROUNDING = 1e-9


def permuted_DCAP(f: FrequencyTable) -> PermutedDCAP:  # noqa: N802 (a name of the field)
    """From all cells of one target; those of q that SD does not have contribute nothing."""
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
    """How far a sum of terms of at most `largest` is from its mean: the z of Bernstein's inequality.

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
