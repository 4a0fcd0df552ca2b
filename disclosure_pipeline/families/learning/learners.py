"""Learners that predict a target from the keys: by name, or any scikit-learn estimator.

The nearest neighbours include all ties. With categorical keys many records are equally near, and picking
three of them would make the figures depend on the order of the table. Instead all of them vote, which is also
the default of knn in R's package class (use.all). If at least three records share the keys of the predicted
one, the confidence in a level is the share of these records that have it, as in CAP.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.errors import DisclosurePipelineError, InputError
from disclosure_pipeline.families.learning.features import (
    FeatureSpace,
    KeyColumn,
    encode_numbered,
    encode_one_hot,
)
from disclosure_pipeline.measures.exact import Floats
from disclosure_pipeline.measures.frequency import first_of_run, run_lengths
from disclosure_pipeline.tables.levels import IntArray

Task = Literal["classification", "regression"]
T = TypeVar("T")

NEAREST_NEIGHBOURS = "nearest_neighbours"
BOOSTED_TREES = "boosted_trees"

# Floats in a chunk of confidences, or of an intermediate matrix (40 MB).
_CHUNK = 5_000_000
_ROUNDED_UP = 1 + 1e-6


class Estimator(Protocol):
    """The interface of scikit-learn's estimators."""

    def fit(self, X: Any, y: Any) -> Any:
        """Learn the targets from numbers, a row per record."""

    def predict(self, X: Any) -> Any:
        """Return a target for each row."""

    def get_params(self, deep: bool = True) -> Any:
        """Return the parameters from which a copy can be made."""


