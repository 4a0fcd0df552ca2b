"""Prediction risk: how well a learner fitted on SD predicts the target of the GT records.

Its predictions are compared with those of the same learner fitted on other GT records (out of fold) and on
all GT records (in sample, as in [H]), and with the naive guess, which uses no key. Sources: [H] Hu,
"Statistical Data Privacy", methods for risk evaluation part 3; [RAPID] Templ, Thees & Müller 2026, RAPID
(arXiv:2602.09235).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from disclosure_pipeline.measures.entry import Figure, Place
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
    words_of_fields,
)


@dataclass(frozen=True)
class Classification:
    """Percent of all GT records; the gains are percentage points and can be negative.

    `gain_over_GT`, with its 95 % interval, compares learners fitted on equally many records of SD and of GT;
    the other figures use learners fitted on all records. RAPID is NaN if all GT records have the same level
    or the learner gives no confidences.
    """

    accuracy_SD: float = figure(
        "predicted from the synthetic table",
        "People whose target is predicted correctly by a model trained on the synthetic table.",
        source=HU,
    )
    accuracy_GT: float = neutral(
        "predicted from other people's records",
        "People whose target is predicted correctly by a model trained on other people's confidential "
        "records.",
    )
    accuracy_GT_in_sample: float = neutral(
        "predicted from the confidential table, own record included",
        "People whose target is predicted correctly by a model trained on all confidential records.",
        source=HU,
    )
    accuracy_naive: float = neutral(
        "always the most frequent value",
        "People who have the most frequent target value of the synthetic table.",
    )
    gain_over_naive: float = points(
        "gain over guessing the most frequent value",
        "How many more people are predicted correctly than by always guessing the most frequent value.",
    )
    gain_over_GT: float = points(
        "gain over other people's records",
        "How many more people are predicted correctly from the synthetic table than from equally many "
        "records of other people.",
        finding="the {column} of {more} people in 100 is predicted correctly than from equally many records "
        "of other people",
    )
    gain_over_GT_low: float = interval_end("gain over other people's records", "lower", POINTS)
    gain_over_GT_high: float = interval_end("gain over other people's records", "upper", POINTS)
    RAPID: float = figure(
        "predicted correctly with confidence",
        "People who are predicted correctly and with high confidence from the synthetic table.",
        source=RAPID,
    )
    RAPID_GT: float = neutral(
        "predicted correctly with confidence from other people's records",
        "People who are predicted correctly and with high confidence from other people's records.",
    )


@dataclass(frozen=True)
class Regression:
    """Mean squared errors in the target's unit squared; the rest in percent of the GT records scored."""

    mse_SD: float = figure(
        "squared error from the synthetic table",
        "The mean squared error of predictions from the synthetic table.",
        SQUARED,
        high_is="safe",
        source=HU,
    )
    mse_GT: float = figure(
        "squared error from other people's records",
        "The mean squared error of predictions from other people's records.",
        SQUARED,
        high_is="safe",
    )
    mse_GT_in_sample: float = figure(
        "squared error from the confidential table",
        "The mean squared error of predictions from all confidential records.",
        SQUARED,
        high_is="safe",
        source=HU,
    )
    mse_naive: float = figure(
        "squared error of the mean",
        "The mean squared error of always predicting the mean of the synthetic table.",
        SQUARED,
        high_is="safe",
    )
    worse_from_SD: float = figure(
        "predicted worse from the synthetic table",
        "People who are predicted worse from the synthetic table than from other people's records.",
        denominator="confidential records scored",
        high_is="safe",
    )
    worse_from_SD_in_sample: float = figure(
        "predicted worse than from the confidential table",
        "People who are predicted worse from the synthetic table than from the confidential one.",
        denominator="confidential records scored",
        high_is="safe",
        source=HU,
    )
    RAPID: float = figure(
        "predicted closely",
        "People who are predicted closely from the synthetic table.",
        denominator="confidential records scored",
        source=RAPID,
    )
    RAPID_GT: float = neutral(
        "predicted closely from other people's records",
        "People who are predicted closely from other people's records.",
        denominator="confidential records scored",
    )
    RAPID_naive: float = neutral(
        "predicted closely by the mean",
        "People who are predicted closely by the mean of the synthetic table.",
        denominator="confidential records scored",
    )


GAIN_CONFIDENCE = 0.95

_ROUNDING = 1e-12


def most_frequent(levels: IntArray, size: int) -> int:
    """Return the naive guess of a level: the most frequent code of 0..size-1, the first of ties."""
    return int(np.bincount(levels, minlength=size).argmax())


def mean(values: Floats) -> float:
    """Return the naive guess of a number: the mean, rounded once; NaN without values."""
    try:
        return math.fsum(values.tolist()) / len(values) if len(values) else math.nan
    except OverflowError:  # a sum beyond the largest float passes no bound
        return math.inf


