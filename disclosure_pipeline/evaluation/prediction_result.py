"""What `prediction_risk()` returns: figures of each synthesis, and the outcome of each GT record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from disclosure_pipeline.evaluation.learning.learners import Task

if TYPE_CHECKING:
    import altair as alt


@dataclass(frozen=True, repr=False, eq=False)
class PredictionRisk:
    """Prediction risk of m syntheses of one ground truth, for one target.

    `measures`: index synthesis (1…m); the columns of `measures.prediction.Classification` or `Regression`,
    percent of the GT records scored unless said otherwise. `N_scored`: GT records with a target to compare
    with; all of them in a classification, where missing is a level. `N_fitted`: SD records learned from.

    `records[i - 1]`: outcomes of synthesis i, one row per GT record, in GT's order and with its index.
    GT stands for other GT records than the one that is predicted, GT_in_sample for all of them.
    Classification: correct_SD, correct_GT, correct_GT_in_sample, correct_naive; correct_SD_same_size and
    correct_GT_same_size, learned from equally many records; confidence_SD, confidence_GT (of 0 to 1, in the
    true level; NaN where the learner gives none); normalised_SD, normalised_GT (r of RAPID); at_risk (r_SD
    above tau). Regression: relative_error_SD, relative_error_GT, relative_error_GT_in_sample (percent of the
    true value; infinite where that is 0 and the prediction is not), worse_from_SD, worse_from_SD_in_sample,
    at_risk (within epsilon from SD); missing for records that are not scored. They hold no value of GT, but
    they tell about single confidential records: not for publication.
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

    def plot(self) -> alt.ConcatChart:
        """The relative errors of the guesses from SD against those from other GT records, of numbers only."""
        from disclosure_pipeline.evaluation.plots.relative_errors import plot_relative_errors

        return plot_relative_errors(self)
