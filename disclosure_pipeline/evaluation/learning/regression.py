"""Numbers of a target predicted from the keys, and what each GT record's prediction is worth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.evaluation.learning.features import KeyColumn, numbers_of_levels
from disclosure_pipeline.evaluation.learning.learners import Learner
from disclosure_pipeline.evaluation.learning.training import out_of_fold
from disclosure_pipeline.measures.prediction import (
    Regression,
    mean,
    regression,
    relative_errors,
    within,
    worse,
)
from disclosure_pipeline.tables.levels import CodedColumn

NumberRisk = tuple[Regression, pd.DataFrame, int]

_FEWEST_IN_GT = 2


def predict_numbers(
    keys: Sequence[KeyColumn],
    target: CodedColumn,
    special_values: Sequence[float],
    learner: Learner,
    folds: int,
    epsilon: float,
    absolute_epsilon: float | None,
    table_names: Sequence[str],
) -> tuple[int, list[NumberRisk]]:
    """The number of GT records scored; and of each synthesis the figures, outcomes, and records learned from.

    Outcomes are a row per GT record (columns: see `PredictionRisk`), missing for those without a number.
    InputError where a table has too few numbers.
    """
    number_of_code = numbers_of_levels(target, special_values)
    values = [number_of_code[codes] for codes in target.codes]
    with_number = [np.flatnonzero(~np.isnan(table_values)) for table_values in values]
    for table, (usable, name) in enumerate(zip(with_number, table_names, strict=True)):
        fewest = 1 if table else _FEWEST_IN_GT
        if len(usable) < fewest:
            raise InputError(
                f"Column {target.name!r} has {len(usable)} numbers in {name} (missing and special values are "
                f"none): at least {fewest} are needed."
            )
    scored = with_number[0]
    true = values[0][scored]
    space = learner.encode_keys(keys, [0])
    q = space.q[0][scored]
    from_GT = np.empty(len(true))
    for fold in out_of_fold(np.zeros(len(true), dtype=np.int64), folds, learner.seed):
        from_GT[fold.held_out] = learner.predict_numbers(
            space, q[fold.training], true[fold.training], q[fold.held_out]
        )
    in_sample = learner.predict_numbers(space, q, true, q)

    results = []
    for synthesis in range(1, len(target.codes)):
        shared_space = learner.encode_keys(keys, [0, synthesis])
        learned = with_number[synthesis]
        y = values[synthesis][learned]
        from_SD = learner.predict_numbers(
            shared_space, shared_space.q[1][learned], y, shared_space.q[0][scored]
        )
        outcomes = pd.DataFrame(
            {
                "relative_error_SD": relative_errors(true, from_SD),
                "relative_error_GT": relative_errors(true, from_GT),
                "relative_error_GT_in_sample": relative_errors(true, in_sample),
                "worse_from_SD": pd.array(worse(true, from_SD, from_GT), dtype="boolean"),
                "worse_from_SD_in_sample": pd.array(worse(true, from_SD, in_sample), dtype="boolean"),
                "at_risk": pd.array(within(true, from_SD, epsilon, absolute_epsilon), dtype="boolean"),
            },
            index=scored,
        )
        figures = regression(true, from_SD, from_GT, in_sample, mean(y), epsilon, absolute_epsilon)
        results.append((figures, outcomes.reindex(range(len(values[0]))), len(learned)))
    return len(scored), results
