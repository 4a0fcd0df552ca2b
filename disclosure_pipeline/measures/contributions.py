"""Contributions of each GT record to a figure, and the one way to add them up.

A figure is a share of people. GT record i adds x_i, from 0 to 1, and stands for w_i people:

    figure = 100 · Σ w_i x_i / Σ w_i

w_i is 1, or the record's weight in a survey, or 0 outside the group that is asked about. x_i is 0 if the
exclusions take the record out; all else is decided before them. So weights, groups and exclusions have no
formulas of their own.

Much of what SD tells of people, anybody learns from *other* people's records, and GT itself says how much:
for each person, all other records are a sample of the population without that person. SD is compared with
them at the smaller of both sizes, in closed form, so that a fresh sample of other people is beyond them by 0
on average. Other people's records are those of other units: persons or households that several records may
belong to. A person whose unit has N_u records is compared at n = min(N_s, N_d - N_u) records. P0(m) is the
chance that a draw of n other people's records contains none of m given ones; Q0(m) is the same for SD
(`samples.Sizes`).
With o and o_t other people's records with the person's q, and with q and t:

| figure | SD | SD at n records | the others at n |
|---|---|---|---|
| iS | s_q > 0 | 1 - Q0(s_q) | 1 - P0(o) |
| DiSCO | s = s_q > 0 | Q0(s_q - s) - Q0(s_q) | P0(o - o_t) - P0(o) |
| DCAP | s / s_q | s / s_q · (1 - Q0(s_q)) | o_t / o · (1 - P0(o)) |
| told a level l | | Q0(s_q - s_l) - Q0(s_q) | P0(o - o_l) - P0(o) |

CAP counts only records that the exclusions leave, also of the others. `bands` has the figures within a band.

The standard error of a share is, by Taylor linearization, sqrt(Σ w_i² (x_i - share)²) / Σ w_i (Särndal,
Swensson & Wretman 1992, 5.7, for records drawn independently). Of a difference from other people's records it
is sqrt(Σ_q (Σ_i w_i x_i)²) / Σ w_i, because records of one q are told of together; at least one record. For
guesses see `guesses.error_of_guesses`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from disclosure_pipeline.measures.bands import figures_at
from disclosure_pipeline.measures.catalogue import OF_BANDS, OF_KEYS, OF_TARGETS
from disclosure_pipeline.measures.entry import Figure
from disclosure_pipeline.measures.exact import Floats, IntArray, Mask, divide, sum_exactly
from disclosure_pipeline.measures.frequency import Guess, Rows, is_only_level
from disclosure_pipeline.measures.guesses import RightGuesses, error_of_guesses
from disclosure_pipeline.measures.samples import chance_of_one_level


def _disclosed_by_chance(r: Rows) -> Floats:
    """Return the chance that s_q records drawn from SD all have level t: see `disclosed_by_chance`."""
    s_t, chances = r.f.per_target(r.f.s), np.zeros(len(r))
    in_SD = (r.s_q > 0) & r.is_left
    for t in np.flatnonzero(s_t).tolist():
        at = np.flatnonzero(in_SD & (r.t == t))
        if len(at):
            chances[at] = chance_of_one_level(int(s_t[t]), r.f.N_s, r.s_q[at])
    return chances


Expression = Callable[[Rows], Floats | Mask | Guess]


def _list_expressions(figures: Iterable[Figure], ending: str = "") -> dict[str, Expression]:
    """Return what a record adds to each figure, also at n records of SD and the others, by their names."""
    expressions = dict[str, Expression]()
    for figure in figures:
        assert figure.adds is not None
        expressions[f"{figure.name}{ending}"] = figure.adds
        if figure.compared is not None:
            expressions[f"{figure.name}{ending}_at_n"] = figure.compared.at_n
            expressions[f"{figure.name}{ending}_others"] = figure.compared.others
    return expressions


FIGURES: Mapping[str, Expression] = {
    "alone": lambda r: r.d_q == r.own_q,
    "people_copied": lambda r: (r.d_q == r.own_q) & (r.s_q > 0),
    "DiSCO_chance": _disclosed_by_chance,
    "DiSCO_excess": lambda r: is_only_level(r.s, r.s_q) - _disclosed_by_chance(r),
    "CAPd": lambda r: divide(r.d, r.left_d_q),
    **_list_expressions((*OF_KEYS, *OF_TARGETS, *OF_BANDS)),
}
"""Expressions of what a record adds to each figure, before it is asked whether exclusions leave it."""


def tell_level(r: Rows, level: int) -> tuple[Floats, Floats]:
    """Return the chance that n records of SD, and of the others, tell with certainty that each row has it.

    Exclusions make no difference: an intruder does not know them.
    """
    d, s = (r.sum_by_q(np.where(r.f.t == level, counts, 0)) for counts in (r.f.d, r.f.s))
    own = r.count_own(r.q, (r.t == level).astype(np.int64))
    return r.only_of_synthetic(s), r.only_of_others(d - own)


_SUM_OF_WEIGHTS = 1 << 31
_GUESSED, _NAMED = "guessed", "named"

KEY_FIGURES = tuple(figure.name for figure in OF_KEYS if figure.basis == "records")
COPY_FIGURES = ("people_copied", "people_copied_expected", "people_copied_beyond")
_COMPARED = [figure.name for figure in OF_TARGETS if figure.compared is not None]
BESIDE_OTHERS = tuple(f"{name}_{part}" for name in _COMPARED for part in ("at_n", "others", "beyond"))
_OF_GT = [figure.name for figure in OF_TARGETS if figure.basis == "records"]
TARGET_FIGURES = (
    *(name for name in _OF_GT if name not in {"DCAP", "guessed"}),
    *("DiSCO_chance", "DiSCO_excess", "CAPd", "DCAP", "guessed"),
    *(f"{name}_{part}" for name in _COMPARED for part in ("others", "beyond")),
)
GROUP_FIGURES = ("DiSCO", "DiSCO_others", "DiSCO_beyond")
BAND_FIGURES = tuple(f"{figure.name}{part}" for figure in OF_BANDS for part in ("", "_others", "_beyond"))


class Estimate(NamedTuple):
    """A figure and its standard error, in percent or percentage points."""

    value: float
    error: float


def name_estimates(estimates: Mapping[str, Estimate], ending: str = "") -> dict[str, float]:
    """Return figures and their standard errors by the names of their columns."""
    named = {}
    for name, estimate in estimates.items():
        named[f"{name}{ending}"], named[f"{name}{ending}_se"] = estimate
    return named


class Contributions:
    """Contributions of some rows to the figures, each computed when it is first asked for."""

    def __init__(self, rows: Rows) -> None:
        """Take the rows; nothing is computed yet."""
        self.rows = rows
        self._expressions = dict(FIGURES)
        for c in rows.certainties if rows.band is not None else ():
            self._expressions |= _list_expressions(figures_at(c), f" at {c}")
        self._added: dict[str, Floats | Guess] = {}

    def add(self, figure: str) -> Floats:
        """Return what each row adds to a figure, its `_at_n` or `_others`; 0 if it is excluded."""
        if figure.startswith(_NAMED):
            return self.guess(figure.replace(_NAMED, _GUESSED, 1)).named
        added = self._add(figure)
        assert not isinstance(added, Guess)
        return added

    def guess(self, figure: str) -> Guess:
        """Return the chances of a guess, its `_at_n` or `_others`; 0 if the row is excluded."""
        guess = self._add(figure)
        assert isinstance(guess, Guess)
        return guess

    def _add(self, figure: str) -> Floats | Guess:
        if figure not in self._added:
            added, is_left = self._expressions[figure](self.rows), self.rows.is_left
            self._added[figure] = (
                added.apply(lambda chances: np.where(is_left, chances, 0.0))
                if isinstance(added, Guess)
                else np.where(is_left, added, 0.0)
            )
        return self._added[figure]

    def estimate(
        self, figures: Iterable[str], weight: Floats | None = None, members: IntArray | None = None
    ) -> dict[str, Estimate]:
        """Estimate figures of the people that the rows, or some `members` of them, stand for.

        `weight`: the people of each row, 0 for those that are not asked about; by default 1. A figure that
        ends in `_beyond` is the difference between n records of SD and of the others. Guesses are made in the
        better of the two ways, on either side.
        """
        asked = np.arange(len(self.rows)) if members is None else members
        w = np.ones(len(asked)) if weight is None else weight[asked]
        asked, w = asked[w != 0], w[w != 0]
        return {name: self._estimate(name, asked, w) for name in figures}

    def _estimate(self, name: str, asked: IntArray, w: Floats) -> Estimate:
        figure, part = _split(name)
        if figure.startswith(_GUESSED):
            if part == "_beyond":
                return self._compare_guesses(figure, asked, w)
            guess = self.guess(name).apply(lambda chances: chances[asked])
            if part == "_others":
                others = max(_mean(chances, _round_weights(w)) for chances in (guess.by_key, guess.always))
                spread = inflate_variance(w) * max(others * (1 - others), 0) / len(asked)
                return Estimate(100 * others, 100 * math.sqrt(spread))
            return max(_estimate_share(chances, w) for chances in (guess.by_key, guess.always))
        if part != "_beyond":
            return _estimate_share(self.add(name)[asked], w)
        added = self.add(f"{figure}_at_n")[asked] - self.add(f"{figure}_others")[asked]
        return _estimate_difference(added, self.rows.q[asked], w)

    def _compare_guesses(self, figure: str, asked: IntArray, w: Floats) -> Estimate:
        """Estimate how much more guesses are right from n records of SD than from the others."""
        compared = _GUESSES[figure]
        assert compared is not None and compared.all is not None
        w, q, t = _round_weights(w), self.rows.q[asked], self.rows.t[asked]
        from_n, from_others = (
            self.guess(f"{figure}{part}").apply(lambda chances: chances[asked])
            for part in ("_at_n", "_others")
        )
        named, unmatched = from_n.named - from_others.named, from_others.matched - from_n.matched
        common = compared.all(self.rows)
        if common.of_levels:
            by_level = w * unmatched * (common.chances[t] > 0)
            squares = _square_beside_levels(q, t, w * named, by_level, common.number)
        else:
            squares = _square_by_key(q, w * (named + unmatched * common.chances[t]))
        at_n, others = (
            RightGuesses(*(_mean(x, w) for x in (guess.named, guess.matched * guess.always, guess.always)))
            for guess in (from_n, from_others)
        )
        unlike = from_n.always - from_others.always
        error = error_of_guesses(
            (at_n, others),
            [_mean(guess.matched * unlike, w) for guess in (from_n, from_others)],
            squares / common.number / sum_exactly(w) ** 2,
        )
        return Estimate(100 * (at_n.best - others.best), 100 * max(error, 1 / len(asked)))


_GUESSES = {figure.name: figure.compared for figure in (*OF_TARGETS, *OF_BANDS)}


def _split(name: str) -> tuple[str, str]:
    """Return the figure, and which part of it is meant: `_beyond`, `_others`, `_at_n`, or nothing.

    >>> _split("DiSCO_within_others"), _split("iS")
    (('DiSCO_within', '_others'), ('iS', ''))
    """
    part = next((part for part in ("_beyond", "_others", "_at_n") if name.endswith(part)), "")
    return name.removesuffix(part), part


def _estimate_share(x: Floats, w: Floats) -> Estimate:
    whole = sum_exactly(w)
    part = sum_exactly(w * x)
    spread = math.sqrt(sum_exactly((w * (x - part / whole)) ** 2))
    return Estimate(100 * part / whole, 100 * spread / whole)


def _estimate_difference(added: Floats, q: IntArray, w: Floats) -> Estimate:
    """Return a difference to which each record adds something, and its error, of at least one record."""
    whole = sum_exactly(w)
    spread = math.sqrt(_square_by_key(q, w * added))
    return Estimate(100 * sum_exactly(w * added) / whole, max(100 * spread / whole, 100 / len(w)))


def _square_by_key(q: IntArray, added: Floats) -> float:
    some = np.flatnonzero(added)  # of a group's records, mostly few
    of_q = np.bincount(q[some], weights=_round_for_sums(added[some])).astype(np.float64)
    return sum_exactly(of_q[of_q != 0] ** 2)


def _square_beside_levels(q: IntArray, t: IntArray, added: Floats, of_level: Floats, levels: int) -> float:
    """Return Σ (A_q + B_qt)² over `levels` levels: what rows of q add (A), and with q and t besides (B).

    B is 0 but at these levels, one of which is guessed in place of both tables' guesses. No square is taken
    away from another: A and B may cancel each other out.
    """
    of_q = np.bincount(q, weights=_round_for_sums(added)).astype(np.float64)
    some = np.flatnonzero(of_level)
    cells, cell = np.unique(q[some] * (int(t.max(initial=0)) + 1) + t[some], return_inverse=True)
    of_cell = np.bincount(cell.reshape(-1), weights=_round_for_sums(of_level[some]), minlength=len(cells))
    q_of_cell = cells // (int(t.max(initial=0)) + 1)
    without = levels - np.bincount(q_of_cell, minlength=len(of_q))
    return sum_exactly((of_q[q_of_cell] + of_cell) ** 2) + sum_exactly(without * of_q**2)


def _round_for_sums(values: Floats) -> Floats:
    """Round so that sums of any of the values are exact: the order of the records makes no difference."""
    largest = float(np.abs(values).max(initial=0))
    unit = 2.0 ** (math.frexp(largest)[1] + len(values).bit_length() + 1)
    return (values + unit) - unit


def _round_weights(w: Floats) -> Floats:
    """Return the weights as whole numbers that add up to 2^31, except for rounding."""
    return np.rint(w * (_SUM_OF_WEIGHTS / sum_exactly(w)))


def _mean(x: Floats | Mask, w: Floats) -> float:
    return sum_exactly(w * x) / sum_exactly(w)


def inflate_variance(weight: Floats) -> float:
    """Return the factor by which unequal weights increase the variance (Kish 1965)."""
    return len(weight) * sum_exactly(weight**2) / sum_exactly(weight) ** 2
