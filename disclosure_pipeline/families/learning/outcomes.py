"""A learner's predictions of levels and of numbers, and their outcomes for each GT record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.errors import InputError, choose_form, write_count
from disclosure_pipeline.evaluation.frames import to_row
from disclosure_pipeline.families.learning.features import KeyColumn, convert_levels
from disclosure_pipeline.families.learning.learners import Learner
from disclosure_pipeline.measures.exact import Floats, IntArray
from disclosure_pipeline.measures.prediction import (
    Classification,
    Outcomes,
    Regression,
    above,
    classification,
    mean,
    most_frequent,
    normalised_confidence,
    regression,
    relative_errors,
    within,
    worse,
)
from disclosure_pipeline.measures.samples import average_records_per_unit
from disclosure_pipeline.tables.levels import CodedColumn


@dataclass(frozen=True)
class Fold:
    """Positions of GT records: those to predict, and those to learn from."""

    held_out: IntArray
    training: IntArray


def make_folds(strata: IntArray, folds: int, seed: int, unit: IntArray) -> list[Fold]:
    """Return stratified random folds, each record being held out once.

    Units are dealt like cards, in random order within each stratum, which is that of their first record: the
    sizes of the folds differ by at most one unit, in total and in each stratum, and a stratum may have a
    single one. All records of a unit are in one fold.
    """
    _, first, number = np.unique(unit, return_index=True, return_inverse=True)
    order = np.random.default_rng(seed).permutation(len(first))
    order = order[np.argsort(strata[first][order], kind="stable")]
    n = min(folds, len(first))
    fold_of_unit = np.empty(len(first), dtype=np.int64)
    fold_of_unit[order] = np.arange(len(first)) % n
    fold = fold_of_unit[number]
    return [Fold(np.flatnonzero(fold == k), np.flatnonzero(fold != k)) for k in range(n)]


def draw_training_records(
    columns: Sequence[IntArray], folds: Sequence[Fold], seed: int
) -> tuple[IntArray, list[Fold]]:
    """Draw as many training records (give or take one) from the larger table as the smaller one has.

    Return SD's, and each fold of GT: the same object where all of its records are learned from. `columns` are
    the codes of the SD records, which are sorted by them, so that the order of the table makes no difference.
    """
    size = min(len(columns[0]), *(len(fold.training) for fold in folds))
    synthetic = np.arange(len(columns[0]))
    if len(synthetic) > size + 1:
        synthetic = np.lexsort(list(reversed(columns)))[_draw(len(synthetic), size, seed)]
    return synthetic, [
        Fold(fold.held_out, fold.training[_draw(len(fold.training), size, seed)])
        if len(fold.training) > size + 1
        else fold
        for fold in folds
    ]


def _draw(records: int, size: int, seed: int) -> IntArray:
    return np.sort(np.random.default_rng(seed).choice(records, size, replace=False))


LevelRisk = tuple[Classification, pd.DataFrame]


def classify(
    keys: Sequence[KeyColumn],
    target: CodedColumn,
    learner: Learner,
    folds: int,
    tau: float,
    unit: IntArray,
) -> list[LevelRisk]:
    """Return figures and the outcomes of GT records by synthesis (columns: see `PredictionRisk`)."""
    true = target.codes[0]
    space = learner.encode_keys(keys, [0])
    q = space.q[0]
    parts = make_folds(true, folds, learner.seed, unit)
    per_unit = average_records_per_unit(unit)

    def predict_fold(fold: Fold) -> tuple[IntArray, Floats]:
        """Predict levels and confidences of the records held out."""
        return learner.predict_levels(
            space, q[fold.training], true[fold.training], q[fold.held_out], true[fold.held_out]
        )

    guess_GT, confidence_GT = np.empty_like(true), np.empty(len(true))
    for fold in parts:
        guess_GT[fold.held_out], confidence_GT[fold.held_out] = predict_fold(fold)
    correct_GT = guess_GT == true
    correct_GT_in_sample = learner.predict_levels(space, q, true, q, true)[0] == true
    results = []
    for synthesis, t_SD in enumerate(target.codes[1:], start=1):
        shared_space = learner.encode_keys(keys, [0, synthesis])
        q_GT, q_SD = shared_space.q
        guess, confidence_SD = learner.predict_levels(shared_space, q_SD, t_SD, q_GT, true)
        codes = [*(key.column.codes[synthesis] for key in keys), t_SD]
        synthetic, equal_parts = draw_training_records(codes, parts, learner.seed)
        guess_same_size, correct_GT_same_size = guess, correct_GT.copy()
        if len(synthetic) < len(t_SD):
            guess_same_size, _ = learner.predict_levels(
                shared_space, q_SD[synthetic], t_SD[synthetic], q_GT, true
            )
        for fold, thinned in zip(parts, equal_parts, strict=True):
            if thinned is not fold:
                correct_GT_same_size[thinned.held_out] = predict_fold(thinned)[0] == true[thinned.held_out]
        outcomes = Outcomes(
            correct_SD=guess == true,
            correct_GT=correct_GT,
            correct_GT_in_sample=correct_GT_in_sample,
            correct_naive=true == most_frequent(t_SD, target.size),
            correct_SD_same_size=guess_same_size == true,
            correct_GT_same_size=correct_GT_same_size,
            r_SD=normalised_confidence(confidence_SD, true),
            r_GT=normalised_confidence(confidence_GT, true),
        )
        at_risk = pd.array(above(outcomes.r_SD, tau), dtype="boolean")
        at_risk[np.isnan(outcomes.r_SD)] = pd.NA
        columns: dict[str, Any] = to_row(outcomes)
        columns |= {"confidence_SD": confidence_SD, "confidence_GT": confidence_GT}
        columns |= {"normalised_SD": columns.pop("r_SD"), "normalised_GT": columns.pop("r_GT")}
        records = pd.DataFrame(columns | {"at_risk": at_risk})
        results.append((classification(outcomes, tau, per_unit), records))
    return results


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
    unit: IntArray,
) -> tuple[int, list[NumberRisk]]:
    """Return the number of scored GT records; and by synthesis figures, outcomes and number of SD records.

    Outcomes have a row per GT record (columns: see `PredictionRisk`), missing for those without a number.
    InputError if a table has too few numbers.
    """
    number_of_code = convert_levels(target, special_values)
    values = [number_of_code[codes] for codes in target.codes]
    with_number = [np.flatnonzero(~np.isnan(table_values)) for table_values in values]
    for table, (usable, name) in enumerate(zip(with_number, table_names, strict=True)):
        fewest = 1 if table else _FEWEST_IN_GT
        if len(usable) < fewest:
            raise InputError(
                f"Column {target.name!r} has {write_count(len(usable), 'number')} in {name}, not "
                "counting missing and "
                f"special values: at least {fewest} {choose_form(fewest, 'is', 'are')} needed."
            )
    scored = with_number[0]
    true = values[0][scored]
    space = learner.encode_keys(keys, [0])
    q = space.q[0][scored]
    from_GT = np.empty(len(true))
    for fold in make_folds(np.zeros(len(true), dtype=np.int64), folds, learner.seed, unit[scored]):
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
