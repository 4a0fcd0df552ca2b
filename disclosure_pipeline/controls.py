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

from disclosure_pipeline.evaluation import Counts, count, figures
from disclosure_pipeline.exclusions import Exclusions
from disclosure_pipeline.measures.chance import disclosed_by_chance
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.tables.alignment import Tables

# Of larger tables samples are enough to see whether the engine works.
LARGEST_GROUND_TRUTH = 100_000
LARGEST_SYNTHESIS = 1_000_000

# Thresholds of the checks, which the controls do not look at.
_ANY = (0.0, 0.0)


def controls(tables: Tables, engine: str = "memory", seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The controls of a gate's run: of tables, or of their records that `sample` names.

    Returns:
        A frame with index synthesis: copy_UiO, copy_repU (percent of the GT records), of an exact copy of
        GT; they must be equal. And one with index (target, synthesis): copy_Dorig, copy_DiSCO, which must
        be equal; permuted_DiSCO, with the target of SD permuted, and permuted_chance, its DiSCO_chance;
        permuted_deviation, how far they are apart in standard errors.

    The standard error of DiSCO under permutation is taken as the root of the sum of d² C(s_t, s_q) /
    C(N_s, s_q), as if key combinations were permuted independently. Where DiSCO is rare its distribution
    is far from normal: a difference of up to three times the largest d is no deviation.
    """
    ground_truth, *syntheses = (
        frame if records is None else frame.iloc[records]
        for frame, records in zip(tables.frames, sample([len(f) for f in tables.frames], seed), strict=True)
    )
    copies = replace(tables, frames=(ground_truth, ground_truth.copy()))
    rng = np.random.default_rng(seed)
    permuted = replace(tables, frames=(ground_truth, *_permuted(syntheses, tables.targets, rng)))
    of_copy = count(copies, Exclusions(), engine=engine)
    copy = figures(of_copy, _ANY, _ANY, with_attribution=False, with_chance=False)
    counts = count(permuted, Exclusions(), engine=engine)
    shuffled = figures(counts, _ANY, _ANY, with_attribution=False)

    index = shuffled.identity.index
    identity = pd.DataFrame(
        {"copy_UiO": copy.identity["UiO"].iloc[0], "copy_repU": copy.identity["repU"].iloc[0]},
        index=index,
    )
    found = shuffled.attribute
    same = copy.attribute.loc[found.index.get_level_values("target")]
    attribute = pd.DataFrame(
        {
            "copy_Dorig": same["Dorig"].to_numpy(),
            "copy_DiSCO": same["DiSCO"].to_numpy(),
            "permuted_DiSCO": found["DiSCO"],
            "permuted_chance": found["DiSCO_chance"],
            "permuted_deviation": _deviations(counts, found["DiSCO_excess"]),
        },
        index=found.index,
    )
    return identity, attribute


def sample(records: Sequence[int], seed: int = 0) -> list[IntArray | None]:
    """The records of each table (GT first) that are looked at, seeded and in their order; None for all."""
    found: list[IntArray | None] = []
    for table, number in enumerate(records):
        most = LARGEST_SYNTHESIS if table else LARGEST_GROUND_TRUTH
        rng = np.random.default_rng([seed, table])
        found.append(None if number <= most else np.sort(rng.choice(number, most, replace=False)))
    return found


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
    for target, of_target in zip(counts.targets, counts.found.targets, strict=True):
        for synthesis, found in enumerate(of_target, start=1):
            records = abs(excess.loc[(target.name, synthesis)]) * N_d / 100
            beyond = max(0.0, records - 3 * found.cells.most)
            squares, s_t = found.cells.drawn_squares, target.counts[synthesis]
            error = math.sqrt(disclosed_by_chance(squares, s_t, N_s[synthesis - 1]))
            deviations.append(0.0 if beyond == 0 else beyond / error if error else math.inf)
    return deviations
