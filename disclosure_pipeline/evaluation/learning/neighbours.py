"""The k nearest neighbours, all that are equally near included.

With categories as keys many records are equally near, and to take three of them by their place in the table
would make the figures depend on how it is sorted. Here all of them have a vote, which is also the default of
knn in R's package class (use.all). Where three records or more share the keys of the one that is guessed, its
confidence in a level is their share with that level, as in CAP.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.evaluation.learning.features import Floats
from disclosure_pipeline.measures.frequency import run_lengths
from disclosure_pipeline.tables.levels import IntArray

NEIGHBOURS = 3

# More candidates than neighbours, because different key combinations are often equally near.
_CANDIDATES = 16
# Floats that a chunk of an intermediate matrix may hold (40 MB).
_CHUNK = 5_000_000
# Pairs of records from which on several threads are faster than one.
_WORTH_THREADS = 10_000_000
# Distances are sums of a few squares: two that are equal differ by rounding in the 16th digit.
_EQUAL = 1 + 1e-9


def vote_of_neighbours(
    features: Any, q: IntArray, y: IntArray, levels: int
) -> Callable[[IntArray], tuple[IntArray, Floats]]:
    """Return a function from combinations to the level with most votes (or the first), and confidences."""
    from scipy.sparse import csr_matrix  # type: ignore[import-untyped]

    combinations, position = np.unique(q, return_inverse=True)
    ones = np.ones(len(q), dtype=np.int64)
    ballots = csr_matrix((ones, (position, y)), shape=(len(combinations), levels))  # adds up what coincides
    voters = _Voters(features, combinations, np.bincount(position))

    def predict(combinations_predicted: IntArray) -> tuple[IntArray, Floats]:
        votes = voters.sum_votes(combinations_predicted, ballots)
        confidences: Floats = votes / votes.sum(axis=1, keepdims=True)
        return votes.argmax(axis=1), confidences

    return predict


def average_neighbours(features: Any, q: IntArray, y: Floats, combinations_predicted: IntArray) -> Floats:
    """For each combination predicted the mean number of the nearest records."""
    order = np.lexsort((y, q))  # a sum of floats depends on the order, so it is always the same
    combinations, first = np.unique(q[order], return_index=True)
    counts = run_lengths(first, len(q))
    sums = np.add.reduceat(y[order], first)
    voters = _Voters(features, combinations, counts)
    sums_and_counts = voters.sum_votes(combinations_predicted, np.column_stack([sums, counts]))
    averages: Floats = sums_and_counts[:, 0] / sums_and_counts[:, 1]
    return averages


@dataclass(frozen=True)
class _Voters:
    """Key combinations of the records that are learned from, and how many records each of them has."""

    features: Any
    combinations: IntArray
    counts: IntArray

    def sum_votes(self, predicted: IntArray, votes: Any) -> npt.NDArray[Any]:
        """For each combination predicted the sum of the rows of `votes` (combinations x columns) near to it.

        These are the nearest combinations, as many as it takes to hold k records, and all that are no
        farther away.
        """
        from sklearn.neighbors import NearestNeighbors

        train = self.features[self.combinations]
        candidates = min(_CANDIDATES, len(self.combinations))
        search = NearestNeighbors(n_neighbors=candidates, algorithm="brute").fit(train)
        sums = np.zeros((len(predicted), votes.shape[1]), dtype=votes.dtype)
        step = max(1, _CHUNK // (candidates * train.shape[1]))
        for start in range(0, len(predicted), step):
            query = self.features[predicted[start : start + step]]
            chunk_sums = sums[start : start + step]
            # To start threads and to wait for them takes longer than a little work does.
            few = len(chunk_sums) * len(self.counts) < _WORTH_THREADS
            with _thread_pools().limit(limits=1 if few else None):
                near: npt.NDArray[Any] = search.kneighbors(query, return_distance=False)
            # Computed anew, because those of the search are rounded too much to tell which are equal.
            distance = _squared_norms(query[np.arange(len(near)).repeat(candidates)] - train[near.ravel()])
            distance = distance.reshape(near.shape)
            by_distance = np.argsort(distance, axis=1, kind="stable")
            near = np.take_along_axis(near, by_distance, axis=1)
            distance = np.take_along_axis(distance, by_distance, axis=1)
            enough = np.cumsum(self.counts[near], axis=1) >= NEIGHBOURS
            last = np.where(enough.any(axis=1), enough.argmax(axis=1), candidates - 1)
            radius = distance[np.arange(len(near)), last] * _EQUAL
            inside = distance <= radius[:, None]
            # Where every candidate is near enough there may be more of them.
            more = inside[:, -1] & (candidates < len(self.combinations))
            row, place = np.nonzero(inside & ~more[:, None])
            _add_rows(chunk_sums, row, near[row, place], votes)
            crowded = np.flatnonzero(more)
            for chunk in np.array_split(crowded, -(-len(crowded) * len(self.counts) // _CHUNK) or 1):
                point, close = _pairs_within(train, query[chunk], radius[chunk])
                _add_rows(chunk_sums, chunk[point], close, votes)
        return sums


@cache
def _thread_pools() -> Any:
    """Return the pools of the libraries that scikit-learn searches with, which are loaded by now.

    Found once: to look through all that a process has loaded takes longer than a little work does, too.
    """
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()


def _add_rows(sums: npt.NDArray[Any], row: IntArray, voter: IntArray, votes: Any) -> None:
    """Add row `voter[i]` of `votes` to row `row[i]` of `sums`."""
    from scipy.sparse import csr_matrix

    chosen = csr_matrix((np.ones(len(row), dtype=np.int64), (row, voter)), (len(sums), votes.shape[0]))
    product = chosen @ votes
    sums += product if isinstance(product, np.ndarray) else product.toarray()


def _pairs_within(train: Any, points: Any, radius: Floats) -> tuple[IntArray, IntArray]:
    """Return all pairs of a point and a combination that lies within its radius."""
    product = points @ train.T
    product = product if isinstance(product, np.ndarray) else product.toarray()
    lengths = _squared_norms(points)[:, None] + _squared_norms(train)
    # Rounded, so with a little too many; then exactly.
    row, column = np.nonzero(lengths - 2 * product <= radius[:, None] + 1e-9 * (1 + lengths))
    pieces = np.array_split(np.arange(len(row)), -(-len(row) * train.shape[1] // _CHUNK) or 1)
    inside = [_squared_norms(points[row[at]] - train[column[at]]) <= radius[row[at]] for at in pieces]
    exact = np.concatenate(inside)
    return row[exact], column[exact]


def _squared_norms(matrix: Any) -> Floats:
    if isinstance(matrix, np.ndarray):
        return np.asarray(np.einsum("ij,ij->i", matrix, matrix), dtype=np.float64)
    return np.asarray(matrix.multiply(matrix).sum(axis=1), dtype=np.float64).ravel()
