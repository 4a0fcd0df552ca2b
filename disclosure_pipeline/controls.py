"""Controls: what the engine must find, because it is known beforehand. They give the figures a scale.

An exact copy of GT discloses everything that GT itself would; a synthesis whose target is permuted discloses
what chance does. An engine that finds anything else can no longer see a leak.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.evaluation import Counts, count, evaluate, figures
from disclosure_pipeline.exclusions import Exclusions
from disclosure_pipeline.measures.chance import disclosed_by_chance
from disclosure_pipeline.tables.alignment import Tables

# Of a larger GT a sample is enough to see whether the engine works. SD is never sampled.
LARGEST_GROUND_TRUTH = 100_000

# Thresholds of the checks, which the controls do not look at.
_ANY = (0.0, 0.0)


def controls(tables: Tables, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The controls of a gate's run, on GT or on a seeded sample of 100,000 of its records.

    Returns:
        A frame with index synthesis: copy_UiO, copy_repU (percent of the GT records), of an exact copy of
        GT; they must be equal. And one with index (target, synthesis): copy_Dorig, copy_DiSCO, which must
        be equal; permuted_DiSCO, with the target of SD permuted, and permuted_chance, its DiSCO_chance;
        permuted_deviation, how far they are apart in standard errors.

    The standard error of DiSCO under permutation is taken as the root of the sum of d² C(s_t, s_q) /
    C(N_s, s_q), as if key combinations were permuted independently. Where DiSCO is rare its distribution
    is far from normal: a difference of up to three times the largest d is no deviation.
    """
    rng = np.random.default_rng(seed)
    ground_truth = _sample(tables.frames[0], rng)
    copies = replace(tables, frames=(ground_truth, ground_truth.copy()))
    permuted = replace(tables, frames=(ground_truth, *_permuted(tables.frames[1:], tables.targets, rng)))
    copy = evaluate(copies, Exclusions(), _ANY, _ANY, with_attribution=False, with_chance=False)
    counts = count(permuted, Exclusions())
    shuffled = figures(counts, _ANY, _ANY, with_attribution=False)

    syntheses = shuffled.identity.index
    identity = pd.DataFrame(
        {"copy_UiO": copy.identity["UiO"].iloc[0], "copy_repU": copy.identity["repU"].iloc[0]},
        index=syntheses,
    )
    found = shuffled.attribute
    of_copy = copy.attribute.loc[found.index.get_level_values("target")]
    attribute = pd.DataFrame(
        {
            "copy_Dorig": of_copy["Dorig"].to_numpy(),
            "copy_DiSCO": of_copy["DiSCO"].to_numpy(),
            "permuted_DiSCO": found["DiSCO"],
            "permuted_chance": found["DiSCO_chance"],
            "permuted_deviation": _deviations(counts, found["DiSCO_excess"]),
        },
        index=found.index,
    )
    return identity, attribute


def _sample(ground_truth: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    if len(ground_truth) <= LARGEST_GROUND_TRUTH:
        return ground_truth
    records = rng.choice(len(ground_truth), LARGEST_GROUND_TRUTH, replace=False)
    return ground_truth.iloc[np.sort(records)]


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
    for target, of_target in zip(counts.targets, counts.found.targets, strict=True):
        N_d, *N_s = (len(table.stored) for table in target.tables)
        for synthesis, found in enumerate(of_target, start=1):
            records = abs(excess.loc[(target.name, synthesis)]) * N_d / 100
            beyond = max(0.0, records - 3 * found.cells.most)
            squares, s_t = found.cells.drawn_squares, target.counts[synthesis]
            error = math.sqrt(disclosed_by_chance(squares, s_t, N_s[synthesis - 1]))
            deviations.append(0.0 if beyond == 0 else beyond / error if error else math.inf)
    return deviations
