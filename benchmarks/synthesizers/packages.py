"""Synthesizers that others publish, with the settings of their own documentation but for shorter training.

Each is imported where it is used: they need environments of their own, `environments/`.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from synthesizers.plain import is_category

Restore = Callable[[pd.DataFrame], pd.DataFrame]

# Of a GAN or an autoencoder, over some thousands of records.
_EPOCHS = 50
_GROUPS = 16
_DELTA = 1e-6
_NO_LEVEL = "(missing)"
_IS_MISSING = " is missing"


def forests(table: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Adversarial random forests of arfpy (Watson et al. 2023)."""
    from arfpy import arf

    np.random.seed(seed)
    complete, restore = fill_gaps(table)
    model = arf.arf(complete, num_trees=10, max_iters=2, verbose=False, random_state=seed)
    model.forde()
    return restore(model.forge(len(table)))


def copulas(table: pd.DataFrame, seed: int) -> pd.DataFrame:
    """The Gaussian copula of copulas, with normal margins; levels are intervals of the line, as in SDV."""
    from copulas.multivariate import GaussianMultivariate
    from copulas.univariate import BetaUnivariate

    complete, restore = fill_gaps(table)
    numbers, restore_levels = _levels_to_intervals(complete, seed)
    model = GaussianMultivariate(distribution=BetaUnivariate, random_state=seed)
    model.fit(numbers)
    return restore(restore_levels(model.sample(len(table))))


def data_synthesizer(table: pd.DataFrame, seed: int, epsilon: float = 0) -> pd.DataFrame:
    """PrivBayes of DataSynthesizer: two parents a column, or one and differential privacy of `epsilon`."""
    from DataSynthesizer.DataDescriber import DataDescriber
    from DataSynthesizer.DataGenerator import DataGenerator

    complete, restore = fill_gaps(table)
    categories = {name: is_category(complete[name]) for name in complete.columns}
    kinds = {name: _name_type(complete[name]) for name in complete.columns}
    with tempfile.TemporaryDirectory() as folder:
        original, described = Path(folder) / "table.csv", Path(folder) / "description.json"
        complete.to_csv(original, index=False)
        describer = DataDescriber(category_threshold=max(complete.nunique()))
        describer.describe_dataset_in_correlated_attribute_mode(
            str(original),
            k=1 if epsilon else 2,
            epsilon=epsilon,
            attribute_to_datatype=kinds,
            attribute_to_is_categorical=categories,
            attribute_to_is_candidate_key=dict.fromkeys(complete, False),
            seed=seed,
        )
        describer.save_dataset_description_to_file(str(described))
        generator = DataGenerator()
        generator.generate_dataset_in_correlated_attribute_mode(len(table), str(described), seed=seed)
        made: pd.DataFrame = generator.synthetic_dataset
    return restore(made[list(complete.columns)])


