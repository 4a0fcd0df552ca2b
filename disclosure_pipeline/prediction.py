"""`prediction_risk()`: what a learner fitted on the synthetic table knows about the GT records."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

import numpy as np
import pandas as pd

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.learning.features import KeyColumn, key_column, numbers_of
from disclosure_pipeline.learning.learners import Learner, Task, learner_for
from disclosure_pipeline.measures.prediction import (
    Classification,
    Regression,
    above,
    classification,
    mean,
    most_frequent,
    normalised_confidence,
    regression,
    relative_errors,
    within,
)
from disclosure_pipeline.tables.alignment import Grouping, Tables, check_tables
from disclosure_pipeline.tables.grouping import Edges
from disclosure_pipeline.tables.levels import CodedColumn, IntArray, Kind

_TASKS = ("classification", "regression")
_FEWEST_RECORDS = 2
_FEWEST_FOLDS = 2
_LARGEST_SEED = 2**32 - 1


@dataclass(frozen=True, repr=False, eq=False)
class PredictionRisk:
    """Prediction risk of m syntheses of one ground truth, for one target.

    `measures`: index synthesis (1…m); the columns of `measures.prediction.Classification` or `Regression`,
    percent of the GT records scored unless said otherwise. `N_scored`: GT records with a target to compare
    with; all of them in a classification, where missing is a level. `N_fitted`: SD records learned from.

    `records[i - 1]`: outcomes of synthesis i, one row per GT record, in GT's order and with its index.
    Classification: correct_SD, correct_GT, correct_naive; confidence_SD, confidence_GT (of 0 to 1, in the
    true level; NaN where the learner gives none); normalised_SD, normalised_GT (r of RAPID); at_risk (r_SD
    above tau). Regression: relative_error_SD, relative_error_GT (percent of the true value; infinite where
    that is 0 and the prediction is not), worse_from_SD, at_risk (within epsilon from SD); missing for
    records that are not scored. They hold no value of GT, but they tell about single confidential records:
    not for publication.
    """

    keys: tuple[Any, ...]
    target: Any
    task: Task
    learner: str
    N_d: int
    N_s: tuple[int, ...]
    N_scored: int
    N_fitted: tuple[int, ...]
    measures: pd.DataFrame
    records: tuple[pd.DataFrame, ...]

    def __str__(self) -> str:
        keys = ", ".join(map(str, self.keys))
        return (
            f"Prediction risk of {self.target} from the keys {keys}\n"
            f"{self.task}, learner {self.learner}, {self.N_scored:,} of {self.N_d:,} GT records scored\n\n"
            f"{self.measures.to_string(float_format='{:.2f}'.format)}"
        )

    __repr__ = __str__


def prediction_risk(
    ground_truth: pd.DataFrame,
    synthetic: pd.DataFrame | Sequence[pd.DataFrame],
    keys: Sequence[Any],
    target: Any,
    learner: Any = None,
    *,
    task: Literal["classification", "regression"] | None = None,
    folds: int = 5,
    tau: float = 0.3,
    epsilon: float = 10,
    absolute_epsilon: float | None = None,
    groups: Mapping[Any, int] | None = None,
    special_values: Mapping[Any, Sequence[float]] | None = None,
    edges: Edges = "pooled",
    seed: int = 0,
) -> PredictionRisk:
    """Measure how well a learner fitted on the synthetic table predicts the target of the GT records.

    Compared with the same learner fitted on GT, where each record is predicted by the records of the other
    folds, never by itself; and with the naive guess of somebody who has the synthetic table and no key: its
    most frequent level (the first of several), or its mean.

    Args:
        ground_truth: The confidential records, one a row.
        synthetic: The synthetic table, or a sequence of m of them that were made from the same records.
        keys: The columns that an intruder knows.
        target: The column that an intruder wants to learn.
        learner: None or "nearest_neighbours": the k = 3 nearest records by Euclidean distance, and all that
            are no farther away, vote or are averaged; of several levels with most votes the first.
            "boosted_trees": scikit-learn's histogram gradient boosting with its defaults and without early
            stopping, a strong attacker. Or any scikit-learn estimator: it is cloned, gets `seed` where a
            `random_state` is None, is fitted on numbers (levels of the target as 0, 1, 2, …), and has to
            predict each record by itself. Learners run on one thread, so that sums do not depend on the
            machine, unless they are told otherwise (`n_jobs`); never in other processes.
        task: None: numbers are predicted as numbers (regression); text, true/false, category columns and
            grouped numbers as levels (classification). Dates and durations need "classification", or to be
            turned into numbers first.
        folds: Parts that GT is cut into at random, every level spread over them as evenly as possible; no
            more than there are records.
        tau: A record counts for RAPID when its normalised confidence is above it. [RAPID: 0.3]
        epsilon: A record counts for RAPID when its relative error, in percent, is below it. [RAPID: 10]
        absolute_epsilon: It counts as well when its absolute error is below this; for targets with zeros.
        groups: Numeric column -> number of groups, for keys and target; groups are categories.
        special_values: Column -> codes (such as -8 for "not applicable") that are no numbers: in a key
            categories of their own, in a predicted number like missing. Also as in `disclosure()`.
        edges: Where groups end, as in `disclosure()`.
        seed: For the folds, the order in which records are given to an estimator, and its `random_state`.

    The keys: categories become columns of 0 and 1, one per level that occurs in GT or in the synthesis,
    missing included; numbers and dates are scaled by mean and standard deviation of GT, a missing one lies
    at the mean with a column of 0 and 1 of its own. Boosted trees get numbers and categories as they are.
    Above 128 columns the matrix is sparse.

    Missing targets: a level in a classification. In a regression GT records without a number are not
    scored, SD records without one not learned from; N_scored and N_fitted count the rest.

    Cost: each key combination is predicted once. The nearest neighbours compare every combination of GT with
    every one of the synthesis, and again with those of GT. Measured on one core: 15,000 combinations take 4 s
    for 100,000 records and 8 s for 1,000,000; 20,000 combinations of 200 levels 9 s; ten times as many take a
    hundred times as long, and grouping a key makes fewer. Boosted trees take time in proportion to records,
    folds and levels of the target: 7 s for 20,000 records and 6 levels, 19 s for 100,000; 1 s and 3 s for
    numbers.

    Returns:
        A row of figures per synthesis, and the outcome of each GT record. A high accuracy, gain or RAPID and
        a low error mean high risk. The same for the same tables in the same order and the same seed.

    Raises:
        InputError: The tables cannot be compared, the arguments contradict them, or the learner failed.
        DisclosurePipelineError: scikit-learn (the extra `prediction`) is not installed.

    Source: Hu, "Statistical Data Privacy", methods for risk evaluation part 3; RAPID: Templ, Thees & Müller
    2026 (arXiv:2602.09235), section 2, with the base rates of GT.
    """
    limits = _checked_limits(tau, epsilon, absolute_epsilon)
    _check_options(task, folds, seed)
    if not isinstance(target, Hashable):
        raise InputError(f"target must be the name of one column, not a {type(target).__name__}.")
    special = special_values or {}
    tables = check_tables(ground_truth, synthetic, keys, (target,), Grouping(groups or {}, special, edges))
    if len(ground_truth) < _FEWEST_RECORDS:
        raise InputError("The ground truth has a single record: no other one could predict it.")
    column = tables.coded(target)
    chosen = _task(column, tables, task)
    model = learner_for(learner, chosen, seed)
    known = [
        key_column(tables.coded(key), special.get(key, ()), unordered=_is_category(key, tables))
        for key in tables.keys
    ]
    if chosen == "classification":
        return _classification(tables, known, column, model, folds, limits)
    return _regression(tables, known, column, special.get(target, ()), model, folds, limits)


@dataclass(frozen=True)
class _Limits:
    tau: float
    epsilon: float
    absolute_epsilon: float | None


def _classification(
    tables: Tables,
    keys: Sequence[KeyColumn],
    target: CodedColumn,
    model: Learner,
    folds: int,
    limits: _Limits,
) -> PredictionRisk:
    true = target.codes[0]
    # From GT to GT, for all syntheses alike.
    alone = model.space(keys, [0])
    guess_GT, confidence_GT = np.empty_like(true), np.empty(len(true))
    for held_out, others in _out_of_fold(true, folds, model.seed):
        guess_GT[held_out], confidence_GT[held_out] = model.levels(
            alone, alone.q[0][others], true[others], alone.q[0][held_out], true[held_out]
        )
    correct_GT, r_GT = guess_GT == true, normalised_confidence(confidence_GT, true)

    measures, records = [], []
    for i in range(1, len(tables.frames)):
        space = model.space(keys, [0, i])
        learned = target.codes[i]
        guess, confidence = model.levels(space, space.q[1], learned, space.q[0], true)
        correct, r = guess == true, normalised_confidence(confidence, true)
        naive = true == most_frequent(learned, target.size)
        measures.append(classification(correct, correct_GT, naive, r, r_GT, limits.tau))
        outcomes = {
            "correct_SD": correct,
            "correct_GT": correct_GT,
            "correct_naive": naive,
            "confidence_SD": confidence,
            "confidence_GT": confidence_GT,
            "normalised_SD": r,
            "normalised_GT": r_GT,
            "at_risk": pd.array(above(r, limits.tau), dtype="boolean"),
        }
        outcomes["at_risk"][np.isnan(r)] = pd.NA
        records.append(pd.DataFrame(outcomes, index=tables.frames[0].index))
    fitted = [len(frame) for frame in tables.frames[1:]]
    return _result(tables, "classification", model, measures, records, len(true), fitted, Classification)


def _regression(
    tables: Tables,
    keys: Sequence[KeyColumn],
    target: CodedColumn,
    special: Sequence[float],
    model: Learner,
    folds: int,
    limits: _Limits,
) -> PredictionRisk:
    number = numbers_of(target, special)
    values = [number[codes] for codes in target.codes]
    usable = [np.flatnonzero(~np.isnan(table)) for table in values]
    for fewest, found, name in zip(
        (_FEWEST_RECORDS, *(1 for _ in usable)), usable, tables.names, strict=False
    ):
        if len(found) < fewest:
            raise InputError(
                f"Column {target.name!r} has {len(found)} numbers in {name} (missing and special values are "
                f"none): at least {fewest} are needed."
            )
    scored = usable[0]
    true = values[0][scored]
    alone = model.space(keys, [0])
    q = alone.q[0][scored]
    from_GT = np.empty(len(true))
    for held_out, others in _out_of_fold(np.zeros(len(true), dtype=np.int64), folds, model.seed):
        from_GT[held_out] = model.numbers(alone, q[others], true[others], q[held_out])

    measures, records = [], []
    for i in range(1, len(tables.frames)):
        space = model.space(keys, [0, i])
        learned = values[i][usable[i]]
        from_SD = model.numbers(space, space.q[1][usable[i]], learned, space.q[0][scored])
        measures.append(
            regression(true, from_SD, from_GT, mean(learned), limits.epsilon, limits.absolute_epsilon)
        )
        outcomes = {
            "relative_error_SD": relative_errors(true, from_SD),
            "relative_error_GT": relative_errors(true, from_GT),
            "worse_from_SD": pd.array(np.abs(from_SD - true) > np.abs(from_GT - true), dtype="boolean"),
            "at_risk": pd.array(
                within(true, from_SD, limits.epsilon, limits.absolute_epsilon), dtype="boolean"
            ),
        }
        everyone = pd.DataFrame(outcomes, index=scored).reindex(range(len(values[0])))
        records.append(everyone.set_axis(tables.frames[0].index, axis=0))
    fitted = [len(found) for found in usable[1:]]
    return _result(tables, "regression", model, measures, records, len(true), fitted, Regression)


def _out_of_fold(strata: IntArray, folds: int, seed: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Pairs of records to predict and records to learn from; every record is predicted once.

    Records are dealt out like cards, in random order within each stratum: the folds differ by no more than
    one record, in all and in each stratum, and a stratum of a single record is no obstacle.
    """
    order = np.random.default_rng(seed).permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]
    n = min(folds, len(strata))
    fold = np.empty(len(strata), dtype=np.int64)
    fold[order] = np.arange(len(strata)) % n
    for k in range(n):
        yield np.flatnonzero(fold == k), np.flatnonzero(fold != k)


