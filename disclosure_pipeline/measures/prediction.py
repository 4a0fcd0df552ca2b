"""Prediction risk: how well what is learned from SD tells the target of the GT records.

Guesses are compared: by a learner fitted on SD; by the same learner fitted on other GT records (out of
fold), and on all of them (in sample, as in [H]); and without any key (the naive guess). Sources: Hu,
"Statistical Data Privacy", methods for risk evaluation part 3, cited as [H]; Templ, Thees & Müller 2026,
RAPID (arXiv:2602.09235), cited as [RAPID].
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.measures.exact import Floats, IntArray, Mask, percent
from disclosure_pipeline.measures.samples import paired_difference
from disclosure_pipeline.measures.words import (
    HU,
    POINTS,
    RAPID,
    SQUARED,
    figure,
    interval_end,
    neutral,
    points,
)


@dataclass(frozen=True)
class Classification:
    """Percent of all GT records; the gains are percentage points and can be negative.

    `gain_over_GT` compares learners fitted on equally many records of SD and of GT, with an interval of 95 %
    from `gain_over_GT_low` to `gain_over_GT_high`; the other figures are of learners fitted on all there are.
    RAPID is NaN where every GT record has the same level, and where the learner gives no confidences.
    """

    accuracy_SD: float = figure(
        "predicted from the synthetic table",
        "Of so many people the target is predicted rightly by a model that learned from the synthetic table.",
        source=HU,
    )
    accuracy_GT: float = neutral(
        "predicted from other people's records",
        "Of so many people the target is predicted rightly by a model that learned from "
        "other people's confidential records.",
    )
    accuracy_GT_in_sample: float = neutral(
        "predicted from the confidential table, own record included",
        "Of so many people the target is predicted rightly by a model that learned from all"
        " confidential records.",
        source=HU,
    )
    accuracy_naive: float = neutral(
        "always the most frequent value",
        "This many people have the most frequent target value of the synthetic table.",
    )
    gain_over_naive: float = points(
        "gain over guessing the most frequent value",
        "This many more people are predicted rightly than by always guessing the most frequent value.",
    )
    gain_over_GT: float = points(
        "gain over other people's records",
        "This many more people are predicted rightly from the synthetic table than from "
        "equally many records of other people.",
    )
    gain_over_GT_low: float = interval_end("gain over other people's records", "lower", POINTS)
    gain_over_GT_high: float = interval_end("gain over other people's records", "upper", POINTS)
    RAPID: float = figure(
        "predicted rightly with confidence",
        "This many people are predicted rightly, and with much confidence, from the synthetic table.",
        source=RAPID,
    )
    RAPID_GT: float = neutral(
        "predicted rightly with confidence from other people's records",
        "This many people are predicted rightly, and with much confidence, from other people's records.",
    )


@dataclass(frozen=True)
class Regression:
    """Mean squared errors in the target's unit squared; the rest in percent of the GT records scored."""

    mse_SD: float = figure(
        "squared error from the synthetic table",
        "How far predictions from the synthetic table are off on average, squared.",
        SQUARED,
        high_is="safe",
        source=HU,
    )
    mse_GT: float = figure(
        "squared error from other people's records",
        "How far predictions from other people's records are off on average, squared.",
        SQUARED,
        high_is="safe",
    )
    mse_GT_in_sample: float = figure(
        "squared error from the confidential table",
        "How far predictions from all confidential records are off on average, squared.",
        SQUARED,
        high_is="safe",
        source=HU,
    )
    mse_naive: float = figure(
        "squared error of the mean",
        "How far the mean of the synthetic table is off on average, squared.",
        SQUARED,
        high_is="safe",
    )
    worse_from_SD: float = figure(
        "predicted worse from the synthetic table",
        "This many people are predicted worse from the synthetic table than from other people's records.",
        denominator="confidential records scored",
        high_is="safe",
    )
    worse_from_SD_in_sample: float = figure(
        "predicted worse than from the confidential table",
        "This many people are predicted worse from the synthetic table than from the confidential one.",
        denominator="confidential records scored",
        high_is="safe",
        source=HU,
    )
    RAPID: float = figure(
        "predicted closely",
        "This many people are predicted closely from the synthetic table.",
        denominator="confidential records scored",
        source=RAPID,
    )
    RAPID_GT: float = neutral(
        "predicted closely from other people's records",
        "This many people are predicted closely from other people's records.",
        denominator="confidential records scored",
    )
    RAPID_naive: float = neutral(
        "predicted closely by the mean",
        "This many people are predicted closely by the mean of the synthetic table.",
        denominator="confidential records scored",
    )


GAIN_CONFIDENCE = 0.95

_ROUNDING = 1e-12


def most_frequent(levels: IntArray, size: int) -> int:
    """Return the naive guess of a level: the most frequent code of 0..size-1, the first of several."""
    return int(np.bincount(levels, minlength=size).argmax())


def mean(values: Floats) -> float:
    """Return the mean, rounded once, whatever the order: the naive guess of a number. NaN of nothing."""
    try:
        return math.fsum(values.tolist()) / len(values) if len(values) else math.nan
    except OverflowError:  # a sum beyond the largest float passes no bound
        return math.inf


def normalised_confidence(confidence: Floats, level: IntArray) -> Floats:
    """Return the gain (g - b) / (1 - b) of each GT record: 0 is the base rate, 1 certainty. [RAPID, 2].

    Args:
        confidence: g, the confidence of 0 to 1 that the record's true level was given (shape: records).
        level: The records' true levels; b is the share of the records that have the same level.

    NaN where b is 1, because nothing is left to be gained.
    """
    d_t = np.bincount(level)[level] if len(level) else np.zeros(0, dtype=np.int64)
    others = (len(level) - d_t).astype(np.float64)
    room = np.where(others == 0, np.nan, others)
    gain: Floats = (confidence * len(level) - d_t) / room
    return gain