@dataclass(frozen=True)
class Learner:
    """A learner, and the encoding of its keys. `estimator` is None for the nearest neighbours."""

    name: str
    encode_keys: Callable[[Sequence[KeyColumn], Sequence[int]], FeatureSpace]
    estimator: Any
    seed: int

    def predict_levels(
        self, space: FeatureSpace, q: IntArray, t: IntArray, q_predicted: IntArray, true: IntArray
    ) -> tuple[IntArray, Floats]:
        """Learn levels `t` from records with combinations `q`, and predict those of `q_predicted`.

        Also return the confidence in the `true` level (NaN if the learner gives none).
        """
        learned_levels, y = np.unique(t, return_inverse=True)
        combinations, position = np.unique(q_predicted, return_inverse=True)
        if len(learned_levels) == 1:  # many learners refuse a single level
            level = learned_levels[0]
            return np.full(len(true), level), (true == level).astype(np.float64)
        predict = (
            fit_neighbours(space.features, q, y, len(learned_levels))
            if self.estimator is None
            else _fit_classifier(self, space, q, y, len(learned_levels))
        )
        column = np.searchsorted(learned_levels, true).clip(max=len(learned_levels) - 1)
        column = np.where(learned_levels[column] == true, column, -1)
        guess, confidence = np.empty(len(true), dtype=learned_levels.dtype), np.empty(len(true))
        by_combination = np.argsort(position, kind="stable")
        ends = np.searchsorted(position[by_combination], np.arange(len(combinations) + 1))
        step = max(1, _CHUNK // len(learned_levels))
        for start in range(0, len(combinations), step):
            stop = min(start + step, len(combinations))
            records = by_combination[ends[start] : ends[stop]]
            row = position[records] - start
            guessed, confidences = predict(combinations[start:stop])
            guess[records] = learned_levels[guessed[row]]
            in_true = confidences[row, column[records]] if confidences is not None else np.nan
            # The confidence in a level that the learner never saw is 0.
            confidence[records] = np.where((column[records] < 0) & (confidences is not None), 0.0, in_true)
        return guess, confidence

    def predict_numbers(self, space: FeatureSpace, q: IntArray, y: Floats, q_predicted: IntArray) -> Floats:
        """Learn numbers `y` from records with combinations `q`, and predict those of `q_predicted`."""
        combinations, position = np.unique(q_predicted, return_inverse=True)
        if self.estimator is None:
            return average_neighbours(space.features, q, y, combinations)[position]
        estimator, features = _fit(self, space, q, y), space.features[combinations]
        return _predict(self, "number", lambda: estimator.predict(features), combinations.shape)[position]


def choose_learner(learner: Any, task: Task, seed: int) -> Learner:
    """Return a learner, given its name or a scikit-learn estimator.

    InputError if it is neither, or made for the other task. DisclosurePipelineError if scikit-learn is not
    installed.
    """
    _require_scikit_learn()
    if learner is None or (isinstance(learner, str) and learner == NEAREST_NEIGHBOURS):
        return Learner(NEAREST_NEIGHBOURS, encode_one_hot, None, seed)
    if isinstance(learner, str):
        if learner != BOOSTED_TREES:
            raise InputError(
                f"learner must be {NEAREST_NEIGHBOURS!r}, {BOOSTED_TREES!r} or a scikit-learn estimator, "
                f"not {learner!r}."
            )
        return Learner(BOOSTED_TREES, encode_numbered, _make_boosted_trees(task, seed), seed)
    if isinstance(learner, type) or not all(
        callable(getattr(learner, method, None)) for method in ("fit", "predict", "get_params")
    ):
        raise InputError(
            "learner must be a scikit-learn estimator (an object with fit, predict and get_params, such as "
            f"RandomForestClassifier()), not {_describe_type(learner)}."
        )
    _check_task(learner, task)
    return Learner(type(learner).__name__, encode_one_hot, learner, seed)


def _describe_type(learner: Any) -> str:
    """Describe an invalid learner by its type only: its content may be a table."""
    return f"the class {learner.__name__}" if isinstance(learner, type) else type(learner).__name__


def _require_scikit_learn() -> None:
    with suppress(ImportError):
        import sklearn  # noqa: F401

        return
    raise DisclosurePipelineError(
        "Prediction risk needs scikit-learn, which is not installed: "
        "pip install 'disclosure-pipeline[prediction]'"
    )


def _check_task(estimator: Any, task: Task) -> None:
    from sklearn.base import is_classifier, is_regressor

    try:
        is_of_other_task = is_regressor(estimator) if task == "classification" else is_classifier(estimator)
    except Exception:  # estimators of other libraries may not say what they are
        is_of_other_task = False
    if is_of_other_task:
        raise InputError(
            f"learner {type(estimator).__name__} does not fit the target, which needs {task}. Pass a learner "
            "for this task, or set task."
        )


def _make_boosted_trees(task: Task, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingClassifier if task == "classification" else HistGradientBoostingRegressor
    # Early stopping would hold records out, and fails if a level has a single record.
    return kind(early_stopping=False, random_state=seed)


def _fit(learner: Learner, space: FeatureSpace, q: IntArray, y: npt.NDArray[Any]) -> Any:
    """Return a copy of the estimator, fitted on the records in a random order given by the seed."""
    from sklearn.base import clone

    order = np.random.default_rng(learner.seed).permutation(len(q))

    def fit() -> Any:
        estimator = clone(learner.estimator)
        unseeded = [
            name
            for name, value in estimator.get_params().items()
            if name.rpartition("__")[2] == "random_state" and value is None
        ]
        estimator.set_params(**dict.fromkeys(unseeded, learner.seed))
        if learner.encode_keys is encode_numbered:
            estimator.set_params(categorical_features=space.categorical)
        return estimator.fit(space.features[q[order]], y[order])

    return _call_learner(learner, "be fitted", fit)


def _fit_classifier(
    learner: Learner, space: FeatureSpace, q: IntArray, y: IntArray, levels: int
) -> Callable[[IntArray], tuple[IntArray, Floats | None]]:
    """Return a function that predicts levels of combinations, and confidences if the learner gives them."""
    estimator = _fit(learner, space, q, y)
    gives_confidences = callable(getattr(estimator, "predict_proba", None))

    def predict(combinations: IntArray) -> tuple[IntArray, Floats | None]:
        features = space.features[combinations]
        guess = _predict(learner, "level", lambda: estimator.predict(features), combinations.shape)
        if not np.isin(guess, np.arange(levels)).all():
            raise InputError(f"learner {learner.name} predicted a level that is not in its training records.")
        if not gives_confidences:
            return guess.astype(np.int64), None
        confidences = _predict(
            learner,
            "confidence per level",
            lambda: estimator.predict_proba(features),
            (len(combinations), levels),
        )
        if not ((confidences >= 0) & (confidences <= _ROUNDED_UP)).all():
            raise InputError(f"learner {learner.name} predicted confidences that are not between 0 and 1.")
        return guess.astype(np.int64), confidences

    return predict


def _predict(learner: Learner, quantity: str, predict: Callable[[], Any], shape: tuple[int, ...]) -> Floats:
    """Return a learner's predictions. InputError unless they are finite numbers of this shape."""
    predictions = _call_learner(learner, "predict", lambda: np.asarray(predict()))
    is_numeric = predictions.dtype.kind in "biuf"
    if predictions.shape != shape or not is_numeric or not np.isfinite(predictions).all():
        raise InputError(
            f"learner {learner.name} cannot be scored: it did not predict one finite {quantity} per record."
        )
    return predictions.astype(np.float64)


def _call_learner(learner: Learner, action: str, call: Callable[[], T]) -> T:
    """Call a learner; raise InputError, without the cause, if it fails.

    Messages and warnings of other libraries can contain values of the ground truth, so they are suppressed.
    """
    import joblib  # type: ignore[import-untyped]
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    # Older releases of joblib have only the second name.
    in_threads = getattr(joblib, "parallel_config", None) or joblib.parallel_backend
    try:
        # Other processes would get GT through temporary files. A single thread keeps the last digits of sums
        # inside a learner independent of the machine.
        with warnings.catch_warnings(), in_threads(backend="threading", n_jobs=1), threadpool_limits(1):
            warnings.simplefilter("ignore")
            return call()
    except Exception as error:
        failure = type(error).__name__
    raise InputError(
        f"learner {learner.name} could not {action}: {failure}. Its own message is withheld, because it may "
        "contain values of the ground truth. Try the learner on made-up data, with keys as columns of floats."
    )


NEIGHBOURS = 3

# More candidates than neighbours, because different key combinations are often equally near.
_CANDIDATES = 16
# The number of pairs of records above which several threads are faster than one.
_WORTH_THREADS = 10_000_000
# Equal distances, which are sums of a few squares, may differ by rounding in the 16th digit.
_EQUAL = 1 + 1e-9

# How far squared distances of the search may be off, as a share of the squared lengths: beside one number far
# from all others, these seem to be equally near.
_IMPRECISE = 1e-13


def fit_neighbours(
    features: Any, q: IntArray, y: IntArray, levels: int
) -> Callable[[IntArray], tuple[IntArray, Floats]]:
    """Return a function that predicts the level with most votes (the first of several), and confidences."""
    from scipy.sparse import csr_matrix

    combinations, position = np.unique(q, return_inverse=True)
    ones = np.ones(len(q), dtype=np.int64)
    ballots = csr_matrix((ones, (position, y)), shape=(len(combinations), levels))  # sums duplicates
    voters = _Voters(features, combinations, np.bincount(position))

    def predict(combinations_predicted: IntArray) -> tuple[IntArray, Floats]:
        votes = voters.sum_votes(combinations_predicted, ballots)
        confidences: Floats = votes / votes.sum(axis=1, keepdims=True)
        return votes.argmax(axis=1), confidences

    return predict


def average_neighbours(features: Any, q: IntArray, y: Floats, combinations_predicted: IntArray) -> Floats:
    """Return the mean of the nearest records for each predicted combination."""
    order = np.lexsort((y, q))  # sums of floats depend on the order
    combinations, first = np.unique(q[order], return_index=True)
    counts = run_lengths(first, len(q))
    sums = np.add.reduceat(y[order], first)
    voters = _Voters(features, combinations, counts)
    sums_and_counts = voters.sum_votes(combinations_predicted, np.column_stack([sums, counts]))
    averages: Floats = sums_and_counts[:, 0] / sums_and_counts[:, 1]
    return averages


@dataclass(frozen=True)
class _Voters:
    """The key combinations of the training records, and the number of records of each."""

    features: Any
    combinations: IntArray
    counts: IntArray

    def sum_votes(self, predicted: IntArray, votes: Any) -> npt.NDArray[Any]:
        """Return the sum of the rows of `votes` of the nearest neighbours of each predicted combination."""
        from sklearn.neighbors import NearestNeighbors

        train = self.features[self.combinations]
        candidates = min(_CANDIDATES, len(self.combinations))
        search = NearestNeighbors(n_neighbors=candidates, algorithm="brute").fit(train)
        sums, longest = (
            np.zeros((len(predicted), votes.shape[1]), dtype=votes.dtype),
            _square_norms(train).max(),
        )
        step = max(1, _CHUNK // (candidates * train.shape[1]))
        for start in range(0, len(predicted), step):
            query = self.features[predicted[start : start + step]]
            chunk_sums = sums[start : start + step]
            is_little = len(chunk_sums) * len(self.counts) < _WORTH_THREADS
            with _find_thread_pools().limit(limits=1 if is_little else None):
                near: npt.NDArray[Any] = search.kneighbors(query, return_distance=False)
            # Computed again, because the distances of the search are too imprecise to recognise ties.
            distance = _square_norms(query[np.arange(len(near)).repeat(candidates)] - train[near.ravel()])
            distance = distance.reshape(near.shape)
            by_distance = np.argsort(distance, axis=1, kind="stable")
            near = np.take_along_axis(near, by_distance, axis=1)
            distance = np.take_along_axis(distance, by_distance, axis=1)
            enough = np.cumsum(self.counts[near], axis=1) >= NEIGHBOURS
            last = np.where(enough.any(axis=1), enough.argmax(axis=1), candidates - 1)
            radius = distance[np.arange(len(near)), last] * _EQUAL
            inside = distance <= radius[:, None]
            # Others than the candidates may be inside if all of these are, as far as the search can tell.
            farthest = distance[:, -1] - _IMPRECISE * (_square_norms(query) + longest)
            is_crowded = (farthest <= radius) & (candidates < len(self.combinations))
            row, place = np.nonzero(inside & ~is_crowded[:, None])
            _add_rows(chunk_sums, row, near[row, place], votes)
            crowded = np.flatnonzero(is_crowded)
            for chunk in np.array_split(crowded, -(-len(crowded) * len(self.counts) // _CHUNK) or 1):
                point, close, apart = _find_pairs_within(train, query[chunk], radius[chunk])
                nearest = self._select_nearest(point, close, apart)
                _add_rows(chunk_sums, chunk[point[nearest]], close[nearest], votes)
        return sums

    def _select_nearest(self, point: IntArray, close: IntArray, apart: Floats) -> IntArray:
        """Return the pairs of a point and a combination, by their distance, that vote for the point."""
        order = np.lexsort((apart, point))
        first = np.flatnonzero(first_of_run(point[order]))
        pairs, counts = run_lengths(first, len(order)), self.counts[close[order]]
        up_to = np.cumsum(counts)
        is_enough = up_to - np.repeat((up_to - counts)[first], pairs) >= NEIGHBOURS
        radius = np.minimum.reduceat(np.where(is_enough, apart[order], np.inf), first)
        nearest: IntArray = order[apart[order] <= np.repeat(radius, pairs) * _EQUAL]
        return nearest


@cache
def _find_thread_pools() -> Any:
    """Return the thread pools of the libraries that scikit-learn uses, which are loaded by now."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _add_rows(sums: npt.NDArray[Any], row: IntArray, voter: IntArray, votes: Any) -> None:
    """Add row `voter[i]` of `votes` to row `row[i]` of `sums`."""
    from scipy.sparse import csr_matrix

    chosen = csr_matrix((np.ones(len(row), dtype=np.int64), (row, voter)), (len(sums), votes.shape[0]))
    product = chosen @ votes
    sums += product if isinstance(product, np.ndarray) else product.toarray()


def _find_pairs_within(train: Any, points: Any, radius: Floats) -> tuple[IntArray, IntArray, Floats]:
    """Return the points and the combinations within their radius, and their squared distances."""
    product = points @ train.T
    product = product if isinstance(product, np.ndarray) else product.toarray()
    lengths = _square_norms(points)[:, None] + _square_norms(train)
    # First roughly, with a few too many; then exactly.
    row, column = np.nonzero(lengths - 2 * product <= radius[:, None] + 1e-9 * (1 + lengths))
    pieces = np.array_split(np.arange(len(row)), -(-len(row) * train.shape[1] // _CHUNK) or 1)
    apart = np.concatenate([_square_norms(points[row[at]] - train[column[at]]) for at in pieces])
    exact = np.flatnonzero(apart <= radius[row])
    return row[exact], column[exact], apart[exact]


def _square_norms(matrix: Any) -> Floats:
    if isinstance(matrix, np.ndarray):
        return np.asarray(np.einsum("ij,ij->i", matrix, matrix), dtype=np.float64)
    return np.asarray(matrix.multiply(matrix).sum(axis=1), dtype=np.float64).ravel()
