"""The hash of a table's content, where it has no bytes of its own: the same in any order of its records."""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd


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
