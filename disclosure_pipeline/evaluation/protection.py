"""`disclosure_protection()`: the share of records that an intruder guesses wrong, and what it is worth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import pandas as pd

from disclosure_pipeline.evaluation.doubts import find_doubts, warn_of_doubts
from disclosure_pipeline.evaluation.key_combinations import combine_columns
from disclosure_pipeline.evaluation.protection_arguments import (
    check_arguments,
    check_method,
    check_not_all_missing,
)
from disclosure_pipeline.evaluation.protection_attack import (
    attacks_of_syntheses,
    code_columns,
    combine_sensitive,
)
from disclosure_pipeline.evaluation.protection_result import DisclosureProtection, protection_result
from disclosure_pipeline.tables.alignment import Tables

# The figures that `protection_frame` has for each method: shares from 0 to 1.
FRAME_FIGURES = ("cap_protection", "score", "majority_score", "proportional_score")


@overload
def disclosure_protection(
    ground_truth: Any,
    synthetic: Sequence[Any],
    keys: Sequence[Any],
    sensitive: Any,
    method: str = "cap",
    continuous: Sequence[Any] | None = None,
    bins: int = 10,
) -> tuple[DisclosureProtection, ...]: ...


@overload
def disclosure_protection(
    ground_truth: Any,
    synthetic: Any,
    keys: Sequence[Any],
    sensitive: Any,
    method: str = "cap",
    continuous: Sequence[Any] | None = None,
    bins: int = 10,
) -> DisclosureProtection: ...


def disclosure_protection(
    ground_truth: Any,
    synthetic: Any,
    keys: Sequence[Any],
    sensitive: Any,
    method: str = "cap",
    continuous: Sequence[Any] | None = None,
    bins: int = 10,
) -> DisclosureProtection | tuple[DisclosureProtection, ...]:
    """Measure how often an intruder guesses wrong who knows the keys and looks them up in SD.

    The intruder guesses in proportion to what the SD records found have; a guess is right only if every
    sensitive column is. Exact at any size. Missing is a level of its own, in keys and in sensitive columns.

    Args:
        ground_truth: The confidential records, one a row.
        synthetic: The synthetic table, or a sequence of m of them.
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
        `DisclosureProtection.compute_breakdown` (0.29 to 0.32) names them, and two more baselines. For a
        sequence of syntheses a tuple with the result of each, in their order.

    Raises:
        InputError: The tables cannot be compared or the arguments contradict them; nothing was computed.

    Example:
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> patients = pd.DataFrame({"age": [30, 30, 40, 50], "illness": ["flu", "cold", "flu", "cold"]})
        >>> synthetic = pd.DataFrame({"age": [30, 30, 40, 60], "illness": ["flu", "flu", "flu", "cold"]})
        >>> dp.disclosure_protection(patients, synthetic, ["age"], "illness")
        Disclosure protection of illness from the keys age
        Method cap: a GT record whose keys are not in SD is left out
        3 of 4 GT records scored, 4 SD records
        Shares of records guessed wrong, from 0 to 1, and scores, at most 1; high is safe
        <BLANKLINE>
                                      guessed wrong   score
        with SD                              0.3333
        without SD, uniform guess            0.5000  0.6667
        without SD, majority guess           0.5000  0.6667
        without SD, proportional guess       0.5000  0.6667

    Source: SDMetrics, `DisclosureProtection`; Taub, Elliot et al. 2018 for CAP itself.
    """
    tables, continuous_names = check_arguments(
        ground_truth, synthetic, keys, sensitive, method, continuous, bins
    )
    columns = code_columns(tables, continuous_names, bins)
    warn_of_doubts(find_doubts(tables, list(columns.values())))
    target = combine_sensitive([columns[name] for name in tables.targets])
    attacks = attacks_of_syntheses(combine_columns([columns[name] for name in tables.keys]), target, method)
    results = tuple(
        protection_result(tables, synthesis, method, target.baselines, of_synthesis)
        for synthesis, of_synthesis in enumerate(attacks, start=1)
    )
    return results if isinstance(synthetic, Sequence) else results[0]


def protection_frame(tables: Tables, methods: Sequence[str]) -> pd.DataFrame:
    """FRAME_FIGURES of each target by itself, by each method: index (target, synthesis), shares from 0 to 1.

    The columns are named like "cap__score"; grouped columns are compared by their groups. InputError as
    `disclosure_protection()`.
    """
    for method in methods:
        check_method(method)
    key_columns = tables.code(tables.keys)
    keys = combine_columns(key_columns)
    rows: dict[tuple[Any, int], dict[str, float]] = {}
    for name in tables.targets:
        column = tables.coded(name)
        for used in (*key_columns, column):
            check_not_all_missing(used, tables.names)
        target = combine_sensitive([column])
        attacks = {method: attacks_of_syntheses(keys, target, method) for method in methods}
        for synthesis in range(1, len(tables.frames)):
            results = {
                method: protection_result(
                    tables, synthesis, method, target.baselines, attacks[method][synthesis - 1]
                )
                for method in methods
            }
            rows[name, synthesis] = {
                f"{method}__{figure}": getattr(result, figure)
                for method, result in results.items()
                for figure in FRAME_FIGURES
            }
    index = pd.MultiIndex.from_tuples(list(rows), names=["target", "synthesis"])
    return pd.DataFrame(list(rows.values()), index=index)