def _result(
    tables: Tables,
    task: Task,
    model: Learner,
    measures: Sequence[Classification] | Sequence[Regression],
    records: Sequence[pd.DataFrame],
    scored: int,
    fitted: Sequence[int],
    of: type,
) -> PredictionRisk:
    syntheses = pd.RangeIndex(1, len(measures) + 1, name="synthesis")
    rows = [asdict(row) for row in measures]
    return PredictionRisk(
        keys=tables.keys,
        target=tables.targets[0],
        task=task,
        learner=model.name,
        N_d=len(tables.frames[0]),
        N_s=tuple(len(frame) for frame in tables.frames[1:]),
        N_scored=scored,
        N_fitted=tuple(fitted),
        measures=pd.DataFrame(rows, index=syntheses, columns=[field.name for field in fields(of)]),
        records=tuple(records),
    )


def _task(column: CodedColumn, tables: Tables, wanted: Task | None) -> Task:
    """Numbers are numbers, everything else is levels, unless the user says otherwise and it can be done."""
    if column.kind is Kind.EMPTY:
        raise InputError(
            f"Column {column.name!r} holds nothing but missing values: there is nothing to learn."
        )
    if wanted == "regression" and column.kind is not Kind.NUMBER:
        grouped = tables.grouping.grouped(column.name)
        found = "is grouped" if grouped else f"holds {column.kind.value}"
        raise InputError(f"task='regression' needs numbers, and the target {column.name!r} {found}.")
    if wanted is not None:
        return wanted
    if column.kind in {Kind.DATE, Kind.ZONED_DATE, Kind.DURATION}:
        raise InputError(
            f"The target {column.name!r} holds {column.kind.value}: turn it into numbers (of days, say) in "
            "all tables, or set task='classification', where each is a level."
        )
    numeric = column.kind is Kind.NUMBER and not _is_category(column.name, tables)
    return "regression" if numeric else "classification"


