"""The hash of a table's content, where it has no bytes of its own: the same in any order of its records."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np
import pandas as pd

from disclosure_pipeline.tables.distinct import Distinct
from disclosure_pipeline.tables.levels import level_label


def content_sha256(frame: pd.DataFrame) -> str:
    """Of the names and the records of a table in canonical form.

    Two tables with the same records have the same hash, whatever the order of records and columns and
    whatever the categories that do not occur. It tells two contents apart, not two opponents: records are
    hashed with 64 bits each.
    """
    columns = sorted(frame.columns)
    digest = hashlib.sha256(repr((columns, len(frame))).encode())
    if columns:
        records = pd.util.hash_pandas_object(frame[columns], index=False).to_numpy()
        digest.update(np.sort(records).astype("<u8").tobytes())
    return digest.hexdigest()


def values_sha256(columns: Mapping[str, Distinct]) -> str:
    """Of the canonical values of every column, and of the numbers of records with each.

    It tells that a column changed, not that records changed within equal columns: what was measured is
    measured again before a release.
    """
    digest = hashlib.sha256()
    for name in sorted(columns):
        column = columns[name]
        records_of: dict[str, int] = {}
        for value, records in zip([*column.values, None], column.counts.tolist(), strict=True):
            label = "-" if value is None or pd.isna(value) else f"={level_label(value)}"
            records_of[label] = records_of.get(label, 0) + records
        digest.update(repr((name, sorted(records_of.items()))).encode())
    return digest.hexdigest()
