"""`key_overlap()`: what the tables share of each key and of the whole key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from disclosure_pipeline.counting.opening import open_tables
from disclosure_pipeline.evaluation import comparability
from disclosure_pipeline.evaluation.counts import Counts, count, plan_measures
from disclosure_pipeline.evaluation.exclusions import Exclusions
from disclosure_pipeline.evaluation.frames import frame_of, names_of
from disclosure_pipeline.measures.resemblance import Overlap
from disclosure_pipeline.tables.grouping import Edges, grouping_of


def key_overlap(
    ground_truth: pd.DataFrame,
    synthetic: pd.DataFrame | Sequence[pd.DataFrame],
    keys: Sequence[Any],
    *,
    groups: Mapping[Any, int] | None = None,
    special_values: Mapping[Any, Sequence[float]] | None = None,
    edges: Edges = "pooled",
) -> pd.DataFrame:
    """What the tables share of each key and of the whole key: `key_overlap` of `disclosure()`, alone.

    Tables that share few values cannot be compared: every risk would read near 0. Errors as there.

    Example:
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> patients = pd.DataFrame({"age": [30, 30, 40, 50], "illness": ["flu", "cold", "flu", "cold"]})
        >>> synthetic = pd.DataFrame({"age": [30, 40, 40, 60], "illness": ["flu", "flu", "flu", "cold"]})
        >>> dp.key_overlap(patients, synthetic, ["age"])
                               GT_in_SD  SD_in_GT
        key         synthesis
        (whole key) 1              75.0      75.0
        age         1              75.0      75.0
    """
    grouping = grouping_of(groups, special_values, edges)
    with open_tables(ground_truth, synthetic, "memory") as opened:
        return overlap_of(count(opened, plan_measures(opened, keys, (), grouping, Exclusions())))


def overlap_of(counts: Counts) -> pd.DataFrame:
    """The frame `key_overlap` of what was counted."""
    N_d, *N_s = counts.records
    rows = comparability.whole_key_overlap([of_keys.shared for of_keys in counts.counts.keys], N_d, N_s)
    for column in counts.keys:
        rows |= comparability.compare_column(column, counts.names)[0]
    return frame_of(rows, ["key", "synthesis"], names_of(Overlap))
