"""A learner's predictions of levels and of numbers, and the outcome of each for its GT record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from disclosure_pipeline.errors import InputError
from disclosure_pipeline.evaluation.frames import row_of
from disclosure_pipeline.evaluation.learning.features import KeyColumn, numbers_of_levels
from disclosure_pipeline.evaluation.learning.learners import Learner
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
from disclosure_pipeline.tables.levels import CodedColumn


@dataclass(frozen=True)
class Fold:
    """Positions of GT records: those that are predicted, and those that are learned from."""

    held_out: IntArray
    training: IntArray


def out_of_fold(strata: IntArray, folds: int, seed: int, unit: IntArray | None = None) -> list[Fold]:
    """Folds in which every record is held out once, and learned from in all the others.

    Records are dealt out like cards, in random order within each stratum: the folds differ by no more than
    one record, in all and in each stratum, and a stratum of a single record is no obstacle. Of people with
    several records, whose `unit` is given, all records are in one fold: units are dealt out, then, by the
    stratum of their first record.
    """
    if unit is not None:
        _, first, number = np.unique(unit, return_index=True, return_inverse=True)
        of_units = out_of_fold(strata[first], folds, seed)
        return [
            Fold(*(np.flatnonzero(np.isin(number, part)) for part in (fold.held_out, fold.training)))
            for fold in of_units
        ]
    order = np.random.default_rng(seed).permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]
    n = min(folds, len(strata))
    fold_of_record = np.empty(len(strata), dtype=np.int64)
    fold_of_record[order] = np.arange(len(strata)) % n
    return [Fold(np.flatnonzero(fold_of_record == k), np.flatnonzero(fold_of_record != k)) for k in range(n)]


@dataclass(frozen=True)
class SameSize:
    """Records to learn from, of SD and of each fold of GT: as many, give or take one.

    `synthetic` is None where all SD records are learned from, a fold None where all its training records are.
    """

    synthetic: IntArray | None
    folds: tuple[Fold | None, ...]


def same_size(columns: Sequence[IntArray], folds: Sequence[Fold], seed: int) -> SameSize:
    """Draw from the larger table as many records as the smaller one has to learn from.

    `columns` are the codes of the SD records, by which these are sorted before some are drawn: their order
    in the table makes no difference.
    """
    size = min(len(columns[0]), *(len(fold.training) for fold in folds))
    synthetic = None
    if len(columns[0]) > size + 1:
        order = np.lexsort(list(reversed(columns)))
        synthetic = order[_draw(len(order), size, seed)]
    thinned = [
        Fold(fold.held_out, fold.training[_draw(len(fold.training), size, seed)])
        if len(fold.training) > size + 1
        else None
        for fold in folds
    ]
    return SameSize(synthetic, tuple(thinned))


def _draw(records: int, size: int, seed: int) -> IntArray:
    return np.sort(np.random.default_rng(seed).choice(records, size, replace=False))


LevelRisk = tuple[Classification, pd.DataFrame]


def classify(
    keys: Sequence[KeyColumn],
    target: CodedColumn,
    learner: Learner,
    folds: int,
    tau: float,
    unit: IntArray | None = None,
) -> list[LevelRisk]:
    """Return each synthesis' figures, and each GT record's outcome (columns: see `PredictionRisk`)."""
    true = target.codes[0]
    space = learner.encode_keys(keys, [0])
    q = space.q[0]
    parts = out_of_fold(true, folds, learner.seed, unit)
    per_unit = 1.0 if unit is None else len(unit) / len(np.unique(unit))

    def predict_fold(fold: Fold) -> tuple[IntArray, Floats]:
        """Return the levels and confidences of the records held out, from those to learn from."""
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
        sizes = same_size(codes, parts, learner.seed)
        guess_same_size, correct_GT_same_size = guess, correct_GT.copy()
        if sizes.synthetic is not None:
            guess_same_size, _ = learner.predict_levels(
                shared_space, q_SD[sizes.synthetic], t_SD[sizes.synthetic], q_GT, true
            )
        for thinned in sizes.folds:
            if thinned is not None:
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
        columns: dict[str, Any] = row_of(outcomes)
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
    unit: IntArray | None = None,
) -> tuple[int, list[NumberRisk]]:
    """Return the number of GT records scored, and figures, outcomes and records learned from by synthesis.

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
    owners = None if unit is None else unit[scored]
    for fold in out_of_fold(np.zeros(len(true), dtype=np.int64), folds, learner.seed, owners):
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
