"""`disclosure_protection_estimate()`: the same from some of the GT records, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from disclosure_pipeline.evaluation.comparability import find_doubts, warn_of_doubts
from disclosure_pipeline.evaluation.counts import combine_columns
from disclosure_pipeline.evaluation.protection import (
    attacks_of_syntheses,
    check_arguments,
    check_sampling,
    code_columns,
    combine_sensitive,
)
from disclosure_pipeline.evaluation.protection_result import (
    DisclosureProtectionEstimate,
    estimate_result,
    protection_result,
)
from disclosure_pipeline.measures.intervals import Interval, mean_of_population
from disclosure_pipeline.measures.protection import Attack, wrong_shares


@overload
def disclosure_protection_estimate(
    ground_truth: Any,
    synthetic: Sequence[Any],
    keys: Sequence[Any],
    sensitive: Any,
    method: str = "cap",
    continuous: Sequence[Any] | None = None,
    bins: int = 10,
    *,
    records: int = 10_000,
    seed: int = 0,
    confidence: float = 0.95,
) -> tuple[DisclosureProtectionEstimate, ...]: ...


@overload
def disclosure_protection_estimate(
    ground_truth: Any,
    synthetic: Any,
    keys: Sequence[Any],
    sensitive: Any,
    method: str = "cap",
    continuous: Sequence[Any] | None = None,
    bins: int = 10,
    *,
    records: int = 10_000,
    seed: int = 0,
    confidence: float = 0.95,
) -> DisclosureProtectionEstimate: ...


def disclosure_protection_estimate(
    ground_truth: Any,
    synthetic: Any,
    keys: Sequence[Any],
    sensitive: Any,
    method: str = "cap",
    continuous: Sequence[Any] | None = None,
    bins: int = 10,
    *,
    records: int = 10_000,
    seed: int = 0,
    confidence: float = 0.95,
) -> DisclosureProtectionEstimate | tuple[DisclosureProtectionEstimate, ...]:
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
            It is guaranteed for any table, which makes the intervals somewhat wide; the more alike the
            records are and the more of them are sampled, the narrower.

    Returns:
        The figures of the sample, with intervals. With "cap" and no sampled record whose key combination is
        in the synthetic table they are NaN. For a sequence of syntheses a tuple of results, in their order.

    Raises:
        InputError: As `disclosure_protection()`, or for records, seed or confidence out of range.

    Example:
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> patients = pd.DataFrame({"age": [30, 40] * 500, "illness": ["flu", "cold", "cold", "flu"] * 250})
        >>> estimate = dp.disclosure_protection_estimate(
        ...     patients, patients, ["age"], "illness", records=200
        ... )
        >>> low, high = estimate.cap_protection_interval
        >>> low <= 0.5 <= high
        True

    Source of the intervals: Waudby-Smith & Ramdas 2020, "Confidence sequences for sampling without
    replacement", theorem 3.2.
    """
    check_sampling(records, seed, confidence)
    tables, continuous_names = check_arguments(
        ground_truth, synthetic, keys, sensitive, method, continuous, bins
    )
    columns = code_columns(tables, continuous_names, bins)
    warn_of_doubts(find_doubts(tables, list(columns.values())))
    target = combine_sensitive([columns[name] for name in tables.targets])
    key_columns = [columns[name] for name in tables.keys]
    N_d = len(tables.frames[0])
    sample = np.arange(N_d)
    if records < N_d:
        sample = np.sort(np.random.default_rng(seed).choice(N_d, records, replace=False))
    attacks = attacks_of_syntheses(combine_columns(key_columns, sample), target.of_records(sample), method)
    populations = [N_d] * len(attacks)
    if method == "cap" and records < N_d:  # the other methods attack every record
        d_q, *s_q_of_syntheses = combine_columns(key_columns).counts
        populations = [int(d_q[s_q > 0].sum()) for s_q in s_q_of_syntheses]
    estimates = []
    for synthesis, (attack, population) in enumerate(zip(attacks, populations, strict=True), start=1):
        result = protection_result(tables, synthesis, method, target.baselines, attack)
        interval = (result.cap_protection, result.cap_protection)
        if records < N_d:
            interval = _interval(attack, population, confidence, seed)
        estimates.append(estimate_result(result, len(sample), seed, confidence, interval))
    return tuple(estimates) if isinstance(synthetic, Sequence) else estimates[0]


def _interval(attack: Attack, population: int, confidence: float, seed: int) -> Interval:
    """Return the interval: of the scored records the sampled ones are a random sample, too."""
    in_random_order = np.random.default_rng((seed, 1)).permutation(wrong_shares(attack))
    return mean_of_population(in_random_order, population, confidence)
