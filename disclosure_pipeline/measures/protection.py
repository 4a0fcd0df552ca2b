"""Disclosure protection: how often an intruder who looks up records in SD guesses wrong.

Source: [S] SDMetrics' `DisclosureProtection`. Sensitive columns are guessed together: t is their combination.
All figures are shares from 0 to 1, and high values are safe.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.measures.entry import Figure, Place
from disclosure_pipeline.measures.exact import SCALE, IntArray, Mask, sum_by_position, sum_quotients, total
from disclosure_pipeline.measures.frequency import FrequencyTable, Keys, combine_keys
from disclosure_pipeline.measures.words import (
    RECORDS,
    SDMETRICS,
    SHARE,
    Words,
    figure,
    neutral,
    words_of_fields,
)

# The figures that a gate's frame has for each method: shares from 0 to 1.
METHODS = ("cap", "zero_cap", "generalized_cap")
FRAME_FIGURES = ("cap_protection", "score", "majority_score", "proportional_score")


@dataclass(frozen=True)
class ProtectionFigures:
    """The shares and scores of one synthesis: see `DisclosureProtection`."""

    cap_protection: float = figure(
        "protection",
        "The mean share of wrong guesses by somebody who looks up people in the synthetic table.",
        SHARE,
        high_is="safe",
        source=SDMETRICS,
    )
    baseline_protection: float = neutral(
        "protection against guessing any value",
        "The share of wrong guesses by somebody who guesses every combination equally often.",
        SHARE,
        source=SDMETRICS,
    )
    score: float = figure(
        "protection score",
        "The protection divided by that against guessing any value; 1 if the synthetic table is no help.",
        SHARE,
        high_is="safe",
        source=SDMETRICS,
    )
    majority_protection: float = neutral(
        "protection against the most frequent value",
        "The share of wrong guesses by somebody who always guesses the most frequent combination.",
        SHARE,
    )
    majority_score: float = figure(
        "protection score over the most frequent value",
        "The protection divided by that against always guessing the most frequent combination.",
        SHARE,
        high_is="safe",
    )
    proportional_protection: float = neutral(
        "protection against proportional guesses",
        "The share of wrong guesses by somebody who guesses each combination as often as it occurs.",
        SHARE,
    )
    proportional_score: float = figure(
        "protection score over proportional guesses",
        "The protection divided by that against guessing each combination as often as it occurs.",
        SHARE,
        high_is="safe",
    )


_GUESSED_WRONG = words_of_fields(ProtectionFigures)
PROTECTION_FRAME = {
    "scored": Words("attacked", "Confidential records over which the protection is averaged.", RECORDS),
    "matched": Words("found", "Confidential records whose keys are in the synthetic table.", RECORDS),
    **_GUESSED_WRONG,
    **{
        f"{name}_{end}": replace(_GUESSED_WRONG[name], title=f"{_GUESSED_WRONG[name].title}, {words} end")
        for name in FRAME_FIGURES
        for end, words in (("low", "lower"), ("high", "upper"))
    },
}
PROTECTION_BY_METHOD = {
    f"{method}__{name}": replace(words, title=f"{words.title} ({method})")
    for method in METHODS
    for name, words in _GUESSED_WRONG.items()
}


@dataclass(frozen=True)
class Attack:
    """The result of looking up GT records in SD, one entry per cell (q, t) of GT.

    For the `d` GT records of a cell, the intruder finds `pool` SD records that differ from their q in
    `distance` keys; `right` of them have their t. All three are 0 if nothing is found.
    """

    d: IntArray
    right: IntArray
    pool: IntArray
    distance: IntArray

    @property
    def records(self) -> int:
        """The number of GT records that are attacked."""
        return total(self.d)

    def at_distance(self, distance: int) -> int:
        """Return the number of GT records for which the SD records found differ in `distance` keys."""
        return total(self.d, (self.pool > 0) & (self.distance == distance))


@dataclass(frozen=True)
class ProtectionBaselines:
    """Share of GT records guessed wrong by an intruder without a synthetic table.

    `uniform` guesses every combination of levels equally often, `majority` always the most frequent one,
    and `proportional` each as often as it occurs in GT.
    """

    uniform: float
    majority: float
    proportional: float


def attack(f: FrequencyTable, keys: Keys, method: str) -> Attack:
    """Look up the GT records in SD by one of `METHODS`. [S].

    "cap" looks up their q and leaves out a record whose q is not in SD. "zero_cap" counts such a record as
    guessed wrong. "generalized_cap" uses the pooled SD records at the smallest Hamming distance in the keys.
    `f` and `keys` are of one GT and one SD.
    """
    in_GT = f.d > 0
    pool = f.s_q[in_GT]
    matched = Attack(f.d[in_GT], f.s[in_GT], pool, np.zeros_like(pool))
    if method == "cap":
        in_SD = matched.pool > 0
        return Attack(matched.d[in_SD], matched.right[in_SD], matched.pool[in_SD], matched.distance[in_SD])
    return matched if method == "zero_cap" else _nearest_keys(f, keys, matched)


def cap_protection(attack: Attack) -> float:
    """Return the mean of 1 - right / pool over the attacked GT records (empty pool: 1); NaN without any."""
    wrong = np.where(attack.pool > 0, attack.pool - attack.right, 1)
    return _share(sum_quotients(attack.d * wrong, np.maximum(attack.pool, 1)), attack.records * SCALE)


def wrong_shares(attack: Attack) -> npt.NDArray[np.float64]:
    """Return 1 - right / pool of each attacked GT record (empty pool: 1), in order of cells."""
    wrong = np.where(attack.pool > 0, attack.pool - attack.right, 1) / np.maximum(attack.pool, 1)
    return np.repeat(wrong, attack.d)


def baselines(levels: Sequence[int], d_t: IntArray) -> ProtectionBaselines:
    """Compute the baselines from the number of GT's levels of each sensitive column and the counts d_t.

    The number of combinations can exceed the largest float, so it stays an integer until the division.
    """
    N_d, possible = total(d_t), math.prod(levels)
    return ProtectionBaselines(
        uniform=_share(possible - 1, possible),
        majority=_share(N_d - int(d_t.max(initial=0)), N_d),
        proportional=_share(N_d * N_d - total(d_t * d_t), N_d * N_d),
    )


def score(protection: float, baseline: float) -> float:
    """Return min(protection / baseline, 1); NaN if the baseline is 0 or either is NaN. [S]."""
    if not baseline or math.isnan(baseline) or math.isnan(protection):
        return math.nan
    return min(protection / baseline, 1.0)


def _share(part: int, whole: int) -> float:
    """Return the quotient of two integers, rounded once; NaN, which passes no bound, if `whole` is 0."""
    return part / whole if whole else math.nan


def _nearest_keys(f: FrequencyTable, keys: Keys, matched: Attack) -> Attack:
    """Give the records without a match the SD records at the smallest Hamming distance as their pool.

    An SD record that differs from q in exactly h keys agrees with it on exactly one set of all but h keys.
    If nothing is nearer than h, a record that agrees on such a set differs in all other keys. So the pool at
    distance h is the sum, over these sets, of the counts of equal combinations.
    """
    in_GT, in_SD = f.d > 0, f.s > 0
    q, t = f.q[in_GT], f.t[in_GT]
    sd_t, s = f.t[in_SD], f.s[in_SD]
    level_of = [keys.level_of(k) for k in range(len(keys.levels))]
    sd_levels = [level[f.q[in_SD]] for level in level_of]
    right, pool, distance = matched.right.copy(), matched.pool.copy(), matched.distance.copy()
    for h in range(1, len(level_of) + 1):
        unmatched = np.flatnonzero(pool == 0)
        if not len(unmatched):
            break
        distance[unmatched] = h
        gt_levels = [level[q[unmatched]] for level in level_of]
        for kept in combinations(range(len(level_of)), len(level_of) - h):
            # If no key is kept, all records agree in a column of zeros.
            columns: list[tuple[IntArray, IntArray]] = [(np.zeros_like(unmatched), np.zeros_like(s))]
            columns += [(gt_levels[k], sd_levels[k]) for k in kept]
            same_keys = combine_keys(columns, [1, *(keys.levels[k] for k in kept)])
            agree_in_both, agree_in_key = _count_agreeing(same_keys, (t[unmatched], sd_t), f.targets, s)
            right[unmatched] += agree_in_both
            pool[unmatched] += agree_in_key
    return Attack(matched.d, right, pool, distance)


def _count_agreeing(
    keys: Keys, t: tuple[IntArray, IntArray], targets: int, s: IntArray
) -> tuple[IntArray, IntArray]:
    """Count, for each GT cell, the SD records that agree in q and t, and those that agree in q.

    `keys` and `t` hold the codes of GT's and of SD's cells, t below `targets`; `s` are SD's records.
    """
    q, size = keys.q, keys.size
    in_GT: Mask = np.zeros(size, dtype=bool)
    in_GT[q[0]] = True
    comparable = in_GT[q[1]]
    s_q = sum_by_position(q[1], s, size)
    cells = combine_keys([(q[0], q[1][comparable]), (t[0], t[1][comparable])], [size, targets])
    return sum_by_position(cells.q[1], s[comparable], cells.size)[cells.q[0]], s_q[q[0]]


FIGURES = (
    Figure(
        "protection",
        PROTECTION_BY_METHOD["cap__score"],
        Place("protection", value=tuple(f"{method}__score" for method in METHODS), is_of_any=True),
        "learned",
        about="target",
        statistics=("at_least",),
        family="protection",
        largest=1,
        is_stacked=False,
        public="unit",
    ),
)
