"""What chance alone would disclose: the expected DiSCO if the keys told nothing about the target.

This project's own measure. [R section 4] flags one target level that is behind most of DiSCO; this says with
one number how much of DiSCO comes from levels being common.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from disclosure_pipeline.measures.attribute import DisclosureTables
from disclosure_pipeline.measures.exact import IntArray, percent
from disclosure_pipeline.measures.frequency import FrequencyTable

Floats = npt.NDArray[np.float64]

# exp(-750) is less than the smallest float: a probability below it is 0.
_NOTHING = 750.0


@dataclass(frozen=True)
class Chance:
    """Percent of all GT records.

    DiSCO_chance is the DiSCO to be expected if the keys told nothing about the target in SD, DiSCO_excess
    what DiSCO is above it: negative where the keys tell less than chance.
    """

    DiSCO_chance: float
    DiSCO_excess: float


def chance(f: FrequencyTable, tables: DisclosureTables) -> Chance:
    """DiSCO by chance of the GT records that the exclusions leave; SD is permuted as it was before them."""
    by_chance = 100 * disclosed_by_chance(f, tables.original.values()) / f.N_d
    return Chance(by_chance, percent(tables.DiSCO.total(), f.N_d) - by_chance)


def disclosed_by_chance(f: FrequencyTable, d: IntArray) -> float:
    """Expected number of GT records that count towards DiSCO when SD's target values are permuted.

    `d` holds the GT records of each cell that are to be counted (shape: cells); SD is taken as it is:

        sum over the cells with s_q > 0 of  d * C(s_t, s_q) / C(N_s, s_q)

    C(s_t, s_q) / C(N_s, s_q) is the chance that s_q records drawn from SD all have level t. It depends on
    s_t and s_q only, so it is computed once for each pair of them that occurs.
    """
    s_t = f.per_target(f.s)[f.t]
    possible = (d > 0) & (f.s_q > 0) & (s_t >= f.s_q)
    pair, pairs = pd.factorize(s_t[possible] * (f.N_s + 1) + f.s_q[possible])
    records = np.zeros(len(pairs), dtype=np.int64)
    np.add.at(records, pair, d[possible])
    with_level, drawn = np.divmod(pairs, f.N_s + 1)

    expected = np.empty(len(pairs))
    order = np.argsort(with_level, kind="stable")
    for same in np.split(order, np.flatnonzero(np.diff(with_level[order])) + 1):
        if len(same):
            n = int(with_level[same[0]])
            expected[same] = records[same] * all_of_one_level(n, f.N_s, drawn[same])
    return math.fsum(expected.tolist())  # exact, so that the order of the records makes no difference


def all_of_one_level(with_level: int, records: int, drawn: IntArray) -> Floats:
    """C(with_level, n) / C(records, n) for each n of `drawn`: n records drawn all have the level.

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
