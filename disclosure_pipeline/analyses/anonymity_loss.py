"""`anonymity_loss()`: the anonymity loss coefficient of an intruder who looks keys up in SD."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import pandas as pd

from disclosure_pipeline.counting.counts import guess_is_impossible
from disclosure_pipeline.counting.opening import read_tables
from disclosure_pipeline.evaluation.counts import combine_columns
from disclosure_pipeline.evaluation.frames import FiguresFrame, row_of
from disclosure_pipeline.evaluation.resemblance import find_doubts, warn_of_doubts
from disclosure_pipeline.measures.certainty import (
    CertaintyCounts,
    certainty_counts,
    certainty_counts_of_others,
    drawn_certainty_counts,
)
from disclosure_pipeline.measures.certainty import anonymity_loss as anonymity_loss_of
from disclosure_pipeline.measures.drawn_guesses import draw_of_others, draw_of_synthetic
from disclosure_pipeline.measures.exact import ONE, Mask
from disclosure_pipeline.measures.frequency import FrequencyTable, frequency_tables
from disclosure_pipeline.measures.samples import Sizes
from disclosure_pipeline.tables.grouping import Edges, grouping_of
from disclosure_pipeline.tables.sources import Columns, Syntheses, TableSource

# Above 1/2, so that an intruder claims one level of a person.
CERTAINTIES = tuple(Fraction(percent, 100) for percent in range(55, 101, 5))


def anonymity_loss(
    ground_truth: TableSource,
    synthetic: Syntheses,
    keys: Sequence[Hashable],
    targets: Columns = None,
    *,
    groups: Mapping[Any, int] | None = None,
    special_values: Mapping[Any, Sequence[float]] | None = None,
    edges: Edges = "pooled",
) -> pd.DataFrame:
    """Measure how much more an intruder learns from SD than from other people's records, as one coefficient.

    The intruder claims the level that at least a share c of the SD records with a person's key have, for the
    best of c = 0.55, 0.60 to 1; the same is done with the other GT records. Missing is no level to claim.
    Where the tables differ in size by more than a record, claims from the larger one are those of a draw of
    it, on average over all draws.

    Returns:
        Index (target, synthesis). ALC, a coefficient: 1 where SD tells all that other people's records do
        not, 0 or less where it tells no more. PRC and PRC_others, coefficients of both attacks from 0 to 1;
        precision and precision_others: right claims in percent of the GT records of whom something is claimed
        (NaN: of nobody); recall and recall_others: these in percent of all; certainty, certainty_others: c.

    Arguments and errors as in `disclosure()`; the tables are read into memory.

    Example:
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> gt = pd.DataFrame({"age": range(40), "ill": ["y", "n"] * 20})
        >>> dp.anonymity_loss(gt, gt, ["age"])[["ALC", "precision", "recall", "recall_others"]]
                          ALC  precision  recall  recall_others
        target synthesis
        ill    1          1.0      100.0   100.0            0.0

    Source: Francis & Wagner 2025 (arXiv:2507.01710); the others' records in place of a holdout are this
    project's own.
    """
    tables = read_tables(ground_truth, synthetic, keys, targets, grouping_of(groups, special_values, edges))
    key_columns, target_columns = tables.code(tables.keys), tables.code(tables.targets)
    warn_of_doubts(find_doubts(tables, [*key_columns, *target_columns]))
    q = combine_columns(key_columns)
    rows = {}
    for target in target_columns:
        no_guess = guess_is_impossible(target)
        for synthesis, f in enumerate(frequency_tables(q, target.codes, target.size), start=1):
            attack, others = (
                {c: _count_claims(f, c, no_guess, from_others=from_others) for c in CERTAINTIES}
                for from_others in (False, True)
            )
            rows[target.name, synthesis] = row_of(anonymity_loss_of(attack, others, f.N_d * ONE))
    index = pd.MultiIndex.from_tuples(list(rows), names=["target", "synthesis"])
    return FiguresFrame(list(rows.values()), index=index)


def _count_claims(f: FrequencyTable, c: Fraction, no_guess: Mask, *, from_others: bool) -> CertaintyCounts:
    """In units of 1 / `ONE`."""
    sizes = Sizes(f.N_d, f.N_s)
    draw = draw_of_others(sizes) if from_others else draw_of_synthetic(sizes)
    if draw:
        return drawn_certainty_counts(f, f.d if from_others else f.s, c, no_guess, draw)
    count = certainty_counts_of_others if from_others else certainty_counts
    return count(f, f.d, c, no_guess).times(ONE)