def normalised_confidence(confidence: Floats, level: IntArray) -> Floats:
    """Return (g - b) / (1 - b) of each GT record: 0 is the base rate, 1 certainty. [RAPID, section 2].

    Args:
        confidence: g, the learner's confidence (0 to 1) in the record's true level (shape: records).
        level: The records' true levels; b is the share of records with the same level.

    NaN if b is 1.
    """
    d_t = np.bincount(level)[level] if len(level) else np.zeros(0, dtype=np.int64)
    others = (len(level) - d_t).astype(np.float64)
    room = np.where(others == 0, np.nan, others)
    gain: Floats = (confidence * len(level) - d_t) / room
    return gain


def above(r: Floats, tau: float) -> Mask:
    """Mark records whose normalised confidence is strictly above tau, by more than rounding. [RAPID].

    NaN is never marked.
    """
    return r - tau > _ROUNDING


def relative_errors(true: Floats, predicted: Floats) -> Floats:
    """Return |predicted - true| in percent of |true|; infinite for a true 0 that is not predicted. [H]."""
    error = np.abs(predicted - true)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        relative = 100 * (error / np.abs(true))
    return np.where(error == 0, 0.0, relative)


def within(true: Floats, predicted: Floats, epsilon: float, absolute_epsilon: float | None = None) -> Mask:
    """Mark records whose relative error is strictly less than epsilon percent. [RAPID, section 2].

    For true values near 0, [RAPID] uses the absolute error: with `absolute_epsilon`, records whose absolute
    error is less than that are marked, too.
    """
    close = relative_errors(true, predicted) < epsilon
    if absolute_epsilon is not None:
        close |= np.abs(predicted - true) < absolute_epsilon
    return close


@dataclass(frozen=True)
class Outcomes:
    """One entry per GT record: whether each learner's guess is correct, and normalised confidences r.

    The guesses are from SD, from other GT records, from all GT records, without keys, and from equally many
    records of SD and of GT.
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
    """Compute the figures of one synthesis; RAPID counts records with normalised confidence r > tau.

    The interval is for people, with `records_per_unit` records each.
    """
    N_d = len(outcomes.correct_SD)
    from_SD, naive = (np.count_nonzero(of) for of in (outcomes.correct_SD, outcomes.correct_naive))
    same_size_SD, same_size_GT = outcomes.correct_SD_same_size, outcomes.correct_GT_same_size
    only_SD = np.count_nonzero(same_size_SD & ~same_size_GT)
    only_GT = np.count_nonzero(same_size_GT & ~same_size_SD)
    of_SD, of_GT, people = (number / records_per_unit for number in (only_SD, only_GT, N_d))
    low, high = paired_difference(of_SD, of_GT, people, GAIN_CONFIDENCE)
    return Classification(
        accuracy_SD=percent(from_SD, N_d),
        accuracy_GT=percent(np.count_nonzero(outcomes.correct_GT), N_d),
        accuracy_GT_in_sample=percent(np.count_nonzero(outcomes.correct_GT_in_sample), N_d),
        accuracy_naive=percent(naive, N_d),
        gain_over_naive=percent(from_SD - naive, N_d),
        gain_over_GT=percent(only_SD - only_GT, N_d),
        gain_over_GT_low=100 * low,
        gain_over_GT_high=100 * high,
        RAPID=_share_above(outcomes.r_SD, tau),
        RAPID_GT=_share_above(outcomes.r_GT, tau),
    )


def _share_above(r: Floats, tau: float) -> float:
    # One NaN makes the figure NaN: a record that could not be evaluated must not count as safe.
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
    """Compute the figures of one synthesis from the true values and predictions of the scored GT records."""
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
    """Mark records whose prediction has a strictly larger absolute error than the reference. [H]."""
    return np.abs(predicted - true) > np.abs(reference - true)


def _mean_squared_error(true: Floats, predicted: Floats) -> float:
    with np.errstate(over="ignore"):
        return mean((predicted - true) ** 2)


def _share_within(true: Floats, predicted: Floats, epsilon: float, absolute_epsilon: float | None) -> float:
    if not np.isfinite(predicted).all():
        return math.nan
    return percent(np.count_nonzero(within(true, predicted, epsilon, absolute_epsilon)), len(true))


_WORDS = words_of_fields(Classification)

FIGURES = (
    Figure(
        "gain_over_GT",
        _WORDS["gain_over_GT"],
        Place("prediction", value="gain_over_GT"),
        "learned",
        about="target",
        statistics=("at_most",),
        family="prediction",
        is_stacked=False,
        public="unit",
    ),
)
