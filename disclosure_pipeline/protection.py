"""`disclosure_protection()`: the share of records that an intruder guesses wrong, and what it is worth."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.measures.frequency import combine_keys, frequency_tables
from disclosure_pipeline.measures.protection import (
    METHODS,
    Attack,
    Baselines,
    attack,
    baselines,
    cap_protection,
    mean_interval,
    score,
)
from disclosure_pipeline.tables.alignment import Grouping, Tables, check_tables
from disclosure_pipeline.tables.levels import CodedColumn, Kind

Interval = tuple[float, float]

_MOST_BINS = 1_000_000
_CAN_BE_BINNED = {Kind.NUMBER, Kind.DATE, Kind.ZONED_DATE, Kind.DURATION}


@dataclass(frozen=True)
class DisclosureProtection:
    """How well the sensitive columns are protected. Shares from 0 to 1, not percent; high values are safe.

    `cap_protection`: mean share of wrong guesses over the `scored` GT records. The same for an intruder
    without the synthetic table, over all GT records: `baseline_protection` guesses every combination of
    levels equally often, `majority_protection` always the most frequent combination,
    `proportional_protection` each as often as it occurs. `score`, `majority_score`, `proportional_score`:
    cap_protection divided by them, at most 1; NaN where that cannot be told.
    `distances`: number of GT records by the number of keys in which the SD records differ that they are
    looked up in; only those that differ in none for cap and zero_cap.
    `N_d`, `N_s`: number of GT and of SD records.
    """

    method: str
    keys: tuple[Any, ...]
    sensitive: tuple[Any, ...]
    N_d: int
    N_s: int
    scored: int
    distances: tuple[int, ...]
    cap_protection: float
    baseline_protection: float
    score: float
    majority_protection: float
    majority_score: float
    proportional_protection: float
    proportional_score: float

    @property
    def matched(self) -> int:
        """Number of GT records (of those attacked) whose key combination occurs in SD."""
        return self.distances[0]

    def baselines(self) -> pd.DataFrame:
        """A row for each baseline (uniform, majority, proportional): its protection, and the score by it."""
        return pd.DataFrame(
            {
                "protection": [
                    self.baseline_protection,
                    self.majority_protection,
                    self.proportional_protection,
                ],
                "score": [self.score, self.majority_score, self.proportional_score],
            },
            index=pd.Index(["uniform", "majority", "proportional"], name="baseline"),
        )


@dataclass(frozen=True)
class DisclosureProtectionEstimate(DisclosureProtection):
    """Disclosure protection estimated from `sampled` GT records, looked up in the whole synthetic table.

    `scored`, `distances`, `cap_protection` and the scores are of the sample; the baselines are exact. Each
    interval holds the figure of all GT records with at least the `confidence` named.
    """

    sampled: int
    seed: int
    confidence: float
    cap_protection_interval: Interval
    score_interval: Interval
    majority_score_interval: Interval
    proportional_score_interval: Interval


def disclosure_protection(
    ground_truth: pd.DataFrame,
    synthetic: pd.DataFrame,
    keys: Sequence[Any],
    sensitive: Any,
    method: str = "cap",
    continuous: Sequence[Any] | None = None,
    bins: int = 10,
) -> DisclosureProtection:
    """Measure how often an intruder guesses wrong who knows the keys and looks them up in SD.

    The intruder guesses in proportion to what the SD records found have; a guess is right only if every
    sensitive column is. Exact at any size. Missing is a level of its own, in keys and in sensitive columns.

    Args:
        ground_truth: The confidential records, one a row.
        synthetic: One synthetic table; of several, call this for each.
        keys: The columns that an intruder knows.
        sensitive: The column or columns that an intruder wants to learn, all of them together.
        method: What happens to a GT record whose key combination is not in the synthetic table. "cap": it
            is left out. "zero_cap": it counts as guessed wrong. "generalized_cap": the intruder takes the
            SD records that differ from it in the smallest number of keys, all of them pooled.
        continuous: The keys and sensitive columns that are put into bins: numbers, dates or durations.
        bins: Number of bins of equal width over GT's range. They are closed on the right, and the
            outermost ones are open, so that SD values outside GT's range fall into them.

    Returns:
        Shares from 0 to 1, of the GT records: score, cap_protection and baseline_protection as SDMetrics'
        `DisclosureProtection.compute_breakdown` (0.29 to 0.32) names them, and two more baselines.

    Raises:
        InputError: The tables cannot be compared or the arguments contradict them; nothing was computed.

    Source: SDMetrics, `DisclosureProtection`; Taub, Elliot et al. 2018 for CAP itself.
    """
    _check_method(method)
    tables, binned = _check(ground_truth, synthetic, keys, sensitive, continuous, bins)
    coded = _code(tables, binned, bins)
    return _result(tables, method, coded.baselines, coded.attack(method))


def protection_of_each(
    ground_truth: pd.DataFrame,
    synthetic: pd.DataFrame,
    keys: Sequence[Any],
    targets: Sequence[Any],
    methods: Sequence[str],
) -> dict[Any, dict[str, DisclosureProtection]]:
    """`disclosure_protection()` of each target by itself, by each method; the keys are coded once for all."""
    for method in methods:
        _check_method(method)
    tables, _ = _check(ground_truth, synthetic, keys, targets, None, 1)
    key_columns = tables.code(tables.keys)
    q = combine_keys([column.codes for column in key_columns], [column.size for column in key_columns])
    found: dict[Any, dict[str, DisclosureProtection]] = {}
    for target in tables.targets:
        column = tables.coded(target)
        for each in (*key_columns, column):
            _check_not_all_missing(each, tables.names)
        [f] = frequency_tables(q, column.codes, column.size)
        without = baselines([int(_occurs(column).sum())], column.counts[0])
        one = replace(tables, targets=(target,))
        found[target] = {method: _result(one, method, without, attack(f, q, method)) for method in methods}
    return found


def disclosure_protection_estimate(
    ground_truth: pd.DataFrame,
    synthetic: pd.DataFrame,
    keys: Sequence[Any],
    sensitive: Any,
    method: str = "cap",
    continuous: Sequence[Any] | None = None,
    bins: int = 10,
    *,
    records: int = 10_000,
    seed: int = 0,
    confidence: float = 0.95,
) -> DisclosureProtectionEstimate:
    """Estimate `disclosure_protection()` from some GT records, for tables or key sets that take too long.

    Only GT records are sampled, without replacement. The synthetic table is always used whole: a sample of
    it would lack most key combinations, and even an exact copy of GT would look safe. Levels, bins and
    baselines are those of the whole GT.

    Args:
        ground_truth: As all up to `bins`: see `disclosure_protection()`.
        synthetic: See there.
        keys: See there.
        sensitive: See there.
        method: See there.
        continuous: See there.
        bins: See there.
        records: How many GT records to sample; where there are no more than that, the result is exact.
        seed: The same seed gives the same sample.
        confidence: The least probability, between 0 and 1, with which an interval holds the exact figure.
            It is guaranteed for any table and sample, which makes the intervals somewhat wide.

    Returns:
        The figures of the sample, with intervals. With "cap" and no sampled record whose key combination is
        in the synthetic table they are NaN.

    Raises:
        InputError: As `disclosure_protection()`, or for records, seed or confidence out of range.

    Source of the intervals: Hoeffding 1963, "Probability inequalities for sums of bounded random variables".
    """
    _check_method(method)
    _check_whole_number("records", records, 1)
    _check_whole_number("seed", seed, 0)
    if isinstance(confidence, bool) or not isinstance(confidence, (int, float)) or not 0 < confidence < 1:
        raise InputError(f"confidence must be a number between 0 and 1, such as 0.95, not {confidence!r}.")
    tables, binned = _check(ground_truth, synthetic, keys, sensitive, continuous, bins)
    coded = _code(tables, binned, bins)

    N_d = len(ground_truth)
    everyone = records >= N_d
    sample = np.arange(N_d) if everyone else np.random.default_rng(seed).choice(N_d, records, replace=False)
    result = _result(tables, method, coded.baselines, coded.attack(method, np.sort(sample)))
    low = high = result.cap_protection
    if not everyone and result.scored:  # of the records scored the sample is a random one, too
        low, high = mean_interval(result.cap_protection, result.scored, confidence)
    return DisclosureProtectionEstimate(
        **vars(result),
        sampled=len(sample),
        seed=seed,
        confidence=confidence,
        cap_protection_interval=(low, high),
        score_interval=_scores((low, high), result.baseline_protection),
        majority_score_interval=_scores((low, high), result.majority_protection),
        proportional_score_interval=_scores((low, high), result.proportional_protection),
    )


@dataclass(frozen=True)
class _Coded:
    """Both tables as codes; `t` holds the combination of sensitive levels of each GT and each SD record."""

    keys: tuple[CodedColumn, ...]
    t: tuple[IntArray, ...]
    targets: int
    baselines: Baselines

    def attack(self, method: str, sample: IntArray | None = None) -> Attack:
        """The attack on all GT records, or on some."""
        rows: Any = slice(None) if sample is None else sample
        columns = [(column.codes[0][rows], column.codes[1]) for column in self.keys]
        keys = combine_keys(columns, [column.size for column in self.keys])
        [f] = frequency_tables(keys, (self.t[0][rows], self.t[1]), self.targets)
        return attack(f, keys, method)


def _code(tables: Tables, continuous: Sequence[Any], bins: int) -> _Coded:
    """Every column as codes, put into bins where that is asked. InputError for what cannot be used."""
    columns = {name: tables.coded(name) for name in (*tables.keys, *tables.targets)}
    for column in columns.values():
        _check_not_all_missing(column, tables.names)
    for name in continuous:
        columns[name] = _binned(columns[name], bins, tables.names)
    sensitive = [columns[name] for name in tables.targets]
    t = combine_keys([column.codes for column in sensitive], [column.size for column in sensitive])
    levels_in_GT = [int(_occurs(column).sum()) for column in sensitive]
    return _Coded(
        keys=tuple(columns[name] for name in tables.keys),
        t=t.q,
        targets=t.size,
        baselines=baselines(levels_in_GT, t.counts[0]),
    )


def _result(tables: Tables, method: str, without: Baselines, attacked: Attack) -> DisclosureProtection:
    protection = cap_protection(attacked)
    farthest = len(tables.keys) if method == "generalized_cap" else 0
    return DisclosureProtection(
        method=method,
        keys=tables.keys,
        sensitive=tables.targets,
        N_d=len(tables.frames[0]),
        N_s=len(tables.frames[1]),
        scored=attacked.records,
        distances=tuple(attacked.at_distance(h) for h in range(farthest + 1)),
        cap_protection=protection,
        baseline_protection=without.uniform,
        score=score(protection, without.uniform),
        majority_protection=without.majority,
        majority_score=score(protection, without.majority),
        proportional_protection=without.proportional,
        proportional_score=score(protection, without.proportional),
    )


def _scores(interval: Interval, baseline: float) -> Interval:
    return score(interval[0], baseline), score(interval[1], baseline)


def _occurs(column: CodedColumn) -> npt.NDArray[np.bool_]:
    """Whether each code, missing included, occurs in GT."""
    occurs: npt.NDArray[np.bool_] = column.counts[0] > 0
    return occurs


def _binned(column: CodedColumn, bins: int, names: Sequence[str]) -> CodedColumn:
    """The column with bins of equal width over GT's range as its levels; missing stays a level of its own."""
    if column.kind not in _CAN_BE_BINNED:
        raise InputError(
            f"Column {column.name!r} holds {column.kind.value}: only numbers, dates and durations can be "
            "continuous. Leave it out of continuous, or convert it in both tables."
        )
    _check_finite(column, names)
    of_GT = np.flatnonzero(_occurs(column)[:-1])
    bin_of = _bins(column.levels, of_GT[0], of_GT[-1], bins)
    occupied, position = np.unique(bin_of, return_inverse=True)
    return column.recoded(occupied, np.append(position, len(occupied)), Kind.NUMBER)


