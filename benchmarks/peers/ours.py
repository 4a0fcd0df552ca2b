"""Ours, from frames and from files, and the read that is the floor."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet
from data import DICTIONARY
from figures import Figures, of_disclosure

import disclosure_pipeline as dp
from disclosure_pipeline.tables.contract import canonical_table, read_canonical
from disclosure_pipeline.tables.dictionary import Contract

_FEW = 1000


def read(paths: Sequence[Path], keys: Sequence[str], targets: Sequence[str]) -> Callable[[], Any]:
    """The columns from Parquet by pyarrow; dictionaries stay dictionaries."""
    columns = [*keys, *targets]
    return lambda: [pyarrow.parquet.read_table(path, columns=columns) for path in paths] and None


def from_frames(paths: Sequence[Path], keys: Sequence[str], targets: Sequence[str]) -> Callable[[], Figures]:
    """Categories and integers are in memory."""
    gt, sd = (pd.read_parquet(path, columns=[*keys, *targets]) for path in paths)
    dp.disclosure(gt.head(_FEW), sd.head(_FEW), keys, list(targets))  # imports what it needs
    return lambda: of_disclosure(dp.disclosure(gt, sd, keys, list(targets)))


def on_one_core(paths: Sequence[Path], keys: Sequence[str], targets: Sequence[str]) -> Callable[[], Figures]:
    """The same as `from_frames`, on one core."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    return from_frames(paths, keys, targets)


def through_the_gate(
    paths: Sequence[Path], keys: Sequence[str], targets: Sequence[str]
) -> Callable[[], Figures]:
    """Reader, contract, canonical form, measures."""
    columns = [*keys, *targets]
    dictionary = {name: DICTIONARY[name] for name in columns}

    def work() -> Figures:
        gt, sd = (read_canonical(path, Contract(dictionary, "T", columns, False)).frame for path in paths)
        return of_disclosure(dp.disclosure(gt, sd, keys, list(targets)))

    few = pyarrow.parquet.ParquetFile(paths[0]).read_row_group(0, columns).slice(0, _FEW).to_pandas()
    canonical_table(few, Contract(dictionary, "T", columns, False))  # imports what the contract needs
    dp.disclosure(few, few, keys, list(targets))
    return work
