"""SDMetrics' measure, CAP protection of one target, by SDMetrics and by ours."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd

import disclosure_pipeline as dp


def ours(paths: Sequence[Path], keys: Sequence[str], targets: Sequence[str]) -> Callable[[], float]:
    gt, sd = (pd.read_parquet(path, columns=[*keys, *targets]) for path in paths)
    return lambda: float(
        dp.disclosure_protection(gt, sd, keys, list(targets)).figures["cap_protection"].item()
    )


def sdmetrics(paths: Sequence[Path], keys: Sequence[str], targets: Sequence[str]) -> Callable[[], float]:
    from sdmetrics.single_table import DisclosureProtection

    warnings.simplefilter("ignore")
    # It reads no categories.
    gt, sd = (pd.read_parquet(path, columns=[*keys, *targets]).astype(str) for path in paths)

    def work() -> float:
        breakdown = DisclosureProtection.compute_breakdown(gt, sd, list(keys), list(targets), "cap")
        return float(breakdown["cap_protection"])

    return work
