"""Everything that the study has judged: synthesizers, and tables of which it is known what they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from synthesizers import packages, plain

Synthesizer = Callable[[pd.DataFrame, int], pd.DataFrame]
Control = Callable[[pd.DataFrame, pd.DataFrame, int], pd.DataFrame]

SEEDS = (1, 2, 3)
SEEDS_OF_FRESH = tuple(range(1, 11))
"""So that false refusals are seen."""

HERE = ""
"""The environment of the project itself."""


@dataclass(frozen=True)
class Kind:
    """A synthesizer, what it is called on the page, and the environment that it runs in."""

    make: Synthesizer
    title: str
    environment: str = HERE


def _of_epsilon(
    name: str, title: str, make: Callable[..., pd.DataFrame], environment: str
) -> dict[str, Kind]:
    return {
        f"{name}_epsilon_{epsilon:g}": Kind(
            partial(make, epsilon=epsilon), f"{title.removesuffix(')')}, ε = {epsilon:g})", environment
        )
        for epsilon in (0.5, 1, 5)
    }


SYNTHESIZERS: dict[str, Kind] = {
    "columns_apart": Kind(plain.columns_apart, "columns drawn apart"),
    **{
        f"trees_{leaf}": Kind(partial(plain.trees, leaf=leaf), f"trees (leaves of {leaf})")
        for leaf in (1, 5, 20, 100)
    },
    "copula": Kind(plain.copula, "Gaussian copula of ranks"),
    "network": Kind(plain.network, "Chow-Liu tree"),
    "neighbours": Kind(plain.neighbours, "between neighbours (SMOTE)"),
    "arfpy": Kind(packages.forests, "adversarial forests (arfpy)", "older"),
    "copulas": Kind(packages.copulas, "Gaussian copula (copulas)", "newer"),
    "DataSynthesizer": Kind(packages.data_synthesizer, "Bayesian network (DataSynthesizer)", "older"),
    "NRGBoost": Kind(packages.boosting, "boosting (NRGBoost)", "newer"),
    "CTGAN": Kind(packages.gan, "GAN (CTGAN)", "neural"),
    "TVAE": Kind(packages.autoencoder, "autoencoder (TVAE)", "neural"),
    **_of_epsilon("MST", "MST (mbi)", packages.marginals, "newer"),
    **_of_epsilon("PrivBayes", "PrivBayes (DataSynthesizer)", packages.data_synthesizer, "older"),
}


def _fresh(_: pd.DataFrame, fresh: pd.DataFrame, __: int) -> pd.DataFrame:
    return fresh


def _bootstrap(ground_truth: pd.DataFrame, _: pd.DataFrame, seed: int) -> pd.DataFrame:
    return ground_truth.sample(len(ground_truth), replace=True, random_state=seed).reset_index(drop=True)


def _copies(ground_truth: pd.DataFrame, fresh: pd.DataFrame, seed: int, *, percent: int) -> pd.DataFrame:
    """Return fresh records of which so many percent of GT's people take the place."""
    number = round(len(ground_truth) * percent / 100)
    copied = ground_truth.sample(number, random_state=seed)
    kept = fresh.sample(max(len(fresh) - number, 0), random_state=seed)
    return pd.concat([kept, copied], ignore_index=True)


def _near_copies(ground_truth: pd.DataFrame, fresh: pd.DataFrame, seed: int, *, percent: int) -> pd.DataFrame:
    """Return the same with numbers moved by a hundredth of their range, and a category from somebody else."""
    return _copies(move(ground_truth, seed), fresh, seed, percent=percent)


def move(table: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Return near copies of the records of a table: each number is another one, if it has other values."""
    random = np.random.default_rng(seed)
    columns: dict[str, Any] = {}
    categories = [name for name in table.columns if plain.is_category(table[name])]
    for name in table.columns:
        column = table[name]
        if name in categories or column.nunique() <= 2:
            columns[name] = column
            continue
        known = np.sort(column.dropna().unique())
        step = max((known[-1] - known[0]) / 100, np.diff(known).min())
        moved = column.to_numpy(dtype=float, na_value=np.nan) + random.choice([-step, step], len(table))
        columns[name] = np.clip(moved, known[0], known[-1])
    if categories:
        name = categories[int(random.integers(len(categories)))]
        columns[name] = column_of_others(table[name], random)
    return pd.DataFrame(columns)


def column_of_others(column: pd.Series[Any], random: np.random.Generator) -> pd.Series[Any]:
    return column.iloc[random.permutation(len(column))].reset_index(drop=True)


CONTROLS: dict[str, Control] = {
    "fresh": _fresh,
    "bootstrap": _bootstrap,
    **{f"copies_{percent}": partial(_copies, percent=percent) for percent in (1, 3, 10, 30)},
    **{f"near_{percent}": partial(_near_copies, percent=percent) for percent in (3, 10, 30)},
}
"""Made of GT and a fresh table: nobody needs a synthesizer for them."""