def _is_category(column: Any, tables: Tables) -> bool:
    """Whether some table calls the column a category, whatever its levels are."""
    return any(_has_category_type(frame[column].dtype) for frame in tables.frames)


def _has_category_type(dtype: Any) -> bool:
    if isinstance(dtype, pd.ArrowDtype):
        import pyarrow as pa  # slow, and only frames with Arrow columns need it

        return bool(pa.types.is_dictionary(dtype.pyarrow_dtype))
    return isinstance(dtype, pd.CategoricalDtype)


def _checked_limits(tau: float, epsilon: float, absolute_epsilon: float | None) -> _Limits:
    if not _is_number(tau) or not 0 <= tau < 1:
        raise InputError(f"tau must be a number from 0 to less than 1, not {_shown(tau)}.")
    if not _is_number(epsilon) or not 0 < epsilon < math.inf:
        raise InputError(f"epsilon must be a number above 0 (percent), not {_shown(epsilon)}.")
    if absolute_epsilon is not None and (
        not _is_number(absolute_epsilon) or not 0 < absolute_epsilon < math.inf
    ):
        raise InputError(
            "absolute_epsilon must be a number above 0, in the target's unit, "
            f"not {_shown(absolute_epsilon)}."
        )
    return _Limits(tau, epsilon, absolute_epsilon)


def _check_options(task: Any, folds: Any, seed: Any) -> None:
    if task is not None and not (isinstance(task, str) and task in _TASKS):
        raise InputError(f"task must be 'classification', 'regression' or None, not {_shown(task)}.")
    if not _is_whole(folds) or folds < _FEWEST_FOLDS:
        raise InputError(f"folds must be a whole number from 2 on, not {_shown(folds)}.")
    if not _is_whole(seed) or not 0 <= seed <= _LARGEST_SEED:
        raise InputError(f"seed must be a whole number from 0 to {_LARGEST_SEED}, not {_shown(seed)}.")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    """A plain value as it is, of anything else its type: it could be a column of GT."""
    return repr(value) if isinstance(value, (int, float, str)) else f"a {type(value).__name__}"
