"""`bins()`: the groups of every grouped numeric column, and how many records each holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.tables.alignment import check_tables
from disclosure_pipeline.tables.grouping import Edges, grouping_of
from disclosure_pipeline.tables.levels import CodedColumn


def bins(
    ground_truth: pd.DataFrame,
    synthetic: pd.DataFrame | Sequence[pd.DataFrame],
    keys: Sequence[Any],
    targets: Any,
    *,
    groups: Mapping[Any, int] | None = None,
    special_values: Mapping[Any, Sequence[float]] | None = None,
    edges: Edges = "pooled",
) -> pd.DataFrame:
    """The levels of every grouped column, and the records in each: columns column, level, GT, SD.

    SD counts are summed over the syntheses. Arguments and errors as in `disclosure()`.
    """
    grouping = grouping_of(groups, special_values, edges)
    tables = check_tables(ground_truth, synthetic, keys, targets, grouping)
    grouped = [name for name in (*tables.keys, *tables.targets) if grouping.grouped(name)]
    return bins_of([tables.coded(name) for name in grouped])


def bins_of(columns: Sequence[CodedColumn]) -> pd.DataFrame:
    """The frame of `bins` from the columns that are grouped."""
    rows = []
    for column in columns:
        counts = column.counts
        rows += [
            {
                "column": column.name,
                "level": column.label(code),
                "GT": int(counts[0][code]),
                "SD": int(of_code),
            }
            for code, of_code in enumerate(np.sum(counts[1:], axis=0))
        ]
    return pd.DataFrame(rows, columns=["column", "level", "GT", "SD"])
