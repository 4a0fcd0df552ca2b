"""pandas: the keys numbered once, then a table of the cells of each target, and a group-by over its keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from figures import Figures, of_sums


def prepare(paths: Sequence[Path], keys: Sequence[str], targets: Sequence[str]) -> Callable[[], Figures]:
    gt, sd = (pd.read_parquet(path, columns=[*keys, *targets]) for path in paths)
    return lambda: measure(gt, sd, keys, targets)


def measure(gt: pd.DataFrame, sd: pd.DataFrame, keys: Sequence[str], targets: Sequence[str]) -> Figures:
    both = pd.concat([gt, sd], ignore_index=True)
    q = np.zeros(len(both), dtype=np.int64)
    for key in keys:
        codes, size = _codes(both[key])
        q = q * size + codes
    q, combinations = pd.factorize(q)
    identity: dict[str, int] = {}
    target_sums = {}
    for target in targets:
        t, levels = _codes(both[target])
        k = _sums_of_keys(_cells(q * levels + t, len(combinations) * levels, len(gt)), levels)
        identity = identity or _identity(k)
        target_sums[target] = _totals(k) | {"base": int((np.bincount(t[: len(gt)]) ** 2).sum())}
    return of_sums(identity, target_sums, len(gt), len(sd))


def _codes(column: pd.Series) -> tuple[Any, int]:
    """From 0, which is missing."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.codes.to_numpy().astype(np.int64) + 1, len(column.cat.categories) + 1
    codes, levels = pd.factorize(column)
    return codes + 1, len(levels) + 1


def _cells(cell: Any, cells: int, N_d: int) -> pd.DataFrame:
    """D and s of each cell. All possible cells are counted where they are few, else those that occur."""
    occurring = np.arange(cells)
    if cells > 2 * len(cell):
        cell, occurring = pd.factorize(cell)
    d = np.bincount(cell[:N_d], minlength=len(occurring))
    s = np.bincount(cell[N_d:], minlength=len(occurring))
    return pd.DataFrame({"d": d, "s": s}, index=occurring)


def _sums_of_keys(cells: pd.DataFrame, levels: int) -> pd.DataFrame:
    d, s = cells["d"], cells["s"]
    products = pd.DataFrame({"d": d, "s": s, "dd": d * d, "ss": s * s, "ds": d * s})
    return products.groupby(cells.index.to_numpy() // levels, sort=False).sum()


def _identity(k: pd.DataFrame) -> dict[str, int]:
    in_GT, in_SD = k["d"] == 1, k["s"] == 1
    return {
        "UiO": int(in_GT.sum()),
        "UiS": int(in_SD.sum()),
        "UiOiS": int((in_GT & (k["s"] > 0)).sum()),
        "repU": int((in_GT & in_SD).sum()),
    }


def _totals(k: pd.DataFrame) -> dict[str, float]:
    d, s, ds = k["d"], k["s"], k["ds"]
    in_GT, in_SD = d > 0, s > 0
    GT_has_one, SD_has_one = in_GT & (k["dd"] == d * d), in_SD & (k["ss"] == s * s)
    return {
        "Dorig": d[GT_has_one].sum(),
        "Dsyn": s[SD_has_one].sum(),
        "iS": d[in_SD].sum(),
        "DiS": d[SD_has_one].sum(),
        "DiSCO": (ds[SD_has_one] // s[SD_has_one]).sum(),
        "DiSDiO": d[GT_has_one & SD_has_one & (ds > 0)].sum(),
        "certain": s[SD_has_one & in_GT].sum(),
        "CAPd": (k["dd"][in_GT] / d[in_GT]).sum(),
        "CAPs": (k["ss"][in_SD] / s[in_SD]).sum(),
        "DCAP": (ds[in_SD] / s[in_SD]).sum(),
        "TCAP_taub": (ds[SD_has_one & in_GT] / d[SD_has_one & in_GT]).sum(),
    }
