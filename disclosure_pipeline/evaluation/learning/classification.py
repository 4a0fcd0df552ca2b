"""Levels of a target predicted from the keys, and what each GT record's prediction is worth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from disclosure_pipeline.evaluation.learning.features import Floats, KeyColumn
from disclosure_pipeline.evaluation.learning.learners import Learner
from disclosure_pipeline.evaluation.learning.training import Fold, out_of_fold, same_size
from disclosure_pipeline.measures.exact import IntArray, Mask
from disclosure_pipeline.measures.prediction import (
    Classification,
    Outcomes,
    above,
    classification,
    most_frequent,
    normalised_confidence,
)
from disclosure_pipeline.tables.levels import CodedColumn

LevelRisk = tuple[Classification, pd.DataFrame]


def classify(
    keys: Sequence[KeyColumn], target: CodedColumn, learner: Learner, folds: int, tau: float
) -> list[LevelRisk]:
    """The figures of each synthesis, and the outcome of each GT record (columns: see `PredictionRisk`)."""
    true = target.codes[0]
    space = learner.encode_keys(keys, [0])
    q = space.q[0]
    parts = out_of_fold(true, folds, learner.seed)

    def predict_fold(fold: Fold) -> tuple[IntArray, Floats]:
        """The levels and confidences of the records held out, from those to learn from."""
        return learner.predict_levels(
            space, q[fold.training], true[fold.training], q[fold.held_out], true[fold.held_out]
        )

    guess_GT, confidence_GT = np.empty_like(true), np.empty(len(true))
    for fold in parts:
        guess_GT[fold.held_out], confidence_GT[fold.held_out] = predict_fold(fold)
    correct_GT = guess_GT == true
    correct_GT_in_sample = learner.predict_levels(space, q, true, q, true)[0] == true
    r_GT = normalised_confidence(confidence_GT, true)

    results = []
    for synthesis in range(1, len(target.codes)):
        shared_space = learner.encode_keys(keys, [0, synthesis])
        q_GT, q_SD = shared_space.q
        t_SD = target.codes[synthesis]
        guess, confidence_SD = learner.predict_levels(shared_space, q_SD, t_SD, q_GT, true)
        codes = [*(key.column.codes[synthesis] for key in keys), t_SD]
        sizes = same_size(codes, parts, learner.seed)
        correct_SD_same_size, correct_GT_same_size = guess == true, correct_GT.copy()
        if sizes.synthetic is not None:
            learned = sizes.synthetic
            guess_same_size, _ = learner.predict_levels(
                shared_space, q_SD[learned], t_SD[learned], q_GT, true
            )
            correct_SD_same_size = guess_same_size == true
        for thinned in sizes.folds:
            if thinned is not None:
                guess_of_fold, _ = predict_fold(thinned)
                correct_GT_same_size[thinned.held_out] = guess_of_fold == true[thinned.held_out]
        outcomes = Outcomes(
            correct_SD=guess == true,
            correct_GT=correct_GT,
            correct_GT_in_sample=correct_GT_in_sample,
            correct_naive=true == most_frequent(t_SD, target.size),
            correct_SD_same_size=correct_SD_same_size,
            correct_GT_same_size=correct_GT_same_size,
            r_SD=normalised_confidence(confidence_SD, true),
            r_GT=r_GT,
        )
        records = _records(outcomes, confidence_SD, confidence_GT, tau)
        results.append((classification(outcomes, tau), records))
    return results


def _records(outcomes: Outcomes, confidence_SD: Floats, confidence_GT: Floats, tau: float) -> pd.DataFrame:
    at_risk = pd.array(above(outcomes.r_SD, tau), dtype="boolean")
    at_risk[np.isnan(outcomes.r_SD)] = pd.NA
    columns: dict[str, Mask | Floats | pd.arrays.BooleanArray] = {
        "correct_SD": outcomes.correct_SD,
        "correct_GT": outcomes.correct_GT,
        "correct_GT_in_sample": outcomes.correct_GT_in_sample,
        "correct_naive": outcomes.correct_naive,
        "correct_SD_same_size": outcomes.correct_SD_same_size,
        "correct_GT_same_size": outcomes.correct_GT_same_size,
        "confidence_SD": confidence_SD,
        "confidence_GT": confidence_GT,
        "normalised_SD": outcomes.r_SD,
        "normalised_GT": outcomes.r_GT,
        "at_risk": at_risk,
    }
    return pd.DataFrame(columns)
