"""Controls: what the engine must find, because it is known beforehand. They give the figures a scale.

An exact copy of GT discloses everything that GT itself would; a synthesis whose target is permuted discloses
what chance does. An engine that finds anything else can no longer see a leak.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.counting.opening import open_tables
from disclosure_pipeline.evaluation.counts import Counts, ask, count
from disclosure_pipeline.evaluation.exclusions import Exclusions
from disclosure_pipeline.evaluation.figures import figures
from disclosure_pipeline.measures.chance import disclosed_by_chance
from disclosure_pipeline.tables.grouping import Grouping

SAMPLE = 20_000
"""Records of each table that are enough to see whether the engine works."""

# Thresholds of the checks, which the controls do not look at.
_ANY = (0.0, 0.0)


def controls(
    frames: Sequence[pd.DataFrame],
    keys: Sequence[Any],
    targets: Sequence[Any],
    grouping: Grouping,
    engine: str = "memory",
    seed: int = 0,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The controls of a gate's run, of `frames`: some records of GT (first) and of each synthesis.

    Returns:
        A frame with index synthesis: copy_UiO, copy_repU (percent of the GT records), of an exact copy of
        GT; they must be equal. And one with index (target, synthesis): copy_Dorig, copy_DiSCO, which must
        be equal; permuted_DiSCO, with the target of SD permuted, and permuted_chance, its DiSCO_chance;
        permuted_deviation, how far they are apart in standard errors.

    The standard error of DiSCO under permutation is taken as the root of the sum of d² C(s_t, s_q) /
    C(N_s, s_q), as if key combinations were permuted independently. Where DiSCO is rare its distribution
    is far from normal: a difference of up to three times the largest d is no deviation.
    """
    ground_truth, *syntheses = frames
    rng = np.random.default_rng(seed)
    permuted = _permuted(syntheses, targets, rng)
    of_copy = _count(ground_truth, [ground_truth.copy()], keys, targets, grouping, engine)
    copy = figures(of_copy, _ANY, _ANY, with_cap=False, with_chance=False)
    counts = _count(ground_truth, permuted, keys, targets, grouping, engine)
    shuffled = figures(counts, _ANY, _ANY, with_cap=False)

    index = shuffled.identity.index
    identity = pd.DataFrame(
        {"copy_UiO": copy.identity["UiO"].iloc[0], "copy_repU": copy.identity["repU"].iloc[0]},
        index=index,
    )
    of_permuted = shuffled.attribute
    of_copies = copy.attribute.loc[of_permuted.index.get_level_values("target")]
    attribute = pd.DataFrame(
        {
            "copy_Dorig": of_copies["Dorig"].to_numpy(),
            "copy_DiSCO": of_copies["DiSCO"].to_numpy(),
            "permuted_DiSCO": of_permuted["DiSCO"],
            "permuted_chance": of_permuted["DiSCO_chance"],
            "permuted_deviation": _deviations(counts, of_permuted["DiSCO_excess"]),
        },
        index=of_permuted.index,
    )
    return identity, attribute


def _count(
    ground_truth: pd.DataFrame,
    syntheses: Sequence[pd.DataFrame],
    keys: Sequence[Any],
    targets: Sequence[Any],
    grouping: Grouping,
    engine: str,
) -> Counts:
    with open_tables(ground_truth, syntheses, engine) as opened:
        return count(opened, ask(opened, keys, targets, grouping, Exclusions()))


def _permuted(
    syntheses: Sequence[pd.DataFrame], targets: Sequence[object], rng: np.random.Generator
) -> list[pd.DataFrame]:
    """Each target's values permuted over the records, by a permutation of its own."""
    permuted = []
    for synthetic in syntheses:
        frame = synthetic.copy(deep=False)
        for target in targets:
            frame[target] = _permute(synthetic[target].array, rng)
        permuted.append(frame)
    return permuted


def _permute(values: Any, rng: np.random.Generator) -> Any:
    if isinstance(values, pd.Categorical):  # permuting small codes is faster than taking them
        return pd.Categorical.from_codes(rng.permutation(values.codes), dtype=values.dtype)
    return values.take(rng.permutation(len(values)))


def _deviations(counts: Counts, excess: pd.Series[float]) -> list[float]:
    """|DiSCO - DiSCO_chance| in standard errors, for each (target, synthesis) in their order."""
    deviations = []
    N_d, *N_s = counts.records
    for target, counts_by_synthesis in zip(counts.targets, counts.counts.targets, strict=True):
        for synthesis, target_counts in enumerate(counts_by_synthesis, start=1):
            records = abs(excess.loc[(target.name, synthesis)]) * N_d / 100
            beyond = max(0.0, records - 3 * target_counts.cells.largest_d)
            squares, s_t = target_counts.cells.dd_by_s_q_t, target.counts[synthesis]
            error = math.sqrt(disclosed_by_chance(squares, s_t, N_s[synthesis - 1]))
            deviations.append(0.0 if beyond == 0 else beyond / error if error else math.inf)
    return deviations
