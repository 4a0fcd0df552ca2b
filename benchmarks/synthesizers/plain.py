"""Synthesizers of different kinds that need nothing but scikit-learn: a table and a seed in, a table out."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.intp]

_GROUPS = 20
_NEIGHBOURS = 5


def trees(table: pd.DataFrame, seed: int, leaf: int = 5) -> pd.DataFrame:
    """Draw each column from the leaf of a tree on those before it: sequential CART.

    Source: Reiter (2005). `leaf` is the smallest number of records in a leaf; synthpop's default is 5.
    """
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    random = np.random.default_rng(seed)
    known = np.column_stack([to_numbers(table[name]) for name in table.columns])
    made = np.empty_like(known)
    columns = {}
    for place, name in enumerate(table.columns):
        if place == 0:
            donors = random.integers(0, len(table), len(table))
        else:
            kind = DecisionTreeClassifier if is_category(table[name]) else DecisionTreeRegressor
            tree = kind(min_samples_leaf=leaf, random_state=seed).fit(known[:, :place], known[:, place])
            donors = _draw_alike(tree.apply(known[:, :place]), tree.apply(made[:, :place]), random)
        made[:, place] = known[donors, place]
        columns[name] = _take(table[name], donors)
    return pd.DataFrame(columns)


def columns_apart(table: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Draw each column by itself, with replacement."""
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {name: _take(table[name], random.integers(0, len(table), len(table))) for name in table.columns}
    )


def copula(table: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Draw normal scores with the correlations of the table's, and give each the value of its rank."""
    from scipy.special import ndtr, ndtri

    random = np.random.default_rng(seed)
    size = len(table)
    orders, scores = [], []
    for name in table.columns:
        order = np.lexsort((random.random(size), to_numbers(table[name])))
        ranks = np.empty(size)
        ranks[order] = (np.arange(size) + 0.5) / size
        orders.append(order)
        scores.append(ndtri(ranks))
    covariance = np.corrcoef(np.array(scores))
    drawn = random.multivariate_normal(np.zeros(len(scores)), covariance, size, method="eigh")
    ranks = np.minimum((ndtr(drawn) * size).astype(np.intp), size - 1)
    return pd.DataFrame(
        {
            name: _take(table[name], order[ranks[:, place]])
            for place, (name, order) in enumerate(zip(table.columns, orders, strict=True))
        }
    )


def network(table: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Draw each column within the group of one other: a Bayesian network that is a tree.

    Source: Chow and Liu (1968). Numbers with many values are in 20 groups of equally many records.
    """
    from scipy.sparse.csgraph import (
        breadth_first_order,
        minimum_spanning_tree,
    )
    from sklearn.metrics import mutual_info_score

    random = np.random.default_rng(seed)
    names = list(table.columns)
    groups = [_group(table[name]) for name in names]
    distances = np.zeros((len(names), len(names)))
    for place, one in enumerate(groups):
        for other in range(place):
            # Above 0, as a tree has no edge of length 0; nearest are those that tell most of each other.
            distances[place, other] = 100 - mutual_info_score(one, groups[other])
    order, parents = breadth_first_order(minimum_spanning_tree(distances), 0, directed=False)
    made: dict[int, Integers] = {}
    columns = {}
    for place in order:
        if not made:
            donors = random.integers(0, len(table), len(table))
        else:
            parent = parents[place]
            donors = _draw_alike(groups[parent], made[parent], random)
        made[place] = groups[place][donors]
        # The group is the parent's, the value anybody's of the group.
        columns[names[place]] = _take(table[names[place]], _draw_alike(groups[place], made[place], random))
    return pd.DataFrame(columns)[names]


def neighbours(table: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Put each record between one of the table and one of its five nearest; a category is one of theirs.

    Source: Chawla et al. (2002), SMOTE for mixed columns.
    """
    from sklearn.neighbors import NearestNeighbors

    random = np.random.default_rng(seed)
    places = np.column_stack([_to_places(table[name]) for name in table.columns])
    nearest = NearestNeighbors(n_neighbors=_NEIGHBOURS + 1).fit(places).kneighbors(return_distance=False)
    first = random.integers(0, len(table), len(table))
    second = nearest[first, random.integers(0, nearest.shape[1], len(table))]
    way = random.random(len(table))
    columns = {}
    for name in table.columns:
        either = np.where(random.random(len(table)) < 1 / 2, first, second)
        column = _take(table[name], either)
        if not is_category(table[name]):
            numbers = table[name].to_numpy(dtype=float, na_value=np.nan)
            between = numbers[first] + way * (numbers[second] - numbers[first])
            column = pd.Series(np.where(np.isnan(between), numbers[either], between))
        columns[name] = column
    return pd.DataFrame(columns)


def is_category(column: pd.Series[Any]) -> bool:
    return not pd.api.types.is_numeric_dtype(column)


def to_numbers(column: pd.Series[Any]) -> Floats:
    """Return the levels of a category as codes, numbers as they are; a missing value below all."""
    if is_category(column):
        return pd.Categorical(column).codes.astype(float)
    numbers = column.to_numpy(dtype=float, na_value=np.nan)
    return np.where(np.isnan(numbers), np.nanmin(numbers) - 1, numbers)


def _to_places(column: pd.Series[Any]) -> Floats:
    """Return one column of places, at most 1 apart: numbers by their ranks, categories by equality."""
    numbers = to_numbers(column)
    if is_category(column):
        levels = np.unique(numbers)
        return (numbers[:, None] == levels).astype(float) / np.sqrt(2)
    return pd.Series(numbers).rank(pct=True).to_numpy()[:, None]


def _group(column: pd.Series[Any]) -> Integers:
    numbers = to_numbers(column)
    if not is_category(column) and len(np.unique(numbers)) > _GROUPS:
        edges = np.unique(np.quantile(numbers, np.arange(1, _GROUPS) / _GROUPS))
        numbers = np.searchsorted(edges, numbers, side="right").astype(float)
    return np.unique(numbers, return_inverse=True)[1].astype(np.intp)


def _draw_alike(groups: Any, wanted: Any, random: np.random.Generator) -> Integers:
    """Return for each wanted group one of its records."""
    order = np.argsort(groups, kind="stable")
    ordered = np.asarray(groups)[order]
    starts = np.searchsorted(ordered, wanted, side="left")
    ends = np.searchsorted(ordered, wanted, side="right")
    places: Integers = order[starts + (random.random(len(starts)) * (ends - starts)).astype(np.intp)]
    return places


def _take(column: pd.Series[Any], records: Any) -> pd.Series[Any]:
    return column.iloc[records].reset_index(drop=True)