def above(r: Floats, tau: float) -> Mask:
    """Mark records whose normalised confidence is above tau, strictly; never where it is NaN. [RAPID].

    Confidences are rounded quotients of counts: one that equals tau but for the rounding is not above it.
    """
    return r - tau > _ROUNDING


def relative_errors(true: Floats, predicted: Floats) -> Floats:
    """Return |predicted - true| in percent of |true|; of a true 0: 0 if predicted too, else infinite. [H]."""
    error = np.abs(predicted - true)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        relative = 100 * (error / np.abs(true))
    return np.where(error == 0, 0.0, relative)


def within(true: Floats, predicted: Floats, epsilon: float, absolute_epsilon: float | None = None) -> Mask:
    """Return the records whose relative error is less than epsilon percent, strictly. [RAPID, section 2].

    Where the true value is 0 or close to it the relative error tells nothing, and [RAPID] asks for an
    absolute one: with `absolute_epsilon` the records whose absolute error is less than that count too.
    """
    close = relative_errors(true, predicted) < epsilon
    if absolute_epsilon is not None:
        close |= np.abs(predicted - true) < absolute_epsilon
    return close


@dataclass(frozen=True)
class Outcomes:
    """The outcome of each guess, one entry per GT record (shape of each: records).

    Correct from SD, from other GT records, from all GT records, and without keys; correct from equally many
    records of SD and of GT; normalised confidences `r_SD` and `r_GT`.
    """

    correct_SD: Mask
    correct_GT: Mask
    correct_GT_in_sample: Mask
    correct_naive: Mask
    correct_SD_same_size: Mask
    correct_GT_same_size: Mask
    r_SD: Floats
    r_GT: Floats


def classification(outcomes: Outcomes, tau: float, records_per_unit: float = 1) -> Classification:
    """Compute one synthesis's figures; a record counts for RAPID where normalised confidence r > tau.

    The interval is of people: records of one unit go together.
    """
    N_d = len(outcomes.correct_SD)
    from_SD, from_GT, in_sample, naive, same_size_SD, same_size_GT = (
        int(np.count_nonzero(correct))
        for correct in (
            outcomes.correct_SD,
            outcomes.correct_GT,
            outcomes.correct_GT_in_sample,
            outcomes.correct_naive,
            outcomes.correct_SD_same_size,
            outcomes.correct_GT_same_size,
        )
    )
    both = int(np.count_nonzero(outcomes.correct_SD_same_size & outcomes.correct_GT_same_size))
    only_SD, only_GT, people = (
        number / records_per_unit for number in (same_size_SD - both, same_size_GT - both, N_d)
    )
    low, high = paired_difference(only_SD, only_GT, people, GAIN_CONFIDENCE)
    return Classification(
        accuracy_SD=percent(from_SD, N_d),
        accuracy_GT=percent(from_GT, N_d),
        accuracy_GT_in_sample=percent(in_sample, N_d),
        accuracy_naive=percent(naive, N_d),
        gain_over_naive=percent(from_SD - naive, N_d),
        gain_over_GT=percent(same_size_SD - same_size_GT, N_d),
        gain_over_GT_low=100 * low,
        gain_over_GT_high=100 * high,
        RAPID=_share_above(outcomes.r_SD, tau),
        RAPID_GT=_share_above(outcomes.r_GT, tau),
    )


def _share_above(r: Floats, tau: float) -> float:
    # One NaN makes the figure NaN: a record that could not be judged must not count as safe.
    return math.nan if np.isnan(r).any() else percent(np.count_nonzero(above(r, tau)), len(r))


def regression(
    true: Floats,
    from_SD: Floats,
    from_GT: Floats,
    from_GT_in_sample: Floats,
    naive: float,
    epsilon: float,
    absolute_epsilon: float | None = None,
) -> Regression:
    """Compute one synthesis's figures, from each scored GT record's true value and predictions."""
    guess = np.full(len(true), naive)
    return Regression(
        mse_SD=_mean_squared_error(true, from_SD),
        mse_GT=_mean_squared_error(true, from_GT),
        mse_GT_in_sample=_mean_squared_error(true, from_GT_in_sample),
        mse_naive=_mean_squared_error(true, guess),
        worse_from_SD=percent(np.count_nonzero(worse(true, from_SD, from_GT)), len(true)),
        worse_from_SD_in_sample=percent(np.count_nonzero(worse(true, from_SD, from_GT_in_sample)), len(true)),
        RAPID=_share_within(true, from_SD, epsilon, absolute_epsilon),
        RAPID_GT=_share_within(true, from_GT, epsilon, absolute_epsilon),
        RAPID_naive=_share_within(true, guess, epsilon, absolute_epsilon),
    )


def worse(true: Floats, predicted: Floats, reference: Floats) -> Mask:
    """Mark records whose prediction has a larger absolute error than the reference's, strictly. [H]."""
    return np.abs(predicted - true) > np.abs(reference - true)


def _mean_squared_error(true: Floats, predicted: Floats) -> float:
    with np.errstate(over="ignore"):
        return mean((predicted - true) ** 2)


def _share_within(true: Floats, predicted: Floats, epsilon: float, absolute_epsilon: float | None) -> float:
    if not np.isfinite(predicted).all():
        return math.nan
    return percent(np.count_nonzero(within(true, predicted, epsilon, absolute_epsilon)), len(true))
