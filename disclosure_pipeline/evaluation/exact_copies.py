"""Synthetic records that are exact copies of a GT record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from disclosure_pipeline.counting.memory.opened_frames import FramesInMemory
from disclosure_pipeline.counting.targets import CountRequest
from disclosure_pipeline.evaluation.copies import shared_names
from disclosure_pipeline.measures.exact import percent
from disclosure_pipeline.tables.frames import as_frames
from disclosure_pipeline.tables.grouping import grouping_of


def exact_copies(ground_truth: Any, synthetic: Any) -> pd.DataFrame:
    """The synthetic records that are exact copies of a GT record in every column that all tables have.

    Returns:
        Index synthesis; `columns`: the number of columns compared; `copies`: SD records; `percent` of all
        SD records. With few columns of few levels copies are no sign of anything: in GT itself most
        records are copies of another.

    Raises:
        InputError: No column is in all tables, or one has no common kind of value.

    Example:
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> patients = pd.DataFrame({"age": [30, 30, 40, 50], "illness": ["flu", "cold", "flu", "cold"]})
        >>> synthetic = pd.DataFrame({"age": [30, 40, 40, 60], "illness": ["flu", "flu", "flu", "cold"]})
        >>> dp.exact_copies(patients, synthetic)
                   columns  copies  percent
        synthesis
        1                2       3     75.0
    """
    frames = as_frames(ground_truth, synthetic)
    shared = shared_names(frames)
    opened = FramesInMemory(frames, "memory")
    [counts] = opened.count([CountRequest(opened.code(shared, grouping_of()))])
    copies = [key_counts.shared.SD_in_GT for key_counts in counts.keys]
    return copies_frame(len(shared), copies, opened.records[1:])


def copies_frame(columns: int, copies: Sequence[int], records: Sequence[int]) -> pd.DataFrame:
    """The frame of `exact_copies`, from the `copies` in each synthesis of so many `records`."""
    return pd.DataFrame(
        [
            {"columns": columns, "copies": number, "percent": percent(number, total)}
            for number, total in zip(copies, records, strict=True)
        ],
        index=pd.RangeIndex(1, len(copies) + 1, name="synthesis"),
    )