def _bins(levels: npt.NDArray[Any], lowest: int, highest: int, bins: int) -> IntArray:
    """The bin of each level, closed on the right; GT's range goes from levels[lowest] to levels[highest].

    For floats the edges are floats, those of pandas.cut, which SDMetrics calls. Whole numbers and dates are
    held against the edges exactly, so that neither 2^53 nor a rounded edge puts one into a wrong bin. Where
    GT has one value only, its range is that value plus and minus a thousandth of it, or of 1, as there.
    """
    if levels.dtype.kind == "f":
        low, high = float(levels[lowest]), float(levels[highest])
        if low == high:
            aside = 0.001 * abs(low) or 0.001
            low, high = low - aside, high + aside
        if math.isfinite(high - low):
            return np.searchsorted(np.linspace(low, high, bins + 1)[1:-1], levels, side="left")
    values = _exact(levels)
    first, last = values[lowest], values[highest]
    if first == last:
        aside = abs(first) or 1
        values, first, last = 1000 * values, 1000 * first - aside, 1000 * last + aside
    bin_of = -((first - values) * bins // (last - first)) - 1  # rounded up: closed on the right
    return np.clip(bin_of, 0, bins - 1).astype(np.int64)


def _exact(levels: npt.NDArray[Any]) -> npt.NDArray[np.object_]:
    """Levels as Python integers, or as fractions where there are others."""
    if levels.dtype.kind in "mM":
        return levels.astype(np.int64).astype(object)
    if levels.dtype.kind == "i":
        return levels.astype(object)
    return np.array([Fraction(level) for level in levels.tolist()], dtype=object)


def _check(
    ground_truth: pd.DataFrame,
    synthetic: pd.DataFrame,
    keys: Sequence[Any],
    sensitive: Any,
    continuous: Sequence[Any] | None,
    bins: int,
) -> tuple[Tables, tuple[Any, ...]]:
    """The tables, and the columns to put into bins. InputError before any work starts."""
    if not isinstance(synthetic, pd.DataFrame):
        raise InputError(
            f"synthetic must be one synthetic table, a DataFrame, not {type(synthetic).__name__}: "
            "call this for each synthesis."
        )
    one = isinstance(sensitive, str) or not isinstance(sensitive, Iterable)
    wanted = () if sensitive is None else (sensitive,) if one else tuple(sensitive)
    if not wanted:
        raise InputError("sensitive is empty: name at least one column that an intruder may want to learn.")
    twice = [name for i, name in enumerate(wanted) if name in wanted[:i]]
    if twice:
        raise InputError(f"sensitive names {_listed(twice)} more than once.")
    if not isinstance(keys, str) and isinstance(keys, Iterable):
        keys = list(keys)
        both = [name for name in wanted if name in keys]
        if both:
            raise InputError(
                f"{_listed(both)} cannot be a key and sensitive at once: whoever knows it learns nothing."
            )
    tables = check_tables(ground_truth, synthetic, keys, wanted, Grouping({}, {}, "pooled"))
    binned = _check_continuous(() if continuous is None else continuous, tables)
    _check_whole_number("bins", bins, 1, _MOST_BINS)
    return tables, binned


def _check_method(method: str) -> None:
    if method not in METHODS:
        close = difflib.get_close_matches(str(method).lower(), METHODS, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise InputError(f"method must be one of {_listed(METHODS)}, not {method!r}.{hint}")


def _check_continuous(continuous: Sequence[Any], tables: Tables) -> tuple[Any, ...]:
    if isinstance(continuous, str) or not isinstance(continuous, Iterable):
        raise InputError(
            f"continuous must be a list of column names, not {continuous!r}: write [{continuous!r}]."
        )
    names, used = tuple(continuous), (*tables.keys, *tables.targets)
    twice = [name for i, name in enumerate(names) if name in names[:i]]
    if twice:
        raise InputError(f"continuous names {_listed(twice)} more than once.")
    for name in names:
        if name not in used:
            close = difflib.get_close_matches(str(name), [str(column) for column in used], n=3)
            hint = f"Did you mean {_listed(close)}?" if close else f"These are {_listed(used)}."
            raise InputError(f"continuous names {name!r}, which is neither a key nor sensitive. {hint}")
    return names


def _check_whole_number(name: str, number: Any, lowest: int, highest: int | None = None) -> None:
    whole = isinstance(number, int) and not isinstance(number, bool)
    if not whole or number < lowest or (highest is not None and number > highest):
        most = "on" if highest is None else f"to {highest:,}"
        raise InputError(f"{name} must be a whole number from {lowest} {most}, not {number!r}.")


def _check_not_all_missing(column: CodedColumn, names: Sequence[str]) -> None:
    for counts, name in zip(column.counts, names, strict=True):
        if not counts[: column.missing].any():
            raise InputError(
                f"Column {column.name!r} of {name} holds nothing but missing values: nothing can be found or "
                "guessed by it, which would look like protection. Leave it out, or read it again."
            )


def _check_finite(column: CodedColumn, names: Sequence[str]) -> None:
    infinite = np.zeros(column.size, dtype=bool)
    if column.levels.dtype.kind == "f":
        infinite[:-1] = np.isinf(column.levels)
    elif column.levels.dtype.kind == "O":
        infinite[:-1] = [isinstance(value, (float, Decimal)) and math.isinf(value) for value in column.levels]
    for codes, name in zip(column.codes, names, strict=True):
        if infinite[codes].any():
            raise InputError(
                f"Column {column.name!r} of {name} holds infinite values, which have no bin of equal width: "
                "make them missing, or leave the column out of continuous."
            )


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(repr(name) for name in names)
