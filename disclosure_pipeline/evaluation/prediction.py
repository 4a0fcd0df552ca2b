"""`prediction_risk()`: what a learner fitted on the synthetic table knows about the GT records."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import pandas as pd

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.evaluation.doubts import find_doubts, warn_of_doubts
from disclosure_pipeline.evaluation.frames import names_of, row_of
from disclosure_pipeline.evaluation.learning.classification import classify
from disclosure_pipeline.evaluation.learning.features import KeyColumn, describe_key
from disclosure_pipeline.evaluation.learning.learners import Task, choose_learner
from disclosure_pipeline.evaluation.learning.regression import predict_numbers
from disclosure_pipeline.evaluation.prediction_arguments import (
    Options,
    check_task,
    choose_task,
    is_category,
)
from disclosure_pipeline.evaluation.prediction_result import PredictionRisk
from disclosure_pipeline.measures.prediction import Classification, Regression
from disclosure_pipeline.tables.alignment import Tables, check_tables
from disclosure_pipeline.tables.grouping import Edges, Grouping, grouping_of
from disclosure_pipeline.tables.levels import CodedColumn

_FEWEST_RECORDS = 2


def prediction_risk(
    ground_truth: Any,
    synthetic: Any,
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
    folds, never by itself (GT), or by all records, itself included, as Hu does (GT_in_sample); and with the
    naive guess of somebody who has the synthetic table and no key: its most frequent level (the first of
    several), or its mean.

    A learner fitted on more records predicts better, whoever they are. gain_over_GT therefore is the
    difference between learners fitted on equally many records (give or take one) of the synthesis and of
    the other folds: of the larger table as many are drawn, by `seed`. Its interval of 95 % is of paired
    outcomes, for the GT records as a sample of people; it does not tell of the draw of training records.

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

    Cost: the learner is fitted once a fold, once on GT, and twice on a synthesis of levels (once of numbers);
    each key combination is predicted once by each. The nearest neighbours compare every combination of GT
    with every one that is learned from: ten times as many combinations take a hundred times as long, and
    grouping a key makes fewer. Boosted trees take time in proportion to records, folds and levels of the
    target.

    Returns:
        A row of figures per synthesis, and the outcome of each GT record. A high accuracy, gain or RAPID and
        a low error mean high risk. The same for the same tables in the same order and the same seed.

    Raises:
        InputError: The tables cannot be compared, the arguments contradict them, or the learner failed.
        DisclosurePipelineError: scikit-learn (the extra `prediction`) is not installed.

    Example:
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> patients = pd.DataFrame({"age": [30, 30, 40, 40] * 5, "illness": ["flu", "cold"] * 10})
        >>> risk = dp.prediction_risk(patients, patients, ["age"], "illness")
        >>> risk.measures[["accuracy_SD", "accuracy_naive", "gain_over_naive"]].iloc[0].tolist()
        [50.0, 50.0, 0.0]

    Source: Hu, "Statistical Data Privacy", methods for risk evaluation part 3; RAPID: Templ, Thees & Müller
    2026 (arXiv:2602.09235), section 2, with the base rates of GT.
    """
    options = Options(folds, tau, epsilon, absolute_epsilon, seed)
    options.check()
    check_task(task)
    if not isinstance(target, Hashable):
        raise InputError(f"target must be the name of one column, not a {type(target).__name__}.")
    grouping = grouping_of(groups, special_values, edges)
    tables = check_tables(ground_truth, synthetic, keys, (target,), grouping)
    _check_enough_records(tables)
    key_columns = tables.code(tables.keys)
    warn_of_doubts(find_doubts(tables, key_columns))
    return _risk_of_target(tables, _describe_keys(tables, key_columns), learner, task, options)


def prediction_frame(tables: Tables, learner: str, tasks: Mapping[Any, Task]) -> pd.DataFrame:
    """The figures of `prediction_risk()` for each target: index (target, synthesis), a column per figure.

    Keys are grouped as `tables` says, targets never; `tasks` says of each how it is predicted. A figure
    that only the other task has is missing.
    """
    _check_enough_records(tables)
    tables = replace(tables, grouping=_grouping_of_keys(tables))
    keys = _describe_keys(tables, tables.code(tables.keys))
    frames = {
        target: _risk_of_target(
            replace(tables, targets=(target,)), keys, learner, tasks[target], Options()
        ).measures
        for target in tables.targets
    }
    return pd.concat(frames, names=["target", "synthesis"])


def _grouping_of_keys(tables: Tables) -> Grouping:
    grouping = tables.grouping
    return replace(
        grouping,
        groups={name: groups for name, groups in grouping.groups.items() if name in tables.keys},
        edges={name: edges for name, edges in grouping.explicit.items() if name in tables.keys}
        if isinstance(grouping.edges, Mapping)
        else grouping.edges,
    )


def _check_enough_records(tables: Tables) -> None:
    if len(tables.frames[0]) < _FEWEST_RECORDS:
        raise InputError("The ground truth has a single record: no other one could predict it.")


def _describe_keys(tables: Tables, columns: Sequence[CodedColumn]) -> list[KeyColumn]:
    special_values = tables.grouping.special_values
    return [
        describe_key(column, special_values.get(column.name, ()), unordered=is_category(column.name, tables))
        for column in columns
    ]


def _risk_of_target(
    tables: Tables, keys: Sequence[KeyColumn], learner: Any, task: Task | None, options: Options
) -> PredictionRisk:
    """The result for the one target of `tables`."""
    [name] = tables.targets
    column = tables.coded(name)
    chosen_task = choose_task(column, tables, task)
    model = choose_learner(learner, chosen_task, options.seed)
    N_d, *N_s = (len(frame) for frame in tables.frames)
    rows: list[Classification] | list[Regression]
    if chosen_task == "classification":
        by_level = classify(keys, column, model, options.folds, options.tau)
        scored, fitted = N_d, N_s
        rows, outcomes = [figures for figures, _ in by_level], [records for _, records in by_level]
    else:
        scored, by_number = predict_numbers(
            keys,
            column,
            tables.grouping.special_values.get(name, ()),
            model,
            options.folds,
            options.epsilon,
            options.absolute_epsilon,
            tables.names,
        )
        rows, outcomes = [figures for figures, _, _ in by_number], [records for _, records, _ in by_number]
        fitted = [learned for _, _, learned in by_number]
    return PredictionRisk(
        keys=tables.keys,
        target=name,
        task=chosen_task,
        learner=model.name,
        N_d=N_d,
        N_s=tuple(N_s),
        N_scored=scored,
        N_fitted=tuple(fitted),
        measures=pd.DataFrame(
            [row_of(figures) for figures in rows],
            index=pd.RangeIndex(1, len(rows) + 1, name="synthesis"),
            columns=names_of(type(rows[0])),
        ),
        records=tuple(records.set_axis(tables.frames[0].index, axis=0) for records in outcomes),
    )