def boosting(table: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Energy-based boosted trees of NRGBoost (Bravo 2025)."""
    from nrgboost import Dataset, NRGBooster

    complete, restore = fill_gaps(table)
    levels = {name: "category" for name in complete.columns if is_category(complete[name])}
    settings = {"num_trees": 20, "max_leaves": 64, "num_model_samples": 4_000, "num_threads": 1}
    model = NRGBooster.fit(Dataset(complete.astype(levels)), settings, seed=seed)
    made = model.sample(len(table), num_steps=30, num_threads=1, seed=seed)
    return restore(made[list(complete.columns)].astype(dict.fromkeys(levels, object)))


def gan(table: pd.DataFrame, seed: int) -> pd.DataFrame:
    """CTGAN (Xu et al. 2019)."""
    from ctgan import CTGAN

    return _train(CTGAN(epochs=_EPOCHS, enable_gpu=False), table, seed)


def autoencoder(table: pd.DataFrame, seed: int) -> pd.DataFrame:
    """TVAE (Xu et al. 2019)."""
    from ctgan import TVAE

    return _train(TVAE(epochs=_EPOCHS, enable_gpu=False), table, seed)


def _train(model: Any, table: pd.DataFrame, seed: int) -> pd.DataFrame:
    import torch

    torch.manual_seed(seed)
    np.random.seed(seed)
    model.set_random_state(seed)
    complete, restore = fill_gaps(table)
    # A column called self would be taken for an argument.
    numbered = complete.set_axis([f"column {place}" for place in range(complete.shape[1])], axis=1)
    model.fit(numbered, [name for name in numbered.columns if is_category(numbered[name])])
    return restore(model.sample(len(table)).set_axis(complete.columns, axis=1))


def marginals(table: pd.DataFrame, seed: int, epsilon: float = 1) -> pd.DataFrame:
    """MST on mbi (McKenna et al. 2021): a tree of noisy pairs, with differential privacy for records.

    The ranges of numbers and their 16 groups are taken for known.
    """
    from mbi import Dataset, Domain, LinearMeasurement, estimation

    random = np.random.default_rng(seed)
    np.random.seed(seed)
    complete, restore = fill_gaps(table)
    coded, draw = _group(complete)
    sizes = [int(values.max()) + 1 for values in coded]
    # What rho-zCDP leaves of epsilon and delta (Bun and Steinke 2016, proposition 1.3).
    rho = (math.sqrt(math.log(1 / _DELTA) + epsilon) - math.sqrt(math.log(1 / _DELTA))) ** 2
    width = math.sqrt(len(coded) / (2 * rho / 3))
    ones = [
        np.bincount(values, minlength=size) + random.normal(0, width, size)
        for values, size in zip(coded, sizes, strict=True)
    ]
    pairs = _choose_pairs(coded, sizes, ones, rho / 3, random)
    names = [str(place) for place in range(len(coded))]
    measured = [
        LinearMeasurement(counts, (name,), stddev=width) for name, counts in zip(names, ones, strict=True)
    ]
    width_of_pairs = math.sqrt(len(pairs) / (2 * rho / 3))
    for one, other in pairs:
        counts = np.bincount(coded[one] * sizes[other] + coded[other], minlength=sizes[one] * sizes[other])
        noisy = counts + random.normal(0, width_of_pairs, len(counts))
        measured.append(LinearMeasurement(noisy, (names[one], names[other]), stddev=width_of_pairs))
    domain = Domain(names, sizes)
    model = estimation.MirrorDescent().estimate(domain, measured, known_total=len(table), iters=300)
    made: Dataset = model.synthetic_data(len(table))
    codes = made.to_dict()
    return restore(draw([np.asarray(codes[name], dtype=np.intp) for name in names], random))


def _choose_pairs(
    coded: list[Any], sizes: list[int], ones: list[Any], rho: float, random: np.random.Generator
) -> list[tuple[int, int]]:
    """Return a spanning tree of the columns, each edge drawn by the exponential mechanism."""
    shares = [np.maximum(counts, 0) / max(np.maximum(counts, 0).sum(), 1) for counts in ones]
    missed = {}
    for one in range(len(coded)):
        for other in range(one):
            counts = np.bincount(
                coded[one] * sizes[other] + coded[other], minlength=sizes[one] * sizes[other]
            )
            expected = len(coded[one]) * np.outer(shares[one], shares[other]).ravel()
            missed[one, other] = np.abs(counts - expected).sum()
    epsilon = math.sqrt(8 * rho / max(len(coded) - 1, 1))
    of_tree = list(range(len(coded)))
    pairs = []
    while len(set(of_tree)) > 1:
        open_pairs = [pair for pair in missed if of_tree[pair[0]] != of_tree[pair[1]]]
        # One record changes the difference by at most 1; Gumbel noise draws as the mechanism does.
        scores = epsilon / 2 * np.array([missed[pair] for pair in open_pairs])
        one, other = open_pairs[int(np.argmax(scores + random.gumbel(size=len(scores))))]
        pairs.append((one, other))
        joined = of_tree[other]
        of_tree = [of_tree[one] if tree == joined else tree for tree in of_tree]
    return pairs


def fill_gaps(table: pd.DataFrame) -> tuple[pd.DataFrame, Restore]:
    """Return a table without missing values, and what puts these back into one made from it.

    A category gets a level for them; a number the median, and a column that says where it is missing.
    """
    columns: dict[str, Any] = {}
    for name in table.columns:
        column = table[name]
        if is_category(column):
            columns[name] = column.astype(object).where(column.notna(), _NO_LEVEL).astype(str)
        elif column.isna().any():
            columns[name] = column.astype(float).fillna(column.median())
            columns[name + _IS_MISSING] = np.where(column.isna(), "yes", "no")
        else:
            columns[name] = column
    complete = pd.DataFrame(columns)

    def restore(made: pd.DataFrame) -> pd.DataFrame:
        restored = {}
        for name in table.columns:
            column = made[name].reset_index(drop=True)
            if is_category(table[name]):
                column = column.astype(object).where(column.astype(str) != _NO_LEVEL, None)
            elif name + _IS_MISSING in made:
                said = made[name + _IS_MISSING].reset_index(drop=True).astype(str)
                column = column.astype(float).where(said != "yes", np.nan)
            restored[name] = column
        return pd.DataFrame(restored)

    return complete, restore


def _levels_to_intervals(table: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, Restore]:
    """Return categories as uniform numbers, a level an interval as wide as it is frequent."""
    random = np.random.default_rng(seed)
    numbers, ends = {}, {}
    for name in table.columns:
        if not is_category(table[name]):
            numbers[name] = table[name].astype(float)
            continue
        shares = table[name].value_counts(normalize=True)
        ends[name] = shares.cumsum()
        places = ends[name].to_numpy() - shares.to_numpy() * random.random((len(table), 1))
        level = table[name].map({level: place for place, level in enumerate(shares.index)}).to_numpy()
        numbers[name] = pd.Series(places[np.arange(len(table)), level])

    def restore(made: pd.DataFrame) -> pd.DataFrame:
        restored = made.copy()
        for name, end in ends.items():
            place = np.searchsorted(end.to_numpy(), made[name].to_numpy()).clip(0, len(end) - 1)
            restored[name] = end.index.to_numpy()[place]
        return restored

    return pd.DataFrame(numbers), restore


def _group(table: pd.DataFrame) -> tuple[list[Any], Callable[[list[Any], np.random.Generator], pd.DataFrame]]:
    """Return the columns as codes, numbers in groups of equal width, and what draws values for codes."""
    coded, edges = [], {}
    for name in table.columns:
        values = table[name]
        if is_category(values):
            coded.append(pd.Categorical(values).codes.astype(np.intp))
            continue
        low, high = float(values.min()), float(values.max())
        edges[name] = np.linspace(low, high, _GROUPS + 1)
        coded.append(
            np.searchsorted(edges[name][1:-1], values.to_numpy(dtype=float), side="right").astype(np.intp)
        )

    def draw(codes: list[Any], random: np.random.Generator) -> pd.DataFrame:
        columns = {}
        for name, values in zip(table.columns, codes, strict=True):
            if name in edges:
                low, high = edges[name][values], edges[name][values + 1]
                columns[name] = low + random.random(len(values)) * (high - low)
            else:
                columns[name] = pd.Categorical(table[name]).categories.to_numpy()[values]
        return pd.DataFrame(columns)

    return coded, draw


def _name_type(column: pd.Series[Any]) -> str:
    if is_category(column):
        return "String"
    return "Integer" if pd.api.types.is_integer_dtype(column) else "Float"
