"""The figures of prediction risk, with their words; the formulas are in prediction.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from disclosure_pipeline.measures.words import HU, POINTS, RAPID, SQUARED, Words


@dataclass(frozen=True)
class Classification:
    """Percent of all GT records; the gains are percentage points and can be negative.

    `gain_over_GT` compares learners fitted on equally many records of SD and of GT, with an interval of 95 %
    from `gain_over_GT_low` to `gain_over_GT_high`; the other figures are of learners fitted on all there are.
    RAPID is NaN where every GT record has the same level, and where the learner gives no confidences.
    """

    accuracy_SD: Annotated[
        float,
        Words(
            "predicted from the synthetic table",
            "Of so many people the target is predicted rightly by a model that learned from the"
            " synthetic table.",
            source=HU,
        ),
    ]
    accuracy_GT: Annotated[
        float,
        Words(
            "predicted from other people's records",
            "Of so many people the target is predicted rightly by a model that learned from "
            "other people's confidential records.",
            high_is="neither",
        ),
    ]
    accuracy_GT_in_sample: Annotated[
        float,
        Words(
            "predicted from the confidential table, own record included",
            "Of so many people the target is predicted rightly by a model that learned from all"
            " confidential records.",
            high_is="neither",
            source=HU,
        ),
    ]
    accuracy_naive: Annotated[
        float,
        Words(
            "always the most frequent value",
            "So many people have the most frequent target value of the synthetic table.",
            high_is="neither",
        ),
    ]
    gain_over_naive: Annotated[
        float,
        Words(
            "gain over guessing the most frequent value",
            "So many more people are predicted rightly than by always guessing the most frequent value.",
            unit=POINTS,
            denominator="",
        ),
    ]
    gain_over_GT: Annotated[
        float,
        Words(
            "gain over other people's records",
            "So many more people are predicted rightly from the synthetic table than from "
            "equally many records of other people.",
            unit=POINTS,
            denominator="",
        ),
    ]
    gain_over_GT_low: Annotated[
        float,
        Words(
            "gain over other people's records, lower end",
            "The lower end of its interval.",
            unit=POINTS,
            denominator="",
            high_is="neither",
        ),
    ]
    gain_over_GT_high: Annotated[
        float,
        Words(
            "gain over other people's records, upper end",
            "The upper end of its interval.",
            unit=POINTS,
            denominator="",
            high_is="neither",
        ),
    ]
    RAPID: Annotated[
        float,
        Words(
            "predicted rightly with confidence",
            "So many people are predicted rightly, and with much confidence, from the synthetic table.",
            source=RAPID,
        ),
    ]
    RAPID_GT: Annotated[
        float,
        Words(
            "predicted rightly with confidence from other people's records",
            "So many people are predicted rightly, and with much confidence, from other people's records.",
            high_is="neither",
        ),
    ]


@dataclass(frozen=True)
class Regression:
    """Mean squared errors in the target's unit squared; the rest in percent of the GT records scored."""

    mse_SD: Annotated[
        float,
        Words(
            "squared error from the synthetic table",
            "How far predictions from the synthetic table are off on average, squared.",
            unit=SQUARED,
            denominator="",
            high_is="safe",
            source=HU,
        ),
    ]
    mse_GT: Annotated[
        float,
        Words(
            "squared error from other people's records",
            "How far predictions from other people's records are off on average, squared.",
            unit=SQUARED,
            denominator="",
            high_is="safe",
        ),
    ]
    mse_GT_in_sample: Annotated[
        float,
        Words(
            "squared error from the confidential table",
            "How far predictions from all confidential records are off on average, squared.",
            unit=SQUARED,
            denominator="",
            high_is="safe",
            source=HU,
        ),
    ]
    mse_naive: Annotated[
        float,
        Words(
            "squared error of the mean",
            "How far the mean of the synthetic table is off on average, squared.",
            unit=SQUARED,
            denominator="",
            high_is="safe",
        ),
    ]
    worse_from_SD: Annotated[
        float,
        Words(
            "predicted worse from the synthetic table",
            "So many people are predicted worse from the synthetic table than from other people's records.",
            denominator="confidential records scored",
            high_is="safe",
        ),
    ]
    worse_from_SD_in_sample: Annotated[
        float,
        Words(
            "predicted worse than from the confidential table",
            "So many people are predicted worse from the synthetic table than from all confidential records.",
            denominator="confidential records scored",
            high_is="safe",
            source=HU,
        ),
    ]
    RAPID: Annotated[
        float,
        Words(
            "predicted closely",
            "So many people are predicted closely from the synthetic table.",
            denominator="confidential records scored",
            source=RAPID,
        ),
    ]
    RAPID_GT: Annotated[
        float,
        Words(
            "predicted closely from other people's records",
            "So many people are predicted closely from other people's records.",
            denominator="confidential records scored",
            high_is="neither",
        ),
    ]
    RAPID_naive: Annotated[
        float,
        Words(
            "predicted closely by the mean",
            "So many people are predicted closely by the mean of the synthetic table.",
            denominator="confidential records scored",
            high_is="neither",
        ),
    ]
