"""Learners that predict a target from the keys: by name, or any scikit-learn estimator."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from disclosure_pipeline.errors import DisclosurePipelineError, InputError
from disclosure_pipeline.learning.features import Floats, KeyColumn, Space, numbered, one_hot
from disclosure_pipeline.learning.neighbours import average, vote
from disclosure_pipeline.tables.levels import IntArray

Task = Literal["classification", "regression"]
T = TypeVar("T")

NEAREST_NEIGHBOURS = "nearest_neighbours"
BOOSTED_TREES = "boosted_trees"

# Confidences that a chunk of predictions may hold (40 MB).
_CHUNK = 5_000_000
_ROUNDED_UP = 1 + 1e-6


@dataclass(frozen=True)
class Learner:
    """A learner and the form it wants the keys in. `estimator` is None for the nearest neighbours."""

    name: str
    space: Callable[[Sequence[KeyColumn], Sequence[int]], Space]
    estimator: Any
    seed: int

    def levels(
        self, space: Space, q: IntArray, t: IntArray, at: IntArray, true: IntArray
    ) -> tuple[IntArray, Floats]:
        """Learn levels from records with combinations `q` and levels `t`, and guess those of others.

        Args:
            space: What the combinations look like.
            q: Combination of each record that is learned from (shape: training records).
            t: Level of each of them.
            at: Combination of each record that is guessed (shape: records).
            true: Level of each of those, of which the confidence is wanted; the guess does not use it.

        Returns:
            The guessed level and the confidence in the true one (NaN where the learner gives none).
        """
        known, y = np.unique(t, return_inverse=True)
        wanted, record = np.unique(at, return_inverse=True)
        if len(known) == 1:  # nothing to learn, and many learners refuse it
            return np.full(len(at), known[0]), (true == known[0]).astype(np.float64)
        predict = (
            vote(space.features, q, y, len(known))
            if self.estimator is None
            else _fitted_classifier(self, space, q, y, len(known))
        )
        column = np.searchsorted(known, true).clip(max=len(known) - 1)
        column = np.where(known[column] == true, column, -1)
        guess, confidence = np.empty(len(at), dtype=known.dtype), np.empty(len(at))
        by_combination = np.argsort(record, kind="stable")
        ends = np.searchsorted(record[by_combination], np.arange(len(wanted) + 1))
        step = max(1, _CHUNK // len(known))
        for start in range(0, len(wanted), step):
            stop = min(start + step, len(wanted))
            here = by_combination[ends[start] : ends[stop]]
            guessed, confidences = predict(wanted[start:stop])
            guess[here] = known[guessed[record[here] - start]]
            own = confidences[record[here] - start, column[here]] if confidences is not None else np.nan
            # A level that the learner never saw gets no confidence at all.
            confidence[here] = np.where((column[here] < 0) & (confidences is not None), 0.0, own)
        return guess, confidence

    def numbers(self, space: Space, q: IntArray, y: Floats, at: IntArray) -> Floats:
        """Learn numbers `y` from records with combinations `q`, and predict those of records at `at`."""
        wanted, record = np.unique(at, return_inverse=True)
        predicted = (
            average(space.features, q, y, wanted)
            if self.estimator is None
            else _fitted_regressor(self, space, q, y, wanted)
        )
        return predicted[record]


def learner_for(learner: Any, task: Task, seed: int) -> Learner:
    """A learner by its name, or from a scikit-learn estimator.

    InputError where it is neither, or for the other task. DisclosurePipelineError where scikit-learn is
    not installed.
    """
    require_scikit_learn()
    if learner is None or (isinstance(learner, str) and learner == NEAREST_NEIGHBOURS):
        return Learner(NEAREST_NEIGHBOURS, one_hot, None, seed)
    if isinstance(learner, str):
        if learner != BOOSTED_TREES:
            raise InputError(
                f"learner must be {NEAREST_NEIGHBOURS!r}, {BOOSTED_TREES!r} or a scikit-learn estimator, "
                f"not {learner!r}."
            )
        return Learner(BOOSTED_TREES, numbered, _boosted_trees(task, seed), seed)
    if isinstance(learner, type) or not all(
        callable(getattr(learner, method, None)) for method in ("fit", "predict", "get_params")
    ):
        raise InputError(
            "learner must be a scikit-learn estimator (an object with fit, predict and get_params, such as "
            f"RandomForestClassifier()), not {_kind_of(learner)}."
        )
    _check_task(learner, task)
    return Learner(type(learner).__name__, one_hot, learner, seed)


def _kind_of(learner: Any) -> str:
    """What was given instead of a learner; not what it holds, which may be a table."""
    return f"the class {learner.__name__}" if isinstance(learner, type) else type(learner).__name__


def require_scikit_learn() -> None:
    """DisclosurePipelineError where scikit-learn is not installed: it names the extra."""
    try:
        import sklearn  # noqa: F401
    except ImportError:
        missing = True
    else:
        missing = False
    if missing:
        raise DisclosurePipelineError(
            "Prediction risk needs scikit-learn, which is not installed: "
            "pip install 'disclosure-pipeline[prediction]'"
        )


def _check_task(estimator: Any, task: Task) -> None:
    from sklearn.base import is_classifier, is_regressor

    try:
        other = is_regressor(estimator) if task == "classification" else is_classifier(estimator)
    except Exception:  # an estimator of another library that says nothing of itself
        other = False
    if other:
        raise InputError(
            f"learner {type(estimator).__name__} is for the other task: the target is a matter of {task}. "
            "Give a learner for it, or set task."
        )


def _boosted_trees(task: Task, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingClassifier if task == "classification" else HistGradientBoostingRegressor
    # Early stopping would set records aside, and fails on a level with a single one.
    return kind(early_stopping=False, random_state=seed)


def _fit(learner: Learner, space: Space, q: IntArray, y: npt.NDArray[Any]) -> Any:
    """A fresh copy of the estimator, fitted on the records in an order that the seed decides."""
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
        if learner.space is numbered:
            estimator.set_params(categorical_features=space.categorical)
        return estimator.fit(space.features[q[order]], y[order])

    return _guarded(learner, "be fitted", fit)


def _fitted_classifier(
    learner: Learner, space: Space, q: IntArray, y: IntArray, levels: int
) -> Callable[[IntArray], tuple[IntArray, Floats | None]]:
    estimator = _fit(learner, space, q, y)
    confident = callable(getattr(estimator, "predict_proba", None))

    def predict(at: IntArray) -> tuple[IntArray, Floats | None]:
        features = space.features[at]
        guess = _answer(learner, "level", lambda: estimator.predict(features), at.shape)
        if not np.isin(guess, np.arange(levels)).all():
            raise InputError(f"learner {learner.name} predicted a level that it was not fitted on.")
        if not confident:
            return guess.astype(np.int64), None
        confidences = _answer(
            learner, "confidence per level", lambda: estimator.predict_proba(features), (len(at), levels)
        )
        if not ((confidences >= 0) & (confidences <= _ROUNDED_UP)).all():
            raise InputError(f"learner {learner.name} predicted confidences that are not from 0 to 1.")
        return guess.astype(np.int64), confidences

    return predict


def _fitted_regressor(learner: Learner, space: Space, q: IntArray, y: Floats, at: IntArray) -> Floats:
    estimator = _fit(learner, space, q, y)
    features = space.features[at]
    return _answer(learner, "number", lambda: estimator.predict(features), at.shape)


def _answer(learner: Learner, what: str, ask: Callable[[], Any], shape: tuple[int, ...]) -> Floats:
    """What a learner predicts, as finite floats of the shape. InputError where it is something else."""
    answer = _guarded(learner, "predict", lambda: np.asarray(ask()))
    if answer.shape != shape or answer.dtype.kind not in "biuf" or not np.isfinite(answer).all():
        raise InputError(
            f"learner {learner.name} did not predict one finite {what} for each record: it cannot be scored."
        )
    return answer.astype(np.float64)


def _guarded(learner: Learner, what: str, call: Callable[[], T]) -> T:
    """The result of a call into a learner; InputError, without the cause, where it fails.

    Messages and warnings of other libraries can hold values of the ground truth, so neither gets out.
    """
    import joblib  # type: ignore[import-untyped]
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    # Older releases of joblib know the second name only.
    in_threads = getattr(joblib, "parallel_config", None) or joblib.parallel_backend
    try:
        # Threads, because other processes would be handed GT through temporary files; and one of them for
        # sums inside a learner, whose last digits would depend on the machine.
        with warnings.catch_warnings(), in_threads(backend="threading", n_jobs=1), threadpool_limits(1):
            warnings.simplefilter("ignore")
            return call()
    except Exception as error:
        failure = type(error).__name__
    raise InputError(
        f"learner {learner.name} could not {what}: {failure}. Its own message is withheld, because it can "
        "hold values of the ground truth. Try the learner on made-up numbers, keys as columns of floats."
    )
