"""`prediction_risk()`: how well a learner fitted on the synthetic table predicts the GT records."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from disclosure_pipeline.counting.opening import read_tables
from disclosure_pipeline.errors import InputError, write_count
from disclosure_pipeline.evaluation.arguments import choose_target, require_whole_number
from disclosure_pipeline.evaluation.frames import build_index, format_frame, join_records, to_row
from disclosure_pipeline.evaluation.resemblance import find_doubts, warn_of_doubts
from disclosure_pipeline.families.learning.features import KeyColumn, describe_key
from disclosure_pipeline.families.learning.learners import Estimator, Task, choose_learner
from disclosure_pipeline.families.learning.outcomes import classify, predict_numbers
from disclosure_pipeline.measures.exact import IntArray
from disclosure_pipeline.measures.prediction import Classification, Regression
from disclosure_pipeline.tables.alignment import Tables, number_owners
from disclosure_pipeline.tables.grouping import Edges, Grouping, grouping_of
from disclosure_pipeline.tables.levels import CodedColumn, Kind
from disclosure_pipeline.tables.messages import describe_argument
from disclosure_pipeline.tables.sources import Columns, Syntheses, TableSource

if TYPE_CHECKING:
    import altair as alt


@dataclass(frozen=True, repr=False, eq=False)
class PredictionRisk:
    """Prediction risk of m syntheses of one ground truth.

    `figures`: index (target, synthesis); the columns of `measures.prediction.Classification` or `Regression`,
    percent of the scored GT records unless stated otherwise; missing if only the other task has the figure.
    `fits`: the same index; task; N_scored, the GT records with a target to compare with (all of them in a
    classification, where missing is a level); N_fitted, the SD records learned from.

    `records`: the outcome for each GT record, in GT's order and with its index; columns (target, synthesis,
    figure), so `records["job", 1]` is a frame of plain columns. "GT" means learned from other GT records than
    the predicted one, "GT_in_sample" from all of them. Classification: correct_SD, correct_GT,
    correct_GT_in_sample, correct_naive; correct_SD_same_size and correct_GT_same_size, learned from equal
    numbers of records; confidence_SD, confidence_GT (from 0 to 1, in the true level; NaN if the learner gives
    none); normalised_SD, normalised_GT (r of RAPID); at_risk (r_SD above tau). Regression: relative_error_SD,
    relative_error_GT, relative_error_GT_in_sample (percent of the true value; infinite if that is 0 and the
    prediction is not), worse_from_SD, worse_from_SD_in_sample, at_risk (SD's error is within epsilon);
    missing for records that are not scored. The frame holds no value of GT, but it describes single
    confidential records: do not publish it.
    """

    keys: tuple[Any, ...]
    targets: tuple[Any, ...]
    learner: str
    N_d: int
    N_s: tuple[int, ...]
    fits: pd.DataFrame
    figures: pd.DataFrame
    records: pd.DataFrame

    def __str__(self) -> str:
        shown = self.fits.join(self.figures).T
        return (
            f"Prediction risk from the keys {', '.join(map(str, self.keys))}\n"
            f"Learner {self.learner}, {write_count(self.N_d, 'GT record')}\n\n"
            f"{format_frame(shown)}"
        )

    __repr__ = __str__

    def plot(self, target: Hashable | None = None) -> alt.ConcatChart:
        """Draw the relative errors of the guesses from SD against those from other GT records.

        Only for numeric targets; `target` may be left out if there is one.
        """
        from disclosure_pipeline.families.relative_errors import plot_relative_errors

        return plot_relative_errors(self, choose_target(target, self.targets))


_TASKS = ("classification", "regression")
_LARGEST_SEED = 2**32 - 1


_MOST_FOLDS = 1000


@dataclass(frozen=True)
class Options:
    """The options of `prediction_risk()`."""

    folds: int = 5
    tau: float = 0.3
    epsilon: float = 10
    absolute_epsilon: float | None = None
    seed: int = 0

    def check(self) -> None:
        """Raise InputError if an option is out of range."""
        require_whole_number("folds", self.folds, 2, _MOST_FOLDS)
        require_whole_number("seed", self.seed, 0, _LARGEST_SEED)
        if not _is_number(self.tau) or not 0 <= self.tau < 1:
            raise InputError(
                f"tau must be a number of at least 0 and less than 1, not {describe_argument(self.tau)}."
            )
        limits: dict[str, Any] = {"epsilon": self.epsilon}
        if self.absolute_epsilon is not None:
            limits["absolute_epsilon"] = self.absolute_epsilon
        for name, limit in limits.items():
            if not _is_number(limit) or not 0 < limit < math.inf:
                raise InputError(f"{name} must be a number above 0, not {describe_argument(limit)}.")


def _choose_task(column: CodedColumn, tables: Tables, task: Task | None) -> Task:
    """Return the task of a target, by default regression for numbers and classification otherwise."""
    if column.kind is Kind.EMPTY:
        raise InputError(f"Column {column.name!r} holds only missing values: there is nothing to learn.")
    if task == "regression" and column.kind is not Kind.NUMBER:
        grouped = tables.grouping.groups_column(column.name)
        reason = "is grouped" if grouped else f"holds {column.kind.value}"
        raise InputError(f"task='regression' needs numbers, and the target {column.name!r} {reason}.")
    if task is not None:
        return task
    if column.kind in {Kind.DATE, Kind.ZONED_DATE, Kind.DURATION}:
        raise InputError(
            f"The target {column.name!r} holds {column.kind.value}: convert it to numbers (such as days) in "
            "all tables, or set task='classification' to make each value a level."
        )
    is_numeric = column.kind is Kind.NUMBER and not is_category(column.name, tables)
    return "regression" if is_numeric else "classification"


def is_category(column: Any, tables: Tables) -> bool:
    """Return True if the column has a categorical type in some table."""
    return any(_has_category_type(frame[column].dtype) for frame in tables.frames)


def _has_category_type(dtype: Any) -> bool:
    if isinstance(dtype, pd.ArrowDtype):
        import pyarrow as pa  # slow, and only frames with Arrow columns need it

        return bool(pa.types.is_dictionary(dtype.pyarrow_dtype))
    return isinstance(dtype, pd.CategoricalDtype)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_FEWEST_RECORDS = 2


def prediction_risk(
    ground_truth: TableSource,
    synthetic: Syntheses,
    keys: Sequence[Hashable],
    targets: Columns,
    learner: str | Estimator | None = None,
    *,
    task: Literal["classification", "regression"] | None = None,
    folds: int = 5,
    tau: float = 0.3,
    epsilon: float = 10,
    absolute_epsilon: float | None = None,
    groups: Mapping[Any, int] | None = None,
    special_values: Mapping[Any, Sequence[float]] | None = None,
    edges: Edges = "pooled",
    unit: Hashable | None = None,
    seed: int = 0,
) -> PredictionRisk:
    """Measure how well a learner fitted on the synthetic table predicts the targets of the GT records.

    It is compared with the same learner fitted on GT, where each record is predicted from the other folds,
    never from itself (GT), or from all records, itself included, as in Hu (GT_in_sample); and with the naive
    guess of somebody who has the synthetic table but no keys: its most frequent level (the first of several),
    or its mean.

    A learner fitted on more records predicts better, whoever they are. Therefore gain_over_GT compares
    learners fitted on equal numbers of records (give or take one) of the synthesis and of the other folds;
    the larger table is sampled by `seed`. Its 95 % interval is that of paired outcomes, with the GT records
    as a sample of people; it does not cover the draw of training records.

    Args:
        ground_truth: The confidential table, given as in `disclosure()` and read into memory.
        synthetic: The synthetic table, or a sequence of m tables made from the same records.
        keys: The columns an intruder knows.
        targets: The column or columns an intruder wants to learn, each predicted separately.
        learner: None or "nearest_neighbours": the k = 3 nearest records by Euclidean distance, and all that
            are no farther away, vote or are averaged; of several levels with most votes the first wins.
            "boosted_trees": scikit-learn's histogram gradient boosting with its defaults and without early
            stopping, a strong attacker. Or any scikit-learn estimator: it is cloned, gets `seed` where a
            `random_state` is None, is fitted on numbers (levels of the target as 0, 1, 2, …), and must
            predict each record independently of the others. Learners run on one thread, so that sums do not
            depend on the machine, unless their `n_jobs` says otherwise; never in other processes.
        task: None: numbers are predicted as numbers (regression); text, booleans, category columns and
            grouped numbers as levels (classification). Dates and durations need "classification", or must be
            converted to numbers first.
        folds: The number of random parts of GT, stratified by level; at most one per record is made.
        tau: A record counts for RAPID if its normalised confidence exceeds this. [RAPID: 0.3]
        epsilon: A record counts for RAPID if its relative error, in percent, is below this. [RAPID: 10]
        absolute_epsilon: It also counts if its absolute error is below this; for targets with zeros.
        groups: Numeric column -> number of groups, for keys and targets; groups are categories.
        special_values: Column -> codes (such as -8 for "not applicable") that are not numbers: categories of
            their own in a key, missing in a predicted number. Otherwise as in `disclosure()`.
        edges: As in `disclosure()`.
        unit: The column of GT that says whose record each is, as in `disclosure()`: nobody is predicted from
            their own records.
        seed: The seed of the folds, of the order in which an estimator gets records, and of its
            `random_state`.

    Keys: categories become columns of 0 and 1, one per level in GT or in the synthesis, missing included;
    numbers and dates are scaled by mean and standard deviation of GT, and missing ones are set to the mean,
    marked by a column of 0 and 1. Boosted trees get numbers and categories unchanged. The matrix is sparse
    above 128 columns.

    Missing targets are a level in a classification. In a regression, GT records without a number are not
    scored and SD records without one are not learned from; N_scored and N_fitted of `fits` count the rest.

    Cost: the learner is fitted once per fold, once on GT, and twice on each synthesis (once in a regression).
    Nearest neighbours compare every key combination of GT with every one in the training records: grouping a
    key reduces their number.

    Returns:
        A row of figures per target and synthesis, and the outcome for each GT record. A high accuracy, gain
        or RAPID and a low error mean high risk. Results are reproducible for the same tables in the same
        order and the same seed.

    Raises:
        InputError: The tables cannot be compared or contradict the arguments, the learner failed, or the
            unit is in a synthetic table, lacks values or owns all records.
        DisclosurePipelineError: scikit-learn (the extra `prediction`) is not installed.

    Example:
        >>> import pandas as pd
        >>> import disclosure_pipeline as dp
        >>> patients = pd.DataFrame({"age": [30, 30, 40, 40] * 5, "illness": ["flu", "cold"] * 10})
        >>> risk = dp.prediction_risk(patients, patients, ["age"], "illness")
        >>> risk.figures[["accuracy_SD", "accuracy_naive", "gain_over_naive"]].iloc[0].tolist()
        [50.0, 50.0, 0.0]

    Source: Hu, "Statistical Data Privacy", methods for risk evaluation part 3; RAPID: Templ, Thees & Müller
    2026 (arXiv:2602.09235), section 2, with the base rates of GT.
    """
    options = Options(folds, tau, epsilon, absolute_epsilon, seed)
    options.check()
    if task is not None and not (isinstance(task, str) and task in _TASKS):
        raise InputError(
            f"task must be 'classification', 'regression' or None, not {describe_argument(task)}."
        )
    tables = read_tables(ground_truth, synthetic, keys, targets, grouping_of(groups, special_values, edges))
    owners = number_owners(tables.frames, unit)
    _check_enough_records(tables, owners)
    key_columns = tables.code(tables.keys)
    warn_of_doubts(find_doubts(tables, key_columns))
    described = _describe_keys(tables, key_columns)
    predictions = {
        target: _predict_target(tables, target, described, learner, task, options, owners)
        for target in tables.targets
    }
    records = {
        (target, synthesis): outcomes
        for target, prediction in predictions.items()
        for synthesis, outcomes in enumerate(prediction.records, start=1)
    }
    N_d, *N_s = (len(frame) for frame in tables.frames)
    return PredictionRisk(
        keys=tables.keys,
        targets=tables.targets,
        learner=predictions[tables.targets[0]].learner,
        N_d=N_d,
        N_s=tuple(N_s),
        fits=_stack({target: prediction.fits for target, prediction in predictions.items()}),
        figures=_stack({target: prediction.figures for target, prediction in predictions.items()}),
        records=join_records(records, tables.frames[0].index),
    )


def measure_prediction(
    tables: Tables, learner: str, tasks: Mapping[Any, Task], unit: IntArray
) -> pd.DataFrame:
    """Return the figures of `prediction_risk()`: index (target, synthesis), a column per figure.

    Keys are grouped as in `tables`, targets never. `tasks`: the task of each target; figures that only the
    other task has are missing. `unit`: whose each GT record is.
    """
    _check_enough_records(tables, unit)
    tables = replace(tables, grouping=_select_key_grouping(tables))
    keys = _describe_keys(tables, tables.code(tables.keys))
    return _stack(
        {
            target: _predict_target(tables, target, keys, learner, tasks[target], Options(), unit).figures
            for target in tables.targets
        }
    )


def _stack(frames: Mapping[Any, pd.DataFrame]) -> pd.DataFrame:
    labels = [(target, synthesis) for target, frame in frames.items() for synthesis in frame.index]
    return pd.concat(list(frames.values())).set_axis(build_index(labels, ["target", "synthesis"]), axis=0)


def _select_key_grouping(tables: Tables) -> Grouping:
    grouping = tables.grouping
    return replace(
        grouping,
        groups={name: groups for name, groups in grouping.groups.items() if name in tables.keys},
        edges={name: edges for name, edges in grouping.explicit.items() if name in tables.keys}
        if isinstance(grouping.edges, Mapping)
        else grouping.edges,
    )


def _check_enough_records(tables: Tables, unit: IntArray) -> None:
    if len(tables.frames[0]) < _FEWEST_RECORDS:
        raise InputError("The ground truth has a single record: there is no other to predict it from.")
    if (unit == unit[0]).all():
        raise InputError("All GT records belong to one unit: there is no other to predict it from.")


def _describe_keys(tables: Tables, columns: Sequence[CodedColumn]) -> list[KeyColumn]:
    special_values = tables.grouping.special_values
    return [
        describe_key(column, special_values.get(column.name, ()), unordered=is_category(column.name, tables))
        for column in columns
    ]


@dataclass(frozen=True)
class _Prediction:
    """Figures, fits and outcomes of one target, by synthesis."""

    learner: str
    figures: pd.DataFrame
    fits: pd.DataFrame
    records: Sequence[pd.DataFrame]


def _predict_target(
    tables: Tables,
    target: Any,
    keys: Sequence[KeyColumn],
    learner: str | Estimator | None,
    task: Task | None,
    options: Options,
    unit: IntArray,
) -> _Prediction:
    column = tables.code_column(target)
    chosen_task = _choose_task(column, tables, task)
    model = choose_learner(learner, chosen_task, options.seed)
    N_d, *fitted = (len(frame) for frame in tables.frames)
    scored = N_d
    rows: list[Classification] | list[Regression]
    if chosen_task == "classification":
        by_level = classify(keys, column, model, options.folds, options.tau, unit)
        rows, records = [figures for figures, _ in by_level], [outcomes for _, outcomes in by_level]
    else:
        scored, by_number = predict_numbers(
            keys,
            column,
            tables.grouping.special_values.get(target, ()),
            model,
            options.folds,
            options.epsilon,
            options.absolute_epsilon,
            tables.names,
            unit,
        )
        rows, records = [figures for figures, _, _ in by_number], [outcomes for _, outcomes, _ in by_number]
        fitted = [learned for _, _, learned in by_number]
    index = pd.RangeIndex(1, len(rows) + 1, name="synthesis")
    figures = pd.DataFrame(list(map(to_row, rows)), index=index)
    fits = pd.DataFrame({"task": chosen_task, "N_scored": scored, "N_fitted": fitted}, index=index)
    return _Prediction(model.name, figures, fits, records)
